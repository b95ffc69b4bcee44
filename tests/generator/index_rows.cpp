// SPDX-License-Identifier: Apache-2.0
// Ops that read or write at places that other tensors name.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

const std::initializer_list<DType> kIndexed{DType::kInt32, DType::kInt64};

/// An index from 0 on. Throws where the run has to fail.
std::int64_t place_of(Bounded index, std::int64_t extent) {
  if (index.error > 0 || !std::isfinite(index.value)) refuse("an index that is not exact");
  auto place = static_cast<std::int64_t>(index.value);
  if (place < 0) place += extent;
  if (place < 0 || place >= extent) refuse("an index outside of its dimension");
  return place;
}

void draw_embedding(NodeDraw& d) {
  const Shape table{d.pick(2, 9), d.extent(17)};
  if (d.chance(50)) {
    d.subject(
        2, 2, Fill::kAny, [](const Shape& s) { return s[0] > 0; }, table);
  } else {
    d.beside(table, 100);
  }
  d.indices(d.shape(0, 3, 64), d.operands[0].shape[0], false,
            d.one_of({DType::kInt64, DType::kInt32}));
}

Results embedding(const Call& call) {
  const Values& table = call.tensor("weight");
  const Values& indices = call.tensor("indices");
  const std::int64_t width = table.extent(1);
  Shape shape = indices.shape;
  shape.push_back(width);
  Values result = make_values(shape, table.dtype);
  for (std::size_t i = 0; i < indices.data.size(); ++i) {
    const std::int64_t row = place_of(indices.data[i], table.extent(0));
    std::copy_n(table.data.begin() + row * width, width,
                result.data.begin() + std::int64_t(i) * width);
  }
  return {result};
}

/// The dimensions that an index tensor stands for, and where the joined ones go.
struct Indexed {
  std::vector<std::int64_t> dims;
  std::vector<const Values*> lists;
  Shape joined, rest;
  std::int64_t at = 0;

  Indexed(const Values& x, const std::vector<const Values*>& given) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (given[k] == nullptr) continue;
      dims.push_back(std::int64_t(k));
      lists.push_back(given[k]);
      joined = broadcast_shape({&joined, &given[k]->shape});
    }
    for (std::int64_t d = 0; d < x.rank(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) rest.push_back(x.extent(d));
    }
    const bool together = dims.back() - dims.front() + 1 == std::ssize(dims);
    at = together ? dims.front() : 0;
  }
  Shape shape() const {
    Shape all = rest;
    all.insert(all.begin() + at, joined.begin(), joined.end());
    return all;
  }
  Shape source(const Values& x, const Shape& place) const {
    const Shape at_joined(place.begin() + at, place.begin() + at + std::ssize(joined));
    Shape others = place;
    others.erase(others.begin() + at, others.begin() + at + std::ssize(joined));
    Shape from(x.shape.size());
    std::size_t next = 0;
    for (std::int64_t d = 0; d < x.rank(); ++d) {
      const auto found = std::find(dims.begin(), dims.end(), d);
      from[index_of(d)] =
          found == dims.end()
              ? others[next++]
              : place_of(broadcast_at(*lists[index_of(found - dims.begin())], at_joined),
                         x.extent(d));
    }
    return from;
  }
};

void draw_index(NodeDraw& d) {
  d.dtype = draw_dtype(d, kIndexed);
  const DType type = d.dtype;
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t listed = d.pick(1, std::ssize(shape));
  const Shape joined = d.shape(0, 2, 12);
  std::vector<bool> none(index_of(listed), false);
  for (std::size_t k = 0; k + 1 < none.size(); ++k) none[k] = d.chance(50);
  std::vector<Values> lists;
  for (std::size_t k = 0; k < none.size(); ++k) {
    if (none[k]) continue;
    const Shape own = lists.empty() ? joined : d.broadcast_to(joined);
    d.indices(own, shape[k], true);
    lists.push_back(make_values(own, DType::kInt64));
  }
  d.attrs["_tensor_list_none_masks"] = Json::array({none});
  if (functional_name(d.op) == "index") return;
  // Where two indices are equal, any of two values may stay: so it is one.
  const bool adds = type != DType::kBool && d.chance(50);
  std::vector<const Values*> given;
  std::size_t next = 0;
  for (const bool is_none : none) given.push_back(is_none ? nullptr : &lists[next++]);
  const Indexed indexed(make_values(shape, type), given);
  d.beside(adds ? d.broadcast_to(indexed.shape()) : Shape{}, 40);
  d.attrs["accumulate"] = adds;
}

/// A sum that a device adds up in the tensor itself, in any order: one of 16 bits is rounded after
/// every addition, the last of which the comparison counts.
Bounded added_up(const std::vector<Bounded>& elements, DType dtype) {
  Bounded sum = sum_of(elements);
  const bool is_short = dtype == DType::kBFloat16 || dtype == DType::kFloat16;
  if (!is_short || elements.size() < 3) return sum;
  double magnitude = 0;
  for (const Bounded& each : elements) magnitude += std::abs(each.value);
  const double unit = dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-8;
  sum.error += static_cast<double>(elements.size() - 2) * unit * magnitude;
  return sum;
}

