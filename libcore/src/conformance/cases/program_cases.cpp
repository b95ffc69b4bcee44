// SPDX-License-Identifier: Apache-2.0
// Cases of what programs share: several entries of one blob over one set of weights, states that a
// run updates in place, scratch memory of programs that take turns, and a compile without the
// device.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "conformance/cases/cases.hpp"
#include "device/report_room.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "support/json_fields.hpp"

namespace npu::conformance {
namespace {

/// x + w, as often as it says, of the first dtype that the device lists.
GraphSpec sum_graph(const Harness& harness, int additions) {
  harness.found.require(!harness.facts().dtypes.empty(), "the device lists no dtype");
  const DType dtype = harness.facts().dtypes.front();
  const Shape shape{48, 64};  // weights that a report cannot overlook
  GraphSpec graph;
  graph.inputs = {{"x", dtype, shape}};
  graph.weights.push_back({"w", test_values({"w", dtype, shape}, 3)});
  std::string last = "x";
  for (int i = 0; i < additions; ++i) {
    const std::string name = "sum" + std::to_string(i);
    graph.nodes.push_back(
        {name, "aten.add.Tensor", {last, "w"}, {name, dtype, shape}, Json::object()});
    last = name;
  }
  graph.outputs = {last};
  return graph;
}

npu_status create_with(const Harness& harness, npu_model* model, const npu_program_args& args,
                       ProgramPtr& program, const std::string& what) {
  npu_program* made = nullptr;
  auto error = sized<npu_error>();
  const npu_status status = harness.api.program_create(model, &args, &made, &error);
  harness.check_error(status, error, what);
  program = ProgramPtr(status == NPU_OK ? made : nullptr, harness.api.program_free);
  return status;
}

ProgramPtr create_entry(const Harness& harness, npu_model* model, const char* name) {
  auto args = sized<npu_program_args>();
  args.entry = name;
  ProgramPtr program(nullptr, harness.api.program_free);
  const npu_status status = create_with(harness, model, args, program, "program_create");
  harness.found.require(status == NPU_OK, "program_create of the entry '" +
                                              std::string(name != nullptr ? name : "") +
                                              "' gives " + status_name(status));
  return program;
}

/// Runs, which must succeed.
void run_with(const Harness& harness, npu_program* program, const std::vector<npu_buffer*>& inputs,
              const std::vector<npu_buffer*>& outputs, const std::string& what) {
  const npu_run_args args = run_args(inputs, outputs);
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.run(program, &args, &error), error, what);
}

npu_memory_bytes memory_of(const Harness& harness, npu_device* device, const std::string& blob) {
  ReportRoom room(std::max<std::size_t>(harness.facts().memory_flags.size(), 1));
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.blob_memory(device, blob.data(), blob.size(), room.get(), &error),
                     error, "blob_memory");
  return room.memories().front();
}

/// A blob of several graphs, under the names that `names` has.
Compiled compile_entries(const Harness& harness, npu_device* device,
                         const std::vector<GraphSpec>& graphs,
                         const std::vector<const char*>& names) {
  std::vector<std::string> texts;
  for (const GraphSpec& graph : graphs) texts.push_back(sub_ir_text(graph));
  std::vector<npu_entry> entries(graphs.size());
  std::vector<const npu_entry*> pointers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i] = sized<npu_entry>();
    entries[i].name = names[i];
    entries[i].sub_ir = texts[i].data();
    entries[i].sub_ir_size = texts[i].size();
    pointers.push_back(&entries[i]);
  }
  return harness.compile_with(device, graphs.front(), [&](npu_compile_args& args) {
    args.entries = pointers.data();
    args.entry_count = pointers.size();
  });
}

/// The only entry of a blob has a name, too.
void check_only_entry(const Harness& harness, npu_device* device, const GraphSpec& graph) {
  const Compiled compiled = compile_entries(harness, device, {graph}, {"only"});
  harness.require_ok(compiled.status, compiled.error, "compile of one entry");
  const auto model = harness.load(device, compiled.blob, graph.weights);
  create_entry(harness, model->get(), "only");
  auto args = sized<npu_program_args>();
  args.entry = "another";
  ProgramPtr none(nullptr, harness.api.program_free);
  const npu_status status =
      create_with(harness, model->get(), args, none, "program_create of an unknown entry");
  harness.found.expect(status == NPU_INVALID,
                       "program_create of another entry than the only one gives " +
                           status_name(status) + ", not INVALID");
}

