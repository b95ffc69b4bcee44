// SPDX-License-Identifier: Apache-2.0
// Samples of images at positions that a grid gives. O(1).
#include "lowering/sampling/sampling.hpp"

namespace npu::onednn {

namespace {

/// An enumerator that PyTorch passes as its number.
template <typename E>
E numbered(const Lowering& lowering, const BoundNode& node, std::string_view argument) {
  const std::int64_t number = node.integer(argument);
  if (number < 0 || number > 2) {
    lowering.invalid("argument '" + std::string(argument) + "': " + number_text(number) +
                     " is not in 0..2");
  }
  return static_cast<E>(number);
}

}  // namespace

void lower_grid_sample(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  constexpr std::int64_t kMostPositions = 1 << 22;
  constexpr std::int64_t kMostElements = 1 << 30;
  const TensorId input = tensor_argument(lowering, node, "input");
  const TensorId grid = tensor_argument(lowering, node, "grid");
  lowering.require_float("input", input);
  lowering.require_float("grid", grid);
  const Shape& shape = lowering.shape(input);
  const Shape& places = lowering.shape(grid);
  if (shape.size() != 4) {
    lowering.refuse("input", "rank " + std::to_string(shape.size()) + " is not 4");
  }
  if (places.size() != 4 || places[0] != shape[0] || places[3] != 2) {
    lowering.invalid("argument 'grid': shape " + shape_text(places) + " is not [" +
                     number_text(shape[0]) + ", height, width, 2]");
  }
  if (shape[2] > kMostPositions || shape[3] > kMostPositions ||
      shape[2] * shape[3] > kMostElements) {
    lowering.refuse("input", "a plane of " + number_text(shape[2]) + " by " +
                                 number_text(shape[3]) + " elements is not supported");
  }
  const Shape output{shape[0], shape[1], places[1], places[2]};
  lowering.check_result(lowering.result(), output, lowering.dtype(input));

  GridSample call;
  call.mode = numbered<GridSample::Mode>(lowering, node, "interpolation_mode");
  call.padding = numbered<GridSample::Padding>(lowering, node, "padding_mode");
  call.align_corners = node.boolean("align_corners");
  call.batch = shape[0];
  call.channels = shape[1];
  for (std::size_t i = 0; i < 2; ++i) {
    call.source_extent[i] = shape[i + 2];
    call.target_extent[i] = places[i + 1];
  }
  const Value source = lowering.plain(lowering.operand(input, DType::kFloat32));
  const Value positions = lowering.plain(lowering.operand(grid, DType::kFloat32));
  const Value target = lowering.temporary(DType::kFloat32, plain_layout(output, DType::kFloat32));
  lowering.add_kernel({source, positions}, target, call);
  lowering.define_computed(context, lowering.result(), output, lowering.dtype(input), target);
}

}  // namespace npu::onednn
