// SPDX-License-Identifier: Apache-2.0
// The cases of times: what a run says that it took, and the clock on which it says when. Nothing is
// asserted about how fast anything is: a machine may be busy.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "conformance/cases/cases.hpp"
#include "device/device_instance.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {
namespace {

std::uint64_t host_now() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// How many steps the report of a blob has; 0 if it does not say.
std::size_t count_steps(const Harness& harness, const Instance& sample) {
  if (harness.api.blob_report == nullptr) return 0;
  std::string text;
  auto writer = sized<npu_writer>();
  writer.context = &text;
  writer.write = append_bytes;
  auto error = sized<npu_error>();
  const npu_status status = harness.api.blob_report(sample.device.get(), sample.blob.data(),
                                                    sample.blob.size(), &writer, &error);
  if (status != NPU_OK) return 0;
  const Json report = Json::parse(text, nullptr, false);
  const Json* steps = report.is_object() ? find_member(report, "steps") : nullptr;
  return steps != nullptr && steps->is_array() ? steps->size() : 0;
}

/// A run that was asked for its times, and when it was made.
struct TimedRun {
  std::vector<npu_span> nodes;
  std::vector<npu_span> steps;
  npu_span whole{};
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;

  bool is_measured() const {
    const auto has_time = [](const npu_span& span) { return span.flags != 0; };
    return has_time(whole) || std::any_of(nodes.begin(), nodes.end(), has_time) ||
           std::any_of(steps.begin(), steps.end(), has_time);
  }
};

ProgramPtr create_timed(const Harness& harness, const Instance& sample) {
  auto args = sized<npu_program_args>();
  args.flags = NPU_PROGRAM_PROFILE;
  npu_program* program = nullptr;
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.program_create(sample.model->get(), &args, &program, &error),
                     error, "program_create for times");
  return {program, harness.api.program_free};
}

TimedRun run_timed(const Harness& harness, const Instance& sample, npu_program* program) {
  TimedRun made;
  made.nodes.resize(sample.graph.nodes.size());
  made.steps.resize(count_steps(harness, sample));
  auto profile = sized<npu_profile>();
  profile.nodes = made.nodes.data();
  profile.node_count = made.nodes.size();
  profile.steps = made.steps.data();
  profile.step_count = made.steps.size();
  const std::vector<npu_buffer*> inputs = sample.input_handles();
  const std::vector<npu_buffer*> outputs = sample.output_handles();
  npu_run_args args = run_args(inputs, outputs);
  args.profile = &profile;
  auto error = sized<npu_error>();
  made.begin_ns = host_now();
  harness.require_ok(harness.api.run(program, &args, &error), error, "run with a profile");
  made.end_ns = host_now();
  made.whole = profile.whole;
  return made;
}

/// Spans end after they begin, lie within the whole run if both are placed, and add up to no more.
void check_spans(const Harness& harness, const TimedRun& run, const std::vector<npu_span>& spans,
                 const std::string& what) {
  constexpr std::uint64_t kPlaced = NPU_SPAN_DURATION | NPU_SPAN_PLACED;
  const std::uint64_t wall = run.end_ns - run.begin_ns;
  std::uint64_t sum = 0;
  for (const npu_span& span : spans) {
    if ((span.flags & NPU_SPAN_DURATION) == 0) continue;
    if (!harness.found.expect(span.begin <= span.end, "a " + what + " ends before it begins")) {
      return;
    }
    sum += span.end - span.begin;
    const bool is_taken_in = span.end > span.begin && (span.flags & kPlaced) == kPlaced &&
                             (run.whole.flags & kPlaced) == kPlaced;
    if (!is_taken_in) continue;
    harness.found.expect(run.whole.begin <= span.begin && span.end <= run.whole.end,
                         "a " + what + " lies outside of the whole run");
  }
  harness.found.expect(sum <= wall, "the " + what + "s take " + std::to_string(sum) +
                                        " ns, and the whole run " + std::to_string(wall));
}

}  // namespace

