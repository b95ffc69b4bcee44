/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events that drivers pass to each other as file descriptors, features "wrap.dmabuf" and
   "sync_fd". The skeleton and the events of the skeleton with queues come before it.

   A dma-buf of this device is a file in memory, which any process can map; a real one is mapped in
   the same way. VENDOR: your driver makes dma-bufs, and DMA_BUF_IOCTL_SYNC stands around what the
   CPU does with one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The skeleton's buffer comes first, so that a pointer to one is a pointer to the other. */
typedef struct queue_buffer {
  npu4_buffer base;
  int is_pinned;  /* in memory 1, which is the host's */
  int descriptor; /* of what can be exported; -1: nothing */
  void* mapping;  /* that the data lie in; null: the skeleton's own memory */
  uint64_t mapped_bytes;
  npu4_device* counted; /* whose memory it takes; null: nobody's */
} queue_buffer;

static void queue_buffer_free(npu4_buffer* freed) {
  queue_buffer* buffer = (queue_buffer*)freed;
  if (buffer == NULL) return;
  if (buffer->mapping != NULL) {
    munmap(buffer->mapping, (size_t)buffer->mapped_bytes);
  } else {
    free(buffer->base.data);
  }
  if (buffer->descriptor >= 0) close(buffer->descriptor);
  free(buffer);
}

static queue_buffer* make_buffer(const npu4_buffer_desc* desc) {
  queue_buffer* made = (queue_buffer*)allocate(sizeof *made);
  if (made == NULL) return NULL;
  made->descriptor = -1;
  made->base.bytes = desc->bytes;
  made->base.rank = desc->rank;
  if (desc->rank != 0) memcpy(made->base.shape, desc->shape, desc->rank * sizeof *desc->shape);
  return made;
}

/* Maps the first `bytes` of a file. */
static int map_file(queue_buffer* buffer, int descriptor, uint64_t bytes, int protection) {
  void* mapping = mmap(NULL, (size_t)bytes, protection, MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED) return 0;
  buffer->mapping = mapping;
  buffer->mapped_bytes = bytes;
  return 1;
}

static int take_shared_memory(queue_buffer* buffer) {
  buffer->descriptor = memfd_create("skeleton", MFD_CLOEXEC);
  if (buffer->descriptor < 0 || ftruncate(buffer->descriptor, (off_t)buffer->base.bytes) != 0 ||
      !map_file(buffer, buffer->descriptor, buffer->base.bytes, PROT_READ | PROT_WRITE)) {
    return 0;
  }
  buffer->base.data = (float*)buffer->mapping;
  return 1;
}

/* Bytes for a program, whatever the device's dtypes are. */
static npu4_status check_scratch(const npu4_buffer_desc* desc, npu4_error* error) {
  if (desc->dtype == NPU4_UINT8 && desc->rank == 1 && desc->memory == 0 && desc->shape[0] >= 0 &&
      (uint64_t)desc->shape[0] == desc->bytes) {
    return NPU4_OK;
  }
  return fail(error, NPU4_UNSUPPORTED, NULL, "scratch memory is a row of bytes in memory 0");
}

/* Memory 1 is for what is on its way, memory 0 for everything. */
static npu4_status check_place(const npu4_buffer_desc* desc, npu4_error* error) {
  npu4_buffer_desc moved = *desc;
  moved.struct_size = sizeof moved;
  if ((desc->usage & NPU4_USAGE_SCRATCH) != 0) return check_scratch(desc, error);
  if (desc->memory == 1 && (desc->usage & NPU4_USAGE_STAGING) != 0) moved.memory = 0;
  if (desc->layout != NULL) {
    if (strcmp(desc->layout, REVERSED) != 0 || desc->memory != 0 || desc->bytes == 0) {
      return fail(error, NPU4_INVALID, NULL, "there is no layout '%s' here", desc->layout);
    }
    moved.layout = NULL;
  }
  return check_desc(&moved, error);
}

static npu4_status queue_buffer_create(npu4_device* device, const npu4_buffer_desc* desc,
                                       npu4_buffer** buffer, npu4_error* error) {
  const int is_scratch = (desc->usage & NPU4_USAGE_SCRATCH) != 0;
  const npu4_status status = check_place(desc, error);
  queue_buffer* made;
  int is_good;
  (void)device;
  if (status != NPU4_OK) return status;
  made = make_buffer(desc);
  if (made == NULL) return out_of_memory(error, sizeof *made);
  made->is_pinned = desc->memory == 1;
  made->base.is_reversed = desc->layout != NULL;
  if (is_scratch) made->base.rank = SCRATCH_RANK;
  if ((desc->usage & NPU4_USAGE_SHARED) != 0 && desc->bytes != 0) {
    is_good = take_shared_memory(made);
  } else {
    made->base.data = (float*)allocate(desc->bytes);
    is_good = made->base.data != NULL;
  }
  if (!is_good) {
    queue_buffer_free(&made->base);
    return out_of_memory(error, desc->bytes);
  }
  *buffer = &made->base;
  return NPU4_OK;
}

