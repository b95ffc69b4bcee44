// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace npu::test {

/// Writes ONNX's messages, as the tests need them: a field is a number and a value.
class Proto {
 public:
  Proto& number(std::uint32_t field, std::uint64_t value) {
    put(field << 3);
    put(value);
    return *this;
  }
  Proto& bytes(std::uint32_t field, std::string_view value) {
    put(field << 3 | 2);
    put(value.size());
    text_ += value;
    return *this;
  }
  /// Four bytes as they stand.
  Proto& fixed32(std::uint32_t field, std::string_view value) {
    put(field << 3 | 5);
    text_ += value;
    return *this;
  }
  Proto& message(std::uint32_t field, const Proto& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

/// A value whose dimensions are texts: numbers or names.
inline Proto named_value(std::string_view name, const std::vector<std::string>& shape,
                         std::uint64_t type = 1) {
  Proto dims;
  for (const std::string& extent : shape) {
    const bool is_number = !extent.empty() && extent.front() >= '0' && extent.front() <= '9';
    dims.message(1, is_number        ? Proto().number(1, std::stoull(extent))
                    : extent.empty() ? Proto()
                                     : Proto().bytes(2, extent));
  }
  return Proto().bytes(1, name).message(
      2, Proto().message(1, Proto().number(1, type).message(2, dims)));
}

/// An input, output or value of the element type that ONNX numbers so, 1 being float32; a dimension
/// of 0 is symbolic, called s.
inline Proto onnx_value(std::string_view name, const std::vector<std::int64_t>& shape,
                        std::uint64_t type = 1) {
  Proto dims;
  for (const std::int64_t extent : shape) {
    Proto dim;
    if (extent == 0) {
      dim.bytes(2, "s");
    } else {
      dim.number(1, static_cast<std::uint64_t>(extent));
    }
    dims.message(1, dim);
  }
  return Proto().bytes(1, name).message(
      2, Proto().message(1, Proto().number(1, type).message(2, dims)));
}

/// An output of which nothing but its name is stated.
inline Proto onnx_result(std::string_view name) { return Proto().bytes(1, name); }

inline Proto onnx_node(std::string_view op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs, std::string_view name = "") {
  Proto node;
  for (const std::string& input : inputs) node.bytes(1, input);
  for (const std::string& output : outputs) node.bytes(2, output);
  if (!name.empty()) node.bytes(3, name);
  return node.bytes(4, op);
}

inline Proto onnx_ints(std::string_view name, const std::vector<std::int64_t>& values) {
  Proto attribute;
  attribute.bytes(1, name).number(20, 7);
  for (const std::int64_t value : values) attribute.number(8, static_cast<std::uint64_t>(value));
  return attribute;
}

inline Proto onnx_int(std::string_view name, std::int64_t value) {
  return Proto().bytes(1, name).number(3, static_cast<std::uint64_t>(value)).number(20, 2);
}

inline Proto onnx_graph(std::string_view name, const Proto& graph) {
  return Proto().bytes(1, name).message(6, graph).number(20, 5);
}

/// An initializer of int64 or, with `type` 9, 2 or 3, bool, uint8 or int8.
inline Proto onnx_integers(std::string_view name, const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& values, std::uint64_t type = 7) {
  Proto tensor;
  for (const std::int64_t extent : shape) tensor.number(1, static_cast<std::uint64_t>(extent));
  std::string raw;
  for (const std::int64_t value : values) {
    if (type == 9 || type == 2 || type == 3) {
      raw += static_cast<char>(value);
    } else {
      raw.append(reinterpret_cast<const char*>(&value), type == 6 ? 4 : sizeof value);
    }
  }
  return tensor.number(2, type).bytes(8, name).bytes(9, raw);
}

/// A float32 initializer with raw_data.
inline Proto onnx_tensor(std::string_view name, const std::vector<std::int64_t>& shape,
                         const std::vector<float>& values) {
  Proto tensor;
  for (const std::int64_t extent : shape) tensor.number(1, static_cast<std::uint64_t>(extent));
  std::string raw(values.size() * 4, '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor.number(2, 1).bytes(8, name).bytes(9, raw);
}

inline Proto onnx_model(const Proto& graph, std::uint64_t opset = 13) {
  return Proto().number(1, 8).message(7, graph).message(8, Proto().number(2, opset));
}

}  // namespace npu::test
