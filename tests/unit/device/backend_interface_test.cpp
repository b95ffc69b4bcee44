// SPDX-License-Identifier: Apache-2.0
// The interface of backends: what the host makes of statuses, sizes, fact sheets and
// functions that are not there. A backend that wraps onednn or aten gives each of the answers.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <functional>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/backend_table.hpp"
#include "device/device_instance.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"
#include "support/elapsed.hpp"

using namespace npu;
using namespace npu::test;

namespace {

std::string wrap_file() { return std::string(vendor_dir()) + "/npu_backend_wrap.so"; }

/// What the wrapper has counted; it is loaded once per process.
unsigned count(const char* what) {
  void* library = ::dlopen(wrap_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  return reinterpret_cast<unsigned (*)(const char*)>(::dlsym(library, "wrap_count"))(what);
}

std::shared_ptr<const Backend> wrap() {
  use_vendor_backend();
  return Backend::load("wrap");
}

/// A fault that ends with the test. Counts of calls in it are from the process's beginning.
Setting fault(const std::string& text) { return {"WRAP_FAULT", text.c_str()}; }

/// relu of x; the sub-IR and what it gives.
std::string relu_text() {
  const Graph graph =
      GraphBuilder().input("x", {4}).node("r", "aten.relu.default", {"x"}).output("r").build();
  return write_subgraph(graph, {NodeId{0}}, find_boundary(graph, {NodeId{0}}));
}
ProgramSignature relu_signature() { return {.outputs = {{DType::kFloat32, {4}}}, .nodes = 1}; }

Tensor four(float a, float b, float c, float d) {
  Tensor tensor(DType::kFloat32, {4});
  float* values = tensor.as_mutable<float>();
  values[0] = a;
  values[1] = b;
  values[2] = c;
  values[3] = d;
  return tensor;
}

npu_status status_of(const std::function<void()>& body, std::string* text = nullptr) {
  try {
    body();
  } catch (const BackendError& error) {
    if (text != nullptr) *text = error.message();
    return error.status();
  }
  return NPU_OK;
}

/// A target whose first device is a backend's; the second one is the CPU.
Target target_of(const std::string& backend) {
  Json json = *vendor_target().json;
  Json& devices = json["devices"];
  devices.erase(devices.begin());
  devices[0]["backend"] = backend;
  devices[0]["ops"] = "*";
  json["links"] = Json::array({json["links"][2]});
  return parse_target(json, "target.json");
}

/// Relus on the first device, each a partition of its own, for the CPU has a node between two.
Graph many_relus(const Target& target, int count) {
  GraphBuilder builder;
  builder.input("x", {4});
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    builder.node("r" + number, "aten.relu.default", {last});
    builder.node("a" + number, "aten.abs.default", {"r" + number});
    last = "a" + number;
  }
  Graph graph = builder.output(last).build();
  for (Node& node : graph.nodes()) {
    node.device = node.op_type == "aten.relu.default" ? "npu2" : "cpu";
  }
  graph.set_npu_member("target", *target.json);
  return graph;
}

PartitionPlan plan_of(Graph& graph) {
  Diagnostics diagnostics;
  PartitionPlan plan = partition_graph(graph, {}, diagnostics).plan;
  REQUIRE_FALSE(diagnostics.has_errors());
  return plan;
}

}  // namespace

TEST_CASE("backend interface: a library that is loaded twice has one table", "[device]") {
  if (!has_cpu()) return;
  use_vendor_backend();
  void* library = ::dlopen(wrap_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  // Whoever asked first goes on using his.
  const npu_backend* first = backend_table(library, wrap_file(), "wrap");
  CHECK(backend_table(library, wrap_file(), "other_name") == first);
}

TEST_CASE("backend interface: structs may be longer on either side, and shorter in the backend",
          "[device]") {
  if (!has_cpu()) return;
  void* library = nullptr;
  use_vendor_backend();
  library = ::dlopen(wrap_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  using Entry = const npu_backend* (*)(const npu_host*, npu_error*);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, NPU_ENTRY_NAME));
  struct {
    npu_host host;
    char tail[64];
  } longer{};
  longer.host.struct_size = sizeof longer;
  longer.host.abi_version = NPU_ABI_VERSION + 1;
  const npu_backend* table = entry(&longer.host, nullptr);
  REQUIRE(table != nullptr);
  struct {
    npu_backend_info info;
    unsigned char tail[64];
  } out{};
  std::memset(out.tail, 0x5a, sizeof out.tail);
  out.info.struct_size = sizeof out;
  npu_error error{};
  error.struct_size = sizeof error;
  REQUIRE(table->backend_info(&out.info, &error) == NPU_OK);
  CHECK(out.info.struct_size == sizeof out.info);
  CHECK(out.tail[0] == 0x5a);
  // A host that knows less: nothing is written behind its end.
  npu_backend_info small{};
  small.struct_size = offsetof(npu_backend_info, flags);
  small.flags = 77;
  REQUIRE(table->backend_info(&small, &error) == NPU_OK);
  CHECK(small.flags == 77);
  CHECK(NPU_HAS(&small, version));
  CHECK_FALSE(NPU_HAS(&small, flags));
}

