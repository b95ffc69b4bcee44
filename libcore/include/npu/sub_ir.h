/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the sub-IR that a backend compiles, with nothing but the C library.

   npu_ir_read gives read-only views of a document of npu-ir(5): graph inputs and outputs, weights,
   tensors, aliases, and nodes with their operands, results and attributes. npu_json_read does the
   same for other JSON, such as the options of a compile. C99, C11 and C++; this header is all there
   is.

     npu_ir_error fault;
     const npu_ir* ir = npu_ir_read(text, size, &fault);
     if (ir == NULL) return refuse(fault.text);
     for (uint32_t n = 0; n < ir->node_count; ++n) {
       const npu_ir_node* node = &ir->nodes[n];
       const npu_ir_tensor* result = &ir->tensors[node->outputs[0]];
       ...
     }
     npu_ir_free(ir);

   Functions are static and inline rather than behind a macro that one source has to define: nothing
   is exported from the backend, there is nothing to forget, and what is not called is not there.
   Names that end with an underscore are not for callers.

   Memory: one block of 4 to 5 bytes for each byte of a usual text and at most 64, from malloc or
   from the caller (npu_ir_memory, npu_ir_read_into). Everything that a view points to lies in it;
   the text may be gone. Nothing recurses: nesting is bounded by NPU_IR_MAX_DEPTH, time by n log n
   of the size.

   Checked, so that a backend need not: syntax, UTF-8, duplicate keys, types of all members named
   here, unique names, operands that stand before their readers, mentions of a tensor that agree,
   extents that are not negative, and that the bytes of every tensor fit in 63 bits. Not checked:
   what a node means, which is the backend's business: the number, shapes and dtypes of its
   operands and results, and its attributes. Members that are not known are skipped; they can be
   reached through `json` and `root`.

   Errors have a place (line and column) and one line of lower-case text that begins with it. */
