// SPDX-License-Identifier: Apache-2.0
// Bits survive writing and reading, and no header leads outside the file.
#include "npu/tensor/safetensors.hpp"

#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "same_bits.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace std::string_literals;
using npu::test::same_bits;
using npu::test::TemporaryFolder;

namespace {

std::string file_with(const std::string& header, std::size_t data_bytes, std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
  return bytes;
}
std::string file_with(const std::string& header, std::size_t data_bytes = 0) {
  return file_with(header, data_bytes, header.size());
}

// "pointer: message", or "good".
std::string refusal(const std::string& bytes) {
  try {
    std::size_t data_begin = 0;
    parse_safetensors(bytes, "w.safetensors", data_begin);
    return "good";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.location().file.starts_with("w.safetensors"));
    return error.location().pointer + ": " + error.message();
  }
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

Tensor random_bits(DType dtype, const Shape& shape, std::mt19937& random) {
  Tensor tensor(dtype, shape);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    tensor.mutable_data()[i] =
        static_cast<std::byte>(dtype == DType::kBool ? random() % 2 : random());
  }
  return tensor;
}

constexpr std::array<const char*, kDTypeCount> kNames{"F32", "F64", "F16", "BF16", "I8",  "U8",
                                                      "I16", "I32", "I64", "BOOL", "C64", "C128"};

}  // namespace

TEST_CASE("safetensors: no tensors at all") {
  CHECK(refusal(file_with("{}")) == "good");
  const TemporaryFolder folder;
  write_safetensors(folder / "f", {});
  const SafetensorsFile file(folder / "f");
  CHECK(file.entries().empty());
  CHECK(file.find("t") == nullptr);
}

TEST_CASE("safetensors: every dtype survives bit for bit, aligned or not") {
  const TemporaryFolder folder;
  std::mt19937 random(43);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 3, 5}, Shape{2, 0, 4}}) {
      tensors.emplace_back(std::string(dtype_name(dtype)) + shape_text(shape),
                           random_bits(dtype, shape, random));
    }
    tensors.emplace_back("one byte " + std::to_string(d),
                         random_bits(DType::kUInt8, {1}, random));  // misaligns the next
  }
  write_safetensors(folder / "f", tensors);
  const SafetensorsFile file(folder / "f");
  CHECK(file.path() == folder / "f");
  CHECK(file.entries().size() == tensors.size());
  CHECK(std::is_sorted(file.entries().begin(), file.entries().end(),
                       [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    const SafetensorsEntry* found = file.find(name);
    REQUIRE(found != nullptr);
    const Tensor read = file.tensor(*found);
    CHECK(same_bits(read, tensor));
    CHECK(reinterpret_cast<std::uintptr_t>(read.data()) % dtype_size(read.dtype()) == 0);
  }
  CHECK(file.find("float32") == nullptr);
}

TEST_CASE("safetensors: all 65,536 bfloat16 patterns survive, every NaN with its payload") {
  const TemporaryFolder folder;
  Tensor tensor(DType::kBFloat16, {65536});
  for (int i = 0; i < 65536; ++i)
    tensor.as_mutable<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
  write_safetensors(folder / "f", {{"all", tensor}});
  const SafetensorsFile file(folder / "f");
  CHECK(same_bits(file.tensor(*file.find("all")), tensor));
}

TEST_CASE("safetensors: the header is what the format says") {
  const TemporaryFolder folder;
  Tensor b(DType::kInt16, {2});
  b.as_mutable<std::int16_t>()[0] = 0x0102;
  Tensor a(DType::kBool, {1});
  a.as_mutable<std::uint8_t>()[0] = 1;
  write_safetensors(folder / "f", {{"b", b}, {"a", a}});
  const std::string bytes = read_file(folder / "f");
  const std::string header =
      R"({"b":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},"a":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]}})";
  // Padded with spaces so that the data begins at a multiple of 8.
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  CHECK(bytes ==
        file_with(header + std::string(padded - header.size(), ' '), 0) + "\x02\x01\x00\x00\x01"s);
}

TEST_CASE("safetensors: tensors share the mapping, which outlives the file object") {
  const TemporaryFolder folder;
  std::mt19937 random(47);
  const Tensor tensor = random_bits(DType::kFloat32, {100}, random);
  write_safetensors(folder / "f", {{"t", tensor}});
  Tensor kept;
  {
    const SafetensorsFile file(folder / "f");
    kept = file.tensor(*file.find("t"));
    CHECK(file.tensor(*file.find("t")).data() == kept.data());  // not copied
  }
  std::filesystem::remove(folder / "f");
  CHECK(same_bits(kept, tensor));
}

TEST_CASE("safetensors: names of dtypes") {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto size = std::to_string(dtype_size(static_cast<DType>(d)));
    std::size_t data_begin = 0;
    const std::string bytes =
        file_with(entry(kNames[static_cast<std::size_t>(d)], "[]", "[0," + size + "]"),
                  dtype_size(static_cast<DType>(d)));
    const auto entries = parse_safetensors(bytes, "f", data_begin);
    REQUIRE(entries.size() == 1);
    CHECK(static_cast<int>(entries[0].dtype) == d);
    CHECK(entries[0].shape.empty());
    CHECK(data_begin == bytes.size() - dtype_size(static_cast<DType>(d)));
  }
}

