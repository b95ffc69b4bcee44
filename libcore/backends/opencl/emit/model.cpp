// SPDX-License-Identifier: Apache-2.0
// Binds nodes, and refuses what no kernel computes on the device.
#include "emit/model.hpp"

#include <utility>

#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {

Model::Model(const Graph& graph, Machine machine, OpTable find_row)
    : graph_(&graph), machine_(std::move(machine)), bound_(graph.nodes().size()) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    rows_.push_back(find_row(node.op_type));
    if (rows_.back() == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  "node '" + node.name + "': the op '" + node.op_type + "' is not supported");
    }
    if (node.op_type == kGetitem) continue;
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  "node '" + node.name + "': the op '" + node.op_type + "' has no schema");
    }
    bound_[i].emplace(graph, node, op->schema);
  }
  for (const TensorInfo& tensor : graph.tensors()) {
    const DType dtype = tensor.dtype;
    if (dtype == DType::kComplex64 || dtype == DType::kComplex128 ||
        (dtype == DType::kFloat64 && !machine_.has_float64)) {
      const NodeId node = tensor.producer.valid()    ? tensor.producer
                          : tensor.consumers.empty() ? NodeId{}
                                                     : tensor.consumers.front();
      throw Error(ErrorCode::kUnsupported,
                  (node.valid() ? "node '" + graph.node(node).name + "', " : "") + "tensor '" +
                      tensor.name + "': " + std::string(dtype_name(dtype)) +
                      " is not supported on this device");
    }
    if (checked_element_count(tensor.shape).value_or(0) > INT32_MAX / 2) index_type_ = "long";
  }
}

std::int64_t Model::count(TensorId id) const {
  return checked_element_count(shape(id)).value_or(0);
}

bool Model::is_view(NodeId id) const {
  const OpRow& of = row(id);
  return of.kind == OpClass::kView || (of.moves_nothing != nullptr && of.moves_nothing(*this, id));
}

}  // namespace npu::opencl
