/* SPDX-License-Identifier: Apache-2.0 */
/* A backend to start from: relu, neg and add in float32, one blocking call after the other, with
   the required functions and four that are optional. README.md says in which order to make it your
   own; the places for calls of your device say VENDOR. npu-backend(3) has the rules behind each
   function.

   A blob is a header and the sub-IR itself; your compiler's code would stand in its place. Weights
   stay outside of it, and model_load uploads them. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 199309L /* for clock_gettime */
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "npu/backend.h"
#include "npu/sub_ir.h"

#define MAX_RANK 8u
#define ARCH "skeleton-1"
#define BANDWIDTH 1e10 /* bytes per second, for estimates. VENDOR: your device's */

struct npu_device {
  int is_open;        /* VENDOR: the handle of your device */
  uint64_t opened_ns; /* on the host's clock */
};

struct npu_buffer {
  float* data; /* VENDOR: memory of your device */
  uint64_t bytes;
  uint32_t rank;
  int64_t shape[MAX_RANK];
  int is_reversed; /* of the skeleton with queues */
};

struct npu_model {
  npu_device* device; /* that it is loaded on */
  npu_ir* ir;
  float** weights; /* by tensor; null for one that is none */
};

struct npu_program {
  npu_model* model;
  char* own_scratch;  /* memory of the results; null if it is not the program's own */
  float** results;    /* by tensor: its place in the scratch memory */
  const float** data; /* by tensor, while it runs */
  int has_taps;       /* its runs may be asked for them */
  int has_times;      /* likewise */
  int is_running;     /* the next two are of the skeleton with queues */
  int is_cancelled;
};

typedef struct blob_header {
  char magic[16];
  char arch[16];
  uint64_t sub_ir_size;
  uint64_t digest; /* of the sub-IR */
} blob_header;

static const char kMagic[16] = "skeleton blob 1";
static const char kArch[16] = ARCH;

/* ---- Errors and structs that both sides know ---- */

/* An out struct: as much as the caller has room for, which is then its size (rules 2 and 3). */
static void give(void* out, uint64_t room, void* filled, uint64_t size) {
  uint64_t known = room < size ? room : size;
  memcpy(filled, &known, sizeof known);
  memcpy(out, filled, (size_t)known);
}

/* Returns the status, and describes it. `node` and `error` may be null. */
static npu_status fail(npu_error* error, npu_status status, const char* node, const char* format,
                       ...) {
  npu_error filled;
  va_list arguments;
  if (error == NULL) return status;
  memset(&filled, 0, sizeof filled);
  filled.status = status;
  snprintf(filled.node, sizeof filled.node, "%s", node != NULL ? node : "");
  va_start(arguments, format);
  vsnprintf(filled.text, sizeof filled.text, format, arguments);
  va_end(arguments);
  give(error, error->struct_size, &filled, sizeof filled);
  return status;
}

static npu_status out_of_memory(npu_error* error, uint64_t bytes) {
  const npu_status status = fail(error, NPU_MEMORY, NULL, "out of memory");
  if (error != NULL) {
    error->known = NPU_KNOWN_REQUESTED;
    error->requested_bytes = bytes;
  }
  return status;
}

/* Zeroed; never null for 0 bytes. */
static void* allocate(uint64_t bytes) {
  return bytes <= SIZE_MAX / 2 ? calloc(1, bytes != 0 ? (size_t)bytes : 1) : NULL;
}

/* CLOCK_MONOTONIC, in nanoseconds. */
static uint64_t host_now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* The device's own clock: here, since it was opened. VENDOR: its counter, as nanoseconds */
static uint64_t device_now(const npu_device* device) { return host_now() - device->opened_ns; }

/* ---- What the backend and its device are ---- */

