// SPDX-License-Identifier: Apache-2.0
// To be preloaded, between the opencl backend and the loader: counts the objects that the backend
// makes and releases, and lets its calls fail as those of drivers do that pocl never shows.
//
//   NPU_TEST_CL_FAIL=CALL:FIRST:LAST:CODE,...   calls FIRST to LAST of CALL, from 1, fail with
//   CODE; LAST 0: all from FIRST on NPU_TEST_CL_COUNTS=FILE                     written at the end:
//   objects by kind, made, most at once, and left over NPU_TEST_CL_HANG=FILE a build writes FILE
//   and never ends
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

namespace {

enum Kind : std::size_t { kContext, kQueue, kMemory, kProgram, kKernel, kEvent, kKinds };

struct Count {
  long made = 0;
  long live = 0;
  long most = 0;
};

struct Fault {
  std::string call;
  long first = 0;
  long last = 0;
  cl_int code = CL_SUCCESS;
};

std::vector<Fault> read_faults() {
  std::vector<Fault> faults;
  const char* text = std::getenv("NPU_TEST_CL_FAIL");
  std::istringstream all(text == nullptr ? "" : text);
  for (std::string each; std::getline(all, each, ',');) {
    std::istringstream parts(each);
    Fault fault;
    std::string numbers;
    std::getline(parts, fault.call, ':');
    std::getline(parts, numbers);
    if (std::sscanf(numbers.c_str(), "%ld:%ld:%d", &fault.first, &fault.last, &fault.code) != 3) {
      std::fprintf(stderr, "NPU_TEST_CL_FAIL: expected CALL:FIRST:LAST:CODE, found %s\n",
                   each.c_str());
      std::abort();
    }
    faults.push_back(std::move(fault));
  }
  return faults;
}

class Layer {
 public:
  Layer() : faults_(read_faults()) {}
  ~Layer() {
    const char* path = std::getenv("NPU_TEST_CL_COUNTS");
    const bool is_used = counts_[kContext].made != 0;  // not by timeout(1), say
    std::FILE* file = path == nullptr || !is_used ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    constexpr std::array<const char*, kKinds> kNames = {"contexts", "queues",  "memory",
                                                        "programs", "kernels", "events"};
    for (std::size_t k = 0; k < kKinds; ++k) {
      std::fprintf(file, "%s made %ld most %ld left %ld\n", kNames[k], counts_[k].made,
                   counts_[k].most, counts_[k].live);
    }
    std::fclose(file);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// What this call of it fails with.
  cl_int fault(const std::string& call) {
    const std::lock_guard lock(mutex_);
    const long number = ++calls_[call];
    for (const Fault& each : faults_) {
      if (each.call == call && number >= each.first && (each.last == 0 || number <= each.last)) {
        return each.code;
      }
    }
    return CL_SUCCESS;
  }
  void make(Kind kind) {
    const std::lock_guard lock(mutex_);
    Count& count = counts_[kind];
    ++count.made;
    if (++count.live > count.most) count.most = count.live;
  }
  void release(Kind kind) {
    const std::lock_guard lock(mutex_);
    --counts_[kind].live;
  }

 private:
  std::mutex mutex_;
  std::vector<Fault> faults_;
  std::map<std::string, long> calls_;
  std::array<Count, kKinds> counts_;
};

Layer& layer() {
  static Layer made;
  return made;
}

// Before the backend, whose objects are released at the end, too.
const Layer& at_start = layer();

template <typename Function>
Function* real(const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  if (found == nullptr) std::abort();
  return found;
}

template <typename Function, typename... Arguments>
auto create(Kind kind, const char* name, Function* /*self*/, cl_int* code, Arguments... arguments) {
  using Object = decltype(std::declval<Function*>()(arguments..., code));
  if (const cl_int fault = layer().fault(name); fault != CL_SUCCESS) {
    if (code != nullptr) *code = fault;
    return Object{nullptr};
  }
  Object object = real<Function>(name)(arguments..., code);
  if (object != nullptr) layer().make(kind);
  return object;
}

template <typename Function, typename... Arguments>
cl_int pass(const char* name, Function* /*self*/, Arguments... arguments) {
  const cl_int fault = layer().fault(name);
  return fault != CL_SUCCESS ? fault : real<Function>(name)(arguments...);
}

template <typename Function, typename Object>
cl_int release(Kind kind, const char* name, Function* /*self*/, Object object) {
  layer().release(kind);
  return real<Function>(name)(object);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count,
                           const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*, std::size_t, void*),
                           void* data, cl_int* code) {
  return create(kContext, __func__, &clCreateContext, code, properties, count, devices, notify,
                data);
}
cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int* code) {
  return create(kQueue, __func__, &clCreateCommandQueue, code, context, device, properties);
}
cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, std::size_t size, void* host,
                      cl_int* code) {
  return create(kMemory, __func__, &clCreateBuffer, code, context, flags, size, host);
}
cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts,
                                     const std::size_t* sizes, cl_int* code) {
  return create(kProgram, __func__, &clCreateProgramWithSource, code, context, count, texts, sizes);
}
cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                     const std::size_t* sizes, const unsigned char** binaries,
                                     cl_int* status, cl_int* code) {
  return create(kProgram, __func__, &clCreateProgramWithBinary, code, context, count, devices,
                sizes, binaries, status);
}
cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* code) {
  return create(kKernel, __func__, &clCreateKernel, code, program, name);
}

