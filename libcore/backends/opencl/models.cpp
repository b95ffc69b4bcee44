// SPDX-License-Identifier: Apache-2.0
// Compiling, blobs and models.
//
// compile writes the kernels' source and the driver's binary of it into the blob; model_load takes
// the binary if the blob is of this very device and driver, and the source otherwise. Weights are
// uploaded once for each model, or for all models that share them, into one piece of memory.
#include <algorithm>
#include <cstring>

#include "boundary.hpp"
#include "lowering.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

// Warnings would be written to standard error by some drivers.
constexpr const char* kBuildOptions = "-cl-std=CL1.2 -w";

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) {
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  }
  std::replace(log.begin(), log.end(), '\n', ' ');
  log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
  return log;
}

ClProgram build_source(const npu4_device& device, std::string_view source) {
  const char* text = source.data();
  const std::size_t size = source.size();
  cl_int code = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(device.context.get(), 1, &text, &size, &code));
  check_cl(code, "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &device.facts->device, kBuildOptions, nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE) {
    throw StatusError{NPU4_INTERNAL, "the driver does not compile the kernels: " +
                                         build_log(program.get(), device.facts->device)};
  }
  check_cl(code, "clBuildProgram");
  return program;
}

/// Empty if the driver gives none.
std::string binary_of(cl_program program) {
  std::size_t size = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
      CL_SUCCESS) {
    return {};
  }
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) {
    return {};
  }
  return binary;
}

/// Null if the driver does not take the binary.
ClProgram build_binary(const npu4_device& device, std::string_view binary) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int code = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(device.context.get(), 1, &device.facts->device, &size,
                                              &bytes, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS) return {};
  code = clBuildProgram(program.get(), 1, &device.facts->device, kBuildOptions, nullptr, nullptr);
  if (code != CL_SUCCESS) return {};
  return program;
}

ClProgram build(const npu4_device& device, const BlobParts& parts) {
  if (parts.plan.kernels == 0) return {};
  if (!parts.binary.empty() && parts.fingerprint == device.facts->fingerprint) {
    if (ClProgram program = build_binary(device, parts.binary)) return program;
  }
  return build_source(device, parts.source);
}

void check_options(const char* options) {
  if (options == nullptr || *options == '\0') return;
  const Json json = parse_json(options, "compile options");
  require(json.is_object(), "compile options: expected a JSON object");
  const Json* precision = find_member(json, "precision");
  if (precision == nullptr || *precision == "f32") return;
  require(precision->is_string() && *precision == "bf16",
          "compile option 'precision': expected \"f32\" or \"bf16\"");
  throw StatusError{NPU4_UNSUPPORTED, "precision bf16 is not offered by this backend"};
}

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

