// SPDX-License-Identifier: Apache-2.0
// A file of tuned sizes: it is refused with a place, or every size is within its range, and it is
// written again as it was read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compile/tuning_table.hpp"
#include "fuzz_check.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const npu::TuningTable table =
        npu::tuning_table_from_json(npu::parse_json(text, "fuzz.json"), "fuzz.json");
    for (const auto& [device, kernels] : table.devices) {
      for (const auto& [kernel, sizes] : kernels) {
        require(!kernel.empty() && !sizes.empty(), "a kernel has a name and sizes");
        for (const std::int64_t each : sizes) require(each > 0, "sizes are positive");
      }
    }
    require(npu::tuning_table_from_json(npu::to_json(table), "again.json") == table,
            "writing loses nothing");
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == "fuzz.json",
            "errors say what and where");
  }
  return 0;
}
