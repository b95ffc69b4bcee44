// SPDX-License-Identifier: Apache-2.0
// The case of progress, cancel and deadline of a compile.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

#include "conformance/cases/cases.hpp"

namespace npu::conformance {
namespace {

// What a compile reports, from any thread, and when it is asked to stop.
struct Watch {
  int stop_at = 0;  // 0: never
  std::atomic<int> calls{0};
  std::atomic<bool> has_phases{true};
  std::atomic<bool> is_sane{true};
};

std::uint32_t note_progress(void* context, std::uint64_t done, std::uint64_t total,
                            const char* phase) {
  auto* watch = static_cast<Watch*>(context);
  const int call = ++watch->calls;
  if (phase == nullptr || *phase == '\0') watch->has_phases = false;
  if (total != 0 && done > total) watch->is_sane = false;
  return watch->stop_at != 0 && call >= watch->stop_at ? 1 : 0;
}

Compiled compile_watched(const Harness& harness, const Instance& sample, Watch& watch,
                         std::uint64_t deadline_ns) {
  return harness.compile_with(sample.device.get(), sample.graph, [&](npu_compile_args& args) {
    args.progress = note_progress;
    args.progress_context = &watch;
    args.deadline_ns = deadline_ns;
  });
}

}  // namespace

void check_progress(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  Watch whole;
  const Compiled compiled = compile_watched(harness, sample, whole, 0);
  harness.found.require(compiled.status == NPU_OK, "a compile with progress fails");
  harness.found.expect(whole.calls > 0, "a compile never calls progress");
  harness.found.expect(whole.has_phases, "progress is called without a phase");
  harness.found.expect(whole.is_sane, "progress is called with more done than there is");
  const int calls = whole.calls;
  constexpr int kTries = 12;
  for (int i = 0; i < std::min(calls, kTries); ++i) {
    // All of them, or the first, the last and some between.
    const int stop_at = calls <= kTries ? i + 1 : 1 + i * (calls - 1) / (kTries - 1);
    Watch watch{.stop_at = stop_at};
    const auto begin = std::chrono::steady_clock::now();
    const Compiled stopped = compile_watched(harness, sample, watch, 0);
    const std::string what = "a compile that was asked to stop in call " + std::to_string(stop_at) +
                             " of " + std::to_string(calls);
    // Another compile may make fewer calls, and then nobody stops it.
    const bool is_whole = stopped.status == NPU_OK && watch.calls < stop_at;
    harness.found.expect(stopped.status == NPU_CANCELLED || is_whole,
                         what + " gives " + status_name(stopped.status) + ", not CANCELLED");
    harness.found.expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2),
                         what + " takes more than two seconds");
  }
  Watch late;
  const Compiled overdue = compile_watched(harness, sample, late, 1);
  harness.found.expect(
      overdue.status == NPU_DEADLINE,
      "a compile after its deadline gives " + status_name(overdue.status) + ", not DEADLINE");
  const auto now = std::chrono::steady_clock::now() + std::chrono::hours(1);
  Watch early;
  const Compiled again = compile_watched(
      harness, sample, early,
      static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count()));
  harness.found.require(again.status == NPU_OK,
                        "a compile an hour before its deadline gives " + status_name(again.status));
  const Instance instance = make_instance(harness, harness.open(), sample.graph, again.blob);
  harness.found.expect(same_bits(run_and_read(harness, instance), expected),
                       "after compiles that were stopped, a blob computes other values");
}

}  // namespace npu::conformance
