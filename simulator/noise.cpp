#include "simulator/noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace counterflow::sim {
namespace {

// Coefficients from the highest power down.
template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

double normal_tail(double share) {
  constexpr std::array kAbove = {-7.784894002430293e-03, -3.223964580411365e-01,
                                 -2.400758277161838e+00, -2.549732539343734e+00,
                                 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array kBelow = {7.784695709041462e-03, 3.224671290700398e-01,
                                 2.445134137142996e+00, 3.754408661907416e+00, 1.0};
  const double q = std::sqrt(-2 * std::log(share));
  return polynomial(kAbove, q) / polynomial(kBelow, q);
}

enum class Subject : std::uint8_t { compute, message, collective, straggler };

std::uint64_t chain(std::uint64_t key, std::uint64_t next) {
  return mix(key ^ mix(next));
}

std::uint64_t key_of(const Op& op) {
  const std::uint64_t what = static_cast<std::uint64_t>(op.kind) << 24U |
                             std::uint64_t{op.replica} << 16U | std::uint64_t{op.stage};
  return chain(chain(static_cast<std::uint64_t>(Subject::compute), what),
               static_cast<std::uint64_t>(op.microbatch));
}

std::uint64_t key_of(const Payload& payload) {
  const std::uint64_t ends = std::uint64_t{payload.from} << 48U | std::uint64_t{payload.to} << 32U |
                             std::uint64_t{payload.part} << 16U |
                             std::uint64_t{payload.replica} << 8U |
                             static_cast<std::uint64_t>(payload.kind);
  return chain(chain(static_cast<std::uint64_t>(Subject::message), ends),
               static_cast<std::uint64_t>(payload.microbatch));
}

}  // namespace

double normal_quantile(double share) {
  constexpr double kTail = 0.02425;
  constexpr std::array kAbove = {-3.969683028665376e+01, 2.209460984245205e+02,
                                 -2.759285104469687e+02, 1.383577518672690e+02,
                                 -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array kBelow = {-5.447609879822406e+01, 1.615858368580409e+02,
                                 -1.556989798598866e+02, 6.680131188771972e+01,
                                 -1.328068155288572e+01, 1.0};
  if (share < kTail) return normal_tail(share);
  if (share > 1 - kTail) return -normal_tail(1 - share);
  const double q = share - 0.5;
  return polynomial(kAbove, q * q) * q / polynomial(kBelow, q * q);
}

Sampler::Sampler(const Spread& spread) : spread_(spread), scale_(spread.sigma) {
  if (spread.distribution == Distribution::uniform) scale_ *= std::sqrt(12.0);
  if (spread.distribution == Distribution::lognormal) {
    const double variance = std::log1p(spread.sigma * spread.sigma);
    scale_ = std::sqrt(variance);
    shift_ = -variance / 2;
  }
}

double Sampler::factor(double draw) const {
  if (!varies()) return 1;
  switch (spread_.distribution) {
    case Distribution::normal:
      return std::max(0.0, 1 + scale_ * normal_quantile(draw));
    case Distribution::lognormal:
      return std::exp(scale_ * normal_quantile(draw) + shift_);
    case Distribution::uniform:
      return std::max(0.0, 1 + scale_ * (draw - 0.5));
    case Distribution::exponential:
      return 1 - scale_ * std::log(draw);
  }
  return 1;
}

Noise::Noise(const Wiring& wiring, const Jitter& jitter, std::uint64_t seed)
    : wiring_(wiring), seed_(mix(seed)), stragglers_(jitter.stragglers) {
  add_computes(jitter);
  add_messages(jitter);
  add_collectives(jitter);
}

std::uint32_t Noise::number_of(const Spread& spread) {
  const auto found = std::ranges::find(samplers_, spread, &Sampler::spread);
  const auto number = static_cast<std::uint32_t>(found - samplers_.begin());
  if (found == samplers_.end()) samplers_.emplace_back(spread);
  return number;
}

void Noise::add_computes(const Jitter& jitter) {
  const auto& ranks = wiring_.program().ranks;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const auto own =
        std::ranges::find(jitter.ranks, static_cast<Rank>(rank), &Jitter::OfRank::rank);
    const bool special = own != jitter.ranks.end();
    const auto spread_of = [&](OpKind kind) {
      if (special && own->spread) return *own->spread;
      const auto found = std::ranges::find(jitter.kinds, kind, &std::pair<OpKind, Spread>::first);
      return found != jitter.kinds.end() ? found->second : jitter.compute;
    };
    std::map<OpKind, std::uint32_t> numbers;
    const auto& instructions = ranks[rank].instructions;
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind != InstructionKind::run) continue;
      const Op& op = instructions[i].op;
      const auto [number, is_new] = numbers.try_emplace(op.kind);
      if (is_new) number->second = number_of(spread_of(op.kind));
      computes_.push_back(
          {key_of(op), wiring_.base(rank) + i, rank, number->second, 0, special ? own->slow : 1});
    }
  }
}

