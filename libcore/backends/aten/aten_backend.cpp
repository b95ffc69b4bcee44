// SPDX-License-Identifier: Apache-2.0
// The C interface of the aten backend (npu/backend.h) over OpRegistry and Program.
//
// A device is a registry of ops and a thread count; a blob is the sub-IR's text after a header,
// since load builds a program faster than it could read a compiled one; a buffer is one contiguous
// at::Tensor, which a run exchanges for its result unless somebody sees its memory. Weights are
// used in place. Everything runs under c10::InferenceMode.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <omp.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "boundary.hpp"
#include "device/blas_core.hpp"
#include "device/isa_level.hpp"
#include "large_blocks.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"

namespace npu::aten {
namespace {

constexpr char kMagic[8] = {'N', 'P', 'U', 'A', 'T', 'E', 'N', '\0'};
constexpr std::uint32_t kBlobVersion = 1;

struct BlobHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  std::uint64_t text_size;
};

/// libtorch's number of threads, which OpenMP keeps for each thread, as long as it lives. Not set
/// by at::set_num_threads: it starts the threads of another pool anew, which then spin beside the
/// run.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(at::get_num_threads()), threads_(threads) {
    if (before_ != threads_) ::omp_set_num_threads(threads_);
  }
  ~ThreadScope() {
    if (before_ != threads_) ::omp_set_num_threads(before_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
  int threads_;
};

// ---- infos

// libblas.so.3 may be OpenBLAS, which one of its symbols reveals.
std::string blas_name() {
  using Config = char* (*)();
  if (const auto config = reinterpret_cast<Config>(::dlsym(RTLD_DEFAULT, "openblas_get_config"))) {
    const std::string text =
        config();  // "OpenBLAS 0.3.21 NO_AFFINITY USE_OPENMP SkylakeX MAX_THREADS=128"
    const std::size_t space = text.find(' ', text.find(' ') + 1);
    return text.substr(0, space);
  }
  if (::dlsym(RTLD_DEFAULT, "mkl_get_version") != nullptr) return "MKL";
  return "reference BLAS (slow: install libopenblas0-openmp)";
}

const std::string& version_text() {
  static const std::string version =
      fmt::format("{}, libtorch {}, {}", NPU_VERSION, NPU_TORCH_VERSION, blas_name());
  return version;
}

// With the kernels that the BLAS has for this CPU: they decide on rates, and on bits.
const std::string& driver_text() {
  static const std::string driver = [] {
    const std::string core = loaded_blas_core();
    return version_text() + (core.empty() ? "" : ", kernels for " + core);
  }();
  return driver;
}

npu_status backend_info(npu_backend_info* info, npu_error* error) {
  return guarded(error, [&] {
    require_given(info);
    npu_backend_info filled{};
    filled.name = "aten";
    filled.version = version_text().c_str();
    filled.ir_version_min = filled.ir_version_max = NPU_IR_VERSION;
    filled.flags = NPU_ANY_OP | NPU_NEW_OUTPUTS | NPU_DETERMINISTIC;
    filled.option_keys =
        "{\"load_ops\": {\"type\": \"array\", \"default\": [], \"text\": \"libraries of custom "
        "ops\"},"
        " \"promote\": {\"type\": \"boolean\", \"default\": false,"
        " \"text\": \"promote operands of different dtypes\"}}";
    fill(info, filled);
  });
}

npu_status device_info(std::uint64_t index, npu_device_info* info, npu_error* error) {
  if (index != 0) return NPU_END;
  return guarded(error, [&] {
    require_given(info);
    static const std::string fingerprint = fmt::format(
        "aten blob {} npu {} libtorch {}", kBlobVersion, NPU_VERSION, NPU_TORCH_VERSION);
    static const npu_memory_info* const memories[] = {&memory_info()};
    static const DTypeInfos dtypes([](npu_dtype) { return true; });  // libtorch computes in all
    npu_device_info filled{};
    filled.id = "cpu:0";
    filled.name = "CPU";
    filled.vendor = "";
    filled.arch = "cpu";
    filled.driver = driver_text().c_str();
    filled.fingerprint = fingerprint.c_str();
    filled.kind = NPU_DEVICE_CPU;
    filled.usable = 1;
    filled.memories = memories;
    filled.memory_count = 1;
    filled.dtypes = dtypes.data();
    filled.dtype_count = dtypes.size();
    filled.known = NPU_KNOWN_COMPUTE_UNITS;
    filled.compute_units = std::max(1U, std::thread::hardware_concurrency());
    fill(info, filled);
  });
}

// ---- device

std::vector<std::string> read_load_ops(const Json& options) {
  std::vector<std::string> paths;
  const Json* list = find_member(options, "load_ops");
  if (list == nullptr || list->is_null()) return paths;
  if (!list->is_array())
    invalid("option 'load_ops': expected a list of paths, found " + list->dump());
  for (const Json& path : *list) {
    if (!path.is_string()) invalid("option 'load_ops': expected a path, found " + path.dump());
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error) {
  return guarded(error, [&] {
    require_given(args, device);
    if (args->device_id != nullptr && std::string_view(args->device_id) != "cpu:0") {
      invalid("there is no device '" + std::string(args->device_id) + "', expected cpu:0");
    }
    const Json options = args->options == nullptr || *args->options == '\0'
                             ? Json::object()
                             : parse_json(args->options, "device options");
    if (!options.is_object()) invalid("device options: expected an object");
    if (args->threads > 4096) invalid("threads: expected at most 4096");
    auto state = std::make_shared<DeviceState>(read_load_ops(options));
    state->ledger = std::make_shared<MemoryLedger>(
        NPU_HAS(args, memory_limit_bytes) ? args->memory_limit_bytes : 0);
    state->threads = args->threads != 0
                         ? static_cast<int>(args->threads)
                         : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    if (const Json* promote = find_member(options, "promote")) {
      if (!promote->is_boolean())
        invalid("option 'promote': expected true or false, found " + promote->dump());
      state->build.promote = promote->get<bool>();
    }
    keep_large_blocks();
    *device = new npu_device{std::move(state)};
  });
}

void device_close(npu_device* device) { delete device; }

// ---- compile and load

/// Checks the names, and wraps each tensor unless only the names count.
WeightTensors read_weights(const npu_tensor* const* weights, std::uint64_t count, bool names_only) {
  if (count != 0) require_given(weights);
  WeightTensors tensors;
  for (std::uint64_t i = 0; i < count; ++i) {
    require_given(weights[i]);
    const npu_tensor& weight = *weights[i];
    if (weight.name == nullptr) invalid(fmt::format("weight {} has no name", i));
    if (!tensors.emplace(weight.name, names_only ? at::Tensor() : wrap_weight(weight)).second) {
      invalid(fmt::format("weight '{}' is given twice", weight.name));
    }
  }
  return tensors;
}

/// Of tensors that read_weights has taken.
std::uint64_t bytes_of(const npu_tensor* const* weights, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += weights[i]->bytes;
  return sum;
}

/// A precision is a wish: everything is computed in the dtypes that the graph states.
void check_compile_options(const char* text) {
  if (text == nullptr || *text == '\0') return;
  const Json options = parse_json(text, "compile options");
  if (!options.is_object()) invalid("compile options: expected an object");
  const Json* precision = find_member(options, "precision");
  if (precision == nullptr || *precision == "f32" || *precision == "bf16" || *precision == "f16") {
    return;
  }
  invalid("option 'precision': expected f32, bf16 or f16, found " + precision->dump());
}

npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    const npu_entry& entry = only_entry(args);
    check_compile_options(args->options);
    (void)read_weights(args->weights, args->weight_count, true);
    const auto size = static_cast<std::size_t>(entry.sub_ir_size);
    const Graph graph = read_valid_graph({entry.sub_ir, size}, "sub-IR");
    check_sub_ir_version(graph);
    const HostProgress progress(*args);
    BuildOptions build = device->state->build;
    build.checkpoint = [&](std::size_t done, std::size_t total) {
      progress(done, total, "checking nodes");
    };
    (void)build_program(graph, device->state->registry, build, nullptr);
    (void)read_aliases(graph);
    progress(1, 1, "writing");
    BlobHeader header = {};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kBlobVersion;
    header.text_size = size;
    const auto put = pieces_to(args->blob, error);
    put(&header, sizeof header);
    put(entry.sub_ir, size);
  });
}

}  // namespace

