// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "npu/support/json.hpp"

namespace npu::states {

/// Whether an op, by its functional name, gives what it reads.
bool is_copy(std::string_view name);
/// Whether it gives the elements that it reads in the same order, in another shape.
bool is_view(std::string_view name);

/// What the JSON of a template says of its nodes, by the tensors that they give. Refers to it.
class Producers {
 public:
  explicit Producers(const Json& document);

  /// Null if no node gives the tensor.
  const Json* find(const std::string& tensor) const;
  /// The node behind copies.
  const Json* find_behind_copies(std::string tensor) const;

 private:
  std::unordered_map<std::string, const Json*> by_tensor_;
};

}  // namespace npu::states
