// SPDX-License-Identifier: Apache-2.0
// Local search for a short schedule: threshold accepting (Dueck and Scheuer, 1990) over the order
// of priority and the option of each item, with simulate()'s rules.
//
// The objective is the end of the last resource plus a fraction of the mean end of all of them,
// which tells schedules of the same length apart. One simulation takes O(tasks * resources), and
// each start looks at a word of 64 waiting items; the number of simulations follows from the work
// allowed. Random numbers depend only on the size of the problem.
#include "gnn/plan/search/schedule_search.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "gnn/plan/search/random_stream.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr std::size_t kMaxItems = 4096;          // 64 words of 64
constexpr std::size_t kMaxExhaustiveItems = 64;  // go through all changes of one item
constexpr std::size_t kLikelyOptions = 48;
constexpr double kNearEnough = 1e-4;  // of the bound
constexpr double kMeanWeight = 0.3;

// Positions that wait, smallest first: words of 64 and one word that says which are not empty.
class Waiting {
 public:
  bool empty() const { return summary_ == 0; }
  void insert(std::size_t position) {
    words_[position / 64] |= std::uint64_t{1} << (position % 64);
    summary_ |= std::uint64_t{1} << (position / 64);
  }
  std::size_t take_first() {
    const auto word = static_cast<std::size_t>(std::countr_zero(summary_));
    const auto bit = static_cast<std::size_t>(std::countr_zero(words_[word]));
    words_[word] &= words_[word] - 1;
    if (words_[word] == 0) summary_ &= summary_ - 1;
    return word * 64 + bit;
  }

 private:
  std::array<std::uint64_t, 64> words_{};
  std::uint64_t summary_ = 0;
};

// simulate() for one schedule after the other, on flat arrays.
class Simulator {
 public:
  explicit Simulator(const ScheduleProblem& problem)
      : resource_of_(problem.resource_of), switch_ms_(problem.switch_ms) {
    switch_ms_.resize(resource_of_.size(), 0);
    for (const auto& list : problem.options) {
      first_option_.push_back(options_.size());
      for (const SimItem& item : list) {
        options_.push_back({segments_.size(), item.cluster});
        for (const auto& segment : item.segments) {
          segments_.push_back({tasks_.size(), segment.size()});
          for (const SimItem::Share& share : segment) tasks_.push_back({share.device, share.ms});
        }
        segments_.push_back({tasks_.size(), 0});  // the end
      }
    }
    devices_.resize(resource_of_.size());
    for (const std::int32_t resource : resource_of_) {
      resources_.resize(std::max(resources_.size(), index_of(resource) + 1));
    }
    for (std::size_t d = 0; d < resource_of_.size(); ++d) {
      resources_[index_of(resource_of_[d])].devices.push_back(d);
    }
    progress_.resize(problem.options.size());
  }

  struct Result {
    double makespan = 0;
    double mean = 0;  // of the ends of the resources
    double value() const { return makespan + kMeanWeight * mean; }
  };

  Result run(const std::vector<std::int32_t>& order, const std::vector<std::int32_t>& choice) {
    for (Resource& resource : resources_) resource.busy = false, resource.end = 0;
    for (Device& device : devices_) device.cluster = -1;
    for (std::size_t p = 0; p < order.size(); ++p) {
      const std::size_t option =
          first_option_[index_of(order[p])] + index_of(choice[index_of(order[p])]);
      progress_[p] = {options_[option].first_segment, 0, options_[option].cluster};
      release(p);
    }
    double now = 0;
    while (true) {
      double next = std::numeric_limits<double>::infinity();
      for (Resource& resource : resources_) {
        if (!resource.busy) start(resource, now);
        if (resource.busy) next = std::min(next, resource.end);
      }
      if (next == std::numeric_limits<double>::infinity()) break;
      now = next;
      for (Resource& resource : resources_) {
        if (!resource.busy || resource.end > now) continue;
        resource.busy = false;
        Progress& progress = progress_[resource.position];
        if (--progress.open == 0) {
          ++progress.segment;
          release(resource.position);
        }
      }
    }
    Result result;
    for (const Resource& resource : resources_) {
      result.makespan = std::max(result.makespan, resource.end);
      result.mean += resource.end / static_cast<double>(resources_.size());
    }
    return result;
  }

  std::int64_t simulated() const { return simulated_; }

 private:
  struct Task {
    std::int32_t device;
    double ms;
  };
  struct Segment {
    std::size_t first_task;
    std::size_t count;
  };
  struct Option {
    std::size_t first_segment;
    std::int32_t cluster;
  };
  struct Progress {
    std::size_t segment = 0;
    std::size_t open = 0;
    std::int32_t cluster = 0;
  };
  struct Device {
    Waiting waiting;
    std::int32_t cluster = -1;
  };
  struct Resource {
    std::vector<std::size_t> devices;
    bool busy = false;
    double end = 0;
    std::size_t position = 0;
  };

