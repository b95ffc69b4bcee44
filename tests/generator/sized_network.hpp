// SPDX-License-Identifier: Apache-2.0
// Networks whose sizes vary: one extent of the inputs becomes a size of a template, which is padded
// and has to give what the network of exactly that size gives.
#pragma once

#include <cstdint>
#include <optional>

#include "ways.hpp"

namespace npu::test {

/// An extent that all inputs with it have in common, and what a run has of it.
struct SizeDraw {
  std::int64_t capacity = 0;  ///< 0: no size varies
  std::int64_t valid = 0;
};

/// One of the extents of the inputs; capacity 0 if none is larger than 1.
SizeDraw draw_size(const Network& network, Random& random);

/// The network with another extent, and the same rows again and again where it is larger; nothing
/// if it is no network then.
std::optional<Network> resized(const Network& network, std::int64_t from, std::int64_t to);

/// A padded run, as that of the network of exactly the valid size. Nothing if the network does not
/// follow the size. Throws Error kUnsupported if padding has no rule for one of its nodes, and what
/// run_graph does.
std::optional<Run> run_padded(const Network& network, const SizeDraw& size, const Way& way);

}  // namespace npu::test
