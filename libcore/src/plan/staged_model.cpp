// SPDX-License-Identifier: Apache-2.0
// Reads models that are a sequence of stages, and cuts blocks of stages out as documents with
// static shapes.
//
// A stage that makes something per edge looks at both ends of it, so whatever it reads per node
// needs rows for halo nodes; so does, by induction, what makes that. Every other stage computes the
// owned nodes alone. Where a tensor with halo rows is read by a stage of owned rows, a block gets a
// slice node (owned nodes come first). O(stages * nodes of their IR) for each block.
#include "npu/plan/staged_model.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "npu/graph/metis_partitioner.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/support_check.hpp"

namespace npu {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& pointer,
                       const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, text, {.file = file, .pointer = pointer});
}

bool is_model_input(std::string_view name) {
  return name == kFeatureInput || name == kEdgeInput || name == kDegreeInput;
}

// Replaces the strings "n" and "m" in arrays (shapes, and sizes among attributes).
void substitute(Json& json, std::int64_t n, std::int64_t m) {
  if (json.is_array()) {
    for (Json& element : json) {
      if (element.is_string()) {
        if (element == "n") element = n;
        if (element == "m") element = m;
      } else {
        substitute(element, n, m);
      }
    }
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) substitute(value, n, m);
  }
}

// Every mention of a tensor in a document, as a mutable object.
template <typename Visit>
void for_each_mention(Json& ir, Visit visit) {
  for (const char* key : {"graph_inputs", "graph_outputs", "weights"}) {
    if (Json* list = find_member(ir, key)) {
      for (Json& tensor : *list) visit(tensor);
    }
  }
  if (Json* nodes = find_member(ir, "nodes")) {
    for (Json& node : *nodes) {
      for (const char* key : {"inputs", "outputs"}) {
        if (Json* list = find_member(node, key)) {
          for (Json& tensor : *list) visit(tensor);
        }
      }
    }
  }
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
    model.hash = partition_hash(letters);
    return model;
  }

 private:
  void add_stage(StagedModel& model, const Json& json, std::size_t index) {
    const std::string pointer = "/stages/" + std::to_string(index);
    if (!json.is_object()) fail(file_, pointer, "expected an object");
    const Json* ir = find_member(json, "ir");
    if (ir == nullptr || !ir->is_object()) fail(file_, pointer + "/ir", "expected a document");
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
        const Json* list = find_member(stage.ir, key);
        if (list == nullptr || !list->is_array()) {
          fail(file_, pointer, "the key '" + std::string(key) + "' is missing");
        }
        for (const Json& tensor : *list) {
          const Json* name = find_member(tensor, "name");
          if (name == nullptr || !name->is_string()) fail(file_, pointer, "a tensor has no name");
          const bool is_output = std::string_view(key) == "graph_outputs";
          add_tensor(layer, by_name, *name, tensor, s, is_output, pointer);
          if (is_output && count_symbol(tensor_shape(tensor), "m") > 0) {
            makes_edges[static_cast<std::size_t>(s - 1)] = true;
          }
        }
      }
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
    const Json whole =
        model.block(static_cast<std::int32_t>(l) + 1, 1, layer.stage_count(), {101, 103, 211});
    read_graph(whole.dump(), file_, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.entries()) {
      if (diagnostic.level == Level::kError) {
        fail(file_, "/stages",
             "layer " + std::to_string(l + 1) + " is not valid: " + diagnostic.text);
      }
    }
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

