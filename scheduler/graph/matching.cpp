#include "scheduler/graph/matching.h"

#include <algorithm>

namespace counterflow {
namespace {

// One rank's end of one channel: its transfers in issue order.
struct Fifo {
  CommunicatorId communicator = kNoCommunicator;
  std::uint16_t peer = 0;
  bool is_send = false;
  std::vector<std::uint32_t> transfers;
};

Fifo& fifo_of(std::vector<Fifo>& fifos, CommunicatorId communicator, std::uint16_t peer,
              bool is_send) {
  // A rank has a handful of channels, so a linear search beats any map.
  for (Fifo& fifo : fifos) {
    if (fifo.peer == peer && fifo.communicator == communicator && fifo.is_send == is_send) {
      return fifo;
    }
  }
  fifos.push_back({communicator, peer, is_send, {}});
  return fifos.back();
}

const Fifo* find(const std::vector<Fifo>& fifos, CommunicatorId communicator, std::uint16_t peer,
                 bool is_send) {
  const auto found = std::ranges::find_if(fifos, [&](const Fifo& fifo) {
    return fifo.peer == peer && fifo.communicator == communicator && fifo.is_send == is_send;
  });
  return found == fifos.end() ? nullptr : &*found;
}

}  // namespace

Matching::Matching(const Program& program) {
  const std::size_t ranks = program.ranks.size();
  owners_.resize(ranks);
  sequences_.resize(ranks);
  partners_.resize(ranks);
  std::vector<std::vector<Fifo>> fifos(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const RankProgram& list = program.ranks[rank];
    owners_[rank].resize(list.transfers.size(), kNone);
    sequences_[rank].resize(list.transfers.size());
    partners_[rank].resize(list.transfers.size());
    for (std::uint32_t index = 0; index < list.instructions.size(); ++index) {
      const Instruction& instruction = list.instructions[index];
      if (instruction.kind != InstructionKind::transfer) continue;
      for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
        const std::uint32_t transfer = instruction.body.first + k;
        owners_[rank][transfer] = index;
        const Transfer& end = list.transfers[transfer];
        auto& fifo =
            fifo_of(fifos[rank], instruction.communicator, end.peer, end.is_send).transfers;
        sequences_[rank][transfer] = static_cast<std::uint32_t>(fifo.size());
        fifo.push_back(transfer);
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const Fifo& sends : fifos[rank]) {
      if (!sends.is_send || sends.peer >= ranks) continue;
      const Fifo* receives =
          find(fifos[sends.peer], sends.communicator, static_cast<std::uint16_t>(rank), false);
      if (receives == nullptr) continue;
      const std::size_t pairs = std::min(sends.transfers.size(), receives->transfers.size());
      for (std::size_t k = 0; k < pairs; ++k) {
        const End send{static_cast<std::uint32_t>(rank), sends.transfers[k]};
        const End receive{sends.peer, receives->transfers[k]};
        partners_[rank][send.transfer] = receive;
        partners_[receive.rank][receive.transfer] = send;
      }
    }
  }
}

}  // namespace counterflow
