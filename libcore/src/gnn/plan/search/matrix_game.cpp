// SPDX-License-Identifier: Apache-2.0
// Matrix games with few rows by the primal simplex method: maximise the sum of x subject to
// (columns * x) <= 1 and x >= 0. Scaled to sum 1, x is the answer and the dual prices are the
// weights. The basis has one entry per row and stays feasible when columns are added, since these
// start outside it. O(rows * columns + rows^2) per pivot.
#include "gnn/plan/search/matrix_game.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace npu::gnn {
namespace {

constexpr std::size_t kSlack = static_cast<std::size_t>(-1);

}  // namespace

MatrixGame::MatrixGame(std::size_t rows)
    : rows_(rows),
      basis_(rows, kSlack),
      right_(rows, 1),
      inverse_(rows * rows, 0),
      prices_(rows, 0),
      direction_(rows, 0) {
  for (std::size_t r = 0; r < rows; ++r) inverse_[r * rows + r] = 1;
}

void MatrixGame::add(const std::vector<double>& column) {
  columns_.insert(columns_.end(), column.begin(), column.end());
  // Far more than bases this small take; a game short of its optimum still has weights.
  for (int pivot = 0; pivot < 1000; ++pivot) {
    if (!improve()) break;
  }
}

double MatrixGame::value() const {
  const double sum = std::accumulate(prices_.begin(), prices_.end(), 0.0);
  return sum > 0 ? 1 / sum : std::numeric_limits<double>::infinity();
}

std::vector<double> MatrixGame::weights() const {
  std::vector<double> weights(rows_);
  double sum = 0;
  for (std::size_t r = 0; r < rows_; ++r) sum += weights[r] = std::max(0.0, prices_[r]);
  for (double& weight : weights) {
    weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(rows_);
  }
  return weights;
}

std::vector<std::pair<std::size_t, double>> MatrixGame::answer() const {
  std::vector<std::pair<std::size_t, double>> answer;
  double sum = 0;
  for (std::size_t b = 0; b < rows_; ++b) {
    if (basis_[b] == kSlack || right_[b] <= 0) continue;
    answer.emplace_back(basis_[b], right_[b]);
    sum += right_[b];
  }
  for (auto& [column, share] : answer) share /= sum;
  return answer;
}

void MatrixGame::update_prices() {
  std::fill(prices_.begin(), prices_.end(), 0);
  for (std::size_t b = 0; b < rows_; ++b) {
    if (basis_[b] == kSlack) continue;
    for (std::size_t r = 0; r < rows_; ++r) prices_[r] += inverse_[b * rows_ + r];
  }
}

bool MatrixGame::improve() {
  constexpr double kTolerance = 1e-12;
  // A column enters that gains most, or the slack of a row whose price is negative.
  double best = kTolerance;
  std::size_t entering = kSlack;
  std::size_t slack_row = kSlack;
  const std::size_t count = columns_.size() / rows_;
  for (std::size_t c = 0; c < count; ++c) {
    double gain = 1;
    for (std::size_t r = 0; r < rows_; ++r) gain -= prices_[r] * columns_[c * rows_ + r];
    if (gain > best) {
      best = gain;
      entering = c;
    }
  }
  for (std::size_t r = 0; r < rows_; ++r) {
    if (-prices_[r] > best) {
      best = -prices_[r];
      entering = kSlack;
      slack_row = r;
    }
  }
  if (entering == kSlack && slack_row == kSlack) return false;
  std::size_t leaving = rows_;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t b = 0; b < rows_; ++b) {
    direction_[b] = 0;
    for (std::size_t r = 0; r < rows_; ++r) {
      const double entry =
          entering != kSlack ? columns_[entering * rows_ + r] : static_cast<double>(r == slack_row);
      direction_[b] += inverse_[b * rows_ + r] * entry;
    }
    if (direction_[b] <= kTolerance) continue;
    const double ratio = right_[b] / direction_[b];
    if (ratio < least) {
      least = ratio;
      leaving = b;
    }
  }
  if (leaving == rows_) return false;
  for (std::size_t r = 0; r < rows_; ++r) inverse_[leaving * rows_ + r] /= direction_[leaving];
  right_[leaving] /= direction_[leaving];
  for (std::size_t b = 0; b < rows_; ++b) {
    if (b == leaving) continue;
    for (std::size_t r = 0; r < rows_; ++r) {
      inverse_[b * rows_ + r] -= direction_[b] * inverse_[leaving * rows_ + r];
    }
    right_[b] = std::max(0.0, right_[b] - direction_[b] * right_[leaving]);
  }
  basis_[leaving] = entering;
  update_prices();
  return true;
}

}  // namespace npu::gnn
