// SPDX-License-Identifier: Apache-2.0
// Identifies a host, so that times measured on different ones are not mixed. Reads /proc/cpuinfo,
// and asks the BLAS if one is loaded.
#include "profile/host_fingerprint.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "device/blas_core.hpp"

namespace npu {

Json host_fingerprint(std::int32_t threads) {
  Json json = Json::object();
  std::ifstream cpu("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpu, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) json["cpu"] = line.substr(colon + 2);
    break;
  }
  json["cores"] = std::thread::hardware_concurrency();
  json["threads"] = threads;
  if (const std::string core = loaded_blas_core(); !core.empty()) json["blas"] = core;
  return json;
}

double host_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  double bytes = pages > 0 && page > 0 ? static_cast<double>(pages) * static_cast<double>(page) : 0;
  // "max" is not a number.
  std::ifstream group("/sys/fs/cgroup/memory.max");
  double limit = 0;
  if (group >> limit && limit > 0) bytes = bytes > 0 ? std::min(bytes, limit) : limit;
  return bytes;
}

}  // namespace npu
