// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of texts: how far a model of 4 bits is from one of 32, in one number.
//
// A line is read by the cheapest steps among entries that give the logits of every row; the row of
// an id says how likely the next one was. The sum over the vocabulary is in float64, shifted by the
// largest logit. Two passes over the logits of each row.
#include "runtime/generate/score.hpp"

#include <algorithm>
#include <cmath>

#include "npu/support/error.hpp"
#include "runtime/generate/ladder.hpp"
#include "runtime/generate/sampler.hpp"
#include "support/elapsed.hpp"

namespace npu {
namespace {

double negative_log_likelihood(std::span<const float> logits, std::int64_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) - (static_cast<double>(logits[static_cast<std::size_t>(id)]) - largest);
}

/// The entries whose logits can be scored.
struct ScoringEntries {
  std::vector<std::size_t> places;
  std::vector<Rung> rungs;

  explicit ScoringEntries(const std::vector<StepEntry>& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].gives_all_rows && entries[i].rows != 1) continue;
      places.push_back(i);
      rungs.push_back({entries[i].rows, entries[i].predicted_us, entries[i].pads});
    }
    if (!places.empty()) return;
    throw Error(ErrorCode::kUnsupported,
                "no entry of the model gives the logits of every token, and none takes one token");
  }
};

class LineScorer {
 public:
  LineScorer(StepModel& model, const std::string& file)
      : model_(model), file_(file), entries_(model.entries()), ladder_(entries_.rungs) {}

  void run(const Request& of, ScoreResult& result) {
    const TokenLine& line = of.line;
    if (!result.lines.empty()) model_.clear();
    check_source(of, file_, model_, false);
    check_prompt(line, file_, model_, 0);
    result.lines.push_back({.ids = static_cast<std::int64_t>(line.ids.size())});
    if (of.source) model_.encode(*of.source);
    // What follows the last id is not asked for.
    const std::span<const std::int64_t> read = std::span(line.ids).first(line.ids.size() - 1);
    const auto vocabulary = static_cast<std::size_t>(model_.vocabulary());
    std::size_t taken = 0;
    for (const LadderStep& step : ladder_.steps(static_cast<std::int64_t>(read.size()))) {
      const auto rows = static_cast<std::size_t>(step.rows);
      const std::size_t entry = entries_.places[step.rung];
      const Clock::time_point start = Clock::now();
      const std::span<const float> logits =
          model_.step(entry, read.subspan(taken, rows), static_cast<std::int64_t>(taken));
      result.ms += milliseconds_since(start);
      result.copied_bytes = std::max(result.copied_bytes, model_.state_copied_bytes());
      result.transfer_bytes = std::max(result.transfer_bytes, model_.state_transfer_bytes());
      for (std::size_t row = 0; row < rows; ++row) {
        const auto of_row = logits.subspan(row * vocabulary, vocabulary);
        check(of_row, result.lines.size(), taken + row, entry);
        result.lines.back().nll += negative_log_likelihood(of_row, line.ids[taken + row + 1]);
      }
      taken += rows;
    }
    result.nll += result.lines.back().nll;
    result.scored += static_cast<std::int64_t>(read.size());
  }

 private:
  void check(std::span<const float> logits, std::size_t line, std::size_t position,
             std::size_t entry) const {
    const auto nan = first_nan(logits);
    if (!nan) return;
    throw Error(ErrorCode::kFailed,
                "request " + std::to_string(line) + ", position " + std::to_string(position) +
                    " (entry '" + model_.entries()[entry].name + "'): the logit of id " +
                    std::to_string(*nan) + " is NaN",
                {.file = file_});
  }

  StepModel& model_;
  const std::string& file_;
  ScoringEntries entries_;
  Ladder ladder_;
};

}  // namespace

ScoreResult score(StepModel& model, const RequestSource& lines, const std::string& file,
                  const GenerateProgressCallback& progress) {
  LineScorer scorer(model, file);
  ScoreResult result;
  while (const auto request = lines()) {
    scorer.run(*request, result);
    if (progress) {
      progress({.request = result.lines.size(),
                .new_ids = result.scored,
                .ids_per_second =
                    result.ms > 0 ? 1e3 * static_cast<double>(result.scored) / result.ms : 0});
    }
  }
  return result;
}

}  // namespace npu
