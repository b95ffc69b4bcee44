// SPDX-License-Identifier: Apache-2.0
// Measures how much of the installed libtorch the schema binder and the aten backend cover.
//
// For every functional overload of the aten namespace except backward functions, random arguments
// are drawn from its schema until libtorch itself accepts them (or attempts run out). They are
// written as a node of a document, as torch.export would: tensors flattened into inputs, the rest
// in attrs. Then
//   bound: the binder rebuilds, from that node, exactly the stack of these arguments;
//   ran:   the backend runs the document and its results equal those of the direct call.
// An overload whose arguments libtorch never accepts can be bound all the same.
//
// Each overload runs in a separate process, since random arguments crash some kernels.
// Usage: aten_coverage [--list] [--seed N] [--attempts N] [NAME_PART]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "aten_types.hpp"
#include "npu/device/backend.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/support/error.hpp"
#include "npu/support/text.hpp"
#include "op_registry.hpp"

namespace npu::aten {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

bool contains(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != text.npos; });
}

// One attempt's arguments, and the equivalent node.
struct Call {
  std::vector<c10::IValue> stack;
  std::vector<at::Tensor> inputs;
  Json attrs = Json::object();
};

// Shapes for the tensors of one call, in turn; the last one repeats.
const std::vector<std::vector<Shape>>& themes() {
  static const std::vector<std::vector<Shape>> all{
      {{2, 3}},
      {{4, 4}},
      {{5}},
      {{2, 3, 4}},
      {{2, 4, 8, 8}, {4, 4, 3, 3}, {4}},
      {{2, 4, 8, 8}, {4}},
      {{2, 4, 8}, {4, 4, 3}, {4}},
      {{1, 2, 6, 6, 6}, {2, 2, 3, 3, 3}, {2}},
      {{3, 4}, {4, 3}},
      {{3, 4}, {5, 4}, {5}},
      {{2, 3, 4}, {2, 4, 3}},
      {{3, 3}, {3, 4}, {4, 3}},
      {{3}, {3, 4}, {4}},
      {{3, 4}, {4}, {3}},
      {{3}, {2, 3, 4}, {2, 4, 3}},
      {{}},
      {{1}},
      {{0, 3}},
      {{2, 4, 6, 6}},
      {{1, 2, 6, 6, 6}},
      {{6, 2, 8}, {2, 2, 4}, {2, 2, 4}, {16, 8}, {16, 4}, {16}},
      {{2, 8}, {2, 4}, {12, 8}, {12, 4}, {12}, {12}},
      {{2, 8}, {2, 4}, {4, 8}, {4, 4}, {4}, {4}},
      {{10, 4}, {6}, {6}},
  };
  return all;
}

class Generator {
 public:
  Generator(const c10::FunctionSchema& schema, std::uint64_t seed)
      : schema_(schema), random_(seed), shapes_(random_.pick(themes())) {
    static const std::vector<at::ScalarType> kTypes{at::kFloat, at::kFloat,       at::kFloat,
                                                    at::kFloat, at::kDouble,      at::kLong,
                                                    at::kBool,  at::kComplexFloat};
    type_ = random_.pick(kTypes);
    wants_defaults_ = random_.chance(60);
    is_symmetric_ = random_.chance(50);
  }

  // Nothing and a reason if an argument has a type that no document can state.
  std::optional<Call> make(const Operation& operation, std::string& reason) {
    Call call;
    bool may_omit_tensors = true;
    for (std::size_t i = schema_.arguments().size(); i-- > 0;) {
      const bool is_tensor = is_tensor_type(operation.schema.arguments[i].type);
      omit_.push_back(decide_omit(operation.schema.arguments[i], may_omit_tensors && is_tensor));
      // A None before a tensor has to be named; see below.
    }
    std::reverse(omit_.begin(), omit_.end());
    for (std::size_t i = 0; i < schema_.arguments().size(); ++i) {
      const SchemaArgument& argument = operation.schema.arguments[i];
      if (argument.type == ArgumentType::kOther) {
        if (argument.default_value || argument.optional) {
          const auto& declared = schema_.arguments()[i].default_value();
          call.stack.push_back(declared ? *declared : c10::IValue());
          continue;
        }
        reason = fmt::format("argument '{}' has the type {}, which no document can state",
                             argument.name, schema_.arguments()[i].type()->str());
        return std::nullopt;
      }
      add(argument, schema_.arguments()[i], omit_[i], call);
    }
    name_nones(operation, call);
    return call;
  }

