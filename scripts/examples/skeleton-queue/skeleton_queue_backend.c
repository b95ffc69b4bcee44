/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton with queues and events, feature "queue", and copies on the device, feature "copy".
   Everything that blocks is the skeleton's own, which this file includes; here is what a device
   that works beside the host needs in addition. Its two devices are threads: each queue has one,
   which does the queue's work in order. The host never sees their memory.

   Three files beside this one have what else is optional: skeleton_entries.h several programs of
   one model, states and scratch memory, skeleton_layouts.h values that lie as the device likes,
   skeleton_memory.h buffers, and how much is in use.

   Options of device_open, for tests of hosts:

     delay_us    how long a run takes at least; 0 if it is missing
     copy_us     how long a write, read or copy of a queue takes at least
     simulated   1: work takes no time, but is dated as if it did: it begins when the queue's work
                 before it, what it waits for, and what the host has waited for have ended. The
                 extension "skeleton.clock" says what time it is for the host
     fail_run    the number of the run of this device that fails, from 1; 0: none
     test        "fail": every run of a queue fails (feature "test.fail"); "lose": the first run
                 loses the device (feature "test.lose"); "", the default: none */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define npu_backend_entry skeleton_entry
#include "../skeleton/skeleton_backend.c"
#undef npu_backend_entry
#include "skeleton_entries.h"
#include "skeleton_layouts.h"
#ifndef QUEUE_ENTRY
#define QUEUE_ENTRY npu_backend_entry /* another file may wrap this one in the same way */
#endif

#define DEVICES 2u
#define MAX_QUEUES 8u
#define MAX_DELAY_US 60000000

/* The skeleton's device comes first, so that a pointer to one is a pointer to the other. */
typedef struct queue_device {
  npu_device base;
  int64_t delay_us;
  int64_t copy_us;
  int64_t fail_run;
  int64_t is_simulated;
  int fails_always;
  int loses;            /* in its first run */
  int is_lost;          /* VENDOR: what a reset or a lost link of your device leaves behind */
  pthread_mutex_t lock; /* of the counts, and of the marks of programs */
  pthread_cond_t cancelled;
  int64_t runs;
  uint32_t queues;
  uint64_t in_use; /* bytes of its memory */
  uint64_t peak;
} queue_device;

/* Held by the host until event_free, by its work until that is done, and by work that waits. */
struct npu_event {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t holders;
  int is_done;
  npu_status status;
  npu_error error; /* of work that failed */
  uint64_t end_ns; /* on the simulated clock */
  npu_done callback;
  void* context;
};

enum { WORK_RUN, WORK_WRITE, WORK_READ, WORK_COPY };

typedef struct work {
  struct work* next;
  int kind;
  npu_program* program;
  npu_run_args args; /* of a run, with its arrays in the next three */
  npu_buffer** buffers;
  npu_tap* taps;
  const npu_tap** tap_list;
  npu_buffer* source;      /* of a copy */
  npu_buffer* destination; /* of a copy; of a write and a read their buffer */
  npu_transfer transfer;
  npu_event** wait;
  uint64_t wait_count;
  uint64_t submitted_ns; /* on the simulated clock */
  npu_event* event;
} work;

struct npu_queue {
  queue_device* device;
  pthread_t thread; /* VENDOR: a stream or ring of your device, and its interrupt */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  work* first;
  work* last;
  uint64_t pending; /* work that is not done */
  uint64_t end_ns;  /* of its last work, on the simulated clock */
  int has_times;    /* its runs may be asked for them */
  int is_closing;
};

/* ---- Time ---- */

static struct timespec time_in(uint64_t ns) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += (time_t)(ns / 1000000000u);
  at.tv_nsec += (long)(ns % 1000000000u);
  if (at.tv_nsec >= 1000000000) {
    at.tv_nsec -= 1000000000;
    ++at.tv_sec;
  }
  return at;
}