#ifndef NPU_SUB_IR_H
#define NPU_SUB_IR_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define NPU_IR_AS_(type, value) static_cast<type>(value)
extern "C" {
#else
#define NPU_IR_AS_(type, value) ((type)(value))
#endif

/* "ir_version" of the document: 1, which a document without it has, too. Others are refused. */
#define NPU_IR_VERSION_MIN 1
#define NPU_IR_VERSION_MAX 1
/* Lists and objects within each other. */
#define NPU_IR_MAX_DEPTH 200
#define NPU_IR_ERROR_TEXT_SIZE 512

typedef struct npu_ir_error {
  uint64_t offset;                   /* byte of the text; line and column are those of this byte */
  uint32_t line;                     /* from 1; 0 if the place is not in the text */
  uint32_t column;                   /* from 1, in bytes */
  char text[NPU_IR_ERROR_TEXT_SIZE]; /* "line 3, column 7: expected ':' after a key" */
} npu_ir_error;

/* ---- JSON ---- */

enum {
  NPU_JSON_NULL = 0,
  NPU_JSON_BOOL = 1,    /* as.integer is 0 or 1 */
  NPU_JSON_INTEGER = 2, /* as.integer; one above INT64_MAX is a float */
  NPU_JSON_FLOAT = 3,   /* as.number, always finite */
  NPU_JSON_STRING = 4,  /* as.text, NUL-terminated UTF-8 without other NULs */
  NPU_JSON_LIST = 5,
  NPU_JSON_OBJECT = 6
};

/* A value. The members of an object and the elements of a list follow it, in the order of the
   text:  for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v)) ... */
typedef struct npu_json {
  uint32_t kind;   /* NPU_JSON_... */
  uint32_t count;  /* members, elements, or bytes of a string */
  uint32_t extent; /* values from this one to the last below it, this one included */
  uint32_t offset; /* in the text */
  const char* key; /* of a member of an object, else NULL */
  union {
    int64_t integer;
    double number;
    const char* text;
  } as;
} npu_json;

static inline const npu_json* npu_json_first(const npu_json* parent) {
  return parent->kind >= NPU_JSON_LIST && parent->count != 0 ? parent + 1 : NULL;
}

static inline const npu_json* npu_json_next(const npu_json* parent, const npu_json* child) {
  const npu_json* next = child + child->extent;
  return next < parent + parent->extent ? next : NULL;
}

/* NULL if `object` is NULL or no object, or has no such member. */
static inline const npu_json* npu_json_member(const npu_json* object, const char* key) {
  const npu_json* v;
  if (object == NULL || object->kind != NPU_JSON_OBJECT) return NULL;
  for (v = npu_json_first(object); v != NULL; v = npu_json_next(object, v)) {
    if (strcmp(v->key, key) == 0) return v;
  }
  return NULL;
}

/* NULL if `list` is NULL or no list, or has no such element. O(index). */
static inline const npu_json* npu_json_element(const npu_json* list, uint32_t index) {
  const npu_json* v;
  if (list == NULL || list->kind != NPU_JSON_LIST || index >= list->count) return NULL;
  v = npu_json_first(list);
  while (index-- != 0) v = npu_json_next(list, v);
  return v;
}

/* "object", "string", ... for messages. */
static inline const char* npu_json_kind_name(uint32_t kind) {
  static const char* const names[] = {"null",   "boolean", "integer", "float",
                                      "string", "list",    "object"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown value";
}

/* 1 and the number if `v` is one: an integer, a float, or "inf", "-inf" or "nan", as documents
   write numbers that JSON cannot. Otherwise 0, and `number` is untouched. */
static inline int npu_json_number(const npu_json* v, double* number) {
  double value = 0;
  if (v == NULL) return 0;
  if (v->kind == NPU_JSON_INTEGER) {
    value = NPU_IR_AS_(double, v->as.integer);
  } else if (v->kind == NPU_JSON_FLOAT) {
    value = v->as.number;
  } else if (v->kind != NPU_JSON_STRING) {
    return 0;
  } else if (strcmp(v->as.text, "inf") == 0) {
    value = strtod("inf", NULL);
  } else if (strcmp(v->as.text, "-inf") == 0) {
    value = strtod("-inf", NULL);
  } else if (strcmp(v->as.text, "nan") == 0) {
    value = strtod("nan", NULL);
  } else {
    return 0;
  }
  *number = value;
  return 1;
}

/* ---- The sub-IR ---- */

/* Element types: the numbers of npu_dtype in npu/backend.h. */
enum {
  NPU_IR_FLOAT32 = 0,
  NPU_IR_FLOAT64 = 1,
  NPU_IR_FLOAT16 = 2,
  NPU_IR_BFLOAT16 = 3,
  NPU_IR_INT8 = 4,
  NPU_IR_UINT8 = 5,
  NPU_IR_INT16 = 6,
  NPU_IR_INT32 = 7,
  NPU_IR_INT64 = 8,
  NPU_IR_BOOL = 9,
  NPU_IR_COMPLEX64 = 10,
  NPU_IR_COMPLEX128 = 11,
  NPU_IR_DTYPE_COUNT = 12
};

/* What a tensor is. */
enum { NPU_IR_INPUT = 0, NPU_IR_WEIGHT = 1, NPU_IR_RESULT = 2 };

/* In place of a node, an index or a group where there is none. */
#define NPU_IR_NONE 0xffffffffu

typedef struct npu_ir_tensor {
  const char* name;     /* as in the npu_tensor of a weight */
  const int64_t* shape; /* `rank` extents of at least 0; never NULL */
  uint64_t elements;    /* their product; 1 for a scalar */
  uint64_t bytes;       /* row-major */
  uint32_t rank;
  uint32_t dtype;       /* NPU_IR_FLOAT32, ... */
  uint32_t kind;        /* NPU_IR_INPUT, ... */
  uint32_t producer;    /* the node of a result, else NPU_IR_NONE */
  uint32_t index;       /* among the graph inputs, the weights, or the results of its producer */
  const npu_json* json; /* where it is defined, for members that are not named here */
} npu_ir_tensor;

typedef struct npu_ir_node {
  const char* name;
  const char* op;          /* "aten.add.Tensor" */
  const uint32_t* inputs;  /* places in npu_ir.tensors; lists of tensors are flattened */
  const uint32_t* outputs; /* the same */
  uint32_t input_count;
  uint32_t output_count;
  const npu_json* attrs;      /* an object, or NULL if the node has none */
  const npu_json* json;       /* the node itself, for members that are not named here */
  int64_t fusion_group;       /* nodes of one group are to be one kernel; -1: none */
  const char* fusion_pattern; /* of the group, or NULL */
} npu_ir_node;

/* A result that may get the buffer of an input: a state that a run updates. */
typedef struct npu_ir_alias {
  uint32_t output; /* place in npu_ir.outputs */
  uint32_t input;  /* among the graph inputs; of the same dtype and shape */
} npu_ir_alias;

typedef struct npu_ir {
  const char* model_name;       /* "" if there is none */
  const npu_ir_tensor* tensors; /* graph inputs, then weights, then results in node order */
  const npu_ir_node* nodes;     /* in topological order */
  const uint32_t* outputs;      /* tensors that are graph outputs; one may stand there twice */
  uint32_t version;             /* "ir_version" */
  uint32_t tensor_count;
  uint32_t node_count;
  uint32_t input_count;  /* graph inputs are tensors 0 to input_count - 1 */
  uint32_t weight_count; /* weights are the tensors behind them */
  uint32_t output_count;
  const npu_json* root;        /* the document */
  const npu_ir_alias* aliases; /* "aliases"; no tensor stands there twice */
  uint32_t alias_count;
} npu_ir;

/* Bits of one element; 0 for a number that is no dtype. */
static inline uint32_t npu_ir_dtype_bits(uint32_t dtype) {
  static const uint8_t bytes[NPU_IR_DTYPE_COUNT] = {4, 8, 2, 2, 1, 1, 2, 4, 8, 1, 8, 16};
  return dtype < NPU_IR_DTYPE_COUNT ? 8u * bytes[dtype] : 0;
}

/* "float32", or "unknown dtype". */
static inline const char* npu_ir_dtype_name(uint32_t dtype) {
  static const char* const names[NPU_IR_DTYPE_COUNT] = {
      "float32", "float64", "float16", "bfloat16", "int8",      "uint8",
      "int16",   "int32",   "int64",   "bool",     "complex64", "complex128"};
  return dtype < NPU_IR_DTYPE_COUNT ? names[dtype] : "unknown dtype";
}

/* The dtype of "float32" or, as attributes write it, "torch.float32"; NPU_IR_NONE if there is no
   such dtype. */
static inline uint32_t npu_ir_dtype_of(const char* name) {
  uint32_t dtype;
  if (strncmp(name, "torch.", 6) == 0) name += 6;
  for (dtype = 0; dtype < NPU_IR_DTYPE_COUNT; ++dtype) {
    if (strcmp(name, npu_ir_dtype_name(dtype)) == 0) return dtype;
  }
  return NPU_IR_NONE;
}

/* NULL if the node has no such attribute, or if it is null: the operator's default holds. */
static inline const npu_json* npu_ir_attr(const npu_ir_node* node, const char* key) {
  const npu_json* v = npu_json_member(node->attrs, key);
  return v != NULL && v->kind != NPU_JSON_NULL ? v : NULL;
}

/* The next four give the attribute, or `missing` if there is none, and 1; or 0 if it is of another
   kind, and the result is untouched. */
static inline int npu_ir_attr_integer(const npu_ir_node* node, const char* key, int64_t missing,
                                      int64_t* result) {
  const npu_json* v = npu_ir_attr(node, key);
  if (v != NULL && v->kind != NPU_JSON_INTEGER) return 0;
  *result = v != NULL ? v->as.integer : missing;
  return 1;
}

static inline int npu_ir_attr_bool(const npu_ir_node* node, const char* key, int missing,
                                   int* result) {
  const npu_json* v = npu_ir_attr(node, key);
  if (v != NULL && v->kind != NPU_JSON_BOOL) return 0;
  *result = v != NULL ? v->as.integer != 0 : missing;
  return 1;
}

static inline int npu_ir_attr_number(const npu_ir_node* node, const char* key, double missing,
                                     double* result) {
  const npu_json* v = npu_ir_attr(node, key);
  if (v != NULL) return npu_json_number(v, result);
  *result = missing;
  return 1;
}

static inline int npu_ir_attr_text(const npu_ir_node* node, const char* key, const char* missing,
                                   const char** result) {
  const npu_json* v = npu_ir_attr(node, key);
  if (v != NULL && v->kind != NPU_JSON_STRING) return 0;
  *result = v != NULL ? v->as.text : missing;
  return 1;
}

/* A list of integers, such as a stride; a single integer counts as a list of one. Writes at most
   `capacity` of them and gives their number in `count`, 0 if the node has no such attribute.
   Returns 0 if it is something else or does not fit, and `result` and `count` are untouched. */
static inline int npu_ir_attr_integers(const npu_ir_node* node, const char* key, int64_t* result,
                                       uint32_t capacity, uint32_t* count) {
  const npu_json* list = npu_ir_attr(node, key);
  const npu_json* v;
  uint32_t n = 0;
  if (list != NULL && list->kind == NPU_JSON_INTEGER) {
    if (capacity == 0) return 0;
    result[n++] = list->as.integer;
  } else if (list != NULL) {
    if (list->kind != NPU_JSON_LIST || list->count > capacity) return 0;
    for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v)) {
      if (v->kind != NPU_JSON_INTEGER) return 0;
    }
    for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v)) {
      result[n++] = v->as.integer;
    }
  }
  *count = n;
  return 1;
}

/* Lists of tensors are flattened into node->inputs. Gives in `count` how many operands the list
   number `list` has (0: the first that was passed), whose first is the operand `begin`, and 1; or 0
   if the node does not say: its one list then has all operands that other arguments leave. */
static inline int npu_ir_list_size(const npu_ir_node* node, uint32_t list, uint32_t begin,
                                   uint32_t* count) {
  const npu_json* v = npu_json_element(npu_ir_attr(node, "_tensor_list_sizes"), list);
  if (v == NULL || v->kind != NPU_JSON_INTEGER || begin > node->input_count) return 0;
  if (v->as.integer < 0 || v->as.integer > NPU_IR_AS_(int64_t, node->input_count - begin)) return 0;
  *count = NPU_IR_AS_(uint32_t, v->as.integer);
  return 1;
}

/* 1 if the optional tensor `argument` was passed as None: it then has no place in node->inputs. */
static inline int npu_ir_is_none(const npu_ir_node* node, const char* argument) {
  const npu_json* list = npu_ir_attr(node, "_none_args");
  const npu_json* v;
  if (list == NULL || list->kind != NPU_JSON_LIST) return 0;
  for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v)) {
    if (v->kind == NPU_JSON_STRING && strcmp(v->as.text, argument) == 0) return 1;
  }
  return 0;
}

/* ---- Reading, not for callers ---- */

/* A block that is handed out from its begin; or, while `base` is NULL, a count of bytes. */
typedef struct npu_ir_arena_ {
  char* base;
  uint64_t used;
  uint64_t size;
} npu_ir_arena_;

typedef struct npu_json_reader_ {
  const char* text;
  size_t size;
  size_t at;
  npu_json* values; /* NULL: they are only counted */
  char* strings;
  uint32_t* spare; /* for sorting keys: twice largest_object */
  uint64_t value_count;
  uint64_t string_bytes;
  uint64_t object_count;
  uint64_t integer_count;
  uint64_t largest_object;
  npu_ir_error* error;
} npu_json_reader_;

typedef struct npu_json_level_ {
  uint32_t value;
  uint32_t count;
  int is_object;
} npu_json_level_;

/* Always 0: writes the place of byte `offset` and the text. `name`, shortened, replaces %s. */
static inline int npu_ir_fail_(npu_ir_error* error, const char* text, uint64_t offset,
                               const char* format, const char* name) {
  char what[NPU_IR_ERROR_TEXT_SIZE - 64];
  char part[128];
  uint64_t i;
  if (error == NULL) return 0;
  snprintf(part, sizeof part, "%s", name);
  snprintf(what, sizeof what, format, part);
  error->offset = offset;
  error->line = text != NULL ? 1 : 0;
  error->column = error->line;
  for (i = 0; i < offset && text != NULL; ++i) {
    ++error->column;
    if (text[i] != '\n') continue;
    ++error->line;
    error->column = 1;
  }
  if (text == NULL) {
    snprintf(error->text, sizeof error->text, "%s", what);
  } else {
    snprintf(error->text, sizeof error->text, "line %lu, column %lu: %s",
             NPU_IR_AS_(unsigned long, error->line), NPU_IR_AS_(unsigned long, error->column),
             what);
  }
  return 0;
}

static inline int npu_json_fail_(const npu_json_reader_* r, const char* message) {
  if (r->at < r->size) return npu_ir_fail_(r->error, r->text, r->at, "%s", message);
  return npu_ir_fail_(r->error, r->text, r->size, "the text ends here, %s", message);
}

/* NULL if the block is too small. Aligned for everything that is kept in it. */
static inline void* npu_ir_take_(npu_ir_arena_* arena, uint64_t count, size_t size) {
  const uint64_t bytes = (count * size + 7) / 8 * 8;
  char* taken = arena->base + arena->used;
  if (bytes > arena->size - arena->used) return NULL;
  arena->used += bytes;
  return taken;
}

/* A table of names: the first member of each of `count` records is one. */
typedef struct npu_ir_names_ {
  const void* first;
  size_t stride;
  size_t member;
} npu_ir_names_;

static inline const char* npu_ir_name_(const npu_ir_names_* names, uint32_t record) {
  const char* at = NPU_IR_AS_(const char*, names->first) + names->stride * record + names->member;
  return *NPU_IR_AS_(const char* const*, NPU_IR_AS_(const void*, at));
}

/* Sorts the numbers of records by name; equal names stay in order. `ids` holds twice as many. */
static inline void npu_ir_sort_(const npu_ir_names_* names, uint32_t* ids, uint32_t count) {
  uint32_t* from = ids;
  uint32_t* to = ids + count;
  uint64_t width;
  for (width = 1; width < count; width *= 2) {
    uint32_t* swap;
    uint64_t begin;
    for (begin = 0; begin < count; begin += 2 * width) {
      const uint64_t middle = begin + width < count ? begin + width : count;
      const uint64_t end = begin + 2 * width < count ? begin + 2 * width : count;
      uint64_t left = begin;
      uint64_t right = middle;
      uint64_t out;
      for (out = begin; out < end; ++out) {
        const int is_left =
            right == end || (left < middle && strcmp(npu_ir_name_(names, from[left]),
                                                     npu_ir_name_(names, from[right])) <= 0);
        to[out] = is_left ? from[left++] : from[right++];
      }
    }
    swap = from;
    from = to;
    to = swap;
  }
  if (from != ids) memcpy(ids, from, count * sizeof *ids);
}

/* The second of the first two records in `ids`, which are sorted, that have one name, or NONE. */
static inline uint32_t npu_ir_twice_(const npu_ir_names_* names, const uint32_t* ids,
                                     uint32_t count) {
  uint32_t i;
  for (i = 1; i < count; ++i) {
    if (strcmp(npu_ir_name_(names, ids[i - 1]), npu_ir_name_(names, ids[i])) == 0) return ids[i];
  }
  return NPU_IR_NONE;
}

static inline void npu_json_skip_(npu_json_reader_* r) {
  while (r->at < r->size && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != '\0') {
    ++r->at;
  }
}

/* The next byte, or 0 at the end. */
static inline int npu_json_peek_(const npu_json_reader_* r) {
  return r->at < r->size ? NPU_IR_AS_(unsigned char, r->text[r->at]) : 0;
}

static inline void npu_json_put_(npu_json_reader_* r, uint32_t byte) {
  if (r->strings != NULL) r->strings[r->string_bytes] = NPU_IR_AS_(char, byte);
  ++r->string_bytes;
}

/* The bytes of the UTF-8 sequence that begins here, or 0 if it is none. */
static inline size_t npu_json_utf8_(const char* text, size_t left) {
  const unsigned char* s = NPU_IR_AS_(const unsigned char*, NPU_IR_AS_(const void*, text));
  const size_t size = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  size_t i;
  if (size == 1) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4 || left < size) return 0;
  for (i = 1; i < size; ++i) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
    return 0;
  }
  return size;
}

/* The four digits behind "\u", which `at` is behind afterwards; 0 if they are not four. */
static inline int npu_json_hex_(npu_json_reader_* r, uint32_t* code) {
  static const char digits[] = "0123456789abcdef0123456789ABCDEF";
  uint32_t i;
  *code = 0;
  for (i = 0; i < 4; ++i, ++r->at) {
    const int c = npu_json_peek_(r);
    const char* found = c != 0 ? strchr(digits, c) : NULL;
    if (found == NULL) return npu_json_fail_(r, "expected four hexadecimal digits after '\\u'");
    *code = *code * 16 + NPU_IR_AS_(uint32_t, (found - digits) % 16);
  }
  return 1;
}

/* An escape; `at` is behind the backslash. */
static inline int npu_json_escape_(npu_json_reader_* r) {
  static const char names[] = "\"\\/bfnrt";
  static const char bytes[] = "\"\\/\b\f\n\r\t";
  const int c = npu_json_peek_(r);
  const char* found = c != 0 ? strchr(names, c) : NULL;
  uint32_t code = 0;
  uint32_t low = 0;
  if (found != NULL) {
    ++r->at;
    npu_json_put_(r, NPU_IR_AS_(unsigned char, bytes[found - names]));
    return 1;
  }
  if (c != 'u') return npu_json_fail_(r, "expected one of \"\\/bfnrtu after a backslash");
  ++r->at;
  if (!npu_json_hex_(r, &code)) return 0;
  if (code >= 0xd800 && code < 0xdc00) {
    if (r->size - r->at < 2 || r->text[r->at] != '\\' || r->text[r->at + 1] != 'u') {
      return npu_json_fail_(r, "expected the second half of a surrogate pair");
    }
    r->at += 2;
    if (!npu_json_hex_(r, &low)) return 0;
    if (low < 0xdc00 || low > 0xdfff) return npu_json_fail_(r, "half a surrogate pair stands here");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code <= 0xdfff) {
    return npu_json_fail_(r, "half a surrogate pair stands here");
  }
  if (code == 0) return npu_json_fail_(r, "a string must not hold a NUL");
  if (code < 0x80) {
    npu_json_put_(r, code);
    return 1;
  }
  if (code >= 0x10000) npu_json_put_(r, 0xf0 | (code >> 18));
  if (code >= 0x10000) npu_json_put_(r, 0x80 | ((code >> 12) & 0x3f));
  if (code >= 0x800 && code < 0x10000) npu_json_put_(r, 0xe0 | (code >> 12));
  if (code >= 0x800) npu_json_put_(r, 0x80 | ((code >> 6) & 0x3f));
  if (code < 0x800) npu_json_put_(r, 0xc0 | (code >> 6));
  npu_json_put_(r, 0x80 | (code & 0x3f));
  return 1;
}

