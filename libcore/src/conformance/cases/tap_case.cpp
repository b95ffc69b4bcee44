// SPDX-License-Identifier: Apache-2.0
// The case of intermediate results: the report names them, a run gives them beside the outputs,
// which keep their bits, and what is asked for in a wrong way is refused before anything runs.
#include <algorithm>
#include <set>
#include <string>

#include "conformance/cases/cases.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {
namespace {

using Names = std::vector<std::string>;

/// The taps that a blob's report lists, each a result of the graph that is no output.
Names listed_taps(const Harness& harness, const Instance& instance) {
  std::string text;
  auto writer = sized<npu_writer>();
  writer.context = &text;
  writer.write = append_bytes;
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.blob_report(instance.device.get(), instance.blob.data(),
                                             instance.blob.size(), &writer, &error),
                     error, "blob_report");
  const Json report = Json::parse(text, nullptr, false);
  const Json* list = report.is_object() ? find_member(report, "taps") : nullptr;
  harness.found.require(list != nullptr && list->is_array(), "the report lists no \"taps\"");
  std::set<std::string> results;
  for (const NodeSpec& node : instance.graph.nodes) results.insert(node.name);
  for (const std::string& output : instance.graph.outputs) results.erase(output);
  Names names;
  for (const Json& tap : *list) {
    const auto* name = tap.get_ptr<const std::string*>();
    harness.found.require(name != nullptr && results.erase(*name) == 1,
                          "the report lists a tap that is no result within the graph, or twice");
    names.push_back(*name);
  }
  return names;
}

/// Taps of a run; what the pointers point to is spoilt when it goes.
class TapList {
 public:
  void add(const char* name, npu_buffer* buffer) {
    auto tap = sized<npu_tap>();
    tap.name = name;
    tap.buffer = buffer;
    taps_.push_back(std::make_unique<npu_tap>(tap));
    pointers_.push_back(taps_.back().get());
  }
  npu_run_args put(npu_run_args args) const {
    args.taps = pointers_.data();
    args.tap_count = pointers_.size();
    return args;
  }
  void spoil() {
    std::fill(pointers_.begin(), pointers_.end(), nullptr);
    for (const auto& tap : taps_) *tap = {};
  }

 private:
  std::vector<std::unique_ptr<npu_tap>> taps_;
  std::vector<const npu_tap*> pointers_;
};

/// A graph whose program hands out what its report lists.
class TapCheck {
 public:
  TapCheck(const Harness& harness, const Instance& instance, Names names)
      : harness_(harness),
        instance_(instance),
        names_(std::move(names)),
        inputs_(instance.input_handles()),
        outputs_(instance.output_handles()),
        program_(create(instance.model->get())) {
    for (const std::string& name : names_) buffers_.push_back(make(instance.graph.tensor(name)));
  }

  void run() {
    const std::vector<Tensor> outputs = run_and_read(harness_, instance_);
    const std::vector<Tensor> expected = compiled_as_outputs();
    check_run(all(), outputs, expected, "a run with taps");
    check_wrong_taps();
    check_run(all(), outputs, expected, "a run with taps after wrong ones");
    check_run({}, outputs, {}, "a run without taps");
    if (harness_.library.has_feature("queue")) check_submitted(outputs, expected);
  }