static void pause_us(int64_t us) {
  struct timespec end;
  if (us <= 0) return;
  end = time_in((uint64_t)us * 1000u);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) continue;
}

static int make_condition(pthread_cond_t* condition) {
  pthread_condattr_t attributes;
  int is_made;
  if (pthread_condattr_init(&attributes) != 0) return 0;
  is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
            pthread_cond_init(condition, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return is_made;
}

/* The simulated clock of the host: when the latest of what it has waited for ended. Meant for a
   host that submits from one thread. */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t host_ns = 0;

static uint64_t clock_now(void) {
  uint64_t now;
  pthread_mutex_lock(&clock_lock);
  now = host_ns;
  pthread_mutex_unlock(&clock_lock);
  return now;
}

static void clock_reach(uint64_t ns) {
  pthread_mutex_lock(&clock_lock);
  if (host_ns < ns) host_ns = ns;
  pthread_mutex_unlock(&clock_lock);
}

typedef struct skeleton_clock {
  uint64_t struct_size;
  uint64_t (*now_ns)(void);
} skeleton_clock;

static const void* get_extension(const char* name) {
  static const skeleton_clock clock = {sizeof clock, clock_now};
  return name != NULL && strcmp(name, "skeleton.clock") == 0 ? &clock : NULL;
}

/* ---- Devices ---- */

static npu_status queue_backend_info(npu_backend_info* info, npu_error* error) {
  npu_backend_info filled;
  memset(&filled, 0, sizeof filled);
  filled.struct_size = sizeof filled;
  backend_info(&filled, error);
  filled.name = "skeleton-queue";
  filled.option_keys =
      "{\"delay_us\": {\"type\": \"integer\", \"default\": 0, \"text\": \"time of a run\"},"
      " \"copy_us\": {\"type\": \"integer\", \"default\": 0, \"text\": \"time of a transfer\"},"
      " \"fail_run\": {\"type\": \"integer\", \"default\": 0, \"text\": \"the run that fails\"},"
      " \"simulated\": {\"type\": \"integer\", \"default\": 0, \"text\": \"dates in place of "
      "times\"},"
      " \"test\": {\"type\": \"string\", \"default\": \"\", \"text\": \"fail or lose\"}}";
  give(info, info->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

static npu_status queue_device_info(uint64_t index, npu_device_info* info, npu_error* error) {
  static const char* const ids[DEVICES] = {"skeleton-queue:0", "skeleton-queue:1"};
  static const npu_memory_info memory = {
      sizeof memory, "main", NPU_MEMORY_DEVICE, 0, 0, 0, 0, 0, 0};
  static const npu_memory_info pinned = {sizeof pinned,
                                         "pinned",
                                         NPU_MEMORY_HOST_PINNED,
                                         NPU_HOST_MAPPABLE | NPU_HOST_COHERENT,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0};
  static const npu_memory_info* const memories[] = {&memory, &pinned};
  npu_device_info filled;
  if (index >= DEVICES) return fail(error, NPU_END, NULL, "there are %u devices", DEVICES);
  memset(&filled, 0, sizeof filled);
  filled.struct_size = sizeof filled;
  device_info(0, &filled, error);
  filled.id = ids[index];
  filled.name = "skeleton device with queues";
  filled.fingerprint = "skeleton-queue 1.0 " ARCH;
  filled.memories = memories;
  filled.memory_count = 2;
  filled.known |= NPU_KNOWN_IN_FLIGHT | NPU_KNOWN_QUEUES;
  filled.max_programs_in_flight = MAX_QUEUES;
  filled.max_queues = MAX_QUEUES;
  give(info, info->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

static int read_number(const npu_json* options, const char* key, int64_t* number) {
  const npu_json* value = npu_json_member(options, key);
  if (value == NULL) return 1;
  if (value->kind != NPU_JSON_INTEGER || value->as.integer < 0 ||
      value->as.integer > MAX_DELAY_US) {
    return 0;
  }
  *number = value->as.integer;
  return 1;
}

static npu_status read_options(const char* text, queue_device* device, npu_error* error) {
  npu_ir_error fault;
  npu_json* options;
  const npu_json* test;
  const char* asked;
  int is_good;
  const npu_status status = check_options(text, error);
  if (status != NPU_OK || text == NULL) return status;
  options = npu_json_read(text, strlen(text), &fault);
  if (options == NULL) return fail(error, NPU_INVALID, NULL, "options: %s", fault.text);
  test = npu_json_member(options, "test");
  asked = test == NULL ? "" : test->kind == NPU_JSON_STRING ? test->as.text : "none";
  device->fails_always = strcmp(asked, "fail") == 0;
  device->loses = strcmp(asked, "lose") == 0;
  is_good = device->fails_always || device->loses || *asked == '\0';
  is_good = is_good && read_number(options, "delay_us", &device->delay_us) &&
            read_number(options, "copy_us", &device->copy_us) &&
            read_number(options, "fail_run", &device->fail_run) &&
            read_number(options, "simulated", &device->is_simulated);
  npu_json_free(options);
  if (is_good) return NPU_OK;
  return fail(error, NPU_INVALID, NULL,
              "options: expected integers from 0 to %d in delay_us, copy_us, fail_run and "
              "simulated, and 'fail', 'lose' or nothing in test",
              MAX_DELAY_US);
}

static npu_status lost(npu_error* error) {
  return fail(error, NPU_DEVICE_LOST, NULL, "the device does not answer");
}

static npu_status device_status(npu_device* device, npu_error* error) {
  queue_device* opened = (queue_device*)device;
  int is_lost = 0;
  pthread_mutex_lock(&opened->lock);
  is_lost = opened->is_lost;
  pthread_mutex_unlock(&opened->lock);
  return is_lost ? lost(error) : NPU_OK;
}

static npu_status queue_device_open(const npu_open_args* args, npu_device** device,
                                    npu_error* error) {
  queue_device* opened;
  npu_status status;
  if ((args->flags & NPU_OPEN_COMPILE_ONLY) != 0) {
    /* Feature "offline": compile needs nothing of a device, so it is the same without one. */
    if (args->device_id == NULL || strcmp(args->device_id, ARCH) != 0) {
      return fail(error, NPU_INVALID, NULL, "there is no arch '%s'",
                  args->device_id != NULL ? args->device_id : "");
    }
  } else if (args->device_id != NULL && strcmp(args->device_id, "skeleton-queue:0") != 0 &&
             strcmp(args->device_id, "skeleton-queue:1") != 0) {
    return fail(error, NPU_INVALID, NULL, "there is no device '%s'", args->device_id);
  }
  opened = (queue_device*)allocate(sizeof *opened);
  if (opened == NULL) return out_of_memory(error, sizeof *opened);
  status = read_options(args->options, opened, error);
  if (status == NPU_OK && pthread_mutex_init(&opened->lock, NULL) != 0) {
    status = out_of_memory(error, sizeof *opened);
  } else if (status == NPU_OK && !make_condition(&opened->cancelled)) {
    pthread_mutex_destroy(&opened->lock);
    status = out_of_memory(error, sizeof *opened);
  }
  if (status != NPU_OK) {
    free(opened);
    return status;
  }
  opened->base.is_open = 1;
  opened->base.opened_ns = host_now();
  *device = &opened->base;
  return NPU_OK;
}

static void queue_device_close(npu_device* device) {
  queue_device* closed = (queue_device*)device;
  if (closed == NULL) return;
  pthread_cond_destroy(&closed->cancelled);
  pthread_mutex_destroy(&closed->lock);
  free(closed);
}

/* ---- Events ---- */

static void event_release(npu_event* event) {
  uint32_t holders;
  pthread_mutex_lock(&event->lock);
  holders = --event->holders;
  pthread_mutex_unlock(&event->lock);
  if (holders != 0) return;
  pthread_cond_destroy(&event->changed);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

static void event_free(npu_event* event) {
  if (event != NULL) event_release(event);
}

/* For the host and for the work. */
static npu_event* make_event(void) {
  npu_event* event = (npu_event*)allocate(sizeof *event);
  if (event == NULL) return NULL;
  event->holders = 2;
  if (pthread_mutex_init(&event->lock, NULL) == 0) {
    if (make_condition(&event->changed)) return event;
    pthread_mutex_destroy(&event->lock);
  }
  free(event);
  return NULL;
}

/* Whoever waits; the host does by event_wait. */
static npu_status wait_for(npu_event* event, uint64_t timeout_ns, uint64_t* end_ns,
                           npu_error* error) {
  npu_status status = NPU_DEADLINE;
  npu_error failed;
  /* No clock goes on for longer than that. */
  const int is_bounded = timeout_ns < (uint64_t)INT64_MAX;
  const struct timespec end = time_in(is_bounded ? timeout_ns : 0);
  pthread_mutex_lock(&event->lock);
  while (!event->is_done) {
    if (!is_bounded) {
      pthread_cond_wait(&event->changed, &event->lock);
    } else if (timeout_ns == 0 ||
               pthread_cond_timedwait(&event->changed, &event->lock, &end) != 0) {
      break;
    }
  }
  if (event->is_done) {
    status = event->status;
    failed = event->error;
    *end_ns = event->end_ns;
  }
  pthread_mutex_unlock(&event->lock);
  if (status == NPU_DEADLINE) return fail(error, status, NULL, "the work is not done yet");
  if (status != NPU_OK && error != NULL) give(error, error->struct_size, &failed, sizeof failed);
  return status;
}

static npu_status event_wait(npu_event* event, uint64_t timeout_ns, npu_error* error) {
  uint64_t end_ns = 0;
  const npu_status status = wait_for(event, timeout_ns, &end_ns, error);
  clock_reach(end_ns);
  return status;
}

static npu_status event_on_done(npu_event* event, npu_done callback, void* context,
                                npu_error* error) {
  int is_first;
  int is_done;
  pthread_mutex_lock(&event->lock);
  is_first = event->callback == NULL;
  is_done = event->is_done;
  if (is_first) {
    event->callback = callback;
    event->context = context;
  }
  pthread_mutex_unlock(&event->lock);
  if (!is_first) return fail(error, NPU_INVALID, NULL, "the event has a callback already");
  if (is_done) callback(context, event->status);
  return NPU_OK;
}

/* VENDOR: what your interrupt handler does */
static void complete(npu_event* event, npu_status status, uint64_t end_ns, const npu_error* error) {
  npu_done callback;
  pthread_mutex_lock(&event->lock);
  event->is_done = 1;
  event->status = status;
  event->end_ns = end_ns;
  event->error = *error;
  callback = event->callback;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
  if (callback != NULL) callback(event->context, status);
  event_release(event);
}

/* ---- Work ---- */

static void free_work(work* item) {
  uint64_t i;
  for (i = 0; i < item->wait_count; ++i) event_release(item->wait[i]);
  free(item->wait);
  free(item->buffers);
  free(item->taps);
  free((void*)item->tap_list);
  free(item);
}

/* Work that will not be done. */
static void drop_work(work* item) {
  if (item->event != NULL) {
    event_release(item->event);
    event_release(item->event);
  }
  free_work(item);
}

/* From when it is submitted until it is done, a run can be cancelled. */
static void mark_run(npu_program* program, int is_running) {
  queue_device* device = (queue_device*)program->model->device;
  pthread_mutex_lock(&device->lock);
  program->is_running = is_running;
  program->is_cancelled = 0;
  pthread_mutex_unlock(&device->lock);
}

/* VENDOR: tell the device to drop what it does */
static void program_cancel(npu_program* program) {
  queue_device* device;
  if (program == NULL) return;
  device = (queue_device*)program->model->device;
  pthread_mutex_lock(&device->lock);
  program->is_cancelled = program->is_running;
  pthread_cond_broadcast(&device->cancelled);
  pthread_mutex_unlock(&device->lock);
}

static int is_before(const struct timespec* a, const struct timespec* b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Waits as long as a run takes, or until it is cancelled, or late. */
static npu_status pass_time(npu_program* program, uint64_t deadline_ns, npu_error* error) {
  queue_device* device = (queue_device*)program->model->device;
  struct timespec end = time_in((uint64_t)device->delay_us * 1000u);
  struct timespec deadline;
  int is_cancelled;
  int is_late;
  deadline.tv_sec = (time_t)(deadline_ns / 1000000000u);
  deadline.tv_nsec = (long)(deadline_ns % 1000000000u);
  is_late = deadline_ns != 0 && !device->is_simulated && is_before(&deadline, &end);
  if (is_late) end = deadline;
  pthread_mutex_lock(&device->lock);
  while (!program->is_cancelled && !device->is_simulated && (device->delay_us > 0 || is_late) &&
         pthread_cond_timedwait(&device->cancelled, &device->lock, &end) == 0) {
    continue;
  }
  is_cancelled = program->is_cancelled;
  pthread_mutex_unlock(&device->lock);
  if (is_cancelled) return fail(error, NPU_CANCELLED, NULL, "the run was cancelled");
  if (is_late) return fail(error, NPU_DEADLINE, NULL, "the deadline of the run is over");
  return NPU_OK;
}

/* A run takes its time, and fails if that is asked for. */
static npu_status timed_run(npu_program* program, const npu_run_args* args, int is_queued,
                            npu_error* error) {
  int is_lost = 0;
  queue_device* device = (queue_device*)program->model->device;
  int64_t number;
  npu_status status;
  pthread_mutex_lock(&device->lock);
  number = ++device->runs;
  if (device->loses) device->is_lost = 1;
  is_lost = device->is_lost;
  pthread_mutex_unlock(&device->lock);
  if (is_lost) return lost(error);
  status = pass_time(program, args->deadline_ns, error);
  if (status != NPU_OK) return status;
  if (number == device->fail_run || (is_queued && device->fails_always)) {
    return fail(error, NPU_FAILED, NULL, "run %ld fails as asked", (long)number);
  }
  return layout_run(program, args, error);
}

/* On the simulated clock; otherwise nobody asks. */
static uint64_t took_ns(const queue_device* device, int kind) {
  const int64_t us = kind == WORK_RUN ? device->delay_us : device->copy_us;
  return device->is_simulated ? (uint64_t)us * 1000u : 0;
}

static npu_status blocking_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  npu_status status = check_layout_run(program, args, error);
  if (status != NPU_OK) return status;
  mark_run(program, 1);
  status = timed_run(program, args, 0, error);
  mark_run(program, 0);
  clock_reach(clock_now() + took_ns((const queue_device*)program->model->device, WORK_RUN));
  return status;
}

static npu_status perform(const npu_queue* queue, work* item, npu_error* error) {
  if (item->kind == WORK_RUN) return timed_run(item->program, &item->args, 1, error);
  if (!queue->device->is_simulated) pause_us(queue->device->copy_us);
  if (item->kind == WORK_WRITE) return layout_write(item->destination, &item->transfer, error);
  if (item->kind == WORK_READ) return layout_read(item->destination, &item->transfer, error);
  copy_content(item->source, item->destination);
  return NPU_OK;
}

static void do_work(npu_queue* queue, work* item) {
  npu_error error;
  npu_status status = NPU_OK;
  uint64_t begin_ns = larger(item->submitted_ns, queue->end_ns);
  uint64_t i;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  for (i = 0; i < item->wait_count && status == NPU_OK; ++i) {
    uint64_t end_ns = 0;
    status = wait_for(item->wait[i], NPU_FOREVER, &end_ns, &error);
    begin_ns = larger(begin_ns, end_ns);
  }
  if (status == NPU_OK) status = perform(queue, item, &error);
  if (item->kind == WORK_RUN) mark_run(item->program, 0);
  queue->end_ns = begin_ns + took_ns(queue->device, item->kind); /* this thread alone has it */
  complete(item->event, status, queue->end_ns, &error);
  free_work(item);
}

/* The thread of a queue. */
static void* serve(void* context) {
  npu_queue* queue = (npu_queue*)context;
  for (;;) {
    work* item;
    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->is_closing) {
      pthread_cond_wait(&queue->changed, &queue->lock);
    }
    item = queue->first;
    if (item != NULL) queue->first = item->next;
    pthread_mutex_unlock(&queue->lock);
    if (item == NULL) return NULL;
    do_work(queue, item);
    pthread_mutex_lock(&queue->lock);
    if (--queue->pending == 0) pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
  }
}

/* ---- Queues ---- */

static int start_thread(npu_queue* queue) {
  sigset_t all;
  sigset_t before;
  int is_started;
  sigfillset(&all); /* a thread of a backend takes no signal of the program */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  is_started = pthread_create(&queue->thread, NULL, serve, queue) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_started;
}

static int start_queue(npu_queue* queue) {
  if (pthread_mutex_init(&queue->lock, NULL) != 0) return 0;
  if (make_condition(&queue->changed)) {
    if (start_thread(queue)) return 1;
    pthread_cond_destroy(&queue->changed);
  }
  pthread_mutex_destroy(&queue->lock);
  return 0;
}

/* 0 if the device has as many as it can have. */
static int add_queue(queue_device* device) {
  int is_added;
  pthread_mutex_lock(&device->lock);
  is_added = device->queues < MAX_QUEUES;
  if (is_added) ++device->queues;
  pthread_mutex_unlock(&device->lock);
  return is_added;
}

static void remove_queue(queue_device* device) {
  pthread_mutex_lock(&device->lock);
  --device->queues;
  pthread_mutex_unlock(&device->lock);
}

static npu_status queue_open(npu_device* device, const npu_queue_args* args, npu_queue** queue,
                             npu_error* error) {
  queue_device* opened = (queue_device*)device;
  npu_queue* made;
  if (!add_queue(opened)) {
    return fail(error, NPU_INVALID, NULL, "the device has %u queues at once", MAX_QUEUES);
  }
  made = (npu_queue*)allocate(sizeof *made);
  if (made == NULL) {
    remove_queue(opened);
    return out_of_memory(error, sizeof *made);
  }
  made->device = opened;
  made->has_times = (args->flags & NPU_QUEUE_PROFILE) != 0; /* VENDOR: the priority, too */
  if (!start_queue(made)) {
    remove_queue(opened);
    free(made);
    return fail(error, NPU_FAILED, NULL, "no thread for a queue");
  }
  *queue = made;
  return NPU_OK;
}

static npu_status queue_flush(npu_queue* queue, npu_error* error) {
  (void)queue; /* submit has started everything. VENDOR: ring the bell */
  (void)error;
  return NPU_OK;
}

static npu_status queue_finish(npu_queue* queue, npu_error* error) {
  (void)error;
  pthread_mutex_lock(&queue->lock);
  while (queue->pending != 0) pthread_cond_wait(&queue->changed, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  return NPU_OK;
}

static void queue_close(npu_queue* queue) {
  if (queue == NULL) return;
  queue_finish(queue, NULL);
  pthread_mutex_lock(&queue->lock);
  queue->is_closing = 1;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  remove_queue(queue->device);
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->lock);
  free(queue);
}

/* ---- Submitting ---- */

/* Work that holds what it waits for; null if there is no memory. */
static work* make_work(int kind, const npu_enqueue* where) {
  work* item = (work*)allocate(sizeof *item);
  uint64_t i;
  if (item == NULL) return NULL;
  item->kind = kind;
  item->wait = (npu_event**)allocate(where->wait_count * sizeof *item->wait);
  item->event = make_event();
  if (item->wait == NULL || item->event == NULL) {
    drop_work(item);
    return NULL;
  }
  for (i = 0; i < where->wait_count; ++i) {
    item->wait[i] = where->wait[i];
    pthread_mutex_lock(&item->wait[i]->lock);
    ++item->wait[i]->holders;
    pthread_mutex_unlock(&item->wait[i]->lock);
  }
  item->wait_count = where->wait_count;
  return item;
}

static npu_status check_enqueue(const npu_enqueue* where, npu_event** event, npu_error* error) {
  uint64_t i;
  if (where == NULL || where->queue == NULL || event == NULL ||
      (where->wait_count != 0 && where->wait == NULL)) {
    return fail(error, NPU_INVALID, NULL, "work needs a queue and a place for its event");
  }
  for (i = 0; i < where->wait_count; ++i) {
    if (where->wait[i] == NULL) return fail(error, NPU_INVALID, NULL, "an event is null");
  }
  return NPU_OK;
}

static void enqueue(npu_queue* queue, work* item, npu_event** event) {
  *event = item->event; /* before the work can be done, and freed */
  item->submitted_ns = clock_now();
  pthread_mutex_lock(&queue->lock);
  if (queue->first == NULL) {
    queue->first = item;
  } else {
    queue->last->next = item;
  }
  queue->last = item;
  ++queue->pending;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
}

/* A run of a queue needs its arrays for longer than the call takes; names are those of the model.
 */
static int keep_arrays(work* item, const npu_program* program, const npu_run_args* args) {
  const npu_ir* ir = program->model->ir;
  const uint64_t taps = tap_count(args);
  uint64_t i;
  item->buffers =
      (npu_buffer**)allocate((args->input_count + args->output_count) * sizeof *item->buffers);
  item->taps = (npu_tap*)allocate(taps * sizeof *item->taps);
  item->tap_list = (const npu_tap**)allocate(taps * sizeof *item->tap_list);
  if (item->buffers == NULL || item->taps == NULL || item->tap_list == NULL) return 0;
  for (i = 0; i < args->input_count; ++i) item->buffers[i] = args->inputs[i];
  for (i = 0; i < args->output_count; ++i) {
    item->buffers[args->input_count + i] = args->outputs[i];
  }
  for (i = 0; i < taps; ++i) {
    item->taps[i].struct_size = sizeof item->taps[i];
    item->taps[i].name = ir->tensors[find_tap(ir, args->taps[i]->name)].name;
    item->taps[i].buffer = args->taps[i]->buffer;
    item->tap_list[i] = &item->taps[i];
  }
  item->args.struct_size = sizeof item->args;
  item->args.inputs = item->buffers;
  item->args.input_count = args->input_count;
  item->args.outputs = item->buffers + args->input_count;
  item->args.output_count = args->output_count;
  item->args.deadline_ns = args->deadline_ns;
  item->args.taps = item->tap_list;
  item->args.tap_count = taps;
  return 1;
}

static npu_status submit(npu_program* program, const npu_run_args* args, const npu_enqueue* where,
                         npu_event** event, npu_error* error) {
  npu_status status = check_enqueue(where, event, error);
  work* item;
  if (status == NPU_OK) status = check_layout_run(program, args, error);
  if (status != NPU_OK) return status;
  item = make_work(WORK_RUN, where);
  if (item != NULL && !keep_arrays(item, program, args)) {
    drop_work(item);
    item = NULL;
  }
  if (item == NULL) return out_of_memory(error, sizeof *item);
  item->program = program;
  /* What is simulated takes no time that could be measured. */
  if (where->queue->has_times && !where->queue->device->is_simulated) {
    item->args.profile = profile_of(program, args);
  }
  mark_run(program, 1);
  enqueue(where->queue, item, event);
  return NPU_OK;
}

static npu_status submit_transfer(int kind, npu_buffer* buffer, const npu_transfer* transfer,
                                  const npu_enqueue* where, npu_event** event, npu_error* error) {
  npu_status status = check_enqueue(where, event, error);
  work* item;
  if (status == NPU_OK) status = check_transfer(buffer, transfer, error);
  if (status != NPU_OK) return status;
  item = make_work(kind, where);
  if (item == NULL) return out_of_memory(error, sizeof *item);
  item->destination = buffer;
  item->transfer.struct_size = sizeof item->transfer;
  item->transfer.offset = transfer->offset;
  item->transfer.bytes = transfer->bytes;
  item->transfer.data = transfer->data;
  enqueue(where->queue, item, event);
  return NPU_OK;
}

static npu_status submit_write(npu_buffer* buffer, const npu_transfer* transfer,
                               const npu_enqueue* where, npu_event** event, npu_error* error) {
  return submit_transfer(WORK_WRITE, buffer, transfer, where, event, error);
}

static npu_status submit_read(npu_buffer* buffer, const npu_transfer* transfer,
                              const npu_enqueue* where, npu_event** event, npu_error* error) {
  return submit_transfer(WORK_READ, buffer, transfer, where, event, error);
}

static npu_status buffer_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                              npu_event** event, npu_error* error) {
  npu_status status;
  work* item;
  if (source == NULL || destination == NULL || source->rank != destination->rank ||
      memcmp(source->shape, destination->shape, sizeof source->shape) != 0) {
    return fail(error, NPU_INVALID, NULL, "a copy is between buffers of one shape");
  }
  if (where == NULL) {
    copy_content(source, destination);
    return NPU_OK;
  }
  status = check_enqueue(where, event, error);
  if (status != NPU_OK) return status;
  item = make_work(WORK_COPY, where);
  if (item == NULL) return out_of_memory(error, sizeof *item);
  item->source = source;
  item->destination = destination;
  enqueue(where->queue, item, event);
  return NPU_OK;
}

#include "skeleton_memory.h"

/* ---- The table ---- */

#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const npu_backend*
QUEUE_ENTRY(const npu_host* host, npu_error* error) {
  static const char* const features[] = {"queue",   "copy",      "check",     "taps",
                                         "entries", "alias",     "scratch",   "layouts",
                                         "offline", "test.fail", "test.lose", NULL};
  static npu_backend backend;
  const npu_backend* blocking = skeleton_entry(host, error);
  if (blocking == NULL) return NULL;
  backend = *blocking;
  backend.features = features;
  backend.backend_info = queue_backend_info;
  backend.device_info = queue_device_info;
  backend.device_open = queue_device_open;
  backend.device_close = queue_device_close;
  backend.device_status = device_status;
  backend.run = blocking_run;
  backend.queue_open = queue_open;
  backend.queue_close = queue_close;
  backend.queue_flush = queue_flush;
  backend.queue_finish = queue_finish;
  backend.submit = submit;
  backend.submit_write = submit_write;
  backend.submit_read = submit_read;
  backend.event_wait = event_wait;
  backend.event_free = event_free;
  backend.event_on_done = event_on_done;
  backend.buffer_copy = buffer_copy;
  backend.program_cancel = program_cancel;
  backend.get_extension = get_extension;
  backend.check = layout_check;
  backend.compile = layout_compile;
  backend.blob_check = entries_check;
  backend.blob_report = entries_report;
  backend.blob_memory = entries_memory;
  backend.model_load = counted_load;
  backend.model_free = counted_model_free;
  backend.program_create = counted_program;
  backend.program_free = counted_program_free;
  backend.buffer_create = queue_buffer_create;
  backend.buffer_write = layout_write;
  backend.buffer_read = layout_read;
  backend.buffer_free = queue_buffer_free;
  backend.device_memory = counted_memory;
  backend.buffer_map = buffer_map;
  backend.buffer_unmap = buffer_unmap;
  return &backend;
}
