// SPDX-License-Identifier: Apache-2.0
// Chooses a way to run each subgraph so that the most loaded resource is loaded least: the
// multiple-choice form of minimum makespan on unrelated machines, which is NP-hard.
//
// Bound: for weights w on the simplex, max_r load_r >= sum_r w_r load_r, and the right side is
// minimised item by item. Its maximum over w is the Lagrangian dual, equal to the LP relaxation; it
// is concave, so nested golden-section search finds it for up to three resources, exponentiated
// subgradients beyond. With R resources at most R items are fractional in the LP, so the gap
// shrinks as items get more. Choice: the dual's own, repaired by single and pair switches from
// several starts; then depth-first branch and bound, whose bounds take the largest value of a few
// weight vectors; where that does not close, a beam over load vectors. Candidates that another one
// beats in every resource are left out beforehand.
//
// O(items * candidates) for an evaluation of the dual, about 2,000 of them; searches stop after a
// given amount of work, never after a time, so that the result repeats.
#include "npu/plan/selection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace npu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The problem without dominated candidates, loads in one flat array.
class Table {
 public:
  explicit Table(const SelectionProblem& problem)
      : resources(static_cast<std::size_t>(problem.resource_count)) {
    begin.push_back(0);
    for (const auto& candidates : problem.items) {
      add_item(candidates);
      begin.push_back(original.size());
    }
  }

  std::size_t items() const { return begin.size() - 1; }
  const double* load(std::size_t candidate) const { return loads.data() + candidate * resources; }
  double latency(std::size_t candidate) const { return latencies[candidate]; }

  std::size_t resources;
  std::vector<std::size_t> begin;  // candidates of item i: begin[i] .. begin[i + 1]
  std::vector<double> loads;
  std::vector<double> latencies;
  std::vector<std::int32_t> original;  // index in the problem

 private:
  void add_item(const std::vector<LoadCandidate>& candidates) {
    std::vector<std::size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto total = [&](std::size_t c) {
      return std::accumulate(candidates[c].loads.begin(), candidates[c].loads.end(), 0.0);
    };
    std::vector<double> totals(candidates.size());
    for (std::size_t c = 0; c < candidates.size(); ++c) totals[c] = total(c);
    // Whoever dominates has the smaller total, or the same loads and the smaller latency.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return totals[a] != totals[b] ? totals[a] < totals[b]
                                    : candidates[a].latency_ms < candidates[b].latency_ms;
    });
    const std::size_t first = original.size();
    for (const std::size_t c : order) {
      bool dominated = false;
      for (std::size_t k = first; k < original.size() && !dominated; ++k) {
        dominated = true;
        for (std::size_t r = 0; r < resources && dominated; ++r) {
          dominated = loads[k * resources + r] <= candidates[c].loads[r];
        }
      }
      if (dominated) continue;
      original.push_back(static_cast<std::int32_t>(c));
      latencies.push_back(candidates[c].latency_ms);
      loads.insert(loads.end(), candidates[c].loads.begin(), candidates[c].loads.end());
    }
  }
};

double weighted(const Table& table, std::size_t candidate, const std::vector<double>& weights) {
  const double* load = table.load(candidate);
  double sum = 0;
  for (std::size_t r = 0; r < table.resources; ++r) sum += weights[r] * load[r];
  return sum;
}

std::size_t cheapest(const Table& table, std::size_t item, const std::vector<double>& weights) {
  std::size_t best = table.begin[item];
  double best_cost = kInfinity;
  for (std::size_t c = table.begin[item]; c < table.begin[item + 1]; ++c) {
    const double cost = weighted(table, c, weights);
    if (cost < best_cost) {
      best_cost = cost;
      best = c;
    }
  }
  return best;
}

double dual_value(const Table& table, const std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < table.items(); ++i) {
    sum += weighted(table, cheapest(table, i, weights), weights);
  }
  return sum;
}

// Maximises a concave function on [0, 1].
template <typename Function>
double golden_section(Function function, int steps, double& best_x) {
  constexpr double kRatio = 0.6180339887498949;
  double low = 0;
  double high = 1;
  double a = high - kRatio;
  double b = low + kRatio;
  double at_a = function(a);
  double at_b = function(b);
  double best = -kInfinity;
  const auto note = [&](double x, double value) {
    if (value > best) {
      best = value;
      best_x = x;
    }
  };
  note(a, at_a);
  note(b, at_b);
  for (int step = 0; step < steps; ++step) {
    if (at_a < at_b) {
      low = a;
      a = b;
      at_a = at_b;
      b = low + kRatio * (high - low);
      at_b = function(b);
      note(b, at_b);
    } else {
      high = b;
      b = a;
      at_b = at_a;
      a = high - kRatio * (high - low);
      at_a = function(a);
      note(a, at_a);
    }
  }
  // The maximum may lie at an end, which the section only approaches.
  for (const double end : {0.0, 1.0}) note(end, function(end));
  return best;
}

