// SPDX-License-Identifier: Apache-2.0
// Reads a plan of npu-plan and the files that it names. A plan is valid only for the model, graph
// and partition that it was made for, so their hashes and sizes are compared. O(bytes of the files
// + edges).
#include "gnn/run/plan_loader.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "csr/metis_partitioner.hpp"
#include "gnn/graph/features.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "gnn/graph/partition_file.hpp"
#include "gnn/plan/document/check_plan.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

template <typename Action>
std::invoke_result_t<Action> timed(const RunPlanOptions& options, PhaseTimes& times,
                                   const std::string& phase, const Action& action) {
  report_progress(options.progress, 0, phase);
  const PhaseTimes::Scope scope(times, phase);
  return action();
}

// The plan is that of the model and of the parts that were cut out.
void check_sizes(const LoadedPlan& loaded, const std::string& file) {
  const auto fail = [&](const std::string& pointer, const std::string& text) {
    throw Error(ErrorCode::kInvalidGraph, text, {.file = file, .pointer = pointer});
  };
  std::int32_t layers = 0;
  for (const PlanCluster& cluster : loaded.plan.choice.clusters)
    layers = std::max(layers, cluster.layer);
  if (index_of(layers) != loaded.model.layers.size()) {
    fail("/clusters", "the plan has " + std::to_string(layers) + " layers, the model " +
                          std::to_string(loaded.model.layers.size()));
  }
  for (std::size_t i = 0; i < loaded.plan.choice.subgraphs.size(); ++i) {
    const SubgraphSize& stated = loaded.plan.choice.subgraphs[i].size;
    const std::string pointer = "/subgraphs/" + std::to_string(i);
    if (index_of(stated.id) >= loaded.parts.size()) {
      fail(pointer + "/id", "part " + std::to_string(stated.id) + " is not below k");
    }
    const Subgraph& part = loaded.parts[index_of(stated.id)];
    const auto compare = [&](const char* key, std::int64_t said, std::int64_t counted) {
      if (said == counted) return;
      fail(pointer + "/" + key,
           "counted as " + std::to_string(counted) + ", the plan says " + std::to_string(said));
    };
    compare("n", stated.n, static_cast<std::int64_t>(part.nodes.size()));
    compare("halo", stated.halo, static_cast<std::int64_t>(part.nodes.size()) - part.owned);
    compare("m", stated.m, static_cast<std::int64_t>(part.sources.size()));
  }
}

void check_features(const LoadedPlan& loaded, const std::string& file) {
  const Shape expected{loaded.nodes, loaded.model.layers.front().input_features};
  if (loaded.features.shape() == expected) return;
  throw Error(ErrorCode::kInvalidGraph,
              "the features are " + shape_text(loaded.features.shape()) + ", expected " +
                  shape_text(expected),
              {.file = file});
}

// Rows that hold sums have the degree whose factor is 1.
Tensor degrees_of(const CsrGraph& graph, const LoadedPlan& loaded) {
  Tensor degree(DType::kFloat32, {loaded.rows()});
  auto* const values = degree.as_mutable<float>();
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    values[v] = static_cast<float>(graph.degree(v));
  }
  if (loaded.exchange == nullptr) return degree;
  std::fill(values + loaded.nodes, values + loaded.rows(), loaded.exchange->neutral_degree);
  return degree;
}

// With room for sums behind the rows of nodes.
Tensor with_room_for_sums(Tensor features, const LoadedPlan& loaded) {
  if (loaded.exchange == nullptr) return features;
  Tensor result(DType::kFloat32, {loaded.rows(), features.shape()[1]});
  if (features.bytes() > 0) std::memcpy(result.mutable_data(), features.data(), features.bytes());
  return result;
}

}  // namespace

GnnPlan read_runnable_plan(const std::string& path) {
  const Json document = parse_json(read_file(path), path);
  if (!is_plan(document)) {
    throw Error(ErrorCode::kParse, "expected a plan of npu-plan", {.file = path});
  }
  GnnPlan plan = plan_from_json(document, path);
  check_plan(plan, path);
  return plan;
}

StagedModel read_plan_model(const GnnPlan& plan, const std::string& path) {
  if (plan.files.model.empty() || plan.files.graph.empty()) {
    throw Error(ErrorCode::kUsage,
                "the plan was made without a model or a graph: it can only be simulated "
                "(--simulate)");
  }
  const std::string file = path_beside(path, plan.files.model);
  StagedModel model = read_staged_model(file);
  if (model.hash != plan.files.model_hash) {
    throw Error(ErrorCode::kInvalidGraph, "the plan was made for another version of the model",
                {.file = file});
  }
  return model;
}

