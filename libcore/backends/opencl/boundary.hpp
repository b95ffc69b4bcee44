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

struct npu_device {
  const npu::opencl::DeviceFacts* facts = nullptr;
  npu::opencl::Machine machine;
  npu::opencl::ClContext context;
  npu::opencl::ClQueue queue;  ///< of blocking calls; with times
  std::shared_ptr<npu::MemoryLedger> ledger;
  npu::opencl::ProgramStore programs;
  npu::opencl::DeviceClock clock;
  bool measures = false;  ///< a compile measures sizes that the machine has none of
};

struct npu_buffer {
  npu_device* device = nullptr;
  npu::DType dtype = npu::DType::kFloat32;
  npu::Shape shape;
  std::uint64_t bytes = 0;
  npu::MemoryShare share;
  npu::opencl::ClMemory memory;  ///< null for 0 bytes
  void* mapped = nullptr;
};

/// Tensors in one piece of device memory.
struct npu_weights {
  npu::MemoryShare share;
  npu::opencl::ClMemory memory;
  std::map<std::string, std::pair<npu::opencl::PlanTensor, std::uint64_t>> offsets;
};

struct npu_model {
  npu_device* device = nullptr;
  npu::opencl::Plan plan;
  npu::opencl::Programs programs;
  npu_weights own;
  /// By the plan's weights.
  std::vector<std::pair<cl_mem, std::uint64_t>> weights;
  npu::MemoryShare share;  ///< of code
  std::uint64_t code_bytes = 0;
};

struct npu_program {
  npu_model* model = nullptr;
  npu::MemoryShare share;
  npu::opencl::ClMemory scratch;
  npu::MemoryShare faults_share;
  npu::opencl::ClMemory faults;                ///< a word each; null if the plan has none
  std::vector<npu::opencl::ClKernel> kernels;  ///< one for each launch, which keep their arguments
};

namespace npu::opencl {

/// The status and text of an exception that is being handled.
npu_status current_status(npu_error* error) noexcept;

/// Runs `body`; no exception leaves it.
template <typename Body>
npu_status guarded(npu_error* error, Body&& body) noexcept {
  try {
    body();
    return NPU_OK;
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
ClMemory allocate(npu_device& device, std::uint64_t bytes, MemoryShare& share, const char* what);

/// Fits arguments to the program; throws StatusError.
void check_run(const npu_program& program, const npu_run_args& args);
/// Enqueues a run and waits for it. What is checked already.
void run_on(npu_program& program, const npu_run_args& args, cl_command_queue queue);
void transfer_on(npu_buffer& buffer, const npu_transfer& transfer, bool writes,
                 cl_command_queue queue);
void copy_on(npu_buffer& source, npu_buffer& destination, cl_command_queue queue);
void check_transfer(const npu_buffer* buffer, const npu_transfer* transfer);
void check_copy(const npu_buffer* source, const npu_buffer* destination);
ClQueue make_queue(const npu_device& device);
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
npu_status backend_info(npu_backend_info* info, npu_error* error);
npu_status device_info(std::uint64_t index, npu_device_info* info, npu_error* error);
npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error);
void device_close(npu_device* device);
npu_status device_memory(npu_device* device, std::uint32_t memory, npu_memory_state* state,
                         npu_error* error);
// clock.cpp
npu_status clock_sample(npu_device* device, npu_clock_sample* sample, npu_error* error);
// buffers.cpp
npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error);
void buffer_free(npu_buffer* buffer);
npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);
npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);
npu_status buffer_map(npu_buffer* buffer, std::uint32_t access, void** pointer, npu_error* error);
void buffer_unmap(npu_buffer* buffer);
// models.cpp
npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error);
npu_status blob_report(npu_device* device, const void* blob, std::uint64_t size,
                       const npu_writer* report, npu_error* error);
npu_status blob_check(npu_device* device, const void* blob, std::uint64_t size,
                      npu_blob_verdict* verdict, npu_error* error);
npu_status blob_memory(npu_device* device, const void* blob, std::uint64_t size,
                       npu_memory_report* report, npu_error* error);
npu_status model_memory(npu_model* model, npu_memory_report* report, npu_error* error);
npu_status weights_load(npu_device* device, const npu_tensor* const* tensors, std::uint64_t count,
                        npu_model_info* info, npu_weights** weights, npu_error* error);
void weights_free(npu_weights* weights);
npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                      npu_model** model, npu_error* error);
void model_free(npu_model* model);
// programs.cpp
npu_status program_create(npu_model* model, const npu_program_args* args, npu_program** program,
                          npu_error* error);
void program_free(npu_program* program);
npu_status run(npu_program* program, const npu_run_args* args, npu_error* error);
// questions.cpp
npu_status check(npu_device* device, const npu_check_args* args, npu_error* error);
// queues.cpp
npu_status queue_open(npu_device* device, const npu_queue_args* args, npu_queue** queue,
                      npu_error* error);
void queue_close(npu_queue* queue);
npu_status queue_flush(npu_queue* queue, npu_error* error);
npu_status queue_finish(npu_queue* queue, npu_error* error);
npu_status submit(npu_program* program, const npu_run_args* args, const npu_enqueue* where,
                  npu_event** event, npu_error* error);
npu_status submit_write(npu_buffer* buffer, const npu_transfer* transfer, const npu_enqueue* where,
                        npu_event** event, npu_error* error);
npu_status submit_read(npu_buffer* buffer, const npu_transfer* transfer, const npu_enqueue* where,
                       npu_event** event, npu_error* error);
npu_status event_wait(npu_event* event, std::uint64_t timeout_ns, npu_error* error);
void event_free(npu_event* event);
npu_status event_on_done(npu_event* event, npu_done callback, void* context, npu_error* error);
npu_status buffer_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                       npu_event** event, npu_error* error);

}  // namespace npu::opencl
