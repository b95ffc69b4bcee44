// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "support/descriptor.hpp"

namespace npu::gnn {

/// A row that is read, and where it goes.
struct RowToRead {
  std::int32_t row = 0;
  std::int64_t place = 0;  ///< row of the memory
};

/// What was read of a file.
struct RowReads {
  std::int64_t blocks = 0;  ///< pieces of the file, each read at once
  std::int64_t bytes = 0;
  std::int64_t rows = 0;  ///< of those that were asked for
};

/// float32 rows of the nodes that a rank owns, in a file: those of a .npy of all nodes, or a file
/// of this process alone. All functions throw Error kIo.
class RowFile {
 public:
  /// The rows `nodes` of a .npy of `shape`; refers to `nodes`. Throws Error kInvalidGraph for
  /// another type, shape or order, and for what is no regular file.
  static RowFile of_features(const std::string& path, const std::vector<std::int32_t>& nodes,
                             const Shape& shape);
  /// A new file in a folder, which ends with the object.
  static RowFile scratch(const std::string& folder, std::int64_t width);

  std::int64_t width() const noexcept { return width_; }
  /// Reads rows, which are ascending, in blocks of the file that hold several of them.
  void read(std::span<const RowToRead> rows, float* memory);
  /// Writes rows next to each other; only to a scratch file.
  void write(std::int64_t first, const float* rows, std::int64_t count);

  const RowReads& reads() const noexcept { return reads_; }

 private:
  RowFile(std::string name, Descriptor file, std::int64_t width)
      : name_(std::move(name)), file_(std::move(file)), width_(width) {}

  std::size_t row_bytes() const noexcept { return static_cast<std::size_t>(width_) * 4; }
  std::size_t offset_of(std::int32_t row) const noexcept;
  void read_block(std::size_t offset, std::size_t bytes);

  std::string name_;  // for messages
  Descriptor file_;
  std::int64_t width_ = 0;
  std::size_t header_ = 0;
  const std::vector<std::int32_t>* nodes_ = nullptr;  // row of the file by row; null: the same
  std::vector<std::byte> block_;
  RowReads reads_;
};

}  // namespace npu::gnn