 private:
  static bool is_tensor_type(ArgumentType type) {
    return type == ArgumentType::kTensor || type == ArgumentType::kTensorList ||
           type == ArgumentType::kOptionalTensorList;
  }

  bool decide_omit(const SchemaArgument& argument, bool /*is_tensor*/) {
    if (argument.type == ArgumentType::kGenerator || argument.type == ArgumentType::kLayout ||
        argument.type == ArgumentType::kDevice || argument.type == ArgumentType::kMemoryFormat ||
        contains(argument.name, {"layout", "device", "memory_format", "pin_memory"})) {
      if (argument.default_value || argument.optional) return true;
    }
    if (!argument.default_value && !argument.optional) return false;
    return wants_defaults_ ? random_.chance(85) : random_.chance(35);
  }

  at::Tensor tensor(std::string_view name) {
    const Shape& shape = shapes_[std::min(position_++, shapes_.size() - 1)];
    at::ScalarType type = type_;
    if (contains(name, {"indices", "index", "idx", "target", "offset", "length", "batch_sizes",
                        "bins", "seg", "repeats", "dims"}) ||
        random_.chance(4)) {
      type = random_.chance(85) ? at::kLong : type_;
    } else if (contains(name, {"mask", "condition"})) {
      type = random_.chance(80) ? at::kBool : type_;
    }
    at::Tensor values;
    if (type == at::kFloat || type == at::kDouble || type == at::kComplexFloat) {
      values = at::rand(shape, at::TensorOptions().dtype(type)) * 0.8 + 0.1;
      const auto rank = shape.size();
      if (is_symmetric_ && rank >= 2 && shape[rank - 1] == shape[rank - 2]) {
        values = values + values.transpose(-1, -2) + 4 * at::eye(shape[rank - 1], type);
      }
    } else {
      values = at::randint(0, 2, shape, at::TensorOptions().dtype(type));
    }
    return values.contiguous();
  }

  std::int64_t integer(std::string_view name) {
    static const std::vector<std::int64_t> kDims{0, 1, -1};
    static const std::vector<std::int64_t> kAny{1, 2, 0, 3, 4, -1};
    if (contains(name, {"dim", "axis"}) && !contains(name, {"size", "num"}))
      return random_.pick(kDims);
    if (contains(name, {"groups", "num_layers", "diagonal", "step"})) return 1;
    if (contains(name, {"reduction"})) return static_cast<std::int64_t>(random_.below(3));
    if (contains(name, {"num_classes", "minlength", "num_weights"})) return 10;
    if (contains(name, {"num_heads", "num_head"})) return 2;
    if (contains(name, {"dtype"})) return static_cast<std::int64_t>(at::kFloat);
    return random_.pick(kAny);
  }

  std::vector<std::int64_t> integers(const SchemaArgument& argument) {
    const std::string& name = argument.name;
    const Shape& first = shapes_.front();
    const auto rank = first.size();
    if (argument.list_size > 0) {
      std::int64_t value = contains(name, {"kernel"})               ? 3
                           : contains(name, {"output_padding"})     ? 0
                           : contains(name, {"stride", "dilation"}) ? 1
                           : contains(name, {"padding"})            ? random_.chance(50)
                           : contains(name, {"output_size"})        ? 4
                           : contains(name, {"dim"})                ? -1
                                                                    : 1;
      std::vector<std::int64_t> list(static_cast<std::size_t>(argument.list_size), value);
      if (contains(name, {"dim"}) && list.size() == 2) list = {-2, -1};
      return list;
    }
    if (name == "pad") return random_.chance(50) ? Shape{1, 1} : Shape{1, 0, 0, 1};
    if (contains(name, {"stride"}) && random_.chance(60)) {
      Shape strides(rank, 1);
      for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * first[i];
      return random_.chance(50) ? strides : Shape(rank > 2 ? rank - 2 : 1, 1);
    }
    if (contains(name, {"size", "shape"}) && !contains(name, {"kernel", "split", "output"}))
      return first;
    if (contains(name, {"dims"}) && random_.chance(60)) {
      Shape order(rank);
      for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(rank - 1 - i);
      return order;
    }
    if (contains(name, {"dim"})) {
      static const std::vector<Shape> kDims{{0}, {1}, {-1}, {0, 1}, {-2, -1}, {1, 0}};
      return random_.pick(kDims);
    }
    const std::size_t spatial = rank > 2 ? rank - 2 : 1;
    if (contains(name, {"kernel"})) return Shape(spatial, 3);
    if (contains(name, {"padding"})) return Shape(spatial, random_.chance(50));
    if (contains(name, {"dilation"})) return Shape(spatial, 1);
    if (contains(name, {"output_size", "output_padding"}))
      return Shape(spatial, contains(name, {"padding"}) ? 0 : 4);
    static const std::vector<Shape> kAny{{1}, {1, 1}, {2}, {1, 2}, {2, 1}, {1, 1, 1}, {1, 1, 1, 1}};
    return random_.pick(kAny);
  }

