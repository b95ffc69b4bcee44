// SPDX-License-Identifier: Apache-2.0
// What the number of threads means for the bits of oneDNN's results, by the implementations of
// version 2.6: the one place that says so. O(1).
//
// All of them cut results among threads, which changes no bit. Some go further. The GEMM
// ("gemm:jit" in products, "x64:gemm:jit" in convolutions, behind "ip:" where a convolution's
// window is all that there is) cuts the sums themselves. The "brg" kernels of AVX-512 and those for
// AMX choose by the number of threads into which blocks they cut a sum, and add up each by itself.
// Sums of integers are exact, whatever their order. The direct kernels add one product after the
// other in an order that only the window and the channels decide, and what is no product has no
// sums that are cut.
#include "program/thread_bits.hpp"

#include <string_view>

namespace npu::onednn {

namespace {

bool is_sum_of_products(PrimitiveKind kind) {
  return kind == PrimitiveKind::kConvolution || kind == PrimitiveKind::kDeconvolution ||
         kind == PrimitiveKind::kMatmul;
}

/// Whether the order of a sum follows from the number of threads.
bool sums_by_threads(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive) {
  if (!primitive || !is_sum_of_products(record.kind)) return false;
  const DType type = record.layouts.front().type;
  if (type == DType::kInt8 || type == DType::kUInt8) return false;
  const std::string_view name = primitive.impl_info_str();
  return name.find("gemm") != std::string_view::npos ||
         name.find("brg") != std::string_view::npos || name.find("amx") != std::string_view::npos;
}

/// A product by the GEMM that is not worth more than one thread.
bool is_for_one_thread(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive) {
  constexpr std::int64_t kFewRows = 4;
  if (record.kind != PrimitiveKind::kMatmul) return false;
  if (std::string_view(primitive.impl_info_str()).find("gemm") == std::string_view::npos) {
    return false;
  }
  const std::vector<std::int64_t>& shape = record.layouts.back().extents;
  return shape[shape.size() - 2] <= kFewRows;
}

}  // namespace

bool bits_by_threads(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive) {
  return sums_by_threads(record, primitive) && !is_for_one_thread(record, primitive);
}

int fixed_threads(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive,
                  int most) {
  if (!sums_by_threads(record, primitive)) return 0;
  return is_for_one_thread(record, primitive) ? 1 : most;
}

}  // namespace npu::onednn
