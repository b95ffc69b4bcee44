// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gnn/model/staged_model.hpp"
#include "gnn/run/block_steps.hpp"
#include "gnn/run/gnn_programs.hpp"
#include "gnn/run/late_rows.hpp"
#include "gnn/run/shared_array.hpp"
#include "npu/device/backend.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// What a block computes on: nodes that it owns, the edges into them, and the rows that it reads.
struct SubgraphView {
  std::int64_t owned = 0;
  std::int64_t local = 0;                  ///< owned and halo
  SharedArray<std::int64_t> offsets;       ///< rows of the owned nodes
  SharedArray<std::int32_t> sources;       ///< local ids, by edge
  SharedArray<std::int32_t> nodes;         ///< row of the base tensors by local id; empty: the same
  SharedArray<std::int32_t> base_sources;  ///< nodes[sources[e]]; empty if `nodes` is
  /// By owned row: 1 if one of its edges reads a late row of the base tensors; empty: none does.
  SharedArray<char> reads_late;
  std::int64_t edges() const { return static_cast<std::int64_t>(sources.size()); }
};

/// A tensor that a block reads. `by_node`: its rows are those of the whole graph, and the block
/// takes rows `SubgraphView::nodes`.
struct BlockInput {
  Tensor tensor;
  bool by_node = false;
  /// The same values on the block's device, uploaded before; null: the block uploads what it reads.
  std::shared_ptr<DeviceBuffer> resident;
  /// Of a tensor some of whose rows come late: a view that reads such rows waits for them.
  LateRows* late = nullptr;
};

/// How the programs of a block were compiled, and they themselves if it is not to be done again.
struct StoredUnit {
  std::string file;          ///< for messages
  bool on_products = false;  ///< on GnnDevice::products
  bool is_narrow = false;    ///< there with features of bfloat16
  std::vector<StoredProgram> programs;
};

/// A block of stages, compiled for one shape on one device. Aggregation over edges is a segment
/// reduction: of the device where it has memory of its own and runs npu.segment_reduce, otherwise
/// one of our own in host memory; the backend computes everything else.
class GnnBlock {
 public:
  /// `shape` is what is compiled: padded for static devices. `weights` by state-dict key. Refers to
  /// the device. With `unit` nothing is compiled; `keeps_programs` is for unit_content.
  GnnBlock(const StagedModel& model, std::int32_t layer, std::int32_t first, std::int32_t last,
           const BlockShape& shape, const GnnDevice& device,
           const std::map<std::string, Tensor>& weights, const StoredUnit* unit = nullptr,
           bool keeps_programs = false);

  /// Inputs by name, unpadded: tensors per node have `view.local` rows if halo nodes have rows in
  /// them, else `view.owned`. Results by name, unpadded. `padding` fills rows that are no nodes.
  std::map<std::string, Tensor> run(const SubgraphView& view,
                                    const std::map<std::string, BlockInput>& inputs,
                                    float padding = 0) const;

  /// Without those that the view has: edges.
  const std::vector<std::string>& input_names() const noexcept { return input_names_; }
  /// Segment reductions that replace index_add nodes, here and on the device.
  std::int32_t fused_reductions() const noexcept { return fused_; }
  /// Linear layers that run before the aggregation that they follow.
  std::int32_t products_first() const noexcept { return products_first_; }

  /// Of the features that it reads: float32 or bfloat16.
  DType feature_dtype() const noexcept { return feature_dtype_; }
  /// Where it computes, and where resident inputs lie: one of the device's instances.
  DeviceInstance& instance() const noexcept { return *instance_; }
  /// StoredUnit::is_narrow of this block.
  bool is_narrow() const noexcept { return is_narrow_; }

  const Graph& graph() const noexcept { return graph_; }
  const std::vector<BlockStep>& steps() const noexcept { return steps_; }

 private:
  bool build_with_products(const Json& document, const std::map<std::string, Tensor>& weights,
                           const std::string& file);
  void build_stored(const Json& document, const std::map<std::string, Tensor>& weights,
                    const std::string& file, const StoredUnit& unit);
  std::int32_t count_reductions() const;
  void build(const Json& document, const std::shared_ptr<DeviceInstance>& instance,
             const std::map<std::string, Tensor>& weights, const std::string& file);

  BlockShape shape_;
  const GnnDevice& device_;
  std::shared_ptr<DeviceInstance> instance_;
  Graph graph_;
  std::vector<std::string> input_names_;
  DType feature_dtype_ = DType::kFloat32;
  bool is_narrow_ = false;
  ProgramSource source_;
  std::map<std::string, bool> per_edge_;  // of inputs and outputs; false: per node
  std::map<std::string, bool> local_rows_;
  std::vector<BlockStep> steps_;
  bool aggregates_on_device_ = false;
  std::int32_t fused_ = 0;
  std::int32_t products_first_ = 0;
};

}  // namespace npu::gnn
