// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "ir/bind_sizes.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// Tensors that are written into the document of a template, by names that it does not have.
class NewTensors {
 public:
  explicit NewTensors(const Template& model) : model_(model) {}

  /// `like`, called `wanted` if that is free, of another shape; no node gives it.
  Json mention(const Json& like, const std::string& wanted, const SizeShape& shape);

 private:
  const Template& model_;
  std::set<std::string> names_;
};

/// The first result of a node as an operand of others.
Json given_by(const std::string& node, Json mention);

/// A node with one result.
Json new_node(const std::string& name, const std::string& op_type, Json inputs, Json result,
              Json attrs);

}  // namespace npu::states
