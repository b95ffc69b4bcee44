// SPDX-License-Identifier: Apache-2.0
// Looks up op types: custom ops, built-ins, decompositions, then libtorch's dispatcher.
//
// "aten.conv2d.default" is "aten::conv2d" with an empty overload there. Its c10::FunctionSchema is
// printed and parsed into an npu::Schema, once per op type, so that one binder serves all tools;
// what npu::Schema does not hold (written arguments, typed defaults) is kept next to it.
#include "op_registry.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/core/function_schema.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "aten_types.hpp"
#include "device/custom_op_library.hpp"
#include "in_place.hpp"
#include "support/text.hpp"

namespace npu::aten {
namespace {

constexpr std::string_view kGetItem = "<built-in function getitem>";
constexpr std::string_view kBody = "wrap_with_set_grad_enabled";

const Decomposition* find_decomposition(std::string_view op_type) {
  for (const Decomposition& row : decompositions()) {
    if (row.op_type == op_type) return &row;
  }
  return nullptr;
}

// "aten.add.Tensor" -> ("aten::add", "Tensor"); nothing if it does not have three parts.
std::optional<c10::OperatorName> operator_name(std::string_view op_type) {
  const std::size_t first = op_type.find('.');
  const std::size_t last = op_type.rfind('.');
  if (first == std::string_view::npos || first == last || first == 0 || last == first + 1 ||
      last + 1 == op_type.size()) {
    return std::nullopt;
  }
  const std::string_view overload = op_type.substr(last + 1);
  return c10::OperatorName(
      fmt::format("{}::{}", op_type.substr(0, first), op_type.substr(first + 1, last - first - 1)),
      std::string(overload == "default" ? std::string_view() : overload));
}

std::string op_type_of(const c10::OperatorName& name) {
  std::string text = name.name;
  const std::size_t colons = text.find("::");
  if (colons != std::string::npos) text.replace(colons, 2, ".");
  return text + "." + (name.overload_name.empty() ? std::string("default") : name.overload_name);
}

c10::optional<c10::OperatorHandle> find_handle(std::string_view op_type) {
  const auto name = operator_name(op_type);
  if (!name) return c10::nullopt;
  return c10::Dispatcher::singleton().findSchema(*name);
}

// Values inside a program may also be sparse or quantized; its inputs and outputs are dense.
bool has_cpu_kernel(const c10::OperatorHandle& handle) {
  constexpr c10::DispatchKey kKeys[] = {c10::DispatchKey::CPU, c10::DispatchKey::SparseCPU,
                                        c10::DispatchKey::SparseCsrCPU, c10::DispatchKey::MkldnnCPU,
                                        c10::DispatchKey::QuantizedCPU};
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](c10::DispatchKey key) {
    return handle.hasComputedKernelForDispatchKey(key);
  });
}

// Writes that libtorch's schema does not annotate; batch norm writes in training only, instance
// norm always copies its statistics back.
struct HiddenWrite {
  std::string_view name;
  std::string_view argument;
  bool always = false;
};
constexpr HiddenWrite kHiddenWrites[] = {
    {"aten::_batch_norm_impl_index", "running_mean"},
    {"aten::_batch_norm_impl_index", "running_var"},
    {"aten::batch_norm", "running_mean"},
    {"aten::batch_norm", "running_var"},
    {"aten::batch_norm_update_stats", "running_mean"},
    {"aten::batch_norm_update_stats", "running_var"},
    {"aten::instance_norm", "running_mean", true},
    {"aten::instance_norm", "running_var", true},
    {"aten::native_batch_norm", "running_mean"},
    {"aten::native_batch_norm", "running_var"},
    {"aten::rrelu_with_noise", "noise"},
};

void read_traits(const c10::FunctionSchema& schema, Operation& operation) {
  for (const c10::Argument& argument : schema.arguments()) {
    Operation::ArgumentTraits& traits = operation.traits.emplace_back();
    traits.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    traits.out = argument.is_out();
    traits.default_value = argument.default_value();
    for (const HiddenWrite& write : kHiddenWrites) {
      if (schema.name() != write.name || argument.name() != write.argument) continue;
      (write.always ? traits.written : traits.written_in_training) = true;
    }
  }
}