  void release(std::size_t position) {
    Progress& progress = progress_[position];
    const Segment& segment = segments_[progress.segment];
    progress.open = segment.count;
    for (std::size_t t = 0; t < segment.count; ++t) {
      devices_[index_of(tasks_[segment.first_task + t].device)].waiting.insert(position);
    }
  }

  void start(Resource& resource, double now) {
    for (const std::size_t d : resource.devices) {
      Device& device = devices_[d];
      if (device.waiting.empty()) continue;
      const std::size_t position = device.waiting.take_first();
      const Progress& progress = progress_[position];
      const Segment& segment = segments_[progress.segment];
      const Task* task = &tasks_[segment.first_task];
      while (index_of(task->device) != d) ++task;
      double length = task->ms;
      if (device.cluster != progress.cluster) {
        if (device.cluster >= 0) length += switch_ms_[d];
        device.cluster = progress.cluster;
      }
      resource.busy = true;
      resource.position = position;
      resource.end = now + length;
      ++simulated_;
      return;
    }
  }

  std::vector<std::int32_t> resource_of_;
  std::vector<double> switch_ms_;  // by device
  std::vector<std::size_t> first_option_;
  std::vector<Option> options_;
  std::vector<Segment> segments_;
  std::vector<Task> tasks_;
  std::vector<Device> devices_;
  std::vector<Resource> resources_;
  std::vector<Progress> progress_;  // by position
  std::int64_t simulated_ = 0;
};

double length_of(const SimItem& item) {
  double ms = 0;
  for (const auto& segment : item.segments) {
    double longest = 0;
    for (const SimItem::Share& share : segment) longest = std::max(longest, share.ms);
    ms += longest;
  }
  return ms;
}

// Moves one item to another place.
void relocate(std::vector<std::int32_t>& order, std::size_t from, std::size_t to) {
  const auto begin = order.begin();
  const auto f = static_cast<std::ptrdiff_t>(from);
  const auto t = static_cast<std::ptrdiff_t>(to);
  if (from < to) {
    std::rotate(begin + f, begin + f + 1, begin + t + 1);
  } else {
    std::rotate(begin + t, begin + f, begin + f + 1);
  }
}

// One change that can be taken back.
class Move {
 public:
  Move(const ScheduleProblem& problem, bool may_change, Schedule& schedule, RandomStream& stream)
      : schedule_(schedule), stream_(stream), problem_(problem) {
    const std::size_t items = schedule.order.size();
    const std::size_t kind = may_change ? stream.below(8) : 4 + stream.below(4);
    if (kind < 4) {
      change_option(0);
      if (kind == 3) change_option(1);
    }
    if (items > 1 && kind >= 3) {
      from_ = stream.below(items);
      to_ = stream.below(items);
      if (kind == 6) {
        swaps_ = true;
        std::swap(schedule.order[from_], schedule.order[to_]);
      } else {
        relocate(schedule.order, from_, to_);
      }
    }
  }

  void undo() {
    if (swaps_) {
      std::swap(schedule_.order[from_], schedule_.order[to_]);
    } else {
      relocate(schedule_.order, to_, from_);
    }
    for (std::size_t c = 2; c-- > 0;) {
      if (changed_[c]) schedule_.choice[item_[c]] = old_[c];
    }
  }

 private:
  void change_option(std::size_t c) {
    item_[c] = stream_.below(schedule_.choice.size());
    const std::size_t count = std::min(problem_.options[item_[c]].size(), kLikelyOptions);
    old_[c] = schedule_.choice[item_[c]];
    changed_[c] = true;
    // The first ones cost least of the scarce devices.
    schedule_.choice[item_[c]] =
        static_cast<std::int32_t>(std::min(stream_.below(count), stream_.below(count)));
  }

  Schedule& schedule_;
  RandomStream& stream_;
  const ScheduleProblem& problem_;
  std::array<std::size_t, 2> item_{};
  std::array<std::int32_t, 2> old_{};
  std::array<bool, 2> changed_{};
  std::size_t from_ = 0;
  std::size_t to_ = 0;
  bool swaps_ = false;
};

// A search in progress: the best schedule and what is left of the work.
class Search {
 public:
  Search(const ScheduleProblem& problem, Schedule start, std::int64_t work)
      : problem_(problem),
        near_(problem.bound_ms * (1 + kNearEnough)),
        work_(work),
        simulator_(problem),
        stream_(start.order.size()),
        best_(std::move(start)) {
    result_ = simulator_.run(best_.order, best_.choice);
  }

  bool done() const { return result_.makespan <= near_ || simulator_.simulated() >= work_; }
  const Schedule& best() const { return best_; }

