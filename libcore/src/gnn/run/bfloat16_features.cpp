// SPDX-License-Identifier: Apache-2.0
// Halves the bytes of features: products read and write bfloat16 and add in float32, aggregations
// gather it and sum in float32.
//
// Every tensor that is bfloat16 has the name of the float32 one with a suffix, and is cast where a
// program reads it otherwise; what our own kernels read, they read as it is. A sum that a linear
// layer reads is cast in front of it, which find_reductions makes part of the sum. O(nodes of the
// block).
#include "gnn/run/bfloat16_features.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "gnn/run/block_steps.hpp"
#include "gnn/run/find_reductions.hpp"
#include "npu/ir/json_reader.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu::gnn {
namespace {

class Rewriter {
 public:
  Rewriter(Json block, const std::set<std::string>& computed)
      : block_(std::move(block)), computed_(computed) {}

  Json rewrite() {
    const std::string features(kFeatureInput);
    for (Json& input : block_["graph_inputs"]) {
      if (input["name"] != features) continue;
      input["dtype"] = "bfloat16";
      narrow_[features] = input;
    }
    const Json nodes = std::exchange(block_["nodes"], Json::array());
    for (const Json& node : nodes) add(node);
    for (const Json& output : block_["graph_outputs"]) wide(output);
    mark_weights();
    return std::move(block_);
  }

 private:
  static bool has_op(const Json& node, std::initializer_list<const char*> ops) {
    return std::any_of(ops.begin(), ops.end(),
                       [&](const char* op) { return node["op_type"] == op; });
  }

  void add(Json node) {
    const std::string name = node["name"];
    const bool is_computed = computed_.contains(name);
    const bool is_first_narrow =
        !node["inputs"].empty() && narrow_.contains(node["inputs"][0]["name"].get<std::string>());
    if (is_computed && node["op_type"] == "aten.linear.default") {
      node["inputs"][0] = narrow(node["inputs"][0]);
      for (std::size_t i = 1; i < node["inputs"].size(); ++i) make_weight(node["inputs"][i]);
      return add_narrow(std::move(node));
    }
    if (node["op_type"] == "aten.cat.default" && name.ends_with("@weights")) {
      for (Json& input : node["inputs"]) make_weight(input);
      make_weight(node["outputs"][0]);
    } else if (is_first_narrow && has_op(node, {"aten.slice.Tensor", "aten.alias.default",
                                                "aten.view.default", "aten.unsqueeze.default"})) {
      node["inputs"][0] = narrow(node["inputs"][0]);
      return add_narrow(std::move(node));
    } else {
      for (Json& input : node["inputs"]) {
        if (is_computed) {
          input = wide(input);
        } else if (narrow_.contains(input["name"].get<std::string>())) {
          input = narrow(input);
        }
      }
    }
    append(std::move(node));
  }

  // A node whose result is bfloat16. Owned rows of inputs keep their names.
  void add_narrow(Json node) {
    Json& output = node["outputs"][0];
    const std::string name = output["name"];
    output["dtype"] = "bfloat16";
    if (!name.ends_with("@owned")) node["name"] = output["name"] = name + "@bf16";
    narrow_[name] = output;
    append(std::move(node));
  }

  void cast(const Json& from, const Json& to) {
    append({{"name", to["name"]},
            {"op_type", "aten._to_copy.default"},
            {"inputs", Json::array({from})},
            {"outputs", Json::array({to})},
            {"attrs", {{"dtype", "torch." + to["dtype"].get<std::string>()}}}});
  }

  Json narrow(const Json& tensor) {
    const std::string name = tensor["name"];
    const auto known = narrow_.find(name);
    if (known != narrow_.end()) return known->second;
    Json made = tensor;
    made["name"] = name + "@bf16";
    made["dtype"] = "bfloat16";
    cast(tensor, made);
    return narrow_[name] = made;
  }

  // Float32 values of a tensor that may be bfloat16.
  Json wide(const Json& tensor) {
    const std::string name = tensor["name"];
    const auto narrow = narrow_.find(name);
    if (narrow == narrow_.end()) return tensor;
    const auto known = wide_.find(name);
    if (known != wide_.end()) return known->second;
    Json made = tensor;
    made["dtype"] = "float32";
    // Sums were float32 before, and are still there.
    if (narrow->second["name"] == name) made["name"] = name + "@f32";
    if (!produced_.contains(made["name"].get<std::string>())) cast(narrow->second, made);
    return wide_[name] = made;
  }

  void append(Json node) {
    produced_.insert(node["outputs"][0]["name"].get<std::string>());
    block_["nodes"].push_back(std::move(node));
  }

  void make_weight(Json& tensor) {
    tensor["dtype"] = "bfloat16";
    weights_.insert(tensor["name"].get<std::string>());
  }

  void mark_weights() {
    std::set<std::string> keys;
    const Json& mapping = block_["weight_name_mapping"];
    for (const std::string& name : weights_) {
      keys.insert(mapping.contains(name) ? mapping[name].get<std::string>() : name);
    }
    for (Json& weight : block_["weights"]) {
      if (keys.contains(weight["name"].get<std::string>())) weight["dtype"] = "bfloat16";
    }
  }

  Json block_;
  const std::set<std::string>& computed_;  // nodes that programs compute
  std::map<std::string, Json> narrow_;     // bfloat16 tensors by the name of the float32 one
  std::map<std::string, Json> wide_;
  std::set<std::string> weights_;
  std::set<std::string> produced_;  // tensors of the nodes that are written
};

}  // namespace

Json with_bfloat16_features(const Json& block, const BlockShape& shape,
                            const std::map<std::string, Tensor>& weights, const std::string& file) {
  const Graph graph = read_valid_graph(block.dump(), file);
  const std::set<std::string> computed =
      nodes_in_programs(graph, find_reductions(graph, shape.edges, weights));
  return Rewriter(block, computed).rewrite();
}

Tensor to_bfloat16(const Tensor& values, std::int32_t threads) {
  Tensor result(DType::kBFloat16, values.shape());
  const float* from = values.as<float>();
  auto* to = result.as_mutable<std::uint16_t>();
  const auto count = static_cast<std::size_t>(values.element_count());
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  run_pieces((count + kPiece - 1) / kPiece, thread_count(threads), [&](std::size_t piece) {
    const std::size_t end = std::min(count, (piece + 1) * kPiece);
    for (std::size_t i = piece * kPiece; i < end; ++i) to[i] = float_to_bfloat16(from[i]);
  });
  return result;
}

}  // namespace npu::gnn
