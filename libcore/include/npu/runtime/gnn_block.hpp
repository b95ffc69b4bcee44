// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "npu/compile/cache.hpp"
#include "npu/device/backend.hpp"
#include "npu/plan/staged_model.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu {

/// Programs of static devices.
struct ProgramCounts {
  std::int32_t compiled = 0;
  std::int32_t cache_hits = 0;
};

/// Where a block runs.
struct GnnDevice {
  std::string name;
  std::string backend;
  std::string resource;
  bool is_static = false;  ///< gets padded shapes
  std::int32_t threads = 0;
  std::shared_ptr<DeviceInstance> instance;
  std::string options = "{}";       ///< with which `instance` was opened
  CompileCache* cache = nullptr;    ///< of programs of static devices; null: compile always
  ProgramCounts* counts = nullptr;  ///< added to, if not null; one thread at a time
};

/// A compiled sub-IR, from the device's cache if it has one.
std::unique_ptr<DeviceProgram> load_gnn_program(const GnnDevice& device, const std::string& sub_ir,
                                                std::vector<NamedTensor> weights,
                                                std::size_t output_count, std::size_t node_count);

/// What a block computes on: nodes that it owns, the edges into them, and the rows that it reads.
struct GnnWork {
  std::int64_t owned = 0;
  std::int64_t local = 0;                  ///< owned and halo
  std::vector<std::int64_t> offsets;       ///< rows of the owned nodes
  std::vector<std::int32_t> sources;       ///< local ids, by edge
  std::vector<std::int32_t> nodes;         ///< row of the base tensors by local id; empty: the same
  std::vector<std::int32_t> base_sources;  ///< nodes[sources[e]]; empty if `nodes` is
  std::int64_t edges() const { return static_cast<std::int64_t>(sources.size()); }
};

/// A tensor that a block reads. `by_node`: its rows are those of the whole graph, and the block
/// takes rows `GnnWork::nodes`.
struct GnnInput {
  Tensor tensor;
  bool by_node = false;
  /// The same values on the block's device, uploaded before; null: the block uploads what it reads.
  std::shared_ptr<DeviceBuffer> resident;
};

/// A block of stages, compiled for one shape on one device. Aggregation over edges runs as a
/// segment reduction of our own where the device computes in host memory; everything else is the
/// backend's.
class GnnBlock {
 public:
  /// `shape` is what is compiled: padded for static devices. `weights` by state-dict key.
  GnnBlock(const StagedModel& model, std::int32_t layer, std::int32_t first, std::int32_t last,
           const BlockShape& shape, const GnnDevice& device,
           const std::map<std::string, Tensor>& weights);
  ~GnnBlock();

  /// Inputs by name, unpadded: tensors per node have `work.local` rows if halo nodes have rows in
  /// them, else `work.owned`. Results by name, unpadded. `padding` fills rows that are no nodes.
  std::map<std::string, Tensor> run(const GnnWork& work,
                                    const std::map<std::string, GnnInput>& inputs,
                                    float padding = 0) const;

  const std::vector<std::string>& input_names() const noexcept { return input_names_; }
  /// Segment reductions that replace index_add nodes.
  std::int32_t fused_reductions() const noexcept { return fused_; }

 private:
  struct Step;
  void absorb_epilogues(std::map<std::int32_t, std::unique_ptr<Step>>& reductions,
                        const std::map<std::string, Tensor>& weights) const;
  void build_steps(bool fuse, const std::map<std::string, Tensor>& weights);

  BlockShape shape_;
  const GnnDevice& device_;
  Graph graph_;
  std::vector<std::string> input_names_;
  std::map<std::string, bool> per_edge_;  // of inputs and outputs; false: per node
  std::map<std::string, bool> local_rows_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::int32_t fused_ = 0;
};

/// Writes the first `count` rows of `value` to rows `nodes` of `target`, which has the same row
/// size.
void scatter_rows(const Tensor& value, const std::int32_t* nodes, std::int64_t count,
                  Tensor& target);

/// The weights of a staged model: from `file`, else from the one that it names.
std::map<std::string, Tensor> load_staged_weights(const StagedModel& model,
                                                  const std::string& file);

}  // namespace npu
