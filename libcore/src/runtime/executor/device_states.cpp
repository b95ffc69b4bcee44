// SPDX-License-Identifier: Apache-2.0
// States by name. Values that come from outside are checked, all of them, before the first one is
// written. O(states) besides the bytes.
#include "runtime/executor/device_states.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

}  // namespace

DeviceStates::Named* DeviceStates::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(list_, [&](const auto& named) { return named->name == name; });
  return found == list_.end() ? nullptr : found->get();
}

DeviceStates::Named& DeviceStates::find_or_make(const std::string& name, DType dtype,
                                                const Shape& shape, const std::string& device,
                                                const std::shared_ptr<DeviceInstance>& instance) {
  Named* known = find(name);
  if (known == nullptr) {
    list_.push_back(
        std::make_unique<Named>(Named{name, device, DeviceState(instance, dtype, shape)}));
    return *list_.back();
  }
  if (known->state.dtype() != dtype || known->state.shape() != shape) {
    throw Error(ErrorCode::kInvalidGraph,
                "state '" + printable_text(name) + "' is " + type_text(dtype, shape) +
                    " in one entry and " + type_text(known->state.dtype(), known->state.shape()) +
                    " in another one");
  }
  return *known;
}

void DeviceStates::clear() {
  for (const auto& named : list_) named->state.clear();
  is_known_ = true;
}

void DeviceStates::check_known() const {
  if (is_known_) return;
  throw Error(ErrorCode::kFailed,
              "a step has failed in the middle, so the states are not known any more");
}

std::vector<NamedTensor> DeviceStates::values() const {
  check_known();
  std::vector<NamedTensor> values;
  for (const auto& named : list_) values.push_back({named->name, named->state.value()});
  return values;
}

void DeviceStates::set_values(const std::vector<NamedTensor>& values) {
  std::set<std::string_view> seen;
  for (const NamedTensor& value : values) {
    const std::string told = "state '" + printable_text(value.name) + "'";
    const Named* known = find(value.name);
    if (known == nullptr) {
      throw Error(ErrorCode::kInvalidGraph, "the model has no " + told);
    }
    const DeviceState& state = known->state;
    if (value.tensor.dtype() != state.dtype() || value.tensor.shape() != state.shape()) {
      throw Error(ErrorCode::kInvalidGraph,
                  told + " is given as " + type_text(value.tensor.dtype(), value.tensor.shape()) +
                      ", expected " + type_text(state.dtype(), state.shape()));
    }
    if (!seen.insert(value.name).second) {
      throw Error(ErrorCode::kInvalidGraph, told + " is given twice");
    }
  }
  for (const auto& named : list_) {
    if (seen.contains(named->name)) continue;
    throw Error(ErrorCode::kInvalidGraph,
                "state '" + printable_text(named->name) + "' is missing among those given");
  }
  is_known_ = false;  // until all are written
  for (const NamedTensor& value : values) find(value.name)->state.set_value(value.tensor);
  is_known_ = true;
}

void DeviceStates::begin_run() {
  check_known();
  is_known_ = false;
}

}  // namespace npu
