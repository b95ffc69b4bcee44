// SPDX-License-Identifier: Apache-2.0
// Plans on the real backends: what is copied, what is kept, and that a split never changes a
// result.
#include "npu/runtime/executor.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "device/device_instance.hpp"
#include "graph_builder.hpp"
#include "npu/partition/metrics.hpp"
#include "npu/partition/strategies.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "runtime/random_tensor.hpp"
#include "runtime/trace.hpp"
#include "same_bits.hpp"
#include "target/support_check.hpp"
#include "test_paths.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;
using npu::test::same_bits;
using Kind = StepRecord::Kind;

namespace {

const Target& host() {
  static const Target target = load_target("host");
  return target;
}

ExecutorOptions one_thread() {
  ExecutorOptions options;
  options.threads = 1;
  return options;
}

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, shape);
  REQUIRE(tensor.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as_mutable<float>()[i] = values[i];
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.element_count()};
}
using Values = std::vector<float>;

Tensor every_bfloat16() {
  Tensor tensor(DType::kBFloat16, {65536});
  for (int i = 0; i < 65536; ++i)
    tensor.as_mutable<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
  return tensor;
}

// Runs a graph whose nodes have devices, without weights.
std::vector<Tensor> run(const Graph& graph, const PartitionPlan& plan,
                        const std::vector<Tensor>& inputs, RunRecord* record = nullptr) {
  Executor executor = compile_and_load(graph, plan, host(),
                                       std::vector<Tensor>(graph.tensors().size()), one_thread());
  return executor.run(inputs, record);
}

// "partition 0 npu", "transfer 1 cpu 2" (tensors copied), ...
std::vector<std::string> lines_of(const RunRecord& record) {
  std::vector<std::string> lines;
  for (const StepRecord& step : record.steps) {
    switch (step.kind) {
      case Kind::kPartition:
        lines.push_back("partition " + std::to_string(step.index) + " " + step.device);
        break;
      case Kind::kTransfer:
        lines.push_back("transfer " + std::to_string(step.index) + " " + step.device + " " +
                        std::to_string(step.tensors));
        break;
      case Kind::kInput:
        lines.push_back("inputs " + step.device + " " + std::to_string(step.tensors));
        break;
      case Kind::kOutput:
        lines.push_back("outputs " + std::to_string(step.tensors));
        break;
    }
  }
  return lines;
}
using Lines = std::vector<std::string>;

struct SmallModel {
  Graph graph;
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
};

SmallModel load_small(const std::string& name) {
  const std::string base = std::string(NPU_TEST_DATA_DIR) + "/models/small/" + name;
  SmallModel model;
  model.graph = read_valid_graph(read_file(base + ".json"), base + ".json");
  Diagnostics diagnostics;
  model.weights =
      load_weights(model.graph, {.file = base + ".safetensors", .random_seed = {}}, diagnostics);
  REQUIRE(npu::test::errors_of(diagnostics).empty());
  const SafetensorsFile inputs(base + ".inputs.safetensors");
  for (const TensorId id : model.graph.graph_inputs()) {
    const SafetensorsEntry* entry = inputs.find(model.graph.tensor(id).name);
    REQUIRE(entry != nullptr);
    model.inputs.push_back(inputs.tensor(*entry));
  }
  const SafetensorsFile outputs(base + ".outputs.safetensors");
  for (const TensorId id : model.graph.graph_outputs()) {
    const SafetensorsEntry* entry = outputs.find(model.graph.tensor(id).name);
    if (entry == nullptr && outputs.entries().size() == 1) entry = &outputs.entries().front();
    REQUIRE(entry != nullptr);
    model.expected.push_back(outputs.tensor(*entry));
  }
  return model;
}

void check_close(const SmallModel& model, const std::vector<Tensor>& actual,
                 const std::vector<Tensor>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool narrow =
        actual[i].dtype() == DType::kBFloat16 || actual[i].dtype() == DType::kFloat16;
    const Comparison comparison = compare_tensors(
        actual[i], expected[i], narrow ? Tolerance{2e-2, 2e-2} : Tolerance{1e-3, 1e-4});
    CAPTURE(model.graph.tensor(model.graph.graph_outputs()[i]).name, comparison.mismatch,
            comparison.max_abs, comparison.worst_index, comparison.worst_actual,
            comparison.worst_expected);
    CHECK(comparison.ok);
  }
}

}  // namespace

