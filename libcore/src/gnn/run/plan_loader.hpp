// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "csr/csr_graph.hpp"
#include "gnn/graph/binary_graph.hpp"
#include "gnn/graph/halo.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "gnn/run/device_layout.hpp"
#include "gnn/run/run_options.hpp"
#include "gnn/run/task_graph.hpp"
#include "npu/support/progress.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A plan with everything that it takes to run it, checked against each other.
struct LoadedPlan {
  GnnPlan plan;
  StagedModel model;
  std::vector<Subgraph> parts;
  std::int64_t nodes = 0;  ///< of the graph
  Tensor features;         ///< float32 [rows(), features]
  Tensor degree;           ///< float32 [rows()]: in-edges of every node in the whole graph
  std::map<std::string, Tensor> weights;
  /// What crosses between the plan's devices; null: features alone.
  std::shared_ptr<const DeviceLayout> exchange;

  /// Rows of tensors per node: behind those of nodes lie sums that cross.
  std::int64_t rows() const noexcept {
    return exchange == nullptr ? nodes : exchange->rows.row_count;
  }
  /// For build_task_graph.
  TaskParts task_parts() const {
    if (exchange == nullptr) return {parts};
    return {parts, &exchange->rows.parts, exchange->crosses};
  }
};

/// A file that has to be a plan.
GnnPlan read_runnable_plan(const std::string& path);

/// Reads what the plan of `options` names, beside it, and the features. Throws Error for a plan
/// that names no model, graph or partition, and for files that are not the ones that it was made
/// for.
LoadedPlan load_plan(const RunPlanOptions& options, PhaseTimes& times);
/// The same with the plan, which may have come through a pipe, read already.
LoadedPlan load_plan(GnnPlan stated, const RunPlanOptions& options, PhaseTimes& times);

/// load_plan without the features: what compiling takes.
LoadedPlan load_plan_parts(GnnPlan stated, const RunPlanOptions& options, PhaseTimes& times);

/// The precision that a plan runs in: what the options ask for, else that of its times.
std::string precision_of(const GnnPlan& plan, const std::string& asked);

/// Stages of each layer.
std::vector<std::int32_t> stage_counts(const StagedModel& model);

/// The model of a plan. Throws Error for a plan that names no model or no graph, or another version
/// of the model.
StagedModel read_plan_model(const GnnPlan& plan, const std::string& path);

/// The graph of the plan of `options`.
CsrGraph read_plan_graph(const GnnPlan& plan, const RunPlanOptions& options, PhaseTimes& times);
/// The same for one rank: of a file in binary form nothing is read but the rows that are asked for.
GraphRows read_plan_rows(const GnnPlan& plan, const RunPlanOptions& options, PhaseTimes& times);
/// The parts that a plan was made for, by node.
std::vector<std::int32_t> read_plan_partition(const GnnPlan& plan, const std::string& path,
                                              std::int64_t nodes);

}  // namespace npu::gnn
