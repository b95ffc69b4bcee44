// SPDX-License-Identifier: Apache-2.0
// Reads rows of a file in blocks: rows that lie close together are read at once, and what is
// between them is read over. No page of the file is mapped, so what it takes of memory is a block.
// O(bytes read).
#include "gnn/exchange/row_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/open_file.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {
namespace {

constexpr std::size_t kLongestBlock = std::size_t{1} << 20;
constexpr std::size_t kLongestGap = std::size_t{16} << 10;  // as soon read over as sought

}  // namespace

RowFile RowFile::of_features(const std::string& path, const std::vector<std::int32_t>& nodes,
                             const Shape& shape) {
  const NpyLayout layout = npy_layout(path);
  if (layout.dtype != DType::kFloat32 || layout.shape != shape) {
    throw Error(ErrorCode::kInvalidGraph,
                "the features are " + std::string(dtype_name(layout.dtype)) + " " +
                    shape_text(layout.shape) + ", expected float32 " + shape_text(shape),
                {.file = path});
  }
  if (layout.fortran_order) {
    throw Error(ErrorCode::kInvalidGraph,
                "the features are in Fortran order, of which no rows can be read alone: write them "
                "in C order",
                {.file = path});
  }
  RowFile rows(path, open_to_read(path).descriptor, shape[1]);
  rows.header_ = layout.offset;
  rows.nodes_ = &nodes;
  return rows;
}

RowFile RowFile::scratch(const std::string& folder, std::int64_t width) {
  Descriptor file = open_scratch_file(folder);
  if (file.get() < 0) fail_io(folder, "cannot make a file for rows", errno);
  return {folder + ": rows between layers", std::move(file), width};
}

std::size_t RowFile::offset_of(std::int32_t row) const noexcept {
  const std::int32_t place = nodes_ == nullptr ? row : (*nodes_)[index_of(row)];
  return header_ + index_of(place) * row_bytes();
}

void RowFile::read_block(std::size_t offset, std::size_t bytes) {
  if (block_.size() < bytes) block_.resize(bytes);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(file_.get(), block_.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_io(name_, "cannot read", errno);
    if (got == 0) throw Error(ErrorCode::kIo, "was cut short while it was read", {.file = name_});
    done += static_cast<std::size_t>(got);
  }
  ++reads_.blocks;
  reads_.bytes += static_cast<std::int64_t>(bytes);
}

void RowFile::read(std::span<const RowToRead> rows, float* memory) {
  const std::size_t bytes = row_bytes();
  reads_.rows += static_cast<std::int64_t>(rows.size());
  for (std::size_t i = 0; i < rows.size() && bytes > 0;) {
    const std::size_t begin = offset_of(rows[i].row);
    std::size_t end = begin + bytes;
    std::size_t last = i + 1;
    for (; last < rows.size(); ++last) {
      const std::size_t next = offset_of(rows[last].row);
      if (next < end || next > end + kLongestGap ||
          next + bytes > begin + std::max(kLongestBlock, bytes))
        break;
      end = next + bytes;
    }
    read_block(begin, end - begin);
    for (; i < last; ++i) {
      std::memcpy(memory + rows[i].place * width_, block_.data() + (offset_of(rows[i].row) - begin),
                  bytes);
    }
  }
}

void RowFile::write(std::int64_t first, const float* rows, std::int64_t count) {
  std::string_view left(reinterpret_cast<const char*>(rows), index_of(count) * row_bytes());
  std::size_t offset = index_of(first) * row_bytes();
  while (!left.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), left.data(), left.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_io(name_, "cannot write", errno);
    left.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::size_t>(written);
  }
}

}  // namespace npu::gnn
