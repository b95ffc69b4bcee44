// SPDX-License-Identifier: Apache-2.0
// Collects from a document what the choice of layouts depends on: the mode that the rules of a
// device give each op, the units that get one mode, and the tensors between them.
//
// The rules, first match wins: an existing channel_norm by its direction; dev_info; results without
// an aligned form (dtype, rank); ops and classes that the target's `align` section names; slices;
// everything else takes both. O(nodes + edges), apart from sorting the uses of a tensor.
#include "passes/align/align_problem.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "ir/stated_partition.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/schema.hpp"
#include "support/checked.hpp"
#include "support/json_fields.hpp"

namespace npu::align {
namespace {

bool contains(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool has_form(const TensorInfo& tensor, const AlignRules& rules) {
  return rules.dtypes.empty() ? has_aligned_form(tensor.dtype)
                              : contains(rules.dtypes, tensor.dtype);
}

// ---- modes ----

std::optional<AlignMode> mode_named(std::string_view text) {
  std::string upper;
  for (const char c : text) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const AlignMode mode : {AlignMode::kAlign, AlignMode::kNalign, AlignMode::kBoth}) {
    if (align_mode_name(mode) == upper) return mode;
  }
  return std::nullopt;
}

// dev_info may also name a device, which is npu-tag's business.
std::optional<AlignMode> pinned_mode(const Node& node) {
  const Json* info = find_member(node.json, "dev_info");
  if (info == nullptr) return std::nullopt;
  if (info->is_object()) {
    for (const std::string_view key : {"align_mode", "align", "layout"}) {
      const std::string* name = member_text(*info, key);
      if (name == nullptr) continue;
      if (const auto mode = mode_named(*name)) return mode;
    }
    return std::nullopt;
  }
  const std::string* name = json_text(info);
  return name == nullptr ? std::nullopt : mode_named(*name);
}

// As Python clips the bounds of a slice.
std::int64_t clipped(std::int64_t bound, std::int64_t size) {
  if (bound < 0) bound += size;
  return std::clamp<std::int64_t>(bound, 0, size);
}

// True if a slice begins within the channels and ends at a multiple: such a piece of an aligned
// tensor is no aligned tensor.
bool cuts_channels(const Graph& graph, const Node& node, const AlignRules& rules) {
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || node.inputs.empty()) return false;
  BindError error;
  const auto bound = BoundNode::try_bind(graph, node, op->schema, error);
  if (!bound) return false;
  const Shape& shape = graph.tensor(node.inputs.front()).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto from_front = [&](std::int64_t axis) { return axis < 0 ? axis + rank : axis; };
  const std::int64_t axis = from_front(bound->find("dim") == nullptr ? 0 : bound->integer("dim"));
  if (axis != from_front(*rules.slice_axis) || axis < 0 || axis >= rank) return false;
  const std::int64_t size = shape[index_of(axis)];
  const auto value = [&](std::string_view name, std::int64_t otherwise) {
    const BoundArgument* argument = bound->find(name);
    if (argument == nullptr || argument->kind != BoundArgument::Kind::kValue ||
        !argument->value.is_number_integer()) {
      return otherwise;
    }
    return bound->integer(name);
  };
  const std::int64_t start = clipped(value("start", 0), size);
  const std::int64_t length = value("length", -1);
  const std::int64_t end =
      length >= 0 ? std::min(length, size - start) + start : clipped(value("end", size), size);
  return start > 0 && end % rules.channel_multiple == 0;
}

NodeMode rule_mode(const Graph& graph, NodeId id, const AlignRules& rules,
                   Diagnostics& diagnostics) {
  const Node& node = graph.node(id);
  if (node.op_type == kChannelNorm) {
    return {converts_to_nalign(node) ? AlignMode::kNalign : AlignMode::kAlign, "channel_norm"};
  }
  const auto without_form = std::find_if(node.outputs.begin(), node.outputs.end(), [&](TensorId t) {
    return !has_form(graph.tensor(t), rules);
  });
  if (const auto pinned = pinned_mode(node)) {
    if (*pinned == AlignMode::kNalign || without_form == node.outputs.end()) {
      return {*pinned, "dev_info"};
    }
    diagnostics.warning(
        graph.location(id, "/dev_info"),
        fmt::format("node '{}' cannot be {}: its result '{}' is {}, which has no "
                    "aligned form",
                    node.name, align_mode_name(*pinned), graph.tensor(*without_form).name,
                    dtype_name(graph.tensor(*without_form).dtype)));
  }
  if (without_form != node.outputs.end()) return {AlignMode::kNalign, "dtype"};
  for (const TensorId output : node.outputs) {
    const auto rank = static_cast<std::int64_t>(graph.tensor(output).shape.size());
    if (contains(rules.ranks, rank)) continue;
    return {AlignMode::kNalign, rank % 2 == 1 ? "odd-rank" : "rank"};
  }
  if (contains(rules.align_only_ops, node.op_type)) return {AlignMode::kAlign, "op"};
  if (contains(rules.nalign_only_ops, node.op_type)) return {AlignMode::kNalign, "op"};
  const AlignClass own = align_class(node.op_type);
  if (contains(rules.align_only_classes, own)) return {AlignMode::kAlign, align_class_name(own)};
  if (contains(rules.nalign_only_classes, own)) return {AlignMode::kNalign, align_class_name(own)};
  if (own == AlignClass::kSlice && rules.slice_axis) {
    return {cuts_channels(graph, node, rules) ? AlignMode::kNalign : AlignMode::kAlign, "slice"};
  }
  const BroadcastOperands broadcast(graph, node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (broadcast.contains(i)) return {AlignMode::kBoth, "broadcast"};
  }
  return {AlignMode::kBoth, "both"};
}

// ---- the builder ----

class ProblemBuilder {
 public:
  ProblemBuilder(const Graph& graph, const AlignOptions& options, Diagnostics& diagnostics)
      : graph_(graph), options_(options), diagnostics_(diagnostics) {}