TEST_CASE("executor: a graph without nodes returns its inputs and needs no backend") {
  const Graph graph = GraphBuilder().input("x", {2}).output("x").output("x").build();
  const PartitionPlan plan = partition_convex(graph);
  RunRecord record;
  const auto outputs = run(graph, plan, {floats({2}, {1, 2})}, &record);
  REQUIRE(outputs.size() == 2);
  CHECK(values_of(outputs[0]) == Values{1, 2});
  CHECK(values_of(outputs[1]) == Values{1, 2});
  CHECK(lines_of(record) == Lines{"outputs 0"});
}

TEST_CASE("executor: a graph output may be a weight") {
  const Graph graph = GraphBuilder().weight("w", {2}).output("p_w").build();
  const PartitionPlan plan = partition_convex(graph);
  Executor executor = compile_and_load(graph, plan, host(), {floats({2}, {3, 4})}, one_thread());
  CHECK(values_of(executor.run({}, nullptr).at(0)) == Values{3, 4});
}

TEST_CASE("executor: a device that is missing, or without a backend, or with one that is nowhere") {
  const Graph graph =
      GraphBuilder().input("x").node("a", "aten.relu.default", {"x"}).on("npu").output("a").build();
  const PartitionPlan plan = partition_convex(graph);
  const auto refusal = [&](const Target& target) {
    try {
      Executor executor =
          compile_and_load(graph, plan, target, std::vector<Tensor>(2), one_thread());
      return std::string("good");
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + " " + error.message();
    }
  };
  const auto code = [](ErrorCode value) { return std::to_string(static_cast<int>(value)) + " "; };
  Target target = host();
  target.devices[0].backend = "";
  CHECK(refusal(target) ==
        code(ErrorCode::kUnsupported) +
            "device 'npu' of target 'host' has no backend: it is for planning only");
  target.devices[0].backend = "no_such_backend";
  const std::string missing = refusal(target);
  CHECK(missing.starts_with(
      code(ErrorCode::kUnsupported) +
      "backend 'no_such_backend' (npu_backend_no_such_backend.so) is in none of: "));
  CHECK(missing.ends_with("; set NPU_BACKEND_PATH to its folder"));
  target.devices[0].backend = "../evil";
  CHECK(refusal(target) == code(ErrorCode::kUnsupported) +
                               "'../evil' is no backend name; expected a-z, 0-9, '_' and '-'");
  target.devices[0].name = "tpu";
  CHECK(refusal(target) == code(ErrorCode::kInvalidGraph) + "device 'npu' is not in target 'host'");
}

TEST_CASE("executor: one node on each device") {
  if (!test::use_backends()) return;
  for (const char* device : {"npu", "cpu"}) {
    CAPTURE(device);
    const Graph graph = graph_of(std::string("input x [3]; a = relu(x) @") + device + "; output a");
    RunRecord record;
    CHECK(values_of(run(graph, partition_convex(graph), {floats({3}, {-1, 0, 2})}, &record)[0]) ==
          Values{0, 0, 2});
    CHECK(lines_of(record) == Lines{std::string("inputs ") + device + " 1",
                                    std::string("partition 0 ") + device, "outputs 1"});
    CHECK(record.steps[0].bytes == 12);
    CHECK(record.total_us > 0);
  }
}

TEST_CASE("executor: a tensor crosses once per direction, however many read it") {
  if (!test::use_backends()) return;
  // a has three readers on the cpu in two partitions, and is an output.
  const Graph graph = graph_of(R"(
    input x [2]
    a = relu(x) @npu
    b = neg(a) @cpu
    c = aten.add.Tensor(a, b) @cpu
    d = relu(c) @npu
    e = aten.add.Tensor(d, a) @cpu; output e, a)");
  const PartitionPlan plan = partition_convex(graph);
  RunRecord record;
  const auto outputs = run(graph, plan, {floats({2}, {3, -4})}, &record);
  CHECK(values_of(outputs[0]) == Values{3, 0});  // a = 3 0, b = -3 0, c = 0, d = 0, e = a
  CHECK(values_of(outputs[1]) == Values{3, 0});
  CHECK(lines_of(record) == Lines{"inputs npu 1", "partition 0 npu", "transfer 0 cpu 1",
                                  "partition 1 cpu", "transfer 1 npu 1", "partition 2 npu",
                                  "transfer 2 cpu 1", "partition 3 cpu", "outputs 2"});
}

