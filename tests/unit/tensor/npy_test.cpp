// SPDX-License-Identifier: Apache-2.0
// NumPy's files in every version that exists, and with every fault.
#include "tensor/npy.hpp"

#include <cstring>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace std::string_literals;
using npu::test::TemporaryFolder;

namespace {

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const std::size_t size_bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < size_bytes; ++i)
    bytes += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return bytes + dict + data;
}

std::string dict(const std::string& descr, const std::string& shape,
                 const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string npy_refusal(const std::string& bytes, const DType* expected = nullptr) {
  try {
    parse_npy(bytes, "f.npy", expected);
    return "good";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.location().file == "f.npy");
    return error.message();
  }
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("npy: versions 1, 2 and 3") {
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    const Tensor tensor =
        parse_npy(npy(dict("<i4", "(3,)"), bytes_of<std::int32_t>({1, -2, 3}), version), "f");
    CHECK(tensor.dtype() == DType::kInt32);
    CHECK(tensor.shape() == Shape{3});
    CHECK(tensor.as<std::int32_t>()[1] == -2);
  }
  CHECK(npy_refusal(npy(dict("<i4", "(1,)"), "abcd", 4)) == ".npy version 4 is unknown");
  CHECK(npy_refusal(npy(dict("<i4", "(1,)"), "abcd", 0)) == ".npy version 0 is unknown");
}

TEST_CASE("npy: a header longer than 65535 bytes in version 2") {
  const std::string long_dict = dict("<i4", "(1,)") + std::string(100000, ' ') + "\n";
  CHECK(parse_npy(npy(long_dict, bytes_of<std::int32_t>({7}), 2), "f").as<std::int32_t>()[0] == 7);
}

TEST_CASE("npy: scalars and empty arrays") {
  const Tensor scalar = parse_npy(npy(dict("<f8", "()"), bytes_of<double>({2.5})), "f");
  CHECK(scalar.shape().empty());
  CHECK(scalar.as<double>()[0] == 2.5);
  const Tensor empty = parse_npy(npy(dict("<f8", "(2, 0, 3)"), ""), "f");
  CHECK(empty.shape() == Shape{2, 0, 3});
  CHECK(parse_npy(npy(dict("<f8", "(2, 0, 3)", "True"), ""), "f").element_count() == 0);
}

TEST_CASE("npy: dtypes and the spellings of their byte order") {
  struct Row {
    const char* descr;
    DType dtype;
  };
  for (const Row& row : std::vector<Row>{{"<f4", DType::kFloat32},
                                         {"=f4", DType::kFloat32},
                                         {"<f8", DType::kFloat64},
                                         {"<f2", DType::kFloat16},
                                         {"|i1", DType::kInt8},
                                         {"<i1", DType::kInt8},
                                         {">i1", DType::kInt8},
                                         {"|u1", DType::kUInt8},
                                         {"<i2", DType::kInt16},
                                         {"<i4", DType::kInt32},
                                         {"<i8", DType::kInt64},
                                         {"|b1", DType::kBool},
                                         {"<c8", DType::kComplex64},
                                         {"<c16", DType::kComplex128},
                                         {"|V2", DType::kBFloat16},
                                         {"<V2", DType::kBFloat16}}) {
    CAPTURE(row.descr);
    const Tensor tensor =
        parse_npy(npy(dict(row.descr, "(1,)"), std::string(dtype_size(row.dtype), '\0')), "f");
    CHECK(tensor.dtype() == row.dtype);
  }
  for (const char* descr :
       {">f4", "|f4", "<u2", "<u4", "<f16", "", "<", "f4", "<U5", "|O", "|S1", "<M8[ns]", "V4"}) {
    CAPTURE(descr);
    CHECK(npy_refusal(npy(dict(descr, "(0,)"), "")) ==
          "the .npy dtype '" + std::string(descr) + "' is not one that npu-tools reads");
  }
}

TEST_CASE("npy: two raw bytes are bfloat16, unsigned integers only where bfloat16 is expected") {
  const DType bfloat16 = DType::kBFloat16;
  const DType float16 = DType::kFloat16;
  const std::string unsigned_file = npy(dict("<u2", "(1,)"), "\x80\x3f");
  const Tensor tensor = parse_npy(unsigned_file, "f", &bfloat16);
  CHECK(tensor.dtype() == DType::kBFloat16);
  CHECK(bfloat16_to_float(tensor.as<std::uint16_t>()[0]) == 1.0F);
  CHECK(npy_refusal(unsigned_file) != "good");
  CHECK(npy_refusal(unsigned_file, &float16) != "good");
  CHECK(parse_npy(npy(dict("|V2", "(1,)"), "\x80\x3f"), "f", &bfloat16).dtype() ==
        DType::kBFloat16);
  // What is expected does not change what a file says otherwise.
  CHECK(parse_npy(npy(dict("<f4", "(0,)"), ""), "f", &bfloat16).dtype() == DType::kFloat32);
}

