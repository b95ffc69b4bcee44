/* SPDX-License-Identifier: Apache-2.0 */
/* Values that lie on the device as it likes, feature "layouts": here with their last element first,
   so that whoever takes them for row-major is found out. check offers that for every input and
   output, compile notes in the blob which of them have it, and the host sees row-major content. A
   device would read and write its layout in its kernels; here a run brings tensors to row-major
   and back. The skeleton and its entries come before this file.

   A blob notes layouts in its sub-IR, as a member "reversed" with the names of tensors. */

#define REVERSED "skeleton-queue:reversed"

static int is_reversed(const npu_ir* ir, uint32_t tensor) {
  const npu_json* names = npu_json_member(ir->root, "reversed");
  return npu_json_member(names, ir->tensors[tensor].name) != NULL;
}

/* ---- Questions and compile ---- */

/* Whether it is an input or output with elements to put in an order. */
static int has_layouts(const npu_ir* ir, uint32_t tensor) {
  uint32_t i;
  if (ir->tensors[tensor].dtype != NPU_IR_FLOAT32 || ir->tensors[tensor].elements == 0) return 0;
  if (tensor < ir->input_count) return 1;
  for (i = 0; i < ir->output_count; ++i) {
    if (ir->outputs[i] == tensor) return ir->tensors[tensor].kind == NPU_IR_RESULT;
  }
  return 0;
}

static npu_status put_boundaries(const npu_writer* answer, const npu_ir* ir, npu_error* error) {
  npu_status status = put(answer, ", \"boundaries\": {", error);
  const char* comma = "";
  uint32_t i;
  for (i = 0; i < ir->tensor_count && status == NPU_OK; ++i) {
    if (!has_layouts(ir, i)) continue;
    status = put(answer, comma, error);
    if (status == NPU_OK) status = put_quoted(answer, ir->tensors[i].name, error);
    if (status == NPU_OK) status = put(answer, ": [\"" REVERSED "\"]", error);
    comma = ", ";
  }
  return status == NPU_OK ? put(answer, "}}", error) : status;
}

static npu_status layout_check(npu_device* device, const npu_check_args* args, npu_error* error) {
  npu_ir_error fault;
  npu_ir* ir;
  npu_status status = check_options(args->options, error);
  (void)device;
  if (status != NPU_OK) return status;
  ir = npu_ir_read(args->sub_ir, (size_t)args->sub_ir_size, &fault);
  if (ir == NULL) return fail(error, NPU_INVALID, NULL, "sub-IR: %s", fault.text);
  status = put_answer(args->answer, ir, error);
  if (status == NPU_OK) status = put_boundaries(args->answer, ir, error);
  npu_ir_free(ir);
  return status;
}

/* A text that grows. */
typedef struct text_room {
  char* text;
  uint64_t size;
  uint64_t room;
} text_room;

static npu_status append_text(void* context, const void* data, uint64_t size, npu_error* error) {
  text_room* into = (text_room*)context;
  if (size > into->room - into->size) return out_of_memory(error, size);
  if (size != 0) memcpy(into->text + into->size, data, (size_t)size);
  into->size += size;
  return NPU_OK;
}

