// SPDX-License-Identifier: Apache-2.0
// The case of layouts: what check lists can be compiled for, buffers take it and show it row-major,
// a value goes from one program to another in it with the same numbers, and nothing else is taken
// for a layout.
#include <algorithm>
#include <string>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/question.hpp"
#include "npu/device/blob.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {
namespace {

std::string layout_options(const LayoutNames& layouts) {
  return Json{{"boundary_layouts", layouts}}.dump();
}

/// The layouts that a backend lists for a tensor, inputs coming as `inputs` says.
std::vector<std::string> listed(const Harness& harness, npu_device* device, const GraphSpec& graph,
                                const std::string& tensor, const LayoutNames& inputs) {
  const Answer answer = ask(harness, device, sub_ir_text(graph), layout_options(inputs));
  if (answer.status != NPU_OK) return {};
  const Json json = Json::parse(answer.text, nullptr, false);
  const Json* boundaries = json.is_object() ? find_member(json, "boundaries") : nullptr;
  if (boundaries == nullptr) return {};
  harness.found.require(boundaries->is_object(), "\"boundaries\" of an answer is no object");
  const Json* list = find_member(*boundaries, tensor);
  if (list == nullptr) return {};
  const std::string prefix = harness.library.name + ":";
  std::vector<std::string> names;
  for (const Json& layout : *list) {
    const auto* name = layout.get_ptr<const std::string*>();
    harness.found.require(list->is_array() && name != nullptr && name->starts_with(prefix),
                          "a layout in an answer is no name that begins with '" + prefix + "'");
    names.push_back(*name);
  }
  return names;
}

/// A program with buffers of its own but for the first input.
struct Part {
  std::unique_ptr<LoadedModel> model;
  ProgramPtr program;
  std::vector<BufferPtr> in;
  std::vector<BufferPtr> out;
};

/// A graph whose first input and output have one type, so that it can follow itself.
class LayoutCheck {
 public:
  LayoutCheck(const Harness& harness, npu_device* device, const GraphSpec& graph)
      : harness_(harness),
        device_(device),
        graph_(graph),
        x_(graph.inputs.front()),
        y_(graph.tensor(graph.outputs.front())) {}

  /// False if the backend lists no layout for the output.
  bool run() const {
    const auto layouts = listed(harness_, device_, graph_, y_.name, {});
    if (layouts.empty()) return false;
    const Part first = make({}, "");
    const Tensor once = run_on(first, nullptr);
    const Part second = make({}, "");
    const Tensor twice = run_on(second, first.out.front().get());
    for (const std::string& layout : layouts) {
      const Part from = make({{y_.name, layout}}, layout);
      compare(run_on(from, nullptr), once, "a result in '" + layout + "'");
      check_buffer(layout);
      check_copy(layout);
      check_wrong(from, layout);
      const auto taken = listed(harness_, device_, graph_, x_.name, {{x_.name, layout}});
      if (std::find(taken.begin(), taken.end(), layout) == taken.end()) continue;
      const Part to = make({{x_.name, layout}}, "");
      compare(run_on(to, from.out.front().get()), twice, "a value that comes in '" + layout + "'");
      compare(harness_.read(from.out.front().get(), y_), once, "a value that was read");
    }
    return true;
  }

 private:
  npu_status create(const std::string& layout, BufferPtr& made) const {
    npu_buffer_desc desc = buffer_desc(y_);
    desc.usage = NPU_USAGE_OUTPUT;
    desc.layout = layout.empty() ? nullptr : layout.c_str();
    npu_buffer* buffer = nullptr;
    auto error = sized<npu_error>();
    const npu_status status = harness_.api.buffer_create(device_, &desc, &buffer, &error);
    harness_.check_error(status, error, "buffer_create with a layout");
    made = BufferPtr(buffer, harness_.api.buffer_free);
    return status;
  }

  BufferPtr buffer_in(const std::string& layout) const {
    BufferPtr buffer(nullptr, harness_.api.buffer_free);
    const npu_status status = create(layout, buffer);
    harness_.found.require(
        status == NPU_OK && buffer != nullptr,
        "buffer_create in '" + layout + "', which check lists, gives " + status_name(status));
    return buffer;
  }

