// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and leave them as they are. Each is a map from the places of a result to
// those of an operand.
#include <algorithm>
#include <functional>
#include <numeric>

#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

const std::initializer_list<DType> kMoved{DType::kFloat64, DType::kInt8,  DType::kUInt8,
                                          DType::kInt16,   DType::kInt32, DType::kInt64,
                                          DType::kBool};

Values moved(const Values& x, const Shape& shape, const std::function<Shape(Shape)>& source) {
  Values result = make_values(shape, x.dtype);
  for_each_place(shape,
                 [&](std::size_t i, const Shape& place) { result.data[i] = x.at(source(place)); });
  return result;
}

Values reshaped(Values x, const Shape& shape) {
  if (count_of(shape) != std::ssize(x.data)) refuse("another number of elements");
  x.shape = shape;
  return x;
}

Values permuted(const Values& x, const Ints& order) {
  Shape shape;
  for (const std::int64_t dim : order) shape.push_back(x.extent(dim));
  return moved(x, shape, [&](const Shape& place) {
    Shape from(place.size());
    for (std::size_t k = 0; k < order.size(); ++k) from[index_of(order[k])] = place[k];
    return from;
  });
}

Values sliced(const Values& x, std::int64_t dim, std::int64_t start, std::int64_t count,
              std::int64_t step) {
  Shape shape = x.shape;
  shape[index_of(dim)] = count;
  return moved(x, shape, [&](Shape place) {
    place[index_of(dim)] = start + place[index_of(dim)] * step;
    return place;
  });
}

// ---- Views ----

/// One that the same elements fill.
Shape regrouped(NodeDraw& d, const Shape& shape) {
  Shape result = shape;
  for (int i = 0; i < 2; ++i) {
    if (d.chance(50) && result.size() > 1) {
      const auto at = index_of(d.pick(0, std::ssize(result) - 2));
      result[at] *= result[at + 1];
      result.erase(result.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else if (result.size() < 5) {
      const auto at = index_of(d.pick(0, std::max<std::int64_t>(std::ssize(result) - 1, 0)));
      const std::int64_t factor = d.one_of<std::int64_t>({1, 2, 3, 4});
      if (result.empty() || result[at] % factor == 0) {
        if (!result.empty()) result[at] /= factor;
        if (!result.empty() || factor == 1)
          result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), factor);
      }
    }
  }
  return result;
}

void draw_view(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  d.dtype = draw_dtype(d, kMoved);
  const bool groups = name == "flatten" || name == "unflatten" || name == "unsqueeze";
  const Shape shape = d.subject(name == "channel_norm"        ? 3
                                : groups || name == "squeeze" ? 1
                                                              : 0,
                                name == "unsqueeze" ? 4 : 5);
  const std::int64_t rank = std::ssize(shape);
  if (name == "view" || name == "_unsafe_view" || name == "reshape" || name.ends_with("_as")) {
    Shape result = regrouped(d, shape);
    if (name.ends_with("_as")) return d.beside(result, 50);
    if (d.chance(20) && !result.empty() && count_of(shape) > 0)
      result[index_of(d.pick(0, std::ssize(result) - 1))] = -1;
    d.attrs[name == "reshape" ? "shape" : "size"] = result;
  } else if (name == "flatten") {
    const std::int64_t start = d.pick(0, rank - 1);
    d.attrs = {{"start_dim", start}, {"end_dim", draw_dim(d, rank, d.pick(start, rank - 1))}};
  } else if (name == "unflatten") {
    const std::int64_t dim = d.pick(0, rank - 1), extent = shape[index_of(dim)];
    const std::int64_t factor = extent % 2 == 0 && extent > 0 ? 2 : 1;
    d.attrs = {{"dim", dim},
               {"sizes", {factor, d.chance(50) && extent > 0 ? -1 : extent / factor}}};
  } else if (name == "squeeze" && !d.op.ends_with("default")) {
    const std::int64_t dim = draw_dim(d, rank, d.pick(0, rank - 1));
    d.attrs["dim"] = d.op.ends_with("dims") ? Json(Ints{dim}) : Json(dim);
  } else if (name == "unsqueeze") {
    d.attrs["dim"] = d.pick(-rank - 1, rank);
  } else if (name.ends_with("dropout")) {
    d.attrs = {{"p", 0.5}, {"train", false}};
  } else if (d.op == "npu.channel_norm") {
    d.attrs = {{"direction", d.chance(50)}, {"layout", "blocked16"}};
  }
}

