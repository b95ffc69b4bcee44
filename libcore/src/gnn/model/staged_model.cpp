// SPDX-License-Identifier: Apache-2.0
// Reads models that are a sequence of stages.
//
// A stage that computes something per edge reads both ends of it, so whatever it reads per node
// needs rows for halo nodes, and so, by induction, do the stages that compute that. Every other
// stage computes only the owned nodes. O(size of the document).
#include "gnn/model/staged_model.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "csr/metis_partitioner.hpp"
#include "gnn/model/check_stage.hpp"
#include "gnn/model/cut_block.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/tensor/safetensors.hpp"
#include "ops/op_name.hpp"
#include "support/json_fields.hpp"
#include "target/support_check.hpp"

namespace npu::gnn {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& pointer,
                       const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, text, {.file = file, .pointer = pointer});
}

bool is_model_input(std::string_view name) {
  return name == kFeatureInput || name == kEdgeInput || name == kDegreeInput;
}

std::size_t count_symbol(const Json& shape, std::string_view symbol) {
  if (!shape.is_array()) return 0;
  return static_cast<std::size_t>(std::count_if(
      shape.begin(), shape.end(), [&](const Json& dimension) { return dimension == symbol; }));
}

class Reader {
 public:
  Reader(const Json& json, const std::string& file) : json_(json), file_(file) {}

  StagedModel read() {
    StagedModel model;
    model.file = file_;
    const Json* npu = find_member(json_, "npu");
    const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
    if (kind == nullptr || *kind != "staged") {
      fail(file_, "/npu/kind",
           "expected a model of kind 'staged'; scripts/export_gnn.py writes them");
    }
    const Json* version = find_member(*npu, "version");
    if (version == nullptr || *version != kIrVersion) {
      fail(file_, "/npu/version", "expected version " + std::to_string(kIrVersion));
    }
    if (const Json* weights = find_member(*npu, "weights_file")) {
      if (!weights->is_string()) fail(file_, "/npu/weights_file", "expected a string");
      model.weights_file = weights->get<std::string>();
    }
    if (const Json* loops = find_member(*npu, "self_loops")) {
      if (*loops != "remaining") {
        fail(file_, "/npu/self_loops", "expected 'remaining', found " + loops->dump());
      }
      model.one_loop = true;
    }
    if (const Json* name = find_member(json_, "model_name")) {
      if (name->is_string()) model.name = name->get<std::string>();
    }
    const Json* layers = find_member(json_, "layers");
    std::int64_t layer_count = 1;
    if (layers != nullptr) {
      if (!layers->is_number_integer() || *layers < 1 || *layers > 256) {
        fail(file_, "/layers", "expected a number of layers in 1..256, found " + layers->dump());
      }
      layer_count = layers->get<std::int64_t>();
    }
    const Json* stages = find_member(json_, "stages");
    if (stages == nullptr || !stages->is_array() || stages->empty()) {
      fail(file_, "/stages", "expected an array of stages");
    }
    model.layers.resize(static_cast<std::size_t>(layer_count));
    for (std::size_t i = 0; i < stages->size(); ++i) add_stage(model, (*stages)[i], i);
    for (std::size_t l = 0; l < model.layers.size(); ++l) finish_layer(model, l);
    std::vector<std::int32_t> letters;
    for (const char c : stages->dump()) letters.push_back(c);
    if (model.one_loop) letters.push_back(1);
    model.hash = partition_hash(letters);
    return model;
  }

