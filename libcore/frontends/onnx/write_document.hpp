// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "importer.hpp"

namespace npu::onnx {

struct WrittenModel {
  std::string document;
  std::vector<WeightPlace> weights;  ///< those whose data does not stand in the document
  std::deque<Tensor> computed;       ///< of which this is the data that lies in no file
};

/// Writes the draft as a document of npu-ir(5): what the outputs need, with ONNX's names. Throws
/// Refusal if constants do not fit into the document and may not be given as data.
WrittenModel write_document(Importer& importer);

}  // namespace npu::onnx
