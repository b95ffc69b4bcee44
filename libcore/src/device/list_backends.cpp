// SPDX-License-Identifier: Apache-2.0
// Finds all backends and asks each what it has. One that does not load is listed with the reason,
// which is what somebody who looks for a device needs to know.
#include "npu/device/list_backends.hpp"

#include <dirent.h>

#include <set>
#include <string_view>
#include <utility>

#include "device/library_folders.hpp"
#include "npu/support/error.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

constexpr std::string_view kFilePrefix = "npu_backend_";
constexpr std::string_view kFileSuffix = ".so";

void add_names(const std::string& folder, std::set<std::string>& names) {
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(kFilePrefix) || !name.ends_with(kFileSuffix)) continue;
    name.remove_prefix(kFilePrefix.size());
    name.remove_suffix(std::min(kFileSuffix.size(), name.size()));
    if (is_library_name(name)) names.emplace(name);
  }
  ::closedir(entries);
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
  for (const std::string& folder : backend_search_path()) add_names(folder, names);
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
      Json facts = {{"id", device.id},         {"name", device.name},
                    {"arch", device.arch},     {"driver", device.driver},
                    {"usable", device.usable}, {"fingerprint", device.fingerprint}};
      if (!device.usable) facts["why_not"] = device.why_not;
      json["devices"].push_back(std::move(facts));
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
