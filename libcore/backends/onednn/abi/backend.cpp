// SPDX-License-Identifier: Apache-2.0
// The boundary of the onednn backend: checks what crosses it and hands the rest to lowering and
// Program.
//
// compile lowers the sub-IR, folds and packs its weights, and writes a blob: the plan, a report,
// and the packed constants. load checks the plan, uses the constants where they lie in the blob,
// and generates code. A plan states every layout, so that it runs on any number of threads: only
// its scratch memory depends on that, and is planned again if it grows. Thread counts are a
// property of the calling thread in OpenMP: every call that works sets its device's and puts the
// host's back. Runs beside busy neighbours get fewer threads: oneDNN cuts its loops when code is
// generated, so a second program for fewer threads is made when it is first needed.
#include <omp.h>

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/boundary.hpp"
#include "kit/questions.hpp"
#include "lowering/engine/node_text.hpp"
#include "lowering/engine/op_table.hpp"
#include "ops/op_catalogue.hpp"
#include "program/blob.hpp"
#include "program/compile_report.hpp"
#include "program/plan_format.hpp"
#include "program/stored_plan.hpp"
#include "program/thread_scope.hpp"
#include "support/elapsed.hpp"

namespace npu::onednn::abi {
namespace {

// ---- Devices ----

/// Options that are no object are refused; a key that is not this backend's is left alone.
void read_device_options(const char* options, Machine& machine) {
  if (options == nullptr || *options == '\0') return;
  const Json json = parse_json(options, "device options");
  require(json.is_object(), "device options: expected a JSON object");
  const Json* rate = find_member(json, "bfloat16_rate");
  if (rate == nullptr) return;
  require(rate->is_number() && *rate > 0.0 && *rate <= 100.0,
          "device option 'bfloat16_rate': expected a number above 0 and up to 100");
  if (machine.bfloat16_rate > 0.0) machine.bfloat16_rate = rate->get<double>();
}

npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error) {
  return guarded(error, [&] {
    require(args != nullptr && NPU_HAS(args, options) && device != nullptr, "an argument is null");
    require(args->threads <= 4096, "threads: expected at most 4096");
    require(args->device_id == nullptr || std::string_view(args->device_id) == "cpu:0",
            "there is no such device; expected cpu:0");
    auto opened = std::make_unique<npu_device>();
    opened->threads =
        args->threads > 0 ? static_cast<int>(args->threads) : std::max(1, omp_get_num_procs());
    opened->run_threads = RunThreads(opened->threads);
    opened->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    opened->machine = detect_machine();
    read_device_options(args->options, opened->machine);
    opened->machine.threads = opened->threads;
    opened->ledger = std::make_shared<MemoryLedger>(
        NPU_HAS(args, memory_limit_bytes) ? args->memory_limit_bytes : 0);
    *device = opened.release();
  });
}

void device_close(npu_device* device) { delete device; }

/// The weights as the lowering takes them, checked.
std::vector<WeightView> checked_weights(const npu_tensor* const* weights, std::uint64_t count) {
  require(weights != nullptr || count == 0, "weights is null");
  std::vector<WeightView> checked;
  for (std::uint64_t i = 0; i < count; ++i) {
    require(weights[i] != nullptr && NPU_HAS(weights[i], bytes), "a weight is null");
    const npu_tensor& weight = *weights[i];
    require(weight.shape != nullptr || weight.rank == 0, "a weight has a rank but no shape");
    require(weight.dtype < kDTypeCount, "a weight has an unknown dtype");
    checked.push_back({weight.name != nullptr ? weight.name : "", static_cast<DType>(weight.dtype),
                       Shape(weight.shape, weight.shape + weight.rank), weight.data, weight.bytes});
  }
  return checked;
}

// ---- Compile ----

struct CompileOptions {
  std::string precision = "f32";
  LayoutNames layouts;
};

CompileOptions read_compile_options(std::string_view text) {
  CompileOptions result;
  if (text.empty()) return result;
  const Json json = parse_json(text, "compile options");
  require(json.is_object(), "compile options: expected a JSON object");
  if (const Json* value = find_member(json, "precision")) {
    require(value->is_string() && (*value == "f32" || *value == "bf16" || *value == "f16"),
            "compile option 'precision': expected \"f32\", \"bf16\" or \"f16\"");
    result.precision = value->get<std::string>();
  }
  result.layouts = read_layouts(json);
  return result;
}

Machine machine_for(const npu_device& device, const CompileOptions& options) {
  Machine machine = device.machine;
  machine.prefer_bfloat16 = options.precision == "bf16";
  if (options.precision == "f16") machine.weight_type = DType::kFloat16;
  if (options.precision != "f32" && !machine.has_avx2()) {
    throw StatusError{NPU_UNSUPPORTED, "precision " + options.precision +
                                           " needs a CPU with AVX2, AVX-512 or NEON; the level "
                                           "here is '" +
                                           std::string(isa_name()) + "'"};
  }
  machine.threads = device.threads;
  return machine;
}

std::string_view entry_name(const npu_entry& entry) {
  return entry.name == nullptr ? kOnlyEntry : std::string_view(entry.name);
}

/// At least one, each with a name of its own.
std::vector<const npu_entry*> checked_entries(const npu_compile_args* args) {
  require(args != nullptr && NPU_HAS(args, blob) && args->blob != nullptr, "an argument is null");
  require(args->entry_count != 0 && args->entries != nullptr, "expected an entry");
  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < args->entry_count; ++i) {
    const npu_entry* entry = args->entries[i];
    require(entry != nullptr && NPU_HAS(entry, sub_ir_size) && entry->sub_ir != nullptr,
            "an entry is null, or its sub-IR");
    require(names.insert(entry_name(*entry)).second, "two entries have one name");
  }
  return {args->entries, args->entries + args->entry_count};
}

