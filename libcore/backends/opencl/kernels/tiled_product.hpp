// SPDX-License-Identifier: Apache-2.0
// Products whose tiles the items of a work group share.
#pragma once

#include "kernels/group_kernel.hpp"
#include "kernels/product_tiling.hpp"

namespace npu::opencl {

/// The kernel of a product with tiles of more than one work item; `result` is the product's tensor.
GeneratedKernel tiled_product(Emitter& emitter, const KernelTask& task, const ProductSpec& spec,
                              const Tiling& tiling, const Tunable& tunable, TensorId result);

}  // namespace npu::opencl
