// SPDX-License-Identifier: Apache-2.0
// The bytes that a backend writes come back whole, from memory or from a file that nobody sees.
#include "device/blob_memory.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;

namespace {

constexpr std::size_t kPiece = 777;
constexpr int kPieces = 20;

std::string written_to(BlobMemory& memory) {
  const npu_writer writer = memory.writer();
  std::string expected;
  for (int i = 0; i < kPieces; ++i) {
    const std::string piece(kPiece, static_cast<char>('a' + i));
    REQUIRE(writer.write(writer.context, piece.data(), piece.size(), nullptr) == NPU_OK);
    expected += piece;
  }
  CHECK(memory.size() == expected.size());
  return expected;
}

void check_blob(const Blob& blob, const std::string& expected) {
  REQUIRE(blob.size == expected.size());
  CHECK(std::string(reinterpret_cast<const char*>(blob.data.get()), blob.size) == expected);
}

}  // namespace

TEST_CASE("a blob is what was written", "[device]") {
  const test::TemporaryFolder folder;
  SECTION("in memory") {
    BlobMemory memory;
    const std::string expected = written_to(memory);
    CHECK(memory.data() != nullptr);
    check_blob(memory.take(), expected);
  }
  SECTION("in a file from the first piece on") {
    BlobMemory memory(folder.path().string(), 1);
    const std::string expected = written_to(memory);
    check_blob(memory.take(), expected);
  }
  SECTION("in a file once it is large") {
    BlobMemory memory(folder.path().string(), 10 * kPiece);
    const std::string expected = written_to(memory);
    check_blob(memory.take(), expected);
  }
  SECTION("in memory where there can be no file") {
    BlobMemory memory(folder / "missing", 1);
    const std::string expected = written_to(memory);
    CHECK(memory.data() != nullptr);
    check_blob(memory.take(), expected);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}
