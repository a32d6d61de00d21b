#include "scheduler/problem/layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string_view>

namespace counterflow {
namespace {

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

bool is_decoder(const Layer& layer) {
  return layer.role == LayerRole::decoder;
}

// A layer that only goes with the body of a model, whatever that is made of.
bool is_auxiliary(const Layer& layer) {
  return layer.role == LayerRole::embedding || layer.role == LayerRole::mtp ||
         layer.role == LayerRole::head;
}

std::size_t decoders_in(const std::vector<Layer>& layers) {
  return static_cast<std::size_t>(std::count_if(layers.begin(), layers.end(), is_decoder));
}

struct LetterCount {
  bool decoder = false;
  std::size_t asked = 0;  // in the layout
  std::size_t there = 0;  // in the model
};

std::map<char, LetterCount> count_letters(const std::vector<Layer>& layers,
                                          const StageLetters& stages) {
  std::map<char, LetterCount> counts;
  counts['t'].decoder = true;
  for (const Layer& layer : layers) {
    LetterCount& count = counts[layer.letter];
    count.decoder = is_decoder(layer);
    ++count.there;
  }
  for (const std::string& stage : stages) {
    for (const char letter : stage) ++counts[letter].asked;
  }
  return counts;
}

// Every count that differs, the decoder layers first. Empty if none does.
std::vector<std::string> count_faults(const std::vector<Layer>& layers,
                                      const StageLetters& stages) {
  std::vector<std::string> faults;
  const std::map<char, LetterCount> counts = count_letters(layers, stages);
  std::size_t asked = 0;
  std::size_t there = 0;
  std::size_t kinds = 0;
  for (const auto& [letter, count] : counts) {
    if (!count.decoder) continue;
    asked += count.asked;
    there += count.there;
    kinds += count.there > 0 ? 1 : 0;
  }
  if (asked != there) {
    faults.push_back(fmt::format("{}, model has {}", plural(asked, "decoder layer"), there));
  }
  for (const auto& [letter, count] : counts) {
    // With one letter for all decoder layers the line above says it.
    if (count.asked == count.there || (count.decoder && kinds < 2 && asked != there)) continue;
    faults.push_back(fmt::format(
        "{}, model has {}", plural(count.asked, fmt::format("{} layer", letter)), count.there));
  }
  return faults;
}

std::vector<std::string> end_faults(const Cut& cut) {
  std::vector<std::string> faults;
  const auto fault = [&](std::size_t stage, std::string_view end) {
    faults.push_back(
        fmt::format("stage {} is empty and, as the {}, passes nothing on; give it a "
                    "layer or leave it out",
                    stage, end));
  };
  if (cut.front() == 0) fault(0, "first");
  if (cut.size() > 1 && cut.back() == 0) fault(cut.size() - 1, "last");
  return faults;
}

std::vector<std::string> empty_stages(const Cut& cut) {
  std::vector<std::string> faults;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    if (cut[s] == 0) faults.push_back(fmt::format("stage {} is empty", s));
  }
  return faults;
}

[[noreturn]] void fail(const std::vector<std::string>& faults) {
  throw InputError(fmt::format("{}", fmt::join(faults, "; ")));
}

void check_order(const std::vector<Layer>& layers, const StageLetters& stages) {
  std::size_t layer = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const char letter : stages[s]) {
      if (letter != layers[layer].letter) {
        throw InputError(
            fmt::format("stage {} has {} where layer {} of the model is {}; keep the "
                        "order of the layers",
                        s, letter, layer, layers[layer].letter));
      }
      ++layer;
    }
  }
}

// Layers from one boundary to the next, where stage s begins with layer begins[s].
Cut cut_at(std::vector<std::size_t> begins, std::size_t layers) {
  begins.push_back(layers);
  Cut cut;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    cut.push_back(static_cast<int>(begins[s + 1] - begins[s]));
  }
  return cut;
}

// The cut in which stage s has counts[s] decoder layers; other layers follow the decoder layer
// before them, or are in stage 0.
Cut cut_by_decoders(const std::vector<Layer>& layers, const std::vector<int>& counts) {
  std::vector<std::size_t> decoders;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (is_decoder(layers[i])) decoders.push_back(i);
  }
  // A stage of no decoder layers at the end takes what follows the last of them.
  const std::size_t tail = decoders.empty() ? layers.size() : decoders.back() + 1;
  std::size_t used = 0;
  std::vector<std::size_t> begins;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    begins.push_back(s == 0 ? 0 : used < decoders.size() ? decoders[used] : tail);
    used += static_cast<std::size_t>(counts[s]);
  }
  return cut_at(begins, layers.size());
}

