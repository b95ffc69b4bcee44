// SPDX-License-Identifier: Apache-2.0
/* The C interface between npu-tools and a device backend, version 1. It is provisional until
   npu-tools 1.0: what is here may still change. From then on it stays as it is, and what comes
   later is appended, sized and named as a feature (rules 2 to 5).

   A backend is a shared object npu_backend_NAME.so that exports one function, npu_backend_entry.
   It is the only thing a vendor has to provide; no C++ type and no exception crosses.

   Life of a model: device_open; compile (a sub-IR and its weights become a blob); model_load (the
   blob becomes a model, which holds the weights and never changes); program_create (an instance of
   it, with its scratch memory); buffer_create and buffer_write for the inputs, buffer_create for
   the outputs; run, any number of times; buffer_read. A backend that blocks in every call is a
   complete one; functions and features marked as optional have a fallback in the host.

   Rules for everything below:

   1. The first member of a struct is struct_size, set by whoever allocates it, to sizeof; the rest
      is zeroed before it is filled. (npu_span alone has none: it is an element of an array of
      numbers, and never grows. An array of structs is one of pointers, so that they can grow.)
   2. Members are only ever appended. One is there if NPU_HAS(pointer, member). Never compare
      struct_size for equality; ignore a tail that you do not know.
   3. An out struct (a parameter that is not const): the caller sets struct_size to the room there
      is; the callee writes no further, and sets it to what it filled.
   4. What must not be ignored belongs to a feature. The host uses it only if the backend lists that
      name; a vendor's own names begin with his own and a dot.
   5. A function that is null is not there.
   6. Every number has a fixed width. One that the receiver does not know (a status, a kind, a flag)
      means "other" and is no error; an unknown status counts as NPU_INTERNAL.
   7. Strings are UTF-8 and end with a NUL. Those of infos live until the process ends; those in
      arguments until the call returns.
   8. Freeing: the host frees programs before their model, models before the weights they took,
      everything before the device, and nothing that a run in flight uses. After NPU_DEVICE_LOST
      only free functions, device_close, device_status, event_wait and program_cancel are called,
      and what other threads had begun; all return at once, without talking to the device.
      A null pointer is freed without an effect.
   9. A call that fails returns its status and fills the error; its other outputs are untouched, and
      the object stays usable. An error pointer may be null.
  10. Nothing is written to standard output or error: standard output carries a document. There is
      npu_host.log.
  11. Settings of the thread or the process (OpenMP's threads, environment, rounding) are as before
      when a call returns. Threads of a backend block all signals.
  12. What is said here of a function, member or feature is a promise, and so is what a backend says
      of itself. The host that finds one broken ends with NPU_INTERNAL and the name of the promise,
      "broken promise of compile"; it never takes it for a refusal.

   Threads. What the host promises, for each kind of object:

     - entry, infos, blob_report, blob_check, blob_memory, device_memory, clock_sample: from any
       thread, at any time.

     - device: compile and check at most concurrent_compiles at once (1 if unknown), beside runs;
       *_load, *_create, buffer_wrap and list_ops one at a time for each device.

     - model, weights: any number of readers.

     - program: at most one run at a time, submitted ones included until their event is done;
       blocking runs on one device, one at a time.

     - buffer: created, freed, mapped, read and written by any thread, by one at a time and never
       while a run has it; no work that was submitted with it is left when it is freed.

     - queue: one call at a time for each queue, beside calls for other queues.

     - event, program_cancel: from any thread.

     - log, progress, write, npu_done: called by the backend from any thread; they never call back
       into it.

     - fork: not after the first device_open.

     - process end: devices are closed first; no destructor of a backend may need another. */
#ifndef NPU_BACKEND_H
#define NPU_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host loads backends of its own version. */
#define NPU_ABI_VERSION 1u
/* The name of the entry function, for dlsym. */
#define NPU_ENTRY_NAME "npu_backend_entry"
/* The format of sub-IRs that this host writes, their "ir_version". */
#define NPU_IR_VERSION 1u

/* Whether the struct that `pointer` points to has this member. */
#ifdef __cplusplus
#define NPU_HAS(pointer, member)                                                 \
  (static_cast<uint64_t>(reinterpret_cast<const char*>(&(pointer)->member + 1) - \
                         reinterpret_cast<const char*>(pointer)) <= (pointer)->struct_size)
#else
#define NPU_HAS(pointer, member)                                                 \
  ((uint64_t)((const char*)(&(pointer)->member + 1) - (const char*)(pointer)) <= \
   (pointer)->struct_size)
#endif

/* ---- Errors ---- */

/* What the host makes of a status: in compile, in a run, and as the program's exit status. */
typedef uint32_t npu_status;
#define NPU_OK 0u
#define NPU_UNSUPPORTED 1u  /* not for this device. compile: the next device; otherwise 1 */
#define NPU_INVALID 2u      /* a malformed argument, blob or sub-IR: 1 */
#define NPU_MEMORY 3u       /* out of device or host memory; say how much: 3 */
#define NPU_FAILED 4u       /* an op failed while it ran: 1 */
#define NPU_CANCELLED 5u    /* as asked: ends as the interrupt says */
#define NPU_DEADLINE 6u     /* not in time: 3. event_wait: not done yet */
#define NPU_BUSY 7u         /* somebody else has it. Tried again for five seconds; then 1 */
#define NPU_DEVICE_LOST 8u  /* nothing of this device works any more. Opened again once; then 1 */
#define NPU_INCOMPATIBLE 9u /* a blob of another device or version: 1, compile it again */
#define NPU_INTERNAL 10u    /* the backend's own fault: 1 */
#define NPU_END 11u         /* of device_info: there is no such index */