c10::Scalar to_scalar(const Json& value) {
  if (value.is_boolean()) return c10::Scalar(value.get<bool>());
  if (value.is_number_integer()) return c10::Scalar(value.get<std::int64_t>());
  const auto number = json_number(value);
  if (!number) throw StatusError(NPU_INVALID, "expected a number, found " + value.dump());
  return c10::Scalar(*number);
}

std::int64_t to_integer(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  throw StatusError(NPU_INVALID, "expected an integer, found " + value.dump());
}

double to_double(const Json& value) {
  const auto number = json_number(value);
  if (!number) throw StatusError(NPU_INVALID, "expected a number, found " + value.dump());
  return *number;
}

bool to_bool(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  return to_integer(value) != 0;
}

std::string_view without_torch(std::string_view name) {
  return name.starts_with("torch.") ? name.substr(6) : name;
}

const std::string& to_text(const Json& value) {
  if (!value.is_string()) {
    throw StatusError(NPU_INVALID, "expected a string, found " + value.dump());
  }
  return value.get_ref<const std::string&>();
}

c10::IValue to_dtype(const Json& value) {
  const auto dtype = parse_dtype(to_text(value));
  if (!dtype) {
    throw StatusError(NPU_INVALID, fmt::format("unknown dtype {}, expected one of {}", value.dump(),
                                               dtype_names()));
  }
  return static_cast<std::int64_t>(scalar_type(*dtype));
}

template <typename Enum, std::size_t kCount>
c10::IValue to_enum(const Json& value, std::string_view what,
                    const std::pair<std::string_view, Enum> (&names)[kCount]) {
  const std::string_view name = without_torch(to_text(value));
  for (const auto& [text, enumerator] : names) {
    if (text == name) return static_cast<std::int64_t>(enumerator);
  }
  std::vector<std::string_view> known;
  for (const auto& entry : names) known.push_back(entry.first);
  throw StatusError(NPU_INVALID, fmt::format("unknown {} '{}', expected one of {}", what, name,
                                             fmt::join(known, ", ")));
}

constexpr std::pair<std::string_view, c10::Layout> kLayouts[] = {
    {"strided", c10::Layout::Strided},
    {"sparse_coo", c10::Layout::Sparse},
    {"sparse_csr", c10::Layout::SparseCsr},
    {"_mkldnn", c10::Layout::Mkldnn}};
constexpr std::pair<std::string_view, c10::MemoryFormat> kMemoryFormats[] = {
    {"contiguous_format", c10::MemoryFormat::Contiguous},
    {"preserve_format", c10::MemoryFormat::Preserve},
    {"channels_last", c10::MemoryFormat::ChannelsLast},
    {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}};

// Elements of a list; a single value stands for all of int[N].
std::vector<Json> list_elements(const SchemaArgument& argument, const Json& value) {
  if (value.is_array()) return value.get<std::vector<Json>>();
  if (argument.list_size <= 0) {
    throw StatusError(NPU_INVALID, "expected a list, found " + value.dump());
  }
  return std::vector<Json>(static_cast<std::size_t>(argument.list_size), value);
}

template <typename T, typename Convert>
c10::IValue to_list(const SchemaArgument& argument, const Json& value, Convert convert) {
  c10::List<T> list;
  for (const Json& element : list_elements(argument, value)) list.push_back(convert(element));
  return list;
}

