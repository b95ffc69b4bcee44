// SPDX-License-Identifier: Apache-2.0
// Finds and loads shared objects by name. They stay loaded: libraries below them (OpenMP, libtorch,
// MPI) do not survive unloading. Reads the folders each time; O(folders) to find one.
#include "device/plugin.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "device/library_folders.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/log.hpp"

namespace npu {

namespace {
constexpr std::string_view kSuffix = ".so";
}

std::vector<std::string> plugin_folders(const PluginKind& kind) {
  std::vector<std::string> folders{install_folder(kind.folder)};
  const char* extra = ::secure_getenv(kind.variable);
  std::string_view rest = extra == nullptr ? "" : extra;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

std::vector<std::string> plugin_names(const PluginKind& kind, const std::string& folder) {
  std::vector<std::string> names;
  DIR* entries = ::opendir(folder.c_str());
  if (entries == nullptr) return names;
  const std::string prefix = "npu_" + kind.name + "_";
  while (const dirent* entry = ::readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) continue;
    name.remove_prefix(prefix.size());
    name.remove_suffix(std::min(kSuffix.size(), name.size()));
    if (is_library_name(name)) names.emplace_back(name);
  }
  ::closedir(entries);
  std::sort(names.begin(), names.end());
  return names;
}

std::string plugin_file(const PluginKind& kind, std::string_view name) {
  return "npu_" + kind.name + "_" + std::string(name) + std::string(kSuffix);
}

std::string find_plugin(const PluginKind& kind, std::string_view name, std::string* tried) {
  const std::string file = plugin_file(kind, name);
  for (const std::string& folder : plugin_folders(kind)) {
    std::string path = folder + "/" + file;
    if (::access(path.c_str(), F_OK) == 0) return path;
    if (tried == nullptr) continue;
    *tried += (tried->empty() ? "" : ", ") + folder;
    log(LogModule::kDevice, LogLevel::kDebug, [&] { return "no " + file + " in " + folder; });
  }
  return {};
}

void probe_plugin(const PluginKind& kind, const std::string& path, const std::string& name) {
  if (path == install_folder(kind.folder) + "/" + plugin_file(kind, name)) return;
  const LogTimer timer(LogModule::kDevice, LogLevel::kDebug);
  const std::string fault = probe_library(kind.looked_at, path, name);
  if (!fault.empty()) refuse_file(path, "the " + kind.name + " " + fault);
  timer.done([&] {
    return path + ": comes from " + kind.variable + ", so another process loaded it first";
  });
}

void* open_plugin(const PluginKind& kind, const std::string& path, int scope,
                  const std::string& advice) {
  if (!is_regular_file(path)) refuse_file(path, "is not a regular file, expected a shared object");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | scope);
  if (library != nullptr) return library;
  refuse_file(path, "the " + kind.name + " does not load: " + text_of(::dlerror()) + advice);
}

}  // namespace npu
