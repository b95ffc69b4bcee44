// SPDX-License-Identifier: Apache-2.0
// Ops whose result's shape depends on data. Shapes are static, so what decides has to be known at
// import, and with it most results are constants. O(elements), of which known operands have at most
// Importer::kMostKnown.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

constexpr std::string_view kDecides = "the shape of its result depends on data:";

// NonMaxSuppression's box as corners.
struct Box {
  float y1 = 0;
  float x1 = 0;
  float y2 = 0;
  float x2 = 0;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const float* data, bool is_center) {
  if (is_center) {
    const float half_width = data[2] / 2;
    const float half_height = data[3] / 2;
    return {data[1] - half_height, data[0] - half_width, data[1] + half_height,
            data[0] + half_width};
  }
  // Either diagonal.
  return {std::min(data[0], data[2]), std::min(data[1], data[3]), std::max(data[0], data[2]),
          std::max(data[1], data[3])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return false;
  const float both = height * width;
  return both / (a.area() + b.area() - both) > threshold;
}

// The boxes of one batch that one class keeps, best first.
Ints kept_boxes(Op& op, const std::vector<Box>& boxes, const float* scores, std::int64_t most,
                float iou_threshold, std::optional<float> score_threshold) {
  Ints order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
  Ints kept;
  for (const std::int64_t box : order) {
    if (static_cast<std::int64_t>(kept.size()) >= most) break;
    if (score_threshold && !(scores[box] > *score_threshold)) break;
    op.importer().spend(static_cast<std::int64_t>(kept.size()) + 1);
    const Box& candidate = boxes[static_cast<std::size_t>(box)];
    const bool is_free = std::none_of(kept.begin(), kept.end(), [&](std::int64_t other) {
      return overlaps(candidate, boxes[static_cast<std::size_t>(other)], iou_threshold);
    });
    if (is_free) kept.push_back(box);
  }
  return kept;
}

// The slices of `tensor` along an axis as byte strings that compare as Unique sorts them.
struct Slices {
  const Tensor& tensor;
  std::int64_t count = 1;
  std::int64_t before = 1;  ///< elements of the axes in front
  std::int64_t after = 1;   ///< and behind

  std::int64_t index(std::int64_t slice, std::int64_t i) const {
    return (i / after * count + slice) * after + i % after;
  }
  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t i = 0; i < before * after; ++i) {
      const std::int64_t ia = index(a, i);
      const std::int64_t ib = index(b, i);
      if (tensor.dtype() == DType::kInt64) {
        const std::int64_t x = tensor.as<std::int64_t>()[ia];
        const std::int64_t y = tensor.as<std::int64_t>()[ib];
        if (x != y) return x < y ? -1 : 1;
        continue;
      }
      const double x = tensor.value_as_double(ia);
      const double y = tensor.value_as_double(ib);
      if (x < y) return -1;
      if (y < x) return 1;
      if (std::isnan(x) != std::isnan(y)) return std::isnan(x) ? 1 : -1;
    }
    return 0;
  }
};

struct Found {
  Ints first;    ///< the first slice of each kind
  Ints inverse;  ///< the kind of each slice
  Ints counts;
};

Found unique_slices(const Slices& slices, bool is_sorted) {
  Ints order(static_cast<std::size_t>(slices.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.compare(a, b) < 0; });
  Found found;
  found.inverse.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
      found.first.push_back(order[i]);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[static_cast<std::size_t>(order[i])] =
        static_cast<std::int64_t>(found.first.size()) - 1;
  }
  if (is_sorted) return found;
  // In the order in which they appear.
  Ints by_place(found.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](std::int64_t a, std::int64_t b) {
    return found.first[static_cast<std::size_t>(a)] < found.first[static_cast<std::size_t>(b)];
  });
  Found moved{Ints(by_place.size()), found.inverse, Ints(by_place.size())};
  Ints place(by_place.size());
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    const auto from = static_cast<std::size_t>(by_place[i]);
    moved.first[i] = found.first[from];
    moved.counts[i] = found.counts[from];
    place[from] = static_cast<std::int64_t>(i);
  }
  for (std::int64_t& kind : moved.inverse) kind = place[static_cast<std::size_t>(kind)];
  return moved;
}

}  // namespace

