// SPDX-License-Identifier: Apache-2.0
// What the files of the boundary share: the objects that the host holds, and how errors cross.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/built_programs.hpp"
#include "driver/clock.hpp"
#include "driver/device.hpp"
#include "emit/machine.hpp"
#include "kit/boundary.hpp"
#include "lowering/plan.hpp"
#include "npu/backend.h"

struct npu_device : npu::opencl::OpenDevice {
  using OpenDevice::OpenDevice;

  npu::opencl::Machine machine;
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
/// The kernel of a launch, which is all of its program, with the bounds that it is passed. Throws
/// StatusError for a launch that does not fit its kernel.
ClKernel make_kernel(cl_program program, const Launch& launch);
/// An argument is a piece of memory and an offset in it.
void set_argument(cl_kernel kernel, std::size_t number, cl_mem memory, std::uint64_t offset);
/// `event` may be null.
void enqueue_launch(cl_command_queue queue, cl_kernel kernel, const Launch& launch,
                    cl_event* event);

/// The functions of the table.
#define NPU_FUNCTIONS                                                                             \
  backend_info, device_info, device_open, device_close, compile, model_load, model_free,          \
      program_create, program_free, buffer_create, buffer_free, run, buffer_write, buffer_read,   \
      buffer_map, buffer_unmap, weights_load, weights_free, blob_report, blob_check, blob_memory, \
      model_memory, device_memory, list_ops, queue_open, queue_close, queue_flush, queue_finish,  \
      submit, submit_write, submit_read, event_wait, event_free, event_on_done, buffer_copy,      \
      check, clock_sample
NPU_EACH(NPU_DECLARE, NPU_FUNCTIONS)

}  // namespace npu::opencl
