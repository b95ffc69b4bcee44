// SPDX-License-Identifier: Apache-2.0
// A sub-IR as kernels and the memory that they read and write.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu::opencl {

struct PlanTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t bytes = 0;
};

enum class PlaceKind : std::uint8_t { kInput, kOutput, kWeight, kScratch };

/// What an argument of a kernel points to.
struct Place {
  PlaceKind kind = PlaceKind::kScratch;
  std::uint64_t value = 0;  ///< which tensor, or the offset in scratch memory
};

struct Launch {
  std::uint64_t kernel = 0;
  std::vector<Place> arguments;
  std::array<std::uint64_t, 3> global{1, 1, 1};
  std::array<std::uint64_t, 3> local{1, 1, 1};
  std::vector<std::uint64_t> nodes;  ///< of the sub-IR; its time counts for the first
};

struct Plan {
  std::vector<PlanTensor> inputs;
  std::vector<PlanTensor> outputs;
  std::vector<PlanTensor> weights;
  std::vector<Launch> launches;
  std::uint64_t kernels = 0;  ///< in the source, named k0, k1, ...
  std::uint64_t nodes = 0;
  std::uint64_t scratch_bytes = 0;
};

/// What a blob holds.
struct BlobParts {
  Plan plan;
  std::string_view report;
  std::string_view fingerprint;  ///< of the device that `binary` is for
  std::string_view source;
  std::string_view binary;  ///< the driver's; may be empty
};

/// The blob in pieces that are written one after the other.
std::vector<std::string> write_blob(const Plan& plan, std::string_view report,
                                    std::string_view fingerprint, std::string_view source,
                                    std::string_view binary);
/// Views of `blob`. Throws Error kInvalidGraph for what write_blob did not write.
BlobParts read_blob(const void* blob, std::uint64_t size);

}  // namespace npu::opencl
