// SPDX-License-Identifier: Apache-2.0
// The file format of a compiled sub-IR.
//
// A header (magic; digest of the plan's format; offset and size of the plan, the report and a
// table; total size), plan and report, the table (offset and size of every constant), then from a
// 4096-byte boundary on the constants, each 64-byte aligned. Nothing in it is an address, so it
// works wherever it is mapped. Numbers are the machine's own: a blob is bound to a CPU anyway, and
// the magic spells the byte order. The blob may come from a hostile file: every offset, size and
// count is checked before it is used; what the plan says is checked when it is restored. O(bytes)
// to write, O(number of constants) to read.
#include "program/blob.hpp"

#include <array>
#include <cstring>
#include <string>

#include "kernels/refuse.hpp"
#include "program/plan_digest.hpp"
#include "support/digest.hpp"

namespace npu::onednn {

namespace {

constexpr std::uint64_t kMagic = 0x0233'6264'6e6e'646fU;  // "odnndb3\2", little endian
constexpr std::uint64_t kPage = 4096;

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t plan_format = plan_digest();
  std::uint64_t total = 0;
  Range plan;
  Range report;
  Range table;
};

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

const std::byte* checked(const std::byte* data, const Header& header, const Range& range) {
  if (range.offset > header.total || range.size > header.total - range.offset) {
    refuse("the blob is damaged: a part lies outside it");
  }
  return data + range.offset;
}

}  // namespace

void write_blob(std::span<const std::byte> plan, std::string_view report, ConstantPacker& packer,
                const PieceSink& put) {
  static constexpr std::array<std::byte, kPage> kZeros{};
  Header header;
  std::uint64_t end = sizeof header;
  header.plan = {end, plan.size()};
  header.report = {header.plan.offset + header.plan.size, report.size()};
  end = aligned(header.report.offset + header.report.size, alignof(Range));
  const std::vector<std::uint64_t> sizes = packer.sizes();
  header.table = {end, sizes.size() * sizeof(Range)};
  end = aligned(end + header.table.size, kPage);
  std::vector<Range> table;
  for (const std::uint64_t size : sizes) {
    table.push_back({end, size});
    end = aligned(end + size, kAlignment);
  }
  header.total = aligned(end, kPage);
  std::uint64_t written = 0;
  const auto put_at = [&](std::uint64_t offset, const void* data, std::uint64_t size) {
    // No part begins more than a page behind the end of the one before it.
    if (offset != written) put(kZeros.data(), offset - written);
    if (size != 0) put(data, size);
    written = offset + size;
  };
  put_at(0, &header, sizeof header);
  put_at(header.plan.offset, plan.data(), header.plan.size);
  put_at(header.report.offset, report.data(), header.report.size);
  put_at(header.table.offset, table.data(), header.table.size);
  for (const Range& range : table) put_at(range.offset, packer.next().bytes.data(), range.size);
  put_at(header.total, nullptr, 0);
}

BlobView read_blob(const void* blob, std::uint64_t size) {
  Header header;
  if (blob == nullptr || size < sizeof header) refuse("the blob is too short");
  const auto* data = static_cast<const std::byte*>(blob);
  std::memcpy(&header, data, sizeof header);
  if (header.magic != kMagic) {
    refuse("the blob was not made by this version of the onednn backend; compile it again");
  }
  if (header.plan_format != plan_digest()) {
    refuse("the blob's plan has format " + hex_text(header.plan_format) +
           ", this onednn backend reads format " + hex_text(plan_digest()) + "; compile it again");
  }
  if (header.total != size) refuse("the blob is cut short or has bytes behind its end");
  BlobView content;
  content.plan = {checked(data, header, header.plan), static_cast<std::size_t>(header.plan.size)};
  content.report = {
      static_cast<const char*>(static_cast<const void*>(checked(data, header, header.report))),
      static_cast<std::size_t>(header.report.size)};
  const std::byte* table = checked(data, header, header.table);
  if (header.table.size % sizeof(Range) != 0) {
    refuse("the blob is damaged: its table is cut short");
  }
  const std::uint64_t count = header.table.size / sizeof(Range);
  content.constants.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Range row;
    std::memcpy(&row, table + i * sizeof row, sizeof row);
    if (row.offset % kAlignment != 0) refuse("the blob is damaged: a constant is misaligned");
    content.constants.push_back({{checked(data, header, row), static_cast<std::size_t>(row.size)}});
  }
  return content;
}

}  // namespace npu::onednn