struct Dual {
  double value = -kInfinity;
  std::vector<double> weights;
};

Dual subgradient_dual(const Table& table) {
  const std::size_t resources = table.resources;
  Dual best;
  std::vector<double> weights(resources, 1.0 / static_cast<double>(resources));
  for (int step = 0; step < 3000; ++step) {
    std::vector<double> loads(resources, 0);
    double value = 0;
    for (std::size_t i = 0; i < table.items(); ++i) {
      const std::size_t c = cheapest(table, i, weights);
      for (std::size_t r = 0; r < resources; ++r) loads[r] += table.load(c)[r];
      value += weighted(table, c, weights);
    }
    if (value > best.value) best = {value, weights};
    const double largest = *std::max_element(loads.begin(), loads.end());
    if (!(largest > 0)) break;
    double sum = 0;
    const double rate = 2.0 / std::sqrt(1.0 + step);
    for (std::size_t r = 0; r < resources; ++r) {
      weights[r] *= std::exp(rate * (loads[r] - value) / largest);
      sum += weights[r];
    }
    for (double& weight : weights) weight /= sum;
  }
  return best;
}

Dual solve_dual(const Table& table) {
  Dual dual;
  if (table.resources == 1) {
    dual.weights = {1};
  } else if (table.resources == 2) {
    double x = 0;
    golden_section([&](double w) { return dual_value(table, {w, 1 - w}); }, 60, x);
    dual.weights = {x, 1 - x};
  } else if (table.resources == 3) {
    // Maximising over the split of 1 - w is concave in w again.
    constexpr int kSteps = 44;
    const auto inner = [&](double w, double& split) {
      return golden_section(
          [&](double s) {
            return dual_value(table, {w, (1 - w) * s, (1 - w) * (1 - s)});
          },
          kSteps, split);
    };
    double x = 0;
    double split = 0;
    golden_section([&](double w) { return inner(w, split); }, kSteps, x);
    inner(x, split);
    dual.weights = {x, (1 - x) * split, (1 - x) * (1 - split)};
  } else {
    return subgradient_dual(table);
  }
  dual.value = dual_value(table, dual.weights);
  return dual;
}

// A choice with its loads. Compared by the largest load, then by the sum of squares, which leads
// across plateaus.
class State {
 public:
  State(const Table& table, std::vector<std::size_t> choice)
      : table_(&table), choice_(std::move(choice)), loads_(table.resources, 0) {
    for (const std::size_t c : choice_) {
      for (std::size_t r = 0; r < table.resources; ++r) loads_[r] += table.load(c)[r];
    }
  }
  const std::vector<double>& loads() const { return loads_; }
  const std::vector<std::size_t>& choice() const { return choice_; }
  double max_load() const { return *std::max_element(loads_.begin(), loads_.end()); }

  struct Score {
    double largest = kInfinity;
    double squares = kInfinity;
    bool better_than(const Score& other, double tolerance) const {
      if (largest < other.largest - tolerance) return true;
      return largest <= other.largest + tolerance && squares < other.squares * (1 - 1e-9);
    }
  };
  Score score() const { return score_of(loads_.data()); }
  Score score_of(const double* loads) const {
    Score score{0, 0};
    for (std::size_t r = 0; r < table_->resources; ++r) {
      score.largest = std::max(score.largest, loads[r]);
      score.squares += loads[r] * loads[r];
    }
    return score;
  }
  void set(std::size_t item, std::size_t candidate) {
    for (std::size_t r = 0; r < table_->resources; ++r) {
      loads_[r] += table_->load(candidate)[r] - table_->load(choice_[item])[r];
    }
    choice_[item] = candidate;
  }
  // Sums anew: thousands of switches round.
  void refresh() { *this = State(*table_, choice_); }

 private:
  const Table* table_;
  std::vector<std::size_t> choice_;
  std::vector<double> loads_;
};

