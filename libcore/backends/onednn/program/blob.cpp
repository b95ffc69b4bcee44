// SPDX-License-Identifier: Apache-2.0
// The file format of a compiled sub-IR.
//
// A header (magic; offset and size of three texts and of a table; total size), the texts, the table
// (offset, size and layout digest of every constant), then from a 4096-byte boundary on the
// constants, each 64-byte aligned. Nothing in it is an address, so it works wherever it is mapped.
// Numbers are the machine's own: a blob is bound to a CPU anyway, and the magic spells the byte
// order. The blob may come from a hostile file: every offset, size and count is checked before it
// is used; what the texts say is checked again when the sub-IR is lowered. O(bytes) to write,
// O(number of constants) to read.
#include "program/blob.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "npu/support/error.hpp"
#include "program/memory_plan.hpp"

namespace npu::onednn {

namespace {

constexpr std::uint64_t kMagic = 0x0232'6264'6e6e'646fU;  // "odnndb2\2", little endian
constexpr std::uint64_t kPage = 4096;

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t total = 0;
  Range sub_ir;
  Range options;
  Range report;
  Range table;
};

struct TableRow {
  Range data;
  std::uint64_t layout = 0;
};

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

[[noreturn]] void refuse(const char* text) { throw Error(ErrorCode::kInvalidGraph, text); }

const std::byte* checked(const std::byte* data, const Header& header, const Range& range) {
  if (range.offset > header.total || range.size > header.total - range.offset) {
    refuse("the blob is damaged: a part lies outside it");
  }
  return data + range.offset;
}

std::string_view checked_text(const std::byte* data, const Header& header, const Range& range) {
  const std::byte* begin = checked(data, header, range);
  return {static_cast<const char*>(static_cast<const void*>(begin)),
          static_cast<std::size_t>(range.size)};
}

}  // namespace

npu_blob write_blob(const BlobView& content) {
  Header header;
  std::uint64_t end = sizeof header;
  for (const auto& [range, text] :
       {std::pair{&header.sub_ir, content.sub_ir}, std::pair{&header.options, content.options},
        std::pair{&header.report, content.report}}) {
    *range = {end, text.size()};
    end += text.size();
  }
  end = aligned(end, alignof(TableRow));
  header.table = {end, content.constants.size() * sizeof(TableRow)};
  end = aligned(end + header.table.size, kPage);
  std::vector<TableRow> table;
  for (const PackedConstant& constant : content.constants) {
    table.push_back({{end, constant.bytes.size()}, constant.layout});
    end = aligned(end + constant.bytes.size(), kAlignment);
  }
  header.total = aligned(end, kPage);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, header.total));
  if (memory == nullptr) throw std::bad_alloc();
  std::uint64_t written = 0;
  const auto put = [&](std::uint64_t offset, const void* data, std::uint64_t size) {
    std::memset(memory + written, 0, offset - written);
    if (size != 0) std::memcpy(memory + offset, data, size);
    written = offset + size;
  };
  put(0, &header, sizeof header);
  put(header.sub_ir.offset, content.sub_ir.data(), header.sub_ir.size);
  put(header.options.offset, content.options.data(), header.options.size);
  put(header.report.offset, content.report.data(), header.report.size);
  put(header.table.offset, table.data(), header.table.size);
  for (std::size_t i = 0; i < table.size(); ++i) {
    put(table[i].data.offset, content.constants[i].bytes.data(), table[i].data.size);
  }
  put(header.total, nullptr, 0);
  return {memory, header.total};
}

BlobView read_blob(const void* blob, std::uint64_t size) {
  Header header;
  if (blob == nullptr || size < sizeof header) refuse("the blob is too short");
  const auto* data = static_cast<const std::byte*>(blob);
  std::memcpy(&header, data, sizeof header);
  if (header.magic != kMagic) {
    refuse("the blob was not made by this version of the onednn backend");
  }
  if (header.total != size) refuse("the blob is cut short or has bytes behind its end");
  BlobView content;
  content.sub_ir = checked_text(data, header, header.sub_ir);
  content.options = checked_text(data, header, header.options);
  content.report = checked_text(data, header, header.report);
  const std::byte* table = checked(data, header, header.table);
  if (header.table.size % sizeof(TableRow) != 0) {
    refuse("the blob is damaged: its table is cut short");
  }
  const std::uint64_t count = header.table.size / sizeof(TableRow);
  content.constants.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    TableRow row;
    std::memcpy(&row, table + i * sizeof row, sizeof row);
    if (row.data.offset % kAlignment != 0) refuse("the blob is damaged: a constant is misaligned");
    content.constants.push_back(
        {{checked(data, header, row.data), static_cast<std::size_t>(row.data.size)}, row.layout});
  }
  return content;
}

}  // namespace npu::onednn
