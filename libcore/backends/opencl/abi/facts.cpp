// SPDX-License-Identifier: Apache-2.0
// What the backend says of itself and of its devices, and opening one.
#include <algorithm>

#include "abi/boundary.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

constexpr const char* kVersion = NPU_VERSION " (OpenCL 1.2)";

const char* option_keys() {
  return R"({"tiles": {"type": "string", "default": "auto", "text": "which kernels: cpu, gpu, or auto by the kind of the device"}, "tuning": {"type": "object", "default": {}, "text": "measured sizes of kernels, by fingerprint of the device and kernel"}, "tune": {"type": "boolean", "default": false, "text": "measure sizes that the option tuning lacks when a model is compiled"}})";
}

/// A device's facts in the form of the interface.
struct DeviceSheet {
  npu_memory_info memory{};
  const npu_memory_info* memories[1]{};
  std::vector<npu_dtype_info> dtypes;
  std::vector<const npu_dtype_info*> dtype_pointers;
  npu_device_info info{};
};

void fill_dtypes(DeviceSheet& sheet, const DeviceFacts& facts) {
  for (std::uint32_t dtype = 0; dtype < static_cast<std::uint32_t>(kDTypeCount); ++dtype) {
    if (dtype == NPU_COMPLEX64 || dtype == NPU_COMPLEX128) continue;
    if (dtype == NPU_FLOAT64 && !facts.has_float64) continue;
    npu_dtype_info info{};
    info.struct_size = sizeof info;
    info.dtype = dtype;
    info.flags = NPU_DTYPE_STORAGE | NPU_DTYPE_ARITHMETIC;
    sheet.dtypes.push_back(info);
  }
  for (const npu_dtype_info& info : sheet.dtypes) sheet.dtype_pointers.push_back(&info);
}

npu_memory_info memory_of(const DeviceFacts& facts) {
  npu_memory_info memory{};
  memory.struct_size = sizeof memory;
  memory.name = "global";
  memory.kind = NPU_MEMORY_DEVICE;
  memory.flags = NPU_HOST_MAPPABLE;
  memory.known = NPU_KNOWN_TOTAL | NPU_KNOWN_MAX_BUFFER;
  memory.total_bytes = facts.memory_bytes;
  memory.max_buffer_bytes = facts.largest_buffer;
  return memory;
}

std::uint32_t kind_of(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_CPU) != 0) return NPU_DEVICE_CPU;
  return (type & CL_DEVICE_TYPE_GPU) != 0 ? NPU_DEVICE_GPU : NPU_DEVICE_OTHER;
}

void fill_sheet(DeviceSheet& sheet, const DeviceFacts& facts) {
  fill_dtypes(sheet, facts);
  sheet.memory = memory_of(facts);
  sheet.memories[0] = &sheet.memory;
  npu_device_info& info = sheet.info;
  info.id = facts.id.c_str();
  info.name = facts.name.c_str();
  info.vendor = facts.vendor.c_str();
  info.arch = facts.name.c_str();
  info.driver = facts.driver.c_str();
  info.fingerprint = facts.fingerprint.c_str();
  info.kind = kind_of(facts.type);
  info.usable = facts.is_usable ? 1 : 0;
  info.why_not = facts.why_not.c_str();
  info.memories = sheet.memories;
  info.memory_count = 1;
  info.dtypes = sheet.dtype_pointers.data();
  info.dtype_count = sheet.dtype_pointers.size();
  info.known = NPU_KNOWN_COMPUTE_UNITS | NPU_KNOWN_CLOCK | NPU_KNOWN_ON_CHIP | NPU_KNOWN_IN_FLIGHT |
               NPU_KNOWN_QUEUES | NPU_KNOWN_COMPILES;
  info.compute_units = facts.compute_units;
  info.clock_hz = facts.clock_hz;
  info.on_chip_bytes = facts.local_bytes;
  info.max_programs_in_flight = 16;
  info.max_queues = 16;
  info.concurrent_compiles = 4;
}

const std::vector<DeviceSheet>& sheets() {
  static const std::vector<DeviceSheet> made = [] {
    std::vector<DeviceSheet> result(device_list().size());
    for (std::size_t i = 0; i < result.size(); ++i) fill_sheet(result[i], device_list()[i]);
    return result;
  }();
  return made;
}

/// The device asked for, or the first usable one.
const DeviceFacts& find_device(const char* id) {
  for (const DeviceFacts& facts : device_list()) {
    if (id == nullptr ? facts.is_usable : facts.id == id) {
      if (facts.is_usable) return facts;
      throw StatusError{NPU_UNSUPPORTED, "device '" + facts.id + "': " + facts.why_not};
    }
  }
  const DeviceFacts& first = device_list().front();
  if (id == nullptr) throw StatusError{NPU_UNSUPPORTED, first.why_not};
  throw StatusError{NPU_INVALID, "there is no device '" + std::string(id) +
                                     "'; expected opencl:0 to opencl:" +
                                     std::to_string(device_list().size() - 1)};
}

