// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "importer.hpp"

namespace npu::onnx {

using Ints = std::vector<std::int64_t>;

/// A number that ONNX states in float32.
constexpr double from_float(float value) { return static_cast<double>(value); }
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One node while it is imported: its operands, attributes and results, and what rules share. What
/// a rule cannot import it refuses, which ends the rule. Which operands and attributes a rule asks
/// for is recorded, since what a node has and nobody has read would be ignored (unread.hpp).
class Op {
 public:
  Op(Importer& importer, const NodeProto& node, const Scope& scope, std::int64_t opset,
     std::vector<Value*> inputs)
      : importer_(importer),
        node_(node),
        scope_(scope),
        opset_(opset),
        origin_(importer.draft().origin()),
        inputs_(std::move(inputs)),
        outputs_(node.outputs.size(), nullptr),
        is_read_(inputs_.size(), false) {}

  [[noreturn]] static void refuse(std::string reason) { throw Refusal{std::move(reason)}; }

  const NodeProto& node() const noexcept { return node_; }
  const Scope& scope() const noexcept { return scope_; }
  Importer& importer() noexcept { return importer_; }
  Draft& draft() noexcept { return importer_.draft(); }
  std::int64_t opset() const noexcept { return opset_; }
  /// What the nodes of the draft are called after.
  const std::string& origin() const noexcept { return origin_; }

  // ---- Operands ----

  std::size_t input_count() const noexcept { return inputs_.size(); }
  bool has_input(std::size_t index) const {
    if (index >= inputs_.size()) return false;
    is_read_[index] = true;
    return inputs_[index] != nullptr;
  }
  /// Refuses if the operand is absent.
  Value* in(std::size_t index) const;
  Value* maybe_in(std::size_t index) const { return has_input(index) ? inputs_[index] : nullptr; }
  /// The operands as they are, null where one is absent, without a record.
  const std::vector<Value*>& inputs() const noexcept { return inputs_; }
  /// The data of an operand that has to be constant; refuses if it is not.
  const Tensor& constant(std::size_t index, std::string_view what);
  /// The same for any value.
  const Tensor& known_or_refuse(Value* value, std::string_view what);
  Ints integers(std::size_t index, std::string_view what);
  /// Operand `index`, or before opset `since` the attribute `name`; nothing if it is absent.
  std::optional<Ints> integers_since(std::int64_t since, std::string_view name, std::size_t index);
  double number(std::size_t index, std::string_view what);

  // ---- Attributes ----

  const AttributeProto* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t absent) const;
  double real(std::string_view name, double absent) const;
  std::string text(std::string_view name, std::string_view absent) const;
  std::optional<Ints> list(std::string_view name) const;
  /// Empty if it is absent, as are those of texts.
  std::vector<float> reals(std::string_view name) const;
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  /// The tensor of an attribute; null if it is absent.
  const OnnxTensor* tensor(std::string_view name) const;
  /// An axis counted from the end, if negative; refuses if it is out of range.
  static std::int64_t axis_of(std::int64_t axis, std::int64_t rank);

  // ---- What has been read ----

  bool was_read(std::size_t index) const noexcept { return is_read_[index]; }
  bool was_read(std::string_view name) const { return asked_.count(name) != 0; }
  /// The names of attributes that were asked for, whether there or not.
  const std::set<std::string, std::less<>>& asked() const noexcept { return asked_; }
  void forget_reads();
  /// What an attribute of the node stands for, without a record; null: an attribute that the call
  /// of the function lacks.
  const AttributeProto* value_of(const AttributeProto& attribute) const {
    return resolve(attribute, &scope_);
  }

  // ---- Results ----

  std::size_t output_count() const noexcept { return outputs_.size(); }
  bool wants(std::size_t index) const noexcept {
    return index < outputs_.size() && !node_.outputs[index].empty();
  }
  void set(std::size_t index, Value* value) {
    if (index < outputs_.size()) outputs_[index] = value;
  }
  const std::vector<Value*>& outputs() const noexcept { return outputs_; }
  /// Whether the results are to be made by nodes, even if they could be computed.
  bool is_kept() const;

  Value* emit(std::string op, std::vector<Value*> inputs, Json attrs, DType dtype, Shape shape) {
    return draft().emit(std::move(op), std::move(inputs), std::move(attrs), dtype,
                        std::move(shape));
  }
  /// A node whose result has the type of its first operand.
  Value* emit_like(std::string op, std::vector<Value*> inputs, Json attrs = Json::object());

  // ---- What many rules need ----

  Value* constant_value(Tensor tensor) { return draft().add_known(std::move(tensor)); }
  Value* integer_constant(const Ints& values, const Shape& shape);
  /// `value` in other dimensions; the value itself if they are its own.
  Value* view(Value* value, Shape shape);
  Value* permute(Value* value, const Ints& order);
  Value* cast(Value* value, DType dtype);
  Value* slice(Value* value, std::int64_t axis, std::int64_t start, std::int64_t end,
               std::int64_t step = 1);
  /// Pads of an axis order from the first to the last, [begin, end] each.
  Value* pad(Value* value, const std::vector<std::pair<std::int64_t, std::int64_t>>& pads,
             double fill);
  Value* expand(Value* value, const Shape& shape);
  /// A tensor of one number, as JSON writes it.
  Value* filled(const Shape& shape, DType dtype, Json number);
  /// `aten.NAME.Tensor` with broadcasting; a constant of one element goes into the attributes.
  Value* binary(const std::string& name, Value* a, Value* b);
  Value* scalar(const std::string& name, Value* a, double other);
  Value* compare(const std::string& name, Value* a, Value* b);
  Value* reduce(const std::string& name, Value* value, const Ints& axes, bool keep);
  /// The only element of a constant; nothing for other values.
  std::optional<double> single(Value* value);

 private:
  Value* known_slice(Value* value, std::int64_t axis, std::int64_t start, std::int64_t end,
                     std::int64_t step);
  const AttributeProto* resolve(const AttributeProto& attribute, const Scope* scope) const;

  Importer& importer_;
  const NodeProto& node_;
  const Scope& scope_;
  std::int64_t opset_;
  std::string origin_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  mutable std::vector<bool> is_read_;
  mutable std::set<std::string, std::less<>> asked_;
};

/// The shape that NumPy's rules give two operands; refuses if there is none.
Shape broadcast(const Shape& a, const Shape& b);
/// Product of the dimensions [begin, end); refuses what does not fit.
std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end);
Json json_number_of(double value, DType dtype);

}  // namespace npu::onnx