  std::string text(std::string_view name) {
    static const std::map<std::string, std::vector<std::string>, std::less<>> kTexts{
        {"equation", {"ij,jk->ik", "ij->ji", "ij,ij->i"}},
        {"reduce", {"sum", "mean", "amax", "amin", "prod"}},
        {"reduction", {"sum", "mean"}},
        {"mode", {"constant", "reduced", "complete", "reflect", "replicate"}},
        {"UPLO", {"L", "U"}},
        {"ord", {"fro", "nuc"}},
        {"p", {"fro", "nuc"}},
        {"rounding_mode", {"floor", "trunc"}},
        {"indexing", {"ij", "xy"}},
        {"driver", {"gelsy", "gelss"}},
        {"approximate", {"none", "tanh"}},
        {"norm", {"forward", "backward", "ortho"}},
        {"padding", {"same", "valid"}},
        {"side", {"left", "right"}}};
    const auto found = kTexts.find(name);
    return found == kTexts.end() ? "none" : random_.pick(found->second);
  }

  double number(std::string_view name) {
    static const std::vector<double> kNumbers{0.5, 1.0, 2.0};
    if (contains(name, {"eps", "tol"})) return 0.125;
    if (contains(name, {"dropout"})) return 0.0;
    return random_.pick(kNumbers);
  }