c10::IValue json_value(const SchemaArgument& argument, const Json& value) {
  if (value.is_null()) return {};
  switch (argument.type) {
    case ArgumentType::kInt:
      return to_integer(value);
    case ArgumentType::kFloat:
      return to_double(value);
    case ArgumentType::kBool:
      return to_bool(value);
    case ArgumentType::kScalar:
      return to_scalar(value);
    case ArgumentType::kString:
      return to_text(value);
    case ArgumentType::kDType:
      return to_dtype(value);
    case ArgumentType::kLayout:
      return to_enum(value, "layout", kLayouts);
    case ArgumentType::kMemoryFormat:
      return to_enum(value, "memory format", kMemoryFormats);
    case ArgumentType::kDevice:
      return c10::Device(c10::kCPU);  // whatever device the model was exported on, it runs here
    case ArgumentType::kGenerator:
      return {};  // the default one
    case ArgumentType::kIntList:
      return to_list<std::int64_t>(argument, value, to_integer);
    case ArgumentType::kFloatList:
      return to_list<double>(argument, value, to_double);
    case ArgumentType::kBoolList:
      return to_list<bool>(argument, value, to_bool);
    case ArgumentType::kScalarList: {
      c10::impl::GenericList list(c10::NumberType::get());
      for (const Json& element : list_elements(argument, value)) list.push_back(to_scalar(element));
      return list;
    }
    case ArgumentType::kStringList:
      return to_list<std::string>(argument, value, to_text);
    case ArgumentType::kTensor:
    case ArgumentType::kTensorList:
    case ArgumentType::kOptionalTensorList:
    case ArgumentType::kOther:
      break;
  }
  throw StatusError(NPU_UNSUPPORTED,
                    "an argument of this type cannot be given, found " + value.dump());
}

}  // namespace

