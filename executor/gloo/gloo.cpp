#include "executor/gloo/gloo.h"

#include <fmt/format.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/gloo/children.h"
#include "executor/gloo/gloo_mesh.h"
#include "executor/gloo/local_store.h"
#include "executor/gloo/meeting.h"
#include "executor/gloo/tcp_store.h"
#include "executor/out_of_memory.h"
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

// A folder; gloo's own counts the time it waits in whole seconds.
class FolderStore final : public gloo::rendezvous::FileStore {
 public:
  using FileStore::FileStore;
  void wait(const std::vector<std::string>& keys) override { FileStore::wait(keys); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    const auto until = std::chrono::steady_clock::now() + timeout;
    while (!check(keys)) {
      if (std::chrono::steady_clock::now() > until) throw EnvironmentError("not all are there");
      std::this_thread::sleep_for(10ms);
    }
  }
};

// Where the ranks of a launcher exchange their addresses.
struct MeetingPlace {
  std::unique_ptr<TcpStoreServer> server{};  // where rank 0 listens
  std::unique_ptr<Store> store{};
  std::string advice{};  // to those who do not meet there
};

// Where rank 0 listens.
int meeting_port() {
  if (!environment("COUNTERFLOW_PORT").empty()) return number("COUNTERFLOW_PORT", 1, 65535);
  if (environment("MASTER_PORT").empty()) {
    throw EnvironmentError(
        "MASTER_ADDR is set and MASTER_PORT is not: set it for all ranks to a port that is free on "
        "rank 0's machine, for example MASTER_PORT=29500");
  }
  // torchrun's agent serves its own store at MASTER_PORT.
  return number("MASTER_PORT", 1, 65534) +
         (environment("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1 : 0);
}

MeetingPlace meeting_place(const LaunchedRank& place, std::chrono::milliseconds patience) {
  if (const std::string folder = environment("COUNTERFLOW_STORE"); !folder.empty()) {
    if (std::error_code error; !std::filesystem::is_directory(folder, error)) {
      throw EnvironmentError("COUNTERFLOW_STORE=" + folder +
                             ": there is no such folder; make one, empty, that all ranks see");
    }
    return {.store = std::make_unique<FolderStore>(folder),
            .advice = "give COUNTERFLOW_STORE=" + folder +
                      " to all ranks, and an empty folder in every run; --patience is how long "
                      "they are waited for"};
  }
  const std::string host = environment("MASTER_ADDR");
  if (host.empty()) {
    throw EnvironmentError(
        "ranks that a launcher started must meet somewhere: set MASTER_ADDR and MASTER_PORT to "
        "rank 0's machine and a free port, or COUNTERFLOW_STORE to an empty folder that all see");
  }
  const int port = meeting_port();
  MeetingPlace meeting;
  meeting.advice = fmt::format(
      "start all {} ranks, each once, where {}:{} is rank 0's machine; --patience is how long they "
      "are waited for",
      place.size, host, port);
  if (place.rank == 0) meeting.server = std::make_unique<TcpStoreServer>(port, patience);
  const int connection =
      place.rank == 0 ? meeting.server->connect() : connect_to_store(host, port, patience);
  meeting.store = std::make_unique<StoreClient>(connection, patience);
  return meeting;
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

// Ranks on one machine come at once; that many of them connect may take a while.
std::chrono::milliseconds local_meeting(const GlooSettings& settings) {
  return std::max<std::chrono::milliseconds>(10s, settings.meeting);
}

// Throws MissingRanks, or EnvironmentError, where not all ranks come.
std::unique_ptr<GlooMesh> connect(const LaunchedRank& place, Store& store, const char* address,
                                  std::chrono::milliseconds patience, const std::string& advice) {
  meet(store, "here", place.rank, place.size, patience, advice);
  try {
    return std::make_unique<GlooMesh>(place.rank, place.size, store, address, patience);
  } catch (const EnvironmentError& error) {
    // Who gives up says so, so that those are left for whom all have waited.
    meet(store, "gave-up", place.rank, place.size,
         std::min<std::chrono::milliseconds>(patience, 3s), error.what());
    throw;
  }
}

void check_size(const LaunchedRank& place, std::size_t ranks) {
  if (static_cast<std::size_t>(place.size) == ranks) return;
  throw InputError(fmt::format(
      "the launcher started {0} ranks ({1}={0}), the program has {2}: have it start {2} (torchrun "
      "--nproc-per-node {2}, mpirun -np {2}), or unset {1} to have them started here",
      place.size, place.size_variable, ranks));
}

RunResult run_as(const LaunchedRank& place, const Program& program, Compute& compute,
                 const GlooSettings& settings) {
  check_size(place, program.ranks.size());
  const auto patience = settings.meeting;
  RankResult result;
  std::unique_ptr<GlooMesh> mesh;
  {
    const MeetingPlace meeting = meeting_place(place, patience);
    gloo::rendezvous::PrefixStore ours("counterflow", *meeting.store);
    mesh =
        connect(place, ours, environment("COUNTERFLOW_ADDRESS").c_str(), patience, meeting.advice);
  }
  try {
    result = run_rank(program, compute, settings, *mesh);
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(fmt::format("rank {}: {}", place.rank, error.what()));
  } catch (const std::bad_alloc&) {
    throw EnvironmentError(fmt::format("rank {}: {}", place.rank, out_of_memory("this rank")));
  }
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
  const auto failed = [&](const std::string& reason, Rank culprit) {
    RunResult result;
    result.failure = Failure{rank, 0, 0, reason, culprit};
    return to_bytes(result);
  };
  try {
    const auto patience = local_meeting(settings);
    const int size = static_cast<int>(program.ranks.size());
    StoreClient store(connection, patience);
    const auto mesh = connect({.rank = rank, .size = size}, store, "127.0.0.1", patience,
                              "the machine may have too much to do for that many ranks");
    return to_bytes(run_rank(program, compute, settings, *mesh).run);
  } catch (const MissingRanks& error) {
    return failed(error.what(), error.ranks().front());
  } catch (const std::bad_alloc&) {
    return failed(out_of_memory("this rank"), rank);
  } catch (const std::exception& error) {
    return failed(error.what(), rank);
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

// How long the others have once one has ended so. With a failure they have all been told, and need
// no more than to say goodbye; who died tells nobody, and may not be missed before the patience.
std::chrono::nanoseconds grace_after(const Children::Outcome& outcome,
                                     const ProcessSettings& process) {
  constexpr std::chrono::nanoseconds kGoodbye = 3s;
  const auto patience = std::clamp<std::chrono::nanoseconds>(process.patience, 3s, 24h);
  if (outcome.bytes.empty()) return patience + kGoodbye;
  return result_from_bytes(outcome.bytes).failure ? kGoodbye : 2 * patience + 10s;
}

// Of what the ranks sent back, the one that tells: the steps if all went well, else the failure
// that is nearest to its cause: one that blames a dead rank, or what a rank says of itself.
RunResult verdict(const std::vector<Children::Outcome>& outcomes) {
  const std::optional<Rank> dead = dead_rank(outcomes);
  const auto nearness = [&](const Failure& each) {
    return std::pair(dead && each.culprit == dead, each.culprit == each.rank);
  };
  std::optional<Failure> failure;
  RunResult at_first;
  std::vector<std::optional<RankProgress>> stopped(outcomes.size());
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].bytes.empty()) continue;
    RunResult result = result_from_bytes(outcomes[rank].bytes);
    if (rank < result.stopped.size()) stopped[rank] = std::move(result.stopped[rank]);
    if (result.failure && (!failure || nearness(*result.failure) > nearness(*failure))) {
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
    place.size_variable = size;
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
  LocalStore store(ranks, local_meeting(settings));
  Children children(ranks, [&](int rank) {
    return child(rank, program, compute, settings, store.connection_of(rank));
  });
  store.serve();
  return verdict(children.wait(
      [&](const Children::Outcome& outcome) { return grace_after(outcome, settings.process); }));
}

}  // namespace counterflow::exec
