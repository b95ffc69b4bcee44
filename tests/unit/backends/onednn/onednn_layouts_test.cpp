// SPDX-License-Identifier: Apache-2.0
// Values between partitions of the onednn backend in its own layouts: no reorder stands between
// partitions that agree, results are the same, and what the host reads is row-major.
#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/target/target.hpp"
#include "runtime/random_tensor.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

/// Three partitions: a convolution; its ReLU, another one and a sum with the first; a third one.
class Chain {
 public:
  explicit Chain(const std::string& dtype = "float32", std::int64_t channels = 32)
      : graph_(build(dtype, channels)), target_(load_target("host")) {
    for (Node& node : graph_.nodes()) node.device = "npu";
    add_partition(0, 1);
    add_partition(1, 4);
    add_partition(4, static_cast<std::int32_t>(graph_.nodes().size()));
    Diagnostics diagnostics;
    weights_ = load_weights(graph_, {.file = {}, .random_seed = 1}, diagnostics);
    for (const TensorId id : graph_.graph_inputs()) inputs_.push_back(random_input(graph_, id, 1));
  }

  CompiledModel compile(bool layouts, const std::string& precision = "f32",
                        CompileCache* cache = nullptr) const {
    CompileOptions options;
    options.layouts = layouts;
    options.precision = precision;
    options.threads = 1;
    return compile_plan(graph_, plan_, target_, weights_, options, cache);
  }

  std::vector<Tensor> run(const CompiledModel& model,
                          const std::vector<std::string>& taps = {}) const {
    ExecutorOptions options;
    options.threads = 1;
    options.taps = taps;
    Executor executor(graph_, plan_, target_, weights_, options, model.partitions, {});
    return executor.run(inputs_, nullptr);
  }

 private:
  static Graph build(const std::string& dtype, std::int64_t channels) {
    const Shape shape{1, channels, 12, 12};
    const Json same = {{"padding", {1, 1}}};
    GraphBuilder builder;
    builder.input("x", {1, 3, 12, 12}, dtype);
    builder.weight("first", {channels, 3, 3, 3}, dtype);
    builder.weight("second", {channels, channels, 3, 3}, dtype);
    builder.weight("third", {channels, channels, 1, 1}, dtype);
    builder.node("first", "aten.conv2d.default", {"x", "p_first"}, shape, same, dtype);
    builder.node("relu", "aten.relu.default", {"first"});
    builder.node("second", "aten.conv2d.default", {"relu", "p_second"}, shape, same, dtype);
    builder.node("sum", "aten.add.Tensor", {"second", "first"});
    builder.node("third", "aten.conv2d.default", {"sum", "p_third"}, shape, Json::object(), dtype);
    builder.output("third");
    return builder.build();
  }

  void add_partition(std::int32_t begin, std::int32_t end) {
    std::vector<NodeId> nodes;
    for (std::int32_t i = begin; i < end; ++i) nodes.push_back(NodeId{i});
    plan_.steps.push_back(
        {PlanStep::Kind::kPartition, static_cast<std::int32_t>(plan_.partitions.size())});
    plan_.partitions.push_back({"npu", nodes, find_boundary(graph_, nodes)});
  }

  Graph graph_;
  Target target_;
  PartitionPlan plan_;
  std::vector<Tensor> weights_;
  std::vector<Tensor> inputs_;
};

/// Steps that only change the layout of a value between partitions.
std::vector<std::string> border_reorders(const CompiledModel& model) {
  std::vector<std::string> tensors;
  for (const CompiledPartition& partition : model.partitions) {
    for (const Json& step : partition.report->at("steps")) {
      if (step.at("kind") != "reorder") continue;
      for (const char* key : {"reads", "writes"}) {
        const Json* tensor = find_member(step, key);
        const bool is_outer = tensor == nullptr || *tensor == "x" || *tensor == "third";
        if (!is_outer) tensors.push_back(tensor->get<std::string>());
      }
    }
  }
  return tensors;
}

/// The same numbers but for the order of sums: oneDNN may have another kernel for another layout,
/// and a convolution adds into a copy of a value, but not into an input.
void check_same(const Chain& chain, const CompiledModel& a, const CompiledModel& b,
                const std::vector<std::string>& taps = {}) {
  const std::vector<Tensor> found = chain.run(a, taps);
  const std::vector<Tensor> expected = chain.run(b, taps);
  REQUIRE(found.size() == 1 + taps.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_bfloat16 = found[i].dtype() == DType::kBFloat16;
    const double near = is_bfloat16 ? 1e-2 : 1e-5;
    const auto result = compare_tensors(found[i], expected[i], {.rtol = near, .atol = near});
    INFO(result.max_abs);
    CHECK(result.ok);
  }
}

}  // namespace

TEST_CASE("no reorder stands between partitions that agree on a layout", "[onednn][layouts]") {
  const Chain chain;
  const CompiledModel plain = chain.compile(false);
  const CompiledModel agreed = chain.compile(true);
  CHECK_FALSE(border_reorders(plain).empty());
  CHECK(border_reorders(agreed).empty());
  REQUIRE(agreed.partitions.size() == 3);
  const LayoutNames& layouts = agreed.partitions[1].layouts;
  REQUIRE(layouts.size() == 2);
  CHECK(layouts.at("first").starts_with("onednn:"));
  CHECK(agreed.partitions[0].layouts == LayoutNames{{"first", layouts.at("first")}});
  CHECK(agreed.partitions[2].layouts == LayoutNames{{"sum", layouts.at("sum")}});
  CHECK(plain.partitions[1].layouts.empty());
  check_same(chain, agreed, plain);
}

TEST_CASE("values in layouts are row-major where they are looked at", "[onednn][layouts]") {
  const Chain chain;
  check_same(chain, chain.compile(true), chain.compile(false), {"first", "sum"});
}

TEST_CASE("channels that do not fill blocks, and bfloat16, give the same", "[onednn][layouts]") {
  for (const std::int64_t channels : {5, 24}) {
    const Chain chain("float32", channels);
    check_same(chain, chain.compile(true), chain.compile(false));
  }
  const Chain chain("bfloat16");
  check_same(chain, chain.compile(true), chain.compile(false));
}

TEST_CASE("partitions for other layouts do not run together", "[onednn][layouts]") {
  const Chain chain;
  const CompiledModel plain = chain.compile(false);
  CompiledModel mixed = chain.compile(true);
  mixed.partitions[2] = plain.partitions[2];
  CHECK_THROWS_WITH(chain.run(mixed),
                    Catch::Contains("has 'sum' row-major, partition 1 in layout"));
  // What a file says of a blob is not what the blob was made for.
  CompiledModel lying = chain.compile(true);
  for (CompiledPartition& partition : lying.partitions) partition.layouts.clear();
  CHECK_THROWS_WITH(chain.run(lying), Catch::Contains("in layout 'onednn:"));
  CompiledModel unknown = chain.compile(true);
  for (CompiledPartition& partition : unknown.partitions) {
    for (auto& [tensor, layout] : partition.layouts) layout = "onednn:nobody knows it";
  }
  CHECK_THROWS_WITH(chain.run(unknown), Catch::Contains("there is no layout"));
}

}  // namespace npu