/* The sub-IR with a member for what is to be reversed. */
static npu_status note_layouts(const npu_json* layouts, const npu_entry* entry, text_room* noted,
                               npu_error* error) {
  const npu_writer writer = {sizeof writer, noted, append_text};
  const char* brace = (const char*)memchr(entry->sub_ir, '{', (size_t)entry->sub_ir_size);
  const char* comma = "";
  const npu_json* each;
  npu_ir_error fault;
  npu_ir* ir = npu_ir_read(entry->sub_ir, (size_t)entry->sub_ir_size, &fault);
  npu_status status;
  if (ir == NULL) return fail(error, NPU_INVALID, NULL, "sub-IR: %s", fault.text);
  status = put(&writer, "{\"reversed\": {", error);
  for (each = npu_json_first(layouts); each != NULL && status == NPU_OK;
       each = npu_json_next(layouts, each)) {
    uint32_t i = 0;
    while (i < ir->tensor_count && strcmp(ir->tensors[i].name, each->key) != 0) ++i;
    if (i == ir->tensor_count || !has_layouts(ir, i) || each->kind != NPU_JSON_STRING ||
        strcmp(each->as.text, REVERSED) != 0) {
      status = fail(error, NPU_INVALID, NULL, "there is no such layout for '%s'", each->key);
      break;
    }
    status = put(&writer, comma, error);
    if (status == NPU_OK) status = put_quoted(&writer, each->key, error);
    if (status == NPU_OK) status = put(&writer, ": true", error);
    comma = ", ";
  }
  npu_ir_free(ir);
  if (status == NPU_OK) status = put(&writer, "}, ", error);
  if (status != NPU_OK) return status;
  ++brace; /* a sub-IR that was read begins with one */
  return append_text(noted, brace, entry->sub_ir_size - (uint64_t)(brace - entry->sub_ir), error);
}

static npu_status compile_noted(npu_device* device, const npu_compile_args* args,
                                const npu_json* layouts, npu_error* error) {
  npu_compile_args changed = *args;
  npu_entry entry;
  const npu_entry* entries[1];
  text_room noted = {NULL, 0, 0};
  npu_status status;
  if (args->entry_count != 1 || args->entries == NULL) {
    return fail(error, NPU_INVALID, NULL, "layouts are for a blob with one entry");
  }
  entry = *args->entries[0];
  noted.room = 2 * entry.sub_ir_size + 6 * strlen(args->options) + 64;
  noted.text = (char*)allocate(noted.room);
  if (noted.text == NULL) return out_of_memory(error, noted.room);
  status = note_layouts(layouts, &entry, &noted, error);
  entry.sub_ir = noted.text;
  entry.sub_ir_size = noted.size;
  entries[0] = &entry;
  changed.entries = entries;
  if (status == NPU_OK) status = compile_entries(device, &changed, error);
  free(noted.text);
  return status;
}

static npu_status layout_compile(npu_device* device, const npu_compile_args* args,
                                 npu_error* error) {
  npu_ir_error fault;
  npu_json* options;
  const npu_json* layouts;
  npu_status status = check_options(args->options, error);
  if (status != NPU_OK) return status;
  if (args->options == NULL) return compile_entries(device, args, error);
  options = npu_json_read(args->options, strlen(args->options), &fault);
  if (options == NULL) return fail(error, NPU_INVALID, NULL, "options: %s", fault.text);
  layouts = npu_json_member(options, "boundary_layouts");
  if (layouts == NULL) {
    status = compile_entries(device, args, error);
  } else if (layouts->kind != NPU_JSON_OBJECT) {
    status = fail(error, NPU_INVALID, NULL, "options: boundary_layouts is no object");
  } else {
    status = compile_noted(device, args, layouts, error);
  }
  npu_json_free(options);
  return status;
}

/* ---- Buffers ---- */

/* The content of a buffer in the other order. */
static void reverse(const float* from, float* to, uint64_t bytes) {
  const uint64_t count = bytes / sizeof *from;
  uint64_t i;
  for (i = 0; i < count; ++i) to[i] = from[count - 1 - i];
}

/* Bytes of the row-major content, as many as were checked. */
static void move_piece(npu_buffer* buffer, const npu_transfer* transfer, int is_write) {
  char* device = (char*)buffer->data;
  char* host = (char*)transfer->data;
  uint64_t i;
  for (i = 0; i < transfer->bytes; ++i) {
    const uint64_t at = transfer->offset + i;
    const uint64_t element = buffer->bytes / sizeof(float) - 1 - at / sizeof(float);
    char* place = device + element * sizeof(float) + at % sizeof(float);
    if (is_write) {
      *place = host[i];
    } else {
      host[i] = *place;
    }
  }
}