std::vector<int> even_counts(std::size_t total, int stages) {
  const auto count = static_cast<int>(total);
  std::vector<int> counts(static_cast<std::size_t>(stages), count / stages);
  for (int s = 0; s < count % stages; ++s) ++counts[static_cast<std::size_t>(s)];
  return counts;
}

}  // namespace

std::vector<StageSum> stage_sums(const std::vector<Layer>& layers, const Cut& cut, Bytes message) {
  std::vector<StageSum> sums;
  std::size_t next = 0;
  bool trained = false;  // any layer so far
  for (const int size : cut) {
    StageSum sum;
    sum.frozen = size > 0;
    sum.message = sums.empty() ? message : sums.back().message;
    for (int i = 0; i < size; ++i, ++next) {
      const Layer& layer = layers[next];
      trained = trained || !layer.frozen;
      sum.frozen = sum.frozen && layer.frozen;
      sum.cost.forward += layer.cost.forward;
      if (trained) sum.cost.backward_input += layer.cost.backward_input;
      if (!layer.frozen) sum.cost.backward_weight += layer.cost.backward_weight;
      sum.activation += layer.activation;
      sum.kept_for_weight += layer.kept_for_weight;
      sum.fixed += layer.fixed;
      sum.message = layer.message.value_or(message);
    }
    sums.push_back(sum);
  }
  return sums;
}

StageLetters letters_of(const std::vector<Layer>& layers, const Cut& cut) {
  StageLetters stages;
  auto next = layers.begin();
  for (const int size : cut) {
    std::string letters;
    for (int i = 0; i < size; ++i) letters += (next++)->letter;
    stages.push_back(std::move(letters));
  }
  return stages;
}

Cut cut_from_letters(const std::vector<Layer>& layers, const StageLetters& stages) {
  Cut cut;
  for (const std::string& stage : stages) cut.push_back(static_cast<int>(stage.size()));
  std::vector<std::string> faults = count_faults(layers, stages);
  if (!faults.empty()) {
    for (std::string& fault : empty_stages(cut)) faults.push_back(std::move(fault));
    fail(faults);
  }
  check_order(layers, stages);
  if (const auto ends = end_faults(cut); !ends.empty()) fail(ends);
  return cut;
}

Cut cut_from_counts(const std::vector<Layer>& layers, const std::vector<int>& counts) {
  const auto sum =
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const std::size_t decoders = decoders_in(layers);
  Cut cut = counts;
  if (sum != layers.size()) {
    if (sum != decoders) {
      const std::string all = decoders == layers.size()
                                  ? std::string()
                                  : fmt::format(" ({} layers in all)", layers.size());
      fail({fmt::format("{}, model has {}{}", plural(sum, "decoder layer"), decoders, all)});
    }
    cut = cut_by_decoders(layers, counts);
  }
  if (const auto ends = end_faults(cut); !ends.empty()) fail(ends);
  return cut;
}

Cut even_cut(const std::vector<Layer>& layers, int stages) {
  const std::size_t decoders = decoders_in(layers);
  if (decoders < static_cast<std::size_t>(stages)) return even_counts(layers.size(), stages);
  return cut_by_decoders(layers, even_counts(decoders, stages));
}

std::vector<std::string> advice(const std::vector<Layer>& layers, const Cut& cut) {
  std::vector<std::string> lines;
  auto next = layers.begin();
  for (std::size_t s = 0; s < cut.size(); ++s) {
    const auto end = next + cut[s];
    if (cut[s] == 0) {
      lines.push_back(
          fmt::format("stage {} is empty: it only passes on what it receives, and its rank idles "
                      "meanwhile",
                      s));
    } else if (std::all_of(next, end, is_auxiliary)) {
      std::string letters;
      for (auto layer = next; layer != end; ++layer) letters += layer->letter;
      lines.push_back(fmt::format("stage {} has no decoder layer, only {}", s, letters));
    }
    next = end;
  }
  return lines;
}

}  // namespace counterflow