#define NPU_ERROR_RETRY 1u /* flag: the same call may succeed soon */

#define NPU_KNOWN_REQUESTED 1u /* bits of npu_error.known */
#define NPU_KNOWN_AVAILABLE 2u
#define NPU_KNOWN_MEMORY 4u
#define NPU_KNOWN_VENDOR_CODE 8u

typedef struct npu_error {
  uint64_t struct_size;
  uint32_t status; /* the one that is returned */
  uint32_t flags;
  uint64_t known; /* which of the next four numbers are filled */
  uint64_t requested_bytes;
  uint64_t available_bytes;
  uint32_t memory; /* index into the device's memories */
  uint32_t reserved;
  int64_t vendor_code;
  char node[256];  /* name of the node at fault; empty if it is none's */
  char text[1024]; /* one line, lower case, no final full stop; cut if need be */
} npu_error;

/* ---- The host ---- */

#define NPU_LOG_ERROR 0u
#define NPU_LOG_WARNING 1u
#define NPU_LOG_INFO 2u
#define NPU_LOG_DEBUG 3u

/* What the host offers; it lives as long as the process. */
typedef struct npu_host {
  uint64_t struct_size;
  uint32_t abi_version; /* NPU_ABI_VERSION */
  uint32_t reserved;
  void* context;
  /* One line, without the backend's name, which the host adds. From any thread, in any call. */
  void (*log)(void* context, uint32_t level, const char* text);
} npu_host;

/* Takes bytes one piece after the other, in order; they may be gone after the call. A status other
   than NPU_OK is to be returned at once, with the error as it is. */
typedef struct npu_writer {
  uint64_t struct_size;
  void* context;
  npu_status (*write)(void* context, const void* data, uint64_t size, npu_error* error);
} npu_writer;

/* ---- Tensors and memory ---- */

/* Numbers from 64 on are vendors' own and appear in private layouts only. The host never passes one
   that the device's info does not list; one that it lists for storage is that of any buffer that
   buffer_create is asked for, and one that it lists for arithmetic is computed in by some op. */
typedef uint32_t npu_dtype;
#define NPU_FLOAT32 0u
#define NPU_FLOAT64 1u
#define NPU_FLOAT16 2u
#define NPU_BFLOAT16 3u
#define NPU_INT8 4u
#define NPU_UINT8 5u
#define NPU_INT16 6u
#define NPU_INT32 7u
#define NPU_INT64 8u
#define NPU_BOOL 9u /* one byte per element, 0 or 1 */
#define NPU_COMPLEX64 10u
#define NPU_COMPLEX128 11u
#define NPU_INT4 12u /* two in a byte, low half first, along the flat row-major order */
#define NPU_UINT4 13u
#define NPU_FLOAT8_E4M3FN 14u
#define NPU_FLOAT8_E5M2 15u

/* A dense row-major tensor in host memory. `bytes` is the number of elements times their bits,
   rounded up to bytes; `data` may be null only if `bytes` is 0, `shape` only if `rank` is 0. */
typedef struct npu_tensor {
  uint64_t struct_size;
  const char* name; /* that of the sub-IR; may be null where none is needed */
  npu_dtype dtype;
  uint32_t rank;
  const int64_t* shape;
  const void* data;
  uint64_t bytes;
} npu_tensor;

#define NPU_USAGE_INPUT 1u /* bits of npu_buffer_desc.usage */
#define NPU_USAGE_OUTPUT 2u
#define NPU_USAGE_STATE 4u
#define NPU_USAGE_STAGING 8u  /* of the host, on the way to another buffer */
#define NPU_USAGE_SCRATCH 16u /* feature "scratch", see npu_program_args */

/* A tensor in device memory.

   Feature "layouts", beside "check": a value that goes from one program of a device to others of
   it, and nowhere else, may lie there as the backend likes, so that nobody reorders it on the way.
   A layout is a string, the backend's name, a colon and what the backend calls it. On devices of
   one fingerprint the same string means, for a dtype and shape, the same bytes; nobody else looks
   at them. check tells which layouts a sub-IR's inputs and outputs may have, the host chooses among
   those that producer and consumers share, and compile is told, each time by "boundary_layouts" in
   the options: an object, by the name of the tensor. What is not named is row-major. In compile, a
   layout that the backend does not know for that tensor is NPU_INVALID, as it is in buffer_create,
   and in a run a buffer of another layout than the program's. The feature needs buffer_write and
   buffer_read, whose content is row-major in any case; buffer_map of such a buffer is
   NPU_UNSUPPORTED. */
