/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton with queues and one thing wrong, which CHECK_FAULT names: a conformance case has to
   find it. Runs take a millisecond, so that what is too early is seen. */
#define QUEUE_ENTRY queue_entry
#include "../../../scripts/examples/skeleton-queue/skeleton_queue_backend.c"

static const npu_backend* good = NULL;

static int has_fault(const char* name) {
  const char* fault = getenv("CHECK_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}

/* No device can be used here. */
static npu_status absent_device_info(uint64_t index, npu_device_info* info, npu_error* error) {
  const npu_status status = good->device_info(index, info, error);
  if (status != NPU_OK) return status;
  info->usable = 0;
  info->why_not = "the card is elsewhere";
  return NPU_OK;
}

static npu_status slow_device_open(const npu_open_args* args, npu_device** device,
                                   npu_error* error) {
  npu_open_args any = *args;
  npu_status status = NPU_OK;
  if (has_fault("any-arch")) any.flags = 0;
  if (has_fault("any-arch") && (args->flags & NPU_OPEN_COMPILE_ONLY) != 0) any.device_id = NULL;
  status = good->device_open(&any, device, error);
  if (status == NPU_OK) ((queue_device*)*device)->delay_us = 1000;
  /* A slow host has to look before the work is done. */
  if (status == NPU_OK && has_fault("late")) ((queue_device*)*device)->delay_us = 10000;
  return status;
}

/* Says that work is done which is not. */
static npu_status early_event_wait(npu_event* event, uint64_t timeout_ns, npu_error* error) {
  (void)timeout_ns;
  (void)good->event_wait(event, 0, error);
  return NPU_OK;
}

static npu_status late_event_wait(npu_event* event, uint64_t timeout_ns, npu_error* error) {
  (void)timeout_ns;
  return good->event_wait(event, NPU_FOREVER, error);
}

/* Loses the text of a failure. */
static npu_status silent_event_wait(npu_event* event, uint64_t timeout_ns, npu_error* error) {
  const npu_status status = good->event_wait(event, timeout_ns, error);
  if (status == NPU_FAILED) return fail(error, NPU_INTERNAL, NULL, "something failed");
  return status;
}

static npu_enqueue unordered(const npu_enqueue* where) {
  npu_enqueue changed = *where;
  changed.wait_count = 0;
  return changed;
}

static npu_status unordered_read(npu_buffer* buffer, const npu_transfer* transfer,
                                 const npu_enqueue* where, npu_event** event, npu_error* error) {
  const npu_enqueue changed = unordered(where);
  return good->submit_read(buffer, transfer, &changed, event, error);
}

static npu_status unordered_write(npu_buffer* buffer, const npu_transfer* transfer,
                                  const npu_enqueue* where, npu_event** event, npu_error* error) {
  const npu_enqueue changed = unordered(where);
  return good->submit_write(buffer, transfer, &changed, event, error);
}

/* Has one program in flight, whatever its info says. */
static npu_status lonely_submit(npu_program* program, const npu_run_args* args,
                                const npu_enqueue* where, npu_event** event, npu_error* error) {
  static npu_queue* last = NULL;
  uint64_t pending = 0;
  if (last != NULL && last != where->queue) {
    pthread_mutex_lock(&last->lock);
    pending = last->pending;
    pthread_mutex_unlock(&last->lock);
  }
  if (pending != 0) return fail(error, NPU_FAILED, NULL, "another program is in flight");
  last = where->queue;
  return good->submit(program, args, where, event, error);
}

/* Takes what it cannot run. */
static npu_status careless_submit(npu_program* program, const npu_run_args* args,
                                  const npu_enqueue* where, npu_event** event, npu_error* error) {
  if (args->input_count == 0) return NPU_OK;
  return good->submit(program, args, where, event, error);
}

/* Compares a size for equality. */
static npu_status strict_submit(npu_program* program, const npu_run_args* args,
                                const npu_enqueue* where, npu_event** event, npu_error* error) {
  if (where->struct_size != sizeof *where) {
    return fail(error, NPU_INVALID, NULL, "npu_enqueue has another size");
  }
  return good->submit(program, args, where, event, error);
}

static npu_status double_on_done(npu_event* event, npu_done callback, void* context,
                                 npu_error* error) {
  callback(context, NPU_OK);
  return good->event_on_done(event, callback, context, error);
}

static void hasty_queue_close(npu_queue* queue) {
  if (queue == NULL) return;
  pthread_mutex_lock(&queue->lock);
  while (queue->first != NULL) {
    work* dropped = queue->first;
    const npu_error none = {sizeof none, 0, 0, 0, 0, 0, 0, 0, 0, "", ""};
    queue->first = dropped->next;
    --queue->pending;
    complete(dropped->event, NPU_OK, 0, &none);
    free_work(dropped);
  }
  pthread_mutex_unlock(&queue->lock);
  good->queue_close(queue);
}

static npu_status half_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                            npu_event** event, npu_error* error) {
  const npu_status status = good->buffer_copy(source, destination, where, event, error);
  if (status == NPU_OK && where == NULL && destination->bytes >= 8) destination->data[1] = 77;
  return status;
}

static npu_status any_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                           npu_event** event, npu_error* error) {
  if (where == NULL && source->bytes != destination->bytes) return NPU_OK;
  return good->buffer_copy(source, destination, where, event, error);
}

/* Keeps in mind what was to be cancelled. */
static volatile int is_sticky = 0;

static void sticky_cancel(npu_program* program) {
  is_sticky = 1;
  good->program_cancel(program);
}

static npu_status sticky_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  if (is_sticky) return fail(error, NPU_CANCELLED, NULL, "the run was cancelled");
  return good->run(program, args, error);
}

