// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "importer.hpp"

namespace npu::onnx {

struct WrittenModel {
  std::string document;
  std::vector<WeightPlace> weights;  ///< those whose data lies in files
};

/// Writes the draft as a document of npu-ir(5): what the outputs need, with ONNX's names. Throws
/// Refusal if constants do not fit into the document.
WrittenModel write_document(Importer& importer);

}  // namespace npu::onnx