typedef struct npu_buffer_desc {
  uint64_t struct_size;
  npu_dtype dtype;
  uint32_t rank;
  const int64_t* shape;
  uint64_t bytes;     /* of a row-major tensor as in npu_tensor, whatever the layout */
  const char* layout; /* null: row-major. Others with the feature "layouts" alone */
  uint32_t memory;    /* index into the device's memories; 0 is the default */
  uint32_t usage;     /* a hint */
} npu_buffer_desc;

#define NPU_ACCESS_READ 1u
#define NPU_ACCESS_WRITE 2u

#define NPU_HOST_POINTER 1u /* npu_external.type */

/* Memory that a buffer is to lie in, row-major. */
typedef struct npu_external {
  uint64_t struct_size;
  uint32_t type;
  uint32_t access; /* bits of NPU_ACCESS_*: memory that is read only must never be written */
  void* pointer;   /* of NPU_HOST_POINTER */
  uint64_t offset; /* of the content, from the begin of the memory */
  uint64_t bytes;  /* of the content; at least those of the buffer */
} npu_external;

#define NPU_MEMORY_OTHER 0u /* npu_memory_info.kind */
#define NPU_MEMORY_DEVICE 1u
#define NPU_MEMORY_HOST_PINNED 2u
#define NPU_MEMORY_SHARED 3u

#define NPU_HOST_MAPPABLE 1u /* npu_memory_info.flags: buffer_map works */
#define NPU_HOST_COHERENT \
  2u /* a mapping may stay while runs use the buffer, and sees what they do */
#define NPU_WRAPS_HOST_POINTER 4u /* feature "wrap.host" */

#define NPU_KNOWN_ALIGNMENT 1u /* bits of npu_memory_info.known */
#define NPU_KNOWN_GRANULARITY 2u
#define NPU_KNOWN_TOTAL 4u
#define NPU_KNOWN_MAX_BUFFER 8u

typedef struct npu_memory_info {
  uint64_t struct_size;
  const char* name;
  uint32_t kind;
  uint32_t flags;
  uint64_t known;
  uint64_t alignment;        /* of a pointer that can be wrapped */
  uint64_t size_granularity; /* of its size */
  uint64_t total_bytes;
  uint64_t max_buffer_bytes;
} npu_memory_info;

/* ---- Backend and devices ---- */

#define NPU_BLOB_HOLDS_WEIGHTS 1u /* npu_backend_info.flags: model_load needs no weights */
#define NPU_ANY_OP 2u             /* every op that list_ops names compiles, whatever its shapes */
/* run gives its outputs new memory. The host then makes the buffers of outputs for each run, so
   that the memory goes as soon as the last reader is done; buffer_create should allocate it late.
 */
#define NPU_NEW_OUTPUTS 4u
#define NPU_DETERMINISTIC 8u /* the same arguments compile to the same bytes */

typedef struct npu_backend_info {
  uint64_t struct_size;
  const char* name;        /* NAME of the file npu_backend_NAME.so */
  const char* version;     /* of the backend and of the library it is built on */
  uint32_t ir_version_min; /* the sub-IRs that compile reads */
  uint32_t ir_version_max;
  uint64_t flags;
  /* A JSON object: name of each option of device_open and compile that is the backend's own, with
     its type, default and a line about it. The host refuses any other key of a target. Null: not
     told; then any option is passed. */
  const char* option_keys;
} npu_backend_info;

#define NPU_DTYPE_STORAGE 1u /* npu_dtype_info.flags: may be in buffers */
#define NPU_DTYPE_ARITHMETIC 2u
#define NPU_KNOWN_PEAK 1u /* bit of npu_dtype_info.known */

typedef struct npu_dtype_info {
  uint64_t struct_size;
  npu_dtype dtype;
  uint32_t flags;
  uint64_t known;
  uint64_t peak_ops_per_second;
} npu_dtype_info;

#define NPU_DEVICE_OTHER 0u /* npu_device_info.kind */
#define NPU_DEVICE_CPU 1u
#define NPU_DEVICE_GPU 2u
#define NPU_DEVICE_NPU 3u
#define NPU_DEVICE_DSP 4u

#define NPU_KNOWN_COMPUTE_UNITS 1u /* bits of npu_device_info.known */
#define NPU_KNOWN_CLOCK 2u
#define NPU_KNOWN_BANDWIDTH 4u
#define NPU_KNOWN_HOST_READ 8u
#define NPU_KNOWN_HOST_WRITE 16u
#define NPU_KNOWN_LAUNCH 32u
#define NPU_KNOWN_ON_CHIP 64u
#define NPU_KNOWN_IN_FLIGHT 128u
#define NPU_KNOWN_QUEUES 256u
#define NPU_KNOWN_COMPILES 512u

