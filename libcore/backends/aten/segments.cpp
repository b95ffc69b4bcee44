// SPDX-License-Identifier: Apache-2.0
// npu.segment_reduce by the kernel over compressed rows that plans use, on libtorch's threads.
// Offsets and indices come from outside: they are checked first. O(edges * elements of a row).
#include "segments.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rows/segment_reduce.hpp"

namespace npu::aten {
namespace {

// Integers up to `most` of one dimension.
at::Tensor integers(const char* name, const at::Tensor& tensor, at::ScalarType type,
                    std::int64_t most) {
  const at::ScalarType stated = tensor.scalar_type();
  TORCH_CHECK(tensor.dim() == 1 && (stated == at::kLong || stated == at::kInt), name,
              " have to be int32 or int64 of one dimension");
  TORCH_CHECK(tensor.numel() == 0 || (tensor.min().item<std::int64_t>() >= 0 &&
                                      tensor.max().item<std::int64_t>() <= most),
              name, " have to be from 0 to ", most);
  return tensor.to(type).contiguous();
}

// Whether offsets go from 0 up to the number of edges.
bool delimits(const at::Tensor& offsets, std::int64_t edges) {
  const auto* begin = offsets.data_ptr<std::int64_t>();
  const auto* last = begin + offsets.numel() - 1;
  return *begin == 0 && *last == edges && std::is_sorted(begin, last + 1);
}

// [edges, heads], each for some elements next to each other of a row.
at::Tensor weights_by_head(const at::Tensor& weights, const at::Tensor& x, std::int64_t edges,
                           SegmentReduce& reduce) {
  TORCH_CHECK(weights.dim() > 0 && weights.dim() <= x.dim() && weights.size(0) == edges,
              "weights need a row for each edge");
  at::Tensor result = weights.to(at::kFloat);
  while (result.dim() > 1 && result.size(-1) == 1) result = result.squeeze(-1);
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().begin() + result.dim());
  shape[0] = 1;
  reduce.heads = c10::multiply_integers(shape);
  reduce.width /= std::max<std::int64_t>(1, reduce.heads);
  shape[0] = edges;
  return result.expand(shape).contiguous();
}

}  // namespace

at::Tensor segment_reduce(const at::Tensor& self, const at::Tensor& offsets,
                          const c10::optional<at::Tensor>& indices,
                          const c10::optional<at::Tensor>& weights, c10::string_view form) {
  const at::ScalarType type = self.scalar_type();
  const bool is_softmax = form == "softmax";
  TORCH_CHECK(form == "sum" || form == "mean" || form == "amax" || is_softmax, "'reduce' is ", form,
              ", expected sum, mean, amax or softmax");
  TORCH_CHECK(!is_softmax || weights, "a softmax needs weights");
  TORCH_CHECK(offsets.numel() > 0, "offsets need an element");
  TORCH_CHECK(self.dim() > 0, "a scalar has no rows");
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf,
              "rows have to be float32, bfloat16 or float16, found ", type);
  const at::Tensor x = self.to(type == at::kHalf ? at::kFloat : type).contiguous();
  const std::int64_t edges = indices ? indices->numel() : x.size(0);
  const at::Tensor begins = integers("offsets", offsets, at::kLong, edges);
  TORCH_CHECK(delimits(begins, edges), "offsets do not ascend from 0 to ", edges,
              ", the number of edges");
  const at::Tensor places =
      indices ? integers(
                    "indices", *indices, at::kInt,
                    std::min<std::int64_t>(x.size(0) - 1, std::numeric_limits<std::int32_t>::max()))
              : at::Tensor();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[0] = 1;
  const std::int64_t width = c10::multiply_integers(shape);
  shape[0] = begins.numel() - 1;
  at::Tensor result = at::empty(shape, x.options());
  SegmentReduce reduce;
  reduce.offsets = begins.data_ptr<std::int64_t>();
  reduce.sources = indices ? places.data_ptr<std::int32_t>() : nullptr;
  reduce.x = {x.data_ptr(), type == at::kBFloat16};
  reduce.out = result.data_ptr();
  reduce.out_is_bfloat16 = reduce.x.is_bfloat16;
  reduce.rows = shape[0];
  reduce.width = width;
  if (form == "mean") reduce.aggregate = Aggregate::kMean;
  if (form == "amax") reduce.aggregate = Aggregate::kLargest;
  const at::Tensor factors = weights ? weights_by_head(*weights, x, edges, reduce) : at::Tensor();
  using Kind = EdgeStep::Kind;
  const float* numbers = weights ? factors.data_ptr<float>() : nullptr;
  const EdgeStep softmax[] = {{.kind = Kind::kEdge, .node = numbers},
                              {.kind = Kind::kRowMax},
                              {.kind = Kind::kSubtract, .left = 0, .right = 1},
                              {.kind = Kind::kExp, .left = 2},
                              {.kind = Kind::kRowSum, .left = 3},
                              {.kind = Kind::kDivide, .left = 3, .right = 4}};
  if (is_softmax) {
    reduce.weight_steps = softmax;
  } else {
    reduce.weights = numbers;
  }
  const SegmentPieces pieces(reduce, at::get_num_threads());
  at::parallel_for(0, pieces.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) pieces.run(piece);
  });
  return result.to(type);
}

}  // namespace npu::aten
