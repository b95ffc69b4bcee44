// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "npu/support/json.hpp"
#include "passes/states/mask_form.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// Writes nodes that make of positions what a model computed of the number of past rows.
class PastWriter {
 public:
  /// `nodes` is the list that they are put at the end of; `positions` the graph input with the
  /// position of each new row, of shape `shape`.
  PastWriter(const PastModel& model, std::int64_t capacity, const std::string& positions,
             const SizeShape& shape, Json& nodes);

  /// A size with the capacity in place of all rows.
  Json size(const SizeExpression& size) const;
  Json shape(const SizeShape& shape) const;
  /// The mention of the graph input.
  const Json& position_input() const noexcept { return input_; }
  /// The positions as a vector.
  const Json& positions();
  /// Which keys count: bool [1, 1, new rows, capacity], or one row for all without a window that
  /// is not causal.
  const Json& mask(bool causal, std::int64_t window);
  /// A tensor of the model by its formula; nothing, and why in `reason`, if it cannot be made.
  std::optional<Json> tensor(TensorId id, const Formula& formula, std::string& reason);

 private:
  Json add(const std::string& name, const char* op_type, const Json& inputs, Json attrs,
           const Json& shape, DType dtype);
  Json spread(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
              const std::string& name);
  std::optional<Json> integers(const Affine& value, const SizeShape& shape, const std::string& name,
                               std::string& reason);
  std::optional<Json> choice(const Formula& formula, const SizeShape& shape, DType dtype,
                             const std::string& name, std::string& reason);

  const PastModel& model_;
  SizeSubstitution capacity_;
  Json input_;
  Json& nodes_;
  std::unordered_set<std::string> taken_;
  std::optional<Json> positions_;
  std::map<std::pair<bool, std::int64_t>, Json> masks_;
  std::map<std::int32_t, Json> made_;
};

}  // namespace npu::states
