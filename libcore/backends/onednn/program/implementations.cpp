// SPDX-License-Identifier: Apache-2.0
// The list of what oneDNN 2.6 computes wrongly: implementations by name, with the layouts and the
// post-ops with which they do. implementations_test compares every implementation that there is on
// a CPU with float64; what it finds is a row here. O(post-ops).
#include "program/implementations.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>

#include "program/layout.hpp"

namespace npu::onednn {

namespace {

dnnl_primitive_kind_t kind_of(const dnnl::primitive_desc_base& primitive) {
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_primitive_kind, 0, &kind);
  return kind;
}

/// True if a post-op reads a tensor with more than one number a channel or, with three dimensions
/// behind the channels, more than one number.
bool reads_places(const dnnl::primitive_desc_base& primitive) {
  const dnnl::primitive_attr attributes = primitive.get_primitive_attr();  // which holds the list
  const dnnl::post_ops operations = attributes.get_post_ops();
  for (int i = 0; i < operations.len(); ++i) {
    if (operations.kind(i) != dnnl::primitive::kind::binary) continue;
    dnnl::algorithm algorithm{};
    dnnl::memory::desc operand;
    operations.get_params_binary(i, algorithm, operand);
    for (int j = 0; j < operand.data.ndims; ++j) {
      const bool is_channel = j == 1 && operand.data.ndims < 5;
      if (operand.data.dims[j] != 1 && !is_channel) return true;
    }
  }
  return false;
}

/// A layout that is row-major and channels-last counts as both: oneDNN's own comparison does.
bool has_channels_last(const dnnl::primitive_desc_base& primitive) {
  const Layout target = primitive.query_md(dnnl::query::dst_md);
  if (target.data.ndims < 3 || target.data.ndims > 5) return false;
  return with_type(target, DType::kFloat32) ==
         channels_last_layout(dimensions(target), DType::kFloat32);
}

struct Row {
  dnnl_primitive_kind_t kind;
  std::string_view name;  ///< a part of the implementation's
  bool (*applies)(const dnnl::primitive_desc_base& primitive);
};

constexpr Row kWrong[] = {
    // The place that it gives a post-op knows neither the image nor the pixel: of a tensor of the
    // result's shape every pixel gets the first one's elements, of one number a channel another
    // channel's where there are three dimensions. On every CPU.
    {dnnl_convolution, "gemm:",
     [](const dnnl::primitive_desc_base& primitive) {
       return has_channels_last(primitive) && reads_places(primitive);
     }},
};

// oneDNN 2.6 does not look whether there was memory for the code that it generates, 256 KB at first
// for each kernel of a primitive, and writes to where it would be. So what a primitive may take is
// taken and given back before.
void require_memory_for_code() {
  constexpr std::size_t kMostCode = std::size_t{16} << 20;
  void* const memory =
      mmap(nullptr, kMostCode, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  munmap(memory, kMostCode);
}

}  // namespace

dnnl::primitive with_code(const dnnl::primitive_desc_base& primitive) {
  require_memory_for_code();
  try {
    return dnnl::primitive(primitive.get());
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw;
    throw dnnl::error(dnnl_unimplemented, "there is no code for it");
  }
}

bool is_wrong(const dnnl::primitive_desc_base& primitive) {
  const std::string_view name = primitive.impl_info_str();
  return std::any_of(std::begin(kWrong), std::end(kWrong), [&](const Row& row) {
    return name.find(row.name) != std::string_view::npos && kind_of(primitive) == row.kind &&
           row.applies(primitive);
  });
}

}  // namespace npu::onednn
