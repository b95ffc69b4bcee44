// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of their weights with places that are computed, not stored (implicit
// GEMM), and small ones, such as depthwise, as a loop for each element.
#include <algorithm>
#include <memory>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"
#include "ops/product_spec.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

/// A convolution's arguments, checked.
struct Convolution {
  TensorId input;
  TensorId weight;
  std::optional<TensorId> bias;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad;
  std::vector<std::int64_t> dilation;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   ///< of a group
  std::int64_t out_channels = 0;  ///< of a group
  bool is_transposed = false;
  Shape kernel;
  Shape from;  ///< spatial
  Shape to;
};

std::vector<std::int64_t> list_of(const Emitter& emitter, const BoundNode& node,
                                  const char* argument, std::size_t rank, std::int64_t least) {
  std::vector<std::int64_t> list = node.integers(argument);
  if (list.size() == 1) list.resize(rank, list[0]);
  const bool fits = list.size() == rank && std::ranges::all_of(list, [least](auto n) {
                      return n >= least && n <= INT32_MAX;
                    });
  if (!fits) {
    emitter.refuse(node.node(), "'" + std::string(argument) + "' does not fit its operand");
  }
  return list;
}

std::vector<std::int64_t> pads_of(const Emitter& emitter, const BoundNode& node,
                                  const Convolution& conv) {
  const std::size_t rank = conv.kernel.size();
  const BoundArgument& padding = *node.find("padding");
  if (!padding.value.is_string()) return list_of(emitter, node, "padding", rank, 0);
  std::vector<std::int64_t> pads(rank, 0);
  if (padding.value == "valid") return pads;
  for (std::size_t d = 0; d < rank; ++d) {
    // One that does not fit is refused with all places.
    pads[d] = checked_multiply(conv.dilation[d], conv.kernel[d] - 1).value_or(0) / 2;
  }
  return pads;
}

/// Kernels compute places of a convolution as int.
void expect_small_places(const Emitter& emitter, const BoundNode& node, const Convolution& conv) {
  for (std::size_t d = 0; d < conv.kernel.size(); ++d) {
    const std::int64_t steps = conv.is_transposed ? conv.stride[d] : 1;
    const std::int64_t taps =
        checked_multiply(conv.dilation[d], conv.kernel[d]).value_or(INT64_MAX);
    const std::int64_t span = checked_multiply(conv.from[d], steps).value_or(INT64_MAX);
    const bool is_same = node.find("padding")->value == "same";
    const std::int64_t pad = is_same ? 0 : 2 * conv.pad[d];
    if (saturating_add(saturating_add(taps, span), pad) <= INT32_MAX) continue;
    emitter.refuse(node.node(), "its places do not fit in 31 bits");
  }
}