  // Every option of every item, then every place in the order, while that helps.
  void descend() {
    Schedule now = best_;
    Simulator::Result value = result_;
    const auto try_it = [&](const auto& take_back) {
      const Simulator::Result result = simulator_.run(now.order, now.choice);
      if (result.value() < value.value() * (1 - 1e-9)) {
        value = result;
        keep(now, result);
        return true;
      }
      take_back();
      return false;
    };
    bool improved = true;
    while (improved && !done()) {
      improved = false;
      for (std::size_t i = 0; i < now.choice.size() && !done(); ++i) {
        for (std::size_t c = 0; c < problem_.options[i].size() && !done(); ++c) {
          const std::int32_t old = now.choice[i];
          now.choice[i] = static_cast<std::int32_t>(c);
          improved = try_it([&] { now.choice[i] = old; }) || improved;
        }
      }
      for (std::size_t from = 0; from < now.order.size() && !done(); ++from) {
        for (std::size_t to = 0; to < now.order.size() && !done(); ++to) {
          relocate(now.order, from, to);
          improved = try_it([&] { relocate(now.order, to, from); }) || improved;
        }
      }
    }
  }

  // Accepts what is worse by less than a threshold, which falls to nothing.
  void wander(double warmth, bool may_change, std::int64_t end) {
    Schedule now = best_;
    double value = result_.value();
    const std::int64_t begin = simulator_.simulated();
    while (simulator_.simulated() < end && !done()) {
      const double left = static_cast<double>(end - simulator_.simulated()) /
                          static_cast<double>(std::max<std::int64_t>(1, end - begin));
      const double u = stream_.unit();
      Move move(problem_, may_change, now, stream_);
      const Simulator::Result result = simulator_.run(now.order, now.choice);
      if (result.value() > value + warmth * left * left * left * u * u) {
        move.undo();
        continue;
      }
      value = result.value();
      keep(now, result);
    }
  }

 private:
  void keep(const Schedule& schedule, const Simulator::Result& result) {
    if (result.makespan >= result_.makespan) return;
    best_ = schedule;
    result_ = result;
  }

  const ScheduleProblem& problem_;
  double near_;
  std::int64_t work_;
  Simulator simulator_;
  RandomStream stream_;
  Schedule best_;
  Simulator::Result result_;
};

}  // namespace

std::vector<SimItem> items_of(const ScheduleProblem& problem, const Schedule& schedule) {
  std::vector<SimItem> items;
  for (const std::int32_t i : schedule.order) {
    items.push_back(problem.options[index_of(i)][index_of(schedule.choice[index_of(i)])]);
  }
  return items;
}

std::vector<std::int32_t> mixed_order(const ScheduleProblem& problem,
                                      const std::vector<std::int32_t>& choice) {
  // Kinds: which devices work in which segment.
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> kinds;
  std::vector<double> length(choice.size());
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const SimItem& item = problem.options[i][index_of(choice[i])];
    length[i] = length_of(item);
    std::vector<std::int32_t> kind;
    for (const auto& segment : item.segments) {
      for (const SimItem::Share& share : segment) kind.push_back(share.device);
      kind.push_back(-1);
    }
    kinds[kind].push_back(static_cast<std::int32_t>(i));
  }
  // Within a kind: growing, then shrinking; placed by the part of the kind's time before its
  // middle.
  std::vector<std::tuple<double, std::int32_t>> places;
  for (auto& [kind, members] : kinds) {
    std::stable_sort(members.begin(), members.end(), [&](std::int32_t a, std::int32_t b) {
      return length[index_of(a)] < length[index_of(b)];
    });
    std::vector<std::int32_t> hill;
    for (std::size_t m = 0; m < members.size(); m += 2) hill.push_back(members[m]);
    for (std::size_t m = members.size() - members.size() % 2; m > 0; m -= 2) {
      hill.push_back(members[m - 1]);
    }
    double total = 0;
    for (const std::int32_t i : hill) total += length[index_of(i)];
    double before = 0;
    for (const std::int32_t i : hill) {
      places.emplace_back(total > 0 ? (before + length[index_of(i)] / 2) / total : 0, i);
      before += length[index_of(i)];
    }
  }
  std::sort(places.begin(), places.end());
  std::vector<std::int32_t> order;
  for (const auto& [place, item] : places) order.push_back(item);
  return order;
}

Schedule shorten_schedule(const ScheduleProblem& problem, Schedule start, std::int64_t work) {
  if (start.order.empty() || start.order.size() > kMaxItems) return start;
  Search search(problem, start, work);
  const bool few = start.order.size() <= kMaxExhaustiveItems;
  // The first round keeps the choice, which may well have a schedule as long as its largest load;
  // the second one sees far, which few subgraphs with long tasks need.
  constexpr std::array kWarmth{0.02, 0.3, 0.02, 0.006, 0.002};
  constexpr auto kRounds = static_cast<std::int64_t>(kWarmth.size());
  for (std::int64_t round = 0; round < kRounds && !search.done(); ++round) {
    const std::int64_t end = work / 10 + (work - work / 10) * round / (kRounds - 1);
    search.wander(kWarmth[static_cast<std::size_t>(round)] * start.makespan_ms, round > 0, end);
    if (few) search.descend();
  }
  Schedule best = search.best();
  best.makespan_ms =
      simulate(items_of(problem, best), problem.resource_of, problem.switch_ms).makespan_ms;
  return best.makespan_ms < start.makespan_ms ? best : start;
}

}  // namespace npu::gnn
