// SPDX-License-Identifier: Apache-2.0
// One kernel from the nodes of a fusion group.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emit/emitter.hpp"
#include "ops/op_table.hpp"
#include "passes/fusion/cached_attention_form.hpp"

namespace npu::opencl {

/// What the text of a kernel says in front of values in tiles of float16.
inline constexpr std::string_view kHalfTile = "(half)";

/// A tensor that a kernel leaves in memory: its own, or a graph output's.
struct KernelResult {
  TensorId tensor;
  std::int32_t output = -1;
};

struct GeneratedKernel {
  std::string text;  ///< KERNEL stands for its name
  std::vector<KernelArgument> arguments;
  std::vector<std::uint64_t> sizes;
  std::optional<Tunable> tunable;
  std::vector<std::string> indexing;  ///< names of nodes whose indices may be out of range
  std::array<std::uint64_t, 3> global{1, 1, 1};
  std::array<std::uint64_t, 3> local{1, 1, 1};
};

/// What is generated: the nodes of a group that are no views, in list order, and its results.
struct KernelTask {
  const Model& model;
  std::vector<NodeId> nodes;
  std::vector<KernelResult> results;
  /// One node, whose result lies in the memory of its first operand and is that with some elements
  /// overwritten (overwrites_in_part).
  bool is_in_place = false;
};

/// Throws CannotFuse if no one kernel computes all of it, a single node's only for lack of local
/// memory.
GeneratedKernel generate_kernel(const KernelTask& task);

/// Stores the results that follow from values at known places by element-wise ops of the same shape
/// and views, if they are not stored yet.
void store_results(Emitter& emitter, const KernelTask& task, std::map<TensorId, Index> places,
                   std::vector<bool>& stored);
/// Throws CannotFuse if one is missing.
void require_all_stored(const std::vector<bool>& stored);

/// The kernel that a writer makes whose values are those of `result`, and of what follows from it.
template <typename Writer>
GeneratedKernel finished_kernel(Writer& writer, Emitter& emitter, const KernelTask& task,
                                TensorId result) {
  writer.write_sums();
  std::vector<bool> stored(task.results.size(), false);
  writer.write_results([&](const Index& place, const std::string& value) {
    emitter.bind_value(result, place, value);
    store_results(emitter, task, {{result, place}}, stored);
  });
  require_all_stored(stored);
  return writer.finish();
}

/// The kernel as it is launched, by the number of work groups in each dimension.
GeneratedKernel finished(const Emitter& emitter, std::array<std::uint64_t, 3> groups,
                         std::array<std::uint64_t, 3> local);

// ---- Forms of kernels ----

GeneratedKernel element_kernel(const KernelTask& task);
GeneratedKernel row_kernel(const KernelTask& task, const std::vector<NodeId>& heavy);
GeneratedKernel product_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel attention_kernel(const KernelTask& task, NodeId heavy);
/// The mask of lengths whose operands the kernel of an attention reads in its place.
std::optional<NodeId> length_mask_of(const Model& model, const BoundNode& attention);
/// An attention over a cache that is written out, if `nodes`, without views and in list order, are
/// one.
std::optional<CachedAttentionForm> cached_attention_of(const Model& model,
                                                       const std::vector<NodeId>& nodes);
GeneratedKernel written_attention_kernel(const KernelTask& task, const CachedAttentionForm& form);
GeneratedKernel scatter_kernel(const KernelTask& task, NodeId heavy);
/// Of a task that is in place: writes the elements that change, and no others.
GeneratedKernel overwrite_kernel(const KernelTask& task);
GeneratedKernel segment_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel sort_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel recurrence_kernel(const KernelTask& task, NodeId heavy);

}  // namespace npu::opencl