// Applies the best single switch until none helps. Returns the work done.
std::int64_t single_switches(const Table& table, State& state, std::int64_t budget) {
  std::int64_t work = 0;
  std::array<double, 16> loads{};
  while (work < budget) {
    const State::Score now = state.score();
    const double tolerance = now.largest * 1e-12;
    State::Score best = now;
    std::size_t best_item = 0;
    std::size_t best_candidate = 0;
    bool found = false;
    for (std::size_t i = 0; i < table.items(); ++i) {
      const double* old = table.load(state.choice()[i]);
      for (std::size_t c = table.begin[i]; c < table.begin[i + 1]; ++c) {
        if (c == state.choice()[i]) continue;
        for (std::size_t r = 0; r < table.resources; ++r) {
          loads[r] = state.loads()[r] - old[r] + table.load(c)[r];
        }
        const State::Score score = state.score_of(loads.data());
        if (score.better_than(best, tolerance)) {
          best = score;
          best_item = i;
          best_candidate = c;
          found = true;
        }
      }
      work += static_cast<std::int64_t>(table.begin[i + 1] - table.begin[i]);
    }
    if (!found) break;
    state.set(best_item, best_candidate);
  }
  return work;
}

// One pass over pairs of items, applying each pair of switches that helps at once.
std::int64_t pair_switches(const Table& table, State& state, std::int64_t budget, bool& improved) {
  std::int64_t work = 0;
  improved = false;
  std::array<double, 16> first{};
  std::array<double, 16> both{};
  for (std::size_t i = 0; i < table.items(); ++i) {
    for (std::size_t j = i + 1; j < table.items(); ++j) {
      if (work > budget) return work;
      const State::Score now = state.score();
      State::Score best = now;
      std::size_t best_a = 0;
      std::size_t best_b = 0;
      bool found = false;
      const double* old_i = table.load(state.choice()[i]);
      const double* old_j = table.load(state.choice()[j]);
      for (std::size_t a = table.begin[i]; a < table.begin[i + 1]; ++a) {
        bool hopeless = false;
        for (std::size_t r = 0; r < table.resources; ++r) {
          first[r] = state.loads()[r] - old_i[r] - old_j[r] + table.load(a)[r];
          hopeless = hopeless || first[r] >= now.largest;
        }
        ++work;
        if (hopeless) continue;
        for (std::size_t b = table.begin[j]; b < table.begin[j + 1]; ++b) {
          for (std::size_t r = 0; r < table.resources; ++r) both[r] = first[r] + table.load(b)[r];
          const State::Score score = state.score_of(both.data());
          if (score.better_than(best, now.largest * 1e-12)) {
            best = score;
            best_a = a;
            best_b = b;
            found = true;
          }
        }
        work += static_cast<std::int64_t>(table.begin[j + 1] - table.begin[j]);
      }
      if (found) {
        state.set(i, best_a);
        state.set(j, best_b);
        improved = true;
      }
    }
  }
  return work;
}

std::int64_t descend(const Table& table, State& state, std::int64_t budget) {
  std::int64_t work = single_switches(table, state, budget);
  bool improved = table.items() <= 200;
  while (improved && work < budget) {
    work += pair_switches(table, state, budget - work, improved);
    if (improved) work += single_switches(table, state, budget - work);
  }
  state.refresh();
  return work;
}

