// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu::onnx {

/// The import asks for more than it may have, and ends.
class Exhausted : public Error {
 public:
  explicit Exhausted(const std::string& what) : Error(ErrorCode::kUnsupported, what) {}
};

/// One value of the model: a graph input, a constant, or the result of an ATen node.
struct Value {
  enum class Kind : std::uint8_t { kInput, kConstant, kResult, kSequence, kUnknown, kAbsent };
  /// kUnknown: what a refused node would have produced; kAbsent: an input of a function that its
  /// call leaves out, which the body's nodes read as if they left it out themselves.
  Kind kind = Kind::kUnknown;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string name;                    ///< ONNX's; empty for what the import adds
  const OnnxTensor* stored = nullptr;  ///< kConstant: where its data lies in the model
  bool transposed = false;             ///< `stored` holds the transpose
  std::optional<Tensor> known;         ///< kConstant: its data, once somebody has asked for it
  std::int32_t node = -1;              ///< kResult
  std::int32_t result = 0;             ///< which result of the node
  std::vector<Value*> items;           ///< kSequence: its tensors, of one type

  bool is_constant() const noexcept { return kind == Kind::kConstant; }
  bool is_sequence() const noexcept { return kind == Kind::kSequence; }
  std::int64_t rank() const noexcept { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t count() const noexcept;
};

/// The same data in other dimensions, shared.
Tensor in_shape(const Tensor& tensor, const Shape& shape);

struct ResultType {
  DType dtype;
  Shape shape;
};

/// A node of the document.
struct DraftNode {
  std::string op;
  std::vector<Value*> inputs;
  Json attrs;
  std::vector<Value*> outputs;
  std::string origin;  ///< the ONNX node's name
};

/// Where a weight's data lies, as npu_frontend_weight has it.
struct WeightPlace {
  std::string name;
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_varint = false;
  bool transposed = false;
  const std::byte* data = nullptr;  ///< not null: in no file
};

/// The document under construction. Values live as long as the draft.
class Draft {
 public:
  /// All constants that the import computes; more is refused, since a small file can ask for it.
  static constexpr std::size_t kMostKnownBytes = std::size_t{1} << 28;

  Value* add_input(std::string name, DType dtype, Shape shape);
  Value* add_stored(const OnnxTensor& tensor, DType dtype);
  /// Throws Exhausted above kMostKnownBytes in all.
  Value* add_known(Tensor tensor);
  Value* add_unknown();
  Value* add_absent();
  Value* add_sequence(std::vector<Value*> items);
  /// A constant in other dimensions, of which nothing is copied.
  Value* view_of(Value* constant, Shape shape);
  /// The transpose of a constant matrix, of which nothing is copied.
  Value* transpose_of(Value* matrix);

  /// Adds a node with one result, of the ONNX node that is being imported (see set_origin).
  Value* emit(std::string op, std::vector<Value*> inputs, Json attrs, DType dtype, Shape shape);
  /// Adds a node with several results, and a getitem for each of them.
  std::vector<Value*> emit_several(std::string op, std::vector<Value*> inputs, Json attrs,
                                   const std::vector<ResultType>& results);
  void set_origin(std::string name) { origin_ = std::move(name); }
  const std::string& origin() const noexcept { return origin_; }

  /// The node that makes a value; null for inputs and constants.
  const DraftNode* producer(const Value* value) const noexcept {
    return value->node < 0 ? nullptr : &nodes_[static_cast<std::size_t>(value->node)];
  }
  /// The graph inputs that a value is computed from; those that are found first, at most 8.
  std::vector<const Value*> inputs_behind(const Value* value) const;
  std::deque<DraftNode>& nodes() noexcept { return nodes_; }
  std::vector<Value*>& inputs() noexcept { return inputs_; }
  std::vector<Value*>& outputs() noexcept { return outputs_; }
  std::size_t size() const noexcept { return nodes_.size(); }

 private:
  Value* add_value() { return &values_.emplace_back(); }

  std::deque<Value> values_;
  std::deque<DraftNode> nodes_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::string origin_;
  std::size_t known_bytes_ = 0;
};

}  // namespace npu::onnx
