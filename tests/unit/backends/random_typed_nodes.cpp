// SPDX-License-Identifier: Apache-2.0
// Random nodes of the ops of integers and truth, and of those that make tensors, index them or put
// them together from parts.
#include <algorithm>
#include <set>
#include <string_view>

#include "random_nodes.hpp"
#include "reference_ops.hpp"

namespace npu::test {

namespace {

using Integers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

std::string name_of(const std::string& op) { return op.substr(5, op.find('.', 5) - 5); }

bool is_float(const std::string& type) {
  return type == "float32" || type == "bfloat16" || type == "float16";
}

/// Mostly the dtype of the case; always where that is one that the table does not have.
std::string any_type(RandomNode& c, const Names& others) {
  return !c.mixes_dtypes() || c.random.coin() ? c.dtype : c.random.one_of(others);
}

const Names kMoved{"float64", "int8", "uint8", "int16", "int32", "int64", "bool"};

/// quantize_ and dequantize_, per tensor or per channel.
void conversion(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const bool quantizes = op.find(".quantize_") != std::string::npos;
  const bool by_channel = op.find("per_channel") != std::string::npos;
  const Shape shape = r.shape(by_channel ? 1 : 0, 4);
  const auto type = r.one_of<std::string>(quantizes ? Names{"int8", "uint8", "int16"}
                                                    : Names{"int8", "uint8", "int16", "int32"});
  c.operand(shape, false, Values::kAny, quantizes ? "float32" : type);
  Json attrs{
      {"quant_min", type == "uint8" ? 3 : -100}, {"quant_max", 120}, {"dtype", "torch." + type}};
  if (quantizes) attrs["divide_by_scale"] = r.coin();
  if (by_channel) {
    const std::int64_t axis = r.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
    attrs["axis"] = r.coin() ? axis : axis - static_cast<std::int64_t>(shape.size());
    const Shape channels{shape[static_cast<std::size_t>(axis)]};
    c.operand(channels, true, Values::kPositive, "float32");
    c.operand(channels, true, Values::kIndices, "int64");
  } else {
    attrs["scale"] = r.one_of<double>({0.037, 0.1, 1.0 / 3.0, 2.0});
    attrs["zero_point"] = r.pick(-9, 90);
  }
  c.finish(op, shape, attrs, quantizes ? type : "float32");
}

void comparison(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const bool bitwise =
      op.find("bitwise") != std::string::npos || op.find("__") != std::string::npos;
  const std::string type = bitwise ? r.one_of<std::string>({"bool", "int32", "int64", "int8"})
                                   : any_type(c, {"int32", "int64", "bool", "int16", "uint8"});
  c.operand(shape, false, Values::kAny, type);
  Json attrs = Json::object();
  if (op.ends_with(".Scalar")) {
    if (type == "bool") {
      attrs["other"] = r.coin();
    } else {
      attrs["other"] = is_float(type)
                           ? Json(r.one_of<double>({0.5, -1.0, 0.0}))
                           // PyTorch's versions differ where the dtype does not hold the number.
                           : Json(r.pick(type == "uint8" ? 0 : -3, 5));
    }
  } else if (op.find("_not.") == std::string::npos && name_of(op) != "isnan") {
    c.operand(broadcast_from(r, shape), true, Values::kAny, type);
  }
  c.finish(op, shape, attrs, bitwise ? type : "bool");
}

void division(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 4);
  const std::string type = any_type(c, {"int32", "int64", "int16"});
  c.operand(shape, false, Values::kAny, type);
  Json attrs = Json::object();
  if (op.find("Scalar") != std::string::npos) {
    attrs["other"] = is_float(type) ? Json(r.one_of<double>({0.5, -1.5, 2.0}))
                                    : Json(r.one_of<int>({-3, -1, 2}));
  } else {
    c.operand(broadcast_from(r, shape), true, Values::kAwayFromZero, type);
  }
  if (op.find("_mode") != std::string::npos) {
    attrs["rounding_mode"] = r.coin() ? "floor" : "trunc";
  }
  c.finish(op, shape, attrs, type);
}

void test_of_one(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 4);
  const std::string type = op.find("bitwise") != std::string::npos
                               ? r.one_of<std::string>({"bool", "int8", "int32", "int64"})
                               : any_type(c, {"int32", "int64", "bool", "uint8"});
  c.operand(shape, false, Values::kAny, type);
  c.finish(op, shape, Json::object(), op.find("bitwise") != std::string::npos ? type : "bool");
}

