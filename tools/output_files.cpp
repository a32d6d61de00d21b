#include "tools/output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "scheduler/error.h"
#include "tools/leftovers.h"

namespace counterflow {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw EnvironmentError(fmt::format("cannot write {}: {}", path.string(), reason));
}

void write_file(const fs::path& path, const std::string& content) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  errno = 0;
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  if (!file) fail(path, std::strerror(errno));
  const bool written = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  // The last bytes leave with the close, so its result counts too.
  if (const bool closed = std::fclose(file.release()) == 0; !written || !closed) {
    fail(path, std::strerror(errno));
  }
}

void refuse_directory(const fs::path& target) {
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) fail(target, "it is a directory");
}

// What is at a path; fails where even that cannot be told.
fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) fail(path, error.message());
  return type;
}

// The part of a directory's path that exists.
fs::path existing_part(const fs::path& directory) {
  fs::path existing;
  for (const fs::path& part : directory) {
    const fs::path path = existing / part;
    const fs::file_type type = type_of(path);
    if (type == fs::file_type::not_found) break;
    if (type != fs::file_type::directory) fail(path, "it is not a directory");
    existing = path;
  }
  return existing.empty() ? "." : existing;
}

// A directory being filled. Whatever is not committed is taken away again, made folders included,
// also when a signal ends the process.
class Staging {
 public:
  explicit Staging(fs::path directory) : directory_(std::move(directory)) { make_directories(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  ~Staging() {
    std::error_code ignored;
    for (const File& file : files_) {
      fs::remove(file.temporary, ignored);
      fs::remove(file.earlier, ignored);
    }
    if (committed_) return;
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, ignored);
  }

  // Before any file is made, which may take long.
  void check_target(const std::string& name) const { refuse_directory(directory_ / name); }

  void add(const OutputFile& file) {
    const auto hidden = [&](std::string_view suffix) {
      return directory_ / fmt::format(".{}.{}{}", file.name, getpid(), suffix);
    };
    files_.push_back({hidden(""), hidden(".earlier"), directory_ / file.name});
    leftovers_.add(files_.back().temporary.string());
    write_file(files_.back().temporary, file.make());
  }

  // A signal waits until all is done, or undone.
  void commit() {
    held_.emplace();
    for (const File& file : files_) refuse_directory(file.target);
    for (File& file : files_) {
      std::error_code error;
      keep_earlier(file, error);
      if (!error) fs::rename(file.temporary, file.target, error);
      if (error) {
        roll_back();
        fail(file.target, error.message());
      }
      file.replaced = true;
    }
    committed_ = true;
  }

 private:
  struct File {
    fs::path temporary;
    fs::path earlier;  // where what stood at the target is kept until all are in place
    fs::path target;
    bool kept = false;
    bool replaced = false;
  };

  // By a second name where the file system has them, so that the target is never missing.
  static void keep_earlier(File& file, std::error_code& error) {
    std::error_code none;
    if (!fs::exists(fs::symlink_status(file.target, none))) return;
    fs::create_hard_link(file.target, file.earlier, error);
    if (error) fs::rename(file.target, file.earlier, error);
    file.kept = !error;
  }

  void roll_back() {
    for (File& file : files_) {
      std::error_code error;
      if (file.kept) {
        fs::rename(file.earlier, file.target, error);
        if (error) file.earlier.clear();  // all there is left of it, so it stays
      } else if (file.replaced) {
        fs::remove(file.target, error);
      }
    }
  }

  void make_directories() {
    const HeldSignals until_known;
    fs::path path;
    for (const fs::path& part : directory_) {
      path /= part;
      std::error_code error;
      std::error_code none;
      if (fs::create_directory(path, error)) {
        made_.push_back(path);
        leftovers_.add(path.string());
      }
      if (fs::is_directory(path, none)) continue;
      fail(path, fs::exists(path, none) ? "it is not a directory" : error.message());
    }
  }

  std::optional<HeldSignals> held_;  // let go last
  Leftovers leftovers_;
  fs::path directory_;
  std::vector<fs::path> made_;  // folders that were not there before
  std::vector<File> files_;
  bool committed_ = false;
};

}  // namespace

void write_files(const std::string& directory, const std::vector<OutputFile>& files) {
  Staging staging(directory);
  for (const OutputFile& file : files) staging.check_target(file.name);
  for (const OutputFile& file : files) staging.add(file);
  staging.commit();
}

void check_outputs(const std::string& directory, const std::vector<std::string_view>& names) {
  const fs::path existing = existing_part(directory);
  if (access(existing.c_str(), W_OK | X_OK) != 0) fail(directory, std::strerror(errno));
  for (const std::string_view name : names) {
    const fs::path target = fs::path(directory) / name;
    if (name.empty()) fail(target, "it names a folder, not a file in one");
    if (type_of(target) == fs::file_type::directory) refuse_directory(target);
  }
}

OutputPath::OutputPath(const std::string& file) {
  const fs::path path(file);
  folder = path.has_parent_path() ? path.parent_path().string() : ".";
  name = path.filename().string();
}

}  // namespace counterflow
