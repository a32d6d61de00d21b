#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/base64.h"
#include "report/columns.h"
#include "report/drawing.h"
#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using testing::HandMade;

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(bytes_.at(at_++));
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t change() {
    const std::uint64_t bits = number();
    const auto half = static_cast<std::int64_t>(bits >> 1);
    return bits % 2 == 0 ? half : -half - 1;
  }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

// Independent of the encoder: follows the format as columns.h words it. Streams and limits are not
// in the columns, so they are taken from the original.
void read_boxes(Reader& in, Lane& lane) {
  lane.boxes.resize(in.number());
  std::vector<Op> templates(in.number());
  for (Op& each : templates) {
    each.kind = static_cast<OpKind>(in.number());
    each.replica = static_cast<std::uint8_t>(in.number());
    each.stage = static_cast<std::uint16_t>(in.number());
  }
  for (Box& box : lane.boxes) box.stream = static_cast<StreamId>(in.number());
  std::uint32_t ops = 0;
  for (Box& box : lane.boxes) {
    const std::uint64_t shape = in.number();
    box.kind = static_cast<InstructionKind>(shape % 4);
    box.ops = {ops, static_cast<std::uint32_t>(shape / 4)};
    ops += box.ops.count;
  }
  std::vector<std::size_t> used;
  for (std::uint32_t k = 0; k < ops; ++k) {
    used.push_back(in.number());
    lane.ops.push_back(templates.at(used.back()));
  }
  std::map<std::size_t, std::int64_t> microbatch;
  for (std::uint32_t k = 0; k < ops; ++k) {
    lane.ops[k].microbatch = static_cast<Microbatch>(microbatch[used[k]] += in.change());
  }
  std::vector<std::int64_t> begin(lane.boxes.size());
  for (std::int64_t& each : begin) each = in.change();
  const auto class_of = [&](const Box& box) {
    return box.ops.count == 0 ? std::size_t{0} : 1 + used[box.ops.first];
  };
  std::map<std::size_t, std::int64_t> duration;
  std::map<StreamId, Time> end;
  for (std::size_t i = 0; i < lane.boxes.size(); ++i) {
    Box& box = lane.boxes[i];
    box.when.begin = end[box.stream] + Time{begin[i]};
    box.when.end = box.when.begin + Time{duration[class_of(box)] += in.change()};
    end[box.stream] = box.when.end;
  }
  std::map<std::size_t, std::int64_t> bytes;
  for (Box& box : lane.boxes) box.bytes = Bytes{bytes[class_of(box)] += in.change()};
}

void read_rest(Reader& in, Lane& lane) {
  lane.memory.resize(in.number());
  std::int64_t at = 0;
  for (MemorySample& sample : lane.memory) sample.at = Time{at += in.change()};
  std::int64_t held = 0;
  for (MemorySample& sample : lane.memory) sample.held = Bytes{held += in.change()};
  lane.waits.resize(in.number());
  std::int64_t instruction = 0;
  for (Wait& wait : lane.waits) {
    wait.instruction = static_cast<std::uint32_t>(instruction += in.change());
  }
  for (Wait& wait : lane.waits) wait.rank = static_cast<std::uint32_t>(in.number());
  std::map<std::uint32_t, std::int64_t> on;
  for (Wait& wait : lane.waits) wait.on = static_cast<std::uint32_t>(on[wait.rank] += in.change());
}

void expect_round_trip(const Drawing& drawing) {
  Reader in(encode_columns(drawing));
  for (const Lane& lane : drawing.lanes) {
    Lane decoded;
    decoded.streams = lane.streams;
    decoded.memory_limit = lane.memory_limit;
    read_boxes(in, decoded);
    read_rest(in, decoded);
    EXPECT_EQ(decoded, lane);
  }
  EXPECT_TRUE(in.at_end());
}

Drawing drawing_of(HandMade run) {
  const Report report = run.report();
  return make_drawing({run.program(), run.timeline(), report, {}});
}

TEST(Columns, ReadBackToTheSameLanes) {
  const Drawing drawing = drawing_of(testing::two_ranks());
  EXPECT_FALSE(drawing.lanes[1].waits.empty());
  expect_round_trip(drawing);
}

TEST(Columns, KeepPairsCollectivesAndWhatNeverRan) {
  HandMade run(1, 2, 2);
  run.pair(0, testing::f(0, 1), testing::b(1, 0), 0, 10);
  run.run(0, testing::f(0, 0, 1), 5, 9, testing::kSecondStream);
  run.run(0, testing::b(0, 1), -1, -1);
  run.collective(0, {OpKind::reduce_gradients, 0, 1, 0}, 12, 14).step_end(0, 20);
  expect_round_trip(drawing_of(run));
}

TEST(Columns, KeepTheLargestNumbers) {
  HandMade run(1, 1, 1);
  constexpr std::int64_t kLate = std::int64_t{1} << 62;
  run.run(0, testing::f(0, 999'999), kLate - 7, kLate);
  run.memory(0, 0, kLate).memory(0, kLate, 0).memory(0, kLate, -kLate);
  expect_round_trip(drawing_of(run));
}

TEST(Columns, AnEmptyRankIsFewBytes) {
  HandMade run(2, 2, 1);
  expect_round_trip(drawing_of(run));
  EXPECT_LE(encode_columns(drawing_of(run)).size(), 8U);
}

TEST(Base64, WritesTheVectorsOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace counterflow
