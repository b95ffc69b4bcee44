/* SPDX-License-Identifier: Apache-2.0 */
/* Several programs of one model, feature "entries": a blob with a sub-IR under each name, whose
   weights are uploaded once, whichever entries read them. States that a run updates, feature
   "alias", and scratch memory that programs share, feature "scratch", belong to programs and are
   here, too. The skeleton comes before it.

   A blob of one entry without a name is the skeleton's own. Any other one has a header, and for
   each entry its name and the blob that the skeleton would have made of it alone. */

#define MAX_ENTRIES 256u
#define MAX_NAME 255u /* bytes */

typedef struct entries_header {
  char magic[16];
  uint64_t count;
} entries_header;

typedef struct entry_header {
  uint64_t name_size;
  uint64_t blob_size;
} entry_header;

static const char kEntriesMagic[16] = "skeleton many 1";

/* An entry of a blob, in the blob's memory. */
typedef struct entry_view {
  const char* name;
  uint64_t name_size;
  const void* blob;
  uint64_t blob_size;
} entry_view;

/* What model_load gives; an entry's programs know its model alone. */
typedef struct entries_model {
  uint64_t count;
  npu_model** entries;
  char** names;
} entries_model;

static int has_entries(const void* blob, uint64_t size) {
  return blob != NULL && size >= sizeof(entries_header) &&
         memcmp(blob, kEntriesMagic, sizeof kEntriesMagic) == 0;
}

/* The entries of a blob, at most MAX_ENTRIES; one without a name if it has none. */
static npu_status read_entries(const void* blob, uint64_t size, entry_view* views, uint64_t* count,
                               npu_error* error) {
  const char* at = (const char*)blob;
  entries_header header;
  uint64_t left = size;
  uint64_t i;
  *count = 1;
  views[0].name = "";
  views[0].name_size = 0;
  views[0].blob = blob;
  views[0].blob_size = size;
  if (!has_entries(blob, size)) return NPU_OK;
  memcpy(&header, at, sizeof header);
  if (header.count == 0 || header.count > MAX_ENTRIES) {
    return fail(error, NPU_INVALID, NULL, "the blob has no number of entries");
  }
  at += sizeof header;
  left -= sizeof header;
  for (i = 0; i < header.count; ++i) {
    entry_header entry;
    if (left < sizeof entry) return fail(error, NPU_INVALID, NULL, "the blob is cut short");
    memcpy(&entry, at, sizeof entry);
    at += sizeof entry;
    left -= sizeof entry;
    if (entry.name_size > left || entry.blob_size > left - entry.name_size) {
      return fail(error, NPU_INVALID, NULL, "the blob is cut short");
    }
    if (entry.name_size > MAX_NAME) {
      return fail(error, NPU_INVALID, NULL, "the name of an entry is too long");
    }
    views[i].name = at;
    views[i].name_size = entry.name_size;
    views[i].blob = at + entry.name_size;
    views[i].blob_size = entry.blob_size;
    at += entry.name_size + entry.blob_size;
    left -= entry.name_size + entry.blob_size;
  }
  *count = header.count;
  if (left == 0) return NPU_OK;
  return fail(error, NPU_INVALID, NULL, "the blob goes on behind its entries");
}

/* ---- Compile ---- */

static npu_status check_entries(const npu_compile_args* args, npu_error* error) {
  uint64_t i;
  uint64_t k;
  if (args->entry_count == 0 || args->entry_count > MAX_ENTRIES || args->entries == NULL) {
    return fail(error, NPU_INVALID, NULL, "expected 1 to %u entries", MAX_ENTRIES);
  }
  for (i = 0; i < args->entry_count; ++i) {
    const char* name = args->entries[i]->name;
    if (name == NULL && args->entry_count == 1) break;
    if (name == NULL) return fail(error, NPU_INVALID, NULL, "an entry has no name");
    if (strlen(name) > MAX_NAME) {
      return fail(error, NPU_INVALID, NULL, "the name of an entry has %lu bytes, at most %u fit",
                  (unsigned long)strlen(name), MAX_NAME);
    }
    for (k = 0; k < i; ++k) {
      if (strcmp(name, args->entries[k]->name) != 0) continue;
      return fail(error, NPU_INVALID, NULL, "two entries are named '%s'", name);
    }
  }
  return NPU_OK;
}

