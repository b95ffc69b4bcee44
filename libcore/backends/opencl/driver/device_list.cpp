// SPDX-License-Identifier: Apache-2.0
// Asks the installed drivers, once a process; no context is made.
#include "driver/device_list.hpp"

#include <algorithm>
#include <array>

namespace npu::opencl {
namespace {

/// What kernels and blobs depend on besides the driver; a change of generated code raises it.
constexpr int kCodeVersion = 14;

template <typename Number>
Number number_of(cl_device_id device, cl_device_info what) {
  Number number{};
  if (clGetDeviceInfo(device, what, sizeof number, &number, nullptr) != CL_SUCCESS) return {};
  return number;
}

std::string text_of(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (clGetDeviceInfo(device, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(text.find_first_of('\0') == std::string::npos ? size : text.find_first_of('\0'));
  return text;
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  char text[512] = {};
  if (clGetPlatformInfo(platform, what, sizeof text - 1, text, nullptr) != CL_SUCCESS) return {};
  return text;
}

DeviceFacts facts_of(cl_platform_id platform, cl_device_id device, std::size_t number) {
  DeviceFacts facts;
  facts.device = device;
  facts.id = "opencl:" + std::to_string(number);
  facts.name = text_of(device, CL_DEVICE_NAME);
  facts.vendor = text_of(device, CL_DEVICE_VENDOR);
  facts.driver =
      platform_text(platform, CL_PLATFORM_NAME) + " " + text_of(device, CL_DRIVER_VERSION);
  facts.finishes_at_start = facts.driver.starts_with("Portable Computing Language");
  facts.type = number_of<cl_device_type>(device, CL_DEVICE_TYPE);
  facts.compute_units = number_of<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  facts.clock_hz =
      std::uint64_t{1'000'000} * number_of<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  facts.memory_bytes = number_of<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.largest_buffer = number_of<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.local_bytes = number_of<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  const std::string extensions = text_of(device, CL_DEVICE_EXTENSIONS);
  facts.has_float64 = extensions.find("cl_khr_fp64") != std::string::npos;
  facts.has_float16 = extensions.find("cl_khr_fp16") != std::string::npos;
  facts.max_group = number_of<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  facts.fingerprint = "opencl " + facts.name + " " + facts.driver + " " +
                      text_of(device, CL_DEVICE_VERSION) + " code " + std::to_string(kCodeVersion);
  const bool is_available = number_of<cl_bool>(device, CL_DEVICE_AVAILABLE) != 0 &&
                            number_of<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) != 0;
  const bool is_large = facts.max_group >= 64 && facts.local_bytes >= 16384;
  facts.is_usable =
      is_available && is_large && number_of<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) != 0;
  if (!is_available) {
    facts.why_not = "the driver says that the device or its compiler is not available";
  } else if (!facts.is_usable) {
    facts.why_not = "expected work groups of 64 items, 16 KiB of local memory and little endian";
  }
  return facts;
}

DeviceFacts no_device(const std::string& why) {
  DeviceFacts facts;
  facts.id = "opencl:0";
  facts.name = "none";
  facts.fingerprint = "opencl none";
  facts.why_not = why;
  return facts;
}

/// Drivers that run on the CPU are often installed beside that of a graphics card, and may come
/// first; whoever names no device means the card.
int rank_of(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return 0;
  return (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
}

std::vector<DeviceFacts> find_devices() {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint platform_count = 0;
  const cl_int status = clGetPlatformIDs(platforms.size(), platforms.data(), &platform_count);
  if (status != CL_SUCCESS || platform_count == 0) {
    return {
        no_device("no OpenCL driver is installed; install that of the device, or pocl-opencl-icd "
                  "for the CPU")};
  }
  struct Found {
    cl_platform_id platform;
    cl_device_id device;
    int rank;
  };
  std::vector<Found> found;
  platform_count = std::min<cl_uint>(platform_count, platforms.size());
  for (cl_uint p = 0; p < platform_count; ++p) {
    std::array<cl_device_id, 32> devices{};
    cl_uint count = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, devices.size(), devices.data(), &count) !=
        CL_SUCCESS) {
      continue;
    }
    for (cl_uint d = 0; d < std::min<cl_uint>(count, devices.size()); ++d) {
      const auto type = number_of<cl_device_type>(devices[d], CL_DEVICE_TYPE);
      found.push_back({platforms[p], devices[d], rank_of(type)});
    }
  }
  std::ranges::stable_sort(found, {}, &Found::rank);
  std::vector<DeviceFacts> result;
  for (const Found& each : found) {
    result.push_back(facts_of(each.platform, each.device, result.size()));
  }
  if (result.empty()) result.push_back(no_device("the installed OpenCL drivers have no device"));
  return result;
}

}  // namespace

const std::vector<DeviceFacts>& device_list() {
  static const std::vector<DeviceFacts> devices = find_devices();
  return devices;
}
}  // namespace npu::opencl