TEST_CASE("backend interface: statuses become errors, with the node, numbers and advice",
          "[device]") {
  if (!has_cpu()) return;
  const auto device = DeviceInstance::open(wrap(), "{}");
  const auto compile = [&] { (void)device->compile(relu_text(), {}, "{}"); };
  std::string text;
  for (const auto& [status, code] : {std::pair{NPU_UNSUPPORTED, ErrorCode::kUnsupported},
                                     {NPU_INVALID, ErrorCode::kInvalidGraph},
                                     {NPU_MEMORY, ErrorCode::kInfeasible},
                                     {NPU_FAILED, ErrorCode::kFailed},
                                     {NPU_DEADLINE, ErrorCode::kInfeasible},
                                     {NPU_DEVICE_LOST, ErrorCode::kFailed},
                                     {NPU_INCOMPATIBLE, ErrorCode::kFailed},
                                     {NPU_INTERNAL, ErrorCode::kFailed}}) {
    const Setting set = fault("compile=" + std::to_string(status));
    CAPTURE(status);
    CHECK(status_of(compile, &text) == status);
    try {
      compile();
    } catch (const Error& error) {
      CHECK(error.code() == code);
    }
    CHECK_THAT(text, Catch::Contains("node 'the_node': it does not fit; needed 3.00 GB, there are "
                                     "1.00 GB (code -7)"));
  }
  {
    const Setting set = fault("compile=9");
    CHECK(status_of(compile, &text) == NPU_INCOMPATIBLE);
    CHECK_THAT(text, Catch::Contains("compile the model again"));
  }
  const Setting set = fault("compile=1234");
  CHECK(status_of(compile, &text) == NPU_INTERNAL);
  CHECK_THAT(text, Catch::StartsWith("fault of backend 'wrap' "));
}

TEST_CASE("backend interface: a busy device is asked again, and not for ever", "[device]") {
  if (!has_cpu()) return;
  const auto backend = wrap();
  {
    const unsigned before = count("opens");
    const Setting set = fault("busy=" + std::to_string(before + 2));
    const auto device = DeviceInstance::open(backend, "{}");
    CHECK(count("opens") == before + 3);
  }
  const Setting set = fault("busy=1000000");
  const auto start = Clock::now();
  std::string text;
  CHECK(status_of([&] { (void)DeviceInstance::open(backend, "{}"); }, &text) == NPU_BUSY);
  CHECK_THAT(text, Catch::Contains("somebody has it; another program has the device"));
  CHECK(seconds_since(start) < 5.5);
  CHECK(count("open") == 0);
}

TEST_CASE("backend interface: a device is chosen by its id, and one that is not usable says why",
          "[device]") {
  if (!has_cpu()) return;
  const auto backend = wrap();
  CHECK(backend->device("").id == "wrap:0");
  CHECK(backend->device("wrap:*").id == "wrap:0");
  CHECK_THROWS_WITH(backend->device("pci:0"),
                    Catch::Contains("backend 'wrap' has no usable device 'pci:0' here; it has "
                                    "wrap:0"));
  CHECK_THROWS_WITH(DeviceInstance::open(backend, R"({"instance": "pci:0"})"),
                    Catch::Contains("no usable device 'pci:0'"));
}

TEST_CASE("backend interface: jobs share a device, which is opened once", "[device]") {
  if (!has_cpu()) return;
  wrap();
  const Target target = target_of("wrap");
  Graph graph = many_relus(target, 6);
  const PartitionPlan plan = plan_of(graph);
  REQUIRE(plan.partitions.size() == 12);
  const unsigned before = count("opens");
  CompileOptions options;
  options.threads = 1;
  options.jobs = 8;
  options.fallback = false;
  const std::vector<Tensor> weights(graph.tensors().size());
  {
    const CompiledModel model = compile_plan(graph, plan, target, weights, options, nullptr);
    CHECK(count("opens") == before + 1);
    ExecutorOptions run;
    run.threads = 1;
    Executor executor(graph, model.plan, target, weights, run, model.partitions, model.devices);
    Executor again = compile_and_load(graph, model.plan, target, weights, run, executor.devices());
    CHECK(count("opens") == before + 1);
    const auto outputs = again.run({four(-1, 2, -3, 4)}, nullptr);
    CHECK(outputs[0].as<float>()[1] == 2.0F);
    CHECK(outputs[0].as<float>()[2] == 0.0F);
  }
  CHECK(count("open") == 0);
}

TEST_CASE("backend interface: a lost device is opened again once", "[device]") {
  if (!has_cpu()) return;
  wrap();
  const Target target = target_of("wrap");
  Graph graph = many_relus(target, 2);
  const PartitionPlan plan = plan_of(graph);
  CompileOptions options;
  options.threads = 1;
  const std::vector<Tensor> weights(graph.tensors().size());
  const unsigned before = count("opens");
  {
    const Setting set = fault("lost=" + std::to_string(count("compiles") + 1));
    const CompiledModel model = compile_plan(graph, plan, target, weights, options, nullptr);
    CHECK(count("opens") == before + 2);
  }
  const Setting set = fault("lost=1000000");
  CHECK_THROWS_WITH(compile_plan(graph, plan, target, weights, options, nullptr),
                    Catch::Contains("it does not answer; the device is lost (compiling partition "
                                    "0 of 1 nodes from 'r0' on, for device 'npu2')"));
  CHECK(count("open") == 0);
}