Results view(const Call& call) {
  const Values& x = call.operand(0);
  const std::string_view name = call.name();
  Shape shape = x.shape;
  const std::int64_t rank = x.rank();
  if (name.ends_with("_as")) shape = call.operand(1).shape;
  if (name == "view" || name == "_unsafe_view" || name == "reshape") {
    shape = call.integers(name == "reshape" ? "shape" : "size");
    for (std::int64_t& extent : shape) {
      if (extent == -1) extent = std::ssize(x.data) / std::max<std::int64_t>(-count_of(shape), 1);
    }
  } else if (name == "flatten") {
    const std::int64_t begin = call.dim("start_dim", rank), end = call.dim("end_dim", rank);
    for (std::int64_t d = begin; d < end; ++d) {
      shape[index_of(begin)] *= shape[index_of(begin + 1)];
      shape.erase(shape.begin() + begin + 1);
    }
  } else if (name == "unflatten") {
    Shape sizes = call.integers("sizes");
    const std::int64_t dim = call.dim("dim", rank);
    for (std::int64_t& size : sizes) {
      if (size == -1) size = x.extent(dim) / -count_of(sizes);
    }
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
  } else if (name == "squeeze" && !call.has("dim")) {
    std::erase(shape, 1);
  } else if (name == "squeeze") {
    for (std::int64_t dim : call.is("dims") ? call.integers("dim") : Ints{call.integer("dim")}) {
      if (dim < 0) dim += rank;
      if (shape.at(index_of(dim)) == 1) shape.erase(shape.begin() + dim);
    }
  } else if (name == "unsqueeze") {
    shape.insert(shape.begin() + call.dim("dim", rank + 1), 1);
  }
  return {reshaped(x, shape)};
}

void draw_order(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  d.dtype = draw_dtype(d, kMoved);
  const Shape shape = name == "t" ? d.subject(1, 2) : d.subject(1, 5);
  const std::int64_t rank = std::ssize(shape), a = d.pick(0, rank - 1), b = d.pick(0, rank - 1);
  if (name == "transpose") d.attrs = {{"dim0", a}, {"dim1", draw_dim(d, rank, b)}};
  if (name == "swapaxes") d.attrs = {{"axis0", a}, {"axis1", draw_dim(d, rank, b)}};
  if (name == "movedim") {
    const bool lists = d.op.ends_with("intlist");
    d.attrs["source"] = lists ? Json(Ints{a}) : Json(a);
    d.attrs["destination"] = lists ? Json(Ints{b}) : Json(draw_dim(d, rank, b));
  }
}

Results order(const Call& call) {
  const Values& x = call.operand(0);
  const std::string_view name = call.name();
  Ints dims(x.shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (name == "t" || name == "numpy_T") {
    std::reverse(dims.begin(), dims.end());
  } else if (name == "movedim") {
    std::int64_t from =
        call.integers("source").empty() ? call.integer("source") : call.integers("source")[0];
    std::int64_t to = call.integers("destination").empty() ? call.integer("destination")
                                                           : call.integers("destination")[0];
    from += from < 0 ? x.rank() : 0;
    to += to < 0 ? x.rank() : 0;
    dims.erase(dims.begin() + from);
    dims.insert(dims.begin() + to, from);
  } else {
    const char* prefix = name == "transpose" ? "dim" : "axis";
    std::swap(dims.at(index_of(call.dim(std::string(prefix) + "0", x.rank()))),
              dims.at(index_of(call.dim(std::string(prefix) + "1", x.rank()))));
  }
  return {permuted(x, dims)};
}

void draw_expand(NodeDraw& d) {
  d.dtype = draw_dtype(d, kMoved);
  Shape result = d.subject(0, 4);
  for (std::int64_t& extent : result) extent = extent == 1 ? d.extent(9) : extent;
  if (d.chance(40)) result.insert(result.begin(), d.pick(1, 3));
  if (functional_name(d.op) == "expand_as") return d.beside(result, 50);
  const std::int64_t rank = std::ssize(result) - std::ssize(d.operands[0].shape);
  for (std::size_t i = index_of(rank); i < result.size(); ++i) {
    if (d.chance(15) && functional_name(d.op) == "expand") result[i] = -1;
    // -1 keeps the extent.
    if (result[i] == -1 && d.operands[0].shape[i - index_of(rank)] == 1) result[i] = 1;
  }
  d.attrs["size"] = result;
}

Results expand(const Call& call) {
  const Values& x = call.operand(0);
  Shape shape = call.operand_count() > 1 ? call.operand(1).shape : call.integers("size");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t skip = shape.size() - x.shape.size();
    if (shape[i] == -1 && i >= skip) shape[i] = x.shape[i - skip];
  }
  if (broadcast_shape({&x.shape, &shape}) != shape) refuse("no such size");
  Values result = make_values(shape, x.dtype);
  for_each_place(
      shape, [&](std::size_t i, const Shape& place) { result.data[i] = broadcast_at(x, place); });
  return {result};
}

