// SPDX-License-Identifier: Apache-2.0
// Finds the choice whose largest load is smallest, and proves it, for a few dozen items.
//
// A probe asks whether some choice keeps every load below a target, by depth-first branch and
// bound. A node leaves each item some of its candidates; its bound is the Lagrangian one, maximised
// by cutting planes from the weights of its parent. Every weight vector that is tried also removes
// candidates: those with any of which the bound would reach the target. A node branches on the item
// that the relaxation splits most, into the candidates that load one resource less than the split
// does and those that load it more: lists have many candidates that differ little, and halves of
// them differ where single ones do not.
//
// The target is found by bisection between the bound and the incumbent: a probe without an answer
// raises the one, an answer lowers the other. The last probe starts at the incumbent and ends with
// the optimum. Work is counted in candidates looked at, and limited; what was proven before the
// limit holds. No clock is read, so the result is reproducible.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gnn/plan/search/matrix_game.hpp"
#include "gnn/plan/search/selection_table.hpp"

namespace npu::gnn {
namespace {

class Prober {
 public:
  Prober(const SelectionTable& table, const SelectionDual& dual, SelectionState& best)
      : table_(table), best_(best), costs_(table.original.size()) {
    root_.weights = dual.weights;
    root_.begin = table.begin;
    root_.candidates.resize(table.original.size());
    std::iota(root_.candidates.begin(), root_.candidates.end(), std::size_t{0});
  }

  enum class Outcome { kNone, kFound, kGivenUp };

  /// Looks for choices whose largest load is below `target`: the first one, or the best one. Better
  /// ones than the incumbent replace it. kNone: no choice is below limit().
  Outcome probe(double target, bool first_only, std::int64_t budget) {
    limit_ = target;
    first_only_ = first_only;
    stop_ = false;
    found_ = false;
    given_up_ = false;
    stop_at_ = work_ + budget;
    visit(root_);
    if (given_up_) return Outcome::kGivenUp;
    return found_ && first_only ? Outcome::kFound : Outcome::kNone;
  }
  double limit() const { return limit_; }
  std::int64_t work() const { return work_; }

 private:
  struct Node {
    std::vector<std::size_t> candidates;  // of one item after the other
    std::vector<std::size_t> begin;       // of item i: begin[i] .. begin[i + 1]
    std::vector<double> weights;
  };
  // Candidates of an item with at most, or more than, a load of one resource.
  struct Split {
    std::size_t item = 0;
    std::size_t resource = 0;
    double load = 0;
    bool less_first = true;
  };

  void visit(Node node) {
    Split split;
    if (stop_ || !bound(node, split)) return;
    Node other = node;
    keep(node, split, split.less_first);
    keep(other, split, !split.less_first);
    visit(std::move(node));
    visit(std::move(other));
  }

  // Keeps one side of the split.
  void keep(Node& node, const Split& split, bool less) const {
    const auto begin = node.candidates.begin();
    const auto first = begin + static_cast<std::ptrdiff_t>(node.begin[split.item]);
    const auto last = begin + static_cast<std::ptrdiff_t>(node.begin[split.item + 1]);
    const auto kept = std::remove_if(first, last, [&](std::size_t c) {
      return (table_.load(c)[split.resource] <= split.load) != less;
    });
    const auto gone = static_cast<std::size_t>(last - kept);
    node.candidates.erase(kept, last);
    for (std::size_t i = split.item + 1; i < node.begin.size(); ++i) node.begin[i] -= gone;
  }

  // Strikes out candidates. False if nothing below the target is left; else how to go on.
  bool bound(Node& node, Split& split) {
    constexpr int kRounds = 25;
    // What a round costs beside the candidates.
    constexpr std::int64_t kRoundWork = 200;
    constexpr std::int64_t kItemWork = 10;
    const std::size_t items = table_.items();
    const std::size_t resources = table_.resources;
    MatrixGame game(resources);
    choices_.clear();
    std::vector<double> weights = node.weights;
    std::vector<double> loads(resources);
    double best = -std::numeric_limits<double>::infinity();
    for (int round = 0; round < kRounds; ++round) {
      const double value = evaluate(node, weights, loads);
      work_ += static_cast<std::int64_t>(node.candidates.size()) + kRoundWork +
               kItemWork * static_cast<std::int64_t>(items);
      if (value >= limit_) return false;
      strike_out(node, limit_ - value);
      if (*std::max_element(loads.begin(), loads.end()) < limit_) take();
      if (work_ > stop_at_) stop_ = given_up_ = true;
      if (stop_) return false;
      if (value > best) {
        best = value;
        node.weights = weights;
      }
      // Positive entries, as the game wants them.
      for (double& load : loads) load = load / limit_ + 1;
      game.add(loads);
      if (round >= 2 && game.value() - 1 <= best / limit_ + 1e-7) break;
      weights = game.weights();
    }
    return choose_split(node, game, split);
  }

