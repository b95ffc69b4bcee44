// SPDX-License-Identifier: Apache-2.0
// The case of runs that end early: at a deadline, which is advice, and by program_cancel.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "conformance/cases/cases.hpp"

namespace npu::conformance {
namespace {

using Clock = std::chrono::steady_clock;

npu_status run_until(const Harness& harness, const Instance& instance, std::uint64_t deadline_ns) {
  const std::vector<npu_buffer*> inputs = instance.input_handles();
  const std::vector<npu_buffer*> outputs = instance.output_handles();
  npu_run_args args = run_args(inputs, outputs);
  args.deadline_ns = deadline_ns;
  auto error = sized<npu_error>();
  const npu_status status = harness.api.run(instance.program.get(), &args, &error);
  harness.check_error(status, error, "run");
  return status;
}

void expect_same(const Harness& harness, const Instance& sample,
                 const std::vector<Tensor>& expected, const std::string& after) {
  harness.found.expect(same_bits(run_and_read(harness, sample), expected),
                       "after " + after + ", a run gives other values");
}

/// Cancels a run of another thread again and again until it has ended, as the host does.
npu_status run_cancelled(const Harness& harness, const Instance& sample) {
  std::atomic<bool> is_done{false};
  std::thread canceller([&] {
    while (!is_done) {
      harness.api.program_cancel(sample.program.get());
      std::this_thread::yield();
    }
  });
  const npu_status status = run_until(harness, sample, 0);
  is_done = true;
  canceller.join();
  return status;
}

}  // namespace

void check_run_cancel(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const npu_status late = run_until(harness, sample, 1);
  harness.found.expect(
      late == NPU_OK || late == NPU_DEADLINE,
      "a run after its deadline gives " + status_name(late) + ", neither OK nor DEADLINE");
  expect_same(harness, sample, expected, "a run whose deadline was over");
  const auto in_an_hour = (Clock::now() + std::chrono::hours(1)).time_since_epoch();
  const npu_status early = run_until(
      harness, sample, static_cast<std::uint64_t>(std::chrono::nanoseconds(in_an_hour).count()));
  harness.found.expect(early == NPU_OK,
                       "a run an hour before its deadline gives " + status_name(early));
  if (harness.api.program_cancel == nullptr) return;
  harness.api.program_cancel(sample.program.get());
  expect_same(harness, sample, expected, "program_cancel without a run");
  const int repeats = harness.quick ? 20 : 200;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    const npu_status status = run_cancelled(harness, sample);
    harness.found.expect(
        status == NPU_OK || status == NPU_CANCELLED,
        "a run that is cancelled gives " + status_name(status) + ", neither CANCELLED nor OK");
    harness.found.expect(Clock::now() - begin < std::chrono::seconds(2),
                         "a run that is cancelled takes more than two seconds");
    if (i == 0) expect_same(harness, sample, expected, "a run that was cancelled");
  }
  expect_same(harness, sample, expected, "runs that were cancelled");
}

}  // namespace npu::conformance
