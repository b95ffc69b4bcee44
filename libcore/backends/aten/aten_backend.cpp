// SPDX-License-Identifier: Apache-2.0
// The C ABI of the aten backend (npu/backend.h) over OpRegistry and Program.
//
// A device is a registry of ops and a thread count; a blob is the sub-IR's text after a header,
// since load builds a program faster than it could read a compiled one; a buffer is one contiguous
// at::Tensor. Weights are used in place. Everything runs under c10::InferenceMode.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aten_types.hpp"
#include "large_blocks.hpp"
#include "npu/backend.h"
#include "npu/ir/json_reader.hpp"
#include "npu/support/checked.hpp"
#include "op_registry.hpp"
#include "program.hpp"

namespace npu::aten {
namespace {

/// State of an open device; programs share it, so that the order in which the host frees things
/// does not matter.
struct DeviceState {
  int threads = 1;
  BuildOptions build;
  OpRegistry registry;
  explicit DeviceState(const std::vector<std::string>& custom_ops) : registry(custom_ops) {}
};

}  // namespace
}  // namespace npu::aten

struct npu_device {
  std::shared_ptr<npu::aten::DeviceState> state;
};

struct npu_program {
  std::shared_ptr<npu::aten::DeviceState> state;
  npu::aten::Program program;
};

struct npu_buffer {
  at::Tensor tensor;  // contiguous
  npu_dtype dtype;
};

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

void write_error(npu_error* error, std::string_view text) {
  if (error == nullptr) return;
  std::snprintf(error->text, sizeof error->text, "%.*s", static_cast<int>(text.size()),
                text.data());
}

/// Runs the body of an ABI call and turns exceptions into a status.
template <typename Body>
npu_status guarded(npu_error* error, Body body) noexcept {
  try {
    const c10::InferenceMode inference;
    body();
    return NPU_OK;
  } catch (const StatusError& failure) {
    write_error(error, failure.what());
    return failure.status();
  } catch (const Error& failure) {
    write_error(error, failure.message());
    return status_of(failure.code());
  } catch (const std::bad_alloc&) {
    write_error(error, "out of memory");
    return NPU_ERROR_MEMORY;
  } catch (const c10::OutOfMemoryError& failure) {
    write_error(error, first_line(failure.what_without_backtrace()));
    return NPU_ERROR_MEMORY;
  } catch (const c10::Error& failure) {
    const std::string text = first_line(failure.what_without_backtrace());
    write_error(error, text);
    return text.find("can't allocate memory") == text.npos ? NPU_ERROR_FAILED : NPU_ERROR_MEMORY;
  } catch (const std::exception& failure) {
    write_error(error, first_line(failure.what()));
    return NPU_ERROR_FAILED;
  } catch (...) {
    write_error(error, "unknown exception");
    return NPU_ERROR_FAILED;
  }
}

[[noreturn]] void invalid(std::string text) {
  throw StatusError(NPU_ERROR_INVALID, std::move(text));
}

void require(const void* pointer, std::string_view what) {
  if (pointer == nullptr) invalid(fmt::format("{} is null", what));
}

/// Checks a host's description of a tensor, except `data`.
c10::IntArrayRef checked_shape(std::string_view what, npu_dtype dtype, std::uint32_t rank,
                               const std::int64_t* shape, std::uint64_t* bytes) {
  if (static_cast<int>(dtype) < 0 || static_cast<int>(dtype) >= kDTypeCount) {
    invalid(fmt::format("{}: unknown dtype {}", what, static_cast<int>(dtype)));
  }
  if (rank != 0 && shape == nullptr) invalid(fmt::format("{}: its shape is null", what));
  const Shape dimensions(shape, shape + rank);
  const auto count = checked_element_count(dimensions);
  const auto size =
      count ? checked_multiply(*count,
                               static_cast<std::int64_t>(dtype_size(static_cast<DType>(dtype))))
            : std::nullopt;
  if (!size)
    invalid(fmt::format("{}: shape {} is negative or too large", what, shape_text(dimensions)));
  *bytes = static_cast<std::uint64_t>(*size);
  return {shape, rank};
}

