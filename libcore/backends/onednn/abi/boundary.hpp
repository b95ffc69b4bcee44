// SPDX-License-Identifier: Apache-2.0
// What the files of the boundary share: the objects that the host holds, and how errors cross.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kit/boundary.hpp"
#include "lowering/engine/lower_graph.hpp"
#include "npu/backend.h"
#include "npu/support/json.hpp"
#include "program/blob.hpp"
#include "program/program.hpp"
#include "support/run_threads.hpp"

namespace npu::onednn::abi {
/// Into Program::taps(), by name.
using TapNumbers = std::unordered_map<std::string, std::size_t>;
}  // namespace npu::onednn::abi

struct npu_device {
  dnnl::engine engine;
  npu::onednn::Machine machine;
  int threads = 1;
  npu::RunThreads run_threads{1};
  std::shared_ptr<npu::MemoryLedger> ledger;
};

struct npu_program {
  const npu_model* model = nullptr;
  std::string entry;
  std::unique_ptr<npu::onednn::Program> program;
  npu::MemoryShare share;
  /// For fewer threads than the device's, made when there is a neighbour; null if it cannot be
  /// made.
  std::unique_ptr<npu::onednn::Program> reduced;
  int reduced_threads = 0;               ///< those that `reduced` was made for
  std::vector<const std::byte*> inputs;  ///< reused by every run
  std::vector<std::byte*> outputs;
  npu::onednn::abi::TapNumbers tap_numbers;  ///< empty if it was not made for taps
  std::vector<npu::onednn::Program::TapTarget> taps;
  npu::RunBreak stop;
};

struct npu_model {
  npu_device* device = nullptr;
  const void* blob = nullptr;
  std::uint64_t blob_size = 0;
  /// Of constants and blob, and of the largest program that was made.
  npu_memory_bytes bytes{};
  npu::MemoryShare share;  ///< of constants and blob
  /// Shows at once whether a blob of one entry loads; the first program_create takes it.
  std::unique_ptr<npu_program> first;
};

struct npu_buffer {
  npu::DType dtype = npu::DType::kFloat32;
  npu::Shape shape;
  std::uint64_t bytes = 0;
  std::string layout;  ///< empty: row-major
  int threads = 1;     ///< of its device, for bringing it into a layout
  npu::MemoryShare share;
  npu::onednn::AlignedMemory memory;  ///< null for memory of the host
  std::byte* data = nullptr;
  bool is_writable = true;
};

namespace npu::onednn::abi {

/// "boundary_layouts" of the options of a question or a compile.
LayoutNames read_layouts(const Json& options);
/// Leaves out what is no layout of an input.
void drop_unknown(LayoutNames& layouts, const Graph& graph);
/// Leaves out the inputs that a plan brings into another layout. True if there were any.
bool drop_reordered(LayoutNames& layouts, const Plan& plan);
/// "boundaries" of an answer, by the plan that it is about.
Json boundary_answers(const Plan& plan);

/// What a model takes without programs, of a blob that has been checked: constants that entries
/// share count once.
npu_memory_bytes constant_bytes(const std::vector<BlobView>& entries, std::uint64_t blob_size);
/// Adds what a program takes, if none that is there takes more.
void add_program_bytes(npu_memory_bytes& bytes, const Plan& plan);

/// Throws StatusError for a buffer of another dtype or shape.
void check_buffer(const npu_buffer& buffer, const TensorBinding& binding, const char* kind);

TapNumbers number_taps(const Program& program);
/// Checks the taps of a run, whose other buffers have been checked, and puts them in their order.
void place_taps(npu_program& program, const npu_run_args& args);

/// The functions of the table that are not in backend.cpp.
#define NPU_FUNCTIONS                                                                            \
  backend_info, device_info, buffer_create, buffer_wrap, buffer_free, buffer_write, buffer_read, \
      buffer_map, buffer_unmap, blob_memory, model_memory, device_memory
NPU_EACH(NPU_DECLARE, NPU_FUNCTIONS)

}  // namespace npu::onednn::abi