 private:
  void add_stage(StagedModel& model, const Json& json, std::size_t index) {
    const std::string pointer = "/stages/" + std::to_string(index);
    if (!json.is_object()) fail(file_, pointer, "expected an object");
    const Json* ir = find_member(json, "ir");
    if (ir == nullptr || !ir->is_object()) fail(file_, pointer + "/ir", "expected a document");
    check_stage_document(*ir, file_, pointer + "/ir");
    StageInfo stage;
    stage.ir = *ir;
    if (const Json* name = find_member(json, "name"); name != nullptr && name->is_string()) {
      stage.name = name->get<std::string>();
    } else {
      fail(file_, pointer, "the stage has no name");
    }
    std::size_t first = 0;
    std::size_t last = model.layers.size() - 1;
    if (const Json* layer = find_member(json, "layer")) {
      if (!layer->is_number_integer() || *layer < 1 ||
          *layer > static_cast<std::int64_t>(model.layers.size())) {
        fail(file_, pointer + "/layer",
             "expected a layer in 1.." + std::to_string(model.layers.size()));
      }
      first = last = static_cast<std::size_t>(layer->get<std::int64_t>()) - 1;
    }
    for (std::size_t l = first; l <= last; ++l) {
      const Json* id = find_member(json, "id");
      const auto expected = static_cast<std::int64_t>(model.layers[l].stages.size()) + 1;
      if (id == nullptr || !id->is_number_integer() || *id != expected) {
        fail(file_, pointer + "/id", "expected stage id " + std::to_string(expected));
      }
      if (expected > 64) fail(file_, pointer, "a layer has at most 64 stages");
      model.layers[l].stages.push_back(stage);
      pointers_[{l, model.layers[l].stages.size()}] = pointer + "/ir";
    }
  }

  const std::string& pointer_of(std::size_t layer, std::int32_t stage) {
    return pointers_[{layer, static_cast<std::size_t>(stage)}];
  }

  void finish_layer(StagedModel& model, std::size_t l) {
    LayerInfo& layer = model.layers[l];
    if (layer.stages.empty()) {
      fail(file_, "/stages", "layer " + std::to_string(l + 1) + " has no stages");
    }
    std::map<std::string, std::size_t> by_name;
    std::vector<bool> makes_edges(layer.stages.size(), false);
    for (std::int32_t s = 1; s <= layer.stage_count(); ++s) {
      StageInfo& stage = layer.stages[static_cast<std::size_t>(s - 1)];
      const std::string& pointer = pointer_of(l, s);
      for (const char* key : {"graph_inputs", "graph_outputs"}) {
        for (const Json& tensor : *find_member(stage.ir, key)) {
          const bool is_output = std::string_view(key) == "graph_outputs";
          add_tensor(layer, by_name, tensor["name"].get<std::string>(), tensor, s, is_output,
                     pointer);
          if (is_output && count_symbol(tensor_shape(tensor), "m") > 0) {
            makes_edges[static_cast<std::size_t>(s - 1)] = true;
          }
        }
      }
      stage.writes_rows = writes_rows(stage.ir);
      if (const Json* weights = find_member(stage.ir, "weights")) {
        for (const Json& weight : *weights) stage.weight_bytes += fixed_bytes(weight);
      }
    }
    StageTensor& output =
        layer.tensors[by_name.at(last_output(layer, pointer_of(l, layer.stage_count())))];
    output.consumers.push_back(layer.stage_count() + 1);
    find_local_rows(layer, makes_edges);
    check_features(model, l, output);
    // The whole layer as one document: names, order, shapes and dtypes.
    Diagnostics diagnostics;
    assemble_graph(cut_block(layer, 1, layer.stage_count(), {101, 103, 211}, model.name), file_,
                   diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.entries()) {
      if (diagnostic.level == Level::kError) {
        fail(file_, "/stages",
             "layer " + std::to_string(l + 1) + " is not valid: " + diagnostic.text);
      }
    }
  }

  static bool writes_rows(const Json& ir) {
    const Json* nodes = member_list(ir, "nodes");
    return nodes != nullptr && std::any_of(nodes->begin(), nodes->end(), [](const Json& node) {
             const std::string* op = member_text(node, "op_type");
             const std::string_view name =
                 op == nullptr ? std::string_view() : functional_name(*op);
             return name.starts_with("scatter") ||
                    (name.starts_with("index_") && name != "index_select");
           });
  }

