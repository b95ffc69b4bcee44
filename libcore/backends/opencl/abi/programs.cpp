// SPDX-License-Identifier: Apache-2.0
// Runs: the launches of a plan, one after the other in an in-order queue. A program has kernels of
// its own, since their arguments belong to them: those of scratch memory and weights are set once,
// those of inputs and outputs by each run. A state may have one buffer for both, see plan.hpp.
#include <algorithm>
#include <span>
#include <utility>

#include "abi/boundary.hpp"

namespace npu::opencl {
namespace {

std::string tensor_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

void check_buffer(const npu_buffer* buffer, const PlanTensor& tensor, const char* kind) {
  require(buffer != nullptr, "a buffer is null");
  if (buffer->dtype == tensor.dtype && buffer->shape == tensor.shape) return;
  throw StatusError{NPU_INVALID, std::string(kind) + " '" + tensor.name + "': expected " +
                                     tensor_text(tensor.dtype, tensor.shape) + ", found " +
                                     tensor_text(buffer->dtype, buffer->shape)};
}

}  // namespace

void set_argument(cl_kernel kernel, std::size_t number, cl_mem memory, std::uint64_t offset) {
  const auto first = static_cast<cl_uint>(2 * number);
  check_cl(clSetKernelArg(kernel, first, sizeof(void*), &memory), "clSetKernelArg");
  const cl_ulong bytes = offset;
  check_cl(clSetKernelArg(kernel, first + 1, sizeof bytes, &bytes), "clSetKernelArg");
}

ClKernel make_kernel(cl_program program, const Launch& launch) {
  cl_int code = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(program, "k", &code));
  check_cl(code, "clCreateKernel");
  cl_uint arguments = 0;
  check_cl(clGetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr),
           "clGetKernelInfo");
  const std::size_t places = 2 * launch.arguments.size();
  require(arguments == places + launch.sizes.size(), "a kernel has another number of arguments");
  for (std::size_t i = 0; i < launch.sizes.size(); ++i) {
    const auto size = static_cast<cl_long>(launch.sizes[i]);
    check_cl(clSetKernelArg(kernel.get(), static_cast<cl_uint>(places + i), sizeof size, &size),
             "clSetKernelArg");
  }
  return kernel;
}

void enqueue_launch(cl_command_queue queue, cl_kernel kernel, const Launch& launch,
                    cl_event* event) {
  const std::size_t global[3] = {launch.global[0], launch.global[1], launch.global[2]};
  const std::size_t local[3] = {launch.local[0], launch.local[1], launch.local[2]};
  check_cl(clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, local, 0, nullptr, event),
           "clEnqueueNDRangeKernel");
}

namespace {

void clear_faults(npu_program& program, cl_command_queue queue) {
  const std::vector<FaultWord> none(program.model->plan.faults.size(), 0);
  check_cl(clEnqueueWriteBuffer(queue, program.faults.get(), CL_TRUE, 0,
                                none.size() * sizeof(FaultWord), none.data(), 0, nullptr, nullptr),
           "clEnqueueWriteBuffer");
}

/// After a run that ended before anybody looked: what its kernels met is not the next run's.
void forget_faults(npu_program& program, cl_command_queue queue) {
  if (program.model->plan.faults.empty()) return;
  try {
    clear_faults(program, queue);
  } catch (const ClError&) {
    // A queue that takes nothing any more has no next run.
  }
}

/// The words of the faults, read behind the launches of a run: they are there when its queue is
/// done, without another wait.
std::vector<FaultWord> read_faults(const npu_program& program, cl_command_queue queue) {
  std::vector<FaultWord> words(program.model->plan.faults.size(), 0);
  if (words.empty()) return words;
  check_cl(clEnqueueReadBuffer(queue, program.faults.get(), CL_FALSE, 0,
                               words.size() * sizeof(FaultWord), words.data(), 0, nullptr, nullptr),
           "clEnqueueReadBuffer");
  return words;
}

/// Throws StatusError if a kernel of the run met one.
void check_faults(npu_program& program, const std::vector<FaultWord>& words,
                  cl_command_queue queue) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0) continue;
    clear_faults(program, queue);
    throw StatusError{NPU_FAILED, program.model->plan.faults[i]};
  }
}