cl_int clReleaseContext(cl_context object) {
  return release(kContext, __func__, &clReleaseContext, object);
}
cl_int clReleaseCommandQueue(cl_command_queue object) {
  return release(kQueue, __func__, &clReleaseCommandQueue, object);
}
cl_int clReleaseMemObject(cl_mem object) {
  return release(kMemory, __func__, &clReleaseMemObject, object);
}
cl_int clReleaseProgram(cl_program object) {
  return release(kProgram, __func__, &clReleaseProgram, object);
}
cl_int clReleaseKernel(cl_kernel object) {
  return release(kKernel, __func__, &clReleaseKernel, object);
}
cl_int clReleaseEvent(cl_event object) {
  return release(kEvent, __func__, &clReleaseEvent, object);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                      const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                      void* data) {
  if (const char* path = std::getenv("NPU_TEST_CL_HANG")) {
    if (std::FILE* file = std::fopen(path, "w")) std::fclose(file);
    for (;;) ::pause();
  }
  return pass(__func__, &clBuildProgram, program, count, devices, options, notify, data);
}
cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const std::size_t* offset, const std::size_t* global,
                              const std::size_t* local, cl_uint wait_count, const cl_event* wait,
                              cl_event* event) {
  const cl_int code = pass(__func__, &clEnqueueNDRangeKernel, queue, kernel, dimensions, offset,
                           global, local, wait_count, wait, event);
  if (code == CL_SUCCESS && event != nullptr) layer().make(kEvent);
  return code;
}
cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                            std::size_t offset, std::size_t size, const void* data,
                            cl_uint wait_count, const cl_event* wait, cl_event* event) {
  const cl_int code = pass(__func__, &clEnqueueWriteBuffer, queue, buffer, blocking, offset, size,
                           data, wait_count, wait, event);
  if (code == CL_SUCCESS && event != nullptr) layer().make(kEvent);
  return code;
}
cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                           std::size_t offset, std::size_t size, void* data, cl_uint wait_count,
                           const cl_event* wait, cl_event* event) {
  return pass(__func__, &clEnqueueReadBuffer, queue, buffer, blocking, offset, size, data,
              wait_count, wait, event);
}
cl_int clFinish(cl_command_queue queue) { return pass(__func__, &clFinish, queue); }

}  // extern "C"
#pragma GCC visibility pop
