/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton with one thing wrong, which CHECK_FAULT names: a conformance case has to find it. */
#define npu_backend_entry skeleton_entry
#include "../../../scripts/examples/skeleton/skeleton_backend.c"
#undef npu_backend_entry

#include <fcntl.h>
#include <fenv.h>
#include <stddef.h>
#include <unistd.h>

static const npu_backend* good = NULL;

static int has_fault(const char* name) {
  const char* fault = getenv("CHECK_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}

static npu_status bad_backend_info(npu_backend_info* info, npu_error* error) {
  const uint64_t room = info->struct_size;
  const npu_status status = good->backend_info(info, error);
  if (has_fault("writes-behind")) memset((char*)info + room, 0, 8);
  if (has_fault("other-name")) info->name = "somebody";
  return status;
}

static npu_status bad_device_info(uint64_t index, npu_device_info* info, npu_error* error) {
  static char id[32];
  const npu_status status = good->device_info(index, info, error);
  if (status != NPU_OK) return status;
  if (has_fault("no-fingerprint")) info->fingerprint = "";
  if (has_fault("unknown-number")) info->clock_hz = 1000;
  if (has_fault("other-id")) {
    snprintf(id, sizeof id, "skeleton:%ld", (long)getpid());
    info->id = id;
  }
  return status;
}

/* Names more dtypes than there are buffers of, or kernels for. */
static npu_status vain_device_info(uint64_t index, npu_device_info* info, npu_error* error) {
  static npu_dtype_info more = {sizeof more, NPU_FLOAT64, NPU_DTYPE_STORAGE, 0, 0};
  static const npu_dtype_info* dtypes[2] = {NULL, &more};
  const npu_status status = bad_device_info(index, info, error);
  if (status != NPU_OK || !NPU_HAS(info, dtype_count)) return status;
  if (has_fault("vain-arithmetic")) more.flags = NPU_DTYPE_ARITHMETIC;
  dtypes[0] = info->dtypes[0];
  info->dtypes = dtypes;
  info->dtype_count = 2;
  return NPU_OK;
}

static npu_status bad_device_open(const npu_open_args* args, npu_device** device,
                                  npu_error* error) {
  const npu_status status = good->device_open(args, device, error);
  if (has_fault("leaks-file") && open("/dev/null", O_RDONLY) < 0) return NPU_FAILED;
  if (has_fault("no-text") && status != NPU_OK && error != NULL) error->text[0] = '\0';
  if (has_fault("touches-result") && status != NPU_OK) *device = NULL;
  if (has_fault("rounds")) fesetround(FE_DOWNWARD);
  return status;
}

/* Takes an alpha for nothing. */
static npu_status compile_without_alpha(npu_device* device, const npu_compile_args* args,
                                        npu_error* error) {
  npu_compile_args changed = *args;
  npu_entry entry = *args->entries[0];
  const npu_entry* entries[1];
  char* text = malloc((size_t)entry.sub_ir_size + 1);
  char* at;
  npu_status status;
  if (text == NULL) return fail(error, NPU_MEMORY, NULL, "out of memory");
  memcpy(text, entry.sub_ir, (size_t)entry.sub_ir_size);
  text[entry.sub_ir_size] = '\0';
  for (at = strstr(text, "\"alpha\""); at != NULL; at = strstr(at, "\"alpha\"")) at[5] = 'b';
  entry.sub_ir = text;
  entries[0] = &entry;
  changed.entries = entries;
  status = good->compile(device, &changed, error);
  free(text);
  return status;
}

static npu_status bad_compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  static uint32_t count = 0;
  npu_compile_args changed = *args;
  npu_status status;
  if (has_fault("ignores-options")) changed.options = NULL;
  if (has_fault("never-stops") && args->progress != NULL) {
    args->progress(args->progress_context, 0, 1, "all of it");
  }
  status = good->compile(device, &changed, error);
  if (has_fault("any-alpha") && status == NPU_UNSUPPORTED) {
    status = compile_without_alpha(device, &changed, error);
  }
  if (has_fault("takes-all") && status == NPU_UNSUPPORTED) {
    return args->blob->write(args->blob->context, "blob", 4, error);
  }
  if (has_fault("vague") && status != NPU_OK) {
    return fail(error, status, NULL, "something is not as expected");
  }
  if (has_fault("unsupported") && status == NPU_INVALID) {
    return fail(error, NPU_UNSUPPORTED, NULL, "not supported");
  }
  if (has_fault("unlike-blobs") && status == NPU_OK) {
    ++count;
    return args->blob->write(args->blob->context, &count, sizeof count, error);
  }
  if (has_fault("blob-of-process") && status == NPU_OK) {
    const uint32_t process = (uint32_t)getpid();
    return args->blob->write(args->blob->context, &process, sizeof process, error);
  }
  return status;
}

static npu_status bad_model_load(npu_device* device, const npu_load_args* args,
                                 npu_model_info* info, npu_model** model, npu_error* error) {
  npu_load_args changed = *args;
  npu_status status;
  char* copy = NULL;
  if (has_fault("other-arch") && args->blob_size >= sizeof(blob_header)) {
    copy = malloc((size_t)args->blob_size);
    if (copy == NULL) return fail(error, NPU_MEMORY, NULL, "out of memory");
    memcpy(copy, args->blob, (size_t)args->blob_size);
    memcpy(copy + offsetof(blob_header, arch), kArch, sizeof kArch);
    changed.blob = copy;
  }
  if ((has_fault("unlike-blobs") || has_fault("blob-of-process")) && changed.blob_size > 4) {
    changed.blob_size -= 4;
  }
  status = good->model_load(device, &changed, info, model, error);
  free(copy);
  if (has_fault("crashes-on-blob") && status != NPU_OK) abort();
  if (has_fault("hangs-on-blob") && status != NPU_OK) sleep(60);
  if (has_fault("slow-on-blob") && status != NPU_OK) usleep(25000);
  if (has_fault("fails-on-blob") && status != NPU_OK) {
    return fail(error, NPU_FAILED, NULL, "the blob does not load");
  }
  return status;
}

static npu_status bad_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const uint64_t inputs = args->input_count;
  npu_run_args changed = *args;
  npu_status status;
  npu_buffer* output;
  if (has_fault("counts-nothing") && inputs == 0) return NPU_OK;
  status = good->run(program, &changed, error);
  if (has_fault("any-tap") && status == NPU_INVALID && args->tap_count != 0) {
    changed.tap_count = 0;
    status = good->run(program, &changed, error);
  }
  if (status != NPU_OK) return status;
  output = args->outputs[0];
  if (has_fault("wrong-values") && output->bytes > 16) output->data[3] += 1;
  if (has_fault("adds-up") && output->bytes > 16) {
    static float runs = 0;
    output->data[3] += runs++;
  }
  if (has_fault("late-taps") && args->tap_count != 0) {
    memcpy(args->taps[0]->buffer->data, output->data, (size_t)output->bytes);
  }
  if (has_fault("changes-input") && args->inputs[0]->bytes > 16) args->inputs[0]->data[2] = 77;
  if (has_fault("leaks")) {
    static void* volatile leaked;
    leaked = malloc(1 << 16);
    if (leaked != NULL) memset(leaked, 1, 1 << 16);
  }
  if (has_fault("prints")) puts("done");
  return status;
}

