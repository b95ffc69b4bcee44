// SPDX-License-Identifier: Apache-2.0
// Asks a shared object for its table. Backends may be shorter than the header here; what they lack
// counts as null.
#include "device/backend_table.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "device/device_call.hpp"
#include "device/feature_functions.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"

namespace npu {
namespace {

/// Lines of a backend go where those of the library go; errors and warnings even without -v -v.
void log_line(void* context, std::uint32_t level, const char* text) {
  const LogLevel wanted = level >= NPU_LOG_DEBUG ? LogLevel::kDebug : LogLevel::kInfo;
  log(LogModule::kDevice, wanted, [&] {
    const char* kind = level == NPU_LOG_ERROR     ? "error: "
                       : level == NPU_LOG_WARNING ? "warning: "
                                                  : "";
    return "backend '" + *static_cast<const std::string*>(context) + "': " + kind + text_of(text);
  });
}

/// What the host offers one backend; both live as long as the process.
const npu_host* host_table(const std::string& name) {
  struct Host {
    std::string name;
    npu_host table;
  };
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Host>> hosts;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Host>& host = hosts[name];
  if (host == nullptr) {
    host = std::make_unique<Host>(Host{name, sized<npu_host>()});
    host->table.abi_version = NPU_ABI_VERSION;
    host->table.context = &host->name;
    host->table.log = log_line;
  }
  return &host->table;
}

/// The table with null for what this backend does not have yet. Backends stay loaded, and so do
/// these.
const npu_backend* completed(const npu_backend& given) {
  static std::mutex mutex;
  static std::map<const npu_backend*, std::unique_ptr<npu_backend>> tables;
  const std::lock_guard lock(mutex);
  std::unique_ptr<npu_backend>& table = tables[&given];
  if (table != nullptr) return table.get();  // who has asked before, uses it
  table = std::make_unique<npu_backend>();
  std::memcpy(table.get(), &given, std::min<std::uint64_t>(given.struct_size, sizeof given));
  table->struct_size = sizeof *table;
  return table.get();
}

const npu_backend* checked(const npu_backend* given, const std::string& path) {
  constexpr std::uint64_t kLeastSize = offsetof(npu_backend, buffer_write);
  if (given->abi_version != NPU_ABI_VERSION) {
    refuse_file(path, "the backend has ABI version " + std::to_string(given->abi_version) +
                          ", expected " + std::to_string(NPU_ABI_VERSION) +
                          ": build it for the npu/backend.h of this version");
  }
  if (given->struct_size < kLeastSize) {
    refuse_file(path, "the backend's function table has " + std::to_string(given->struct_size) +
                          " bytes, expected at least " + std::to_string(kLeastSize));
  }
  const npu_backend* table = completed(*given);
  const bool has_required = table->backend_info && table->device_info && table->device_open &&
                            table->device_close && table->compile && table->model_load &&
                            table->model_free && table->program_create && table->program_free &&
                            table->buffer_create && table->buffer_free && table->run;
  const bool moves_data =
      (table->buffer_write && table->buffer_read) || (table->buffer_map && table->buffer_unmap);
  if (!has_required || !moves_data) {
    refuse_file(path, "the backend's function table lacks a required function");
  }
  const std::string fault = feature_fault(*table);
  if (!fault.empty()) refuse_file(path, "the backend " + fault);
  return table;
}

}  // namespace

BackendEntry find_backend_entry(void* library, const std::string& path) {
  const auto entry = reinterpret_cast<BackendEntry>(::dlsym(library, NPU_ENTRY_NAME));
  if (entry != nullptr) return entry;
  refuse_file(path, "no npu-tools backend: it exports no " NPU_ENTRY_NAME);
}

const npu_backend* backend_table(void* library, const std::string& path, const std::string& name) {
  const BackendEntry entry = find_backend_entry(library, path);
  npu_error error = empty_error();
  const npu_backend* table = entry(host_table(name), &error);
  if (table != nullptr) return checked(table, path);
  error.text[sizeof error.text - 1] = '\0';
  const std::string reason = text_of(error.text);
  refuse_file(path, "the backend does not serve this host: " +
                        (reason.empty() ? "it gives no reason" : reason));
}

}  // namespace npu
