#include "python/arrays.h"

#include <cstdint>
#include <initializer_list>

namespace counterflow::python {
namespace {

struct Field {
  const char* name;
  py::dtype type;
  std::size_t offset;
};

template <typename T>
py::dtype plain() {
  return py::dtype::of<T>();
}

py::dtype record(std::size_t size, std::initializer_list<Field> fields) {
  py::list names;
  py::list formats;
  py::list offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    formats.append(field.type);
    offsets.append(field.offset);
  }
  return py::dtype(names, formats, offsets, static_cast<py::ssize_t>(size));
}

constexpr std::size_t kFirst = offsetof(Range, first);
constexpr std::size_t kCount = offsetof(Range, count);

py::dtype payload() {
  return record(sizeof(Payload),
                {{"kind", plain<std::uint8_t>(), offsetof(Payload, kind)},
                 {"replica", plain<std::uint8_t>(), offsetof(Payload, replica)},
                 {"from", plain<std::uint16_t>(), offsetof(Payload, from)},
                 {"to", plain<std::uint16_t>(), offsetof(Payload, to)},
                 {"part", plain<std::uint16_t>(), offsetof(Payload, part)},
                 {"microbatch", plain<std::int32_t>(), offsetof(Payload, microbatch)}});
}

}  // namespace

template <>
py::dtype dtype_of<Time>() {
  return plain<std::int64_t>();
}

template <>
py::dtype dtype_of<Op>() {
  return record(sizeof(Op), {{"kind", plain<std::uint8_t>(), offsetof(Op, kind)},
                             {"replica", plain<std::uint8_t>(), offsetof(Op, replica)},
                             {"stage", plain<std::uint16_t>(), offsetof(Op, stage)},
                             {"microbatch", plain<std::int32_t>(), offsetof(Op, microbatch)}});
}

template <>
py::dtype dtype_of<Slot>() {
  return record(sizeof(Slot), {{"first", dtype_of<Op>(), offsetof(Slot, first)},
                               {"second", dtype_of<Op>(), offsetof(Slot, second)}});
}

template <>
py::dtype dtype_of<StageCost>() {
  const py::dtype time = plain<std::int64_t>();
  return record(sizeof(StageCost),
                {{"forward_ns", time, offsetof(StageCost, forward)},
                 {"backward_input_ns", time, offsetof(StageCost, backward_input)},
                 {"backward_weight_ns", time, offsetof(StageCost, backward_weight)}});
}

template <>
py::dtype dtype_of<Interval>() {
  return record(sizeof(Interval), {{"begin_ns", plain<std::int64_t>(), offsetof(Interval, begin)},
                                   {"end_ns", plain<std::int64_t>(), offsetof(Interval, end)}});
}

template <>
py::dtype dtype_of<MemorySample>() {
  return record(sizeof(MemorySample),
                {{"at_ns", plain<std::int64_t>(), offsetof(MemorySample, at)},
                 {"held_bytes", plain<std::int64_t>(), offsetof(MemorySample, held)}});
}

template <>
py::dtype dtype_of<Kernel>() {
  return record(sizeof(Kernel),
                {{"kind", plain<std::uint8_t>(), offsetof(Kernel, kind)},
                 {"paired_kind", plain<std::uint8_t>(), offsetof(Kernel, paired_kind)},
                 {"replica", plain<std::uint8_t>(), offsetof(Kernel, replica)},
                 {"paired_replica", plain<std::uint8_t>(), offsetof(Kernel, paired_replica)},
                 {"stage", plain<std::uint16_t>(), offsetof(Kernel, stage)},
                 {"paired_stage", plain<std::uint16_t>(), offsetof(Kernel, paired_stage)},
                 {"duration_ns", plain<std::int64_t>(), offsetof(Kernel, duration)},
                 {"allocates_bytes", plain<std::int64_t>(), offsetof(Kernel, allocates)},
                 {"frees_bytes", plain<std::int64_t>(), offsetof(Kernel, frees)}});
}

template <>
py::dtype dtype_of<Instruction>() {
  const py::dtype index = plain<std::uint32_t>();
  return record(sizeof(Instruction),
                {{"kind", plain<std::uint8_t>(), offsetof(Instruction, kind)},
                 {"stream", plain<std::uint8_t>(), offsetof(Instruction, stream)},
                 {"communicator", plain<std::uint16_t>(), offsetof(Instruction, communicator)},
                 {"kernel", index, offsetof(Instruction, kernel)},
                 {"op", dtype_of<Op>(), offsetof(Instruction, op)},
                 {"paired", dtype_of<Op>(), offsetof(Instruction, paired)},
                 {"records", index, offsetof(Instruction, records)},
                 {"generation", index, offsetof(Instruction, generation)},
                 {"waits_first", index, offsetof(Instruction, waits) + kFirst},
                 {"waits_count", index, offsetof(Instruction, waits) + kCount},
                 {"body_first", index, offsetof(Instruction, body) + kFirst},
                 {"body_count", index, offsetof(Instruction, body) + kCount}});
}

template <>
py::dtype dtype_of<EventWait>() {
  return record(sizeof(EventWait),
                {{"event", plain<std::uint32_t>(), offsetof(EventWait, event)},
                 {"generation", plain<std::uint32_t>(), offsetof(EventWait, generation)}});
}

template <>
py::dtype dtype_of<Transfer>() {
  return record(sizeof(Transfer),
                {{"is_send", plain<std::uint8_t>(), offsetof(Transfer, is_send)},
                 {"type", plain<std::uint8_t>(), offsetof(Transfer, type)},
                 {"peer", plain<std::uint16_t>(), offsetof(Transfer, peer)},
                 {"sequence", plain<std::uint32_t>(), offsetof(Transfer, sequence)},
                 {"payload", payload(), offsetof(Transfer, payload)},
                 {"slot", plain<std::uint32_t>(), offsetof(Transfer, slot)},
                 {"version", plain<std::uint32_t>(), offsetof(Transfer, version)},
                 {"bytes", plain<std::int64_t>(), offsetof(Transfer, size)}});
}

template <>
py::dtype dtype_of<Collective>() {
  return record(sizeof(Collective),
                {{"kind", plain<std::uint8_t>(), offsetof(Collective, kind)},
                 {"sequence", plain<std::uint32_t>(), offsetof(Collective, sequence)},
                 {"slot", plain<std::uint32_t>(), offsetof(Collective, slot)},
                 {"version", plain<std::uint32_t>(), offsetof(Collective, version)},
                 {"bytes", plain<std::int64_t>(), offsetof(Collective, size)}});
}

template <>
py::dtype dtype_of<Access>() {
  // The version in the low 31 bits, the highest one set for a write: bits have no offset.
  constexpr std::size_t kUse = offsetof(Access, slot) + sizeof(std::uint32_t);
  static_assert(sizeof(Access) == kUse + sizeof(std::uint32_t));
  return record(sizeof(Access), {{"slot", plain<std::uint32_t>(), offsetof(Access, slot)},
                                 {"use", plain<std::uint32_t>(), kUse}});
}

template <>
py::dtype dtype_of<BufferSlot>() {
  return record(sizeof(BufferSlot),
                {{"pool", plain<std::uint8_t>(), offsetof(BufferSlot, pool)},
                 {"offset_bytes", plain<std::int64_t>(), offsetof(BufferSlot, offset)},
                 {"bytes", plain<std::int64_t>(), offsetof(BufferSlot, size)}});
}

}  // namespace counterflow::python
