// SPDX-License-Identifier: Apache-2.0
// Cases of queues, events and copies on the device: that work is done in order and after what it
// waits for, that several programs of a model may be in flight, and that failures travel.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/guarded.hpp"
#include "conformance/harness/process_state.hpp"

namespace npu::conformance {
namespace {

using QueuePtr = std::unique_ptr<npu_queue, void (*)(npu_queue*)>;
using EventPtr = std::unique_ptr<npu_event, void (*)(npu_event*)>;

/// The calls that enqueue, each of which has to succeed and to give an event. Queues are opened and
/// runs submitted as a later host does, with longer structs.
class QueueCalls {
 public:
  explicit QueueCalls(const Harness& harness) : harness_(harness) {}

  QueuePtr open(npu_device* device) const {
    auto args = sized<npu_queue_args>();
    args.priority = NPU_PRIORITY_NORMAL;
    Longer<npu_queue_args> longer(args);
    npu_queue* queue = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.queue_open(device, longer.get(), &queue, &error), error,
                        "queue_open");
    harness_.found.require(queue != nullptr, "queue_open succeeds and gives no queue");
    return {queue, harness_.api.queue_close};
  }

  EventPtr run(npu_queue* queue, npu_program* program, const std::vector<npu_buffer*>& inputs,
               const std::vector<npu_buffer*>& outputs,
               const std::vector<npu_event*>& waits = {}) const {
    npu_event* event = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(try_run(queue, program, inputs, outputs, waits, &event, error), error,
                        "submit");
    return owned(event, "submit");
  }

  npu_status try_run(npu_queue* queue, npu_program* program, const std::vector<npu_buffer*>& inputs,
                     const std::vector<npu_buffer*>& outputs, const std::vector<npu_event*>& waits,
                     npu_event** event, npu_error& error) const {
    // Everything but the buffers may be gone after the call: it is spoilt.
    std::vector<npu_buffer*> in = inputs;
    std::vector<npu_buffer*> out = outputs;
    std::vector<npu_event*> wait = waits;
    const npu_run_args args = run_args(in, out);
    Longer<npu_enqueue> where(place(queue, wait));
    const npu_status status = harness_.api.submit(program, &args, where.get(), event, &error);
    std::fill(in.begin(), in.end(), nullptr);
    std::fill(out.begin(), out.end(), nullptr);
    std::fill(wait.begin(), wait.end(), nullptr);
    where.get()->queue = nullptr;
    return status;
  }

  EventPtr write(npu_queue* queue, npu_buffer* buffer, const Tensor& tensor,
                 const std::vector<npu_event*>& waits = {}) const {
    return transfer(harness_.api.submit_write, "submit_write", queue, buffer,
                    const_cast<std::byte*>(tensor.data()), tensor.bytes(), waits);
  }

  EventPtr read(npu_queue* queue, npu_buffer* buffer, Tensor& tensor,
                const std::vector<npu_event*>& waits = {}) const {
    return transfer(harness_.api.submit_read, "submit_read", queue, buffer, tensor.mutable_data(),
                    tensor.bytes(), waits);
  }

  EventPtr copy(npu_queue* queue, npu_buffer* source, npu_buffer* destination,
                const std::vector<npu_event*>& waits = {}) const {
    std::vector<npu_event*> wait = waits;
    const npu_enqueue where = place(queue, wait);
    npu_event* event = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(harness_.api.buffer_copy(source, destination, &where, &event, &error),
                        error, "buffer_copy");
    return owned(event, "buffer_copy");
  }

  npu_status wait(const EventPtr& event, npu_error& error,
                  std::uint64_t timeout = NPU_FOREVER) const {
    error = sized<npu_error>();
    const npu_status status = harness_.api.event_wait(event.get(), timeout, &error);
    harness_.check_error(status, error, "event_wait");
    return status;
  }

  void require_done(const EventPtr& event, const std::string& what) const {
    auto error = sized<npu_error>();
    harness_.require_ok(wait(event, error), error, what);
  }

 private:
  using Transfer = npu_status (*)(npu_buffer*, const npu_transfer*, const npu_enqueue*, npu_event**,
                                  npu_error*);

  static npu_enqueue place(npu_queue* queue, std::vector<npu_event*>& waits) {
    auto where = sized<npu_enqueue>();
    where.queue = queue;
    where.wait = waits.data();
    where.wait_count = waits.size();
    return where;
  }

