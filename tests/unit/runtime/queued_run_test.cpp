// SPDX-License-Identifier: Apache-2.0
// Runs on devices with queues, which skeleton-queue has: the same bits as blocking runs, whatever
// overlaps; failures reach whoever waits; several runs at once.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/backend.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "runtime/random_tensor.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// Both devices of skeleton-queue, with options of its own, one of the vendor, which blocks, and
/// the same queues once more as two other backends, of which "f" has no pinned memory.
Target queue_target(const Json& options = Json::object()) {
  Json json = *vendor_target().json;
  Json ops = Json::parse(R"([{"types": ["aten.relu.default"]},
                             {"types": ["aten.add.Tensor"], "inputs": [2, 2],
                              "requires": ["same_shape_operands"]}])");
  Json vendor = json["devices"][0];
  json["devices"] = Json::array();
  json["links"] = Json::array();
  for (const char* number : {"0", "1"}) {
    Json device = vendor;
    device["name"] = std::string("q") + number;
    device["backend"] = "skeleton-queue";
    device["ops"] = ops;
    device["options"] = options;
    device["options"]["instance"] = std::string("skeleton-queue:") + number;
    json["devices"].push_back(device);
  }
  vendor["name"] = "v";
  json["devices"].push_back(vendor);
  ::setenv("WRAP_FILE", "npu_backend_skeleton-queue.so", 1);  // read when it is loaded
  Json wrapper = json["devices"][0];
  wrapper["name"] = "w";
  wrapper["backend"] = "wrap";
  wrapper["options"] = options;
  json["devices"].push_back(wrapper);
  wrapper["name"] = "f";
  wrapper["backend"] = "wrap-far";
  json["devices"].push_back(wrapper);
  const std::vector<std::string> names{"q0", "q1", "v", "w", "f"};
  for (std::size_t to = 1; to < names.size(); ++to) {
    for (std::size_t from = 0; from < to; ++from) {
      json["links"].push_back(
          {{"from", names[from]}, {"to", names[to]}, {"bandwidth", 1e9}, {"latency_us", 1}});
    }
  }
  return parse_target(json, "target.json");
}

struct QueuedCase {
  Target target;
  Graph graph;
  PartitionPlan plan;
  std::vector<Tensor> weights;
};

QueuedCase place(Graph graph, const Target& target) {
  graph.set_npu_member("target", *target.json);
  QueuedCase made{target, std::move(graph), {}, {}};
  PartitionOptions partition;
  partition.strategy = Strategy::kContiguous;
  Diagnostics diagnostics;
  made.plan = partition_graph(made.graph, partition, diagnostics).plan;
  REQUIRE_FALSE(diagnostics.has_errors());
  made.weights = load_weights(made.graph, {.file = {}, .random_seed = 3}, diagnostics);
  return made;
}

/// Relus and adds, each on one of `devices`.
Graph random_queue_graph(std::uint32_t seed, const std::vector<std::string>& devices) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  GraphBuilder builder;
  builder.input("x", {5}).input("y", {5}).weight("w", {5});
  std::vector<std::string> values{"x", "y", "p_w"};
  constexpr int kNodes = 24;
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    if (below(3) == 0) {
      builder.node(name, "aten.relu.default", {values[below(values.size())]});
    } else {
      builder.node(name, "aten.add.Tensor",
                   {values[below(values.size())], values[below(values.size())]});
    }
    values.push_back(name);
    if (below(5) == 0 || i + 1 == kNodes) builder.output(name);
  }
  Graph graph = builder.build();
  for (Node& node : graph.nodes()) node.device = devices[below(devices.size())];
  return graph;
}

std::vector<Tensor> inputs_of(const QueuedCase& made, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const TensorId id : made.graph.graph_inputs()) {
    inputs.push_back(random_input(made.graph, id, seed));
  }
  return inputs;
}

std::unique_ptr<Executor> execute(const QueuedCase& made, bool overlap,
                                  std::int32_t in_flight = 1) {
  ExecutorOptions options;
  options.threads = 1;
  options.overlap = overlap;
  options.queues = true;
  options.in_flight = in_flight;
  return std::unique_ptr<Executor>(
      new Executor(compile_and_load(made.graph, made.plan, made.target, made.weights, options)));
}

/// The simulated clock of the skeleton's devices, for a host that submits from one thread: what it
/// has waited for so far took this long.
double simulated_ms() {
  struct Clock {
    std::uint64_t struct_size;
    std::uint64_t (*now_ns)();
  };
  const npu_backend& api = Backend::load("skeleton-queue")->api();
  const auto* clock = static_cast<const Clock*>(api.get_extension("skeleton.clock"));
  REQUIRE(clock != nullptr);
  return static_cast<double>(clock->now_ns()) / 1e6;
}

