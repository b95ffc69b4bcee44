// SPDX-License-Identifier: Apache-2.0
// Reads the list `decompose` of a device. O(names x log ops).
#include "target/decompose_list.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "ops/decompositions.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"
#include "target/target_fields.hpp"

namespace npu {

std::vector<std::string> decompose_list(const Target& target, std::string_view device) {
  std::vector<std::string> names;
  const Json* devices = member_list(*target.json, "devices");
  if (devices == nullptr) return names;
  for (const Json& description : *devices) {
    const std::string* name = member_text(description, "name");
    const Json* list = member_list(description, "decompose");
    if (name == nullptr || *name != device || list == nullptr) continue;
    for (const Json& each : *list) names.push_back(each.get<std::string>());
  }
  return names;
}

void check_decompose_list(const Json& device, const std::string& file, const std::string& pointer,
                          Diagnostics& diagnostics) {
  const Json* list = find_member(device, "decompose");
  if (list == nullptr) return;
  const std::string below = pointer + "/decompose";
  TargetFields fields(file, diagnostics);
  const std::vector<std::string> names = fields.strings(*list, below, true);
  const std::vector<std::string_view> known = decomposed_ops();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || std::binary_search(known.begin(), known.end(), names[i])) continue;
    fields.add(fmt::format("{}/{}", below, i),
               fmt::format("op type '{}' has no decomposition{}", names[i],
                           spelling_hint(names[i], {known.begin(), known.end()})));
  }
}

}  // namespace npu
