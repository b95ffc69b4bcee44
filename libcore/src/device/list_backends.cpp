// SPDX-License-Identifier: Apache-2.0
// Finds all backends and asks each what it has. One that does not load is listed with the reason,
// which is what somebody who looks for a device needs to know.
#include "device/list_backends.hpp"

#include <array>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "device/plugin.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// The name of a number; "other" for one that is not known here.
std::string_view name_in(std::span<const std::string_view> names, std::uint32_t number) {
  return number < names.size() ? names[number] : "other";
}

Json numbers_json(const KnownNumbers& numbers) {
  Json json = Json::object();
  for (const auto& [name, value] : numbers) json[name] = value;
  return json;
}

Json memory_facts_json(const MemoryFacts& memory) {
  constexpr std::array<std::string_view, 4> kKinds{"other", "device", "host_pinned", "shared"};
  constexpr std::array<std::pair<std::uint32_t, const char*>, 3> kFlags{
      {{NPU_HOST_MAPPABLE, "host_mappable"},
       {NPU_HOST_COHERENT, "host_coherent"},
       {NPU_WRAPS_HOST_POINTER, "wraps_host_pointer"}}};
  Json json = {{"name", memory.name}, {"kind", name_in(kKinds, memory.kind)}};
  json["flags"] = Json::array();
  for (const auto& [bit, name] : kFlags) {
    if ((memory.flags & bit) != 0) json["flags"].push_back(name);
  }
  json["known"] = numbers_json(memory.numbers);
  return json;
}

Json dtype_json(const DTypeFacts& facts) {
  const bool is_known = facts.dtype < static_cast<std::uint32_t>(kDTypeCount);
  Json json = {
      {"dtype", is_known ? Json(dtype_name(static_cast<DType>(facts.dtype))) : Json(facts.dtype)},
      {"storage", (facts.flags & NPU_DTYPE_STORAGE) != 0},
      {"arithmetic", (facts.flags & NPU_DTYPE_ARITHMETIC) != 0}};
  if (facts.peak_ops_per_second) json["peak_ops_per_second"] = *facts.peak_ops_per_second;
  return json;
}

Json device_json(const DeviceFacts& device) {
  constexpr std::array<std::string_view, 5> kKinds{"other", "cpu", "gpu", "npu", "dsp"};
  Json json = {{"id", device.id},         {"name", device.name},
               {"vendor", device.vendor}, {"kind", name_in(kKinds, device.kind)},
               {"arch", device.arch},     {"driver", device.driver},
               {"usable", device.usable}, {"fingerprint", device.fingerprint}};
  if (!device.usable) json["why_not"] = device.why_not;
  json["known"] = numbers_json(device.numbers);
  json["memories"] = Json::array();
  for (const MemoryFacts& memory : device.memories)
    json["memories"].push_back(memory_facts_json(memory));
  json["dtypes"] = Json::array();
  for (const DTypeFacts& dtype : device.dtypes) json["dtypes"].push_back(dtype_json(dtype));
  return json;
}

ListedBackend describe_backend(const std::string& name) {
  ListedBackend listed;
  listed.name = name;
  try {
    const std::shared_ptr<const Backend> backend = Backend::load(name);
    listed.version = backend->version();
    const char* const* feature = backend->api().features;
    for (; feature != nullptr && *feature != nullptr; ++feature) {
      listed.features.push_back(printable_text(*feature));
    }
    listed.devices = backend->devices();
  } catch (const Error& error) {
    listed.why_not = error.message();
  }
  return listed;
}

}  // namespace

std::vector<ListedBackend> list_backends() {
  std::set<std::string> names;
  for (const std::string& folder : plugin_folders(kBackends)) {
    for (const std::string& name : plugin_names(kBackends, folder)) names.insert(name);
  }
  std::vector<ListedBackend> backends;
  for (const std::string& name : names) backends.push_back(describe_backend(name));
  return backends;
}

Json listed_backends_json(const std::vector<ListedBackend>& backends) {
  Json list = Json::array();
  for (const ListedBackend& backend : backends) {
    Json json = {{"backend", backend.name}, {"usable", backend.why_not.empty()}};
    if (!backend.why_not.empty()) {
      json["why_not"] = backend.why_not;
      list.push_back(std::move(json));
      continue;
    }
    json["version"] = backend.version;
    json["features"] = backend.features;
    json["devices"] = Json::array();
    for (const DeviceFacts& device : backend.devices) {
      json["devices"].push_back(device_json(device));
    }
    list.push_back(std::move(json));
  }
  return {{"backends", std::move(list)}};
}

std::string format_listed_backends(const std::vector<ListedBackend>& backends) {
  std::vector<std::vector<std::string>> rows = {
      {"backend", "version", "device", "name", "driver", "usable", "features"}};
  for (const ListedBackend& backend : backends) {
    std::string features;
    for (const std::string& feature : backend.features) {
      features += (features.empty() ? "" : " ") + feature;
    }
    if (backend.devices.empty()) {
      const std::string usable = backend.why_not.empty() ? "no device" : backend.why_not;
      rows.push_back({backend.name, backend.version, "", "", "", usable, features});
    }
    for (const DeviceFacts& device : backend.devices) {
      rows.push_back({backend.name, backend.version, device.id, device.name, device.driver,
                      device.usable ? "yes" : device.why_not, features});
    }
  }
  return table_text(rows);
}

}  // namespace npu
