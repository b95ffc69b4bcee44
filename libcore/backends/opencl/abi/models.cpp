// SPDX-License-Identifier: Apache-2.0
// Compiling, blobs and models.
//
// compile writes the kernels' source and the driver's binary of it into the blob; model_load takes
// the binary if the blob is of this very device and driver, and the source otherwise. Weights are
// uploaded once for each model, or for all models that share them, into one piece of memory.
#include <algorithm>
#include <cstring>

#include "abi/boundary.hpp"
#include "abi/first_start.hpp"
#include "abi/tuning.hpp"
#include "kit/questions.hpp"
#include "lowering/blob.hpp"
#include "lowering/lower_graph.hpp"

namespace npu::opencl {
namespace {

Programs build(npu_device& device, const BlobParts& parts) {
  const auto sources = pieces_of(parts.plan, parts.source, &ProgramPart::source_bytes);
  std::vector<std::string_view> binaries;
  if (parts.fingerprint == device.facts->fingerprint) {
    binaries = pieces_of(parts.plan, parts.binary, &ProgramPart::binary_bytes);
  }
  return load_programs(device, device.programs, sources, binaries);
}

/// The driver's binaries of a graph's programs in a row, with their sizes in the plan.
std::string build_binaries(npu_device& device, LoweredGraph& lowered, const npu_piece_cache* pieces,
                           const HostProgress& progress) {
  const auto sources = pieces_of(lowered.plan, lowered.source, &ProgramPart::source_bytes);
  const auto finish = [&](const std::vector<cl_program>& programs) {
    return start_kernels(device, lowered.plan, programs, [&](std::size_t done, std::size_t total) {
      progress(done, total, "finishing kernels");
    });
  };
  const std::vector<std::string> binaries = compile_programs(
      device, device.programs, sources, pieces,
      {[&](std::size_t done) { progress(done, sources.size(), "building kernels"); }, finish});
  std::string all;
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    lowered.plan.programs[i].binary_bytes = binaries[i].size();
    all += binaries[i];
  }
  return all;
}

/// The report with what was measured.
std::string with_measured(const std::string& report,
                          const std::map<std::string, std::vector<std::int64_t>>& measured) {
  if (measured.empty()) return report;
  Json json = parse_json(report, "report");
  Json& tuned = json["tuned"] = Json::object();
  for (const auto& [kernel, sizes] : measured) tuned[kernel] = sizes;
  return json.dump();
}

std::uint64_t sum_of(const std::vector<PlanTensor>& tensors) {
  std::uint64_t sum = 0;
  for (const PlanTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

npu_memory_bytes bytes_of(const BlobParts& parts) {
  npu_memory_bytes bytes{};
  for (const PlanTensor& weight : parts.plan.weights) bytes.weights_bytes += aligned(weight.bytes);
  bytes.scratch_bytes = parts.plan.scratch_bytes + parts.plan.faults.size() * sizeof(FaultWord);
  bytes.boundary_bytes = sum_of(parts.plan.inputs) + sum_of(parts.plan.outputs);
  bytes.other_bytes = parts.binary.size();
  return bytes;
}

PlanTensor tensor_of_host(const npu_tensor* tensor) {
  require(tensor != nullptr && NPU_HAS(tensor, bytes) && tensor->name != nullptr,
          "a weight is null or has no name");
  require(tensor->dtype < kDTypeCount, "a weight has an unknown dtype");
  require(tensor->shape != nullptr || tensor->rank == 0, "a weight has a rank but no shape");
  require(tensor->data != nullptr || tensor->bytes == 0, "a weight has no data");
  PlanTensor result{tensor->name, static_cast<DType>(tensor->dtype), {}, tensor->bytes};
  if (tensor->rank != 0) result.shape.assign(tensor->shape, tensor->shape + tensor->rank);
  return result;
}

/// Uploads tensors one behind the other.
void upload(npu_device& device, const std::vector<const npu_tensor*>& tensors,
            npu_weights& target) {
  std::uint64_t bytes = 0;
  for (const npu_tensor* tensor : tensors) {
    target.offsets.emplace(tensor->name, std::pair{tensor_of_host(tensor), bytes});
    bytes += aligned(tensor->bytes);
  }
  target.memory = allocate(device, bytes, target.share, "the weights");
  for (const npu_tensor* tensor : tensors) {
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
  throw StatusError{NPU_INVALID, "weight '" + wanted.name + "': expected " +
                                     std::string(dtype_name(wanted.dtype)) + " " +
                                     shape_text(wanted.shape) + ", found " +
                                     std::string(dtype_name(found.dtype)) + " " +
                                     shape_text(found.shape)};
}

/// Finds each weight of the plan among those shared and those given, and uploads the latter.
void place_weights(npu_model& model, const npu_load_args& args) {
  std::map<std::string, const npu_tensor*> given;
  for (std::uint64_t i = 0; i < args.weight_count; ++i) {
    const PlanTensor tensor = tensor_of_host(args.weights[i]);
    given.emplace(tensor.name, args.weights[i]);
  }
  const auto shared = [&](const std::string& name) -> const npu_weights* {
    for (std::uint64_t i = 0; i < args.shared_count; ++i) {
      if (args.shared[i] != nullptr && args.shared[i]->offsets.contains(name))
        return args.shared[i];
    }
    return nullptr;
  };
  std::vector<const npu_tensor*> own;
  for (const PlanTensor& weight : model.plan.weights) {
    if (shared(weight.name) != nullptr) continue;
    const auto found = given.find(weight.name);
    if (found == given.end()) {
      throw StatusError{NPU_INVALID, "weight '" + weight.name + "' is missing"};
    }
    own.push_back(found->second);
  }
  upload(*model.device, own, model.own);
  for (const PlanTensor& weight : model.plan.weights) {
    const npu_weights* from = shared(weight.name);
    if (from == nullptr) from = &model.own;
    const auto& [tensor, offset] = from->offsets.at(weight.name);
    check_weight(weight, tensor);
    model.weights.emplace_back(from->memory.get(), offset);
  }
}

}  // namespace

npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    const npu_entry& entry = only_entry(args);
    if (const std::string refusal = precision_refusal(args->options); !refusal.empty()) {
      throw StatusError{NPU_UNSUPPORTED, refusal};
    }
    const Graph graph = read_sub_ir(entry.sub_ir, entry.sub_ir_size);
    const HostProgress progress(*args);
    Machine machine = device->machine;
    std::map<std::string, std::vector<std::int64_t>> measured;
    if (device->measures) {
      measured = measure_sizes(*device, graph, machine, [&](std::size_t done, std::size_t total) {
        progress(done, total, "measuring kernels");
      });
    }
    LoweredGraph lowered = lower_graph(graph, machine, [&](std::size_t done, std::size_t total) {
      progress(done, total, "lowering");
    });
    const std::string binary =
        build_binaries(*device, lowered, NPU_HAS(args, pieces) ? args->pieces : nullptr, progress);
    progress(1, 1, "building kernels");
    for (const std::string& part : write_blob(lowered.plan, with_measured(lowered.report, measured),
                                              device->facts->fingerprint, lowered.source, binary)) {
      pieces_to(args->blob, error)(part.data(), part.size());
    }
  });
}

