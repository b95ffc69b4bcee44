// SPDX-License-Identifier: Apache-2.0
// A document with precisions: its certificate is refused with a message and a place, or holds, also
// when it is written and read again; one that claims another cost never holds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "passes/quantize/quantize.hpp"

using npu::fuzz::require;

namespace {

/// Empty if the certificate does not hold.
std::string verified(const npu::Graph& graph) {
  try {
    std::string lines = npu::verify_precisions(graph);
    require(!lines.empty(), "what holds is said");
    return lines;
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == graph.file,
            "messages say what and where");
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Diagnostics diagnostics;
  try {
    npu::Graph graph = npu::read_graph(text, "fuzz.json", diagnostics);
    if (diagnostics.has_errors()) return 0;
    const std::string lines = verified(graph);
    if (lines.empty()) return 0;
    const npu::Graph again = npu::read_graph(npu::write_graph(graph), "again.json", diagnostics);
    require(!diagnostics.has_errors(), "what is written is read again");
    require(verified(again) == lines, "a certificate holds after a round trip");
    npu::Json section = *graph.npu_member("precision");
    npu::Json& cost = section["certificate"]["cost"];
    cost = cost.get<std::int64_t>() + 1;
    graph.set_npu_member("precision", section);
    require(verified(graph).empty(), "a certificate with another cost does not hold");
  } catch (const npu::Error&) {  // no document
  }
  return 0;
}
