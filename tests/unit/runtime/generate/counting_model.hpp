// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/generate/step_model.hpp"

namespace npu {

/// A model that needs no device: the logits of a token are made of all tokens before it and their
/// positions, so that a loop that reads one wrongly, twice or not at all draws other ids.
class CountingModel : public StepModel {
 public:
  struct Call {
    std::size_t entry;
    std::vector<std::int64_t> ids;
    std::int64_t first;
  };

  CountingModel(std::vector<StepEntry> entries, std::int64_t capacity, std::int64_t vocabulary = 96)
      : entries_(std::move(entries)), capacity_(capacity), vocabulary_(vocabulary) {}

  const std::vector<StepEntry>& entries() const override { return entries_; }
  std::int64_t capacity() const override { return capacity_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::span<const float> step(std::size_t entry, std::span<const std::int64_t> ids,
                              std::int64_t first) override {
    calls.push_back({entry, {ids.begin(), ids.end()}, first});
    logits_.clear();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::int64_t position = first + static_cast<std::int64_t>(i);
      is_in_order = is_in_order && position == seen_ && position < capacity_;
      ++seen_;
      hash_ = (hash_ * 31 + static_cast<std::uint64_t>(ids[i] + 7 * position)) % 1'000'003;
      const bool is_given = entries_[entry].gives_all_rows || i + 1 == ids.size();
      for (std::int64_t id = 0; is_given && id < vocabulary_; ++id) {
        const bool is_nan = nan_at == position && id == 5;
        logits_.push_back(
            is_nan ? std::numeric_limits<float>::quiet_NaN()
                   : static_cast<float>((hash_ * 97 + static_cast<std::uint64_t>(id * id * 13)) %
                                        1009));
      }
    }
    return logits_;
  }
  void clear() override {
    seen_ = 0;
    hash_ = 1;
    ++clears;
  }
  std::int64_t state_copied_bytes() const override { return 0; }
  std::int64_t state_transfer_bytes() const override { return 0; }

  /// The ids that follow a text, one at a time.
  std::vector<std::int64_t> expected(std::vector<std::int64_t> text, std::size_t count) const {
    CountingModel model({{"one", 1}}, capacity_, vocabulary_);
    std::span<const float> logits;
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; ids.size() < count; ++i) {
      logits = model.step(0, std::span(&text[i], 1), static_cast<std::int64_t>(i));
      if (i + 1 < text.size()) continue;
      ids.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
      text.push_back(ids.back());
    }
    return ids;
  }

  std::vector<Call> calls;
  int clears = 0;
  bool is_in_order = true;   ///< every position once, and below the capacity
  std::int64_t nan_at = -1;  ///< position whose logits have a NaN

 private:
  std::vector<StepEntry> entries_;
  std::int64_t capacity_;
  std::int64_t vocabulary_;
  std::int64_t seen_ = 0;
  std::uint64_t hash_ = 1;
  std::vector<float> logits_;
};

}  // namespace npu
