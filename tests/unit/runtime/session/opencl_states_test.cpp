// SPDX-License-Identifier: Apache-2.0
// States in memory of an OpenCL device: every op that overwrites a part of one, in the dtypes that
// states have, against the device "cpu". Nothing is copied, and nothing crosses to the host.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/passes/tag.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/target/target.hpp"
#include "opencl_device.hpp"
#include "runtime/session/session.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// Windows of six rows of three, which steps write in different ways, and a sum that is replaced as
/// a whole.
Graph windows_graph(const std::string& dtype) {
  std::string lines = R"(
    input a [6,3] DT; input b [6,3] DT; input c [6,3] DT; input d [6,3] DT; input e [6,3] DT
    input f [6,3] DT; input sum [3] DT
    input rows [2,3] DT; input row [3] DT; input at [2] int64; input count [] int64
    a1 = aten.index_copy.default(a, at, rows) [6,3] DT {"dim": 0}
    a2 = "npu.tail"(a1, count) [6,3] DT {"dim": 0, "fill": "edge"}
    where = aten.unsqueeze.default(at) [2,1] int64 {"dim": 1}
    wide = aten.expand.default(where) [2,3] int64 {"size": [2, 3]}
    b1 = aten.scatter.src(b, wide, rows) [6,3] DT {"dim": 0}
    c1 = aten.slice_scatter.default(c, rows) [6,3] DT {"dim": 0, "start": 1, "end": 5, "step": 3}
    d1 = aten.select_scatter.default(d, row) [6,3] DT {"dim": 0, "index": -2}
    d2 = "npu.tail"(d1, count) [6,3] DT {"dim": 0, "fill": "zero"}
    e1 = aten.index_put.default(e, at, rows) [6,3] DT {"_tensor_list_sizes": [1], "accumulate": false}
    f1 = aten.scatter.value(f, wide) [6,3] DT {"dim": 0, "value": 2}
    sum1 = aten.add.Tensor(sum, row) [3] DT
    old = aten.mul.Tensor(a, c) [6,3] DT
    new = aten.mul.Tensor(a2, c1) [6,3] DT
    y = aten.add.Tensor(old, new) [6,3] DT
    output y, a2, b1, c1, d2, e1, f1, sum1)";
  for (std::size_t at; (at = lines.find("DT")) != std::string::npos;) lines.replace(at, 2, dtype);
  GraphBuilder builder;
  builder.lines(lines);
  Graph graph = builder.build();
  Json states = Json::array();
  for (const auto& [input, output] : {std::pair{"a", "a2"},
                                      {"b", "b1"},
                                      {"c", "c1"},
                                      {"d", "d2"},
                                      {"e", "e1"},
                                      {"f", "f1"},
                                      {"sum", "sum1"}}) {
    states.push_back({{"name", input}, {"input", input}, {"output", output}});
  }
  graph.set_npu_member("states", states);
  return graph;
}

std::unique_ptr<Session> open_graph(Graph graph, RunModelOptions options) {
  options.executor.threads = 1;
  options.cache.enabled = false;
  Diagnostics diagnostics;
  auto session = Session::open(std::move(graph), options, diagnostics);
  for (const std::string& error : errors_of(diagnostics)) UNSCOPED_INFO(error);
  REQUIRE(session != nullptr);
  return session;
}

std::unique_ptr<Session> open_on(const std::string& dtype, const std::string& device) {
  RunModelOptions options;
  options.where.target = "opencl";
  options.where.devices = {device};
  return open_graph(windows_graph(dtype), options);
}

/// One node on the CPU, all others on the device.
std::unique_ptr<Session> open_split(const std::string& node) {
  Graph graph = windows_graph("float32");
  TagOptions tags;
  tags.force.push_back({"cpu", node});
  Diagnostics diagnostics;
  tag_ops(graph, load_target("opencl"), tags, diagnostics);
  for (const std::string& error : errors_of(diagnostics)) UNSCOPED_INFO(error);
  REQUIRE_FALSE(diagnostics.has_errors());
  return open_graph(std::move(graph), {});
}

/// Small whole numbers, which every dtype has.
Tensor numbers(const TensorInfo& tensor, std::int64_t first) {
  Tensor values(tensor.dtype, tensor.shape);
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    const std::int64_t whole = (first + 5 * i) % 7 - 3;
    const auto number = static_cast<float>(whole);
    switch (tensor.dtype) {
      case DType::kFloat16:
        values.as_mutable<std::uint16_t>()[i] = float_to_float16(number);
        break;
      case DType::kBFloat16:
        values.as_mutable<std::uint16_t>()[i] = float_to_bfloat16(number);
        break;
      case DType::kInt64:
        values.as_mutable<std::int64_t>()[i] = whole;
        break;
      default:
        values.as_mutable<float>()[i] = number;
    }
  }
  return values;
}