Results index(const Call& call) {
  Values x = call.tensor("self");
  const Indexed indexed(x, call.tensors("indices"));
  Values result = make_values(indexed.shape(), x.dtype);
  if (call.name() == "index") {
    for_each_place(result.shape, [&](std::size_t i, const Shape& place) {
      result.data[i] = x.at(indexed.source(x, place));
    });
    return {result};
  }
  const Values& values = call.tensor("values");
  std::vector<std::vector<Bounded>> added(x.data.size());
  for_each_place(result.shape, [&](std::size_t, const Shape& place) {
    Bounded& into = x.at(indexed.source(x, place));
    if (!call.boolean("accumulate")) into = broadcast_at(values, place);
    added[index_of(&into - x.data.data())].push_back(broadcast_at(values, place));
  });
  for (std::size_t i = 0; i < added.size() && call.boolean("accumulate"); ++i) {
    if (added[i].empty()) continue;
    added[i].push_back(x.data[i]);
    x.data[i] = added_up(added[i], x.dtype);
  }
  return {x};
}

/// gather, scatter and their kind; index_select, index_add and index_copy, whose index is a list.
void draw_along(NodeDraw& d) {
  const std::string name(functional_name(d.op));
  d.dtype = draw_dtype(d, kIndexed);
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1),
                     extent = shape[index_of(dim)];
  d.attrs["dim"] = draw_dim(d, rank, dim);
  Shape space = shape;
  if (name.starts_with("index_")) {
    // Of two equal indices a device may take either: one index that is copied to.
    const bool copies = name == "index_copy";
    space[index_of(dim)] = copies ? 1 : d.pick(1, 12);
    d.indices({space[index_of(dim)]}, extent, false,
              copies ? DType::kInt64 : d.one_of({DType::kInt64, DType::kInt32}));
    if (name == "index_select") return;
    d.beside(space, 30);
    if (name == "index_add" && d.chance(30)) d.attrs["alpha"] = 2;
    return;
  }
  for (std::int64_t k = 0; k < rank; ++k)
    space[index_of(k)] = d.pick(1, k == dim ? 12 : space[index_of(k)]);
  // Of two equal indices a device may take either: one index along the dimension.
  if (d.op == "aten.scatter.src") space[index_of(dim)] = 1;
  d.indices(space, extent);
  if (name == "gather") return;
  if (d.op.ends_with("value")) {
    d.attrs["value"] = d.is_float() ? Json(d.number()) : Json(4);
  } else {
    d.beside(space, 30);
  }
  if (name == "scatter_reduce") {
    d.attrs["reduce"] = d.one_of<const char*>({"sum", "prod", "mean", "amax", "amin"});
    if (d.chance(50)) d.attrs["include_self"] = false;
  }
}

Bounded joined(std::string_view how, const std::vector<Bounded>& elements, DType dtype) {
  Bounded result = elements.front();
  if (how == "sum") return added_up(elements, dtype);
  if (how == "mean") {
    return added_up(elements, dtype) / number(static_cast<double>(elements.size()));
  }
  for (std::size_t i = 1; i < elements.size(); ++i) {
    result = how == "prod"   ? result * elements[i]
             : how == "amax" ? larger(result, elements[i])
                             : smaller(result, elements[i]);
  }
  return result;
}

Results along_dimension(const Call& call) {
  const std::string_view name = call.name();
  Values x = call.tensor("self");
  const Values& index = call.tensor("index");
  const std::int64_t dim = call.dim("dim", x.rank());
  const bool is_list = name.starts_with("index_");
  Shape space = index.shape;
  if (is_list) {
    space = x.shape;
    space[index_of(dim)] = std::ssize(index.data);
  }
  const auto target = [&](Shape place) {
    const Bounded where = is_list ? index.data[index_of(place[index_of(dim)])] : index.at(place);
    place[index_of(dim)] = place_of(where, x.extent(dim));
    return place;
  };
  if (name == "gather" || name == "index_select") {
    Values result = make_values(space, x.dtype);
    for_each_place(
        space, [&](std::size_t i, const Shape& place) { result.data[i] = x.at(target(place)); });
    return {result};
  }
  const Values* source = call.find(is_list ? "source" : "src");
  const Values value = source == nullptr ? call.tensor_or_number("value", x.dtype) : Values{};
  const bool replaces = name == "scatter" || name == "index_copy";
  std::string how = replaces ? "" : name == "scatter_reduce" ? call.text("reduce") : "sum";
  std::vector<std::vector<Bounded>> added(x.data.size());
  for_each_place(space, [&](std::size_t, const Shape& place) {
    Bounded& into = x.at(target(place));
    Bounded one = source == nullptr ? value.data[0] : source->at(place);
    if (name == "index_add") one = one * Bounded{call.number("alpha"), 0};
    if (how.empty()) into = one;
    added[index_of(&into - x.data.data())].push_back(one);
  });
  const bool with_self = name != "scatter_reduce" || call.boolean("include_self");
  for (std::size_t i = 0; i < added.size() && !how.empty(); ++i) {
    if (added[i].empty()) continue;
    if (with_self) added[i].insert(added[i].begin(), x.data[i]);
    x.data[i] = joined(how, added[i], x.dtype);
    if (how == "mean" && !is_floating_point(x.dtype)) x.data[i].value = std::floor(x.data[i].value);
  }
  return {x};
}

