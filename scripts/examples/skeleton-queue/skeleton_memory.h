/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, and how much of the device's memory is in use by them, by weights of models, each once
   however many entries read it, and by scratch memory of programs. Weights and scratch memory are
   taken and given back by functions of the other files, which are counted here. VENDOR: your driver
   may know. */

static void count_bytes(npu_device* device, uint64_t more, uint64_t less) {
  queue_device* counted = (queue_device*)device;
  pthread_mutex_lock(&counted->lock);
  counted->in_use += more;
  counted->in_use -= less;
  if (counted->peak < counted->in_use) counted->peak = counted->in_use;
  pthread_mutex_unlock(&counted->lock);
}

static npu_status counted_memory(npu_device* device, uint32_t memory, npu_memory_state* state,
                                 npu_error* error) {
  queue_device* counted = (queue_device*)device;
  npu_memory_state filled;
  if (memory > 1) return fail(error, NPU_INVALID, NULL, "there is no memory %u", (unsigned)memory);
  memset(&filled, 0, sizeof filled);
  /* Pinned memory is the host's. */
  if (memory == 0) {
    filled.known = NPU_KNOWN_IN_USE | NPU_KNOWN_PEAK_USE;
    pthread_mutex_lock(&counted->lock);
    filled.in_use_bytes = counted->in_use;
    filled.peak_bytes = counted->peak;
    pthread_mutex_unlock(&counted->lock);
  }
  give(state, state->struct_size, &filled, sizeof filled);
  return NPU_OK;
}

/* The weights of all entries, each once. */
static uint64_t weights_of(const entries_model* model) {
  uint64_t bytes = 0;
  uint64_t e;
  uint32_t i;
  for (e = 0; e < model->count; ++e) {
    const npu_ir* ir = model->entries[e]->ir;
    for (i = 0; i < ir->tensor_count; ++i) {
      if (ir->tensors[i].kind != NPU_IR_WEIGHT) continue;
      if (find_weight(model, e, &ir->tensors[i]) != model->entries[e]->weights[i]) {
        bytes += ir->tensors[i].bytes;
      }
    }
  }
  return bytes;
}

static npu_status counted_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                               npu_model** model, npu_error* error) {
  const npu_status status = entries_load(device, args, info, model, error);
  if (status == NPU_OK) count_bytes(device, weights_of((entries_model*)(void*)*model), 0);
  return status;
}

static void counted_model_free(npu_model* model) {
  const entries_model* freed = (const entries_model*)(const void*)model;
  if (freed != NULL) count_bytes(freed->entries[0]->device, 0, weights_of(freed));
  entries_free(model);
}

static npu_status counted_program(npu_model* model, const npu_program_args* args,
                                  npu_program** program, npu_error* error) {
  const npu_status status = entries_program(model, args, program, error);
  if (status == NPU_OK && (*program)->own_scratch != NULL) {
    count_bytes((*program)->model->device, scratch_size((*program)->model->ir), 0);
  }
  return status;
}

static void counted_program_free(npu_program* program) {
  if (program != NULL && program->own_scratch != NULL) {
    count_bytes(program->model->device, 0, scratch_size(program->model->ir));
  }
  program_free(program);
}

/* ---- Buffers ---- */

/* The skeleton's buffer comes first, so that a pointer to one is a pointer to the other. */
typedef struct queue_buffer {
  npu_buffer base;
  npu_device* device; /* whose memory 0 it takes; null: it is in memory 1, which is the host's */
} queue_buffer;

/* Bytes for a program, whatever the device's dtypes are. */
static npu_status check_scratch(const npu_buffer_desc* desc, npu_error* error) {
  if (desc->dtype == NPU_UINT8 && desc->rank == 1 && desc->memory == 0 && desc->shape[0] >= 0 &&
      (uint64_t)desc->shape[0] == desc->bytes) {
    return NPU_OK;
  }
  return fail(error, NPU_UNSUPPORTED, NULL, "scratch memory is a row of bytes in memory 0");
}

/* Memory 1 is for what is on its way, memory 0 for everything. */
static npu_status check_place(const npu_buffer_desc* desc, npu_error* error) {
  npu_buffer_desc moved = *desc;
  moved.struct_size = sizeof moved;
  if ((desc->usage & NPU_USAGE_SCRATCH) != 0) return check_scratch(desc, error);
  if (desc->memory == 1 && (desc->usage & NPU_USAGE_STAGING) != 0) moved.memory = 0;
  if (desc->layout != NULL) {
    if (strcmp(desc->layout, REVERSED) != 0 || desc->memory != 0 || desc->bytes == 0) {
      return fail(error, NPU_INVALID, NULL, "there is no layout '%s' here", desc->layout);
    }
    moved.layout = NULL;
  }
  return check_desc(&moved, error);
}

static npu_status queue_buffer_create(npu_device* device, const npu_buffer_desc* desc,
                                      npu_buffer** buffer, npu_error* error) {
  const int is_scratch = (desc->usage & NPU_USAGE_SCRATCH) != 0;
  const npu_status status = check_place(desc, error);
  queue_buffer* made;
  if (status != NPU_OK) return status;
  made = (queue_buffer*)allocate(sizeof *made);
  if (made == NULL) return out_of_memory(error, sizeof *made);
  made->base.data = (float*)allocate(desc->bytes);
  if (made->base.data == NULL) {
    free(made);
    return out_of_memory(error, desc->bytes);
  }
  made->base.bytes = desc->bytes;
  made->base.rank = is_scratch ? SCRATCH_RANK : desc->rank;
  if (desc->rank != 0) memcpy(made->base.shape, desc->shape, desc->rank * sizeof *desc->shape);
  made->base.is_reversed = desc->layout != NULL;
  made->device = desc->memory == 0 ? device : NULL;
  if (made->device != NULL) count_bytes(device, desc->bytes, 0);
  *buffer = &made->base;
  return NPU_OK;
}

static void queue_buffer_free(npu_buffer* buffer) {
  const queue_buffer* freed = (const queue_buffer*)buffer;
  if (freed != NULL && freed->device != NULL) count_bytes(freed->device, 0, freed->base.bytes);
  buffer_free(buffer);
}

/* Of pinned memory alone. VENDOR: what of your memory the host sees */
static npu_status buffer_map(npu_buffer* mapped, uint32_t access, void** pointer,
                             npu_error* error) {
  const queue_buffer* buffer = (const queue_buffer*)mapped;
  (void)access;
  if (buffer->device != NULL) {
    return fail(error, NPU_UNSUPPORTED, NULL, "the host does not see the memory of the device");
  }
  *pointer = buffer->base.bytes != 0 ? buffer->base.data : NULL;
  return NPU_OK;
}

static void buffer_unmap(npu_buffer* buffer) { (void)buffer; /* nothing was cached */ }
