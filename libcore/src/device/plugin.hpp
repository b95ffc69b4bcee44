// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_call.hpp"
#include "device/probe.hpp"

namespace npu {

/// Shared objects that are loaded by name: what their files are called, and where they lie.
struct PluginKind {
  std::string name;      ///< "backend", of npu_backend_NAME.so, as messages say it
  std::string folder;    ///< of the install
  const char* variable;  ///< of the environment: further folders, with somebody else's files
  LibraryKind looked_at = LibraryKind::kAny;  ///< as which a helper loads those first
};

inline const PluginKind kBackends{"backend", "backends", "NPU_BACKEND_PATH", LibraryKind::kBackend};
inline const PluginKind kFrontends{"frontend", "frontends", "NPU_FRONTEND_PATH",
                                   LibraryKind::kFrontend};
inline const PluginKind kTransports{"transport", "transports", "NPU_TRANSPORT_PATH"};
inline const PluginKind kPartitioners{"partitioner", "transports", "NPU_TRANSPORT_PATH"};

/// The install's folder, then those of the variable, separated by colons. A program with raised
/// privileges ignores the variable.
std::vector<std::string> plugin_folders(const PluginKind& kind);

/// The names of those in a folder, sorted; none if there is no such folder.
std::vector<std::string> plugin_names(const PluginKind& kind, const std::string& folder);

std::string plugin_file(const PluginKind& kind, std::string_view name);

/// The file of the first folder that has it; empty if none has. `tried` lists the folders without
/// it, which are logged then.
std::string find_plugin(const PluginKind& kind, std::string_view name,
                        std::string* tried = nullptr);

/// Has a helper (probe.hpp) load a file that is not of the install's folder. Throws Error
/// kUnsupported with what came of it.
void probe_plugin(const PluginKind& kind, const std::string& path, const std::string& name);

/// Loads a file for good. Throws Error kUnsupported; `advice` follows the loader's reason.
void* open_plugin(const PluginKind& kind, const std::string& path, int scope = RTLD_LOCAL,
                  const std::string& advice = "");

/// The table of a library whose `entry` gives the one of a version. Throws Error kUnsupported.
template <typename Table>
const Table* plugin_table(const PluginKind& kind, void* library, const std::string& path,
                          const std::string& entry, std::uint32_t version) {
  const auto function =
      reinterpret_cast<const Table* (*)(std::uint32_t)>(::dlsym(library, entry.c_str()));
  if (function == nullptr) refuse_file(path, "no " + kind.name + ": it does not export " + entry);
  const Table* table = function(version);
  if (table != nullptr && table->abi_version == version) return table;
  refuse_file(path, "the " + kind.name + " does not serve ABI version " + std::to_string(version));
}

}  // namespace npu