  void add(const SchemaArgument& argument, const c10::Argument& declared, bool omit, Call& call) {
    if (omit) {
      const auto& value = declared.default_value();
      call.stack.push_back(value ? *value : c10::IValue());
      return;
    }
    const auto put = [&](c10::IValue value, Json json) {
      call.stack.push_back(std::move(value));
      call.attrs[argument.name] = std::move(json);
    };
    switch (argument.type) {
      case ArgumentType::kTensor: {
        const at::Tensor one = tensor(argument.name);
        call.stack.emplace_back(one);
        call.inputs.push_back(one);
        return;
      }
      case ArgumentType::kTensorList: {
        c10::List<at::Tensor> list;
        const std::size_t count = argument.name == "params" || argument.name == "hx"
                                      ? (argument.name == "hx" ? 2 : 4)
                                      : 1 + random_.below(3);
        const std::size_t start = position_;
        for (std::size_t i = 0; i < count; ++i) {
          if (argument.name != "params") position_ = start;
          list.push_back(tensor(argument.name));
          call.inputs.push_back(list.get(i));
        }
        call.stack.emplace_back(list);
        sizes_.push_back(static_cast<std::int64_t>(count));
        call.attrs["_tensor_list_sizes"] = sizes_;
        return;
      }
      case ArgumentType::kOptionalTensorList: {
        c10::List<c10::optional<at::Tensor>> list;
        Json mask = Json::array();
        const std::size_t count = 1 + random_.below(2);
        for (std::size_t i = 0; i < count; ++i) {
          const bool is_none = count > 1 && random_.chance(40);
          mask.push_back(is_none);
          if (is_none) {
            list.push_back(c10::nullopt);
            continue;
          }
          const at::Tensor index = at::zeros({2}, at::kLong);
          list.push_back(index);
          call.inputs.push_back(index);
        }
        call.stack.emplace_back(list);
        masks_.push_back(std::move(mask));
        call.attrs["_tensor_list_none_masks"] = masks_;
        return;
      }
      case ArgumentType::kInt: {
        const std::int64_t value = integer(argument.name);
        const bool is_dtype = argument.name.find("dtype") != std::string::npos;
        put(value, is_dtype ? Json("torch.float32") : Json(value));
        return;
      }
      case ArgumentType::kDType:
        put(static_cast<std::int64_t>(at::kFloat), "torch.float32");
        return;
      case ArgumentType::kFloat: {
        const double value = number(argument.name);
        put(value, value);
        return;
      }
      case ArgumentType::kBool: {
        const bool value = random_.chance(50);
        put(value, value);
        return;
      }
      case ArgumentType::kScalar: {
        if (random_.chance(60)) {
          const std::int64_t value = integer(argument.name);
          put(c10::Scalar(value), value);
        } else {
          const double value = number(argument.name);
          put(c10::Scalar(value), value);
        }
        return;
      }
      case ArgumentType::kString: {
        const std::string value = text(argument.name);
        put(value, value);
        return;
      }
      case ArgumentType::kIntList: {
        const std::vector<std::int64_t> value = integers(argument);
        put(value, value);
        return;
      }
      case ArgumentType::kFloatList: {
        const std::size_t rank = shapes_.front().size();
        const std::vector<double> value(rank > 2 ? rank - 2 : 2, number(argument.name));
        put(value, value);
        return;
      }
      case ArgumentType::kBoolList: {
        const std::size_t size =
            argument.list_size > 0 ? static_cast<std::size_t>(argument.list_size) : 2;
        c10::List<bool> value;
        Json json = Json::array();
        for (std::size_t i = 0; i < size; ++i) {
          const bool bit = random_.chance(50);
          value.push_back(bit);
          json.push_back(bit);
        }
        put(value, json);
        return;
      }
      case ArgumentType::kScalarList: {
        c10::impl::GenericList value(c10::NumberType::get());
        for (int i = 0; i < 2; ++i) value.push_back(c10::Scalar(number(argument.name)));
        put(value, Json::array({value.get(0).toDouble(), value.get(1).toDouble()}));
        return;
      }
      case ArgumentType::kStringList: {
        const c10::List<std::string> value({"N", "C"});
        put(value, Json::array({"N", "C"}));
        return;
      }
      case ArgumentType::kLayout:
        put(static_cast<std::int64_t>(at::kStrided), "torch.strided");
        return;
      case ArgumentType::kDevice:
        put(c10::Device(at::kCPU), "cpu");
        return;
      case ArgumentType::kMemoryFormat:
        put(static_cast<std::int64_t>(at::MemoryFormat::Contiguous), "torch.contiguous_format");
        return;
      case ArgumentType::kGenerator:
      case ArgumentType::kOther:
        call.stack.emplace_back();
        return;
    }
  }

  // A None before a tensor argument that is given is named in _none_args, as in npu-ir(5).
  void name_nones(const Operation& operation, Call& call) const {
    Json names = Json::array();
    bool tensor_follows = false;
    for (std::size_t i = operation.schema.arguments.size(); i-- > 0;) {
      const SchemaArgument& argument = operation.schema.arguments[i];
      if (!is_tensor_type(argument.type)) continue;
      if (!omit_[i]) {
        tensor_follows = true;
      } else if (tensor_follows && argument.type == ArgumentType::kTensor) {
        names.push_back(argument.name);
      }
    }
    if (!names.empty()) call.attrs["_none_args"] = std::move(names);
  }

  const c10::FunctionSchema& schema_;
  Random random_;
  const std::vector<Shape>& shapes_;
  at::ScalarType type_ = at::kFloat;
  bool wants_defaults_ = true;
  bool is_symmetric_ = false;
  std::size_t position_ = 0;
  std::vector<bool> omit_;
  Json sizes_ = Json::array();
  Json masks_ = Json::array();
};

