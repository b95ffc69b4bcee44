// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "npu/compile/bundle.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The SHA-256 of bytes, as sha256sum(1) prints it: 64 hexadecimal digits in lower case.
std::string sha256_hex(std::string_view bytes);

/// A SHA-256 on the command line; capital letters are made small.
CLI::Validator sha256_option();

/// The input, which has to be a bundle of this SHA-256. It is read into memory, so that what runs
/// is what was compared, whatever becomes of the file. Throws Error kParse if it is anything else.
std::shared_ptr<const Bundle> read_pinned_bundle(Tool& tool, const std::string& sha256);

}  // namespace npu::cli
