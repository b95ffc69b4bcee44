// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Time of one node on a device by the roofline model (Williams, Waterman, Patterson, CACM 2009):
/// the larger of arithmetic at the device's peak and traffic at its memory bandwidth, in
/// microseconds. 0 for aliases.
double node_us(const Graph& graph, const Node& node, const Device& device);

/// Time to copy one tensor, in microseconds; 0 if the target has no such link.
double transfer_us(const Target& target, std::string_view from, std::string_view to, double bytes);

}  // namespace npu
