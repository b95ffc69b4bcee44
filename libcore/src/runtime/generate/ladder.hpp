// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npu {

/// An entry that takes up to so many rows at once, and what that costs.
struct Rung {
  std::int64_t rows = 0;
  double us = 0;     ///< predicted; 0: not known
  bool pads = true;  ///< takes fewer rows, too
};

/// A step that takes `rows` rows, at most those of its rung; the rest is padding.
struct LadderStep {
  std::size_t rung = 0;
  std::int64_t rows = 0;
  bool operator==(const LadderStep&) const = default;
};

/// Divides a number of rows into steps of some sizes.
class Ladder {
 public:
  /// At least one rung, at most kMostRungs. If the time of one is not known, those of all are taken
  /// to be their rows plus what reading the weights is worth.
  explicit Ladder(std::vector<Rung> rungs);

  static constexpr std::size_t kMostRungs = 64;

  /// The steps with the least sum of times; of several, those of the fewest steps. Larger ones come
  /// first; at most one, the last, is padded. O(rows x rungs) for the first call with so many rows.
  /// Throws Error kUnsupported if no sum of rungs that take no fewer rows is `rows`.
  std::vector<LadderStep> steps(std::int64_t rows);

 private:
  struct Best {
    double us = 0;
    std::int64_t steps = 0;
    std::size_t rung = 0;  // of one of its steps
  };
  void extend(std::int64_t rows);

  std::vector<Rung> rungs_;
  std::vector<Best> best_;  // by rows
};

}  // namespace npu