/* Of pinned memory alone. VENDOR: what of your memory the host sees */
static npu4_status buffer_map(npu4_buffer* mapped, uint32_t access, void** pointer,
                              npu4_error* error) {
  const queue_buffer* buffer = (const queue_buffer*)mapped;
  (void)access;
  if (!buffer->is_pinned) {
    return fail(error, NPU4_UNSUPPORTED, NULL, "the host does not see the memory of the device");
  }
  *pointer = buffer->base.bytes != 0 ? buffer->base.data : NULL;
  return NPU4_OK;
}

static void buffer_unmap(npu4_buffer* buffer) { (void)buffer; /* nothing was cached */ }

static npu4_status buffer_wrap(npu4_device* device, const npu4_buffer_desc* desc,
                               const npu4_external* external, npu4_buffer** buffer,
                               npu4_error* error) {
  const npu4_status status = check_desc(desc, error);
  const int protection =
      (external->access & NPU4_ACCESS_WRITE) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  queue_buffer* made;
  off_t size;
  (void)device;
  if (status != NPU4_OK) return status;
  if (external->type != NPU4_DMABUF_FD || external->offset % sizeof(float) != 0) {
    return fail(error, NPU4_UNSUPPORTED, NULL, "only dma-bufs are wrapped, at whole elements");
  }
  size = external->handle >= 0 && external->handle <= INT32_MAX
             ? lseek((int)external->handle, 0, SEEK_END)
             : -1;
  if (size < 0 || external->bytes < desc->bytes || external->offset > (uint64_t)size ||
      external->bytes > (uint64_t)size - external->offset) {
    return fail(error, NPU4_INVALID, NULL, "the dma-buf is none, or smaller than the buffer");
  }
  made = make_buffer(desc);
  if (made == NULL) return out_of_memory(error, sizeof *made);
  /* The mapping keeps the memory, so the descriptor need not be duplicated. */
  if (desc->bytes != 0 &&
      !map_file(made, (int)external->handle, external->offset + desc->bytes, protection)) {
    queue_buffer_free(&made->base);
    return fail(error, NPU4_UNSUPPORTED, NULL, "the dma-buf cannot be mapped");
  }
  if (made->mapping != NULL) {
    made->base.data = (float*)(void*)((char*)made->mapping + external->offset);
  }
  *buffer = &made->base;
  return NPU4_OK;
}

static npu4_status buffer_export(npu4_buffer* exported, uint32_t type, npu4_external* external,
                                 npu4_error* error) {
  const queue_buffer* buffer = (const queue_buffer*)exported;
  npu4_external filled;
  if (type != NPU4_DMABUF_FD || buffer->descriptor < 0 || buffer->base.is_reversed) {
    return fail(error, NPU4_UNSUPPORTED, NULL, "the buffer was not made to be shared");
  }
  memset(&filled, 0, sizeof filled);
  filled.type = NPU4_DMABUF_FD;
  filled.access = NPU4_ACCESS_READ | NPU4_ACCESS_WRITE;
  filled.handle = fcntl(buffer->descriptor, F_DUPFD_CLOEXEC, 0);
  filled.bytes = buffer->base.bytes;
  if (filled.handle < 0) return out_of_memory(error, 0);
  give(external, external->struct_size, &filled, sizeof filled);
  return NPU4_OK;
}

/* ---- Events ---- */

/* VENDOR: a sync_file of your driver */
static npu4_status event_export(npu4_event* event, int32_t* descriptor, npu4_error* error) {
  int ends[2];
  exported_end* kept = (exported_end*)allocate(sizeof *kept);
  if (kept == NULL) return out_of_memory(error, sizeof *kept);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    free(kept);
    return out_of_memory(error, 0);
  }
  kept->descriptor = ends[1];
  pthread_mutex_lock(&event->lock);
  kept->next = event->exported;
  event->exported = kept;
  if (event->is_done) tell_exported(event);
  pthread_mutex_unlock(&event->lock);
  *descriptor = ends[0];
  return NPU4_OK;
}

static npu4_status event_import(npu4_device* device, int32_t descriptor, npu4_event** event,
                                npu4_error* error) {
  npu4_event* made;
  const int kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  (void)device;
  if (kept < 0) return fail(error, NPU4_INVALID, NULL, "there is no such descriptor");
  made = make_event();
  if (made == NULL) {
    close(kept);
    return out_of_memory(error, sizeof *made);
  }
  made->holders = 1; /* its work is somebody else's */
  made->imported = kept;
  *event = made;
  return NPU4_OK;
}