/* A string; `at` is at its opening quote. Gives its begin (NULL while counting) and its size. */
static inline int npu_json_string_(npu_json_reader_* r, const char** begin, uint32_t* size) {
  const uint64_t first = r->string_bytes;
  *begin = r->strings != NULL ? r->strings + first : NULL;
  ++r->at;
  for (;;) {
    const int c = npu_json_peek_(r);
    if (c == '"') break;
    if (c == '\\') {
      ++r->at;
      if (!npu_json_escape_(r)) return 0;
    } else if (c < 0x20) {
      return npu_json_fail_(r, r->at < r->size ? "a control character stands in a string"
                                               : "expected the end of a string");
    } else {
      size_t bytes = npu_json_utf8_(r->text + r->at, r->size - r->at);
      if (bytes == 0) return npu_json_fail_(r, "the string is not UTF-8");
      for (; bytes != 0; --bytes, ++r->at) {
        npu_json_put_(r, NPU_IR_AS_(unsigned char, r->text[r->at]));
      }
    }
  }
  ++r->at;
  *size = NPU_IR_AS_(uint32_t, r->string_bytes - first);
  npu_json_put_(r, 0);
  return 1;
}

/* The value of a number with a point or an exponent. strtod alone would obey the locale, so it gets
   the digits without a point: 12.5e3 as 125e2. Digits behind the 770th only say that there are
   more, which is enough to round correctly. */
static inline double npu_json_float_(const char* at, const char* end) {
  char digits[800];
  size_t n = 0;
  int64_t exponent = 0;
  int64_t stated = 0;
  int is_behind_point = 0;
  int is_longer = 0;
  for (; at < end && *at != 'e' && *at != 'E'; ++at) {
    if (*at == '.') {
      is_behind_point = 1;
    } else if (n == 0 && *at == '0') {
      exponent -= is_behind_point;
    } else if (n < 770) {
      digits[n++] = *at;
      exponent -= is_behind_point;
    } else {
      is_longer |= *at != '0';
      exponent += !is_behind_point;
    }
  }
  if (n == 0) return 0;
  if (is_longer) {
    digits[n++] = '1';
    --exponent;
  }
  if (at < end) {
    const int is_negative = *++at == '-';
    if (*at == '-' || *at == '+') ++at;
    for (; at < end; ++at) stated = stated < 100000000000 ? stated * 10 + (*at - '0') : stated;
    exponent += is_negative ? -stated : stated;
  }
  exponent = exponent > 9999 ? 9999 : exponent < -9999 ? -9999 : exponent;
  snprintf(digits + n, sizeof digits - n, "e%ld", NPU_IR_AS_(long, exponent));
  return strtod(digits, NULL);
}

static inline int npu_json_is_digit_(const npu_json_reader_* r) {
  return npu_json_peek_(r) >= '0' && npu_json_peek_(r) <= '9';
}

static inline int npu_json_digits_(npu_json_reader_* r) {
  if (!npu_json_is_digit_(r)) return npu_json_fail_(r, "expected a digit");
  while (npu_json_is_digit_(r)) ++r->at;
  return 1;
}

static inline int npu_json_read_number_(npu_json_reader_* r, npu_json* v) {
  const int is_negative = npu_json_peek_(r) == '-';
  const size_t begin = r->at;
  size_t i = begin + NPU_IR_AS_(size_t, is_negative);
  uint64_t value = 0;
  double number;
  int is_float = 0;
  r->at = i;
  if (npu_json_peek_(r) == '0') {
    ++r->at;
  } else if (!npu_json_digits_(r)) {
    return 0;
  }
  if (npu_json_peek_(r) == '.') {
    is_float = 1;
    ++r->at;
    if (!npu_json_digits_(r)) return 0;
  }
  if (npu_json_peek_(r) == 'e' || npu_json_peek_(r) == 'E') {
    is_float = 1;
    ++r->at;
    if (npu_json_peek_(r) == '+' || npu_json_peek_(r) == '-') ++r->at;
    if (!npu_json_digits_(r)) return 0;
  }
  for (; !is_float && i < r->at; ++i) {
    const uint64_t digit = NPU_IR_AS_(uint64_t, r->text[i] - '0');
    if (value > (UINT64_MAX - digit) / 10) {
      r->at = begin;
      return npu_json_fail_(r, "the integer does not fit in 64 bits");
    }
    value = value * 10 + digit;
  }
  if (is_negative && value > NPU_IR_AS_(uint64_t, INT64_MAX) + 1) {
    r->at = begin;
    return npu_json_fail_(r, "the integer does not fit in 64 bits");
  }
  if (!is_float && (is_negative || value <= NPU_IR_AS_(uint64_t, INT64_MAX))) {
    v->kind = NPU_JSON_INTEGER;
    v->as.integer = !is_negative || value == 0 ? NPU_IR_AS_(int64_t, value)
                                               : -NPU_IR_AS_(int64_t, value - 1) - 1;
    ++r->integer_count;
    return 1;
  }
  number = is_float ? npu_json_float_(r->text + begin + is_negative, r->text + r->at)
                    : NPU_IR_AS_(double, value);
  if (number > DBL_MAX) {
    r->at = begin;
    return npu_json_fail_(r, "the number is too large for a 64-bit float");
  }
  v->kind = NPU_JSON_FLOAT;
  v->as.number = is_negative ? -number : number;
  return 1;
}

/* A value that holds no others. */
static inline int npu_json_scalar_(npu_json_reader_* r, npu_json* v) {
  static const char* const words[] = {"null", "false", "true"};
  const int c = npu_json_peek_(r);
  uint32_t i;
  if (c == '"') {
    v->kind = NPU_JSON_STRING;
    return npu_json_string_(r, &v->as.text, &v->count);
  }
  if (c == '-' || (c >= '0' && c <= '9')) return npu_json_read_number_(r, v);
  for (i = 0; i < 3; ++i) {
    const size_t size = strlen(words[i]);
    if (r->size - r->at < size || memcmp(r->text + r->at, words[i], size) != 0) continue;
    r->at += size;
    v->kind = i == 0 ? NPU_JSON_NULL : NPU_JSON_BOOL;
    v->as.integer = i == 2;
    return 1;
  }
  return npu_json_fail_(r, "expected a value");
}

/* A key and its colon. */
static inline int npu_json_key_(npu_json_reader_* r, const char** key) {
  uint32_t size = 0;
  npu_json_skip_(r);
  if (npu_json_peek_(r) != '"') return npu_json_fail_(r, "expected a key in quotes");
  if (!npu_json_string_(r, key, &size)) return 0;
  npu_json_skip_(r);
  if (npu_json_peek_(r) != ':') return npu_json_fail_(r, "expected ':' after a key");
  ++r->at;
  return 1;
}

