// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>

#include "passes/states/past_formula.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// Follows what tensors hold that are made of sizes, indices, positions and a mask of ones.
class PastFollower {
 public:
  /// `positions` is the graph input that has the position of each new row, `mask` the one that says
  /// of each row of the past and each new one that it counts, and is all ones; invalid: none.
  PastFollower(const PastModel& model, TensorId positions, TensorId mask)
      : model_(model), positions_(positions), mask_(mask) {}

  /// The formula of a tensor's elements; nothing if it has none, which is remembered. O(nodes that
  /// it is made of).
  const std::optional<Formula>& formula(TensorId id);

 private:
  std::optional<Formula> find(TensorId id);

  const PastModel& model_;
  TensorId positions_;
  TensorId mask_;
  std::unordered_map<std::int32_t, std::optional<Formula>> known_;
};

}  // namespace npu::states
