// SPDX-License-Identifier: Apache-2.0
// What models take of the host's memory, which is the device's. Constants are used in the blob; the
// arena depends on the number of threads, so the descriptors of a blob's primitives are made to
// know it, as a load makes them, but no code is generated and nothing is allocated. Not counted:
// code, which oneDNN does not measure, and copies of constants in a blob that is not aligned.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "abi/boundary.hpp"
#include "program/blob.hpp"
#include "program/plan_format.hpp"
#include "program/stored_plan.hpp"
#include "program/thread_scope.hpp"
#include "support/checked.hpp"

namespace npu::onednn::abi {
namespace {

std::uint64_t bytes_of(const std::vector<TensorBinding>& tensors) {
  std::uint64_t sum = 0;
  for (const TensorBinding& tensor : tensors) {
    // Of a plan that was checked.
    sum += static_cast<std::uint64_t>(checked_element_count(tensor.shape).value_or(0)) *
           dtype_size(tensor.dtype);
  }
  return sum;
}

}  // namespace

npu_memory_bytes constant_bytes(const std::vector<BlobView>& entries, std::uint64_t blob_size) {
  npu_memory_bytes bytes{};
  std::set<std::pair<const std::byte*, std::size_t>> counted;
  for (const BlobView& entry : entries) {
    for (const PackedConstant& constant : entry.constants) {
      if (!counted.insert({constant.bytes.data(), constant.bytes.size()}).second) continue;
      bytes.weights_bytes += constant.bytes.size();
    }
  }
  bytes.other_bytes = blob_size - std::min(blob_size, bytes.weights_bytes);
  return bytes;
}

void add_program_bytes(npu_memory_bytes& bytes, const Plan& plan) {
  bytes.scratch_bytes = std::max<std::uint64_t>(bytes.scratch_bytes, plan.arena_bytes);
  bytes.boundary_bytes =
      std::max(bytes.boundary_bytes, bytes_of(plan.inputs) + bytes_of(plan.outputs));
}

namespace {

/// With one program: of several entries, the one that takes the most. Restores all of their plans.
npu_memory_bytes model_bytes(npu_device& device, const void* blob, std::uint64_t blob_size) {
  const std::vector<BlobView> entries = read_blob(blob, blob_size);
  npu_memory_bytes bytes = constant_bytes(entries, blob_size);
  const ThreadScope threads(device.threads);
  for (const BlobView& entry : entries) {
    add_program_bytes(bytes, restore_plan(read_plan(entry.plan), entry.constants, device.engine,
                                          {device.threads, device.threads}));
  }
  return bytes;
}

}  // namespace

npu_status blob_memory(npu_device* device, const void* blob, std::uint64_t blob_size,
                       npu_memory_report* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(device);
    fill_report(report, model_bytes(*device, blob, blob_size), NPU_MEMORY_EXACT);
  });
}

npu_status model_memory(npu_model* model, npu_memory_report* report, npu_error* error) {
  return guarded(error, [&] {
    require_given(model);
    // Of the entries that there are programs of: others need not be restored.
    const bool is_known = model->bytes.boundary_bytes != 0;
    fill_report(
        report,
        is_known ? model->bytes : model_bytes(*model->device, model->blob, model->blob_size),
        NPU_MEMORY_EXACT);
  });
}

npu_status device_memory(npu_device* device, std::uint32_t memory, npu_memory_state* state,
                         npu_error* error) {
  return guarded(error, [&] {
    require_given(device, state);
    require(memory == 0, "there is one memory");
    fill(state, device->ledger->state());
  });
}

}  // namespace npu::onednn::abi
