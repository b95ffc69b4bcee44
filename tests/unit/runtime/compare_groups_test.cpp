// SPDX-License-Identifier: Apache-2.0
// A fault in one fusion group is found in that group, whatever way is asked for: faults are made by
// changing weights of one side alone.
#include "runtime/groups/compare_groups.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "runtime/groups_model.hpp"
#include "runtime/tap_tensors.hpp"
#include "support/temporary_folder.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

struct Model : test::GroupsModel {
  using GroupsModel::GroupsModel;

  /// The plan's side gets another value in the middle of a weight.
  void spoil(const std::string& weight, float value) {
    const Tensor& old = sides.reference_runner.weights.at(weight);
    Tensor spoilt(old.dtype(), old.shape());
    std::memcpy(spoilt.mutable_data(), old.data(), old.bytes());
    spoilt.as_mutable<float>()[old.element_count() / 2] = value;
    sides.runner.weights[weight] = spoilt;
  }
  void heal() { sides.runner.weights = sides.reference_runner.weights; }

  /// The float32 weights that one node reads, with that node.
  std::vector<std::pair<std::string, std::string>> weights_of_nodes() const {
    std::vector<std::pair<std::string, std::string>> result;
    for (const TensorInfo& tensor : graph.tensors()) {
      if (tensor.kind != TensorKind::kWeight || tensor.consumers.size() != 1) continue;
      if (tensor.dtype != DType::kFloat32 || tensor.shape.empty()) continue;
      result.emplace_back(tensor.name, graph.node(tensor.consumers.front()).name);
    }
    return result;
  }
};

bool has_node(const GroupComparison& row, const std::string& node) {
  return std::find(row.nodes.begin(), row.nodes.end(), node) != row.nodes.end();
}

}  // namespace

TEST_CASE("groups agree where nothing is wrong", "[runtime][groups]") {
  if (!test::use_backends()) return;
  const std::string name = GENERATE("residual", "encoder", "conv_kinds");
  const Model model(name);
  const GroupReport report = compare_groups(model.sides, {.each = true, .isolate = true});
  CHECK(report.ok());
  CHECK_FALSE(report.first);
  CHECK(report.runs == 1);
  CHECK(static_cast<std::int64_t>(report.rows.size()) == report.groups);
  for (const GroupComparison& row : report.rows) {
    REQUIRE(row.in_run);
    REQUIRE(row.isolated);
    CHECK(row.in_run->snr_db > 80);
    CHECK(row.isolated->comparison.ok);
  }
  CHECK(compare_groups(model.sides, {.bisect = true}).rows.empty());
}

TEST_CASE("a fault is found in its group, and is inherited behind it", "[runtime][groups]") {
  if (!test::use_backends()) return;
  const std::string name = GENERATE("residual", "encoder");
  Model model(name);
  int faults = 0;
  for (const auto& [weight, node] : model.weights_of_nodes()) {
    CAPTURE(weight, node);
    model.spoil(weight, 40.0F);
    const GroupReport each = compare_groups(model.sides, {.each = true});
    if (each.ok()) {  // what the number feeds is cut off behind it
      model.heal();
      continue;
    }
    ++faults;
    REQUIRE(each.first);
    CHECK(has_node(each.rows[*each.first], node));
    for (std::size_t i = 0; i < each.rows.size(); ++i) {
      if (i == *each.first) continue;
      CHECK(each.rows[i].error != GroupComparison::Error::kOwn);
    }
    const GroupReport alone = compare_groups(model.sides, {.isolate = true});
    REQUIRE(alone.first);
    CHECK(has_node(alone.rows[*alone.first], node));
    CHECK(std::count_if(alone.rows.begin(), alone.rows.end(), [](const GroupComparison& row) {
            return row.error == GroupComparison::Error::kOwn;
          }) == 1);
    const GroupReport found = compare_groups(model.sides, {.bisect = true});
    // Behind the last group the error may have vanished; then there is nothing to find.
    if (found.first) {
      CHECK(has_node(found.rows[0], node));
      CHECK(static_cast<double>(found.runs) <=
            1 + std::ceil(std::log2(static_cast<double>(found.groups))));
    }
    model.heal();
  }
  CHECK(faults >= 6);
}

