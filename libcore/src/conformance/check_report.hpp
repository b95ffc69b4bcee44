// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/check_backend.hpp"

namespace npu::conformance {

/// Inverse of backend_check_json, for the documents of children.
BackendCheck read_backend_check(const Json& json);

}  // namespace npu::conformance
