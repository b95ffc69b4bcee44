// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/epilogue.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "npu/ir/graph.hpp"

namespace dnnl {
enum class algorithm;
}  // namespace dnnl

namespace npu::onednn {

/// An element-wise function: oneDNN's, of which only code that includes oneDNN knows what it is
/// (algorithm::undef if it has none), and the kernel of this backend where that is nearer.
struct Eltwise {
  dnnl::algorithm function;
  float alpha = 0.0F;
  float beta = 0.0F;
  std::optional<Elementwise::Function> own{};
};

/// One thing that is done to an anchor's result before it is stored.
struct EpilogueOp {
  enum class Kind : std::uint8_t { kFunction, kAdd, kSubtract, kMultiply, kDivide };
  /// What the other operand of arithmetic is.
  enum class Operand : std::uint8_t {
    kNone,        ///< there is none: kFunction
    kNumber,      ///< `number`
    kOneElement,  ///< `tensor`, of which one element goes with all of the result's
    kPerChannel,  ///< one for every channel of a convolution or column of a product
    kPerElement,  ///< one for every element of the result
  };
  Kind kind = Kind::kFunction;
  Operand operand = Operand::kNone;
  std::string_view op;  ///< "relu" for aten.relu_.default; refers to the graph
  NodeId node{};        ///< that it is a part of
  TensorId tensor{};
  float number = 0.0F;
  float alpha = 1.0F;  ///< the factor of the operand of kAdd and kSubtract
  Eltwise function{};
  /// The function as kernels of this backend do it; nothing if they do not.
  std::optional<EpilogueStep> step{};
};

/// What stands behind the anchor of a fusion group, in order: its nodes but batch norms, which go
/// into the anchor's weights, and aliases. It states what is asked for; a kernel says whether it
/// does that.
struct Epilogue {
  std::vector<EpilogueOp> ops;
};

/// Why the kernels of this backend that read operands (Winograd, PackedGemm, Gemv) do not do an
/// epilogue; empty if they do.
std::string operand_kernel_refusal(const Epilogue& epilogue);
/// Likewise for ExpandDepthwise, which reads none.
std::string plain_kernel_refusal(const Epilogue& epilogue);

}  // namespace npu::onednn
