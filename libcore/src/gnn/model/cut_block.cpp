// SPDX-License-Identifier: Apache-2.0
// Cuts a block of stages out of a layer as a document with static shapes.
//
// Where a tensor with halo rows is read by a stage of owned rows, the block gets a slice node
// (owned nodes come first). O(stages * nodes of their IR).
#include "gnn/model/cut_block.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace npu::gnn {
namespace {

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

// Cuts stages first..last of a layer out as one document.
class BlockWriter {
 public:
  BlockWriter(const LayerInfo& info, std::int32_t first, std::int32_t last, const BlockShape& shape)
      : info_(info), first_(first), last_(last), shape_(shape) {
    for (const StageTensor& tensor : info.tensors) tensors_[tensor.name] = &tensor;
  }

  Json write(const std::string& name) {
    for (std::int32_t s = first_; s <= last_; ++s) add_stage(stage(s));
    Json document = {{"model_name", name}};
    document["graph_inputs"] = std::move(inputs_);
    document["graph_outputs"] = std::move(outputs_);
    document["weights"] = std::move(weights_);
    document["weight_name_mapping"] = std::move(mapping_);
    document["nodes"] = std::move(nodes_);
    if (!constants_.empty()) document["constants"] = std::move(constants_);
    return document;
  }

 private:
  const StageInfo& stage(std::int32_t number) const {
    return info_.stages[static_cast<std::size_t>(number - 1)];
  }

  void add_stage(const StageInfo& stage) {
    Json ir = stage.ir;
    const std::set<std::string> to_slice = add_inputs(stage);
    for_each_mention(ir, [&](Json& tensor) {
      // Producers may be other nodes than in the stage alone.
      tensor.erase("producer_node");
      tensor.erase("producer_output_idx");
    });
    substitute(ir, stage.local_rows ? shape_.local : shape_.owned, shape_.edges);
    for (const Json& output : ir["graph_outputs"]) {
      const StageTensor& tensor = *tensors_.at(output["name"].get<std::string>());
      if (!tensor.consumers.empty() && tensor.consumers.back() > last_) outputs_.push_back(output);
    }
    for (Json& node : ir["nodes"]) {
      if (!to_slice.empty()) read_slices(to_slice, node);
      nodes_.push_back(std::move(node));
    }
    if (const Json* list = find_member(ir, "weights")) {
      for (const Json& weight : *list) weights_.push_back(weight);
    }
    merge(find_member(ir, "weight_name_mapping"), mapping_);
    merge(find_member(ir, "constants"), constants_);
  }

  static void read_slices(const std::set<std::string>& to_slice, Json& node) {
    for (Json& input : node["inputs"]) {
      const std::string name = input["name"].get<std::string>();
      if (to_slice.contains(name)) input["name"] = name + "@owned";
    }
  }

  static void merge(const Json* members, Json& into) {
    if (members == nullptr) return;
    for (const auto& [key, value] : members->items()) into[key] = value;
  }

  // The inputs of a stage that come from outside of the block. Returns those that the stage reads
  // with owned rows although they have halo rows here: they are sliced.
  std::set<std::string> add_inputs(const StageInfo& stage) {
    std::set<std::string> to_slice;
    for (const Json& input : stage.ir["graph_inputs"]) {
      const std::string name = input["name"].get<std::string>();
      const StageTensor& tensor = *tensors_.at(name);
      const bool wide = has_halo_rows(tensor);
      if (tensor.producer < first_ && listed_.insert(name).second) {
        Json mention = input;
        substitute(mention, wide ? shape_.local : shape_.owned, shape_.edges);
        inputs_.push_back(mention);
      }
      if (!wide || stage.local_rows) continue;
      to_slice.insert(name);
      if (sliced_.insert(name).second) nodes_.push_back(slice_of(input, name));
    }
    return to_slice;
  }

  // Whether the tensor has rows for halo nodes in this block: made inside with them, or read by a
  // stage that needs them.
  bool has_halo_rows(const StageTensor& tensor) const {
    if (!tensor.local_rows || shape_.local == shape_.owned) return false;
    return tensor.producer >= first_ ||
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](std::int32_t c) {
             return c >= first_ && c <= last_ && stage(c).local_rows;
           });
  }

  // The node that takes the owned rows of a tensor, which come first.
  Json slice_of(const Json& input, const std::string& name) const {
    Json wide = input;
    Json narrow = input;
    substitute(wide, shape_.local, shape_.edges);
    substitute(narrow, shape_.owned, shape_.edges);
    narrow["name"] = name + "@owned";
    narrow.erase("producer_node");
    wide.erase("producer_node");
    return {{"name", name + "@owned"},
            {"op_type", "aten.slice.Tensor"},
            {"inputs", Json::array({wide})},
            {"outputs", Json::array({narrow})},
            {"attrs", {{"dim", 0}, {"start", 0}, {"end", shape_.owned}}}};
  }

  const LayerInfo& info_;
  std::int32_t first_;
  std::int32_t last_;
  const BlockShape& shape_;
  std::map<std::string, const StageTensor*> tensors_;
  Json inputs_ = Json::array();
  Json outputs_ = Json::array();
  Json weights_ = Json::array();
  Json mapping_ = Json::object();
  Json nodes_ = Json::array();
  Json constants_ = Json::object();
  std::set<std::string> listed_;  // inputs of the block
  std::set<std::string> sliced_;
};

}  // namespace

Json cut_block(const LayerInfo& layer, std::int32_t first, std::int32_t last,
               const BlockShape& shape, const std::string& name) {
  return BlockWriter(layer, first, last, shape).write(name);
}

}  // namespace npu::gnn
