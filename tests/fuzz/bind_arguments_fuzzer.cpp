// SPDX-License-Identifier: Apache-2.0
// The schema binder: random operands and attrs are either refused with a message that names an
// argument or the fault, or bound so that every operand is used once and every required argument
// has a value.
//
// An input is JSON, {"op": "aten.cat.default", "inputs": [{"dtype": .., "shape": [..]}], "attrs":
// {..}} or a category of testdata/ops; any other bytes select an op, operands and attrs one by one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_check.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/schema.hpp"

using npu::Json;
using npu::fuzz::require;

namespace {

void check_bound(const npu::Schema& schema, std::size_t operands,
                 const std::vector<npu::BoundArgument>& bound) {
  require(bound.size() == schema.arguments.size(), "every argument of the schema is bound");
  std::vector<int> uses(operands, 0);
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const npu::SchemaArgument& argument = schema.arguments[i];
    const npu::BoundArgument& one = bound[i];
    for (const std::int32_t input : one.inputs) {
      if (input == -1) {
        require(argument.type == npu::ArgumentType::kOptionalTensorList,
                "None stands in Tensor?[] alone");
        continue;
      }
      require(input >= 0 && static_cast<std::size_t>(input) < operands, "operands exist");
      ++uses[static_cast<std::size_t>(input)];
    }
    switch (one.kind) {
      case npu::BoundArgument::Kind::kTensor:
        require(argument.type == npu::ArgumentType::kTensor && one.inputs.size() == 1,
                "a tensor argument has one operand");
        break;
      case npu::BoundArgument::Kind::kTensors:
        require(argument.type == npu::ArgumentType::kTensorList ||
                    argument.type == npu::ArgumentType::kOptionalTensorList,
                "a list of tensors is bound to a list argument");
        break;
      case npu::BoundArgument::Kind::kNone:
        require(argument.optional || argument.default_value.has_value(),
                "a required argument is not None");
        break;
      case npu::BoundArgument::Kind::kValue:
        require(one.inputs.empty(), "a value has no operands");
        break;
    }
  }
  require(std::all_of(uses.begin(), uses.end(), [](int count) { return count == 1; }),
          "every operand is used once");
}

void check_binding(const npu::Schema& schema, const std::vector<npu::OperandInfo>& operands,
                   const Json& attrs) {
  std::vector<npu::BoundArgument> bound;
  if (const auto error = npu::bind_arguments(schema, operands, attrs, bound)) {
    require(!error->text.empty(), "a refusal says why");
    return;
  }
  check_bound(schema, operands.size(), bound);
}

void bind_json(const Json& op_type, const Json* inputs, const Json* attrs) {
  if (!op_type.is_string()) return;
  const npu::OpInfo* op = npu::find_op(op_type.get_ref<const std::string&>());
  if (op == nullptr) return;
  std::vector<npu::Shape> shapes;
  std::vector<npu::DType> dtypes;
  if (inputs != nullptr && inputs->is_array()) {
    for (const Json& input : *inputs) {
      const Json* dtype = input.is_object() ? npu::find_member(input, "dtype") : nullptr;
      const Json* shape = input.is_object() ? npu::find_member(input, "shape") : nullptr;
      npu::Shape extents;
      if (shape != nullptr && shape->is_array()) {
        for (const Json& extent : *shape) {
          // The reader lets nothing else through.
          if (extent.is_number_unsigned()) extents.push_back(extent.get<std::int64_t>() & 0xffffff);
        }
      }
      const auto parsed = dtype != nullptr && dtype->is_string()
                              ? npu::parse_dtype(dtype->get_ref<const std::string&>())
                              : std::nullopt;
      dtypes.push_back(parsed.value_or(npu::DType::kFloat32));
      shapes.push_back(std::move(extents));
    }
  }
  std::vector<npu::OperandInfo> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) operands.push_back({dtypes[i], &shapes[i]});
  check_binding(op->schema, operands,
                attrs != nullptr && attrs->is_object() ? *attrs : Json(Json::object()));
}