TEST_CASE("executor: a transfer of what is there already copies nothing") {
  if (!test::use_backends()) return;
  const Graph graph = graph_of(R"(
    input x [2]
    a = relu(x) @npu
    b = neg(a) @cpu
    c = aten.add.Tensor(b, a) @npu
    d = neg(a) @cpu; output c, d)");
  const PartitionPlan plan = partition_contiguous(graph);
  REQUIRE(plan.transfers.size() == 3);
  CHECK(plan.transfers[1].tensors.size() == 2);  // a is on the npu, but listed again
  RunRecord record;
  const auto outputs = run(graph, plan, {floats({2}, {3, -4})}, &record);
  CHECK(values_of(outputs[0]) == Values{0, 0});
  CHECK(values_of(outputs[1])[0] == -3);
  CHECK(lines_of(record) == Lines{"inputs npu 1", "partition 0 npu", "transfer 0 cpu 1",
                                  "partition 1 cpu", "transfer 1 npu 1", "partition 2 npu",
                                  "transfer 2 cpu 0", "partition 3 cpu", "outputs 2"});
  CHECK(record.steps[4].bytes == 8);
  CHECK(record.steps[6].bytes == 0);
}

TEST_CASE("executor: a graph input is uploaded once per device that reads it") {
  if (!test::use_backends()) return;
  const Graph graph = graph_of(R"(
    input x [2]
    a = relu(x) @npu
    b = aten.add.Tensor(x, a) @cpu
    c = aten.add.Tensor(x, b) @npu; output c, x)");
  RunRecord record;
  const auto outputs = run(graph, partition_convex(graph), {floats({2}, {1, 2})}, &record);
  CHECK(values_of(outputs[0]) == Values{3, 6});
  CHECK(values_of(outputs[1]) == Values{1, 2});
  const Lines lines = lines_of(record);
  CHECK(std::count(lines.begin(), lines.end(), "inputs npu 1") == 1);
  CHECK(std::count(lines.begin(), lines.end(), "inputs cpu 1") == 1);
}

TEST_CASE("executor: an in-place op leaves its operand to every other reader") {
  if (!test::use_backends()) return;
  // All placements of the four nodes: a has the readers relu_, sum and the output.
  for (int placement = 0; placement < 16; ++placement) {
    CAPTURE(placement);
    const auto device = [&](int node) {
      return std::string((placement >> node & 1) != 0 ? "npu" : "cpu");
    };
    const Graph graph = graph_of("input x [3]; a = neg(x) @" + device(0) + "; relu_ = relu_(a) @" +
                                 device(1) + "; add_ = aten.add_.Tensor(relu_, a) @" + device(2) +
                                 "; sum = aten.add.Tensor(a, relu_) @" + device(3) +
                                 "; output sum, a, add_, relu_");
    const Tensor input = floats({3}, {1, -2, 0});
    for (const PartitionPlan& plan : {partition_convex(graph), partition_contiguous(graph)}) {
      const auto outputs = run(graph, plan, {input});
      // a = -1 2 0, relu_ = 0 2 0, add_ = sum = -1 4 0
      CHECK(values_of(outputs[0]) == Values{-1, 4, 0});
      CHECK(values_of(outputs[1]) == Values{-1, 2, 0});
      CHECK(values_of(outputs[2]) == Values{-1, 4, 0});
      CHECK(values_of(outputs[3]) == Values{0, 2, 0});
      CHECK(values_of(input) == Values{1, -2, 0});  // the caller's
    }
  }
}