// A stream of numbers that depends on nothing but its seed.
class Stream {
 public:
  std::size_t below(std::size_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>((state_ >> 33) % bound);
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

State improve(const Table& table, const std::vector<std::vector<std::size_t>>& starts, double bound,
              std::int64_t budget) {
  State best(table, starts.front());
  std::int64_t work = 0;
  for (const auto& start : starts) {
    State state(table, start);
    work += descend(table, state, budget / 4 + 1);
    if (state.max_load() < best.max_load()) best = state;
  }
  // Iterated local search: a few switches at random, then downhill again.
  Stream stream;
  const std::size_t kicks = std::min<std::size_t>(table.items(), 4);
  for (int round = 0; round < 400 && work < budget && best.max_load() > bound * (1 + 1e-5);
       ++round) {
    State state = best;
    for (std::size_t k = 0; k < kicks; ++k) {
      const std::size_t i = stream.below(table.items());
      state.set(i, table.begin[i] + stream.below(table.begin[i + 1] - table.begin[i]));
    }
    work += descend(table, state, budget - work) + 1;
    if (state.max_load() < best.max_load()) best = state;
  }
  return best;
}

// Dynamic programming over load vectors, thinned out: items largest first, and of the partial sums
// that fall into one cell of a grid only the one with the best bound goes on. Cells grow until what
// is left fits. Partial sums are exact, so whatever comes out is a choice; the grid only decides
// which ones are looked at.
class Beam {
 public:
  Beam(const Table& table, const Dual& dual, std::size_t width)
      : table_(table), dual_(dual), width_(width) {}

  State run(const State& incumbent) {
    const std::size_t resources = table_.resources;
    std::vector<std::size_t> order(table_.items());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> least;
    for (const std::size_t i : order) {
      least.push_back(weighted(table_, cheapest(table_, i, dual_.weights), dual_.weights));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return least[a] > least[b]; });
    const double limit = incumbent.max_load();
    const double budget = limit - dual_.value;  // of reduced cost
    std::vector<Node> nodes{{0, 0, 0}};
    std::vector<double> loads(resources, 0);
    std::vector<std::vector<Node>> history;
    double cell = std::max(budget, limit * 1e-6) / 4;
    for (const std::size_t item : order) {
      std::vector<Node> next;
      std::vector<double> next_loads;
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (std::size_t c = table_.begin[item]; c < table_.begin[item + 1]; ++c) {
          const double excess = nodes[n].excess + weighted(table_, c, dual_.weights) - least[item];
          if (excess > budget) continue;
          bool fits = true;
          for (std::size_t r = 0; r < resources; ++r) {
            fits = fits && loads[n * resources + r] + table_.load(c)[r] < limit;
          }
          if (!fits) continue;
          for (std::size_t r = 0; r < resources; ++r) {
            next_loads.push_back(loads[n * resources + r] + table_.load(c)[r]);
          }
          next.push_back({excess, n, c});
        }
      }
      if (next.empty()) return incumbent;
      thin(next, next_loads, cell);
      history.push_back(next);
      nodes = std::move(next);
      loads = std::move(next_loads);
    }
    std::size_t best = 0;
    double best_load = kInfinity;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      double largest = 0;
      for (std::size_t r = 0; r < resources; ++r) {
        largest = std::max(largest, loads[n * resources + r]);
      }
      if (largest < best_load) {
        best_load = largest;
        best = n;
      }
    }
    std::vector<std::size_t> choice(table_.items());
    for (std::size_t d = order.size(); d-- > 0;) {
      choice[order[d]] = history[d][best].candidate;
      best = history[d][best].parent;
    }
    State state(table_, std::move(choice));
    return state.max_load() < incumbent.max_load() ? state : incumbent;
  }

 private:
  struct Node {
    double excess;  // reduced cost so far
    std::size_t parent;
    std::size_t candidate;
  };

  void thin(std::vector<Node>& nodes, std::vector<double>& loads, double& cell) const {
    const std::size_t resources = table_.resources;
    while (nodes.size() > width_) {
      struct Cell {
        std::uint64_t key;
        std::size_t node;
      };
      std::vector<Cell> cells;
      cells.reserve(nodes.size());
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        // The weighted sum is nearly the same for all, so the last load follows from the others.
        std::uint64_t key = 0;
        for (std::size_t r = 0; r + 1 < std::max<std::size_t>(resources, 2); ++r) {
          key = key * 0x100000001b3 + static_cast<std::uint64_t>(loads[n * resources + r] / cell);
        }
        cells.push_back({key, n});
      }
      std::sort(cells.begin(), cells.end(), [&](const Cell& a, const Cell& b) {
        return std::tuple(a.key, nodes[a.node].excess, a.node) <
               std::tuple(b.key, nodes[b.node].excess, b.node);
      });
      std::vector<std::size_t> kept;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i == 0 || cells[i].key != cells[i - 1].key) kept.push_back(cells[i].node);
      }
      std::sort(kept.begin(), kept.end());
      for (std::size_t i = 0; i < kept.size(); ++i) {
        nodes[i] = nodes[kept[i]];
        std::copy_n(loads.begin() + static_cast<std::ptrdiff_t>(kept[i] * resources), resources,
                    loads.begin() + static_cast<std::ptrdiff_t>(i * resources));
      }
      nodes.resize(kept.size());
      loads.resize(kept.size() * resources);
      if (nodes.size() > width_) {
        cell *= std::max(
            1.3, std::sqrt(static_cast<double>(nodes.size()) / static_cast<double>(width_)));
      }
    }
  }

  const Table& table_;
  const Dual& dual_;
  std::size_t width_;
};