static npu_status compile_entries(npu_device* device, const npu_compile_args* args,
                                  npu_error* error) {
  npu_status status = check_entries(args, error);
  npu_compile_args one;
  entries_header header;
  uint64_t i;
  if (status != NPU_OK) return status;
  if (args->entry_count == 1 && args->entries[0]->name == NULL) return compile(device, args, error);
  memcpy(header.magic, kEntriesMagic, sizeof kEntriesMagic);
  header.count = args->entry_count;
  status = args->blob->write(args->blob->context, &header, sizeof header, error);
  memset(&one, 0, sizeof one);
  one.struct_size = sizeof one;
  one.entry_count = 1;
  one.options = args->options;
  one.ir_version = args->ir_version;
  one.blob = args->blob;
  for (i = 0; i < args->entry_count && status == NPU_OK; ++i) {
    const npu_entry* entry = args->entries[i];
    entry_header prefix;
    prefix.name_size = strlen(entry->name);
    prefix.blob_size = sizeof(blob_header) + entry->sub_ir_size; /* which compile writes */
    status = args->blob->write(args->blob->context, &prefix, sizeof prefix, error);
    if (status == NPU_OK) {
      status = args->blob->write(args->blob->context, entry->name, prefix.name_size, error);
    }
    one.entries = &args->entries[i];
    if (status == NPU_OK) status = compile(device, &one, error);
  }
  return status;
}

/* ---- Blobs ---- */

static npu_status entries_check(npu_device* device, const void* blob, uint64_t blob_size,
                                npu_blob_verdict* verdict, npu_error* error) {
  entry_view views[MAX_ENTRIES];
  uint64_t count;
  const npu_status status = read_entries(blob, blob_size, views, &count, error);
  /* All entries were compiled at once, for one device. */
  return status == NPU_OK ? blob_check(device, views[0].blob, views[0].blob_size, verdict, error)
                          : status;
}

/* What a run does that gets one buffer for a pair: here, it copies its result there at the end. */
static npu_status put_aliases(const npu_writer* report, const npu_ir* ir, npu_error* error) {
  npu_status status = put(report, ", \"aliases\": {", error);
  uint32_t i;
  for (i = 0; i < ir->alias_count && status == NPU_OK; ++i) {
    if (i != 0) status = put(report, ", ", error);
    if (status == NPU_OK) {
      status = put_quoted(report, ir->tensors[ir->outputs[ir->aliases[i].output]].name, error);
    }
    if (status == NPU_OK) status = put(report, ": \"copied\"", error);
  }
  return status == NPU_OK ? put(report, "}", error) : status;
}

static npu_status put_entry(const npu_writer* report, const entry_view* view, int is_named,
                            npu_error* error) {
  char name[MAX_NAME + 1];
  npu_ir* ir = NULL;
  npu_status status = read_blob(view->blob, view->blob_size, &ir, error);
  if (status != NPU_OK) return status;
  status = put(report, "{", error);
  if (is_named && status == NPU_OK) {
    memcpy(name, view->name, (size_t)view->name_size);
    name[view->name_size] = '\0';
    status = put(report, "\"name\": ", error);
    if (status == NPU_OK) status = put_quoted(report, name, error);
    if (status == NPU_OK) status = put(report, ", ", error);
  }
  if (status == NPU_OK) status = put_taps(report, ir, error);
  if (status == NPU_OK) status = put_aliases(report, ir, error);
  npu_ir_free(ir);
  return status == NPU_OK ? put(report, "}", error) : status;
}

