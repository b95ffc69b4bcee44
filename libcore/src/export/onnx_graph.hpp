// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu::onnx_export {

/// What files state in opset_import.
inline constexpr std::int64_t kOpset = 20;

using OnnxInts = std::vector<std::int64_t>;

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, OnnxInts, std::vector<std::string>> value;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

struct OnnxNode {
  std::string op_type;
  std::vector<std::string> inputs;  ///< an empty name: absent
  std::vector<std::string> outputs;
  OnnxAttributes attributes;
};

/// A model of ONNX that is being put together.
class OnnxGraph {
 public:
  explicit OnnxGraph(std::string name) : name_(std::move(name)) {}

  /// Takes a name that fresh() must not return.
  void reserve(const std::string& name) { taken_.insert(name); }
  /// `wanted`, or with a number behind it: a name that nothing has.
  std::string fresh(const std::string& wanted);

  /// Nodes stand in the file in the order of the calls, which must be topological.
  void add(OnnxNode node) { nodes_.push_back(std::move(node)); }
  /// A constant with a reserved name.
  void add_constant(const std::string& name, Tensor value);
  /// The name of a constant; small ones that are equal are one.
  std::string constant(const std::string& wanted, const Tensor& value);
  std::string integers(const OnnxInts& values);
  /// The name of the value that `make` adds, whoever first asks for it by this key.
  std::string once(const std::string& key, const std::function<std::string()>& make);

  void add_input(const std::string& name, DType dtype, const Shape& shape);
  void add_output(const std::string& name, DType dtype, const Shape& shape);

  /// Drops nodes and constants that no output depends on.
  void drop_unread();
  /// Writes the model, atomically. If it takes more than `most_bytes`, constants stand in the file
  /// `path`.data. Throws Error kUnsupported if the rest takes more, kIo.
  void write(const std::string& path, const std::string& producer, std::uint64_t most_bytes) const;

 private:
  struct Value {
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  /// Constants as they stand in the model, each a head and the bytes behind it.
  struct Pieces {
    std::vector<std::string> heads;
    std::vector<std::string_view> values;

    std::uint64_t bytes() const {
      std::uint64_t sum = 0;
      for (const std::string& head : heads) sum += head.size();
      for (const std::string_view value : values) sum += value.size();
      return sum;
    }
  };
  static std::string constant_head(const std::string& name, const Tensor& value);
  static std::string constant_elsewhere(const std::string& name, const Tensor& value,
                                        const std::string& file, std::uint64_t offset);
  Pieces constants_inside() const;
  /// The large ones as references to `file`, whose content is `data`.
  Pieces constants_beside(const std::string& file, std::vector<std::string_view>& data) const;
  static std::string value_message(const Value& value);
  static std::string node_message(const OnnxNode& node);

  std::string name_;
  std::vector<OnnxNode> nodes_;
  std::vector<std::pair<std::string, Tensor>> constants_;
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> suffix_of_;  // the last one that a name was given
  std::map<std::string, std::string> small_;        // by dtype, shape and bytes
  std::unordered_map<std::string, std::string> once_;
};

}  // namespace npu::onnx_export