TEST_CASE("safetensors: metadata, spaces and any order of keys are accepted") {
  CHECK(refusal(file_with(R"({"__metadata__":{"format":"pt"}})")) == "good");
  CHECK(refusal(file_with(R"({"t":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}   )", 4)) ==
        "good");
  // Tensors without elements may lie anywhere between the others.
  CHECK(
      refusal(file_with(
          R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
          R"("z":{"dtype":"F32","shape":[],"data_offsets":[4,8]},"f":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
          8)) == "good");
}

TEST_CASE("safetensors: files that end early") {
  CHECK(refusal("") ==
        ": a safetensors file starts with 8 bytes of header length; this one has 0 bytes in all");
  CHECK(refusal("1234567") ==
        ": a safetensors file starts with 8 bytes of header length; this one has 7 bytes in all");
  CHECK(refusal(file_with("{}", 0, 3)) ==
        ": the header is said to have 3 bytes, but only 2 follow");
  CHECK(refusal(file_with("{}", 0, UINT64_MAX)) ==
        ": the header is said to have 18446744073709551615 bytes, but only 2 follow");
  CHECK(refusal(file_with("{}", 0, UINT64_MAX - 7)).find("bytes, but only 2 follow") !=
        std::string::npos);
  CHECK(refusal(file_with("{}", 0, 1)).find("unexpected end of input") != std::string::npos);
  CHECK(refusal(file_with("{}", 0, 0)).find("unexpected end of input") != std::string::npos);
  // Every beginning of a good file is refused.
  const std::string good = file_with(entry("F32", "[2]", "[0,8]"), 8);
  REQUIRE(refusal(good) == "good");
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(refusal(good.substr(0, size)) != "good");
  }
  CHECK(refusal(good + "x") == ": the data section has 9 bytes, its tensors 8");
}

TEST_CASE("safetensors: headers that are no object of objects") {
  CHECK(refusal(file_with("[]")) == ": the header is expected to be an object, found array");
  CHECK(refusal(file_with("3")) == ": the header is expected to be an object, found integer");
  CHECK(refusal(file_with("{")).find("unexpected end of input") != std::string::npos);
  CHECK(refusal(file_with("{\"a\":1,\"a\":1}")) == ": duplicate key 'a'");
  CHECK(refusal(file_with("{\"t\":1}")) ==
        "/t: expected an object with dtype, shape and two data_offsets");
  CHECK(refusal(file_with("{\"t\":{}}")) ==
        "/t: expected an object with dtype, shape and two data_offsets");
  CHECK(refusal(file_with(R"({"a/b":{}})")) ==
        "/a~1b: expected an object with dtype, shape and two data_offsets");
}

