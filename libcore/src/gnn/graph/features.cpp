// SPDX-License-Identifier: Apache-2.0
// Reads node features. O(bytes).
#include "gnn/graph/features.hpp"

#include "gnn/graph/matrix_market.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "tensor/npy.hpp"

namespace npu::gnn {

Tensor read_features(const std::string& path) {
  Tensor features;
  if (path.ends_with(".npy")) {
    features = read_npy(path);
  } else if (path.ends_with(".safetensors")) {
    const SafetensorsFile file(path);
    const SafetensorsEntry* entry = file.find("x");
    if (entry == nullptr) entry = file.find("features");
    if (entry == nullptr && file.entries().size() == 1) entry = &file.entries().front();
    if (entry == nullptr) {
      throw Error(ErrorCode::kParse, "expected the features as tensor 'x' or 'features'",
                  {.file = path});
    }
    features = file.tensor(*entry);
  } else {
    const MappedFile file(path);
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    if (!is_matrix_market(bytes, path)) {
      throw Error(ErrorCode::kParse, "expected features in .npy, .safetensors or MatrixMarket form",
                  {.file = path});
    }
    return parse_matrix_market_features(bytes, path);
  }
  if (features.shape().size() != 2 || features.dtype() != DType::kFloat32) {
    throw Error(ErrorCode::kParse,
                "the features are " + std::string(dtype_name(features.dtype())) + " " +
                    shape_text(features.shape()) + ", expected float32 [nodes, features]",
                {.file = path});
  }
  return features;
}

}  // namespace npu::gnn
