// SPDX-License-Identifier: Apache-2.0
// consumer MODEL.json BUNDLE: reads a document, tags, partitions and compiles it, writes the
// bundle, and runs it beside the device cpu.
#include <cstdio>

#include "npu/compile/bundle.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"

extern "C" unsigned vendor_abi_version();

namespace {

void stop_on_errors(const npu::Diagnostics& diagnostics) {
  if (!diagnostics.has_errors()) return;
  throw npu::Error(npu::ErrorCode::kInvalidGraph,
                   npu::format_diagnostic(diagnostics.entries().front()));
}

bool consume(const std::string& document, const std::string& bundle) {
  npu::Diagnostics diagnostics;
  npu::Graph graph = npu::read_graph(npu::read_file(document), document, diagnostics);
  stop_on_errors(diagnostics);
  const npu::Target target = npu::load_target("host");
  npu::tag_ops(graph, target, {}, diagnostics);
  stop_on_errors(diagnostics);
  std::size_t count = 0;
  for (const npu::Node& node : graph.nodes()) count += node.device == target.devices.front().name;
  std::printf("%s: %zu nodes, %zu on %s\n", graph.model_name().c_str(), graph.nodes().size(), count,
              target.devices.front().name.c_str());

  npu::partition_graph(graph, {}, diagnostics);
  npu::CompileModelOptions compiling;
  compiling.cache.enabled = false;
  const npu::CompileModelResult compiled = npu::compile_model(graph, compiling, diagnostics);
  stop_on_errors(diagnostics);
  npu::write_bundle(bundle, compiled.content);

  npu::RunModelOptions running;
  running.random_inputs = 0;
  running.verify_device = "cpu";
  running.weights.file = npu::weights_file_of(graph);  // for the device cpu: the bundle has npu's
  const npu::RunReport report = npu::run_bundle(*npu::Bundle::open(bundle), running, diagnostics);
  stop_on_errors(diagnostics);
  return report.verify && report.verify->ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || vendor_abi_version() == 0) return 2;
  try {
    return consume(argv[1], argv[2]) ? 0 : 1;
  } catch (const npu::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
