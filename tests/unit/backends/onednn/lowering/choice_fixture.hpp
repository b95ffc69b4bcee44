// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of choices share.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/convolution/choose_convolution.hpp"
#include "lowering/product/choose_product.hpp"

namespace npu::onednn::test {

inline Machine machine(VectorIsa isa) {
  Machine result;
  result.isa = isa;
  result.threads = 2;
  return result;
}

/// A convolution with stride 1 and without padding.
inline ConvolutionShape convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t taps,
                                    std::int64_t extent) {
  ConvolutionShape shape;
  shape.source = {1, inputs, extent + taps - 1, extent + taps - 1};
  shape.weight = {outputs, inputs, taps, taps};
  shape.target = {1, outputs, extent, extent};
  shape.spatial = {{1, 1}, {0, 0}, {0, 0}, {1, 1}};
  return shape;
}

inline std::string taken(const ConvolutionShape& shape, VectorIsa isa = VectorIsa::kAvx512) {
  return std::string(choose_convolution(shape, {}, machine(isa)).front().name);
}

inline std::string refusal_of(std::string_view kernel, const std::vector<Candidate>& candidates) {
  for (const Candidate& each : candidates) {
    if (each.name == kernel) return each.refusal;
  }
  return "no such candidate";
}
inline std::string refusal_of(std::string_view kernel, const ConvolutionShape& shape,
                              VectorIsa isa = VectorIsa::kAvx512) {
  return refusal_of(kernel, choose_convolution(shape, {}, machine(isa)));
}

inline EpilogueOp function(std::string_view op, std::optional<EpilogueStep> step) {
  EpilogueOp result;
  result.op = op;
  result.step = step;
  return result;
}

inline EpilogueOp arithmetic(EpilogueOp::Kind kind, EpilogueOp::Operand operand,
                             std::string_view op) {
  EpilogueOp result;
  result.kind = kind;
  result.operand = operand;
  result.op = op;
  return result;
}

using OpKind = EpilogueOp::Kind;
using OpOperand = EpilogueOp::Operand;
inline const EpilogueStep kRelu{EpilogueStep::Kind::kRelu, 0.0F, 0.0F};
inline const EpilogueOp kResidual = arithmetic(OpKind::kAdd, OpOperand::kPerElement, "add");

}  // namespace npu::onednn::test