void clamp(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 4);
  const std::string type = any_type(c, {"int32", "int64"});
  c.operand(shape, false, Values::kAny, type);
  c.operand(broadcast_from(r, shape), true, Values::kAny, type);
  if (op == "aten.clamp.Tensor") {
    c.operand(broadcast_from(r, shape), true, Values::kAny, type);
  }
  c.finish(op, shape, Json::object(), type);
}

void where(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const std::string type =
      op.ends_with(".Scalar") ? "float32" : any_type(c, {"int32", "int64", "bool", "int8"});
  const bool self = op.ends_with(".self") || op.ends_with("ScalarOther");
  const bool other = op.ends_with(".self") || op.ends_with("ScalarSelf");
  c.operand(self || other ? broadcast_from(r, shape) : shape, true, Values::kAny, "bool");
  const Json number = is_float(type) ? Json(1.5) : type == "bool" ? Json(true) : Json(3);
  Json attrs = Json::object();
  // One of the two has the shape of the result.
  if (self) c.operand(shape, true, Values::kAny, type);
  if (!self) attrs["self"] = number;
  if (other) c.operand(self ? broadcast_from(r, shape) : shape, true, Values::kAny, type);
  if (!other) attrs["other"] = is_float(type) ? Json(-2.0) : number;
  c.finish(op, shape, attrs, type);
}

void masked_fill(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const std::string type = any_type(c, {"int32", "int64", "bool"});
  c.operand(shape, false, Values::kAny, type);
  c.operand(broadcast_from(r, shape), true, Values::kAny, "bool");
  Json attrs = Json::object();
  if (op.ends_with("Tensor")) {
    c.operand({}, true, Values::kAny, type);
  } else {
    attrs["value"] = type == "bool"   ? Json(true)
                     : is_float(type) ? r.one_of<Json>({Json("-inf"), Json(-100.0), Json(0)})
                                      : Json(7);
  }
  c.finish(op, shape, attrs, type);
}

void creation(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::string name = name_of(op);
  const Shape shape = r.shape(0, 4);
  std::string type = any_type(c, kMoved);
  Json attrs = Json::object();
  const bool from_tensor = name.find("like") != std::string::npos || name.starts_with("new_") ||
                           name.starts_with("fill") || name == "zero_";
  if (from_tensor)
    c.operand(name.starts_with("new_") ? Shape{2} : shape, false, Values::kAny, type);
  if (!from_tensor && name != "scalar_tensor") attrs["dtype"] = "torch." + type;
  if (name == "scalar_tensor") attrs["dtype"] = "torch." + type;
  if (from_tensor && !name.starts_with("fill") && name != "zero_" && r.coin()) {
    type = r.one_of(kMoved);
    attrs["dtype"] = "torch." + type;
  }
  if (!from_tensor || name.starts_with("new_")) attrs["size"] = shape;
  if (name == "scalar_tensor") attrs.erase("size");
  const Json number = type == "bool" ? Json(true) : is_float(type) ? Json(-1.5) : Json(3);
  if (name.find("full") != std::string::npos) attrs["fill_value"] = number;
  if (name.starts_with("fill")) attrs["value"] = number;
  if (name == "scalar_tensor") attrs["s"] = number;
  c.finish(op, name == "scalar_tensor" ? Shape{} : shape, attrs, type);
}

void copy(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 4);
  const std::string type = any_type(c, {"int32", "int64", "bool"});
  c.operand(shape, false, Values::kAny, type);
  const bool fills = op.find("fill") != std::string::npos;
  c.operand(fills ? Shape{} : broadcast_from(r, shape), true, Values::kAny, type);
  c.finish(op, shape, Json::object(), type);
}

