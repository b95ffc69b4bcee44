// SPDX-License-Identifier: Apache-2.0
// One kernel from the nodes of a fusion group.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emitter.hpp"
#include "op_table.hpp"

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
GeneratedKernel scatter_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel segment_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel sort_kernel(const KernelTask& task, NodeId heavy);
GeneratedKernel recurrence_kernel(const KernelTask& task, NodeId heavy);

/// What reduces rows: kernels of other ops or another type are other ones to be measured.
struct RowForm {
  std::string ops;
  DType dtype = DType::kFloat32;
  std::int64_t reductions = 1;  ///< at most; each has local memory of its own
};

/// Rows that work groups, or single work items, reduce.
class RowWriter {
 public:
  /// Opens the kernel: `rows` rows of `inner` elements each.
  RowWriter(Emitter& emitter, const Shape& rows, Shape inner, const RowForm& form);

  Emitter& emitter() noexcept { return emitter_; }
  /// Which row this is.
  const Index& row() const noexcept { return row_; }
  std::int64_t inner_count() const noexcept { return inner_count_; }
  /// A loop over the elements of the row; gives their index within it. end_loop() closes it.
  Index begin_loop();
  void end_loop();
  /// Reduces `value` over the row: "+", "*", "max", "min", "|" or "&".
  std::string reduce(DType dtype, const std::string& operation,
                     const std::function<std::string(const Index&)>& value);
  /// Opens a block that one work item of the row runs; close() of the emitter ends it.
  void begin_single();
  GeneratedKernel finish();

 private:
  /// Lanes as they were measured, if they were.
  void tune_lanes(const Machine& machine, const RowForm& form);

  Emitter& emitter_;
  std::optional<Tunable> tunable_;
  std::int64_t row_count_;
  Shape inner_;
  std::int64_t inner_count_;
  std::uint64_t lanes_;  ///< work items of a row
  std::uint64_t local_;  ///< work items of a work group
  Index row_;
};

}  // namespace npu::opencl