std::string_view blob_text(const void* blob, std::uint64_t size) {
  require_given(blob);
  BlobHeader header = {};
  if (size < sizeof header) invalid("the blob is too short");
  std::memcpy(&header, blob, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    invalid("the blob is not of the aten backend");
  if (header.version != kBlobVersion) {
    invalid(fmt::format("the blob has version {}, expected {}; compile it again", header.version,
                        kBlobVersion));
  }
  if (header.text_size != size - sizeof header) {
    invalid(
        fmt::format("the blob has {} bytes, expected {}", size, sizeof header + header.text_size));
  }
  return {static_cast<const char*>(blob) + sizeof header, header.text_size};
}

namespace {

Program make_program(const npu_model& model, const Graph& graph) {
  const WeightLookup lookup = [&](const TensorInfo& tensor) -> std::optional<at::Tensor> {
    const auto where = model.weights.find(tensor.name);
    if (where == model.weights.end()) return std::nullopt;
    return where->second;
  };
  return build_program(graph, model.state->registry, model.state->build, &lookup);
}

npu_status weights_load(npu_device* device, const npu_tensor* const* tensors, std::uint64_t count,
                        npu_model_info* info, npu_weights** weights, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, weights);
    auto loaded = std::make_unique<npu_weights>();
    loaded->tensors = read_weights(tensors, count, false);
    loaded->share = MemoryShare(device->state->ledger, bytes_of(tensors, count), "the weights");
    if (info != nullptr) fill(info, npu_model_info{});
    *weights = loaded.release();
  });
}