/* A fact sheet. */
typedef struct npu_device_info {
  uint64_t struct_size;
  const char* id;   /* "pci:0000:03:00.0", else "NAME:0": the same card has the same one for ever */
  const char* name; /* as people know it */
  const char* vendor;
  const char* arch;        /* what code is generated for: "gfx1030" */
  const char* driver;      /* name and version */
  const char* fingerprint; /* all that a blob depends on here besides its inputs; never empty */
  uint32_t kind;
  uint32_t usable;     /* 0: cannot be opened */
  const char* why_not; /* one line, if it cannot */
  const npu_memory_info* const* memories;
  uint64_t memory_count;
  const npu_dtype_info* const* dtypes;
  uint64_t dtype_count;
  uint64_t known; /* which of the numbers below are filled; one that is not is no 0 */
  uint64_t compute_units;
  uint64_t clock_hz;
  uint64_t memory_bandwidth; /* bytes per second, as the next two */
  uint64_t host_read_bandwidth;
  uint64_t host_write_bandwidth;
  uint64_t launch_overhead_ns;
  uint64_t on_chip_bytes;
  uint32_t max_programs_in_flight; /* of one model, submitted and not done; 1 if unknown */
  uint32_t max_queues;             /* open at once; 1 if unknown */
  uint32_t concurrent_compiles;
  uint32_t reserved;
  const char* extra; /* a JSON object of the vendor's own, or null */
} npu_device_info;

typedef struct npu_device npu_device;   /* an opened one */
typedef struct npu_weights npu_weights; /* named tensors on a device, for any number of models */
typedef struct npu_model npu_model;     /* a loaded blob: never changes, shared by programs */
typedef struct npu_program npu_program; /* an instance of a model: scratch, one run at a time */
typedef struct npu_buffer npu_buffer;   /* a tensor in device memory, owned by the host */
typedef struct npu_queue npu_queue;     /* work of a device, done in order */
typedef struct npu_event npu_event;     /* the completion of one piece of work, or its failure */

/* npu_open_args.flags. No hardware is needed; device_id is an arch, and the device answers
   compile, check and blob_* alone. Feature "offline". */
#define NPU_OPEN_COMPILE_ONLY 1u

typedef struct npu_open_args {
  uint64_t struct_size;
  const char* device_id; /* of its info; null: the first usable one */
  uint32_t flags;
  uint32_t threads;    /* of the CPU, for devices that are one and for compiling; 0: all cores */
  const char* options; /* a JSON object, the target's "backend_options"; null: none */
  /* Feature "memory.limit": model_load, program_create and buffer_create keep what is taken of all
     memories together within it, or return NPU_MEMORY with numbers; 0: none. */
  uint64_t memory_limit_bytes;
} npu_open_args;

/* ---- Compile, models ---- */

/* One JSON document of npu-ir(5) whose graph_inputs, graph_outputs, weights and nodes stand alone,
   with "ir_version". Nodes with the same "fusion_group" are to be one kernel, of the pattern
   "fusion_pattern"; a backend may split groups, and may ignore both. For a backend with the feature
   "alias" a sub-IR may have "aliases", [{"output": NAME, "input": NAME}]: pairs of the same dtype
   and shape, each tensor in one of them at most, for states that a run updates in place. */
typedef struct npu_entry {
  uint64_t struct_size;
  const char* name;
  const char* sub_ir; /* sub_ir_size bytes; no NUL needed */
  uint64_t sub_ir_size;
} npu_entry;

/* Feature "cancel": called by compile for each piece, and at least once a second if anything takes
   long. `total` 0: unknown. A result that is not 0 asks to stop soon, with NPU_CANCELLED. The host
   leaves behind what goes on for two seconds. */
typedef uint32_t (*npu_progress)(void* context, uint64_t done, uint64_t total, const char* phase);

/* Where a backend keeps what it made of one piece of a compilation, such as the code of a kernel,
   for other compilations on devices with its fingerprint: entries of the host's cache. A piece is
   made of its key and the device alone, so that nobody can tell who made it. From any thread of a
   compile. */
typedef struct npu_piece_cache {
  uint64_t struct_size;
  void* context;
  /* Writes the piece that was kept under a key of key_size bytes; NPU_UNSUPPORTED, without an error
     text, if there is none. */
  npu_status (*find)(void* context, const void* key, uint64_t key_size, const npu_writer* piece,
                     npu_error* error);
  /* If it cannot be kept, nothing comes of it. */
  void (*keep)(void* context, const void* key, uint64_t key_size, const void* piece,
               uint64_t piece_size);
} npu_piece_cache;

typedef struct npu_compile_args {
  uint64_t struct_size;
  /* One; more with the feature "entries", under names that differ: programs of one model, for other
     sizes of inputs, say, whose weights are there once. */
  const npu_entry* const* entries;
  uint64_t entry_count;
  /* Every weight and lifted constant that the nodes read, by the names that they use. */
  const npu_tensor* const* weights;
  uint64_t weight_count;
  /* A JSON object; null: none. "precision" is "f32" (the default: float32 tensors are computed in
     float32), "bf16" (they may be stored and computed in bfloat16, with accumulation, norms and
     softmax in float32; inputs and outputs keep their dtypes) or "f16" (the same in float16, or
     with float16 for weights alone). A precision that is not offered is NPU_UNSUPPORTED. */
  const char* options;
  uint32_t ir_version;
  uint32_t flags;
  const npu_writer* blob;      /* where the blob goes, in as many pieces as suit */
  uint64_t memory_limit_bytes; /* 0: none */
  uint64_t deadline_ns;        /* on CLOCK_MONOTONIC; 0: none. Feature "cancel": NPU_DEADLINE */
  npu_progress progress;       /* may be null */
  void* progress_context;
  const npu_piece_cache* pieces; /* may be null */
} npu_compile_args;