std::string value_text(const c10::IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

struct BindFault {
  std::string text;       // empty if the binder rebuilds the call's stack from its node
  bool is_wrong = false;  // it builds a different stack instead of refusing
};

BindFault bind_fault(const Operation& operation, const Call& call) {
  std::vector<Shape> shapes;
  for (const at::Tensor& tensor : call.inputs) shapes.push_back(tensor.sizes().vec());
  std::vector<OperandInfo> operands;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    operands.push_back({*dtype_of(call.inputs[i].scalar_type()), &shapes[i]});
  std::vector<BoundArgument> bound;
  if (const auto error = bind_arguments(operation.schema, operands, call.attrs, bound)) {
    return {error->text};
  }
  const auto is_operand = [&](std::int32_t index, const at::Tensor& expected) {
    return index >= 0 && call.inputs[static_cast<std::size_t>(index)].is_same(expected);
  };
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const c10::IValue& expected = call.stack[i];
    const std::string name = operation.schema.arguments[i].name;
    if (bound[i].kind == BoundArgument::Kind::kTensor) {
      if (!expected.isTensor() || !is_operand(bound[i].inputs[0], expected.toTensor()))
        return {fmt::format("argument '{}' is bound to another tensor", name), true};
    } else if (bound[i].kind == BoundArgument::Kind::kTensors) {
      const auto elements = expected.toListRef();
      if (elements.size() != bound[i].inputs.size())
        return {fmt::format("argument '{}' is bound to a list of another size", name), true};
      for (std::size_t k = 0; k < elements.size(); ++k) {
        const bool same = elements[k].isNone()
                              ? bound[i].inputs[k] < 0
                              : is_operand(bound[i].inputs[k], elements[k].toTensor());
        if (!same) return {fmt::format("argument '{}' is bound to another list", name), true};
      }
    } else {
      const c10::IValue value =
          argument_value(operation.schema.arguments[i], operation.traits[i], bound[i]);
      if (value_text(value) != value_text(expected)) {
        return {fmt::format("argument '{}' is bound to {}, expected {}", name, value_text(value),
                            value_text(expected)),
                true};
      }
    }
  }
  return {};
}

void flatten(const c10::IValue& value, std::vector<c10::IValue>& out) {
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) flatten(element, out);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) flatten(element, out);
  } else {
    out.push_back(value);
  }
}

bool is_random(std::string_view op_type) {
  return contains(op_type, {"rand", "dropout", "bernoulli", "multinomial", "normal.", "normal_",
                            "poisson", "binomial", "gamma", "dirichlet", "rrelu", "empty", "cauchy",
                            "exponential", "geometric", "uniform", "_lowrank"});
}

Tensor host_tensor(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  Tensor result(*dtype_of(dense.scalar_type()), dense.sizes().vec());
  if (dense.nbytes() != 0) std::memcpy(result.mutable_data(), dense.data_ptr(), dense.nbytes());
  return result;
}

// Runs the call as a document on the backend; empty if its results are those of the direct call.
std::string run_fault(const std::string& op_type, const Call& call,
                      const std::vector<c10::IValue>& returned, DeviceInstance& device) {
  std::vector<c10::IValue> flat;
  for (const c10::IValue& value : returned) flatten(value, flat);
  Json document = {{"model_name", "call"}, {"pytorch_version", "1.13"}};
  const auto mention = [](const std::string& name, const Tensor& tensor) {
    return Json{{"name", name}, {"shape", tensor.shape()}, {"dtype", dtype_name(tensor.dtype())}};
  };
  Json inputs = Json::array();
  std::vector<std::shared_ptr<DeviceBuffer>> buffers;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor tensor = host_tensor(call.inputs[i]);
    inputs.push_back(mention(fmt::format("x{}", i), tensor));
    buffers.push_back(device.import_tensor(tensor));
  }
  Json outputs = Json::array();
  std::vector<Tensor> expected;
  for (const c10::IValue& value : flat) {
    at::Tensor tensor;
    if (value.isTensor()) {
      tensor = value.toTensor();
    } else if (value.isBool()) {
      tensor = at::scalar_tensor(value.toBool(), at::kBool);
    } else if (value.isInt()) {
      tensor = at::scalar_tensor(value.toInt(), at::kLong);
    } else if (value.isDouble()) {
      tensor = at::scalar_tensor(value.toDouble(), at::kDouble);
    } else {
      return "a result has the type " + value.tagKind() + ", which the IR does not have";
    }
    if (!tensor.defined()) continue;
    if (tensor.layout() != at::kStrided) return "a result is sparse";
    if (!dtype_of(tensor.scalar_type())) return "a result has a dtype that the IR does not have";
    expected.push_back(host_tensor(tensor));
    outputs.push_back(mention(fmt::format("y_{}", outputs.size()), expected.back()));
  }
  if (expected.empty()) return "it returns nothing";
  document["graph_inputs"] = inputs;
  document["graph_outputs"] = outputs;
  document["weights"] = Json::array();
  document["weight_name_mapping"] = Json::object();
  document["nodes"] = Json::array({{{"name", "y"},
                                    {"op_type", op_type},
                                    {"inputs", inputs},
                                    {"outputs", outputs},
                                    {"attrs", call.attrs}}});
  ProgramSignature signature{.outputs = {}, .nodes = 1};
  for (const Tensor& result : expected) {
    signature.outputs.push_back({result.dtype(), result.shape()});
  }
  const auto program = device.compile_and_load(document.dump(), {}, std::move(signature));
  std::vector<npu4_buffer*> arguments;
  for (const auto& buffer : buffers) arguments.push_back(buffer->get());
  const auto results = program->run(arguments);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor actual = results[i]->to_host();
    if (is_random(op_type)) continue;
    const Comparison comparison = compare_tensors(actual, expected[i], {1e-6, 1e-7});
    if (!comparison.ok) return "its result differs from that of the direct call";
  }
  return {};
}

