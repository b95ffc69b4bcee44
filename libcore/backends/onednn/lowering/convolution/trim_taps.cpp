// SPDX-License-Identifier: Apache-2.0
// Leaves out taps of a convolution that read nothing but padding: with a dilation of 24 a kernel of
// three by three on 14 by 14 pixels is one of one by one. O(taps of a dimension).
#include <algorithm>

#include "lowering/convolution/convolution.hpp"
#include "lowering/movement/movement.hpp"

namespace npu::onednn {

namespace {

/// Taps of one dimension that read only padding, in front and behind; one at least is left.
struct DeadTaps {
  std::int64_t front = 0;
  std::int64_t back = 0;
};

DeadTaps dead_taps(const ConvolutionCall& call, std::size_t i, std::int64_t source,
                   std::int64_t taps) {
  const Spatial& spatial = call.spatial;
  const std::int64_t dilation = spatial.dilation[i];
  const std::int64_t last = (call.output[i + 2] - 1) * spatial.stride[i];  // result's first tap
  DeadTaps dead;
  while (dead.front + 1 < taps && last + dead.front * dilation < spatial.pad_begin[i] &&
         (dead.front + 1) * dilation <= spatial.pad_begin[i]) {
    ++dead.front;
  }
  // What is then left behind the last result's last tap is padding, too, of which the node has more
  // where a stride passes it over.
  while (dead.front + dead.back + 1 < taps &&
         (taps - 1 - dead.back) * dilation - spatial.pad_begin[i] >= source &&
         (dead.back + 1) * dilation <= spatial.pad_end[i]) {
    ++dead.back;
  }
  return dead;
}

}  // namespace

void trim_taps(Lowering& lowering, ConvolutionCall& call) {
  const Shape source = dimensions(call.source.layout);
  const Shape weight = dimensions(call.weight.layout);
  for (std::size_t i = 0; i + 2 < weight.size(); ++i) {
    const DeadTaps dead = dead_taps(call, i, source[i + 2], weight[i + 2]);
    const std::int64_t left = weight[i + 2] - dead.front - dead.back;
    if (left != weight[i + 2]) {
      call.weight = sliced(lowering, call.weight, i + 2, dead.front, left);
      call.spatial.pad_begin[i] -= dead.front * call.spatial.dilation[i];
      call.spatial.pad_end[i] -= dead.back * call.spatial.dilation[i];
    }
    if (left == 1) call.spatial.dilation[i] = 1;
  }
  call.weight = lowering.plain(call.weight);
}

}  // namespace npu::onednn
