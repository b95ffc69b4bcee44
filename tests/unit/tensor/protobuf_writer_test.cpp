// SPDX-License-Identifier: Apache-2.0
#include "tensor/protobuf_writer.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "catch.hpp"
#include "tensor/protobuf_wire.hpp"

namespace npu {
namespace {

TEST_CASE("fields of a message are read as they were written") {
  WireWriter writer;
  writer.integer(1, 0);
  writer.integer(2, -1);
  writer.integer(1000, std::numeric_limits<std::int64_t>::max());
  writer.float32(3, -1.5F);
  writer.bytes(4, std::string(200, 'x'));
  writer.head_of_bytes(5, 3);
  const std::string message = writer.message() + "abc";
  WireReader reader(message);
  REQUIRE(reader.next());
  CHECK(reader.field() == 1);
  CHECK(reader.integer() == 0);
  REQUIRE(reader.next());
  CHECK(reader.integer() == -1);
  REQUIRE(reader.next());
  CHECK(reader.field() == 1000);
  CHECK(reader.integer() == std::numeric_limits<std::int64_t>::max());
  REQUIRE(reader.next());
  CHECK(reader.float32() == -1.5F);
  REQUIRE(reader.next());
  CHECK(reader.bytes() == std::string(200, 'x'));
  REQUIRE(reader.next());
  CHECK(reader.field() == 5);
  CHECK(reader.bytes() == "abc");
  CHECK_FALSE(reader.next());
}

TEST_CASE("a varint has seven bits in a byte") {
  WireWriter writer;
  writer.integer(1, 300);  // 300 = 2 * 128 + 44
  CHECK(writer.take() == std::string("\x08\xac\x02"));
  CHECK(writer.message().empty());
}

}  // namespace
}  // namespace npu