void draw_overwritten(NodeDraw& d) {
  d.dtype = draw_dtype(d, {DType::kFloat64, DType::kInt8, DType::kUInt8, DType::kInt16,
                           DType::kInt32, DType::kInt64, DType::kBool});
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1),
                     extent = shape[index_of(dim)];
  Shape part = shape;
  d.attrs["dim"] = draw_dim(d, rank, dim);
  if (functional_name(d.op) == "select_scatter") {
    part.erase(part.begin() + dim);
    d.attrs["index"] = d.pick(-extent, extent - 1);
  } else {
    const std::int64_t start = d.pick(0, extent - 1), end = d.pick(start + 1, extent),
                       step = d.pick(1, 2);
    part[index_of(dim)] = (end - start - 1) / step + 1;
    d.attrs["start"] = start;
    d.attrs["step"] = step;
    d.attrs["end"] = end == extent ? std::int64_t{9999} : end;
  }
  d.beside(part, 40);
}

Results overwritten(const Call& call) {
  Values x = call.tensor("self");
  const Values& part = call.tensor("src");
  const std::int64_t dim = call.dim("dim", x.rank());
  const bool selects = call.name() == "select_scatter";
  std::int64_t start = selects ? call.integer("index") : call.integer("start");
  if (start < 0) start += x.extent(dim);
  for_each_place(part.shape, [&](std::size_t i, Shape place) {
    if (selects) {
      place.insert(place.begin() + dim, start);
    } else {
      place[index_of(dim)] = start + place[index_of(dim)] * call.integer("step");
    }
    x.at(place) = part.data[i];
  });
  return {x};
}

/// Without the fill "edge", which asks for a valid row: indices begin at 0.
void draw_tail(NodeDraw& d) {
  d.dtype = draw_dtype(d, kIndexed);
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  d.indices({}, shape[index_of(dim)] + 1);
  d.attrs["dim"] = draw_dim(d, rank, dim);
  if (d.chance(50)) d.attrs["fill"] = d.is_float() ? "lowest" : "zero";
}

Results tail(const Call& call) {
  Values x = call.tensor("self");
  const std::int64_t dim = call.dim("dim", x.rank());
  const auto valid = static_cast<std::int64_t>(call.tensor("valid").data[0].value);
  const double fill =
      call.text("fill") == "lowest" ? -std::numeric_limits<double>::infinity() : 0.0;
  for_each_place(x.shape, [&](std::size_t i, const Shape& place) {
    if (place[index_of(dim)] >= valid) x.data[i] = number(fill);
  });
  return {x};
}

void draw_length_mask(NodeDraw& d) {
  const std::int64_t keys = d.pick(1, 40);
  d.dtype = DType::kInt64;
  d.indices({d.pick(1, 9)}, keys + 5);
  const bool is_causal = d.chance(70);
  d.attrs = {{"operands", "positions"}, {"keys", keys}, {"causal", is_causal}};
  if (!is_causal || d.chance(50)) d.attrs["window"] = d.pick(1, keys);
  if (!d.chance(30)) return;
  d.attrs["operands"] = "both";
  d.indices({}, keys + 1);
}

Results length_mask(const Call& call) {
  const Values& positions = call.tensor("positions");
  const Values* valid = call.find("valid");
  const std::int64_t keys = call.integer("keys"), window = call.integer("window");
  Values mask = make_values({1, 1, positions.extent(0), keys}, DType::kBool);
  for_each_place(mask.shape, [&](std::size_t i, const Shape& place) {
    const auto key = static_cast<double>(place[3]);
    const double position = positions.data[index_of(place[2])].value;
    const bool counts = (valid == nullptr || key < valid->data[0].value) &&
                        (!call.boolean("causal") || key <= position) &&
                        (window <= 0 || key > position - static_cast<double>(window));
    mask.data[i] = number(counts ? 1 : 0);
  });
  return {mask};
}

const OpRow kRows[] = {
    {"embedding", draw_embedding, embedding, kNothing},
    {"index", draw_index, index, kNothing},
    {"index_put", draw_index, index},
    {"index_select index_copy gather scatter", draw_along, along_dimension, kNothing},
    {"index_add scatter_add scatter_reduce", draw_along, along_dimension},
    {"npu.tail", draw_tail, tail, kNothing},
    {"npu.length_mask", draw_length_mask, length_mask, kNothing},
    {"slice_scatter select_scatter", draw_overwritten, overwritten, kNothing}};

}  // namespace

std::span<const OpRow> index_rows() { return kRows; }

}  // namespace npu::test
