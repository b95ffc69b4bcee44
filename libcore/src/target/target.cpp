// SPDX-License-Identifier: Apache-2.0
// Queries about a target's devices and links, and the loading of targets: built in, from a file, or
// from `npu.target` of a document. O(devices + links) per query.
#include "npu/target/target.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "ops/op_catalogue.hpp"
#include "support/text.hpp"
#include "target/embedded_targets.hpp"
#include "target/target_reader.hpp"

namespace npu {
namespace {

bool is_file_name(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

const EmbeddedTarget& find_embedded(const std::string& name) {
  std::vector<std::string> names;
  for (const EmbeddedTarget& target : embedded_targets()) {
    if (target.name == name) return target;
    names.emplace_back(target.name);
  }
  const std::string nearest = nearest_word(name, names);
  throw Error(
      ErrorCode::kUsage,
      fmt::format("unknown target '{}'{}; built in: {}; a file needs a '/' or ends in .json", name,
                  nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                  fmt::join(names, ", ")));
}

// An op without an overload stands for all its forms that the catalogue has.
void name_forms(Json& types) {
  Json named = Json::array();
  for (Json& type : types) {
    const auto forms = op_forms(type.get_ref<const std::string&>());
    if (forms.empty()) named.push_back(std::move(type));
    for (const std::string_view form : forms) named.emplace_back(form);
  }
  types = std::move(named);
}

Json built_in_description(const EmbeddedTarget& embedded, const std::string& file) {
  Json json = parse_json(embedded.text, file);
  for (Json& device : json.at("devices")) {
    for (const char* list : {"aliases", "decompose"}) {
      if (Json* types = find_member(device, list)) name_forms(*types);
    }
    if (Json& ops = device.at("ops"); ops.is_array()) {
      for (Json& rule : ops) name_forms(rule.at("types"));
    }
  }
  return json;
}

}  // namespace

double Device::flops_per_second(DType dtype) const noexcept {
  if (const auto found = peak_flops.find(dtype); found != peak_flops.end()) return found->second;
  if (const auto found = peak_flops.find(DType::kFloat32); found != peak_flops.end()) {
    return found->second;
  }
  double slowest = 0;
  for (const auto& [other, rate] : peak_flops) {
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  return slowest;
}

bool Device::is_alias(std::string_view op_type) const noexcept {
  return std::find(aliases.begin(), aliases.end(), op_type) != aliases.end();
}

const Device* Target::find_device(std::string_view wanted) const noexcept {
  for (const Device& device : devices) {
    if (device.name == wanted) return &device;
  }
  return nullptr;
}

const Link* Target::find_link(std::string_view from, std::string_view to) const noexcept {
  if (from == to) return nullptr;
  const Link* reverse = nullptr;
  for (const Link& link : links) {
    if (link.from == from && link.to == to) return &link;
    if (link.from == to && link.to == from) reverse = &link;
  }
  return reverse;
}

Target parse_target(const Json& json, const std::string& file, const std::string& pointer,
                    Diagnostics& diagnostics) {
  Diagnostics own;  // read_links needs the errors of this target, not the document's
  Target target = read_target(json, file, pointer, own);
  for (const Diagnostic& entry : own.entries()) diagnostics.error(entry.location, entry.text);
  return target;
}

Target parse_target(const Json& json, const std::string& file, const std::string& pointer) {
  Diagnostics diagnostics;
  Target target = parse_target(json, file, pointer, diagnostics);
  if (diagnostics.has_errors()) {
    const Diagnostic& first = diagnostics.entries().front();
    std::string text = first.text;
    if (diagnostics.error_count() > 1) {
      text += fmt::format(" (and {} more)", diagnostics.error_count() - 1);
    }
    throw Error(ErrorCode::kParse, std::move(text), first.location);
  }
  return target;
}

Target load_target(const std::string& name_or_file) {
  if (is_file_name(name_or_file)) {
    return parse_target(parse_json(read_file(name_or_file), name_or_file), name_or_file);
  }
  const EmbeddedTarget& embedded = find_embedded(name_or_file);
  const std::string file = fmt::format("<target {}>", embedded.name);
  return parse_target(built_in_description(embedded, file), file);
}

std::vector<BuiltInTarget> built_in_targets() {
  std::vector<BuiltInTarget> targets;
  for (const EmbeddedTarget& embedded : embedded_targets()) {
    const Json json = parse_json(embedded.text, fmt::format("<target {}>", embedded.name));
    const Json* description = find_member(json, "description");
    targets.push_back({std::string(embedded.name),
                       description == nullptr ? std::string() : description->get<std::string>()});
  }
  return targets;
}

Target graph_target(const Graph& graph) {
  const Json* json = graph.npu_member("target");
  if (json == nullptr) {
    throw Error(ErrorCode::kInvalidGraph,
                "the document has no target description; run npu-tag on it first",
                {.file = graph.file, .pointer = "/npu"});
  }
  // Passes of one program ask again and again; comparing and copying costs less than reading.
  thread_local std::optional<Target> last;
  if (!last || *last->json != *json) last = parse_target(*json, graph.file, "/npu/target");
  return *last;
}

const Device* folding_device(const Target& target) noexcept {
  const auto found = std::find_if(target.devices.rbegin(), target.devices.rend(),
                                  [](const Device& device) { return !device.backend.empty(); });
  return found == target.devices.rend() ? nullptr : &*found;
}

}  // namespace npu
