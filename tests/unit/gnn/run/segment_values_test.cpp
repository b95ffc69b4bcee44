// SPDX-License-Identifier: Apache-2.0
// Values that two shares of a subgraph produce and one reads.
#include "gnn/run/segment_values.hpp"

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

Tensor column(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, {static_cast<std::int64_t>(values.size()), 1});
  std::copy(values.begin(), values.end(), tensor.as_mutable<float>());
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.element_count()};
}

// Three owned nodes, one of the halo; in-edges 1, 2 and 1.
Subgraph part() { return {{10, 11, 12, 20}, 3, {0, 1, 3, 4}, {3, 0, 2, 1}}; }

// Node 0, which reads node 3; and nodes 1 and 2, which read 0, 2 and 1.
std::vector<ShareTask> two_shares() {
  ShareTask first;
  first.view.owned = 1;
  first.view.local = 2;
  first.view.sources = {1};
  first.local = {0, 3};
  ShareTask second;
  second.view.owned = 2;
  second.view.local = 3;
  second.view.sources = {2, 1, 0};
  second.local = {1, 2, 0};
  second.row_begin = 1;
  second.edge_begin = 1;
  return {first, second};
}

StageTensor tensor_of(double node_bytes, double edge_bytes, bool local_rows) {
  StageTensor tensor;
  tensor.name = "t";
  tensor.node_bytes = node_bytes;
  tensor.edge_bytes = edge_bytes;
  tensor.local_rows = local_rows;
  return tensor;
}

ShareTask whole() {
  ShareTask task;
  task.view.owned = 3;
  task.view.local = 4;
  task.view.sources = {3, 0, 2, 1};
  return task;
}

}  // namespace

TEST_CASE("owned rows, local rows and edges come together", "[gnn][segment_values]") {
  const auto shares = two_shares();
  SegmentValues values;
  const StageTensor owned = tensor_of(4, 0, false);
  values.store(owned, column({1}), part(), shares[0]);
  values.store(owned, column({2, 3}), part(), shares[1]);
  CHECK(values_of(values.read(owned, whole())) == std::vector<float>{1, 2, 3});
  CHECK(values_of(values.read(owned, shares[1])) == std::vector<float>{2, 3});
  CHECK(values.take().size() == 1);
  CHECK(values.take().empty());

  const StageTensor edges = tensor_of(0, 4, false);
  values.store(edges, column({5}), part(), shares[0]);
  values.store(edges, column({6, 7, 8}), part(), shares[1]);
  CHECK(values_of(values.read(edges, whole())) == std::vector<float>{5, 6, 7, 8});
  CHECK(values_of(values.read(edges, shares[0])) == std::vector<float>{5});
  values.take();

  const StageTensor local = tensor_of(4, 0, true);
  values.store(local, column({1, 9}), part(), shares[0]);
  values.store(local, column({2, 3, 1}), part(), shares[1]);
  CHECK(values_of(values.read(local, whole())) == std::vector<float>{1, 2, 3, 9});
  CHECK(values_of(values.read(local, shares[1])) == std::vector<float>{2, 3, 1});
}

TEST_CASE("the value of a whole subgraph is handed over without a copy", "[gnn][segment_values]") {
  SegmentValues values;
  const Tensor value = column({1, 2, 3});
  const StageTensor owned = tensor_of(4, 0, false);
  values.store(owned, value, part(), whole());
  CHECK(values.read(owned, whole()).data() == value.data());
  // A value that has rows for neither nodes nor edges is the same for every share.
  const StageTensor fixed = tensor_of(0, 0, false);
  CHECK(values.read(fixed, two_shares()[1]).data() == value.data());
}
