// SPDX-License-Identifier: Apache-2.0
// Compiles a block of stages for a device: cuts it out of the model, rewrites it, and makes its
// steps.
//
// On a device in host memory, aggregations over edges run here (find_reductions.cpp), and the rest
// is cut into programs for the backend (block_steps.cpp). A device with memory of its own that has
// segment reductions runs the block as one program (segment_nodes.cpp). On a static device the
// whole block is one program over padded tensors. O(nodes of the block), plus compiling.
#include "gnn/block/gnn_block.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "gnn/block/bfloat16_features.hpp"
#include "gnn/block/find_products.hpp"
#include "gnn/block/find_reductions.hpp"
#include "gnn/block/linear_before_aggregate.hpp"
#include "gnn/block/segment_nodes.hpp"
#include "gnn/block/tensor_rows.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"

namespace npu::gnn {
namespace {

// Whether the device sums over edges where its operands lie.
bool aggregates(const GnnDevice& device, const BlockShape& shape) {
  if (device.is_static || shape.edges == 0 || device.instance->facts().is_coherent) return false;
  bool is_listed = false;
  device.instance->list_ops([&](std::string_view op, std::string_view) {
    is_listed = is_listed || op == kSegmentReduce;
  });
  return is_listed;
}

}  // namespace

GnnBlock::GnnBlock(const StagedModel& model, const BlockRequest& request, const GnnDevice& device,
                   const std::map<std::string, Tensor>& weights)
    : device_(device) {
  for (const StageTensor& tensor : model.layers[index_of(request.layer - 1)].tensors) {
    per_edge_[tensor.name] = tensor.edge_bytes > 0;
    local_rows_[tensor.name] = tensor.local_rows;
  }
  Graph block = model.block(request.layer, request.first, request.last, request.shape);
  if (!device.is_static) products_first_ = linear_before_aggregate(block, request.shape) ? 1 : 0;
  aggregates_on_device_ = aggregates(device, request.shape);
  if (aggregates_on_device_) segment_nodes(block, request.shape);
  form_.shape = request.shape;
  const std::vector<Choice> all = choices(block, request.compiled);
  for (const Choice& choice : all) {
    form_.graph = block;
    try {
      build(choice, request, weights);
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported || &choice == &all.back()) throw;
    }
  }
  for (const TensorId id : graph().graph_inputs()) {
    const std::string& name = graph().tensor(id).name;
    if (is_edge_input(name)) continue;
    input_names_.push_back(name);
    if (name == kFeatureInput) feature_dtype_ = graph().tensor(id).dtype;
  }
  fused_ = count_reductions();
}

// First what multiplies matrices faster, if there are any, then the device itself; as it was if the
// programs are compiled.
std::vector<GnnBlock::Choice> GnnBlock::choices(const Graph& block,
                                                const CompiledBlock* compiled) const {
  if (compiled != nullptr) {
    return {{compiled->on_products ? device_.products : device_.instance, compiled->is_narrow}};
  }
  const bool multiplies = std::any_of(
      block.nodes().begin(), block.nodes().end(),
      [](const Node& node) { return fusion_role(node.op_type) == FusionRole::kLinear; });
  std::vector<Choice> all;
  if (multiplies && device_.products != nullptr) {
    if (device_.bfloat16) all.push_back({device_.products, true});
    all.push_back({device_.products, false});
  }
  all.push_back({device_.instance, false});
  return all;
}

void GnnBlock::build(const Choice& choice, const BlockRequest& request,
                     const std::map<std::string, Tensor>& weights) {
  form_.instance = choice.instance;
  is_narrow_ = choice.is_narrow;
  if (is_narrow_) bfloat16_features(form_.graph, weights);
  OwnKernels own;
  if (!device_.is_static && !aggregates_on_device_) {
    own = find_reductions(graph(), weights);
    if (multiplies_here(device_)) add_products(graph(), weights, *device_.weights, own);
  }
  ProgramSource source;
  source.keeps = request.keeps_programs;
  if (request.compiled != nullptr) {
    source.stored = &request.compiled->programs;
    source.stored_in = request.compiled->file;
  }
  form_.steps = build_block_steps(graph(), std::move(own), device_, instance(), weights, source);
}

std::int32_t GnnBlock::count_reductions() const {
  const auto own = std::count_if(steps().begin(), steps().end(), [](const BlockStep& step) {
    return std::holds_alternative<Reduction>(step);
  });
  if (!aggregates_on_device_) return static_cast<std::int32_t>(own);
  const std::set<NodeId> needed = nodes_in_programs(graph(), {});
  return static_cast<std::int32_t>(std::count_if(needed.begin(), needed.end(), [&](NodeId id) {
    return graph().node(id).op_type == kSegmentReduce;
  }));
}

std::map<std::string, Tensor> GnnBlock::run(const SubgraphView& view,
                                            const std::map<std::string, BlockInput>& inputs,
                                            float padding) const {
  const std::vector<Tensor> results = run_block(form_, device_, view, inputs, padding);
  std::map<std::string, Tensor> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string& name = graph().tensor(graph().graph_outputs()[i]).name;
    const std::int64_t rows = per_edge_.at(name)     ? view.edges()
                              : local_rows_.at(name) ? view.local
                                                     : view.owned;
    outputs[name] = rows_of(results[i], 0, rows);
  }
  return outputs;
}

}  // namespace npu::gnn
