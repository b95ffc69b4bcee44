// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "program/plan_record.hpp"

namespace npu::onednn {

/// Whether the number of threads that it is made for decides on the bits of a primitive's results.
/// It decides on none of our kernels.
bool bits_by_threads(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive);

/// The number of threads that a primitive is made for and gets in every run, so that a run that
/// uses fewer has the same bits: one where there is little work, which then has the bits of any
/// number; else `most`; 0 for a primitive whose bits do not depend on it.
int fixed_threads(const PrimitiveRecord& record, const dnnl::primitive_desc_base& primitive,
                  int most);

}  // namespace npu::onednn
