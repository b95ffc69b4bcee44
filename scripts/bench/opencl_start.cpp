// SPDX-License-Identifier: Apache-2.0
// What an OpenCL driver alone needs for a second start: it is opened, a binary that it has built
// before is loaded, and one kernel of it runs. scripts/check/opencl.sh --start measures npu-run
// beside it.
//
//   opencl_start --write FILE   builds the kernel, runs it, and writes the driver's binary
//   opencl_start FILE           runs it from the binary
//
// Exits with 1 and the call that failed. The device is the first one that npu-run takes, too: a
// graphics card if there is one, else that of the first platform that has one.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

namespace {

constexpr cl_uint kElements = 64;
constexpr const char* kSource = R"cl(
__kernel void doubled(__global float* x) { x[get_global_id(0)] *= 2; }
)cl";

void check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "opencl_start: %s failed: %d\n", call, code);
  std::exit(1);
}

cl_device_id first_device() {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  check(clGetPlatformIDs(platforms.size(), platforms.data(), &count), "clGetPlatformIDs");
  for (const cl_device_type type :
       std::array<cl_device_type, 2>{CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL}) {
    for (cl_uint i = 0; i < count && i < platforms.size(); ++i) {
      cl_device_id device = nullptr;
      if (clGetDeviceIDs(platforms[i], type, 1, &device, nullptr) == CL_SUCCESS) return device;
    }
  }
  check(CL_DEVICE_NOT_FOUND, "clGetDeviceIDs");
  return nullptr;
}

cl_program from_binary(cl_context context, cl_device_id device, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  cl_int code = CL_SUCCESS;
  cl_program program =
      clCreateProgramWithBinary(context, 1, &device, &size, &bytes, nullptr, &code);
  check(code, "clCreateProgramWithBinary");
  return program;
}

cl_program from_source(cl_context context) {
  const char* text = kSource;
  cl_int code = CL_SUCCESS;
  cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  return program;
}

/// One kernel, with its input written and its result read.
void run(cl_context context, cl_device_id device, cl_program program) {
  cl_int code = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check(code, "clCreateCommandQueue");
  cl_kernel kernel = clCreateKernel(program, "doubled", &code);
  check(code, "clCreateKernel");
  std::array<float, kElements> values{};
  values.fill(1.5F);
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof values, nullptr, &code);
  check(code, "clCreateBuffer");
  check(clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, sizeof values, values.data(), 0, nullptr,
                             nullptr),
        "clEnqueueWriteBuffer");
  check(clSetKernelArg(kernel, 0, sizeof(void*), &memory), "clSetKernelArg");
  const std::size_t global = kElements;
  const std::size_t local = kElements;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof values, values.data(), 0, nullptr,
                            nullptr),
        "clEnqueueReadBuffer");
  for (const float value : values) check(value == 3.0F ? CL_SUCCESS : CL_INVALID_VALUE, "doubled");
  clReleaseMemObject(memory);
  clReleaseKernel(kernel);
  clReleaseCommandQueue(queue);
}

/// After a run, since some drivers finish a kernel when it is first started.
void write_binary(cl_program program, const char* path) {
  std::size_t size = 0;
  check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr),
        "clGetProgramInfo");
  std::vector<unsigned char> binary(size);
  unsigned char* bytes = binary.data();
  check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr),
        "clGetProgramInfo");
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(binary.data()), static_cast<std::streamsize>(size));
  if (!file.flush()) check(CL_OUT_OF_HOST_MEMORY, "writing the binary");
}

}  // namespace

int main(int argc, char** argv) {
  const bool writes = argc == 3 && std::strcmp(argv[1], "--write") == 0;
  if (!writes && argc != 2) {
    std::fprintf(stderr, "usage: opencl_start [--write] FILE\n");
    return 2;
  }
  cl_device_id device = first_device();
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  cl_program program = writes ? from_source(context) : from_binary(context, device, argv[1]);
  check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  run(context, device, program);
  if (writes) write_binary(program, argv[2]);
  clReleaseProgram(program);
  clReleaseContext(context);
  return 0;
}