void linspace(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t steps = r.pick(1, 20);
  c.finish(op, {steps},
           {{"start", r.pick(-3, 0)},
            {"end", r.pick(1, 9)},
            {"steps", steps},
            {"dtype", "torch.float32"}},
           "float32");
}

void meshgrid(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::int64_t count = r.pick(1, 3);
  const std::string type = any_type(c, {"int64"});
  Shape shape;
  for (std::int64_t i = 0; i < count; ++i) {
    shape.push_back(r.pick(1, 5));
    c.operand({shape.back()}, true, Values::kAny, type);
  }
  Json attrs = {{"_tensor_list_sizes", Integers{count}}};
  const bool swaps = op.ends_with("indexing") && count > 1 && r.coin();
  if (op.ends_with("indexing")) attrs["indexing"] = swaps ? "xy" : "ij";
  if (swaps) std::swap(shape[0], shape[1]);
  c.graph.node_with_results(
      "y", op, c.operands, std::vector<Shape>(static_cast<std::size_t>(count), shape), attrs, type);
  for (std::int64_t i = 0; i < count; ++i) c.graph.output("y_" + std::to_string(i));
}

void parts(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::string name = name_of(op);
  Shape shape = r.shape(name == "tril" || name == "triu" ? 2 : 1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const auto at = static_cast<std::size_t>(dim);
  Shape result = shape;
  Json attrs = Json::object();
  if (name == "roll") {
    attrs = {{"shifts", Integers{r.pick(-9, 9)}}, {"dims", Integers{dim}}};
    if (rank > 1 && r.coin()) {
      attrs = {{"shifts", Integers{r.pick(-9, 9), r.pick(-9, 9)}}, {"dims", Integers{0, -1}}};
    } else if (r.pick(0, 3) == 0) {
      attrs.erase("dims");
    }
  } else if (name == "flip") {
    attrs = {{"dims", rank > 1 && r.coin() ? Integers{0, -1} : Integers{dim}}};
  } else if (name == "repeat" || name == "tile") {
    Integers repeats;
    for (auto& extent : result) {
      repeats.push_back(r.pick(1, 3));
      extent *= repeats.back();
    }
    if (r.coin()) {
      repeats.insert(repeats.begin(), r.pick(1, 2));
      result.insert(result.begin(), repeats.front());
    }
    attrs[name == "repeat" ? "repeats" : "dims"] = repeats;
  } else if (name == "repeat_interleave") {
    const std::int64_t repeats = r.pick(1, 3);
    attrs["repeats"] = repeats;
    result[at] *= repeats;
    if (r.pick(0, 3) == 0) {
      result = {count_of(shape) * repeats};
    } else {
      attrs["dim"] = dim - (r.coin() ? rank : 0);
    }
  } else if (name == "tril" || name == "triu") {
    attrs["diagonal"] = r.pick(-4, 4);
  } else {
    const std::int64_t factor = r.pick(1, 3);
    shape = {r.pick(1, 2), r.pick(1, 4), r.pick(1, 4), r.pick(1, 4)};
    if (name == "pixel_shuffle") {
      result = {shape[0], shape[1], shape[2] * factor, shape[3] * factor};
      shape[1] *= factor * factor;
      attrs["upscale_factor"] = factor;
    } else if (name == "pixel_unshuffle") {
      result = {shape[0], shape[1] * factor * factor, shape[2], shape[3]};
      shape[2] *= factor;
      shape[3] *= factor;
      attrs["downscale_factor"] = factor;
    } else {
      shape[1] *= factor;
      result = shape;
      attrs["groups"] = factor;
    }
  }
  // libtorch's pixel_unshuffle and channel_shuffle know floats only.
  const bool any = name.find("shuffle") == std::string::npos;
  const std::string type = any ? any_type(c, kMoved) : c.dtype;
  c.operand(shape, true, Values::kAny, type);
  c.finish(op, result, attrs, type);
}

void overwritten(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const auto at = static_cast<std::size_t>(dim);
  const std::string type = any_type(c, kMoved);
  Shape part = shape;
  Json attrs = {{"dim", dim - (r.coin() ? rank : 0)}};
  if (name_of(op) == "select_scatter") {
    part.erase(part.begin() + dim);
    attrs["index"] = r.pick(-shape[at], shape[at] - 1);
  } else {
    const std::int64_t start = r.pick(0, shape[at] - 1);
    const std::int64_t end = r.pick(start + 1, shape[at]);
    const std::int64_t step = r.pick(1, 2);
    part[at] = (end - start - 1) / step + 1;
    attrs["start"] = start;
    attrs["step"] = step;
    attrs["end"] = end == shape[at] ? std::int64_t{9999} : end;
  }
  c.operand(shape, true, Values::kAny, type);
  c.operand(part, true, Values::kAny, type);
  c.finish(op, shape, attrs, type);
}

/// x[.., i, .., j, ..] and what is written there; x has 8 elements along indexed dimensions.
void index(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4);
  const std::string type = any_type(c, {"int32", "int64"});
  const std::int64_t listed = r.pick(1, static_cast<std::int64_t>(shape.size()));
  const Shape joined = r.shape(0, 2, 4);
  std::vector<bool> none(static_cast<std::size_t>(listed), false);
  for (std::size_t d = 0; d + 1 < none.size(); ++d) none[d] = r.coin();
  Integers dims;
  for (std::size_t d = 0; d < none.size(); ++d) {
    if (none[d]) continue;
    shape[d] = 8;
    dims.push_back(static_cast<std::int64_t>(d));
  }
  c.operand(shape, true, Values::kAny, type);
  for (std::size_t k = 0; k < dims.size(); ++k) {
    c.operand(k == 0 ? joined : broadcast_from(r, joined), true, Values::kAnyIndices, "int64");
  }
  const bool together = dims.back() - dims.front() + 1 == static_cast<std::int64_t>(dims.size());
  const std::int64_t place = together ? dims.front() : 0;
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end()) {
      result.push_back(shape[d]);
    }
  }
  result.insert(result.begin() + place, joined.begin(), joined.end());
  Json attrs = {{"_tensor_list_none_masks", Json::array({none})}};
  if (name_of(op) == "index") return c.finish(op, result, attrs, type);
  // libtorch writes in any order where two indices are equal, so they get one value.
  const bool adds = r.coin();
  c.operand(adds ? broadcast_from(r, result) : Shape{}, true, Values::kAny, type);
  attrs["accumulate"] = adds;
  c.finish(op, shape, attrs, type);
}

