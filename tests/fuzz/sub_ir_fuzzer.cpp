// SPDX-License-Identifier: Apache-2.0
// The C reader that vendors include. Any text is refused with a place, or gives views whose numbers
// all lead somewhere; it takes the JSON that the library takes, with the same values; and what the
// library writes for backends from a document, it reads as the library does.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../unit/ir/compare_sub_ir.hpp"
#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"

using npu::fuzz::require;

namespace {

void check_error(const npu_ir_error& error, std::string_view text) {
  const std::string_view message = error.text;
  require(!message.empty() && message.size() < sizeof error.text, "an error has a text");
  require(error.line > 0 && error.column > 0 && error.offset <= text.size(),
          "an error has a place");
}

void check_tensors(const npu_ir& ir) {
  for (std::uint32_t i = 0; i < ir.tensor_count; ++i) {
    const npu_ir_tensor& tensor = ir.tensors[i];
    const std::uint32_t kind = i < ir.input_count                     ? NPU_IR_INPUT
                               : i < ir.input_count + ir.weight_count ? NPU_IR_WEIGHT
                                                                      : NPU_IR_RESULT;
    require(tensor.kind == kind && tensor.dtype < NPU_IR_DTYPE_COUNT && *tensor.name != '\0',
            "tensors are known");
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < tensor.rank; ++d) {
      require(tensor.shape[d] >= 0, "extents are not negative");
      elements *= static_cast<std::uint64_t>(tensor.shape[d]);
    }
    require(tensor.elements == elements && tensor.bytes <= INT64_MAX, "sizes fit");
    require((kind == NPU_IR_RESULT) == (tensor.producer < ir.node_count), "results have nodes");
  }
}

void check_views(const npu_ir& ir) {
  check_tensors(ir);
  for (std::uint32_t n = 0; n < ir.node_count; ++n) {
    const npu_ir_node& node = ir.nodes[n];
    require(*node.name != '\0' && *node.op != '\0', "nodes have names");
    for (std::uint32_t i = 0; i < node.input_count; ++i) {
      require(node.inputs[i] < ir.tensor_count, "operands exist");
      const npu_ir_tensor& tensor = ir.tensors[node.inputs[i]];
      require(tensor.kind != NPU_IR_RESULT || tensor.producer < n, "producers stand first");
    }
    for (std::uint32_t i = 0; i < node.output_count; ++i) {
      require(node.outputs[i] < ir.tensor_count && ir.tensors[node.outputs[i]].producer == n &&
                  ir.tensors[node.outputs[i]].index == i,
              "results know their node");
    }
  }
  for (std::uint32_t i = 0; i < ir.output_count; ++i) {
    require(ir.outputs[i] < ir.tensor_count, "outputs exist");
  }
}

std::optional<npu::Json> library_json(std::string_view text) {
  try {
    return npu::parse_json(text, "fuzz.json");
  } catch (const npu::Error&) {
    return std::nullopt;
  }
}

void check_json(std::string_view text) {
  // What a C string cannot hold, and a mark that no writer here makes.
  if (text.find("\\u0000") != std::string_view::npos || text.starts_with("\xef\xbb\xbf")) return;
  npu_ir_error error{};
  npu_json* read = npu_json_read(text.data(), text.size(), &error);
  const std::optional<npu::Json> expected = library_json(text);
  if (read == nullptr) {
    check_error(error, text);
    require(!expected, std::string("the library takes this JSON: ") + error.text);
  } else {
    require(expected.has_value(), "the library refuses this JSON");
    const std::string found = npu::test::json_difference(*read, *expected);
    require(found.empty(), found);
  }
  npu_json_free(read);
}

void check_written(std::string_view text) {
  npu::Diagnostics faults;
  try {
    const npu::Graph graph = npu::read_graph(text, "fuzz.json", faults);
    if (faults.has_errors()) return;
    std::vector<npu::NodeId> nodes;
    for (const npu::NodeId id : npu::ids_of<npu::NodeId>(graph.nodes())) nodes.push_back(id);
    const std::string written = npu::write_subgraph(graph, nodes, npu::find_boundary(graph, nodes));
    if (written.find("\\u0000") != std::string::npos) return;
    const npu::Graph again = npu::read_valid_graph(written, "sub-IR");
    const std::string found = npu::test::sub_ir_difference(written, again);
    require(found.empty(), found);
  } catch (const npu::Error&) {
    return;  // no document
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu_ir_error error{};
  npu_ir* ir = npu_ir_read(text.data(), text.size(), &error);
  if (ir == nullptr) {
    check_error(error, text);
  } else {
    require(npu_ir_memory(text.data(), size, &error) <= 64 * size + 512, "memory is bounded");
    check_views(*ir);
  }
  npu_ir_free(ir);
  check_json(text);
  check_written(text);
  return 0;
}