std::uint64_t sum_of(const std::vector<PlanTensor>& tensors) {
  std::uint64_t sum = 0;
  for (const PlanTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

npu4_memory_bytes bytes_of(const BlobParts& parts) {
  npu4_memory_bytes bytes{};
  for (const PlanTensor& weight : parts.plan.weights) bytes.weights_bytes += aligned(weight.bytes);
  bytes.scratch_bytes = parts.plan.scratch_bytes;
  bytes.boundary_bytes = sum_of(parts.plan.inputs) + sum_of(parts.plan.outputs);
  bytes.other_bytes = parts.binary.size();
  return bytes;
}

PlanTensor tensor_of_host(const npu4_tensor* tensor) {
  require(tensor != nullptr && NPU4_HAS(tensor, bytes) && tensor->name != nullptr,
          "a weight is null or has no name");
  require(tensor->dtype < kDTypeCount, "a weight has an unknown dtype");
  require(tensor->shape != nullptr || tensor->rank == 0, "a weight has a rank but no shape");
  require(tensor->data != nullptr || tensor->bytes == 0, "a weight has no data");
  PlanTensor result{tensor->name, static_cast<DType>(tensor->dtype), {}, tensor->bytes};
  if (tensor->rank != 0) result.shape.assign(tensor->shape, tensor->shape + tensor->rank);
  return result;
}

/// Uploads tensors one behind the other.
void upload(npu4_device& device, const std::vector<const npu4_tensor*>& tensors,
            npu4_weights& target) {
  std::uint64_t bytes = 0;
  for (const npu4_tensor* tensor : tensors) {
    target.offsets.emplace(tensor->name, std::pair{tensor_of_host(tensor), bytes});
    bytes += aligned(tensor->bytes);
  }
  target.memory = allocate(device, bytes, target.share, "the weights");
  for (const npu4_tensor* tensor : tensors) {
    if (tensor->bytes == 0) continue;
    check_cl(clEnqueueWriteBuffer(device.queue.get(), target.memory.get(), CL_TRUE,
                                  static_cast<std::size_t>(target.offsets.at(tensor->name).second),
                                  static_cast<std::size_t>(tensor->bytes), tensor->data, 0, nullptr,
                                  nullptr),
             "clEnqueueWriteBuffer");
  }
}

void check_weight(const PlanTensor& wanted, const PlanTensor& found) {
  if (wanted.dtype == found.dtype && wanted.shape == found.shape && wanted.bytes == found.bytes) {
    return;
  }
  throw StatusError{NPU4_INVALID, "weight '" + wanted.name + "': expected " +
                                      std::string(dtype_name(wanted.dtype)) + " " +
                                      shape_text(wanted.shape) + ", found " +
                                      std::string(dtype_name(found.dtype)) + " " +
                                      shape_text(found.shape)};
}

/// Finds each weight of the plan among those shared and those given, and uploads the latter.
void place_weights(npu4_model& model, const npu4_load_args& args) {
  std::map<std::string, const npu4_tensor*> given;
  for (std::uint64_t i = 0; i < args.weight_count; ++i) {
    const PlanTensor tensor = tensor_of_host(args.weights[i]);
    given.emplace(tensor.name, args.weights[i]);
  }
  const auto shared = [&](const std::string& name) -> const npu4_weights* {
    for (std::uint64_t i = 0; i < args.shared_count; ++i) {
      if (args.shared[i] != nullptr && args.shared[i]->offsets.contains(name))
        return args.shared[i];
    }
    return nullptr;
  };
  std::vector<const npu4_tensor*> own;
  for (const PlanTensor& weight : model.plan.weights) {
    if (shared(weight.name) != nullptr) continue;
    const auto found = given.find(weight.name);
    if (found == given.end()) {
      throw StatusError{NPU4_INVALID, "weight '" + weight.name + "' is missing"};
    }
    own.push_back(found->second);
  }
  upload(*model.device, own, model.own);
  for (const PlanTensor& weight : model.plan.weights) {
    const npu4_weights* from = shared(weight.name);
    if (from == nullptr) from = &model.own;
    const auto& [tensor, offset] = from->offsets.at(weight.name);
    check_weight(weight, tensor);
    model.weights.emplace_back(from->memory.get(), offset);
  }
}

}  // namespace

npu4_status compile(npu4_device* device, const npu4_compile_args* args, npu4_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && args != nullptr && NPU4_HAS(args, blob) && args->blob != nullptr,
            "an argument is null");
    require(args->entry_count == 1 && args->entries != nullptr && args->entries[0] != nullptr &&
                args->entries[0]->sub_ir != nullptr,
            "expected one entry");
    check_options(args->options);
    const npu4_entry& entry = *args->entries[0];
    const std::string_view text(entry.sub_ir, static_cast<std::size_t>(entry.sub_ir_size));
    const Graph graph = read_valid_graph(text, "sub-IR");
    check_sub_ir_version(graph);
    const HostProgress progress(*args);
    const LoweredGraph lowered = lower_graph(
        graph, device->machine,
        [&](std::size_t done, std::size_t total) { progress(done, total, "lowering"); });
    progress(0, 1, "building kernels");
    std::string binary;
    if (lowered.plan.kernels != 0) {
      binary = binary_of(build_source(*device, lowered.source).get());
    }
    progress(1, 1, "building kernels");
    for (const std::string& part : write_blob(lowered.plan, lowered.report,
                                              device->facts->fingerprint, lowered.source, binary)) {
      const npu4_status status =
          args->blob->write(args->blob->context, part.data(), part.size(), error);
      if (status != NPU4_OK) throw WriteError{status};
    }
  });
}