void make_kernels(npu_program& program) {
  const npu_model& model = *program.model;
  for (const Launch& launch : model.plan.launches) {
    ClKernel kernel = make_kernel(model.programs[launch.kernel]->program.get(), launch);
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const Place& place = launch.arguments[i];
      if (place.kind == PlaceKind::kScratch) {
        set_argument(kernel.get(), i, program.scratch.get(), place.value);
      } else if (place.kind == PlaceKind::kFault) {
        set_argument(kernel.get(), i, program.faults.get(), place.value * sizeof(FaultWord));
      } else if (place.kind == PlaceKind::kWeight) {
        const auto& [memory, offset] = model.weights[static_cast<std::size_t>(place.value)];
        set_argument(kernel.get(), i, memory, offset);
      }
    }
    program.kernels.push_back(std::move(kernel));
  }
}

/// When a launch began and ended on the device's clock.
npu_span span_of(const ClEvent& event) {
  cl_ulong begin = 0;
  cl_ulong end = 0;
  const bool is_known = clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_START,
                                                sizeof begin, &begin, nullptr) == CL_SUCCESS &&
                        clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof end,
                                                &end, nullptr) == CL_SUCCESS;
  if (!is_known || end < begin) return {0, 0, 0};
  return {begin, end, NPU_SPAN_DURATION | NPU_SPAN_PLACED};
}

void fill_profile(const Plan& plan, const std::vector<ClEvent>& events, npu_profile& profile) {
  for (std::uint64_t i = 0; i < profile.node_count; ++i) {
    profile.nodes[i] = {0, 0, NPU_SPAN_DURATION};
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const npu_span span = span_of(events[i]);
    if (profile.step_count != 0) profile.steps[i] = span;
    if (i == 0) profile.whole = span;
    if (span.end > profile.whole.end) profile.whole.end = span.end;
    if (profile.node_count == 0 || plan.launches[i].nodes.empty()) continue;
    npu_span& node = profile.nodes[plan.launches[i].nodes.front()];
    // Placed where its first launch begins; what lies between its launches is not its time.
    if (node.flags == NPU_SPAN_DURATION && span.flags != 0) {
      node = {span.begin, span.begin, span.flags};
    }
    node.end += span.end - span.begin;
  }
}

void check_profile(const Plan& plan, const npu_profile& profile) {
  require(profile.step_count == 0 ||
              (profile.steps != nullptr && profile.step_count == plan.launches.size()),
          "another number of steps than the program has");
  require(profile.node_count == 0 || (profile.nodes != nullptr && profile.node_count == plan.nodes),
          "another number of nodes than the program has");
}

npu_profile* profile_of(const npu_run_args& args) {
  return NPU_HAS(&args, profile) ? args.profile : nullptr;
}

}  // namespace

npu_status program_create(npu_model* model, const npu_program_args* /*args*/, npu_program** program,
                          npu_error* error) {
  return guarded(error, [&] {
    require_given(model, program);
    auto made = std::make_unique<npu_program>();
    made->model = model;
    made->scratch = allocate(*model->device, model->plan.scratch_bytes, made->share,
                             "the program's scratch memory");
    if (const std::size_t count = model->plan.faults.size(); count != 0) {
      made->faults = allocate(*model->device, count * sizeof(FaultWord), made->faults_share,
                              "the program's faults");
      clear_faults(*made, model->device->queue.get());
    }
    make_kernels(*made);
    *program = made.release();
  });
}

void program_free(npu_program* program) { delete program; }

namespace {

/// Whether an output is the buffer of no input but that which it is paired with.
bool is_apart_or_paired(const Plan& plan, std::span<npu_buffer* const> inputs,
                        const npu_buffer* output, std::size_t number) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != output) continue;
    const bool is_paired = std::ranges::any_of(plan.aliases, [&](const PlanAlias& alias) {
      return alias.input == i && alias.output == number;
    });
    if (!is_paired) return false;
  }
  return true;
}

}  // namespace

void check_run(const npu_program& program, const npu_run_args& args) {
  const Plan& plan = program.model->plan;
  require(args.input_count == plan.inputs.size(), "another number of inputs than the program has");
  require(args.output_count == plan.outputs.size(),
          "another number of outputs than the program has");
  require(args.inputs != nullptr || args.input_count == 0, "inputs is null");
  require(args.outputs != nullptr || args.output_count == 0, "outputs is null");
  const std::span<npu_buffer* const> inputs(args.inputs, plan.inputs.size());
  const std::span<npu_buffer* const> outputs(args.outputs, plan.outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_buffer(inputs[i], plan.inputs[i], "input");
    require(inputs[i]->device == program.model->device, "an input is another device's");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_buffer(outputs[i], plan.outputs[i], "output");
    require(outputs[i]->device == program.model->device, "an output is another device's");
    const auto before = outputs.first(i);
    const bool is_new = is_apart_or_paired(plan, inputs, outputs[i], i) &&
                        std::ranges::find(before, outputs[i]) == before.end();
    require(is_new, "an output buffer is passed twice, or as an input, too");
  }
  if (const npu_profile* profile = profile_of(args)) check_profile(plan, *profile);
}

