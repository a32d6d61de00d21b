#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "report/json/reader.h"
#include "report/program_json.h"
#include "report/report_json.h"
#include "scheduler/problem/config.h"

namespace counterflow {
namespace {

using json::Node;
using json::Row;

// How much there is to point to.
struct Extents {
  std::int64_t ranks = 0;
  std::int64_t stages = 0;
  std::int64_t microbatches = 0;
  std::int64_t kernels = 0;
  std::int64_t communicators = 0;
};

// An index below `count`, or -1 for none.
template <typename T>
T index_or_none(Row& row, std::int64_t count) {
  const std::int64_t index = row.integer(-1, count - 1);
  return index < 0 ? std::numeric_limits<T>::max() : static_cast<T>(index);
}

OpKind read_kind(Row& row) {
  const std::string& word = row.text();
  for (int i = 0; i <= static_cast<int>(kLastOpKind); ++i) {
    if (token(static_cast<OpKind>(i)) == word) return static_cast<OpKind>(i);
  }
  row.fail("'" + word + "' is no kind of op; one is F, B, I, W, SEND_F, ...");
}

Op read_op(Row& row, const Extents& extents) {
  const Op op = row.op();
  if (op.kind == OpKind::none) return op;
  if (op.stage >= extents.stages) {
    row.fail(fmt::format("stage {} is outside 0..{}", op.stage, extents.stages - 1));
  }
  if (has_microbatch(op.kind) && op.microbatch >= extents.microbatches) {
    row.fail(
        fmt::format("microbatch {} is outside 0..{}", op.microbatch, extents.microbatches - 1));
  }
  return op;
}

// A run of entries of a table with `size` of them.
Range read_range(Row& row, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  Range range;
  range.first = row.integer_as<std::uint32_t>(0, count);
  range.count = row.integer_as<std::uint32_t>(0, count - range.first);
  return range;
}

Kernel read_kernel(Row& row, const Extents& extents) {
  Kernel kernel;
  kernel.kind = read_kind(row);
  kernel.paired_kind = read_kind(row);
  kernel.replica = row.integer_as<std::uint8_t>(0, kMaxReplicas - 1);
  kernel.paired_replica = row.integer_as<std::uint8_t>(0, kMaxReplicas - 1);
  kernel.stage = row.integer_as<std::uint16_t>(0, extents.stages - 1);
  kernel.paired_stage = row.integer_as<std::uint16_t>(0, extents.stages - 1);
  kernel.duration = Time{row.integer(0)};
  kernel.allocates = Bytes{row.integer(0)};
  kernel.frees = Bytes{row.integer(0)};
  return kernel;
}

Transfer read_transfer(Row& row, const Extents& extents, std::size_t slots) {
  const std::int64_t last_stage = extents.stages - 1;
  Transfer transfer;
  transfer.is_send = row.integer(0, 1) == 1;
  transfer.type = row.one_of(DataType::fp8);
  transfer.peer = row.integer_as<std::uint16_t>(0, extents.ranks - 1);
  transfer.sequence = row.integer_as<std::uint32_t>();
  transfer.payload.kind = row.one_of(PayloadKind::metadata);
  transfer.payload.replica = row.integer_as<std::uint8_t>(0, kMaxReplicas - 1);
  transfer.payload.from = row.integer_as<std::uint16_t>(0, last_stage);
  transfer.payload.to = row.integer_as<std::uint16_t>(0, last_stage);
  transfer.payload.part = row.integer_as<std::uint16_t>();
  transfer.payload.microbatch =
      row.integer_as<Microbatch>(0, std::max<std::int64_t>(extents.microbatches - 1, 0));
  transfer.slot = index_or_none<std::uint32_t>(row, static_cast<std::int64_t>(slots));
  transfer.version = row.integer_as<std::uint32_t>();
  transfer.size = Bytes{row.integer(0)};
  return transfer;
}

Collective read_collective(Row& row, std::size_t slots) {
  Collective collective;
  collective.kind = row.one_of(CollectiveKind::barrier);
  collective.sequence = row.integer_as<std::uint32_t>();
  collective.slot = index_or_none<std::uint32_t>(row, static_cast<std::int64_t>(slots));
  collective.version = row.integer_as<std::uint32_t>();
  collective.size = Bytes{row.integer(0)};
  return collective;
}

Access read_access(Row& row, std::size_t slots) {
  Access access;
  access.slot = index_or_none<std::uint32_t>(row, static_cast<std::int64_t>(slots));
  constexpr std::int64_t kLastVersion = 0x7fffffff;
  access.version = static_cast<std::uint32_t>(row.integer(0, kLastVersion)) & 0x7fffffffU;
  access.is_write = row.integer(0, 1) == 1;
  return access;
}

BufferSlot read_slot(Row& row) {
  BufferSlot slot;
  slot.pool = row.one_of(kLastBufferPool);
  slot.offset = Bytes{row.integer(0)};
  slot.size = Bytes{row.integer(0)};
  return slot;
}

std::size_t body_size(const RankProgram& rank, InstructionKind kind) {
  if (kind == InstructionKind::run) return rank.accesses.size();
  if (kind == InstructionKind::transfer) return rank.transfers.size();
  if (kind == InstructionKind::collective) return rank.collectives.size();
  return 0;
}

// An instruction with what its kind cannot do without.
Instruction read_instruction(Row& row, const RankProgram& rank, const Extents& extents) {
  Instruction i;
  i.kind = row.one_of(InstructionKind::step_end);
  const bool communicates =
      i.kind == InstructionKind::transfer || i.kind == InstructionKind::collective;
  i.stream = row.integer_as<StreamId>(0, static_cast<std::int64_t>(rank.streams.size()) - 1);
  i.communicator = index_or_none<CommunicatorId>(row, extents.communicators);
  if (communicates && i.communicator == kNoCommunicator) row.fail("it needs a communicator");
  i.kernel = index_or_none<std::uint32_t>(row, extents.kernels);
  if (i.kind == InstructionKind::run && i.kernel == kNone) row.fail("a run needs a kernel");
  i.op = read_op(row, extents);
  i.paired = read_op(row, extents);
  i.records = index_or_none<std::uint32_t>(row, rank.events);
  i.generation = row.integer_as<std::uint32_t>();
  i.waits = read_range(row, rank.waits.size());
  i.body = read_range(row, body_size(rank, i.kind));
  if (communicates && i.body.count == 0) row.fail("there is nothing to exchange");
  return i;
}

Stream read_stream(const Node& node) {
  Stream stream;
  stream.role = json::one_of(node.at("role"), StreamRole::host);
  stream.priority = static_cast<std::int8_t>(node.at("priority").integer(-128, 127));
  stream.label = node.at("label").text();
  return stream;
}

template <std::size_t n, typename T, typename Read>
void read_table(const Node& table, const std::array<std::string_view, n>&, std::vector<T>& out,
                Read read) {
  out.reserve(table.size());
  table.for_each_row(n, [&](Row& row) { out.push_back(read(row)); });
}

// The tables instructions point into come first.
RankProgram read_rank(const Node& node, const Extents& extents) {
  RankProgram rank;
  const Node streams = node.at("streams");
  if (streams.size() > kMaxStreams) streams.fail("more than 255 streams");
  for (std::size_t i = 0; i < streams.size(); ++i) {
    rank.streams.push_back(read_stream(streams.at(i)));
  }
  const auto most_events = static_cast<std::int64_t>(node.at("instructions").size());
  rank.events = static_cast<std::uint32_t>(node.at("events").integer(0, most_events));
  rank.static_memory = Bytes{node.at("static_memory_bytes").integer(0)};
  read_table(node.at("slots"), program_columns::slots, rank.slots, read_slot);
  const std::size_t slots = rank.slots.size();
  read_table(node.at("waits"), program_columns::waits, rank.waits, [&](Row& row) {
    EventWait wait;
    wait.event = index_or_none<std::uint32_t>(row, rank.events);
    wait.generation = row.integer_as<std::uint32_t>();
    return wait;
  });
  read_table(node.at("transfers"), program_columns::transfers, rank.transfers,
             [&](Row& row) { return read_transfer(row, extents, slots); });
  read_table(node.at("collectives"), program_columns::collectives, rank.collectives,
             [&](Row& row) { return read_collective(row, slots); });
  read_table(node.at("accesses"), program_columns::accesses, rank.accesses,
             [&](Row& row) { return read_access(row, slots); });
  read_table(node.at("instructions"), program_columns::instructions, rank.instructions,
             [&](Row& row) { return read_instruction(row, rank, extents); });
  return rank;
}

std::vector<Communicator> read_communicators(const Node& node, std::int64_t ranks) {
  std::vector<Communicator> communicators;
  if (node.size() > kNoCommunicator) node.fail("more than 65535 communicators");
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node entry = node.at(i);
    Communicator communicator;
    communicator.kind = json::one_of(entry.at("kind"), CommunicatorKind::control);
    const Node members = entry.at("members");
    for (std::size_t j = 0; j < members.size(); ++j) {
      communicator.members.push_back(static_cast<Rank>(members.at(j).integer(0, ranks - 1)));
    }
    communicator.max_thread_blocks = static_cast<std::int32_t>(
        entry.at("max_thread_blocks").integer(0, std::numeric_limits<std::int32_t>::max()));
    communicators.push_back(std::move(communicator));
  }
  return communicators;
}

// Each message end is issued once.
void check_transfers(const Node& instructions, const RankProgram& rank) {
  std::vector<std::uint8_t> issued(rank.transfers.size());
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& each = rank.instructions[i];
    if (each.kind != InstructionKind::transfer) continue;
    for (std::uint32_t k = each.body.first; k < each.body.first + each.body.count; ++k) {
      if (issued[k] != 0) {
        instructions.at(i).fail(fmt::format("transfer {} belongs to an earlier instruction", k));
      }
      issued[k] = 1;
    }
  }
}