void import_compress(Op& op) {
  Value* x = op.in(0);
  const Tensor& condition = op.constant(1, kDecides);
  if (condition.dtype() != DType::kBool) Op::refuse("its condition is no bool");
  std::int64_t axis = 0;
  if (op.attribute("axis") != nullptr) {
    axis = Op::axis_of(op.integer("axis", 0), x->rank());
  } else {
    x = op.view(x, {x->count()});
  }
  Ints places;
  for (std::int64_t i = 0; i < condition.element_count(); ++i) {
    if (condition.as<std::uint8_t>()[i] != 0) places.push_back(i);
  }
  const auto at = static_cast<std::size_t>(axis);
  if (!places.empty() && places.back() >= x->shape[at]) Op::refuse("its condition is too long");
  Shape shape = x->shape;
  shape[at] = static_cast<std::int64_t>(places.size());
  Value* index = op.integer_constant(places, {shape[at]});
  op.set(0, op.emit("aten.index_select.default", {x, index}, Json{{"dim", axis}}, x->dtype, shape));
}

void import_non_zero(Op& op) {
  // Constants are evaluated before; what comes here is none, or too large.
  op.constant(0, kDecides);
  Op::refuse("the shape of its result depends on data");
}

void import_unique(Op& op) {
  const Tensor& x = op.constant(0, kDecides);
  Slices slices{x, x.element_count(), 1, 1};
  std::int64_t axis = -1;
  if (op.attribute("axis") != nullptr) {
    axis = Op::axis_of(op.integer("axis", 0), op.in(0)->rank());
    const auto at = static_cast<std::size_t>(axis);
    slices.count = x.shape()[at];
    slices.before = product(x.shape(), 0, at);
    slices.after = product(x.shape(), at + 1, x.shape().size());
  }
  if (dtype_size(x.dtype()) > 8) Op::refuse("complex numbers have no order");
  op.importer().spend(16 * x.element_count());
  const Found found = unique_slices(slices, op.integer("sorted", 1) != 0);
  const auto kinds = static_cast<std::int64_t>(found.first.size());
  Shape shape = axis < 0 ? Shape{kinds} : x.shape();
  if (axis >= 0) shape[static_cast<std::size_t>(axis)] = kinds;
  Tensor result(x.dtype(), shape);
  const std::size_t size = dtype_size(x.dtype());
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    const std::int64_t kind = i / slices.after % std::max<std::int64_t>(kinds, 1);
    const std::int64_t rest =
        i / slices.after / std::max<std::int64_t>(kinds, 1) * slices.after + i % slices.after;
    const std::int64_t from = slices.index(found.first[static_cast<std::size_t>(kind)], rest);
    std::memcpy(result.mutable_data() + static_cast<std::size_t>(i) * size,
                x.data() + static_cast<std::size_t>(from) * size, size);
  }
  op.set(0, op.constant_value(std::move(result)));
  op.set(1, op.integer_constant(found.first, {kinds}));
  op.set(2, op.integer_constant(found.inverse, {slices.count}));
  op.set(3, op.integer_constant(found.counts, {kinds}));
}

void import_non_max_suppression(Op& op) {
  const Tensor& boxes = op.constant(0, kDecides);
  const Tensor& scores = op.constant(1, kDecides);
  const std::int64_t most =
      op.has_input(2) ? integer_operand(op, 2, "max_output_boxes_per_class") : 0;
  const auto iou = static_cast<float>(op.has_input(3) ? op.number(3, "iou_threshold") : 0);
  std::optional<float> least;
  if (op.has_input(4)) least = static_cast<float>(op.number(4, "score_threshold"));
  const bool is_center = op.integer("center_point_box", 0) != 0;
  const Shape& shape = scores.shape();
  op.importer().spend(scores.element_count());
  if (boxes.dtype() != DType::kFloat32 || scores.dtype() != DType::kFloat32 || shape.size() != 3 ||
      boxes.shape() != Shape{shape[0], shape[2], 4}) {
    Op::refuse("boxes and scores do not fit together");
  }
  Ints chosen;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    std::vector<Box> corners;
    for (std::int64_t i = 0; i < shape[2]; ++i) {
      corners.push_back(box_at(boxes.as<float>() + (b * shape[2] + i) * 4, is_center));
    }
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      const float* own = scores.as<float>() + (b * shape[1] + c) * shape[2];
      for (const std::int64_t box : kept_boxes(op, corners, own, most, iou, least)) {
        chosen.insert(chosen.end(), {b, c, box});
      }
    }
  }
  const auto rows = static_cast<std::int64_t>(chosen.size() / 3);
  op.set(0, op.integer_constant(chosen, {rows, 3}));
}

}  // namespace npu::onnx
