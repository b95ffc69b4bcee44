/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface between npu-tools and a frontend, which reads models of another format.

   A frontend is a shared object lib/npu/frontends/npu_frontend_NAME.so that exports one function,
   npu_frontend_entry. A program that is given a file which does not begin like a document asks the
   frontends in turn: recognises says whether the bytes are the frontend's, import_model turns them
   into a document of npu-ir(5) and a table that says where the weights' data lies. No byte of a
   weight is copied: the host maps the files and reads the ranges when they are needed.

   Rules:
   - The first member of every struct is struct_size, set by whoever allocates the struct, which is
     zeroed before. Members are only appended; one is there if NPU_FRONTEND_HAS says so. Sizes are
     never compared for equality, unknown tails are ignored.
   - An element of an array is as large as the *_stride beside its pointer says.
   - What must not be ignored belongs to a feature: the host uses it only if the frontend lists the
     feature's name. "bind": bindings of symbolic dimensions; "freeze": inputs that become
     constants; "ops": list_ops; "sizes": wants_template.
   - All integers have fixed widths. Strings are UTF-8 and NUL-terminated; those of a result live
     until import_free.
   - Everything that a frontend returns is checked by the host before it is used.
   - A frontend opens no file itself. What lies beside the model is asked for by open_file, which
     refuses whatever is not below the model's folder.
   - Nothing is printed, no exception crosses, and the same input gives the same bytes. */
#ifndef NPU_FRONTEND_H
#define NPU_FRONTEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_FRONTEND_ABI_VERSION 1u
#define NPU_FRONTEND_ENTRY_NAME "npu_frontend_entry"

/* Whether `pointer`, whose first member is struct_size, has `member`. */
#define NPU_FRONTEND_HAS(pointer, member) \
  (offsetof(__typeof__(*(pointer)), member) + sizeof((pointer)->member) <= (pointer)->struct_size)

/* Levels of messages; an unknown one counts as an error. */
#define NPU_FRONTEND_NOTE 0u
#define NPU_FRONTEND_WARNING 1u
#define NPU_FRONTEND_ERROR 2u

/* How a range of a file holds the elements of a tensor. */
#define NPU_FRONTEND_PLAIN 0u  /* little-endian, dense, row-major */
#define NPU_FRONTEND_VARINT 1u /* one LEB128 number for each element; floats as their bits */

/* A finding, one line of lower-case text without a final full stop. */
typedef struct npu_frontend_message {
  uint64_t struct_size;
  uint32_t level;
  uint32_t reserved;
  const char* text;
} npu_frontend_message;

/* Where the data of one weight of the document lies. What the import has computed is in no file:
   `data` then points to it, and file, offset, encoding and transposed are 0. */
typedef struct npu_frontend_weight {
  uint64_t struct_size;
  const char* name;    /* as `weights` of the document names it */
  uint64_t file;       /* 0: the model; k: the file that open_file gave the number k */
  uint64_t offset;     /* bytes from the file's begin */
  uint64_t bytes;      /* of the range */
  uint32_t encoding;   /* NPU_FRONTEND_PLAIN, ... */
  uint32_t transposed; /* not 0: the range holds the transpose of the document's matrix */
  const void* data;    /* NULL: in the file; else of `bytes`, only if the request has takes_data */
} npu_frontend_weight;

/* A value for a symbolic dimension. */
typedef struct npu_frontend_binding {
  uint64_t struct_size;
  const char* name;
  int64_t value;
} npu_frontend_binding;

/* A dense row-major tensor. dtype is one of npu_dtype in npu/backend.h. */
typedef struct npu_frontend_tensor {
  uint64_t struct_size;
  const char* name;
  uint32_t dtype;
  uint32_t rank;
  const int64_t* shape;
  const void* data;
  uint64_t bytes;
} npu_frontend_tensor;

/* A file beside the model, mapped. */
typedef struct npu_frontend_file {
  uint64_t struct_size;
  uint64_t number; /* for npu_frontend_weight.file; at least 1 */
  const void* data;
  uint64_t size;
} npu_frontend_file;

#define NPU_FRONTEND_TEXT_SIZE 2048
typedef struct npu_frontend_error {
  uint64_t struct_size;
  char text[NPU_FRONTEND_TEXT_SIZE]; /* NUL-terminated, truncated if need be */
} npu_frontend_error;

/* What is to be imported. `data` stays valid until import_model returns. */
typedef struct npu_frontend_request {
  uint64_t struct_size;
  const char* path; /* of the model, for messages; NULL if the bytes came through a pipe */
  const void* data; /* the whole model */
  uint64_t size;
  const npu_frontend_binding* bindings; /* feature "bind" */
  uint64_t binding_count;
  uint64_t binding_stride;
  const npu_frontend_tensor* frozen; /* feature "freeze" */
  uint64_t frozen_count;
  uint64_t frozen_stride;
  void* context; /* for open_file */
  /* Maps a file below the model's folder; the mapping lives as long as the call to import_model.
     Returns 0, or another number with the reason in the error: absolute names, "..", links that
     lead out, and models that came through a pipe are refused. */
  int32_t (*open_file)(void* context, const char* name, npu_frontend_file* file,
                       npu_frontend_error* error);
  uint64_t takes_data; /* not 0: weights may be given as data */
  /* Feature "sizes". Not 0: the document may be a template (npu-ir(5)), whose sizes are the
     symbolic dimensions that no binding gives a value. */
  uint64_t wants_template;
} npu_frontend_request;

/* What import_model fills. */
typedef struct npu_frontend_result {
  uint64_t struct_size;
  const char* document; /* a model of npu-ir(5), without npu.weights_map; NULL after errors */
  uint64_t document_size;
  const npu_frontend_weight* weights; /* weights that stand here are in `weights` of the document */
  uint64_t weight_count;
  uint64_t weight_stride;
  const npu_frontend_message* messages; /* all that was found, not only the first */
  uint64_t message_count;
  uint64_t message_stride;
  void* owner; /* the frontend's own */
} npu_frontend_result;

typedef struct npu_frontend {
  uint64_t struct_size;
  uint32_t abi_version; /* NPU_FRONTEND_ABI_VERSION */
  uint32_t reserved;
  const char* name;            /* that of the file: npu_frontend_NAME.so */
  const char* version;         /* free text */
  const char* const* features; /* ends with NULL */
  /* Not 0 if bytes that begin so may be a model of this format. `size` is that of `head`. */
  int32_t (*recognises)(const void* head, uint64_t size);
  /* Returns 0 if the result has a document, another number if it has only messages or, with no
     message, `error` says why. */
  int32_t (*import_model)(const npu_frontend_request* request, npu_frontend_result* result,
                          npu_frontend_error* error);
  void (*import_free)(npu_frontend_result* result);
  /* Feature "ops": a JSON text that lists what the frontend imports; lives as long as the frontend.
   */
  const char* (*list_ops)(void);
} npu_frontend;

/* The entry. `abi_version` is the newest that the host knows; returns NULL if the frontend serves
   none up to it. Must not touch hardware, create threads or print. */
typedef const npu_frontend* (*npu_frontend_entry_function)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif
