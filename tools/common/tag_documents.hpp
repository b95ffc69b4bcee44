// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/ir/graph.hpp"
#include "options/tag_options.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The input with its caches as states (--states), and the document that fills those of a decoder
/// (--encode-for): only the document, and the file that its paths are relative to.
Graph document_with_states(Tool& tool, const TagArguments& arguments);
Graph document_of_encoder(Tool& tool, const TagArguments& arguments);

}  // namespace npu::cli
