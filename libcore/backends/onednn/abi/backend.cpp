// SPDX-License-Identifier: Apache-2.0
// The C ABI of the onednn backend: checks what crosses it, turns exceptions into statuses, and
// hands the rest to lowering and Program.
//
// compile lowers the sub-IR, folds and packs its weights, and writes a blob: the plan, a report,
// and the packed constants. load checks the plan, uses the constants where they lie in the blob,
// and generates code. A plan states every layout, so that it runs on any number of threads: only
// its scratch memory depends on that, and is planned again if it grows. Thread counts are a
// property of the calling thread in OpenMP: every call that works sets its device's and puts the
// host's back. Runs beside busy neighbours get fewer threads: oneDNN cuts its loops when code is
// generated, so a second program for fewer threads is made when it is first needed.
#include "npu/backend.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "lowering/lowering.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/elapsed.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "program/blob.hpp"
#include "program/compile_report.hpp"
#include "program/plan_format.hpp"
#include "program/program.hpp"
#include "program/stored_plan.hpp"
#include "program/thread_scope.hpp"
#include "support/run_threads.hpp"

struct npu_device {
  dnnl::engine engine;
  npu::onednn::Machine machine;
  int threads = 1;
  npu::RunThreads run_threads{1};
};

struct npu_program {
  npu_device* device = nullptr;
  const void* blob = nullptr;
  std::uint64_t blob_size = 0;
  std::unique_ptr<npu::onednn::Program> program;
  /// For fewer threads than the device's, made when there is a neighbour; null if it cannot be
  /// made.
  std::unique_ptr<npu::onednn::Program> reduced;
  int reduced_threads = 0;                   ///< those that `reduced` was made for
  npu::onednn::Program* last_run = nullptr;  ///< `program` or `reduced`
  std::vector<const std::byte*> inputs;      ///< reused by every run
  std::vector<std::byte*> outputs;
};

struct npu_buffer {
  npu::DType dtype = npu::DType::kFloat32;
  npu::Shape shape;
  std::uint64_t bytes = 0;
  npu::onednn::AlignedMemory memory;
};

namespace npu::onednn {

namespace {

/// An error with the status that it crosses the ABI with.
struct StatusError {
  npu_status status;
  std::string text;
};

void set_error(npu_error* error, const std::string& text) noexcept {
  if (error == nullptr) return;
  const std::size_t length = std::min<std::size_t>(text.size(), NPU_ERROR_TEXT_SIZE - 1);
  std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
}

npu_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return NPU_ERROR_UNSUPPORTED;
    case ErrorCode::kInfeasible:  // of libcore's tensors: there is no memory for one
      return NPU_ERROR_MEMORY;
    case ErrorCode::kFailed:
      return NPU_ERROR_FAILED;
    default:
      return NPU_ERROR_INVALID;
  }
}

/// Runs `body`; no exception leaves it.
template <typename Body>
npu_status guarded(npu_error* error, Body&& body) noexcept {
  try {
    body();
    return NPU_OK;
  } catch (const StatusError& failure) {
    set_error(error, failure.text);
    return failure.status;
  } catch (const Error& failure) {
    set_error(error, failure.message());
    return status_of(failure.code());
  } catch (const dnnl::error& failure) {
    const bool memory = failure.status == dnnl_out_of_memory;
    set_error(error, std::string("oneDNN: ") + failure.what());
    return memory ? NPU_ERROR_MEMORY : NPU_ERROR_FAILED;
  } catch (const std::bad_alloc&) {
    set_error(error, "out of memory");
    return NPU_ERROR_MEMORY;
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
    return NPU_ERROR_FAILED;
  } catch (...) {
    set_error(error, "an unknown error");
    return NPU_ERROR_FAILED;
  }
}

void require(bool condition, const char* text) {
  if (!condition) throw StatusError{NPU_ERROR_INVALID, text};
}

const std::string& version_text() {
  static const std::string text = [] {
    const dnnl::version_t* version = dnnl::version();
    return std::string(NPU_VERSION " (oneDNN ") + std::to_string(version->major) + "." +
           std::to_string(version->minor) + "." + std::to_string(version->patch) + ")";
  }();
  return text;
}

const std::string& fingerprint_text() {
  static const std::string text =
      std::string("onednn ") + version_text() + " isa " + std::string(isa_name()) +
      (detect_machine().native_bfloat16 ? " bfloat16 native" : " bfloat16 as float32") +
      " plan format " + std::to_string(kPlanFormat);
  return text;
}