static inline int npu_json_close_(npu_json_reader_* r, const npu_json_level_* level) {
  npu_ir_names_ keys;
  uint32_t* ids = r->spare;
  const npu_json* v;
  npu_json* closed;
  uint32_t n = 0;
  ++r->at;
  if (level->is_object && level->count > r->largest_object) r->largest_object = level->count;
  if (r->values == NULL) return 1;
  closed = &r->values[level->value];
  closed->count = level->count;
  closed->extent = NPU_IR_AS_(uint32_t, r->value_count - level->value);
  if (!level->is_object) return 1;
  keys.first = r->values;
  keys.stride = sizeof *r->values;
  keys.member = offsetof(npu_json, key);
  for (v = npu_json_first(closed); v != NULL; v = npu_json_next(closed, v)) {
    ids[n++] = NPU_IR_AS_(uint32_t, v - r->values);
  }
  npu_ir_sort_(&keys, ids, n);
  n = npu_ir_twice_(&keys, ids, n);
  if (n == NPU_IR_NONE) return 1;
  return npu_ir_fail_(r->error, r->text, r->values[n].offset, "the key '%s' stands here twice",
                      r->values[n].key);
}

/* Begins a list or an object, or reads another value. *opened says which. */
static inline int npu_json_value_(npu_json_reader_* r, const char* key, npu_json_level_* levels,
                                  uint32_t* depth, int* opened) {
  npu_json scalar;
  npu_json* v = r->values != NULL ? &r->values[r->value_count] : &scalar;
  const int c = npu_json_peek_(r);
  memset(v, 0, sizeof *v);
  v->key = key;
  v->extent = 1;
  v->offset = NPU_IR_AS_(uint32_t, r->at);
  *opened = c == '[' || c == '{';
  if (!*opened) {
    ++r->value_count;
    return npu_json_scalar_(r, v);
  }
  if (*depth == NPU_IR_MAX_DEPTH) return npu_json_fail_(r, "values are nested too deeply");
  v->kind = c == '[' ? NPU_JSON_LIST : NPU_JSON_OBJECT;
  levels[*depth].value = NPU_IR_AS_(uint32_t, r->value_count);
  levels[*depth].count = 0;
  levels[*depth].is_object = c == '{';
  r->object_count += c == '{';
  ++*depth;
  ++r->value_count;
  ++r->at;
  return 1;
}

/* Reads the text once: counts what it holds or, if there are `values`, fills them. */
static inline int npu_json_scan_(npu_json_reader_* r) {
  npu_json_level_ levels[NPU_IR_MAX_DEPTH];
  uint32_t depth = 0;
  const char* key = NULL;
  int opened = 0;
  r->at = 0;
  r->value_count = r->string_bytes = r->object_count = r->integer_count = 0;
  npu_json_skip_(r);
  if (r->at == r->size) return npu_json_fail_(r, "expected a document");
  if (!npu_json_value_(r, NULL, levels, &depth, &opened)) return 0;
  while (depth != 0) {
    npu_json_level_* level = &levels[depth - 1];
    const int end = level->is_object ? '}' : ']';
    npu_json_skip_(r);
    if (npu_json_peek_(r) == end) {
      opened = 0;
      --depth;
      if (!npu_json_close_(r, level)) return 0;
      continue;
    }
    if (!opened) {
      if (npu_json_peek_(r) != ',') {
        return npu_json_fail_(r, level->is_object ? "expected ',' or '}'" : "expected ',' or ']'");
      }
      ++r->at;
    }
    key = NULL;
    if (level->is_object && !npu_json_key_(r, &key)) return 0;
    ++level->count;
    npu_json_skip_(r);
    if (!npu_json_value_(r, key, levels, &depth, &opened)) return 0;
  }
  npu_json_skip_(r);
  return r->at == r->size ? 1 : npu_json_fail_(r, "expected nothing behind the document");
}

typedef struct npu_ir_builder_ {
  const char* text;
  npu_ir_error* error;
  npu_ir_arena_ arena;
  npu_ir* ir;
  npu_ir_tensor* tensors;
  npu_ir_node* nodes;
  uint32_t* by_name; /* tensors, sorted */
} npu_ir_builder_;

static inline int npu_ir_refuse_(const npu_ir_builder_* b, const npu_json* place,
                                 const char* format, const char* name) {
  return npu_ir_fail_(b->error, b->text, place->offset, format, name);
}

static inline int npu_ir_full_(const npu_ir_builder_* b) {
  return npu_ir_fail_(b->error, NULL, 0, "the memory does not suffice%s", "");
}

/* The list `key` of objects, at least an empty one. */
static inline int npu_ir_objects_(const npu_ir_builder_* b, const npu_json* parent, const char* key,
                                  const npu_json** list) {
  const npu_json* v;
  *list = npu_json_member(parent, key);
  if (*list == NULL) return npu_ir_refuse_(b, parent, "the key '%s' is missing", key);
  if ((*list)->kind != NPU_JSON_LIST) {
    return npu_ir_refuse_(b, *list, "expected a list, found %s", npu_json_kind_name((*list)->kind));
  }
  for (v = npu_json_first(*list); v != NULL; v = npu_json_next(*list, v)) {
    if (v->kind == NPU_JSON_OBJECT) continue;
    return npu_ir_refuse_(b, v, "expected an object, found %s", npu_json_kind_name(v->kind));
  }
  return 1;
}

/* The string `key`, which must not be empty. */
static inline int npu_ir_text_(const npu_ir_builder_* b, const npu_json* parent, const char* key,
                               const char** text) {
  const npu_json* v = npu_json_member(parent, key);
  if (v == NULL) return npu_ir_refuse_(b, parent, "the key '%s' is missing", key);
  if (v->kind != NPU_JSON_STRING || v->count == 0) {
    return npu_ir_refuse_(b, v, "expected a text for '%s'", key);
  }
  *text = v->as.text;
  return 1;
}

/* NULL for a member that is missing or null. */
static inline const npu_json* npu_ir_stated_(const npu_json* parent, const char* key) {
  const npu_json* v = npu_json_member(parent, key);
  return v != NULL && v->kind != NPU_JSON_NULL ? v : NULL;
}

/* Takes over a shape, or compares it with the one that is known. */
static inline int npu_ir_merge_shape_(npu_ir_builder_* b, const npu_json* list, npu_ir_tensor* t) {
  const npu_json* v;
  int64_t* shape = NULL;
  uint64_t product = 1;
  uint32_t i = 0;
  int is_empty = 0;
  if (list->kind != NPU_JSON_LIST) {
    return npu_ir_refuse_(b, list, "expected a shape for '%s'", t->name);
  }
  if (t->shape == NULL) {
    shape = NPU_IR_AS_(int64_t*, npu_ir_take_(&b->arena, list->count, sizeof *shape));
    if (shape == NULL) return npu_ir_full_(b);
    t->shape = shape;
    t->rank = list->count;
  } else if (t->rank != list->count) {
    return npu_ir_refuse_(b, list, "'%s' has another shape elsewhere", t->name);
  }
  for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v), ++i) {
    uint64_t extent;
    if (v->kind != NPU_JSON_INTEGER || v->as.integer < 0) {
      return npu_ir_refuse_(b, v, "expected an extent of at least 0 for '%s'", t->name);
    }
    if (shape == NULL && t->shape[i] != v->as.integer) {
      return npu_ir_refuse_(b, v, "'%s' has another shape elsewhere", t->name);
    }
    if (shape != NULL) shape[i] = v->as.integer;
    extent = NPU_IR_AS_(uint64_t, v->as.integer);
    if (extent == 0) {
      is_empty = 1;
    } else if (product > NPU_IR_AS_(uint64_t, INT64_MAX) / extent) {
      return npu_ir_refuse_(b, list, "'%s' is too large", t->name);
    } else {
      product *= extent;
    }
  }
  t->elements = is_empty ? 0 : product;
  if (t->elements <= NPU_IR_AS_(uint64_t, INT64_MAX) / 16) return 1;
  return npu_ir_refuse_(b, list, "'%s' is too large", t->name);
}

