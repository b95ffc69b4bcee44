// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>

#include "ir/bind_sizes.hpp"

namespace npu::padding {

/// Nodes of a template that slice a fixed number of rows from the end of a size, as the window of a
/// convolution that streams does, with a start that the template states as an expression ("S - 2"
/// of S rows): in `bound`, its bound document, they get a start that counts from the end. The
/// places in the list of nodes that are now so. O(nodes).
std::set<std::size_t> count_from_end(const Template& model, Json& bound);

}  // namespace npu::padding
