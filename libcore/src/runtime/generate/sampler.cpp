// SPDX-License-Identifier: Apache-2.0
// The sampler of npu-generate(7). Every number is made by single operations of IEEE 754, in a
// stated order, so libraries and compilers do not matter: the exponential function is our own, and
// this file is compiled without contraction of products and sums (see CMakeLists.txt). Its
// reference is tests/python/sampler_reference.py.
//
// Sums go by rising id; draws by falling value, equal ones by rising id. Of a large vocabulary only
// the first candidates are put in order at once; a draw that goes beyond takes more from a heap.
#include "runtime/generate/sampler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "support/mixed.hpp"

namespace npu {
namespace {

// Logits that are looked at before a loop may end.
constexpr std::size_t kLogitBlock = 4096;
// Candidates that are put in order at first.
constexpr std::size_t kFirstInOrder = 1024;

/// Integers in the order of floats, zeros of both signs being equal: a loop over them is
/// vectorised, while one over floats, whose order NaN breaks, is not.
std::int32_t ordered_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::int32_t>(value + 0.0F);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

/// e^x as npu-generate(7) defines it, without a branch.
double exp_of(double x) noexcept {
  constexpr double kLog2OfE = 0x1.71547652b82fep+0;
  // ln 2 has two parts, of which k times the first is exact.
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  // Added and subtracted, it rounds to an integer, whose bits are the last ones of the sum.
  constexpr double kRounds = 0x1.8p+52;
  // 1 / n!, the series up to r^13, whose next term is below 2^-56 for |r| <= ln 2 / 2.
  constexpr std::array<double, 14> kTerms{1.0,
                                          1.0,
                                          1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600,
                                          1.0 / 6227020800};
  const double clamped = x < -700 ? -700 : x;
  const double rounded = clamped * kLog2OfE + kRounds;
  const double k = rounded - kRounds;
  const double r = (clamped - k * kLn2High) - k * kLn2Low;
  double sum = kTerms[13];
  for (std::size_t n = 13; n-- > 0;) sum = sum * r + kTerms[n];
  const double power = std::bit_cast<double>((std::bit_cast<std::uint64_t>(rounded) << 52) +
                                             std::bit_cast<std::uint64_t>(1.0));
  return x < -700 ? 0 : sum * power;
}

}  // namespace

std::int64_t largest_logit(std::span<const float> logits) {
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  std::size_t found = 0;  // the begin of the first block that has it
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitBlock) {
    std::int32_t of_block = std::numeric_limits<std::int32_t>::min();
    for (const float value : logits.subspan(begin, std::min(kLogitBlock, logits.size() - begin))) {
      of_block = std::max(of_block, ordered_bits(value));
    }
    if (of_block <= largest) continue;
    largest = of_block;
    found = begin;
  }
  while (ordered_bits(logits[found]) != largest) ++found;
  return static_cast<std::int64_t>(found);
}

std::optional<std::int64_t> first_nan(std::span<const float> logits) {
  for (std::size_t begin = 0; begin < logits.size(); begin += kLogitBlock) {
    const std::span<const float> block =
        logits.subspan(begin, std::min(kLogitBlock, logits.size() - begin));
    std::int32_t has_nan = 0;
    for (const float value : block) has_nan |= static_cast<std::int32_t>(value != value);
    if (has_nan == 0) continue;
    const auto found = std::find_if(block.begin(), block.end(), [](float v) { return v != v; });
    return static_cast<std::int64_t>(begin) + (found - block.begin());
  }
  return std::nullopt;
}

double sampler_exp(double x) { return exp_of(x); }

double sampler_uniform(std::uint64_t seed, std::uint64_t request, std::uint64_t step) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // the step of SplitMix64
  const std::uint64_t of_seed = mixed(seed + kGolden);
  const std::uint64_t of_request = mixed((of_seed ^ request) + kGolden);
  const std::uint64_t of_step = mixed((of_request ^ step) + kGolden);
  return static_cast<double>(of_step >> 11) * 0x1p-53;
}

