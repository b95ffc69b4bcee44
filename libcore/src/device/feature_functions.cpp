// SPDX-License-Identifier: Apache-2.0
// The functions that belong to a feature. Whoever lists one is asked for all of them at loading, so
// that no run finds in its middle that one is not there.
#include "device/feature_functions.hpp"

#include <algorithm>
#include <array>

namespace npu {
namespace {

struct FeatureFunction {
  std::string_view feature;
  std::string_view function;
  bool is_there = false;
};

}  // namespace

bool lists_feature(const npu_backend& table, std::string_view feature) {
  for (const char* const* at = table.features; at != nullptr && *at != nullptr; ++at) {
    if (feature == *at) return true;
  }
  return false;
}

std::string feature_fault(const npu_backend& table) {
  const std::array functions{
      FeatureFunction{"queue", "queue_open", table.queue_open != nullptr},
      FeatureFunction{"queue", "queue_close", table.queue_close != nullptr},
      FeatureFunction{"queue", "queue_flush", table.queue_flush != nullptr},
      FeatureFunction{"queue", "queue_finish", table.queue_finish != nullptr},
      FeatureFunction{"queue", "submit", table.submit != nullptr},
      FeatureFunction{"queue", "submit_write", table.submit_write != nullptr},
      FeatureFunction{"queue", "submit_read", table.submit_read != nullptr},
      FeatureFunction{"queue", "event_wait", table.event_wait != nullptr},
      FeatureFunction{"queue", "event_free", table.event_free != nullptr},
      FeatureFunction{"copy", "buffer_copy", table.buffer_copy != nullptr},
      FeatureFunction{"check", "check", table.check != nullptr},
      FeatureFunction{"layouts", "check", table.check != nullptr},
      FeatureFunction{"layouts", "buffer_write", table.buffer_write != nullptr},
      FeatureFunction{"layouts", "buffer_read", table.buffer_read != nullptr},
      FeatureFunction{"wrap.host", "buffer_wrap", table.buffer_wrap != nullptr},
      FeatureFunction{"scratch", "blob_memory", table.blob_memory != nullptr},
      FeatureFunction{"taps", "blob_report", table.blob_report != nullptr},
  };
  const auto missing = std::find_if(functions.begin(), functions.end(), [&](const auto& row) {
    return !row.is_there && lists_feature(table, row.feature);
  });
  if (missing == functions.end()) return {};
  return "lists the feature '" + std::string(missing->feature) + "' but lacks " +
         std::string(missing->function);
}

}  // namespace npu