TEST_CASE(
    "executor: an in-place op on a graph input or a weight leaves them alone, run after run") {
  if (!test::use_backends()) return;
  for (const char* device : {"npu", "cpu"}) {
    CAPTURE(device);
    const std::string on = std::string(" @") + device;
    const Graph graph = graph_of("input x [2]; weight w [2]; a = relu_(x)" + on + "; b = neg(p_w)" +
                                 on + "; c = aten.add_.Tensor(b, a)" + on + "; d = relu_(p_w)" +
                                 on + "; output c, d, x, p_w");
    const PartitionPlan plan = partition_convex(graph);
    std::vector<Tensor> weights(graph.tensors().size());
    weights[static_cast<std::size_t>(graph.find_tensor("p_w").value)] = floats({2}, {-5, 6});
    Executor executor = compile_and_load(graph, plan, host(), weights, one_thread());
    for (int round = 0; round < 3; ++round) {
      const auto outputs = executor.run({floats({2}, {-1, 2})}, nullptr);
      CHECK(values_of(outputs[0]) == Values{5, -4});  // relu(x) - w = 0 + 5, 2 - 6
      CHECK(values_of(outputs[1]) == Values{0, 6});
      CHECK(values_of(outputs[2]) == Values{-1, 2});
      CHECK(values_of(outputs[3]) == Values{-5, 6});
    }
  }
}

TEST_CASE("executor: results of one run do not change with the next") {
  if (!test::use_backends()) return;
  const Graph graph = graph_of(R"(
    input x [2]
    a = relu(x) @npu
    b = neg(a) @cpu; output a, b)");
  const PartitionPlan plan = partition_convex(graph);
  Executor executor = compile_and_load(graph, plan, host(),
                                       std::vector<Tensor>(graph.tensors().size()), one_thread());
  const auto first = executor.run({floats({2}, {1, 2})}, nullptr);
  const auto second = executor.run({floats({2}, {3, 4})}, nullptr);
  CHECK(values_of(first[0]) == Values{1, 2});
  CHECK(values_of(first[1]) == Values{-1, -2});
  CHECK(values_of(second[0]) == Values{3, 4});
  CHECK(values_of(second[1]) == Values{-3, -4});
}

namespace {

/// relu(x) on a device, of `size` numbers; `is_alias`: and a view of x.
Graph relu_of(const char* device, std::int64_t size, bool is_alias = false) {
  GraphBuilder builder;
  builder.input("x", {size}).node("a", "aten.relu.default", {"x"}, Shape{size}).on(device);
  if (is_alias) {
    builder
        .node("b", "aten.view.default", {"x"}, Shape{1, size},
              Json{{"size", Json::array({1, size})}})
        .on(device)
        .output("b");
  }
  return builder.output("a").build();
}

const StepRecord& step_of(const RunRecord& record, Kind kind) {
  const auto found = std::find_if(record.steps.begin(), record.steps.end(),
                                  [&](const StepRecord& step) { return step.kind == kind; });
  REQUIRE(found != record.steps.end());
  return *found;
}

}  // namespace

TEST_CASE("executor: inputs and outputs of the graph are used in place") {
  if (!test::use_backends()) return;
  for (const char* device : {"npu", "cpu"}) {
    CAPTURE(device);
    const Graph graph = relu_of(device, 3);
    const PartitionPlan plan = partition_convex(graph);
    Executor executor = compile_and_load(graph, plan, host(), std::vector<Tensor>(2), one_thread());
    RunRecord record;
    CHECK(values_of(executor.run({floats({3}, {-1, 0, 2})}, &record)[0]) == Values{0, 0, 2});
    for (const Kind kind : {Kind::kInput, Kind::kOutput}) {
      CHECK(step_of(record, kind).bytes == 12);
      CHECK(step_of(record, kind).copied_bytes == 0);
      CHECK(path_text(step_of(record, kind)) == "wrapped");
    }
    // Four bytes behind an aligned address: what cannot be wrapped is copied, and that is told.
    const Tensor whole = floats({4}, {9, -3, 4, -5});
    const Tensor shifted(
        DType::kFloat32, {3},
        std::shared_ptr<const std::byte>(std::make_shared<const Tensor>(whole), whole.data() + 4));
    CHECK(values_of(executor.run({shifted}, &record)[0]) == Values{0, 4, 0});
    CHECK(step_of(record, Kind::kInput).copied_bytes == 12);
    CHECK(path_text(step_of(record, Kind::kInput)) == "copied");
    CHECK(step_of(record, Kind::kOutput).copied_bytes == 0);
    CHECK(values_of(whole) == Values{9, -3, 4, -5});
  }
}

