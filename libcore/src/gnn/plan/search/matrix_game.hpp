// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace npu::gnn {

/// The matrix game "weights of the rows against one of the columns": weights, at least 0 and with
/// sum 1, whose weighted sum of a column is large whichever column it is. Columns have positive
/// entries and are added one by one; the solution of the columns so far is kept.
class MatrixGame {
 public:
  explicit MatrixGame(std::size_t rows);

  void add(const std::vector<double>& column);

  /// What the best weights guarantee against the columns so far.
  double value() const;
  /// The best weights.
  std::vector<double> weights() const;
  /// The best answer: columns, in the order they were added, with shares that sum to 1.
  std::vector<std::pair<std::size_t, double>> answer() const;

 private:
  bool improve();
  void update_prices();

  std::size_t rows_;
  std::vector<double> columns_;     // one after the other
  std::vector<std::size_t> basis_;  // by row of the basis: a column, or a slack
  std::vector<double> right_;       // by row of the basis
  std::vector<double> inverse_;     // of the basis matrix
  std::vector<double> prices_;      // by row
  std::vector<double> direction_;
};

}  // namespace npu::gnn
