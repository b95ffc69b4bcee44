// SPDX-License-Identifier: Apache-2.0
// The ladder of prefill: a prompt of 30 takes a step of 32 or several small ones, whichever is the
// cheapest, and never one of 1,024.
//
// A dynamic programme over the number of rows that are left, which is exact: the best sum for r
// rows is a rung's time and the best sum for what it leaves. A rung larger than r pads. The table
// is kept, since requests follow each other.
#include "runtime/generate/ladder.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "npu/support/error.hpp"

namespace npu {
namespace {

// Rows that take as long as reading the weights once, where nothing was predicted: on today's CPUs
// a product of so many rows is as long as it waits for memory.
constexpr double kWeightRows = 16;

constexpr std::int64_t kNever = -1;  // steps: so many rows are no sum of rungs

bool is_known(const Rung& rung) { return std::isfinite(rung.us) && rung.us > 0; }

}  // namespace

Ladder::Ladder(std::vector<Rung> rungs) : rungs_(std::move(rungs)), best_(1) {
  if (rungs_.empty() || rungs_.size() > kMostRungs) {
    throw Error(ErrorCode::kUnsupported,
                "a model for generation has 1 to " + std::to_string(kMostRungs) +
                    " entries that take tokens, found " + std::to_string(rungs_.size()));
  }
  for (const Rung& rung : rungs_) {
    if (rung.rows >= 1) continue;
    throw Error(ErrorCode::kUnsupported, "an entry takes no tokens");
  }
  if (std::all_of(rungs_.begin(), rungs_.end(), is_known)) return;
  for (Rung& rung : rungs_) rung.us = kWeightRows + static_cast<double>(rung.rows);
}

void Ladder::extend(std::int64_t rows) {
  for (auto r = static_cast<std::int64_t>(best_.size()); r <= rows; ++r) {
    Best best;
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
      if (rungs_[i].rows > r && !rungs_[i].pads) continue;
      const Best& rest =
          best_[static_cast<std::size_t>(std::max<std::int64_t>(r - rungs_[i].rows, 0))];
      if (rest.steps == kNever) continue;
      const Best sum{rungs_[i].us + rest.us, rest.steps + 1, i};
      const bool is_better =
          best.steps == 0 || sum.us < best.us || (sum.us == best.us && sum.steps < best.steps);
      if (is_better) best = sum;
    }
    if (best.steps == 0) best.steps = kNever;
    best_.push_back(best);
  }
}

std::vector<LadderStep> Ladder::steps(std::int64_t rows) {
  extend(rows);
  if (best_[static_cast<std::size_t>(rows)].steps == kNever) {
    throw Error(ErrorCode::kUnsupported, "no sum of steps reads " + std::to_string(rows) +
                                             " tokens: the entries are not proved for padding");
  }
  std::vector<LadderStep> steps;
  for (std::int64_t left = rows; left > 0;) {
    const std::size_t rung = best_[static_cast<std::size_t>(left)].rung;
    const std::int64_t taken = std::min(left, rungs_[rung].rows);
    steps.push_back({rung, taken});
    left -= taken;
  }
  // The padded step is the one that takes what is left at the end, wherever the table had it.
  std::stable_sort(steps.begin(), steps.end(), [&](const LadderStep& a, const LadderStep& b) {
    const bool pads_a = a.rows < rungs_[a.rung].rows;
    const bool pads_b = b.rows < rungs_[b.rung].rows;
    return pads_a != pads_b ? pads_b : a.rows > b.rows;
  });
  return steps;
}

}  // namespace npu
