#include "scheduler/problem/layers.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace counterflow {
namespace {

Layer layer_of(char letter) {
  Layer layer;
  layer.letter = letter;
  layer.role = letter == 'E'   ? LayerRole::embedding
               : letter == 'm' ? LayerRole::mtp
               : letter == 'L' ? LayerRole::head
               : letter == 'v' ? LayerRole::other
                               : LayerRole::decoder;
  layer.cost = {Time{10}, Time{20}, Time{5}};
  return layer;
}

std::vector<Layer> model(const std::string& letters) {
  std::vector<Layer> layers;
  for (const char letter : letters) layers.push_back(layer_of(letter));
  return layers;
}

// A model with so many decoder layers, an embedding and a head.
std::vector<Layer> decoders(int count) {
  return model("E" + std::string(static_cast<std::size_t>(count), 't') + "L");
}

std::string refusal(const std::vector<Layer>& layers, const std::string& layout) {
  try {
    (void)cut_from_letters(layers, parse_layout(layout));
    return "taken";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string refusal(const std::vector<Layer>& layers, const std::vector<int>& counts) {
  try {
    (void)cut_from_counts(layers, counts);
    return "taken";
  } catch (const InputError& error) {
    return error.what();
  }
}

// The four layouts of one thread about a model of 61 decoder layers, of which one adds up.
TEST(LayoutOfLayers, SaysTheLayerCountFirst) {
  const std::vector<Layer> layers = decoders(61);
  EXPECT_EQ(refusal(layers, "Et|(tt|)*30L"), "taken");
  EXPECT_EQ(refusal(layers, "Et|(tt|)*29L|"), "59 decoder layers, model has 61; stage 31 is empty");
  EXPECT_EQ(refusal(layers, "Et|(tt|)*29|L"), "59 decoder layers, model has 61; stage 30 is empty");
  EXPECT_EQ(refusal(layers, "Et|(tt|)*28t|t|L"), "59 decoder layers, model has 61");
}

TEST(LayoutOfLayers, TakesAPassThroughStageButNoEmptyEnd) {
  const std::vector<Layer> layers = decoders(59);
  EXPECT_EQ(refusal(layers, "Et|(tt|)*29|L"), "taken");
  EXPECT_EQ(refusal(layers, "Et|(tt|)*29L|"),
            "stage 31 is empty and, as the last, passes nothing on; give it a layer or leave it "
            "out");
  EXPECT_EQ(refusal(layers, "|Et|(tt|)*29L"),
            "stage 0 is empty and, as the first, passes nothing on; give it a layer or leave it "
            "out");
}

TEST(LayoutOfLayers, CountsOtherLettersAndChecksTheOrder) {
  const std::vector<Layer> layers = model("EttmL");
  EXPECT_EQ(refusal(layers, "Ett|mmL"), "2 m layers, model has 1");
  EXPECT_EQ(refusal(layers, "tt|mL"), "0 E layers, model has 1");
  EXPECT_EQ(refusal(layers, "t|mLx"),
            "1 decoder layer, model has 2; 0 E layers, model has 1; 1 x layer, model has 0");
  EXPECT_EQ(refusal(layers, "Etm|tL"),
            "stage 0 has m where layer 2 of the model is t; keep the order of the layers");
}

TEST(LayoutOfLayers, AModelOfTwoKindsOfDecoderLayersIsCountedByBoth) {
  const std::vector<Layer> layers = model("EdddttL");
  EXPECT_EQ(refusal(layers, "Eddd|ttL"), "taken");
  EXPECT_EQ(refusal(layers, "Ed|ttL"), "3 decoder layers, model has 5; 1 d layer, model has 3");
  EXPECT_EQ(refusal(layers, "Edd|tttL"), "2 d layers, model has 3; 3 t layers, model has 2");
}

TEST(LayoutOfLayers, AListCountsAllLayersOrTheDecoderLayers) {
  EXPECT_EQ(cut_from_counts(model(std::string(30, 't')), {8, 8, 7, 7}), (Cut{8, 8, 7, 7}));
  EXPECT_EQ(cut_from_counts(decoders(30), {8, 8, 7, 7}), (Cut{9, 8, 7, 8}));
  EXPECT_EQ(cut_from_counts(decoders(30), {9, 8, 7, 8}), (Cut{9, 8, 7, 8}));
  EXPECT_EQ(cut_from_counts(model("EtttmL"), {0, 3, 0}), (Cut{1, 3, 2}));
  EXPECT_EQ(refusal(decoders(30), std::vector{7, 7, 7, 7}),
            "28 decoder layers, model has 30 (32 layers in all)");
  EXPECT_EQ(refusal(model(std::string(30, 't')), std::vector{7, 7, 7, 7}),
            "28 decoder layers, model has 30");
  EXPECT_NE(refusal(model("tttt"), std::vector{4, 0}), "taken");
}

TEST(EvenCut, SpreadsDecoderLayersAndKeepsTheOthersBesideThem) {
  EXPECT_EQ(even_cut(decoders(30), 4), (Cut{9, 8, 7, 8}));
  EXPECT_EQ(even_cut(model(std::string(30, 't')), 4), (Cut{8, 8, 7, 7}));
  EXPECT_EQ(even_cut(model(std::string(38, 't')), 8), (Cut{5, 5, 5, 5, 5, 5, 4, 4}));
  EXPECT_EQ(even_cut(model("EtL"), 3), (Cut{1, 1, 1}));
  EXPECT_EQ(even_cut(model("vvvv"), 2), (Cut{2, 2}));
}

TEST(EvenCut, LosesNoLayer) {
  for (int layers = 1; layers < 40; ++layers) {
    for (int stages = 1; stages <= layers + 2; ++stages) {
      const Cut cut = even_cut(decoders(layers), stages);
      ASSERT_EQ(std::accumulate(cut.begin(), cut.end(), 0), layers + 2);
      ASSERT_EQ(cut.size(), static_cast<std::size_t>(stages));
      for (const int size : cut) ASSERT_GT(size, 0);
    }
  }
}

TEST(LayerAdvice, NamesEveryStageWithoutADecoderLayer) {
  const StageLetters stages = parse_layout("E|(t|)*10m|m|m|LL|LL");
  ASSERT_EQ(stages.size(), 16);
  const std::vector<Layer> layers = model("EttttttttttmmmLLLL");
  const std::vector<std::string> said = advice(layers, cut_from_letters(layers, stages));
  ASSERT_EQ(said.size(), 6);
  EXPECT_EQ(said[0], "stage 0 has no decoder layer, only E");
  EXPECT_EQ(said[1], "stage 11 has no decoder layer, only m");
  EXPECT_EQ(said[5], "stage 15 has no decoder layer, only LL");
  const std::vector<Layer> other = model("EtttttttttttmmmL");
  const Cut cut = cut_from_letters(other, parse_layout("E|(t|)*11m|m|m|L"));
  EXPECT_EQ(cut.size(), 16);
  EXPECT_EQ(advice(other, cut).size(), 5);
}

TEST(LayerAdvice, AStageOfAnotherModelsBodyIsFine) {
  EXPECT_TRUE(advice(model("vvtt"), {2, 2}).empty());
}

TEST(StageSums, AddUpLayers) {
  std::vector<Layer> layers = model("EttL");
  layers[1].activation = Bytes{7};
  layers[1].kept_for_weight = Bytes{3};
  layers[1].fixed = Bytes{100};
  layers[0].message = Bytes{1};
  layers[1].message = Bytes{2};
  layers[2].message = Bytes{4};
  const std::vector<StageSum> sums = stage_sums(layers, {2, 0, 2}, Bytes{9});
  ASSERT_EQ(sums.size(), 3);
  EXPECT_EQ(sums[0].cost.forward, Time{20});
  EXPECT_EQ(sums[0].cost.backward_input, Time{40});
  EXPECT_EQ(sums[0].cost.backward_weight, Time{10});
  EXPECT_EQ(sums[0].activation, Bytes{7});
  EXPECT_EQ(sums[0].kept_for_weight, Bytes{3});
  EXPECT_EQ(sums[0].fixed, Bytes{100});
  EXPECT_EQ(sums[0].message, Bytes{2});
  EXPECT_EQ(sums[1].cost.forward, Time{0});
  EXPECT_EQ(sums[1].message, Bytes{2}) << "an empty stage passes on what it received";
  EXPECT_FALSE(sums[1].frozen);
  EXPECT_EQ(sums[2].message, Bytes{9}) << "the head names none";
}

TEST(StageSums, FrozenLayersHaveNoWeightGradientAndNoInputGradientBeforeTheFirstTrained) {
  std::vector<Layer> layers = model("vvtvt");
  layers[0].frozen = layers[1].frozen = layers[3].frozen = true;
  const std::vector<StageSum> sums = stage_sums(layers, {1, 2, 2});
  EXPECT_TRUE(sums[0].frozen);
  EXPECT_FALSE(sums[1].frozen || sums[2].frozen);
  EXPECT_EQ(sums[0].cost.backward_input, Time{0});
  EXPECT_EQ(sums[1].cost.backward_input, Time{20});
  EXPECT_EQ(sums[1].cost.backward_weight, Time{5});
  EXPECT_EQ(sums[2].cost.backward_input, Time{40});
  EXPECT_EQ(sums[2].cost.backward_weight, Time{5});
}

}  // namespace
}  // namespace counterflow
