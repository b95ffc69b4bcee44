// SPDX-License-Identifier: Apache-2.0
// Finds the weights that become integers with a scale for each channel of the result. O(1).
#include "quant/weight_operand.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "ops/op_name.hpp"

namespace npu {
namespace {

constexpr std::int32_t kLastAxis = -1;

struct Row {
  std::string_view op;
  std::size_t operand;
  std::int32_t axis;
};
constexpr std::array<Row, 11> kRows{{{"conv1d", 1, 0},
                                     {"conv2d", 1, 0},
                                     {"conv3d", 1, 0},
                                     {"convolution", 1, 0},
                                     {"conv_transpose1d", 1, 1},
                                     {"conv_transpose2d", 1, 1},
                                     {"conv_transpose3d", 1, 1},
                                     {"linear", 1, 0},
                                     {"addmm", 2, kLastAxis},
                                     {"mm", 1, kLastAxis},
                                     {"matmul", 1, kLastAxis}}};

bool is_transposed(const Node& node) {
  const Json* flag = find_member(node.attrs(), "transposed");
  return flag != nullptr && *flag == true;
}

}  // namespace

std::optional<WeightOperand> weight_operand(const Graph& graph, const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  const auto* row = std::find_if(kRows.begin(), kRows.end(),
                                 [&](const Row& candidate) { return candidate.op == name; });
  if (row == kRows.end() || row->operand >= node.inputs.size()) return std::nullopt;
  const TensorId id = node.inputs[row->operand];
  const TensorInfo& tensor = graph.tensor(id);
  if (tensor.kind != TensorKind::kWeight || tensor.is_folded() || tensor.dtype != DType::kFloat32 ||
      tensor.shape.size() < 2) {
    return std::nullopt;
  }
  const auto last = static_cast<std::int32_t>(tensor.shape.size()) - 1;
  if (is_transposed(node)) return WeightOperand{row->operand, id, 1};
  return WeightOperand{row->operand, id, row->axis == kLastAxis ? last : row->axis};
}

}  // namespace npu
