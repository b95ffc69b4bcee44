// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/backend.h"

namespace npu {

/// The table of a loaded shared object, of version 4 or presented as such; every function that the
/// host relies on is there. Throws Error kUnsupported that names `path`.
const npu4_backend* backend_table(void* library, const std::string& path, const std::string& name);

}  // namespace npu
