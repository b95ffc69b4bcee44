// SPDX-License-Identifier: Apache-2.0
// Models whose states are no caches, step by step against the same model over the whole sequence:
// an LSTM, and a keyword spotter that has windows of convolutions, a running sum and a counter. And
// that many steps take no more memory than few.
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "runtime/session/session.hpp"

using namespace npu;
using namespace npu::test;

namespace {

constexpr std::int64_t kSteps = 12;

std::unique_ptr<Session> open_model(const std::string& lines, const std::string& states,
                                    const std::vector<std::string>& devices) {
  GraphBuilder builder;
  builder.lines(lines);
  Graph graph = builder.build();
  if (!states.empty()) graph.set_npu_member("states", Json::parse(states));
  RunModelOptions options;
  options.executor.threads = 1;
  options.cache.enabled = false;
  options.where.devices = devices;
  options.weights.random_seed = 7;  // by name: the same in both models
  Diagnostics diagnostics;
  auto session = Session::open(std::move(graph), options, diagnostics);
  for (const std::string& error : errors_of(diagnostics)) UNSCOPED_INFO(error);
  REQUIRE(session != nullptr);
  return session;
}

Tensor random_values(const Shape& shape, std::uint64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.as_mutable<float>()[i] = number(random);
  }
  return tensor;
}

void check_close(const float* found, const float* expected, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    CHECK(std::abs(found[i] - expected[i]) <= 1e-5F * (1 + std::abs(expected[i])));
  }
}

const std::vector<std::vector<std::string>> kDevices{{"cpu"}, {"npu", "cpu"}};

std::string lstm_lines(std::int64_t steps, bool has_states) {
  const std::string rows = std::to_string(steps);
  const std::string attrs =
      R"({"_tensor_list_sizes": [2, 4], "has_biases": true, "num_layers": 1, "dropout": 0.0, )"
      R"("train": false, "bidirectional": false, "batch_first": false})";
  return "input x [" + rows + ",1,4]; input h [1,1,6]; input c [1,1,6]\n" +
         "weight w_ih [24,4]; weight w_hh [24,6]; weight b_ih [24]; weight b_hh [24]\n" +
         "l = aten.lstm.input(x, h, c, p_w_ih, p_w_hh, p_b_ih, p_b_hh) [" + rows +
         ",1,6] [1,1,6] [1,1,6] " + attrs + "\noutput l_0" + (has_states ? ", l_1, l_2" : "");
}

/// A causal convolution of three frames twice, and the mean of its results over all frames so far.
const char* const kSpotterStep = R"(
    input a [1,4,2]; input b [1,8,2]; input sum [1,8,1]; input count [1]; input x [1,4,1]
    weight w1 [8,4,3]; weight w2 [8,8,3]; weight out [3,8]
    first = aten.cat.default(a, x) [1,4,3] {"dim": 2}
    next_a = aten.slice.Tensor(first) [1,4,2] {"dim": 2, "start": 1, "end": 3}
    f1 = aten.conv1d.default(first, p_w1) [1,8,1]
    r1 = aten.relu.default(f1)
    second = aten.cat.default(b, r1) [1,8,3] {"dim": 2}
    next_b = aten.slice.Tensor(second) [1,8,2] {"dim": 2, "start": 1, "end": 3}
    f2 = aten.conv1d.default(second, p_w2) [1,8,1]
    r2 = aten.relu.default(f2)
    next_sum = aten.add.Tensor(sum, r2)
    next_count = aten.add.Scalar(count) {"other": 1}
    mean = aten.div.Tensor(next_sum, next_count)
    flat = aten.view.default(mean) [1,8] {"size": [1, 8]}
    y = aten.linear.default(flat, p_out) [1,3]
    output y, next_a, next_b, next_sum, next_count)";

