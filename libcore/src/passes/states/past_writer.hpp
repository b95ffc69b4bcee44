// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

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
  /// What a size is of a state whose rows all count.
  SizeExpression when_full(const SizeExpression& size) const { return size.substitute(capacity_); }
  Json mention(const std::string& name, const SizeShape& sizes, DType dtype) const;
  /// The mention of the graph input.
  const Json& position_input() const noexcept { return input_; }
  /// The positions as a vector.
  const Json& positions();
  /// For each row of the states its number, or that of the last one that counts if this is less.
  const Json& keys();
  /// Which keys count: bool [1, 1, new rows, capacity], or one row for all without a window that
  /// is not causal.
  const Json& mask(bool causal, std::int64_t window);
  /// A tensor of the model by its formula; nothing, and why in `reason`, if it cannot be made.
  std::optional<Json> tensor(TensorId id, const Formula& formula, std::string& reason);
  /// One that is called like `info` and has its dtype, with `new_rows` by dimension: whether
  /// `sizes` has the new rows alone where the formula is that of all.
  std::optional<Json> tensor(const TensorInfo& info, const Formula& formula, const SizeShape& sizes,
                             const std::vector<bool>& new_rows, std::string& reason);
  /// Adds a node with one result, both called `name` where that is free, and mentions the result.
  Json add(const std::string& name, const std::string& op_type, const Json& inputs, Json attrs,
           const Json& shape, DType dtype);
  /// Frees the name of a node that is not in the document as it is, once.
  void release(const Node& node);
  /// `value` seen with 1 for every dimension of a shape but `dims`, and repeated along the others.
  Json spread(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
              const std::string& name);

 private:
  /// A multiple of numbers along some dimensions.
  struct Term {
    Json value;
    std::int64_t factor;
    std::vector<std::size_t> along;
  };
  Json sum_of(std::vector<Term> terms, std::int64_t number, const SizeShape& shape,
              const std::string& name);
  Json seen(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
            const std::string& name);
  Json repeated(Json value, const SizeShape& shape, const std::string& name);
  Json shifted(Json value, std::int64_t by, const std::string& name);
  Json multiplied(Json value, std::int64_t factor, const std::string& name);
  const Json& end_position(bool is_last);
  std::optional<Json> integers(const Affine& value, const SizeShape& shape,
                               const std::vector<bool>& new_rows, const std::string& name,
                               std::string& reason);
  std::optional<Json> choice(const Formula& formula, const SizeShape& shape, DType dtype,
                             const std::string& name, std::string& reason);

  const PastModel& model_;
  SizeSubstitution capacity_;
  Json input_;
  Json& nodes_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<std::string> released_;
  std::optional<Json> positions_;
  std::optional<Json> keys_;
  std::optional<Json> end_positions_[2];  // the first and the last one
  std::map<std::pair<bool, std::int64_t>, Json> masks_;
  std::map<std::int32_t, Json> made_;
};

}  // namespace npu::states