/* Looks at bytes alone. */
static npu_status bytes_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const npu_ir* ir = program->model->ir;
  const npu_status status = good->run(program, args, error);
  uint64_t i;
  if (status != NPU_INVALID || args->input_count != ir->input_count ||
      args->output_count != ir->output_count) {
    return status;
  }
  for (i = 0; i < args->input_count + args->output_count; ++i) {
    const int is_input = i < args->input_count;
    const uint64_t place = is_input ? i : i - args->input_count;
    const npu_ir_tensor* tensor = &ir->tensors[is_input ? place : ir->outputs[place]];
    npu_buffer* buffer = is_input ? args->inputs[place] : args->outputs[place];
    if (buffer == NULL || buffer->bytes != tensor->bytes) return status;
    buffer->rank = tensor->rank;
    memcpy(buffer->shape, tensor->shape, tensor->rank * sizeof *tensor->shape);
  }
  return good->run(program, args, error);
}

/* Measures what was not. */
static npu_status timed_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const npu_status status = good->run(program, args, error);
  npu_profile* profile = NPU_HAS(args, profile) ? args->profile : NULL;
  if (status != NPU_OK || profile == NULL || profile->node_count == 0) return status;
  if (has_fault("backwards")) {
    profile->nodes[0].begin = profile->nodes[0].end + 1;
  } else if (has_fault("outside")) {
    profile->nodes[0].begin = profile->whole.end + 1;
    profile->nodes[0].end = profile->whole.end + 2;
  } else {
    profile->whole.begin += 1000000000u; /* "late-times": a second after the run */
    profile->whole.end += 1000000000u;
    profile->nodes[0].begin += 1000000000u;
    profile->nodes[0].end += 1000000000u;
  }
  return status;
}