int threads_option(const char* options) {
  int threads = 0;
  if (options != nullptr && *options != '\0') {
    const Json json = parse_json(options, "device options");
    require(json.is_object(), "device options: expected a JSON object");
    if (const Json* value = find_member(json, "threads")) {
      require(value->is_number_integer() && *value >= 0 && *value <= 4096,
              "device option 'threads': expected an integer in 0..4096");
      threads = value->get<int>();
    }
  }
  return threads > 0 ? threads : std::max(1, omp_get_num_procs());
}

/// Copies what the host passed after checking it; spans over null pointers never arise.
std::span<const npu_tensor> checked_weights(const npu_tensor* weights, size_t count) {
  require(weights != nullptr || count == 0, "weights is null");
  for (size_t i = 0; i < count; ++i) {
    require(weights[i].shape != nullptr || weights[i].rank == 0,
            "a weight has a rank but no shape");
  }
  return {weights, count};
}

std::unique_ptr<npu_buffer> make_buffer(DType dtype, Shape shape) {
  const auto count = checked_element_count(shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(dtype))) : std::nullopt;
  if (!bytes)
    throw StatusError{NPU_ERROR_INVALID, "shape " + shape_text(shape) + " is not a tensor's"};
  auto buffer = std::make_unique<npu_buffer>();
  buffer->dtype = dtype;
  buffer->shape = std::move(shape);
  buffer->bytes = static_cast<std::uint64_t>(*bytes);
  buffer->memory = allocate_aligned(buffer->bytes);
  return buffer;
}

std::unique_ptr<npu_buffer> make_buffer(npu_dtype dtype, std::uint32_t rank, const int64_t* shape) {
  require(dtype >= NPU_FLOAT32 && static_cast<int>(dtype) < kDTypeCount, "unknown dtype");
  require(shape != nullptr || rank == 0, "shape is null");
  Shape extents;
  if (rank != 0) extents.assign(shape, shape + rank);
  return make_buffer(static_cast<DType>(dtype), std::move(extents));
}

void check_buffer(const npu_buffer& buffer, const TensorBinding& binding, const char* kind) {
  if (buffer.dtype != binding.dtype || buffer.shape != binding.shape) {
    throw StatusError{NPU_ERROR_INVALID, std::string(kind) + " '" + binding.name + "': expected " +
                                             std::string(dtype_name(binding.dtype)) + " " +
                                             shape_text(binding.shape) + ", found " +
                                             std::string(dtype_name(buffer.dtype)) + " " +
                                             shape_text(buffer.shape)};
  }
}

npu_status describe(npu_backend_description* description, npu_error* error) {
  return guarded(error, [&] {
    require(description != nullptr, "description is null");
    description->name = "onednn";
    description->version = version_text().c_str();
    description->fingerprint = fingerprint_text().c_str();
    description->capabilities = NPU_CAPABILITY_WRITES_OUTPUTS | NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS;
  });
}

npu_status open_device(const char* options, npu_device** device, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr, "device is null");
    auto opened = std::make_unique<npu_device>();
    opened->threads = threads_option(options);
    opened->run_threads = RunThreads(opened->threads);
    opened->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    opened->machine = detect_machine();
    opened->machine.threads = opened->threads;
    *device = opened.release();
  });
}

void close_device(npu_device* device) { delete device; }

struct CompileOptions {
  bool bfloat16 = false;
};

CompileOptions read_compile_options(std::string_view text) {
  CompileOptions result;
  if (text.empty()) return result;
  const Json json = parse_json(text, "compile options");
  require(json.is_object(), "compile options: expected a JSON object");
  if (const Json* value = find_member(json, "precision")) {
    require(value->is_string() && (*value == "f32" || *value == "bf16"),
            "compile option 'precision': expected \"f32\" or \"bf16\"");
    result.bfloat16 = *value == "bf16";
  }
  return result;
}

Machine machine_for(const npu_device& device, const CompileOptions& options) {
  Machine machine = device.machine;
  if (options.bfloat16 && !machine.native_bfloat16) {
    throw StatusError{NPU_ERROR_UNSUPPORTED,
                      std::string("precision bf16 needs a CPU with AVX-512; the level here is '") +
                          std::string(isa_name()) + "'"};
  }
  machine.prefer_bfloat16 = options.bfloat16;
  machine.threads = device.threads;
  return machine;
}

