// SPDX-License-Identifier: Apache-2.0
// Functions of two elements, comparisons and choices.
#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

/// As Python and PyTorch have it: towards minus infinity.
std::string floored(Emitter& emitter, DType dtype, const std::string& a, const std::string& b) {
  if (is_floating_point(dtype)) {
    // 1 / 0.1 is 10 in float, and 9 tenths fit into 1: from the rest, as PyTorch has it.
    const std::string rest = emitter.define(dtype, "fmod(" + a + ", " + b + ")");
    const std::string whole =
        emitter.define(dtype, "(" + a + " - " + rest + ") / " + b + " - (" + rest + " != 0 && (" +
                                  b + " < 0) != (" + rest + " < 0) ? 1 : 0)");
    const std::string low = emitter.define(dtype, "floor(" + whole + ")");
    return "(" + b + " == 0 ? " + a + " / " + b + " : " + whole + " - " + low + " > 0.5 ? " + low +
           " + 1 : " + low + ")";
  }
  const std::string quotient = emitter.define(dtype, a + " / " + b);
  return "(" + quotient + " - ((" + a + " % " + b + " != 0) && ((" + a + " < 0) != (" + b +
         " < 0)) ? 1 : 0))";
}

std::string remainder(DType dtype, const std::string& a, const std::string& b, Emitter& emitter) {
  const std::string rest = emitter.define(
      dtype, is_floating_point(dtype) ? "fmod(" + a + ", " + b + ")" : a + " % " + b);
  return "(" + rest + " != 0 && ((" + rest + " < 0) != (" + b + " < 0)) ? " + rest + " + " + b +
         " : " + rest + ")";
}

std::string power(Emitter& emitter, const BoundNode& node, DType dtype, const std::string& a,
                  const std::string& b) {
  if (!is_floating_point(dtype)) {
    const BoundArgument* exponent = node.find("exponent");
    if (exponent != nullptr && exponent->kind == BoundArgument::Kind::kValue &&
        node.number("exponent") == 2.0) {
      return "(" + a + " * " + a + ")";
    }
    emitter.refuse(node.node(), "a power of integers needs the exponent 2");
  }
  const BoundArgument* exponent = node.find("exponent");
  if (exponent != nullptr && exponent->kind == BoundArgument::Kind::kValue) {
    const double number = node.number("exponent");
    if (number == 2) return "(" + a + " * " + a + ")";
    if (number == 3) return "(" + a + " * " + a + " * " + a + ")";
    if (number == 0.5) return "sqrt(" + a + ")";
  }
  return "pow(" + a + ", " + b + ")";
}

std::string extreme(DType dtype, const std::string& a, const std::string& b, const char* sign) {
  const std::string is_nan = is_floating_point(dtype) ? " || " + a + " != " + a : "";
  return "(" + a + " " + sign + " " + b + is_nan + " ? " + a + " : " + b + ")";
}

std::string quotient(Emitter& emitter, const BoundNode& node, DType dtype, const std::string& a,
                     const std::string& b) {
  const bool has_mode = node.find("rounding_mode") != nullptr && !node.is_none("rounding_mode");
  const std::string mode = has_mode ? node.string("rounding_mode") : "";
  if (mode == "floor") return floored(emitter, dtype, a, b);
  const std::string plain = "(" + a + " / " + b + ")";
  return mode == "trunc" && is_floating_point(dtype) ? "trunc" + plain : plain;
}

}  // namespace

TensorId tensor_of(const Emitter& emitter, const BoundNode& node, std::string_view argument) {
  if (const auto tensor = node.tensor(argument)) return *tensor;
  emitter.refuse(node.node(), "'" + std::string(argument) + "' is no tensor");
}

std::string operand(Emitter& emitter, const BoundNode& node, std::string_view argument,
                    const Index& index, DType to) {
  if (const auto tensor = node.tensor(argument)) {
    const Shape& whole = emitter.shape(node.node().outputs[0]);
    if (index.size() == whole.size()) emitter.expect_broadcast(node.node(), *tensor, whole);
    return emitter.broadcast_element(*tensor, index, to);
  }
  const BoundArgument* bound = node.find(argument);
  if (bound == nullptr || bound->kind != BoundArgument::Kind::kValue) {
    emitter.refuse(node.node(), "'" + std::string(argument) + "' is neither tensor nor number");
  }
  if (bound->value.is_number_integer()) return literal(bound->value.get<std::int64_t>(), to);
  return literal(node.number(argument), to);
}