static npu_status layout_write(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  npu_status status;
  if (!buffer->is_reversed) return buffer_write(buffer, transfer, error);
  status = check_transfer(buffer, transfer, error);
  if (status == NPU_OK) move_piece(buffer, transfer, 1);
  return status;
}

static npu_status layout_read(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error) {
  npu_status status;
  if (!buffer->is_reversed) return buffer_read(buffer, transfer, error);
  status = check_transfer(buffer, transfer, error);
  if (status == NPU_OK) move_piece(buffer, transfer, 0);
  return status;
}

static void copy_content(const npu_buffer* from, npu_buffer* to) {
  if (from->is_reversed != to->is_reversed) {
    reverse(from->data, to->data, to->bytes);
  } else if (to->bytes != 0) {
    memmove(to->data, from->data, (size_t)to->bytes);
  }
}

/* ---- Runs ---- */

static npu_status check_layout_run(const npu_program* program, const npu_run_args* args,
                                   npu_error* error) {
  const npu_ir* ir = program->model->ir;
  npu_status status = check_run(program, args, error);
  uint64_t i;
  for (i = 0; i < args->input_count + args->output_count && status == NPU_OK; ++i) {
    const int is_input = i < args->input_count;
    const uint64_t place = is_input ? i : i - args->input_count;
    const uint32_t tensor = is_input ? (uint32_t)place : ir->outputs[place];
    const npu_buffer* buffer = is_input ? args->inputs[place] : args->outputs[place];
    if (buffer->is_reversed == is_reversed(ir, tensor)) continue;
    status = fail(error, NPU_INVALID, NULL, "the buffer of '%s' has another layout",
                  ir->tensors[tensor].name);
  }
  for (i = 0; i < tap_count(args) && status == NPU_OK; ++i) {
    if (!args->taps[i]->buffer->is_reversed) continue;
    status = fail(error, NPU_INVALID, NULL, "the buffer of tap '%s' is not row-major",
                  args->taps[i]->name);
  }
  return status;
}

/* Row-major copies of the buffers that have a layout; the others themselves. 0: no memory. */
static int plain_buffers(npu_buffer* const* buffers, uint64_t count, npu_buffer* copies,
                         npu_buffer** plain) {
  uint64_t i;
  for (i = 0; i < count; ++i) {
    plain[i] = buffers[i];
    if (!buffers[i]->is_reversed) continue;
    copies[i] = *buffers[i];
    copies[i].is_reversed = 0;
    copies[i].data = (float*)allocate(buffers[i]->bytes);
    if (copies[i].data == NULL) return 0;
    copy_content(buffers[i], &copies[i]);
    plain[i] = &copies[i];
  }
  return 1;
}

/* VENDOR: a device needs none of this. */
static npu_status layout_run(npu_program* program, const npu_run_args* args, npu_error* error) {
  const uint64_t count = args->input_count + args->output_count;
  npu_buffer* copies = (npu_buffer*)allocate(count * sizeof *copies);
  npu_buffer** plain = (npu_buffer**)allocate(count * sizeof *plain);
  npu_run_args changed = *args;
  npu_status status;
  uint64_t i;
  if (copies == NULL || plain == NULL ||
      !plain_buffers(args->inputs, args->input_count, copies, plain) ||
      !plain_buffers(args->outputs, args->output_count, copies + args->input_count,
                     plain + args->input_count)) {
    status = out_of_memory(error, count * sizeof *copies);
  } else {
    changed.inputs = plain;
    changed.outputs = plain + args->input_count;
    status = run(program, &changed, error);
  }
  for (i = 0; i < args->output_count && status == NPU_OK; ++i) {
    const npu_buffer* result = plain[args->input_count + i];
    if (result != args->outputs[i]) copy_content(result, args->outputs[i]);
  }
  for (i = 0; copies != NULL && i < count; ++i) free(copies[i].data);
  free(copies);
  free(plain);
  return status;
}