static npu_status entries_report(npu_device* device, const void* blob, uint64_t blob_size,
                                 const npu_writer* report, npu_error* error) {
  entry_view views[MAX_ENTRIES];
  uint64_t count;
  uint64_t i;
  npu_status status = read_entries(blob, blob_size, views, &count, error);
  (void)device;
  if (status != NPU_OK) return status;
  if (count == 1) return put_entry(report, &views[0], 0, error);
  status = put(report, "{\"entries\": [", error);
  for (i = 0; i < count && status == NPU_OK; ++i) {
    if (i != 0) status = put(report, ", ", error);
    if (status == NPU_OK) status = put_entry(report, &views[i], 1, error);
  }
  return status == NPU_OK ? put(report, "]}", error) : status;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Of one entry: bytes of weights that `before` does not have, of scratch and of boundary. */
static void add_memory(const npu_ir* ir, npu_ir* const* before, uint64_t count,
                       npu_memory_bytes* sum) {
  uint64_t boundary = 0;
  uint32_t i;
  uint64_t e;
  uint32_t k;
  for (i = 0; i < ir->tensor_count; ++i) {
    int is_there = ir->tensors[i].kind != NPU_IR_WEIGHT;
    if (ir->tensors[i].kind == NPU_IR_INPUT) boundary += ir->tensors[i].bytes;
    for (e = 0; e < count && !is_there; ++e) {
      for (k = 0; k < before[e]->tensor_count && !is_there; ++k) {
        is_there = before[e]->tensors[k].kind == NPU_IR_WEIGHT &&
                   strcmp(before[e]->tensors[k].name, ir->tensors[i].name) == 0;
      }
    }
    if (!is_there) sum->weights_bytes += ir->tensors[i].bytes;
  }
  for (i = 0; i < ir->output_count; ++i) boundary += ir->tensors[ir->outputs[i]].bytes;
  sum->scratch_bytes = larger(sum->scratch_bytes, scratch_size(ir));
  sum->boundary_bytes = larger(sum->boundary_bytes, boundary);
}

/* Required by the feature "scratch": how much of it a program needs. */
static npu_status entries_memory(npu_device* device, const void* blob, uint64_t blob_size,
                                 npu_memory_report* report, npu_error* error) {
  entry_view views[MAX_ENTRIES];
  npu_ir* irs[MAX_ENTRIES];
  npu_memory_bytes filled;
  uint64_t count;
  uint64_t read = 0;
  npu_status status = read_entries(blob, blob_size, views, &count, error);
  (void)device;
  memset(&filled, 0, sizeof filled);
  while (status == NPU_OK && read < count) {
    status = read_blob(views[read].blob, views[read].blob_size, &irs[read], error);
    if (status != NPU_OK) break;
    add_memory(irs[read], irs, read, &filled);
    ++read;
  }
  while (read != 0) npu_ir_free(irs[--read]);
  if (status != NPU_OK) return status;
  if (report->memory_count != 0) {
    give(report->memories[0], report->memories[0]->struct_size, &filled, sizeof filled);
  }
  report->flags = NPU_MEMORY_BOUND;
  report->host_bytes = 0;
  return NPU_OK;
}

/* ---- Models ---- */

/* The weight of this name that an entry before `end` has. */
static float* find_weight(const entries_model* model, uint64_t end, const npu_ir_tensor* weight) {
  uint64_t e;
  uint32_t i;
  for (e = 0; e < end; ++e) {
    const npu_ir* ir = model->entries[e]->ir;
    for (i = 0; i < ir->tensor_count; ++i) {
      if (ir->tensors[i].kind == NPU_IR_WEIGHT && ir->tensors[i].bytes == weight->bytes &&
          strcmp(ir->tensors[i].name, weight->name) == 0) {
        return model->entries[e]->weights[i];
      }
    }
  }
  return NULL;
}

/* What an entry has of those before it is theirs. */
static void entries_free(npu_model* freed) {
  entries_model* model = (entries_model*)(void*)freed;
  uint64_t e;
  uint32_t i;
  if (model == NULL) return;
  for (e = model->count; e-- != 0;) {
    npu_model* entry = model->entries != NULL ? model->entries[e] : NULL;
    for (i = 0; entry != NULL && entry->weights != NULL && i < entry->ir->tensor_count; ++i) {
      const npu_ir_tensor* tensor = &entry->ir->tensors[i];
      if (tensor->kind != NPU_IR_WEIGHT || entry->weights[i] == NULL) continue;
      if (find_weight(model, e, tensor) == entry->weights[i]) entry->weights[i] = NULL;
    }
    model_free(entry);
    if (model->names != NULL) free(model->names[e]);
  }
  free(model->entries);
  free(model->names);
  free(model);
}

static npu_status load_entry(entries_model* model, npu_device* device, const entry_view* view,
                             uint64_t e, const npu_load_args* args, npu_error* error) {
  npu_model* entry = (npu_model*)allocate(sizeof *entry);
  npu_status status;
  uint32_t i;
  model->entries[e] = entry;
  model->names[e] = (char*)allocate(view->name_size + 1);
  if (entry == NULL || model->names[e] == NULL) return out_of_memory(error, sizeof *entry);
  memcpy(model->names[e], view->name, (size_t)view->name_size);
  entry->device = device;
  status = read_blob(view->blob, view->blob_size, &entry->ir, error);
  if (status != NPU_OK) return status;
  entry->weights = (float**)allocate(entry->ir->tensor_count * sizeof *entry->weights);
  if (entry->weights == NULL) return out_of_memory(error, 0);
  for (i = 0; i < entry->ir->tensor_count; ++i) {
    const npu_ir_tensor* tensor = &entry->ir->tensors[i];
    if (tensor->kind == NPU_IR_WEIGHT) entry->weights[i] = find_weight(model, e, tensor);
  }
  return take_weights(entry, args, error);
}

static npu_status entries_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                               npu_model** model, npu_error* error) {
  entry_view views[MAX_ENTRIES];
  npu_model_info filled = {0, NPU_RELEASES_BLOB | NPU_RELEASES_WEIGHTS};
  entries_model* loaded;
  uint64_t count;
  uint64_t e;
  npu_status status = read_entries(args->blob, args->blob_size, views, &count, error);
  if (status != NPU_OK) return status;
  loaded = (entries_model*)allocate(sizeof *loaded);
  if (loaded == NULL) return out_of_memory(error, sizeof *loaded);
  loaded->entries = (npu_model**)allocate(count * sizeof *loaded->entries);
  loaded->names = (char**)allocate(count * sizeof *loaded->names);
  if (loaded->entries == NULL || loaded->names == NULL) status = out_of_memory(error, count);
  for (e = 0; e < count && status == NPU_OK; ++e) {
    loaded->count = e + 1;
    status = load_entry(loaded, device, &views[e], e, args, error);
  }
  if (status != NPU_OK) {
    entries_free((npu_model*)(void*)loaded);
    return status;
  }
  if (info != NULL) give(info, info->struct_size, &filled, sizeof filled);
  *model = (npu_model*)(void*)loaded;
  return NPU_OK;
}

/* ---- Programs ---- */

/* Marks a buffer of bytes, which no tensor's shape has. */
#define SCRATCH_RANK (MAX_RANK + 1u)

static npu_status entries_program(npu_model* of, const npu_program_args* args,
                                  npu_program** program, npu_error* error) {
  entries_model* model = (entries_model*)(void*)of;
  const npu_buffer* scratch = args != NULL && NPU_HAS(args, scratch) ? args->scratch : NULL;
  uint64_t e = 0;
  if (args != NULL && args->entry != NULL) {
    while (e < model->count && strcmp(model->names[e], args->entry) != 0) ++e;
  }
  if (e == model->count) {
    return fail(error, NPU_INVALID, NULL, "the blob has no entry '%s'", args->entry);
  }
  if (scratch == NULL) return create_program(model->entries[e], args, NULL, program, error);
  if (scratch->rank != SCRATCH_RANK || scratch->bytes < scratch_size(model->entries[e]->ir)) {
    return fail(error, NPU_INVALID, NULL, "the scratch buffer is none, or too small");
  }
  return create_program(model->entries[e], args, (char*)scratch->data, program, error);
}