namespace {

/// Waits for what was enqueued even if a later launch fails: its buffers may go then.
class Drain {
 public:
  explicit Drain(cl_command_queue queue) : queue_(queue) {}
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;
  ~Drain() {
    if (queue_ != nullptr) clFinish(queue_);
  }
  void finish() { check_cl(clFinish(std::exchange(queue_, nullptr)), "clFinish"); }

 private:
  cl_command_queue queue_;
};

void copy_state(cl_command_queue queue, cl_mem from, std::uint64_t offset, const npu_buffer& to) {
  if (to.bytes == 0) return;
  check_cl(clEnqueueCopyBuffer(queue, from, to.memory.get(), static_cast<std::size_t>(offset), 0,
                               static_cast<std::size_t>(to.bytes), 0, nullptr, nullptr),
           "clEnqueueCopyBuffer");
}

/// Where a state has two buffers, its kernels find in the second what the first one holds.
void fill_second_buffers(const npu_run_args& args, const Plan& plan, cl_command_queue queue) {
  for (const PlanAlias& alias : plan.aliases) {
    const npu_buffer* from = args.inputs[alias.input];
    const npu_buffer* to = args.outputs[alias.output];
    if (alias.is_in_place && from != to) copy_state(queue, from->memory.get(), 0, *to);
  }
}

/// States that something reads until the end, or that no kernel can write where they lie.
void copy_states(const npu_program& program, const npu_run_args& args, cl_command_queue queue) {
  for (const PlanAlias& alias : program.model->plan.aliases) {
    if (alias.is_in_place) continue;
    copy_state(queue, program.scratch.get(), alias.offset, *args.outputs[alias.output]);
  }
}

void launch_all(npu_program& program, const npu_run_args& args, cl_command_queue queue) {
  const Plan& plan = program.model->plan;
  npu_profile* profile = profile_of(args);
  std::vector<ClEvent> events;
  std::vector<FaultWord> faults;
  Drain drain(queue);  // before what the driver writes to goes
  fill_second_buffers(args, plan, queue);
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    cl_kernel kernel = program.kernels[i].get();
    for (std::size_t a = 0; a < launch.arguments.size(); ++a) {
      const Place& place = launch.arguments[a];
      const auto which = static_cast<std::size_t>(place.value);
      if (place.kind == PlaceKind::kInput) {
        set_argument(kernel, a, args.inputs[which]->memory.get(), 0);
      } else if (place.kind == PlaceKind::kOutput) {
        set_argument(kernel, a, args.outputs[which]->memory.get(), 0);
      }
    }
    cl_event event = nullptr;
    enqueue_launch(queue, kernel, launch, profile != nullptr ? &event : nullptr);
    if (event != nullptr) events.emplace_back(event);
  }
  copy_states(program, args, queue);
  faults = read_faults(program, queue);
  drain.finish();
  check_faults(program, faults, queue);
  if (profile != nullptr) fill_profile(plan, events, *profile);
}

}  // namespace

void run_on(npu_program& program, const npu_run_args& args, cl_command_queue queue) {
  try {
    launch_all(program, args, queue);
  } catch (ClError& failure) {
    forget_faults(program, queue);
    if (!is_out_of_memory(failure.code)) throw;
    // Drivers may look for memory only when a kernel is to run.
    const npu_device& device = *program.model->device;
    failure.asked_bytes = device.ledger->state().in_use_bytes;
    failure.there_bytes = device.facts->memory_bytes;
    throw;
  }
}

npu_status run(npu_program* program, const npu_run_args* args, npu_error* error) {
  return guarded(error, [&] {
    require(program != nullptr, "program is null");
    require(args != nullptr && NPU_HAS(args, output_count), "the arguments are null");
    check_run(*program, *args);
    run_on(*program, *args, program->model->device->queue.get());
  });
}

}  // namespace npu::opencl
