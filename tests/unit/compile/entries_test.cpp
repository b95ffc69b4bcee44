// SPDX-License-Identifier: Apache-2.0
// Programs of several entries over one set of weights, and states between runs: the same values
// whether the backend has the features or the host makes up for them.
#include "compile/entries.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/device_state.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"
#include "opencl_device.hpp"

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

/// Two rows are written into a state of six, and rows behind the valid ones repeat the last of
/// these; besides, what is computed of the state before and after that.
Graph rows_graph() {
  GraphBuilder builder;
  builder.lines(R"(
    input state [6,3]; input rows [2,3]; input at [2] int64; input count [] int64
    before = aten.mul.Tensor(state, state)
    first = aten.index_copy.default(state, at, rows) [6,3] {"dim": 0}
    next = "npu.tail"(first, count) [6,3] {"dim": 0, "fill": "edge"}
    after = aten.relu.default(next)
    output before, next, after)");
  const Graph graph = builder.build();
  Graph part = extract(graph, all_nodes(graph), find_boundary(graph, all_nodes(graph)));
  part.document()["aliases"] = Json::array({{{"output", "next"}, {"input", "state"}}});
  return part;
}

std::vector<float> numbers_from(float first, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<float>(i);
  return numbers;
}

std::vector<float> numbers_in(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.element_count()};
}

template <typename Number>
Tensor tensor_of(const Shape& shape, const std::vector<Number>& numbers) {
  Tensor tensor(std::is_same_v<Number, float> ? DType::kFloat32 : DType::kInt64, shape);
  std::copy(numbers.begin(), numbers.end(), tensor.as_mutable<Number>());
  return tensor;
}

/// A run of rows_graph that writes rows `step` and `step` + 1, of which `step` + 3 are valid.
struct RowsRun {
  const Graph& graph;
  DeviceInstance& device;
  npu_program* program;

  /// Gives "before" and "after".
  std::pair<std::vector<float>, std::vector<float>> operator()(std::int64_t step,
                                                               const std::vector<float>& new_rows,
                                                               npu_buffer* state,
                                                               npu_buffer* next) const {
    const auto rows = device.import_tensor(tensor_of({2, 3}, new_rows));
    const auto at = device.import_tensor(tensor_of<std::int64_t>({2}, {step, step + 1}));
    const auto count = device.import_tensor(tensor_of<std::int64_t>({}, {step + 3}));
    const auto before = device.allocate(DType::kFloat32, {6, 3});
    const auto after = device.allocate(DType::kFloat32, {6, 3});
    const std::map<std::string, npu_buffer*> buffers{
        {"state", state},        {"rows", rows->get()},     {"at", at->get()},
        {"count", count->get()}, {"before", before->get()}, {"next", next},
        {"after", after->get()}};
    std::vector<npu_buffer*> inputs, outputs;
    for (const TensorId id : graph.graph_inputs()) inputs.push_back(buffers.at(name(id)));
    for (const TensorId id : graph.graph_outputs()) outputs.push_back(buffers.at(name(id)));
    npu_error error{};
    error.struct_size = sizeof error;
    const npu_status status = start(inputs, outputs, error);
    CAPTURE(error.text);
    REQUIRE(status == NPU_OK);
    // No other output may be there, and no other input.
    for (npu_buffer*& output : outputs) {
      if (output == before->get()) output = state;
    }
    CHECK(start(inputs, outputs, error) == NPU_INVALID);
    return {numbers_in(before->to_host()), numbers_in(after->to_host())};
  }

 private:
  const std::string& name(TensorId id) const { return graph.tensor(id).name; }

  npu_status start(const std::vector<npu_buffer*>& inputs, const std::vector<npu_buffer*>& outputs,
                   npu_error& error) const {
    npu_run_args args{};
    args.struct_size = sizeof args;
    args.inputs = inputs.data();
    args.input_count = inputs.size();
    args.outputs = outputs.data();
    args.output_count = outputs.size();
    return device.backend().api().run(program, &args, &error);
  }
};

std::vector<std::string> backends_with_relu_and_add() {
  use_vendor_backend();
  std::vector<std::string> names{"skeleton-queue", "vendor"};
  if (has_cpu()) names.insert(names.end(), {"onednn", "aten"});
  if (may_use_opencl()) names.emplace_back("opencl");
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
    CHECK(has_alias == (name != "vendor"));
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

TEST_CASE("rows that are written into a state are the same in one buffer and in two",
          "[compile][entries]") {
  use_vendor_backend();
  const Graph part = rows_graph();
  const TensorType type{DType::kFloat32, {6, 3}};
  const ProgramSignature signature{.outputs = {type, type, type}, .nodes = 4};
  std::vector<std::string> names;
  if (has_cpu()) names.insert(names.end(), {"onednn", "aten"});
  if (may_use_opencl()) names.emplace_back("opencl");
  for (const std::string& name : names) {
    CAPTURE(name);
    const auto device = DeviceInstance::open(Backend::load(name), "{}");
    const EntryPrograms programs(device, {{"only", write_sub_ir(part), signature}}, {});
    const RowsRun run{part, *device, programs.program("only").get()};
    DeviceState one(device, DType::kFloat32, {6, 3});
    DeviceState two(device, DType::kFloat32, {6, 3});
    one.set_value(tensor_of({6, 3}, numbers_from(-9, 18)));
    two.set_value(one.value());
    std::vector<float> expected = numbers_from(-9, 18);
    for (std::int64_t step = 0; step < 4; ++step) {
      CAPTURE(step);
      const std::vector<float> old = expected;
      const std::vector<float> rows = numbers_from(static_cast<float>(-2 * step), 6);
      std::copy_n(rows.begin(), 6, expected.begin() + 3 * step);
      for (auto i = static_cast<std::size_t>(3 * (step + 3)); i < 18; ++i) {
        expected[i] = expected[i - 3];  // the last valid row again
      }
      for (DeviceState* state : {&one, &two}) {
        const bool is_one = state == &one;
        CAPTURE(is_one);
        const auto& next = is_one ? state->buffer() : state->next_buffer();
        const auto [before, after] = run(step, rows, state->buffer()->get(), next->get());
        if (!is_one) {
          CHECK(numbers_in(state->value()) == old);  // what is read is left as it was
          state->advance();
        }
        CHECK(numbers_in(state->value()) == expected);
        for (std::size_t i = 0; i < 18; ++i) {
          CHECK(before[i] == old[i] * old[i]);
          CHECK(after[i] == std::max(expected[i], 0.0F));
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
