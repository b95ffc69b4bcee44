// SPDX-License-Identifier: Apache-2.0
// Reading and writing: a document that no pass has changed keeps its content, and writing it a
// second time gives the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"

using npu::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string first;
  try {
    npu::Diagnostics diagnostics;
    const npu::Graph graph = npu::read_graph(text, "fuzz.json", diagnostics);
    if (diagnostics.has_errors()) return 0;
    first = npu::write_graph(graph);
  } catch (const npu::Error&) {
    return 0;
  }
  // From here on an Error is a find, too: what was written has to be readable.
  npu::Diagnostics diagnostics;
  const npu::Graph again = npu::read_graph(first, "written.json", diagnostics);
  require(!diagnostics.has_errors(), "a written document is valid");
  require(npu::write_graph(again) == first, "writing is idempotent");
  const npu::Json before = npu::parse_python_json(text, "fuzz.json");
  const npu::Json after = npu::parse_python_json(first, "written.json");
  // A NaN is equal to nothing.
  require(after == before || npu::has_non_finite(before), "the content is the same");
  return 0;
}