void bind_document(const Json& json) {
  if (const Json* op = npu::find_member(json, "op")) {
    bind_json(*op, npu::find_member(json, "inputs"), npu::find_member(json, "attrs"));
  }
  const Json* cases = npu::find_member(json, "cases");
  if (cases == nullptr || !cases->is_array()) return;
  for (const Json& one : *cases) {
    const Json* ir = one.is_object() ? npu::find_member(one, "ir") : nullptr;
    const Json* nodes = ir != nullptr && ir->is_object() ? npu::find_member(*ir, "nodes") : nullptr;
    if (nodes == nullptr || !nodes->is_array()) continue;
    for (const Json& node : *nodes) {
      const Json* op = node.is_object() ? npu::find_member(node, "op_type") : nullptr;
      if (op != nullptr)
        bind_json(*op, npu::find_member(node, "inputs"), npu::find_member(node, "attrs"));
    }
  }
}

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t below(std::size_t count) {
    std::size_t value = byte();
    if (count > 256) value = value * 256 + byte();
    return value % count;
  }
  bool done() const { return position_ >= size_; }

 private:
  std::uint8_t byte() { return done() ? 0 : data_[position_++]; }
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t position_ = 0;
};

Json random_value(Bytes& bytes, int depth) {
  switch (bytes.below(depth > 2 ? 9 : 11)) {
    case 0:
      return nullptr;
    case 1:
      return bytes.below(2) == 1;
    case 2:
      return static_cast<std::int64_t>(bytes.below(8)) - 2;
    case 3:
      return INT64_MIN + static_cast<std::int64_t>(bytes.below(2));
    case 4:
      return UINT64_MAX - bytes.below(2);
    case 5:
      return static_cast<double>(bytes.below(256)) / 16 - 4;
    case 6: {
      static constexpr const char* kWords[] = {
          "inf", "nan", "torch.float32", "float99", "mean", "same", "cpu", "meta", "", "ij,jk->ik"};
      return kWords[bytes.below(std::size(kWords))];
    }
    case 7:
      return 1e300;
    case 8:
      return Json::object();
    default: {
      Json list = Json::array();
      for (std::size_t i = bytes.below(5); i > 0; --i)
        list.push_back(random_value(bytes, depth + 1));
      return list;
    }
  }
}

void bind_random(Bytes bytes) {
  static const std::vector<std::string_view> kOps = npu::catalogued_ops();
  while (!bytes.done()) {
    const npu::Schema& schema = npu::find_op(kOps[bytes.below(kOps.size())])->schema;
    std::vector<npu::Shape> shapes(bytes.below(7));
    std::vector<npu::OperandInfo> operands;
    for (npu::Shape& shape : shapes) {
      shape.resize(bytes.below(6));
      for (std::int64_t& extent : shape) extent = static_cast<std::int64_t>(bytes.below(5));
    }
    for (const npu::Shape& shape : shapes) {
      operands.push_back({static_cast<npu::DType>(bytes.below(npu::kDTypeCount)), &shape});
    }
    Json attrs = Json::object();
    for (std::size_t i = bytes.below(6); i > 0; --i) {
      static constexpr const char* kSpecial[] = {"_tensor_list_sizes", "_tensor_list_none_masks",
                                                 "_none_args", "unknown", "_unknown"};
      const std::size_t names = schema.arguments.size() + std::size(kSpecial);
      const std::size_t name = bytes.below(names);
      const std::string key = name < schema.arguments.size()
                                  ? schema.arguments[name].name
                                  : kSpecial[name - schema.arguments.size()];
      attrs[key] = random_value(bytes, 0);
    }
    check_binding(schema, operands, attrs);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || data[0] != '{') {
    bind_random({data, size});
    return 0;
  }
  Json json;
  try {
    json = npu::parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const npu::Error&) {
    return 0;  // the reader has a target of its own
  }
  if (json.is_object()) bind_document(json);
  return 0;
}
