// SPDX-License-Identifier: Apache-2.0
// Exchanges rows before a layer, beside the computation of what reads none of them.
//
// Sums of owned rows alone are added up while the exchange goes on, the others when it is over, by
// the first thread that needs one; with rows in a file, sums are added up for one part at a time.
// O(rows * width), and what the transport takes.
#include "gnn/exchange/rank_exchange.hpp"

#include <algorithm>
#include <chrono>

#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

double milliseconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::max(0.0, std::chrono::duration<double, std::milli>(end - begin).count());
}

}  // namespace

RankExchange::RankExchange(const RankLayout& layout, const Transport* transport,
                           const std::vector<std::int64_t>& row_bytes,
                           const std::vector<float>& factors, std::int32_t threads)
    : layout_(layout),
      transport_(transport),
      row_bytes_(row_bytes),
      factors_(factors),
      threads_(threads) {}

RowSums::Rows RankExchange::rows() const noexcept {
  return {x_, layout_.own_count(), in_.data(), width_,
          factors_.empty() ? nullptr : factors_.data()};
}

void RankExchange::begin(std::size_t layer, Tensor& x) {
  const std::lock_guard lock(mutex_);
  const auto begin = Clock::now();
  if (layer == 0) last_run_.clear();
  if (row_bytes_[layer] == 0) return;
  width_ = x.shape()[1];
  x_ = x.as_mutable<float>();
  held_ = x;
  float* const behind_own = x_ + layout_.own_count() * width_;
  if (transport_ != nullptr) {
    out_.resize(index_of(layout_.sent.size() * width_));
    layout_.sent.compute(rows(), out_.data(), threads_);
  }
  if (layout_.holds_sums) in_.resize(index_of(layout_.received * width_));
  start(layer, begin, layout_.holds_sums ? in_.data() : behind_own);
  layout_.local.compute(rows(), behind_own, threads_, {layout_.late_sums(), 0});
  if (!is_open_) end_without_others();
}

void RankExchange::begin(std::size_t layer, RowFile& own) {
  const std::lock_guard lock(mutex_);
  const auto begin = Clock::now();
  if (layer == 0) last_run_.clear();
  width_ = own.width();
  x_ = nullptr;
  if (row_bytes_[layer] == 0) {
    in_.resize(index_of(layout_.received * width_));  // nobody looks at what is there
    return;
  }
  if (transport_ != nullptr) {
    out_.resize(index_of(layout_.sent.size() * width_));
    add_up(layout_.sent, 0, layout_.sent.size(), own, out_.data());
  }
  in_.resize(index_of(layout_.received * width_));
  start(layer, begin, in_.data());
  if (!is_open_) end_without_others();
}

void RankExchange::start(std::size_t layer, Clock::time_point begin, float* in) {
  last_run_.push_back({layer, begin, begin, 0, 0});
  if (transport_ == nullptr) return;
  const auto row_bytes = width_ * static_cast<std::int64_t>(sizeof(float));
  started_ = Clock::now();
  transport_->start(out_.data(), in, row_bytes);
  is_open_ = true;
  ++count_;
  bytes_sent_ += layout_.sent.size() * row_bytes;
}

// One rank alone only adds up.
void RankExchange::end_without_others() {
  held_ = {};
  LayerExchange& last = last_run_.back();
  last.end = Clock::now();
  last.ms = milliseconds_between(last.begin, last.end);
  ms_ += last.ms;
}

// Sums of rows in a file, as many at a time as read rows that fit in some memory.
void RankExchange::add_up(const RowSums& sums, std::int64_t first, std::int64_t last, RowFile& own,
                          float* out) {
  constexpr std::int64_t kMostFloats = std::int64_t{1} << 20;
  const std::int64_t most =
      std::max<std::int64_t>(1, kMostFloats / std::max<std::int64_t>(1, width_));
  place_.resize(layout_.own_nodes.size(), -1);
  std::vector<std::int32_t> wanted;
  std::vector<RowToRead> reads;
  while (first < last) {
    wanted.clear();
    std::int64_t end = first;
    while (end < last && static_cast<std::int64_t>(wanted.size()) < most) {
      for (const RowSums::Term& term : sums.terms(end++)) {
        if (term.row >= layout_.own_count() || place_[index_of(term.row)] >= 0) continue;
        place_[index_of(term.row)] = 0;
        wanted.push_back(term.row);
      }
    }
    std::sort(wanted.begin(), wanted.end());
    reads.clear();
    for (const std::int32_t row : wanted) {
      place_[index_of(row)] = static_cast<std::int64_t>(reads.size());
      reads.push_back({row, place_[index_of(row)]});
    }
    read_.resize(reads.size() * index_of(width_));
    own.read(reads, read_.data());
    RowSums::Rows from = rows();
    from.own = read_.data();
    from.place = place_.data();
    sums.compute(from, out, threads_, {.first = first, .last = end});
    out += (end - first) * width_;
    first = end;
    for (const std::int32_t row : wanted) place_[index_of(row)] = -1;
  }
}

void RankExchange::fill(const std::vector<std::int32_t>& rows, RowFile& own, float* out) {
  const std::int64_t own_count = layout_.own_count();
  const std::int64_t sum_end = own_count + layout_.local.size();
  std::vector<RowToRead> reads;
  std::int64_t first = sum_end;  // sums of one part lie together
  std::int64_t last = own_count;
  bool waits = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int32_t row = rows[i];
    waits = waits || layout_.late[index_of(row)] != 0;
    if (row < own_count) {
      reads.push_back({row, static_cast<std::int64_t>(i)});
    } else if (layout_.holds_sums && row < sum_end) {
      first = std::min<std::int64_t>(first, row);
      last = std::max<std::int64_t>(last, row + 1);
    }
  }
  if (waits) await();
  std::sort(reads.begin(), reads.end(),
            [](const RowToRead& a, const RowToRead& b) { return a.row < b.row; });
  own.read(reads, out);
  std::vector<float> sums(index_of(std::max<std::int64_t>(0, last - first) * width_));
  if (last > first) add_up(layout_.local, first - own_count, last - own_count, own, sums.data());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int32_t row = rows[i];
    if (row < own_count) continue;
    float* const to = out + static_cast<std::int64_t>(i) * width_;
    if (!layout_.holds_sums) {
      std::copy_n(in_.data() + (row - own_count) * width_, width_, to);
    } else if (row < sum_end) {
      std::copy_n(sums.data() + (row - first) * width_, width_, to);
    } else {
      std::fill_n(to, width_, 0.0F);
    }
  }
}

void RankExchange::await() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (!is_open_) return;
  try {
    receive();
  } catch (...) {
    // A task that is tried again on another device must not read rows that never came.
    failure_ = std::current_exception();
    throw;
  }
}

void RankExchange::rethrow_failure() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void RankExchange::receive() {
  const auto asked = Clock::now();
  const auto arrived = transport_->finish();
  const auto added = Clock::now();
  if (x_ != nullptr) {
    layout_.local.compute(rows(), x_ + layout_.own_count() * width_, threads_,
                          {layout_.late_sums(), 1});
  }
  is_open_ = false;
  held_ = {};
  LayerExchange& last = last_run_.back();
  last.end = arrived;
  last.ms = milliseconds_between(last.begin, arrived) + milliseconds_since(added);
  last.hidden_ms = milliseconds_between(started_, std::min(asked, arrived));
  ms_ += last.ms;
  hidden_ms_ += last.hidden_ms;
}

}  // namespace npu::gnn
