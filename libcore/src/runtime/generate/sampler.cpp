// SPDX-License-Identifier: Apache-2.0
// The sampler of npu-generate(7). Every number is made by single operations of IEEE 754, in a
// stated order, so libraries and compilers do not matter: the exponential function is our own, and
// this file is compiled without contraction of products and sums (see CMakeLists.txt). Its
// reference is tests/python/sampler_reference.py.
//
// Sums go by rising id; draws by falling value, equal ones by rising id, from a heap, so that of
// 262,144 candidates only those in front of the drawn one are put in order.
#include "runtime/generate/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/mixed.hpp"

namespace npu {
namespace {

// Logits that are looked at before a loop may end.
constexpr std::size_t kLogitBlock = 4096;

/// Integers in the order of floats, but for zeros: a loop over them is vectorised, while one over
/// floats, whose order NaN breaks, is not.
std::int32_t ordered_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

}  // namespace

std::int64_t largest_logit(std::span<const float> logits) {
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  for (const float value : logits) largest = std::max(largest, ordered_bits(value));
  const float value = std::bit_cast<float>(largest ^ ((largest >> 31) & 0x7fffffff));
  // Zeros of both signs are equal here.
  return std::find(logits.begin(), logits.end(), value) - logits.begin();
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

double sampler_exp(double x) {
  if (x < -700) return 0;
  // x = k ln 2 + r, |r| <= ln 2 / 2; ln 2 has two parts, of which k times the first is exact.
  constexpr double kLog2OfE = 0x1.71547652b82fep+0;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const double k = std::floor(x * kLog2OfE + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // The series up to r^13 / 13!, whose next term is below 2^-56.
  double sum = 1;
  for (int n = 13; n > 0; --n) sum = 1 + sum * r / n;
  return std::ldexp(sum, static_cast<int>(k));
}

double sampler_uniform(std::uint64_t seed, std::uint64_t request, std::uint64_t step) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // the step of SplitMix64
  const std::uint64_t of_seed = mixed(seed + kGolden);
  const std::uint64_t of_request = mixed((of_seed ^ request) + kGolden);
  const std::uint64_t of_step = mixed((of_request ^ step) + kGolden);
  return static_cast<double>(of_step >> 11) * 0x1p-53;
}

/// For heaps, whose first element is the one that comes later than no other.
bool Sampler::comes_later(const Candidate& a, const Candidate& b) noexcept {
  return a.value != b.value ? a.value < b.value : a.id > b.id;
}

void Sampler::keep_all(std::span<const float> logits) {
  candidates_.clear();
  candidates_.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({logits[i], static_cast<std::int32_t>(i), 0});
  }
}

void Sampler::keep_largest(std::span<const float> logits, std::size_t count) {
  // A heap whose first element is the one to give up.
  const auto comes_first = [](const Candidate& a, const Candidate& b) { return comes_later(b, a); };
  keep_all(logits.first(count));
  std::make_heap(candidates_.begin(), candidates_.end(), comes_first);
  for (std::size_t i = count; i < logits.size(); ++i) {
    // One that is equal has a larger id.
    if (!(logits[i] > candidates_.front().value)) continue;
    std::pop_heap(candidates_.begin(), candidates_.end(), comes_first);
    candidates_.back() = {logits[i], static_cast<std::int32_t>(i), 0};
    std::push_heap(candidates_.begin(), candidates_.end(), comes_first);
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

/// Gives every candidate its weight; returns their sum. Where the largest logit is infinite, those
/// that equal it share the probability.
double Sampler::weigh() {
  float largest = candidates_.front().value;
  for (const Candidate& each : candidates_) largest = std::max(largest, each.value);
  const bool is_finite = std::isfinite(largest);
  const double shift = static_cast<double>(largest) / options_.temperature;
  double sum = 0;
  for (Candidate& each : candidates_) {
    each.weight = is_finite
                      ? sampler_exp(static_cast<double>(each.value) / options_.temperature - shift)
                      : static_cast<double>(each.value == largest);
    sum += each.weight;
  }
  return sum;
}

std::int64_t Sampler::pick(std::span<const float> logits, std::uint64_t request,
                           std::uint64_t step) {
  if (options_.temperature == 0) return largest_logit(logits);
  const auto top_k = static_cast<std::uint64_t>(options_.top_k);
  if (top_k > 0 && top_k < logits.size()) {
    keep_largest(logits, top_k);
  } else {
    keep_all(logits);
  }
  double total = weigh();
  std::make_heap(candidates_.begin(), candidates_.end(), comes_later);
  std::size_t ordered = 0;  // candidates at the end that are in order, the first one last
  const auto next = [&](std::size_t place) -> const Candidate& {
    while (ordered <= place) {
      std::pop_heap(candidates_.begin(), candidates_.end() - static_cast<std::ptrdiff_t>(ordered),
                    comes_later);
      ++ordered;
    }
    return candidates_[candidates_.size() - 1 - place];
  };
  std::size_t kept = candidates_.size();
  if (options_.top_p < 1) {
    const double share = options_.top_p * total;
    double sum = 0;
    for (std::size_t i = 0; i < candidates_.size() && sum < share; ++i) {
      sum += next(i).weight;
      kept = i + 1;
    }
    total = sum;
  }
  const double bound = sampler_uniform(options_.seed, request, step) * total;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    sum += next(i).weight;
    if (sum > bound) return next(i).id;
  }
  return next(kept - 1).id;
}

}  // namespace npu
