/* SPDX-License-Identifier: Apache-2.0 */
/* A backend of version 4 that hands every call to another one and changes one answer. WRAP4_FILE is
   the other's file, relative to this one's folder; without it, onednn. WRAP4_FAULT is the answer:

     busy=N         the first N device_open are busy
     open=N         device_open fails with status N
     lost=N         the first N compile lose the device
     compile=N      compile fails with status N, a node and numbers
     slow=N         compile takes N times 50 ms first, and says so. It makes the file WRAP4_MARK
     deaf=N         the same, but it says nothing
     run=N          run fails with status N
     losing=N       the first N devices are lost in their first run; every later call fails, too
     blob=N         blob_check gives the verdict N; 9: it fails
     options=TEXT   its option_keys
     fingerprint=T  the devices have this fingerprint
     unusable       the first device cannot be opened
     two            there is a second device, "wrap4:1", with a fingerprint of its own
     ir=N           sub-IRs of version N are read, and no others
     longer         the table is longer than the host's, and infos are filled as such
     shorter        the table ends behind run and the transfers; features whose functions it has
                    stay
     no-map         memory cannot be mapped
     no-transfer    memory can only be mapped
     silent-blob    a blob does not say what it takes
     silent-model   a loaded model does not, only its blob does
     no-wrap        memory that is to be wrapped is refused when it is
     log            device_open logs a line
     layouts        it hands on the other's layouts, whose names are the other's
     deny-layouts   its layouts have its own name, but compile refuses them
     lax-layouts    compile takes them for row-major, and buffer_create refuses them

   Built with WRAP4_FAR it is another backend, whose memory and events no other one gets.

   Counts of calls are exported, for tests in the same process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "npu/backend.h"

#ifdef WRAP4_FAR
#define NAME "wrap4-far"
#else
#define NAME "wrap4"
#endif

#define EXPORTED __attribute__((visibility("default")))

static const npu4_backend* other;
static const npu4_host* host;
static struct {
  npu4_backend table;
  char tail[64];
} longer;
static unsigned opens, closes, compiles, weight_loads, models, programs, wraps, exports;
static char last_id[64];

EXPORTED unsigned wrap4_count(const char* what);
EXPORTED const char* wrap4_last_id(void);

/* "opens", "open" (now), "compiles", "weights", "models", "wraps", "exports" or "programs" so far.
 */
unsigned wrap4_count(const char* what) {
  if (strcmp(what, "opens") == 0) return opens;
  if (strcmp(what, "open") == 0) return opens - closes;
  if (strcmp(what, "compiles") == 0) return compiles;
  if (strcmp(what, "weights") == 0) return weight_loads;
  if (strcmp(what, "models") == 0) return models;
  if (strcmp(what, "wraps") == 0) return __atomic_load_n(&wraps, __ATOMIC_RELAXED);
  if (strcmp(what, "exports") == 0) return __atomic_load_n(&exports, __ATOMIC_RELAXED);
  return programs;
}

const char* wrap4_last_id(void) { return last_id; }

/* What stands behind "NAME=" in WRAP4_FAULT, or null. */
static const char* fault(const char* name) {
  const char* set = getenv("WRAP4_FAULT");
  const size_t length = strlen(name);
  if (set == NULL || strncmp(set, name, length) != 0) return NULL;
  if (set[length] == '\0') return set + length;
  return set[length] == '=' ? set + length + 1 : NULL;
}

static npu4_status fail(npu4_error* error, npu4_status status, const char* text) {
  error->status = status;
  snprintf(error->text, sizeof error->text, "%s", text);
  return status;
}

static npu4_status backend_info(npu4_backend_info* info, npu4_error* error) {
  const char* version = fault("ir");
  const npu4_status status = other->backend_info(info, error);
  info->name = NAME;
  if (fault("options") != NULL) info->option_keys = fault("options");
  if (version != NULL) info->ir_version_min = info->ir_version_max = (uint32_t)atoi(version);
  return status;
}

