// SPDX-License-Identifier: Apache-2.0
// Makes the runs of npu-run: a first one, and those of --bench and --in-flight, until the deadline.
#include "runtime/timed_runs.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "npu/runtime/compare.hpp"
#include "npu/runtime/run_stop.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

bool is_late(const RunModelOptions& options) {
  return options.deadline && Clock::now() >= *options.deadline;
}

/// Makes the runs of --bench, as many at once as the executor takes; they end in the order of their
/// starts. None is started behind the deadline.
void run_more(Executor& executor, const std::vector<Tensor>& inputs, const RunModelOptions& options,
              Runs& runs) {
  struct Going {
    RunRecord record;  // which the run fills, and is to outlive it
    std::shared_ptr<Executor::Run> run;
  };
  const std::int32_t in_flight = options.executor.in_flight;
  const std::int64_t more = options.bench == 0 && in_flight > 1 ? in_flight : options.bench;
  std::deque<Going> going;
  std::int64_t started = 0;
  const auto start = Clock::now();
  for (;;) {
    while (started < more && going.size() < index_of(in_flight) && !is_late(options)) {
      Going& next = going.emplace_back();
      next.run = executor.start(inputs, &next.record, !options.trace.empty());
      ++started;
    }
    if (going.empty()) break;
    std::vector<Tensor> outputs;
    try {
      outputs = executor.wait(going.front().run);
    } catch (const RunLate&) {
      runs.is_cut_short = true;
      break;
    }
    if (in_flight > 1) runs.is_same = same_bits(outputs, runs.outputs) && runs.is_same;
    runs.last = std::move(going.front().record);
    runs.times.push_back(runs.last.total_us / 1000);
    going.pop_front();
  }
  runs.is_cut_short = runs.is_cut_short || started < more;
  runs.seconds = milliseconds_since(start) / 1000;
}

}  // namespace

/// The first run is alone, so that the others are compared with it and find everything warm.
Runs run_all(Executor& executor, const std::vector<Tensor>& inputs,
             const RunModelOptions& options) {
  if (is_late(options)) {
    throw Error(ErrorCode::kInfeasible,
                "the deadline is over before the first run; allow more with --deadline");
  }
  Runs runs;
  runs.outputs = executor.run(inputs, &runs.first, !options.trace.empty());
  runs.last = runs.first;
  run_more(executor, inputs, options, runs);
  runs.is_late = !runs.is_cut_short && is_late(options);
  log(LogModule::kRun, LogLevel::kInfo, [&] {
    return "first run " + fixed_text(runs.first.total_us / 1000, 2) + " ms, timed runs after it " +
           std::to_string(runs.times.size());
  });
  return runs;
}

}  // namespace npu