c10::ScalarType scalar_type_of(npu_dtype dtype) {
  return kScalarTypes[static_cast<std::size_t>(dtype)];
}

std::string tensor_text(const npu_tensor& tensor) {
  return fmt::format("tensor '{}'", tensor.name == nullptr ? "" : tensor.name);
}

/// `tensor` as an at::Tensor over the same memory; a copy if it is not aligned to its elements.
at::Tensor wrap_weight(const npu_tensor& tensor) {
  std::uint64_t bytes = 0;
  const auto shape =
      checked_shape(tensor_text(tensor), tensor.dtype, tensor.rank, tensor.shape, &bytes);
  if (bytes != tensor.bytes) {
    invalid(
        fmt::format("{}: expected {} bytes, found {}", tensor_text(tensor), bytes, tensor.bytes));
  }
  const auto options = at::TensorOptions().dtype(scalar_type_of(tensor.dtype));
  if (bytes == 0) return at::empty(shape, options);
  if (tensor.data == nullptr) invalid(fmt::format("{}: its data is null", tensor_text(tensor)));
  const std::size_t alignment = dtype_size(static_cast<DType>(tensor.dtype));
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0) {
    at::Tensor copy = at::empty(shape, options);
    std::memcpy(copy.data_ptr(), tensor.data, bytes);
    return copy;
  }
  // Never written: Program clones a tensor before an op changes it.
  return at::from_blob(const_cast<void*>(tensor.data), shape, options);
}

// ---- describe

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

npu_status describe(npu_backend_description* description, npu_error* error) {
  return guarded(error, [&] {
    require(description, "description");
    static const std::string version =
        fmt::format("{}, libtorch {}, {}", NPU_VERSION, NPU_TORCH_VERSION, blas_name());
    static const std::string fingerprint = fmt::format(
        "aten blob {} npu {} libtorch {}", kBlobVersion, NPU_VERSION, NPU_TORCH_VERSION);
    *description = {"aten", version.c_str(), fingerprint.c_str(), NPU_CAPABILITY_ANY_OP};
  });
}

// ---- device

int read_threads(const Json& options) {
  const Json* threads = find_member(options, "threads");
  if (threads == nullptr || threads->is_null()) return at::get_num_threads();
  if (!threads->is_number_integer() || *threads < 0 || *threads > 4096) {
    invalid(
        fmt::format("option 'threads': expected an integer in 0..4096, found {}", threads->dump()));
  }
  const int count = threads->get<int>();
  return count != 0 ? count : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

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

npu_status open_device(const char* options_text, npu_device** device, npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    const Json options = options_text == nullptr || *options_text == '\0'
                             ? Json::object()
                             : parse_json(options_text, "device options");
    if (!options.is_object()) invalid("device options: expected an object");
    auto state = std::make_shared<DeviceState>(read_load_ops(options));
    state->threads = read_threads(options);
    if (const Json* promote = find_member(options, "promote")) {
      if (!promote->is_boolean())
        invalid("option 'promote': expected true or false, found " + promote->dump());
      state->build.promote = promote->get<bool>();
    }
    at::set_num_threads(state->threads);
    keep_large_blocks();
    *device = new npu_device{std::move(state)};
  });
}

void close_device(npu_device* device) { delete device; }

// ---- compile and load

using WeightIndex = std::map<std::string, const npu_tensor*, std::less<>>;

WeightIndex index_weights(const npu_tensor* weights, std::size_t count) {
  if (count != 0) require(weights, "weights");
  WeightIndex index;
  for (std::size_t i = 0; i < count; ++i) {
    if (weights[i].name == nullptr) invalid(fmt::format("weight {} has no name", i));
    if (!index.emplace(weights[i].name, &weights[i]).second) {
      invalid(fmt::format("weight '{}' is given twice", weights[i].name));
    }
  }
  return index;
}

