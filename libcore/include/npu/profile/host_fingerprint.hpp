// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "npu/support/json.hpp"

namespace npu {

/// The machine that times were measured on: processor, cores and threads.
Json host_fingerprint(std::int32_t threads);

}  // namespace npu
