// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/custom_op.hpp"

namespace npu {

/// Loads a shared object of custom ops (npu/custom_op.hpp), checks its rows and returns them; they
/// live until the process ends. A name without a slash is looked up in the working directory
/// first, then as dlopen does. Throws Error kIo that names the file.
std::vector<npu_custom_op> load_custom_ops(const std::string& path);

}  // namespace npu
