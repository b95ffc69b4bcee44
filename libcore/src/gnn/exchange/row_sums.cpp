// SPDX-License-Identifier: Apache-2.0
// Adds up rows along the tree over the parts of a plan.
//
// What decides the bits of a sum is only the tree and the order of a part's rows, not which rank
// adds up what: a rank holds the parts below one node, so a sum that it sends is what the receiver
// would have computed for that node. O(terms * width); the tree's depth times a row of memory.
#include "gnn/exchange/row_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "npu/support/ids.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu::gnn {
namespace {

constexpr std::int64_t kPiece = 256;  // sums that a thread takes at once

class Adder {
 public:
  Adder(const RowSums::Rows& rows, bool is_max) : rows_(rows), is_max_(is_max) {}

  void add_up(std::span<const RowSums::Term> terms, PartTree::Node node, float* out,
              std::size_t depth) {
    const std::size_t bytes = index_of(rows_.width) * sizeof(float);
    if (terms.size() == 1 || node.size() == 1) {
      std::memcpy(out, scaled(terms.front().row), bytes);
      for (const RowSums::Term& term : terms.subspan(1)) add(scaled(term.row), out);
      return;
    }
    const PartTree::Node second = node.second();
    const auto middle = static_cast<std::size_t>(
        std::partition_point(terms.begin(), terms.end(),
                             [&](const RowSums::Term& term) { return term.place < second.begin; }) -
        terms.begin());
    if (middle == terms.size()) return add_up(terms, node.first(), out, depth);
    if (middle == 0) return add_up(terms, second, out, depth);
    add_up(terms.first(middle), node.first(), out, depth);
    if (scratch_.size() <= depth) scratch_.resize(depth + 1);
    scratch_[depth].resize(index_of(rows_.width));
    add_up(terms.subspan(middle), second, scratch_[depth].data(), depth + 1);
    add(scratch_[depth].data(), out);
  }

 private:
  // A row times its factor, rounded: another rank that is sent the row adds the same bits.
  const float* scaled(std::int32_t row) {
    const float* const values = rows_.at(row);
    if (rows_.factors == nullptr || row >= rows_.own_count) return values;
    scaled_.resize(index_of(rows_.width));
    for (std::int64_t c = 0; c < rows_.width; ++c) {
      scaled_[index_of(c)] = rows_.factors[row] * values[c];
    }
    return scaled_.data();
  }

  void add(const float* row, float* out) const {
    if (is_max_) {
      for (std::int64_t c = 0; c < rows_.width; ++c) {
        if (!(out[c] >= row[c]) && !std::isnan(out[c])) out[c] = row[c];
      }
      return;
    }
    for (std::int64_t c = 0; c < rows_.width; ++c) out[c] += row[c];
  }

  const RowSums::Rows& rows_;
  bool is_max_;
  std::vector<float> scaled_;
  std::vector<std::vector<float>> scratch_;
};

}  // namespace

void RowSums::add(PartTree::Node node, std::vector<Term> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.place < b.place; });
  nodes_.push_back(node);
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  offsets_.push_back(static_cast<std::int64_t>(terms_.size()));
}

void RowSums::shrink() {
  nodes_.shrink_to_fit();
  offsets_.shrink_to_fit();
  terms_.shrink_to_fit();
}

std::vector<char> RowSums::reads_from(std::int64_t row) const {
  std::vector<char> reads(nodes_.size(), 0);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    for (std::int64_t t = offsets_[i]; t < offsets_[i + 1]; ++t) {
      if (terms_[index_of(t)].row >= row) reads[i] = 1;
    }
  }
  return reads;
}

void RowSums::compute(const Rows& rows, float* out, std::int32_t threads) const {
  compute(rows, out, threads, Choice{});
}

void RowSums::compute(const Rows& rows, float* out, std::int32_t threads,
                      const Choice& choice) const {
  const std::int64_t last = choice.last < 0 ? size() : choice.last;
  const auto pieces = index_of((last - choice.first + kPiece - 1) / kPiece);
  run_pieces(pieces, thread_count(threads), [&](std::size_t piece) {
    Adder adder(rows, is_max_);
    const std::int64_t begin = choice.first + static_cast<std::int64_t>(piece) * kPiece;
    const std::int64_t end = std::min(last, begin + kPiece);
    for (std::int64_t i = begin; i < end; ++i) {
      if (choice.group != nullptr && choice.group[i] != choice.wanted) continue;
      adder.add_up(terms(i), nodes_[index_of(i)], out + (i - choice.first) * rows.width, 0);
    }
  });
}

}  // namespace npu::gnn
