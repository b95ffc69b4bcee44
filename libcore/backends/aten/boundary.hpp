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
#include "ir/sub_ir_aliases.hpp"
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
  std::vector<npu::AliasPair> aliases;
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
  std::vector<npu::AliasPair> aliases;
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

/// The guarded of all backends, in inference mode.
template <typename Body>
npu_status guarded(npu_error* error, Body body) noexcept {
  return npu::guarded(error, [&body] {
    const c10::InferenceMode inference;
    body();
  });
}

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

/// The functions of the table that are not in aten_backend.cpp.
#define NPU_FUNCTIONS                                                                           \
  buffer_create, buffer_wrap, buffer_free, buffer_write, buffer_read, buffer_map, buffer_unmap, \
      blob_memory, blob_report, model_memory, device_memory
NPU_EACH(NPU_DECLARE, NPU_FUNCTIONS)

}  // namespace npu::aten
