// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool.hpp"

namespace npu::cli {

/// --bucket S=N of npu-align: capacities of sizes that vary.
struct PaddingOptions {
  std::vector<std::string> buckets;

  /// Whether padding is asked for. Throws Error kUsage for options that do not go together.
  bool asked(const Tool& tool) const;
};

void add_padding_options(Tool& tool, PaddingOptions& options);

/// Pads the tool's template, says what is proved and writes the document.
ExitStatus pad_template(Tool& tool, const PaddingOptions& options);

/// Checks the certificates that the tool's graph has, of padding, of precisions or both, and prints
/// what they prove.
ExitStatus verify_certificates(Tool& tool);

}  // namespace npu::cli
