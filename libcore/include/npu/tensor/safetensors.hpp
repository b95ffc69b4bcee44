// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/file_io.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// One tensor of a safetensors file: offsets are relative to the data section.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Checks and lists a safetensors header (format: github.com/huggingface/safetensors): an 8-byte
/// little-endian header length, a JSON object, then the data section. Offsets must lie inside it,
/// match dtype and shape, and cover it without gaps or overlaps. Messages call the input `file`.
/// Throws Error kParse. `data_begin` receives the offset of the data section.
std::vector<SafetensorsEntry> parse_safetensors(std::string_view bytes, const std::string& file,
                                                std::size_t& data_begin);

/// A safetensors file, mapped. Tensors share the mapping: nothing is copied unless a tensor is not
/// aligned to its element size.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const noexcept { return file_->path(); }
  /// Sorted by name.
  const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  const SafetensorsEntry* find(std::string_view name) const noexcept;
  /// Throws Error kParse if a bool tensor holds a byte other than 0 or 1.
  Tensor tensor(const SafetensorsEntry& entry) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::size_t data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

/// Writes tensors in the given order, bit for bit, atomically.
void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace npu
