// SPDX-License-Identifier: Apache-2.0
// Writes a document as a model of ONNX.
//
// What depends on constants alone is computed first, by the device that folds constants, with the
// bits that it has in a run: masks and positions become constants, and weights integers. Only the
// dequantizing of constants stays a node. Then each node is written by the rule of its op, or, if
// there is none, as its decomposition; faults are collected, so that one run names all of them.
// Cost: that of folding, and O(nodes + bytes).
#include "export/export_onnx.hpp"

#include <utility>
#include <vector>

#include "export/export_rules.hpp"
#include "export/onnx_graph.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/compile/fold_constants.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/tag/decompose_ops.hpp"
#include "passes/tag/find_constants.hpp"

namespace npu {
namespace {

using onnx_export::ExportState;
using onnx_export::NodeExport;

Target target_for(const Graph& graph, const std::string& asked) {
  if (graph.npu_member("target") != nullptr) return graph_target(graph);
  return load_target(asked.empty() ? "host" : asked);
}

/// By NodeId: what is computed before anything is written.
std::vector<char> nodes_to_compute(const Graph& graph, const Target& target) {
  std::vector<char> is_fixed(graph.nodes().size(), 0);
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    is_fixed[index_of(id)] = is_dequantization(graph.node(id).op_type) ? 1 : 0;
  }
  return find_constants(graph, target, is_fixed);
}

class OnnxExporter {
 public:
  OnnxExporter(const Graph& graph, const std::vector<Tensor>& constants, Diagnostics& diagnostics)
      : state_{graph, constants, onnx_export::OnnxGraph(graph.model_name()), {}, {}},
        diagnostics_(diagnostics) {
    state_.names.resize(graph.tensors().size());
    state_.done.assign(graph.nodes().size(), 0);
  }

  /// The model; it has errors if a node has no form.
  onnx_export::OnnxGraph& run() {
    const Graph& graph = state_.graph;
    for (const TensorInfo& tensor : graph.tensors()) state_.onnx.reserve(tensor.name);
    for (const TensorId id : graph.graph_inputs()) {
      const TensorInfo& input = graph.tensor(id);
      state_.names[id] = input.name;
      state_.onnx.add_input(input.name, input.dtype, input.shape);
    }
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) write(id);
    if (diagnostics_.has_errors()) return state_.onnx;
    for (const TensorId id : graph.graph_outputs()) write_output(id);
    state_.onnx.drop_unread();
    return state_.onnx;
  }

 private:
  void write(NodeId id) {
    const Graph& graph = state_.graph;
    const Node& node = graph.node(id);
    if (state_.done[id] != 0) return;
    const auto refuse = [&](const std::string& reason) {
      diagnostics_.error(graph.location(id), "node '" + node.name + "' (" + node.op_type +
                                                 ") has no form in ONNX: " + reason);
      // What reads it is not at fault.
      for (const TensorId result : node.outputs) state_.names[result] = graph.tensor(result).name;
    };
    const onnx_export::ExportRule rule = onnx_export::find_export_rule(node.op_type);
    const OpInfo* info = find_op(node.op_type);
    if (rule == nullptr || info == nullptr) return refuse("no rule for its op");
    try {
      const BoundNode args(graph, node, info->schema);
      NodeExport each(state_, id, args);
      rule(each);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported) throw;
      refuse(error.message());
    }
  }

  /// Outputs keep their names, also those that are another value of the file.
  void write_output(TensorId id) {
    const TensorInfo& tensor = state_.graph.tensor(id);
    std::string name = state_.names[id];
    if (name.empty()) {
      name = state_.onnx.constant(tensor.name + "_constant", state_.constants[index_of(id)]);
    }
    // An input may be an output, and an output stand there twice.
    if (is_output_.insert(tensor.name).second && name != tensor.name) {
      state_.onnx.add({"Identity", {name}, {tensor.name}, {}});
    }
    state_.onnx.add_output(tensor.name, tensor.dtype, tensor.shape);
  }

  ExportState state_;
  Diagnostics& diagnostics_;
  std::unordered_set<std::string> is_output_;
};

}  // namespace

void export_onnx(const Graph& original, const ExportOnnxOptions& options,
                 Diagnostics& diagnostics) {
  Graph graph = original;
  unfold_nodes(graph);
  decompose_ops(graph, [](const Node& node) {
    return onnx_export::find_export_rule(node.op_type) == nullptr;
  });
  const Target target = target_for(graph, options.target);
  fold_nodes(graph, nodes_to_compute(graph, target));
  WeightSource source = options.weights;
  if (source.file.empty() && !source.random_seed) source.file = weights_file_of(graph);
  std::vector<Tensor> constants = load_weights(graph, source, diagnostics);
  if (diagnostics.has_errors()) return;
  CompileOptions compile;
  fold_constants(graph, target, compile, nullptr, constants);
  OnnxExporter exporter(graph, constants, diagnostics);
  const onnx_export::OnnxGraph& model = exporter.run();
  if (!diagnostics.has_errors()) {
    model.write(options.output, options.producer, options.most_bytes);
  }
}

}  // namespace npu