  Problem build() {
    problem_.region_of.assign(graph_.nodes().size(), -1);
    problem_.node_modes.resize(graph_.nodes().size());
    problem_.unit_of.assign(graph_.nodes().size(), -1);
    find_regions();
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (problem_.region_of[n] < 0) continue;
      const Region& region = problem_.regions[index_of(problem_.region_of[n])];
      problem_.node_modes[n] = rule_mode(graph_, id_at<NodeId>(n), region.rules, diagnostics_);
    }
    make_units();
    make_values();
    return std::move(problem_);
  }

 private:
  // ---- regions ----

  std::int32_t add_region(const std::string& device, std::int64_t partition,
                          const AlignRules& rules) {
    problem_.regions.push_back({device, partition, rules});
    return static_cast<std::int32_t>(problem_.regions.size() - 1);
  }

  void find_regions() {
    const bool tagged = graph_.npu_member("target") != nullptr;
    if (tagged && !options_.target.empty()) {
      diagnostics_.warning({.file = graph_.file},
                           "--target " + options_.target +
                               " is ignored: the document is tagged for a target of its own");
    }
    if (!tagged && options_.target.empty()) {
      AlignRules rules;
      rules.to_align = rules.to_nalign = {.latency_us = 1, .bandwidth = 10e9};
      return assign_regions({{"npu", rules}}, true);
    }
    const Target target = tagged ? graph_target(graph_) : load_target(options_.target);
    std::vector<std::pair<std::string, AlignRules>> devices;
    for (const Device& device : target.devices) {
      if (device.align.is_object()) devices.emplace_back(device.name, align_rules(device));
    }
    if (devices.empty()) {
      diagnostics_.warning({.file = graph_.file},
                           fmt::format("no device of target '{}' has an 'align' section; there is "
                                       "nothing to align",
                                       target.name));
      return;
    }
    assign_regions(devices, !tagged);
  }

