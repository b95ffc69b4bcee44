// SPDX-License-Identifier: Apache-2.0
// Token files: a text is refused with a place that is in it, or gives lines of ids below the size
// of the vocabulary that, written again, are read as the same lines, however the bytes arrive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz_check.hpp"
#include "npu/support/error.hpp"
#include "runtime/generate/token_file.hpp"

using npu::fuzz::require;

namespace {

constexpr std::int64_t kVocabulary = 32'000;

std::vector<std::vector<std::int64_t>> lines_of(npu::ByteSource source) {
  npu::TokenReader reader(std::move(source), "tokens", kVocabulary);
  std::vector<std::vector<std::int64_t>> lines;
  while (auto line = reader.next()) {
    require(line->number == static_cast<std::int64_t>(lines.size()) + 1, "lines are counted");
    require(!line->ids.empty(), "a line has ids");
    for (const std::int64_t id : line->ids) {
      require(id >= 0 && id < kVocabulary, "ids are below the size of the vocabulary");
    }
    lines.push_back(std::move(line->ids));
  }
  return lines;
}

npu::ByteSource byte_by_byte(std::string_view text) {
  return [text](std::span<char> buffer) mutable -> std::size_t {
    if (text.empty()) return 0;
    buffer[0] = text.front();
    text.remove_prefix(1);
    return 1;
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::vector<std::int64_t>> lines;
  try {
    lines = lines_of(npu::source_of(text));
  } catch (const npu::Error& error) {
    const auto count = std::count(text.begin(), text.end(), '\n') + 1;
    require(error.location().line >= 1 && error.location().line <= count, "the line is there");
    require(error.location().column >= 1 &&
                static_cast<std::size_t>(error.location().column) <= size + 1,
            "the column is there");
    return 0;
  }
  require(lines_of(byte_by_byte(text)) == lines, "the lines are the same byte by byte");
  std::string again;
  for (const auto& line : lines) {
    for (const std::int64_t id : line) again += std::to_string(id) + " ";
    again.back() = '\n';
  }
  require(lines_of(npu::source_of(again)) == lines, "lines that are written are read again");
  return 0;
}
