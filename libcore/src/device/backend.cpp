// SPDX-License-Identifier: Apache-2.0
// Finds and loads backends. One that lacks a function, has another ABI version or writes nonsense
// is refused with a message; backends stay loaded, since libraries below them (OpenMP, libtorch) do
// not survive unloading.
//
// A backend of NPU_BACKEND_PATH is somebody else's, so a helper loads it and asks for its
// description first (probe.hpp); the backends of the install are trusted, since loading libtorch
// twice would double the start of every run.
#include "device/backend.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "device/backend_table.hpp"
#include "device/blas_core.hpp"
#include "device/device_call.hpp"
#include "device/feature_functions.hpp"
#include "device/library_folders.hpp"
#include "device/plugin.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/support/log.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::uint64_t kMostDevices = 256;
constexpr std::uint64_t kMostMemories = 64;
constexpr std::uint64_t kMostDtypes = 256;
/// Begins an instance that is any device of an architecture.
constexpr std::string_view kArchPrefix = "arch:";

void* open_backend(const std::string& path) {
  const BlasCoreScope blas;
  return open_plugin(kBackends, path);
}

/// What a backend says of itself and of its devices.
struct Description {
  npu_backend_info info = sized<npu_backend_info>();
  std::optional<std::vector<std::string>> option_keys;
  std::vector<DeviceFacts> devices;
};

/// Whether a mapping of it may stay while the device uses it.
bool is_coherent(const npu_memory_info& memory) {
  constexpr std::uint32_t kBoth = NPU_HOST_MAPPABLE | NPU_HOST_COHERENT;
  return (memory.flags & kBoth) == kBoth;
}

/// A number if its bit is set.
void add_known(KnownNumbers& numbers, const char* name, std::uint64_t known, std::uint64_t bit,
               std::uint64_t value) {
  if ((known & bit) != 0) numbers.emplace_back(name, value);
}

void read_memory_numbers(const npu_memory_info& memory, MemoryFacts& facts) {
  facts.name = text_of(memory.name);
  facts.kind = memory.kind;
  facts.flags = memory.flags;
  const auto add = [&](const char* name, std::uint64_t bit, std::uint64_t value) {
    add_known(facts.numbers, name, memory.known, bit, value);
  };
  add("alignment", NPU_KNOWN_ALIGNMENT, memory.alignment);
  add("size_granularity", NPU_KNOWN_GRANULARITY, memory.size_granularity);
  add("total_bytes", NPU_KNOWN_TOTAL, memory.total_bytes);
  if (NPU_HAS(&memory, max_buffer_bytes)) {
    add("max_buffer_bytes", NPU_KNOWN_MAX_BUFFER, memory.max_buffer_bytes);
  }
}

void read_numbers(const npu_device_info& info, DeviceFacts& facts) {
  if (!NPU_HAS(&info, concurrent_compiles)) return;
  const auto add = [&](const char* name, std::uint64_t bit, std::uint64_t value) {
    add_known(facts.numbers, name, info.known, bit, value);
  };
  add("compute_units", NPU_KNOWN_COMPUTE_UNITS, info.compute_units);
  add("clock_hz", NPU_KNOWN_CLOCK, info.clock_hz);
  add("memory_bandwidth", NPU_KNOWN_BANDWIDTH, info.memory_bandwidth);
  add("host_read_bandwidth", NPU_KNOWN_HOST_READ, info.host_read_bandwidth);
  add("host_write_bandwidth", NPU_KNOWN_HOST_WRITE, info.host_write_bandwidth);
  add("launch_overhead_ns", NPU_KNOWN_LAUNCH, info.launch_overhead_ns);
  add("on_chip_bytes", NPU_KNOWN_ON_CHIP, info.on_chip_bytes);
  add("max_programs_in_flight", NPU_KNOWN_IN_FLIGHT, info.max_programs_in_flight);
  add("max_queues", NPU_KNOWN_QUEUES, info.max_queues);
  add("concurrent_compiles", NPU_KNOWN_COMPILES, info.concurrent_compiles);
}

void read_dtypes(const npu_device_info& info, DeviceFacts& facts) {
  for (std::uint64_t i = 0; info.dtypes != nullptr && i < std::min(info.dtype_count, kMostDtypes);
       ++i) {
    const npu_dtype_info* each = info.dtypes[i];
    if (each == nullptr || !NPU_HAS(each, flags)) continue;
    DTypeFacts& dtype = facts.dtypes.emplace_back();
    dtype.dtype = each->dtype;
    dtype.flags = each->flags;
    const bool has_peak = NPU_HAS(each, peak_ops_per_second) && (each->known & NPU_KNOWN_PEAK) != 0;
    if (has_peak) dtype.peak_ops_per_second = each->peak_ops_per_second;
  }
}

