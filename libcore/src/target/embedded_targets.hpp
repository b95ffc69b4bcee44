// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace npu {

/// A file in libcore/targets; `name` is the file's name without ".json".
struct EmbeddedTarget {
  std::string_view name;
  std::string_view text;
};

/// Sorted by name. Defined in the source file that embed_targets.cmake writes.
const std::vector<EmbeddedTarget>& embedded_targets();

}  // namespace npu
