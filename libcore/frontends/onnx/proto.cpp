// SPDX-License-Identifier: Apache-2.0
// ONNX's messages, from onnx.proto3: those fields that a model's meaning depends on. Unknown fields
// are skipped, so files of newer versions are read.
//
// The bytes come from outside: nesting is limited, and so is the number of objects, since an empty
// message of two bytes becomes an object of a hundred. O(size without the tensors' data).
#include "proto.hpp"

#include "npu/support/error.hpp"

namespace npu::onnx {
namespace {

constexpr int kDeepest = 64;
constexpr std::int64_t kMostObjects = 1'000'000;
constexpr std::size_t kMostDims = 64;
constexpr std::size_t kMostNumbers = 1'000'000;
constexpr std::int64_t kMostNumbersInAll = 16'000'000;

class ModelParser {
 public:
  explicit ModelParser(std::string_view bytes) : bytes_(bytes) {}

  ModelProto parse() {
    ModelProto model;
    for (WireReader field(bytes_); field.next();) {
      switch (field.field()) {
        case 1:
          model.ir_version = field.integer();
          break;
        case 2:
          model.producer = field.bytes();
          break;
        case 3:
          model.producer_version = field.bytes();
          break;
        case 7:
          model.graph = graph(field.message(), 0);
          model.has_graph = true;
          break;
        case 8:
          model.opsets.push_back(opset(field.message()));
          break;
        case 25:
          model.functions.push_back(function(field.message()));
          break;
        default:
          break;
      }
    }
    return model;
  }

 private:
  void count(const WireReader& at) {
    if (++objects_ > kMostObjects) {
      at.fail("more than " + std::to_string(kMostObjects) + " nodes, attributes and names");
    }
  }
  void count_numbers(const WireReader& at, std::size_t size) {
    numbers_ += static_cast<std::int64_t>(size);
    if (numbers_ > kMostNumbersInAll) at.fail("too many numbers in attributes");
  }

  OpsetProto opset(WireReader field) {
    count(field);
    OpsetProto opset;
    while (field.next()) {
      if (field.field() == 1) opset.domain = field.bytes();
      if (field.field() == 2) opset.version = field.integer();
    }
    return opset;
  }

  FunctionProto function(WireReader field) {
    count(field);
    FunctionProto function;
    while (field.next()) {
      switch (field.field()) {
        case 1:
          function.name = field.bytes();
          break;
        case 4:
          count(field);
          function.inputs.push_back(field.bytes());
          break;
        case 5:
          count(field);
          function.outputs.push_back(field.bytes());
          break;
        case 6:
          count(field);
          function.attributes.push_back(field.bytes());
          break;
        case 7:
          function.nodes.push_back(node(field.message(), 0));
          break;
        case 9:
          function.opsets.push_back(opset(field.message()));
          break;
        case 10:
          function.domain = field.bytes();
          break;
        case 11:
          function.defaults.push_back(attribute(field.message(), 0));
          break;
        case 13:
          function.overload = field.bytes();
          break;
        default:
          break;
      }
    }
    return function;
  }

  GraphProto graph(WireReader field, int depth) {
    count(field);
    if (depth > kDeepest) {
      field.fail("graphs are nested more than " + std::to_string(kDeepest) + " deep");
    }
    GraphProto graph;
    while (field.next()) {
      switch (field.field()) {
        case 1:
          graph.nodes.push_back(node(field.message(), depth));
          break;
        case 2:
          graph.name = field.bytes();
          break;
        case 5:
          count(field);
          graph.initializers.push_back(parse_onnx_tensor(field.message()));
          break;
        case 11:
          graph.inputs.push_back(value(field.message()));
          break;
        case 12:
          graph.outputs.push_back(value(field.message()));
          break;
        case 13:
          graph.values.push_back(value(field.message()));
          break;
        case 15:
          count(field);
          graph.sparse_initializers.push_back(sparse(field.message()));
          break;
        default:
          break;
      }
    }
    return graph;
  }

  NodeProto node(WireReader field, int depth) {
    count(field);
    NodeProto node;
    while (field.next()) {
      switch (field.field()) {
        case 1:
          count(field);
          node.inputs.push_back(field.bytes());
          break;
        case 2:
          count(field);
          node.outputs.push_back(field.bytes());
          break;
        case 3:
          node.name = field.bytes();
          break;
        case 4:
          node.op_type = field.bytes();
          break;
        case 5:
          node.attributes.push_back(attribute(field.message(), depth));
          break;
        case 7:
          node.domain = field.bytes();
          break;
        case 8:
          node.overload = field.bytes();
          break;
        default:
          break;
      }
    }
    return node;
  }