  /// The graph compiled for these layouts, with its first output in a buffer of one.
  Part make(const LayoutNames& layouts, const std::string& output) const {
    const Compiled compiled =
        harness_.compile(device_, sub_ir_text(graph_), graph_.weights,
                         layouts.empty() ? nullptr : layout_options(layouts).c_str());
    harness_.require_ok(compiled.status, compiled.error, "compile for a layout that check lists");
    Part part{harness_.load(device_, compiled.blob, graph_.weights),
              ProgramPtr(nullptr, harness_.api.program_free),
              {},
              {}};
    part.program = harness_.create(part.model->get());
    for (const TensorSpec& input : graph_.inputs) {
      part.in.push_back(harness_.make_buffer(device_, input, NPU_USAGE_INPUT));
      harness_.write(part.in.back().get(), test_values(input, 1));
    }
    part.out.push_back(buffer_in(output));
    return part;
  }

  /// Its first output, row-major; `first` takes the place of the first input.
  Tensor run_on(const Part& part, npu_buffer* first) const {
    std::vector<npu_buffer*> inputs = handles(part.in);
    if (first != nullptr) inputs.front() = first;
    const std::vector<npu_buffer*> outputs = handles(part.out);
    const npu_run_args args = run_args(inputs, outputs);
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.run(part.program.get(), &args, &error), error,
                        "run with buffers in layouts");
    return harness_.read(part.out.front().get(), y_);
  }

  void compare(const Tensor& found, const Tensor& expected, const std::string& what) const {
    const bool is_same = compare_tensors(found, expected, tolerance_of(y_.dtype)).ok;
    harness_.found.expect(is_same, what + " has other numbers than row-major");
  }

