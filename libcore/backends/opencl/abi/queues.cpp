// SPDX-License-Identifier: Apache-2.0
// Queues and events. A queue is a thread with a command queue of the driver: it waits for the
// events that a piece of work depends on, enqueues the work and waits for its end. OpenCL's own
// events would not do, since work behind a failed one is lost there with everything behind it, on
// some drivers the context with it.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <thread>

#include "abi/boundary.hpp"

namespace npu::opencl {

/// The completion of one piece of work.
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  npu_status status = NPU_OK;
  npu_error error{};
  npu_done callback = nullptr;
  void* context = nullptr;

  void finish(npu_status ended, const npu_error& with) {
    npu_done call = nullptr;
    {
      const std::lock_guard lock(mutex);
      is_done = true;
      status = ended;
      error = with;
      call = callback;
    }
    changed.notify_all();
    if (call != nullptr) call(context, ended);
  }
};

}  // namespace npu::opencl

struct npu_event {
  std::shared_ptr<npu::opencl::Completion> completion;
};

struct npu_queue {
  npu_device* device = nullptr;
  npu::opencl::ClQueue queue;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  std::uint64_t pending = 0;  ///< not done
  bool is_closing = false;
  std::thread thread;
};

namespace npu::opencl {
namespace {

void serve(npu_queue& queue) {
  std::unique_lock lock(queue.mutex);
  for (;;) {
    queue.changed.wait(lock, [&] { return !queue.work.empty() || queue.is_closing; });
    if (queue.work.empty()) return;
    {
      const std::function<void()> next = std::move(queue.work.front());
      queue.work.pop_front();
      lock.unlock();
      next();
    }
    lock.lock();
    if (--queue.pending == 0) queue.changed.notify_all();
  }
}

/// Threads of a backend take no signal of the program.
void start_thread(npu_queue& queue) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    queue.thread = std::thread([&queue] { serve(queue); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

npu_error empty_error() {
  npu_error error{};
  error.struct_size = sizeof error;
  return error;
}

npu_status await(Completion& completion, std::uint64_t timeout_ns, npu_error& error) {
  std::unique_lock lock(completion.mutex);
  const auto is_done = [&] { return completion.is_done; };
  // No clock goes on for longer than that.
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;
  if (timeout_ns >= kLongest) {
    completion.changed.wait(lock, is_done);
  } else if (!completion.changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_done)) {
    return NPU_DEADLINE;
  }
  error = completion.error;
  return completion.status;
}

void enqueue(const npu_enqueue& where, npu_event** event,
             std::function<void(cl_command_queue)> work) {
  std::vector<std::shared_ptr<Completion>> waits;
  for (std::uint64_t i = 0; i < where.wait_count; ++i) {
    require(where.wait[i] != nullptr, "an event is null");
    waits.push_back(where.wait[i]->completion);
  }
  auto made = std::make_unique<npu_event>();
  made->completion = std::make_shared<Completion>();
  npu_queue& queue = *where.queue;
  auto item = [&queue, waits = std::move(waits), completion = made->completion,
               work = std::move(work)] {
    npu_error error = empty_error();
    npu_status status = NPU_OK;
    for (const auto& wait : waits) {
      status = await(*wait, NPU_FOREVER, error);
      if (status != NPU_OK) break;
    }
    if (status == NPU_OK) status = guarded(&error, [&] { work(queue.queue.get()); });
    completion->finish(status, error);
  };
  {
    const std::lock_guard lock(queue.mutex);
    queue.work.emplace_back(std::move(item));
    ++queue.pending;
  }
  queue.changed.notify_all();
  *event = made.release();
}

void check_enqueue(const npu_enqueue* where, npu_event* const* event) {
  require(where != nullptr && NPU_HAS(where, wait_count) && event != nullptr,
          "an argument is null");
  require(where->queue != nullptr, "the queue is null");
  require(where->wait != nullptr || where->wait_count == 0, "wait is null");
}

npu_status submit_transfer(npu_buffer* buffer, const npu_transfer* transfer, bool writes,
                           const npu_enqueue* where, npu_event** event, npu_error* error) {
  return guarded(error, [&] {
    check_enqueue(where, event);
    check_transfer(buffer, transfer);
    require(buffer->device == where->queue->device, "the queue is another device's");
    enqueue(*where, event, [buffer, writes, piece = *transfer](cl_command_queue queue) {
      transfer_on(*buffer, piece, writes, queue);
    });
  });
}

}  // namespace

npu_status queue_open(npu_device* device, const npu_queue_args* /*args*/, npu_queue** queue,
                      npu_error* error) {
  return guarded(error, [&] {
    require_given(device, queue);
    auto made = std::make_unique<npu_queue>();
    made->device = device;
    made->queue = device->make_queue();
    start_thread(*made);
    *queue = made.release();
  });
}

void queue_close(npu_queue* queue) {
  if (queue == nullptr) return;
  {
    const std::lock_guard lock(queue->mutex);
    queue->is_closing = true;
  }
  queue->changed.notify_all();
  queue->thread.join();
  delete queue;
}

// Work starts by itself.
npu_status queue_flush(npu_queue* queue, npu_error* error) {
  return guarded(error, [&] { require(queue != nullptr, "the queue is null"); });
}

npu_status queue_finish(npu_queue* queue, npu_error* error) {
  return guarded(error, [&] {
    require(queue != nullptr, "the queue is null");
    std::unique_lock lock(queue->mutex);
    queue->changed.wait(lock, [&] { return queue->pending == 0; });
  });
}

npu_status submit(npu_program* program, const npu_run_args* args, const npu_enqueue* where,
                  npu_event** event, npu_error* error) {
  return guarded(error, [&] {
    check_enqueue(where, event);
    require(program != nullptr, "program is null");
    require(args != nullptr && NPU_HAS(args, output_count), "the arguments are null");
    check_run(*program, *args);
    require(program->model->device == where->queue->device, "the queue is another device's");
    std::vector<npu_buffer*> inputs(args->inputs, args->inputs + args->input_count);
    std::vector<npu_buffer*> outputs(args->outputs, args->outputs + args->output_count);
    npu_profile* profile = NPU_HAS(args, profile) ? args->profile : nullptr;
    enqueue(*where, event,
            [program, inputs = std::move(inputs), outputs = std::move(outputs),
             profile](cl_command_queue queue) {
              npu_run_args run{};
              run.struct_size = sizeof run;
              run.inputs = inputs.data();
              run.input_count = inputs.size();
              run.outputs = outputs.data();
              run.output_count = outputs.size();
              run.profile = profile;
              run_on(*program, run, queue);
            });
  });
}

npu_status submit_write(npu_buffer* buffer, const npu_transfer* transfer, const npu_enqueue* where,
                        npu_event** event, npu_error* error) {
  return submit_transfer(buffer, transfer, true, where, event, error);
}

npu_status submit_read(npu_buffer* buffer, const npu_transfer* transfer, const npu_enqueue* where,
                       npu_event** event, npu_error* error) {
  return submit_transfer(buffer, transfer, false, where, event, error);
}

npu_status event_wait(npu_event* event, std::uint64_t timeout_ns, npu_error* error) {
  npu_error found = empty_error();
  npu_status status = NPU_OK;
  const npu_status checked = guarded(error, [&] {
    require(event != nullptr, "the event is null");
    status = await(*event->completion, timeout_ns, found);
    if (status == NPU_DEADLINE && found.text[0] == '\0') {
      throw StatusError{NPU_DEADLINE, "the work is not done yet"};
    }
  });
  if (checked != NPU_OK) return checked;
  if (status != NPU_OK && error != nullptr) fill(error, found);
  return status;
}

void event_free(npu_event* event) { delete event; }

npu_status event_on_done(npu_event* event, npu_done callback, void* context, npu_error* error) {
  bool is_done = false;
  npu_status ended = NPU_OK;
  const npu_status status = guarded(error, [&] {
    require_given(event, callback);
    Completion& completion = *event->completion;
    const std::lock_guard lock(completion.mutex);
    require(completion.callback == nullptr, "the event has a callback already");
    completion.callback = callback;
    completion.context = context;
    is_done = completion.is_done;
    ended = completion.status;
  });
  if (is_done) callback(context, ended);
  return status;
}

npu_status buffer_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                       npu_event** event, npu_error* error) {
  return guarded(error, [&] {
    check_copy(source, destination);
    if (where == nullptr && event == nullptr) {
      return copy_on(*source, *destination, destination->device->queue.get());
    }
    check_enqueue(where, event);
    require(destination->device == where->queue->device, "the queue is another device's");
    enqueue(*where, event, [source, destination](cl_command_queue queue) {
      copy_on(*source, *destination, queue);
    });
  });
}

}  // namespace npu::opencl
