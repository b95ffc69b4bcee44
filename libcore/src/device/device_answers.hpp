// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace npu {

/// Whether a blob is for a device: kSlow runs, but a new compile would make it faster.
enum class BlobFit : std::uint8_t { kFits, kSlow, kOther };

/// What a backend says of a blob, from its header alone.
struct BlobVerdict {
  BlobFit fit = BlobFit::kFits;
  std::string reason;  ///< empty if it fits
};

/// What a backend says of a node that it may get to compile.
struct NodeAnswer {
  bool ok = true;
  std::string reason;                 ///< why it is refused; never empty then
  std::optional<std::int64_t> group;  ///< nodes with the same number are only taken together
};

/// What the nodes that a backend takes of a sub-IR cost by its own estimate.
struct CostEstimate {
  std::uint64_t weights_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  bool has_memory = false;
  std::optional<double> seconds;
};

/// The layouts that a backend takes besides row-major, best first, likewise.
using LayoutOffers = std::map<std::string, std::vector<std::string>>;

/// What a backend says of a sub-IR that it may get to compile.
struct CheckAnswer {
  std::vector<NodeAnswer> nodes;
  CostEstimate costs;
  LayoutOffers layouts;  ///< with the feature "layouts" only
};

/// How much of a memory is taken; what a backend does not say is not there.
struct MemoryState {
  std::optional<std::uint64_t> in_use;
  std::optional<std::uint64_t> limit;
};

}  // namespace npu
