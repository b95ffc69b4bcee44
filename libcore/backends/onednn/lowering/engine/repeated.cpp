// SPDX-License-Identifier: Apache-2.0
// Views with repeated elements: grouped heads and masks reach the kernel of an attention as
// `unsqueeze, expand, reshape`, which is read in place; whatever else reads such a view gets a copy
// when it asks for it. O(rank), and O(planes) for the first elements of matrices.
#include "lowering/engine/repeated.hpp"

#include <utility>

#include "lowering/engine/lowering.hpp"

namespace npu::onednn {

namespace {

/// Puts a run behind others, joined with the last one where both are one run.
void append(Repeated::Runs& runs, Repeated::Run run) {
  if (run.count == 1) return;
  if (!runs.empty() && runs.back().stride == run.count * run.stride) {
    run.count *= runs.back().count;
    runs.back() = run;
  } else {
    runs.push_back(run);
  }
}

std::int64_t extent_of(const Repeated::Runs& runs) {
  std::int64_t extent = 1;
  for (const Repeated::Run& run : runs) extent *= run.count;
  return extent;
}

}  // namespace

Shape Repeated::shape() const {
  Shape shape;
  for (const Runs& runs : dimensions) shape.push_back(extent_of(runs));
  return shape;
}

Repeated view_of(const Value& value) {
  Repeated view{value, {}, {}};
  const Shape shape = dimensions(value.layout);
  const std::vector<std::int64_t> strides = strides_of(value.layout);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    append(view.dimensions.emplace_back(), {shape[i], strides[i]});
  }
  return view;
}

std::optional<Repeated> reshaped(const Repeated& view, const Shape& shape) {
  Repeated::Runs all;
  for (const Repeated::Runs& runs : view.dimensions) {
    for (const Repeated::Run& run : runs) append(all, run);
  }
  Repeated result = view;
  result.dimensions.clear();
  std::size_t next = 0;
  for (const std::int64_t extent : shape) {
    Repeated::Runs& runs = result.dimensions.emplace_back();
    for (std::int64_t open = extent; open > 1;) {
      if (next == all.size()) return std::nullopt;
      Repeated::Run& run = all[next];
      if (open % run.count == 0) {
        open /= run.count;
        append(runs, run);
        ++next;
      } else if (run.count % open == 0) {
        run.count /= open;
        append(runs, {open, run.count * run.stride});
        open = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  if (next != all.size()) return std::nullopt;
  return result;
}

Repeated permuted(const Repeated& view, const std::vector<std::size_t>& order) {
  Repeated result = view;
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.dimensions[i] = view.dimensions[order[i]];
  }
  return result;
}

Repeated expanded(const Repeated& view, const Shape& shape) {
  Repeated result = view;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (view.dimensions[i].empty()) append(result.dimensions[i], {shape[i], 0});
  }
  return result;
}

Value written_out(Lowering& lowering, const Repeated& view) {
  const DType type = view.source.type;
  const Value target = lowering.temporary(type, plain_layout(view.shape(), type));
  StridedCopy copy{dtype_size(type), {}, {}, {}};
  for (const Repeated::Runs& runs : view.dimensions) {
    for (const Repeated::Run& run : runs) {
      copy.extents.push_back(run.count);
      copy.source_strides.push_back(run.stride);
    }
  }
  if (copy.extents.empty()) {
    copy.extents.push_back(1);
    copy.source_strides.push_back(1);
  }
  copy.target_strides = row_major_strides(copy.extents);
  copy.simplify();
  lowering.add_kernel({view.source}, target, std::move(copy), KernelKind::kReorder);
  return target;
}

std::optional<Matrices> matrices_of(const Repeated& view, const Shape& batch) {
  const std::size_t rank = view.dimensions.size();
  Matrices result;
  for (std::size_t i = 0; i < 2 && i < rank; ++i) {
    const Repeated::Runs& runs = view.dimensions[rank - 1 - i];
    if (runs.size() > 1) return std::nullopt;
    result.strides[1 - i] = runs.empty() ? 0 : runs.front().stride;
  }
  result.offsets = {0};
  const std::size_t missing = batch.size() + 2 - rank;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    static const Repeated::Runs kNone;
    const Repeated::Runs& own = i < missing ? kNone : view.dimensions[i - missing];
    const Repeated::Runs repeats{{batch[i], 0}};
    for (const Repeated::Run& run : own.empty() ? repeats : own) {
      std::vector<std::int64_t> next;
      next.reserve(result.offsets.size() * static_cast<std::size_t>(run.count));
      for (const std::int64_t base : result.offsets) {
        for (std::int64_t j = 0; j < run.count; ++j) next.push_back(base + j * run.stride);
      }
      result.offsets = std::move(next);
    }
  }
  return result;
}

}  // namespace npu::onednn
