// SPDX-License-Identifier: Apache-2.0
// The case of estimates: what a backend says that a program will take, against what it takes. An
// estimate is no promise of a number, so it may be off by a factor; one that is off by more is
// worse than none, since it is written into documents and read as if it meant something.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/question.hpp"
#include "device/report_room.hpp"
#include "npu/support/json.hpp"
#include "support/text.hpp"

namespace npu::conformance {
namespace {

constexpr double kTimesOff = 10;        // of seconds, either way
constexpr double kBytesOff = 2;         // of memory, either way
constexpr double kFewBytes = 64 << 10;  // that nobody counts

/// Enough work that the time is the device's and not that of a call: x + w, and so on, or a chain
/// of one operand where the device does not add.
std::vector<GraphSpec> costly_graphs(DType dtype) {
  const Shape shape{512, 1024};
  std::vector<GraphSpec> graphs;
  for (const char* op : {"aten.add.Tensor", "aten.mul.Tensor", "aten.relu.default",
                         "aten.neg.default", "aten.exp.default"}) {
    const bool is_binary = std::string_view(op).ends_with("Tensor");
    GraphSpec graph;
    graph.inputs = {{"x", dtype, shape}};
    if (is_binary) graph.weights.push_back({"w", test_values({"w", dtype, shape}, 3)});
    std::string last = "x";
    for (int i = 0; i < 4; ++i) {
      const std::string name = "n" + std::to_string(i);
      NodeSpec node{name, op, {last}, {name, dtype, shape}, Json::object()};
      if (is_binary) node.operands.emplace_back("w");
      graph.nodes.push_back(std::move(node));
      last = name;
    }
    graph.outputs = {last};
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

/// Of a run, of as many as fit into half a second: what others do on a machine only adds to it.
double least_seconds(const Harness& harness, const Instance& instance) {
  using Time = std::chrono::steady_clock;
  constexpr auto kTime = std::chrono::milliseconds(500);
  constexpr int kRuns = 5;
  double least = std::numeric_limits<double>::max();
  const auto start = Time::now();
  for (int runs = 0; runs < kRuns || Time::now() - start < kTime; ++runs) {
    auto error = sized<npu_error>();
    const auto begin = Time::now();
    const npu_status status = run(harness, instance, error);
    least = std::min(least, std::chrono::duration<double>(Time::now() - begin).count());
    harness.require_ok(status, error, "run");
  }
  return least;
}

bool is_within(double a, double b, double factor, double slack) {
  return a <= factor * b + slack && b <= factor * a + slack;
}

void compare_seconds(const Harness& harness, const Json& answer, const Instance& instance) {
  const Json* seconds = find_member(answer, "seconds");
  if (seconds == nullptr || !seconds->is_number()) return;
  const double said = seconds->get<double>();
  const double taken = least_seconds(harness, instance);
  harness.found.expect(is_within(said, taken, kTimesOff, 0),
                       "check estimates " + fixed_text(said * 1000, 3) +
                           " ms of a run that takes " + fixed_text(taken * 1000, 3) +
                           " ms: more than " + fixed_text(kTimesOff, 0) + " times off");
}

/// What the backend says of the blob, over all memories; without that, the weights as they are.
std::optional<npu_memory_bytes> stated_memory(const Harness& harness, const Instance& instance) {
  if (harness.api.blob_memory == nullptr) return std::nullopt;
  ReportRoom room(std::max<std::size_t>(harness.facts().memory_flags.size(), 1));
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.blob_memory(instance.device.get(), instance.blob.data(),
                                             instance.blob.size(), room.get(), &error),
                     error, "blob_memory");
  npu_memory_bytes sum{};
  for (const npu_memory_bytes& each : room.memories()) {
    sum.weights_bytes += each.weights_bytes;
    sum.scratch_bytes += each.scratch_bytes;
    sum.boundary_bytes += each.boundary_bytes;
    sum.other_bytes += each.other_bytes;
  }
  return sum;
}

void compare_memory(const Harness& harness, const Json& answer, const Instance& instance) {
  const Json* memory = find_member(answer, "memory");
  if (memory == nullptr || !memory->is_object()) return;
  const auto compare = [&](const char* name, std::uint64_t there) {
    const Json* bytes = find_member(*memory, name);
    if (bytes == nullptr || !bytes->is_number_unsigned()) return;
    const auto said = bytes->get<std::uint64_t>();
    harness.found.expect(
        is_within(static_cast<double>(said), static_cast<double>(there), kBytesOff, kFewBytes),
        "check estimates " + std::to_string(said) + " for " + name + " of a program with " +
            std::to_string(there) + ": more than " + fixed_text(kBytesOff, 0) + " times off");
  };
  std::uint64_t weights = 0;
  for (const WeightSpec& weight : instance.graph.weights) weights += weight.tensor.bytes();
  const auto stated = stated_memory(harness, instance);
  if (!stated) return compare("weights_bytes", weights);
  compare("weights_bytes", stated->weights_bytes);
  compare("scratch_bytes", stated->scratch_bytes);
  compare("boundary_bytes", stated->boundary_bytes);
  compare("other_bytes", stated->other_bytes);
}

}  // namespace

void check_costs(const Harness& harness) {
  harness.found.require(!harness.facts().dtypes.empty(), "the device lists no dtype");
  DevicePtr device = harness.open();
  for (const GraphSpec& graph : costly_graphs(harness.facts().dtypes.front())) {
    const Compiled compiled = harness.compile(device.get(), graph);
    if (compiled.status == NPU_UNSUPPORTED) continue;
    harness.require_ok(compiled.status, compiled.error, "compile");
    const Answer said = ask(harness, device.get(), sub_ir_text(graph));
    harness.found.require(said.status == NPU_OK, "check gives " + status_name(said.status));
    const Json answer = Json::parse(said.text, nullptr, false);
    harness.found.require(answer.is_object(), "the answer of check is no JSON object");
    if (find_member(answer, "seconds") == nullptr && find_member(answer, "memory") == nullptr) {
      throw NotApplicable("check estimates nothing");
    }
    const Instance instance = make_instance(harness, std::move(device), graph, compiled.blob);
    compare_memory(harness, answer, instance);
    compare_seconds(harness, answer, instance);
    return;
  }
  throw NotApplicable("none of the ops that would show it compiles");
}

}  // namespace npu::conformance