/// Options of devices whose runs and transfers take so long on that clock.
Json simulated(int run_us, int copy_us = 0) {
  return {{"simulated", 1}, {"delay_us", run_us}, {"copy_us", copy_us}};
}

bool are_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.bytes() == y.bytes() && std::equal(x.data(), x.data() + x.bytes(), y.data());
  });
}

/// q0 does three relus in a row, each a partition, since q1 has an add between two of them.
Graph chain_graph(std::int64_t elements = 64) {
  Graph graph = GraphBuilder()
                    .input("x", {elements})
                    .node("a", "aten.relu.default", {"x"})
                    .node("b", "aten.add.Tensor", {"a", "x"})
                    .node("c", "aten.relu.default", {"b"})
                    .output("c")
                    .build();
  for (Node& node : graph.nodes()) node.device = node.name == "b" ? "q1" : "q0";
  return graph;
}

/// The same with the add on another device.
Graph chain_over(const std::string& device, std::int64_t elements = 64) {
  Graph graph = chain_graph(elements);
  for (Node& node : graph.nodes()) {
    if (node.name == "b") node.device = device;
  }
  return graph;
}

}  // namespace

TEST_CASE("queues give the bits of blocking runs", "[runtime][queue]") {
  use_vendor_backend();
  const std::vector<std::vector<std::string>> places{
      {"q0"}, {"q0", "q1"}, {"q0", "v"}, {"q0", "w"}, {"q0", "f"}, {"q0", "q1", "v", "w", "f"}};
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const QueuedCase made = place(random_queue_graph(seed, places[seed % 6]), queue_target());
    const auto blocking = execute(made, false);
    const auto queued = execute(made, true);
    for (std::uint64_t run = 0; run < 4; ++run) {
      const std::vector<Tensor> inputs = inputs_of(made, run);
      RunRecord expected;
      RunRecord record;
      const auto outputs = blocking->run(inputs, &expected);
      CHECK(are_same(queued->run(inputs, run % 2 == 0 ? &record : nullptr), outputs));
      if (run % 2 != 0) continue;
      REQUIRE(record.steps.size() == expected.steps.size());
      double last = 0;
      for (std::size_t s = 0; s < record.steps.size(); ++s) {
        CHECK(record.steps[s].index == expected.steps[s].index);
        CHECK(record.steps[s].bytes == expected.steps[s].bytes);
        CHECK(record.steps[s].start_us <= record.steps[s].end_us);
        last = std::max(last, record.steps[s].end_us);
      }
      CHECK(last <= record.total_us);
    }
  }
}

TEST_CASE("a transfer says which way it took", "[runtime][queue]") {
  use_vendor_backend();
  RunRecord record;
  const QueuedCase queues = place(chain_graph(), queue_target());
  execute(queues, true)->run(inputs_of(queues, 1), &record);
  int copies = 0;
  for (const StepRecord& step : record.steps) {
    if (step.kind != StepRecord::Kind::kTransfer || step.tensors == 0) continue;
    CHECK(path_text(step) == "device copy");
    CHECK(step.copied_bytes == step.bytes);
    ++copies;
  }
  CHECK(copies == 2);
  execute(queues, false)->run(inputs_of(queues, 1), &record);
  for (const StepRecord& step : record.steps) {
    if (step.kind == StepRecord::Kind::kTransfer) CHECK(path_text(step) == "copied");
  }
  for (const auto& [device, path] : {std::pair{"v", "copied"}, {"w", "staged"}, {"f", "staged"}}) {
    const QueuedCase mixed = place(chain_over(device), queue_target());
    execute(mixed, true)->run(inputs_of(mixed, 1), &record);
    for (const StepRecord& step : record.steps) {
      if (step.kind == StepRecord::Kind::kTransfer) CHECK(path_text(step) == path);
    }
  }
}

TEST_CASE("what goes through the host is written while more of it is read", "[runtime][queue]") {
  use_vendor_backend();
  // 10 MiB, which are three pieces; each transfer of one takes 1 ms on the clock.
  const QueuedCase made = place(chain_over("f", 10 << 18), queue_target(simulated(0, 1000)));
  const auto executor = execute(made, true);
  const std::vector<Tensor> inputs = inputs_of(made, 1);
  const double before = simulated_ms();
  const auto outputs = executor->run(inputs, nullptr);
  // The input is written; three pieces go to the other device, each written while the next one is
  // read; the input is written there, too; three pieces come back; the output is read in three.
  CHECK(simulated_ms() - before == Approx(1 + 4 + 1 + 4 + 3));
  CHECK(are_same(outputs, execute(made, false)->run(inputs, nullptr)));
}

