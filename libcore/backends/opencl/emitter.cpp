// SPDX-License-Identifier: Apache-2.0
// Elements are looked up in this order: bound by the kernel, computed from a node that belongs to
// it or from a view, loaded from memory. What was computed at one index is kept while its scope is
// open. O(nodes of the group) a kernel.
#include "emitter.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <utility>

#include "npu/support/error.hpp"
#include "op_table.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {

// ---- Model ----

Model::Model(const Graph& graph, Machine machine)
    : graph_(&graph), machine_(std::move(machine)), bound_(graph.nodes().size()) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (find_row(node.op_type) == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  "node '" + node.name + "': the op '" + node.op_type + "' is not supported");
    }
    if (node.op_type == kGetitem) continue;
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  "node '" + node.name + "': the op '" + node.op_type + "' has no schema");
    }
    bound_[i].emplace(graph, node, op->schema);
  }
  for (const TensorInfo& tensor : graph.tensors()) {
    const DType dtype = tensor.dtype;
    if (dtype == DType::kComplex64 || dtype == DType::kComplex128 ||
        (dtype == DType::kFloat64 && !machine_.has_float64)) {
      const NodeId node = tensor.producer.valid()    ? tensor.producer
                          : tensor.consumers.empty() ? NodeId{}
                                                     : tensor.consumers.front();
      throw Error(ErrorCode::kUnsupported,
                  (node.valid() ? "node '" + graph.node(node).name + "', " : "") + "tensor '" +
                      tensor.name + "': " + std::string(dtype_name(dtype)) +
                      " is not supported on this device");
    }
    if (checked_element_count(tensor.shape).value_or(0) > INT32_MAX / 2) index_type_ = "long";
  }
}

std::int64_t Model::count(TensorId id) const {
  return checked_element_count(shape(id)).value_or(0);
}

const std::vector<std::int64_t>* tuned_sizes(const Machine& machine, const std::string& key) {
  const auto found = machine.tuning.find(key);
  return found == machine.tuning.end() ? nullptr : &found->second;
}

void refuse_tuning(const std::string& key, const std::vector<std::int64_t>& sizes) {
  throw Error(ErrorCode::kInvalidGraph, "tuning of '" + key + "': " + shape_text(sizes) +
                                            " are no sizes of it on this device");
}

// ---- Types and numbers ----

std::string value_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "double";
    case DType::kInt8:
      return "char";
    case DType::kUInt8:
    case DType::kBool:
      return "uchar";
    case DType::kInt16:
      return "short";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "long";
    default:
      return "float";
  }
}

std::string storage_type(DType dtype) {
  if (dtype == DType::kFloat16) return "half";
  if (dtype == DType::kBFloat16) return "ushort";
  return value_type(dtype);
}

std::string literal(double number, DType dtype) {
  if (!is_floating_point(dtype)) {
    const bool fits = number > -9.2e18 && number < 9.2e18;
    return literal(fits ? static_cast<std::int64_t>(number) : std::int64_t{0}, dtype);
  }
  const bool is_double = dtype == DType::kFloat64;
  if (std::isnan(number)) return is_double ? "(double)NAN" : "NAN";
  if (std::isinf(number)) {
    const std::string sign = number < 0 ? "-" : "";
    return "(" + sign + (is_double ? "(double)INFINITY)" : "INFINITY)");
  }
  char text[64];
  std::snprintf(text, sizeof text, is_double ? "%.17g" : "%.9g",
                is_double ? number : static_cast<double>(static_cast<float>(number)));
  std::string result = text;
  if (result.find_first_of(".ein") == std::string::npos) result += ".0";
  if (result.find("inf") != std::string::npos) return number < 0 ? "(-INFINITY)" : "INFINITY";
  if (!is_double) result += "f";
  return number < 0 ? "(" + result + ")" : result;
}

std::string literal(std::int64_t number, DType dtype) {
  if (is_floating_point(dtype)) return literal(static_cast<double>(number), dtype);
  if (dtype == DType::kBool) return number != 0 ? "(uchar)1" : "(uchar)0";
  if (number == INT64_MIN) return "((long)(-9223372036854775807L - 1))";
  return "(" + value_type(dtype) + ")(" + std::to_string(number) + "L)";
}