// Depth-first branch and bound.
class Search {
 public:
  Search(const Table& table, const Dual& dual, State& incumbent, std::int64_t budget)
      : table_(table), best_(incumbent), budget_(budget) {
    make_weights(dual);
    order_items(dual);
    choice_.assign(table.items(), 0);
    loads_.assign(table.items() + 1, std::vector<double>(table.resources, 0));
  }

  // Looks for choices that are better than the incumbent by more than `tolerance` (relative).
  // Returns a bound that the search proves.
  double run(double tolerance) {
    tolerance_ = tolerance;
    least_open_ = kInfinity;
    stopped_ = false;
    const std::int64_t before = work_;
    limit_ = before + budget_;
    visit(0);
    // What was cut off at a bound of at least best / (1 + tolerance) is no better than that.
    const double proven = best_.max_load() / (1 + tolerance_);
    return std::min({proven, least_open_, best_.max_load()});
  }
  bool stopped() const { return stopped_; }
  std::int64_t work() const { return work_; }

 private:
  void make_weights(const Dual& dual) {
    const std::size_t resources = table_.resources;
    weights_.push_back(dual.weights);
    for (std::size_t r = 0; r < resources; ++r) {
      std::vector<double> corner(resources, 0);
      corner[r] = 1;
      weights_.push_back(corner);
      for (const double step : {0.01, 0.04, 0.15}) {
        std::vector<double> towards = dual.weights;
        for (double& w : towards) w *= 1 - step;
        towards[r] += step;
        weights_.push_back(towards);
      }
    }
  }

  void order_items(const Dual& dual) {
    order_.resize(table_.items());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::vector<double> sizes;
    for (const std::size_t i : order_) {
      sizes.push_back(weighted(table_, cheapest(table_, i, dual.weights), dual.weights));
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
    rest_.assign(weights_.size(), std::vector<double>(table_.items() + 1, 0));
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      for (std::size_t d = table_.items(); d-- > 0;) {
        rest_[w][d] = rest_[w][d + 1] +
                      weighted(table_, cheapest(table_, order_[d], weights_[w]), weights_[w]);
      }
    }
  }

  double bound(const double* loads, std::size_t depth) const {
    double best = 0;
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      double value = rest_[w][depth];
      for (std::size_t r = 0; r < table_.resources; ++r) value += weights_[w][r] * loads[r];
      best = std::max(best, value);
    }
    return best;
  }

  void visit(std::size_t depth) {
    if (depth == table_.items()) {
      State state(table_, choice_);
      if (state.max_load() < best_.max_load()) best_ = state;
      return;
    }
    const std::size_t item = order_[depth];
    struct Child {
      double bound;
      std::size_t candidate;
    };
    std::vector<Child> children;
    std::vector<double> loads(table_.resources);
    const double cutoff = best_.max_load() / (1 + tolerance_);
    for (std::size_t c = table_.begin[item]; c < table_.begin[item + 1]; ++c) {
      for (std::size_t r = 0; r < table_.resources; ++r) {
        loads[r] = loads_[depth][r] + table_.load(c)[r];
      }
      const double value = bound(loads.data(), depth + 1);
      if (value < cutoff) children.push_back({value, c});
    }
    work_ += static_cast<std::int64_t>(table_.begin[item + 1] - table_.begin[item]);
    std::stable_sort(children.begin(), children.end(),
                     [](const Child& a, const Child& b) { return a.bound < b.bound; });
    for (const Child& child : children) {
      if (work_ > limit_) {
        stopped_ = true;
        least_open_ = std::min(least_open_, child.bound);
        return;  // the children ascend
      }
      if (child.bound >= best_.max_load() / (1 + tolerance_)) break;
      choice_[item] = child.candidate;
      for (std::size_t r = 0; r < table_.resources; ++r) {
        loads_[depth + 1][r] = loads_[depth][r] + table_.load(child.candidate)[r];
      }
      visit(depth + 1);
    }
  }

  const Table& table_;
  State& best_;
  std::int64_t budget_;
  std::int64_t limit_ = 0;
  std::int64_t work_ = 0;
  double tolerance_ = 0;
  double least_open_ = kInfinity;
  bool stopped_ = false;
  std::vector<std::vector<double>> weights_;
  std::vector<std::vector<double>> rest_;  // by weights and depth: the items from there on
  std::vector<std::size_t> order_;
  std::vector<std::size_t> choice_;
  std::vector<std::vector<double>> loads_;  // by depth
};

