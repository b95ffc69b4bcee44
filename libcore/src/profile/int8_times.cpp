// SPDX-License-Identifier: Apache-2.0
// Measures a model in int8: the document that npu-align --quantize int8 makes of it is a model like
// any other, whose nodes keep their names. What a conversion takes that is a part of a node's
// kernel counts as the node's. Conversions by themselves are measured in a document of nothing
// else, of several sizes, through which a line is fitted. Two more runs of profile_model, and those
// of tensor_conversions.cpp.
#include "profile/int8_times.hpp"

#include <map>
#include <utility>

#include "ir/document_builder.hpp"
#include "npu/passes/tag.hpp"
#include "ops/op_name.hpp"
#include "passes/quantize/quantize.hpp"
#include "profile/node_table_builder.hpp"
#include "profile/tensor_conversions.hpp"

namespace npu {
namespace {

constexpr std::int64_t kSizes[]{1 << 12, 1 << 15, 1 << 18, 1 << 21};  ///< elements

NodeTable measured(const Graph& graph, const ProfileModelOptions& options, bool only_first_device,
                   const ProgressCallback& progress, Diagnostics& diagnostics) {
  ProfileModelOptions plain = options;
  plain.ranges.reset();
  plain.refinements = 0;
  plain.only_first_device = only_first_device;
  return profile_model(graph, plain, progress, diagnostics);
}

/// The times of nodes of the model that are int8, with those of inserted nodes in their kernels.
void add_nodes(const Graph& model, const Graph& int8, const NodeTable& from, NodeTable& table) {
  std::map<std::pair<std::string, std::string>, std::size_t> owners;  // device, kernel
  const auto key_of = [](const NodeTime& entry) {
    return std::pair{entry.device, entry.kernel.empty() ? entry.node : entry.kernel};
  };
  const auto is_int8 = [&](const std::string& name) {
    const NodeId id = int8.find_node(name);
    const Json* precision = id.valid() ? find_member(int8.node(id).json, "precision") : nullptr;
    return precision != nullptr && *precision == "int8";
  };
  for (const NodeTime& entry : from.nodes) {
    if (!model.find_node(entry.node).valid() || !is_int8(entry.node)) continue;
    owners.emplace(key_of(entry), table.int8.size());
    table.int8.push_back(entry);
    table.int8.back().kernel.clear();
  }
  for (const NodeTime& entry : from.nodes) {
    if (model.find_node(entry.node).valid()) continue;
    const auto owner = owners.find(key_of(entry));
    if (owner == owners.end()) continue;
    MeasuredTime& time = table.int8[owner->second].time;
    time.us += entry.time.us;
    time.median_us += entry.time.median_us;
  }
}

/// For each size a quantization and a dequantization, between functions that take the upload and
/// the download.
Graph conversions_graph() {
  DocumentBuilder builder("conversions");
  const Json attrs = {{"scale", 0.03},
                      {"zero_point", 3},
                      {"quant_min", 0},
                      {"quant_max", 255},
                      {"dtype", "torch.uint8"}};
  for (const std::int64_t size : kSizes) {
    const auto name = [&](const char* letter) { return letter + std::to_string(size); };
    const auto add = [&](const char* op, const char* from, const char* to, DType dtype,
                         const Json& with) {
      builder.add_node(name(to), op, {name(from)}, {{name(to), {size}, dtype}}, with);
    };
    builder.add_input({name("x"), {size}});
    add("aten.relu.default", "x", "r", DType::kFloat32, Json::object());
    add("quantized_decomposed.quantize_per_tensor.default", "r", "q", DType::kUInt8, attrs);
    add("quantized_decomposed.dequantize_per_tensor.default", "q", "d", DType::kFloat32, attrs);
    add("aten.relu.default", "d", "y", DType::kFloat32, Json::object());
    builder.add_output(name("y"));
  }
  return builder.build("<conversions>");
}

void add_conversions(const Graph& graph, const NodeTable& from, NodeTable& table) {
  for (const NodeTableDevice& device : table.devices) {
    for (const bool to_int8 : {true, false}) {
      std::vector<CopySample> samples;
      for (const NodeTime& entry : from.nodes) {
        const Node& node = graph.node(graph.find_node(entry.node));
        const bool is_conversion =
            to_int8 ? is_quantization(node.op_type) : is_dequantization(node.op_type);
        if (entry.device != device.name || !is_conversion) continue;
        const TensorId tensor = to_int8 ? node.inputs.front() : node.outputs.front();
        samples.push_back(
            {"", "", static_cast<double>(graph.tensor(tensor).bytes()), entry.time.us});
      }
      if (samples.empty()) continue;
      const LinkFit fit = fitted("", "", samples);
      table.conversions.push_back({.device = device.name,
                                   .to_int8 = to_int8,
                                   .latency_us = fit.latency_us,
                                   .bytes_per_s = fit.bytes_per_s,
                                   .samples = fit.samples});
    }
  }
}

}  // namespace

Graph quantized_copy(const Graph& graph, const ProfileModelOptions& options,
                     Diagnostics& diagnostics) {
  Graph int8 = graph;
  QuantizeOptions quantize;
  // It is measured on this machine, whose CPU may want weights of 7 bits.
  quantize.target = options.target.empty() ? "host" : options.target;
  quantize_model(int8, *options.ranges, quantize, diagnostics);
  return int8;
}

void add_int8_times(const Graph& graph, const Graph& int8, const ProfileModelOptions& options,
                    const ProgressCallback& progress, Diagnostics& diagnostics, NodeTable& table) {
  const NodeTable nodes = measured(int8, options, false, progress, diagnostics);
  if (diagnostics.has_errors()) return;
  add_nodes(graph, int8, nodes, table);
  Graph alone = conversions_graph();
  ProfileModelOptions unweighted = options;
  if (const Json* target = graph.npu_member("target")) {
    // The model's own devices, which a tagged model names.
    alone.set_npu_member("target", *target);
    tag_ops(alone, graph_target(alone), {}, diagnostics);
    unweighted.target.clear();
  }
  unweighted.weights = {.file = {}, .random_seed = 0};
  const NodeTable times = measured(alone, unweighted, false, progress, diagnostics);
  if (diagnostics.has_errors()) return;
  add_conversions(alone, times, table);
  add_tensor_conversions(
      graph, options,
      [&](const Graph& document) {
        return measured(document, options, true, progress, diagnostics);
      },
      diagnostics, table);
}

}  // namespace npu
