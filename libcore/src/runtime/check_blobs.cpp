// SPDX-License-Identifier: Apache-2.0
// Blobs of a bundle, shown to their backends before any of them is loaded: a backend knows better
// than a fingerprint whether what another driver made still runs. The cost is that of reading the
// headers.
#include "runtime/check_blobs.hpp"

#include "device/device_instance.hpp"

namespace npu {

void check_bundled_blobs(const std::vector<CompiledPartition>& partitions, const Target& target,
                         const ExecutorOptions& options, const std::string& file,
                         OpenDevices& devices, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    const CompiledPartition& partition = partitions[i];
    const auto backend = Backend::load(partition.backend);
    if (backend->api().blob_check == nullptr) continue;
    auto& device = devices[partition.device];
    if (device == nullptr) {
      const Device* described = target.find_device(partition.device);
      device = DeviceInstance::open(backend, device_options(*described, options));
    }
    if (partition.check_blob) partition.check_blob();
    const BlobVerdict verdict = device->check_blob(partition.blob);
    const std::string which = "partition " + std::to_string(i);
    if (verdict.fit == BlobFit::kOther) {
      throw Error(ErrorCode::kUnsupported,
                  which + " does not fit device '" + partition.device + "' (backend '" +
                      partition.backend + "'): " + verdict.reason +
                      "; compile the model again with npu-compile on this machine",
                  {.file = file});
    }
    if (verdict.fit == BlobFit::kSlow) {
      diagnostics.warning({.file = file}, which + " would be faster on device '" +
                                              partition.device +
                                              "' if it was compiled again: " + verdict.reason);
    }
  }
}

}  // namespace npu
