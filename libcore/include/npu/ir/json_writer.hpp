// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/ir/graph.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// The document, one node or tensor per line, with a newline at the end. Keys keep the order in
/// which they were read, with new ones last; the same graph gives the same bytes.
std::string write_graph(const Graph& graph);

/// The same with nodes that have no blanks: what a backend compiles, and what the cache looks up.
std::string write_sub_ir(const Graph& graph);

/// The bytes of write_graph in pieces, so that the text of a large document is never held as a
/// whole. Throws Error kUsage for a string that is not UTF-8 before the first piece is passed on.
void write_graph(const Graph& graph, const TextSink& sink);

/// Brings the infinities and NaN in all attrs and constants into one form; without this they are
/// written as they were read.
void set_non_finite_form(Graph& graph, NonFiniteForm form);

/// `document` in the same layout: the members of the top level and the elements of its arrays each
/// on a line of their own, everything below them compact.
std::string write_document(const Json& document);

}  // namespace npu