void along_dimension(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const auto at = static_cast<std::size_t>(dim);
  shape[at] = 8;
  const std::string type = any_type(c, {"int32", "int64"});
  c.operand(shape, true, Values::kAny, type);
  Json attrs = {{"dim", dim - (r.coin() ? rank : 0)}};
  Shape space = shape;
  if (name_of(op) == "index_select" || name_of(op) == "index_add") {
    space[at] = r.pick(1, 12);
    c.operand({space[at]}, true, Values::kIndices, r.coin() ? "int64" : "int32");
    if (name_of(op) == "index_select") return c.finish(op, space, attrs, type);
    c.operand(space, true, Values::kAny, type);
    if (r.coin()) attrs["alpha"] = 2;
    return c.finish(op, shape, attrs, type);
  }
  for (std::size_t d = 0; d < space.size(); ++d) space[d] = r.pick(1, d == at ? 12 : space[d]);
  const bool gathers = name_of(op) == "gather";
  // Of two equal indices libtorch may take either: one index along the dimension.
  const bool is_one = op == "aten.scatter.src";
  if (is_one) space[at] = 1;
  c.operand(space, true, Values::kIndices, "int64");
  if (gathers) return c.finish(op, space, attrs, type);
  if (op.ends_with("value")) {
    attrs["value"] = is_float(type) ? Json(1.5) : Json(4);
  } else {
    c.operand(space, true, Values::kAny, type);
  }
  if (name_of(op) == "scatter_reduce") {
    attrs["reduce"] = r.one_of(std::vector<std::string>{"sum", "prod", "mean", "amax", "amin"});
    if (r.coin()) attrs["include_self"] = false;
  }
  c.finish(op, shape, attrs, type);
}