  EventPtr transfer(Transfer function, const std::string& name, npu_queue* queue,
                    npu_buffer* buffer, void* data, std::uint64_t bytes,
                    const std::vector<npu_event*>& waits) const {
    std::vector<npu_event*> wait = waits;
    const npu_enqueue where = place(queue, wait);
    auto piece = sized<npu_transfer>();
    piece.bytes = bytes;
    piece.data = data;
    npu_event* event = nullptr;
    auto error = sized<npu_error>();
    harness_.require_ok(function(buffer, &piece, &where, &event, &error), error, name);
    return owned(event, name);
  }

  EventPtr owned(npu_event* event, const std::string& name) const {
    harness_.found.require(event != nullptr, name + " succeeds and gives no event");
    return {event, harness_.api.event_free};
  }

  const Harness& harness_;
};

/// What one run in flight has of its own, beside the model. The queue goes first, with its work.
struct Flight {
  ProgramPtr program;
  std::vector<Tensor> inputs;
  std::vector<BufferPtr> in;
  std::vector<BufferPtr> out;
  std::vector<Tensor> expected;
  std::vector<Tensor> results;
  QueuePtr queue;
};

/// As many as the device takes, and no more than three, each with inputs of its own. What they
/// should give comes from blocking runs.
std::vector<Flight> make_flights(const Harness& harness, const Instance& sample) {
  const QueueCalls calls(harness);
  npu_device* device = sample.device.get();
  const std::uint32_t count =
      std::min({3U, harness.facts().queues, harness.facts().programs_in_flight});
  std::vector<Flight> flights;
  for (std::uint32_t i = 0; i < count; ++i) {
    Flight flight{.program = harness.create(sample.model->get()),
                  .inputs = {},
                  .in = {},
                  .out = {},
                  .expected = {},
                  .results = {},
                  .queue = calls.open(device)};
    for (std::size_t k = 0; k < sample.graph.inputs.size(); ++k) {
      const TensorSpec& input = sample.graph.inputs[k];
      flight.inputs.push_back(test_values(input, 10 + i));
      flight.in.push_back(harness.make_buffer(device, input, NPU_USAGE_INPUT));
      harness.write(sample.in[k].get(), flight.inputs.back());
    }
    flight.expected = run_and_read(harness, sample);
    for (const std::string& output : sample.graph.outputs) {
      const TensorSpec spec = sample.graph.tensor(output);
      flight.out.push_back(harness.make_buffer(device, spec, NPU_USAGE_OUTPUT));
      flight.results.emplace_back(spec.dtype, spec.shape);
    }
    flights.push_back(std::move(flight));
  }
  return flights;
}

/// Inputs in, a run, results out, all in one queue; gives the events of the reads. Those of the
/// writes are freed before anything waits for them.
std::vector<EventPtr> start(const Harness& harness, Flight& flight) {
  const QueueCalls calls(harness);
  std::vector<EventPtr> events;
  std::vector<npu_event*> written;
  for (std::size_t k = 0; k < flight.in.size(); ++k) {
    events.push_back(calls.write(flight.queue.get(), flight.in[k].get(), flight.inputs[k]));
    written.push_back(events.back().get());
  }
  const EventPtr done = calls.run(flight.queue.get(), flight.program.get(), handles(flight.in),
                                  handles(flight.out), written);
  events.clear();
  for (std::size_t k = 0; k < flight.out.size(); ++k) {
    Tensor& result = flight.results[k];
    std::memset(result.mutable_data(), 0xa5, result.bytes());
    events.push_back(calls.read(flight.queue.get(), flight.out[k].get(), result, {done.get()}));
  }
  return events;
}

bool expect_results(const Harness& harness, const Flight& flight, const std::string& what) {
  return harness.found.expect(same_bits(flight.results, flight.expected),
                              what + " gives other values than a blocking run");
}

/// All at once, waited for in the opposite order.
void check_in_flight(const Harness& harness, std::vector<Flight>& flights) {
  const QueueCalls calls(harness);
  const int repeats = harness.quick ? 5 : 20;
  for (int i = 0; i < repeats; ++i) {
    std::vector<std::vector<EventPtr>> events;
    for (Flight& flight : flights) events.push_back(start(harness, flight));
    for (std::size_t f = flights.size(); f-- > 0;) {
      for (const EventPtr& event : events[f]) calls.require_done(event, "a read of a result");
      // What is written too late would be written to what the next steps use.
      if (!expect_results(harness, flights[f],
                          "a run beside " + std::to_string(flights.size() - 1) + " others")) {
        throw CaseStopped();
      }
    }
  }
}

/// What runs in one queue is read in another, which is ordered by the event alone.
void check_order(const Harness& harness, std::vector<Flight>& flights) {
  if (flights.size() < 2) return;
  const QueueCalls calls(harness);
  Flight& flight = flights.front();
  for (int i = 0; i < (harness.quick ? 5 : 20); ++i) {
    for (std::size_t k = 0; k < flight.out.size(); ++k) {
      Tensor poison(flight.results[k].dtype(), flight.results[k].shape());
      std::memset(poison.mutable_data(), 0x5a, poison.bytes());
      harness.write(flight.out[k].get(), poison);
    }
    const EventPtr done = calls.run(flight.queue.get(), flight.program.get(), handles(flight.in),
                                    handles(flight.out));
    std::vector<EventPtr> reads;
    for (std::size_t k = 0; k < flight.out.size(); ++k) {
      reads.push_back(
          calls.read(flights[1].queue.get(), flight.out[k].get(), flight.results[k], {done.get()}));
    }
    for (const EventPtr& event : reads) calls.require_done(event, "a read in another queue");
    expect_results(harness, flight, "a read in another queue that waits for the run");
  }
}

std::int64_t milliseconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin)
      .count();
}