/// The memories, and the facts of memory 0, in which every tensor lies that is not said to lie
/// elsewhere.
void read_memory(const npu_device_info& info, DeviceFacts& facts) {
  if (info.memory_count == 0 || info.memory_count > kMostMemories || info.memories == nullptr) {
    return;
  }
  for (std::uint64_t i = 0; i < info.memory_count; ++i) {
    const npu_memory_info* each = info.memories[i];
    MemoryFacts& fact = facts.memories.emplace_back();
    if (each == nullptr || !NPU_HAS(each, total_bytes)) continue;
    read_memory_numbers(*each, fact);
    const bool is_pinned = each->kind == NPU_MEMORY_HOST_PINNED && is_coherent(*each);
    if (is_pinned && !facts.pinned_memory) facts.pinned_memory = static_cast<std::uint32_t>(i);
    if ((each->known & NPU_KNOWN_TOTAL) != 0) fact.total_bytes = each->total_bytes;
  }
  const npu_memory_info* memory = info.memories[0];
  if (memory == nullptr || !NPU_HAS(memory, alignment)) return;
  facts.is_coherent = is_coherent(*memory);
  facts.wraps_host = (memory->flags & NPU_WRAPS_HOST_POINTER) != 0;
  if ((memory->known & NPU_KNOWN_ALIGNMENT) != 0) {
    facts.alignment = std::max<std::uint64_t>(memory->alignment, 1);
  }
}

DeviceFacts facts_of(const npu_device_info& info, const std::string& path, std::uint64_t index) {
  DeviceFacts facts;
  facts.id = text_of(info.id);
  facts.name = text_of(info.name);
  facts.driver = text_of(info.driver);
  facts.arch = text_of(info.arch);
  facts.vendor = text_of(info.vendor);
  facts.kind = info.kind;
  facts.fingerprint = text_of(info.fingerprint);
  facts.usable = info.usable != 0;
  facts.why_not = text_of(info.why_not);
  if (facts.id.empty() || facts.fingerprint.empty()) {
    refuse_file(path, "device " + std::to_string(index) + " of the backend has no " +
                          (facts.id.empty() ? "id" : "fingerprint"));
  }
  if (NPU_HAS(&info, concurrent_compiles) && (info.known & NPU_KNOWN_COMPILES) != 0) {
    facts.concurrent_compiles = std::max(info.concurrent_compiles, 1U);
  }
  if (NPU_HAS(&info, max_queues)) {
    const auto number = [&](std::uint64_t bit, std::uint32_t value) {
      return (info.known & bit) != 0 ? std::max(value, 1U) : 1U;
    };
    facts.programs_in_flight = number(NPU_KNOWN_IN_FLIGHT, info.max_programs_in_flight);
    facts.queues = number(NPU_KNOWN_QUEUES, info.max_queues);
  }
  read_memory(info, facts);
  read_numbers(info, facts);
  read_dtypes(info, facts);
  return facts;
}

/// The names of a backend's own options; nothing if it does not state them.
std::optional<std::vector<std::string>> option_keys_of(const npu_backend_info& info,
                                                       const std::string& path) {
  if (!NPU_HAS(&info, option_keys) || info.option_keys == nullptr) return std::nullopt;
  std::vector<std::string> keys;
  Json json;
  try {
    json = parse_json(info.option_keys, "option_keys");
  } catch (const Error& error) {
    refuse_file(path, "the option_keys of the backend are no JSON: " + error.message());
  }
  if (!json.is_object()) refuse_file(path, "the option_keys of the backend are no JSON object");
  for (const auto& [key, value] : json.items()) keys.push_back(printable_text(key));
  return keys;
}

Description description_of(const npu_backend& api, const std::string& path,
                           const std::string& name) {
  Description description;
  npu_error error = empty_error();
  check_status(api.backend_info(&description.info, &error), error, name, "");
  if (description.info.name == nullptr || description.info.struct_size > sizeof description.info) {
    refuse_file(path, "the backend fills its info wrongly");
  }
  if (description.info.ir_version_min > NPU_IR_VERSION ||
      description.info.ir_version_max < NPU_IR_VERSION) {
    refuse_file(path, "the backend reads sub-IRs of versions " +
                          std::to_string(description.info.ir_version_min) + " to " +
                          std::to_string(description.info.ir_version_max) + ", this host writes " +
                          std::to_string(NPU_IR_VERSION));
  }
  description.option_keys = option_keys_of(description.info, path);
  for (std::uint64_t i = 0; i < kMostDevices; ++i) {
    npu_device_info info = sized<npu_device_info>();
    error = empty_error();
    const npu_status status = api.device_info(i, &info, &error);
    if (status == NPU_END) break;
    check_status(status, error, name, text_of(description.info.version));
    description.devices.push_back(facts_of(info, path, i));
  }
  return description;
}

