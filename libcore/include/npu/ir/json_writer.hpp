// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/ir/graph.hpp"

namespace npu {

/// The document, one node or tensor per line, with a newline at the end. Keys keep the order in
/// which they were read, with new ones last; the same graph gives the same bytes.
std::string write_graph(const Graph& graph);

/// `document` in the same layout: each member of the top level and each element of its arrays on a
/// separate line, everything below them compact.
std::string write_document(const Json& document);

}  // namespace npu