TEST_CASE("safetensors: fields that are missing or of the wrong type") {
  const std::string expected = "/t: expected an object with dtype, shape and two data_offsets";
  CHECK(refusal(file_with(R"({"t":{"shape":[1],"data_offsets":[0,4]}})", 4)) == expected);
  CHECK(refusal(file_with(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", 4)) == expected);
  CHECK(refusal(file_with(R"({"t":{"dtype":"F32","shape":[1]}})", 4)) == expected);
  CHECK(refusal(file_with(R"({"t":{"dtype":5,"shape":[1],"data_offsets":[0,4]}})", 4)) == expected);
  CHECK(refusal(file_with(entry("F32", "1", "[0,4]"), 4)) == expected);
  CHECK(refusal(file_with(entry("F32", "[1]", "[0]"), 4)) == expected);
  CHECK(refusal(file_with(entry("F32", "[1]", "[0,4,4]"), 4)) == expected);
  CHECK(refusal(file_with(entry("F32", "[1]", "4"), 4)) == expected);
  CHECK(refusal(file_with(entry("F33", "[1]", "[0,4]"), 4)) ==
        "/t/dtype: dtype 'F33' is not one that npu-tools reads");
  CHECK(refusal(file_with(entry("float32", "[1]", "[0,4]"), 4)) ==
        "/t/dtype: dtype 'float32' is not one that npu-tools reads");
  CHECK(refusal(file_with(entry("F32", "[-1]", "[0,4]"), 4)) ==
        "/t/shape/0: expected a non-negative integer, found integer");
  CHECK(refusal(file_with(entry("F32", "[1,1.0]", "[0,4]"), 4)) ==
        "/t/shape/1: expected a non-negative integer, found float");
  CHECK(refusal(file_with(entry("F32", "[null]", "[0,4]"), 4)) ==
        "/t/shape/0: expected a non-negative integer, found null");
  CHECK(refusal(file_with(entry("F32", "[18446744073709551615]", "[0,4]"), 4)) ==
        "/t/shape/0: dimension too large");
  CHECK(refusal(file_with(entry("F32", "[1]", "[-1,4]"), 4)) ==
        "/t/data_offsets/0: expected a non-negative integer, found integer");
  CHECK(refusal(file_with(entry("F32", "[1]", "[0,\"4\"]"), 4)) ==
        "/t/data_offsets/1: expected a non-negative integer, found string");
}

TEST_CASE("safetensors: offsets that lead outside or do not fit the shape") {
  CHECK(refusal(file_with(entry("F32", "[2]", "[0,8]"), 4)) ==
        "/t/data_offsets: tensor 't' lies at bytes 0 to 8 of a data section of 4 bytes");
  CHECK(refusal(file_with(entry("F32", "[1]", "[4,0]"), 4)) ==
        "/t/data_offsets: tensor 't' lies at bytes 4 to 0 of a data section of 4 bytes");
  CHECK(refusal(file_with(entry("F32", "[1]", "[18446744073709551612,18446744073709551615]"), 4))
            .starts_with("/t/data_offsets: tensor 't' lies at bytes 18446744073709551612 to"));
  CHECK(refusal(file_with(entry("F32", "[2]", "[0,4]"), 4)) ==
        "/t/data_offsets: tensor 't' of dtype float32 and shape [2] does not have 4 bytes");
  CHECK(refusal(file_with(entry("F32", "[0]", "[0,4]"), 4)) ==
        "/t/data_offsets: tensor 't' of dtype float32 and shape [0] does not have 4 bytes");
  // 2^62 elements of 4 bytes are 0 bytes modulo 2^64.
  CHECK(refusal(file_with(entry("F32", "[4611686018427387904]", "[0,0]"), 0)) ==
        "/t/data_offsets: tensor 't' of dtype float32 and shape [4611686018427387904] does not "
        "have 0 bytes");
  CHECK(refusal(file_with(entry("I8", "[4294967296,4294967296]", "[0,0]"), 0)) ==
        "/t/data_offsets: tensor 't' of dtype int8 and shape [4294967296, 4294967296] does not "
        "have 0 bytes");
}

TEST_CASE("safetensors: tensors that overlap or leave holes") {
  const auto two = [](const std::string& first, const std::string& second, std::size_t data) {
    return refusal(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + first +
                                 R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second +
                                 "}}",
                             data));
  };
  CHECK(two("[0,4]", "[4,8]", 8) == "good");
  CHECK(two("[4,8]", "[0,4]", 8) == "good");
  CHECK(two("[0,4]", "[2,6]", 8) == "/b/data_offsets: tensor 'b' overlaps the one before it");
  CHECK(two("[0,4]", "[0,4]", 4) == "/b/data_offsets: tensor 'b' overlaps the one before it");
  CHECK(two("[0,4]", "[6,10]", 10) ==
        "/b/data_offsets: bytes 4 to 6 of the data section belong to no tensor");
  CHECK(two("[2,6]", "[6,10]", 10) ==
        "/a/data_offsets: bytes 0 to 2 of the data section belong to no tensor");
  CHECK(two("[0,4]", "[4,8]", 12) == ": the data section has 12 bytes, its tensors 8");
}

TEST_CASE("safetensors: a bool that is neither 0 nor 1 is refused when it is read") {
  const TemporaryFolder folder;
  std::string bytes = file_with(entry("BOOL", "[3]", "[0,3]"), 3);  // 0, 1, 2
  write_file_atomically(folder / "f", bytes);
  const SafetensorsFile bad(folder / "f");
  CHECK_THROWS_WITH(bad.tensor(bad.entries()[0]),
                    (folder / "f") + ": error: bool tensor 't' holds the byte 2, expected 0 or 1");
  bytes.back() = 1;
  write_file_atomically(folder / "g", bytes);
  const SafetensorsFile good(folder / "g");
  CHECK(good.tensor(good.entries()[0]).as<std::uint8_t>()[2] == 1);
}

TEST_CASE(
    "safetensors: any change of a byte gives an error or a file that stays inside its bounds") {
  const std::string good = file_with(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[],"data_offsets":[8,9]}})",
      9);
  std::mt19937 random(53);
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = good;
    for (std::size_t i = 1 + random() % 3; i > 0; --i)
      bytes[random() % (good.size() - 9)] = static_cast<char>(random());
    std::size_t data_begin = 0;
    try {
      for (const SafetensorsEntry& entry : parse_safetensors(bytes, "f", data_begin)) {
        CHECK(data_begin + entry.end <= bytes.size());
        CHECK(entry.begin <= entry.end);
      }
      ++accepted;
    } catch (const Error&) {
    }
  }
  CHECK(accepted < 4000);  // most bytes matter
}
