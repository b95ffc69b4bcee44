// SPDX-License-Identifier: Apache-2.0
// Rebuilds the arguments of an ATen call from what a node of npu-ir(5) holds: its tensor operands,
// flattened in schema order, and the attrs that were passed explicitly.
//
// Three walks over the schema: decide which tensor arguments take an operand, assign the operands,
// then look up everything else. O(arguments + operands).
//
// The one thing that documents omit is a None between two tensors. It is recovered from
// `_none_args`, from `operands` of npu.length_mask, or from the rules for running statistics; other
// ambiguous nodes are refused.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/argument_value.hpp"
#include "ops/schema.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

bool is_tensor(const SchemaArgument& argument) { return argument.type == ArgumentType::kTensor; }
bool is_tensor_list(const SchemaArgument& argument) {
  return argument.type == ArgumentType::kTensorList ||
         argument.type == ArgumentType::kOptionalTensorList;
}

// ---- Values ----

// PyTorch accepts True as a float and as a Scalar, but not as an int.
bool is_number(const Json& value) { return json_number(value).has_value(); }
bool is_bool(const Json& value) { return value.is_boolean(); }
bool is_string(const Json& value) { return value.is_string(); }

struct Expectation {
  std::string_view text;
  bool met = true;
};

// The type that `argument` expects, and whether `value` (never null) has it.
Expectation check_value(const SchemaArgument& argument, const Json& value) {
  const bool sized = argument.list_size > 0;
  switch (argument.type) {
    case ArgumentType::kInt:
      return {"an integer", is_int(value)};
    case ArgumentType::kFloat:
      return {"a number", is_number(value)};
    case ArgumentType::kBool:
      return {"true or false", is_bool(value)};
    case ArgumentType::kScalar:
      return {"a number or a bool", is_number(value)};
    case ArgumentType::kTensor:
      return {"a number or a bool in place of a tensor", is_number(value)};
    case ArgumentType::kString:
    case ArgumentType::kLayout:
    case ArgumentType::kDevice:
    case ArgumentType::kMemoryFormat:
    case ArgumentType::kGenerator:
      return {"a string", is_string(value)};
    case ArgumentType::kDType:
      return {"the name of a dtype",
              value.is_string() && parse_dtype(value.get_ref<const std::string&>())};
    case ArgumentType::kIntList:
      return {sized ? "an integer or a list of integers" : "a list of integers",
              is_list_of(value, is_int) || (sized && is_int(value))};
    case ArgumentType::kFloatList:
      return {sized ? "a number or a list of numbers" : "a list of numbers",
              is_list_of(value, is_number) || (sized && is_number(value))};
    case ArgumentType::kBoolList:
      return {sized ? "a bool or a list of bools" : "a list of bools",
              is_list_of(value, is_bool) || (sized && is_bool(value))};
    case ArgumentType::kScalarList:
      return {"a list of numbers", is_list_of(value, is_number)};
    case ArgumentType::kStringList:
      return {"a list of strings", is_list_of(value, is_string)};
    case ArgumentType::kTensorList:
    case ArgumentType::kOptionalTensorList:
      return {"tensors", false};
    case ArgumentType::kOther:
      return {};
  }
  return {};
}

// ---- Names ----

std::string unknown_argument_text(const Schema& schema, const std::string& key) {
  std::vector<std::string> names;
  for (const SchemaArgument& argument : schema.arguments) names.push_back(argument.name);
  const std::string nearest = nearest_word(key, names);
  if (nearest.empty()) return fmt::format("{} has no argument '{}'", schema.name, key);
  return fmt::format("{} has no argument '{}'; did you mean '{}'?", schema.name, key, nearest);
}

// ---- Tensors ----

class Binder {
 public:
  Binder(const Schema& schema, const std::vector<OperandInfo>& operands, const Json& attrs,
         std::vector<BoundArgument>& bound)
      : schema_(schema), operands_(operands), attrs_(attrs), bound_(bound) {}