void check_profile(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const ProgramPtr program = create_timed(harness, sample);
  const TimedRun run = run_timed(harness, sample, program.get());
  if (!run.is_measured()) throw NotApplicable("runs measure nothing");
  check_spans(harness, run, run.nodes, "node");
  check_spans(harness, run, run.steps, "step");
  if ((run.whole.flags & NPU_SPAN_DURATION) != 0) {
    check_spans(harness, run, {run.whole}, "run");
  }
  for (std::size_t k = 0; k < sample.out.size(); ++k) {
    const TensorSpec spec = sample.graph.tensor(sample.graph.outputs[k]);
    harness.found.expect(same_bits({harness.read(sample.out[k].get(), spec)}, {expected[k]}),
                         "a run with a profile gives other values");
  }
}

namespace {

ClockSample sample_clock(const Harness& harness, npu_device* device) {
  auto sample = sized<npu_clock_sample>();
  auto error = sized<npu_error>();
  const std::uint64_t before = host_now();
  const npu_status status = harness.api.clock_sample(device, &sample, &error);
  if (status == NPU_UNSUPPORTED) throw NotApplicable("the device has no clock that can be read");
  harness.require_ok(status, error, "clock_sample");
  const std::uint64_t after = host_now();
  harness.found.expect(sample.host_ns + sample.uncertainty_ns >= before &&
                           sample.host_ns <= after + sample.uncertainty_ns,
                       "clock_sample has a time of the host that is not that of the call");
  return {sample.device_ns, sample.host_ns, sample.uncertainty_ns};
}

/// A clock may be off by its uncertainty at both ends, and run a thousandth too fast between.
double error_between(const ClockSample& before, const ClockSample& after) {
  return 2 * static_cast<double>(before.uncertainty_ns + after.uncertainty_ns) +
         static_cast<double>(after.host_ns - before.host_ns) / 1000;
}

/// Where a run says that it was by the device's clock, it was by the host's.
void check_placed(const Harness& harness, const TimedRun& run, const ClockSample& before,
                  const ClockSample& after) {
  std::vector<npu_span> spans = run.nodes;
  spans.insert(spans.end(), run.steps.begin(), run.steps.end());
  spans.push_back(run.whole);
  const double error = error_between(before, after);
  for (const npu_span& span : spans) {
    if ((span.flags & NPU_SPAN_PLACED) == 0 || span.end <= span.begin) continue;
    const double begin = host_time_ns(before, after, span.begin);
    const double end = host_time_ns(before, after, span.end);
    harness.found.expect(begin >= static_cast<double>(run.begin_ns) - error &&
                             end <= static_cast<double>(run.end_ns) + error,
                         "a span that is placed on the device's clock lies outside of the run");
  }
}

}  // namespace

void check_clock(const Harness& harness) {
  if (harness.api.clock_sample == nullptr) throw NotApplicable("clock_sample is null");
  const Instance sample = make_sample(harness);
  npu_device* const device = sample.device.get();
  const ProgramPtr program = create_timed(harness, sample);
  const ClockSample first = sample_clock(harness, device);
  const TimedRun run = run_timed(harness, sample, program.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const ClockSample middle = sample_clock(harness, device);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const ClockSample last = sample_clock(harness, device);
  harness.found.require(first.device_ns <= middle.device_ns && middle.device_ns <= last.device_ns &&
                            first.host_ns <= last.host_ns,
                        "the device's clock goes back");
  const double expected = host_time_ns(first, last, middle.device_ns);
  const double error = error_between(first, last) + static_cast<double>(middle.uncertainty_ns);
  harness.found.require(std::abs(expected - static_cast<double>(middle.host_ns)) <= error,
                        "the device's clock is not even: a moment between two others is " +
                            std::to_string(expected - static_cast<double>(middle.host_ns)) +
                            " ns off");
  check_placed(harness, run, first, last);
  harness.found.expect(true, "");
}

}  // namespace npu::conformance