npu_status compile(npu_device* device, const char* sub_ir, std::size_t sub_ir_size,
                   const npu_tensor* weights, std::size_t weight_count, const char* /*options*/,
                   npu_blob* blob, npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(sub_ir, "the sub-IR");
    require(blob, "blob");
    (void)index_weights(weights, weight_count);
    const Graph graph = read_valid_graph({sub_ir, sub_ir_size}, "sub-IR");
    (void)build_program(graph, device->state->registry, device->state->build, nullptr);
    BlobHeader header = {};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.version = kBlobVersion;
    header.text_size = sub_ir_size;
    char* const data = new char[sizeof header + sub_ir_size];
    std::memcpy(data, &header, sizeof header);
    std::memcpy(data + sizeof header, sub_ir, sub_ir_size);
    *blob = {data, sizeof header + sub_ir_size};
  });
}

void blob_free(npu_blob* blob) {
  if (blob == nullptr) return;
  delete[] static_cast<const char*>(blob->data);
  *blob = {nullptr, 0};
}

std::string_view blob_text(const void* blob, std::uint64_t size) {
  require(blob, "blob");
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

npu_status load(npu_device* device, const void* blob, std::uint64_t blob_size,
                const npu_tensor* weights, std::size_t weight_count, npu_program** program,
                npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(program, "program");
    const WeightIndex index = index_weights(weights, weight_count);
    const WeightLookup lookup = [&](const TensorInfo& tensor) -> std::optional<at::Tensor> {
      const auto where = index.find(tensor.name);
      if (where == index.end()) return std::nullopt;
      return wrap_weight(*where->second);
    };
    const Graph graph = read_valid_graph(blob_text(blob, blob_size), "blob");
    *program = new npu_program{device->state, build_program(graph, device->state->registry,
                                                            device->state->build, &lookup)};
  });
}

void program_free(npu_program* program) {
  if (program == nullptr) return;
  const c10::InferenceMode inference;
  delete program;
}

// ---- buffers

npu_status buffer_allocate(npu_device* device, npu_dtype dtype, std::uint32_t rank,
                           const std::int64_t* shape, npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(buffer, "buffer");
    std::uint64_t bytes = 0;
    const auto sizes = checked_shape("buffer", dtype, rank, shape, &bytes);
    *buffer =
        new npu_buffer{at::empty(sizes, at::TensorOptions().dtype(scalar_type_of(dtype))), dtype};
  });
}

npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                         npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    require(tensor, "tensor");
    require(buffer, "buffer");
    std::uint64_t bytes = 0;
    const auto sizes =
        checked_shape(tensor_text(*tensor), tensor->dtype, tensor->rank, tensor->shape, &bytes);
    if (bytes != tensor->bytes) {
      invalid(fmt::format("{}: expected {} bytes, found {}", tensor_text(*tensor), bytes,
                          tensor->bytes));
    }
    if (bytes != 0 && tensor->data == nullptr) {
      invalid(fmt::format("{}: its data is null", tensor_text(*tensor)));
    }
    at::Tensor copy = at::empty(sizes, at::TensorOptions().dtype(scalar_type_of(tensor->dtype)));
    if (bytes != 0) std::memcpy(copy.data_ptr(), tensor->data, bytes);
    *buffer = new npu_buffer{std::move(copy), tensor->dtype};
  });
}

npu_status buffer_export(const npu_buffer* buffer, void* data, std::uint64_t bytes,
                         npu_error* error) {
  return guarded(error, [&] {
    require(buffer, "buffer");
    if (bytes != buffer->tensor.nbytes()) {
      invalid(fmt::format("the buffer has {} bytes, expected {}", buffer->tensor.nbytes(), bytes));
    }
    if (bytes == 0) return;
    require(data, "data");
    std::memcpy(data, buffer->tensor.data_ptr(), bytes);
  });
}

npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description, npu_error* error) {
  return guarded(error, [&] {
    require(buffer, "buffer");
    require(description, "description");
    const at::Tensor& tensor = buffer->tensor;
    const char* const name = description->name;
    *description = {name,
                    buffer->dtype,
                    static_cast<std::uint32_t>(tensor.dim()),
                    tensor.sizes().data(),
                    tensor.nbytes() == 0 ? nullptr : tensor.data_ptr(),
                    tensor.nbytes()};
  });
}

void buffer_free(npu_buffer* buffer) { delete buffer; }

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

npu_status run(npu_program* program, npu_buffer* const* inputs, std::size_t input_count,
               npu_buffer** outputs, std::size_t output_count, npu_error* error) {
  return guarded(error, [&] {
    require(program, "program");
    if (input_count != 0) require(inputs, "inputs");
    if (output_count != 0) require(outputs, "outputs");
    const auto& expected = program->program.inputs();
    if (input_count != expected.size()) {
      invalid(fmt::format("expected {} inputs, found {}", expected.size(), input_count));
    }
    if (output_count != program->program.outputs().size()) {
      invalid(fmt::format("expected {} outputs, found {}", program->program.outputs().size(),
                          output_count));
    }
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < input_count; ++i) {
      check_input(expected[i], inputs[i]);
      tensors.push_back(inputs[i]->tensor);
    }
    for (std::size_t i = 0; i < output_count; ++i) {
      if (outputs[i] != nullptr) invalid("this backend allocates its outputs: pass null");
    }
    // The setting is per thread; another device may have changed it.
    if (at::get_num_threads() != program->state->threads)
      at::set_num_threads(program->state->threads);

    std::vector<at::Tensor> results;
    program->program.run(tensors, results);
    std::vector<std::unique_ptr<npu_buffer>> made;
    for (std::size_t i = 0; i < output_count; ++i) {
      const auto dtype = dtype_of(results[i].scalar_type());
      made.push_back(std::make_unique<npu_buffer>(npu_buffer{
          std::move(results[i]), static_cast<npu_dtype>(dtype.value_or(DType::kFloat32))}));
    }
    for (std::size_t i = 0; i < output_count; ++i) outputs[i] = made[i].release();
  });
}

npu_status list_ops(npu_device* device, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require(device, "device");
    if (visit == nullptr) invalid("the visitor is null");
    device->state->registry.visit([&](const std::string& op_type, const char* kind) {
      visit(context, op_type.c_str(), kind);
    });
  });
}

npu_status node_times(const npu_program* program, std::uint64_t* nanoseconds, std::size_t count,
                      npu_error* error) {
  return guarded(error, [&] {
    require(program, "program");
    const auto& times = program->program.node_times();
    if (count != times.size())
      invalid(fmt::format("expected {} nodes, found {}", times.size(), count));
    if (count != 0) require(nanoseconds, "nanoseconds");
    std::copy(times.begin(), times.end(), nanoseconds);
  });
}

constexpr npu_backend_api kApi = {NPU_BACKEND_ABI_VERSION,
                                  sizeof(npu_backend_api),
                                  &describe,
                                  &open_device,
                                  &close_device,
                                  &compile,
                                  &blob_free,
                                  &load,
                                  &program_free,
                                  &buffer_allocate,
                                  &buffer_import,
                                  &buffer_export,
                                  &buffer_describe,
                                  &buffer_free,
                                  &run,
                                  &list_ops,
                                  &node_times,
                                  nullptr,   // blob_report: a blob here is the sub-IR
                                  nullptr};  // step_times: a step is a node

}  // namespace
}  // namespace npu::aten

extern "C" __attribute__((visibility("default"))) const npu_backend_api* npu_backend_entry(
    std::uint32_t host_abi_version) {
  return host_abi_version >= NPU_BACKEND_ABI_VERSION ? &npu::aten::kApi : nullptr;
}