/* Feature "check": what a backend is asked about before anything is compiled. */
typedef struct npu_check_args {
  uint64_t struct_size;
  const char* sub_ir; /* sub_ir_size bytes, as for compile, but weights have no data */
  uint64_t sub_ir_size;
  const char* options; /* as for compile */
  uint32_t ir_version;
  uint32_t flags;
  const npu_writer* answer; /* takes one JSON object */
} npu_check_args;

typedef struct npu_load_args {
  uint64_t struct_size;
  const void* blob; /* untrusted: a malformed one is NPU_INVALID. Aligned to 4096 bytes, if the
                       host has a choice */
  uint64_t blob_size;
  const npu_tensor* const* weights;
  uint64_t weight_count;
  npu_weights* const* shared; /* from weights_load; they hold tensors of other models, too */
  uint64_t shared_count;
  uint32_t flags;
  uint32_t reserved;
} npu_load_args;

/* npu_model_info.flags: the model has copies of its own, so the host may let go of the blob, or of
   the data of `weights`, as soon as model_load returns. Without them both stay valid and unchanged
   until model_free, and may be used in place. */
#define NPU_RELEASES_BLOB 1u
#define NPU_RELEASES_WEIGHTS 2u

typedef struct npu_model_info {
  uint64_t struct_size;
  uint64_t flags;
} npu_model_info;

#define NPU_PROGRAM_PROFILE 1u /* npu_program_args.flags: its runs may be asked for times */
#define NPU_PROGRAM_TAPS 2u    /* feature "taps": and for intermediate results */

typedef struct npu_program_args {
  uint64_t struct_size;
  const char* entry; /* null: the first one. A name that the blob does not have is NPU_INVALID */
  uint64_t flags;
  /* Feature "scratch": what the program is to use in place of scratch memory of its own; null: its
     own. A buffer of NPU_UINT8, whichever dtypes the device lists, with NPU_USAGE_SCRATCH, in
     memory 0, with at least the scratch_bytes that blob_memory says of that memory; fewer are
     NPU_INVALID. It outlives the program, and several programs have the same one if never two of
     them run at once: nothing stays in it from one run to the next. */
  npu_buffer* scratch;
} npu_program_args;

/* ---- Runs ---- */

#define NPU_SPAN_DURATION 1u /* npu_span.flags: end - begin is how long it took */
#define NPU_SPAN_PLACED 2u   /* and begin and end lie on the device's clock */

/* Without flags nothing was measured. It has no struct_size; see rule 1. */
typedef struct npu_span {
  uint64_t begin; /* nanoseconds; of one that is placed, of the clock of clock_sample */
  uint64_t end;
  uint64_t flags;
} npu_span;

/* Times of one run; arrays of the host, which the backend fills. */
typedef struct npu_profile {
  uint64_t struct_size;
  npu_span* steps; /* in the order of the report's "steps" */
  uint64_t step_count;
  npu_span* nodes; /* in the order of the sub-IR's nodes; one fused into another took 0 */
  uint64_t node_count;
  npu_span whole; /* the whole run */
} npu_profile;

/* One moment on two clocks. */
typedef struct npu_clock_sample {
  uint64_t struct_size;
  uint64_t device_ns;      /* on the device's clock, which never goes back */
  uint64_t host_ns;        /* on CLOCK_MONOTONIC */
  uint64_t uncertainty_ns; /* by which host_ns may be off */
} npu_clock_sample;

/* Feature "taps": an intermediate result that a run gives besides its outputs. */
typedef struct npu_tap {
  uint64_t struct_size;
  const char* name;   /* one of the "taps" that the blob's report lists */
  npu_buffer* buffer; /* of its dtype and shape, as in the sub-IR; passed nowhere else */
} npu_tap;

typedef struct npu_run_args {
  uint64_t struct_size;
  npu_buffer* const* inputs; /* in the order of the sub-IR's graph_inputs; never changed */
  uint64_t input_count;
  /* In that of its graph_outputs; all given, and all different. With the feature "alias" an output
     may be the buffer of the input that the sub-IR pairs it with; the results are then as if they
     were two. */
  npu_buffer* const* outputs;
  uint64_t output_count;
  uint64_t deadline_ns; /* advice, on CLOCK_MONOTONIC; 0: none. A run that is not done by then may
                           end with NPU_DEADLINE, as if it had been cancelled */
  npu_profile* profile; /* null: not asked for, and costs nothing; otherwise the program, and the
                            queue of a submitted run, were made with the flag for it */
  /* Feature "taps", for programs made with NPU_PROGRAM_TAPS: each buffer takes the values that
     later nodes of this run read. What is computed, and how, is as without them: outputs have the
     same bits. blob_report is required, and its "taps" names every result of the sub-IR's nodes
     that can be asked for; one that is held back within a kernel is not there, and neither is an
     output. Another name, or a buffer that is not like it, is NPU_INVALID before anything runs. */
  const npu_tap* const* taps; /* null only if tap_count is 0 */
  uint64_t tap_count;
} npu_run_args;

