// SPDX-License-Identifier: Apache-2.0
// Programs of several entries over one set of weights, and states between runs: the same values
// whether the backend has the features or the host makes up for them.
#include "compile/entries.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/device_state.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// The next state is state + x, as often as it says, and the result its relu. With an alias, the
/// state and the next one may have the same place.
std::string state_sub_ir(std::int64_t size, int times, bool has_alias) {
  GraphBuilder builder;
  builder.input("state", {size}).input("x", {size});
  std::string last = "state";
  for (int i = 0; i < times; ++i) {
    const std::string name = "s" + std::to_string(i);
    builder.node(name, "aten.add.Tensor", {last, "x"});
    last = name;
  }
  const Graph graph =
      builder.node("r", "aten.relu.default", {last}).output(last).output("r").build();
  Graph part = extract(graph, all_nodes(graph), find_boundary(graph, all_nodes(graph)));
  if (has_alias) {
    part.document()["aliases"] = Json::array({{{"output", last}, {"input", "state"}}});
  }
  return write_sub_ir(part);
}

ProgramSignature signature_of(std::int64_t size, int times) {
  return {.outputs = {{DType::kFloat32, {size}}, {DType::kFloat32, {size}}},
          .nodes = static_cast<std::size_t>(times) + 1};
}

Tensor row(std::int64_t size, float first) {
  Tensor tensor(DType::kFloat32, {size});
  for (std::int64_t i = 0; i < size; ++i) {
    tensor.as_mutable<float>()[i] = first + static_cast<float>(i);
  }
  return tensor;
}

/// Whether there is an OpenCL device, and time for the dozen kernels that its driver compiles.
bool has_opencl() {
  const char* many = std::getenv("NPU_TEST_MANY_KERNELS");
  if (many == nullptr || std::string_view(many) != "1") return false;
  if (Backend::find_file("opencl").empty()) return false;
  const auto& devices = Backend::load("opencl")->devices();
  return std::any_of(devices.begin(), devices.end(),
                     [](const DeviceFacts& facts) { return facts.usable; });
}

std::vector<std::string> backends_with_relu_and_add() {
  use_vendor_backend();
  std::vector<std::string> names{"skeleton-queue", "vendor"};
  if (has_cpu()) names.insert(names.end(), {"onednn", "aten"});
  if (has_opencl()) names.emplace_back("opencl");
  return names;
}

}  // namespace

TEST_CASE("two sizes of a program keep a state each, in place where that is possible",
          "[compile][entries]") {
  for (const std::string& name : backends_with_relu_and_add()) {
    CAPTURE(name);
    const auto device = DeviceInstance::open(Backend::load(name), "{}");
    const bool has_alias = device->backend().has_feature("alias");
    std::vector<ModelEntry> entries;
    for (const auto& [entry, size, times] : {std::tuple{"short", 3, 1}, {"long", 70, 2}}) {
      entries.push_back({entry, state_sub_ir(size, times, has_alias), signature_of(size, times)});
    }
    const EntryPrograms programs(device, entries, {});
    CHECK(programs.models() == (device->backend().has_feature("entries") ? 1 : 2));
    CHECK(has_alias == (name != "vendor" && name != "opencl"));
    CHECK_THROWS_WITH(programs.program("other"), Catch::Contains("no entry 'other'"));
    for (const auto& [entry, size, times] : {std::tuple{"long", 70, 2}, {"short", 3, 1}}) {
      DeviceState state(device, DType::kFloat32, {size});
      CHECK(state.value().as<float>()[size - 1] == 0);
      state.set_value(row(size, -4));
      const auto x = device->import_tensor(row(size, 0.5F));
      const auto result = device->allocate(DType::kFloat32, {size});
      for (int step = 1; step <= 5; ++step) {
        const auto& next = has_alias ? state.buffer() : state.next_buffer();
        std::vector<npu_buffer*> inputs{state.buffer()->get(), x->get()};
        std::vector<npu_buffer*> outputs{next->get(), result->get()};
        npu_run_args args{};
        args.struct_size = sizeof args;
        args.inputs = inputs.data();
        args.input_count = inputs.size();
        args.outputs = outputs.data();
        args.output_count = outputs.size();
        npu_error error{};
        error.struct_size = sizeof error;
        REQUIRE(device->backend().api().run(programs.program(entry).get(), &args, &error) ==
                NPU_OK);
        if (!has_alias) state.advance();
        const Tensor value = state.value();
        for (std::int64_t i = 0; i < size; ++i) {
          const auto at = static_cast<float>(i);
          // Small halves, so sums are exact.
          const float expected = -4 + at + static_cast<float>(step * times) * (0.5F + at);
          CHECK(value.as<float>()[i] == expected);
          CHECK(result->to_host().as<float>()[i] == std::max(expected, 0.0F));
        }
      }
    }
  }
}

TEST_CASE("entries need names that differ", "[compile][entries]") {
  use_vendor_backend();
  const auto device = DeviceInstance::open(Backend::load("skeleton-queue"), "{}");
  const ModelEntry entry{"one", state_sub_ir(3, 1, false), signature_of(3, 1)};
  CHECK_THROWS_WITH(EntryPrograms(device, {entry, entry}, {}),
                    Catch::Contains("two entries of a model are named 'one'"));
  CHECK_THROWS_WITH(EntryPrograms(device, {}, {}), Catch::Contains("at least one entry"));
}

TEST_CASE("entries have their weights once", "[compile][entries]") {
  for (const std::string& name : backends_with_relu_and_add()) {
    CAPTURE(name);
    const auto device = DeviceInstance::open(Backend::load(name), "{}");
    std::vector<ModelEntry> entries;
    for (const char* op : {"aten.add.Tensor", "aten.relu.default"}) {
      GraphBuilder builder;
      builder.input("x", {4}).weight("w", {4}).node("sum", "aten.add.Tensor", {"x", "p_w"});
      std::string last = "sum";
      if (std::string(op) != "aten.add.Tensor") {
        builder.node("r", op, {"sum"});
        last = "r";
      }
      const Graph graph = builder.output(last).build();
      entries.push_back(
          {op,
           write_subgraph(graph, all_nodes(graph), find_boundary(graph, all_nodes(graph))),
           {.outputs = {{DType::kFloat32, {4}}}, .nodes = graph.nodes().size()}});
    }
    const EntryPrograms programs(device, entries, {{"p_w", row(4, -10)}});
    const auto x = device->import_tensor(row(4, 8));
    const std::vector<npu_buffer*> inputs{x->get()};
    const auto sum = programs.program("aten.add.Tensor").run(inputs).front()->to_host();
    const auto rectified = programs.program("aten.relu.default").run(inputs).front()->to_host();
    for (int i = 0; i < 4; ++i) {
      CHECK(sum.as<float>()[i] == static_cast<float>(2 * i - 2));
      CHECK(rectified.as<float>()[i] == std::max(static_cast<float>(2 * i - 2), 0.0F));
    }
  }
}