/// Asking does not block, and a time limit is kept.
void check_timeouts(const Harness& harness, Flight& flight) {
  const QueueCalls calls(harness);
  constexpr std::int64_t kTolerance = 500;  // a machine may be busy
  EventPtr last(nullptr, harness.api.event_free);
  for (int i = 0; i < 100; ++i) {
    last = calls.run(flight.queue.get(), flight.program.get(), handles(flight.in),
                     handles(flight.out));
  }
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1'000'000}}) {
    auto error = sized<npu_error>();
    npu_status status = NPU_OK;
    const std::int64_t took = milliseconds_of([&] { status = calls.wait(last, error, limit); });
    harness.found.expect(status == NPU_OK || status == NPU_DEADLINE,
                         "event_wait with a time limit gives " + status_name(status));
    harness.found.expect(took < kTolerance, "event_wait with a limit of " + std::to_string(limit) +
                                                " ns takes " + std::to_string(took) + " ms");
  }
  calls.require_done(last, "the last of 100 runs");
  auto error = sized<npu_error>();
  harness.found.expect(calls.wait(last, error, 0) == NPU_OK,
                       "an event that was done is no longer done");
  expect_results(harness, flight, "a queue of 100 runs");
}

/// Wrong arguments are refused at once, and no event comes of it.
void check_refused_work(const Harness& harness, Flight& flight) {
  const QueueCalls calls(harness);
  std::vector<std::byte> memory(flight.results.front().bytes() + 1);
  npu_event* event = nullptr;
  auto error = sized<npu_error>();
  const auto expect_no_event = [&] {
    const EventPtr left(std::exchange(event, nullptr), harness.api.event_free);
    harness.found.expect(left == nullptr, "work that is refused leaves an event");
    if (left != nullptr) calls.wait(left, error);  // it may use what is here
  };
  npu_status status = calls.try_run(flight.queue.get(), flight.program.get(), {},
                                    handles(flight.out), {}, &event, error);
  harness.check_error(status, error, "submit without inputs");
  harness.found.expect(status == NPU_INVALID,
                       "submit without inputs gives " + status_name(status) + ", not INVALID");
  expect_no_event();
  auto piece = sized<npu_transfer>();
  piece.bytes = memory.size();
  piece.data = memory.data();
  auto where = sized<npu_enqueue>();
  where.queue = flight.queue.get();
  status = harness.api.submit_read(flight.out.front().get(), &piece, &where, &event, &error);
  harness.found.expect(status == NPU_INVALID,
                       "submit_read behind the end of a buffer gives " + status_name(status));
  expect_no_event();
}

void count_call(void* context, npu_status status) {
  if (status == NPU_OK) ++*static_cast<std::atomic<int>*>(context);
}

/// The call comes once, even if the event is freed before.
void check_callbacks(const Harness& harness, const Instance& sample, Flight& flight) {
  if (harness.api.event_on_done == nullptr) return;
  const QueueCalls calls(harness);
  static std::atomic<int> count{0};
  constexpr int kRuns = 20;
  for (int i = 0; i < kRuns; ++i) {
    const EventPtr event = calls.run(flight.queue.get(), flight.program.get(), handles(flight.in),
                                     handles(flight.out));
    if (i % 4 == 0) calls.require_done(event, "a run");
    auto error = sized<npu_error>();
    harness.require_ok(harness.api.event_on_done(event.get(), count_call, &count, &error), error,
                       "event_on_done");
  }
  flight.queue.reset();  // after which no call may come
  harness.found.expect(count == kRuns, std::to_string(count) + " calls of event_on_done for " +
                                           std::to_string(kRuns) + " events");
  flight.queue = calls.open(sample.device.get());
}