TEST_CASE("independent steps of queues take the time of one", "[runtime][queue]") {
  use_vendor_backend();
  Graph graph = graph_of(R"(
    input x [8]
    a = relu(x)
    b = aten.add.Tensor(x, x); output a, b)");
  for (Node& node : graph.nodes()) node.device = node.name == "a" ? "q0" : "q1";
  const QueuedCase made = place(std::move(graph), queue_target(simulated(200000)));
  const auto executor = execute(made, true);
  CHECK(executor->overlaps());
  const double before = simulated_ms();
  executor->run(inputs_of(made, 1), nullptr);
  CHECK(simulated_ms() - before == Approx(200));  // one after another they would take 400 ms
}

namespace {

/// When the last step of a plan ends whose partitions take `step_ms` and transfers nothing: each
/// device does its steps in order, each after what it reads.
double scheduled_ms(const QueuedCase& made, double step_ms) {
  std::map<std::string, double> free;    // by device: when its last step ends
  std::map<std::int32_t, double> there;  // by tensor: when its producer ends
  double last = 0;
  for (const PlanStep& step : made.plan.steps) {
    const auto index = static_cast<std::size_t>(step.index);
    if (step.kind == PlanStep::Kind::kTransfer) continue;
    const Partition& partition = made.plan.partitions[index];
    double& device = free[partition.device];
    for (const TensorId id : partition.boundary.inputs) device = std::max(device, there[id.value]);
    device += step_ms;
    for (const TensorId id : partition.boundary.outputs) there[id.value] = device;
    last = std::max(last, device);
  }
  return last;
}

}  // namespace

TEST_CASE("a run takes as long as its schedule says", "[runtime][queue]") {
  use_vendor_backend();
  int overlapping = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const QueuedCase made =
        place(random_queue_graph(seed, {"q0", "q1"}), queue_target(simulated(5000)));
    const auto executor = execute(made, true);
    const double before = simulated_ms();
    executor->run(inputs_of(made, 1), nullptr);
    const double took = simulated_ms() - before;
    const double expected = scheduled_ms(made, 5);
    CHECK(std::abs(took - expected) <= 0.05 * expected);
    overlapping += took < 5.0 * static_cast<double>(made.plan.partitions.size()) ? 1 : 0;
  }
  CHECK(overlapping >= 10);  // else the schedule was never more than a sum
}

TEST_CASE("a transfer waits for no work that it does not need", "[runtime][queue]") {
  use_vendor_backend();
  Graph graph = graph_of(R"(
    input x, y [64]
    a = relu(x)
    b = aten.add.Tensor(a, x)
    c = aten.add.Tensor(b, y); output c)");
  for (Node& node : graph.nodes()) node.device = node.name == "b" ? "q1" : "q0";
  const QueuedCase made = place(std::move(graph), queue_target(simulated(1000, 1000)));
  const std::vector<Tensor> inputs = inputs_of(made, 1);
  const auto milliseconds = [&](std::int32_t in_flight) {
    const auto executor = execute(made, true, in_flight);
    const double before = simulated_ms();
    executor->wait(executor->start(inputs, nullptr));
    return simulated_ms() - before;
  };
  // The device takes eight queues: four for one run, but one each for three. Then y, which c alone
  // reads, stands behind b.
  CHECK(milliseconds(1) == Approx(milliseconds(3) - 1));
}

TEST_CASE("what a run fails with reaches the caller, and the next run works", "[runtime][queue]") {
  use_vendor_backend();
  // q0 makes two runs each time, q1 one: the second run fails at the end of the first time on q0,
  // and the second time on q1. The vendor's device never fails.
  for (const auto& [device, fails] :
       {std::pair{"q1", 2}, {"v", 2}, {"q1", 3}, {"w", 2}, {"w", 3}, {"f", 2}}) {
    const QueuedCase made = place(chain_over(device), queue_target({{"fail_run", fails}}));
    const auto executor = execute(made, true);
    const std::vector<Tensor> inputs = inputs_of(made, 1);
    const auto expected =
        execute(place(chain_graph(), queue_target()), false)->run(inputs, nullptr);
    int failed = 0;
    for (int run = 0; run < 4; ++run) {
      try {
        const auto outputs = executor->run(inputs, nullptr);
        CHECK(are_same(outputs, expected));
      } catch (const Error& error) {
        CHECK_THAT(error.message(),
                   Catch::Contains("run " + std::to_string(fails) + " fails as asked"));
        CHECK(error.code() == ErrorCode::kFailed);
        ++failed;
      }
    }
    CHECK(failed == (device == std::string("v") ? 1 : 2));
  }
}