Machine machine_of(const DeviceFacts& facts) {
  Machine machine;
  machine.has_float64 = facts.has_float64;
  machine.has_float16 = facts.has_float16;
  machine.is_cpu = (facts.type & CL_DEVICE_TYPE_CPU) != 0;
  machine.finishes_at_start = facts.finishes_at_start;
  machine.max_group = static_cast<std::int64_t>(facts.max_group);
  machine.local_bytes =
      static_cast<std::int64_t>(std::min<std::uint64_t>(facts.local_bytes, INT32_MAX));
  machine.compute_units = static_cast<std::int64_t>(facts.compute_units);
  return machine;
}

void read_tiles(const Json& json, Machine& machine) {
  const Json* tiles = find_member(json, "tiles");
  if (tiles == nullptr || *tiles == "auto") return;
  require(tiles->is_string() && (*tiles == "cpu" || *tiles == "gpu"),
          "device option 'tiles': expected \"auto\", \"cpu\" or \"gpu\"");
  machine.is_cpu = *tiles == "cpu";
}

void read_tuning(const Json& json, const std::string& fingerprint, Machine& machine) {
  constexpr const char* kExpected =
      "device option 'tuning': expected lists of sizes by device and kernel";
  const Json* tuning = find_member(json, "tuning");
  if (tuning == nullptr) return;
  require(tuning->is_object(), kExpected);
  const Json* kernels = find_member(*tuning, fingerprint);
  if (kernels == nullptr) return;
  require(kernels->is_object(), kExpected);
  for (const auto& [kernel, sizes] : kernels->items()) {
    require(sizes.is_array(), kExpected);
    std::vector<std::int64_t>& target = machine.tuning[kernel];
    for (const Json& size : sizes) {
      require(size.is_number_integer(), kExpected);
      target.push_back(size.get<std::int64_t>());
    }
  }
}

/// What the options of an opening say.
struct OpenOptions {
  Machine machine;
  bool measures = false;
};

OpenOptions read_options(const char* options, const DeviceFacts& facts) {
  OpenOptions result{machine_of(facts), false};
  if (options == nullptr || *options == '\0') return result;
  const Json json = parse_json(options, "device options");
  require(json.is_object(), "device options: expected a JSON object");
  read_tiles(json, result.machine);
  read_tuning(json, facts.fingerprint, result.machine);
  const Json* tune = find_member(json, "tune");
  require(tune == nullptr || tune->is_boolean(), "device option 'tune': expected true or false");
  result.measures = tune != nullptr && tune->get<bool>();
  return result;
}

}  // namespace

npu_status backend_info(npu_backend_info* info, npu_error* error) {
  return guarded(error, [&] {
    require(info != nullptr, "info is null");
    npu_backend_info filled{};
    filled.name = "opencl";
    filled.version = kVersion;
    filled.ir_version_min = filled.ir_version_max = NPU_IR_VERSION;
    filled.option_keys = option_keys();
    fill(info, filled);
  });
}

npu_status device_info(std::uint64_t index, npu_device_info* info, npu_error* error) {
  bool is_end = false;
  const npu_status status = guarded(error, [&] {
    is_end = index >= device_list().size();
    if (is_end) return;
    require(info != nullptr, "info is null");
    fill(info, sheets()[static_cast<std::size_t>(index)].info);
  });
  return status == NPU_OK && is_end ? NPU_END : status;
}

npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error) {
  return guarded(error, [&] {
    require(args != nullptr && NPU_HAS(args, options) && device != nullptr, "an argument is null");
    require((args->flags & NPU_OPEN_COMPILE_ONLY) == 0,
            "compiling without the device is not offered");
    const DeviceFacts& facts = find_device(args->device_id);
    OpenOptions options = read_options(args->options, facts);
    auto opened = std::make_unique<npu_device>(facts);
    opened->machine = std::move(options.machine);
    opened->measures = options.measures;
    const std::uint64_t all = facts.memory_bytes;
    const std::uint64_t limit = NPU_HAS(args, memory_limit_bytes) ? args->memory_limit_bytes : 0;
    opened->ledger = std::make_shared<MemoryLedger>(limit == 0 ? all : std::min(limit, all));
    *device = opened.release();
  });
}

void device_close(npu_device* device) { delete device; }

npu_status device_memory(npu_device* device, std::uint32_t memory, npu_memory_state* state,
                         npu_error* error) {
  return guarded(error, [&] {
    require_given(device, state);
    require(memory == 0, "there is one memory");
    fill(state, device->ledger->state());
  });
}
npu_status clock_sample(npu_device* device, npu_clock_sample* sample, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, sample);
    fill(sample, device->clock.sample(*device));
  });
}

}  // namespace npu::opencl
