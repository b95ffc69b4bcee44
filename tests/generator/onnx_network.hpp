// SPDX-License-Identifier: Apache-2.0
// Networks as models of ONNX: each op in the form that an opset has, with optional operands left
// out, in a function of the model or in a branch of an If.
#pragma once

#include <string>

#include "network.hpp"

namespace npu::test {

/// Whether a node has a form in this opset.
bool has_onnx_form(const Call& call, const Json& attrs, std::int64_t opset);
/// The bytes of the model. What may be left out, and what stands in a function or in a branch, is
/// drawn from `seed`. Throws Error kInvalidGraph if a node has no form.
std::string onnx_model_of(const Network& network, std::int64_t opset, std::uint64_t seed);

}  // namespace npu::test
