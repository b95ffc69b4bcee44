// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.hpp"

namespace npu::onednn {

/// What an entry of a blob is made of. All spans and texts point into the blob that was read.
struct BlobView {
  std::string_view name;
  std::span<const std::byte> plan;  ///< of write_plan
  std::string_view report;          ///< JSON, for npu_backend::blob_report
  std::vector<PackedConstant> constants;
};

/// A part of a blob, in bytes.
struct BlobRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// Takes the bytes of a blob, one piece after the other.
using PieceSink = std::function<void(const void* data, std::uint64_t size)>;

/// Writes a blob with the constants 64-byte aligned behind a boundary of 4096 bytes. `packer` makes
/// each as it is written.
void write_blob(std::span<const std::byte> plan, std::string_view report, ConstantPacker& packer,
                const PieceSink& put);

/// Writes a blob of several entries, whose constants are in it once if their bytes are the same.
class EntriesWriter {
 public:
  explicit EntriesWriter(PieceSink put);
  /// An entry; its constants are made and written now.
  void add(const std::string& name, std::span<const std::byte> plan, const std::string& report,
           ConstantPacker& packer);
  /// Once all entries are there.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::vector<std::byte> plan;
    std::string report;
    std::vector<BlobRange> table;
  };
  BlobRange append(const void* data, std::uint64_t size, std::uint64_t alignment);

  PieceSink put_;
  std::uint64_t written_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, BlobRange> constants_;  // by size and digest
};

/// The name of the entry of a blob that write_blob has written.
inline constexpr std::string_view kOnlyEntry = "main";

/// Reads and checks the parts of a blob, of which there is at least one entry: magic, the format of
/// its plan, counts, offsets, sizes; a plan is checked by whoever restores it. Throws Error
/// kInvalidGraph.
std::vector<BlobView> read_blob(const void* data, std::uint64_t size);
/// The entry of a name; the first one if that is null. Throws Error kInvalidGraph if there is none.
BlobView read_entry(const void* data, std::uint64_t size, const char* name);

}  // namespace npu::onednn