TEST_CASE("the smallest part that differs is written as a model", "[runtime][groups]") {
  if (!test::use_backends()) return;
  Model model("residual");
  const auto [weight, node] = model.weights_of_nodes().front();
  model.spoil(weight, 40.0F);
  const test::TemporaryFolder folder;
  const std::string file = folder / "reduced.json";
  const GroupReport report = compare_groups(model.sides, {.bisect = true, .reduce = file});
  REQUIRE(report.first);
  CHECK(report.reduced_to == std::vector<std::string>{node});
  REQUIRE(report.files.size() == 4);
  const Graph part = read_valid_graph(read_file(file), file);
  REQUIRE(part.nodes().size() == 1);
  CHECK(part.nodes()[0].name == node);
  CHECK(part.nodes()[0].device == "npu");
  Diagnostics diagnostics;
  CHECK_FALSE(read_partition_plan(part, diagnostics).partitions.empty());
  const std::vector<Tensor> data =
      load_weights(part, {.file = weights_file_of(part), .random_seed = {}}, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(SafetensorsFile(report.files[2]).entries().size() == part.graph_inputs().size());
  CHECK(SafetensorsFile(report.files[3]).entries().size() == part.graph_outputs().size());
}

TEST_CASE("results come out of the programs that run", "[runtime][groups]") {
  if (!test::use_backends()) return;
  const std::string name = GENERATE("residual", "encoder", "conv_kinds");
  Model model(name);
  const auto compile = [&] {
    std::vector<Tensor> weights(model.graph.tensors().size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const TensorInfo& tensor = model.graph.tensors()[i];
      if (tensor.kind == TensorKind::kWeight) weights[i] = model.sides.runner.weights[tensor.name];
    }
    return compile_plan(model.graph, model.plan, model.target, weights, {}, nullptr);
  };
  const CompiledModel sound = compile();
  model.sides.compiled = &sound.partitions;
  const GroupReport tapped = compare_groups(model.sides, {.each = true});
  model.sides.compiled = nullptr;
  const GroupReport pieces = compare_groups(model.sides, {.each = true});
  CHECK(tapped.ok());
  // The encoder's mask, which repeats for each head, is read where it is and lies nowhere itself.
  const auto& in_run_of = tapped.sources.at("npu");
  CHECK(in_run_of.compiled == (name == "encoder" ? 1 : 0));
  CHECK(pieces.sources.at("npu").tapped == 0);
  CHECK(pieces.sources.at("npu").compiled == in_run_of.tapped + in_run_of.compiled);
  REQUIRE(tapped.rows.size() == pieces.rows.size());
  for (std::size_t i = 0; i < tapped.rows.size(); ++i) {
    CHECK(tapped.rows[i].nodes == pieces.rows[i].nodes);
    // A piece may get other kernels than the whole, which add up in another order.
    const double in_run = tapped.rows[i].in_run->comparison.max_abs;
    const double in_pieces = pieces.rows[i].in_run->comparison.max_abs;
    CHECK(in_run <= 4 * in_pieces + 1e-7);
    CHECK(in_pieces <= 4 * in_run + 1e-7);
  }
  // What is wrong in the program is found there, and not where it is compiled again.
  const auto [weight, node] = model.weights_of_nodes().front();
  model.spoil(weight, 40.0F);
  const CompiledModel spoilt = compile();
  model.heal();
  model.sides.compiled = &spoilt.partitions;
  const GroupReport found = compare_groups(model.sides, {.each = true});
  REQUIRE(found.first);
  CHECK(has_node(found.rows[*found.first], node));
  CHECK(compare_groups(model.sides, {.isolate = true}).ok());
}

TEST_CASE("taps become outputs in the order of the nodes", "[runtime][groups]") {
  Model model("residual");
  const std::size_t before = model.graph.graph_outputs().size();
  const Node first = model.graph.nodes()[0];
  const Node second = model.graph.nodes()[1];
  const auto names = tapped_names(model.graph, {second.name, first.name});
  add_outputs(model.graph, names);
  REQUIRE(model.graph.graph_outputs().size() == before + 2);
  CHECK(model.graph.tensor(model.graph.graph_outputs()[before]).name == first.name);
  CHECK(model.graph.tensor(model.graph.graph_outputs()[before + 1]).name == second.name);
  CHECK_THROWS_WITH(tapped_names(model.graph, {"no such *"}),
                    "error: --tap no such *: no node has a result of such a name");
}

TEST_CASE("signal to noise", "[runtime][groups]") {
  Tensor a(DType::kFloat32, {2});
  Tensor b(DType::kFloat32, {2});
  for (int i = 0; i < 2; ++i) b.as_mutable<float>()[i] = a.as_mutable<float>()[i] = 3.0F;
  CHECK(std::isinf(signal_to_noise_db(a, b)));
  a.as_mutable<float>()[0] = 3.3F;
  CHECK(signal_to_noise_db(a, b) == Approx(10 * std::log10(18 / 0.09)).epsilon(1e-4));
  a.as_mutable<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(signal_to_noise_db(a, b)));
}

