// SPDX-License-Identifier: Apache-2.0
// What the files of the boundary share: the objects that the host holds, and how errors cross.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "built_programs.hpp"
#include "cl_handle.hpp"
#include "clock.hpp"
#include "device/backend_boundary.hpp"
#include "device_list.hpp"
#include "npu/backend.h"
#include "plan.hpp"

struct npu4_device {
  const npu::opencl::DeviceFacts* facts = nullptr;
  npu::opencl::Machine machine;
  npu::opencl::ClContext context;
  npu::opencl::ClQueue queue;  ///< of blocking calls; with times
  std::shared_ptr<npu::MemoryLedger> ledger;
  npu::opencl::ProgramStore programs;
  npu::opencl::DeviceClock clock;
  bool measures = false;  ///< a compile measures sizes that the machine has none of
};

struct npu4_buffer {
  npu4_device* device = nullptr;
  npu::DType dtype = npu::DType::kFloat32;
  npu::Shape shape;
  std::uint64_t bytes = 0;
  npu::MemoryShare share;
  npu::opencl::ClMemory memory;  ///< null for 0 bytes
  void* mapped = nullptr;
};

/// Tensors in one piece of device memory.
struct npu4_weights {
  npu::MemoryShare share;
  npu::opencl::ClMemory memory;
  std::map<std::string, std::pair<npu::opencl::PlanTensor, std::uint64_t>> offsets;
};

struct npu4_model {
  npu4_device* device = nullptr;
  npu::opencl::Plan plan;
  npu::opencl::Programs programs;
  npu4_weights own;
  /// By the plan's weights.
  std::vector<std::pair<cl_mem, std::uint64_t>> weights;
  npu::MemoryShare share;  ///< of code
  std::uint64_t code_bytes = 0;
};

struct npu4_program {
  npu4_model* model = nullptr;
  npu::MemoryShare share;
  npu::opencl::ClMemory scratch;
  npu::MemoryShare faults_share;
  npu::opencl::ClMemory faults;                ///< a word each; null if the plan has none
  std::vector<npu::opencl::ClKernel> kernels;  ///< one for each launch, which keep their arguments
};