TEST_CASE("npy: Fortran order becomes row-major") {
  // [[1, 2, 3], [4, 5, 6]] column by column.
  const Tensor matrix = parse_npy(
      npy(dict("<i4", "(2, 3)", "True"), bytes_of<std::int32_t>({1, 4, 2, 5, 3, 6})), "f");
  CHECK(matrix.shape() == Shape{2, 3});
  for (std::int32_t i = 0; i < 6; ++i) CHECK(matrix.as<std::int32_t>()[i] == i + 1);
  // Element (a, b, c, d) of shape 2, 3, 4, 5 has the value 1000 a + 100 b + 10 c + d.
  std::vector<std::int16_t> columns;
  for (int d = 0; d < 5; ++d) {
    for (int c = 0; c < 4; ++c) {
      for (int b = 0; b < 3; ++b) {
        for (int a = 0; a < 2; ++a)
          columns.push_back(static_cast<std::int16_t>(1000 * a + 100 * b + 10 * c + d));
      }
    }
  }
  const Tensor tensor = parse_npy(npy(dict("<i2", "(2, 3, 4, 5)", "True"), bytes_of(columns)), "f");
  int at = 0;
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; c < 4; ++c) {
        for (int d = 0; d < 5; ++d)
          CHECK(tensor.as<std::int16_t>()[at++] == 1000 * a + 100 * b + 10 * c + d);
      }
    }
  }
  // One dimension and none have one order only.
  CHECK(parse_npy(npy(dict("<i2", "(2,)", "True"), bytes_of<std::int16_t>({1, 2})), "f")
            .as<std::int16_t>()[1] == 2);
}

TEST_CASE("npy: spellings of the header that Python allows") {
  const std::string data = bytes_of<std::int32_t>({1, 2});
  for (const char* header :
       {"{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }          \n",
        "{\"descr\":\"<i4\",\"fortran_order\":False,\"shape\":(2,)}",
        "{'shape': (2,), 'fortran_order': False, 'descr': '<i4'}\n",
        "{ 'descr' : '<i4' , 'fortran_order' : False , 'shape' : ( 2 , ) }"}) {
    CAPTURE(header);
    CHECK(npy_refusal(npy(header, data)) == "good");
  }
}

TEST_CASE("npy: faults of the header") {
  CHECK(npy_refusal("") == "not a .npy file: it does not start with \\x93NUMPY and a version");
  CHECK(npy_refusal("NUMPY and more") ==
        "not a .npy file: it does not start with \\x93NUMPY and a version");
  CHECK(npy_refusal("\x93NUMPY\x01\x00\x05"s) ==
        "not a .npy file: it does not start with \\x93NUMPY and a version");
  CHECK(npy_refusal("\x93NUMPY\x01\x00\x05\x00{}"s) == "the .npy header is cut short");
  CHECK(npy_refusal("\x93NUMPY\x02\x00\x05\x00"s) == "the .npy header is cut short");
  CHECK(npy_refusal("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"s) == "the .npy header is cut short");
  struct Case {
    const char* header;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"", "expected '{' in the .npy header"},
           {"{}", "the .npy header lacks descr, fortran_order or shape"},
           {"{'descr': '<i4', 'shape': (1,)}",
            "the .npy header lacks descr, fortran_order or shape"},
           {"{'descr': '<i4', 'descr': '<i4'}", "unexpected key 'descr' in the .npy header"},
           {"{'other': 1}", "unexpected key 'other' in the .npy header"},
           {"{descr: '<i4'}", "expected a quoted string in the .npy header"},
           {"{'descr': '<i4", "unterminated string in the .npy header"},
           {"{'descr' '<i4'}", "expected ':' in the .npy header"},
           {"{'descr': [('a', '<i4')]}", "expected a quoted string in the .npy header"},
           {"{'fortran_order': 0}", "expected True or False in the .npy header"},
           {"{'shape': 4}", "expected '(' in the .npy header"},
           {"{'shape': (-1,)}", "expected a non-negative integer in the shape of the .npy header"},
           {"{'shape': (a,)}", "expected a non-negative integer in the shape of the .npy header"},
           {"{'shape': (99999999999999999999,)}",
            "expected a non-negative integer in the shape of the .npy header"},
           {"{'shape': (1 2)}", "expected ')' in the .npy header"},
           {"{'shape': (1,", "expected a non-negative integer in the shape of the .npy header"},
           {"{'shape': (1,) 'x'}", "expected '}' in the .npy header"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,)} x",
            "the .npy header goes on after its dict"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,)",
            "expected '}' in the .npy header"}}) {
    CAPTURE(c.header);
    CHECK(npy_refusal(npy(c.header, "abcd")) == c.message);
  }
}