std::vector<NamedTensor> inputs_at(const Session& session, std::int64_t step) {
  std::vector<NamedTensor> inputs;
  const Graph& graph = session.graph(0);
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& tensor = graph.tensor(id);
    if (tensor.name == "rows" || tensor.name == "row") {
      inputs.push_back({tensor.name, numbers(tensor, step)});
    } else if (tensor.name == "at" || tensor.name == "count") {
      Tensor places(DType::kInt64, tensor.shape);
      for (std::int64_t i = 0; i < places.element_count(); ++i) {
        places.as_mutable<std::int64_t>()[i] =
            tensor.name == "at" ? (step + 4 * i) % 6 : 1 + step % 6;
      }
      inputs.push_back({tensor.name, places});
    }
  }
  return inputs;
}

}  // namespace

TEST_CASE("opencl: states are written where they lie, in every way and dtype",
          "[runtime][session][long]") {
  if (!use_backends() || !may_use_opencl()) return;
  for (const std::string dtype : {"float32", "float16", "bfloat16", "int64"}) {
    CAPTURE(dtype);
    const auto found = open_on(dtype, "gpu");
    const auto expected = open_on(dtype, "cpu");
    for (const StateUse& use : found->states()) {
      CAPTURE(use.name);
      CHECK(use.device == "gpu");
      CHECK(use.path == (use.name == "sum" ? StatePath::kInTurns : StatePath::kInPlace));
    }
    for (std::int64_t step = 0; step < 8; ++step) {
      CAPTURE(step);
      const auto inputs = inputs_at(*found, step);
      REQUIRE(inputs.size() == 4);
      CHECK(same_bits(found->step(0, inputs, {}), expected->step(0, inputs, {})));
      CHECK(found->copied_bytes() == 0);
      CHECK(found->transfer_bytes() == 0);
      const auto values = found->state_values();
      const auto wanted = expected->state_values();
      REQUIRE(values.size() == 7);
      for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(values[i].name);
        CHECK(same_bits({values[i].tensor}, {wanted[i].tensor}));
      }
      // Taken out and put back, and in another session, they are what they were.
      if (step == 4) found->set_state_values(values);
    }
    found->clear();
    const auto fresh = open_on(dtype, "cpu");
    const auto inputs = inputs_at(*fresh, 3);
    CHECK(same_bits(found->step(0, inputs, {}), fresh->step(0, inputs, {})));
  }
}

TEST_CASE("opencl: states that the CPU reads, or writes, too, have the same values",
          "[runtime][session][long]") {
  if (!use_backends() || !may_use_opencl()) return;
  // What reads states before they are written, what reads them behind that, and a write.
  for (const std::string node : {"old", "new", "a1", "c1"}) {
    CAPTURE(node);
    const auto found = open_split(node);
    const auto expected = open_on("float32", "cpu");
    for (std::int64_t step = 0; step < 5; ++step) {
      CAPTURE(step);
      const auto inputs = inputs_at(*expected, step);
      CHECK(same_bits(found->step(0, inputs, {}), expected->step(0, inputs, {})));
      CHECK(found->transfer_bytes() > 0);
      const auto values = found->state_values();
      const auto wanted = expected->state_values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(values[i].name);
        CHECK(same_bits({values[i].tensor}, {wanted[i].tensor}));
      }
    }
  }
}

TEST_CASE(
    "opencl: a step with a place outside the state fails, and leaves states that nobody knows",
    "[runtime][session]") {
  if (!use_backends() || !may_use_opencl()) return;
  const auto session = open_on("float32", "gpu");
  auto inputs = inputs_at(*session, 0);
  for (NamedTensor& input : inputs) {
    if (input.name == "at") input.tensor.as_mutable<std::int64_t>()[1] = 6;
  }
  CHECK_THROWS_WITH(session->step(0, inputs, {}), Catch::Contains("outside its dimension"));
  CHECK_THROWS_WITH(session->step(0, inputs_at(*session, 0), {}),
                    Catch::Contains("not known any more"));
  session->clear();
  CHECK(session->step(0, inputs_at(*session, 0), {}).size() == 1);
}