npu4_status blob_report(npu4_device* /*device*/, const void* blob, std::uint64_t size,
                        const npu4_writer* report, npu4_error* error) {
  return guarded(error, [&] {
    require(report != nullptr, "report is null");
    const std::string_view text = read_blob(blob, size).report;
    const npu4_status status = report->write(report->context, text.data(), text.size(), error);
    if (status != NPU4_OK) throw WriteError{status};
  });
}

npu4_status blob_check(npu4_device* device, const void* blob, std::uint64_t size,
                       npu4_blob_verdict* verdict, npu4_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && verdict != nullptr, "an argument is null");
    const BlobParts parts = read_blob(blob, size);
    npu4_blob_verdict filled{};
    if (parts.fingerprint != device->facts->fingerprint) {
      filled.verdict = NPU4_BLOB_SLOW;
      const std::string reason = "its kernels are compiled again, since they are of '" +
                                 std::string(parts.fingerprint) + "'";
      std::memcpy(filled.reason, reason.data(), std::min(reason.size(), sizeof filled.reason - 1));
    }
    fill(verdict, filled);
  });
}

npu4_status blob_memory(npu4_device* /*device*/, const void* blob, std::uint64_t size,
                        npu4_memory_report* report, npu4_error* error) {
  return guarded(error, [&] {
    require(fill_report(report, bytes_of(read_blob(blob, size)), NPU4_MEMORY_BOUND),
            "the report has no room for one memory");
  });
}

npu4_status model_memory(npu4_model* model, npu4_memory_report* report, npu4_error* error) {
  return guarded(error, [&] {
    require(model != nullptr, "an argument is null");
    npu4_memory_bytes bytes = bytes_of({model->plan, {}, {}, {}, {}});
    bytes.other_bytes = model->code_bytes;
    require(fill_report(report, bytes, NPU4_MEMORY_BOUND), "the report has no room for one memory");
  });
}

npu4_status weights_load(npu4_device* device, const npu4_tensor* const* tensors,
                         std::uint64_t count, npu4_model_info* info, npu4_weights** weights,
                         npu4_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && weights != nullptr && (tensors != nullptr || count == 0),
            "an argument is null");
    auto made = std::make_unique<npu4_weights>();
    std::vector<const npu4_tensor*> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      tensor_of_host(tensors[i]);
      all.push_back(tensors[i]);
    }
    upload(*device, all, *made);
    npu4_model_info filled{};
    filled.flags = NPU4_RELEASES_WEIGHTS;
    if (info != nullptr) fill(info, filled);
    *weights = made.release();
  });
}

void weights_free(npu4_weights* weights) { delete weights; }

npu4_status model_load(npu4_device* device, const npu4_load_args* args, npu4_model_info* info,
                       npu4_model** model, npu4_error* error) {
  return guarded(error, [&] {
    require(
        device != nullptr && args != nullptr && NPU4_HAS(args, shared_count) && model != nullptr,
        "an argument is null");
    require(args->weights != nullptr || args->weight_count == 0, "weights is null");
    require(args->shared != nullptr || args->shared_count == 0, "shared is null");
    BlobParts parts = read_blob(args->blob, args->blob_size);
    auto made = std::make_unique<npu4_model>();
    made->device = device;
    made->code_bytes = parts.binary.size();
    made->share = MemoryShare(device->ledger, made->code_bytes, "the kernels");
    made->program = build(*device, parts);
    made->plan = std::move(parts.plan);
    place_weights(*made, *args);
    npu4_model_info filled{};
    filled.flags = NPU4_RELEASES_BLOB | NPU4_RELEASES_WEIGHTS;
    if (info != nullptr) fill(info, filled);
    *model = made.release();
  });
}

void model_free(npu4_model* model) { delete model; }

}  // namespace npu::opencl
