// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>

#include "passes/states/decoder_inputs.hpp"
#include "passes/states/past_formula.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// Follows what tensors hold that are made of sizes, indices, positions and a mask of ones.
class PastFollower {
 public:
  PastFollower(const PastModel& model, const DecoderInputs& inputs)
      : model_(model), inputs_(inputs) {}

  /// The formula of a tensor's elements; nothing if it has none, which is remembered. O(nodes that
  /// it is made of).
  const std::optional<Formula>& formula(TensorId id);

 private:
  std::optional<Formula> find(TensorId id);

  const PastModel& model_;
  DecoderInputs inputs_;
  std::unordered_map<std::int32_t, std::optional<Formula>> known_;
};

}  // namespace npu::states