Convolution read_convolution(const Emitter& emitter, const BoundNode& node) {
  Convolution conv;
  conv.input = tensor_of(emitter, node, "input");
  conv.weight = tensor_of(emitter, node, "weight");
  conv.bias = node.tensor("bias");
  const Shape& x = emitter.shape(conv.input);
  const Shape& w = emitter.shape(conv.weight);
  const Shape& y = emitter.shape(node.node().outputs[0]);
  const bool is_sized = x.size() == w.size() && x.size() == y.size() && x.size() >= 3;
  if (!is_sized || emitter.dtype(conv.weight) != emitter.dtype(conv.input) ||
      !is_floating_point(emitter.dtype(conv.input))) {
    emitter.refuse(node.node(), "its operands are not supported");
  }
  emitter.expect_dtype(node.node(), 0, emitter.dtype(conv.input));
  const std::size_t rank = x.size() - 2;
  conv.kernel.assign(w.begin() + 2, w.end());
  conv.from.assign(x.begin() + 2, x.end());
  conv.is_transposed = node.node().op_type.find("transpose") != std::string::npos ||
                       (node.find("transposed") != nullptr && node.boolean("transposed"));
  conv.stride = list_of(emitter, node, "stride", rank, 1);
  conv.dilation = list_of(emitter, node, "dilation", rank, 1);
  conv.pad = pads_of(emitter, node, conv);
  expect_small_places(emitter, node, conv);
  conv.groups = node.integer("groups");
  const bool divides = conv.groups >= 1 && x[1] % conv.groups == 0 && w[0] % conv.groups == 0;
  if (!divides || (conv.is_transposed ? w[0] != x[1] : w[1] * conv.groups != x[1])) {
    emitter.refuse(node.node(), "its channels do not fit together");
  }
  conv.in_channels = x[1] / conv.groups;
  conv.out_channels = conv.is_transposed ? w[1] : w[0] / conv.groups;
  std::vector<std::int64_t> more(rank, 0);
  if (conv.is_transposed) more = list_of(emitter, node, "output_padding", rank, 0);
  Shape expected{x[0], conv.out_channels * conv.groups};
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t span = conv.dilation[d] * (conv.kernel[d] - 1) + 1;
    const bool is_same = node.find("padding")->value == "same";
    const std::int64_t size =
        conv.is_transposed ? (conv.from[d] - 1) * conv.stride[d] - 2 * conv.pad[d] + span + more[d]
        : is_same          ? conv.from[d]
                           : (conv.from[d] + 2 * conv.pad[d] - span) / conv.stride[d] + 1;
    expected.push_back(size);
  }
  emitter.expect_shape(node.node(), 0, expected);
  conv.to.assign(expected.begin() + 2, expected.end());
  if (conv.bias && emitter.shape(*conv.bias) != Shape{expected[1]}) {
    emitter.refuse(node.node(), "its bias has not one element for each channel");
  }
  return conv;
}

/// The operand's element that the kernel's element `tap` meets at `at`, or 0 outside it.
std::string met_element(Emitter& emitter, const Convolution& conv, const std::string& image,
                        const std::string& channel, const Index& at, const Index& tap) {
  Index source{image, channel};
  std::string inside;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::string pad = std::to_string(conv.pad[d]);
    std::string place;
    if (conv.is_transposed) {
      const std::string scaled = emitter.define(
          "int", "(int)" + at[d] + " + " + pad + " - (int)" + times(tap[d], conv.dilation[d]));
      place = emitter.define("int", scaled + " / " + std::to_string(conv.stride[d]));
      inside +=
          scaled + " >= 0 && " + scaled + " % " + std::to_string(conv.stride[d]) + " == 0 && ";
    } else {
      place = emitter.define("int", "(int)" + times(at[d], conv.stride[d]) + " - " + pad +
                                        " + (int)" + times(tap[d], conv.dilation[d]));
      const bool stays = conv.pad[d] == 0 && (conv.to[d] - 1) * conv.stride[d] +
                                                     conv.dilation[d] * (conv.kernel[d] - 1) <
                                                 conv.from[d];
      if (!stays) inside += place + " >= 0 && ";
      if (stays) {
        source.push_back(place);
        continue;
      }
    }
    inside += place + " < " + std::to_string(conv.from[d]) + " && ";
    source.push_back(place);
  }
  if (inside.empty()) return emitter.element(conv.input, source);
  std::string value = emitter.fresh("v");
  emitter.line(value_type(emitter.dtype(conv.input)) + " " + value + " = 0;");
  emitter.open("if (" + inside + "1)");
  emitter.line(value + " = " + emitter.element(conv.input, source) + ";");
  emitter.close();
  return value;
}

std::string weight_element(Emitter& emitter, const Convolution& conv, const std::string& group,
                           const std::string& out, const std::string& in, const Index& tap) {
  Index index = conv.is_transposed ? Index{plus(times(group, conv.in_channels), in), out}
                                   : Index{plus(times(group, conv.out_channels), out), in};
  index.insert(index.end(), tap.begin(), tap.end());
  return emitter.element(conv.weight, index);
}

Shape with_front(std::int64_t first, const Shape& rest) {
  Shape shape{first};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

}  // namespace

bool is_small_convolution(const Model& model, NodeId id) {
  const BoundNode& node = model.bound(id);
  const auto weight = node.tensor("weight");
  if (!weight || model.shape(*weight).size() < 3) return true;
  const Shape& shape = model.shape(*weight);
  const std::int64_t groups = node.integer("groups");
  if (groups <= 1) return false;
  const bool is_transposed = node.node().op_type.find("transpose") != std::string::npos;
  return (is_transposed ? shape[1] : shape[0] / groups) < 4;
}

