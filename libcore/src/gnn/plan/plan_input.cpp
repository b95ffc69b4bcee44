// SPDX-License-Identifier: Apache-2.0
// Reads what npu-plan plans for: profile, model or the default layer, graph or table of subgraphs,
// and the settings that change them. O(size of the files).
#include "gnn/plan/plan_input.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "gnn/plan/document/check_plan.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "target/device_facts.hpp"

namespace npu::gnn {
namespace {

// Sets of devices are enumerated: more take too long.
constexpr std::size_t kMaxDevices = 8;

// Index of a device of the profile, by name.
std::size_t device_named(const StageTable& profile, const std::string& name) {
  const std::int32_t device = profile.find_device(name);
  if (device >= 0) return index_of(device);
  throw Error(ErrorCode::kUsage,
              "device '" + name + "' is not in the profile, which has " + profile.device_list());
}

std::vector<SubgraphSize> parse_subgraphs(const Json& json, const std::string& file) {
  const auto fail = [&](const std::string& pointer, const std::string& text) {
    throw Error(ErrorCode::kParse, text, {.file = file, .pointer = pointer});
  };
  const Json* list = json.is_object() ? find_member(json, "subgraphs") : &json;
  if (list == nullptr || !list->is_array() || list->empty()) {
    fail("", "expected an array of subgraphs with id, n and m");
  }
  std::vector<SubgraphSize> subgraphs;
  std::set<std::int64_t> ids;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string pointer = "/" + std::to_string(i);
    const auto number = [&](const char* key, std::int64_t least, bool required) -> std::int64_t {
      const Json* member = find_member((*list)[i], key);
      if (member == nullptr && !required) return 0;
      if (member == nullptr || !member->is_number_integer() || *member < least ||
          *member > (std::int64_t{1} << 50)) {
        fail(pointer,
             "expected an integer '" + std::string(key) + "' of at least " + std::to_string(least));
      }
      return member->get<std::int64_t>();
    };
    SubgraphSize size;
    size.id = static_cast<std::int32_t>(std::min<std::int64_t>(number("id", 0, true), INT32_MAX));
    size.n = number("n", 1, true);
    size.m = number("m", 0, true);
    size.halo = number("halo", 0, false);
    size.cut_edges = number("cut_edges", 0, false);
    if (size.halo >= size.n) fail(pointer, "the halo is as large as the subgraph");
    if (!ids.insert(size.id).second) {
      fail(pointer, "subgraph " + std::to_string(size.id) + " is listed twice");
    }
    subgraphs.push_back(size);
  }
  return subgraphs;
}

// The seven stages of GraphSAGE, for tables without a model: an NPU has no scatter.
PlanLayer default_layer(const StageTable& profile) {
  PlanLayer layer;
  layer.stage_count = profile.stage_count;
  const std::vector<std::string> names{"gather",    "message",   "reduce_sum", "reduce_count",
                                       "normalize", "transform", "activate"};
  for (std::int32_t s = 0; s < layer.stage_count; ++s) {
    layer.stage_names.push_back(index_of(s) < names.size() && layer.stage_count == 7
                                    ? names[index_of(s)]
                                    : "stage " + std::to_string(s + 1));
  }
  for (const ProfileDevice& device : profile.devices) {
    auto& row = layer.refusals.emplace_back(index_of(layer.stage_count));
    if (device.is_static && layer.stage_count == 7) row[2] = row[3] = "no scatter";
  }
  return layer;
}

// What the table does not say of memory and switches the target may.
void take_facts(const Target& target, StageTable& profile) {
  const bool switches_are_known = profile.has_common_switch_ms();
  for (ProfileDevice& device : profile.devices) {
    const std::optional<double> switch_us = device_switch_us(target, device.name);
    if (!device.switch_ms && !switches_are_known && switch_us) device.switch_ms = *switch_us / 1000;
    if (device.memory_bytes > 0) continue;
    device.memory_bytes = static_cast<double>(device_memory_bytes(target, device.name));
  }
}

// Times are those of one model, on devices that run what the target says.
void check_profile_fits(const MakePlanOptions& options, const StageTable& profile,
                        const StagedModel& model, const Target& target) {
  if (!profile.model_hash.empty() && profile.model_hash != model.hash) {
    throw Error(ErrorCode::kInvalidGraph,
                "the table was measured on another model ('" + profile.model + "', hash " +
                    profile.model_hash + "); this one is '" + model.name + "', hash " + model.hash +
                    ": measure it with npu-profile",
                {.file = options.profile, .pointer = "/model_hash"});
  }
  for (const ProfileDevice& device : profile.devices) {
    if (device.rules.empty()) continue;
    const std::string rules = device_rules_digest(target, device.name);
    if (rules == device.rules) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "the table was measured for device '" + device.name + "' of target '" +
                    profile.target + "', " +
                    (rules.empty() ? "which target '" + options.settings.target + "' does not have"
                                   : "which runs other ops than that of target '" +
                                         options.settings.target + "'") +
                    ": give --target as npu-profile got it, or measure for this one",
                {.file = options.profile, .pointer = "/devices"});
  }
}

