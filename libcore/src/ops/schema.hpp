// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

enum class ArgumentType : std::uint8_t {
  kTensor,
  kTensorList,          ///< Tensor[]
  kOptionalTensorList,  ///< Tensor?[]
  kInt,                 ///< int, SymInt
  kFloat,
  kBool,
  kScalar,  ///< Scalar: int, float or bool
  kString,
  kDType,
  kLayout,
  kDevice,
  kMemoryFormat,
  kGenerator,
  kIntList,
  kFloatList,
  kBoolList,
  kScalarList,
  kStringList,  ///< str[], also the names of dimensions
  kOther,
};

/// One argument of an ATen schema.
struct SchemaArgument {
  std::string name;
  ArgumentType type = ArgumentType::kTensor;
  bool optional = false;  ///< accepts None: "Tensor?", "int?"
  bool keyword_only = false;
  std::int32_t list_size = 0;         ///< int[2]: 2; a single value stands for all of them
  std::optional<Json> default_value;  ///< null for None; nothing if the argument is required
};

/// An operator's signature, as ATen's native_functions.yaml writes it.
struct Schema {
  std::string name;  ///< "aten.conv2d.default"
  std::vector<SchemaArgument> arguments;
  std::int32_t result_count = 1;
};

/// Parses "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, ...) -> Tensor".
/// `op_type` becomes Schema::name. Throws Error kParse; schemas are compiled in, so that is a bug
/// in the program.
Schema parse_schema(std::string_view op_type, std::string_view text);

/// The value that one argument of a node is bound to.
struct BoundArgument {
  enum class Kind : std::uint8_t {
    kNone,     ///< None, or an optional argument that was not given
    kTensor,   ///< inputs[0] is the index into the node's inputs
    kTensors,  ///< a list; -1 stands for None in Tensor?[]
    kValue,    ///< `value`, from attrs or from the schema's default
  };
  Kind kind = Kind::kNone;
  std::vector<std::int32_t> inputs;
  Json value;
  bool from_default = false;
};

struct BindError {
  std::string argument;  ///< empty if the fault concerns no single argument
  std::string text;
};

/// What bind_arguments needs to know about an operand.
struct OperandInfo {
  DType dtype = DType::kFloat32;
  const Shape* shape = nullptr;
};

/// Rebuilds a schema's arguments from the flat tensor inputs and attrs of a node (npu-ir(5),
/// "Arguments"): tensors in order, an attr of the argument's name in place of a tensor, Tensor[] by
/// _tensor_list_sizes, Tensor?[] by _tensor_list_none_masks, the rest from attrs or, failing that,
/// the default. `_none_args` names tensor arguments that were None. Without it, a None before other
/// tensors is recognised by shape and arity for normalisation ops, and refused where that is
/// ambiguous. Attr values are checked against the argument's type; unknown attrs that do not start
/// with '_' are refused. Returns the error, or fills `bound` (one entry per schema argument).
std::optional<BindError> bind_arguments(const Schema& schema,
                                        const std::vector<OperandInfo>& operands, const Json& attrs,
                                        std::vector<BoundArgument>& bound);

/// A node with its arguments bound, for code that looks them up by name.
class BoundNode {
 public:
  /// Throws Error kInvalidGraph that names the node and the argument if it does not bind.
  BoundNode(const Graph& graph, const Node& node, const Schema& schema);
  /// As the constructor, but on failure returns nothing and sets `error`.
  static std::optional<BoundNode> try_bind(const Graph& graph, const Node& node,
                                           const Schema& schema, BindError& error);

  const Graph& graph() const noexcept { return *graph_; }
  const Node& node() const noexcept { return *node_; }
  const Schema& schema() const noexcept { return *schema_; }
  const std::vector<BoundArgument>& arguments() const noexcept { return arguments_; }

  /// Null if the schema has no such argument.
  const BoundArgument* find(std::string_view argument) const noexcept;
  /// The tensor bound to a Tensor or Tensor? argument; nothing if it is None or a scalar.
  std::optional<TensorId> tensor(std::string_view argument) const;
  /// The tensors of a list argument.
  std::vector<TensorId> tensors(std::string_view argument) const;
  /// True if the argument is None or was not given and has no default.
  bool is_none(std::string_view argument) const;
  /// Values. Throws Error kInvalidGraph if the argument is missing or of another type.
  std::int64_t integer(std::string_view argument) const;
  double number(
      std::string_view argument) const;  ///< int, float, bool or Scalar; "inf", "-inf", "nan"
  bool boolean(std::string_view argument) const;
  std::string string(std::string_view argument) const;
  /// An int list; one value for int[N] is repeated N times.
  std::vector<std::int64_t> integers(std::string_view argument) const;
  std::optional<DType> dtype(std::string_view argument) const;

 private:
  BoundNode(const Graph& graph, const Node& node, const Schema& schema,
            std::vector<BoundArgument> arguments);
  const Graph* graph_;
  const Node* node_;
  const Schema* schema_;
  std::vector<BoundArgument> arguments_;
};

/// A number in attrs: a JSON number, a bool, or one of the strings "inf", "-inf" and "nan" (also
/// "Infinity", "-Infinity", "NaN"), which stand for the
/// values that JSON cannot express.
std::optional<double> json_number(const Json& value) noexcept;

}  // namespace npu
