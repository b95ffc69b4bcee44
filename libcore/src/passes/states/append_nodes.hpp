// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// Part of a template that is to stand behind the nodes of a document.
struct AppendedPart {
  const Template& model;
  std::vector<std::string> outputs;    ///< tensors of `model` that are wanted
  std::map<std::string, Json> inputs;  ///< mentions of the document for inputs of `model`
  SizeSubstitution sizes;              ///< what symbols of `model` are in the document
  std::string prefix;                  ///< in front of every name that comes of `model`
  std::string file;                    ///< of the document, which its paths are relative to
};

/// Appends the nodes that lead to the outputs, with their weights and constants, and where these
/// lie (npu.weights_map; both models lie in one folder). Returns false, and adds an error, if they
/// need another input, or a size that has no substitute. O(nodes of `model`).
bool append_nodes(Json& document, const AppendedPart& part, Diagnostics& diagnostics);

}  // namespace npu::states
