// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "npu/runtime/run_model.hpp"

namespace npu::cli {

/// A value that may have a name: "NAME=VALUE", split at the first '='. Both parts may be empty.
struct NamedValue {
  std::optional<std::string> name;
  std::string value;
};
NamedValue split_named_value(const std::string& text);

/// What --inputs takes: FILE.safetensors, FILE.npy or NAME=FILE.npy. A '=' in the name of any other
/// file is a part of it.
InputFile parse_input_file(const std::string& text);

}  // namespace npu::cli