TEST_CASE("executor: memory of results is used again once nobody holds them, and never before") {
  if (!test::use_backends()) return;
  const Graph graph = relu_of("npu", 3);
  const PartitionPlan plan = partition_convex(graph);
  std::vector<Tensor> held;
  {
    Executor executor = compile_and_load(graph, plan, host(), std::vector<Tensor>(2), one_thread());
    const auto run_with = [&](float value) {
      return executor.run({floats({3}, {value, value, -value})}, nullptr).at(0);
    };
    const std::byte* const first = run_with(1).data();
    CHECK(run_with(2).data() == first);
    for (int i = 0; i < 5; ++i) held.push_back(run_with(static_cast<float>(i)));
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto value = static_cast<float>(i);
      CHECK(values_of(held[i]) == Values{value, value, 0});
      for (std::size_t j = 0; j < i; ++j) CHECK(held[i].data() != held[j].data());
    }
    // A result may be the next run's input, whose result then lies elsewhere.
    Tensor fed = run_with(7);
    for (int i = 0; i < 3; ++i) {
      const Tensor next = executor.run({fed}, nullptr).at(0);
      CHECK(next.data() != fed.data());
      CHECK(values_of(next) == Values{7, 7, 0});
      CHECK(values_of(fed) == Values{7, 7, 0});
      fed = next;
    }
    held.erase(held.begin(), held.begin() + 4);
  }
  CHECK(values_of(held.at(0)) == Values{4, 4, 0});  // and outlives the executor
}

TEST_CASE("executor: an output that is a view of an input is a copy of it") {
  if (!test::use_backends()) return;
  for (const char* device : {"npu", "cpu"}) {
    CAPTURE(device);
    const Graph graph = relu_of(device, 2, true);
    const PartitionPlan plan = partition_convex(graph);
    Executor executor = compile_and_load(graph, plan, host(),
                                         std::vector<Tensor>(graph.tensors().size()), one_thread());
    Tensor input = floats({2}, {-1, 2});
    const auto outputs = executor.run({input}, nullptr);
    CHECK(outputs[0].data() != input.data());
    input.as_mutable<float>()[0] = 5;
    CHECK(values_of(outputs[0]) == Values{-1, 2});
    CHECK(values_of(outputs[1]) == Values{0, 2});
  }
}

TEST_CASE("executor: a result that is listed twice is the same tensor twice") {
  if (!test::use_backends()) return;
  const Graph graph = graph_of(R"(
    input x [2]
    a = relu(x) @npu
    b = neg(a) @cpu; output a, b, a)");
  RunRecord record;
  const auto outputs = run(graph, partition_convex(graph), {floats({2}, {-1, 2})}, &record);
  CHECK(values_of(outputs[0]) == Values{0, 2});
  CHECK(values_of(outputs[1])[1] == -2);
  CHECK(same_bits(outputs[2], outputs[0]));
  for (const StepRecord& step : record.steps) CHECK(step.copied_bytes == 0);
}

TEST_CASE("executor: weights are uploaded once and reused over runs") {
  if (!test::use_backends()) return;
  const Graph graph = graph_of(R"(
    input x [1,2]; weight w [2,2]
    a = mm(x, p_w) @npu
    b = mm(a, p_w) @npu
    c = mm(b, p_w) @cpu; output c)");
  const PartitionPlan plan = partition_convex(graph);
  std::vector<Tensor> weights(graph.tensors().size());
  weights[static_cast<std::size_t>(graph.find_tensor("p_w").value)] = floats({2, 2}, {0, 1, 2, 0});
  Executor executor = compile_and_load(graph, plan, host(), weights, one_thread());
  CHECK(executor.weight_uploads() == 2);  // one per partition that reads it
  CHECK(executor.weight_bytes() == 32);
  for (int round = 0; round < 3; ++round) {
    // [1 3] -> [6 1] -> [2 6] -> [12 2]
    CHECK(values_of(executor.run({floats({1, 2}, {1, 3})}, nullptr)[0]) == Values{12, 2});
  }
  CHECK(executor.weight_uploads() == 2);
  CHECK(executor.load_ms() > 0);
  const auto versions = executor.backend_versions();
  CHECK(versions.count("aten") == 1);
  CHECK(versions.count("onednn") == 1);
}