void weights_free(npu_weights* weights) {
  if (weights == nullptr) return;
  const c10::InferenceMode inference;
  delete weights;
}

npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                      npu_model** model, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, args, model);
    auto loaded = std::make_unique<npu_model>();
    loaded->state = device->state;
    loaded->weights = read_weights(args->weights, args->weight_count, false);
    for (std::uint64_t i = 0; NPU_HAS(args, shared_count) && i < args->shared_count; ++i) {
      const WeightTensors& shared = args->shared[i]->tensors;
      loaded->weights.insert(shared.begin(), shared.end());
    }
    loaded->text = blob_text(args->blob, args->blob_size);
    const Graph graph = read_valid_graph(loaded->text, "blob");
    loaded->aliases = read_aliases(graph);
    loaded->bytes = model_bytes(graph, args->blob_size);
    const auto& ledger = device->state->ledger;
    loaded->share =
        MemoryShare(ledger, loaded->bytes.other_bytes + bytes_of(args->weights, args->weight_count),
                    "the model");  // shared weights have been counted
    loaded->first_share =
        MemoryShare(ledger, loaded->bytes.scratch_bytes, "the program's scratch memory");
    loaded->first = make_program(*loaded, graph);
    if (info != nullptr) fill(info, npu_model_info{});  // blob and weights are used in place
    *model = loaded.release();
  });
}

void model_free(npu_model* model) {
  if (model == nullptr) return;
  const c10::InferenceMode inference;
  delete model;
}

npu_status program_create(npu_model* model, const npu_program_args* /*args*/, npu_program** program,
                          npu_error* error) {
  return guarded(error, [&] {
    require_given(model, program);
    if (!model->first) {
      model->first_share = MemoryShare(model->state->ledger, model->bytes.scratch_bytes,
                                       "the program's scratch memory");
      model->first = make_program(*model, read_valid_graph(model->text, "blob"));
    }
    *program = new npu_program{model->state, *std::move(model->first),
                               std::move(model->first_share), model->aliases};
    model->first.reset();
  });
}

void program_free(npu_program* program) {
  if (program == nullptr) return;
  const c10::InferenceMode inference;
  delete program;
}

// ---- run

void check_input(const StepResult& expected, const npu_buffer* buffer) {
  if (buffer == nullptr) invalid(fmt::format("input '{}' is null", expected.name));
  const at::Tensor& tensor = buffer->tensor;
  if (tensor.scalar_type() != expected.type || tensor.sizes() != c10::IntArrayRef(expected.shape)) {
    invalid(fmt::format("input '{}': expected {} {}, found {} {}", expected.name,
                        type_text(expected.type), shape_text(expected.shape),
                        type_text(tensor.scalar_type()), shape_text(tensor.sizes().vec())));
  }
}

/// Makes a result the content of its buffer.
void take_result(npu_buffer& buffer, at::Tensor result, const StepResult& expected) {
  if (dtype_of(result.scalar_type()) != static_cast<DType>(buffer.dtype) ||
      result.sizes() != c10::IntArrayRef(buffer.shape)) {
    invalid(fmt::format("output '{}': it is {} {}, the buffer is {} {}", expected.name,
                        type_text(result.scalar_type()), shape_text(result.sizes().vec()),
                        dtype_name(static_cast<DType>(buffer.dtype)), shape_text(buffer.shape)));
  }
  if (!buffer.is_seen) {
    buffer.tensor = std::move(result);
  } else if (result.nbytes() != 0) {
    std::memcpy(buffer.tensor.data_ptr(), result.data_ptr(), result.nbytes());
  }
}

/// Whether an output may be the buffer of an input.
bool is_paired(const npu_program& program, std::uint64_t input, std::uint64_t output) {
  return std::any_of(program.aliases.begin(), program.aliases.end(), [&](const AliasPair& pair) {
    return pair.input == input && pair.output == output;
  });
}

