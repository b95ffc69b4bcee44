// SPDX-License-Identifier: Apache-2.0
// A plan and its programs as the bytes that a host keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/plan.hpp"

namespace npu::opencl {

/// The pieces of a text that belong to the programs; `bytes` says how long they are.
std::vector<std::string_view> pieces_of(const Plan& plan, std::string_view text,
                                        std::uint64_t ProgramPart::*bytes);

/// What a blob holds.
struct BlobParts {
  Plan plan;
  std::string_view report;
  std::string_view fingerprint;  ///< of the device that `binary` is for
  std::string_view source;
  std::string_view binary;  ///< the driver's, of each program; may be empty
};

/// The blob in pieces that are written one after the other.
std::vector<std::string> write_blob(const Plan& plan, std::string_view report,
                                    std::string_view fingerprint, std::string_view source,
                                    std::string_view binary);
/// Views of `blob`. Throws Error kInvalidGraph for what write_blob did not write.
BlobParts read_blob(const void* blob, std::uint64_t size);

}  // namespace npu::opencl
