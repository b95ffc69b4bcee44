/* SPDX-License-Identifier: Apache-2.0 */
/* Between npu-plan and a shared object lib/npu/transports/npu_partitioner_NAME.so, which cuts a
   graph that lies in shares in several processes. Both are built together; nobody else uses it.

   Functions return null, or a text that says what went wrong, valid until the next call. Nothing is
   printed, and no exception crosses. */
#ifndef NPU_PARTITIONER_ABI_H
#define NPU_PARTITIONER_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_PARTITIONER_ABI_VERSION 1u
#define NPU_PARTITIONER_ENTRY_NAME "npu_partitioner_entry"

/* The rows of one process in a simple undirected graph. The processes have theirs in the order of
   their ranks. */
typedef struct npu_graph_share {
  int64_t nodes;            /* rows of this process */
  const int64_t* offsets;   /* [nodes + 1], from 0 */
  const int64_t* neighbors; /* by their numbers in the whole graph */
  const int64_t* weights;   /* [nodes], above 0 */
  int64_t all_nodes;        /* of the whole graph, as the other two */
  int64_t all_entries;      /* each edge counts twice */
  int64_t all_weights;
} npu_graph_share;

typedef struct npu_partitioner {
  uint32_t abi_version;
  uint32_t reserved;
  const char* name;
  /* What keeps it from cutting anything in this process, such as a library of another build. Speaks
     to no other process. */
  const char* (*check)(void);
  /* The part of each node of the share, 0 to parts - 1; 2 parts or more. `imbalance` is how far
     above the mean a part may be, such as 0.03: a goal. The same share of the same graph in the
     same number of processes with the same seed gives the same parts.
     Called from the thread that joined the processes, in all of them together. A failure in one
     ends the call in all; a process that only knows of another's returns an empty text. */
  const char* (*cut)(const npu_graph_share* share, int32_t parts, double imbalance, uint64_t seed,
                     int32_t* part_of);
} npu_partitioner;

/* The partitioner, or null if it does not serve this version. */
typedef const npu_partitioner* (*npu_partitioner_entry_function)(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif
