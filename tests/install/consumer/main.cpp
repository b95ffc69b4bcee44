// SPDX-License-Identifier: Apache-2.0
// Reads a document, tags it, and prints how many of its nodes go to the first device.
#include <cstdio>

#include "npu/ir/json_reader.hpp"
#include "npu/passes.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"

extern "C" unsigned vendor_abi_version();

int main(int argc, char** argv) {
  if (argc != 2 || vendor_abi_version() == 0) return 2;
  try {
    npu::Diagnostics diagnostics;
    npu::Graph graph = npu::read_graph(npu::read_file(argv[1]), argv[1], diagnostics);
    const npu::Target target = npu::load_target("host");
    if (!diagnostics.has_errors()) npu::tag_ops(graph, target, {}, diagnostics);
    for (const npu::Diagnostic& entry : diagnostics.entries()) {
      std::fprintf(stderr, "%s\n", npu::format_diagnostic(entry).c_str());
    }
    if (diagnostics.has_errors()) return 1;
    std::size_t count = 0;
    for (const npu::Node& node : graph.nodes()) count += node.device == target.devices.front().name;
    std::printf("%s: %zu nodes, %zu on %s\n", graph.model_name().c_str(), graph.nodes().size(),
                count, target.devices.front().name.c_str());
    return 0;
  } catch (const npu::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
