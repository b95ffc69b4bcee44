// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "npu/support/json.hpp"
#include "passes/states/key_rows.hpp"
#include "passes/states/past_model.hpp"
#include "passes/states/past_writer.hpp"
#include "passes/states/place_step.hpp"

namespace npu::states {

/// Writes tensors that are computed place by place (place_step) for the capacity in place of all
/// rows. Refers to all that it is given.
class PlaceWriter {
 public:
  PlaceWriter(const PastModel& model, const PastTensors& tensors, PastWriter& writer)
      : model_(model), tensors_(tensors), writer_(writer) {}

  /// The mention of a placed tensor, whose nodes are written where they are not yet; nothing, and
  /// why in `reason`, if it cannot be made. Each is written once. O(nodes that it is made of).
  std::optional<Json> tensor(TensorId id, std::string& reason);

 private:
  /// By dimension of a tensor, whether it has the new rows alone in place of all.
  using NewRows = std::vector<bool>;

  std::optional<Json> tensor(TensorId id, const NewRows& rows, std::string& reason);
  std::optional<Json> made(TensorId id, const NewRows& rows, std::string& reason);
  std::optional<Json> table_rows(const Node& node, const PlaceStep& step, const NewRows& new_rows,
                                 const Json& table, std::string& reason);
  std::optional<PlaceStep> step_of(const Node& node) const;

  const PastModel& model_;
  const PastTensors& tensors_;
  PastWriter& writer_;
  std::map<std::pair<std::int32_t, NewRows>, Json> made_;
};

}  // namespace npu::states