Json StagedModel::block(std::int32_t layer, std::int32_t first, std::int32_t last,
                        const BlockShape& shape) const {
  const LayerInfo& info = layers[static_cast<std::size_t>(layer - 1)];
  std::map<std::string, const StageTensor*> tensors;
  for (const StageTensor& tensor : info.tensors) tensors[tensor.name] = &tensor;
  Json document = {{"model_name", name + " layer " + std::to_string(layer) + " stages " +
                                      std::to_string(first) + "-" + std::to_string(last)}};
  Json inputs = Json::array();
  Json outputs = Json::array();
  Json weights = Json::array();
  Json mapping = Json::object();
  Json nodes = Json::array();
  Json constants = Json::object();
  std::set<std::string> listed;
  std::set<std::string> sliced;
  for (std::int32_t s = first; s <= last; ++s) {
    const StageInfo& stage = info.stages[static_cast<std::size_t>(s - 1)];
    const std::int64_t rows = stage.local_rows ? shape.local : shape.owned;
    Json ir = stage.ir;
    // What the stage reads with owned rows although it has halo rows is sliced.
    std::set<std::string> to_slice;
    for (const Json& input : ir["graph_inputs"]) {
      const std::string input_name = input["name"].get<std::string>();
      const StageTensor& tensor = *tensors.at(input_name);
      const bool inside = tensor.producer >= first;
      const bool wide = tensor.local_rows && shape.local != shape.owned;
      const bool wide_here =
          wide &&
          (inside ||
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](std::int32_t c) {
             return c >= first && c <= last &&
                    info.stages[static_cast<std::size_t>(c - 1)].local_rows;
           }));
      if (!inside && listed.insert(input_name).second) {
        Json mention = input;
        substitute(mention, wide_here ? shape.local : shape.owned, shape.edges);
        inputs.push_back(mention);
      }
      if (wide_here && !stage.local_rows) {
        to_slice.insert(input_name);
        if (sliced.insert(input_name).second) {
          Json wide_mention = input;
          Json narrow = input;
          substitute(wide_mention, shape.local, shape.edges);
          substitute(narrow, shape.owned, shape.edges);
          narrow["name"] = input_name + "@owned";
          narrow.erase("producer_node");
          wide_mention.erase("producer_node");
          nodes.push_back({{"name", input_name + "@owned"},
                           {"op_type", "aten.slice.Tensor"},
                           {"inputs", Json::array({wide_mention})},
                           {"outputs", Json::array({narrow})},
                           {"attrs", {{"dim", 0}, {"start", 0}, {"end", shape.owned}}}});
        }
      }
    }
    for_each_mention(ir, [&](Json& tensor) {
      // Producers may be other nodes than in the stage alone.
      tensor.erase("producer_node");
      tensor.erase("producer_output_idx");
    });
    substitute(ir, rows, shape.edges);
    for (const Json& output : ir["graph_outputs"]) {
      const StageTensor& tensor = *tensors.at(output["name"].get<std::string>());
      if (!tensor.consumers.empty() && tensor.consumers.back() > last) outputs.push_back(output);
    }
    if (!to_slice.empty()) {
      for (Json& node : ir["nodes"]) {
        for (Json& input : node["inputs"]) {
          const std::string input_name = input["name"].get<std::string>();
          if (to_slice.contains(input_name)) input["name"] = input_name + "@owned";
        }
      }
    }
    for (Json& node : ir["nodes"]) nodes.push_back(std::move(node));
    if (const Json* list = find_member(ir, "weights")) {
      for (const Json& weight : *list) weights.push_back(weight);
    }
    if (const Json* list = find_member(ir, "weight_name_mapping")) {
      for (const auto& [key, value] : list->items()) mapping[key] = value;
    }
    if (const Json* list = find_member(ir, "constants")) {
      for (const auto& [key, value] : list->items()) constants[key] = value;
    }
  }
  document["graph_inputs"] = std::move(inputs);
  document["graph_outputs"] = std::move(outputs);
  document["weights"] = std::move(weights);
  document["weight_name_mapping"] = std::move(mapping);
  document["nodes"] = std::move(nodes);
  if (!constants.empty()) document["constants"] = std::move(constants);
  return document;
}

StagedModel parse_staged_model(const Json& json, const std::string& file) {
  return Reader(json, file).read();
}

bool is_staged_model(const Json& json) noexcept {
  const Json* npu = find_member(json, "npu");
  return npu != nullptr && find_member(*npu, "kind") != nullptr;
}

StagedModel read_staged_model(const std::string& path) {
  return parse_staged_model(parse_json(read_file(path), path), path);
}

std::string stage_refusal(const StagedModel& model, std::int32_t layer, std::int32_t stage,
                          const Device& device) {
  const Json document = model.block(layer, stage, stage, {101, 101, 211});
  const Graph graph = read_valid_graph(document.dump(), model.file);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const NodeId id{static_cast<std::int32_t>(i)};
    const SupportResult support = check_support(graph, id, device);
    if (!support.supported) return graph.node(id).op_type + ": " + support.reason;
  }
  return {};
}

}  // namespace npu