std::string cast_value(const std::string& value, DType from, DType to) {
  if (from == to || value_type(from) == value_type(to)) {
    if (to == DType::kBool && from != to) return "(uchar)(" + value + " != 0)";
    return value;
  }
  if (to == DType::kBool) return "(uchar)(" + value + " != 0)";
  // A float out of the range of a small integer wraps as on a CPU.
  const bool narrows = is_floating_point(from) && is_integer(to) && dtype_size(to) < 4;
  return "(" + value_type(to) + ")" + (narrows ? "(long)" : "") + "(" + value + ")";
}

std::string lowest(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "(char)(-128)";
    case DType::kInt16:
      return "(short)(-32768)";
    case DType::kInt32:
      return "(-2147483647 - 1)";
    case DType::kInt64:
      return literal(INT64_MIN, dtype);
    case DType::kUInt8:
    case DType::kBool:
      return "(uchar)0";
    default:
      return literal(-INFINITY, dtype);
  }
}

std::string highest(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "(char)127";
    case DType::kInt16:
      return "(short)32767";
    case DType::kInt32:
      return "2147483647";
    case DType::kInt64:
      return "9223372036854775807L";
    case DType::kUInt8:
      return "(uchar)255";
    case DType::kBool:
      return "(uchar)1";
    default:
      return literal(INFINITY, dtype);
  }
}

// ---- Text ----

Emitter::Emitter(const Model& model, std::set<NodeId> inlined)
    : model_(model), inlined_(std::move(inlined)) {}

void Emitter::line(const std::string& text) {
  lines_.push_back(std::string(2 * scopes_.size(), ' ') + text);
}

void Emitter::open(const std::string& head) {
  line(head + " {");
  scopes_.emplace_back();
}

void Emitter::close(const std::string& tail) {
  scopes_.pop_back();
  line(tail);
}

std::string Emitter::fresh(const std::string& prefix) {
  return prefix + std::to_string(next_name_++);
}

std::string Emitter::define(const std::string& type, const std::string& value) {
  std::string name = fresh("t");
  line("const " + type + " " + name + " = " + value + ";");
  return name;
}

Index Emitter::define_index(const Index& index) {
  Index result;
  for (const std::string& each : index) {
    const bool is_simple = each.find_first_of(" (") == std::string::npos;
    result.push_back(is_simple ? each : define(index_type(), each));
  }
  return result;
}

// ---- Values ----

std::string Emitter::element(TensorId tensor, const Index& index) {
  if (index.size() != shape(tensor).size()) throw CannotFuse{"an index has another rank"};
  constexpr int kDeepest = 500;
  constexpr std::size_t kMostLines = 20000;
  if (depth_ >= kDeepest || lines_.size() > kMostLines) {
    throw CannotFuse{"a chain of ops is too long for one kernel"};
  }
  const Depth deeper(depth_);
  if (const auto found = bound_.find(tensor.value); found != bound_.end()) {
    return found->second(index);
  }
  const std::string key = std::to_string(tensor.value) + index_key(index);
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(key); found != scope->end()) return found->second;
  }
  const TensorInfo& info = model_.graph().tensor(tensor);
  if (!info.producer.valid() ||
      (!is_view(model_, info.producer) && !inlined_.contains(info.producer))) {
    const std::string loaded = load(tensor, index);
    return scopes_.back()[key] = loaded;
  }
  const Node& node = model_.node(info.producer);
  if (node.op_type == kGetitem) {
    const auto results = static_cast<std::int64_t>(node.inputs.size());
    const Json stated = node.attrs().value("index", Json());
    std::int64_t which = stated.is_number_integer() ? stated.get<std::int64_t>() : results;
    if (which < 0) which += results;
    if (which < 0 || which >= results) refuse(node, "its index is not that of an operand");
    const TensorId selected = node.inputs[static_cast<std::size_t>(which)];
    expect_shape(node, 0, shape(selected));
    expect_dtype(node, 0, dtype(selected));
    return element(selected, index);
  }
  const OpRow& row = *find_row(node.op_type);
  if (row.element == nullptr) throw CannotFuse{"'" + node.name + "' is no op of single elements"};
  check_node(info.producer);
  std::string value =
      row.element(*this, model_.bound(info.producer), static_cast<int>(info.result), index);
  if (row.kind == OpClass::kView) return value;
  return scopes_.back()[key] = define(info.dtype, value);
}