at::Tensor wrapped_number(const Json& value) {
  at::Tensor tensor = c10::scalar_to_tensor(to_scalar(value));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue argument_value(const SchemaArgument& argument, const Operation::ArgumentTraits& traits,
                           const BoundArgument& bound) {
  if (bound.kind == BoundArgument::Kind::kNone) return {};
  if (bound.from_default && traits.default_value) return *traits.default_value;
  if (argument.type == ArgumentType::kTensor) {
    return bound.value.is_null() ? c10::IValue() : c10::IValue(wrapped_number(bound.value));
  }
  return json_value(argument, bound.value);
}

Operation operation_of(const c10::OperatorHandle& handle) {
  Operation operation;
  operation.handle = handle;
  const c10::FunctionSchema& schema = handle.schema();
  std::ostringstream text;
  text << schema;
  operation.schema = parse_schema(op_type_of(handle.operator_name()), text.str());
  read_traits(schema, operation);
  if (operation.traits.size() != operation.schema.arguments.size()) {
    throw StatusError(NPU_UNSUPPORTED, fmt::format("cannot read the schema '{}'", text.str()));
  }
  // A document that omits the out argument means the functional op.
  for (std::size_t i = 0; i < operation.traits.size(); ++i) {
    if (operation.traits[i].out) operation.schema.arguments[i].optional = true;
  }
  return operation;
}

OpRegistry::OpRegistry(const std::vector<std::string>& custom_op_libraries) {
  std::map<std::string, std::string, std::less<>> origin;
  for (const std::string& path : custom_op_libraries) {
    for (const npu_custom_op& op : load_custom_ops(path)) {
      const std::string_view name = op.name;
      const bool taken = name == kGetItem || name == kBody || find_decomposition(name) != nullptr ||
                         find_handle(name);
      if (taken) {
        throw StatusError(
            NPU_INVALID,
            fmt::format("custom ops '{}': the backend has an op '{}' of its own", path, name));
      }
      const auto [where, added] = origin.emplace(name, path);
      if (!added) {
        throw StatusError(NPU_INVALID,
                          fmt::format("custom ops '{}': op '{}' stands in '{}' already", path, name,
                                      where->second));
      }
      custom_ops_.emplace(name, op);
    }
  }
}

const Operation& OpRegistry::find(const std::string& op_type) {
  auto where = operations_.find(op_type);
  if (where == operations_.end()) {
    where = operations_.emplace(op_type, make_operation(op_type)).first;
  }
  return *where->second;
}

std::unique_ptr<Operation> OpRegistry::make_operation(const std::string& op_type) const {
  auto operation = std::make_unique<Operation>();
  if (const auto custom = custom_ops_.find(op_type); custom != custom_ops_.end()) {
    operation->kind = Operation::Kind::kCustom;
    operation->custom = custom->second;
    return operation;
  }
  if (op_type == kGetItem || op_type == kBody) {
    operation->kind = op_type == kBody ? Operation::Kind::kBody : Operation::Kind::kGetItem;
    return operation;
  }
  if (const auto form = in_place_op(op_type)) {
    if (const auto handle = find_handle(*form); handle && has_cpu_kernel(*handle)) {
      *operation = operation_of(*handle);
      return operation;
    }
  }
  if (const Decomposition* form = in_place_decomposition(op_type)) {
    operation->kind = Operation::Kind::kDecomposition;
    operation->decomposition = form;
    operation->schema = parse_schema(op_type, form->schema);
    operation->traits.resize(operation->schema.arguments.size());
    operation->traits.front().written = true;
    return operation;
  }
  const auto handle = find_handle(op_type);
  const Decomposition* const decomposition = find_decomposition(op_type);
  if (decomposition != nullptr &&
      (!handle || decomposition->when == Decomposition::When::kAlways)) {
    operation->kind = Operation::Kind::kDecomposition;
    operation->decomposition = decomposition;
    operation->schema = parse_schema(op_type, decomposition->schema);
    operation->traits.resize(operation->schema.arguments.size());
    return operation;
  }
  if (!handle) throw StatusError(NPU_UNSUPPORTED, not_found_text(op_type));
  if (!has_cpu_kernel(*handle)) {
    throw StatusError(NPU_UNSUPPORTED,
                      fmt::format("libtorch {} has no CPU kernel for this op", NPU_TORCH_VERSION));
  }
  *operation = operation_of(*handle);
  return operation;
}

std::string OpRegistry::not_found_text(const std::string& op_type) const {
  const std::size_t dot = op_type.rfind('.');
  const std::string stem = dot == std::string::npos ? op_type : op_type.substr(0, dot + 1);
  std::vector<std::string> overloads;
  std::vector<std::string> known;
  visit([&](const std::string& name, const char*) {
    if (dot != std::string::npos && name.starts_with(stem) &&
        name.find('.', stem.size()) == name.npos) {
      overloads.push_back(name.substr(stem.size()));
    }
    known.push_back(name);
  });
  std::string text = fmt::format("libtorch {} has no such op", NPU_TORCH_VERSION);
  if (!op_type.starts_with("aten.")) text += ", and no library of --load-ops has it";
  if (!overloads.empty()) {
    std::sort(overloads.begin(), overloads.end());
    return fmt::format("{}; overloads of '{}': {}", text, stem.substr(0, stem.size() - 1),
                       fmt::join(overloads, ", "));
  }
  std::sort(known.begin(), known.end());
  std::vector<std::string> nearest;
  while (nearest.size() < 3) {
    const std::string name = nearest_word(op_type, known);
    if (name.empty()) break;
    nearest.push_back(name);
    known.erase(std::find(known.begin(), known.end(), name));
  }
  if (!nearest.empty()) text += fmt::format("; nearest: {}", fmt::join(nearest, ", "));
  return text;
}

void OpRegistry::visit(
    const std::function<void(const std::string& op_type, const char* kind)>& visitor) const {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || handle->schema().is_vararg() || !has_cpu_kernel(*handle)) continue;
    const std::string op_type = op_type_of(name);
    const Decomposition* decomposition = find_decomposition(op_type);
    if (decomposition != nullptr && decomposition->when == Decomposition::When::kAlways) continue;
    visitor(op_type, op_type.starts_with("aten.") ? "aten" : "libtorch");
  }
  for (const Decomposition& row : decompositions()) {
    if (row.when == Decomposition::When::kMissing && find_handle(row.op_type)) continue;
    visitor(std::string(row.op_type), "decomposition");
  }
  for (const Decomposition& row : in_place_decompositions()) {
    if (!find_handle(row.op_type)) visitor(std::string(row.op_type), "decomposition");
  }
  for (const auto& entry : custom_ops_) visitor(entry.first, "custom");
  visitor(std::string(kGetItem), "builtin");
  visitor(std::string(kBody), "builtin");
}

}  // namespace npu::aten
