// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/generate/generate.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-run that make a token loop of it.
struct TokenLoopOptions {
  GenerateOptions generate;
  bool wants_ids = false;  ///< --generate
  std::string tokens;      ///< FILE, or "-"; empty: the model says what requests begin with
  std::string source;      ///< FILE, or "-"; empty: --inputs, or there is no encoder
  std::string tokens_out;  ///< FILE, or "-"; empty: the report has the ids
  std::string score;       ///< FILE, or "-"; empty: nothing is scored

  bool wanted() const { return wants_ids || !score.empty(); }
};

/// --generate, --tokens, --source, --tokens-out, --temperature, --top-k, --top-p, --seed, --stop,
/// --keep and --score.
void add_generate_options(Tool& tool, TokenLoopOptions& options);

}  // namespace npu::cli
