// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npy. The header is a Python dict literal of three known keys; only the forms
// that NumPy writes are accepted. O(bytes).
#include "tensor/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descriptor {
  std::string_view text;
  DType dtype;
};
// The descriptors that are written; NumPy's "|" and "=" byte orders are read as well.
constexpr std::array<Descriptor, kDTypeCount> kDescriptors{{
    {"<f4", DType::kFloat32},
    {"<f8", DType::kFloat64},
    {"<f2", DType::kFloat16},
    {"|V2", DType::kBFloat16},
    {"|i1", DType::kInt8},
    {"|u1", DType::kUInt8},
    {"<i2", DType::kInt16},
    {"<i4", DType::kInt32},
    {"<i8", DType::kInt64},
    {"|b1", DType::kBool},
    {"<c8", DType::kComplex64},
    {"<c16", DType::kComplex128},
}};

[[noreturn]] void fail_npy(const std::string& file, const std::string& text) {
  throw Error(ErrorCode::kParse, text, {.file = file});
}

// Reads the header dict, e.g. "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::string descriptor;
  bool fortran_order = false;
  Shape shape;

  void parse() {
    bool has_descriptor = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descriptor) {
        descriptor = quoted();
        has_descriptor = true;
      } else if (key == "fortran_order" && !has_order) {
        fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        tuple();
        has_shape = true;
      } else {
        fail_npy(file_, "unexpected key '" + key + "' in the .npy header");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descriptor || !has_order || !has_shape) {
      fail_npy(file_, "the .npy header lacks descr, fortran_order or shape");
    }
    skip_space();
    if (position_ != text_.size()) fail_npy(file_, "the .npy header goes on after its dict");
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }
  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_npy(file_, std::string("expected '") + c + "' in the .npy header");
  }
  std::string quoted() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : ' ';
    if (quote != '\'' && quote != '"')
      fail_npy(file_, "expected a quoted string in the .npy header");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail_npy(file_, "unterminated string in the .npy header");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return value;
      }
    }
    fail_npy(file_, "expected True or False in the .npy header");
  }
  void tuple() {
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t dimension = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + position_, text_.data() + text_.size(), dimension);
      if (error != std::errc() || dimension < 0) {
        fail_npy(file_, "expected a non-negative integer in the shape of the .npy header");
      }
      position_ = static_cast<std::size_t>(end - text_.data());
      shape.push_back(dimension);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
};

std::optional<DType> dtype_of(std::string_view descriptor, const DType* expected) {
  if (expected != nullptr && *expected == DType::kBFloat16 &&
      (descriptor == "<u2" || descriptor == "<V2" || descriptor == "|V2")) {
    return DType::kBFloat16;
  }
  for (const Descriptor& row : kDescriptors) {
    // One-byte types have no byte order, so '<', '|' and '=' all mean the same for them.
    const bool any_order = row.text[0] == '|';
    const bool same_order =
        descriptor.starts_with(row.text[0]) || descriptor.starts_with('=') ||
        (any_order && (descriptor.starts_with('<') || descriptor.starts_with('>')));
    if (same_order && descriptor.substr(1) == row.text.substr(1)) return row.dtype;
  }
  return std::nullopt;
}

// Column-major to row-major.
Tensor transposed(const Tensor& source) {
  Tensor result(source.dtype(), source.shape());
  const std::size_t size = dtype_size(source.dtype());
  Shape index(source.shape().size(), 0);
  for (std::int64_t to = 0; to < source.element_count(); ++to) {
    std::int64_t from = 0;
    for (std::size_t d = index.size(); d-- > 0;) from = from * source.shape()[d] + index[d];
    std::memcpy(result.mutable_data() + static_cast<std::size_t>(to) * size,
                source.data() + static_cast<std::size_t>(from) * size, size);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < source.shape()[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

/// An array that has been checked.
struct Array {
  DType dtype = DType::kFloat32;
  Shape shape;
  bool fortran_order = false;  ///< and that matters
  std::string_view data;
};

Array parse_array(std::string_view bytes, const std::string& file, const DType* expected) {
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) {
    fail_npy(file, "not a .npy file: it does not start with \\x93NUMPY and a version");
  }
  const auto byte_at = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3)
    fail_npy(file, ".npy version " + std::to_string(version) + " is unknown");
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) fail_npy(file, "the .npy header is cut short");
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  if (version > 1) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (length > bytes.size() - prefix) fail_npy(file, "the .npy header is cut short");
  HeaderParser header(bytes.substr(prefix, length), file);
  header.parse();
  const auto dtype = dtype_of(header.descriptor, expected);
  if (!dtype)
    fail_npy(file, "the .npy dtype '" + header.descriptor + "' is not one that npu-tools reads");
  const auto count = checked_element_count(header.shape);
  const auto size = count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(*dtype)))
                          : std::nullopt;
  const std::string_view data = bytes.substr(prefix + length);
  if (!size || static_cast<std::size_t>(*size) != data.size()) {
    fail_npy(file, "an array of " + header.descriptor + " and shape " + shape_text(header.shape) +
                       " does not have " + std::to_string(data.size()) + " bytes");
  }
  if (*dtype == DType::kBool &&
      std::any_of(data.begin(), data.end(), [](char c) { return c != 0 && c != 1; })) {
    fail_npy(file, "a bool array holds a byte other than 0 and 1");
  }
  const bool fortran_order = header.fortran_order && header.shape.size() > 1;
  return {*dtype, std::move(header.shape), fortran_order, data};
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& file, const DType* expected) {
  const Array array = parse_array(bytes, file, expected);
  Tensor tensor(array.dtype, array.shape);
  if (!array.data.empty()) {
    std::memcpy(tensor.mutable_data(), array.data.data(), array.data.size());
  }
  return array.fortran_order ? transposed(tensor) : tensor;
}

Tensor map_npy(const std::string& path, const DType* expected) {
  if (!is_regular_file(path)) return read_npy(path, expected);
  const auto file = std::make_shared<const MappedFile>(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->size());
  const Array array = parse_array(bytes, path, expected);
  if (array.fortran_order) return parse_npy(bytes, path, expected);
  const std::size_t offset = bytes.size() - array.data.size();
  return Tensor(array.dtype, array.shape,
                std::shared_ptr<const std::byte>(file, file->data() + offset));
}

NpyLayout npy_layout(const std::string& path) {
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  Array array = parse_array(bytes, path, nullptr);
  return {array.dtype, std::move(array.shape), array.fortran_order,
          bytes.size() - array.data.size()};
}

Tensor read_npy(const std::string& path, const DType* expected) {
  return parse_npy(read_file(path), path, expected);
}

std::string npy_header(DType dtype, const Shape& dimensions) {
  std::string_view descriptor;
  for (const Descriptor& row : kDescriptors) {
    if (row.dtype == dtype) descriptor = row.text;
  }
  std::string shape = "(";
  for (const std::int64_t dimension : dimensions) shape += std::to_string(dimension) + ", ";
  if (dimensions.size() > 1) shape.resize(shape.size() - 2);
  if (dimensions.size() == 1) shape.resize(shape.size() - 1);
  shape += ")";
  std::string header = "{'descr': '" + std::string(descriptor) +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string content(kMagic);
  content += '\x01';
  content += '\0';
  content += static_cast<char>(header.size() & 0xff);
  content += static_cast<char>(header.size() >> 8);
  return content + header;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string content = npy_header(tensor.dtype(), tensor.shape());
  content.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  write_file_atomically(path, content);
}

}  // namespace npu
