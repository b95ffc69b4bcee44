// SPDX-License-Identifier: Apache-2.0
// A block of a graph, padded to more nodes and edges, is a case of the padding of any template: the
// layers of staged models are proved for every number of nodes and edges, and run so.
#include "catch.hpp"
#include "gnn/model/staged_model.hpp"
#include "ir/unify_sizes.hpp"
#include "npu/ir/json_writer.hpp"
#include "passes/padding/pad_graph.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

Json block_document(const StagedModel& model, std::int32_t layer, const SizeBindings& at) {
  const BlockShape shape{.owned = at.at("n"), .local = at.at("n"), .edges = at.at("m")};
  const auto last = model.layers[static_cast<std::size_t>(layer - 1)].stage_count();
  return parse_json(write_graph(model.block(layer, 1, last, shape)), "block");
}

Template layer_template(const StagedModel& model, std::int32_t layer, Diagnostics& faults) {
  std::vector<SizeSample> samples;
  for (const SizeBindings& at : sizes_to_sample({"m", "n"}, 3, 1)) {
    samples.push_back({at, block_document(model, layer, at)});
  }
  std::vector<SizeSymbol> symbols;
  for (const char* name : {"m", "n"}) {
    symbols.emplace_back();
    symbols.back().name = name;
    symbols.back().max = SizeExpression(4000);
  }
  auto document =
      unify_sizes(samples, SizeSymbols::of(std::move(symbols)), nullptr, "layer", faults);
  if (!document) return {};
  return Template::read(std::move(*document), "layer", faults);
}

}  // namespace

TEST_CASE("padding of nodes and edges is proved by the rules of any model", "[gnn][staged]") {
  for (const char* name : {"graphsage", "gcn", "gat", "narrow"}) {
    const StagedModel model =
        read_staged_model(std::string(NPU_TEST_DATA_DIR) + "/gnn/" + name + ".json");
    for (std::int32_t layer = 1; layer <= static_cast<std::int32_t>(model.layers.size()); ++layer) {
      INFO(name << ", layer " << layer);
      Diagnostics faults;
      const Template block = layer_template(model, layer, faults);
      for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
      const PaddedGraph padded = pad_graph(block, {{"m", 4000}, {"n", 1000}}, faults);
      for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
      verify_padding(padded.graph, faults);
      CHECK_FALSE(faults.has_errors());
      // Edges behind the valid ones repeat the last one, so that what is added has to be 0.
      CHECK_FALSE(padded.padding.masks.empty());
    }
  }
}