// ---- Parts ----

void draw_parts(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  d.dtype = draw_dtype(d, kMoved);
  const Shape shape = d.subject(1, 5);
  const std::int64_t rank = std::ssize(shape), at = d.pick(0, rank - 1),
                     extent = shape[index_of(at)];
  const std::int64_t dim = draw_dim(d, rank, at);
  d.attrs["dim"] = dim;
  if (name == "slice") {
    if (d.chance(80)) d.attrs["start"] = d.pick(-extent, std::max<std::int64_t>(extent - 1, 0));
    if (d.chance(80)) d.attrs["end"] = d.chance(40) ? std::int64_t{9999} : d.pick(-1, extent);
    if (d.chance(40)) d.attrs["step"] = d.pick(1, 3);
  } else if (name == "select") {
    d.attrs["index"] = d.pick(-extent, std::max<std::int64_t>(extent - 1, 0));
  } else if (name == "narrow") {
    const std::int64_t start = d.pick(0, std::max<std::int64_t>(extent - 1, 0));
    d.attrs["start"] = start;
    d.attrs["length"] = d.pick(0, extent - start);
  } else if (name == "chunk") {
    d.attrs["chunks"] = d.pick(1, 4);
  } else if (d.op == "aten.split.Tensor") {
    d.attrs["split_size"] =
        d.pick(std::max<std::int64_t>((extent + 3) / 4, 1), std::max<std::int64_t>(extent, 1));
  } else if (d.op == "aten.tensor_split.sections") {
    d.attrs["sections"] = d.pick(1, 3);
  } else if (d.op == "aten.tensor_split.indices") {
    const std::int64_t first = d.pick(0, extent);
    d.attrs["indices"] = Ints{first, d.chance(50) ? d.pick(first, extent) : -1};
  } else if (name != "unbind") {
    const std::int64_t first = d.pick(0, extent), second = d.pick(0, extent - first);
    d.attrs[d.op == "aten.split.sizes" ? "split_size" : "split_sizes"] =
        Ints{first, second, extent - first - second};
  }
}

Results parts(const Call& call) {
  const Values& x = call.operand(0);
  const std::string_view name = call.name();
  const std::int64_t dim = call.dim("dim", x.rank()), extent = x.extent(dim);
  const auto clipped = [&](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + extent : i, 0, extent);
  };
  Ints cuts{0};
  if (name == "slice") {
    const std::int64_t start = clipped(call.has("start") ? call.integer("start") : 0);
    const std::int64_t end =
        std::max(start, clipped(call.has("end") ? call.integer("end") : extent));
    const std::int64_t step = call.integer("step");
    return {sliced(x, dim, start, (end - start + step - 1) / step, step)};
  }
  if (name == "narrow") return {sliced(x, dim, call.integer("start"), call.integer("length"), 1)};
  if (name == "select") {
    std::int64_t index = call.integer("index");
    index += index < 0 ? extent : 0;
    if (index < 0 || index >= extent) refuse("no such index");
    Values one = sliced(x, dim, index, 1, 1);
    one.shape.erase(one.shape.begin() + dim);
    return {one};
  }
  if (call.is("tensor_split.indices")) {
    for (const std::int64_t index : call.integers("indices")) cuts.push_back(clipped(index));
  } else if (name == "split_with_sizes" || call.is("split.sizes")) {
    for (const std::int64_t size : call.integers(name == "split" ? "split_size" : "split_sizes"))
      cuts.push_back(cuts.back() + size);
    cuts.pop_back();
  } else if (name == "tensor_split") {
    const std::int64_t sections = call.integer("sections");
    for (std::int64_t i = 0; i + 1 < sections; ++i)
      cuts.push_back(cuts.back() + extent / sections + (i < extent % sections ? 1 : 0));
  } else {
    std::int64_t size = name == "unbind" ? 1 : 0;
    if (name == "split") size = call.integer("split_size");
    if (name == "chunk") size = (extent + call.integer("chunks") - 1) / call.integer("chunks");
    if (size < 1 || extent / size > 16) refuse("too many parts");
    while (cuts.back() + size < extent) cuts.push_back(cuts.back() + size);
  }
  cuts.push_back(extent);
  Results results;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    results.push_back(sliced(x, dim, cuts[i], std::max<std::int64_t>(cuts[i + 1] - cuts[i], 0), 1));
    if (name == "unbind") results.back().shape.erase(results.back().shape.begin() + dim);
  }
  return results;
}