/* One piece of a buffer's row-major content. buffer_write reads `data`, and leaves it as it is. */
typedef struct npu_transfer {
  uint64_t struct_size;
  uint64_t offset;
  uint64_t bytes;
  void* data;
} npu_transfer;

/* ---- Queues and events: feature "queue" ---- */

#define NPU_QUEUE_PROFILE 1u /* npu_queue_args.flags: its runs may be asked for times */

#define NPU_PRIORITY_LOW 0u /* npu_queue_args.priority; a hint */
#define NPU_PRIORITY_NORMAL 1u
#define NPU_PRIORITY_HIGH 2u

#define NPU_FOREVER UINT64_MAX /* a timeout of event_wait */

typedef struct npu_queue_args {
  uint64_t struct_size;
  uint32_t priority;
  uint32_t flags;
} npu_queue_args;

/* Where work goes and what it waits for: events of the same backend, of any of its queues and
   devices. If one of them fails, the work is not done, its event fails with the same status and
   text, and what it would have written is undefined. Struct and array may be gone after the call,
   and so may the events: the backend keeps what it still needs of them. */
typedef struct npu_enqueue {
  uint64_t struct_size;
  npu_queue* queue;
  npu_event* const* wait; /* null only if wait_count is 0 */
  uint64_t wait_count;
} npu_enqueue;

/* Called once, when the work is done or has failed. It returns soon. */
typedef void (*npu_done)(void* context, npu_status status);

/* Called once per op name; `kind` says where it comes from ("aten", "decomposition", "custom"). */
typedef void (*npu_op_visitor)(void* context, const char* op_type, const char* kind);

#define NPU_BLOB_FITS 0u  /* npu_blob_verdict.verdict */
#define NPU_BLOB_SLOW 1u  /* it runs, but compiling again would make it faster */
#define NPU_BLOB_OTHER 2u /* of another device, driver or version */

typedef struct npu_blob_verdict {
  uint64_t struct_size;
  uint32_t verdict;
  uint32_t reserved;
  char reason[256];
} npu_blob_verdict;

/* ---- Reports of memory ---- */

/* What a model with one program takes of one memory; of several entries, the program that takes the
   most of each kind. */
typedef struct npu_memory_bytes {
  uint64_t struct_size;
  uint64_t weights_bytes;  /* constants, also those that are used where the host has them */
  uint64_t scratch_bytes;  /* of one program; each further one takes as much again */
  uint64_t boundary_bytes; /* buffers of all inputs and outputs, each once */
  uint64_t other_bytes;    /* code, tables, a blob that is kept, but for its constants */
} npu_memory_bytes;

#define NPU_MEMORY_EXACT 1u /* npu_memory_report.flags: just what is taken */
#define NPU_MEMORY_BOUND 2u /* what is taken is not more. Neither: an estimate */

/* `memories` is the host's: an entry for each memory of the device, in the order of its info. */
typedef struct npu_memory_report {
  uint64_t struct_size;
  uint64_t flags;
  uint64_t host_bytes; /* of the host's memory, if that is none of the device's memories */
  npu_memory_bytes* const* memories;
  uint64_t memory_count;
} npu_memory_report;

#define NPU_KNOWN_IN_USE 1u /* bits of npu_memory_state.known */
#define NPU_KNOWN_PEAK_USE 2u
#define NPU_KNOWN_LIMIT 4u
#define NPU_KNOWN_LARGEST_FREE 8u

typedef struct npu_memory_state {
  uint64_t struct_size;
  uint64_t known;
  uint64_t in_use_bytes; /* by this device's models, programs and buffers */
  uint64_t peak_bytes;   /* the most that was in use since device_open */
  uint64_t limit_bytes;  /* that in_use_bytes may reach now: less if others use the memory */
  uint64_t largest_free_bytes;
} npu_memory_state;

/* ---- The backend ---- */