// What one process finds out about one overload; lives in shared memory.
struct Outcome {
  bool bound = false;
  bool accepted = false;  // libtorch took the arguments
  bool ran = false;
  int attempt = 0;
  char reason[512] = {};

  void explain(const std::string& text) {
    std::snprintf(reason, sizeof reason, "%s", text.substr(0, text.find('\n')).c_str());
  }
};

void examine(const c10::OperatorHandle& handle, const std::string& op_type, std::uint64_t seed,
             int first, int attempts, Outcome& outcome) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  Operation operation;
  try {
    operation = operation_of(handle);
  } catch (const std::exception& error) {
    outcome.explain(error.what());
    return;
  }
  const auto device = DeviceInstance::open(Backend::load("aten"), R"({"threads": 1})");
  for (int attempt = first; attempt < attempts; ++attempt) {
    outcome.attempt = attempt;
    at::manual_seed(seed + static_cast<std::uint64_t>(attempt));
    Generator generator(handle.schema(), seed + static_cast<std::uint64_t>(attempt) * 7919U);
    std::string reason;
    const std::optional<Call> call = generator.make(operation, reason);
    if (!call) {
      outcome.explain(reason);
      return;
    }
    const BindFault fault = bind_fault(operation, *call);
    if (!fault.text.empty()) {
      // The binder may rightly refuse random arguments that no op accepts;
      // a wrong stack is always its fault.
      outcome.bound = outcome.bound && !fault.is_wrong;
      if (!outcome.bound || fault.is_wrong) outcome.explain("not bound: " + fault.text);
      if (fault.is_wrong) return;
      continue;
    }
    outcome.bound = true;
    std::vector<c10::IValue> stack = call->stack;
    for (c10::IValue& value : stack) {
      if (value.isTensor() && value.toTensor().defined()) value = value.toTensor().clone();
    }
    try {
      handle.callBoxed(&stack);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      if (text.starts_with("Could not run 'aten::") && attempt > 8) {
        outcome.explain("no CPU kernel for dense tensors");
        return;
      }
      if (!outcome.accepted) outcome.explain("no arguments found: " + text);
      continue;
    }
    outcome.accepted = true;
    try {
      const std::string text = run_fault(op_type, *call, stack, *device);
      if (text.empty()) {
        outcome.ran = true;
        outcome.reason[0] = '\0';
        return;
      }
      outcome.explain(text);
    } catch (const Error& error) {
      outcome.explain(error.message());
    } catch (const std::exception& error) {
      outcome.explain(error.what());
    }
  }
}