/// What a state lies in becomes the program's alone, which then writes into it and gives it back.
/// Memory that others see stays where it is, and so does what a first run may need again.
void hand_over_states(const npu_program& program, const npu_run_args& args) {
  if (!program.program.has_run()) return;
  for (const AliasPair& pair : program.aliases) {
    npu_buffer* buffer = args.inputs[pair.input];
    if (buffer == args.outputs[pair.output] && !buffer->is_seen) buffer->tensor.reset();
  }
}

void check_arguments(const npu_program& program, const npu_run_args& args) {
  if (args.input_count != 0) require_given(args.inputs);
  if (args.output_count != 0) require_given(args.outputs);
  const auto& inputs = program.program.inputs();
  const auto& outputs = program.program.outputs();
  if (args.input_count != inputs.size()) {
    invalid(fmt::format("expected {} inputs, found {}", inputs.size(), args.input_count));
  }
  if (args.output_count != outputs.size()) {
    invalid(fmt::format("expected {} outputs, found {}", outputs.size(), args.output_count));
  }
  for (std::uint64_t i = 0; i < args.output_count; ++i) {
    const npu_buffer* output = args.outputs[i];
    require_given(output);
    bool is_other = std::find(args.outputs, args.outputs + i, output) != args.outputs + i;
    for (std::uint64_t k = 0; k < args.input_count; ++k) {
      is_other = is_other || (args.inputs[k] == output && !is_paired(program, k, i));
    }
    if (is_other) {
      invalid("an output buffer is passed twice, or as an input, too");
    }
  }
}

npu_status run(npu_program* program, const npu_run_args* args, npu_error* error) {
  return guarded(error, [&] {
    require_given(program, args);
    check_arguments(*program, *args);
    std::vector<at::Tensor> tensors;
    for (std::uint64_t i = 0; i < args->input_count; ++i) {
      const StepResult& expected = program->program.inputs()[i];
      if (args->inputs[i] != nullptr) tensors.push_back(tensor_in(*args->inputs[i]));
      check_input(expected, args->inputs[i]);
    }
    const ThreadScope threads(program->state->threads);
    std::vector<at::Tensor> results;
    program->stop.begin(*args);
    hand_over_states(*program, *args);
    program->program.run(tensors, results, program->stop);
    for (std::uint64_t i = 0; i < args->output_count; ++i) {
      take_result(*args->outputs[i], std::move(results[i]), program->program.outputs()[i]);
    }
    if (!NPU_HAS(args, profile) || args->profile == nullptr) return;
    const npu_profile& profile = *args->profile;
    const auto& times = program->program.node_times();
    if (profile.node_count == 0) return;
    require_given(profile.nodes);
    if (profile.node_count != times.size()) {
      invalid(fmt::format("expected {} nodes, found {}", times.size(), profile.node_count));
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      profile.nodes[i] = {0, times[i], NPU_SPAN_DURATION};
    }
  });
}

void program_cancel(npu_program* program) {
  if (program != nullptr) program->stop.ask();
}

npu_status list_ops(npu_device* device, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    if (visit == nullptr) invalid("the visitor is null");
    device->state->registry.visit([&](const std::string& op_type, const char* kind) {
      visit(context, op_type.c_str(), kind);
    });
  });
}

/// oneDNN takes a limit of instructions before its first primitive only. Where that is libtorch's,
/// the onednn backend comes too late with it, so it is given here by oneDNN's own variable. A level
/// that there is not is the onednn backend's to refuse.
void limit_onednn() {
#if defined(__x86_64__)
  constexpr const char* kNames[]{"SSE41",
                                 "SSE41",
                                 "AVX2",
                                 "AVX2_VNNI",
                                 "AVX512_CORE",
                                 "AVX512_CORE_VNNI",
                                 "AVX512_CORE_BF16",
                                 "AVX512_CORE_BF16",
                                 "AVX512_CORE_AMX"};
  static_assert(std::size(kNames) == kIsaLevels.size());
  try {
    if (isa_limit()) ::setenv("DNNL_MAX_CPU_ISA", kNames[isa_level()], 1);
  } catch (const Error&) {
    return;
  }
#endif
}

npu_backend make_table() {
  static constexpr const char* kFeatures[] = {"wrap.host", "memory.limit", "cancel", "alias",
                                              nullptr};
  limit_onednn();
  npu_backend table = empty_table(kFeatures);
  NPU_EACH(NPU_PLACE, NPU_FUNCTIONS, backend_info, device_info, device_open, device_close, compile,
           model_load, model_free, program_create, program_free, run, weights_load, weights_free,
           program_cancel, list_ops)
  return table;
}

}  // namespace
}  // namespace npu::aten

extern "C" __attribute__((visibility("default"))) const npu_backend* npu_backend_entry(
    const npu_host* host, npu_error* error) {
  static const npu_backend table = npu::aten::make_table();
  return npu::table_for(host, error, table);
}
