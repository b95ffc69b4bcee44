// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "npu/backend.h"

namespace npu {

/// Whether a backend has `feature` among its features.
bool lists_feature(const npu_backend& table, std::string_view feature);

/// "lists the feature 'queue' but lacks event_wait", if a backend lists a feature without all of
/// its functions; otherwise empty. The table has null for what it ends before.
std::string feature_fault(const npu_backend& table);

}  // namespace npu
