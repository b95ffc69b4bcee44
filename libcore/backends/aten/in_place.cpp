// SPDX-License-Identifier: Apache-2.0
// Ops that give their first operand with some of its elements replaced, in the form that writes
// into it. A program clones what it may not write, so these forms cost what the others do, and a
// state that nobody else holds is written where it lies.
#include "in_place.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "boxed.hpp"

namespace npu::aten {
namespace {

using at::Tensor;

constexpr std::pair<std::string_view, std::string_view> kForms[] = {
    {"aten.index_copy.default", "aten.index_copy_.default"},
    {"aten.index_put.default", "aten.index_put_.default"},
    {"aten.scatter.src", "aten.scatter_.src"},
    {"aten.scatter.value", "aten.scatter_.value"},
    {"aten.scatter.reduce", "aten.scatter_.reduce"},
    {"aten.scatter.value_reduce", "aten.scatter_.value_reduce"},
};

Tensor overwrite(const Tensor& self, const Tensor& part, const Tensor& src) {
  TORCH_CHECK(part.sizes() == src.sizes(), "expected src of shape ", part.sizes(), ", found ",
              src.sizes());
  part.copy_(src);
  return self;
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, std::int64_t dim,
                     c10::optional<std::int64_t> start, c10::optional<std::int64_t> end,
                     std::int64_t step) {
  return overwrite(self, at::slice(self, dim, start, end, step), src);
}

Tensor select_scatter(const Tensor& self, const Tensor& src, std::int64_t dim, std::int64_t index) {
  return overwrite(self, self.select(dim, index), src);
}

// The rows behind the first `valid` ones: zeros, minus infinity, or copies of the last valid one.
Tensor tail(const Tensor& self, const Tensor& valid, std::int64_t dim, c10::string_view fill) {
  TORCH_CHECK(self.dim() > 0, "a scalar has no rows");
  const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  const std::int64_t rows = self.size(axis);
  const auto count = valid.item<std::int64_t>();
  TORCH_CHECK(count >= 0 && count <= rows, count, " valid rows are not in a dimension of ", rows);
  if (count == rows) return self;
  Tensor rest = self.narrow(axis, count, rows - count);
  if (fill == "edge") {
    TORCH_CHECK(count > 0, "without a valid row there is none to repeat");
    rest.copy_(self.narrow(axis, count - 1, 1).expand_as(rest));
  } else if (fill == "lowest") {
    rest.fill_(-std::numeric_limits<double>::infinity());
  } else {
    TORCH_CHECK(fill == "zero", "fill is none of zero, edge and lowest");
    rest.zero_();
  }
  return self;
}

constexpr Decomposition kInPlaceDecompositions[] = {
    {"aten.slice_scatter.default",
     "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
     "SymInt step=1) -> Tensor",
     Decomposition::When::kAlways, &boxed<&slice_scatter>},
    {"aten.select_scatter.default",
     "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
     Decomposition::When::kAlways, &boxed<&select_scatter>},
    {"npu.tail", "tail(Tensor self, Tensor valid, *, int dim, str fill='zero') -> Tensor",
     Decomposition::When::kAlways, &boxed<&tail>},
};

}  // namespace

std::optional<std::string_view> in_place_op(std::string_view op_type) {
  for (const auto& [op, form] : kForms) {
    if (op == op_type) return form;
  }
  return std::nullopt;
}

const Decomposition* in_place_decomposition(std::string_view op_type) {
  const auto* found =
      std::find_if(std::begin(kInPlaceDecompositions), std::end(kInPlaceDecompositions),
                   [&](const Decomposition& each) { return each.op_type == op_type; });
  return found == std::end(kInPlaceDecompositions) ? nullptr : found;
}

std::span<const Decomposition> in_place_decompositions() { return kInPlaceDecompositions; }

}  // namespace npu::aten