TEST_CASE("backend interface: programs of one model run beside each other", "[device]") {
  if (!has_cpu()) return;
  const auto device = DeviceInstance::open(wrap(), R"({"threads": 1})");
  const auto model = device->load_model(device->compile(relu_text(), {}, "{}"), {});
  CHECK(model->keeps_blob());  // onednn computes in it
  const unsigned before = count("models");
  ProgramSignature timed = relu_signature();
  timed.is_timed = true;
  const DeviceProgram first(model, timed);
  const DeviceProgram second(model, relu_signature());
  CHECK(count("models") == before);
  const auto a = device->import_tensor(four(-1, 2, -3, 4));
  const auto b = device->import_tensor(four(5, -6, 7, -8));
  const auto first_result = first.run(std::vector{a->get()});
  const auto second_result = second.run(std::vector{b->get()});
  CHECK(first_result[0]->to_host().as<float>()[3] == 4.0F);
  CHECK(second_result[0]->to_host().as<float>()[2] == 7.0F);
  RunTimes times;
  first.run(std::vector{b->get()}, first_result, &times);
  CHECK(first_result[0]->to_host().as<float>()[0] == 5.0F);
  CHECK(times.node_ns.size() == 1);
  const Setting set = fault("run=10");
  CHECK(status_of([&] { (void)first.run(std::vector{a->get()}); }) == NPU_INTERNAL);
}

TEST_CASE("backend interface: partitions share the weights that both read", "[device]") {
  if (!has_cpu()) return;
  use_backends();
  const Target target = target_of("aten");
  GraphBuilder builder;
  builder.lines(R"(
    input x [4]; weight w, v [4]
    a = aten.add.Tensor(x, p_w)
    c = abs(a)
    b = aten.mul.Tensor(c, p_w)
    d = aten.mul.Tensor(b, p_v); output d)");
  Graph graph = builder.build();
  for (Node& node : graph.nodes()) {
    node.device = node.op_type == "aten.abs.default" ? "cpu" : "npu2";
  }
  graph.set_npu_member("target", *target.json);
  const PartitionPlan plan = plan_of(graph);
  REQUIRE(plan.partitions.size() == 3);
  std::vector<Tensor> weights(graph.tensors().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (graph.tensors()[i].kind == TensorKind::kWeight) weights[i] = four(10, 20, 30, 40);
  }
  ExecutorOptions options;
  options.threads = 1;
  Executor executor = compile_and_load(graph, plan, target, weights, options);
  CHECK(executor.weight_uploads() == 2);
  CHECK(executor.weight_bytes() == 32);
  const auto outputs = executor.run({four(1, 2, 3, 4)}, nullptr);
  CHECK(outputs[0].as<float>()[1] == 22.0F * 20 * 20);
}

TEST_CASE("backend interface: memory that a backend refuses when it is asked is copied",
          "[device]") {
  if (!has_cpu()) return;
  wrap();
  const Target target = target_of("wrap");
  Graph graph = many_relus(target, 1);
  const PartitionPlan plan = plan_of(graph);
  const std::vector<Tensor> weights(graph.tensors().size());
  ExecutorOptions options;
  options.threads = 1;
  for (const auto& [answer, is_copied] : {std::pair{"", false}, {"no-wrap", true}, {"", false}}) {
    CAPTURE(answer);
    const Setting set = fault(answer);
    RunRecord record;
    const auto outputs =
        compile_and_load(graph, plan, target, weights, options).run({four(-1, 2, -3, 4)}, &record);
    CHECK(outputs[0].as<float>()[1] == 2.0F);
    std::int64_t bytes = 0;
    for (const StepRecord& step : record.steps) bytes += step.copied_bytes;
    CHECK((bytes != 0) == is_copied);
  }
}

TEST_CASE("backend interface: memory of the host is used in place, unless it is badly aligned",
          "[device]") {
  if (!has_cpu()) return;
  use_backends();
  for (const char* name : {"onednn", "aten"}) {
    CAPTURE(name);
    const auto device = DeviceInstance::open(Backend::load(name), R"({"threads": 1})");
    alignas(64) float values[20] = {-1, 2, -3, 4, 5};
    auto buffer = device->wrap(DType::kFloat32, {4}, values);
    REQUIRE(buffer != nullptr);
    CHECK(device->wrap(DType::kFloat32, {4}, values + 1) == nullptr);
    const auto program = device->compile_and_load(relu_text(), {}, relu_signature());
    const auto results = program->run(std::vector{buffer->get()});
    CHECK(results[0]->to_host().as<float>()[0] == 0.0F);
    CHECK(results[0]->to_host().as<float>()[1] == 2.0F);
    CHECK(values[0] == -1.0F);
  }
}