/* Another clock of the host than the one that is asked for. */
static npu_status other_clock(npu_device* device, npu_clock_sample* sample, npu_error* error) {
  struct timespec at;
  const npu_status status = good->clock_sample(device, sample, error);
  clock_gettime(CLOCK_REALTIME, &at);
  sample->host_ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
  return status;
}

static npu_status uneven_clock(npu_device* device, npu_clock_sample* sample, npu_error* error) {
  static uint64_t jump = 0;
  const npu_status status = good->clock_sample(device, sample, error);
  jump += 100000000;
  sample->device_ns += jump * jump / 100000000;
  return status;
}

/* Compares a size for equality. */
static npu_status strict_buffer_create(npu_device* device, const npu_buffer_desc* desc,
                                       npu_buffer** buffer, npu_error* error) {
  if (desc->struct_size != sizeof *desc) {
    return fail(error, NPU_INVALID, NULL, "npu_buffer_desc has another size");
  }
  return good->buffer_create(device, desc, buffer, error);
}

/* Fills what it has not been given. */
static npu_status wide_blob_check(npu_device* device, const void* blob, uint64_t blob_size,
                                  npu_blob_verdict* verdict, npu_error* error) {
  const uint64_t room = verdict->struct_size;
  const npu_status status = good->blob_check(device, blob, blob_size, verdict, error);
  if (room > sizeof *verdict) memset((char*)verdict + sizeof *verdict, 0, 8);
  return status;
}

/* Takes ever less. */
static npu_status tired_check(npu_device* device, const npu_check_args* args, npu_error* error) {
  static int asked = 0;
  npu_check_args changed = *args;
  char* text = malloc((size_t)args->sub_ir_size + 1);
  npu_status status;
  char* at;
  if (text == NULL) return fail(error, NPU_MEMORY, NULL, "out of memory");
  memcpy(text, args->sub_ir, (size_t)args->sub_ir_size);
  text[args->sub_ir_size] = '\0';
  /* All questions of the first order and a few of the second are answered as they should be. */
  if (++asked > 130) {
    for (at = strstr(text, "aten.add."); at != NULL; at = strstr(at, "aten.add.")) at[5] = 'o';
  }
  changed.sub_ir = text;
  status = good->check(device, &changed, error);
  free(text);
  return status;
}

/* An answer that is collected, so that it can be changed. */
typedef struct edited_answer {
  char text[1 << 16];
  size_t size;
} edited_answer;

static npu_status collect(void* context, const void* data, uint64_t size, npu_error* error) {
  edited_answer* answer = (edited_answer*)context;
  if (size >= sizeof answer->text - answer->size) {
    return fail(error, NPU_FAILED, NULL, "the answer is too long");
  }
  memcpy(answer->text + answer->size, data, (size_t)size);
  answer->size += (size_t)size;
  answer->text[answer->size] = '\0';
  return NPU_OK;
}

