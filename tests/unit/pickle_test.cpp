#include "report/pickle.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "executor/pickle_writer.h"
#include "scheduler/error.h"

namespace counterflow {
namespace {

using namespace std::string_literals;
using nlohmann::json;

json read(const std::string& bytes) {
  return parse_pickle(bytes, "dump");
}

std::string refusal(const std::string& bytes) {
  try {
    (void)read(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// What Python's pickle.dumps() gives.
TEST(Pickle, ReadsWhatPythonWrites) {
  // {"a": [1, -2, 300, 2**40, None], "b": (True, False), "c": 1.5}, protocol 2
  const std::string two =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00\x00\x00\x00\x01NeX\x01\x00\x00\x00"
      "bq\x03\x88\x89\x86q\x04X\x01\x00\x00\x00"
      "cq\x05G?\xf8\x00\x00\x00\x00\x00\x00u."s;
  const json expected = {{"a", {1, -2, 300, 1LL << 40, nullptr}}, {"b", {true, false}}, {"c", 1.5}};
  EXPECT_EQ(read(two), expected);
  // The same of protocol 4, framed, with short texts and memoized values.
  const std::string four =
      "\x80\x04\x95\x35\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00\x00\x00\x00\x01Ne\x8c\x01"
      "b\x94\x88\x89\x86\x94\x8c\x01"
      "c\x94G?\xf8\x00\x00\x00\x00\x00\x00u."s;
  EXPECT_EQ(read(four), expected);
}

TEST(Pickle, ReadsWhatItsWriterWrites) {
  exec::PickleWriter out;
  out.open_dict();
  out.member("text", "one").member("again", "one").member("number", std::int64_t{-7});
  out.member("large", std::int64_t{1} << 62).text("none").null().text("yes").boolean(true);
  out.text("list").open_list().integer(1).open_tuple().text("x").text("y").close_tuple();
  out.close_list().text("empty").open_dict().close_dict().close_dict();
  const json expected = {{"text", "one"},           {"again", "one"},         {"number", -7},
                         {"large", 1LL << 62},      {"none", nullptr},        {"yes", true},
                         {"list", {1, {"x", "y"}}}, {"empty", json::object()}};
  EXPECT_EQ(read(out.finish()), expected);
}

TEST(Pickle, RefusesWhateverWouldRunCode) {
  const auto refused = [](const std::string& bytes, const std::string& name) {
    EXPECT_NE(refusal(bytes).find("opcode " + name + " would make Python run code"),
              std::string::npos)
        << refusal(bytes);
  };
  refused(
      "\x80\x02"
      "cos\nsystem\nX\x02\x00\x00\x00"
      "ls\x85R."s,
      "GLOBAL");
  refused("\x80\x04\x8c\x02os\x8c\x06system\x93."s, "STACK_GLOBAL");
  refused("\x80\x02N)R."s, "REDUCE");
  refused("\x80\x02N)\x81."s, "NEWOBJ");
  refused("\x80\x02N}b."s, "BUILD");
  refused("(ios\nsystem\n."s, "INST");
  refused("(No."s, "OBJ");
  refused("Pid\n."s, "PERSID");
  refused("\x80\x02\x82\x01."s, "EXT1");
  EXPECT_NE(refusal("\x80\x02\xff."s).find("byte 2: opcode 0xff is not taken"), std::string::npos);
}

TEST(Pickle, RefusesWhatIsMalformed) {
  for (const std::string& bytes : {
           ""s,
           "."s,
           "\x80"s,
           "\x80\x02"s,
           "\x80\x06N."s,
           "\x80\x02NN."s,
           "\x80\x02(N."s,
           "\x80\x02}K\x01K\x02s."s,  // a key that is no text
           "\x80\x02}(X\x01\x00\x00\x00"
           "au."s,  // a key without a value
           "\x80\x02}Na."s,
           "\x80\x02]NNs."s,
           "\x80\x02Nu."s,
           "\x80\x02h\x05."s,
           "\x80\x02q\x00."s,
           "\x80\x02(a."s,
           "\x80\x02X\xff\xff\xff\xff"
           "a."s,
           "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
           "a."s,
           "\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s,
       }) {
    EXPECT_TRUE(refusal(bytes).starts_with("dump: byte "))
        << json(bytes).dump(-1, ' ', true, json::error_handler_t::replace);
  }
}

TEST(Pickle, RefusesEveryFrontPartOfAGoodOne) {
  exec::PickleWriter out;
  out.open_dict().text("a").open_list().integer(1).integer(std::int64_t{1} << 40).close_list();
  out.text("b").open_tuple().text("a").null().close_tuple().close_dict();
  const std::string good = out.finish();
  ASSERT_EQ(refusal(good), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  }
}

TEST(Pickle, RefusesWhatContainsItself) {
  EXPECT_NE(refusal("\x80\x02]q\x00h\x00"
                    "a."s)
                .find("contain themselves"),
            std::string::npos);
}

// Each pair holds the one before it twice: 2^60 values in 300 bytes.
TEST(Pickle, RefusesWhatWouldNotFitInMemory) {
  std::string bytes = "\x80\x02]q\x00"s;
  for (int i = 0; i < 60; ++i) bytes += "h\x00\x86q\x00"s;
  EXPECT_NE(refusal(bytes + ".").find("more than 1048576 values once what is named twice"),
            std::string::npos);
}

// A list of one text that is named so often that it is too much for a file of that size; what is
// within reason is read.
TEST(Pickle, WritesOutNoMoreThanItsSizeAllows) {
  const auto naming = [](std::size_t length, int times, int numbers) {
    exec::PickleWriter out;
    out.open_list();
    for (int n = 0; n < times; ++n) out.text(std::string(length, 'x'));
    for (int n = 0; n < numbers; ++n) out.integer(1'000'000 + n);
    out.close_list();
    return out.finish();
  };
  EXPECT_EQ(read(naming(1000, 1000, 0)).size(), 1000U);
  EXPECT_NE(refusal(naming(10'000, 2000, 0))
                .find("more than 16777216 bytes of text once what is named twice"),
            std::string::npos);
  // The same in a longer file.
  EXPECT_EQ(read(naming(10'000, 2000, 20'000)).size(), 22'000U);
}

TEST(Pickle, NeverDoesAnythingButReadOrRefuse) {
  exec::PickleWriter out;
  out.open_dict().text("a").open_list().integer(1).integer(std::int64_t{1} << 40).close_list();
  out.text("b").open_tuple().text("a").null().close_tuple().close_dict();
  const std::string good = out.finish();
  std::mt19937 random(7);
  int refusals = 0;
  for (int n = 0; n < 20'000; ++n) {
    std::string bytes = good;
    for (int k = 0; k < 1 + n % 3; ++k)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    refusals += refusal(bytes).empty() ? 0 : 1;
  }
  EXPECT_GT(refusals, 10'000);
}

}  // namespace
}  // namespace counterflow