Results getitem(const Call& call) {
  const std::int64_t index = call.integer("index"), count = std::ssize(call.tensors("self"));
  return {*call.tensors("self").at(index_of(index < 0 ? index + count : index))};
}

// ---- Rearranged ----

void draw_rearranged(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  if (name.find("shuffle") == std::string_view::npos) d.dtype = draw_dtype(d, kMoved);
  const std::int64_t factor = d.pick(1, 3);
  if (name.find("shuffle") != std::string_view::npos) {
    const std::int64_t square = factor * factor;
    const bool un = name == "pixel_unshuffle";
    const auto wanted = [&](const Shape& s) {
      return un ? s[2] % factor == 0 && s[3] % factor == 0
                : s[1] % (name == "pixel_shuffle" ? square : factor) == 0;
    };
    Shape otherwise{d.pick(1, 2),
                    d.pick(1, 4) * (un                        ? 1
                                    : name == "pixel_shuffle" ? square
                                                              : factor),
                    d.pick(1, 4) * (un ? factor : 1), d.pick(1, 4) * (un ? factor : 1)};
    d.subject(4, 4, Fill::kAny, wanted, otherwise);
    d.attrs[un                        ? "downscale_factor"
            : name == "pixel_shuffle" ? "upscale_factor"
                                      : "groups"] = factor;
    return;
  }
  const Shape shape = d.subject(name.starts_with("tri") ? 2 : 1, 4);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  if (name == "roll") {
    d.attrs = {{"shifts", Ints{d.pick(-9, 9)}}, {"dims", Ints{dim}}};
    if (rank > 1 && d.chance(40))
      d.attrs = {{"shifts", Ints{d.pick(-9, 9), d.pick(-9, 9)}}, {"dims", Ints{0, -1}}};
    if (d.chance(20) && d.attrs["shifts"].size() == 1) d.attrs.erase("dims");
  } else if (name == "flip") {
    d.attrs["dims"] = rank > 1 && d.chance(50) ? Ints{0, -1} : Ints{dim};
  } else if (name == "repeat" || name == "tile") {
    Ints repeats;
    for (std::int64_t i = 0; i < rank; ++i) repeats.push_back(d.one_of<std::int64_t>({1, 1, 2, 3}));
    if (d.chance(40)) repeats.insert(repeats.begin(), d.pick(1, 2));
    d.attrs[name == "repeat" ? "repeats" : "dims"] = repeats;
  } else if (name == "repeat_interleave") {
    d.attrs["repeats"] = factor;
    if (d.chance(75)) d.attrs["dim"] = draw_dim(d, rank, dim);
  } else {
    d.attrs["diagonal"] = d.pick(-4, 4);
  }
}

/// Elements come from the places that `source` names, dimension by dimension.
Results moved_along(const Values& x, const Ints& dims,
                    const std::function<std::int64_t(std::size_t, std::int64_t)>& source) {
  return {moved(x, x.shape, [&](Shape place) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      auto& at = place[index_of(dims[i] < 0 ? dims[i] + x.rank() : dims[i])];
      at = source(i, at);
    }
    return place;
  })};
}

Results rolled(const Call& call) {
  const Ints shifts = call.integers("shifts");
  Values x = call.operand(0);
  Ints dims = call.integers("dims");
  const bool flat = dims.empty();
  if (flat) dims = {0};
  if (flat) x.shape = {std::ssize(x.data)};
  Results results = moved_along(x, dims, [&](std::size_t i, std::int64_t at) {
    const std::int64_t extent = x.extent(dims[i]);
    return ((at - shifts[i]) % extent + extent) % extent;
  });
  results[0].shape = call.operand(0).shape;
  return results;
}

Results flipped(const Call& call) {
  const Values& x = call.operand(0);
  const Ints dims = call.integers("dims");
  return moved_along(x, dims,
                     [&](std::size_t i, std::int64_t at) { return x.extent(dims[i]) - 1 - at; });
}

Results repeated(const Call& call) {
  Values x = call.operand(0);
  if (call.name() == "repeat_interleave") {
    const bool flat = !call.has("dim");
    if (flat) x.shape = {std::ssize(x.data)};
    const auto dim = index_of(flat ? 0 : call.dim("dim", x.rank()));
    const std::int64_t repeats = call.integer("repeats");
    Shape shape = x.shape;
    shape[dim] *= repeats;
    return {moved(x, shape, [&](Shape place) { return place[dim] /= repeats, place; })};
  }
  Ints repeats = call.integers(call.name() == "repeat" ? "repeats" : "dims");
  while (x.shape.size() < repeats.size()) x.shape.insert(x.shape.begin(), 1);
  while (repeats.size() < x.shape.size()) repeats.insert(repeats.begin(), 1);
  Shape shape = x.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] *= repeats[i];
  return {moved(x, shape, [&](Shape place) {
    for (std::size_t i = 0; i < place.size(); ++i) place[i] %= x.shape[i];
    return place;
  })};
}

Results triangle(const Call& call) {
  Values x = call.operand(0);
  const std::int64_t diagonal = call.integer("diagonal");
  for_each_place(x.shape, [&](std::size_t i, const Shape& place) {
    const std::int64_t off = place.back() - place[place.size() - 2] - diagonal;
    if (call.name() == "tril" ? off > 0 : off < 0) x.data[i] = {};
  });
  return {x};
}

Results shuffled(const Call& call) {
  const Values& x = call.operand(0);
  const Shape& s = x.shape;
  const auto by = [&](const Shape& split, const Ints& order, const Shape& shape) -> Results {
    return {reshaped(permuted(reshaped(x, split), order), shape)};
  };
  if (call.name() == "pixel_shuffle") {
    const std::int64_t r = call.integer("upscale_factor"), c = s[1] / (r * r);
    return by({s[0], c, r, r, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, {s[0], c, s[2] * r, s[3] * r});
  }
  if (call.name() == "pixel_unshuffle") {
    const std::int64_t r = call.integer("downscale_factor"), h = s[2] / r, w = s[3] / r;
    return by({s[0], s[1], h, r, w, r}, {0, 1, 3, 5, 2, 4}, {s[0], s[1] * r * r, h, w});
  }
  const std::int64_t groups = call.integer("groups");
  return by({s[0], groups, s[1] / groups, s[2], s[3]}, {0, 2, 1, 3, 4}, s);
}

void draw_pad(NodeDraw& d) {
  const Shape shape = d.subject(1, 5);
  const std::int64_t count = d.pick(1, std::ssize(shape));
  Ints amounts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t extent = shape[index_of(std::ssize(shape) - 1 - i)];
    for (int side = 0; side < 2; ++side) amounts.push_back(d.pick(extent > 3 ? -1 : 0, 3));
  }
  d.attrs["pad"] = amounts;
  if (d.chance(60)) d.attrs["value"] = d.number();
  if (d.op == "aten.pad.default" && d.chance(20) && std::ssize(shape) >= count + 1 && count <= 3 &&
      std::ssize(shape) - count <= 2) {
    d.attrs.erase("value");
    d.attrs["mode"] = d.one_of<const char*>({"reflect", "replicate"});
    for (std::size_t i = 0; i < amounts.size(); ++i)
      amounts[i] = std::clamp<std::int64_t>(
          amounts[i], 0, std::max<std::int64_t>(shape[shape.size() - 1 - i / 2] - 1, 0));
    d.attrs["pad"] = amounts;
  }
}

Results pad(const Call& call) {
  const Values& x = call.operand(0);
  const Ints amounts = call.integers("pad");
  const std::string mode = call.text("mode");
  Shape shape = x.shape;
  for (std::size_t i = 0; i < amounts.size(); ++i) shape.at(shape.size() - 1 - i / 2) += amounts[i];
  Values result = make_values(shape, x.dtype);
  Values value = make_values({}, x.dtype);
  if (call.has("value")) value = call.tensor_or_number("value", x.dtype);
  if (is_floating_point(x.dtype)) store(value);
  for_each_place(shape, [&](std::size_t i, Shape place) {
    bool is_inside = true;
    for (std::size_t k = 0; k < amounts.size(); k += 2) {
      const std::size_t d = shape.size() - 1 - k / 2;
      const std::int64_t last = x.shape[d] - 1;
      place[d] -= amounts[k];
      if (mode == "replicate") place[d] = std::clamp<std::int64_t>(place[d], 0, last);
      if (mode == "reflect")
        place[d] = place[d] < 0 ? -place[d] : place[d] > last ? 2 * last - place[d] : place[d];
      is_inside = is_inside && place[d] >= 0 && place[d] <= last;
    }
    result.data[i] = is_inside ? x.at(place) : value.data[0];
  });
  return {result};
}

