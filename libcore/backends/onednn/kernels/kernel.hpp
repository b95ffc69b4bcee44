// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "kernels/attention.hpp"
#include "kernels/broadcast.hpp"
#include "kernels/copies.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/expand_depthwise.hpp"
#include "kernels/gather.hpp"
#include "kernels/gemv.hpp"
#include "kernels/grid_sample.hpp"
#include "kernels/group_norm.hpp"
#include "kernels/grouped_convolution.hpp"
#include "kernels/grouped_product.hpp"
#include "kernels/half_gemm.hpp"
#include "kernels/implicit_gemm.hpp"
#include "kernels/integer_product.hpp"
#include "kernels/norms.hpp"
#include "kernels/packed_gemm.hpp"
#include "kernels/parts.hpp"
#include "kernels/pooling.hpp"
#include "kernels/quantize.hpp"
#include "kernels/quantized_attention.hpp"
#include "kernels/recurrence.hpp"
#include "kernels/reductions.hpp"
#include "kernels/resample.hpp"
#include "kernels/scale_shift.hpp"
#include "kernels/scans.hpp"
#include "kernels/softmax.hpp"
#include "kernels/sort.hpp"
#include "kernels/squeeze_excite.hpp"
#include "kernels/typed_binary.hpp"
#include "kernels/winograd.hpp"

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
/// which gives the addresses of a step their names, and `run`, which allocates nothing.
using Kernel =
    WithPacking<PackingKernel,
                // Chosen among others.
                Winograd, ImplicitGemm, GroupedConvolution, PackedGemm, HalfGemm, Gemv, Attention,
                ExpandDepthwise, SqueezeExcite,
                // What oneDNN has no primitive for, or only a slow one.
                ScaleShift, Elementwise, Softmax, BroadcastBinary, RmsNorm, WindowPool,
                MiddleReduction, GatherRows, Sequence, Resample, Recurrence, GridSample, GroupNorm,
                TypedBinary, Select, IntegerReduction, ArgReduction, RunningSum, SortRows,
                GroupedProduct, Quantize, Dequantize, ByteTable, QuantizedBinary, QuantizedAverage,
                QuantizedResample, SplitRows, AttentionSum, IntegerProduct,
                // Copies.
                Convert, RoundToBFloat16, CopyBytes, StridedCopy, PaddedCopy, Cast, PlainConcat,
                CopyParts, Triangle, IndexedCopy>::Type;

std::string_view kernel_name(const Kernel& kernel);

/// Runs it on the addresses of its step's operands.
void run_kernel(const Kernel& kernel, Addresses addresses);

/// Sets the instruction set that it runs on, where it has several.
void set_isa(Kernel& kernel, VectorIsa isa);

}  // namespace npu::onednn
