// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/custom_op.hpp"

namespace npu {

/// Loads a shared object of custom ops (npu/custom_op.hpp) and returns its rows, checked; they live
/// until the process ends. A name without a slash is a file of the working directory if there is
/// one, else it is searched as dlopen does. A helper loads it first, so one that crashes,
/// ends the process or hangs is refused. Throws Error kIo that names the file.
std::vector<npu_custom_op> load_custom_ops(const std::string& path);

/// What the helper does: loads a file, as dlopen finds it, and checks its table. Throws as above.
void look_at_custom_ops(const std::string& file);

}  // namespace npu
