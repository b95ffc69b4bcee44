// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "npu/backend.h"
#include "program/program.hpp"

namespace npu::onednn {

/// What a blob is made of. All spans and texts point into the blob that was read.
struct BlobView {
  std::string_view sub_ir;
  std::string_view options;  ///< JSON: what compile was told, and with how many threads
  std::string_view report;   ///< JSON, for npu_backend_api::blob_report
  std::vector<PackedConstant> constants;
};

/// Writes a blob with the constants 64-byte aligned behind a boundary of 4096 bytes. The memory is
/// malloc's.
npu_blob write_blob(const BlobView& content);
/// Reads and checks the parts of a blob: magic, counts, offsets, sizes; the contents of the texts
/// are checked by whoever parses them. Throws Error kInvalidGraph.
BlobView read_blob(const void* data, std::uint64_t size);

}  // namespace npu::onednn