npu_status compile(npu_device* device, const char* sub_ir, size_t sub_ir_size,
                   const npu_tensor* weights, size_t weight_count, const char* options,
                   npu_blob* blob, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && sub_ir != nullptr && blob != nullptr, "an argument is null");
    const CompileOptions compile_options = read_compile_options(options == nullptr ? "" : options);
    const ThreadScope threads(device->threads);
    const std::string_view text(sub_ir, sub_ir_size);
    const auto weight_span = checked_weights(weights, weight_count);
    const Graph graph = read_valid_graph(text, "sub-IR");
    const Plan plan =
        lower_graph(graph, weight_span, machine_for(*device, compile_options), device->engine);
    const PackedConstants packed = pack_constants(plan, weight_span, device->engine);
    const StoredPlan stored = store_plan(plan);
    const std::vector<std::byte> bytes = write_plan(stored.record);
    const std::string report =
        compile_report(graph, plan, stored, device->engine, compile_options.bfloat16);
    *blob = write_blob({bytes, report, packed.constants});
  });
}

void blob_free(npu_blob* blob) {
  if (blob == nullptr) return;
  std::free(const_cast<void*>(blob->data));
  *blob = {nullptr, 0};
}

/// With threads set for OpenMP, too.
std::unique_ptr<Program> make_program(const npu_program& program, int threads) {
  const BlobView content = read_blob(program.blob, program.blob_size);
  const dnnl::engine& engine = program.device->engine;
  return std::make_unique<Program>(restore_plan(read_plan(content.plan), content.constants, engine,
                                                {threads, program.device->threads}),
                                   content.constants, engine, program.program.get());
}

/// The program for this number of threads, which is set for OpenMP; the device's own if there is
/// none, which has the same results.
Program& program_for(npu_program& program, int threads) {
  if (threads == program.device->threads) return *program.program;
  if (threads != program.reduced_threads) {
    program.last_run = program.program.get();
    program.reduced.reset();
    program.reduced_threads = threads;
    try {
      program.reduced = make_program(program, threads);
    } catch (const std::exception&) {
      // Memory may be short; a slow run is better than none.
    }
  }
  return program.reduced ? *program.reduced : *program.program;
}

npu_status load(npu_device* device, const void* blob, uint64_t blob_size,
                const npu_tensor* /*weights*/, size_t /*weight_count*/, npu_program** program,
                npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && program != nullptr, "an argument is null");
    const ThreadScope threads(device->threads);
    auto loaded = std::make_unique<npu_program>();
    loaded->device = device;
    loaded->blob = blob;
    loaded->blob_size = blob_size;
    loaded->program = make_program(*loaded, device->threads);
    loaded->last_run = loaded->program.get();
    loaded->inputs.resize(loaded->program->inputs().size());
    loaded->outputs.resize(loaded->program->outputs().size());
    *program = loaded.release();
  });
}

void program_free(npu_program* program) { delete program; }

npu_status buffer_allocate(npu_device* device, npu_dtype dtype, uint32_t rank, const int64_t* shape,
                           npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && buffer != nullptr, "an argument is null");
    *buffer = make_buffer(dtype, rank, shape).release();
  });
}

npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && tensor != nullptr && buffer != nullptr, "an argument is null");
    auto made = make_buffer(tensor->dtype, tensor->rank, tensor->shape);
    require(made->bytes == tensor->bytes, "the tensor's bytes are not those of its shape");
    require(tensor->data != nullptr || tensor->bytes == 0, "the tensor's data is null");
    if (tensor->bytes != 0) std::memcpy(made->memory.get(), tensor->data, tensor->bytes);
    *buffer = made.release();
  });
}

npu_status buffer_export(const npu_buffer* buffer, void* data, uint64_t bytes, npu_error* error) {
  return guarded(error, [&] {
    require(buffer != nullptr && (data != nullptr || bytes == 0), "an argument is null");
    require(bytes == buffer->bytes, "the size passed is not the buffer's");
    if (bytes != 0) std::memcpy(data, buffer->memory.get(), bytes);
  });
}

npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description, npu_error* error) {
  return guarded(error, [&] {
    require(buffer != nullptr && description != nullptr, "an argument is null");
    description->dtype = static_cast<npu_dtype>(buffer->dtype);
    description->rank = static_cast<uint32_t>(buffer->shape.size());
    description->shape = buffer->shape.data();
    description->data = buffer->memory.get();
    description->bytes = buffer->bytes;
  });
}

void buffer_free(npu_buffer* buffer) { delete buffer; }

/// The numbers of OpenMP's threads for this one.
std::vector<std::int64_t> openmp_team(int threads) {
  std::vector<std::int64_t> team(static_cast<std::size_t>(threads), 0);
#pragma omp parallel num_threads(threads)
  team[static_cast<std::size_t>(omp_get_thread_num())] = this_thread_number();
  std::erase(team, 0);
  return team;
}

