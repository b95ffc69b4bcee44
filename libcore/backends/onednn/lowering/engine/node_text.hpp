// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// "node 'x' (aten.relu.default)".
inline std::string node_text(const Node& node) {
  return "node '" + node.name + "' (" + node.op_type + ")";
}

inline std::string number_text(std::int64_t value) { return std::to_string(value); }

}  // namespace npu::onednn