/// Every entry has a report of its own, under its name.
void check_entries_report(const Harness& harness, npu_device* device, const std::string& blob) {
  if (harness.api.blob_report == nullptr) return;
  std::string text;
  auto writer = sized<npu_writer>();
  writer.context = &text;
  writer.write = append_bytes;
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.blob_report(device, blob.data(), blob.size(), &writer, &error),
                     error, "blob_report of several entries");
  std::vector<std::string> names;
  try {
    const Json json = parse_json(text, "report");
    const Json* entries = json.is_object() ? find_member(json, "entries") : nullptr;
    for (const Json& entry : entries != nullptr ? *entries : Json::array()) {
      const std::string* name = entry.is_object() ? member_text(entry, "name") : nullptr;
      names.push_back(name != nullptr ? *name : "");
    }
  } catch (const Error& fault) {
    harness.found.expect(false, std::string("the report is no JSON: ") + fault.what());
  }
  harness.found.expect(names == std::vector<std::string>{"short", "long"},
                       "blob_report does not list the entries of the blob by name");
}

/// What the device says is in use grows by one copy of the weights, not by one for each entry.
void check_loaded_once(const Harness& harness, npu_device* device, const std::string& blob,
                       const std::vector<WeightSpec>& weights, std::uint64_t bytes) {
  if (harness.api.device_memory == nullptr) return;
  const auto in_use = [&]() -> std::optional<std::uint64_t> {
    auto state = sized<npu_memory_state>();
    auto error = sized<npu_error>();
    harness.require_ok(harness.api.device_memory(device, 0, &state, &error), error,
                       "device_memory");
    if ((state.known & NPU_KNOWN_IN_USE) == 0) return std::nullopt;
    return state.in_use_bytes;
  };
  const auto before = in_use();
  const auto model = harness.load(device, blob, weights);
  const auto after = in_use();
  if (!before || !after) return;
  const std::uint64_t grown = *after - std::min(*after, *before);
  harness.found.expect(grown < 2 * bytes, "a model of two entries with one weight of " +
                                              std::to_string(bytes) + " bytes takes " +
                                              std::to_string(grown) + " bytes");
}

}  // namespace

void check_entries(const Harness& harness) {
  const std::vector<GraphSpec> graphs{sum_graph(harness, 1), sum_graph(harness, 3)};
  const std::vector<const char*> names{"short", "long"};
  DevicePtr device = harness.open();
  npu_device* const opened = device.get();
  const Compiled compiled = compile_entries(harness, opened, graphs, names);
  if (compiled.status == NPU_UNSUPPORTED) throw NotApplicable("no add with a weight compiles");
  harness.require_ok(compiled.status, compiled.error, "compile of two entries");
  const Compiled same = compile_entries(harness, opened, graphs, {"short", "short"});
  harness.found.expect(same.status == NPU_INVALID, "compile of two entries of one name gives " +
                                                       status_name(same.status) + ", not INVALID");
  const auto model = harness.load(opened, compiled.blob, graphs.front().weights);
  const ProgramPtr first = create_entry(harness, model->get(), nullptr);
  std::vector<ProgramPtr> programs;
  for (const char* name : names) programs.push_back(create_entry(harness, model->get(), name));
  auto args = sized<npu_program_args>();
  args.entry = "neither";
  ProgramPtr none(nullptr, harness.api.program_free);
  const npu_status status =
      create_with(harness, model->get(), args, none, "program_create of an unknown entry");
  harness.found.expect(status == NPU_INVALID, "program_create of an unknown entry gives " +
                                                  status_name(status) + ", not INVALID");
  check_only_entry(harness, opened, graphs.front());
  std::vector<Instance> alone;
  for (const GraphSpec& graph : graphs) {
    const Compiled one = harness.compile(opened, graph);
    harness.require_ok(one.status, one.error, "compile of one of the entries");
    alone.push_back(make_instance(harness, harness.open(), graph, one.blob));
  }
  const TensorSpec input = graphs.front().inputs.front();
  const BufferPtr in = harness.make_buffer(opened, input, NPU_USAGE_INPUT);
  const BufferPtr out = harness.make_buffer(opened, input, NPU_USAGE_OUTPUT);
  harness.write(in.get(), alone.front().inputs.front());
  for (int i = 0; i < 6; ++i) {
    const std::size_t entry = static_cast<std::size_t>(i % 3 == 1);
    npu_program* program = i % 3 == 2 ? first.get() : programs[entry].get();
    run_with(harness, program, {in.get()}, {out.get()}, "run of an entry");
    harness.found.expect(
        same_bits({harness.read(out.get(), input)}, run_and_read(harness, alone[entry])),
        std::string("the entry '") + names[entry] + "' gives other values than compiled alone");
  }
  check_entries_report(harness, opened, compiled.blob);
  if (harness.api.blob_memory == nullptr) return;
  const std::uint64_t weights = tensor_bytes(input);
  check_loaded_once(harness, opened, compiled.blob, graphs.front().weights, weights);
  const std::uint64_t said = memory_of(harness, opened, compiled.blob).weights_bytes;
  harness.found.expect(said < 2 * weights, "two entries with one weight of " +
                                               std::to_string(weights) + " bytes take " +
                                               std::to_string(said) + " bytes for weights");
}