TEST_CASE("npy: data of another size than the shape says") {
  CHECK(npy_refusal(npy(dict("<i4", "(2,)"), "1234567")) ==
        "an array of <i4 and shape [2] does not have 7 bytes");
  CHECK(npy_refusal(npy(dict("<i4", "(2,)"), "123456789")) ==
        "an array of <i4 and shape [2] does not have 9 bytes");
  CHECK(npy_refusal(npy(dict("<i4", "()"), "")) ==
        "an array of <i4 and shape [] does not have 0 bytes");
  CHECK(npy_refusal(npy(dict("<i4", "(0,)"), "x")) ==
        "an array of <i4 and shape [0] does not have 1 bytes");
  // 2^62 * 4 bytes are 0 modulo 2^64.
  CHECK(npy_refusal(npy(dict("<i4", "(4611686018427387904,)"), "")) ==
        "an array of <i4 and shape [4611686018427387904] does not have 0 bytes");
  CHECK(npy_refusal(npy(dict("|i1", "(4294967296, 4294967296)"), "")) ==
        "an array of |i1 and shape [4294967296, 4294967296] does not have 0 bytes");
}

TEST_CASE("npy: a bool that is neither 0 nor 1 is refused") {
  CHECK(npy_refusal(npy(dict("|b1", "(2,)"), "\x01\x00"s)) == "good");
  CHECK(npy_refusal(npy(dict("|b1", "(2,)"), "\x01\x02"s)) ==
        "a bool array holds a byte other than 0 and 1");
  CHECK(npy_refusal(npy(dict("|b1", "(1,)"), "\xff"s)) ==
        "a bool array holds a byte other than 0 and 1");
}

TEST_CASE("npy: every dtype and rank survives writing and reading, bit for bit") {
  const TemporaryFolder folder;
  std::mt19937 random(59);
  for (int d = 0; d < kDTypeCount; ++d) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{0}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
      const auto dtype = static_cast<DType>(d);
      CAPTURE(dtype_name(dtype), shape_text(shape));
      Tensor tensor(dtype, shape);
      for (std::size_t i = 0; i < tensor.bytes(); ++i) {
        tensor.mutable_data()[i] =
            static_cast<std::byte>(dtype == DType::kBool ? random() % 2 : random());
      }
      write_npy(folder / "f.npy", tensor);
      const Tensor read = read_npy(folder / "f.npy");
      CHECK(read.dtype() == dtype);
      CHECK(read.shape() == shape);
      CHECK(std::memcmp(read.data(), tensor.data(), tensor.bytes()) == 0);
    }
  }
}

TEST_CASE("npy: what is written is what NumPy writes") {
  const TemporaryFolder folder;
  const auto header = [&](DType dtype, const Shape& shape) {
    write_npy(folder / "f.npy", Tensor(dtype, shape));
    const std::string bytes = read_file(folder / "f.npy");
    CHECK(bytes.starts_with("\x93NUMPY\x01\x00"s));
    const std::size_t length =
        static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
    CHECK((10 + length) % 64 == 0);  // NEP 1 since NumPy 1.14
    CHECK(bytes[10 + length - 1] == '\n');
    CHECK(bytes.size() == 10 + length + Tensor(dtype, shape).bytes());
    const std::string text = bytes.substr(10, length);
    return text.substr(0, text.find_last_not_of(" \n") + 1);
  };
  CHECK(header(DType::kFloat32, {2, 3}) ==
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  CHECK(header(DType::kInt64, {7}) == "{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }");
  CHECK(header(DType::kBool, {}) == "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
  CHECK(header(DType::kBFloat16, {1}) ==
        "{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }");
  // Shapes of every length of header, around the multiples of 64.
  for (std::int64_t rank = 1; rank < 40; ++rank)
    header(DType::kInt8, Shape(static_cast<std::size_t>(rank), 1));
}

TEST_CASE("npy: a missing file is an I/O error") {
  try {
    read_npy("/nonexistent/f.npy");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kIo);
  }
}
