// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/gnn/staged_model.hpp"

namespace npu::gnn {

/// Why sums over edges must not stand for the rows of a layer's input that they add up: the layer
/// does something else with edges than to sum these rows by target and to count edges. Empty if it
/// does not. Then a row that holds the sum of several sources, and zeros for all but the first of
/// their edges, give the layer's output. O(nodes).
std::string edge_sum_refusal(const LayerInfo& layer);

/// The same of all layers: the first reason, with its layer.
std::string edge_sum_refusal(const StagedModel& model);

}  // namespace npu::gnn
