#include "tools/output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "scheduler/problem/error.h"

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

// A directory being filled. Whatever is not committed is taken away again, made folders included.
class Staging {
 public:
  explicit Staging(fs::path directory) : directory_(std::move(directory)) { make_directories(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  ~Staging() {
    std::error_code ignored;
    for (const auto& [temporary, target] : files_) fs::remove(temporary, ignored);
    if (committed_) return;
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, ignored);
  }

  void add(const OutputFile& file) {
    const fs::path target = directory_ / file.name;
    std::error_code ignored;
    if (fs::is_directory(target, ignored)) fail(target, "it is a directory");
    files_.emplace_back(directory_ / fmt::format(".{}.{}", file.name, getpid()), target);
    write_file(files_.back().first, file.content);
  }

  void commit() {
    committed_ = true;
    for (const auto& [temporary, target] : files_) {
      std::error_code error;
      fs::rename(temporary, target, error);
      if (error) fail(target, error.message());
    }
  }

 private:
  void make_directories() {
    fs::path path;
    for (const fs::path& part : directory_) {
      path /= part;
      std::error_code error;
      if (fs::create_directory(path, error)) made_.push_back(path);
      if (error || !fs::is_directory(path, error)) {
        fail(path, error ? error.message() : "it is not a directory");
      }
    }
  }

  fs::path directory_;
  std::vector<fs::path> made_;                        // folders that were not there before
  std::vector<std::pair<fs::path, fs::path>> files_;  // temporary, target
  bool committed_ = false;
};

}  // namespace

void write_files(const std::string& directory, const std::vector<OutputFile>& files) {
  Staging staging(directory);
  for (const OutputFile& file : files) staging.add(file);
  staging.commit();
}

}  // namespace counterflow
