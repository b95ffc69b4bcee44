// SPDX-License-Identifier: Apache-2.0
// The list of what oneDNN 2.6 computes wrongly: implementations by name, with the layouts and the
// post-ops with which they do. implementations_test compares every implementation that there is on
// a CPU with float64; what it finds is a row here. O(post-ops + extents x taps).
#include "program/implementations.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>
#include <vector>

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

/// True if a transposed convolution has a place in some dimension that no tap reaches, since its
/// stride is larger than the kernel or it is padded at its end.
bool has_unreached_places(const dnnl::primitive_desc_base& primitive) {
  const dnnl_deconvolution_desc_t* call = nullptr;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_deconvolution_d, 0, &call);
  const int spatial = call->src_desc.ndims - 2;
  for (int d = 0; d < spatial; ++d) {
    const std::int64_t taps = call->weights_desc.dims[call->weights_desc.ndims - spatial + d];
    std::vector<bool> is_reached(static_cast<std::size_t>(call->dst_desc.dims[d + 2]), false);
    for (std::int64_t i = 0; i < call->src_desc.dims[d + 2]; ++i) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t place =
            i * call->strides[d] - call->padding[0][d] + tap * (call->dilates[d] + 1);
        if (place >= 0 && place < std::ssize(is_reached))
          is_reached[static_cast<std::size_t>(place)] = true;
      }
    }
    if (std::find(is_reached.begin(), is_reached.end(), false) != is_reached.end()) return true;
  }
  return false;
}

/// True if a convolution has a stride and its channels do not fill the vectors in which the pixels
/// that it reads are copied.
bool copies_parts_of_vectors(const dnnl::primitive_desc_base& primitive) {
  constexpr std::int64_t kBytes = 16;  // AVX2; SSE4.1 copies 8
  const dnnl_convolution_desc_t* call = nullptr;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_convolution_d, 0, &call);
  const int spatial = call->src_desc.ndims - 2;
  const auto has_stride = [](std::int64_t stride) { return stride != 1; };
  return std::any_of(call->strides, call->strides + spatial, has_stride) &&
         call->src_desc.dims[1] % kBytes != 0;
}

/// True if a convolution has as many groups as a result of each, of which there is one, has
/// products.
bool has_square_groups(const dnnl::primitive_desc_base& primitive) {
  const dnnl_convolution_desc_t* call = nullptr;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_convolution_d, 0, &call);
  const auto& weights = call->weights_desc;
  if (weights.ndims <= call->src_desc.ndims || weights.dims[1] != 1) return false;
  std::int64_t products = 1;
  for (int d = 2; d < weights.ndims; ++d) products *= weights.dims[d];
  return weights.dims[0] == products;
}

/// True if a post-op adds what the target holds to what another one has given.
bool adds_behind_another(const dnnl::primitive_desc_base& primitive) {
  const dnnl::primitive_attr attributes = primitive.get_primitive_attr();  // which holds the list
  const dnnl::post_ops operations = attributes.get_post_ops();
  for (int i = 1; i < operations.len(); ++i) {
    if (operations.kind(i) == dnnl::primitive::kind::sum) return true;
  }
  return false;
}

/// True if weights lose their last bit, so that sums of pairs of products fit into 16 bits: of
/// signed sources, where an instruction set without VNNI multiplies bytes. That of AVX-512 says
/// nothing of AVX2, which has a VNNI of its own.
bool halves_weights(const dnnl::primitive_desc_base& primitive) {
  const auto& extra = primitive.query_md(dnnl::query::weights_md).data.extra;
  return (extra.flags & dnnl_memory_extra_flag_scale_adjust) != 0 && extra.scale_adjust != 1.0F;
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
    // Bytes: 8 groups of 8 channels with one result each come out wrong, on every CPU, and 8 of
    // one channel and 8 taps from AVX-512 on; those of 4, 16 and 24 groups were right.
    {dnnl_convolution, "gemm_s8", has_square_groups},
    // Bytes, where there is no code for post-ops, which is on CPUs other than x86: a sum behind
    // another one is off by far more than a step.
    {dnnl_convolution, "gemm_s8u8s32:ref", adds_behind_another},
    {dnnl_convolution, "gemm_s8s8s32:ref", adds_behind_another},
    // What it copies behind the last channel lands in the pixels of the next thread. On AVX2 and
    // SSE4.1; those of AVX-512 have another name, and masks.
    {dnnl_convolution, "jit_uni_int8_1x1", copies_parts_of_vectors},
    // On CPUs with AVX-512 VNNI that lack AVX-VNNI, such as Zen 4 and Cascade Lake.
    {dnnl_convolution, "", halves_weights},
    {dnnl_deconvolution, "", halves_weights},
    // Where no tap reaches it stores what its registers hold. On every CPU.
    {dnnl_deconvolution, "jit",
     [](const dnnl::primitive_desc_base& primitive) {
       const dnnl::memory::data_type type = primitive.query_md(dnnl::query::src_md).data_type();
       return (type == dnnl::memory::data_type::u8 || type == dnnl::memory::data_type::s8) &&
              has_unreached_places(primitive);
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