/// What an entry became: its plan and report, and what makes its constants.
using EntrySink = std::function<void(std::span<const std::byte> plan, const std::string& report,
                                     ConstantPacker& packer)>;

void compile_entry(const npu_device& device, const Graph& graph,
                   std::span<const WeightView> all_weights, const EntryRows& entries,
                   const CompileOptions& options, const HostProgress& progress,
                   const EntrySink& put) {
  std::vector<WeightView> weights;  // those of the entry
  for (const WeightView& weight : all_weights) {
    const TensorId id = graph.find_tensor(weight.name);
    if (id.valid() && graph.tensor(id).kind == TensorKind::kWeight) weights.push_back(weight);
  }
  const Plan plan = lower_graph(
      graph, weights, machine_for(device, options), device.engine,
      [&](std::size_t done, std::size_t total) { progress(done, total, "lowering"); },
      options.layouts, entries);
  const StoredPlan stored = store_plan(plan);
  const std::vector<std::byte> bytes = write_plan(stored.record);
  const std::string report = compile_report(graph, plan, stored, options.precision);
  ConstantPacker packer(plan, weights, device.engine, [&](std::size_t done, std::size_t total) {
    progress(done, total, "packing weights");
  });
  try {
    put(bytes, report, packer);
  } catch (const Float16Overflow& overflow) {
    throw StatusError{NPU_INVALID,
                      node_text(graph.nodes().at(overflow.node)) + ": " + overflow.text};
  }
}

npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    const std::vector<const npu_entry*> entries = checked_entries(args);
    const CompileOptions options =
        read_compile_options(args->options == nullptr ? "" : args->options);
    const ThreadScope threads(device->threads);
    const auto weights = checked_weights(args->weights, args->weight_count);
    const HostProgress progress(*args);
    const auto sink = pieces_to(args->blob, error);
    std::vector<Graph> graphs;
    for (const npu_entry* entry : entries) {
      graphs.push_back(read_sub_ir(entry->sub_ir, entry->sub_ir_size));
    }
    const EntryRows rows(graphs);
    if (entries.size() == 1 && entry_name(*entries.front()) == kOnlyEntry) {
      compile_entry(*device, graphs.front(), weights, rows, options, progress,
                    [&](auto plan, const std::string& report, ConstantPacker& packer) {
                      write_blob(plan, report, packer, sink);
                    });
      return;
    }
    EntriesWriter writer(sink);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      compile_entry(*device, graphs[i], weights, rows, options, progress,
                    [&](auto plan, const std::string& report, ConstantPacker& packer) {
                      writer.add(std::string(entry_name(*entries[i])), plan, report, packer);
                    });
    }
    writer.finish();
  });
}

