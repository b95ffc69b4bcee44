// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "passes/states/past_formula.hpp"
#include "passes/states/past_model.hpp"

namespace npu::states {

/// What the rows of a cache hold that no step has written, or an earlier longer one has, and what
/// is computed of them.
enum class UnusedRows : std::uint8_t {
  kFinite,  ///< any finite number
  kHidden,  ///< scores that have no weight
  kZero,    ///< weights of such scores
};

/// A tensor with a row for each row of a cache, along one dimension.
struct KeyAxis {
  std::size_t dim = 0;
  UnusedRows rows = UnusedRows::kFinite;
  bool has_sink = false;  ///< one more number behind the rows, which is none of a row
};

/// A tensor that is computed place by place of numbers of rows and keys (place_step), such as a
/// bias of scores by position, or one with a mask in it.
struct Placed {
  /// The dimension along which it hides keys that do not count, by low numbers.
  std::optional<std::size_t> hidden = {};
};

/// What is known of tensors that have to do with the past.
class PastTensors {
 public:
  virtual ~PastTensors() = default;
  /// Null if it has no rows of a cache.
  virtual const KeyAxis* keys(TensorId id) const = 0;
  /// Null if it is not one that follows from sizes alone.
  virtual const Formula* formula(TensorId id) const = 0;
  /// Null if it is none.
  virtual const Placed* placed(TensorId id) const = 0;
  /// Whether it is in the document as it is, and has nothing to do with the past.
  virtual bool stays(TensorId id) const = 0;
};

/// What a node makes of rows of a cache that are not used.
struct KeyRule {
  std::optional<KeyAxis> result = {};  ///< nothing: it has no rows of a cache
  /// An attention, or its softmax, without one: all keys up to the last count.
  bool needs_mask = false;
  std::string refusal = {};  ///< why it may not be run with them; empty if it may
};

/// The rule of a node that reads rows of a cache, or gives some.
KeyRule key_rule(const PastModel& model, const BoundNode& node, const PastTensors& tensors);

}  // namespace npu::states