  void assign_regions(const std::vector<std::pair<std::string, AlignRules>>& devices, bool bare) {
    const auto rules_of = [&](const Node& node) -> const std::pair<std::string, AlignRules>* {
      if (!node.device) return bare ? &devices.front() : nullptr;
      for (const auto& device : devices) {
        if (device.first == *node.device) return &device;
      }
      return nullptr;
    };
    const std::vector<std::int64_t> partition_of = listed_partitions(graph_);
    std::unordered_map<std::string, std::int32_t> region_of;  // by device and partition
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!node.device && !bare) {
        throw Error(ErrorCode::kInvalidGraph,
                    "node '" + node.name + "' has no device; run npu-tag first",
                    graph_.location(id_at<NodeId>(n)));
      }
      const auto* device = rules_of(node);
      if (device == nullptr) continue;
      const std::int64_t partition = partition_of.empty() ? -1 : partition_of[n];
      const auto [where, added] =
          region_of.emplace(device->first + "\n" + std::to_string(partition), 0);
      if (added) where->second = add_region(device->first, partition, device->second);
      problem_.region_of[n] = where->second;
    }
  }

  // ---- units ----

  // Where the results that a getitem selects from come from.
  NodeId list_producer(const Node& node) const {
    if (node.op_type != kGetitem || node.inputs.empty()) return {};
    return graph_.tensor(node.inputs.front()).producer;
  }

  void make_units() {
    // Groups first, so that a split one falls apart into single nodes.
    struct Pins {
      NodeId aligned, unaligned;
    };
    std::unordered_map<std::int64_t, Pins> pins;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const auto group = graph_.nodes()[n].fusion_group;
      if (!group || problem_.region_of[n] < 0) continue;
      const AlignMode mode = problem_.node_modes[n].mode;
      Pins& of_group = pins[*group];
      const NodeId id = id_at<NodeId>(n);
      if (is_indifferent(id)) continue;
      if (mode == AlignMode::kAlign && !of_group.aligned.valid()) of_group.aligned = id;
      if (mode == AlignMode::kNalign && !of_group.unaligned.valid()) of_group.unaligned = id;
    }
    std::unordered_map<std::string, std::int32_t> unit_of_group;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      if (problem_.region_of[n] < 0) continue;
      const NodeId id = id_at<NodeId>(n);
      const Node& node = graph_.nodes()[n];
      const std::int32_t region = problem_.region_of[n];
      std::int32_t unit = -1;
      if (const NodeId from = list_producer(node);
          from.valid() && problem_.region_of[index_of(from)] == region) {
        unit = problem_.unit_of[index_of(from)];
      }
      if (unit < 0 && node.fusion_group && node.op_type != kChannelNorm) {
        const Pins& of_group = pins[*node.fusion_group];
        if (of_group.aligned.valid() && of_group.unaligned.valid()) {
          note_split(*node.fusion_group, of_group.aligned, of_group.unaligned);
        } else {
          const auto [where, added] =
              unit_of_group.emplace(fmt::format("{} {}", *node.fusion_group, region), next_unit());
          unit = where->second;
        }
      }
      if (unit < 0) unit = next_unit();
      add_member(unit, id);
    }
  }

  // True if a rule pins an op whose tensors are all the same bytes in both layouts, such as a
  // flatten after a global pooling. It follows its group.
  bool is_indifferent(NodeId id) const {
    const NodeMode& mode = problem_.node_modes[index_of(id)];
    if (mode.rule == "dev_info" || mode.rule == "channel_norm") return false;
    const Node& node = graph_.node(id);
    const AlignRules& rules = problem_.regions[index_of(problem_.region_of[index_of(id)])].rules;
    const auto same = [&](TensorId tensor) {
      return graph_.tensor(tensor).kind == TensorKind::kWeight ||
             !same_in_both(graph_.tensor(tensor), rules).empty();
    };
    return std::all_of(node.inputs.begin(), node.inputs.end(), same) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), same);
  }

  std::int32_t next_unit() const { return static_cast<std::int32_t>(problem_.units.size()); }

  void add_member(std::int32_t unit, NodeId id) {
    if (unit == next_unit()) {
      Unit& fresh = problem_.units.emplace_back();
      fresh.region = problem_.region_of[index_of(id)];
      fresh.mode = problem_.node_modes[index_of(id)];
      fresh.decisive = id;
      fresh.is_channel_norm = graph_.node(id).op_type == kChannelNorm;
    }
    Unit& joined = problem_.units[index_of(unit)];
    joined.members.push_back(id);
    problem_.unit_of[index_of(id)] = unit;
    // The producer of a list decides for its getitems; in a group at most one mode is pinned, but
    // for indifferent members.
    const NodeMode& own = problem_.node_modes[index_of(id)];
    if (own.mode != AlignMode::kBoth &&
        (joined.mode.mode == AlignMode::kBoth ||
         (own.mode != joined.mode.mode && is_indifferent(joined.decisive) &&
          !is_indifferent(id)))) {
      joined.mode = problem_.node_modes[index_of(id)];
      joined.decisive = id;
    }
  }

  void note_split(std::int64_t group, NodeId aligned, NodeId unaligned) {
    if (!problem_.split_groups.insert(group).second) return;
    problem_.splits.push_back(
        {.group = group,
         .groups = {},
         .aligned = graph_.node(aligned).name,
         .aligned_rule = std::string(problem_.node_modes[index_of(aligned)].rule),
         .unaligned = graph_.node(unaligned).name,
         .unaligned_rule = std::string(problem_.node_modes[index_of(unaligned)].rule)});
  }

  // ---- values ----

  std::int32_t add_value(TensorId id, std::int32_t region, std::int32_t producer) {
    const TensorInfo& tensor = graph_.tensor(id);
    const AlignRules& rules = problem_.regions[index_of(region)].rules;
    Value value;
    value.tensor = id;
    value.region = region;
    value.producer = producer;
    value.why_not = same_in_both(tensor, rules);
    value.can_differ = value.why_not.empty();
    value.plain_bytes = tensor.bytes();
    value.aligned_bytes = has_aligned_form(tensor.dtype)
                              ? aligned_bytes(rules.layout, tensor.dtype, tensor.shape)
                              : value.plain_bytes;
    const double moved =
        static_cast<double>(value.plain_bytes) + static_cast<double>(value.aligned_bytes);
    const auto us = [&](const ConversionRate& rate) {
      return rate.latency_us + (rate.bandwidth > 0 ? 1e6 * moved / rate.bandwidth : 0);
    };
    value.to_align_us = us(rules.to_align);
    value.to_nalign_us = us(rules.to_nalign);
    problem_.values.push_back(std::move(value));
    return static_cast<std::int32_t>(problem_.values.size() - 1);
  }

  void make_values() {
    problem_.value_of.assign(graph_.tensors().size(), -1);
    problem_.parents.resize(problem_.units.size());
    std::unordered_map<std::int64_t, std::int32_t> outside;  // by region and tensor
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const NodeId id = id_at<NodeId>(n);
      const Node& node = graph_.nodes()[n];
      const std::int32_t region = problem_.region_of[n];
      const BroadcastOperands broadcast(graph_, node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const TensorInfo& tensor = graph_.tensor(node.inputs[i]);
        if (tensor.kind == TensorKind::kWeight) continue;
        std::int32_t value = problem_.value_of[index_of(node.inputs[i])];
        const std::int32_t home = value < 0 ? -1 : problem_.values[index_of(value)].region;
        if (region < 0 || (value >= 0 && home != region)) {
          if (value >= 0) problem_.values[index_of(value)].leaves = true;
          value = -1;
        }
        if (region < 0) continue;
        if (value < 0) {
          const std::int64_t key = static_cast<std::int64_t>(region) *
                                       static_cast<std::int64_t>(graph_.tensors().size()) +
                                   node.inputs[i].value;
          const auto [where, added] = outside.emplace(key, -1);
          if (added) where->second = add_value(node.inputs[i], region, -1);
          value = where->second;
        }
        if (!broadcast.contains(i)) add_use(value, id, static_cast<std::int32_t>(i));
      }
      if (region < 0) continue;
      for (const TensorId output : node.outputs) {
        problem_.value_of[index_of(output)] = add_value(output, region, problem_.unit_of[n]);
      }
    }
    for (const TensorId output : graph_.graph_outputs()) {
      const std::int32_t value = problem_.value_of[index_of(output)];
      if (value >= 0) problem_.values[index_of(value)].leaves = true;
    }
  }

  void add_use(std::int32_t index, NodeId node, std::int32_t operand) {
    Value& value = problem_.values[index_of(index)];
    const std::int32_t unit = problem_.unit_of[index_of(node)];
    if (value.producer == unit) return;  // inside a group or a list
    auto& parents = problem_.parents[index_of(unit)];
    if (parents.empty() || parents.back() != index) parents.push_back(index);
    value.uses.push_back({node, operand, unit});
  }

  const Graph& graph_;
  const AlignOptions& options_;
  Diagnostics& diagnostics_;
  Problem problem_;
};

}  // namespace