/// Weights as a question has them: no data.
std::vector<WeightView> weights_without_data(const Graph& graph) {
  std::vector<WeightView> weights;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kWeight) continue;
    weights.push_back({tensor.name, tensor.dtype, tensor.shape, nullptr,
                       static_cast<std::uint64_t>(tensor.bytes())});
  }
  return weights;
}

/// Of the device that is asked.
struct Asked {
  Machine machine;
  dnnl::engine engine;
};

/// The plan of a graph; nothing if it is not lowered, and why.
std::optional<Plan> plan_of_question(const Graph& graph, const Asked& asked, std::string& refusal,
                                     const LayoutNames& layouts = {}) {
  try {
    return lower_graph(graph, weights_without_data(graph), asked.machine, asked.engine, {},
                       layouts);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    refusal = error.message();
    return std::nullopt;
  }
}

npu_status check(npu_device* device, const npu_check_args* args, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    const Graph graph = graph_of_question(args);
    CompileOptions options = read_compile_options(args->options == nullptr ? "" : args->options);
    const ThreadScope threads(device->threads);
    Asked asked{machine_for(*device, options), device->engine};
    asked.machine.only_checks = true;
    drop_unknown(options.layouts, graph);
    std::string refusal;
    auto plan = plan_of_question(graph, asked, refusal, options.layouts);
    if (!plan && !std::exchange(options.layouts, {}).empty()) {
      refusal.clear();  // row-major inputs are what matters
      plan = plan_of_question(graph, asked, refusal);
    }
    if (plan && drop_reordered(options.layouts, *plan)) {
      plan = plan_of_question(graph, asked, refusal, options.layouts);
    }
    Json answer = Json::object();
    answer["nodes"] = node_answers(graph, refusal, [&](const Graph& alone, std::string& why) {
      return plan_of_question(alone, asked, why).has_value();
    });
    if (plan) answer["boundaries"] = boundary_answers(*plan);
    write_answer(answer, *args, error);
  });
}

/// The reports of several entries in one object.
std::string reports_text(const std::vector<BlobView>& entries) {
  Json reports = Json::array();
  for (const BlobView& entry : entries) {
    Json report = parse_json(entry.report, "the report of an entry");
    require(report.is_object(), "the report of an entry is no object");
    report["name"] = entry.name;
    reports.push_back(std::move(report));
  }
  return Json{{"entries", std::move(reports)}}.dump();
}

npu_status blob_report(npu_device* /*device*/, const void* blob, std::uint64_t blob_size,
                       const npu_writer* report, npu_error* error) {
  return guarded(error, [&] {
    require(report != nullptr, "report is null");
    const std::vector<BlobView> entries = read_blob(blob, blob_size);
    std::string text(entries.front().report);
    if (entries.size() > 1 || entries.front().name != kOnlyEntry) text = reports_text(entries);
    pieces_to(report, error)(text.data(), text.size());
  });
}

// ---- Models and programs ----

Plan plan_of(const BlobView& content, const npu_device& device, int threads) {
  return restore_plan(read_plan(content.plan), content.constants, device.engine,
                      {threads, device.threads});
}

/// With threads set for OpenMP, too. Shares what it can with `sibling`.
std::unique_ptr<Program> make_program(const npu_model& model, const char* entry, int threads,
                                      const Program* sibling) {
  const BlobView content = read_entry(model.blob, model.blob_size, entry);
  return std::make_unique<Program>(plan_of(content, *model.device, threads), content.constants,
                                   model.device->engine, sibling);
}

