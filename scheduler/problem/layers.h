#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/units.h"
#include "scheduler/problem/costs.h"
#include "scheduler/problem/layout.h"

// A model as a list of layers, from which stages are cut.
namespace counterflow {

// What a layer is to a layout. `decoder` layers are what a model is usually counted in.
enum class LayerRole : std::uint8_t { embedding, decoder, mtp, head, other };

// One layer of the model, with what it adds to the stage that holds it.
struct Layer {
  std::string kind;  // as the config names it: embedding, moe, vision, ...
  char letter = 't';
  LayerRole role = LayerRole::decoder;
  StageCost cost;
  Bytes activation;              // held from the begin of F, like a stage's
  Bytes kept_for_weight;         // the part of it that stays until the end of W
  Bytes fixed;                   // weights, gradients, optimizer state
  std::optional<Bytes> message;  // what it sends on, where a cut after it makes it send
  bool frozen = false;           // no weight gradient
};

// The layers a config lists, and which of the optional figures it gives.
struct Layers {
  std::vector<Layer> list;
  SourceLocation where;
  bool has_backward_input = false;
  bool has_backward_weight = false;
  bool has_activation = false;
  bool has_message = false;
};

// What a stage of these layers costs and occupies: the sums over them.
struct StageSum {
  StageCost cost;
  Bytes activation;
  Bytes kept_for_weight;
  Bytes fixed;
  Bytes message;        // of its last layer; of a stage without layers: what it receives
  bool frozen = false;  // it has layers, and all are frozen
};

// One entry a stage. `message` is the size for layers that give none. Frozen layers have no W, and
// no I before the first trainable one. The cut must sum to the layers. O(layers + stages).
[[nodiscard]] std::vector<StageSum> stage_sums(const std::vector<Layer>& layers, const Cut& cut,
                                               Bytes message = {});

// The letters of each stage.
[[nodiscard]] StageLetters letters_of(const std::vector<Layer>& layers, const Cut& cut);

// The cut that a layout string means for these layers. Throws InputError where counts do not add
// up, decoder layers first, then where the order differs, then for an empty first or last stage,
// through which nothing could pass.
[[nodiscard]] Cut cut_from_letters(const std::vector<Layer>& layers, const StageLetters& stages);

// The cut of a list of layers a stage; one that sums to the decoder layers alone counts those, and
// the others stay beside them. Throws InputError as above.
[[nodiscard]] Cut cut_from_counts(const std::vector<Layer>& layers, const std::vector<int>& counts);

// As many decoder layers in each stage as in every other, at most one more in earlier ones; what
// stands before the first of them goes to stage 0, what follows one stays with it. With fewer
// decoder layers than stages all layers count alike. Needs a layer a stage at least.
[[nodiscard]] Cut even_cut(const std::vector<Layer>& layers, int stages);

// What is legal but looks like a mistake, a line each: a stage without layers, or with nothing but
// embeddings, MTP and head.
[[nodiscard]] std::vector<std::string> advice(const std::vector<Layer>& layers, const Cut& cut);

}  // namespace counterflow
