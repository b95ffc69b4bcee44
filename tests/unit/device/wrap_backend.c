/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that hands every call to another one and changes one answer, for the tests of what the
   host does with it. WRAP_FILE is the other's file, or a name in the folder of this one; without
   it, the vendor's backend of the tests. WRAP_FAULT is the answer:

     compile=N      compile fails with status N and a text
     lie            compile says that it went well, and gives no blob
     rank=N         buffer_describe tells of N dimensions
     negative       buffer_describe tells of negative extents
     null-result    run leaves out its first result
     only=N         serves hosts that ask for version N, and no others, with a table of version N */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/backend.h"

static const npu_backend_api* other;
static npu_backend_api table;
static long live_buffers;

__attribute__((visibility("default"))) long wrap_live_buffers(void);

/* Buffers that were handed out and have not come back. */
long wrap_live_buffers(void) { return live_buffers; }

/* What stands behind "NAME=" in WRAP_FAULT, or null. */
static const char* fault(const char* name) {
  const char* set = getenv("WRAP_FAULT");
  const size_t length = strlen(name);
  if (set == NULL || strncmp(set, name, length) != 0) return NULL;
  if (set[length] == '\0') return set + length;
  return set[length] == '=' ? set + length + 1 : NULL;
}

static npu_status describe(npu_backend_description* description, npu_error* error) {
  const npu_status status = other->describe(description, error);
  description->name = "wrap";
  return status;
}

static npu_status compile(npu_device* device, const char* sub_ir, size_t sub_ir_size,
                          const npu_tensor* weights, size_t weight_count, const char* options,
                          npu_blob* blob, npu_error* error) {
  const char* status = fault("compile");
  if (fault("lie") != NULL) return NPU_OK;
  if (status != NULL) {
    snprintf(error->text, sizeof error->text, "the answer is status %s", status);
    return (npu_status)atoi(status);
  }
  return other->compile(device, sub_ir, sub_ir_size, weights, weight_count, options, blob, error);
}

static npu_status buffer_allocate(npu_device* device, npu_dtype dtype, uint32_t rank,
                                  const int64_t* shape, npu_buffer** buffer, npu_error* error) {
  const npu_status status = other->buffer_allocate(device, dtype, rank, shape, buffer, error);
  if (status == NPU_OK) ++live_buffers;
  return status;
}

static npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                                npu_error* error) {
  const npu_status status = other->buffer_import(device, tensor, buffer, error);
  if (status == NPU_OK) ++live_buffers;
  return status;
}

static npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description,
                                  npu_error* error) {
  static const int64_t negative[] = {-1, -1};
  const npu_status status = other->buffer_describe(buffer, description, error);
  const char* rank = fault("rank");
  if (rank != NULL) description->rank = (uint32_t)strtoul(rank, NULL, 0);
  if (fault("negative") != NULL) {
    description->rank = 2;
    description->shape = negative;
  }
  return status;
}

static void buffer_free(npu_buffer* buffer) {
  if (buffer != NULL) --live_buffers;
  other->buffer_free(buffer);
}

static npu_status run(npu_program* program, npu_buffer* const* inputs, size_t input_count,
                      npu_buffer** outputs, size_t output_count, npu_error* error) {
  size_t i = 0;
  const npu_status status = other->run(program, inputs, input_count, outputs, output_count, error);
  if (status != NPU_OK) return status;
  for (i = 0; i < output_count; ++i) ++live_buffers;
  if (fault("null-result") != NULL && output_count != 0) {
    buffer_free(outputs[0]);
    outputs[0] = NULL;
  }
  return status;
}

/* The file of the other backend; null if it is not known. */
static const char* other_file(char* text, size_t size) {
  const char* file = getenv("WRAP_FILE");
  Dl_info self;
  const char* slash = NULL;
  if (file == NULL) file = "npu_backend_vendor.so";
  if (strchr(file, '/') != NULL) return file;
  if (dladdr((const void*)&table, &self) == 0) return NULL;
  slash = strrchr(self.dli_fname, '/');
  if (slash == NULL) return file;
  snprintf(text, size, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, file);
  return text;
}

static int load_other(void) {
  char text[4096];
  const npu_backend_api* (*entry)(uint32_t) = NULL;
  const char* file = other_file(text, sizeof text);
  void* library = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 0;
  *(void**)&entry = dlsym(library, NPU_BACKEND_ENTRY_NAME);
  if (entry != NULL) other = entry(NPU_BACKEND_ABI_VERSION);
  return other != NULL;
}

__attribute__((visibility("default"))) const npu_backend_api* npu_backend_entry(
    uint32_t host_abi_version) {
  const char* only = fault("only");
  if (only != NULL && host_abi_version != (uint32_t)atoi(only)) return NULL;
  if (host_abi_version < 2 || (other == NULL && !load_other())) return NULL;
  memcpy(&table, other, sizeof table);
  if (only != NULL) table.abi_version = (uint32_t)atoi(only);
  table.describe = describe;
  table.compile = compile;
  table.buffer_allocate = buffer_allocate;
  table.buffer_import = buffer_import;
  table.buffer_describe = buffer_describe;
  table.buffer_free = buffer_free;
  table.run = run;
  return &table;
}
