// SPDX-License-Identifier: Apache-2.0
// Convolutions over a signal of one channel, such as the first one of an audio network, as a
// product of matrices: the rows of the left one are windows of the signal, which overlap where it
// lies, a stride apart. A product's rows are multiples of 16 long: windows that are not are copied
// with zeros behind, since a NaN that a result does not depend on must not get into it. O(windows *
// taps).
#include <algorithm>

#include "lowering/convolution/convolution.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kStep = 16;  // of a product's extents

/// Rows of `length` floats in the middle of rows of zeros.
struct Rows {
  std::int64_t count;
  std::int64_t length;
  std::int64_t padded;
  std::int64_t front = 0;
};

Value padded_rows(Lowering& lowering, const Value& source, std::int64_t step, const Rows& rows) {
  const std::int64_t all = rows.count * rows.padded;
  const Value target = lowering.temporary(DType::kFloat32, plain_layout({all}, DType::kFloat32));
  StridedCopy copy{sizeof(float), {rows.count, rows.length}, {step, 1}, {rows.padded, 1}};
  copy.simplify();
  lowering.add_kernel({source}, target,
                      PaddedCopy{DType::kFloat32, 0.0F, all, rows.front, std::move(copy)},
                      KernelKind::kReorder);
  return target;
}

}  // namespace

bool suits_windows(const Lowering& lowering, const GroupContext& context,
                   const ConvolutionCall& call) {
  const Shape weight = dimensions(call.weight.layout);
  return lowering.machine().has_avx2() && call.type == DType::kFloat32 && weight.size() == 3 &&
         weight[1] == 1 && call.groups == 1 && weight[0] % kStep == 0 &&
         all_are(call.spatial.dilation, 1) && lowering.is_constant(call.weight) &&
         !is_pinned(lowering.node()) && operand_kernel_refusal(context.epilogue).empty() &&
         (call.output[2] - 1) * call.spatial.stride[0] + weight[2] > call.spatial.pad_begin[0];
}

Lowered<Value> add_windows(Lowering& lowering, const GroupContext& context,
                           const ConvolutionCall& call) {
  const std::int64_t images = call.output[0];
  const std::int64_t windows = call.output[2];
  const std::int64_t stride = call.spatial.stride[0];
  const std::int64_t taps = dimensions(call.weight.layout)[2];
  const std::int64_t lanes = lowering.machine().lanes();
  PackedGemm gemm;
  gemm.isa = lowering.machine().isa;
  gemm.threads = lowering.machine().threads;
  gemm.images = images;
  gemm.rows = windows;
  gemm.inner = ceil_div(taps, kStep) * kStep;
  gemm.columns = call.output[1];
  gemm.target = {gemm.rows * gemm.columns, lanes, gemm.rows * lanes};
  const std::int64_t signal = dimensions(call.source.layout)[2];
  const std::int64_t front = call.spatial.pad_begin[0];
  const std::int64_t read = (windows - 1) * stride + taps;
  Value source = lowering.plain(call.source);
  std::int64_t length = signal;
  if (front != 0 || read > signal) {
    source = padded_rows(lowering, source, signal,
                         {images, std::min(signal, read - front), read, front});
    length = read;
  }
  gemm.source = {length, stride, lanes};
  Value weight = call.weight;
  if (gemm.inner != taps) {
    const std::int64_t all = images * windows * gemm.inner;
    const Value copied = lowering.temporary(DType::kFloat32, plain_layout({all}, DType::kFloat32));
    StridedCopy copy{sizeof(float),
                     {images, windows, taps},
                     {length, stride, 1},
                     {windows * gemm.inner, gemm.inner, 1}};
    lowering.add_kernel({source}, copied,
                        PaddedCopy{DType::kFloat32, 0.0F, all, 0, std::move(copy)},
                        KernelKind::kReorder);
    source = copied;
    gemm.source = {windows * gemm.inner, gemm.inner, lanes};
    weight = padded_rows(lowering, lowering.plain(weight), taps, {gemm.columns, taps, gemm.inner});
  }
  return add_packed_gemm(lowering, context, gemm, source, {weight, call.bias},
                         lowering.blocked(call.output, call.type),
                         {{}, {{"onednn", "it has only a product whose left factor it copies"}}});
}

}  // namespace npu::onednn
