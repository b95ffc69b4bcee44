// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/generate/generate.hpp"
#include "runtime/generate/step_model.hpp"

namespace npu {

/// How well a model foretells a line of ids: all but the first are scored.
struct ScoredLine {
  std::int64_t ids = 0;
  double nll = 0;  ///< negative log-likelihood, natural, summed over ids - 1
};

struct ScoreResult {
  std::vector<ScoredLine> lines;
  std::int64_t scored = 0;  ///< ids that were foretold
  double nll = 0;           ///< their sum
  double ms = 0;            ///< of all steps
  std::int64_t copied_bytes = 0;
  std::int64_t transfer_bytes = 0;
};

/// Scores lines, each from a cleared model on. Entries that give the logits of their last row alone
/// are used only as far as they have one row; throws Error kUnsupported if that leaves none, and
/// otherwise as generate() does.
ScoreResult score(StepModel& model, const RequestSource& lines, const std::string& file,
                  const GenerateProgressCallback& progress);

}  // namespace npu
