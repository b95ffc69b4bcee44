// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// A size that a run asks for, and what says so: "input 'ids' has 700 rows along S".
struct AskedSize {
  std::int64_t value = 0;
  std::string from;
};
using AskedSizes = std::map<std::string, AskedSize, std::less<>>;

/// The sizes that the shapes of inputs say, by the template, and those of `bound` (--bind). Throws
/// Error kInvalidGraph if two of them disagree, kUsage for a name that the template does not have.
AskedSizes asked_sizes(const Template& model,
                       const std::vector<std::pair<std::string, Shape>>& shapes,
                       const SizeBindings& bound);

struct ChosenEntry {
  std::size_t index = 0;
  SizeBindings valid;  ///< one for each symbol: what was asked for, else the entry's own
};

/// The entry with room for all sizes that takes the least predicted time; none of those that give
/// the logits of the last token alone. Throws Error kInfeasible with the option of npu-compile that
/// helps if there is none, or if a size is outside of its range; kParse if the entries do not fit
/// the template; kUnsupported if all are for a token loop.
ChosenEntry choose_entry(const std::vector<BundleEntry>& entries, const Template& model,
                         const AskedSizes& asked);

/// The share of the elements in `capacity` that are not in `valid`, over all tensors.
double padded_share(const std::vector<Shape>& valid, const std::vector<Shape>& capacity);

}  // namespace npu
