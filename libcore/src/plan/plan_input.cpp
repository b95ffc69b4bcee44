// SPDX-License-Identifier: Apache-2.0
// Reads what npu-plan plans for: profile, model or the default layer, graph or table of subgraphs,
// and the options that change them. O(size of the files).
#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "npu/plan/plan_gnn.hpp"
#include "npu/support/file_io.hpp"

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// "NAME=VALUE".
std::pair<std::string, std::string> split_setting(const std::string& text,
                                                  const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage, option + " '" + text + "': expected DEVICE=VALUE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::int32_t known_device(const ProfileTable& profile, const std::string& name,
                          const std::string& option) {
  const std::int32_t device = profile.find_device(name);
  if (device >= 0) return device;
  std::vector<std::string> names;
  std::string list;
  for (const ProfileDevice& known : profile.devices) {
    list += (list.empty() ? "" : ", ") + known.name;
  }
  throw Error(ErrorCode::kUsage,
              option + ": device '" + name + "' is not in the profile, which has " + list);
}

std::vector<std::int64_t> number_list(const std::string& text, const std::string& option) {
  std::vector<std::int64_t> numbers;
  const char* begin = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) break;
    numbers.push_back(value);
    if (next == end) return numbers;
    if (*next != ',') break;
    begin = next + 1;
  }
  throw Error(ErrorCode::kUsage, option + " '" + text + "': expected numbers with commas between");
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
PlanLayer default_layer(const ProfileTable& profile) {
  PlanLayer layer;
  layer.stage_count = profile.stage_count;
  const std::vector<std::string> names{"gather",    "message",   "reduce_sum", "reduce_count",
                                       "normalize", "transform", "activate"};
  for (std::int32_t s = 0; s < layer.stage_count; ++s) {
    layer.stage_names.push_back(at(s) < names.size() && layer.stage_count == 7
                                    ? names[at(s)]
                                    : "stage " + std::to_string(s + 1));
  }
  for (const ProfileDevice& device : profile.devices) {
    auto& row = layer.refusals.emplace_back(at(layer.stage_count));
    if (device.is_static && layer.stage_count == 7) row[2] = row[3] = "no scatter";
  }
  return layer;
}

}  // namespace

std::unique_ptr<PlanInput> read_plan_input(const PlanGnnOptions& options,
                                           Diagnostics& diagnostics) {
  auto input = std::make_unique<PlanInput>();
  report_progress(options.progress, 0, "read");
  const PhaseTimes::Scope phase(input->times, "read");
  if (options.graph.empty() == options.subgraphs.empty()) {
    throw Error(ErrorCode::kUsage, "expected a GRAPH or --subgraphs FILE, and not both");
  }
  input->profile = read_profile(options.profile);
  if (!options.bandwidths.empty()) {
    input->profile.add_bandwidths(parse_json(read_file(options.bandwidths), options.bandwidths),
                                  options.bandwidths);
  }
  if (!options.devices.empty()) {
    ProfileTable& profile = input->profile;
    for (const std::string& name : options.devices) known_device(profile, name, "--devices");
    const auto left_out = [&](const std::string& name) {
      return std::find(options.devices.begin(), options.devices.end(), name) ==
             options.devices.end();
    };
    std::erase_if(profile.entries, [&](const auto& entry) { return left_out(entry.device); });
    std::erase_if(profile.devices, [&](const auto& device) { return left_out(device.name); });
    profile.index();
  }
  ProfileTable& profile = input->profile;
  if (profile.devices.size() > 8) {
    throw Error(ErrorCode::kUnsupported, "the profile has " +
                                             std::to_string(profile.devices.size()) +
                                             " devices, at most 8 can be planned for");
  }
  for (const std::string& text : options.memory) {
    const auto [name, value] = split_setting(text, "--memory");
    const auto bytes = number_list(value, "--memory");
    if (bytes.size() != 1 || bytes[0] < 1) {
      throw Error(ErrorCode::kUsage, "--memory '" + text + "': expected a number of bytes");
    }
    profile.devices[at(known_device(profile, name, "--memory"))].memory_bytes =
        static_cast<double>(bytes[0]);
  }
  for (const std::string& text : options.resources) {
    const auto [name, value] = split_setting(text, "--resource");
    profile.devices[at(known_device(profile, name, "--resource"))].resource = value;
  }
  CostSettings& settings = input->settings;
  settings.interpolation = options.interpolation;
  settings.transfers = options.transfers;
  settings.pad = options.pad > 0 ? options.pad : 1000;
  settings.ratios = options.ratios;
  settings.host = profile.find_device("cpu") >= 0 ? "cpu" : profile.devices.front().name;
  if (!options.model.empty()) {
    input->model = read_staged_model(options.model);
    const Target target = load_target(options.target);
    for (std::size_t l = 0; l < input->model->layers.size(); ++l) {
      const LayerInfo& info = input->model->layers[l];
      PlanLayer layer;
      layer.number = static_cast<std::int32_t>(l) + 1;
      layer.stage_count = info.stage_count();
      layer.info = &info;
      for (const StageInfo& stage : info.stages) layer.stage_names.push_back(stage.name);
      for (const ProfileDevice& device : profile.devices) {
        auto& row = layer.refusals.emplace_back(at(layer.stage_count));
        const Device* description = target.find_device(device.name);
        if (description == nullptr) continue;  // the profile says what it can do
        for (std::int32_t s = 1; s <= layer.stage_count; ++s) {
          row[at(s - 1)] = stage_refusal(*input->model, layer.number, s, *description);
        }
      }
      input->layers.push_back(std::move(layer));
    }
  } else {
    if (options.transfers && !options.graph.empty()) {
      throw Error(ErrorCode::kUsage,
                  "transfers depend on the sizes of tensors: give --model FILE or --no-transfers");
    }
    if (options.transfers) {
      diagnostics.warning({.file = options.subgraphs},
                          "without --model nothing is known of tensors: transfers count nothing");
    }
    input->layers.push_back(default_layer(profile));
  }
  for (const std::string& text : options.excludes) {
    const auto [name, value] = split_setting(text, "--exclude");
    const auto device = at(known_device(profile, name, "--exclude"));
    for (const std::int64_t stage : number_list(value, "--exclude")) {
      for (PlanLayer& layer : input->layers) {
        if (stage < 1 || stage > layer.stage_count) {
          throw Error(ErrorCode::kUsage, "--exclude '" + text + "': stage " +
                                             std::to_string(stage) + " is not in 1.." +
                                             std::to_string(layer.stage_count));
        }
        layer.refusals[device][at(stage - 1)] = "excluded";
      }
    }
  }
  if (!options.graph.empty()) {
    input->graph = read_graph_file(options.graph, options.graph_options);
    for (const std::string& note : input->graph->notes) {
      diagnostics.note({.file = options.graph}, note);
    }
  } else {
    input->subgraphs = parse_subgraphs(parse_json(read_file(options.subgraphs), options.subgraphs),
                                       options.subgraphs);
  }
  return input;
}

}  // namespace npu
