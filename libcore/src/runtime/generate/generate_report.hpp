// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "npu/support/json.hpp"
#include "runtime/generate/generate.hpp"
#include "runtime/generate/score.hpp"
#include "runtime/generate/step_model.hpp"

namespace npu {

/// The reports of npu-generate(7). They have new ids only where the result has them.
Json generate_report_json(const GenerateResult& result, const StepModelFacts& facts);
Json score_report_json(const ScoreResult& result, const StepModelFacts& facts);

/// The numbers of either report that --assert compares: those of its section by key, what an object
/// in it holds as "step_ms.p90" and the sum of bytes_per_token, and of requests their number and
/// the largest first_token_ms and prefill_ms.
std::map<std::string, double> generate_metrics(const Json& report);

/// A table for people.
std::string format_generate_report(const Json& report);

}  // namespace npu
