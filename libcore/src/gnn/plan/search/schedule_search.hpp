// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnn/plan/search/simulate.hpp"

namespace npu::gnn {

/// Subgraphs, the ways to run each, and what they run on. Times are in milliseconds.
struct ScheduleProblem {
  /// By item and option; `cluster` tells plans apart where going over to another one costs time.
  std::vector<std::vector<SimItem>> options;
  std::vector<std::int32_t> resource_of;  ///< by device
  std::vector<double> switch_ms;          ///< by device; empty: none
  double bound_ms = 0;                    ///< no schedule is shorter; the search ends near it
};

/// An order of priority and an option for each item.
struct Schedule {
  std::vector<std::int32_t> order;   ///< items
  std::vector<std::int32_t> choice;  ///< by item
  double makespan_ms = 0;            ///< as simulate() finds it
};

/// The items in the order of the schedule.
std::vector<SimItem> items_of(const ScheduleProblem& problem, const Schedule& schedule);

/// An order that mixes plans of different kinds evenly, so that all devices have work all the time:
/// with small items at both ends, where devices wait for the first results or for the last ones.
std::vector<std::int32_t> mixed_order(const ScheduleProblem& problem,
                                      const std::vector<std::int32_t>& choice);

/// Looks for a shorter schedule by changes of the order and of options. `work` is the number of
/// tasks that it may simulate. Not for more than 4,096 items, whose schedule comes back as it is.
Schedule shorten_schedule(const ScheduleProblem& problem, Schedule start, std::int64_t work);

}  // namespace npu::gnn
