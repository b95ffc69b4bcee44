// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace npu::onnx {

/// The table of ops as a JSON document: for each row domain, op, since, and becomes or refused.
std::string op_list_json();

}  // namespace npu::onnx