void Noise::add_messages(const Jitter& jitter) {
  const auto& ranks = wiring_.program().ranks;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::uint32_t t = 0; t < ranks[rank].transfers.size(); ++t) {
      const Transfer& transfer = ranks[rank].transfers[t];
      if (!transfer.is_send || transfer.peer == rank) continue;
      const auto own = std::ranges::find_if(jitter.links, [&](const Jitter::OfLink& link) {
        return link.from == static_cast<Rank>(rank) && link.to == Rank{transfer.peer};
      });
      const bool special = own != jitter.links.end();
      const Spread spread = special && own->spread ? *own->spread : jitter.transfer;
      messages_.push_back({key_of(transfer.payload), wiring_.message(rank, t), rank,
                           number_of(spread), transfer.peer, special ? own->slow : 1});
    }
  }
}

void Noise::add_collectives(const Jitter& jitter) {
  const std::uint32_t spread = number_of(jitter.transfer);
  for (std::uint32_t meeting = 0; meeting < wiring_.meetings().size(); ++meeting) {
    const std::uint64_t key = chain(static_cast<std::uint64_t>(Subject::collective), meeting);
    for (const Index member : wiring_.members(wiring_.meetings()[meeting])) {
      collectives_.push_back({key, member, 0, spread, 0, 1});
    }
  }
}

double Noise::drawn(const Source& source, std::uint64_t trial_key) const {
  const Sampler& sampler = samplers_[source.spread];
  if (!sampler.varies()) return source.slow;
  return source.slow * sampler.factor(unit(mix(trial_key ^ source.key)));
}

void Noise::draw(std::uint64_t trial, const Perturbation& perturbation,
                 std::vector<std::int64_t>& durations, std::vector<double>& stretch) const {
  const std::uint64_t trial_key = chain(seed_, trial);
  std::vector<double> of_rank(wiring_.program().ranks.size(), 1);
  for (std::size_t rank = 0; stragglers_.probability > 0 && rank < of_rank.size(); ++rank) {
    const std::uint64_t key = chain(static_cast<std::uint64_t>(Subject::straggler), rank);
    if (unit(mix(trial_key ^ key)) < stragglers_.probability) of_rank[rank] = stragglers_.slow;
  }
  using What = Perturbation::What;
  if (perturbation.what == What::rank) {
    of_rank[static_cast<std::size_t>(perturbation.from)] *= perturbation.factor;
  }
  durations = wiring_.durations();
  const auto lengthen = [&](const Source& source, double by) {
    std::int64_t& duration = durations[source.place];
    if (by != 1) duration = std::llround(static_cast<double>(duration) * by);
  };
  for (const Source& source : computes_) {
    lengthen(source, drawn(source, trial_key) * of_rank[source.rank]);
  }
  for (const Source& source : collectives_) lengthen(source, drawn(source, trial_key));
  stretch.assign(wiring_.messages(), 1);
  for (const Source& source : messages_) {
    double by = drawn(source, trial_key);
    if (perturbation.what == What::link &&
        source.rank == static_cast<std::uint32_t>(perturbation.from) &&
        source.to == static_cast<std::uint32_t>(perturbation.to)) {
      by *= perturbation.factor;
    }
    stretch[source.place] = by;
  }
}

}  // namespace counterflow::sim