 private:
  ProgramPtr create(npu_model* model) const {
    auto args = sized<npu_program_args>();
    args.flags = NPU_PROGRAM_TAPS;
    npu_program* program = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.program_create(model, &args, &program, &error), error,
                        "program_create for taps");
    return {program, harness_.api.program_free};
  }

  BufferPtr make(const TensorSpec& tensor) const {
    BufferPtr buffer = harness_.make_buffer(instance_.device.get(), tensor, NPU_USAGE_OUTPUT);
    harness_.write(buffer.get(), test_values(tensor, 99));
    return buffer;
  }

  TapList all() const {
    TapList taps;
    for (std::size_t i = 0; i < names_.size(); ++i) taps.add(names_[i].c_str(), buffers_[i].get());
    return taps;
  }

  /// The same tensors where they are outputs of the graph.
  std::vector<Tensor> compiled_as_outputs() const {
    GraphSpec graph = instance_.graph;
    graph.outputs = names_;
    DevicePtr device = harness_.open();
    const Compiled compiled = harness_.compile(device.get(), graph);
    harness_.require_ok(compiled.status, compiled.error, "compile with taps as outputs");
    return run_and_read(harness_, make_instance(harness_, std::move(device), graph, compiled.blob));
  }

  void compare(const std::vector<Tensor>& outputs, const std::vector<Tensor>& expected,
               const std::string& what) const {
    std::vector<Tensor> found;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorSpec spec = instance_.graph.tensor(instance_.graph.outputs[i]);
      found.push_back(harness_.read(instance_.out[i].get(), spec));
    }
    harness_.found.expect(same_bits(found, outputs),
                          what + " gives other outputs than one without");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const TensorSpec spec = instance_.graph.tensor(names_[i]);
      const Tensor tap = harness_.read(buffers_[i].get(), spec);
      const bool is_same = compare_tensors(tap, expected[i], tolerance_of(spec.dtype)).ok;
      harness_.found.expect(
          is_same, what + " gives another '" + names_[i] + "' than a graph with it as an output");
    }
  }

  void check_run(const TapList& taps, const std::vector<Tensor>& outputs,
                 const std::vector<Tensor>& expected, const std::string& what) const {
    const npu_run_args args = taps.put(run_args(inputs_, outputs_));
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.run(program_.get(), &args, &error), error, what);
    compare(outputs, expected, what);
  }

  void expect_refused(const TapList& taps, const std::string& what) const {
    const npu_run_args args = taps.put(run_args(inputs_, outputs_));
    auto error = sized<npu_error>();
    const npu_status status = harness_.api.run(program_.get(), &args, &error);
    harness_.check_error(status, error, "run with " + what);
    harness_.found.expect(status == NPU_INVALID,
                          "run with " + what + " gives " + status_name(status) + ", not INVALID");
  }

  void check_wrong_taps() const {
    TapList unknown;
    unknown.add("no such tensor", buffers_.front().get());
    expect_refused(unknown, "a tap of no tensor");
    TapList output;
    output.add(instance_.graph.outputs.front().c_str(), buffers_.front().get());
    expect_refused(output, "a tap of an output");
    TapList nowhere;
    nowhere.add(names_.front().c_str(), nullptr);
    expect_refused(nowhere, "a tap without a buffer");
    TensorSpec other = instance_.graph.tensor(names_.front());
    other.shape.push_back(2);
    const BufferPtr larger = make(other);
    TapList unlike;
    unlike.add(names_.front().c_str(), larger.get());
    expect_refused(unlike, "a tap into a buffer of another shape");
    TapList twice;
    twice.add(names_.front().c_str(), outputs_.front());
    expect_refused(twice, "a tap into the buffer of an output");
  }

  /// Its arrays may be gone as soon as it is submitted.
  void check_submitted(const std::vector<Tensor>& outputs,
                       const std::vector<Tensor>& expected) const {
    const npu_backend& api = harness_.api;
    const auto queue_args = sized<npu_queue_args>();
    npu_queue* queue = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(api.queue_open(instance_.device.get(), &queue_args, &queue, &error), error,
                        "queue_open");
    const std::unique_ptr<npu_queue, void (*)(npu_queue*)> owned(queue, api.queue_close);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      harness_.write(buffers_[i].get(), test_values(instance_.graph.tensor(names_[i]), 98));
    }
    TapList taps = all();
    const npu_run_args args = taps.put(run_args(inputs_, outputs_));
    auto where = sized<npu_enqueue>();
    where.queue = queue;
    npu_event* event = nullptr;
    harness_.require_ok(api.submit(program_.get(), &args, &where, &event, &error), error,
                        "submit with taps");
    const std::unique_ptr<npu_event, void (*)(npu_event*)> done(event, api.event_free);
    taps.spoil();
    harness_.require_ok(api.event_wait(event, NPU_FOREVER, &error), error,
                        "a submitted run with taps");
    compare(outputs, expected, "a submitted run with taps");
  }

  const Harness& harness_;
  const Instance& instance_;
  const Names names_;
  const std::vector<npu_buffer*> inputs_;
  const std::vector<npu_buffer*> outputs_;
  const ProgramPtr program_;
  std::vector<BufferPtr> buffers_;
};

}  // namespace

void check_taps(const Harness& harness) {
  harness.found.require(harness.api.blob_report != nullptr,
                        "the feature taps is listed, but blob_report is null");
  bool has_any = false;
  for (const DType dtype : harness.facts().dtypes) {
    for (const GraphSpec& graph : sample_graphs(dtype)) {
      if (graph.nodes.size() < 2) continue;
      DevicePtr device = harness.open();
      const Compiled compiled = harness.compile(device.get(), graph);
      if (compiled.status != NPU_OK) continue;
      const Instance instance = make_instance(harness, std::move(device), graph, compiled.blob);
      Names names = listed_taps(harness, instance);
      if (names.empty()) continue;
      has_any = true;
      TapCheck(harness, instance, std::move(names)).run();
    }
    if (has_any) return;
  }
  throw NotApplicable("no program of the small graphs lists a tap");
}

}  // namespace npu::conformance
