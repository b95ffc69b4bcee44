// SPDX-License-Identifier: Apache-2.0
// What the files of the boundary share: the objects that the host holds, and how errors cross.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aten_types.hpp"
#include "npu/backend.h"
#include "op_registry.hpp"
#include "program.hpp"

namespace npu::aten {

/// State of an open device; programs share it, so that the order in which the host frees things
/// does not matter.
struct DeviceState {
  int threads = 1;
  BuildOptions build;
  OpRegistry registry;
  std::shared_ptr<MemoryLedger> ledger;
  explicit DeviceState(const std::vector<std::string>& custom_ops) : registry(custom_ops) {}
};

/// Weights by name, over the host's memory.
using WeightTensors = std::map<std::string, at::Tensor, std::less<>>;

}  // namespace npu::aten

struct npu_device {
  std::shared_ptr<npu::aten::DeviceState> state;
};

struct npu_weights {
  npu::aten::WeightTensors tensors;
  npu::MemoryShare share;
};

struct npu_model {
  std::shared_ptr<npu::aten::DeviceState> state;
  std::string_view text;  // in the blob
  npu::aten::WeightTensors weights;
  npu_memory_bytes bytes{};  ///< with one program
  npu::MemoryShare share;    ///< of weights and blob
  /// Shows at once whether the blob loads; the first program_create takes it.
  std::optional<npu::aten::Program> first;
  npu::MemoryShare first_share;
};

struct npu_program {
  std::shared_ptr<npu::aten::DeviceState> state;
  npu::aten::Program program;
  npu::MemoryShare share;
  npu::RunBreak stop = {};
};

struct npu_buffer {
  at::Tensor tensor;  // contiguous; undefined until there is something in it
  npu_dtype dtype;
  npu::Shape shape;
  bool is_seen = false;  // mapped or of the host: results are copied into it
  npu::MemoryShare share;
};

namespace npu::aten {

void write_error(npu_error* error, npu_status status, std::string_view text);

/// The status and text of an exception that is being handled.
npu_status current_status(npu_error* error) noexcept;

/// Runs the body of a call and turns exceptions into a status.
template <typename Body>
npu_status guarded(npu_error* error, Body body) noexcept {
  try {
    const c10::InferenceMode inference;
    body();
    return NPU_OK;
  } catch (...) {
    return current_status(error);
  }
}

[[noreturn]] inline void invalid(std::string text) {
  throw StatusError(NPU_INVALID, std::move(text));
}

inline void require(const void* pointer, std::string_view what) {
  if (pointer == nullptr) invalid(fmt::format("{} is null", what));
}

/// Checks a host's description of a tensor, except its data.
Shape checked_shape(std::string_view what, npu_dtype dtype, std::uint32_t rank,
                    const std::int64_t* shape, std::uint64_t bytes);
at::TensorOptions options_of(npu_dtype dtype);
/// `tensor` as an at::Tensor over the same memory; a copy if it is not aligned to its elements.
at::Tensor wrap_weight(const npu_tensor& tensor);
/// Host memory, in which everything lies.
const npu_memory_info& memory_info();
/// What is in a buffer; zeros of no meaning if nothing was yet.
at::Tensor& tensor_in(npu_buffer& buffer);

/// The text of the sub-IR in a blob. Throws StatusError.
std::string_view blob_text(const void* blob, std::uint64_t size);
/// What a model of a graph takes, with one program; `blob_size` bytes of a blob are kept.
npu_memory_bytes model_bytes(const Graph& graph, std::uint64_t blob_size);

// ---- functions of the table

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error);
npu_status buffer_wrap(npu_device* device, const npu_buffer_desc* desc,
                       const npu_external* external, npu_buffer** buffer, npu_error* error);
void buffer_free(npu_buffer* buffer);
npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);
npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);
npu_status buffer_map(npu_buffer* buffer, std::uint32_t access, void** pointer, npu_error* error);
void buffer_unmap(npu_buffer* buffer);
npu_status blob_memory(npu_device* device, const void* blob, std::uint64_t blob_size,
                       npu_memory_report* report, npu_error* error);
npu_status model_memory(npu_model* model, npu_memory_report* report, npu_error* error);
npu_status device_memory(npu_device* device, std::uint32_t memory, npu_memory_state* state,
                         npu_error* error);

}  // namespace npu::aten