/* What a mention of a tensor says of its shape and dtype. */
static inline int npu_ir_merge_(npu_ir_builder_* b, const npu_json* mention, npu_ir_tensor* t) {
  const npu_json* shape = npu_ir_stated_(mention, "shape");
  const npu_json* dtype = npu_ir_stated_(mention, "dtype");
  uint32_t number;
  if (shape != NULL && !npu_ir_merge_shape_(b, shape, t)) return 0;
  if (dtype == NULL) return 1;
  if (dtype->kind != NPU_JSON_STRING) {
    return npu_ir_refuse_(b, dtype, "expected a dtype for '%s'", t->name);
  }
  number = npu_ir_dtype_of(dtype->as.text);
  if (number == NPU_IR_NONE) return npu_ir_refuse_(b, dtype, "unknown dtype '%s'", dtype->as.text);
  if (t->dtype != NPU_IR_NONE && t->dtype != number) {
    return npu_ir_refuse_(b, dtype, "'%s' has another dtype elsewhere", t->name);
  }
  t->dtype = number;
  return 1;
}

/* What it says of where the tensor comes from. A graph input names itself. */
static inline int npu_ir_check_producer_(const npu_ir_builder_* b, const npu_json* mention,
                                         const npu_ir_tensor* t) {
  const npu_json* name = npu_ir_stated_(mention, "producer_node");
  const npu_json* index = npu_ir_stated_(mention, "producer_output_idx");
  const int is_result = t->kind == NPU_IR_RESULT;
  const char* expected = is_result ? b->nodes[t->producer].name : t->name;
  if (name != NULL && (name->kind != NPU_JSON_STRING || strcmp(name->as.text, expected) != 0)) {
    return npu_ir_refuse_(b, name, "the producer is '%s'", expected);
  }
  if (index == NULL) return 1;
  if (index->kind != NPU_JSON_INTEGER ||
      (is_result && name != NULL && index->as.integer != NPU_IR_AS_(int64_t, t->index))) {
    return npu_ir_refuse_(b, index, "'%s' is another result of its producer", t->name);
  }
  return 1;
}

static inline int npu_ir_define_(npu_ir_builder_* b, const npu_json* mention, uint32_t kind,
                                 uint32_t producer, uint32_t index) {
  npu_ir_tensor* t = &b->tensors[b->ir->tensor_count];
  t->dtype = NPU_IR_NONE;
  t->kind = kind;
  t->producer = producer;
  t->index = index;
  t->json = mention;
  if (!npu_ir_text_(b, mention, "name", &t->name)) return 0;
  b->by_name[b->ir->tensor_count] = b->ir->tensor_count;
  ++b->ir->tensor_count;
  return npu_ir_merge_(b, mention, t);
}

static inline uint32_t npu_ir_find_(const npu_ir_builder_* b, const char* name) {
  uint32_t begin = 0;
  uint32_t end = b->ir->tensor_count;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const int order = strcmp(b->tensors[b->by_name[middle]].name, name);
    if (order == 0) return b->by_name[middle];
    if (order < 0) begin = middle + 1;
    if (order > 0) end = middle;
  }
  return NPU_IR_NONE;
}

/* The tensors that nodes before `reader` define and that the list mentions. */
static inline int npu_ir_resolve_(npu_ir_builder_* b, const npu_json* list, uint32_t reader,
                                  uint32_t* tensors) {
  const npu_json* v;
  for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v)) {
    npu_ir_tensor* t;
    const char* name = NULL;
    uint32_t found;
    if (!npu_ir_text_(b, v, "name", &name)) return 0;
    found = npu_ir_find_(b, name);
    if (found == NPU_IR_NONE) return npu_ir_refuse_(b, v, "nothing defines the tensor '%s'", name);
    t = &b->tensors[found];
    if (t->kind == NPU_IR_RESULT && t->producer >= reader) {
      return npu_ir_refuse_(b, v, "'%s' is read before its producer", name);
    }
    if (!npu_ir_merge_(b, v, t) || !npu_ir_check_producer_(b, v, t)) return 0;
    *tensors++ = found;
  }
  return 1;
}

/* All of a node but its operands. */
static inline int npu_ir_define_node_(npu_ir_builder_* b, const npu_json* v, uint32_t* outputs) {
  npu_ir_node* node = &b->nodes[b->ir->node_count];
  const npu_json* inputs = NULL;
  const npu_json* results = NULL;
  const npu_json* group = npu_ir_stated_(v, "fusion_group");
  const npu_json* pattern = npu_ir_stated_(v, "fusion_pattern");
  const npu_json* r;
  node->json = v;
  node->attrs = npu_ir_stated_(v, "attrs");
  node->fusion_group = -1;
  node->outputs = outputs;
  if (!npu_ir_text_(b, v, "name", &node->name) || !npu_ir_text_(b, v, "op_type", &node->op) ||
      !npu_ir_objects_(b, v, "inputs", &inputs) || !npu_ir_objects_(b, v, "outputs", &results)) {
    return 0;
  }
  if (node->attrs != NULL && node->attrs->kind != NPU_JSON_OBJECT) {
    return npu_ir_refuse_(b, node->attrs, "expected an object for the attrs of '%s'", node->name);
  }
  if (group != NULL) {
    if (group->kind != NPU_JSON_INTEGER || group->as.integer < 0) {
      return npu_ir_refuse_(b, group, "expected a group of at least 0 for '%s'", node->name);
    }
    node->fusion_group = group->as.integer;
  }
  if (pattern != NULL && pattern->kind == NPU_JSON_STRING) node->fusion_pattern = pattern->as.text;
  node->input_count = inputs->count;
  node->output_count = results->count;
  for (r = npu_json_first(results); r != NULL; r = npu_json_next(results, r)) {
    const uint32_t tensor = b->ir->tensor_count;
    const uint32_t index = NPU_IR_AS_(uint32_t, outputs - node->outputs);
    if (!npu_ir_define_(b, r, NPU_IR_RESULT, b->ir->node_count, index) ||
        !npu_ir_check_producer_(b, r, &b->tensors[tensor])) {
      return 0;
    }
    *outputs++ = tensor;
  }
  ++b->ir->node_count;
  return 1;
}