void draw_stack(NodeDraw& d) {
  const bool grid = functional_name(d.op) == "meshgrid";
  const Shape shape = grid ? d.subject(1, 1) : d.subject(0, 4);
  const std::int64_t count = d.pick(1, 3);
  for (std::int64_t i = 1; i < count; ++i) d.beside(grid ? Shape{d.pick(1, 5)} : shape, 40);
  d.attrs["_tensor_list_sizes"] = Ints{count};
  if (!grid) d.attrs["dim"] = d.pick(-std::ssize(shape) - 1, std::ssize(shape));
  if (d.op.ends_with("indexing")) d.attrs["indexing"] = d.chance(50) ? "xy" : "ij";
}

Results stack(const Call& call) {
  const std::vector<const Values*> list = call.tensors("tensors");
  if (call.name() == "meshgrid") {
    Shape shape;
    for (const Values* part : list) shape.push_back(std::ssize(part->data));
    const bool swaps = call.text("indexing") == "xy" && list.size() > 1;
    if (swaps) std::swap(shape[0], shape[1]);
    Results results;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const std::size_t along = swaps && k < 2 ? 1 - k : k;
      results.push_back(moved(*list[k], shape, [&](const Shape& place) {
        return Shape(list[k]->shape.size(), place[along]);
      }));
    }
    return results;
  }
  const std::int64_t dim = call.dim("dim", list[0]->rank() + 1);
  Shape shape = list[0]->shape;
  shape.insert(shape.begin() + dim, std::ssize(list));
  Values result = make_values(shape, list[0]->dtype);
  for_each_place(shape, [&](std::size_t i, Shape place) {
    const Values& from = *list[index_of(place[index_of(dim)])];
    place.erase(place.begin() + dim);
    result.data[i] = from.at(place);
  });
  return {result};
}

void draw_windows(NodeDraw& d) {
  d.dtype = draw_dtype(d, kMoved);
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  d.attrs = {{"dimension", draw_dim(d, rank, dim)},
             {"size", d.pick(1, shape[index_of(dim)])},
             {"step", d.pick(1, 4)}};
}

Results windows(const Call& call) {
  const Values& x = call.operand(0);
  const std::int64_t dim = call.dim("dimension", x.rank()), size = call.integer("size"),
                     step = call.integer("step");
  Shape shape = x.shape;
  shape[index_of(dim)] = (x.extent(dim) - size) / step + 1;
  shape.push_back(size);
  return {moved(x, shape, [&](Shape place) {
    place[index_of(dim)] = place[index_of(dim)] * step + place.back();
    place.pop_back();
    return place;
  })};
}

const OpRow kRows[] = {
    {"view _unsafe_view reshape view_as reshape_as flatten unflatten squeeze unsqueeze contiguous "
     "alias detach clone dropout feature_dropout channel_norm",
     draw_view, view, kNothing},
    {"t numpy_T transpose swapaxes movedim", draw_order, order, kNothing},
    {"expand expand_as broadcast_to", draw_expand, expand, kNothing},
    {"unfold", draw_windows, windows, kNothing},
    {"slice select narrow split split_with_sizes chunk unbind tensor_split", draw_parts, parts,
     kNothing},
    {"getitem", nullptr, getitem, kNothing},
    {"roll", draw_rearranged, rolled, kNothing},
    {"flip", draw_rearranged, flipped, kNothing},
    {"repeat tile repeat_interleave", draw_rearranged, repeated, kNothing},
    {"tril triu", draw_rearranged, triangle, kNothing},
    {"pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle", draw_rearranged,
     shuffled, kNothing},
    {"constant_pad_nd pad", draw_pad, pad, kNothing},
    {"stack meshgrid", draw_stack, stack, kNothing}};

}  // namespace

std::span<const OpRow> movement_rows() { return kRows; }

}  // namespace npu::test