// Links that plans may need but for which no rate is given. Transfers over them cost nothing.
std::string missing_links(const StageTable& profile) {
  std::string list;
  for (const ProfileDevice& from : profile.devices) {
    for (const ProfileDevice& to : profile.devices) {
      if (profile.has_link(from.name, to.name)) continue;
      list += (list.empty() ? "" : ", ") + from.name + " -> " + to.name;
    }
  }
  return list;
}

// The profile with nothing but the devices that are to be planned for, and what the settings say of
// them.
StageTable read_devices(const MakePlanOptions& options, const Target& target) {
  StageTable profile = read_profile(options.profile);
  if (!options.bandwidths.empty()) {
    profile.add_bandwidths(parse_json(read_file(options.bandwidths), options.bandwidths),
                           options.bandwidths);
  }
  const PlanSettings& settings = options.settings;
  if (!settings.devices.empty()) {
    for (const std::string& name : settings.devices) device_named(profile, name);
    const auto left_out = [&](const std::string& name) {
      return std::find(settings.devices.begin(), settings.devices.end(), name) ==
             settings.devices.end();
    };
    std::erase_if(profile.entries, [&](const auto& entry) { return left_out(entry.device); });
    std::erase_if(profile.devices, [&](const auto& device) { return left_out(device.name); });
    profile.index();
  }
  if (profile.devices.size() > kMaxDevices) {
    throw Error(ErrorCode::kUnsupported,
                "the profile has " + std::to_string(profile.devices.size()) + " devices, at most " +
                    std::to_string(kMaxDevices) + " can be planned for");
  }
  take_facts(target, profile);
  for (const MemoryLimit& limit : settings.memory) {
    profile.devices[device_named(profile, limit.device)].memory_bytes =
        static_cast<double>(limit.bytes);
  }
  for (const ResourceName& name : settings.resources) {
    profile.devices[device_named(profile, name.device)].resource = name.resource;
  }
  return profile;
}

// The layers of the model, and which stages the target's devices refuse.
std::vector<PlanLayer> layers_of(const StagedModel& model, const Target& target,
                                 const StageTable& profile) {
  std::vector<PlanLayer> layers;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerInfo& info = model.layers[l];
    PlanLayer& layer = layers.emplace_back();
    layer.number = static_cast<std::int32_t>(l) + 1;
    layer.stage_count = info.stage_count();
    layer.info = &info;
    for (const StageInfo& stage : info.stages) layer.stage_names.push_back(stage.name);
    for (const ProfileDevice& device : profile.devices) {
      auto& row = layer.refusals.emplace_back(index_of(layer.stage_count));
      const Device* description = target.find_device(device.name);
      if (description == nullptr) continue;  // the profile says what it can do
      for (std::int32_t s = 1; s <= layer.stage_count; ++s) {
        row[index_of(s - 1)] = stage_refusal(model, layer.number, s, *description);
      }
    }
  }
  return layers;
}

void exclude_stages(const PlanSettings& settings, PlanInput& input) {
  for (const ExcludedStages& excluded : settings.excluded) {
    const std::size_t device = device_named(input.profile, excluded.device);
    for (const std::int32_t stage : excluded.stages) {
      for (PlanLayer& layer : input.layers) {
        if (stage < 1 || stage > layer.stage_count) {
          throw Error(ErrorCode::kUsage, "stage " + std::to_string(stage) + " of device '" +
                                             excluded.device + "' is not in 1.." +
                                             std::to_string(layer.stage_count));
        }
        layer.refusals[device][index_of(stage - 1)] = "excluded";
      }
    }
  }
}

