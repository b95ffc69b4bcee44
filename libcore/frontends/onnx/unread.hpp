// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "op.hpp"

namespace npu::onnx {

// `notes` are those of the op's row in op_table.cpp, which says how they read.

/// Refuses a node with two attributes of one name, or with one that its opset does not have.
void check_attributes(const Op& op, std::string_view notes);

/// Refuses a node of which the rule that imported it has left something unread: an attribute or an
/// operand that may not be ignored.
void check_reads(const Op& op, std::string_view notes);

/// The attributes and operands ("#N") of an op that may be ignored.
std::vector<std::string_view> ignored_names(std::string_view notes);

}  // namespace npu::onnx