TEST_CASE("several runs at once are what each is alone", "[runtime][queue]") {
  use_vendor_backend();
  // Of one backend, whose work one thread submits, and of two, where each run has a thread.
  const std::vector<std::vector<std::string>> places{{"q0", "q1"}, {"q0", "w"}, {"q0", "f"}};
  for (const std::vector<std::string>& devices : places) {
    const QueuedCase made =
        place(random_queue_graph(5, devices), queue_target({{"delay_us", 500}}));
    const auto alone = execute(made, false);
    const auto executor = execute(made, true, 3);
    std::vector<std::vector<Tensor>> expected;
    for (std::uint64_t run = 0; run < 12; ++run) {
      expected.push_back(alone->run(inputs_of(made, run), nullptr));
    }
    std::vector<std::shared_ptr<Executor::Run>> going;
    std::uint64_t ended = 0;
    for (std::uint64_t run = 0; run < 12; ++run) {
      if (going.size() == 3) {
        CHECK(are_same(executor->wait(going.front()), expected[ended++]));
        going.erase(going.begin());
      }
      going.push_back(executor->start(inputs_of(made, run), nullptr));
    }
    // One that nobody waits for ends with its owner, and its place is free again.
    going.pop_back();
    for (const auto& run : going) CHECK(are_same(executor->wait(run), expected[ended++]));
    going.clear();
    CHECK(are_same(executor->run(inputs_of(made, 0), nullptr), expected[0]));
  }
}

TEST_CASE("three runs at once have 2.5 times the throughput of one", "[runtime][queue]") {
  use_vendor_backend();
  const QueuedCase made = place(chain_graph(), queue_target(simulated(30000)));
  const std::vector<Tensor> inputs = inputs_of(made, 1);
  const auto milliseconds = [&](std::int32_t in_flight) {
    const auto executor = execute(made, true, in_flight);
    const double before = simulated_ms();
    for (int round = 0; round < 6 / in_flight; ++round) {
      std::vector<std::shared_ptr<Executor::Run>> going;
      for (int i = 0; i < in_flight; ++i) going.push_back(executor->start(inputs, nullptr));
      for (const auto& run : going) executor->wait(run);
    }
    return simulated_ms() - before;
  };
  // Six runs of 90 ms, alone and three at a time.
  CHECK(milliseconds(1) == Approx(540));
  CHECK(milliseconds(3) <= 540 / 2.5);
}

TEST_CASE("runs in flight need queues, and no more than the device takes", "[runtime][queue]") {
  use_vendor_backend();
  const QueuedCase made = place(chain_graph(), queue_target());
  CHECK_THROWS_WITH(execute(made, true, 9),
                    Catch::Contains("--in-flight 9: device 'q0' (backend 'skeleton-queue') takes "
                                    "at most 8 runs at once"));
  Graph graph = chain_graph();
  for (Node& node : graph.nodes()) node.device = "v";
  const QueuedCase blocking = place(std::move(graph), queue_target());
  CHECK_THROWS_WITH(execute(blocking, true, 2),
                    Catch::Contains("device 'v' (backend 'vendor') has no queues"));
}

TEST_CASE("a run that has no place is refused, and the next one works", "[runtime][queue]") {
  use_vendor_backend();
  const QueuedCase made = place(chain_graph(), queue_target());
  const std::vector<Tensor> inputs = inputs_of(made, 1);
  const auto executor = execute(made, true, 2);
  auto first = executor->start(inputs, nullptr);
  const auto second = executor->start(inputs, nullptr);
  CHECK_THROWS_WITH(executor->start(inputs, nullptr),
                    Catch::Contains("all 2 runs that may go on at once are going on"));
  const auto expected = executor->wait(first);
  first = nullptr;
  CHECK(are_same(executor->run(inputs, nullptr), expected));
  CHECK(are_same(executor->wait(second), expected));
}

TEST_CASE("each run in flight needs memory of its own", "[runtime][queue]") {
  use_vendor_backend();
  const QueuedCase made = place(chain_graph(), queue_target());
  ExecutorOptions options;
  options.threads = 1;
  options.queues = true;
  const auto load = [&] {
    return compile_and_load(made.graph, made.plan, made.target, made.weights, options).memory();
  };
  std::uint64_t most = 0;
  for (const DeviceMemoryNeed& need : load()) most = std::max(most, need.needed());
  REQUIRE(most > 0);
  options.backend_options["memory_limit"] = 3 * most - 1;
  for (options.in_flight = 1; options.in_flight <= 2; ++options.in_flight) CHECK_NOTHROW(load());
  CHECK_THROWS_WITH(load(), Catch::Contains("of memory, there are"));
  options.backend_options["memory_limit"] = 3 * most;
  const auto needs = load();
  CHECK(needs.front().there == 3 * most);
  CHECK(std::all_of(needs.begin(), needs.end(),
                    [&](const DeviceMemoryNeed& need) { return need.needed() <= most; }));
}
