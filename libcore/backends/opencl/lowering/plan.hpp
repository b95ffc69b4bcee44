// SPDX-License-Identifier: Apache-2.0
// A sub-IR as kernels and the memory that they read and write.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu::opencl {

struct PlanTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t bytes = 0;
};

/// kFault: a word that a kernel sets if an index that it reads is outside its dimension.
enum class PlaceKind : std::uint8_t { kInput, kOutput, kWeight, kScratch, kFault };

/// What an argument of a kernel points to.
struct Place {
  PlaceKind kind = PlaceKind::kScratch;
  std::uint64_t value = 0;  ///< which tensor or fault, or the offset in scratch memory
};

struct Launch {
  std::size_t kernel = 0;
  std::vector<Place> arguments;
  std::array<std::uint64_t, 3> global{1, 1, 1};
  std::array<std::uint64_t, 3> local{1, 1, 1};
  std::vector<std::uint64_t> nodes;  ///< of the sub-IR; its time counts for the first
  std::vector<std::uint64_t> sizes;  ///< bounds that the kernel is passed behind its arguments
};

/// pocl has one form of a kernel for small ranges and one for any.
constexpr bool is_small_range(const std::array<std::uint64_t, 3>& global) {
  constexpr std::uint64_t kSmall = 65535;
  return global[0] <= kSmall && global[1] <= kSmall && global[2] <= kSmall;
}

/// A kernel, called k, which the driver builds alone, so that every model that has it shares it.
struct ProgramPart {
  std::uint64_t source_bytes = 0;  ///< of the plan's source, one program's behind the other's
  std::uint64_t binary_bytes = 0;  ///< likewise
};

/// An output that a run may be given in the buffer of an input, a state.
struct PlanAlias {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  /// Kernels find the input where they write the output, and change a part of it. Otherwise they
  /// leave the output at `offset` in scratch memory, from where it is copied when all are done.
  bool is_in_place = false;
  std::uint64_t offset = 0;
};

struct Plan {
  std::vector<PlanTensor> inputs;
  std::vector<PlanTensor> outputs;
  std::vector<PlanTensor> weights;
  std::vector<Launch> launches;
  std::vector<PlanAlias> aliases;
  std::vector<std::string> faults;    ///< what each says of itself
  std::vector<ProgramPart> programs;  ///< by the number of the kernel
  std::uint64_t nodes = 0;
  std::uint64_t scratch_bytes = 0;
};

/// A word of the faults of a program.
using FaultWord = std::int32_t;

}  // namespace npu::opencl
