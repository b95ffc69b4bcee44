// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/score.hpp"

#include <cmath>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "runtime/generate/counting_model.hpp"
#include "runtime/generate/generate_report.hpp"

namespace npu {
namespace {

ScoreResult score_lines(StepModel& model, const std::vector<std::vector<std::int64_t>>& lines) {
  std::size_t next = 0;
  const auto source = [&]() -> std::optional<TokenLine> {
    if (next == lines.size()) return std::nullopt;
    TokenLine line;
    line.ids = lines[next++];
    line.number = static_cast<std::int64_t>(next);
    return line;
  };
  return score(model, source, "t.ids", {});
}

/// By single tokens, and by the definition.
double expected_nll(const std::vector<std::int64_t>& ids) {
  CountingModel model({{"one", 1}}, 64);
  double nll = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const auto logits = model.step(0, std::span(&ids[i], 1), static_cast<std::int64_t>(i));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - 1009);
    nll += std::log(sum) + 1009 - static_cast<double>(logits[static_cast<std::size_t>(ids[i + 1])]);
  }
  return nll;
}

TEST_CASE("a score is the sum of negative log-likelihoods", "[score]") {
  const std::vector<std::int64_t> text{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 1, 0};
  for (const auto& entries :
       {std::vector<StepEntry>{{"one", 1}}, std::vector<StepEntry>{{"one", 1, 2}, {"eight", 8, 3}},
        std::vector<StepEntry>{{"one", 1, 2, false}, {"eight", 8, 3, false}}}) {
    CountingModel model(entries, 64);
    const ScoreResult result = score_lines(model, {text, {7}, {4, 4}});
    REQUIRE(result.lines.size() == 3);
    // Sums of up to 11 terms of at most 1,009: 11 x 96 x 1009 x 2^-53 is 1.2e-10.
    CHECK(result.lines[0].nll == Approx(expected_nll(text)).epsilon(1e-10));
    CHECK(result.lines[1].nll == 0);
    CHECK(result.scored == 12);
    CHECK(result.nll == Approx(expected_nll(text) + expected_nll({4, 4})).epsilon(1e-10));
    CHECK(model.is_in_order);
    CHECK(model.clears == 2);
    const Json report = score_report_json(result, {});
    CHECK(generate_metrics(report).at("nll_per_token") == Approx(result.nll / 12).epsilon(1e-12));
    CHECK(generate_metrics(report).at("requests") == 3);
  }
}

TEST_CASE("what cannot be scored is refused", "[score]") {
  CountingModel last_rows({{"eight", 8, 1, false}}, 64);
  CHECK_THROWS_WITH(score_lines(last_rows, {{1, 2}}),
                    "error: no entry of the model gives the logits of every token, and none takes "
                    "one token");
  CountingModel small({{"one", 1}}, 4);
  CHECK_THROWS_AS(score_lines(small, {{1, 2, 3, 4, 5}}), Error);
  CHECK(small.calls.empty());
  CountingModel faulty({{"four", 4, 1}}, 64);
  faulty.nan_at = 2;
  CHECK_THROWS_WITH(score_lines(faulty, {{1, 2, 3, 4, 5}}),
                    "t.ids: error: request 1, position 2 (entry 'four'): the logit of id 5 is NaN");
}

}  // namespace
}  // namespace npu
