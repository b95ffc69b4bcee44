// SPDX-License-Identifier: Apache-2.0
// The layouts of values between partitions, so that no reorder stands between two that agree.
//
// Input:  a plan, and what the backends answer to feature "layouts" of npu/backend.h.
// Output: a layout for each value that one device makes and it alone reads. Everything else is
// row-major: outputs of the graph, and values that cross to another device.
// Partitions are asked in the order in which they run: a partition hears how its inputs could come,
// so that a layout goes on through one that only hands it on. If another reader then refuses, the
// answers that built on it are still right, but may cost a reorder. O(boundary tensors) besides the
// backends' work.
#include "compile/boundary_layouts.hpp"

#include <algorithm>
#include <set>

#include "support/text.hpp"

namespace npu {
namespace {

/// A value that goes from one partition of a device to others of it, and nowhere else.
struct Crossing {
  std::size_t producer = 0;
  std::vector<std::size_t> consumers;
};

/// What a transfer takes to another device than that which makes it. A plan may list transfers of
/// what is there already, too (strategy contiguous does), which moves nothing.
std::set<TensorId> find_moved(const PartitionPlan& plan) {
  std::map<TensorId, const std::string*> makers;
  for (const Partition& partition : plan.partitions) {
    for (const TensorId id : partition.boundary.outputs) makers.emplace(id, &partition.device);
  }
  std::set<TensorId> moved;
  for (const Transfer& transfer : plan.transfers) {
    for (const TensorId id : transfer.tensors) {
      const auto maker = makers.find(id);
      const bool stays = maker != makers.end() && *maker->second == transfer.to_device;
      if (!stays) moved.insert(id);
    }
  }
  return moved;
}

std::map<TensorId, Crossing> find_crossings(const Graph& graph, const PartitionPlan& plan) {
  const std::set<TensorId> outputs(graph.graph_outputs().begin(), graph.graph_outputs().end());
  std::map<TensorId, Crossing> crossings;
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    for (const TensorId id : plan.partitions[p].boundary.outputs) {
      if (!outputs.contains(id) && graph.tensor(id).bytes() > 0) crossings[id].producer = p;
    }
  }
  for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
    for (const TensorId id : plan.partitions[p].boundary.inputs) {
      const auto found = crossings.find(id);
      if (found != crossings.end()) found->second.consumers.push_back(p);
    }
  }
  const std::set<TensorId> moved = find_moved(plan);
  std::erase_if(crossings, [&](const auto& entry) {
    const Crossing& crossing = entry.second;
    const std::string& device = plan.partitions[crossing.producer].device;
    return crossing.consumers.empty() || moved.contains(entry.first) ||
           std::any_of(crossing.consumers.begin(), crossing.consumers.end(),
                       [&](std::size_t p) { return plan.partitions[p].device != device; });
  });
  return crossings;
}

std::string layout_text(const std::string& layout) {
  return layout.empty() ? "row-major" : "in layout '" + printable_text(layout) + "'";
}

}  // namespace

BoundaryLayouts agree_layouts(const Graph& graph, const PartitionPlan& plan,
                              const std::function<bool(const std::string& device)>& takes_part,
                              const LayoutQuestion& ask) {
  std::map<TensorId, Crossing> crossings = find_crossings(graph, plan);
  std::erase_if(crossings, [&](const auto& entry) {
    return !takes_part(plan.partitions[entry.second.producer].device);
  });
  std::map<TensorId, std::vector<std::string>> common;  // that nobody has refused yet
  for (const PlanStep& step : plan.steps) {
    if (step.kind != PlanStep::Kind::kPartition) continue;
    const auto p = static_cast<std::size_t>(step.index);
    const SubgraphBoundary& boundary = plan.partitions[p].boundary;
    LayoutNames inputs;
    for (const TensorId id : boundary.inputs) {
      const auto found = common.find(id);
      if (found == common.end() || found->second.empty()) continue;
      inputs[graph.tensor(id).name] = found->second.front();
    }
    const bool has_outputs = std::any_of(boundary.outputs.begin(), boundary.outputs.end(),
                                         [&](TensorId id) { return crossings.contains(id); });
    if (inputs.empty() && !has_outputs) continue;
    const LayoutOffers offers = ask(p, inputs);
    const auto offered = [&](TensorId id) {
      const auto found = offers.find(graph.tensor(id).name);
      return found == offers.end() ? std::vector<std::string>() : found->second;
    };
    for (const TensorId id : boundary.inputs) {
      const auto found = common.find(id);
      if (found == common.end()) continue;
      const std::vector<std::string> taken = offered(id);
      std::erase_if(found->second, [&](const std::string& layout) {
        return std::find(taken.begin(), taken.end(), layout) == taken.end();
      });
    }
    for (const TensorId id : boundary.outputs) {
      if (crossings.contains(id)) common[id] = offered(id);
    }
  }
  BoundaryLayouts agreed;
  for (const auto& [id, layouts] : common) {
    if (!layouts.empty()) agreed.emplace(id, layouts.front());
  }
  return agreed;
}

