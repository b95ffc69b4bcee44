// SPDX-License-Identifier: Apache-2.0
// Convolutions by implicit GEMM: channels in blocks, weights by taps and panels of target channels.
#include "lowering/own_convolution.hpp"

namespace npu::onednn {

namespace {

/// Brings [target channels, source channels, taps..] into the kernel's order.
StridedCopy panel_copy(const ImplicitGemm& kernel) {
  const std::int64_t panel = kernel.panel();
  const std::int64_t taps = kernel.all_taps();
  const std::int64_t inputs = kernel.source_channels;
  StridedCopy copy{sizeof(float),
                   {kernel.target_channels / panel, taps, inputs, panel},
                   {panel * inputs * taps, 1, taps, inputs * taps},
                   {taps * inputs * panel, inputs * panel, panel, 1}};
  copy.simplify();
  return copy;
}

}  // namespace

Lowered<Value> add_implicit_gemm(Lowering& lowering, const ConvolutionCall& call,
                                 const std::vector<Candidate>& candidates) {
  const auto& kernel = std::get<ImplicitGemm>(candidates.front().kernel);
  return add_own_convolution<ImplicitGemm>(lowering, call, candidates, panel_copy(kernel));
}

}  // namespace npu::onednn