  AttributeProto attribute(WireReader field, int depth) {
    count(field);
    AttributeProto attribute;
    std::uint64_t stated = 0;
    while (field.next()) {
      switch (field.field()) {
        case 1:
          attribute.name = field.bytes();
          break;
        case 2:
          attribute.f = field.float32();
          attribute.type = AttributeType::kFloat;
          break;
        case 3:
          attribute.i = field.integer();
          attribute.type = AttributeType::kInt;
          break;
        case 4:
          attribute.s = field.bytes();
          attribute.type = AttributeType::kString;
          break;
        case 5:
          attribute.tensor = std::make_shared<const OnnxTensor>(parse_onnx_tensor(field.message()));
          attribute.type = AttributeType::kTensor;
          break;
        case 6:
          attribute.graph = std::make_shared<const GraphProto>(graph(field.message(), depth + 1));
          attribute.type = AttributeType::kGraph;
          break;
        case 7:
          field.append_floats(attribute.floats, kMostNumbers);
          attribute.type = AttributeType::kFloats;
          break;
        case 8:
          field.append_integers(attribute.ints, kMostNumbers);
          attribute.type = AttributeType::kInts;
          break;
        case 9:
          count(field);
          attribute.strings.push_back(field.bytes());
          attribute.type = AttributeType::kStrings;
          break;
        case 22:
          attribute.sparse = std::make_shared<const SparseProto>(sparse(field.message()));
          attribute.type = AttributeType::kSparse;
          break;
        case 10:
        case 11:
        case 14:
        case 15:
        case 23:
          attribute.type = AttributeType::kOther;
          break;
        case 20:
          stated = field.number();
          break;
        case 21:
          attribute.ref = field.bytes();
          break;
        default:
          break;
      }
    }
    count_numbers(field, attribute.floats.size() + attribute.ints.size());
    // Zeros and empty lists may be left out; what the attribute is stands in its type then.
    if (stated >= 1 && stated <= 8 && stated != 4 && stated != 5) {
      attribute.type = static_cast<AttributeType>(stated);
    }
    return attribute;
  }

  SparseProto sparse(WireReader field) {
    SparseProto sparse;
    while (field.next()) {
      if (field.field() == 1) sparse.values = parse_onnx_tensor(field.message());
      if (field.field() == 2) sparse.indices = parse_onnx_tensor(field.message());
      if (field.field() == 3) field.append_integers(sparse.dims, kMostDims);
    }
    return sparse;
  }

  ValueProto value(WireReader field) {
    count(field);
    ValueProto value;
    while (field.next()) {
      if (field.field() == 1) value.name = field.bytes();
      if (field.field() != 2) continue;
      for (WireReader type = field.message(); type.next();) {
        if (type.field() == 1) tensor_type(type.message(), value);
      }
    }
    return value;
  }

  void tensor_type(WireReader type, ValueProto& value) {
    value.is_tensor = true;
    while (type.next()) {
      if (type.field() == 1) value.data_type = type.integer();
      if (type.field() != 2) continue;
      value.has_shape = true;
      for (WireReader shape = type.message(); shape.next();) {
        if (shape.field() != 1) continue;
        count(shape);
        DimProto& dim = value.dims.emplace_back();
        for (WireReader field = shape.message(); field.next();) {
          if (field.field() == 1) dim.value = field.integer();
          if (field.field() == 2) dim.symbol = field.bytes();
        }
      }
    }
  }

  std::string_view bytes_;
  std::int64_t objects_ = 0;
  std::int64_t numbers_ = 0;
};

}  // namespace

bool looks_like_onnx(std::string_view bytes) noexcept {
  // The first field is a number (ir_version) or a short string in all writers that are known; the
  // graph may come before the end of what is looked at, and is not entered.
  if (bytes.empty() || (bytes[0] != '\x08' && bytes[0] != '\x12' && bytes[0] != '\x3a')) {
    return false;
  }
  try {
    WireReader field(bytes);
    for (int i = 0; i < 16 && field.next(); ++i) {
      if (field.field() > 25) return false;
      if (field.is_bytes() != (field.field() != 1 && field.field() != 5)) return false;
    }
  } catch (const std::exception&) {
    // Cut short, which the import will say; the first byte decides.
    return bytes[0] == '\x08';
  }
  return true;
}

ModelProto parse_onnx_model(std::string_view bytes) { return ModelParser(bytes).parse(); }

}  // namespace npu::onnx
