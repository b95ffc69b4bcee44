// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/attention/attention.hpp"
#include "kernels/attention/cached_attention.hpp"
#include "kernels/attention/length_mask.hpp"
#include "kernels/convolution/expand_depthwise.hpp"
#include "kernels/convolution/grouped_convolution.hpp"
#include "kernels/convolution/implicit_gemm.hpp"
#include "kernels/convolution/squeeze_excite.hpp"
#include "kernels/convolution/winograd.hpp"
#include "kernels/convolution/winograd_weights.hpp"
#include "kernels/elementwise/broadcast.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/typed_binary.hpp"
#include "kernels/movement/copies.hpp"
#include "kernels/movement/gather.hpp"
#include "kernels/movement/parts.hpp"
#include "kernels/norm/group_norm.hpp"
#include "kernels/norm/norms.hpp"
#include "kernels/norm/rms_norm.hpp"
#include "kernels/norm/scale_shift.hpp"
#include "kernels/norm/softmax.hpp"
#include "kernels/product/gemv.hpp"
#include "kernels/product/grouped_product.hpp"
#include "kernels/product/half_gemm.hpp"
#include "kernels/product/integer_product.hpp"
#include "kernels/product/packed_gemm.hpp"
#include "kernels/product/packed_gemm_weights.hpp"
#include "kernels/quantized/quantize.hpp"
#include "kernels/quantized/quantized_attention.hpp"
#include "kernels/quantized/quantized_average.hpp"
#include "kernels/quantized/quantized_resample.hpp"
#include "kernels/recurrence/recurrence.hpp"
#include "kernels/reduction/reductions.hpp"
#include "kernels/reduction/scans.hpp"
#include "kernels/reduction/sort.hpp"
#include "kernels/sampling/grid_sample.hpp"
#include "kernels/sampling/pooling.hpp"
#include "kernels/sampling/resample.hpp"

namespace npu::onednn {

/// What packs constants when a program is compiled: blobs hold the results, in an order that other
/// kernels read. plan_digest() runs each.
using PackingKernel =
    std::variant<WinogradWeights, PackedGemmWeights, HalfWeights, HalfGemmWeights, ColumnScales,
                 PanelWeights, GateWeights, FoldNormWeights, FoldNormBias, NormVectors,
                 RecurrenceWeights, IntegerRows, IntegerPanels>;

template <typename Packing, typename... Others>
struct WithPacking;
template <typename... Packing, typename... Others>
struct WithPacking<std::variant<Packing...>, Others...> {
  using Type = std::variant<Others..., Packing...>;
};

/// A kernel of this backend's own, described by plain data. Each has a `kName`, `Operands`, `bind`,
/// which gives the addresses of a step their names, and `run`, which allocates nothing. Below its
/// struct stand the list of its fields, and its `footprint`.
using Kernel =
    WithPacking<PackingKernel,
                // Chosen among others.
                Winograd, ImplicitGemm, GroupedConvolution, PackedGemm, HalfGemm, Gemv, Attention,
                CachedAttention, ExpandDepthwise, SqueezeExcite,
                // What oneDNN has no primitive for, or only a slow one.
                ScaleShift, Elementwise, Softmax, BroadcastBinary, RmsNorm, WindowPool,
                MiddleReduction, GatherRows, Sequence, Resample, Recurrence, GridSample, GroupNorm,
                TypedBinary, Select, IntegerReduction, ArgReduction, RunningSum, SortRows,
                GroupedProduct, Quantize, Dequantize, ByteTable, QuantizedBinary, QuantizedAverage,
                QuantizedResample, SplitRows, AttentionSum, IntegerProduct,
                // Copies.
                Convert, RoundToBFloat16, CopyBytes, StridedCopy, PaddedCopy, Cast, PlainConcat,
                CopyParts, Triangle, TailRows, IndexedCopy, LengthMask>::Type;

std::string_view kernel_name(const Kernel& kernel);

/// Whatever the numbers in a kernel are, it stays inside this footprint when it runs, or Error
/// kInvalidGraph is thrown that names the field: a kernel may come from a hostile file. It is
/// refused, too, if this CPU lacks the instruction set that it asks for.
Footprint footprint_of(const Kernel& kernel);

/// Why a kernel with these numbers runs on no CPU that has its instruction set; empty if it does.
std::string kernel_refusal(const Kernel& kernel);

/// Bytes of scratch memory that a run needs.
std::size_t scratch_bytes_of(const Kernel& kernel);

/// Runs it on the addresses of its step's operands.
void run_kernel(const Kernel& kernel, Addresses addresses);

/// Sets the instruction set that it runs on, where it has several.
void set_isa(Kernel& kernel, VectorIsa isa);

/// Sets on how many threads a kernel runs, which scratch_bytes depends on.
void set_threads(Kernel& kernel, int threads);

}  // namespace npu::onednn
