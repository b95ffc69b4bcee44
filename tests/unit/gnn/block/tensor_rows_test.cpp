// SPDX-License-Identifier: Apache-2.0
// Rows of tensors: which share bytes, and which are copied.
#include "gnn/block/tensor_rows.hpp"

#include <numeric>
#include <vector>

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// Row r has the elements 2r and 2r + 1.
Tensor counted_rows(std::int64_t rows) {
  Tensor tensor(DType::kFloat32, {rows, 2});
  std::iota(tensor.as_mutable<float>(), tensor.as_mutable<float>() + 2 * rows, 0.0F);
  return tensor;
}

std::vector<float> elements_of(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.element_count()};
}

}  // namespace

TEST_CASE("a row has the bytes of the other dimensions", "[gnn]") {
  CHECK(row_bytes(counted_rows(3)) == 8);
  CHECK(row_bytes(Tensor(DType::kBFloat16, {2, 3, 4})) == 24);
  CHECK(row_bytes(Tensor(DType::kInt64, {5})) == 8);
  CHECK(row_bytes(Tensor(DType::kFloat32, {0, 7})) == 0);
  CHECK(row_bytes(Tensor(DType::kFloat32, {})) == 0);
}

TEST_CASE("rows next to each other share the tensor's bytes", "[gnn]") {
  Tensor part;
  {
    const Tensor tensor = counted_rows(4);
    part = rows_of(tensor, 1, 2);
    CHECK(part.data() == tensor.data() + 8);
    CHECK(rows_of(tensor, 0, 4).data() == tensor.data());
    CHECK(rows_of(tensor, 4, 0).shape() == Shape{0, 2});
  }
  // They stay when the tensor goes.
  CHECK(part.shape() == Shape{2, 2});
  CHECK(elements_of(part) == std::vector<float>{2, 3, 4, 5});
  CHECK(rows_of(Tensor(DType::kFloat32, {}), 0, 3).shape() == Shape{});
}

TEST_CASE("scattered rows are copied there and back", "[gnn]") {
  const Tensor tensor = counted_rows(4);
  const std::vector<std::int32_t> rows{3, 0, 3};
  const Tensor gathered = gather_rows(tensor, rows.data(), 3);
  CHECK(elements_of(gathered) == std::vector<float>{6, 7, 0, 1, 6, 7});
  Tensor target(DType::kFloat32, {4, 2});
  std::fill_n(target.as_mutable<float>(), 8, -1.0F);
  scatter_rows(gathered, rows.data(), 2, target);
  CHECK(elements_of(target) == std::vector<float>{0, 1, -1, -1, -1, -1, 6, 7});
  scatter_rows(gather_rows(tensor, rows.data(), 0), rows.data(), 0, target);
  CHECK(elements_of(target)[0] == 0);
}
