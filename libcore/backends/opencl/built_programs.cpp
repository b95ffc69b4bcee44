// SPDX-License-Identifier: Apache-2.0
// Building programs: a source is built once for a device, whichever models need it, and a few
// kernels at a time, since no driver ends a build that has begun.
#include "built_programs.hpp"

#include <algorithm>

#include "boundary.hpp"

namespace npu::opencl {
namespace {

// Warnings would be written to standard error by some drivers.
constexpr const char* kBuildOptions = "-cl-std=CL1.2 -w";

/// Programs that no model uses stay until so many others have been asked for.
constexpr std::size_t kKept = 32;

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) {
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  }
  std::replace(log.begin(), log.end(), '\n', ' ');
  log.erase(std::find(log.begin(), log.end(), '\0'), log.end());
  return log;
}

/// Null if the driver does not take the binary.
ClProgram build_binary(const npu_device& device, std::string_view binary) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t size = binary.size();
  cl_int code = CL_SUCCESS;
  cl_int status = CL_SUCCESS;
  ClProgram program(clCreateProgramWithBinary(device.context.get(), 1, &device.facts->device, &size,
                                              &bytes, &status, &code));
  if (code != CL_SUCCESS || status != CL_SUCCESS) return {};
  code = clBuildProgram(program.get(), 1, &device.facts->device, kBuildOptions, nullptr, nullptr);
  if (code != CL_SUCCESS) return {};
  return program;
}

/// Empty if the driver gives none.
std::string binary_of(cl_program program) {
  std::size_t size = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
      CL_SUCCESS) {
    return {};
  }
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) {
    return {};
  }
  return binary;
}

}  // namespace

ClProgram build_source(const npu_device& device, std::string_view source) {
  const char* text = source.data();
  const std::size_t size = source.size();
  cl_int code = CL_SUCCESS;
  ClProgram program(clCreateProgramWithSource(device.context.get(), 1, &text, &size, &code));
  check_cl(code, "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &device.facts->device, kBuildOptions, nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE) {
    throw StatusError{NPU_INTERNAL, "the driver does not compile the kernels: " +
                                        build_log(program.get(), device.facts->device)};
  }
  check_cl(code, "clBuildProgram");
  return program;
}

std::shared_ptr<BuiltProgram> ProgramStore::of(std::string_view source) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(
      programs_, source, [](const auto& each) -> std::string_view { return each.first; });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
  } else {
    programs_.emplace_front(std::string(source), std::make_shared<BuiltProgram>());
    if (programs_.size() > kKept) programs_.pop_back();
  }
  return programs_.front().second;
}

Programs build_sources(npu_device& device, const Plan& plan, std::string_view source,
                       const std::function<void(std::size_t done, std::size_t total)>& progress) {
  Programs programs;
  for (const std::string_view each : pieces_of(plan, source, &ProgramPart::source_bytes)) {
    progress(programs.size(), plan.programs.size());
    std::shared_ptr<BuiltProgram> built = device.programs.of(each);
    bool is_from_binary = false;
    {
      const std::lock_guard lock(built->mutex);
      if (!built->program) built->program = build_source(device, each);
      is_from_binary = built->is_from_binary;
    }
    if (is_from_binary) {
      // Its own binary may be another than that of a program of the source.
      built = std::make_shared<BuiltProgram>();
      built->program = build_source(device, each);
    }
    programs.push_back(std::move(built));
  }
  return programs;
}

Programs build_binaries(npu_device& device, const Plan& plan, std::string_view source,
                        std::string_view binary) {
  const auto sources = pieces_of(plan, source, &ProgramPart::source_bytes);
  const auto binaries = pieces_of(plan, binary, &ProgramPart::binary_bytes);
  Programs programs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::shared_ptr<BuiltProgram> built = device.programs.of(sources[i]);
    {
      const std::lock_guard lock(built->mutex);
      if (!built->program && !binaries[i].empty()) {
        built->program = build_binary(device, binaries[i]);
        built->is_from_binary = static_cast<bool>(built->program);
      }
      if (!built->program) built->program = build_source(device, sources[i]);
    }
    programs.push_back(std::move(built));
  }
  return programs;
}

std::string binaries_of(const Programs& programs, Plan& plan) {
  std::string all;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const std::lock_guard lock(programs[i]->mutex);
    const std::string binary = binary_of(programs[i]->program.get());
    plan.programs[i].binary_bytes = binary.size();
    all += binary;
  }
  return all;
}

}  // namespace npu::opencl
