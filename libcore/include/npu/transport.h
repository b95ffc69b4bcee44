/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface between npu-run or npu-plan and a transport, which carries rows between the
   processes that a launcher has started.

   A transport is a shared object lib/npu/transports/npu_transport_NAME.so that exports one
   function, npu_transport_entry. npu-run loads it only for a plan with more than one rank, npu-plan
   only where a launcher has started several processes or PT-Scotch is named. The version is
   provisional: it may change until a release says otherwise.

   Rules:
   - Every function returns null, or a text that says what went wrong: UTF-8, lower case, without a
     final full stop, valid until the next call. After a failure only `leave` may be called, and
     need not be.
   - All functions are called from the thread that called `join`.
   - join, connect, sum, smallest and leave are collective: every process calls them in the same
     order. start is, too, and is over when test has said so in every process.
   - Nothing is printed, and no exception crosses. */
#ifndef NPU_TRANSPORT_H
#define NPU_TRANSPORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_TRANSPORT_ABI_VERSION 1u
#define NPU_TRANSPORT_ENTRY_NAME "npu_transport_entry"

/* Ranks, ascending and without this one, and how many rows go to or come from each. */
typedef struct npu_transport_peers {
  int32_t count;
  const int32_t* ranks;
  const int64_t* rows;
} npu_transport_peers;

typedef struct npu_transport {
  uint32_t abi_version;
  uint32_t reserved;
  const char* name; /* as in the file's name */
  /* Finds the other processes that were started with this one. Called once, first. */
  const char* (*join)(int32_t* rank, int32_t* size);
  /* Whom start exchanges rows with, from now on. Called after join, and again when others are to
     exchange rows; no exchange is under way then. */
  const char* (*connect)(const npu_transport_peers* from, const npu_transport_peers* to);
  /* Begins an exchange of rows of `row_bytes` each: `out` has those for all ranks of `to`, one rank
     after another, `in` gets those of all ranks of `from`. Both stay until the exchange is over. */
  const char* (*start)(const void* out, void* in, int64_t row_bytes);
  /* Goes on with the exchange that start began; `done` becomes 1 if it is over, else 0. */
  const char* (*test)(int32_t* done);
  /* Replaces each value by its sum over all processes. */
  const char* (*sum)(int64_t* values, int64_t count);
  /* Replaces the value by the smallest of all processes. */
  const char* (*smallest)(int64_t* value);
  /* Parts in peace. Called at most once, last. */
  const char* (*leave)(void);
} npu_transport;

/* The transport, or null if it does not serve this version. */
typedef const npu_transport* (*npu_transport_entry_function)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif
