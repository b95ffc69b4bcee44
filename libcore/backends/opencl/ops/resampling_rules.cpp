// SPDX-License-Identifier: Apache-2.0
// Images at other sizes, and images at stated places.
#include <array>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

/// What one dimension contributes to an element: places and, but for one, their weights.
struct Taps {
  std::vector<std::string> places;
  std::vector<std::string> weights;
};

struct Resampling {
  bool aligns_corners = false;
  std::optional<double> factor;  ///< of one dimension, if it is stated
  std::int64_t from = 1;
  std::int64_t to = 1;
};

double step_of(const Resampling& how) {
  if (how.aligns_corners) {
    return how.to > 1 ? static_cast<double>(how.from - 1) / static_cast<double>(how.to - 1) : 0.0;
  }
  if (how.factor && *how.factor > 0) return 1.0 / *how.factor;
  return static_cast<double>(how.from) / static_cast<double>(how.to);
}

std::string within(const std::string& place, std::int64_t extent) {
  return "clamp(" + place + ", 0, " + std::to_string(extent - 1) + ")";
}

Taps nearest_tap(Emitter& emitter, const Resampling& how, const std::string& at, bool is_exact) {
  const std::string place = "floor((" + at + (is_exact ? " + 0.5f" : "") + ") * " +
                            literal(step_of(how), DType::kFloat32) + ")";
  return {{emitter.define("int", within("(int)" + place, how.from))}, {"1"}};
}

std::string centre_of(const Resampling& how, const std::string& at) {
  const std::string step = literal(step_of(how), DType::kFloat32);
  return how.aligns_corners ? at + " * " + step : "(" + at + " + 0.5f) * " + step + " - 0.5f";
}

Taps linear_taps(Emitter& emitter, const Resampling& how, const std::string& at) {
  const std::string source = emitter.define("float", "fmax(" + centre_of(how, at) + ", 0.0f)");
  const std::string low = emitter.define("int", within("(int)" + source, how.from));
  const std::string high = emitter.define("int", within(low + " + 1", how.from));
  const std::string part = emitter.define("float", source + " - " + low);
  return {{low, high}, {"(1 - " + part + ")", part}};
}

Taps cubic_taps(Emitter& emitter, const Resampling& how, const std::string& at) {
  const std::string source = emitter.define("float", centre_of(how, at));
  const std::string low = emitter.define("int", "(int)floor(" + source + ")");
  const std::string t = emitter.define("float", source + " - " + low);
  Taps taps;
  for (int i = -1; i <= 2; ++i) {
    taps.places.push_back(
        emitter.define("int", within(low + " + (" + std::to_string(i) + ")", how.from)));
    const std::string x = i == -1 ? t + " + 1" : i == 0 ? t : i == 1 ? "1 - " + t : "2 - " + t;
    taps.weights.push_back(emitter.define(
        "float", (i == 0 || i == 1 ? "npu_cubic_near(" : "npu_cubic_far(") + x + ")"));
  }
  return taps;
}

/// The scale of spatial dimension `i`, if the node states one.
std::optional<double> stated_factor(const BoundNode& node, std::size_t i, std::size_t rank) {
  static constexpr std::array<const char*, 3> kNames{"scales_d", "scales_h", "scales_w"};
  if (node.find("scale_factors") != nullptr) {
    if (node.is_none("scale_factors")) return std::nullopt;
    const Json& list = node.find("scale_factors")->value;
    if (!list.is_array() || i >= list.size()) return std::nullopt;
    return json_number(list[i]);
  }
  const char* name = rank == 1 ? "scales" : kNames[3 - rank + i];
  if (node.find(name) == nullptr || node.is_none(name)) return std::nullopt;
  return node.number(name);
}

}  // namespace

std::string upsample_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, node.find("self") != nullptr ? "self" : "input");
  const DType dtype = emitter.dtype(self);
  const Shape& from = emitter.shape(self);
  const Shape& to = emitter.shape(node.node().outputs[0]);
  const std::string_view name = functional_name(node.node().op_type);
  const auto rank = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  bool fits = from.size() == rank + 2 && to.size() == from.size() && from[0] == to[0] &&
              from[1] == to[1] && is_floating_point(dtype);
  for (std::size_t d = 2; fits && d < from.size(); ++d) fits = from[d] > 0;
  if (!fits) emitter.refuse(node.node(), "its operands are not supported");
  std::vector<Taps> taps;
  for (std::size_t i = 0; i < rank; ++i) {
    Resampling how;
    how.from = from[2 + i];
    how.to = to[2 + i];
    how.factor = stated_factor(node, i, rank);
    how.aligns_corners = node.find("align_corners") != nullptr && node.boolean("align_corners");
    const std::string at = "(float)" + index[2 + i];
    if (name.find("nearest") != std::string_view::npos) {
      taps.push_back(nearest_tap(emitter, how, at, name.find("exact") != std::string_view::npos));
    } else if (name.find("cubic") != std::string_view::npos) {
      taps.push_back(cubic_taps(emitter, how, at));
    } else {
      taps.push_back(linear_taps(emitter, how, at));
    }
  }
  std::string sum;
  std::vector<std::size_t> chosen(rank, 0);
  for (;;) {
    Index source = index;
    std::string weight;
    for (std::size_t i = 0; i < rank; ++i) {
      source[2 + i] = taps[i].places[chosen[i]];
      weight += (i == 0 ? "" : " * ") + taps[i].weights[chosen[i]];
    }
    const std::string value = emitter.element(self, source);
    sum += (sum.empty() ? "" : " + ") + (weight == "1" || weight == "1 * 1" || weight == "1 * 1 * 1"
                                             ? value
                                             : value + " * " + weight);
    std::size_t i = rank;
    while (i > 0 && ++chosen[i - 1] == taps[i - 1].places.size()) chosen[--i] = 0;
    if (i == 0) break;
  }
  return "(" + sum + ")";
}