  std::optional<BindError> bind() {
    bound_.assign(schema_.arguments.size(), BoundArgument{});
    slots_.assign(schema_.arguments.size(), Slot::kNoTensor);
    list_sizes_.assign(schema_.arguments.size(), 0);
    if (!attrs_.is_null() && !attrs_.is_object()) {
      return BindError{"", fmt::format("attrs: expected an object, found {}", found_text(attrs_))};
    }
    for (auto step :
         {&Binder::check_names, &Binder::choose_slots, &Binder::size_lists,
          &Binder::resolve_optionals, &Binder::hand_out_operands, &Binder::bind_values}) {
      if (auto error = (this->*step)()) return error;
    }
    return std::nullopt;
  }

 private:
  enum class Slot : std::uint8_t { kNoTensor, kNone, kScalar, kRequired, kOptional, kList };

  static BindError fault(const SchemaArgument& argument, std::string_view text) {
    return BindError{argument.name, fmt::format("argument '{}': {}", argument.name, text)};
  }
  std::optional<std::size_t> index_of(std::string_view name) const {
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      if (schema_.arguments[i].name == name) return i;
    }
    return std::nullopt;
  }

  std::optional<BindError> check_names() {
    if (attrs_.is_null()) return std::nullopt;
    for (const auto& [key, value] : attrs_.items()) {
      if (key.starts_with('_') || value.is_null() || index_of(key)) continue;
      return BindError{key, unknown_argument_text(schema_, key)};
    }
    return std::nullopt;
  }

  std::optional<BindError> choose_slots() {
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const SchemaArgument& argument = schema_.arguments[i];
      if (!is_tensor(argument) && !is_tensor_list(argument)) continue;
      const Json* value = find_member(attrs_, argument.name);
      if (value != nullptr && value->is_null()) {
        if (!argument.optional) return fault(argument, "expected a tensor, found null");
        slots_[i] = Slot::kNone;
      } else if (value != nullptr) {
        // An empty list has no tensors to record, so exporters write it as a value.
        if (is_tensor_list(argument) && value->is_array() && value->empty()) {
          slots_[i] = Slot::kList;
          empty_list_in_attrs_.push_back(i);
          continue;
        }
        const Expectation expectation = check_value(argument, *value);
        if (!expectation.met) {
          return fault(argument,
                       fmt::format("expected {}, found {}", expectation.text, found_text(*value)));
        }
        slots_[i] = Slot::kScalar;
      } else if (is_tensor_list(argument)) {
        slots_[i] = Slot::kList;
      } else {
        slots_[i] = argument.optional ? Slot::kOptional : Slot::kRequired;
      }
    }
    leave_out_unnamed();
    const Json* none_args = find_member(attrs_, "_none_args");
    if (none_args == nullptr || none_args->is_null()) return std::nullopt;
    if (!is_list_of(*none_args, is_string)) {
      return BindError{"_none_args",
                       fmt::format("_none_args: expected a list of argument names, found {}",
                                   found_text(*none_args))};
    }
    for (const Json& name : *none_args) {
      const auto i = index_of(name.get_ref<const std::string&>());
      if (!i || slots_[*i] == Slot::kNoTensor || !schema_.arguments[*i].optional) {
        return BindError{"_none_args",
                         fmt::format("_none_args: {} has no optional tensor argument '{}'",
                                     schema_.name, name.get_ref<const std::string&>())};
      }
      if (slots_[*i] == Slot::kScalar) {
        return fault(schema_.arguments[*i], "is named in _none_args and has a value, too");
      }
      slots_[*i] = Slot::kNone;
      none_args_given_ = true;
    }
    return std::nullopt;
  }

  // npu.length_mask says in `operands` which of its optional tensors it has.
  void leave_out_unnamed() {
    const Json* named = find_member(attrs_, "operands");
    if (named == nullptr || !named->is_string() || !index_of("operands")) return;
    const auto only = index_of(named->get_ref<const std::string&>());
    if (!only) return;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] == Slot::kOptional && i != *only) slots_[i] = Slot::kNone;
    }
  }

  std::size_t count(Slot slot) const {
    return static_cast<std::size_t>(std::count(slots_.begin(), slots_.end(), slot));
  }

  // Lists: _tensor_list_sizes has the number of tensors of each list that was passed. Only lists
  // with a None among their elements have a mask.
  std::optional<BindError> size_lists() {
    const Json* sizes = find_member(attrs_, "_tensor_list_sizes");
    const Json* masks = find_member(attrs_, "_tensor_list_none_masks");
    if (sizes != nullptr && sizes->is_null()) sizes = nullptr;
    if (masks != nullptr && masks->is_null()) masks = nullptr;
    if (sizes != nullptr && (!is_list_of(*sizes, is_list_size))) {
      return BindError{"_tensor_list_sizes",
                       fmt::format("_tensor_list_sizes: expected a list of sizes, found {}",
                                   found_text(*sizes))};
    }
    if (masks != nullptr &&
        !is_list_of(*masks, [](const Json& mask) { return is_list_of(mask, is_bool); })) {
      return BindError{
          "_tensor_list_none_masks",
          fmt::format("_tensor_list_none_masks: expected a list of lists of bools, found {}",
                      found_text(*masks))};
    }
    auto error = sizes != nullptr ? take_sizes(*sizes) : infer_size(masks);
    if (error || masks == nullptr) return error;
    return take_masks(*masks);
  }

  static bool is_list_size(const Json& size) {
    return is_int(size) && size.get<std::int64_t>() >= 0 &&
           size.get<std::int64_t>() <= std::numeric_limits<std::int32_t>::max();
  }

  // Arguments that are lists of tensors, without those that are empty lists in attrs: old exporters
  // count an empty list, new ones may leave it to attrs.
  std::vector<std::size_t> passed_lists() const {
    std::vector<std::size_t> lists;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != Slot::kList) continue;
      const bool empty = std::find(empty_list_in_attrs_.begin(), empty_list_in_attrs_.end(), i) !=
                         empty_list_in_attrs_.end();
      if (!empty) lists.push_back(i);
    }
    return lists;
  }

  std::optional<BindError> take_sizes(const Json& sizes) {
    std::vector<std::size_t> lists = passed_lists();
    if (sizes.size() == lists.size() + empty_list_in_attrs_.size()) {
      lists.insert(lists.end(), empty_list_in_attrs_.begin(), empty_list_in_attrs_.end());
      std::sort(lists.begin(), lists.end());
    }
    if (sizes.size() > lists.size()) {
      return BindError{
          "_tensor_list_sizes",
          fmt::format("_tensor_list_sizes: has {} sizes, but {} has {} lists of tensors",
                      sizes.size(), schema_.name, lists.size())};
    }
    for (std::size_t k = 0; k < lists.size(); ++k) {
      const SchemaArgument& argument = schema_.arguments[lists[k]];
      if (k < sizes.size()) {
        list_sizes_[lists[k]] = npu::index_of(sizes[k].get<std::int64_t>());
      } else if (argument.optional) {
        slots_[lists[k]] = Slot::kNone;
      } else {
        return fault(argument, "_tensor_list_sizes has no size for it");
      }
    }
    return std::nullopt;
  }

  // A single list takes the operands that the single tensors leave; optional tensors count as given
  // unless something says otherwise. `masks` may be null.
  std::optional<BindError> infer_size(const Json* masks) {
    const std::vector<std::size_t> lists = passed_lists();
    if (lists.empty()) return std::nullopt;
    if (lists.size() > 1) {
      return fault(schema_.arguments[lists.front()],
                   "several lists of tensors need _tensor_list_sizes");
    }
    const std::size_t singles = count(Slot::kRequired);
    std::size_t left = operands_.size() > singles ? operands_.size() - singles : 0;
    if (masks != nullptr && !masks->empty()) left = present_count(masks->front());
    list_sizes_[lists.front()] = left;
    if (left == 0 && schema_.arguments[lists.front()].optional) slots_[lists.front()] = Slot::kNone;
    return std::nullopt;
  }

  static std::size_t present_count(const Json& mask) {
    return npu::index_of(std::count(mask.begin(), mask.end(), Json(false)));
  }

  std::optional<BindError> take_masks(const Json& masks) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < slots_.size() && next < masks.size(); ++i) {
      if (slots_[i] != Slot::kList ||
          schema_.arguments[i].type != ArgumentType::kOptionalTensorList) {
        continue;
      }
      const Json& mask = masks[next];
      const std::size_t tensors = present_count(mask);
      // Some writers count the None entries as well.
      if (tensors != list_sizes_[i] && mask.size() != list_sizes_[i]) continue;
      list_sizes_[i] = tensors;
      list_masks_.emplace_back(i, &mask);
      ++next;
    }
    if (next == masks.size()) return std::nullopt;
    return BindError{"_tensor_list_none_masks",
                     "_tensor_list_none_masks: a mask fits no list of optional tensors"};
  }

  const Json* attr_or_default(std::string_view name) const {
    if (const Json* value = find_member(attrs_, name)) return value;
    const auto i = index_of(name);
    if (!i || !schema_.arguments[*i].default_value) return nullptr;
    return &*schema_.arguments[*i].default_value;
  }

  // True if the op normalises with the running statistics that are passed to it, so that they
  // cannot be None.
  bool uses_running_statistics() const {
    for (const std::string_view flag : {"training", "train", "use_input_stats"}) {
      const Json* value = attr_or_default(flag);
      if (value != nullptr && value->is_boolean()) return !value->get<bool>();
    }
    return false;
  }

  // A channel vector of the op's first operand.
  bool is_per_channel(std::size_t operand) const {
    if (operand >= operands_.size()) return false;
    const Shape* data = operands_.front().shape;
    const Shape* vector = operands_[operand].shape;
    if (data == nullptr || vector == nullptr) return true;  // nothing is known against it
    return data->size() >= 2 && vector->size() == 1 && vector->front() == (*data)[1];
  }

  // Decides which optional tensors are None when there are fewer operands than tensor arguments.
  std::optional<BindError> resolve_optionals() {
    std::size_t taken = count(Slot::kRequired);
    for (const std::size_t size : list_sizes_) taken += size;
    if (taken > operands_.size()) return std::nullopt;  // hand_out_operands reports what is missing
    std::size_t left = operands_.size() - taken;
    std::size_t optional = count(Slot::kOptional);
    if (left >= optional) return std::nullopt;

    const auto mean = index_of("running_mean");
    const auto variance = index_of("running_var");
    if (left != 0 && mean && variance && slots_[*mean] == Slot::kOptional &&
        slots_[*variance] == Slot::kOptional && uses_running_statistics()) {
      // mean and var slid into the positions of weight and bias.
      if (left < 2 || (left == 3 && optional == 4)) {
        return fault(
            schema_.arguments[*mean],
            fmt::format("cannot tell which of the {} operands are weight, bias, running_mean "
                        "and running_var; name those that were None in _none_args",
                        operands_.size()));
      }
      slots_[*mean] = slots_[*variance] = Slot::kRequired;
      left -= 2;
      optional -= 2;
      for (std::size_t operand = operands_.size() - 2; operand < operands_.size(); ++operand) {
        if (is_per_channel(operand)) continue;
        return fault(
            schema_.arguments[operand + 2 == operands_.size() ? *mean : *variance],
            fmt::format("operand {} has shape {} and is no vector with one element a channel; "
                        "name the arguments that were None in _none_args",
                        operand, shape_text(*operands_[operand].shape)));
      }
    }
    const auto low = index_of("min");
    const auto high = index_of("max");
    if (left == 1 && low && high && slots_[*low] == Slot::kOptional &&
        slots_[*high] == Slot::kOptional) {
      return fault(
          schema_.arguments[*low],
          "one bound is given, and it may be min or max; name the other one in _none_args");
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != Slot::kOptional) continue;
      if (left > 0) {
        --left;
      } else {
        slots_[i] = Slot::kNone;
      }
    }
    return std::nullopt;
  }

  std::optional<BindError> hand_out_operands() {
    std::size_t next = 0;
    std::size_t most = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const SchemaArgument& argument = schema_.arguments[i];
      switch (slots_[i]) {
        case Slot::kNoTensor:
        case Slot::kNone:
        case Slot::kScalar:
          break;
        case Slot::kRequired:
        case Slot::kOptional:
          ++most;
          if (next == operands_.size()) {
            return fault(argument, fmt::format("needs a tensor, but the node has only {} input{}",
                                               operands_.size(), operands_.size() == 1 ? "" : "s"));
          }
          bound_[i].kind = BoundArgument::Kind::kTensor;
          bound_[i].inputs = {static_cast<std::int32_t>(next++)};
          break;
        case Slot::kList: {
          most += list_sizes_[i];
          if (list_sizes_[i] > operands_.size() - next) {
            return fault(argument,
                         fmt::format("needs {} tensors, but only {} of the node's {} inputs "
                                     "are left",
                                     list_sizes_[i], operands_.size() - next, operands_.size()));
          }
          BoundArgument& list = bound_[i];
          list.kind = BoundArgument::Kind::kTensors;
          const auto masked = std::find_if(list_masks_.begin(), list_masks_.end(),
                                           [&](const auto& entry) { return entry.first == i; });
          if (masked != list_masks_.end()) {
            for (const Json& is_none : *masked->second) {
              list.inputs.push_back(is_none.get<bool>() ? -1 : static_cast<std::int32_t>(next++));
            }
          } else {
            for (std::size_t k = 0; k < list_sizes_[i]; ++k) {
              list.inputs.push_back(static_cast<std::int32_t>(next++));
            }
          }
          break;
        }
      }
    }
    if (next != operands_.size()) {
      return BindError{"", fmt::format("{} takes at most {} tensor{}, found {}{}", schema_.name,
                                       most, most == 1 ? "" : "s", operands_.size(),
                                       none_args_given_ ? " (see _none_args)" : "")};
    }
    return std::nullopt;
  }

  std::optional<BindError> bind_values() {
    for (std::size_t i = 0; i < schema_.arguments.size(); ++i) {
      const SchemaArgument& argument = schema_.arguments[i];
      if (slots_[i] != Slot::kNoTensor && slots_[i] != Slot::kScalar) continue;
      const Json* value = find_member(attrs_, argument.name);
      if (value == nullptr) {
        if (argument.default_value) {
          bound_[i].from_default = true;
          if (argument.default_value->is_null()) continue;
          bound_[i].kind = BoundArgument::Kind::kValue;
          bound_[i].value = *argument.default_value;
        } else if (!argument.optional && argument.type != ArgumentType::kGenerator) {
          return fault(argument, "is missing and has no default");
        }
        continue;
      }
      if (value->is_null()) {
        if (!argument.optional) {
          return fault(argument,
                       fmt::format("expected {}, found null", check_value(argument, *value).text));
        }
        continue;
      }
      const Expectation expectation = check_value(argument, *value);
      if (!expectation.met) {
        return fault(argument,
                     fmt::format("expected {}, found {}", expectation.text, found_text(*value)));
      }
      bound_[i].kind = BoundArgument::Kind::kValue;
      bound_[i].value = *value;
    }
    return std::nullopt;
  }

  const Schema& schema_;
  const std::vector<OperandInfo>& operands_;
  const Json& attrs_;
  std::vector<BoundArgument>& bound_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> list_sizes_;
  std::vector<std::pair<std::size_t, const Json*>> list_masks_;
  std::vector<std::size_t> empty_list_in_attrs_;
  bool none_args_given_ = false;
};

}  // namespace

std::optional<double> json_number(const Json& value) noexcept {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "inf" || text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-inf" || text == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (text == "nan" || text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<BindError> bind_arguments(const Schema& schema,
                                        const std::vector<OperandInfo>& operands, const Json& attrs,
                                        std::vector<BoundArgument>& bound) {
  return Binder(schema, operands, attrs, bound).bind();
}

}  // namespace npu