TEST_CASE("executor: all bfloat16 patterns enter and leave the memory of a device bit for bit") {
  if (!test::use_backends()) return;
  // What a transfer does: from the host to one device, from its memory to the other, back to the
  // host.
  const Tensor input = every_bfloat16();
  const auto open = [](const char* backend) {
    return DeviceInstance::open(Backend::load(backend), R"({"threads":1})");
  };
  for (const auto& [first, second] : {std::pair{"onednn", "aten"}, {"aten", "onednn"}}) {
    CAPTURE(first);
    const auto from = open(first);
    const auto to = open(second);
    const auto buffer = from->import_tensor(input);
    CHECK(same_bits(buffer->to_host(), input));
    CHECK(buffer->bytes() == input.bytes());
    const std::byte* memory = buffer->host_memory();
    REQUIRE(memory != nullptr);
    const auto copy = to->import_tensor({input.dtype(), input.shape()}, memory);
    CHECK(same_bits(copy->to_host(), input));
  }
}

TEST_CASE("executor: bfloat16 keeps its bits on the way through a plan") {
  if (!test::use_backends()) return;
  // Views move data between devices and change none of it.
  const Graph graph = graph_of(R"(
    input x [65536] bfloat16
    a = view(x) [256,256] {"size": [256, 256]} @npu
    b = view(a) [65536] {"size": [65536]} @cpu
    c = view(b) [16,4096] {"size": [16, 4096]} @npu
    d = view(c) [65536] {"size": [65536]} @cpu; output a, c, d)");
  Tensor input = every_bfloat16();
  // A program may copy a view's data, and oneDNN's copy makes signalling NaNs quiet; so they are
  // quiet here.
  for (int i = 0; i < 65536; ++i) {
    auto& bits = input.as_mutable<std::uint16_t>()[i];
    if (std::isnan(bfloat16_to_float(bits))) bits |= 0x40;
  }
  RunRecord record;
  const auto outputs = run(graph, partition_convex(graph), {input}, &record);
  REQUIRE(outputs.size() == 3);
  CHECK(same_bits(outputs[2], input));
  for (const Tensor& output : outputs) {
    CHECK(output.dtype() == DType::kBFloat16);
    CHECK(output.bytes() == input.bytes());
    CHECK(std::memcmp(output.data(), input.data(), input.bytes()) == 0);
  }
  std::int64_t moved = 0;
  for (const StepRecord& step : record.steps) {
    if (step.kind == Kind::kTransfer) moved += step.bytes;
  }
  CHECK(moved == 3 * 131072);  // 65536 elements of two bytes, three times
}

TEST_CASE("executor: tensors of every dtype cross from cpu to npu and back bit for bit") {
  if (!test::use_backends()) return;
  std::mt19937 random(61);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::string name(dtype_name(dtype));
    CAPTURE(name);
    const Graph graph = graph_of("input x [6] " + name + R"(
      a = view(x) [2,3] {"size": [2, 3]} @cpu
      b = view(a) [6] {"size": [6]} @npu
      c = view(b) [3,2] {"size": [3, 2]} @cpu
      output c
    )");
    if (!check_support(graph, NodeId{1}, host().devices[0]).supported) continue;
    Tensor input(dtype, {6});
    for (std::size_t i = 0; i < input.bytes(); ++i) {
      input.mutable_data()[i] =
          static_cast<std::byte>(dtype == DType::kBool ? random() % 2 : random());
    }
    const auto outputs = run(graph, partition_convex(graph), {input});
    CHECK(outputs[0].dtype() == dtype);
    CHECK(std::memcmp(outputs[0].data(), input.data(), input.bytes()) == 0);
  }
}

