// SPDX-License-Identifier: Apache-2.0
// Reads the `quantization` section of a device. O(1).
#include "target/quantization_rules.hpp"

#include <algorithm>
#include <array>

#include "device/isa_level.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

struct FormName {
  std::string_view name;
  QuantForm form;
};
constexpr std::array<FormName, 4> kActivations{
    {{"uint8 asymmetric", {DType::kUInt8, 0, 255, false}},
     {"int8 asymmetric", {DType::kInt8, -128, 127, false}},
     {"int8 symmetric", {DType::kInt8, -127, 127, true}},
     {"uint8 symmetric", {DType::kUInt8, 0, 255, true}}}};
// 7 bits: two products of such a weight fit in 16 bits, see npu-target(5).
constexpr std::array<FormName, 2> kWeights{
    {{"int8 per-channel symmetric", {DType::kInt8, -127, 127, true}},
     {"int7 per-channel symmetric", {DType::kInt8, -63, 63, true}}}};

// What is float unless a device says otherwise.
constexpr std::string_view kFloat = "float";
constexpr std::string_view kFloatBias = "float32";
constexpr std::string_view kIntegerIo = "quantized";
constexpr std::string_view kIntegerBias = "int32";

template <std::size_t Size>
const FormName* find_form(const std::array<FormName, Size>& forms, const Json* text) {
  const std::string* name = json_text(text);
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const FormName& form) {
    return name != nullptr && form.name == *name;
  });
  return found == forms.end() ? nullptr : &*found;
}

template <std::size_t Size>
void check_form(const std::array<FormName, Size>& forms, const Json& section, const char* key,
                const std::string& pointer, FieldFaults& faults) {
  const Json* value = find_member(section, key);
  if (value == nullptr || find_form(forms, value) != nullptr) return;
  std::string names;
  for (const FormName& form : forms) {
    names += (names.empty() ? "'" : ", '") + std::string(form.name) + "'";
  }
  faults.add(pointer + "/" + key, "expected one of " + names + ", found " + value_or_type(value));
}

void check_word(const Json& section, const char* key, std::string_view one, std::string_view other,
                const std::string& pointer, FieldFaults& faults) {
  const Json* value = find_member(section, key);
  if (value == nullptr || *value == one || *value == other) return;
  faults.add(pointer + "/" + key, "expected '" + std::string(one) + "' or '" + std::string(other) +
                                      "', found " + value_or_type(value));
}

bool is_word(const Json& section, const char* key, std::string_view word) {
  const Json* value = find_member(section, key);
  return value != nullptr && *value == word;
}

}  // namespace

std::optional<QuantizationRules> quantization_rules(const Target& target,
                                                    const std::string& device) {
  const Json* found = nullptr;
  if (const Json* devices = member_list(*target.json, "devices")) {
    for (const Json& entry : *devices) {
      const std::string* name = member_text(entry, "name");
      if (name != nullptr && *name == device) found = member_object(entry, "quantization");
    }
  }
  if (found == nullptr) return std::nullopt;
  const Json& section = *found;
  QuantizationRules rules;
  rules.device = device;
  if (const FormName* form = find_form(kActivations, find_member(section, "activations"))) {
    rules.activations = form->form;
    rules.activations_text = form->name;
  }
  if (const FormName* form = find_form(kWeights, find_member(section, "weights"))) {
    rules.weights = form->form;
    rules.weights_text = form->name;
  }
  rules.float_ops = member_flag(section, "float_ops").value_or(rules.float_ops);
  rules.integer_biases = is_word(section, "bias", kIntegerBias);
  rules.integer_io = is_word(section, "io", kIntegerIo);
  return rules;
}

QuantizationRules target_rules(const Target& target) {
  constexpr std::string_view kCpuBackend = "onednn";
  for (const Device& device : target.devices) {
    if (const auto rules = quantization_rules(target, device.name)) return *rules;
  }
  QuantizationRules rules;
  const bool is_here =
      std::any_of(target.devices.begin(), target.devices.end(),
                  [&](const Device& device) { return device.backend == kCpuBackend; });
  if (!is_here || adds_byte_products_exactly()) return rules;
  rules.weights = kWeights.back().form;
  rules.weights_text = kWeights.back().name;
  rules.reason = "weights have 7 bits, since this CPU has no VNNI";
  return rules;
}

void check_quantization_rules(const Json& section, const std::string& file,
                              const std::string& pointer, Diagnostics& diagnostics) {
  FieldFaults faults(file, diagnostics);
  faults.check_keys(section, pointer, {"activations", "weights", "bias", "io", "float_ops"});
  check_form(kActivations, section, "activations", pointer, faults);
  check_form(kWeights, section, "weights", pointer, faults);
  check_word(section, "bias", kFloatBias, kIntegerBias, pointer, faults);
  check_word(section, "io", kFloat, kIntegerIo, pointer, faults);
  const Json* float_ops = find_member(section, "float_ops");
  if (float_ops != nullptr && !float_ops->is_boolean()) {
    faults.add(pointer + "/float_ops", "expected true or false, found " + value_or_type(float_ops));
  }
}

}  // namespace npu