static npu4_status device_info(uint64_t index, npu4_device_info* info, npu4_error* error) {
  static npu4_memory_info memory;
  static const npu4_memory_info* const memories[] = {&memory};
  const char* print = fault("fingerprint");
  npu4_status status = NPU4_OK;
  if (index > 1 || (index == 1 && fault("two") == NULL)) return NPU4_END;
  status = other->device_info(0, info, error);
  info->id = index == 0 ? NAME ":0" : NAME ":1";
  if (index == 1) info->fingerprint = "another";
  if (print != NULL) info->fingerprint = print;
  if (fault("unusable") != NULL && index == 0) {
    info->usable = 0;
    info->why_not = "the driver is too old";
  }
  if (fault("no-map") != NULL) {
    memory.struct_size = sizeof memory;
    info->memories = memories;
    info->memory_count = 1;
  }
#ifdef WRAP4_FAR
  if (info->memory_count != 0) memory = *info->memories[0];
  memory.flags &= ~(NPU4_WRAPS_DMABUF | NPU4_EXPORTS_DMABUF);
  info->memories = memories;
  info->memory_count = 1;
#endif
  return status;
}

static npu4_status device_open(const npu4_open_args* args, npu4_device** device,
                               npu4_error* error) {
  const char* busy = fault("busy");
  const char* status = fault("open");
  npu4_status result = NPU4_OK;
  npu4_open_args its;
  ++opens;
  if (busy != NULL && opens <= (unsigned)atoi(busy)) {
    ++closes;
    return fail(error, NPU4_BUSY, "somebody has it");
  }
  if (status != NULL) {
    ++closes;
    return fail(error, (npu4_status)atoi(status), "it does not open");
  }
  if (fault("log") != NULL) host->log(host->context, NPU4_LOG_WARNING, "the fan is loud");
  snprintf(last_id, sizeof last_id, "%s", args->device_id);
  its = *args;
  its.device_id = NULL; /* the first one of the other backend */
  result = other->device_open(&its, device, error);
  if (result != NPU4_OK) ++closes;
  return result;
}

static void device_close(npu4_device* device) {
  ++closes;
  other->device_close(device);
}

/* Waits as long as the fault says; NPU4_CANCELLED if the host has had enough of it. */
static npu4_status dawdle(const char* slow, const char* deaf, const npu4_compile_args* args,
                          npu4_error* error) {
  const int steps = atoi(slow != NULL ? slow : deaf);
  const struct timespec pause = {0, 50000000};
  FILE* mark = getenv("WRAP4_MARK") != NULL ? fopen(getenv("WRAP4_MARK"), "w") : NULL;
  if (mark != NULL) fclose(mark);
  for (int i = 0; i < steps; ++i) {
    nanosleep(&pause, NULL);
    if (slow != NULL && args->progress != NULL &&
        args->progress(args->progress_context, (uint64_t)i, (uint64_t)steps, "dawdling") != 0) {
      return fail(error, NPU4_CANCELLED, "stopped dawdling");
    }
  }
  return NPU4_OK;
}

/* Has layouts of its own, which it does not take after all. */
static int breaks_layouts(void) {
  return fault("deny-layouts") != NULL || fault("lax-layouts") != NULL;
}

/* `from` becomes `to`, which may be freed. */
static char* replaced(const char* text, const char* from, const char* to) {
  const size_t room = strlen(text) * (1 + strlen(to)) + 1;
  char* made = malloc(room);
  char* end = made;
  if (made == NULL) return NULL;
  while (*text != '\0') {
    if (strncmp(text, from, strlen(from)) == 0) {
      memcpy(end, to, strlen(to));
      end += strlen(to);
      text += strlen(from);
    } else {
      *end++ = *text++;
    }
  }
  *end = '\0';
  return made;
}

typedef struct text_memory {
  char* text;
  size_t size;
} text_memory;