npu_status blob_report(npu_device* /*device*/, const void* blob, std::uint64_t size,
                       const npu_writer* report, npu_error* error) {
  return guarded(error, [&] {
    require(report != nullptr, "report is null");
    const std::string_view text = read_blob(blob, size).report;
    pieces_to(report, error)(text.data(), text.size());
  });
}

npu_status blob_check(npu_device* device, const void* blob, std::uint64_t size,
                      npu_blob_verdict* verdict, npu_error* error) {
  return guarded(error, [&] {
    require_given(device, verdict);
    const BlobParts parts = read_blob(blob, size);
    npu_blob_verdict filled{};
    if (parts.fingerprint != device->facts->fingerprint) {
      filled.verdict = NPU_BLOB_SLOW;
      const std::string reason = "its kernels are compiled again, since they are of '" +
                                 std::string(parts.fingerprint) + "'";
      std::memcpy(filled.reason, reason.data(), std::min(reason.size(), sizeof filled.reason - 1));
    }
    fill(verdict, filled);
  });
}

npu_status blob_memory(npu_device* /*device*/, const void* blob, std::uint64_t size,
                       npu_memory_report* report, npu_error* error) {
  return guarded(error,
                 [&] { fill_report(report, bytes_of(read_blob(blob, size)), NPU_MEMORY_BOUND); });
}

npu_status model_memory(npu_model* model, npu_memory_report* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(model);
    npu_memory_bytes bytes = bytes_of({model->plan, {}, {}, {}, {}});
    bytes.other_bytes = model->code_bytes;
    fill_report(report, bytes, NPU_MEMORY_BOUND);
  });
}

npu_status weights_load(npu_device* device, const npu_tensor* const* tensors, std::uint64_t count,
                        npu_model_info* info, npu_weights** weights, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && weights != nullptr && (tensors != nullptr || count == 0),
            "an argument is null");
    auto made = std::make_unique<npu_weights>();
    std::vector<const npu_tensor*> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      tensor_of_host(tensors[i]);
      all.push_back(tensors[i]);
    }
    upload(*device, all, *made);
    npu_model_info filled{};
    filled.flags = NPU_RELEASES_WEIGHTS;
    if (info != nullptr) fill(info, filled);
    *weights = made.release();
  });
}

void weights_free(npu_weights* weights) { delete weights; }

npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                      npu_model** model, npu_error* error) {
  return guarded(error, [&] {
    require(device != nullptr && args != nullptr && NPU_HAS(args, shared_count) && model != nullptr,
            "an argument is null");
    require(args->weights != nullptr || args->weight_count == 0, "weights is null");
    require(args->shared != nullptr || args->shared_count == 0, "shared is null");
    BlobParts parts = read_blob(args->blob, args->blob_size);
    auto made = std::make_unique<npu_model>();
    made->device = device;
    made->code_bytes = parts.binary.size();
    made->share = MemoryShare(device->ledger, made->code_bytes, "the kernels");
    made->programs = build(*device, parts);
    made->plan = std::move(parts.plan);
    place_weights(*made, *args);
    npu_model_info filled{};
    filled.flags = NPU_RELEASES_BLOB | NPU_RELEASES_WEIGHTS;
    if (info != nullptr) fill(info, filled);
    *model = made.release();
  });
}

void model_free(npu_model* model) { delete model; }

}  // namespace npu::opencl
