// SPDX-License-Identifier: Apache-2.0
// Building programs: one for each kernel, so that models share those that they have in common, and
// so that a compile can be stopped between two of them. The binary of a program is made by a build
// of its source alone, and is the same whichever model asked for it first.
#include "driver/built_programs.hpp"

#include <algorithm>

#include "kit/boundary.hpp"

namespace npu::opencl {
namespace {

// Warnings would be written to standard error by some drivers.
constexpr const char* kBuildOptions = "-cl-std=CL1.2 -w";

/// Programs that no model uses stay until so many others have been asked for.
constexpr std::size_t kKept = 256;

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
ClProgram build_binary(const OpenDevice& device, std::string_view binary) {
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

npu_status append(void* context, const void* data, std::uint64_t size, npu_error* /*error*/) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                             static_cast<std::size_t>(size));
  return NPU_OK;
}

/// What an earlier compile made of a source; empty if there is none.
std::string find_piece(const npu_piece_cache* pieces, std::string_view source) {
  if (pieces == nullptr) return {};
  std::string binary;
  const npu_writer writer{sizeof writer, &binary, append};
  npu_error error{};
  error.struct_size = sizeof error;
  const npu_status status =
      pieces->find(pieces->context, source.data(), source.size(), &writer, &error);
  return status == NPU_OK ? binary : std::string();
}

}  // namespace

ClProgram build_source(const OpenDevice& device, std::string_view source) {
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

std::vector<std::string> compile_programs(const OpenDevice& device, ProgramStore& store,
                                          const std::vector<std::string_view>& sources,
                                          const npu_piece_cache* pieces, const BuildSteps& steps) {
  std::vector<std::string> binaries(sources.size());
  std::vector<ClProgram> made(sources.size());
  std::vector<cl_program> to_finish(sources.size(), nullptr);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    steps.progress(i);
    binaries[i] = find_piece(pieces, sources[i]);
    if (!binaries[i].empty()) continue;
    made[i] = build_source(device, sources[i]);
    to_finish[i] = made[i].get();
  }
  const bool is_whole = steps.finish(to_finish);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!made[i]) continue;
    binaries[i] = binary_of(made[i].get());
    if (is_whole && pieces != nullptr && !binaries[i].empty()) {
      pieces->keep(pieces->context, sources[i].data(), sources[i].size(), binaries[i].data(),
                   binaries[i].size());
    }
    // For a model that is loaded in this process.
    const std::shared_ptr<BuiltProgram> built = store.of(sources[i]);
    const std::lock_guard lock(built->mutex);
    if (!built->program) built->program = std::move(made[i]);
  }
  return binaries;
}

Programs load_programs(const OpenDevice& device, ProgramStore& store,
                       const std::vector<std::string_view>& sources,
                       const std::vector<std::string_view>& binaries) {
  Programs programs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::shared_ptr<BuiltProgram> built = store.of(sources[i]);
    {
      const std::lock_guard lock(built->mutex);
      if (!built->program && i < binaries.size() && !binaries[i].empty()) {
        built->program = build_binary(device, binaries[i]);
      }
      if (!built->program) built->program = build_source(device, sources[i]);
    }
    programs.push_back(std::move(built));
  }
  return programs;
}

}  // namespace npu::opencl