typedef struct npu_backend {
  uint64_t struct_size;
  uint32_t abi_version; /* NPU_ABI_VERSION */
  uint32_t reserved;
  const char* const* features; /* ends with a null pointer; null: none */

  /* Required. Neither of the infos opens a device or keeps a context; they take below a second. */
  npu_status (*backend_info)(npu_backend_info* info, npu_error* error);
  npu_status (*device_info)(uint64_t index, npu_device_info* info, npu_error* error);

  npu_status (*device_open)(const npu_open_args* args, npu_device** device, npu_error* error);
  void (*device_close)(npu_device* device);

  npu_status (*compile)(npu_device* device, const npu_compile_args* args, npu_error* error);

  npu_status (*model_load)(npu_device* device, const npu_load_args* args, npu_model_info* info,
                           npu_model** model, npu_error* error);
  void (*model_free)(npu_model* model);
  npu_status (*program_create)(npu_model* model, const npu_program_args* args,
                               npu_program** program, npu_error* error);
  void (*program_free)(npu_program* program);

  npu_status (*buffer_create)(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                              npu_error* error);
  void (*buffer_free)(npu_buffer* buffer);

  /* Blocking. No output shares memory with an input, a weight or another output. */
  npu_status (*run)(npu_program* program, const npu_run_args* args, npu_error* error);

  /* Required, unless every memory of the device is mappable. */
  npu_status (*buffer_write)(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);
  npu_status (*buffer_read)(npu_buffer* buffer, const npu_transfer* transfer, npu_error* error);

  /* Optional; required if a memory is mappable. The pointer is to the row-major content, all of it,
     for bits of NPU_ACCESS_*. It is good until buffer_unmap, which publishes what was written; in
     memory that is not coherent no run uses the buffer in between. Null for a buffer of 0 bytes. */
  npu_status (*buffer_map)(npu_buffer* buffer, uint32_t access, void** pointer, npu_error* error);
  void (*buffer_unmap)(npu_buffer* buffer);

  /* Feature "wrap.host". Uses memory in place, until buffer_free returns. NPU_UNSUPPORTED
     (alignment, type) is no fault: the host then creates a buffer and writes it. */
  npu_status (*buffer_wrap)(npu_device* device, const npu_buffer_desc* desc,
                            const npu_external* external, npu_buffer** buffer, npu_error* error);

  /* Optional: tensors for all models of a device, uploaded once. Their data stays valid until
     weights_free, unless info's flags have NPU_RELEASES_WEIGHTS. Without it every model_load gets
     its tensors. */
  npu_status (*weights_load)(npu_device* device, const npu_tensor* const* tensors, uint64_t count,
                             npu_model_info* info, npu_weights** weights, npu_error* error);
  void (*weights_free)(npu_weights* weights);

  /* Optional. Describes a blob by one JSON object, read from the blob alone; nothing is loaded.
     npu-compile(1) lists the keys of the object: among others "kernels", "reorders", "flops",
     "weight_bytes", "peak_live_bytes", "splits", "steps" (one object per kernel, in the order in
     which a run executes them, with the "node" that its time is charged to, or all its "nodes"),
     with the feature "taps", "taps" (names of tensors, see npu_run_args), and with the feature
     "alias", "aliases" ("in_place" or "copied" by name of the output: what a run does that gets one
     buffer). Of a blob with several entries all this is in "entries", an array of objects in their
     order, each with its "name". */
  npu_status (*blob_report)(npu_device* device, const void* blob, uint64_t blob_size,
                            const npu_writer* report, npu_error* error);

  /* Optional. Whether a blob fits this device, by its header alone: asked before one of a bundle is
     loaded, or one of the cache taken. Without it the host compares fingerprints. */
  npu_status (*blob_check)(npu_device* device, const void* blob, uint64_t blob_size,
                           npu_blob_verdict* verdict, npu_error* error);

  /* Optional. What a blob will take here, by its header and plan; nothing is loaded. Without it the
     host estimates by the sizes of tensors and the blob's report. */
  npu_status (*blob_memory)(npu_device* device, const void* blob, uint64_t blob_size,
                            npu_memory_report* report, npu_error* error);

  /* Optional. The same of a loaded model, exactly. */
  npu_status (*model_memory)(npu_model* model, npu_memory_report* report, npu_error* error);

  /* Optional. What is taken of one memory of a device. */
  npu_status (*device_memory)(npu_device* device, uint32_t memory, npu_memory_state* state,
                              npu_error* error);

  /* Optional. Names every op that the backend knows. */
  npu_status (*list_ops)(npu_device* device, npu_op_visitor visit, void* context, npu_error* error);

  /* Optional. Whether the device still works: NPU_OK or NPU_DEVICE_LOST. */
  npu_status (*device_status)(npu_device* device, npu_error* error);

  /* Optional. A struct that begins with struct_size, for vendors' and experimental tables, or null;
     what proves itself is appended here. */
  const void* (*get_extension)(const char* name);

  /* Feature "queue": all of these but event_on_done. A queue does its work in order, each piece
     after the one before it, done or failed: work that must not be done after a failure waits for
     its event. Queues are ordered among each other by events alone. */
  npu_status (*queue_open)(npu_device* device, const npu_queue_args* args, npu_queue** queue,
                           npu_error* error);
  /* Waits until the work is done. Events of the queue outlive it. */
  void (*queue_close)(npu_queue* queue);
  /* Starts what has been submitted; submit itself need not. event_wait and queue_finish do, too,
     for the queues that they depend on. */
  npu_status (*queue_flush)(npu_queue* queue, npu_error* error);
  /* Waits until all of it is done. NPU_OK even if some of it failed, which its events say. */
  npu_status (*queue_finish)(npu_queue* queue, npu_error* error);

  /* A run, of which only the start is made here; its arguments are checked before anything is
     enqueued, so that wrong ones are NPU_INVALID at once. args and its arrays may be gone after
     the call; program, buffers and args->profile, with what it points to, stay until the event is
     done. `event` is never null; the host frees what it gets. */
  npu_status (*submit)(npu_program* program, const npu_run_args* args, const npu_enqueue* where,
                       npu_event** event, npu_error* error);
  /* buffer_write and buffer_read as work of a queue. transfer->data stays where it is until the
     event is done; data that is written is not changed until then. */
  npu_status (*submit_write)(npu_buffer* buffer, const npu_transfer* transfer,
                             const npu_enqueue* where, npu_event** event, npu_error* error);
  npu_status (*submit_read)(npu_buffer* buffer, const npu_transfer* transfer,
                            const npu_enqueue* where, npu_event** event, npu_error* error);

  /* NPU_OK if the work is done; NPU_DEADLINE if it is not within timeout_ns, where 0 only asks
     and NPU_FOREVER has no end; otherwise what the work failed with, each time with its error. */
  npu_status (*event_wait)(npu_event* event, uint64_t timeout_ns, npu_error* error);
  /* Before the work is done, too, which then goes on. */
  void (*event_free)(npu_event* event);
  /* Optional. At most once for an event; if it is done already, the call may come at once. It comes
     even if the event is freed before, and before queue_close of its queue returns. */
  npu_status (*event_on_done)(npu_event* event, npu_done callback, void* context, npu_error* error);

  /* Feature "copy". The content of a buffer becomes that of another one of the same dtype and
     shape, which may lie on another device of the backend and in another layout; otherwise
     NPU_INVALID. `where` is a queue of the destination's device, and `event` as with submit; both
     null: blocking, which is all that there is without the feature "queue". */
  npu_status (*buffer_copy)(npu_buffer* source, npu_buffer* destination, const npu_enqueue* where,
                            npu_event** event, npu_error* error);

  /* Optional. Asks the run of a program that goes on, or was submitted and is not done, to end soon
     with NPU_CANCELLED; what it would have written is undefined, and the program can run again. A
     later run is not affected. From any thread, beside that run, and again if nothing has come of
     it. Without it the host waits for the run. */
  void (*program_cancel)(npu_program* program);

  /* Feature "check". Whether compile would take each node of a sub-IR, as an object whose "nodes"
     has one object for each node, in their order: "ok" (true or false), "reason" (one line) of one
     that is refused, and "group" (an integer) of nodes that are only taken together. A node that is
     refused is no error. Depends on the sub-IR, the options and the fingerprint alone, changes
     nothing, and takes about a millisecond a node. If every node is ok, compile of that sub-IR is
     never NPU_UNSUPPORTED. The answer may have estimates of the nodes that are taken, together:
     "memory", an object of the numbers of npu_memory_bytes by their names, and "seconds", of a
     run. With the feature "layouts" it has "boundaries", too: an object
     that has, by the name of an input or output, the array of the layouts that compile takes for it
     besides row-major, in any combination, best first. "boundary_layouts" in the options then says
     how inputs could come: what the answer has not for an input costs a reorder, or is not known;
     for outputs it has what suits inputs that come so. */
  npu_status (*check)(npu_device* device, const npu_check_args* args, npu_error* error);

  /* Optional. What time it is on the device's clock, on which spans with NPU_SPAN_PLACED lie. The
     host asks before and after a run whose times it wants, and takes the clock to be even between.
     Without it, or where it is NPU_UNSUPPORTED, since the driver tells no time, spans that are
     placed are durations to the host. */
  npu_status (*clock_sample)(npu_device* device, npu_clock_sample* sample, npu_error* error);
} npu_backend;