  static const Json& tensor_shape(const Json& tensor) {
    static const Json none = Json::array();
    const Json* shape = find_member(tensor, "shape");
    return shape == nullptr ? none : *shape;
  }

  static double fixed_bytes(const Json& tensor) {
    double bytes = 4;
    if (const Json* dtype = find_member(tensor, "dtype"); dtype != nullptr && dtype->is_string()) {
      if (const auto known = parse_dtype(dtype->get<std::string>())) {
        bytes = static_cast<double>(dtype_size(*known));
      }
    }
    for (const Json& dimension : tensor_shape(tensor)) {
      if (dimension.is_number()) bytes *= dimension.get<double>();
    }
    return bytes;
  }

  void add_tensor(LayerInfo& layer, std::map<std::string, std::size_t>& by_name,
                  const std::string& name, const Json& tensor, std::int32_t stage, bool is_output,
                  const std::string& pointer) {
    const auto found = by_name.find(name);
    if (is_output) {
      if (found != by_name.end()) {
        fail(file_, pointer, "tensor '" + name + "' is made twice, or read before it is made");
      }
    } else if (found != by_name.end()) {
      StageTensor& known = layer.tensors[found->second];
      if (known.consumers.empty() || known.consumers.back() != stage) {
        known.consumers.push_back(stage);
      }
      return;
    } else if (!is_model_input(name)) {
      fail(file_, pointer,
           "the stage reads '" + name +
               "', which no stage before it makes; a layer's inputs are "
               "x, edge_index and degree");
    }
    StageTensor made;
    made.name = name;
    made.producer = is_output ? stage : 0;
    if (!is_output) made.consumers.push_back(stage);
    const Json& shape = tensor_shape(tensor);
    const std::size_t ns = count_symbol(shape, "n");
    const std::size_t ms = count_symbol(shape, "m");
    if (ns + ms > 1) fail(file_, pointer, "tensor '" + name + "' has more than one of n and m");
    (ns == 1   ? made.node_bytes
     : ms == 1 ? made.edge_bytes
               : made.fixed_bytes) = fixed_bytes(tensor);
    if (name == kFeatureInput && shape.size() == 2 && shape[1].is_number_integer()) {
      layer.input_features = shape[1].get<std::int64_t>();
    }
    by_name.emplace(name, layer.tensors.size());
    layer.tensors.push_back(std::move(made));
  }

  std::string last_output(const LayerInfo& layer, const std::string& pointer) {
    const Json& outputs = *find_member(layer.stages.back().ir, "graph_outputs");
    if (outputs.size() != 1) {
      fail(file_, pointer,
           "the last stage of a layer has one output, found " + std::to_string(outputs.size()));
    }
    return outputs[0]["name"].get<std::string>();
  }

  static void find_local_rows(LayerInfo& layer, const std::vector<bool>& makes_edges) {
    for (std::int32_t s = layer.stage_count(); s >= 1; --s) {
      StageInfo& stage = layer.stages[static_cast<std::size_t>(s - 1)];
      stage.local_rows = makes_edges[static_cast<std::size_t>(s - 1)];
      for (const StageTensor& tensor : layer.tensors) {
        if (tensor.producer == s && tensor.local_rows) stage.local_rows = true;
      }
      if (!stage.local_rows) continue;
      for (StageTensor& tensor : layer.tensors) {
        const bool reads = std::find(tensor.consumers.begin(), tensor.consumers.end(), s) !=
                           tensor.consumers.end();
        if (reads && tensor.node_bytes > 0) tensor.local_rows = true;
      }
    }
    for (StageTensor& tensor : layer.tensors) {
      const auto producer = static_cast<std::size_t>(tensor.producer);
      if (producer > 0 && layer.stages[producer - 1].local_rows && tensor.node_bytes > 0) {
        tensor.local_rows = true;
      }
    }
  }

