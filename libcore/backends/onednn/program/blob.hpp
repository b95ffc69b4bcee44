// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.hpp"

namespace npu::onednn {

/// What a blob is made of. All spans and texts point into the blob that was read.
struct BlobView {
  std::span<const std::byte> plan;  ///< of write_plan
  std::string_view report;          ///< JSON, for npu_backend::blob_report
  std::vector<PackedConstant> constants;
};

/// Takes the bytes of a blob, one piece after the other.
using PieceSink = std::function<void(const void* data, std::uint64_t size)>;

/// Writes a blob with the constants 64-byte aligned behind a boundary of 4096 bytes. `packer` makes
/// each as it is written.
void write_blob(std::span<const std::byte> plan, std::string_view report, ConstantPacker& packer,
                const PieceSink& put);
/// Reads and checks the parts of a blob: magic, the format of its plan, counts, offsets, sizes; the
/// plan is checked by whoever restores it. Throws Error kInvalidGraph.
BlobView read_blob(const void* data, std::uint64_t size);

}  // namespace npu::onednn