/// Runs it on what `program` holds of addresses.
void run_on_threads(npu_program& program) {
  npu_device& device = *program.device;
  const int threads = device.run_threads.threads();
  const ThreadScope scope(threads);
  Program& chosen = program_for(program, threads);
  program.last_run = &chosen;
  const auto begin = Clock::now();
  chosen.run(program.inputs, program.outputs);
  const double seconds = seconds_since(begin);
  device.run_threads.note_run(seconds, [threads] { return openmp_team(threads); });
}

npu_status run(npu_program* program, npu_buffer* const* inputs, size_t input_count,
               npu_buffer** outputs, size_t output_count, npu_error* error) {
  return guarded(error, [&] {
    require(program != nullptr, "program is null");
    Program& loaded = *program->program;
    require(input_count == loaded.inputs().size(), "another number of inputs than the program has");
    require(output_count == loaded.outputs().size(),
            "another number of outputs than the program has");
    require(inputs != nullptr || input_count == 0, "inputs is null");
    require(outputs != nullptr || output_count == 0, "outputs is null");
    for (size_t i = 0; i < input_count; ++i) {
      require(inputs[i] != nullptr, "an input is null");
      check_buffer(*inputs[i], loaded.inputs()[i], "input");
      program->inputs[i] = inputs[i]->memory.get();
    }
    std::vector<std::unique_ptr<npu_buffer>> made(output_count);
    for (size_t i = 0; i < output_count; ++i) {
      if (outputs[i] == nullptr) {
        made[i] = make_buffer(loaded.outputs()[i].dtype, loaded.outputs()[i].shape);
        program->outputs[i] = made[i]->memory.get();
        continue;
      }
      check_buffer(*outputs[i], loaded.outputs()[i], "output");
      require(std::find(inputs, inputs + input_count, outputs[i]) == inputs + input_count &&
                  std::find(outputs, outputs + i, outputs[i]) == outputs + i,
              "an output buffer is passed twice, or as an input, too");
      program->outputs[i] = outputs[i]->memory.get();
    }
    run_on_threads(*program);
    for (size_t i = 0; i < output_count; ++i) {
      if (made[i]) outputs[i] = made[i].release();
    }
  });
}

npu_status list_ops(npu_device* /*device*/, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require(visit != nullptr, "visit is null");
    for (const LoweringRow& row : lowering_table()) {
      visit(context, std::string(row.op_type).c_str(), "onednn");
    }
  });
}

npu_status node_times(const npu_program* program, uint64_t* nanoseconds, size_t count,
                      npu_error* error) {
  return guarded(error, [&] {
    require(program != nullptr && (nanoseconds != nullptr || count == 0), "an argument is null");
    const auto times = program->last_run->node_times();
    require(count == times.size(), "another number of nodes than the program has");
    std::copy(times.begin(), times.end(), nanoseconds);
  });
}

npu_status blob_report(npu_device* /*device*/, const void* blob, uint64_t blob_size,
                       npu_blob* report, npu_error* error) {
  return guarded(error, [&] {
    require(report != nullptr, "report is null");
    const std::string_view text = read_blob(blob, blob_size).report;
    void* memory = std::malloc(text.size() + 1);
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, text.data(), text.size());
    *report = {memory, text.size()};
  });
}

npu_status step_times(const npu_program* program, uint64_t* nanoseconds, size_t count,
                      npu_error* error) {
  return guarded(error, [&] {
    require(program != nullptr && (nanoseconds != nullptr || count == 0), "an argument is null");
    const auto times = program->last_run->step_times();
    require(count == times.size(), "another number of steps than the program has");
    std::copy(times.begin(), times.end(), nanoseconds);
  });
}

constexpr npu_backend_api kApi{
    NPU_BACKEND_ABI_VERSION,
    sizeof(npu_backend_api),
    describe,
    open_device,
    close_device,
    compile,
    blob_free,
    load,
    program_free,
    buffer_allocate,
    buffer_import,
    buffer_export,
    buffer_describe,
    buffer_free,
    run,
    list_ops,
    node_times,
    blob_report,
    step_times,
};

}  // namespace

}  // namespace npu::onednn

extern "C" __attribute__((visibility("default"))) const npu_backend_api* npu_backend_entry(
    uint32_t host_abi_version) {
  return host_abi_version >= NPU_BACKEND_ABI_VERSION ? &npu::onednn::kApi : nullptr;
}
