// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels are weighed against each other, whatever they compute.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/kernel.hpp"
#include "lowering/engine/cpu_rates.hpp"
#include "lowering/engine/epilogue.hpp"
#include "program/kernel_choice.hpp"

namespace npu::onednn {

inline constexpr std::string_view kOneDnn = "onednn";
/// Why a machine has none of our kernels.
inline constexpr const char* kNoAvx2 = "it needs AVX2, AVX-512 or NEON";
/// Channels and features are multiples of this for our own kernels.
inline constexpr std::int64_t kFeatureStep = 16;

/// One way to compute a node: its estimate, or why it is none.
struct Candidate {
  std::string_view name;
  std::optional<Kernel> kernel;  ///< without epilogue, bias and norm; none: oneDNN's primitive
  std::optional<double> cycles;
  std::string refusal;  ///< set if `cycles` is not
  bool is_own() const noexcept { return kernel.has_value(); }
  /// The kernel if it is such a one, else null.
  template <typename Own>
  const Own* as() const noexcept {
    return kernel ? std::get_if<Own>(&*kernel) : nullptr;
  }
  /// The rounding error of a result, root mean square, in units of 2^-24 of the results; set if the
  /// kernel rounds more than the definition does.
  std::optional<double> rounding{};
};

/// A few: what is chosen must not depend on their number.
inline constexpr double kThreads = 2.0;

/// Cycles of the definition: multiply-adds of vectors, and weights from memory.
double direct_cycles(double multiplications, double weight_bytes, std::int64_t lanes,
                     const CpuRates& rates);

/// Those that take their numbers and do the epilogue; the cheapest first, then those that cost
/// more, then those that are none.
std::vector<Candidate> ranked(std::vector<Candidate> candidates, const Epilogue& epilogue);
/// Puts the first candidate behind the others for a reason that only lowering knows.
void refuse_first(std::vector<Candidate>& candidates, std::string reason);

/// What the report says of a choice, `taken` being the candidate at the front.
KernelChoice choice_of(const std::vector<Candidate>& candidates);

}  // namespace npu::onednn
