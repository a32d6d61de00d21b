#include "reference/sequence.h"

#include <algorithm>
#include <utility>

namespace counterflow::reference {

template <typename T>
Sequence<T>::Sequence(Parts parts) : parts_(std::move(parts)) {
  Layout parameters;
  Layout saved;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Sizes sizes = parts_[k]->sizes();
    const bool last = k + 1 == parts_.size();
    Place place;
    place.parameters = parameters.take(sizes.parameters);
    place.saved = saved.take(sizes.saved);
    place.output = saved.take(last ? 0 : sizes.output);
    places_.push_back(place);
  }
  sizes_ = {parts_.front()->sizes().input, parts_.back()->sizes().output, saved.size(),
            parameters.size()};
}

template <typename T>
void Sequence<T>::initialise(std::uint64_t seed, std::uint64_t series,
                             std::span<T> parameters) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    parts_[k]->initialise(seed, (series << 8U) + k, places_[k].parameters.of(parameters));
  }
}

template <typename T>
void Sequence<T>::forward(std::span<const T> parameters, std::span<const T> input,
                          std::span<T> output, std::span<T> saved) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Place& place = places_[k];
    parts_[k]->forward(place.parameters.of(parameters), input_of(k, input, saved),
                       k + 1 == parts_.size() ? output : place.output.of(saved),
                       place.saved.of(saved));
  }
}

template <typename T>
void Sequence<T>::input_gradient(std::span<const T> parameters, std::span<const T> input,
                                 std::span<const T> output_gradient, std::span<T> input_gradient,
                                 std::span<T> saved) const {
  std::vector<T> gradient(output_gradient.begin(), output_gradient.end());
  for (std::size_t k = parts_.size(); k-- > 0;) {
    const Place& place = places_[k];
    const auto x = input_of(k, input, saved);
    std::vector<T> before(k > 0 ? x.size() : 0);
    parts_[k]->input_gradient(place.parameters.of(parameters), x, gradient,
                              k > 0 ? std::span<T>(before) : input_gradient, place.saved.of(saved));
    gradient = std::move(before);
  }
}

template <typename T>
void Sequence<T>::weight_gradient(std::span<const T> input, std::span<const T> saved,
                                  std::span<T> gradients) const {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    parts_[k]->weight_gradient(input_of(k, input, saved), places_[k].saved.of(saved),
                               places_[k].parameters.of(gradients));
  }
}

template class Sequence<float>;
template class Sequence<double>;

}  // namespace counterflow::reference