/* Takes any deadline for one that is over. */
static npu_status hurried_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  npu_run_args changed = *args;
  if (changed.deadline_ns != 0) changed.deadline_ns = 1;
  return good->run(program, &changed, error);
}

/* Takes any program for the first one, and any scratch memory for none. */
static npu_status other_program(npu_model* model, const npu_program_args* args,
                                npu_program** program, npu_error* error) {
  npu_program_args changed = *args;
  if (has_fault("first-entry")) changed.entry = NULL;
  if (has_fault("only-entry") && ((entries_model*)(void*)model)->count == 1) changed.entry = NULL;
  if (has_fault("small-scratch")) changed.scratch = NULL;
  return good->program_create(model, &changed, program, error);
}

/* Begins with its output, also where that is an input. */
static npu_status eager_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  npu_buffer* output = args->output_count != 0 ? args->outputs[0] : NULL;
  if (output != NULL && output->bytes != 0) memset(output->data, 0, (size_t)output->bytes);
  return good->run(program, args, error);
}

/* Takes a pair that is none for nothing. */
static npu_status lax_compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  const npu_status status = good->compile(device, args, error);
  if (has_fault("refuses-layouts") && args->options != NULL &&
      strstr(args->options, REVERSED) != NULL) {
    return fail(error, NPU_UNSUPPORTED, NULL, "not in that layout");
  }
  if (status != NPU_INVALID || has_fault("refuses-layouts")) return status;
  return args->blob->write(args->blob->context, "blob", 4, error);
}

/* Has one copy of the weights for each entry. */
static npu_status double_memory(npu_device* device, const void* blob, uint64_t blob_size,
                                npu_memory_report* report, npu_error* error) {
  const npu_status status = good->blob_memory(device, blob, blob_size, report, error);
  if (status == NPU_OK && report->memory_count != 0) report->memories[0]->weights_bytes *= 2;
  return status;
}

/* Takes a fifth of a second to say what time it is, which is no fault. */
static npu_status slow_clock(npu_device* device, npu_clock_sample* sample, npu_error* error) {
  pause_us(200000);
  return good->clock_sample(device, sample, error);
}

/* Has them on the device twice, whatever it says of blobs. */
static npu_status double_use(npu_device* device, uint32_t memory, npu_memory_state* state,
                             npu_error* error) {
  const npu_status status = good->device_memory(device, memory, state, error);
  state->in_use_bytes *= 2;
  state->peak_bytes *= 2;
  return status;
}

/* Takes a buffer as it comes, whatever its layout. */
static npu_status any_layout_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const npu_status status = good->run(program, args, error);
  const npu_ir* ir = program->model->ir;
  uint64_t i;
  if (status != NPU_INVALID || check_run(program, args, NULL) != NPU_OK) return status;
  for (i = 0; i < args->input_count; ++i) {
    args->inputs[i]->is_reversed = is_reversed(ir, (uint32_t)i);
  }
  return good->run(program, args, error);
}

/* Forgets the order of what it copies. */
static npu_status plain_copy(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                             npu_event** event, npu_error* error) {
  const npu_status status = good->buffer_copy(source, destination, where, event, error);
  if (status == NPU_OK && where == NULL && destination->bytes != 0) {
    memmove(destination->data, source->data, (size_t)destination->bytes);
  }
  return status;
}

/* A device that is lost comes back by itself, and its models with it. */
static npu_status undying_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  queue_device* device = (queue_device*)program->model->device;
  const npu_status status = good->run(program, args, error);
  device->loses = device->is_lost = 0;
  return status;
}

__attribute__((visibility("default"))) const npu_backend* npu_backend_entry(const npu_host* host,
                                                                            npu_error* error) {
  static const char* const without_copy[] = {"queue", "test.fail", "test.lose", NULL};
  static npu_backend table;
  good = queue_entry(host, error);
  if (good == NULL) return NULL;
  table = *good;
  table.device_open = slow_device_open;
  if (has_fault("absent")) table.device_info = absent_device_info;
  if (has_fault("early")) table.event_wait = early_event_wait;
  if (has_fault("late")) table.event_wait = late_event_wait;
  if (has_fault("silent")) table.event_wait = silent_event_wait;
  if (has_fault("unordered")) table.submit_read = unordered_read;
  if (has_fault("forgets-failure")) table.submit_write = unordered_write;
  if (has_fault("lonely")) table.submit = lonely_submit;
  if (has_fault("careless")) table.submit = careless_submit;
  if (has_fault("equal-sizes")) table.submit = strict_submit;
  if (has_fault("twice")) table.event_on_done = double_on_done;
  if (has_fault("hasty")) table.queue_close = hasty_queue_close;
  if (has_fault("half-copy")) table.buffer_copy = half_copy;
  if (has_fault("any-copy")) table.buffer_copy = any_copy;
  if (has_fault("sticky")) {
    table.program_cancel = sticky_cancel;
    table.run = sticky_run;
  }
  if (has_fault("undying")) table.run = undying_run;
  if (has_fault("first-entry") || has_fault("only-entry") || has_fault("small-scratch")) {
    table.program_create = other_program;
  }
  if (has_fault("eager")) table.run = eager_run;
  if (has_fault("any-pair") || has_fault("refuses-layouts")) table.compile = lax_compile;
  if (has_fault("double-weights")) table.blob_memory = double_memory;
  if (has_fault("slow-clock")) table.clock_sample = slow_clock;
  if (has_fault("double-use")) table.device_memory = double_use;
  if (has_fault("any-layout")) table.run = any_layout_run;
  if (has_fault("plain-copy")) table.buffer_copy = plain_copy;
  if (has_fault("hurried")) table.run = hurried_run;
  if (has_fault("lacks-wait")) table.event_wait = NULL;
  if (has_fault("no-copy")) table.features = without_copy; /* which is none */
  return &table;
}