namespace npu::opencl {

/// The status and text of an exception that is being handled.
npu4_status current_status(npu4_error* error) noexcept;

/// Runs `body`; no exception leaves it.
template <typename Body>
npu4_status guarded(npu4_error* error, Body&& body) noexcept {
  try {
    body();
    return NPU4_OK;
  } catch (...) {
    return current_status(error);
  }
}

/// What a tensor takes of a piece of memory with others.
constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Why nothing is compiled in the precision that the options of a compile or a question ask for;
/// empty if it is. Throws Error for malformed options.
std::string precision_refusal(const char* options);

/// Device memory, counted; throws MemoryLimitError with numbers if there is not as much.
ClMemory allocate(npu4_device& device, std::uint64_t bytes, MemoryShare& share, const char* what);

/// Fits arguments to the program; throws StatusError.
void check_run(const npu4_program& program, const npu4_run_args& args);
/// Enqueues a run and waits for it. What is checked already.
void run_on(npu4_program& program, const npu4_run_args& args, cl_command_queue queue);
void transfer_on(npu4_buffer& buffer, const npu4_transfer& transfer, bool writes,
                 cl_command_queue queue);
void copy_on(npu4_buffer& source, npu4_buffer& destination, cl_command_queue queue);
void check_transfer(const npu4_buffer* buffer, const npu4_transfer* transfer);
void check_copy(const npu4_buffer* source, const npu4_buffer* destination);
ClQueue make_queue(const npu4_device& device);
/// The kernel of a launch, by its number in its program, with the bounds that it is passed. Throws
/// StatusError for a launch that does not fit its kernel.
ClKernel make_kernel(cl_program program, std::uint64_t number, const Launch& launch);
/// An argument is a piece of memory and an offset in it.
void set_argument(cl_kernel kernel, std::size_t number, cl_mem memory, std::uint64_t offset);
/// `event` may be null.
void enqueue_launch(cl_command_queue queue, cl_kernel kernel, const Launch& launch,
                    cl_event* event);

// ---- Functions of the table, by file ----

// infos.cpp
npu4_status backend_info(npu4_backend_info* info, npu4_error* error);
npu4_status device_info(std::uint64_t index, npu4_device_info* info, npu4_error* error);
npu4_status device_open(const npu4_open_args* args, npu4_device** device, npu4_error* error);
void device_close(npu4_device* device);
npu4_status device_memory(npu4_device* device, std::uint32_t memory, npu4_memory_state* state,
                          npu4_error* error);
// clock.cpp
npu4_status clock_sample(npu4_device* device, npu4_clock_sample* sample, npu4_error* error);
// buffers.cpp
npu4_status buffer_create(npu4_device* device, const npu4_buffer_desc* desc, npu4_buffer** buffer,
                          npu4_error* error);
void buffer_free(npu4_buffer* buffer);
npu4_status buffer_write(npu4_buffer* buffer, const npu4_transfer* transfer, npu4_error* error);
npu4_status buffer_read(npu4_buffer* buffer, const npu4_transfer* transfer, npu4_error* error);
npu4_status buffer_map(npu4_buffer* buffer, std::uint32_t access, void** pointer,
                       npu4_error* error);
void buffer_unmap(npu4_buffer* buffer);
// models.cpp
npu4_status compile(npu4_device* device, const npu4_compile_args* args, npu4_error* error);
npu4_status blob_report(npu4_device* device, const void* blob, std::uint64_t size,
                        const npu4_writer* report, npu4_error* error);
npu4_status blob_check(npu4_device* device, const void* blob, std::uint64_t size,
                       npu4_blob_verdict* verdict, npu4_error* error);
npu4_status blob_memory(npu4_device* device, const void* blob, std::uint64_t size,
                        npu4_memory_report* report, npu4_error* error);
npu4_status model_memory(npu4_model* model, npu4_memory_report* report, npu4_error* error);
npu4_status weights_load(npu4_device* device, const npu4_tensor* const* tensors,
                         std::uint64_t count, npu4_model_info* info, npu4_weights** weights,
                         npu4_error* error);
void weights_free(npu4_weights* weights);
npu4_status model_load(npu4_device* device, const npu4_load_args* args, npu4_model_info* info,
                       npu4_model** model, npu4_error* error);
void model_free(npu4_model* model);
// programs.cpp
npu4_status program_create(npu4_model* model, const npu4_program_args* args, npu4_program** program,
                           npu4_error* error);
void program_free(npu4_program* program);
npu4_status run(npu4_program* program, const npu4_run_args* args, npu4_error* error);
// questions.cpp
npu4_status check(npu4_device* device, const npu4_check_args* args, npu4_error* error);
// queues.cpp
npu4_status queue_open(npu4_device* device, const npu4_queue_args* args, npu4_queue** queue,
                       npu4_error* error);
void queue_close(npu4_queue* queue);
npu4_status queue_flush(npu4_queue* queue, npu4_error* error);
npu4_status queue_finish(npu4_queue* queue, npu4_error* error);
npu4_status submit(npu4_program* program, const npu4_run_args* args, const npu4_enqueue* where,
                   npu4_event** event, npu4_error* error);
npu4_status submit_write(npu4_buffer* buffer, const npu4_transfer* transfer,
                         const npu4_enqueue* where, npu4_event** event, npu4_error* error);
npu4_status submit_read(npu4_buffer* buffer, const npu4_transfer* transfer,
                        const npu4_enqueue* where, npu4_event** event, npu4_error* error);
npu4_status event_wait(npu4_event* event, std::uint64_t timeout_ns, npu4_error* error);
void event_free(npu4_event* event);
npu4_status event_on_done(npu4_event* event, npu4_done callback, void* context, npu4_error* error);
npu4_status buffer_copy(npu4_buffer* source, npu4_buffer* destination, const npu4_enqueue* where,
                        npu4_event** event, npu4_error* error);

}  // namespace npu::opencl
