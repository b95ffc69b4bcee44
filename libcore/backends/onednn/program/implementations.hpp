// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

namespace npu::onednn {

/// True for an implementation that does not compute what its descriptor says.
bool is_wrong(const dnnl::primitive_desc_base& primitive);

/// The first implementation of a descriptor, from the one that it has on, that is right. Throws
/// dnnl::error (dnnl_unimplemented) if there is none.
template <typename Descriptor>
Descriptor first_right(Descriptor primitive) {
  while (is_wrong(primitive)) {
    if (!primitive.next_impl()) {
      throw dnnl::error(dnnl_unimplemented, "its implementations are known to be wrong");
    }
  }
  return primitive;
}

/// The primitive of a descriptor, with its code. oneDNN may have none for a descriptor that it has
/// made: throws dnnl::error (dnnl_unimplemented) then.
dnnl::primitive with_code(const dnnl::primitive_desc_base& primitive);

}  // namespace npu::onednn
