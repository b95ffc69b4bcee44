// SPDX-License-Identifier: Apache-2.0
// Whether a layer only sums rows of its input over edges.
//
// Every tensor of the layer is classed by what it holds: the input, numbers of sources or targets,
// gathered rows of the input, ones for edges, or anything per node. Gathered rows may be renamed
// and added up by target, ones may be added up by target; every other use of a value per edge is
// the reason to refuse. Attention, normalised edges and maxima fail here. O(nodes).
#include "gnn/model/edge_sums.hpp"

#include <cstdint>
#include <map>
#include <optional>

#include "npu/support/json.hpp"

namespace npu::gnn {
namespace {

enum class Held : std::uint8_t { kPerNode, kInput, kEdges, kSources, kTargets, kRows, kOnes };

class EdgeUse {
 public:
  std::string refusal(const LayerInfo& layer) {
    for (const StageInfo& stage : layer.stages) {
      for (const Json& node : stage.ir.at("nodes")) {
        const std::optional<Held> result = result_of(node);
        if (!result) {
          return "stage '" + stage.name + "' does more with edges than to sum rows of its input";
        }
        for (const Json& output : node.at("outputs")) held_[name_of(output)] = *result;
      }
    }
    return {};
  }

 private:
  static std::string name_of(const Json& tensor) { return tensor.at("name").get<std::string>(); }

  Held held(const Json& node, std::size_t input) const {
    const Json& inputs = node.at("inputs");
    if (input >= inputs.size()) return Held::kPerNode;
    const auto found = held_.find(name_of(inputs[input]));
    return found == held_.end() ? Held::kPerNode : found->second;
  }

  // What a node's results hold; nothing if it uses a value per edge in another way.
  std::optional<Held> result_of(const Json& node) const {
    const std::string op = node.at("op_type").get<std::string>();
    const Held first = held(node, 0);
    if (op == "aten.alias.default") return first;
    if (op == "aten.select.int" && first == Held::kEdges) {
      const std::int64_t index = node.at("attrs").value("index", std::int64_t{-1});
      if (index != 0 && index != 1) return std::nullopt;
      return index == 0 ? Held::kSources : Held::kTargets;
    }
    const bool gathers = op == "aten.embedding.default" || op == "aten.index_select.default";
    if (gathers && first == Held::kInput && held(node, 1) == Held::kSources) return Held::kRows;
    if (op == "aten.ones.default" && is_per_edge(node)) return Held::kOnes;
    if (op == "aten.index_add.default" && held(node, 1) == Held::kTargets &&
        (held(node, 2) == Held::kRows || held(node, 2) == Held::kOnes)) {
      return is_whole(first) ? std::optional(Held::kPerNode) : std::nullopt;
    }
    for (std::size_t i = 0; i < node.at("inputs").size(); ++i) {
      if (!is_whole(held(node, i))) return std::nullopt;
    }
    return Held::kPerNode;
  }

  static bool is_whole(Held held) { return held == Held::kPerNode || held == Held::kInput; }

  static bool is_per_edge(const Json& node) {
    const auto size = node.at("attrs").find("size");
    return size != node.at("attrs").end() && size->is_array() && size->size() == 1 &&
           (*size)[0] == "m";
  }

  std::map<std::string, Held> held_{{std::string(kFeatureInput), Held::kInput},
                                    {std::string(kEdgeInput), Held::kEdges}};
};

}  // namespace

std::string edge_sum_refusal(const LayerInfo& layer) { return EdgeUse().refusal(layer); }

std::string edge_sum_refusal(const StagedModel& model) {
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const std::string refusal = edge_sum_refusal(model.layers[l]);
    if (!refusal.empty()) return "layer " + std::to_string(l + 1) + ": " + refusal;
  }
  return {};
}

}  // namespace npu::gnn