TEST_CASE("executor: small models on the cpu give PyTorch's results, any split gives the cpu's") {
  if (!test::use_backends()) return;
  std::mt19937 random(67);
  int placements = 0;
  std::int64_t nodes_on_npu = 0;
  for (const char* name : {"residual", "residual_bf16", "depthwise", "squeeze_excite", "inception",
                           "mlp", "mlp_bf16", "self_attention", "multi_output", "in_place_reader",
                           "in_place_view", "lifted_constants", "tied_weights", "several_outputs",
                           "plain_norms", "scalar_math", "dtypes", "shapes", "empty"}) {
    CAPTURE(name);
    SmallModel model = load_small(name);
    for (Node& node : model.graph.nodes()) node.device = "cpu";
    const PartitionPlan whole = partition_convex(model.graph);
    Executor reference = compile_and_load(model.graph, whole, host(), model.weights, one_thread());
    const auto on_cpu = reference.run(model.inputs, nullptr);
    check_close(model, on_cpu, model.expected);
    // Every node that the npu supports goes there with one chance in two, or everything goes.
    for (int round = 0; round < 2; ++round) {
      CAPTURE(round);
      for (std::size_t n = 0; n < model.graph.nodes().size(); ++n) {
        const bool supported =
            check_support(model.graph, {static_cast<std::int32_t>(n)}, host().devices[0]).supported;
        const bool to_npu = supported && (round == 0 || random() % 2 == 0);
        model.graph.nodes()[n].device = to_npu ? "npu" : "cpu";
        nodes_on_npu += to_npu ? 1 : 0;
      }
      const PartitionPlan plan =
          placements % 3 == 2 ? partition_contiguous(model.graph) : partition_convex(model.graph);
      Executor split = compile_and_load(model.graph, plan, host(), model.weights, one_thread());
      RunRecord record;
      const auto outputs = split.run(model.inputs, &record);
      check_close(model, outputs, on_cpu);
      // Again with what is left of the first run.
      const auto again = split.run(model.inputs, nullptr);
      for (std::size_t i = 0; i < outputs.size(); ++i) CHECK(same_bits(again[i], outputs[i]));
      std::int64_t copied = 0;
      for (const StepRecord& step : record.steps)
        copied += step.kind == Kind::kTransfer ? step.tensors : 0;
      CHECK(copied == plan_metrics(model.graph, plan, host()).copied_tensors);
      ++placements;
    }
  }
  CHECK(placements >= 12);
  CHECK(nodes_on_npu > 100);
}

TEST_CASE("executor: the trace of a run has a track per device and an arrow per transfer") {
  if (!test::use_backends()) return;
  SmallModel model = load_small("residual");
  for (std::size_t n = 0; n < model.graph.nodes().size(); ++n) {
    const bool is_add = model.graph.nodes()[n].op_type.starts_with("aten.add");
    model.graph.nodes()[n].device =
        !is_add && check_support(model.graph, {static_cast<std::int32_t>(n)}, host().devices[0])
                       .supported
            ? "npu"
            : "cpu";
  }
  const PartitionPlan plan = partition_convex(model.graph);
  REQUIRE_FALSE(plan.transfers.empty());
  Executor executor = compile_and_load(model.graph, plan, host(), model.weights, one_thread());
  RunRecord record;
  executor.run(model.inputs, &record, true);
  double end = 0;
  for (const StepRecord& step : record.steps) {  // one after another
    CHECK(step.start_us >= end);
    CHECK(step.end_us >= step.start_us);
    end = step.end_us;
  }
  CHECK(record.total_us >= end);
  const Json trace = Json::parse(write_trace(model.graph, plan, record));
  std::map<std::string, int> threads;
  std::map<int, int> starts;
  std::map<int, int> ends;
  std::size_t partitions = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event["name"] == "thread_name") ++threads[event["args"]["name"].get<std::string>()];
    if (event["ph"] == "s") ++starts[event["id"].get<int>()];
    if (event["ph"] == "f") ++ends[event["id"].get<int>()];
    if (event["ph"] == "X" && event["cat"] == "partition") ++partitions;
  }
  CHECK(threads == std::map<std::string, int>{{"cpu", 1}, {"host", 1}, {"npu", 1}});
  CHECK(starts == ends);
  CHECK(starts.size() == plan.transfers.size());
  for (const auto& [id, count] : starts) CHECK(count == 1);
  CHECK(partitions == plan.partitions.size());
}