  /// Whatever the layout, the host sees row-major content, also of a piece.
  void check_buffer(const std::string& layout) const {
    const BufferPtr buffer = buffer_in(layout);
    Tensor values = test_values(y_, 7);
    harness_.write(buffer.get(), values);
    const auto is_kept = [&] { return same_bits({harness_.read(buffer.get(), y_)}, {values}); };
    harness_.found.expect(is_kept(), "a buffer in '" + layout + "' does not keep what is written");
    const Tensor others = test_values(y_, 8);
    auto piece = sized<npu_transfer>();
    piece.offset = values.bytes() / 4 * 2;
    piece.bytes = values.bytes() / 4;
    std::copy_n(others.data() + piece.offset, piece.bytes, values.mutable_data() + piece.offset);
    piece.data = values.mutable_data() + piece.offset;
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.buffer_write(buffer.get(), &piece, &error), error,
                        "buffer_write of a piece");
    harness_.found.expect(is_kept(),
                          "a piece written to a buffer in '" + layout + "' is not where it was");
    if (harness_.api.buffer_map == nullptr) return;
    void* mapped = nullptr;
    const npu_status status =
        harness_.api.buffer_map(buffer.get(), NPU_ACCESS_READ, &mapped, &error);
    harness_.found.expect(status == NPU_UNSUPPORTED, "buffer_map in '" + layout + "' gives " +
                                                         status_name(status) + ", not UNSUPPORTED");
  }

  void check_wrong(const Part& part, const std::string& layout) const {
    const auto expect_invalid = [&](npu_status status, const std::string& what) {
      harness_.found.expect(status == NPU_INVALID,
                            what + " gives " + status_name(status) + ", not INVALID");
    };
    const std::string nobodys = harness_.library.name + ":nobody knows it";
    BufferPtr none(nullptr, harness_.api.buffer_free);
    expect_invalid(create(nobodys, none), "buffer_create in a layout that there is not");
    const std::string options = layout_options({{y_.name, nobodys}});
    expect_invalid(
        harness_.compile(device_, sub_ir_text(graph_), graph_.weights, options.c_str()).status,
        "compile for a layout that there is not");
    const std::vector<npu_buffer*> inputs = handles(part.in);
    const BufferPtr plain = buffer_in("");
    const std::vector<npu_buffer*> outputs{plain.get()};
    const npu_run_args args = run_args(inputs, outputs);
    auto error = sized<npu_error>();
    const npu_status status = harness_.api.run(part.program.get(), &args, &error);
    harness_.check_error(status, error, "run with a buffer of another layout");
    expect_invalid(status, "run with a row-major buffer for a result in '" + layout + "'");
    check_wrong_input(part, layout);
  }

  /// A value in a layout is none for a program that reads row-major ones.
  void check_wrong_input(const Part& part, const std::string& layout) const {
    const Part plain = make({}, "");
    std::vector<npu_buffer*> inputs = handles(plain.in);
    inputs.front() = part.out.front().get();
    const std::vector<npu_buffer*> outputs = handles(plain.out);
    const npu_run_args args = run_args(inputs, outputs);
    auto error = sized<npu_error>();
    const npu_status status = harness_.api.run(plain.program.get(), &args, &error);
    harness_.check_error(status, error, "run with an input in a layout");
    harness_.found.expect(status == NPU_INVALID, "run with an input in '" + layout +
                                                     "' that is to be row-major gives " +
                                                     status_name(status) + ", not INVALID");
  }

  /// A copy changes the layout, not the content.
  void check_copy(const std::string& layout) const {
    if (!harness_.library.has_feature("copy") || harness_.api.buffer_copy == nullptr) return;
    const BufferPtr there = buffer_in(layout);
    const BufferPtr plain = buffer_in("");
    const Tensor values = test_values(y_, 11);
    harness_.write(there.get(), values);
    auto error = sized<npu_error>();
    harness_.require_ok(
        harness_.api.buffer_copy(there.get(), plain.get(), nullptr, nullptr, &error), error,
        "buffer_copy from '" + layout + "'");
    harness_.found.expect(same_bits({harness_.read(plain.get(), y_)}, {values}),
                          "buffer_copy from '" + layout + "' to row-major changes the content");
    harness_.write(plain.get(), test_values(y_, 12));
    harness_.require_ok(
        harness_.api.buffer_copy(plain.get(), there.get(), nullptr, nullptr, &error), error,
        "buffer_copy to '" + layout + "'");
    harness_.found.expect(same_bits({harness_.read(there.get(), y_)}, {test_values(y_, 12)}),
                          "buffer_copy from row-major to '" + layout + "' changes the content");
  }

  const Harness& harness_;
  npu_device* device_;
  const GraphSpec& graph_;
  const TensorSpec x_;
  const TensorSpec y_;
};

/// Convolutions are what layouts are there for.
std::vector<GraphSpec> graphs_of(DType dtype) {
  std::vector<GraphSpec> graphs = sample_graphs(dtype);
  for (const std::int64_t channels : {16, 32}) {
    GraphSpec graph = one_node("aten.conv2d.default", {{"x", dtype, {1, channels, 9, 9}}},
                               {"first", dtype, {1, channels, 9, 9}}, {{"padding", {1, 1}}});
    const TensorSpec weight{"w", dtype, {channels, channels, 3, 3}};
    graph.weights.push_back({weight.name, test_values(weight, 3)});
    graph.nodes.front().operands.push_back(weight.name);
    graphs.push_back(std::move(graph));
  }
  std::erase_if(graphs, [](const GraphSpec& graph) {
    const TensorSpec result = graph.tensor(graph.outputs.front());
    return graph.outputs.size() != 1 || result.shape != graph.inputs.front().shape;
  });
  return graphs;
}

}  // namespace

void check_layouts(const Harness& harness) {
  harness.found.require(harness.library.has_feature("check") && harness.api.check != nullptr,
                        "the feature layouts is listed without check");
  const DevicePtr device = harness.open();
  bool has_any = false;
  for (const DType dtype : harness.facts().dtypes) {
    if (!is_floating_point(dtype)) continue;
    for (const GraphSpec& graph : graphs_of(dtype)) {
      if (harness.compile(device.get(), graph).status != NPU_OK) continue;
      has_any = LayoutCheck(harness, device.get(), graph).run() || has_any;
    }
  }
  if (has_any) return;
  throw NotApplicable("no layout is listed for the results of small graphs");
}

}  // namespace npu::conformance
