// SPDX-License-Identifier: Apache-2.0
// Folded constants have the bits of a run, come from the cache without a backend, and only
// constants are folded.
#include "npu/compile/fold_constants.hpp"

#include "catch.hpp"
#include "device/isa_level.hpp"
#include "graph_builder.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/json.hpp"
#include "runtime/random_tensor.hpp"
#include "same_bits.hpp"
#include "set_variable.hpp"
#include "support/temporary_folder.hpp"
#include "vendor.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// A mask made by writing into parts of a tensor, an index into a weight, a grid: what vision
// transformers compute in every run. The npu below has none of these ops.
Graph masks() {
  return graph_of(R"(
    input x [4,4]; weight table [5,4]; weight index [4] int64; weight v []
    bias = aten.index.Tensor(p_table, p_index) [4,4] {"_tensor_list_sizes": [1]}
    curved = asin(bias)
    zeros = new_zeros(x) {"size": [4, 4]}
    part = aten.slice.Tensor(zeros) [2,4] {"dim": 0, "end": 2}
    set = aten.fill_.Tensor(part, p_v)
    mask = slice_scatter(zeros, set) {"dim": 0, "end": 2}
    like = full_like(x) {"fill_value": -0.5}
    grid = aten.arange.start() int64 {"start": 1, "end": 5}
    a = aten.add.Tensor(x, curved)
    b = aten.mul.Tensor(a, mask)
    c = atan2(b, like); output c, grid, like)");
}

const Target& few_ops() {
  static const Target target = parse_target(parse_json(R"({
    "name": "few",
    "devices": [
      {"name": "npu", "backend": "onednn", "dtypes": ["float32"], "fusion": ["constant"],
       "ops": [{"types": ["aten.add.Tensor", "aten.mul.Tensor"]}],
       "peak_flops": {"float32": 1}, "memory_bandwidth": 1},
      {"name": "cpu", "backend": "aten", "ops": "*", "peak_flops": {"float32": 1},
       "memory_bandwidth": 1}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1}]
  })",
                                                       "few.json"),
                                            "few.json");
  return target;
}

Tensor index_tensor() {
  Tensor index(DType::kInt64, {4});
  for (int i = 0; i < 4; ++i) index.as_mutable<std::int64_t>()[i] = (3 * i) % 5;
  return index;
}

