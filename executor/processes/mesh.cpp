#include "executor/processes/mesh.h"

#include <cstring>

namespace counterflow::exec {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  std::size_t at = 0;
  // Multiplication by an odd number and exclusive or are invertible: no changed bit is forgotten.
  for (; at + sizeof sum <= bytes.size(); at += sizeof sum) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum = (sum ^ word) * kPrime;
    sum ^= sum >> 32U;
  }
  for (; at < bytes.size(); ++at) sum = (sum ^ static_cast<std::uint64_t>(bytes[at])) * kPrime;
  return sum;
}

}  // namespace counterflow::exec
