// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device_instance.hpp"
#include "gnn/block/buffer_pool.hpp"
#include "npu/compile/cache.hpp"
#include "npu/tensor/safetensors.hpp"
#include "rows/row_products.hpp"

namespace npu::gnn {

/// Programs of static devices, and of those with memory of their own.
struct ProgramCounts {
  std::int32_t compiled = 0;
  std::int32_t cache_hits = 0;
};

/// Where a block runs.
struct GnnDevice {
  std::string name;
  std::string backend;
  std::string resource;
  bool is_static = false;  ///< gets padded shapes
  bool bfloat16 = false;   ///< features and operands of products, where it can
  std::int32_t threads = 0;
  std::shared_ptr<DeviceInstance> instance;
  std::string options = "{}";  ///< with which `instance` was opened
  /// Computes blocks with matrix products instead of `instance`, where it can; null: none.
  std::shared_ptr<DeviceInstance> products;
  /// Of both instances; what blocks compute goes there.
  std::shared_ptr<BufferPool> buffers = std::make_shared<BufferPool>();
  /// Of products that are computed here.
  std::shared_ptr<PackedWeights> weights = std::make_shared<PackedWeights>();
  CompileCache* cache = nullptr;    ///< of programs that take long; null: compile always
  ProgramCounts* counts = nullptr;  ///< added to, if not null; one thread at a time
};

/// What multiplies matrices faster than a device of libtorch and shares its memory: backend
/// `onednn`, opened with the same options. Null for other devices, and where there is no such
/// backend.
std::shared_ptr<DeviceInstance> open_products(const GnnDevice& device);

/// Whether products of float32 rows with weights are computed here, by multiply_rows: where the
/// device is libtorch's, whose products give a row other bits where there are more or fewer rows.
bool multiplies_here(const GnnDevice& device);

/// What a program of a block is made of.
struct GnnProgramInput {
  std::string sub_ir;
  std::vector<NamedTensor> weights;
  ProgramSignature signature;
};

/// A program of a block that was compiled before.
struct StoredProgram {
  std::string key;  ///< gnn_program_key of what it was made of
  Blob blob;
};

/// A digest of everything that a program depends on: what it is made of, the precision of the
/// device and the backend of `instance`. O(bytes of weights).
std::string gnn_program_key(const GnnDevice& device, const DeviceInstance& instance,
                            const GnnProgramInput& input);

/// The blob of a program on an instance of the device, from the device's cache if it has one.
Blob compile_gnn_program(const GnnDevice& device, DeviceInstance& instance,
                         const GnnProgramInput& input);

/// A program ready to run.
std::unique_ptr<DeviceProgram> load_gnn_program(DeviceInstance& instance, Blob blob,
                                                GnnProgramInput input);

}  // namespace npu::gnn