  // The weighted load of the cheapest candidates, and their loads. Notes them in choices_, and what
  // each candidate costs above the cheapest in costs_.
  double evaluate(const Node& node, const std::vector<double>& weights,
                  std::vector<double>& loads) {
    std::fill(loads.begin(), loads.end(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < table_.items(); ++i) {
      double least = std::numeric_limits<double>::infinity();
      std::size_t cheapest = 0;
      for (std::size_t k = node.begin[i]; k < node.begin[i + 1]; ++k) {
        const double cost = costs_[k] = table_.weighted(node.candidates[k], weights);
        if (cost < least) {
          least = cost;
          cheapest = node.candidates[k];
        }
      }
      for (std::size_t k = node.begin[i]; k < node.begin[i + 1]; ++k) costs_[k] -= least;
      sum += least;
      choices_.push_back(cheapest);
      for (std::size_t r = 0; r < loads.size(); ++r) loads[r] += table_.load(cheapest)[r];
    }
    return sum;
  }

  void strike_out(Node& node, double allowance) const {
    std::size_t kept = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < table_.items(); ++i) {
      const std::size_t last = node.begin[i + 1];
      node.begin[i] = kept;
      for (std::size_t k = first; k < last; ++k) {
        if (costs_[k] < allowance) node.candidates[kept++] = node.candidates[k];
      }
      first = last;
    }
    node.begin[table_.items()] = kept;
    node.candidates.resize(kept);
  }

  // False if a single choice is left, which is then known to miss the target.
  bool choose_split(const Node& node, const MatrixGame& game, Split& split) const {
    const std::size_t items = table_.items();
    const auto answer = game.answer();
    double best = -1;
    for (std::size_t i = 0; i < items; ++i) {
      if (node.begin[i + 1] - node.begin[i] < 2) continue;
      for (std::size_t r = 0; r < table_.resources; ++r) {
        double mean = 0;
        for (const auto& [column, share] : answer) {
          mean += share * table_.load(choices_[column * items + i])[r];
        }
        double spread = 0;
        double share_below = 0;
        for (const auto& [column, share] : answer) {
          const double load = table_.load(choices_[column * items + i])[r];
          spread += share * std::abs(load - mean);
          if (load <= mean) share_below += share;
        }
        double least = std::numeric_limits<double>::infinity();
        double most = 0;
        for (std::size_t k = node.begin[i]; k < node.begin[i + 1]; ++k) {
          least = std::min(least, table_.load(node.candidates[k])[r]);
          most = std::max(most, table_.load(node.candidates[k])[r]);
        }
        if (!(most > least)) continue;
        // What the relaxation splits; else what differs most.
        const double score = node.weights[r] * spread + 1e-6 * (most - least);
        if (!(score > best)) continue;
        best = score;
        // Candidates of the answer may have been struck out since: both sides keep some.
        double load = mean >= least && mean < most ? mean : least + (most - least) / 2;
        if (!(load < most)) load = least;
        split = {i, r, load, share_below >= 0.5};
      }
    }
    return best >= 0;
  }

  // The choice that was noted last.
  void take() {
    SelectionState state(
        table_, {choices_.end() - static_cast<std::ptrdiff_t>(table_.items()), choices_.end()});
    found_ = true;
    limit_ = std::min(limit_, state.max_load());
    if (state.max_load() < best_.max_load()) best_ = std::move(state);
    if (first_only_) stop_ = true;
  }

  const SelectionTable& table_;
  SelectionState& best_;
  Node root_;
  std::vector<double> costs_;         // by place in the list of the node: above the least
  std::vector<std::size_t> choices_;  // of the rounds of a node, one after the other
  double limit_ = 0;
  bool first_only_ = false;
  bool stop_ = false;
  bool found_ = false;
  bool given_up_ = false;
  std::int64_t work_ = 0;
  std::int64_t stop_at_ = 0;
};

}  // namespace

SelectionProof search_exhaustively(const SelectionTable& table, const SelectionDual& dual,
                                   SelectionState& best, std::int64_t budget) {
  constexpr double kClose = 1e-4;  // relative; from there on the incumbent is the target
  SelectionProof proof;
  proof.bound = dual.value;
  Prober prober(table, dual, best);
  // Between the bound and this, probes are tried; above it one took too long.
  double top = best.max_load();
  while (best.max_load() > proof.bound * (1 + 1e-12) && prober.work() < budget) {
    const std::int64_t left = budget - prober.work();
    top = std::min(top, best.max_load());
    const bool last = best.max_load() <= proof.bound * (1 + kClose);
    if (!last && top <= proof.bound * (1 + kClose / 10)) break;
    const double target = last ? best.max_load() : proof.bound + (top - proof.bound) / 2;
    const auto outcome = prober.probe(target, !last, last ? left / 2 + 1 : left / 4 + 1);
    if (outcome == Prober::Outcome::kNone) proof.bound = std::max(proof.bound, prober.limit());
    if (outcome == Prober::Outcome::kGivenUp && last) break;
    if (outcome == Prober::Outcome::kGivenUp) top = target;
  }
  proof.finished = best.max_load() <= proof.bound * (1 + 1e-12);
  proof.work = prober.work();
  return proof;
}

}  // namespace npu::gnn
