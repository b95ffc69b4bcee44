/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the device's memory is in use: weights of models, each once however many entries read
   it, scratch memory of programs, and buffers. The functions that take and give it back are those
   of the other files; here they are counted. VENDOR: your driver may know. */

static void count_bytes(npu4_device* device, uint64_t more, uint64_t less) {
  queue_device* counted = (queue_device*)device;
  pthread_mutex_lock(&counted->lock);
  counted->in_use += more;
  counted->in_use -= less;
  if (counted->peak < counted->in_use) counted->peak = counted->in_use;
  pthread_mutex_unlock(&counted->lock);
}

static npu4_status counted_memory(npu4_device* device, uint32_t memory, npu4_memory_state* state,
                                  npu4_error* error) {
  queue_device* counted = (queue_device*)device;
  npu4_memory_state filled;
  if (memory > 1) return fail(error, NPU4_INVALID, NULL, "there is no memory %u", (unsigned)memory);
  memset(&filled, 0, sizeof filled);
  /* Pinned memory is the host's. */
  if (memory == 0) {
    filled.known = NPU4_KNOWN_IN_USE | NPU4_KNOWN_PEAK_USE;
    pthread_mutex_lock(&counted->lock);
    filled.in_use_bytes = counted->in_use;
    filled.peak_bytes = counted->peak;
    pthread_mutex_unlock(&counted->lock);
  }
  give(state, state->struct_size, &filled, sizeof filled);
  return NPU4_OK;
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

static npu4_status counted_load(npu4_device* device, const npu4_load_args* args,
                                npu4_model_info* info, npu4_model** model, npu4_error* error) {
  const npu4_status status = entries_load(device, args, info, model, error);
  if (status == NPU4_OK) count_bytes(device, weights_of((entries_model*)(void*)*model), 0);
  return status;
}

static void counted_model_free(npu4_model* model) {
  const entries_model* freed = (const entries_model*)(const void*)model;
  if (freed != NULL) count_bytes(freed->entries[0]->device, 0, weights_of(freed));
  entries_free(model);
}

static npu4_status counted_program(npu4_model* model, const npu4_program_args* args,
                                   npu4_program** program, npu4_error* error) {
  const npu4_status status = entries_program(model, args, program, error);
  if (status == NPU4_OK && (*program)->own_scratch != NULL) {
    count_bytes((*program)->model->device, scratch_size((*program)->model->ir), 0);
  }
  return status;
}

static void counted_program_free(npu4_program* program) {
  if (program != NULL && program->own_scratch != NULL) {
    count_bytes(program->model->device, 0, scratch_size(program->model->ir));
  }
  program_free(program);
}

static npu4_status counted_buffer(npu4_device* device, const npu4_buffer_desc* desc,
                                  npu4_buffer** buffer, npu4_error* error) {
  const npu4_status status = queue_buffer_create(device, desc, buffer, error);
  queue_buffer* made = status == NPU4_OK ? (queue_buffer*)*buffer : NULL;
  if (made != NULL && !made->is_pinned) {
    made->counted = device;
    count_bytes(device, made->base.bytes, 0);
  }
  return status;
}

static void counted_buffer_free(npu4_buffer* buffer) {
  const queue_buffer* freed = (const queue_buffer*)buffer;
  if (freed != NULL && freed->counted != NULL) count_bytes(freed->counted, 0, freed->base.bytes);
  queue_buffer_free(buffer);
}