void examine_apart(const c10::OperatorHandle& handle, const std::string& op_type,
                   std::uint64_t seed, int attempts, Outcome& outcome) {
  int first = 0;
  for (int restart = 0; restart < 8; ++restart) {
    const pid_t child = ::fork();
    if (child < 0) {
      outcome.explain("fork failed");
      return;
    }
    if (child == 0) {
      // Warnings and messages of kernels are not part of the report.
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
      ::alarm(20);
      examine(handle, op_type, seed, first, attempts, outcome);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (outcome.reason[0] == '\0' || !outcome.accepted) {
      outcome.explain(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                          ? "takes too long with made-up arguments"
                          : "libtorch crashes with made-up arguments");
    }
    first = outcome.attempt + 1;
  }
}

// Strips numbers and shapes from messages, which would make every reason a separate row.
std::string reason_class(const std::string& reason) {
  for (const char* prefix : {"no arguments found", "libtorch crashes", "takes too long",
                             "not bound", "a result ", "it returns nothing", "argument '"}) {
    if (reason.starts_with(prefix)) {
      return std::string(prefix) == "argument '"  ? "an argument's type has no form in a document"
             : std::string(prefix) == "a result " ? "a result's type has no form in a document"
                                                  : prefix;
    }
  }
  return reason.find("no CPU kernel") != std::string::npos ? "no CPU kernel"
                                                           : "the backend refuses";
}

int report(std::uint64_t seed, int attempts, bool list, const std::string& part) {
  std::vector<std::pair<std::string, c10::OperatorHandle>> overloads;
  std::int64_t all = 0;
  std::int64_t writes = 0;
  std::int64_t backward = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle) continue;
    ++all;
    const auto& arguments = handle->schema().arguments();
    const bool is_functional =
        std::none_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
          return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
        });
    const bool is_backward = name.name.find("backward") != std::string::npos;
    writes += is_functional ? 0 : 1;
    backward += is_functional && is_backward ? 1 : 0;
    if (!is_functional || is_backward) continue;
    std::string op_type = "aten." + name.name.substr(6) + "." +
                          (name.overload_name.empty() ? "default" : name.overload_name);
    if (op_type.find(part) != std::string::npos)
      overloads.emplace_back(std::move(op_type), *handle);
  }
  std::sort(overloads.begin(), overloads.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });

  auto* outcome = static_cast<Outcome*>(
      ::mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (outcome == MAP_FAILED) return 1;
  std::int64_t bound = 0;
  std::int64_t accepted = 0;
  std::int64_t ran = 0;
  std::map<std::string, std::int64_t> classes;
  std::vector<std::vector<std::string>> rows{{"overload", "bound", "ran", "reason"}};
  for (const auto& [op_type, handle] : overloads) {
    *outcome = {};
    examine_apart(handle, op_type, seed, attempts, *outcome);
    bound += outcome->bound;
    accepted += outcome->accepted;
    ran += outcome->ran;
    const std::string reason = outcome->reason;
    if (!outcome->ran) ++classes[reason_class(reason)];
    if (list && !(outcome->bound && outcome->ran)) {
      rows.push_back({op_type, outcome->bound ? "yes" : "no", outcome->ran ? "yes" : "no", reason});
    }
  }
  const auto share = [&](std::int64_t count) {
    return overloads.empty() ? std::string("-")
                             : fixed_text(100.0 * static_cast<double>(count) /
                                              static_cast<double>(overloads.size()),
                                          1) +
                                   "%";
  };
  std::vector<std::vector<std::string>> totals{{"overloads", ">count", ">share"}};
  totals.push_back({"in the aten namespace", std::to_string(all), ""});
  totals.push_back({"that write to an argument", std::to_string(writes), ""});
  totals.push_back({"backward functions", std::to_string(backward), ""});
  totals.push_back({"functional, non-backward", std::to_string(overloads.size()), "100.0%"});
  totals.push_back({"stack built by the binder", std::to_string(bound), share(bound)});
  totals.push_back({"arguments found", std::to_string(accepted), share(accepted)});
  totals.push_back({"ran, results equal", std::to_string(ran), share(ran)});
  std::printf("%s\n", table_text(totals).c_str());
  std::vector<std::vector<std::string>> causes{{"not run because", ">count"}};
  for (const auto& [name, count] : classes) causes.push_back({name, std::to_string(count)});
  std::printf("%s", table_text(causes).c_str());
  if (list) std::printf("\n%s", table_text(rows).c_str());
  return bound * 100 >= static_cast<std::int64_t>(overloads.size()) * 98 ? 0 : 4;
}

}  // namespace
}  // namespace npu::aten

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  int attempts = 600;
  bool list = false;
  std::string part;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--list") {
      list = true;
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--attempts" && i + 1 < argc) {
      attempts = std::max(1, std::atoi(argv[++i]));
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "usage: aten_coverage [--list] [--seed N] [--attempts N] [NAME_PART]\n");
      return 2;
    } else {
      part = argument;
    }
  }
  return npu::aten::report(seed, attempts, list, part);
}