std::string Emitter::element_as(TensorId tensor, const Index& index, DType to) {
  return cast_value(element(tensor, index), dtype(tensor), to);
}

std::string Emitter::broadcast_element(TensorId tensor, const Index& index, DType to) {
  if (shape(tensor).size() > index.size()) throw CannotFuse{"an operand has a higher rank"};
  return element_as(tensor, broadcast_index(index, shape(tensor)), to);
}

void Emitter::bind(TensorId tensor, Function function) {
  bound_[tensor.value] = std::move(function);
}

void Emitter::bind_value(TensorId tensor, const Index& index, const std::string& name) {
  bind(tensor, [index, name](const Index& asked) {
    if (asked != index) throw CannotFuse{"a result is read at other places than it is computed"};
    return name;
  });
}

std::string Emitter::load(TensorId tensor, const Index& index) {
  const std::string memory = pointer(tensor, false);
  const std::string place = linear_place(index, shape(tensor));
  switch (dtype(tensor)) {
    case DType::kFloat16:
      return define("float", "vload_half(" + place + ", " + memory + ")");
    case DType::kBFloat16:
      return define("float", "as_float((uint)" + memory + "[" + place + "] << 16)");
    default:
      return define(dtype(tensor), memory + "[" + place + "]");
  }
}

void Emitter::store(TensorId tensor, const Index& index, const std::string& value,
                    std::int32_t output) {
  const std::string memory = pointer(tensor, true, output);
  const std::string place = linear_place(index, shape(tensor));
  switch (dtype(tensor)) {
    case DType::kFloat16:
      return line("vstore_half_rte(" + value + ", " + place + ", " + memory + ");");
    case DType::kBFloat16:
      return line(memory + "[" + place + "] = npu_bfloat16(" + value + ");");
    default:
      return line(memory + "[" + place + "] = " + value + ";");
  }
}

std::string Emitter::place_within(const Node& node, const std::string& stated,
                                  std::int64_t extent) {
  // Without results, as of a part of a graph that has no edges, nothing is looked up.
  const bool looks_up =
      std::ranges::all_of(node.outputs, [&](TensorId id) { return model_.count(id) > 0; });
  if (extent < 1 && looks_up) refuse(node, "it has an index into a dimension without elements");
  indexing_.insert(node.name);
  // Passed, so that a table of any length has one kernel.
  const std::string bound = define("long", size(std::max<std::int64_t>(extent, 1)));
  const std::string place = define("long", "(long)(" + stated + ")");
  const std::string from_start =
      define("long", place + " < 0 ? " + place + " + " + bound + " : " + place);
  line("if (" + from_start + " < 0 || " + from_start + " >= " + bound + ") *" +
       pointer(TensorId{}, true) + " = 1;");
  return define(index_type(),
                "(" + index_type() + ")clamp(" + from_start + ", 0L, " + bound + " - 1)");
}

void Emitter::local_array(const std::string& type, const std::string& name,
                          std::initializer_list<std::int64_t> extents) {
  std::int64_t bytes = type == "double" || type == "long" ? 8 : type == "half" ? 2 : 4;
  std::string text = "__local " + type + " " + name;
  for (const std::int64_t extent : extents) {
    bytes *= extent;
    text += "[" + std::to_string(extent) + "]";
  }
  local_bytes_ += bytes;
  if (local_bytes_ > model_.machine().local_bytes) {
    throw CannotFuse{"it needs more local memory than the device has"};
  }
  line(text + " __attribute__((aligned(16)));");
}

std::string Emitter::pointer(TensorId tensor, bool is_written, std::int32_t output) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const KernelArgument& known = arguments_[i];
    if (known.tensor == tensor && known.is_written == is_written && known.output == output &&
        known.scratch_bytes == 0) {
      return "p" + std::to_string(i);
    }
  }
  arguments_.push_back({.tensor = tensor, .is_written = is_written, .output = output});
  return "p" + std::to_string(arguments_.size() - 1);
}

std::string Emitter::size(std::int64_t value) {
  sizes_.push_back(static_cast<std::uint64_t>(value));
  return "size" + std::to_string(sizes_.size() - 1);
}

