// SPDX-License-Identifier: Apache-2.0
// Identifies a host, so that times measured on different ones are not mixed. Reads /proc/cpuinfo.
#include "npu/profile/host_fingerprint.hpp"

#include <fstream>
#include <string>
#include <thread>

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
  return json;
}

}  // namespace npu
