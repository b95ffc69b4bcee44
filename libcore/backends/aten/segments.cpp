// SPDX-License-Identifier: Apache-2.0
// npu.segment_reduce by libtorch: messages along edges, added up, or compared, by their target.
#include "segments.hpp"

#include <string>
#include <vector>

namespace npu::aten {

at::Tensor segment_reduce(const at::Tensor& self, const at::Tensor& offsets,
                          const c10::optional<at::Tensor>& indices,
                          const c10::optional<at::Tensor>& weights, c10::string_view reduce) {
  TORCH_CHECK(offsets.dim() == 1 && offsets.size(0) > 0, "offsets have to be of one dimension");
  TORCH_CHECK(self.dim() > 0, "a scalar has no rows");
  const std::string form(reduce);
  TORCH_CHECK(form == "sum" || form == "mean" || form == "amax" || form == "softmax",
              "'reduce' is ", form, ", expected sum, mean, amax or softmax");
  TORCH_CHECK(form != "softmax" || weights, "a softmax needs weights");
  const at::ScalarType type = self.scalar_type();
  const at::ScalarType compute = (type == at::kHalf || type == at::kBFloat16) ? at::kFloat : type;
  const std::int64_t nodes = offsets.size(0) - 1;
  const at::Tensor counts = offsets.to(at::kLong).diff();
  at::Tensor messages = (indices ? self.index_select(0, *indices) : self).to(compute);
  TORCH_CHECK(counts.ge(0).all().item<bool>() && offsets[0].item<std::int64_t>() == 0 &&
                  counts.sum().item<std::int64_t>() == messages.size(0),
              "offsets do not fit the edges");
  const at::Tensor targets = at::repeat_interleave(at::arange(nodes), counts);
  const auto sums_of = [&](const at::Tensor& values) {
    std::vector<std::int64_t> shape = values.sizes().vec();
    shape[0] = nodes;
    return at::zeros(shape, values.options()).index_add(0, targets, values);
  };
  const auto most_of = [&](const at::Tensor& values) {
    std::vector<std::int64_t> shape = values.sizes().vec();
    std::vector<std::int64_t> column(shape.size(), 1);
    column[0] = shape[0];
    const at::Tensor places = targets.view(column).expand(shape);
    shape[0] = nodes;
    return at::zeros(shape, values.options()).scatter_reduce(0, places, values, "amax", false);
  };
  if (weights) {
    at::Tensor factors = weights->to(compute);
    if (form == "softmax") {
      const at::Tensor shares = (factors - most_of(factors).index_select(0, targets)).exp();
      factors = shares / sums_of(shares).index_select(0, targets);
    }
    while (factors.dim() < messages.dim()) factors = factors.unsqueeze(-1);
    messages = messages * factors;
  }
  if (form == "amax") return most_of(messages).to(type);
  at::Tensor sums = sums_of(messages);
  if (form == "mean") {
    std::vector<std::int64_t> column(static_cast<std::size_t>(sums.dim()), 1);
    column[0] = nodes;
    sums = sums / counts.clamp_min(1).to(compute).view(column);
  }
  return sums.to(type);
}

}  // namespace npu::aten