CsrGraph read_plan_graph(const GnnPlan& plan, const RunPlanOptions& options, PhaseTimes& times) {
  GraphReadOptions graph_options;
  if (plan.files.node_count_given) graph_options.node_count = plan.files.graph_nodes;
  graph_options.undirected = plan.files.undirected;
  graph_options.one_loop = plan.files.one_loop;
  return timed(options, times, "read the graph", [&] {
    return read_graph_file(path_beside(options.plan, plan.files.graph), graph_options).in_edges;
  });
}

GraphRows read_plan_rows(const GnnPlan& plan, const RunPlanOptions& options, PhaseTimes& times) {
  auto file = std::make_shared<const MappedFile>(path_beside(options.plan, plan.files.graph));
  const std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->size());
  const bool is_changed = plan.files.undirected || plan.files.one_loop;
  if (is_binary_graph(bytes) && !is_changed) return GraphRows(std::move(file));
  return GraphRows(std::make_shared<const CsrGraph>(read_plan_graph(plan, options, times)));
}

std::vector<std::int32_t> read_plan_partition(const GnnPlan& plan, const std::string& path,
                                              std::int64_t nodes) {
  const std::string file = path_beside(path, plan.choice.partition->file);
  if (file.empty()) {
    throw Error(ErrorCode::kUsage,
                "the plan names no partition file: run npu-plan with -o FILE or --partition-file");
  }
  std::vector<std::int32_t> part_of = parse_partition(read_file(file), file, nodes);
  if (partition_hash(part_of) != plan.choice.partition->hash) {
    throw Error(ErrorCode::kInvalidGraph, "the partition is not the one of the plan",
                {.file = file});
  }
  for (const std::int32_t part : part_of) {
    if (part >= plan.choice.k) {
      throw Error(ErrorCode::kInvalidGraph, "part " + std::to_string(part) + " is not below k",
                  {.file = file});
    }
  }
  return part_of;
}

LoadedPlan load_plan(const RunPlanOptions& options, PhaseTimes& times) {
  return load_plan(read_runnable_plan(options.plan), options, times);
}

LoadedPlan load_plan_parts(GnnPlan stated, const RunPlanOptions& options, PhaseTimes& times) {
  report_progress(options.progress, 0, "load");
  LoadedPlan loaded;
  loaded.plan = std::move(stated);
  const GnnPlan& plan = loaded.plan;
  loaded.model = read_plan_model(plan, options.plan);
  const CsrGraph graph = read_plan_graph(plan, options, times);
  loaded.nodes = graph.node_count();
  const std::vector<std::int32_t> part_of =
      read_plan_partition(plan, options.plan, graph.node_count());
  loaded.parts = timed(options, times, "subgraphs",
                       [&] { return extract_subgraphs(graph, part_of, plan.choice.k); });
  check_sizes(loaded, options.plan);
  if (plan.choice.exchange) {
    loaded.exchange = std::make_shared<const DeviceLayout>(
        lay_out_devices(plan, loaded.model, graph, part_of, options.plan));
    // They can have millions of rows, and nobody reads them again.
    for (PartCover& part : loaded.plan.choice.exchange->parts) part.cover = {};
  }
  loaded.degree = degrees_of(graph, loaded);
  loaded.weights = load_staged_weights(loaded.model, options.weights);
  return loaded;
}

LoadedPlan load_plan(GnnPlan stated, const RunPlanOptions& options, PhaseTimes& times) {
  LoadedPlan loaded = load_plan_parts(std::move(stated), options, times);
  loaded.features =
      timed(options, times, "read the features", [&] { return read_features(options.features); });
  check_features(loaded, options.features);
  loaded.features = with_room_for_sums(std::move(loaded.features), loaded);
  return loaded;
}

std::vector<std::int32_t> stage_counts(const StagedModel& model) {
  std::vector<std::int32_t> counts;
  for (const LayerInfo& layer : model.layers) counts.push_back(layer.stage_count());
  return counts;
}

std::string precision_of(const GnnPlan& plan, const std::string& asked) {
  if (!asked.empty()) return asked;
  return plan.files.precision.empty() ? "f32" : plan.files.precision;
}

}  // namespace npu::gnn