namespace {

/// state + x is the next state, which is also what the run gives.
std::string state_text(DType dtype, const std::string& input) {
  const TensorSpec state{"state", dtype, {7, 9}};
  GraphSpec graph =
      one_node("aten.add.Tensor", {state, {"x", dtype, {7, 9}}}, {"next", dtype, {7, 9}});
  Json json = sub_ir_json(graph);
  json["aliases"] = Json::array({{{"output", "next"}, {"input", input}}});
  return write_document(json);
}

void check_alias_report(const Harness& harness, npu_device* device, const std::string& blob) {
  if (harness.api.blob_report == nullptr) return;
  std::string text;
  auto writer = sized<npu_writer>();
  writer.context = &text;
  writer.write = append_bytes;
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.blob_report(device, blob.data(), blob.size(), &writer, &error),
                     error, "blob_report");
  try {
    const Json json = parse_json(text, "report");
    const Json* aliases = json.is_object() ? find_member(json, "aliases") : nullptr;
    const std::string* said =
        aliases != nullptr && aliases->is_object() ? member_text(*aliases, "next") : nullptr;
    harness.found.expect(said != nullptr && (*said == "in_place" || *said == "copied"),
                         "blob_report does not say whether a state is updated in place");
  } catch (const Error& fault) {
    harness.found.expect(false, std::string("the report is no JSON: ") + fault.what());
  }
}

}  // namespace

void check_aliases(const Harness& harness) {
  harness.found.require(!harness.facts().dtypes.empty(), "the device lists no dtype");
  const DType dtype = harness.facts().dtypes.front();
  const DevicePtr device = harness.open();
  const Compiled compiled = harness.compile(device.get(), state_text(dtype, "state"));
  if (compiled.status == NPU_UNSUPPORTED) throw NotApplicable("no add compiles");
  harness.require_ok(compiled.status, compiled.error, "compile with an alias");
  const Compiled wrong = harness.compile(device.get(), state_text(dtype, "nobody"));
  harness.found.expect(
      wrong.status == NPU_INVALID,
      "compile with an alias of no tensor gives " + status_name(wrong.status) + ", not INVALID");
  GraphSpec unlike = one_node("aten.add.Tensor", {{"state", dtype, {7, 9}}, {"x", dtype, {7, 9}}},
                              {"next", dtype, {7, 9}});
  unlike.inputs.push_back({"other", dtype, {9, 7}});
  Json pair = sub_ir_json(unlike);
  pair["aliases"] = Json::array({{{"output", "next"}, {"input", "other"}}});
  const Compiled mixed = harness.compile(device.get(), write_document(pair));
  harness.found.expect(mixed.status == NPU_INVALID,
                       "compile with an alias of tensors of other shapes gives " +
                           status_name(mixed.status) + ", not INVALID");
  check_alias_report(harness, device.get(), compiled.blob);
  const auto model = harness.load(device.get(), compiled.blob, {});
  const ProgramPtr program = harness.create(model->get());
  const TensorSpec spec{"state", dtype, {7, 9}};
  const Tensor begin = test_values(spec, 1);
  const BufferPtr x = harness.make_buffer(device.get(), spec, NPU_USAGE_INPUT);
  harness.write(x.get(), test_values({"x", dtype, spec.shape}, 2));
  const BufferPtr one = harness.make_buffer(device.get(), spec, NPU_USAGE_STATE);
  BufferPtr from = harness.make_buffer(device.get(), spec, NPU_USAGE_STATE);
  BufferPtr to = harness.make_buffer(device.get(), spec, NPU_USAGE_STATE);
  harness.write(one.get(), begin);
  harness.write(from.get(), begin);
  for (int step = 0; step < (harness.quick ? 20 : 100); ++step) {
    run_with(harness, program.get(), {one.get(), x.get()}, {one.get()},
             "a run whose output is its input");
    run_with(harness, program.get(), {from.get(), x.get()}, {to.get()},
             "a run that may have one buffer and has two");
    std::swap(from, to);
    if (!harness.found.expect(
            same_bits({harness.read(one.get(), spec)}, {harness.read(from.get(), spec)}),
            "step " + std::to_string(step) +
                ": a run whose output is its input gives other values than with two buffers")) {
      return;
    }
  }
}

