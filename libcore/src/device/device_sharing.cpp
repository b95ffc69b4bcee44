// SPDX-License-Identifier: Apache-2.0
// Memory and events that go from one backend to another without the host's memory between them:
// dma-bufs and sync_files. Descriptors are open only during the call, since backends keep what they
// need.
#include "device/device_sharing.hpp"

#include "device/device_call.hpp"
#include "support/descriptor.hpp"

namespace npu {

bool shares_memory(const DeviceInstance& from, const DeviceInstance& to) {
  return &from.backend() != &to.backend() && from.facts().exports_dmabuf &&
         from.backend().api().buffer_export != nullptr && from.keeps_outputs() &&
         to.facts().wraps_dmabuf && to.backend().has_feature("wrap.dmabuf");
}

std::shared_ptr<DeviceBuffer> share_buffer(const std::shared_ptr<DeviceBuffer>& source,
                                           DeviceInstance& to) {
  if (source->bytes() == 0) return nullptr;
  const Backend& backend = source->device()->backend();
  npu4_external external = sized<npu4_external>();
  external.handle = -1;
  npu4_error error = empty_error();
  const npu4_status status =
      backend.api().buffer_export(source->get(), NPU4_DMABUF_FD, &external, &error);
  if (status == NPU4_UNSUPPORTED) return nullptr;
  check_status(status, error, backend);
  if (external.type != NPU4_DMABUF_FD || external.handle < 0 || external.handle > INT32_MAX ||
      external.bytes < source->bytes()) {
    break_contract(backend, "buffer_export",
                   "it says that it exported a buffer, but gave no descriptor of it");
  }
  const Descriptor descriptor(static_cast<int>(external.handle));
  external.struct_size = sizeof external;
  external.access = NPU4_ACCESS_READ;
  return to.wrap(source->dtype(), source->shape(), external, source);
}

std::shared_ptr<DeviceEvent> share_event(const DeviceEvent& event,
                                         const std::shared_ptr<DeviceInstance>& to) {
  const Backend& from = event.device().backend();
  if (!from.has_feature("sync_fd") || !to->backend().has_feature("sync_fd")) return nullptr;
  std::int32_t number = -1;
  npu4_error error = empty_error();
  check_status(from.api().event_export(event.get(), &number, &error), error, from);
  const Descriptor descriptor(number);
  if (number < 0)
    break_contract(from, "event_export",
                   "it says that it exported an event, but gave no descriptor");
  npu4_event* imported = nullptr;
  error = empty_error();
  check_status(to->backend().api().event_import(to->get(), number, &imported, &error), error,
               to->backend());
  if (imported == nullptr) {
    break_contract(to->backend(), "event_import",
                   "it says that it imported an event, but gave none");
  }
  return std::make_shared<DeviceEvent>(to, imported);
}

}  // namespace npu
