// SPDX-License-Identifier: Apache-2.0
// Reads members of a device's description that struct Device
// does not have. O(size of the description).
#include "target/device_facts.hpp"

#include "support/digest.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

const Json* description_of(const Target& target, std::string_view device) {
  const Json* devices = member_list(*target.json, "devices");
  if (devices == nullptr) return nullptr;
  for (const Json& description : *devices) {
    const std::string* name = member_text(description, "name");
    if (name != nullptr && *name == device) return &description;
  }
  return nullptr;
}

}  // namespace

std::int64_t device_memory_bytes(const Target& target, std::string_view device) {
  const Json* description = description_of(target, device);
  if (description == nullptr) return 0;
  return member_integer(*description, "memory_bytes").value_or(0);
}

std::optional<double> device_switch_us(const Target& target, std::string_view device) {
  const Json* description = description_of(target, device);
  if (description == nullptr) return std::nullopt;
  return member_double(*description, "switch_us");
}

std::string device_rules_digest(const Target& target, std::string_view device) {
  const Json* description = description_of(target, device);
  if (description == nullptr) return {};
  Digest digest;
  for (const std::string_view key : {"ops", "dtypes", "rank"}) {
    const Json* member = find_member(*description, key);
    digest.add(key);
    digest.add(member == nullptr ? "" : member->dump());
  }
  return digest.hex();
}

}  // namespace npu