void check_scratch(const Harness& harness) {
  harness.found.require(harness.api.blob_memory != nullptr,
                        "the feature scratch is listed, but blob_memory is null");
  const Instance sample = make_sample(harness);
  npu_device* const device = sample.device.get();
  const std::uint64_t bytes = memory_of(harness, device, sample.blob).scratch_bytes;
  if (bytes == 0) throw NotApplicable("the program of a small graph has no scratch memory");
  const auto make = [&](std::uint64_t size) {
    const Shape shape{static_cast<std::int64_t>(size)};
    auto desc = sized<npu_buffer_desc>();
    desc.dtype = NPU_UINT8;
    desc.rank = 1;
    desc.shape = shape.data();
    desc.bytes = size;
    desc.usage = NPU_USAGE_SCRATCH;
    npu_buffer* buffer = nullptr;
    auto error = sized<npu_error>();
    harness.require_ok(harness.api.buffer_create(device, &desc, &buffer, &error), error,
                       "buffer_create of scratch memory");
    return BufferPtr(buffer, harness.api.buffer_free);
  };
  // Programs go before what they use.
  const BufferPtr scratch = make(bytes);
  const BufferPtr small = make(bytes - 1);
  auto args = sized<npu_program_args>();
  args.scratch = small.get();
  ProgramPtr refused(nullptr, harness.api.program_free);
  const npu_status status =
      create_with(harness, sample.model->get(), args, refused, "program_create");
  harness.found.expect(status == NPU_INVALID, "program_create with too little scratch gives " +
                                                  status_name(status) + ", not INVALID");
  args.scratch = scratch.get();
  std::vector<ProgramPtr> programs;
  for (int i = 0; i < 2; ++i) {
    ProgramPtr& program = programs.emplace_back(nullptr, harness.api.program_free);
    harness.found.require(create_with(harness, sample.model->get(), args, program,
                                      "program_create with scratch") == NPU_OK,
                          "program_create with as much scratch as blob_memory says fails");
  }
  for (std::uint64_t turn = 0; turn < 10; ++turn) {
    for (std::size_t k = 0; k < sample.graph.inputs.size(); ++k) {
      harness.write(sample.in[k].get(), test_values(sample.graph.inputs[k], 20 + turn));
    }
    const std::vector<Tensor> expected = run_and_read(harness, sample);
    run_with(harness, programs[turn % 2].get(), sample.input_handles(), sample.output_handles(),
             "a run in scratch memory of the host");
    for (std::size_t k = 0; k < sample.out.size(); ++k) {
      const TensorSpec spec = sample.graph.tensor(sample.graph.outputs[k]);
      harness.found.expect(same_bits({harness.read(sample.out[k].get(), spec)}, {expected[k]}),
                           "programs that share scratch memory give other values in turn");
    }
  }
}

void check_offline(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::string& arch = harness.facts().arch;
  const DevicePtr offline = harness.open(
      [&](npu_open_args& args) {
        args.flags = NPU_OPEN_COMPILE_ONLY;
        args.device_id = arch.c_str();
      },
      "device_open to compile for '" + arch + "'");
  const Compiled compiled = harness.compile(offline.get(), sample.graph);
  harness.require_ok(compiled.status, compiled.error, "compile without the device");
  if ((harness.library.flags & NPU_DETERMINISTIC) != 0) {
    harness.found.expect(compiled.blob == sample.blob,
                         "compiled without the device, the blob has other bytes");
  }
  const Instance loaded = make_instance(harness, harness.open(), sample.graph, compiled.blob);
  harness.found.expect(same_bits(run_and_read(harness, loaded), run_and_read(harness, sample)),
                       "compiled without the device, a program gives other values");
  auto args = sized<npu_open_args>();
  args.flags = NPU_OPEN_COMPILE_ONLY;
  args.device_id = "no such arch";
  npu_device* device = nullptr;
  auto error = sized<npu_error>();
  const npu_status status = harness.api.device_open(&args, &device, &error);
  harness.check_error(status, error, "device_open for an unknown arch");
  if (status == NPU_OK) harness.api.device_close(device);
  harness.found.expect(status != NPU_OK, "device_open to compile for an unknown arch succeeds");
}

}  // namespace npu::conformance
