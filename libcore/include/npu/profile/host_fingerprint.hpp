// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "npu/support/json.hpp"

namespace npu {

/// What measured times depend on besides the model: processor, cores and threads.
Json host_fingerprint(std::int32_t threads);

/// Memory that this process may use: the machine's, or less where a control group says so; 0 if
/// nothing says.
double host_memory_bytes();

}  // namespace npu