namespace {

/// A coordinate of -1 to 1 as a place in an image, with the padding that keeps it inside.
std::string grid_place(Emitter& emitter, const std::string& value, std::int64_t extent,
                       bool aligns_corners, std::int64_t padding) {
  const std::string size = literal(static_cast<double>(extent), DType::kFloat32);
  std::string place =
      emitter.define("float", aligns_corners ? "(" + value + " + 1) * 0.5f * (" + size + " - 1)"
                                             : "((" + value + " + 1) * " + size + " - 1) * 0.5f");
  const std::string last = literal(static_cast<double>(extent - 1), DType::kFloat32);
  if (padding == 1) return emitter.define("float", "clamp(" + place + ", 0.0f, " + last + ")");
  if (padding != 2) return place;
  const std::string low = aligns_corners ? "0.0f" : "-0.5f";
  const std::string span = aligns_corners ? last : size;
  return emitter.define("float", "clamp(npu_reflected(" + place + ", " + low + ", " + span +
                                     "), 0.0f, " + last + ")");
}

}  // namespace

std::string grid_sample_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId input = tensor_of(emitter, node, "input");
  const TensorId grid = tensor_of(emitter, node, "grid");
  const Shape& image = emitter.shape(input);
  const Shape& places = emitter.shape(grid);
  const std::int64_t mode = node.integer("interpolation_mode");
  const std::int64_t padding = node.integer("padding_mode");
  const bool fits = image.size() == 4 && places.size() == 4 && places[3] == 2 &&
                    places[0] == image[0] && image[2] > 0 && image[3] > 0 &&
                    (mode == 0 || mode == 1) && emitter.dtype(input) == DType::kFloat32 &&
                    emitter.dtype(grid) == DType::kFloat32;
  if (!fits) emitter.refuse(node.node(), "its operands are not supported");
  emitter.expect_shape(node.node(), 0, {image[0], image[1], places[1], places[2]});
  const bool aligns = node.boolean("align_corners");
  const auto coordinate = [&](const char* which, std::int64_t extent) {
    const std::string value = emitter.element(grid, {index[0], index[2], index[3], which});
    return grid_place(emitter, value, extent, aligns, padding);
  };
  const std::string x = coordinate("0", image[3]);
  const std::string y = coordinate("1", image[2]);
  std::string sum = emitter.fresh("s");
  emitter.line("float " + sum + " = 0;");
  const auto add = [&](const std::string& at_y, const std::string& at_x,
                       const std::string& weight) {
    emitter.open("if (" + at_y + " >= 0 && " + at_y + " < " + std::to_string(image[2]) + " && " +
                 at_x + " >= 0 && " + at_x + " < " + std::to_string(image[3]) + ")");
    emitter.line(sum + " += " + emitter.element(input, {index[0], index[1], at_y, at_x}) + " * " +
                 weight + ";");
    emitter.close();
  };
  if (mode == 1) {
    add(emitter.define("int", "(int)rint(" + y + ")"),
        emitter.define("int", "(int)rint(" + x + ")"), "1");
    return sum;
  }
  const std::string y0 = emitter.define("int", "(int)floor(" + y + ")");
  const std::string x0 = emitter.define("int", "(int)floor(" + x + ")");
  const std::string y1 = emitter.define("int", y0 + " + 1");
  const std::string x1 = emitter.define("int", x0 + " + 1");
  const std::string dy = emitter.define("float", y + " - " + y0);
  const std::string dx = emitter.define("float", x + " - " + x0);
  add(y0, x0, "(1 - " + dy + ") * (1 - " + dx + ")");
  add(y0, x1, "(1 - " + dy + ") * " + dx);
  add(y1, x0, dy + " * (1 - " + dx + ")");
  add(y1, x1, dy + " * " + dx);
  return sum;
}

}  // namespace npu::opencl
