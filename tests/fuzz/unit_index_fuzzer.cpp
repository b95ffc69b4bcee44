// SPDX-License-Identifier: Apache-2.0
// The index of a folder of units: it is refused with a place, or names files within the folder,
// once each, and is written again as it was read.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "gnn/run/block_index.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

namespace {

void check(const npu::gnn::BlockIndex& index) {
  std::set<std::string> names;
  for (const npu::gnn::IndexedBlock& unit : index.units) {
    require(static_cast<std::size_t>(unit.key.device) < index.devices.size(), "a device is listed");
    const npu::gnn::IndexedDevice& device =
        index.devices[static_cast<std::size_t>(unit.key.device)];
    const std::string name = npu::gnn::block_name(unit.key, device.name);
    require(name.find('/') == std::string::npos && name.front() != '.', "a file of the folder");
    require(name.size() < 250, "a name that file systems take");
    require(names.insert(name).second, "each unit has a file of its own");
  }
  const npu::Json json = npu::gnn::to_json(index);
  require(npu::gnn::block_index_from_json(json, "again.json") == index, "writing loses nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(npu::gnn::block_index_from_json(npu::parse_json(text, "fuzz.json"), "fuzz.json"));
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == "fuzz.json",
            "errors say what and where");
  }
  return 0;
}