// Backends bring OpenMP. GNU's workers spin at barriers for milliseconds before they sleep, which
// makes a run ten times slower as soon as another process wants a core. The library reads the
// variable when it is loaded; whoever has set a policy keeps it.
void limit_openmp_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

bool matches(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return pattern == text;
  pattern.remove_suffix(1);
  return text.starts_with(pattern);
}

}  // namespace

bool DeviceFacts::stores(npu_dtype dtype) const {
  return std::any_of(dtypes.begin(), dtypes.end(), [&](const DTypeFacts& each) {
    return each.dtype == dtype && (each.flags & NPU_DTYPE_STORAGE) != 0;
  });
}

std::vector<std::string> backend_search_path() { return plugin_folders(kBackends); }

std::string Backend::find_file(std::string_view name) {
  return is_library_name(name) ? find_plugin(kBackends, name) : std::string();
}

void Backend::look_at(const std::string& path, const std::string& name) {
  description_of(*backend_table(open_backend(path), path, name), path, name);
}

bool Backend::has_feature(std::string_view name) const { return lists_feature(*api_, name); }

/// The facts of devices that are not here, which the backend compiles for; made once for each.
const DeviceFacts& Backend::absent_device(std::string_view arch) const {
  static std::mutex mutex;
  static std::map<std::pair<const Backend*, std::string>, DeviceFacts> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace({this, std::string(arch)});
  DeviceFacts& facts = found->second;
  if (!is_new) return facts;
  // One that is listed and not usable still says what its blobs depend on.
  for (const DeviceFacts& device : devices_) {
    if (device.arch == arch) facts = device;
  }
  facts.arch = arch;
  if (facts.id.empty()) facts.id = "arch:" + facts.arch;
  if (facts.fingerprint.empty()) facts.fingerprint = "arch " + facts.arch;
  facts.usable = false;
  facts.is_absent = true;
  return facts;
}

const DeviceFacts& Backend::device(std::string_view instance) const {
  std::string known;
  const bool is_arch = instance.starts_with(kArchPrefix);
  const std::string_view arch = is_arch ? instance.substr(kArchPrefix.size()) : "";
  for (const DeviceFacts& device : devices_) {
    const bool wanted = is_arch ? device.arch == arch
                                : instance.empty() || matches(instance, device.id) ||
                                      matches(instance, device.name);
    if (wanted && device.usable) return device;
    known += (known.empty() ? "" : ", ") + device.id;
    if (!device.usable) known += " (not usable: " + device.why_not + ")";
  }
  if (is_arch && has_feature("offline")) return absent_device(arch);
  const std::string which =
      instance.empty() ? "no usable device" : "no usable device '" + std::string(instance) + "'";
  throw Error(ErrorCode::kUnsupported, "backend '" + name_ + "' has " + which + " here; it has " +
                                           (known.empty() ? "none" : known));
}

std::shared_ptr<const Backend> Backend::load(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Backend>, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) return found->second;
  if (!is_library_name(name)) {
    throw Error(ErrorCode::kUnsupported,
                "'" + std::string(name) + "' is no backend name; expected a-z, 0-9, '_' and '-'");
  }
  std::string tried;
  const std::string path = find_plugin(kBackends, name, &tried);
  if (path.empty()) {
    throw Error(ErrorCode::kUnsupported,
                "backend '" + std::string(name) + "' (" + plugin_file(kBackends, name) +
                    ") is in none of: " + tried +
                    (!knows_program_file() ? " (/proc does not say where the program lies)" : "") +
                    "; set NPU_BACKEND_PATH to its folder");
  }
  const LogTimer timer(LogModule::kDevice);
  limit_openmp_spinning();
  probe_plugin(kBackends, path, std::string(name));
  auto backend = std::make_shared<Backend>();
  backend->api_ = backend_table(open_backend(path), path, std::string(name));
  backend->path_ = path;
  Description description = description_of(*backend->api_, path, std::string(name));
  backend->name_ = text_of(description.info.name);
  backend->version_ = text_of(description.info.version);
  backend->flags_ = description.info.flags;
  backend->option_keys_ = std::move(description.option_keys);
  backend->devices_ = std::move(description.devices);
  if (backend->name_ != name) {
    refuse_file(path, "the backend calls itself '" + backend->name_ + "', expected '" +
                          std::string(name) + "'");
  }
  loaded.emplace(backend->name_, backend);
  timer.done([&] {
    return "backend '" + backend->name_ + "' " + backend->version_ + " loaded from " + path;
  });
  for (const DeviceFacts& device : backend->devices_) {
    log(LogModule::kDevice, LogLevel::kDebug, [&] {
      return "backend '" + backend->name_ + "': device " + device.id +
             (device.usable ? "" : ", not usable: " + device.why_not) + ", fingerprint " +
             device.fingerprint;
    });
  }
  return backend;
}

}  // namespace npu