void einsum(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::vector<std::string> equations{"ij,jk->ik",     "bhid,bhjd->bhij",
                                           "bij,bjk->bki",  "bghij,bghjd->bghid",
                                           "...i,ij->...j", "i,j->ij",
                                           "bij,kj->bik",   "ijk,ijk->i",
                                           "i,i->",         "kj,ji"};
  const std::string equation = r.one_of(equations);
  std::map<char, std::int64_t> extents;
  const auto shape_of = [&](const std::string& labels) {
    Shape shape;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const char label = labels[i];
      if (label == '.' && (i == 0 || labels[i - 1] != '.')) {
        if (!extents.contains('.')) extents['.'] = r.pick(1, 4);
        shape.push_back(extents['.']);
      } else if (label != '.') {
        if (!extents.contains(label)) extents[label] = r.pick(1, 6);
        shape.push_back(extents[label]);
      }
    }
    return shape;
  };
  const std::size_t comma = equation.find(',');
  const std::size_t arrow = std::min(equation.find("->"), equation.size());
  c.operand(shape_of(equation.substr(0, comma)));
  c.operand(shape_of(equation.substr(comma + 1, arrow - comma - 1)), true);
  const std::string result = arrow == equation.size() ? "ik" : equation.substr(arrow + 2);
  c.finish(op, shape_of(result), {{"equation", equation}, {"_tensor_list_sizes", Integers{2}}});
}

/// A result along one dimension, or of all.
void reduced(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::string name = name_of(op);
  const Shape shape = r.shape(1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const bool keep = r.coin();
  const bool is_norm = name.find("norm") != std::string::npos;
  const bool is_arg = name == "argmax" || name == "argmin";
  std::string type = is_norm  ? c.dtype
                     : is_arg ? any_type(c, {"int32", "int64"})  // PyTorch: not of truth
                              : any_type(c, {"int32", "int64", "bool"});
  c.operand(shape, false, name == "prod" ? Values::kPositive : Values::kAny, type);
  Shape result = shape;
  if (keep) result[static_cast<std::size_t>(dim)] = 1;
  if (!keep) result.erase(result.begin() + dim);
  Json attrs = {{"dim", dim}, {"keepdim", keep}};
  if (op.ends_with("dims") || is_norm) attrs["dim"] = Integers{dim - rank};
  const bool is_flat = (op.ends_with(".default") && !is_arg && !is_norm) || (is_arg && r.coin());
  if (is_flat) {
    attrs = Json::object();
    result = {};
  }
  if (name == "norm") attrs["p"] = r.one_of<Json>({Json(1), Json(2), Json(nullptr)});
  if (name == "linalg_vector_norm") attrs["ord"] = r.pick(1, 2);
  if (name == "any" || name == "all") type = "bool";
  if (name == "prod" && !is_float(type)) type = "int64";
  if (is_arg) type = "int64";
  c.finish(op, result, attrs, type);
}

/// Values and the places where they stand.
void extremum(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = r.pick(0, rank - 1);
  const bool keep = r.coin();
  const std::string type = any_type(c, {"int32", "int64"});
  c.operand(shape, false, Values::kAny, type);
  Shape result = shape;
  if (keep) result[static_cast<std::size_t>(dim)] = 1;
  if (!keep) result.erase(result.begin() + dim);
  c.graph.node_with_typed_results("y", op, c.operands, {result, result}, {type, "int64"},
                                  {{"dim", dim - rank}, {"keepdim", keep}});
  c.graph.output("y_0").output("y_1");
}

void running_sum(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(1, 4);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::string type = any_type(c, {"int32", "int64", "bool"});
  c.operand(shape, false, Values::kAny, type);
  c.finish(op, shape, {{"dim", r.pick(-rank, rank - 1)}}, is_float(type) ? type : "int64");
}

struct GeneratorRow {
  std::string_view name;
  NodeGenerator generator;
};
constexpr GeneratorRow kGenerators[] = {
    {"__and__", comparison},
    {"__or__", comparison},
    {"__xor__", comparison},
    {"all", reduced},
    {"any", reduced},
    {"argmax", reduced},
    {"argmin", reduced},
    {"bitwise_and", comparison},
    {"bitwise_not", test_of_one},
    {"bitwise_or", comparison},
    {"bitwise_xor", comparison},
    {"channel_shuffle", parts},
    {"copy", copy},
    {"copy_", copy},
    {"cumsum", running_sum},
    {"einsum", einsum},
    {"eq", comparison},
    {"flip", parts},
    {"floor_divide", division},
    {"fmod", division},
    {"full", creation},
    {"full_like", creation},
    {"gather", along_dimension},
    {"ge", comparison},
    {"gt", comparison},
    {"index", index},
    {"index_add", along_dimension},
    {"index_put", index},
    {"index_put_", index},
    {"index_select", along_dimension},
    {"isnan", test_of_one},
    {"le", comparison},
    {"linalg_vector_norm", reduced},
    {"linspace", linspace},
    {"logical_and", comparison},
    {"logical_not", test_of_one},
    {"logical_or", comparison},
    {"logical_xor", comparison},
    {"lt", comparison},
    {"masked_fill", masked_fill},
    {"masked_fill_", masked_fill},
    {"meshgrid", meshgrid},
    {"native_channel_shuffle", parts},
    {"ne", comparison},
    {"new_full", creation},
    {"new_ones", creation},
    {"new_zeros", creation},
    {"norm", reduced},
    {"ones", creation},
    {"ones_like", creation},
    {"pixel_shuffle", parts},
    {"pixel_unshuffle", parts},
    {"prod", reduced},
    {"remainder", division},
    {"repeat", parts},
    {"repeat_interleave", parts},
    {"roll", parts},
    {"scalar_tensor", creation},
    {"scatter", along_dimension},
    {"scatter_add", along_dimension},
    {"scatter_reduce", along_dimension},
    {"select_scatter", overwritten},
    {"slice_scatter", overwritten},
    {"tile", parts},
    {"tril", parts},
    {"triu", parts},
    {"where", where},
    {"zero_", creation},
    {"zeros", creation},
    {"zeros_like", creation},
};

}  // namespace