bool Sampler::comes_first(const Candidate& a, const Candidate& b) noexcept {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

/// Makes candidates of the `count` largest logits, in order.
void Sampler::order_largest(std::span<const float> logits, std::size_t count) {
  ordered_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    ordered_.push_back({logits[i], static_cast<std::int32_t>(i), 0});
  }
  // A heap whose first element is the one to give up.
  if (count < logits.size()) std::make_heap(ordered_.begin(), ordered_.end(), comes_first);
  for (std::size_t i = count; i < logits.size(); ++i) {
    // One that is equal has a larger id.
    if (!(logits[i] > ordered_.front().value)) continue;
    std::pop_heap(ordered_.begin(), ordered_.end(), comes_first);
    ordered_.back() = {logits[i], static_cast<std::int32_t>(i), 0};
    std::push_heap(ordered_.begin(), ordered_.end(), comes_first);
  }
  std::sort(ordered_.begin(), ordered_.end(), comes_first);
  for (Candidate& each : ordered_) each.weight = weight_of(each.value);
}

/// Adds the candidate that follows the last one.
void Sampler::order_next(std::span<const float> logits) {
  const auto comes_later = [](const Candidate& a, const Candidate& b) { return comes_first(b, a); };
  if (rest_.empty()) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const Candidate each{logits[i], static_cast<std::int32_t>(i), 0};
      if (comes_first(ordered_.back(), each)) rest_.push_back(each);
    }
    std::make_heap(rest_.begin(), rest_.end(), comes_later);
  }
  std::pop_heap(rest_.begin(), rest_.end(), comes_later);
  rest_.back().weight = weight_of(rest_.back().value);
  ordered_.push_back(rest_.back());
  rest_.pop_back();
}

/// Where the largest logit is infinite, those that equal it share the probability.
double Sampler::weight_of(float value) const noexcept {
  return std::isfinite(largest_)
             ? exp_of(static_cast<double>(value) / options_.temperature - shift_)
             : static_cast<double>(value == largest_);
}

/// The sum of the weights of the first `kept` candidates, by rising id.
double Sampler::total_of(std::span<const float> logits, std::size_t kept) {
  double sum = 0;
  if (kept < logits.size()) {
    by_id_ = ordered_;
    std::sort(by_id_.begin(), by_id_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    for (const Candidate& each : by_id_) sum += each.weight;
    return sum;
  }
  if (!std::isfinite(largest_)) {
    for (const float value : logits) sum += weight_of(value);
    return sum;
  }
  // First the weights of a block, which are independent of each other, then the sum.
  std::array<double, 256> weights{};
  for (std::size_t begin = 0; begin < logits.size(); begin += weights.size()) {
    const std::size_t size = std::min(weights.size(), logits.size() - begin);
    for (std::size_t i = 0; i < size; ++i) {
      weights[i] = exp_of(static_cast<double>(logits[begin + i]) / options_.temperature - shift_);
    }
    for (std::size_t i = 0; i < size; ++i) sum += weights[i];
  }
  return sum;
}

std::int64_t Sampler::pick(std::span<const float> logits, std::uint64_t request,
                           std::uint64_t step) {
  const auto best = static_cast<std::size_t>(largest_logit(logits));
  if (options_.temperature == 0) return static_cast<std::int64_t>(best);
  largest_ = logits[best];
  shift_ = static_cast<double>(largest_) / options_.temperature;
  const auto top_k = static_cast<std::uint64_t>(options_.top_k);
  const std::size_t all =
      top_k > 0 && top_k < logits.size() ? static_cast<std::size_t>(top_k) : logits.size();
  order_largest(logits, all < logits.size() ? all : std::min(all, kFirstInOrder));
  double total = total_of(logits, all);
  rest_.clear();
  const auto candidate = [&](std::size_t place) -> const Candidate& {
    if (place == ordered_.size()) order_next(logits);
    return ordered_[place];
  };
  std::size_t kept = all;
  if (options_.top_p < 1) {
    const double share = options_.top_p * total;
    double sum = 0;
    for (std::size_t i = 0; i < all && sum < share; ++i) {
      sum += candidate(i).weight;
      kept = i + 1;
    }
    total = sum;
  }
  const double bound = sampler_uniform(options_.seed, request, step) * total;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    sum += candidate(i).weight;
    if (sum > bound) return candidate(i).id;
  }
  return candidate(kept - 1).id;
}

}  // namespace npu
