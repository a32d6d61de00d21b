#include "executor/gloo/gloo.h"

#include <fmt/format.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "executor/gloo/children.h"
#include "executor/gloo/gloo_mesh.h"
#include "executor/gloo/local_store.h"
#include "executor/gloo/tcp_store.h"
#include "executor/processes/wire.h"
#include "scheduler/error.h"
#include "scheduler/problem/quantity.h"

namespace counterflow::exec {
namespace {

using namespace std::chrono_literals;
using gloo::rendezvous::Store;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

int number(const char* name, std::int64_t least, std::int64_t most) {
  try {
    return static_cast<int>(parse_integer(environment(name), least, most));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}={}: {}", name, environment(name), error.what()));
  }
}

// Where the ranks of a launcher exchange their addresses.
struct MeetingPlace {
  std::unique_ptr<TcpStoreServer> server{};  // where rank 0 listens
  std::unique_ptr<Store> store{};
};

MeetingPlace meeting_place(const LaunchedRank& place, std::chrono::milliseconds patience) {
  if (const std::string folder = environment("COUNTERFLOW_STORE"); !folder.empty()) {
    if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
      throw EnvironmentError("COUNTERFLOW_STORE=" + folder +
                             ": there is no such folder; make one, empty, that all ranks see");
    }
    return {.store = std::make_unique<gloo::rendezvous::FileStore>(folder)};
  }
  const std::string host = environment("MASTER_ADDR");
  if (host.empty()) {
    throw EnvironmentError(
        "ranks that a launcher started must meet somewhere: set MASTER_ADDR and MASTER_PORT to "
        "rank 0's machine and a free port, or COUNTERFLOW_STORE to an empty folder that all see");
  }
  int port = 0;
  if (!environment("COUNTERFLOW_PORT").empty()) {
    port = number("COUNTERFLOW_PORT", 1, 65535);
  } else {
    // torchrun's agent serves its own store at MASTER_PORT.
    port = number("MASTER_PORT", 1, 65534) +
           (environment("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1 : 0);
  }
  if (place.rank != 0) {
    return {.store = std::make_unique<StoreClient>(connect_to_store(host, port, patience))};
  }
  auto server = std::make_unique<TcpStoreServer>(port, patience);
  auto store = std::make_unique<StoreClient>(server->connect());
  return {std::move(server), std::move(store)};
}

void check_messages(const Program& program) {
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    for (const Transfer& each : program.ranks[r].transfers) {
      if (each.peer != r) continue;
      throw InfeasibleError(fmt::format(
          "rank {} sends a message to itself; --backend threads runs such a program", r));
    }
  }
}

RankResult run_rank(const Program& program, Compute& compute, const GlooSettings& settings,
                    GlooMesh& connected) {
  FaultyMesh mesh(connected, settings.faults);
  FaultyCompute faulty(compute, settings.faults, mesh.rank());
  auto run = std::make_unique<RankRun>(program, faulty, settings.process, mesh);
  RankResult result = run->run();
  // What hangs still refers to all of this; the process is about to end.
  if (result.abandoned) (void)run.release();
  return result;
}

std::chrono::milliseconds connect_patience(const GlooSettings& settings) {
  return std::max<std::chrono::milliseconds>(
      30s, std::chrono::duration_cast<std::chrono::milliseconds>(settings.process.patience));
}

RunResult run_as(const LaunchedRank& place, const Program& program, Compute& compute,
                 const GlooSettings& settings) {
  if (static_cast<std::size_t>(place.size) != program.ranks.size()) {
    throw InputError(fmt::format("the launcher started {} ranks, the program has {}", place.size,
                                 program.ranks.size()));
  }
  const auto patience = connect_patience(settings);
  RankResult result;
  std::unique_ptr<GlooMesh> mesh;
  {
    const MeetingPlace meeting = meeting_place(place, patience);
    gloo::rendezvous::PrefixStore ours("counterflow", *meeting.store);
    mesh = std::make_unique<GlooMesh>(place.rank, place.size, ours,
                                      environment("COUNTERFLOW_ADDRESS").c_str(), patience);
  }
  result = run_rank(program, compute, settings, *mesh);
  if (result.abandoned) {
    if (settings.abandoned) settings.abandoned(result.run);
    std::fprintf(stderr, "error: rank %d: %s\n", place.rank, result.run.failure->reason.c_str());
    std::fflush(stderr);
    std::_Exit(4);
  }
  return std::move(result.run);
}

// What a rank that this process started sends back.
std::vector<std::byte> child(int rank, const Program& program, Compute& compute,
                             const GlooSettings& settings, int connection) {
  try {
    StoreClient store(connection);
    GlooMesh mesh(rank, static_cast<int>(program.ranks.size()), store, "127.0.0.1",
                  connect_patience(settings));
    const RankResult result = run_rank(program, compute, settings, mesh);
    return to_bytes(result.run);
  } catch (const std::exception& error) {
    RunResult result;
    result.failure = Failure{rank, 0, 0, error.what(), rank};
    return to_bytes(result);
  }
}

// The last of the ranks whose process ended without a word.
std::optional<Rank> dead_rank(const std::vector<Children::Outcome>& outcomes) {
  std::optional<Rank> dead;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].bytes.empty() && !outcomes[rank].ended_by_us) dead = static_cast<Rank>(rank);
  }
  return dead;
}

// Of what the ranks sent back, the one that tells: the steps if all went well, else the failure
// that is nearest to its cause, which is one that blames a dead rank.
RunResult verdict(const std::vector<Children::Outcome>& outcomes) {
  const std::optional<Rank> dead = dead_rank(outcomes);
  const auto blames_dead = [&](const Failure& each) { return dead && each.culprit == dead; };
  std::optional<Failure> failure;
  RunResult at_first;
  std::vector<std::optional<RankProgress>> stopped(outcomes.size());
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].bytes.empty()) continue;
    RunResult result = result_from_bytes(outcomes[rank].bytes);
    if (rank < result.stopped.size()) stopped[rank] = std::move(result.stopped[rank]);
    if (result.failure && (!failure || (blames_dead(*result.failure) && !blames_dead(*failure)))) {
      failure = result.failure;
    }
    if (rank == 0) at_first = std::move(result);
  }
  if (!failure && dead) {
    failure = Failure{*dead, 0, 0,
                      fmt::format("its process {}", outcomes[static_cast<std::size_t>(*dead)].how),
                      *dead};
  }
  if (!failure) return at_first;
  return {.steps = {}, .failure = std::move(failure), .stopped = std::move(stopped)};
}

}  // namespace

std::optional<LaunchedRank> launched_rank() {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"RANK", "WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
  };
  for (const auto& [rank, size] : kNames) {
    if (environment(rank).empty() || environment(size).empty()) continue;
    LaunchedRank place;
    place.size = number(size, 1, 65535);
    place.rank = number(rank, 0, place.size - 1);
    return place;
  }
  return std::nullopt;
}

RunResult run_over_gloo(const Program& program, Compute& compute, const GlooSettings& settings) {
  check_messages(program);
  if (const auto place = launched_rank()) return run_as(*place, program, compute, settings);
  const int ranks = static_cast<int>(program.ranks.size());
  LocalStore store(ranks, connect_patience(settings));
  Children children(ranks, [&](int rank) {
    return child(rank, program, compute, settings, store.connection_of(rank));
  });
  store.serve();
  return verdict(children.wait(2 * settings.process.patience + 10s));
}

}  // namespace counterflow::exec
