// SPDX-License-Identifier: Apache-2.0
// Models that remember, on each device: what steps give and leave, where states lie, and that they
// can be taken out and put back.
#include "runtime/session/session.hpp"

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// A window of the last four values, which slice_scatter shifts in place of a ring by `at`; a sum
/// that is replaced as a whole and read before and after; and a result of both.
Graph memory_graph(const std::string& device) {
  GraphBuilder builder;
  builder.lines(R"(
    input window [4,2]; input sum [2]; input x [1,2]; input at [1] int64
    before = aten.mul.Tensor(sum, sum)
    index = aten.expand.default(at) [1,2] int64 {"size": [1, 2]}
    next = aten.scatter.src(window, index, x) [4,2] {"dim": 0}
    row = aten.sum.dim_IntList(next) [2] {"dim": [0]}
    total = aten.add.Tensor(sum, row)
    y = aten.add.Tensor(before, total)
    late = aten.sub.Tensor(y, sum)
    output late, next, total)");
  Graph graph = builder.build();
  graph.set_npu_member("states", Json::parse(R"([
    {"name": "w", "input": "window", "output": "next", "axis": 0},
    {"name": "s", "input": "sum", "output": "total"}])"));
  for (Node& node : graph.nodes()) node.device = device;
  return graph;
}

RunModelOptions with_one_thread() {
  RunModelOptions options;
  options.executor.threads = 1;
  options.cache.enabled = false;
  return options;
}

std::unique_ptr<Session> open_on(const std::string& device) {
  Diagnostics diagnostics;
  auto session = Session::open(memory_graph(device), with_one_thread(), diagnostics);
  for (const std::string& error : errors_of(diagnostics)) UNSCOPED_INFO(error);
  REQUIRE(session != nullptr);
  return session;
}

std::vector<NamedTensor> inputs_at(std::int64_t step) {
  Tensor x(DType::kFloat32, {1, 2});
  x.as_mutable<float>()[0] = static_cast<float>(step + 1);
  x.as_mutable<float>()[1] = -0.5F;
  Tensor at(DType::kInt64, {1});
  *at.as_mutable<std::int64_t>() = step % 4;
  return {{"at", at}, {"x", x}};
}

/// The same on paper.
struct Reference {
  float window[4][2] = {};
  float sum[2] = {};

  std::vector<float> step(std::int64_t number) {
    std::vector<float> late(2);
    for (int i = 0; i < 2; ++i) {
      const float before = sum[i] * sum[i];
      window[number % 4][i] = i == 0 ? static_cast<float>(number + 1) : -0.5F;
      float row = 0;
      for (const auto& values : window) row += values[i];
      const float total = sum[i] + row;
      late[static_cast<std::size_t>(i)] = before + total - sum[i];
      sum[i] = total;
    }
    return late;
  }
};

StateUse use_of(const Session& session, const std::string& name) {
  const auto uses = session.states();
  const auto found =
      std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return use.name == name; });
  REQUIRE(found != uses.end());
  return *found;
}

}  // namespace

TEST_CASE("session: states stay on the device, in place where a part is overwritten",
          "[runtime][session]") {
  for (const std::string device : {"cpu", "npu"}) {
    CAPTURE(device);
    const auto session = open_on(device);
    CHECK(session->output_names(0) == std::vector<std::string>{"late"});
    CHECK(use_of(*session, "w").path == StatePath::kInPlace);
    CHECK(use_of(*session, "s").path == StatePath::kInTurns);
    CHECK(use_of(*session, "w").bytes == 32);
    CHECK(use_of(*session, "s").device == device);
    CHECK(session->copied_bytes() == 0);
    CHECK(session->transfer_bytes() == 0);
    Reference reference;
    for (std::int64_t step = 0; step < 9; ++step) {
      const std::vector<Tensor> outputs = session->step(0, inputs_at(step), {});
      const std::vector<float> expected = reference.step(step);
      REQUIRE(outputs.size() == 1);
      // Small halves, so sums and products are exact.
      CHECK(outputs.front().as<float>()[0] == expected[0]);
      CHECK(outputs.front().as<float>()[1] == expected[1]);
    }
    const std::vector<NamedTensor> values = session->state_values();
    REQUIRE(values.size() == 2);
    for (const NamedTensor& value : values) {
      const float* expected = value.name == "w" ? &reference.window[0][0] : reference.sum;
      for (std::int64_t i = 0; i < value.tensor.element_count(); ++i) {
        CHECK(value.tensor.as<float>()[i] == expected[i]);
      }
    }
  }
}

TEST_CASE("session: states that were taken out go on in another session with the same bits",
          "[runtime][session]") {
  for (const std::string device : {"cpu", "npu"}) {
    CAPTURE(device);
    const auto first = open_on(device);
    for (std::int64_t step = 0; step < 5; ++step) first->step(0, inputs_at(step), {});
    const auto second = open_on(device);
    second->set_state_values(first->state_values());
    for (std::int64_t step = 5; step < 8; ++step) {
      CHECK(same_bits(first->step(0, inputs_at(step), {}), second->step(0, inputs_at(step), {})));
    }
    second->clear();
    const auto third = open_on(device);
    CHECK(same_bits(second->step(0, inputs_at(0), {}), third->step(0, inputs_at(0), {})));
  }
}

TEST_CASE("session: values of states are all taken, or none", "[runtime][session]") {
  const auto session = open_on("cpu");
  session->step(0, inputs_at(0), {});
  const std::vector<NamedTensor> before = session->state_values();
  std::vector<NamedTensor> values = before;
  values[1].tensor = Tensor(DType::kFloat32, {3});
  CHECK_THROWS_WITH(session->set_state_values(values), Catch::Contains("is given as float32 [3]"));
  values.pop_back();
  CHECK_THROWS_WITH(session->set_state_values(values), Catch::Contains("is missing"));
  values.push_back({"other", Tensor(DType::kFloat32, {2})});
  CHECK_THROWS_WITH(session->set_state_values(values), Catch::Contains("has no state 'other'"));
  const std::vector<NamedTensor> after = session->state_values();
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(same_bits({after[i].tensor}, {before[i].tensor}));
  }
}

TEST_CASE("session: inputs of a step that do not fit", "[runtime][session]") {
  const auto session = open_on("cpu");
  std::vector<NamedTensor> inputs = inputs_at(0);
  inputs.pop_back();
  CHECK_THROWS_WITH(session->step(0, inputs, {}),
                    Catch::Contains("input 'x' of a step is missing"));
  inputs = inputs_at(0);
  inputs.push_back({"window", Tensor(DType::kFloat32, {4, 2})});
  CHECK_THROWS_WITH(session->step(0, inputs, {}), Catch::Contains("'window' is no input"));
  inputs = inputs_at(0);
  inputs[1].tensor = Tensor(DType::kFloat32, {2, 2});
  CHECK_THROWS_WITH(session->step(0, inputs, {}), Catch::Contains("expected float32 [1, 2]"));
  CHECK(session->step(0, inputs_at(0), {}).size() == 1);
}

TEST_CASE("session: a step that fails in the middle leaves states that nobody knows",
          "[runtime][session]") {
  const auto session = open_on("cpu");
  session->step(0, inputs_at(0), {});
  std::vector<NamedTensor> inputs = inputs_at(0);
  *inputs[0].tensor.as_mutable<std::int64_t>() = 9;  // no row of the window
  CHECK_THROWS(session->step(0, inputs, {}));
  CHECK_THROWS_WITH(session->step(0, inputs_at(0), {}), Catch::Contains("not known any more"));
  session->clear();
  CHECK(session->step(0, inputs_at(0), {}).size() == 1);
}
