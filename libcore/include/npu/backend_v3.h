/* SPDX-License-Identifier: Apache-2.0 */
/* The C ABI between npu-tools and a device backend.

   A backend is a shared object that exports one function, npu_backend_entry. It is the only thing a
   vendor has to provide; no C++ type and no exception crosses this boundary. All strings are UTF-8.

   Life of a model: open_device, compile (a sub-IR and its weights become a blob), load (the blob
   becomes a program), buffer_import for the inputs, run, buffer_export for the outputs, then
   buffer_free, program_free and close_device. A program may run any number of times; its weights
   are uploaded once, by load.

   Threads: the host calls into one npu_device from one thread at a time; calls on different
   devices may be made concurrently.

   Errors: a call that fails returns a status other than NPU_OK and writes one line of lower-case
   text, without a final full stop, into error->text. Its outputs are then untouched. */
#ifndef NPU_BACKEND_V3_H
#define NPU_BACKEND_V3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented whenever a struct or a function below changes its meaning or layout. Version 3 added
   step_times at the end of npu_backend_api; a version 3 host also serves version 2 backends: it
   asks npu_backend_entry for version 3 first, then for version 2. */
#define NPU_BACKEND_ABI_VERSION 3u

/* The name of the entry function, for dlsym. */
#define NPU_BACKEND_ENTRY_NAME "npu_backend_entry"

typedef enum npu_status {
  NPU_OK = 0,
  NPU_ERROR_UNSUPPORTED = 1, /* the backend does not run this op, dtype, rank or attribute */
  NPU_ERROR_INVALID = 2,     /* the sub-IR, a tensor or a blob is malformed */
  NPU_ERROR_MEMORY = 3,      /* out of device or host memory */
  NPU_ERROR_FAILED = 4       /* an op failed while it ran */
} npu_status;

#define NPU_ERROR_TEXT_SIZE 2048
typedef struct npu_error {
  char text[NPU_ERROR_TEXT_SIZE]; /* NUL-terminated, truncated if need be */
} npu_error;

typedef enum npu_dtype {
  NPU_FLOAT32 = 0,
  NPU_FLOAT64 = 1,
  NPU_FLOAT16 = 2,
  NPU_BFLOAT16 = 3,
  NPU_INT8 = 4,
  NPU_UINT8 = 5,
  NPU_INT16 = 6,
  NPU_INT32 = 7,
  NPU_INT64 = 8,
  NPU_BOOL = 9, /* one byte per element, 0 or 1 */
  NPU_COMPLEX64 = 10,
  NPU_COMPLEX128 = 11
} npu_dtype;

/* A dense row-major tensor in host memory. `bytes` is the product of `shape` times the element
   size; `data` may be NULL only if `bytes` is 0. `shape` may be NULL only if `rank` is 0. */
typedef struct npu_tensor {
  const char* name;
  npu_dtype dtype;
  uint32_t rank;
  const int64_t* shape;
  const void* data;
  uint64_t bytes;
} npu_tensor;

/* Bits of npu_backend_description.capabilities. */
#define NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS \
  1u                             /* load ignores its weights: they are packed in the blob */
#define NPU_CAPABILITY_ANY_OP 2u /* every op that list_ops names compiles, whatever its shapes */
#define NPU_CAPABILITY_WRITES_OUTPUTS 4u /* run writes into output buffers that the host passes */

typedef struct npu_backend_description {
  const char* name;    /* "onednn" */
  const char* version; /* of the backend and of the library it is built on */
  const char*
      fingerprint; /* what a compiled blob depends on besides its inputs: version, format, CPU */
  uint32_t capabilities;
} npu_backend_description;

/* Memory from the backend's own allocator; the host returns it with blob_free. */
typedef struct npu_blob {
  const void* data;
  uint64_t size;
} npu_blob;

typedef struct npu_device npu_device;   /* one opened instance of the backend */
typedef struct npu_program npu_program; /* a loaded, runnable sub-IR */
typedef struct npu_buffer npu_buffer;   /* a tensor in device memory */

/* Called once per op name; `kind` says where it comes from ("aten", "decomposition", "custom",
 * ...). */
typedef void (*npu_op_visitor)(void* context, const char* op_type, const char* kind);