/* Sorts the names of tensors, and refuses one that stands there twice; the same for nodes. */
static inline int npu_ir_check_names_(npu_ir_builder_* b) {
  npu_ir_names_ names;
  uint32_t* ids = NPU_IR_AS_(
      uint32_t*, npu_ir_take_(&b->arena, 2 * NPU_IR_AS_(uint64_t, b->ir->node_count), sizeof *ids));
  uint32_t twice;
  if (ids == NULL) return npu_ir_full_(b);
  names.first = b->tensors;
  names.stride = sizeof *b->tensors;
  names.member = offsetof(npu_ir_tensor, name);
  npu_ir_sort_(&names, b->by_name, b->ir->tensor_count);
  twice = npu_ir_twice_(&names, b->by_name, b->ir->tensor_count);
  if (twice != NPU_IR_NONE) {
    return npu_ir_refuse_(b, b->tensors[twice].json, "two tensors are named '%s'",
                          b->tensors[twice].name);
  }
  names.first = b->nodes;
  names.stride = sizeof *b->nodes;
  names.member = offsetof(npu_ir_node, name);
  for (twice = 0; twice < b->ir->node_count; ++twice) ids[twice] = twice;
  npu_ir_sort_(&names, ids, b->ir->node_count);
  twice = npu_ir_twice_(&names, ids, b->ir->node_count);
  if (twice == NPU_IR_NONE) return 1;
  return npu_ir_refuse_(b, b->nodes[twice].json, "two nodes are named '%s'", b->nodes[twice].name);
}

/* Every tensor has a shape and a dtype by now. */
static inline int npu_ir_complete_(npu_ir_builder_* b) {
  uint32_t i;
  for (i = 0; i < b->ir->tensor_count; ++i) {
    npu_ir_tensor* t = &b->tensors[i];
    if (t->shape == NULL || t->dtype == NPU_IR_NONE) {
      return npu_ir_refuse_(b, t->json, "no mention of '%s' gives both its shape and its dtype",
                            t->name);
    }
    t->bytes = t->elements * (npu_ir_dtype_bits(t->dtype) / 8);
  }
  return 1;
}

/* The pairs of "aliases", once every tensor is there. The half of by_name that sorting needed says
   at which place of the outputs a tensor stands, or that it is in a pair. */
static inline int npu_ir_build_aliases_(npu_ir_builder_* b) {
  const uint32_t taken = NPU_IR_NONE - 1;
  const npu_json* list = npu_json_member(b->ir->root, "aliases");
  uint32_t* places = b->by_name + b->ir->tensor_count;
  npu_ir_alias* alias;
  const npu_json* v;
  uint32_t i;
  if (list == NULL) return 1;
  if (!npu_ir_objects_(b, b->ir->root, "aliases", &list)) return 0;
  alias = NPU_IR_AS_(npu_ir_alias*, npu_ir_take_(&b->arena, list->count, sizeof *alias));
  if (alias == NULL) return npu_ir_full_(b);
  b->ir->aliases = alias;
  for (i = 0; i < b->ir->tensor_count; ++i) places[i] = NPU_IR_NONE;
  for (i = b->ir->output_count; i-- != 0;) places[b->ir->outputs[i]] = i;
  for (v = npu_json_first(list); v != NULL; v = npu_json_next(list, v), ++alias) {
    const char* output = NULL;
    const char* input = NULL;
    uint32_t result;
    uint32_t given;
    if (!npu_ir_text_(b, v, "output", &output) || !npu_ir_text_(b, v, "input", &input)) return 0;
    result = npu_ir_find_(b, output);
    given = npu_ir_find_(b, input);
    if (result == NPU_IR_NONE || places[result] >= taken) {
      return npu_ir_refuse_(b, v, "'%s' is no graph output, or in two aliases", output);
    }
    alias->output = places[result];
    places[result] = taken;
    if (given == NPU_IR_NONE || b->tensors[given].kind != NPU_IR_INPUT || places[given] == taken) {
      return npu_ir_refuse_(b, v, "'%s' is no graph input, or in two aliases", input);
    }
    alias->input = b->tensors[given].index;
    places[given] = taken;
    if (b->tensors[result].dtype != b->tensors[given].dtype ||
        b->tensors[result].rank != b->tensors[given].rank ||
        (b->tensors[result].rank != 0 &&
         memcmp(b->tensors[result].shape, b->tensors[given].shape,
                b->tensors[result].rank * sizeof *b->tensors[given].shape) != 0)) {
      return npu_ir_refuse_(b, v, "'%s' has another dtype or shape than its alias", output);
    }
  }
  b->ir->alias_count = list->count;
  return 1;
}

static inline int npu_ir_check_version_(npu_ir_builder_* b) {
  const npu_json* v = npu_json_member(b->ir->root, "ir_version");
  char text[96];
  b->ir->version = 1;
  if (v == NULL) return 1;
  if (v->kind != NPU_JSON_INTEGER) return npu_ir_refuse_(b, v, "expected an integer%s", "");
  if (v->as.integer < NPU_IR_VERSION_MIN || v->as.integer > NPU_IR_VERSION_MAX) {
    snprintf(text, sizeof text, "%lld, and this backend reads %d to %d",
             NPU_IR_AS_(long long, v->as.integer), NPU_IR_VERSION_MIN, NPU_IR_VERSION_MAX);
    return npu_ir_refuse_(b, v, "the sub-IR has version %s", text);
  }
  b->ir->version = NPU_IR_AS_(uint32_t, v->as.integer);
  return 1;
}

typedef struct npu_ir_lists_ {
  const npu_json* inputs;
  const npu_json* weights;
  const npu_json* outputs;
  const npu_json* nodes;
} npu_ir_lists_;

/* Tables for as many tensors, nodes and operands as the lists have. */
static inline int npu_ir_reserve_(npu_ir_builder_* b, const npu_ir_lists_* lists,
                                  uint32_t** indices) {
  uint64_t tensors = NPU_IR_AS_(uint64_t, lists->inputs->count) + lists->weights->count;
  uint64_t mentions = lists->outputs->count;
  const npu_json* v;
  for (v = npu_json_first(lists->nodes); v != NULL; v = npu_json_next(lists->nodes, v)) {
    const npu_json* list = NULL;
    if (!npu_ir_objects_(b, v, "inputs", &list)) return 0;
    mentions += list->count;
    if (!npu_ir_objects_(b, v, "outputs", &list)) return 0;
    mentions += list->count;
    tensors += list->count;
  }
  b->tensors = NPU_IR_AS_(npu_ir_tensor*, npu_ir_take_(&b->arena, tensors, sizeof *b->tensors));
  b->nodes =
      NPU_IR_AS_(npu_ir_node*, npu_ir_take_(&b->arena, lists->nodes->count, sizeof *b->nodes));
  b->by_name = NPU_IR_AS_(uint32_t*, npu_ir_take_(&b->arena, 2 * tensors, sizeof *b->by_name));
  *indices = NPU_IR_AS_(uint32_t*, npu_ir_take_(&b->arena, mentions, sizeof **indices));
  if (b->tensors == NULL || b->nodes == NULL || b->by_name == NULL || *indices == NULL) {
    return npu_ir_full_(b);
  }
  memset(b->tensors, 0, tensors * sizeof *b->tensors);
  memset(b->nodes, 0, lists->nodes->count * sizeof *b->nodes);
  return 1;
}