/* What the shared object exports. Null, with the reason in the error, if it cannot serve this host.
   It touches no hardware, creates no thread and prints nothing. The host's table and the result
   live as long as the process. */
const npu_backend* npu_backend_entry(const npu_host* host, npu_error* error);

/* Sizes, where pointers have 64 bits. */
#if UINTPTR_MAX == UINT64_MAX
#ifdef __cplusplus
#define NPU_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define NPU_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#else
#define NPU_SIZE(type, bytes) typedef char npu_size_of_##type[sizeof(type) == (bytes) ? 1 : -1]
#endif
NPU_SIZE(npu_error, 1336);
NPU_SIZE(npu_host, 32);
NPU_SIZE(npu_writer, 24);
NPU_SIZE(npu_tensor, 48);
NPU_SIZE(npu_buffer_desc, 48);
NPU_SIZE(npu_external, 40);
NPU_SIZE(npu_memory_info, 64);
NPU_SIZE(npu_backend_info, 48);
NPU_SIZE(npu_dtype_info, 32);
NPU_SIZE(npu_device_info, 192);
NPU_SIZE(npu_open_args, 40);
NPU_SIZE(npu_entry, 32);
NPU_SIZE(npu_piece_cache, 32);
NPU_SIZE(npu_compile_args, 104);
NPU_SIZE(npu_check_args, 48);
NPU_SIZE(npu_load_args, 64);
NPU_SIZE(npu_model_info, 16);
NPU_SIZE(npu_program_args, 32);
NPU_SIZE(npu_span, 24);
NPU_SIZE(npu_profile, 64);
NPU_SIZE(npu_clock_sample, 32);
NPU_SIZE(npu_tap, 24);
NPU_SIZE(npu_run_args, 72);
NPU_SIZE(npu_transfer, 32);
NPU_SIZE(npu_blob_verdict, 272);
NPU_SIZE(npu_queue_args, 16);
NPU_SIZE(npu_enqueue, 32);
NPU_SIZE(npu_memory_bytes, 40);
NPU_SIZE(npu_memory_report, 40);
NPU_SIZE(npu_memory_state, 48);
NPU_SIZE(npu_backend, 352);
#undef NPU_SIZE
#endif

#ifdef __cplusplus
}
#endif

#endif
