// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/backend.h"

namespace npu {

using BackendEntry = const npu_backend* (*)(const npu_host*, npu_error*);

/// What a loaded shared object exports. Throws Error kUnsupported that names `path` if it is no
/// backend.
BackendEntry find_backend_entry(void* library, const std::string& path);

/// The table of a loaded shared object; every function that the host relies on is there. Throws as
/// find_backend_entry.
const npu_backend* backend_table(void* library, const std::string& path, const std::string& name);

}  // namespace npu
