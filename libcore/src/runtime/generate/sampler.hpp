// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace npu {

/// How ids are drawn; npu-generate(7) defines it bit for bit.
struct SamplerOptions {
  double temperature = 0;  ///< 0: the largest logit; else 1e-6 to 1e6
  std::int64_t top_k = 0;  ///< candidates that are kept; 0: all
  double top_p = 1;        ///< in (0, 1]: the share of the probability that is kept
  std::uint64_t seed = 0;
};

/// Draws ids from logits: the same logits give the same ids on every machine.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}

  /// An index of `logits`, which are not empty and have no NaN. `request` and `step` count from 0
  /// and choose the random number. Greedy it is O(logits), and with top_k O(logits + k log k).
  std::int64_t pick(std::span<const float> logits, std::uint64_t request, std::uint64_t step);

 private:
  struct Candidate {
    float value;
    std::int32_t id;
    double weight;
  };
  void order_largest(std::span<const float> logits, std::size_t count);
  void order_next(std::span<const float> logits);
  double weight_of(float value) const noexcept;
  double total_of(std::span<const float> logits, std::size_t kept);
  static bool comes_first(const Candidate& a, const Candidate& b) noexcept;

  SamplerOptions options_;
  // Of the draw that is being made:
  float largest_ = 0;
  double shift_ = 0;                // largest_ by the temperature
  std::vector<Candidate> ordered_;  // the first ones
  std::vector<Candidate> rest_;     // a heap, once there is need of it
  std::vector<Candidate> by_id_;
};

/// The place of the largest value, the first of several. Not empty, no NaN.
std::int64_t largest_logit(std::span<const float> logits);

/// The place of the first NaN.
std::optional<std::int64_t> first_nan(std::span<const float> logits);

/// e^x for x <= 0 by additions and products of doubles alone; 0 below -700.
double sampler_exp(double x);

/// The random number of a draw, a multiple of 2^-53 in [0, 1).
double sampler_uniform(std::uint64_t seed, std::uint64_t request, std::uint64_t step);

}  // namespace npu