static npu4_status append(void* context, const void* data, uint64_t size, npu4_error* error) {
  text_memory* memory = context;
  char* grown = realloc(memory->text, memory->size + (size_t)size + 1);
  if (grown == NULL) return fail(error, NPU4_MEMORY, "out of memory");
  memcpy(grown + memory->size, data, (size_t)size);
  memory->text = grown;
  memory->size += (size_t)size;
  memory->text[memory->size] = '\0';
  return NPU4_OK;
}

/* The other's layouts under its own name. */
static npu4_status check(npu4_device* device, const npu4_check_args* args, npu4_error* error) {
  text_memory memory = {NULL, 0};
  const npu4_writer writer = {sizeof writer, &memory, append};
  char* options = args->options != NULL ? replaced(args->options, NAME ":", "onednn:") : NULL;
  npu4_check_args its = *args;
  npu4_status status = NPU4_OK;
  its.options = options;
  its.answer = &writer;
  status = other->check(device, &its, error);
  if (status == NPU4_OK && memory.text != NULL) {
    char* answer = replaced(memory.text, "onednn:", NAME ":");
    status = answer == NULL
                 ? fail(error, NPU4_MEMORY, "out of memory")
                 : args->answer->write(args->answer->context, answer, strlen(answer), error);
    free(answer);
  }
  free(options);
  free(memory.text);
  return status;
}

static npu4_status compile(npu4_device* device, const npu4_compile_args* args, npu4_error* error) {
  const char* slow = fault("slow");
  const char* deaf = fault("deaf");
  const char* lost = fault("lost");
  const char* status = fault("compile");
  ++compiles;
  if (slow != NULL || deaf != NULL) {
    const npu4_status stopped = dawdle(slow, deaf, args, error);
    if (stopped != NPU4_OK) return stopped;
  }
  if (lost != NULL && compiles <= (unsigned)atoi(lost)) {
    return fail(error, NPU4_DEVICE_LOST, "it does not answer");
  }
  if (status != NULL) {
    error->known = NPU4_KNOWN_REQUESTED | NPU4_KNOWN_AVAILABLE | NPU4_KNOWN_VENDOR_CODE;
    error->requested_bytes = 3000000000u;
    error->available_bytes = 1000000000u;
    error->vendor_code = -7;
    snprintf(error->node, sizeof error->node, "the_node");
    return fail(error, (npu4_status)atoi(status), "it does not fit");
  }
  if (breaks_layouts() && args->options != NULL && strstr(args->options, NAME ":") != NULL) {
    npu4_compile_args its = *args;
    if (fault("deny-layouts") != NULL) {
      return fail(error, NPU4_UNSUPPORTED, "not in that layout");
    }
    its.options = NULL;
    return other->compile(device, &its, error);
  }
  return other->compile(device, args, error);
}

static npu4_status model_load(npu4_device* device, const npu4_load_args* args,
                              npu4_model_info* info, npu4_model** model, npu4_error* error) {
  ++models;
  return other->model_load(device, args, info, model, error);
}

static npu4_status program_create(npu4_model* model, const npu4_program_args* args,
                                  npu4_program** program, npu4_error* error) {
  ++programs;
  return other->program_create(model, args, program, error);
}

static npu4_status weights_load(npu4_device* device, const npu4_tensor* const* tensors,
                                uint64_t count, npu4_model_info* info, npu4_weights** weights,
                                npu4_error* error) {
  weight_loads += (unsigned)count;
  return other->weights_load(device, tensors, count, info, weights, error);
}

static npu4_status run(npu4_program* program, const npu4_run_args* args, npu4_error* error) {
  const char* status = fault("run");
  if (fault("losing") != NULL && opens <= (unsigned)atoi(fault("losing"))) {
    return fail(error, NPU4_DEVICE_LOST, "it does not answer");
  }
  if (status != NULL) return fail(error, (npu4_status)atoi(status), "it does not run");
  return other->run(program, args, error);
}

