// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gnn/graph/halo.hpp"
#include "gnn/model/stage_table.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/costs/device_plan.hpp"

namespace npu::gnn {

/// What the cost of a plan depends on besides the subgraph and the plan.
struct CostSettings {
  Interpolation interpolation = Interpolation::kBilinear;
  bool transfers = true;
  std::int64_t pad = 1000;     ///< multiple that static shapes are padded to
  std::vector<double> ratios;  ///< shares of devices to try, in (0, 1); empty: search
  std::string host;            ///< the device whose memory holds inputs and results
  bool whole_graph = false;    ///< the graph is not cut: it is the only subgraph
};

/// One layer of the model, with the devices of a profile.
struct PlanLayer {
  std::int32_t number = 1;
  std::int32_t stage_count = 7;
  std::vector<std::string> stage_names;
  /// By device and stage (from 0): why the device cannot run the stage; empty if it can.
  std::vector<std::vector<std::string>> refusals;
  const LayerInfo* info = nullptr;  ///< null: no transfers, no sizes
};

/// What one subgraph costs under one plan.
struct DevicePlanCost {
  std::vector<std::vector<double>> share_ms;  ///< by segment and share, transfers included
  std::vector<double> device_ms;              ///< by device
  std::vector<double> resource_ms;            ///< by resource
  double latency_ms = 0;                      ///< of the subgraph alone
  double transfer_ms = 0;                     ///< part of the above
  bool extrapolated = false;
  bool disturbed = false;
  double compute_ms = 0;    ///< of all blocks, without transfers
  double disturbed_ms = 0;  ///< of the blocks whose times other work disturbed
  std::string refusal;      ///< why the plan does not fit; empty if it does
};

/// Costs of plans from a profile. Keeps references to its arguments.
class DevicePlanCosts {
 public:
  DevicePlanCosts(const StageTable& profile, const PlanLayer& layer, const CostSettings& settings);

  std::int32_t resource_count() const noexcept {
    return static_cast<std::int32_t>(resource_names_.size());
  }
  const std::vector<std::string>& resource_names() const noexcept { return resource_names_; }
  std::int32_t resource_of(std::int32_t device) const {
    return resources_[static_cast<std::size_t>(device)];
  }

  /// Why no subgraph can run under this structure; empty if some may.
  std::string structure_refusal(const DevicePlan& structure) const;
  /// The structure with percents for this subgraph: the split that balances each group and, for
  /// pairs of devices, steps of 10 %; or, if ratios are given, every split that they allow.
  std::vector<DevicePlan> with_ratios(const DevicePlan& structure, const SubgraphSize& whole) const;
  DevicePlanCost cost(const DevicePlan& device_plan, const SubgraphSize& whole) const;

  /// Nodes and edges that a share of a block computes, padded for static devices.
  struct WorkSize {
    double n = 0;
    double m = 0;
  };
  WorkSize work_size(std::int32_t device, std::int32_t first, std::int32_t last,
                     const SubgraphSize& subgraph, std::int32_t percent) const;
  /// "[5-7]@6000x67000" for each static program that the plan needs.
  std::vector<std::string> static_programs(const DevicePlan& device_plan,
                                           const SubgraphSize& whole) const;
  double compile_ms(const DevicePlan& device_plan) const;

  /// The subgraph as the plan's devices read it: sums stand for the halo rows that
  /// SubgraphSize::saved says if a device other than the host reads rows of other parts.
  SubgraphSize as_read(const DevicePlan& device_plan, const SubgraphSize& subgraph) const;

 private:
  Estimate block_ms(std::int32_t device, std::int32_t first, std::int32_t last,
                    const SubgraphSize& subgraph, std::int32_t percent) const;
  Estimate part_ms(std::int32_t device, std::int32_t first, std::int32_t last,
                   const SubgraphSize& subgraph, std::int32_t percent) const;
  double split_time(std::int32_t device, const StageSegment& segment, const SubgraphSize& subgraph,
                    std::int32_t percent) const;
  double tensor_bytes(const StageTensor& tensor, const SubgraphSize& subgraph, double ratio) const;
  double best_split(const StageSegment& segment, const SubgraphSize& subgraph, std::size_t count,
                    std::int32_t percent, std::vector<std::int32_t>& split) const;
  void add_transfers(const DevicePlan& device_plan, const SubgraphSize& subgraph,
                     DevicePlanCost& cost) const;
  std::string memory_refusal(std::int32_t device, const StageSegment& segment,
                             const SubgraphSize& subgraph, std::int32_t percent) const;

  const StageTable& profile_;
  const PlanLayer& layer_;
  const CostSettings& settings_;
  std::vector<std::int32_t> resources_;
  std::vector<std::string> resource_names_;
};

/// Why a layer has no legal structure: the objection to each single device.
std::string no_structure_reason(const DevicePlanCosts& costs, const PlanLayer& layer,
                                const StageTable& profile);

/// A device plan that a subgraph may run under.
struct PlanCandidate {
  DevicePlan device_plan;
  DevicePlanCost cost;
  bool is_single_device() const noexcept {
    return device_plan.segments.size() == 1 && device_plan.segments[0].shares.size() == 1;
  }
};

/// Every legal plan of a subgraph with its cost; why the others are not legal goes to `refusals`,
/// if that is not null.
std::vector<PlanCandidate> plan_candidates(const DevicePlanCosts& costs,
                                           const std::vector<DevicePlan>& structures,
                                           const SubgraphSize& subgraph,
                                           std::vector<std::string>* refusals);

/// The structures of at most `max_segments` segments that some subgraph may run under.
std::vector<DevicePlan> legal_structures(const DevicePlanCosts& costs, const PlanLayer& layer,
                                         std::int32_t device_count, std::int32_t max_segments);

}  // namespace npu::gnn