std::string Emitter::scratch(DType dtype, std::int64_t count) {
  KernelArgument argument;
  argument.is_written = true;
  argument.scratch_dtype = dtype;
  const std::int64_t bytes = dtype == DType::kFloat64 || dtype == DType::kInt64 ? 8 : 4;
  argument.scratch_bytes = std::max<std::int64_t>(count, 1) * bytes;
  arguments_.push_back(argument);
  return "p" + std::to_string(arguments_.size() - 1);
}

// ---- Refusals ----

void Emitter::refuse(const Node& node, const std::string& text) const {
  throw Error(ErrorCode::kUnsupported, "node '" + node.name + "' (" + node.op_type + "): " + text);
}

void Emitter::expect_shape(const Node& node, int result, const Shape& expected) const {
  const auto which = static_cast<std::size_t>(result);
  if (which < node.outputs.size() && shape(node.outputs[which]) == expected) return;
  refuse(node, "expected a result of shape " + shape_text(expected) + ", found " +
                   (which < node.outputs.size() ? shape_text(shape(node.outputs[which])) : "none"));
}

void Emitter::expect_broadcast(const Node& node, TensorId operand, const Shape& to) const {
  const Shape& from = shape(operand);
  bool fits = from.size() <= to.size();
  for (std::size_t d = 0; fits && d < from.size(); ++d) {
    fits = from[d] == 1 || from[d] == to[to.size() - from.size() + d];
  }
  if (!fits) {
    refuse(node,
           "an operand of shape " + shape_text(from) + " does not broadcast to " + shape_text(to));
  }
}

void Emitter::expect_dtype(const Node& node, int result, DType expected) const {
  const auto which = static_cast<std::size_t>(result);
  if (which < node.outputs.size() && dtype(node.outputs[which]) == expected) return;
  refuse(node, "expected a result of dtype " + std::string(dtype_name(expected)));
}

namespace {

Shape broadcast_shapes(const Emitter& emitter, const Node& node) {
  Shape result;
  for (const TensorId input : node.inputs) {
    if (!join_shape(result, emitter.shape(input))) {
      emitter.refuse(node, "its operands do not broadcast to one shape");
    }
  }
  return result;
}

}  // namespace

void Emitter::check_node(NodeId id) {
  if (!checked_.insert(id).second) return;
  const Node& node = model_.node(id);
  const OpRow& row = *find_row(node.op_type);
  if (row.shape != ShapeRule::kOwn && node.inputs.empty()) refuse(node, "a tensor is needed");
  if (row.shape == ShapeRule::kFirst) expect_shape(node, 0, shape(node.inputs[0]));
  if (row.shape == ShapeRule::kBroadcast) expect_shape(node, 0, broadcast_shapes(*this, node));
  if (row.dtype == DTypeRule::kBool) expect_dtype(node, 0, DType::kBool);
  if (node.inputs.empty()) return;
  const DType first = dtype(node.inputs[0]);
  if (row.dtype == DTypeRule::kFirst) expect_dtype(node, 0, first);
  if (row.dtype == DTypeRule::kFloat) {
    expect_dtype(node, 0, is_floating_point(first) ? first : DType::kFloat32);
  }
  if (row.dtype == DTypeRule::kPromoted) {
    expect_dtype(node, 0, promoted(model_, model_.bound(id), {"self", "other"}));
  }
}

// ---- The whole ----

std::string Emitter::text(const std::string& attributes) const {
  std::string result = attributes + "\n__kernel void KERNEL(";
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::string number = std::to_string(i);
    result += (i == 0 ? "" : ", ");
    result += "__global uchar* b" + number + ", const ulong o" + number;
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    result += (i == 0 && arguments_.empty() ? "" : ", ");
    result += "const long given" + std::to_string(i);
  }
  result += ") {\n";
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const std::string number = std::to_string(i);
    result += "  const " + index_type() + " size" + number + " = given" + number + ";\n";
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::string number = std::to_string(i);
    const KernelArgument& argument = arguments_[i];
    const std::string element = argument.tensor.valid()       ? storage_type(dtype(argument.tensor))
                                : argument.scratch_bytes != 0 ? value_type(argument.scratch_dtype)
                                                              : "int";
    const std::string type =
        std::string("__global ") + (argument.is_written ? "" : "const ") + element + "*";
    result += "  " + type + " restrict p" + number + " = (" + type + ")(b" + number + " + o" +
              number + ");\n";
  }
  for (const std::string& each : lines_) result += each + "\n";
  return result + "}\n";
}

}  // namespace npu::opencl
