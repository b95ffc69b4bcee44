// SPDX-License-Identifier: Apache-2.0
// The table of the opencl backend, see npu-opencl(7).
#include "boundary.hpp"
#include "npu/ops/op_catalogue.hpp"
#include "op_table.hpp"

namespace npu::opencl {
namespace {

npu_status list_ops(npu_device* /*device*/, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require(visit != nullptr, "visit is null");
    for (const std::string_view op : catalogued_ops()) {
      if (find_row(op) != nullptr) visit(context, std::string(op).c_str(), "opencl");
    }
  });
}

constexpr const char* kFeatures[] = {"memory.limit", "cancel", "queue", "copy", "check", nullptr};

npu_backend make_table() {
  npu_backend table{};
  table.struct_size = sizeof table;
  table.abi_version = NPU_ABI_VERSION;
  table.features = kFeatures;
  table.backend_info = backend_info;
  table.device_info = device_info;
  table.device_open = device_open;
  table.device_close = device_close;
  table.compile = compile;
  table.model_load = model_load;
  table.model_free = model_free;
  table.program_create = program_create;
  table.program_free = program_free;
  table.buffer_create = buffer_create;
  table.buffer_free = buffer_free;
  table.run = run;
  table.buffer_write = buffer_write;
  table.buffer_read = buffer_read;
  table.buffer_map = buffer_map;
  table.buffer_unmap = buffer_unmap;
  table.weights_load = weights_load;
  table.weights_free = weights_free;
  table.blob_report = blob_report;
  table.blob_check = blob_check;
  table.blob_memory = blob_memory;
  table.model_memory = model_memory;
  table.device_memory = device_memory;
  table.list_ops = list_ops;
  table.queue_open = queue_open;
  table.queue_close = queue_close;
  table.queue_flush = queue_flush;
  table.queue_finish = queue_finish;
  table.submit = submit;
  table.submit_write = submit_write;
  table.submit_read = submit_read;
  table.event_wait = event_wait;
  table.event_free = event_free;
  table.event_on_done = event_on_done;
  table.buffer_copy = buffer_copy;
  table.check = check;
  table.clock_sample = clock_sample;
  return table;
}

}  // namespace
}  // namespace npu::opencl

extern "C" __attribute__((visibility("default"))) const npu_backend* npu_backend_entry(
    const npu_host* host, npu_error* /*error*/) {
  static const npu_backend table = npu::opencl::make_table();
  return host != nullptr ? &table : nullptr;
}
