// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "gnn/block/block_run.hpp"
#include "gnn/block/block_steps.hpp"
#include "gnn/block/gnn_programs.hpp"
#include "gnn/model/staged_model.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// How the programs of a block were compiled, and they themselves if it is not to be done again.
struct CompiledBlock {
  std::string file;          ///< for messages
  bool on_products = false;  ///< on GnnDevice::products
  bool is_narrow = false;    ///< there with features of bfloat16
  std::vector<StoredProgram> programs;
};

/// Which block is wanted, and how it comes about.
struct BlockRequest {
  std::int32_t layer = 1;
  std::int32_t first = 1;  ///< stages
  std::int32_t last = 1;
  BlockShape shape;                         ///< padded for static devices
  const CompiledBlock* compiled = nullptr;  ///< with it nothing is compiled
  bool keeps_programs = false;              ///< for block_content
};

/// A block of stages, compiled for one shape on one device. Aggregation over edges is a segment
/// reduction: of the device where it has memory of its own and runs npu.segment_reduce, otherwise
/// one of our own in host memory; the backend computes everything else.
class GnnBlock {
 public:
  /// `weights` by state-dict key. Refers to the device.
  GnnBlock(const StagedModel& model, const BlockRequest& request, const GnnDevice& device,
           const std::map<std::string, Tensor>& weights);

  /// run_block, with results by name and without padding.
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
  DeviceInstance& instance() const noexcept { return *form_.instance; }
  /// CompiledBlock::is_narrow of this block.
  bool is_narrow() const noexcept { return is_narrow_; }

  const Graph& graph() const noexcept { return form_.graph; }
  const std::vector<BlockStep>& steps() const noexcept { return form_.steps; }

 private:
  /// What a block may be compiled for.
  struct Choice {
    std::shared_ptr<DeviceInstance> instance;
    bool is_narrow = false;
  };

  std::vector<Choice> choices(const Graph& block, const CompiledBlock* compiled) const;
  void build(const Choice& choice, const BlockRequest& request,
             const std::map<std::string, Tensor>& weights);
  std::int32_t count_reductions() const;

  const GnnDevice& device_;
  BlockForm form_;
  std::vector<std::string> input_names_;
  DType feature_dtype_ = DType::kFloat32;
  bool is_narrow_ = false;
  std::map<std::string, bool> per_edge_;  // of inputs and outputs; false: per node
  std::map<std::string, bool> local_rows_;
  bool aggregates_on_device_ = false;
  std::int32_t fused_ = 0;
  std::int32_t products_first_ = 0;
};

}  // namespace npu::gnn
