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
//
// A blob of several entries has its constants first, since only making them shows which are the
// same: another magic and the digest of the format, the constants, each 64-byte aligned, then name,
// plan, report and table of each entry, a list of where these are, and at the end where that list
// is. Constants are the same if size and 128 bits of digest are: a collision that somebody brings
// about in a model of his own spoils that model alone.
#include "program/blob.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/base/refuse.hpp"
#include "program/plan_digest.hpp"
#include "support/digest.hpp"

namespace npu::onednn {

namespace {

constexpr std::uint64_t kMagic = 0x0233'6264'6e6e'646fU;         // "odnndb3\2", little endian
constexpr std::uint64_t kEntriesMagic = 0x0133'6565'6e6e'646fU;  // "odnnee3\1"
constexpr std::uint64_t kPage = 4096;

using Range = BlobRange;

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t plan_format = plan_digest();
  std::uint64_t total = 0;
  Range plan;
  Range report;
  Range table;
};

struct EntriesHeader {
  std::uint64_t magic = kEntriesMagic;
  std::uint64_t plan_format = plan_digest();
};

/// Of an entry, in the list of entries.
struct EntryRow {
  Range name;
  Range plan;
  Range report;
  Range table;
};

/// The last bytes of a blob of several entries.
struct EntriesEnd {
  Range rows;
  std::uint64_t total = 0;
  std::uint64_t magic = kEntriesMagic;
};

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// A blob that is read, as far as its size.
struct BlobBytes {
  const std::byte* data = nullptr;
  std::uint64_t total = 0;

  const std::byte* at(const Range& range) const {
    if (range.offset > total || range.size > total - range.offset) {
      refuse("the blob is damaged: a part lies outside it");
    }
    return data + range.offset;
  }
  std::string_view text(const Range& range) const {
    return {static_cast<const char*>(static_cast<const void*>(at(range))),
            static_cast<std::size_t>(range.size)};
  }
};

void check_format(std::uint64_t plan_format) {
  if (plan_format == plan_digest()) return;
  refuse("the blob's plan has format " + hex_text(plan_format) +
         ", this onednn backend reads format " + hex_text(plan_digest()) + "; compile it again");
}

void check_total(std::uint64_t total, std::uint64_t size) {
  if (total != size) refuse("the blob is cut short or has bytes behind its end");
}

std::vector<PackedConstant> read_constants(const BlobBytes& blob, const Range& place) {
  const std::byte* table = blob.at(place);
  if (place.size % sizeof(Range) != 0) {
    refuse("the blob is damaged: its table is cut short");
  }
  std::vector<PackedConstant> constants;
  const std::uint64_t count = place.size / sizeof(Range);
  constants.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    Range row;
    std::memcpy(&row, table + i * sizeof row, sizeof row);
    if (row.offset % kAlignment != 0) refuse("the blob is damaged: a constant is misaligned");
    constants.push_back({{blob.at(row), static_cast<std::size_t>(row.size)}});
  }
  return constants;
}

BlobView read_single(const BlobBytes& blob) {
  Header header;
  if (blob.total < sizeof header) refuse("the blob is too short");
  std::memcpy(&header, blob.data, sizeof header);
  check_format(header.plan_format);
  check_total(header.total, blob.total);
  return {.name = kOnlyEntry,
          .plan = {blob.at(header.plan), static_cast<std::size_t>(header.plan.size)},
          .report = blob.text(header.report),
          .constants = read_constants(blob, header.table)};
}

std::vector<BlobView> read_entries(const BlobBytes& blob) {
  EntriesHeader header;
  EntriesEnd end;
  if (blob.total < sizeof header + sizeof end) refuse("the blob is too short");
  std::memcpy(&header, blob.data, sizeof header);
  check_format(header.plan_format);
  std::memcpy(&end, blob.data + blob.total - sizeof end, sizeof end);
  if (end.magic != kEntriesMagic) refuse("the blob is cut short or has bytes behind its end");
  check_total(end.total, blob.total);
  const std::byte* rows = blob.at(end.rows);
  const std::uint64_t count = end.rows.size / sizeof(EntryRow);
  if (count == 0 || end.rows.size % sizeof(EntryRow) != 0) {
    refuse("the blob is damaged: its list of entries is cut short");
  }
  std::vector<BlobView> entries;
  std::uint64_t tables = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    EntryRow row;
    std::memcpy(&row, rows + i * sizeof row, sizeof row);
    // Tables that lie on each other would take more memory than the blob has bytes.
    if (row.table.size > blob.total - tables) refuse("the blob is damaged: its tables overlap");
    tables += row.table.size;
    entries.push_back({.name = blob.text(row.name),
                       .plan = {blob.at(row.plan), static_cast<std::size_t>(row.plan.size)},
                       .report = blob.text(row.report),
                       .constants = read_constants(blob, row.table)});
  }
  return entries;
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

EntriesWriter::EntriesWriter(PieceSink put) : put_(std::move(put)) {
  const EntriesHeader header;
  append(&header, sizeof header, 1);
}

BlobRange EntriesWriter::append(const void* data, std::uint64_t size, std::uint64_t alignment) {
  static constexpr std::array<std::byte, kPage> kZeros{};
  const std::uint64_t begin = aligned(written_, alignment);
  if (begin != written_) put_(kZeros.data(), begin - written_);
  if (size != 0) put_(data, size);
  written_ = begin + size;
  return {begin, size};
}

void EntriesWriter::add(const std::string& name, std::span<const std::byte> plan,
                        const std::string& report, ConstantPacker& packer) {
  Entry entry{name, {plan.begin(), plan.end()}, report, {}};
  const std::size_t count = packer.sizes().size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::byte> bytes = packer.next().bytes;
    Digest digest;
    digest.add(bytes.data(), bytes.size());
    const auto [known, is_new] =
        constants_.try_emplace(std::to_string(bytes.size()) + ":" + digest.hex());
    if (is_new) known->second = append(bytes.data(), bytes.size(), kAlignment);
    entry.table.push_back(known->second);
  }
  entries_.push_back(std::move(entry));
}

void EntriesWriter::finish() {
  std::vector<EntryRow> rows;
  for (const Entry& entry : entries_) {
    EntryRow row;
    row.name = append(entry.name.data(), entry.name.size(), 1);
    row.plan = append(entry.plan.data(), entry.plan.size(), alignof(Range));
    row.report = append(entry.report.data(), entry.report.size(), 1);
    row.table = append(entry.table.data(), entry.table.size() * sizeof(Range), alignof(Range));
    rows.push_back(row);
  }
  EntriesEnd end;
  end.rows = append(rows.data(), rows.size() * sizeof(EntryRow), alignof(EntryRow));
  end.total = written_ + sizeof end;
  append(&end, sizeof end, 1);
}

std::vector<BlobView> read_blob(const void* data, std::uint64_t size) {
  std::uint64_t magic = 0;
  if (data == nullptr || size < sizeof magic) refuse("the blob is too short");
  std::memcpy(&magic, data, sizeof magic);
  const BlobBytes blob{static_cast<const std::byte*>(data), size};
  if (magic == kMagic) return {read_single(blob)};
  if (magic == kEntriesMagic) return read_entries(blob);
  refuse("the blob was not made by this version of the onednn backend; compile it again");
}

BlobView read_entry(const void* data, std::uint64_t size, const char* name) {
  std::vector<BlobView> entries = read_blob(data, size);
  if (name == nullptr) return std::move(entries.front());
  for (BlobView& entry : entries) {
    if (entry.name == name) return std::move(entry);
  }
  refuse("the blob has no entry '" + std::string(name) + "'");
}

}  // namespace npu::onednn