LayoutNames layouts_of(const Graph& graph, const Partition& partition,
                       const BoundaryLayouts& layouts) {
  LayoutNames names;
  for (const auto* list : {&partition.boundary.inputs, &partition.boundary.outputs}) {
    for (const TensorId id : *list) {
      const auto found = layouts.find(id);
      if (found != layouts.end()) names[graph.tensor(id).name] = found->second;
    }
  }
  return names;
}

bool may_refuse_layouts(const BackendError& error) {
  return error.status() == NPU_UNSUPPORTED || error.status() == NPU_INVALID;
}

std::string compile_options_text(const std::string& precision, const LayoutNames& layouts) {
  Json json = {{"precision", precision}};
  if (!layouts.empty()) json["boundary_layouts"] = layouts;
  return json.dump();
}

Json offers_json(const LayoutOffers& offers) {
  Json json = Json::object();
  for (const auto& [tensor, layouts] : offers) json[tensor] = layouts;
  return json;
}

std::optional<LayoutOffers> read_offers_json(const Json& json) {
  LayoutOffers offers;
  if (!json.is_object()) return std::nullopt;
  for (const auto& [tensor, layouts] : json.items()) {
    for (const Json& layout : layouts) {
      const auto* name = layout.get_ptr<const std::string*>();
      if (name == nullptr) return std::nullopt;
      offers[tensor].push_back(*name);
    }
  }
  return offers;
}

void check_layouts(const Graph& graph, const PartitionPlan& plan,
                   const std::vector<CompiledPartition>& compiled) {
  if (std::all_of(compiled.begin(), compiled.end(),
                  [](const CompiledPartition& each) { return each.layouts.empty(); })) {
    return;
  }
  const auto refuse = [](std::size_t partition, const std::string& text) {
    throw Error(ErrorCode::kInvalidGraph, "partition " + std::to_string(partition) + text);
  };
  const std::set<TensorId> moved = find_moved(plan);
  struct Known {
    std::size_t partition = 0;
    std::string layout;
  };
  std::map<std::pair<TensorId, std::string>, Known> seen;  // by tensor and device
  for (std::size_t p = 0; p < compiled.size(); ++p) {
    const Partition& partition = plan.partitions[p];
    const LayoutNames& layouts = compiled[p].layouts;
    std::size_t used = 0;
    for (const auto* list : {&partition.boundary.inputs, &partition.boundary.outputs}) {
      for (const TensorId id : *list) {
        const std::string& name = graph.tensor(id).name;
        const auto found = layouts.find(name);
        const Known own{p, found == layouts.end() ? "" : found->second};
        const auto [other, is_new] = seen.try_emplace({id, partition.device}, own);
        if (!is_new && other->second.layout != own.layout) {
          refuse(p, " has '" + name + "' " + layout_text(own.layout) + ", partition " +
                        std::to_string(other->second.partition) + " " +
                        layout_text(other->second.layout));
        }
        if (own.layout.empty()) continue;
        ++used;
        if (moved.contains(id)) {
          refuse(p, " has '" + name + "' " + layout_text(own.layout) +
                        ", which goes to another device and has to be row-major");
        }
      }
    }
    if (used != layouts.size()) refuse(p, " has the layout of a tensor that is none of its own");
  }
  for (std::size_t p = 0; p < compiled.size(); ++p) {
    if (compiled[p].layouts.empty()) continue;
    if (!Backend::load(compiled[p].backend)->has_feature("layouts")) {
      refuse(p, " has layouts, but backend '" + compiled[p].backend + "' knows of none");
    }
  }
}

}  // namespace npu