std::string binary_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const std::string_view name = functional_name(node.node().op_type);
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  if (name == "div" || name == "pow") {
    // True division gives floats; the base of a power has another name.
    DType expected = promoted(emitter.model(), node, {"self", "other", "exponent"});
    const bool rounds = node.find("rounding_mode") != nullptr && !node.is_none("rounding_mode");
    if (name == "div" && !rounds && !is_floating_point(expected)) expected = DType::kFloat32;
    emitter.expect_dtype(node.node(), 0, expected);
  }
  const char* second = name == "pow" ? "exponent" : "other";
  std::string a = emitter.define(dtype, operand(emitter, node, "self", index, dtype));
  std::string b = emitter.define(dtype, operand(emitter, node, second, index, dtype));
  if (node.find("alpha") != nullptr && node.number("alpha") != 1) {
    const BoundArgument& alpha = *node.find("alpha");
    const std::string factor = alpha.value.is_number_integer()
                                   ? literal(alpha.value.get<std::int64_t>(), dtype)
                                   : literal(node.number("alpha"), dtype);
    (name == "rsub" ? a : b) = "(" + (name == "rsub" ? a : b) + " * " + factor + ")";
  }
  const auto joined_by = [&](const char* sign) { return "(" + a + sign + b + ")"; };
  const auto as_truth = [&](const std::string& value) {
    return dtype == DType::kBool ? "(uchar)(" + value + " != 0)" : value;
  };
  if (name == "add") return as_truth(joined_by(" + "));
  if (name == "sub") return joined_by(" - ");
  if (name == "rsub") return "(" + b + " - " + a + ")";
  if (name == "mul") return joined_by(" * ");
  if (name == "div") return quotient(emitter, node, dtype, a, b);
  if (name == "floor_divide") return floored(emitter, dtype, a, b);
  if (name == "remainder") return remainder(dtype, a, b, emitter);
  if (name == "fmod") {
    return is_floating_point(dtype) ? "fmod(" + a + ", " + b + ")" : joined_by(" % ");
  }
  if (name == "pow") return power(emitter, node, dtype, a, b);
  if (name == "maximum") return extreme(dtype, a, b, ">");
  if (name == "minimum") return extreme(dtype, a, b, "<");
  if (name == "atan2") return "atan2(" + a + ", " + b + ")";
  if (is_floating_point(dtype)) emitter.refuse(node.node(), "it needs integers");
  if (name == "bitwise_and" || name == "__and__") return joined_by(" & ");
  if (name == "bitwise_or" || name == "__or__") return joined_by(" | ");
  if (name == "bitwise_xor" || name == "__xor__") return joined_by(" ^ ");
  emitter.refuse(node.node(), "it is not supported");
}

std::string compare_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name.starts_with("logical_")) {
    const auto truth = [&](const char* argument) {
      const TensorId tensor = tensor_of(emitter, node, argument);
      return "(" + emitter.broadcast_element(tensor, index, emitter.dtype(tensor)) + " != 0)";
    };
    const char* sign = name == "logical_and" ? " && " : name == "logical_or" ? " || " : " != ";
    return "(uchar)(" + truth("self") + sign + truth("other") + ")";
  }
  const DType dtype = promoted(emitter.model(), node, {"self", "other"});
  const std::string a = operand(emitter, node, "self", index, dtype);
  const std::string b = operand(emitter, node, "other", index, dtype);
  const char* sign = name == "eq"   ? " == "
                     : name == "ne" ? " != "
                     : name == "lt" ? " < "
                     : name == "le" ? " <= "
                     : name == "gt" ? " > "
                                    : " >= ";
  return "(uchar)(" + a + sign + b + ")";
}

std::string where_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = promoted(emitter.model(), node, {"self", "other"});
  emitter.expect_dtype(node.node(), 0, dtype);
  const std::string condition = operand(emitter, node, "condition", index, DType::kBool);
  const std::string a = operand(emitter, node, "self", index, dtype);
  const std::string b = operand(emitter, node, "other", index, dtype);
  return "(" + condition + " ? " + a + " : " + b + ")";
}

std::string masked_fill_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const DType dtype = emitter.dtype(node.node().outputs[0]);
  const std::string mask = operand(emitter, node, "mask", index, DType::kBool);
  const std::string value = operand(emitter, node, "value", index, dtype);
  return "(" + mask + " ? " + value + " : " + operand(emitter, node, "self", index, dtype) + ")";
}

}  // namespace npu::opencl