std::vector<Tensor> weights_of(const Graph& graph) {
  Diagnostics diagnostics;
  auto weights = load_weights(graph, {.file = {}, .random_seed = 1}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  weights[static_cast<std::size_t>(graph.find_tensor("p_index").value)] = index_tensor();
  return weights;
}

Graph tagged(bool fold) {
  Graph graph = masks();
  TagOptions options;
  options.fold = fold;
  Diagnostics diagnostics;
  tag_ops(graph, few_ops(), options, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

CompileOptions single_thread() {
  CompileOptions options;
  options.threads = 1;
  return options;
}

std::vector<Tensor> results(Graph& graph, const std::vector<Tensor>& weights) {
  Diagnostics diagnostics;
  const PartitionPlan plan = partition_graph(graph, {}, diagnostics).plan;
  ExecutorOptions options;
  options.threads = 1;
  return compile_and_load(graph, plan, few_ops(), weights, options)
      .run({random_input(graph, graph.graph_inputs()[0], 3)}, nullptr);
}

Tensor folded_value(const Graph& graph, const std::vector<Tensor>& weights, const char* name) {
  return weights[static_cast<std::size_t>(graph.find_tensor(name).value)];
}

}  // namespace

TEST_CASE("a folded and an unfolded run have the same bits") {
  if (!has_cpu()) return;
  use_vendor_backend();
  Graph plain = tagged(false);
  Graph graph = tagged(true);
  REQUIRE(plain.folded().empty());
  REQUIRE(graph.folded().size() == 8);
  std::vector<Tensor> weights = weights_of(graph);
  const FoldedConstants done = fold_constants(graph, few_ops(), single_thread(), nullptr, weights);
  CHECK(done.device == "cpu");
  CHECK(done.nodes == 8);
  CHECK(done.tensors == 4);  // curved, mask, like and grid
  CHECK(done.bytes == 3 * 64 + 32);
  CHECK_FALSE(done.cache_hit);
  const std::vector<Tensor> expected = results(plain, weights_of(plain));
  const std::vector<Tensor> actual = results(graph, weights);
  REQUIRE(actual.size() == 3);
  for (std::size_t i = 0; i < actual.size(); ++i) CHECK(same_bits(actual[i], expected[i]));
  CHECK(folded_value(graph, weights, "grid").as<std::int64_t>()[3] == 4);
  CHECK(folded_value(graph, weights, "like").as<float>()[7] == -0.5F);
}

TEST_CASE("constants in the cache need no backend, and follow their weights") {
  if (!has_cpu()) return;
  use_vendor_backend();
  const TemporaryFolder folder;
  CompileCache cache({.enabled = true, .folder = folder / "cache"});
  const Graph graph = tagged(true);
  const Target target = few_ops();
  std::vector<Tensor> first = weights_of(graph);
  CHECK_FALSE(fold_constants(graph, target, single_thread(), &cache, first).cache_hit);
  std::vector<Tensor> second = weights_of(graph);
  CHECK(fold_constants(graph, target, single_thread(), &cache, second).cache_hit);
  for (const char* name : {"curved", "mask", "like", "grid"}) {
    CHECK(same_bits(folded_value(graph, first, name), folded_value(graph, second, name)));
  }
  std::vector<Tensor> third = weights_of(graph);
  Tensor other = index_tensor();
  other.as_mutable<std::int64_t>()[0] = 4;
  third[static_cast<std::size_t>(graph.find_tensor("p_index").value)] = other;
  CHECK_FALSE(fold_constants(graph, target, single_thread(), &cache, third).cache_hit);
  CHECK_FALSE(
      same_bits(folded_value(graph, first, "curved"), folded_value(graph, third, "curved")));
}

TEST_CASE("constants in the cache are those of a level of instructions") {
  if (!has_cpu()) return;
  use_vendor_backend();
  const TemporaryFolder folder;
  CompileCache cache({.enabled = true, .folder = folder / "cache"});
  const Graph graph = tagged(true);
  const auto is_hit = [&] {
    std::vector<Tensor> weights = weights_of(graph);
    return fold_constants(graph, few_ops(), single_thread(), &cache, weights).cache_hit;
  };
  CHECK_FALSE(is_hit());
  CHECK(is_hit());
  {
    const bool is_lower = isa_level() > 0;
    const IsaLimit limit("generic");
    CHECK(is_hit() != is_lower);
    CHECK(is_hit());
  }
  CHECK(is_hit());
}

TEST_CASE("a document that folds what is no constant is refused") {
  const auto refused = [](Graph graph, const std::string& name) {
    Json document = Json::parse(write_graph(graph));
    for (Json& node : document["nodes"]) {
      if (node["name"] == name) node["folded"] = true;
    }
    const Graph folded = read_valid_graph(document.dump(), "test.json");
    std::vector<Tensor> weights(folded.tensors().size());
    try {
      fold_constants(folded, few_ops(), {}, nullptr, weights);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidGraph);
      return std::string(error.what());
    }
    return std::string("folded");
  };
  CHECK(refused(GraphBuilder().input("x").node("y", "aten.relu.default", {"x"}).output("y").build(),
                "y") ==
        "test.json: /nodes/0: error: node 'y' (aten.relu.default) is folded, but it reads 'x', "
        "which is no constant; run npu-tag again");
  CHECK(refused(graph_of(R"(
    input x; weight w [4]
    y = relu(x)
    z = my.op(p_w); output y, z)"),
                "z") ==
        "test.json: /nodes/1: error: node 'z' (my.op) is folded, but its results may differ from "
        "run to run; run npu-tag again");
}

TEST_CASE("a graph without folded nodes has nothing to compute") {
  const Graph graph = masks();
  std::vector<Tensor> weights(graph.tensors().size());
  const FoldedConstants done = fold_constants(graph, few_ops(), {}, nullptr, weights);
  CHECK(done.device.empty());
  CHECK(done.nodes == 0);
}
