// SPDX-License-Identifier: Apache-2.0
// Arguments of a node by name: wraps bind_arguments, with messages that name the node.
// O(arguments of the op) for each look-up.
#include <spdlog/fmt/fmt.h>

#include <utility>

#include "npu/support/error.hpp"
#include "ops/argument_value.hpp"
#include "ops/schema.hpp"

namespace npu {
namespace {

[[noreturn]] void throw_bind_error(const Graph& graph, const Node& node, const std::string& text) {
  const NodeId id = graph.find_node(node.name);
  throw Error(ErrorCode::kInvalidGraph,
              fmt::format("node '{}' ({}): {}", node.name, node.op_type, text),
              id.valid() ? graph.location(id) : InputLocation{});
}

}  // namespace

BoundNode::BoundNode(const Graph& graph, const Node& node, const Schema& schema,
                     std::vector<BoundArgument> arguments)
    : graph_(&graph), node_(&node), schema_(&schema), arguments_(std::move(arguments)) {}

BoundNode::BoundNode(const Graph& graph, const Node& node, const Schema& schema)
    : graph_(&graph), node_(&node), schema_(&schema) {
  BindError error;
  auto bound = try_bind(graph, node, schema, error);
  if (!bound) throw_bind_error(graph, node, error.text);
  arguments_ = std::move(bound->arguments_);
}

std::optional<BoundNode> BoundNode::try_bind(const Graph& graph, const Node& node,
                                             const Schema& schema, BindError& error) {
  std::vector<OperandInfo> operands;
  operands.reserve(node.inputs.size());
  for (const TensorId id : node.inputs) {
    const TensorInfo& tensor = graph.tensor(id);
    operands.push_back({tensor.dtype, &tensor.shape});
  }
  std::vector<BoundArgument> arguments;
  if (auto fault = bind_arguments(schema, operands, node.attrs(), arguments)) {
    error = std::move(*fault);
    return std::nullopt;
  }
  return BoundNode(graph, node, schema, std::move(arguments));
}

const BoundArgument* BoundNode::find(std::string_view argument) const noexcept {
  for (std::size_t i = 0; i < schema_->arguments.size(); ++i) {
    if (schema_->arguments[i].name == argument) return &arguments_[i];
  }
  return nullptr;
}

namespace {

const Json& value_of(const BoundNode& bound, std::string_view argument) {
  const BoundArgument* found = bound.find(argument);
  if (found == nullptr || found->kind != BoundArgument::Kind::kValue) {
    throw_bind_error(bound.graph(), bound.node(),
                     fmt::format("argument '{}' has no value", argument));
  }
  return found->value;
}

[[noreturn]] void throw_wrong_type(const BoundNode& bound, std::string_view argument,
                                   std::string_view expected, const Json& value) {
  throw_bind_error(
      bound.graph(), bound.node(),
      fmt::format("argument '{}': expected {}, found {}", argument, expected, found_text(value)));
}

}  // namespace

std::optional<TensorId> BoundNode::tensor(std::string_view argument) const {
  const BoundArgument* found = find(argument);
  if (found == nullptr || found->kind != BoundArgument::Kind::kTensor) return std::nullopt;
  return node_->inputs[static_cast<std::size_t>(found->inputs.front())];
}

std::vector<TensorId> BoundNode::tensors(std::string_view argument) const {
  std::vector<TensorId> result;
  const BoundArgument* found = find(argument);
  if (found == nullptr) return result;
  for (const std::int32_t input : found->inputs) {
    result.push_back(input < 0 ? TensorId{} : node_->inputs[static_cast<std::size_t>(input)]);
  }
  return result;
}

bool BoundNode::is_none(std::string_view argument) const {
  const BoundArgument* found = find(argument);
  return found == nullptr || found->kind == BoundArgument::Kind::kNone;
}

std::int64_t BoundNode::integer(std::string_view argument) const {
  const Json& value = value_of(*this, argument);
  if (!is_int(value)) throw_wrong_type(*this, argument, "an integer", value);
  return value.get<std::int64_t>();
}

double BoundNode::number(std::string_view argument) const {
  const Json& value = value_of(*this, argument);
  const auto number = json_number(value);
  if (!number) throw_wrong_type(*this, argument, "a number", value);
  return *number;
}

bool BoundNode::boolean(std::string_view argument) const {
  const Json& value = value_of(*this, argument);
  if (!value.is_boolean()) throw_wrong_type(*this, argument, "true or false", value);
  return value.get<bool>();
}

std::string BoundNode::string(std::string_view argument) const {
  const Json& value = value_of(*this, argument);
  if (!value.is_string()) throw_wrong_type(*this, argument, "a string", value);
  return value.get<std::string>();
}

std::vector<std::int64_t> BoundNode::integers(std::string_view argument) const {
  const Json& value = value_of(*this, argument);
  if (!is_int(value) && !is_list_of(value, is_int)) {
    throw_wrong_type(*this, argument, "a list of integers", value);
  }
  std::vector<std::int64_t> result;
  if (value.is_array()) {
    for (const Json& element : value) result.push_back(element.get<std::int64_t>());
  } else {
    result.push_back(value.get<std::int64_t>());
  }
  for (const SchemaArgument& declared : schema_->arguments) {
    if (declared.name == argument && declared.list_size > 1 && result.size() == 1) {
      result.resize(static_cast<std::size_t>(declared.list_size), result.front());
    }
  }
  return result;
}

std::optional<DType> BoundNode::dtype(std::string_view argument) const {
  const BoundArgument* found = find(argument);
  if (found == nullptr || found->kind != BoundArgument::Kind::kValue || !found->value.is_string()) {
    return std::nullopt;
  }
  return parse_dtype(found->value.get_ref<const std::string&>());
}

}  // namespace npu