/// Work that is repeated, and queues that are opened again, leave nothing behind.
void check_growth(const Harness& harness, const Instance& sample, Flight& flight) {
  const QueueCalls calls(harness);
  const int repeats = harness.quick ? 20 : 100;
  const auto again = [&](int times) {
    for (int i = 0; i < times; ++i) {
      flight.queue.reset();
      flight.queue = calls.open(sample.device.get());
      for (const EventPtr& event : start(harness, flight)) calls.require_done(event, "a read");
    }
  };
  again(10);
  const ProcessState before = ProcessState::now();
  again(repeats);
  expect_no_growth(harness.found, before, repeats, "a queue with its work");
  expect_results(harness, flight, "a run in a queue that was opened again");
}

/// Free functions, and what waits for a whole queue.
void check_ends(const Harness& harness, Flight& flight) {
  const npu_backend& api = harness.api;
  const QueueCalls calls(harness);
  api.queue_close(nullptr);
  api.event_free(nullptr);
  auto error = sized<npu_error>();
  harness.require_ok(api.queue_finish(flight.queue.get(), &error), error,
                     "queue_finish of an empty queue");
  std::vector<EventPtr> events = start(harness, flight);
  harness.require_ok(api.queue_flush(flight.queue.get(), &error), error, "queue_flush");
  harness.require_ok(api.queue_finish(flight.queue.get(), &error), error, "queue_finish");
  expect_results(harness, flight, "queue_finish returns before the work is done: a read");
  for (const EventPtr& event : events) {
    harness.found.expect(calls.wait(event, error, 0) == NPU_OK,
                         "after queue_finish an event is not done");
  }
  // Nobody waits: closing does, and the events outlive the queue.
  events = start(harness, flight);
  flight.queue.reset();
  expect_results(harness, flight, "queue_close returns before the work is done: a read");
  for (const EventPtr& event : events) {
    harness.found.expect(calls.wait(event, error) == NPU_OK,
                         "an event is not done once its queue is closed");
  }
}

/// A run that fails takes with it what waits for it, and nothing else.
void check_failures(const Harness& harness, const GraphSpec& graph, const std::string& blob) {
  if (!harness.library.has_feature("test.fail")) return;
  const Instance sample =
      make_instance(harness,
                    harness.open([](npu_open_args& args) { args.options = "{\"test\": \"fail\"}"; },
                                 "device_open with the test option \"fail\""),
                    graph, blob);
  // What queues work on goes after them.
  const TensorSpec spec = graph.tensor(graph.outputs.front());
  Tensor result(spec.dtype, spec.shape);
  const Tensor other_input(sample.inputs.front().dtype(), sample.inputs.front().shape());
  Tensor input(sample.inputs.front().dtype(), sample.inputs.front().shape());
  const QueueCalls calls(harness);
  npu_device* opened = sample.device.get();
  const QueuePtr queue = calls.open(opened);
  const QueuePtr other =
      harness.facts().queues > 1 ? calls.open(opened) : QueuePtr(nullptr, harness.api.queue_close);
  npu_queue* const second = other != nullptr ? other.get() : queue.get();
  const EventPtr failed =
      calls.run(queue.get(), sample.program.get(), sample.input_handles(), sample.output_handles());
  const EventPtr dependent = calls.read(second, sample.out.front().get(), result, {failed.get()});
  const EventPtr indirect =
      calls.write(queue.get(), sample.in.front().get(), other_input, {dependent.get()});
  const EventPtr apart = calls.read(queue.get(), sample.in.front().get(), input);
  auto error = sized<npu_error>();
  const npu_status status = calls.wait(failed, error);
  const std::string text = error.text;
  harness.found.require(status == NPU_FAILED,
                        "a run that fails ends with " + status_name(status) + ", not FAILED");
  for (const auto& [event, what] : {std::pair{&dependent, "a read that waits for a run that fails"},
                                    {&indirect, "a write that waits for that read"},
                                    {&failed, "the run that failed, asked again,"}}) {
    const npu_status its = calls.wait(*event, error);
    harness.found.expect(its == status && text == error.text,
                         std::string(what) + " ends with " + status_name(its) + ": " + error.text +
                             ", expected FAILED: " + text);
  }
  harness.found.expect(calls.wait(apart, error) == NPU_OK,
                       "work that waits for nothing fails with another one");
  harness.found.expect(same_bits({input}, {sample.inputs.front()}),
                       "work that waits for a run that failed is done all the same");
  harness.require_ok(harness.api.queue_finish(queue.get(), &error), error,
                     "queue_finish after a failure");
}

}  // namespace

