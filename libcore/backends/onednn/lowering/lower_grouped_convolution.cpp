// SPDX-License-Identifier: Apache-2.0
// Convolutions with groups that do not fill vectors: channels in blocks, weights by blocks of
// target channels, inputs of a group and taps.
#include "lowering/own_convolution.hpp"

namespace npu::onednn {

Lowered<Value> add_grouped_convolution(Lowering& lowering, const ConvolutionCall& call,
                                       const std::vector<Candidate>& candidates) {
  const auto& kernel = std::get<GroupedConvolution>(candidates.front().kernel);
  const std::int64_t lanes = lowering.machine().lanes();
  const std::int64_t inner = kernel.inputs() * kernel.all_taps();
  StridedCopy order{sizeof(float),
                    {kernel.target_channels / lanes, inner, lanes},
                    {lanes * inner, 1, inner},
                    {inner * lanes, lanes, 1}};
  order.simplify();
  return add_own_convolution<GroupedConvolution>(lowering, call, candidates, order);
}

}  // namespace npu::onednn