TEST_CASE("a step of quantized numbers is no fault of those who read it", "[runtime][groups]") {
  if (!test::use_backends()) return;
  const Shape shape{1, 64};
  const Json uint8 = {{"scale", 0.5},
                      {"zero_point", 0},
                      {"quant_min", 0},
                      {"quant_max", 255},
                      {"dtype", "torch.uint8"}};
  const std::string library = "quantized_decomposed.";
  Graph graph =
      test::GraphBuilder()
          .input("x", shape)
          .weight("w", shape)
          .node("s", "aten.mul.Tensor", {"x", "p_w"}, shape)
          .node("q", library + "quantize_per_tensor.default", {"s"}, shape, uint8, "uint8")
          .node("d", library + "dequantize_per_tensor.default", {"q"}, shape, uint8)
          .node("e", "aten.exp.default", {"d"}, shape)
          .output("e")
          .build();
  const Target target = load_target("host");
  Tensor ones(DType::kFloat32, shape);
  Tensor more(DType::kFloat32, shape);
  Tensor x(DType::kFloat32, shape);
  for (int i = 0; i < 64; ++i) {
    ones.as_mutable<float>()[i] = 1.0F;
    more.as_mutable<float>()[i] = 1.0001F;  // numbers that are close to a tie are rounded up
    x.as_mutable<float>()[i] = 0.25F + 0.5F * static_cast<float>(i % 8);
  }
  const PartitionPlan plan = single_partition_plan(graph, "cpu");
  GroupSides sides;
  sides.graph = sides.reference = &graph;
  sides.plan = &plan;
  sides.reference_device = "cpu";
  sides.runner.target = &target;
  sides.runner.executor.threads = 1;
  sides.runner.weights = {{"p_w", ones}};
  sides.reference_runner = sides.runner;
  sides.runner.weights = {{"p_w", more}};
  sides.inputs = {x};
  const GroupReport report = compare_groups(sides, {.each = true});
  REQUIRE(report.rows.size() == 4);
  CHECK(report.rows[1].in_run->comparison.max_abs == 1);  // by a step
  CHECK(report.rows[3].error == GroupComparison::Error::kInherited);
  CHECK_FALSE(report.rows[3].in_run->comparison.ok);
  CHECK(report.ok());
  CHECK_FALSE(report.first);
}

}  // namespace npu
