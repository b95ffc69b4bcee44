// SPDX-License-Identifier: Apache-2.0
// Programs of the blocks of graph neural networks, through the compile cache. The same block at the
// same padded size has the same sub-IR, so a plan that ran before finds all of its programs.
// Devices without static shapes compile for exact sizes: those in host memory so fast that caching
// is not worthwhile, while drivers of others take long. O(bytes of weights) for the key, plus the
// backend's cost.
#include "gnn/block/gnn_programs.hpp"

#include <thread>

namespace npu::gnn {

namespace {

constexpr const char* kLibtorch = "aten";
constexpr const char* kFastProducts = "onednn";

bool is_cached(const GnnDevice& device, const DeviceInstance& instance) {
  if (device.cache == nullptr || !device.cache->enabled()) return false;
  return device.is_static || !instance.facts().is_coherent;
}

std::string options_of(const GnnDevice& device) {
  return device.bfloat16 && device.is_static ? R"({"precision": "bf16"})" : "{}";
}

}  // namespace

std::shared_ptr<DeviceInstance> open_products(const GnnDevice& device) {
  if (device.is_static || device.backend != kLibtorch ||
      Backend::find_file(kFastProducts).empty()) {
    return nullptr;
  }
  return DeviceInstance::open(Backend::load(kFastProducts), device.options);
}

bool multiplies_here(const GnnDevice& device) { return device.backend == kLibtorch; }

std::string gnn_program_key(const GnnDevice& device, const DeviceInstance& instance,
                            const GnnProgramInput& input) {
  const Backend& backend = instance.backend();
  return cache_key({.backend = backend.name(),
                    .backend_version = backend.version(),
                    .fingerprint = instance.facts().fingerprint,
                    .device = {},
                    .options = options_of(device),
                    .sub_ir = input.sub_ir,
                    .weights = &input.weights});
}

Blob compile_gnn_program(const GnnDevice& device, DeviceInstance& instance,
                         const GnnProgramInput& input) {
  const Backend& backend = instance.backend();
  const std::string options = options_of(device);
  std::string key;
  const bool caches = is_cached(device, instance);
  if (caches) {
    // "All cores" are others elsewhere, and a cache may be shared.
    const std::string cores =
        device.threads == 0 ? std::to_string(std::thread::hardware_concurrency()) : std::string();
    key = cache_key({.backend = backend.name(),
                     .backend_version = backend.version(),
                     .fingerprint = device.instance->facts().fingerprint,
                     .device = device.options,
                     .options = options + cores,
                     .sub_ir = input.sub_ir,
                     .weights = &input.weights});
    if (auto entry = device.cache->find(key)) {
      if (device.counts != nullptr) ++device.counts->cache_hits;
      return std::move(entry->blob);
    }
  }
  Blob blob = instance.compile(input.sub_ir, input.weights, options);
  if ((device.is_static || caches) && device.counts != nullptr) ++device.counts->compiled;
  if (!key.empty()) device.cache->store(key, blob, instance.blob_report(blob));
  return blob;
}

std::unique_ptr<DeviceProgram> load_gnn_program(DeviceInstance& instance, Blob blob,
                                                GnnProgramInput input) {
  // A blob that holds its weights needs no other copy of them.
  if (instance.backend().holds_weights()) input.weights.clear();
  return instance.load(std::move(blob), std::move(input.weights), std::move(input.signature));
}

}  // namespace npu::gnn
