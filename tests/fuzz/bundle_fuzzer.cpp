// SPDX-License-Identifier: Apache-2.0
// The bundle reader: a file is refused, or everything that its manifest names can be read to the
// last byte. Digests would stop nearly every input at once, so each is tried a second time with
// corrected digests, as in a forged bundle.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "support/digest.hpp"

using npu::fuzz::require;

namespace {

constexpr std::size_t kHeader = 64;

void put_u64(std::string& bytes, std::size_t at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

std::uint64_t get_u64(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

void repair_section(const std::string& bytes, npu::Json& section) {
  const npu::Json* offset = npu::find_member(section, "offset");
  const npu::Json* size = npu::find_member(section, "size");
  if (offset == nullptr || size == nullptr || !offset->is_number_unsigned() ||
      !size->is_number_unsigned()) {
    return;
  }
  const auto begin = offset->get<std::uint64_t>();
  const auto length = size->get<std::uint64_t>();
  if (begin > bytes.size() || length > bytes.size() - begin) return;
  section["xxh3"] = npu::hex_text(npu::xxh3_64(bytes.data() + begin, length));
}

std::string repaired(std::string bytes) {
  if (bytes.size() < kHeader) return bytes;
  std::memcpy(bytes.data(), "\x89NPUB\r\n\x1a", 8);
  put_u64(bytes, 8, 1);
  put_u64(bytes, 16, bytes.size());
  put_u64(bytes, 24, kHeader);
  put_u64(bytes, 48, 0);
  std::uint64_t size = get_u64(bytes, 32);
  if (size > bytes.size() - kHeader) size = bytes.size() - kHeader;
  try {
    npu::Json manifest = npu::parse_json(std::string_view(bytes).substr(kHeader, size), "manifest");
    if (npu::Json* sections = npu::find_member(manifest, "sections");
        sections != nullptr && sections->is_array()) {
      for (npu::Json& section : *sections) {
        if (section.is_object()) repair_section(bytes, section);
      }
    }
    // A digest is as long as the one it replaces, unless that was none.
    const std::string text = manifest.dump();
    if (text.size() <= size) {
      bytes.replace(kHeader, size, text + std::string(size - text.size(), '\0'));
      size = text.size();
    }
  } catch (const npu::Error&) {
  }
  put_u64(bytes, 32, size);
  put_u64(bytes, 40, npu::xxh3_64(bytes.data() + kHeader, size));
  put_u64(bytes, 56, npu::xxh3_64(bytes.data(), 56));
  return bytes;
}

void read_all(std::string_view bytes) {
  try {
    const auto bundle = npu::Bundle::from_bytes(bytes, "fuzz");
    unsigned sum = 0;
    for (std::size_t i = 0; i < bundle->sections().size(); ++i) {
      const auto data = bundle->section(i);
      for (std::uint64_t k = 0; k < bundle->sections()[i].size; ++k) {
        sum += std::to_integer<unsigned>(data.get()[k]);
      }
    }
    require(!bundle->entries().empty(), "there is an entry");
    for (std::size_t i = 0; i < bundle->entries().size(); ++i) {
      const npu::BundleEntry& entry = bundle->entries()[i];
      require(entry.of < bundle->documents().size(), "an entry's document exists");
      for (const npu::BundlePartition& partition : entry.partitions) {
        require(partition.section < bundle->sections().size(), "a blob's section exists");
      }
      for (const std::size_t place : entry.weights) {
        require(place < bundle->weights().size(), "a weight of an entry exists");
      }
      npu::Diagnostics diagnostics;
      try {
        npu::read_graph(bundle->document(i), "fuzz", diagnostics);
      } catch (const npu::Error&) {  // the text is no document
      }
    }
    for (std::size_t i = 0; i < bundle->documents().size(); ++i) {
      for (const char byte : bundle->template_document(i)) sum += static_cast<unsigned char>(byte);
    }
    for (const npu::BundleWeight& weight : bundle->weights()) {
      try {
        const npu::Tensor tensor = bundle->weight(weight);
        for (std::size_t k = 0; k < tensor.bytes(); ++k) {
          sum += std::to_integer<unsigned>(tensor.data()[k]);
        }
      } catch (const npu::Error&) {  // a bool that is neither 0 nor 1
      }
    }
    require(!npu::format_bundle(*bundle).empty(), "a bundle has a description");
    require(npu::bundle_info(*bundle).is_object(), "and one in JSON");
    volatile unsigned used = sum;
    static_cast<void>(used);
  } catch (const npu::Error& error) {
    require(!error.message().empty(), "errors say what");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_all(bytes);
  read_all(repaired(bytes));
  return 0;
}
