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

/// Parses a value of --inputs: FILE.safetensors, FILE.npy or NAME=FILE.npy. In any other file name
/// a '=' has no special meaning.
InputFile parse_input_file(const std::string& text);

}  // namespace npu::cli
