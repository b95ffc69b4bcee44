// SPDX-License-Identifier: Apache-2.0
// Programs of the blocks of graph neural networks, through the compile cache. The same block at the
// same padded size has the same sub-IR, so a plan that ran before finds all of its programs.
// Devices without static shapes compile for exact sizes, so fast that caching is not worthwhile.
// O(bytes of weights) for the key, plus the backend's cost.
#include "gnn/run/gnn_programs.hpp"

#include <thread>

namespace npu::gnn {

namespace {

constexpr const char* kSlowProducts = "aten";
constexpr const char* kFastProducts = "onednn";

}  // namespace

std::shared_ptr<DeviceInstance> open_products(const GnnDevice& device) {
  if (device.is_static || device.backend != kSlowProducts ||
      Backend::find_file(kFastProducts).empty()) {
    return nullptr;
  }
  return DeviceInstance::open(Backend::load(kFastProducts), device.options);
}

std::unique_ptr<DeviceProgram> load_gnn_program(const GnnDevice& device, DeviceInstance& instance,
                                                const std::string& sub_ir,
                                                std::vector<NamedTensor> weights,
                                                ProgramSignature signature) {
  const Backend& backend = instance.backend();
  const std::string options =
      device.bfloat16 && device.is_static ? R"({"precision": "bf16"})" : "{}";
  Blob blob;
  std::string key;
  if (device.cache != nullptr && device.cache->enabled() && device.is_static) {
    // "All cores" are others elsewhere, and a cache may be shared.
    const std::string cores =
        device.threads == 0 ? std::to_string(std::thread::hardware_concurrency()) : std::string();
    key = cache_key({.backend = backend.name(),
                     .backend_version = backend.version(),
                     .fingerprint = device.instance->facts().fingerprint,
                     .device = device.options,
                     .options = options + cores,
                     .sub_ir = sub_ir,
                     .weights = &weights});
    if (auto entry = device.cache->find(key)) {
      blob = std::move(entry->blob);
      if (device.counts != nullptr) ++device.counts->cache_hits;
    }
  }
  if (blob.data == nullptr) {
    blob = instance.compile(sub_ir, weights, options);
    if (device.is_static && device.counts != nullptr) ++device.counts->compiled;
    if (!key.empty()) device.cache->store(key, blob, instance.blob_report(blob));
  }
  // A blob that holds its weights needs no other copy of them.
  if (backend.holds_weights()) weights.clear();
  return instance.load(std::move(blob), std::move(weights), std::move(signature));
}

}  // namespace npu::gnn