// Single switches of a choice that keep its largest load, towards smaller latency.
void shorten(const Table& table, State& state) {
  const double limit = state.max_load() * (1 + 1e-12);
  for (std::size_t i = 0; i < table.items(); ++i) {
    for (std::size_t c = table.begin[i]; c < table.begin[i + 1]; ++c) {
      const std::size_t old = state.choice()[i];
      if (table.latency(c) >= table.latency(old)) continue;
      state.set(i, c);
      if (state.max_load() > limit) state.set(i, old);
    }
  }
  state.refresh();
}

Selection finished(const Table& table, const State& state, const Dual& dual, double bound) {
  Selection selection;
  for (const std::size_t c : state.choice()) selection.choice.push_back(table.original[c]);
  selection.loads = state.loads();
  selection.max_load = state.max_load();
  selection.dual_bound = std::min(dual.value, selection.max_load);
  selection.bound = std::min(std::max(bound, dual.value), selection.max_load);
  selection.multipliers = dual.weights;
  return selection;
}

std::vector<std::size_t> fastest_each(const Table& table) {
  std::vector<std::size_t> choice;
  for (std::size_t i = 0; i < table.items(); ++i) {
    std::size_t best = table.begin[i];
    for (std::size_t c = best; c < table.begin[i + 1]; ++c) {
      if (table.latency(c) < table.latency(best)) best = c;
    }
    choice.push_back(best);
  }
  return choice;
}

}  // namespace

double lagrangian_bound(const SelectionProblem& problem, const std::vector<double>& multipliers) {
  double sum = 0;
  for (const auto& candidates : problem.items) {
    double least = kInfinity;
    for (const LoadCandidate& candidate : candidates) {
      double cost = 0;
      for (std::size_t r = 0; r < candidate.loads.size(); ++r) {
        cost += multipliers[r] * candidate.loads[r];
      }
      least = std::min(least, cost);
    }
    sum += least;
  }
  return sum;
}

Selection select_greedy(const SelectionProblem& problem) {
  const Table table(problem);
  if (table.items() == 0) {
    Selection empty;
    empty.loads.assign(table.resources, 0);
    empty.multipliers.assign(table.resources, 1.0 / static_cast<double>(table.resources));
    return empty;
  }
  State state(table, fastest_each(table));
  single_switches(table, state, std::numeric_limits<std::int64_t>::max());
  state.refresh();
  const Dual dual = solve_dual(table);
  return finished(table, state, dual, dual.value);
}

Selection select_optimal(const SelectionProblem& problem, const SelectionLimits& limits) {
  const Table table(problem);
  if (table.items() == 0) return select_greedy(problem);
  const Dual dual = solve_dual(table);
  std::vector<std::vector<std::size_t>> starts;
  std::vector<std::size_t> relaxed;
  for (std::size_t i = 0; i < table.items(); ++i) {
    relaxed.push_back(cheapest(table, i, dual.weights));
  }
  starts.push_back(std::move(relaxed));
  starts.push_back(fastest_each(table));
  State best = improve(table, starts, dual.value, limits.local_work);
  double bound = dual.value;
  bool search_finished = false;
  std::int64_t work = 0;
  if (static_cast<std::int64_t>(table.items()) <= limits.largest_search) {
    // First within a tolerance, which closes most trees; then, if that closed, exactly.
    for (const double tolerance : {5e-4, 0.0}) {
      if (best.max_load() <= bound) {
        search_finished = true;
        break;
      }
      Search search(table, dual, best, limits.search_work / 2);
      bound = std::max(bound, search.run(tolerance));
      work += search.work();
      search_finished = !search.stopped() && tolerance == 0;
      if (search.stopped()) break;
    }
    // Trees that do not close: a beam finds better choices than descent does. Twice, since a better
    // choice leaves less reduced cost to spend, so that the grid gets finer.
    for (int round = 0; round < 2 && best.max_load() > bound * (1 + 1e-3); ++round) {
      const double before = best.max_load();
      best = Beam(table, dual, limits.beam_width).run(best);
      if (best.max_load() >= before) break;
    }
  }
  shorten(table, best);
  Selection selection = finished(table, best, dual, bound);
  selection.search_work = work;
  selection.search_finished = search_finished;
  return selection;
}

}  // namespace npu