ProductSpec convolution_product(Emitter& emitter, const BoundNode& node) {
  const Convolution conv = read_convolution(emitter, node);
  const std::int64_t images = emitter.shape(conv.input)[0];
  const Shape taps = with_front(conv.in_channels, conv.kernel);
  const Shape places = with_front(images, conv.to);
  ProductSpec spec;
  spec.dtype = emitter.dtype(conv.input);
  spec.batch = conv.groups;
  spec.m = conv.out_channels;
  spec.n = checked_element_count(places).value_or(0);
  spec.k = checked_element_count(taps).value_or(0);
  spec.left = [=, &emitter](const std::string& b, const std::string& m, const std::string& k) {
    const Index tap = index_of_place(k, taps);
    return weight_element(emitter, conv, b, m, tap[0], Index(tap.begin() + 1, tap.end()));
  };
  const auto parts = std::make_shared<ProductSpec::Parts>();
  parts->of_summand = [=](const std::string& k) { return index_of_place(k, taps); };
  parts->of_column = [=](const std::string& n) { return index_of_place(n, places); };
  parts->right = [=, &emitter](const std::string& b, const Index& tap, const Index& at) {
    const std::string channel = plus(times(b, conv.in_channels), tap[0]);
    return met_element(emitter, conv, at[0], channel, Index(at.begin() + 1, at.end()),
                       Index(tap.begin() + 1, tap.end()));
  };
  parts->place = [=](const std::string& b, const std::string& m, const Index& at) {
    Index index{at[0], plus(times(b, conv.out_channels), m)};
    index.insert(index.end(), at.begin() + 1, at.end());
    return index;
  };
  spec.right = [=, &emitter](const std::string& b, const std::string& k, const std::string& n) {
    const Index tap = emitter.define_index(parts->of_summand(k));
    return parts->right(b, tap, emitter.define_index(parts->of_column(n)));
  };
  spec.place = [=](const std::string& b, const std::string& m, const std::string& n) {
    return parts->place(b, m, parts->of_column(n));
  };
  spec.parts = parts;
  if (conv.bias) {
    spec.finish = [=, &emitter](const std::string& sum, const Index& index) {
      return "(" + sum + " + " + emitter.element_as(*conv.bias, {index[1]}, spec.dtype) + ")";
    };
  }
  return spec;
}

std::string convolution_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const Convolution conv = read_convolution(emitter, node);
  const std::string type = value_type(emitter.dtype(conv.input));
  const std::string channel = emitter.define(emitter.index_type(), index[1]);
  const std::string group =
      emitter.define(emitter.index_type(), divided(channel, conv.out_channels));
  const std::string out = emitter.define(emitter.index_type(), modulo(channel, conv.out_channels));
  std::string sum = emitter.fresh("s");
  emitter.line(
      type + " " + sum + " = " +
      (conv.bias ? emitter.element_as(*conv.bias, {channel}, emitter.dtype(conv.input)) : "0") +
      ";");
  Index tap;
  const Shape loops = with_front(conv.in_channels, conv.kernel);
  for (const std::int64_t extent : loops) {
    tap.push_back(extent == 1 ? "0" : emitter.fresh("k"));
    emitter.open(extent == 1 ? std::string()
                             : "for (int " + tap.back() + " = 0; " + tap.back() + " < " +
                                   std::to_string(extent) + "; ++" + tap.back() + ")");
  }
  const Index inner(tap.begin() + 1, tap.end());
  const std::string x =
      met_element(emitter, conv, index[0], plus(times(group, conv.in_channels), tap[0]),
                  Index(index.begin() + 2, index.end()), inner);
  emitter.line(sum + " += " + x + " * " + weight_element(emitter, conv, group, out, tap[0], inner) +
               ";");
  for (std::size_t i = 0; i < loops.size(); ++i) emitter.close();
  return sum;
}

}  // namespace npu::opencl