const char* const kSpotterWhole = R"(
    input x [1,4,12]
    weight w1 [8,4,3]; weight w2 [8,8,3]; weight out [3,8]
    first = aten.constant_pad_nd.default(x) [1,4,14] {"pad": [2, 0], "value": 0}
    f1 = aten.conv1d.default(first, p_w1) [1,8,12]
    r1 = aten.relu.default(f1)
    second = aten.constant_pad_nd.default(r1) [1,8,14] {"pad": [2, 0], "value": 0}
    f2 = aten.conv1d.default(second, p_w2) [1,8,12]
    r2 = aten.relu.default(f2)
    mean = aten.mean.dim(r2) [1,8] {"dim": [2]}
    y = aten.linear.default(mean, p_out) [1,3]
    output y)";

const char* const kSpotterStates = R"([{"name": "a", "input": "a", "output": "next_a", "axis": 2},
    {"name": "b", "input": "b", "output": "next_b", "axis": 2},
    {"name": "sum", "input": "sum", "output": "next_sum"},
    {"name": "count", "input": "count", "output": "next_count"}])";

/// Of the process, in bytes.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("streaming: an LSTM by single steps is the one over the sequence", "[runtime][session]") {
  const Tensor x = random_values({kSteps, 1, 4}, 1);
  for (const auto& devices : kDevices) {
    CAPTURE(devices.front());
    const auto whole = open_model(lstm_lines(kSteps, false), "", devices);
    const Tensor zero(DType::kFloat32, {1, 1, 6});
    const Tensor expected = whole->step(0, {{"x", x}, {"h", zero}, {"c", zero}}, {}).front();
    const auto steps = open_model(lstm_lines(1, true),
                                  R"([{"name": "h", "input": "h", "output": "l_1"},
                                      {"name": "c", "input": "c", "output": "l_2"}])",
                                  devices);
    for (const StateUse& use : steps->states()) CHECK(use.path == StatePath::kInTurns);
    CHECK(steps->copied_bytes() == 0);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      Tensor frame(DType::kFloat32, {1, 1, 4});
      std::copy_n(x.as<float>() + step * 4, 4, frame.as_mutable<float>());
      const Tensor found = steps->step(0, {{"x", frame}}, {}).front();
      check_close(found.as<float>(), expected.as<float>() + step * 6, 6);
    }
  }
}

TEST_CASE("streaming: a keyword spotter by frames is the one over the recording",
          "[runtime][session]") {
  const Tensor x = random_values({1, 4, kSteps}, 2);
  for (const auto& devices : kDevices) {
    CAPTURE(devices.front());
    const auto whole = open_model(kSpotterWhole, "", devices);
    const Tensor expected = whole->step(0, {{"x", x}}, {}).front();
    const auto steps = open_model(kSpotterStep, kSpotterStates, devices);
    CHECK(steps->copied_bytes() == 0);
    Tensor found;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      Tensor frame(DType::kFloat32, {1, 4, 1});
      for (int i = 0; i < 4; ++i) {
        frame.as_mutable<float>()[i] = x.as<float>()[i * kSteps + step];
      }
      found = steps->step(0, {{"x", frame}}, {}).front();
    }
    check_close(found.as<float>(), expected.as<float>(), 3);
  }
}

// Not under sanitizers, which keep what is freed for a while.
TEST_CASE("streaming: ten thousand steps take the memory of a thousand",
          "[runtime][session][long]") {
  const Tensor frame = random_values({1, 4, 1}, 3);
  for (const auto& devices : kDevices) {
    CAPTURE(devices.front());
    const auto steps = open_model(kSpotterStep, kSpotterStates, devices);
    for (int step = 0; step < 1000; ++step) steps->step(0, {{"x", frame}}, {});
    const std::int64_t before = resident_bytes();
    for (int step = 1000; step < 10000; ++step) steps->step(0, {{"x", frame}}, {});
    CHECK(resident_bytes() - before < (std::int64_t{2} << 20));
    const std::vector<NamedTensor> values = steps->state_values();
    CHECK(values.back().name == "count");
    CHECK(values.back().tensor.as<float>()[0] == 10000);
  }
}
