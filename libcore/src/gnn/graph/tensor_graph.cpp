// SPDX-License-Identifier: Apache-2.0
// Reads graphs that are tensors: compressed rows under the names that SciPy, PyTorch and PyG give
// them, or pairs of ends. O(bytes + nodes).
#include "gnn/graph/tensor_graph.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <utility>

#include "gnn/graph/edge_rows.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/tensor/safetensors.hpp"

namespace npu::gnn {
namespace {

// Element `index` of an int32 or int64 tensor.
std::int64_t element(const Tensor& tensor, std::int64_t index) {
  return tensor.dtype() == DType::kInt64 ? tensor.as<std::int64_t>()[index]
                                         : tensor.as<std::int32_t>()[index];
}

using TensorSource = std::function<std::optional<Tensor>(std::string_view)>;

class TensorGraph {
 public:
  TensorGraph(TensorSource find, const std::string& file, const GraphReadOptions& options)
      : find_(std::move(find)),
        file_(file),
        options_(options),
        nodes_(options.node_count.value_or(0)) {}

  DataGraph read() {
    if (const auto offsets = find_integers({"indptr", "crow_indices", "rowptr", "row_ptr"})) {
      read_rows(*offsets);
    } else if (const auto pairs = find_integers({"edge_index"})) {
      read_pairs(*pairs);
    } else {
      fail("found neither the tensors 'indptr' and 'indices' nor 'edge_index'");
    }
    if (nodes_ < 1) fail("the graph has no nodes");
    DataGraph data;
    data.format = "safetensors";
    data.in_edges = rows_by_target(nodes_, std::move(edges_));
    return data;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ErrorCode::kParse, text, {.file = file_});
  }

  // The first of the names that there is.
  std::optional<Tensor> find_integers(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      auto tensor = find_(name);
      if (!tensor) continue;
      if (tensor->dtype() != DType::kInt64 && tensor->dtype() != DType::kInt32) {
        fail("tensor '" + std::string(name) + "' is " + std::string(dtype_name(tensor->dtype())) +
             ", expected int32 or int64");
      }
      return tensor;
    }
    return std::nullopt;
  }

  void check_id(std::int64_t id) const {
    if (id >= 0 && id < nodes_) return;
    fail("node " + std::to_string(id) + " is not in 0.." + std::to_string(nodes_ - 1));
  }

  void read_rows(const Tensor& offsets) {
    const auto targets = find_integers({"indices", "col_indices", "col", "col_idx"});
    if (!targets) fail("the tensor 'indices' is missing beside 'indptr'");
    if (offsets.shape().size() != 1 || targets->shape().size() != 1 ||
        offsets.element_count() < 2) {
      fail("expected 'indptr' [n + 1] and 'indices' [m], found " + shape_text(offsets.shape()) +
           " and " + shape_text(targets->shape()));
    }
    nodes_ = offsets.element_count() - 1;
    if (nodes_ > kMaxNodes) fail("the graph has too many nodes");
    if (element(offsets, 0) != 0 || element(offsets, nodes_) != targets->element_count()) {
      fail("'indptr' goes from " + std::to_string(element(offsets, 0)) + " to " +
           std::to_string(element(offsets, nodes_)) + ", expected 0 to " +
           std::to_string(targets->element_count()));
    }
    edges_.sources.reserve(index_of(targets->element_count()));
    edges_.targets.reserve(index_of(targets->element_count()));
    for (std::int64_t v = 0; v < nodes_; ++v) {
      const std::int64_t begin = element(offsets, v);
      const std::int64_t end = element(offsets, v + 1);
      if (end < begin || end > targets->element_count()) {
        fail("'indptr' descends at node " + std::to_string(v));
      }
      for (std::int64_t e = begin; e < end; ++e) {
        const std::int64_t target = element(*targets, e);
        check_id(target);
        edges_.add(v, target);
      }
    }
  }

  void read_pairs(const Tensor& pairs) {
    if (pairs.shape().size() != 2 || pairs.shape()[0] != 2) {
      fail("expected 'edge_index' [2, m], found " + shape_text(pairs.shape()));
    }
    const std::int64_t count = pairs.shape()[1];
    if (!options_.node_count) {
      for (std::int64_t e = 0; e < 2 * count; ++e) {
        nodes_ = std::max(nodes_, std::min(element(pairs, e), kMaxNodes) + 1);
      }
    }
    if (nodes_ > kMaxNodes) fail("the graph has too many nodes");
    for (std::int64_t e = 0; e < count; ++e) {
      check_id(element(pairs, e));
      check_id(element(pairs, count + e));
      edges_.add(element(pairs, e), element(pairs, count + e));
    }
  }

  TensorSource find_;
  const std::string& file_;
  const GraphReadOptions& options_;
  std::int64_t nodes_;
  EdgeArrays edges_;
};

}  // namespace

DataGraph parse_tensor_graph(std::string_view bytes, const std::string& file,
                             const GraphReadOptions& options) {
  std::size_t data_begin = 0;
  const auto entries = parse_safetensors(bytes, file, data_begin);
  const auto find = [&](std::string_view name) -> std::optional<Tensor> {
    for (const SafetensorsEntry& entry : entries) {
      if (entry.name != name) continue;
      Tensor tensor(entry.dtype, entry.shape);
      const std::string_view content =
          bytes.substr(data_begin + entry.begin, entry.end - entry.begin);
      std::copy(content.begin(), content.end(), reinterpret_cast<char*>(tensor.mutable_data()));
      return tensor;
    }
    return std::nullopt;
  };
  return TensorGraph(find, file, options).read();
}

DataGraph read_tensor_graph(const std::string& path, const GraphReadOptions& options) {
  const SafetensorsFile file(path);
  const auto find = [&](std::string_view name) -> std::optional<Tensor> {
    const SafetensorsEntry* entry = file.find(name);
    if (entry == nullptr) return std::nullopt;
    return file.tensor(*entry);
  };
  return TensorGraph(find, path, options).read();
}

}  // namespace npu::gnn