static npu4_status buffer_wrap(npu4_device* device, const npu4_buffer_desc* desc,
                               const npu4_external* external, npu4_buffer** buffer,
                               npu4_error* error) {
  __atomic_add_fetch(&wraps, 1, __ATOMIC_RELAXED);
  if (fault("no-wrap") != NULL) return fail(error, NPU4_UNSUPPORTED, "not this memory");
  return other->buffer_wrap(device, desc, external, buffer, error);
}

static npu4_status buffer_export(npu4_buffer* buffer, uint32_t type, npu4_external* external,
                                 npu4_error* error) {
  __atomic_add_fetch(&exports, 1, __ATOMIC_RELAXED);
  return other->buffer_export(buffer, type, external, error);
}

static npu4_status blob_check(npu4_device* device, const void* blob, uint64_t blob_size,
                              npu4_blob_verdict* verdict, npu4_error* error) {
  const uint32_t answer = fault("blob") != NULL ? (uint32_t)atoi(fault("blob")) : 0;
  (void)device;
  (void)blob;
  if (answer == 9 || blob_size == 0) return fail(error, NPU4_INVALID, "it is no blob of mine");
  verdict->verdict = answer;
  snprintf(verdict->reason, sizeof verdict->reason, "driver 3 made it, this is 4");
  return NPU4_OK;
}

static int load_other(void) {
  char path[4096];
  Dl_info self;
  const npu4_backend* (*entry)(const npu4_host*, npu4_error*) = NULL;
  const char* file = getenv("WRAP4_FILE");
  const char* slash = NULL;
  void* library = NULL;
  if (file == NULL) file = "../backends/npu_backend_onednn.so";
  if (dladdr((const void*)&longer, &self) == 0) return 0;
  slash = strrchr(self.dli_fname, '/');
  if (slash == NULL) return 0;
  snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, file);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  *(void**)&entry = dlsym(library, NPU4_ENTRY_NAME);
  if (entry != NULL) other = entry(host, NULL);
  return other != NULL;
}

/* Those of the other backend but for its layouts, whose names begin with its own. */
static const char* const* features_of_other(void) {
  static const char* kept[64];
  size_t count = 0;
  size_t i;
  for (i = 0; other->features != NULL && other->features[i] != NULL && count < 63; ++i) {
    if (strcmp(other->features[i], "layouts") != 0) kept[count++] = other->features[i];
  }
  kept[count] = NULL;
  return kept;
}

EXPORTED const npu4_backend* npu_backend_entry4(const npu4_host* given, npu4_error* error) {
  npu4_backend* table = &longer.table;
  host = given;
  if (other == NULL && !load_other()) {
    fail(error, NPU4_INTERNAL, "the other backend does not load");
    return NULL;
  }
  memset(longer.tail, 0xff, sizeof longer.tail);
  memcpy(table, other, sizeof *table);
  if (fault("layouts") == NULL && !breaks_layouts()) table->features = features_of_other();
  if (breaks_layouts()) table->check = check;
  table->backend_info = backend_info;
  table->device_info = device_info;
  table->device_open = device_open;
  table->device_close = device_close;
  table->compile = compile;
  table->model_load = model_load;
  table->program_create = program_create;
  table->run = run;
  if (other->weights_load != NULL) table->weights_load = weights_load;
  if (other->buffer_wrap != NULL) table->buffer_wrap = buffer_wrap;
  if (other->buffer_export != NULL) table->buffer_export = buffer_export;
  if (fault("blob") != NULL) table->blob_check = blob_check;
  if (fault("longer") != NULL) table->struct_size = sizeof longer;
  if (fault("shorter") != NULL) {
    static const char* const features[] = {"cancel", "acme.turbo", NULL};
    table->struct_size = offsetof(npu4_backend, buffer_map);
    table->features = features; /* the functions of others come later */
  }
  if (fault("no-map") != NULL) table->buffer_map = NULL;
  if (fault("silent-blob") != NULL) table->blob_memory = NULL;
  if (fault("silent-model") != NULL) table->model_memory = NULL;
  if (fault("no-transfer") != NULL) table->buffer_write = table->buffer_read = NULL;
  return table;
}