BroadcastOperands::BroadcastOperands(const Graph& graph, const Node& node)
    : graph_(graph), node_(node) {
  if (node.outputs.empty() || node.inputs.size() < 2) return;
  const OpInfo* op = find_op(node.op_type);
  if (op == nullptr || op->kind != OpKind::kBroadcast) return;
  const Shape& result = graph.tensor(node.outputs.front()).shape;
  any_ = std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](TensorId input) { return graph.tensor(input).shape == result; });
}

bool BroadcastOperands::contains(std::size_t operand) const {
  return any_ &&
         graph_.tensor(node_.inputs[operand]).shape != graph_.tensor(node_.outputs.front()).shape;
}

std::string_view same_in_both(const TensorInfo& tensor, const AlignRules& rules) {
  if (!has_form(tensor, rules)) return "dtype";
  const Shape& shape = tensor.shape;
  if (shape.size() < 2) return "one-dimensional";
  bool channels_only = true;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return "empty";
    if (i != 1 && shape[i] != 1) channels_only = false;
  }
  if (channels_only) return "channels only";
  return shape[1] < rules.min_channels ? "few channels" : "";
}

bool converts_to_nalign(const Node& node) {
  const Json* direction = find_member(node.attrs(), "direction");
  return direction != nullptr && direction->is_boolean() && direction->get<bool>();
}