static inline int npu_ir_build_tables_(npu_ir_builder_* b, const npu_ir_lists_* lists) {
  npu_ir* ir = b->ir;
  uint32_t* indices = NULL;
  const npu_json* v;
  uint32_t n;
  if (!npu_ir_reserve_(b, lists, &indices)) return 0;
  for (v = npu_json_first(lists->inputs); v != NULL; v = npu_json_next(lists->inputs, v)) {
    if (!npu_ir_define_(b, v, NPU_IR_INPUT, NPU_IR_NONE, ir->input_count++)) return 0;
  }
  for (v = npu_json_first(lists->weights); v != NULL; v = npu_json_next(lists->weights, v)) {
    if (!npu_ir_define_(b, v, NPU_IR_WEIGHT, NPU_IR_NONE, ir->weight_count++)) return 0;
  }
  for (v = npu_json_first(lists->nodes); v != NULL; v = npu_json_next(lists->nodes, v)) {
    if (!npu_ir_define_node_(b, v, indices)) return 0;
    indices += b->nodes[ir->node_count - 1].output_count;
  }
  ir->tensors = b->tensors;
  ir->nodes = b->nodes;
  if (!npu_ir_check_names_(b)) return 0;
  for (n = 0; n < ir->node_count; ++n) {
    npu_ir_node* node = &b->nodes[n];
    node->inputs = indices;
    if (!npu_ir_resolve_(b, npu_json_member(node->json, "inputs"), n, indices)) return 0;
    indices += node->input_count;
  }
  ir->outputs = indices;
  ir->output_count = lists->outputs->count;
  if (!npu_ir_resolve_(b, lists->outputs, ir->node_count, indices)) return 0;
  return npu_ir_complete_(b) && npu_ir_build_aliases_(b);
}

static inline int npu_ir_build_(npu_ir_builder_* b) {
  static const npu_json empty = {NPU_JSON_LIST, 0, 1, 0, NULL, {0}};
  const npu_json* root = b->ir->root;
  const npu_json* name;
  npu_ir_lists_ lists = {NULL, NULL, NULL, NULL};
  if (root->kind != NPU_JSON_OBJECT) {
    return npu_ir_refuse_(b, root, "expected an object, found %s", npu_json_kind_name(root->kind));
  }
  if (!npu_ir_check_version_(b)) return 0;
  name = npu_json_member(root, "model_name");
  if (name != NULL && name->kind != NPU_JSON_STRING) {
    return npu_ir_refuse_(b, name, "expected a text for '%s'", "model_name");
  }
  b->ir->model_name = name != NULL ? name->as.text : "";
  lists.weights = &empty;
  if (!npu_ir_objects_(b, root, "graph_inputs", &lists.inputs) ||
      !npu_ir_objects_(b, root, "graph_outputs", &lists.outputs) ||
      !npu_ir_objects_(b, root, "nodes", &lists.nodes)) {
    return 0;
  }
  if (npu_json_member(root, "weights") != NULL &&
      !npu_ir_objects_(b, root, "weights", &lists.weights)) {
    return 0;
  }
  return npu_ir_build_tables_(b, &lists);
}

/* The first of two passes, which says what the second one needs; 0 bytes after an error. */
static inline uint64_t npu_ir_measure_(npu_json_reader_* r, const char* text, size_t size,
                                       npu_ir_error* error) {
  memset(r, 0, sizeof *r);
  r->text = text != NULL ? text : "";
  r->size = size;
  r->error = error;
  if (size > INT32_MAX) {
    npu_ir_fail_(error, NULL, 0, "expected a text of less than 2 GiB%s", "");
    return 0;
  }
  if (!npu_json_scan_(r)) return 0;
  /* A node or a tensor is an object, with two numbers for sorting and one for a mention. */
  return sizeof(npu_ir) + r->value_count * sizeof(npu_json) + r->string_bytes +
         2 * r->largest_object * sizeof(uint32_t) + r->integer_count * sizeof(int64_t) +
         r->object_count * (sizeof(npu_ir_node) + 3 * sizeof(uint32_t)) + 128;
}

/* The second pass; `head` bytes of the block stay free at its begin. */
static inline npu_json* npu_json_fill_(npu_json_reader_* r, npu_ir_arena_* arena, uint64_t head) {
  npu_json* values;
  npu_ir_take_(arena, head, 1);
  values = NPU_IR_AS_(npu_json*, npu_ir_take_(arena, r->value_count, sizeof *values));
  r->spare = NPU_IR_AS_(uint32_t*, npu_ir_take_(arena, 2 * r->largest_object, sizeof *r->spare));
  r->strings = NPU_IR_AS_(char*, npu_ir_take_(arena, r->string_bytes, 1));
  r->values = values;
  return npu_json_scan_(r) ? values : NULL;
}

/* ---- Reading ---- */

/* Bytes that npu_ir_read_into or npu_json_read_into needs; 0 if the text is no JSON. */
static inline uint64_t npu_ir_memory(const char* text, size_t size, npu_ir_error* error) {
  npu_json_reader_ r;
  return npu_ir_measure_(&r, text, size, error);
}

/* Reads into `memory` of `bytes` bytes, which has malloc's alignment and has to outlive the views.
   NULL with the reason in `error`, which may be NULL. */
static inline npu_ir* npu_ir_read_into(const char* text, size_t size, void* memory, uint64_t bytes,
                                       npu_ir_error* error) {
  npu_json_reader_ r;
  npu_ir_builder_ b;
  const uint64_t needed = npu_ir_measure_(&r, text, size, error);
  if (needed == 0) return NULL;
  memset(&b, 0, sizeof b);
  b.text = r.text;
  b.error = error;
  if (bytes < needed) {
    npu_ir_full_(&b);
    return NULL;
  }
  b.arena.base = NPU_IR_AS_(char*, memory);
  b.arena.size = bytes;
  b.ir = NPU_IR_AS_(npu_ir*, memory);
  memset(b.ir, 0, sizeof *b.ir);
  b.ir->root = npu_json_fill_(&r, &b.arena, sizeof *b.ir);
  return b.ir->root != NULL && npu_ir_build_(&b) ? b.ir : NULL;
}

static inline npu_json* npu_json_read_into(const char* text, size_t size, void* memory,
                                           uint64_t bytes, npu_ir_error* error) {
  npu_json_reader_ r;
  npu_ir_arena_ arena;
  const uint64_t needed = npu_ir_measure_(&r, text, size, error);
  if (needed == 0) return NULL;
  if (bytes < needed) {
    npu_ir_fail_(error, NULL, 0, "the memory does not suffice%s", "");
    return NULL;
  }
  arena.base = NPU_IR_AS_(char*, memory);
  arena.used = 0;
  arena.size = bytes;
  return npu_json_fill_(&r, &arena, 0);
}

/* malloc(bytes), or NULL with an error. */
static inline void* npu_ir_block_(uint64_t bytes, npu_ir_error* error) {
  void* block = bytes <= SIZE_MAX ? malloc(NPU_IR_AS_(size_t, bytes)) : NULL;
  if (block == NULL) npu_ir_fail_(error, NULL, 0, "out of memory%s", "");
  return block;
}

/* The same in memory from malloc, which npu_ir_free returns. */
static inline npu_ir* npu_ir_read(const char* text, size_t size, npu_ir_error* error) {
  const uint64_t bytes = npu_ir_memory(text, size, error);
  void* block = bytes != 0 ? npu_ir_block_(bytes, error) : NULL;
  npu_ir* ir = block != NULL ? npu_ir_read_into(text, size, block, bytes, error) : NULL;
  if (ir == NULL) free(block);
  return ir;
}

static inline void npu_ir_free(npu_ir* ir) { free(ir); }

static inline npu_json* npu_json_read(const char* text, size_t size, npu_ir_error* error) {
  const uint64_t bytes = npu_ir_memory(text, size, error);
  void* block = bytes != 0 ? npu_ir_block_(bytes, error) : NULL;
  npu_json* json = block != NULL ? npu_json_read_into(text, size, block, bytes, error) : NULL;
  if (json == NULL) free(block);
  return json;
}

static inline void npu_json_free(npu_json* json) { free(json); }

#ifdef __cplusplus
}
#endif
#endif
