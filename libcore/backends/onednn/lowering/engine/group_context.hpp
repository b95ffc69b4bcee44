// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "fusion/check_groups.hpp"
#include "kernels/base/epilogue.hpp"
#include "kernels/sampling/resample.hpp"
#include "lowering/engine/epilogue.hpp"
#include "program/plan.hpp"

namespace npu::onednn {

/// A pointwise convolution that the depthwise convolution behind it computes.
struct Expansion {
  Value source;
  Value weight;  ///< plain, [channels, source channels, 1, 1]
  std::optional<Value> bias;
  std::vector<EpilogueStep> epilogue;  ///< without operands
};

/// A batch norm that the convolution of one by one behind it computes.
struct Norm {
  Value source;
  Value vectors;  ///< [2, channels]: factors, terms
  bool relu = false;
};

/// Interpolations of parts of the channels that the pointwise convolution behind them reads: it is
/// computed of each part as it is, and the results are interpolated and added.
struct Resized {
  struct Part {
    Value source;
    Resample resample;  ///< without planes, lanes and type
  };
  Value source;  ///< one of the parts, laid out as all channels together
  std::vector<Part> parts;
};

/// What the kernel of a convolution does to its source first.
using Front = std::variant<std::monostate, Norm, Expansion, Resized>;

/// What a node is lowered as: by itself, or as the anchor of a group. It goes to every function
/// that does something else for it.
struct GroupContext {
  const KernelGroup* group = nullptr;  ///< null: the node is in none
  Epilogue epilogue;       ///< what the anchor does to its result first, batch norms aside
  Front front;             ///< and to its source
  bool allows_sum = true;  ///< false once an epilogue with a sum was refused
  /// The node works on quantized numbers under the names of float tensors, as they are.
  bool moves_numbers = false;
  /// bfloat16 if the node's tensors are and oneDNN has a primitive for it, else float32 with its
  /// result rounded. Functions ask for operands in that type and hand in results in it; they need
  /// not know how tensors are kept.
  DType compute_type = DType::kFloat32;

  /// True if the node is an anchor with something behind it.
  bool has_epilogue() const noexcept {
    return group != nullptr && group->kind == KernelGroup::Kind::kEpilogue;
  }
};

}  // namespace npu::onednn