/// The program for this number of threads, which is set for OpenMP; the device's own if there is
/// none, which has the same results.
Program& program_for(npu_program& program, int threads) {
  if (threads == program.model->device->threads) return *program.program;
  if (threads != program.reduced_threads) {
    program.reduced.reset();
    program.reduced_threads = threads;
    try {
      program.reduced =
          make_program(*program.model, program.entry.c_str(), threads, program.program.get());
    } catch (const std::exception&) {
      // Memory may be short; a slow run is better than none.
    }
  }
  return program.reduced ? *program.reduced : *program.program;
}

/// Makes the program of an entry, whose scratch memory counts from now on.
void fill_program(npu_program& program, npu_model& model, const BlobView& content, Plan plan) {
  const npu_device& device = *model.device;
  add_program_bytes(model.bytes, plan);
  program.model = &model;
  program.entry = content.name;
  program.share = MemoryShare(device.ledger, plan.arena_bytes, "the program's scratch memory");
  program.program =
      std::make_unique<Program>(std::move(plan), content.constants, device.engine, nullptr);
}

npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                      npu_model** model, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && args != nullptr && NPU_HAS(args, blob_size) && model != nullptr,
            "an argument is null");
    const ThreadScope threads(device->threads);
    auto loaded = std::make_unique<npu_model>();
    loaded->device = device;
    loaded->blob = args->blob;
    loaded->blob_size = args->blob_size;
    const std::vector<BlobView> entries = read_blob(args->blob, args->blob_size);
    loaded->bytes = constant_bytes(entries, args->blob_size);
    loaded->share = MemoryShare(
        device->ledger, loaded->bytes.weights_bytes + loaded->bytes.other_bytes, "the model");
    if (entries.size() == 1) {
      loaded->first = std::make_unique<npu_program>();
      fill_program(*loaded->first, *loaded, entries.front(),
                   plan_of(entries.front(), *device, device->threads));
    }
    npu_model_info filled{};
    filled.flags = NPU_RELEASES_WEIGHTS;  // they are in the blob, which is used in place
    if (info != nullptr) fill(info, filled);
    *model = loaded.release();
  });
}

void model_free(npu_model* model) { delete model; }

npu_status program_create(npu_model* model, const npu_program_args* args, npu_program** program,
                          npu_error* error) {
  return guarded(error, [&] {
    require_given(model, program);
    const ThreadScope threads(model->device->threads);
    const bool is_named = args != nullptr && NPU_HAS(args, entry) && args->entry != nullptr;
    const BlobView content =
        read_entry(model->blob, model->blob_size, is_named ? args->entry : nullptr);
    auto made = std::move(model->first);
    if (made == nullptr) {
      made = std::make_unique<npu_program>();
      fill_program(*made, *model, content,
                   plan_of(content, *model->device, model->device->threads));
    }
    if (args != nullptr && NPU_HAS(args, flags) && (args->flags & NPU_PROGRAM_TAPS) != 0) {
      made->tap_numbers = number_taps(*made->program);
    }
    made->inputs.resize(made->program->inputs().size());
    made->outputs.resize(made->program->outputs().size());
    *program = made.release();
  });
}

void program_free(npu_program* program) { delete program; }

// ---- Runs ----

/// The numbers of OpenMP's threads for this one.
std::vector<std::int64_t> openmp_team(int threads) {
  std::vector<std::int64_t> team(static_cast<std::size_t>(threads), 0);
#pragma omp parallel num_threads(threads)
  team[static_cast<std::size_t>(omp_get_thread_num())] = this_thread_number();
  std::erase(team, 0);
  return team;
}

void stop_if_asked(const void* stop) {
  const npu_status status = static_cast<const RunBreak*>(stop)->status();
  if (status != NPU_OK) throw CompileStopped{status, RunBreak::text(status)};
}

/// Runs it on what `program` holds of addresses.
Program& run_on_threads(npu_program& program) {
  npu_device& device = *program.model->device;
  const int threads = device.run_threads.threads();
  const ThreadScope scope(threads);
  Program& chosen = program_for(program, threads);
  const auto begin = Clock::now();
  chosen.run(program.inputs, program.outputs, program.taps, stop_if_asked, &program.stop);
  const double seconds = seconds_since(begin);
  device.run_threads.note_run(seconds, [threads] { return openmp_team(threads); });
  return chosen;
}

