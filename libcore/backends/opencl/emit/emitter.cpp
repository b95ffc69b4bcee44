// SPDX-License-Identifier: Apache-2.0
// Elements are looked up in this order: bound by the kernel, computed from a node that belongs to
// it or from a view, loaded from memory. What was computed at one index is kept while its scope is
// open. O(nodes of the group) a kernel.
#include "emit/emitter.hpp"

#include <algorithm>
#include <utility>

#include "emit/promotion.hpp"
#include "npu/support/error.hpp"
#include "ops/op_name.hpp"

namespace npu::opencl {

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
      (!model_.is_view(info.producer) && !inlined_.contains(info.producer))) {
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
  const OpRow& row = model_.row(info.producer);
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
  const OpRow& row = model_.row(id);
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
