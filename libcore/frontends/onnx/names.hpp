// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto.hpp"

namespace npu::onnx {

/// A name in quotes, for messages.
std::string quoted_name(std::string_view name);

/// The faults of a model in which one name stands for two things: values that two nodes of a graph
/// make, or a node and an initializer or input; initializers; inputs; functions.
std::vector<std::string> name_faults(const ModelProto& model);

}  // namespace npu::onnx