  void check_features(const StagedModel& model, std::size_t l, const StageTensor& output) {
    LayerInfo& layer = model.layers.size() > l ? const_cast<LayerInfo&>(model.layers[l])
                                               : const_cast<LayerInfo&>(model.layers.back());
    const Json& outputs = *find_member(layer.stages.back().ir, "graph_outputs");
    const Json& shape = tensor_shape(outputs[0]);
    if (shape.size() != 2 || shape[0] != "n" || !shape[1].is_number_integer()) {
      fail(file_, "/stages",
           "the output '" + output.name + "' of layer " + std::to_string(l + 1) + " has shape " +
               shape.dump() + ", expected [\"n\", features]");
    }
    layer.output_features = shape[1].get<std::int64_t>();
    if (layer.input_features == 0) {
      fail(file_, "/stages",
           "no stage of layer " + std::to_string(l + 1) + " reads 'x' of shape [\"n\", features]");
    }
    if (l > 0 && model.layers[l - 1].output_features != layer.input_features) {
      fail(file_, "/stages",
           "layer " + std::to_string(l + 1) + " reads " + std::to_string(layer.input_features) +
               " features, the one before it makes " +
               std::to_string(model.layers[l - 1].output_features));
    }
  }

  const Json& json_;
  const std::string& file_;
  std::map<std::pair<std::size_t, std::size_t>, std::string> pointers_;
};

}  // namespace

bool StageTensor::is_read_in(std::int32_t first, std::int32_t last) const noexcept {
  return std::any_of(consumers.begin(), consumers.end(),
                     [&](std::int32_t consumer) { return consumer >= first && consumer <= last; });
}

bool LayerInfo::reads_other_parts(std::int32_t first, std::int32_t last) const {
  return std::any_of(tensors.begin(), tensors.end(), [&](const StageTensor& tensor) {
    return tensor.local_rows && tensor.node_bytes > 0 && tensor.producer < first &&
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](std::int32_t stage) {
             return stage >= first && stage <= last && stages[index_of(stage - 1)].local_rows;
           });
  });
}

Graph StagedModel::block(std::int32_t layer, std::int32_t first, std::int32_t last,
                         const BlockShape& shape) const {
  const std::string block = name + " layer " + std::to_string(layer) + " stages " +
                            std::to_string(first) + "-" + std::to_string(last);
  Diagnostics diagnostics;
  Graph graph = assemble_graph(cut_block(layers[index_of(layer - 1)], first, last, shape, block),
                               file, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level != Level::kError) continue;
    throw Error(ErrorCode::kInvalidGraph, diagnostic.text, diagnostic.location);
  }
  return graph;
}

StagedModel parse_staged_model(const Json& json, const std::string& file) {
  return Reader(json, file).read();
}

bool is_staged_model(const Json& json) noexcept {
  const Json* npu = find_member(json, "npu");
  return npu != nullptr && find_member(*npu, "kind") != nullptr;
}

StagedModel read_staged_model(const std::string& path) {
  Json json = parse_python_json(read_file(path), path);
  set_non_finite_form(json, NonFiniteForm::kText);
  return parse_staged_model(json, path);
}

std::string path_beside(const std::string& document, const std::string& named) {
  const std::filesystem::path file(named);
  if (file.empty() || file.is_absolute()) return file.string();
  return (std::filesystem::path(document).parent_path() / file).string();
}

std::map<std::string, Tensor> load_staged_weights(const StagedModel& model,
                                                  const std::string& file) {
  const std::string path = file.empty() ? path_beside(model.file, model.weights_file) : file;
  std::map<std::string, Tensor> weights;
  if (path.empty()) return weights;
  const SafetensorsFile content(path);
  for (const SafetensorsEntry& entry : content.entries()) {
    weights[entry.name] = content.tensor(entry);
  }
  return weights;
}

std::string stage_refusal(const StagedModel& model, std::int32_t layer, std::int32_t stage,
                          const Device& device) {
  const Graph graph = model.block(layer, stage, stage, {101, 101, 211});
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    const SupportResult support = check_support(graph, id, device);
    if (!support.supported) return graph.node(id).op_type + ": " + support.reason;
  }
  return {};
}

}  // namespace npu::gnn