// Sums of times and of bytes stay clear of the end of int64, as those of a config do.
void check_sums(const Node& root, const Program& program) {
  const auto add = [](std::int64_t& sum, std::int64_t value, const Node& place) {
    if (value > kMaxTotal - sum) place.fail("the numbers add up to more than 2^62");
    sum += value;
  };
  std::int64_t time = 0;
  std::int64_t bytes = 0;
  const Node kernels = root.at("kernels");
  const Node ranks = root.at("ranks");
  for (const RankProgram& rank : program.ranks) {
    add(bytes, rank.static_memory.value, ranks);
    for (const Instruction& each : rank.instructions) {
      if (each.kernel == kNone) continue;
      const Kernel& kernel = program.kernels[each.kernel];
      add(time, kernel.duration.count(), kernels);
      add(bytes, kernel.allocates.value, kernels);
      add(bytes, kernel.frees.value, kernels);
    }
    for (const Transfer& each : rank.transfers) add(bytes, each.size.value, ranks);
    for (const Collective& each : rank.collectives) add(bytes, each.size.value, ranks);
  }
}

void check_hash(const Node& root, const Program& program) {
  const std::string found = fmt::format("{:016x}", hash(program));
  const Node written = root.at("hash");
  if (written.text() != found) {
    written.fail(
        fmt::format("the file says {}, its contents give {}: it was changed after it was "
                    "written; compile it again",
                    written.text(), found));
  }
}

}  // namespace