std::vector<std::int64_t> listed_partitions(const Graph& graph) {
  const auto fail = [&](const std::string& text, InputLocation location) {
    throw Error(ErrorCode::kInvalidGraph, text + "; run npu-partition again", std::move(location));
  };
  const auto in_plan = [&](const std::string& pointer) {
    return InputLocation{.file = graph.file, .pointer = "/npu/partition" + pointer};
  };
  const Json* plan = graph.npu_member("partition");
  if (plan == nullptr) {
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
      if (!graph.node(id).partition) continue;
      fail(fmt::format("node '{}' has the partition {}, but the document has no npu.partition",
                       graph.node(id).name, *graph.node(id).partition),
           graph.location(id, "/partition"));
    }
    return {};
  }
  const Json* partitions = find_member(*plan, "partitions");
  if (partitions == nullptr || !partitions->is_array()) {
    fail("expected an array", in_plan("/partitions"));
  }
  std::vector<std::int64_t> partition_of(graph.nodes().size(), -1);
  for (std::size_t p = 0; p < partitions->size(); ++p) {
    const Json* nodes = find_member((*partitions)[p], "nodes");
    const std::string pointer = fmt::format("/partitions/{}/nodes", p);
    if (nodes == nullptr || !nodes->is_array()) {
      fail("expected an array of node names", in_plan(pointer));
    }
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      const Json& name = (*nodes)[i];
      const NodeId id =
          name.is_string() ? graph.find_node(name.get_ref<const std::string&>()) : NodeId{};
      if (!id.valid()) {
        fail("the graph has no node " + name.dump(), in_plan(fmt::format("{}/{}", pointer, i)));
      }
      if (partition_of[index_of(id)] >= 0) {
        fail("node '" + graph.node(id).name + "' is in two partitions",
             in_plan(fmt::format("{}/{}", pointer, i)));
      }
      partition_of[index_of(id)] = static_cast<std::int64_t>(p);
    }
  }
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) {
    const std::int64_t listed = partition_of[index_of(id)];
    if (listed < 0)
      fail("node '" + graph.node(id).name + "' is in no partition", in_plan("/partitions"));
    const std::string fault = stated_partition_fault(graph.node(id), listed);
    if (!fault.empty()) fail(fault, graph.location(id, "/partition"));
  }
  return partition_of;
}

Problem build_problem(const Graph& graph, const AlignOptions& options, Diagnostics& diagnostics) {
  return ProblemBuilder(graph, options, diagnostics).build();
}

std::vector<Conversion> conversions_of(const Problem& problem,
                                       const std::vector<AlignMode>& modes) {
  std::vector<Conversion> conversions;
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const Value& value = problem.values[v];
    if (!value.can_differ) continue;
    const AlignMode produced =
        value.producer < 0 ? AlignMode::kNalign : modes[index_of(value.producer)];
    bool differs = value.leaves && produced == AlignMode::kAlign;
    // Both forms of what a channel_norm makes are there: its readers take the one that they want.
    if (value.producer < 0 || !problem.units[index_of(value.producer)].is_channel_norm) {
      for (const Use& use : value.uses) {
        differs = differs || problem.required(use, modes) != produced;
      }
    }
    if (differs) {
      conversions.push_back({static_cast<std::int32_t>(v), produced == AlignMode::kAlign});
    }
  }
  std::stable_partition(conversions.begin(), conversions.end(),
                        [](const Conversion& conversion) { return conversion.to_nalign; });
  return conversions;
}

AlignCosts costs_of(const Problem& problem, const std::vector<AlignMode>& modes,
                    const std::vector<Conversion>& conversions) {
  AlignCosts costs;
  const auto add = [&](const Value& value, bool to_nalign) {
    ++costs.conversions;
    ++(to_nalign ? costs.to_nalign : costs.to_align);
    costs.bytes = saturating_add(costs.bytes, to_nalign ? value.plain_bytes : value.aligned_bytes);
    costs.predicted_us += to_nalign ? value.to_nalign_us : value.to_align_us;
  };
  const auto pad = [&](const Value& value) {
    costs.padded_bytes =
        saturating_add(costs.padded_bytes, value.aligned_bytes - value.plain_bytes);
  };
  for (const Conversion& conversion : conversions) {
    const Value& value = problem.values[index_of(conversion.value)];
    add(value, conversion.to_nalign);
    if (!conversion.to_nalign) pad(value);
  }
  for (const Value& value : problem.values) {
    if (value.producer < 0) continue;
    if (problem.units[index_of(value.producer)].is_channel_norm) {
      add(value, modes[index_of(value.producer)] == AlignMode::kNalign);
    }
    if (value.can_differ && modes[index_of(value.producer)] == AlignMode::kAlign) pad(value);
  }
  return costs;
}

}  // namespace npu::align
