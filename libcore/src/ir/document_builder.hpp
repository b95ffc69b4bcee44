// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// A tensor as a mention states it.
struct StatedTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// Builds a document of npu-ir(5) tensor by tensor and node by node, and a graph of it.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(const std::string& model_name);

  void add_input(const StatedTensor& tensor);
  /// A weight. Nodes call it by its placeholder, if it has one.
  void add_weight(const StatedTensor& tensor, const std::string& placeholder = {});
  /// A tensor that the document defines elsewhere, such as a constant.
  void add_known(const StatedTensor& tensor) { tensors_[tensor.name] = tensor; }
  /// A node that reads tensors by their names, all of which must be known.
  void add_node(const std::string& name, const std::string& op_type,
                const std::vector<std::string>& operands, const std::vector<StatedTensor>& results,
                const Json& attrs);
  /// Sets a member of the node that was added last.
  void set(const std::string& key, const Json& value);
  void add_output(const std::string& name);

  /// What was said of a tensor that nodes can read; null if nothing was.
  const StatedTensor* find(const std::string& name) const;
  Json& document() noexcept { return document_; }
  const Json& document() const noexcept { return document_; }
  /// Throws Error kInvalidGraph with the first fault. `file` is for messages.
  Graph build(const std::string& file) const;

 private:
  Json mention(const std::string& name) const;

  Json document_;
  std::unordered_map<std::string, StatedTensor> tensors_;
};

}  // namespace npu