void fill_spans(npu_span* spans, std::uint64_t count, std::span<const std::uint64_t> times,
                const char* text) {
  require(count == 0 || (spans != nullptr && count == times.size()), text);
  for (std::uint64_t i = 0; i < count; ++i) spans[i] = {0, times[i], NPU_SPAN_DURATION};
}

void check_arguments(const npu_program& program, const npu_run_args& args) {
  const Program& loaded = *program.program;
  require(args.input_count == loaded.inputs().size(),
          "another number of inputs than the program has");
  require(args.output_count == loaded.outputs().size(),
          "another number of outputs than the program has");
  require(args.inputs != nullptr || args.input_count == 0, "inputs is null");
  require(args.outputs != nullptr || args.output_count == 0, "outputs is null");
}

/// Whether an output is the buffer of no input but that which it is paired with.
bool is_apart_or_paired(const Program& program, const npu_run_args& args, std::uint64_t output) {
  for (std::uint64_t i = 0; i < args.input_count; ++i) {
    if (args.inputs[i] != args.outputs[output]) continue;
    const bool is_paired = std::ranges::any_of(program.aliases(), [&](const AliasRecord& alias) {
      return alias.input == i && alias.output == output;
    });
    if (!is_paired) return false;
  }
  return true;
}

void place_arguments(npu_program& program, const npu_run_args& args) {
  const Program& loaded = *program.program;
  for (std::uint64_t i = 0; i < args.input_count; ++i) {
    require(args.inputs[i] != nullptr, "an input is null");
    check_buffer(*args.inputs[i], loaded.inputs()[i], "input");
    program.inputs[i] = args.inputs[i]->data;
  }
  for (std::uint64_t i = 0; i < args.output_count; ++i) {
    npu_buffer* output = args.outputs[i];
    require(output != nullptr, "an output is null");
    check_buffer(*output, loaded.outputs()[i], "output");
    require(output->is_writable, "an output can only be read");
    require(is_apart_or_paired(loaded, args, i) &&
                std::find(args.outputs, args.outputs + i, output) == args.outputs + i,
            "an output buffer is passed twice, or as an input, too");
    program.outputs[i] = output->data;
  }
}

npu_status run(npu_program* program, const npu_run_args* args, npu_error* error) {
  return guarded(error, [&] {
    require(program != nullptr, "program is null");
    require(args != nullptr && NPU_HAS(args, output_count), "the arguments are null");
    check_arguments(*program, *args);
    place_arguments(*program, *args);
    place_taps(*program, *args);
    program->stop.begin(*args);
    const Program& ran = run_on_threads(*program);
    if (!NPU_HAS(args, profile) || args->profile == nullptr) return;
    npu_profile& profile = *args->profile;
    fill_spans(profile.nodes, profile.node_count, ran.node_times(),
               "another number of nodes than the program has");
    fill_spans(profile.steps, profile.step_count, ran.step_times(),
               "another number of steps than the program has");
  });
}

void program_cancel(npu_program* program) {
  if (program != nullptr) program->stop.ask();
}

npu_status list_ops(npu_device* /*device*/, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require(visit != nullptr, "visit is null");
    for (const std::string_view op : catalogued_ops()) {
      if (find_lowering(op) != nullptr) visit(context, std::string(op).c_str(), "onednn");
    }
  });
}

npu_backend make_table() {
  static constexpr const char* kFeatures[] = {"wrap.host", "memory.limit", "cancel",
                                              "check",     "taps",         "layouts",
                                              "entries",   "alias",        nullptr};
  npu_backend table = empty_table(kFeatures);
  NPU_EACH(NPU_PLACE, NPU_FUNCTIONS, device_open, device_close, compile, model_load, model_free,
           program_create, program_free, run, blob_report, list_ops, program_cancel, check)
  return table;
}

}  // namespace
}  // namespace npu::onednn::abi

extern "C" __attribute__((visibility("default"))) const npu_backend* npu_backend_entry(
    const npu_host* host, npu_error* error) {
  static const npu_backend table = npu::onednn::abi::make_table();
  return npu::table_for(host, error, table);
}