/// Arithmetic on integers, or on a float tensor and one of integers.
void draw_typed_binary(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape shape = r.shape(0, 5);
  const bool divides = op.find("div") != std::string::npos;
  const bool number = op.ends_with(".Scalar");
  const std::string type = r.one_of<std::string>({"int32", "int64", "int16", "uint8"});
  // libtorch's bfloat16 rounds where float32 does not, and the other way around.
  const bool mixed = !number && op.find("_.") == std::string::npos && r.pick(0, 3) == 0 &&
                     c.dtype == "float32" && op.find("imum") == std::string::npos;
  c.operand(shape, false, Values::kAny, mixed ? "float32" : type);
  Json attrs = Json::object();
  if (number) {
    attrs["other"] = r.pick(2, 5);
  } else {
    c.operand(broadcast_from(r, shape), true, divides ? Values::kAwayFromZero : Values::kAny, type);
  }
  const bool has_alpha = op.find("add") != std::string::npos || op.find("sub") != std::string::npos;
  if (has_alpha && r.coin()) attrs["alpha"] = r.pick(2, 3);
  c.finish(op, shape, attrs, mixed || divides ? "float32" : type);
}

NodeGenerator typed_generator_of(const std::string& op) {
  if (op.starts_with("quantized_decomposed.")) return conversion;
  if (!op.starts_with("aten.")) return nullptr;
  if (op == "aten.max.dim" || op == "aten.min.dim") return extremum;
  if (op == "aten.max.default" || op == "aten.min.default") return reduced;
  if (op == "aten.clamp.Tensor" || op == "aten.clamp_min.Tensor" || op == "aten.clamp_max.Tensor") {
    return clamp;
  }
  if (op.starts_with("aten.div.") && op.ends_with("_mode")) return division;
  if (op.starts_with("aten.fill")) return op.ends_with("Tensor") ? copy : creation;
  for (const GeneratorRow& row : kGenerators) {
    if (name_of(op) == row.name) return row.generator;
  }
  return nullptr;
}

}  // namespace npu::test
