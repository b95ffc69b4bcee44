// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "program/layout.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

/// Adds a post-op behind a list, where it may become one with the last. False, and the list as it
/// was, if oneDNN would not compute what the longer one says.
[[nodiscard]] bool append_post_op(std::vector<PostOpRecord>& list, const PostOpRecord& next);

/// The list as a primitive takes it; `operands` are what kBinary reads, in order. Throws Error
/// kInvalidGraph for a list that oneDNN would compute as another one.
dnnl::post_ops make_post_ops(std::span<const PostOpRecord> list, std::span<const Layout> operands);

}  // namespace npu::onednn
