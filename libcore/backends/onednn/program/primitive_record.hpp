// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "program/layout.hpp"
#include "program/plan.hpp"
#include "program/plan_record.hpp"

namespace npu::onednn {

/// Throws Error kUnsupported for a layout that has more than strides and blocks.
LayoutRecord record_of(const Layout& layout);
/// Throws Error kInvalidGraph if the record is no layout (see checked_span).
Layout layout_of(const LayoutRecord& record);

/// The primitive of a step as numbers. Throws Error kUnsupported for one that they do not describe.
PrimitiveRecord record_of_primitive(const Step& step);

/// DNNL_ARG_* of every operand but scratch memory.
std::vector<int> arguments_of(const PrimitiveRecord& record);

/// The descriptor that a record describes: its operands lie as the record's layouts say. Throws
/// Error kInvalidGraph if there is no such primitive on this CPU.
dnnl::primitive_desc_base make_primitive(const PrimitiveRecord& record, const dnnl::engine& engine);

}  // namespace npu::onednn