/* What comes behind the first `key`, or, without a key, before the last brace. */
static npu_status write_with(const npu_check_args* args, const edited_answer* answer,
                             const char* key, const char* more, npu_error* error) {
  const char* at = key != NULL ? strstr(answer->text, key) : strrchr(answer->text, '}');
  npu_status status;
  if (at != NULL && key != NULL) at += strlen(key);
  if (at == NULL) return put(args->answer, answer->text, error);
  status = args->answer->write(args->answer->context, answer->text, (uint64_t)(at - answer->text),
                               error);
  if (status == NPU_OK) status = put(args->answer, more, error);
  return status == NPU_OK ? put(args->answer, at, error) : status;
}

/* Estimates a thousand times what it takes, or answers in each process in another way. */
static npu_status edited_check(npu_device* device, const npu_check_args* args, npu_error* error) {
  static edited_answer answer;
  npu_writer writer = {sizeof writer, &answer, collect};
  npu_check_args changed = *args;
  char more[64];
  npu_status status;
  answer.size = 0;
  answer.text[0] = '\0';
  changed.answer = &writer;
  status = good->check(device, &changed, error);
  if (status != NPU_OK) return status;
  if (has_fault("long-seconds")) {
    return write_with(args, &answer, "\"seconds\": ", "1000", error);
  }
  if (has_fault("wide-weights")) {
    return write_with(args, &answer, "\"weights_bytes\": ", "1000", error);
  }
  snprintf(more, sizeof more, ", \"process\": %ld", (long)getpid());
  return write_with(args, &answer, NULL, more, error);
}

static npu_status half_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const npu_buffer* output = args->output_count != 0 ? args->outputs[0] : NULL;
  const float last = output != NULL && output->bytes >= 8 ? output->data[output->bytes / 4 - 1] : 0;
  const npu_status status = good->run(program, args, error);
  if (status == NPU_OK && output->bytes >= 8) output->data[output->bytes / 4 - 1] = last;
  return status;
}

static npu_status wild_buffer_read(npu_buffer* buffer, const npu_transfer* transfer,
                                   npu_error* error) {
  npu_transfer changed = *transfer;
  if (changed.offset > buffer->bytes) changed.offset = 0;
  if (changed.bytes > buffer->bytes - changed.offset) {
    changed.bytes = buffer->bytes - changed.offset;
  }
  return good->buffer_read(buffer, &changed, error);
}

static void strict_buffer_free(npu_buffer* buffer) {
  if (buffer == NULL) abort();
  good->buffer_free(buffer);
}

static npu_status shared_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  static volatile int running = 0;
  npu_status status;
  if (running != 0) return fail(error, NPU_FAILED, NULL, "another run is in the way");
  running = 1;
  usleep(1000);
  status = good->run(program, args, error);
  running = 0;
  return status;
}

/* Reports of memory that are right but for the fault; a model takes a MiB. */
static uint64_t in_use = 0;

static npu_status blob_memory(npu_device* device, const void* blob, uint64_t blob_size,
                              npu_memory_report* report, npu_error* error) {
  (void)device;
  if (blob_size < 8 || ((const char*)blob)[0] == 'x') {
    return fail(error, NPU_INVALID, NULL, "the blob is not of this backend");
  }
  report->flags = NPU_MEMORY_EXACT;
  report->memories[0]->other_bytes = has_fault("forgets-memory") ? 0 : 1 << 20;
  report->memories[0]->boundary_bytes = 1 << 20;
  return NPU_OK;
}

static npu_status device_memory(npu_device* device, uint32_t memory, npu_memory_state* state,
                                npu_error* error) {
  (void)device;
  (void)memory;
  (void)error;
  state->known = NPU_KNOWN_IN_USE;
  state->in_use_bytes = in_use;
  return NPU_OK;
}

static npu_status counted_model_load(npu_device* device, const npu_load_args* args,
                                     npu_model_info* info, npu_model** model, npu_error* error) {
  in_use += 1 << 20;
  return bad_model_load(device, args, info, model, error);
}

/* Names a layout that there is not, or that is none. */
static int lists_layouts(void) { return has_fault("vain-layouts") || has_fault("loose-layouts"); }

static npu_status loose_buffer_create(npu_device* device, const npu_buffer_desc* desc,
                                      npu_buffer** buffer, npu_error* error) {
  npu_buffer_desc changed = *desc;
  changed.layout = NULL;
  return good->buffer_create(device, &changed, buffer, error);
}