void check_queues(const Harness& harness) {
  const npu_backend& api = harness.api;
  harness.found.require(
      api.queue_open != nullptr && api.queue_close != nullptr && api.queue_flush != nullptr &&
          api.queue_finish != nullptr && api.submit != nullptr && api.submit_write != nullptr &&
          api.submit_read != nullptr && api.event_wait != nullptr && api.event_free != nullptr,
      "the feature queue is listed, but one of its functions is null");
  GraphSpec graph;
  std::string blob;
  {
    const Instance sample = make_sample(harness);
    graph = sample.graph;
    blob = sample.blob;
    std::vector<Flight> flights = make_flights(harness, sample);
    check_in_flight(harness, flights);
    check_order(harness, flights);
    check_timeouts(harness, flights.front());
    check_refused_work(harness, flights.front());
    check_callbacks(harness, sample, flights.front());
    check_growth(harness, sample, flights.front());
    check_ends(harness, flights.front());
    run_and_read(harness, sample);  // a blocking run beside queues that are open
  }
  check_failures(harness, graph, blob);
}

namespace {

TensorSpec longer_by_one(TensorSpec spec) {
  if (spec.shape.empty()) spec.shape.push_back(1);
  ++spec.shape.back();
  return spec;
}

void check_blocking_copies(const Harness& harness, const Instance& sample, npu_device* other) {
  const TensorSpec& spec = sample.graph.inputs.front();
  const Tensor& input = sample.inputs.front();
  auto error = sized<npu_error>();
  for (npu_device* device : {sample.device.get(), other}) {
    if (device == nullptr) continue;
    const BufferPtr copy = harness.make_buffer(device, spec, NPU_USAGE_INPUT);
    const auto copied =
        harness.api.buffer_copy(sample.in.front().get(), copy.get(), nullptr, nullptr, &error);
    harness.require_ok(copied, error, "buffer_copy");
    harness.found.expect(same_bits({harness.read(copy.get(), spec)}, {input}),
                         "a copy has another content than its source");
    harness.write(copy.get(), Tensor(spec.dtype, spec.shape));
    harness.found.expect(same_bits({harness.read(sample.in.front().get(), spec)}, {input}),
                         "a copy shares memory with its source");
  }
  const BufferPtr larger =
      harness.make_buffer(sample.device.get(), longer_by_one(spec), NPU_USAGE_INPUT);
  const npu_status status =
      harness.api.buffer_copy(sample.in.front().get(), larger.get(), nullptr, nullptr, &error);
  harness.check_error(status, error, "buffer_copy to another shape");
  harness.found.expect(status == NPU_INVALID, "buffer_copy to another shape gives " +
                                                  status_name(status) + ", not INVALID");
}

/// A write, a copy and a read, each in the same queue or waiting for the one before.
void check_queued_copies(const Harness& harness, const Instance& sample) {
  if (!harness.library.has_feature("queue")) return;
  const QueueCalls calls(harness);
  const TensorSpec& spec = sample.graph.inputs.front();
  const BufferPtr copy = harness.make_buffer(sample.device.get(), spec, NPU_USAGE_INPUT);
  // What the queue works on goes after it.
  std::vector<Tensor> given;
  for (std::uint64_t i = 0; i < 20; ++i) given.push_back(test_values(spec, 100 + i));
  Tensor result(spec.dtype, spec.shape);
  const QueuePtr queue = calls.open(sample.device.get());
  for (const Tensor& values : given) {
    const EventPtr written = calls.write(queue.get(), sample.in.front().get(), values);
    const EventPtr copied =
        calls.copy(queue.get(), sample.in.front().get(), copy.get(), {written.get()});
    const EventPtr done = calls.read(queue.get(), copy.get(), result, {copied.get()});
    calls.require_done(done, "a read of a copy");
    harness.found.expect(same_bits({result}, {values}),
                         "what is written, copied and read in a queue is something else");
  }
}

}  // namespace

void check_copies(const Harness& harness) {
  harness.found.require(harness.api.buffer_copy != nullptr,
                        "the feature copy is listed, but buffer_copy is null");
  const Instance sample = make_sample(harness);
  DevicePtr other(nullptr, harness.api.device_close);
  const DeviceSheet& last = harness.library.devices.back();
  if (last.usable && last.id != harness.facts().id) {
    auto args = sized<npu_open_args>();
    args.device_id = last.id.c_str();
    npu_device* opened = nullptr;
    auto error = sized<npu_error>();
    if (harness.api.device_open(&args, &opened, &error) == NPU_OK) other.reset(opened);
  }
  check_blocking_copies(harness, sample, other.get());
  check_queued_copies(harness, sample);
}

}  // namespace npu::conformance