static npu_status backend_info(npu_backend_info* info, npu_error* error) {
  npu_backend_info filled;
  (void)error;
  memset(&filled, 0, sizeof filled);
  filled.name = "skeleton";
  filled.version = "1.0";
  filled.ir_version_min = NPU_IR_VERSION_MIN;
  filled.ir_version_max = NPU_IR_VERSION_MAX;
  filled.flags = NPU_DETERMINISTIC;
  filled.option_keys = "{}";
  give(info, info->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

static npu_status device_info(uint64_t index, npu_device_info* info, npu_error* error) {
  static const npu_memory_info memory = {
      sizeof memory, "main", NPU_MEMORY_DEVICE, 0, 0, 0, 0, 0, 0};
  static const npu_memory_info* const memories[] = {&memory};
  static const npu_dtype_info float32 = {sizeof float32, NPU_FLOAT32,
                                         NPU_DTYPE_STORAGE | NPU_DTYPE_ARITHMETIC, 0, 0};
  static const npu_dtype_info* const dtypes[] = {&float32};
  npu_device_info filled;
  if (index > 0) return fail(error, NPU_END, NULL, "there is one device");
  memset(&filled, 0, sizeof filled);
  filled.id = "skeleton:0"; /* VENDOR: "pci:0000:03:00.0", where there is a bus */
  filled.name = "skeleton device";
  filled.vendor = "nobody";
  filled.arch = ARCH;
  filled.driver = "none";
  filled.fingerprint = "skeleton 1.0 " ARCH; /* VENDOR: all that a blob depends on */
  filled.kind = NPU_DEVICE_NPU;
  filled.usable = 1; /* VENDOR: whether it is there; if not, why_not says what is missing */
  filled.why_not = "";
  filled.memories = memories;
  filled.memory_count = 1;
  filled.dtypes = dtypes;
  filled.dtype_count = 1;
  give(info, info->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

/* Options are a JSON object or null. Only "precision" means something here. */
static npu_status check_options(const char* options, npu_error* error) {
  npu_ir_error fault;
  npu_json* json;
  const npu_json* precision;
  int is_good;
  if (options == NULL) return NPU_OK;
  json = npu_json_read(options, strlen(options), &fault);
  if (json == NULL) return fail(error, NPU_INVALID, NULL, "options: %s", fault.text);
  precision = npu_json_member(json, "precision");
  is_good = json->kind == NPU_JSON_OBJECT;
  if (precision != NULL) {
    is_good = precision->kind == NPU_JSON_STRING &&
              (strcmp(precision->as.text, "f32") == 0 || strcmp(precision->as.text, "bf16") == 0);
  }
  npu_json_free(json);
  if (is_good) return NPU_OK;
  return fail(error, NPU_INVALID, NULL,
              "options: expected an object whose precision is 'f32' or 'bf16'");
}

static npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error) {
  const npu_status status = check_options(args->options, error);
  npu_device* opened;
  if (status != NPU_OK) return status;
  if ((args->flags & NPU_OPEN_COMPILE_ONLY) != 0) {
    return fail(error, NPU_UNSUPPORTED, NULL, "a device that only compiles is not offered");
  }
  if (args->device_id != NULL && strcmp(args->device_id, "skeleton:0") != 0) {
    return fail(error, NPU_INVALID, NULL, "there is no device '%s'", args->device_id);
  }
  opened = (npu_device*)allocate(sizeof *opened);
  if (opened == NULL) return out_of_memory(error, sizeof *opened);
  opened->is_open = 1; /* VENDOR: open it. NPU_BUSY if somebody else has it */
  opened->opened_ns = host_now();
  *device = opened;
  return NPU_OK;
}

static void device_close(npu_device* device) { free(device); /* VENDOR: close it */ }

/* Optional: what the device's clock shows between two looks at the host's. */
static npu_status clock_sample(npu_device* device, npu_clock_sample* sample, npu_error* error) {
  npu_clock_sample filled;
  const uint64_t before = host_now();
  (void)error;
  memset(&filled, 0, sizeof filled);
  filled.device_ns = device_now(device);
  filled.uncertainty_ns = (host_now() - before) / 2 + 1;
  filled.host_ns = before + filled.uncertainty_ns - 1;
  give(sample, sample->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

/* ---- Compile ---- */

static int same_shape(const npu_ir_tensor* a, const npu_ir_tensor* b) {
  return a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* In-place ops are functional here: their result has a name of its own. */
static int is_op(const npu_ir_node* node, const char* op, const char* in_place) {
  return strcmp(node->op, op) == 0 || strcmp(node->op, in_place) == 0;
}

/* Whether the device runs the node. It trusts nobody: a target may allow what it should not, and
   what is not refused here must be computed right. */
static npu_status check_node(const npu_ir* ir, const npu_ir_node* node, npu_error* error) {
  const int is_relu = is_op(node, "aten.relu.default", "aten.relu_.default");
  const int is_neg = is_op(node, "aten.neg.default", "aten.neg_.default");
  const int is_add = is_op(node, "aten.add.Tensor", "aten.add_.Tensor");
  const uint32_t operands = is_add ? 2 : 1;
  const npu_ir_tensor* result;
  double alpha = 1;
  uint32_t i;
  if (!is_relu && !is_neg && !is_add) {
    return fail(error, NPU_UNSUPPORTED, node->name, "node '%s': '%s' is not among the ops",
                node->name, node->op);
  }
  if (node->input_count != operands || node->output_count != 1) {
    return fail(error, NPU_UNSUPPORTED, node->name, "node '%s': expected %u operands, found %u",
                node->name, (unsigned)operands, (unsigned)node->input_count);
  }
  result = &ir->tensors[node->outputs[0]];
  if (result->dtype != NPU_IR_FLOAT32 || result->rank > MAX_RANK) {
    return fail(error, NPU_UNSUPPORTED, node->name,
                "node '%s': expected float32 of at most %u dimensions", node->name, MAX_RANK);
  }
  for (i = 0; i < operands; ++i) {
    const npu_ir_tensor* operand = &ir->tensors[node->inputs[i]];
    if (operand->dtype == NPU_IR_FLOAT32 && same_shape(operand, result)) continue;
    return fail(error, NPU_UNSUPPORTED, node->name,
                "node '%s': operand '%s' is not like the result", node->name, operand->name);
  }
  if (is_add && (!npu_ir_attr_number(node, "alpha", 1, &alpha) || alpha != 1)) {
    return fail(error, NPU_UNSUPPORTED, node->name, "node '%s': alpha is not 1", node->name);
  }
  return NPU_OK;
}

/* The sub-IR as views, if the device runs all of it. */
static npu_status read_sub_ir(const char* text, uint64_t size, npu_ir** ir, npu_error* error) {
  npu_ir_error fault;
  npu_ir* read = npu_ir_read(text, (size_t)size, &fault);
  npu_status status = NPU_OK;
  uint32_t n;
  if (read == NULL) return fail(error, NPU_INVALID, NULL, "sub-IR: %s", fault.text);
  for (n = 0; n < read->node_count && status == NPU_OK; ++n) {
    status = check_node(read, &read->nodes[n], error);
  }
  if (status == NPU_OK) {
    *ir = read;
  } else {
    npu_ir_free(read);
  }
  return status;
}

static npu_status put(const npu_writer* writer, const char* text, npu_error* error) {
  return writer->write(writer->context, text, strlen(text), error);
}

/* A text as JSON. */
static npu_status put_quoted(const npu_writer* writer, const char* text, npu_error* error) {
  npu_status status = put(writer, "\"", error);
  for (; *text != '\0' && status == NPU_OK; ++text) {
    char piece[8] = {*text, '\0'};
    if (*text == '"' || *text == '\\') snprintf(piece, sizeof piece, "\\%c", *text);
    if ((unsigned char)*text < 32) snprintf(piece, sizeof piece, "\\u%04x", *text);
    status = put(writer, piece, error);
  }
  return status == NPU_OK ? put(writer, "\"", error) : status;
}

static uint64_t scratch_size(const npu_ir* ir);

/* Estimates, which are optional: what a program of these nodes takes. VENDOR: the time, too, as
   your compiler's model of the device has it. */
static npu_status put_costs(const npu_writer* answer, const npu_ir* ir, npu_error* error) {
  char text[160];
  uint64_t weights = 0;
  uint64_t moved = 0;
  uint32_t i;
  for (i = 0; i < ir->tensor_count; ++i) {
    if (ir->tensors[i].kind == NPU_IR_WEIGHT) weights += ir->tensors[i].bytes;
    moved += ir->tensors[i].bytes;
  }
  if (scratch_size(ir) == UINT64_MAX) return NPU_OK;
  snprintf(text, sizeof text,
           ", \"memory\": {\"weights_bytes\": %lu, \"scratch_bytes\": %lu}, \"seconds\": %.9f",
           (unsigned long)weights, (unsigned long)scratch_size(ir), (double)moved / BANDWIDTH);
  return put(answer, text, error);
}

/* An answer but for its last brace. */
static npu_status put_answer(const npu_writer* answer, const npu_ir* ir, npu_error* error) {
  npu_status status = put(answer, "{\"nodes\": [", error);
  uint32_t n;
  for (n = 0; n < ir->node_count && status == NPU_OK; ++n) {
    npu_error refusal;
    memset(&refusal, 0, sizeof refusal);
    refusal.struct_size = sizeof refusal;
    if (n != 0) status = put(answer, ", ", error);
    if (status != NPU_OK) break;
    if (check_node(ir, &ir->nodes[n], &refusal) == NPU_OK) {
      status = put(answer, "{\"ok\": true}", error);
      continue;
    }
    status = put(answer, "{\"ok\": false, \"reason\": ", error);
    if (status == NPU_OK) status = put_quoted(answer, refusal.text, error);
    if (status == NPU_OK) status = put(answer, "}", error);
  }
  if (status == NPU_OK) status = put(answer, "]", error);
  return status == NPU_OK ? put_costs(answer, ir, error) : status;
}

/* What the host asks before it gives nodes to the device: feature "check", optional. */
static npu_status check(npu_device* device, const npu_check_args* args, npu_error* error) {
  npu_ir_error fault;
  npu_ir* ir;
  npu_status status = check_options(args->options, error);
  (void)device;
  if (status != NPU_OK) return status;
  ir = npu_ir_read(args->sub_ir, (size_t)args->sub_ir_size, &fault);
  if (ir == NULL) return fail(error, NPU_INVALID, NULL, "sub-IR: %s", fault.text);
  status = put_answer(args->answer, ir, error);
  npu_ir_free(ir);
  return status == NPU_OK ? put(args->answer, "}", error) : status;
}

static uint64_t digest_of(const char* text, uint64_t size) {
  uint64_t digest = 14695981039346656037u;
  uint64_t i;
  for (i = 0; i < size; ++i) digest = (digest ^ (unsigned char)text[i]) * 1099511628211u;
  return digest;
}

static npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  npu_ir* ir = NULL;
  blob_header header;
  npu_status status = check_options(args->options, error);
  (void)device;
  if (status != NPU_OK) return status;
  if (args->entry_count != 1) return fail(error, NPU_INVALID, NULL, "expected one entry");
  status = read_sub_ir(args->entries[0]->sub_ir, args->entries[0]->sub_ir_size, &ir, error);
  if (status != NPU_OK) return status;
  npu_ir_free(ir); /* VENDOR: compile it, and write your code instead of the sub-IR */
  memcpy(header.magic, kMagic, sizeof kMagic);
  memcpy(header.arch, kArch, sizeof kArch);
  header.sub_ir_size = args->entries[0]->sub_ir_size;
  header.digest = digest_of(args->entries[0]->sub_ir, header.sub_ir_size);
  status = args->blob->write(args->blob->context, &header, sizeof header, error);
  if (status != NPU_OK) return status;
  return args->blob->write(args->blob->context, args->entries[0]->sub_ir, header.sub_ir_size,
                           error);
}

/* ---- Models and programs ---- */

static void model_free(npu_model* model) {
  uint32_t i;
  if (model == NULL) return;
  for (i = 0; model->weights != NULL && i < model->ir->tensor_count; ++i) free(model->weights[i]);
  free(model->weights);
  npu_ir_free(model->ir);
  free(model);
}

static npu_status read_header(const void* blob, uint64_t size, blob_header* header,
                              npu_error* error) {
  if (blob == NULL || size < sizeof *header) {
    return fail(error, NPU_INVALID, NULL, "the blob is cut short");
  }
  memcpy(header, blob, sizeof *header);
  if (memcmp(header->magic, kMagic, sizeof kMagic) != 0) {
    return fail(error, NPU_INVALID, NULL, "the blob is none of this backend");
  }
  return NPU_OK;
}

/* Whether a blob is for this device, by its header alone. Optional: without it, the host compares
   fingerprints. */
static npu_status blob_check(npu_device* device, const void* blob, uint64_t blob_size,
                             npu_blob_verdict* verdict, npu_error* error) {
  npu_blob_verdict filled;
  blob_header header;
  const npu_status status = read_header(blob, blob_size, &header, error);
  (void)device;
  if (status != NPU_OK) return status;
  memset(&filled, 0, sizeof filled);
  filled.verdict = NPU_BLOB_FITS;
  if (memcmp(header.arch, kArch, sizeof kArch) != 0) {
    filled.verdict = NPU_BLOB_OTHER;
    snprintf(filled.reason, sizeof filled.reason, "it is for '%.15s', this is '" ARCH "'",
             header.arch);
  }
  give(verdict, verdict->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

/* A blob comes from a file, so nothing in it is trusted. */
static npu_status read_blob(const void* blob, uint64_t size, npu_ir** ir, npu_error* error) {
  const char* bytes = (const char*)blob;
  blob_header header;
  const npu_status status = read_header(blob, size, &header, error);
  if (status != NPU_OK) return status;
  if (memcmp(header.arch, kArch, sizeof kArch) != 0) {
    return fail(error, NPU_INCOMPATIBLE, NULL, "the blob is for another device than " ARCH);
  }
  if (header.sub_ir_size != size - sizeof header ||
      header.digest != digest_of(bytes + sizeof header, header.sub_ir_size)) {
    return fail(error, NPU_INVALID, NULL, "the blob is damaged");
  }
  return read_sub_ir(bytes + sizeof header, header.sub_ir_size, ir, error);
}

/* Whether a run can give a tensor besides its outputs: here, every result that is none. */
static int is_tap(const npu_ir* ir, uint32_t tensor) {
  uint32_t i;
  for (i = 0; i < ir->output_count; ++i) {
    if (ir->outputs[i] == tensor) return 0;
  }
  return ir->tensors[tensor].kind == NPU_IR_RESULT;
}

static npu_status put_taps(const npu_writer* report, const npu_ir* ir, npu_error* error) {
  const char* comma = "";
  uint32_t i;
  npu_status status = put(report, "\"taps\": [", error);
  for (i = 0; i < ir->tensor_count && status == NPU_OK; ++i) {
    if (!is_tap(ir, i)) continue;
    status = put(report, comma, error);
    if (status == NPU_OK) status = put_quoted(report, ir->tensors[i].name, error);
    comma = ", ";
  }
  return status == NPU_OK ? put(report, "]", error) : status;
}

/* Optional, but for the feature "taps". VENDOR: what your compiler knows of the blob, too. */
static npu_status blob_report(npu_device* device, const void* blob, uint64_t blob_size,
                              const npu_writer* report, npu_error* error) {
  npu_ir* ir = NULL;
  npu_status status = read_blob(blob, blob_size, &ir, error);
  (void)device;
  if (status != NPU_OK) return status;
  status = put(report, "{", error);
  if (status == NPU_OK) status = put_taps(report, ir, error);
  npu_ir_free(ir);
  return status == NPU_OK ? put(report, "}", error) : status;
}

/* Uploads the weights that the model reads and does not have yet. */
static npu_status take_weights(npu_model* model, const npu_load_args* args, npu_error* error) {
  uint32_t i;
  uint64_t w;
  for (i = 0; i < model->ir->tensor_count; ++i) {
    const npu_ir_tensor* tensor = &model->ir->tensors[i];
    const npu_tensor* weight = NULL;
    if (tensor->kind != NPU_IR_WEIGHT || model->weights[i] != NULL) continue;
    for (w = 0; w < args->weight_count && weight == NULL; ++w) {
      if (strcmp(args->weights[w]->name, tensor->name) == 0) weight = args->weights[w];
    }
    if (weight == NULL || weight->dtype != tensor->dtype || weight->bytes != tensor->bytes ||
        (weight->data == NULL && weight->bytes != 0)) {
      return fail(error, NPU_INVALID, NULL, "the weight '%s' is missing or another one",
                  tensor->name);
    }
    model->weights[i] = (float*)allocate(tensor->bytes); /* VENDOR: upload it */
    if (model->weights[i] == NULL) return out_of_memory(error, tensor->bytes);
    if (tensor->bytes != 0) memcpy(model->weights[i], weight->data, (size_t)tensor->bytes);
  }
  return NPU_OK;
}

static npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                             npu_model** model, npu_error* error) {
  npu_model* loaded = (npu_model*)allocate(sizeof *loaded);
  npu_model_info filled = {0, NPU_RELEASES_BLOB | NPU_RELEASES_WEIGHTS};
  npu_status status;
  if (loaded == NULL) return out_of_memory(error, sizeof *loaded);
  loaded->device = device;
  status = read_blob(args->blob, args->blob_size, &loaded->ir, error);
  if (status == NPU_OK) {
    loaded->weights = (float**)allocate(loaded->ir->tensor_count * sizeof *loaded->weights);
    status = loaded->weights != NULL ? take_weights(loaded, args, error) : out_of_memory(error, 0);
  }
  if (status != NPU_OK) {
    model_free(loaded);
    return status;
  }
  if (info != NULL) give(info, info->struct_size, &filled, sizeof filled);
  *model = loaded;
  return NPU_OK;
}

/* Of one program: each result stands at a multiple of 64 bytes. UINT64_MAX if it is too much. */
static uint64_t scratch_size(const npu_ir* ir) {
  uint64_t bytes = 0;
  uint32_t i;
  for (i = 0; i < ir->tensor_count; ++i) {
    const uint64_t padded = (ir->tensors[i].bytes + 63) / 64 * 64;
    if (ir->tensors[i].kind != NPU_IR_RESULT) continue;
    if (padded > UINT64_MAX / 2 - bytes) return UINT64_MAX;
    bytes += padded;
  }
  return bytes;
}

static void program_free(npu_program* program) {
  if (program == NULL) return;
  free(program->own_scratch);
  free(program->results);
  free((void*)program->data);
  free(program);
}

/* In `scratch` of scratch_size bytes; null: in memory of its own. */
static npu_status create_program(npu_model* model, const npu_program_args* args, char* scratch,
                                 npu_program** program, npu_error* error) {
  const uint32_t count = model->ir->tensor_count;
  const uint64_t bytes = scratch_size(model->ir);
  npu_program* made = (npu_program*)allocate(sizeof *made);
  uint32_t i;
  if (made == NULL) return out_of_memory(error, sizeof *made);
  made->model = model;
  made->has_taps = args != NULL && (args->flags & NPU_PROGRAM_TAPS) != 0;
  made->has_times = args != NULL && (args->flags & NPU_PROGRAM_PROFILE) != 0;
  made->results = (float**)allocate(count * sizeof *made->results);
  made->data = (const float**)allocate(count * sizeof *made->data);
  if (scratch == NULL) scratch = made->own_scratch = (char*)allocate(bytes); /* VENDOR */
  if (made->results == NULL || made->data == NULL || scratch == NULL) {
    program_free(made);
    return out_of_memory(error, bytes);
  }
  for (i = 0; i < count; ++i) {
    if (model->ir->tensors[i].kind != NPU_IR_RESULT) continue;
    made->results[i] = (float*)(void*)scratch;
    scratch += (model->ir->tensors[i].bytes + 63) / 64 * 64;
  }
  *program = made;
  return NPU_OK;
}

static npu_status program_create(npu_model* model, const npu_program_args* args,
                                 npu_program** program, npu_error* error) {
  return create_program(model, args, NULL, program, error);
}

/* ---- Buffers ---- */

static npu_status check_desc(const npu_buffer_desc* desc, npu_error* error) {
  uint64_t bytes = sizeof(float);
  uint32_t i;
  int is_empty = 0;
  if (desc->dtype != NPU_FLOAT32 || desc->rank > MAX_RANK || desc->memory != 0 ||
      (desc->layout != NULL && strcmp(desc->layout, "row_major") != 0)) {
    return fail(error, NPU_UNSUPPORTED, NULL, "a buffer is row-major float32 in memory 0");
  }
  for (i = 0; i < desc->rank; ++i) {
    const uint64_t extent = (uint64_t)desc->shape[i];
    if (desc->shape[i] < 0) return fail(error, NPU_INVALID, NULL, "an extent is negative");
    is_empty |= extent == 0;
    if (extent != 0 && bytes > UINT64_MAX / extent) return out_of_memory(error, UINT64_MAX);
    if (extent != 0) bytes *= extent;
  }
  if (desc->bytes == (is_empty ? 0 : bytes)) return NPU_OK;
  return fail(error, NPU_INVALID, NULL, "the bytes of a buffer are not those of its shape");
}

static npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc,
                                npu_buffer** buffer, npu_error* error) {
  const npu_status status = check_desc(desc, error);
  npu_buffer* made;
  (void)device;
  if (status != NPU_OK) return status;
  made = (npu_buffer*)allocate(sizeof *made);
  if (made == NULL) return out_of_memory(error, sizeof *made);
  made->bytes = desc->bytes;
  made->rank = desc->rank;
  if (desc->rank != 0) memcpy(made->shape, desc->shape, desc->rank * sizeof *desc->shape);
  made->data = (float*)allocate(made->bytes); /* VENDOR: memory of the device */
  if (made->data == NULL) {
    free(made);
    return out_of_memory(error, desc->bytes);
  }
  *buffer = made;
  return NPU_OK;
}

static void buffer_free(npu_buffer* buffer) {
  if (buffer == NULL) return;
  free(buffer->data);
  free(buffer);
}

static npu_status check_transfer(const npu_buffer* buffer, const npu_transfer* transfer,
                                 npu_error* error) {
  if (transfer->offset <= buffer->bytes && transfer->bytes <= buffer->bytes - transfer->offset &&
      (transfer->data != NULL || transfer->bytes == 0)) {
    return NPU_OK;
  }
  return fail(error, NPU_INVALID, NULL, "a transfer reaches outside of its buffer");
}

static npu_status buffer_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  const npu_status status = check_transfer(buffer, transfer, error);
  if (status != NPU_OK || transfer->bytes == 0) return status;
  /* VENDOR: copy to the device */
  memcpy((char*)buffer->data + transfer->offset, transfer->data, (size_t)transfer->bytes);
  return NPU_OK;
}

static npu_status buffer_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  const npu_status status = check_transfer(buffer, transfer, error);
  if (status != NPU_OK || transfer->bytes == 0) return status;
  /* VENDOR: copy from the device */
  memcpy(transfer->data, (char*)buffer->data + transfer->offset, (size_t)transfer->bytes);
  return NPU_OK;
}

/* ---- Run ---- */

static int fits(const npu_buffer* buffer, const npu_ir_tensor* tensor) {
  return buffer != NULL && buffer->rank == tensor->rank &&
         (tensor->rank == 0 ||
          memcmp(buffer->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) == 0);
}

static npu_status check_buffers(const npu_ir* ir, const npu_run_args* args, npu_error* error) {
  uint64_t i;
  if (args->input_count != ir->input_count || args->output_count != ir->output_count) {
    return fail(error, NPU_INVALID, NULL, "expected %u inputs and %u outputs",
                (unsigned)ir->input_count, (unsigned)ir->output_count);
  }
  for (i = 0; i < args->input_count + args->output_count; ++i) {
    const int is_input = i < args->input_count;
    const uint64_t place = is_input ? i : i - args->input_count;
    const npu_ir_tensor* tensor = &ir->tensors[is_input ? place : ir->outputs[place]];
    if (fits(is_input ? args->inputs[place] : args->outputs[place], tensor)) continue;
    return fail(error, NPU_INVALID, NULL, "the buffer of '%s' is null or has another shape",
                tensor->name);
  }
  return NPU_OK;
}

/* The tensor of a tap of this name; tensor_count if there is none. */
static uint32_t find_tap(const npu_ir* ir, const char* name) {
  uint32_t i;
  for (i = 0; i < ir->tensor_count; ++i) {
    if (name != NULL && strcmp(ir->tensors[i].name, name) == 0 && is_tap(ir, i)) break;
  }
  return i;
}

static int is_passed(const npu_run_args* args, const npu_buffer* buffer, uint64_t taps) {
  uint64_t i;
  for (i = 0; i < args->input_count; ++i) {
    if (args->inputs[i] == buffer) return 1;
  }
  for (i = 0; i < args->output_count; ++i) {
    if (args->outputs[i] == buffer) return 1;
  }
  for (i = 0; i < taps; ++i) {
    if (args->taps[i]->buffer == buffer) return 1;
  }
  return 0;
}

/* Of the taps; an older host has none. */
static uint64_t tap_count(const npu_run_args* args) {
  return NPU_HAS(args, tap_count) ? args->tap_count : 0;
}

static npu_status check_taps(const npu_program* program, const npu_run_args* args,
                             npu_error* error) {
  const npu_ir* ir = program->model->ir;
  uint64_t i;
  for (i = 0; i < tap_count(args); ++i) {
    const npu_tap* tap = args->taps != NULL ? args->taps[i] : NULL;
    const uint32_t tensor =
        tap != NULL && program->has_taps ? find_tap(ir, tap->name) : ir->tensor_count;
    if (tensor == ir->tensor_count) {
      return fail(error, NPU_INVALID, NULL, "tap %u names nothing that the program gives",
                  (unsigned)i);
    }
    if (!fits(tap->buffer, &ir->tensors[tensor]) || is_passed(args, tap->buffer, i)) {
      return fail(error, NPU_INVALID, NULL,
                  "the buffer of tap '%s' is null, passed twice or has another shape", tap->name);
    }
  }
  return NPU_OK;
}

/* Whatever is wrong with the arguments of a run. */
static npu_status check_run(const npu_program* program, const npu_run_args* args,
                            npu_error* error) {
  const npu_status status = check_buffers(program->model->ir, args, error);
  return status == NPU_OK ? check_taps(program, args, error) : status;
}

static void give_tensor(const npu_program* program, uint32_t tensor, const npu_buffer* buffer) {
  if (buffer->bytes != 0) memcpy(buffer->data, program->data[tensor], (size_t)buffer->bytes);
}

/* Whether an output may have the buffer of an input, which is then written last. */
static int is_aliased(const npu_ir* ir, uint32_t output) {
  uint32_t i;
  for (i = 0; i < ir->alias_count; ++i) {
    if (ir->aliases[i].output == output) return 1;
  }
  return 0;
}

/* VENDOR: start the node on the device, or the whole program at once. */
static void run_node(const npu_ir* ir, const npu_ir_node* node, npu_program* program) {
  const float* a = program->data[node->inputs[0]];
  const float* b = program->data[node->inputs[node->input_count - 1]];
  float* result = program->results[node->outputs[0]];
  const uint64_t count = ir->tensors[node->outputs[0]].elements;
  const int is_add = node->input_count == 2;
  const int is_neg = is_op(node, "aten.neg.default", "aten.neg_.default");
  uint64_t i;
  for (i = 0; i < count; ++i) {
    /* NaN stays NaN. */
    result[i] = is_add ? a[i] + b[i] : is_neg ? -a[i] : a[i] < 0 ? 0 : a[i];
  }
  program->data[node->outputs[0]] = result;
}

/* From `begin` on the device's clock until now. */
static void set_span(npu_span* span, const npu_device* device, uint64_t begin) {
  span->begin = begin;
  span->end = device_now(device);
  span->flags = NPU_SPAN_DURATION | NPU_SPAN_PLACED;
}

/* Where the times of a run go, if it was asked for any. */
static npu_profile* profile_of(const npu_program* program, const npu_run_args* args) {
  npu_profile* profile = NPU_HAS(args, profile) && program->has_times ? args->profile : NULL;
  return profile != NULL && NPU_HAS(profile, whole) ? profile : NULL;
}

static npu_status run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const npu_ir* ir = program->model->ir;
  const npu_device* device = program->model->device;
  const npu_status status = check_run(program, args, error);
  npu_profile* profile = status == NPU_OK ? profile_of(program, args) : NULL;
  const uint64_t begin = profile != NULL ? device_now(device) : 0;
  uint64_t t;
  uint32_t i;
  if (status != NPU_OK) return status;
  for (i = 0; i < ir->tensor_count; ++i) program->data[i] = program->model->weights[i];
  for (i = 0; i < ir->input_count; ++i) program->data[i] = args->inputs[i]->data;
  for (i = 0; i < ir->node_count; ++i) {
    const uint64_t node_begin = profile != NULL ? device_now(device) : 0;
    run_node(ir, &ir->nodes[i], program);
    if (profile != NULL && i < profile->node_count) {
      set_span(&profile->nodes[i], device, node_begin);
    }
  }
  for (i = 0; i < 2 * ir->output_count; ++i) {
    const uint32_t output = i % ir->output_count;
    if (is_aliased(ir, output) != (i >= ir->output_count)) continue;
    give_tensor(program, ir->outputs[output], args->outputs[output]);
  }
  /* VENDOR: where memory is used again, a tap is copied before that. */
  for (t = 0; t < tap_count(args); ++t) {
    give_tensor(program, find_tap(ir, args->taps[t]->name), args->taps[t]->buffer);
  }
  if (profile != NULL) set_span(&profile->whole, device, begin);
  return NPU_OK;
}

/* ---- The table ---- */

#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const npu_backend*
npu_backend_entry(const npu_host* host, npu_error* error) {
  static const char* const features[] = {"check", "taps", NULL};
  static npu_backend backend;
  if (host->abi_version < NPU_ABI_VERSION) {
    fail(error, NPU_INCOMPATIBLE, NULL, "the host has version %u, expected 4 or more",
         (unsigned)host->abi_version);
    return NULL;
  }
  backend.struct_size = sizeof backend; /* the same bytes, however often it is called */
  backend.abi_version = NPU_ABI_VERSION;
  backend.features = features;
  backend.backend_info = backend_info;
  backend.device_info = device_info;
  backend.device_open = device_open;
  backend.device_close = device_close;
  backend.compile = compile;
  backend.model_load = model_load;
  backend.model_free = model_free;
  backend.program_create = program_create;
  backend.program_free = program_free;
  backend.buffer_create = buffer_create;
  backend.buffer_free = buffer_free;
  backend.run = run;
  backend.buffer_write = buffer_write;
  backend.buffer_read = buffer_read;
  backend.blob_report = blob_report;
  backend.blob_check = blob_check;
  backend.check = check;
  backend.clock_sample = clock_sample;
  return &backend;
}