typedef struct npu_backend_api {
  uint32_t abi_version; /* NPU_BACKEND_ABI_VERSION of the header that the backend was built with */
  uint32_t struct_size; /* sizeof(npu_backend_api) there */

  npu_status (*describe)(npu_backend_description* description, npu_error* error);

  /* `options` is a JSON object. Every backend knows "threads" (an integer; 0: all cores); other
     keys are specific to a backend, and a backend ignores keys that it does not know. */
  npu_status (*open_device)(const char* options, npu_device** device, npu_error* error);
  void (*close_device)(npu_device* device);

  /* Compiles a sub-IR: one JSON document of npu-ir(5) whose graph_inputs, graph_outputs, weights
     and nodes stand alone. Nodes with the same "fusion_group" are to be one kernel, of the pattern
     "fusion_pattern"; a backend may split groups, and may ignore both. `weights` holds every weight
     and lifted constant that its nodes read, by the tensor name that the nodes use. `options` is a
     JSON object (NULL: none): "precision" is "f32" (the default: float32 tensors are computed in
     float32) or "bf16" (they may be stored and computed in bfloat16, with accumulation, norms and
     softmax in float32; the sub-IR's inputs and outputs keep their dtypes). A backend ignores keys
     that it does not know. */
  npu_status (*compile)(npu_device* device, const char* sub_ir, size_t sub_ir_size,
                        const npu_tensor* weights, size_t weight_count, const char* options,
                        npu_blob* blob, npu_error* error);
  void (*blob_free)(npu_blob* blob);

  /* Makes a blob runnable. `blob` and the data of `weights` stay valid and unchanged until
     program_free, so a backend that computes in host memory may use both in place; a blob that is
     aligned to 4096 bytes spares it a copy. A backend with NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS
     ignores `weights`. The blob is untrusted input: a malformed one is NPU_ERROR_INVALID. */
  npu_status (*load)(npu_device* device, const void* blob, uint64_t blob_size,
                     const npu_tensor* weights, size_t weight_count, npu_program** program,
                     npu_error* error);
  void (*program_free)(npu_program* program);

  /* Buffers. buffer_import copies `tensor` to the device; buffer_export copies to `data`, which
     holds exactly `bytes` bytes, row-major. buffer_describe fills everything but `name`: `shape`
     lives as long as the buffer; `data` is its row-major host memory, or NULL if it has none. */
  npu_status (*buffer_allocate)(npu_device* device, npu_dtype dtype, uint32_t rank,
                                const int64_t* shape, npu_buffer** buffer, npu_error* error);
  npu_status (*buffer_import)(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                              npu_error* error);
  npu_status (*buffer_export)(const npu_buffer* buffer, void* data, uint64_t bytes,
                              npu_error* error);
  npu_status (*buffer_describe)(const npu_buffer* buffer, npu_tensor* description,
                                npu_error* error);
  void (*buffer_free)(npu_buffer* buffer);

  /* Runs a program. `inputs` follow the sub-IR's graph_inputs, `outputs` its graph_outputs. The
     backend allocates an output that is null, and the host owns it from then on. Only a backend
     with NPU_CAPABILITY_WRITES_OUTPUTS is passed outputs that are not null; they were made by
     buffer_allocate with the right dtype and shape. Inputs are never changed, and no output shares
     memory with an input or a weight. */
  npu_status (*run)(npu_program* program, npu_buffer* const* inputs, size_t input_count,
                    npu_buffer** outputs, size_t output_count, npu_error* error);

  /* Names every op that the backend knows. May be NULL. */
  npu_status (*list_ops)(npu_device* device, npu_op_visitor visit, void* context, npu_error* error);

  /* Time in nanoseconds that each node of the program took in the last run, in the order of the
     sub-IR's nodes; 0 for a node that costs nothing or was fused into another. May be NULL.
     `nanoseconds` has `count` entries, the number of nodes. */
  npu_status (*node_times)(const npu_program* program, uint64_t* nanoseconds, size_t count,
                           npu_error* error);

  /* Describes a compiled blob by one JSON object in `report` (UTF-8, `size` bytes, no NUL needed),
     which the host returns with blob_free. It is read from the blob alone; nothing is loaded. Known
     keys, each optional: "nodes" (of the sub-IR), "kernels" (that a run executes, after fusion),
     "reorders" (kernels that only change a layout or dtype), "flops", "weight_bytes" (packed),
     "arena_bytes", "peak_live_bytes", "precision", "splits" (one object per kernel that the fusion
     groups did not predict: their "pattern", the "node" that it begins with and the "reason"),
     "steps" (one object per kernel, in the order in which a run executes them). Known keys of a
     step, each optional: "node" (the name of the node that its time is charged to), "nodes" (all
     nodes that it computes, if more than one), "kind"
     ("compute", "move", or "reorder" for one that only changes a layout or dtype), "reads" or
     "writes" (the sub-IR's input or output that a step does nothing with but bring it into another
     layout), "kernel" (its name), "implementation" (where there are several of that kernel),
     "estimate" (by which it was chosen, in cycles), "rounding" (the error of a result to expect,
     root mean square, in units of 2^-24 of the results, where that is more than the op's definition
     gives) and "why" (an object with "kernel" and "reason" for each other candidate). May be NULL.
   */
  npu_status (*blob_report)(npu_device* device, const void* blob, uint64_t blob_size,
                            npu_blob* report, npu_error* error);

  /* Since version 3. Time in nanoseconds that each kernel of the program took in the last run, in
     the order of the report's "steps". `nanoseconds` has `count` entries, the number of steps. May
     be NULL. */
  npu_status (*step_times)(const npu_program* program, uint64_t* nanoseconds, size_t count,
                           npu_error* error);
} npu_backend_api;

/* What the shared object exports. Returns NULL if it cannot serve a host of `host_abi_version`. */
const npu_backend_api* npu_backend_entry(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif
#endif