// The model's layers, or the one that published tables are about.
void read_layers(const MakePlanOptions& options, const Target& target, PlanInput& input,
                 Diagnostics& diagnostics) {
  if (!options.model.empty()) {
    input.model = read_staged_model(options.model);
    check_profile_fits(options, input.profile, *input.model, target);
    input.layers = layers_of(*input.model, target, input.profile);
    if (const std::string links = missing_links(input.profile);
        options.settings.transfers && !links.empty()) {
      diagnostics.warning({.file = options.profile},
                          "the table has no links " + links +
                              ": transfers over them count nothing; give --bandwidths FILE");
    }
  } else {
    if (options.settings.transfers && !options.graph.empty()) {
      throw Error(ErrorCode::kUsage,
                  "transfers depend on the sizes of tensors: give --model FILE or --no-transfers");
    }
    if (options.settings.transfers) {
      diagnostics.warning(
          {.file = options.subgraphs},
          "without --model nothing is known of tensors: transfers count nothing" +
              std::string(options.bandwidths.empty()
                              ? ""
                              : ", whatever the links of --bandwidths; give --model "
                                "FILE or --no-transfers"));
    }
    input.layers.push_back(default_layer(input.profile));
  }
  exclude_stages(options.settings, input);
}

// Of the graph as a whole: k = 1 is always tried.
void check_pad_of(const PlanInput& input, std::int64_t pad) {
  std::int64_t nodes = 0;
  std::int64_t edges = 0;
  if (input.graph) {
    nodes = input.graph->in_edges.node_count();
    edges = input.graph->in_edges.entry_count();
  }
  for (const SubgraphSize& size : input.subgraphs) {
    nodes = std::max(nodes, size.n);
    edges = std::max(edges, size.m);
  }
  check_pad(pad, nodes, edges);
}

}  // namespace

std::unique_ptr<PlanInput> read_plan_facts(const MakePlanOptions& options,
                                           Diagnostics& diagnostics) {
  auto input = std::make_unique<PlanInput>();
  report_progress(options.progress, 0, "read");
  const PhaseTimes::Scope phase(input->times, "read");
  if (options.graph.empty() == options.subgraphs.empty()) {
    throw Error(ErrorCode::kUsage, "expected a GRAPH or --subgraphs FILE, and not both");
  }
  if (options.rank_count > 0 && (options.graph.empty() || options.model.empty())) {
    throw Error(ErrorCode::kUsage,
                "--ranks needs a GRAPH and --model FILE: what crosses between "
                "ranks depends on both");
  }
  if (options.device_cover && (options.graph.empty() || options.model.empty())) {
    throw Error(ErrorCode::kUsage,
                "--exchange cover needs a GRAPH and --model FILE: what crosses depends on both");
  }
  if (!options.csr_file.empty() && options.graph.empty()) {
    throw Error(ErrorCode::kUsage, "--csr: expected a GRAPH to write in binary form");
  }
  const Target target = load_target(options.settings.target);
  input->profile = read_devices(options, target);
  if (!options.rank_links.empty()) input->rank_links = read_rank_links(options.rank_links);
  CostSettings& settings = input->settings;
  settings.interpolation = options.settings.interpolation;
  settings.transfers = options.settings.transfers;
  settings.pad = options.pad > 0 ? options.pad : 1000;
  settings.ratios = options.settings.ratios;
  settings.host =
      input->profile.find_device("cpu") >= 0 ? "cpu" : input->profile.devices.front().name;
  read_layers(options, target, *input, diagnostics);
  return input;
}

void read_plan_graph(const MakePlanOptions& options, PlanInput& input, Diagnostics& diagnostics) {
  const PhaseTimes::Scope phase(input.times, "read");
  if (!options.graph.empty()) {
    GraphReadOptions graph = options.graph_options;
    graph.one_loop = graph.one_loop || (input.model && input.model->one_loop);
    input.graph = read_graph_file(options.graph, graph);
    for (const std::string& note : input.graph->notes) {
      diagnostics.note({.file = options.graph}, note);
    }
  } else {
    input.subgraphs = parse_subgraphs(parse_json(read_file(options.subgraphs), options.subgraphs),
                                      options.subgraphs);
  }
  check_pad_of(input, options.pad);
}

std::unique_ptr<PlanInput> read_plan_input(const MakePlanOptions& options,
                                           Diagnostics& diagnostics) {
  auto input = read_plan_facts(options, diagnostics);
  read_plan_graph(options, *input, diagnostics);
  return input;
}

}  // namespace npu::gnn
