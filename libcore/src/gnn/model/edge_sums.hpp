// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/model/staged_model.hpp"

namespace npu::gnn {

/// One of the steps from a node's degree to a factor of its rows.
struct DegreeStep {
  enum class Op : std::uint8_t { kAdd, kMultiply, kReciprocalRoot, kPower };
  Op op = Op::kAdd;
  float operand = 0;
  bool operator==(const DegreeStep&) const = default;
};

/// What the layers of a model do with edges.
struct EdgeSums {
  /// Why sums over edges must not stand for the rows of a layer's input that they add up: it does
  /// something else with edges than to sum these rows by target, with or without factors of both
  /// ends, and to count edges. Empty if it does not. Then a row that holds the sum of several
  /// sources, each times its factor, and zeros for all but the first of their edges, give the
  /// layer's output.
  std::string refusal;
  std::vector<DegreeStep> factor;  ///< of a source, from its degree; empty: rows are summed as is
  float neutral_degree = 0;        ///< whose factor is 1: the degree of a row that holds a sum
  /// Rows are not added up: the largest of each column is taken, whatever is said here of sums. One
  /// that is taken twice changes nothing, so that all edges may read the row of several sources.
  bool is_max = false;
};

/// The same for all layers. O(nodes of the model).
EdgeSums edge_sums(const StagedModel& model);

/// The factor of a node with this many edges.
float factor_of(const std::vector<DegreeStep>& steps, float degree);

}  // namespace npu::gnn