/* Says yes to everything, or, the second time, no. */
static npu_status easy_check(npu_device* device, const npu_check_args* args, npu_error* error) {
  static int asked = 0;
  npu_ir_error fault;
  npu_ir* ir = npu_ir_read(args->sub_ir, (size_t)args->sub_ir_size, &fault);
  npu_status status = NPU_OK;
  uint32_t n;
  (void)device;
  if (ir == NULL) return fail(error, NPU_INVALID, NULL, "sub-IR: %s", fault.text);
  put(args->answer, "{\"nodes\": [", error);
  for (n = 0; n < ir->node_count && status == NPU_OK; ++n) {
    const int is_yes =
        ir->nodes[n].op[0] != 'n' && (has_fault("says-yes") || lists_layouts() || asked % 2 == 0);
    status = put(args->answer, n != 0 ? ", " : "", error);
    if (status != NPU_OK) break;
    status =
        put(args->answer, is_yes ? "{\"ok\": true}" : "{\"ok\": false, \"reason\": \"no\"}", error);
  }
  ++asked;
  if (status == NPU_OK && lists_layouts()) {
    status = put(args->answer, "], \"boundaries\": {\"", error);
    put(args->answer, ir->tensors[ir->outputs[0]].name, error);
    put(args->answer, "\": [\"skeleton:reversed\"]}}", error);
  } else if (status == NPU_OK) {
    status = put(args->answer, "]}", error);
  }
  npu_ir_free(ir);
  return status;
}

__attribute__((visibility("default"))) const npu_backend* npu_backend_entry(const npu_host* host,
                                                                            npu_error* error) {
  static npu_backend tables[2];
  static int asked = 0;
  npu_backend* table = &tables[has_fault("new-table") ? asked++ % 2 : 0];
  if (has_fault("equal-sizes") && host->struct_size != sizeof *host) return NULL;
  good = skeleton_entry(host, error);
  *table = *good;
  table->backend_info = bad_backend_info;
  table->device_info = bad_device_info;
  table->device_open = bad_device_open;
  table->compile = bad_compile;
  table->model_load = bad_model_load;
  table->run = has_fault("half") ? half_run : has_fault("one-run") ? shared_run : bad_run;
  if (has_fault("any-shape")) table->run = bytes_run;
  if (has_fault("backwards") || has_fault("outside") || has_fault("late-times")) {
    table->run = timed_run;
  }
  if (has_fault("other-clock")) table->clock_sample = other_clock;
  if (has_fault("uneven-clock")) table->clock_sample = uneven_clock;
  if (has_fault("equal-desc")) table->buffer_create = strict_buffer_create;
  if (has_fault("wide-verdict")) table->blob_check = wide_blob_check;
  if (has_fault("tired")) table->check = tired_check;
  if (has_fault("long-seconds") || has_fault("wide-weights") || has_fault("answer-of-process")) {
    table->check = edited_check;
  }
  if (has_fault("vain-storage") || has_fault("vain-arithmetic")) {
    table->device_info = vain_device_info;
  }
  if (has_fault("forgets-memory") || has_fault("ignores-limit")) {
    static const char* const limited[] = {"memory.limit", NULL};
    if (has_fault("ignores-limit")) table->features = limited;
    table->blob_memory = blob_memory;
    table->device_memory = device_memory;
    table->model_load = counted_model_load;
  }
  if (has_fault("never-stops")) {
    static const char* const features[] = {"cancel", NULL};
    table->features = features;
  }
  if (has_fault("says-yes") || has_fault("moody")) table->check = easy_check;
  if (lists_layouts()) {
    static const char* const features[] = {"check", "layouts", NULL};
    table->features = features;
    table->check = easy_check;
    if (has_fault("loose-layouts")) table->buffer_create = loose_buffer_create;
  }
  if (has_fault("wild-reads")) table->buffer_read = wild_buffer_read;
  if (has_fault("null-free")) table->buffer_free = strict_buffer_free;
  return table;
}