Program parse_program_json(std::string_view text, const std::string& file) {
  const nlohmann::json document = json::parse(text, file);
  const Node root(document, file);
  (void)root.at("schema_version").integer(kSchemaVersion, kSchemaVersion);
  Program program;
  program.version =
      static_cast<std::uint32_t>(root.at("version").integer(Program::kVersion, Program::kVersion));
  program.schedule = root.at("schedule").text();
  program.stages = static_cast<int>(root.at("stages").integer(0, kMaxStages));
  program.microbatches = static_cast<int>(root.at("microbatches").integer(0, kMaxMicrobatches));
  const Node ranks = root.at("ranks");
  Extents extents{static_cast<std::int64_t>(ranks.size()), program.stages, program.microbatches, 0,
                  0};
  read_table(root.at("kernels"), program_columns::kernels, program.kernels,
             [&](Row& row) { return read_kernel(row, extents); });
  program.communicators = read_communicators(root.at("communicators"), extents.ranks);
  extents.kernels = static_cast<std::int64_t>(program.kernels.size());
  extents.communicators = static_cast<std::int64_t>(program.communicators.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    program.ranks.push_back(read_rank(ranks.at(r), extents));
    check_transfers(ranks.at(r).at("instructions"), program.ranks.back());
  }
  check_sums(root, program);
  check_hash(root, program);
  return program;
}

}  // namespace counterflow
