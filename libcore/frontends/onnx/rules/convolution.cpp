// SPDX-License-Identifier: Apache-2.0
// Convolutions. Pads that differ at the two ends become a node of their own.
#include <algorithm>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kLargestWindow = std::int64_t{1} << 20;

Ints checked_list(Op& op, std::string_view name, std::size_t count, std::int64_t absent,
                  std::int64_t least) {
  Ints values = op.list(name).value_or(Ints(count, absent));
  if (values.size() != count) Op::refuse("'" + std::string(name) + "' does not fit its operand");
  for (const std::int64_t value : values) {
    if (value < least || value > kLargestWindow) {
      Op::refuse("'" + std::string(name) + "' holds " + std::to_string(value));
    }
  }
  return values;
}

std::string conv_name(const char* transposed, std::size_t spatial, bool is_input) {
  return "aten.conv" + std::string(transposed) + std::to_string(spatial) + "d." +
         (is_input && spatial > 1 ? "input" : "default");
}

// Checks ranks and channels; returns the number of spatial axes.
std::size_t spatial_axes(const Value* x, const Value* w) {
  const std::int64_t spatial = x->rank() - 2;
  if (spatial < 1 || spatial > 3) Op::refuse("an operand of rank " + std::to_string(x->rank()));
  if (w->rank() != x->rank()) Op::refuse("operand and weight are of different ranks");
  for (std::size_t i = 2; i < x->shape.size(); ++i) {
    if (x->shape[i] > std::int64_t{1} << 40 || w->shape[i] > kLargestWindow) {
      Op::refuse("an operand is too large");
    }
  }
  return static_cast<std::size_t>(spatial);
}

// Libraries take an operand without elements only if there are none in the result.
void check_elements(const Value* x, const Shape& result) {
  if (x->count() == 0 && product(result, 0, result.size()) != 0) {
    Op::refuse("an operand of shape " + shape_text(x->shape) + ", which has no elements");
  }
}

std::vector<std::pair<std::int64_t, std::int64_t>> all_pads(const Window& window) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pads(2, {0, 0});
  for (std::size_t i = 0; i < window.begin.size(); ++i) {
    pads.emplace_back(window.begin[i], window.end[i]);
  }
  return pads;
}

}  // namespace

// Windows are as large as the weights, and may be stated a second time.
void check_kernel_shape(Op& op, const Ints& kernel) {
  if (op.list("kernel_shape").value_or(kernel) != kernel) {
    Op::refuse("'kernel_shape' is not that of the weights, " + shape_text(kernel));
  }
}

Window read_window(Op& op, const Shape& shape, const Ints& kernel) {
  const std::size_t count = kernel.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (kernel[i] < 1 || kernel[i] > kLargestWindow)
      Op::refuse("a window of " + shape_text(kernel));
    if (shape[i + 2] > std::int64_t{1} << 40) Op::refuse("the operand is too large");
  }
  Window window{.kernel = kernel,
                .strides = checked_list(op, "strides", count, 1, 1),
                .dilations = checked_list(op, "dilations", count, 1, 1),
                .begin = Ints(count, 0),
                .end = Ints(count, 0)};
  const std::string pad = op.text("auto_pad", "NOTSET");
  if (pad == "VALID") return window;
  if (pad == "SAME_UPPER" || pad == "SAME_LOWER") {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t extent = shape[i + 2];
      const std::int64_t outputs = (extent + window.strides[i] - 1) / window.strides[i];
      const std::int64_t needed =
          (outputs - 1) * window.strides[i] + (kernel[i] - 1) * window.dilations[i] + 1 - extent;
      const std::int64_t total = std::max<std::int64_t>(needed, 0);
      const std::int64_t less = total / 2;
      window.begin[i] = pad == "SAME_UPPER" ? less : total - less;
      window.end[i] = total - window.begin[i];
    }
    return window;
  }
  if (pad != "NOTSET") Op::refuse("auto_pad '" + pad + "'");
  const Ints pads = checked_list(op, "pads", 2 * count, 0, -kLargestWindow);
  std::copy_n(pads.begin(), count, window.begin.begin());
  std::copy_n(pads.begin() + static_cast<std::ptrdiff_t>(count), count, window.end.begin());
  return window;
}

void import_conv(Op& op) { op.set(0, convolve(op, op.in(0), op.in(1), op.maybe_in(2))); }

Value* convolve(Op& op, Value* x, Value* w, Value* bias) {
  const std::size_t spatial = spatial_axes(x, w);
  const std::int64_t groups = op.integer("group", 1);
  if (groups < 1 || groups > x->shape[1] || x->shape[1] / groups != w->shape[1] ||
      x->shape[1] % groups != 0 || w->shape[0] % groups != 0) {
    Op::refuse("channels of " + shape_text(x->shape) + " and " + shape_text(w->shape) +
               " do not fit");
  }
  const Ints kernel(w->shape.begin() + 2, w->shape.end());
  check_kernel_shape(op, kernel);
  const Window window = read_window(op, x->shape, kernel);
  Ints padding = window.begin;
  const bool is_even = window.begin == window.end &&
                       std::all_of(padding.begin(), padding.end(), [](auto p) { return p >= 0; });
  Shape shape{x->shape[0], w->shape[0]};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t room = x->shape[i + 2] + window.begin[i] + window.end[i] - reach;
    if (room < 0 || window.kernel[i] < 1) Op::refuse("the window is larger than its operand");
    shape.push_back(room / window.strides[i] + 1);
  }
  check_elements(x, shape);
  if (!is_even) {
    x = op.pad(x, all_pads(window), 0);
    padding.assign(spatial, 0);
  }
  std::vector<Value*> operands{x, w};
  if (bias != nullptr) operands.push_back(bias);
  Json attrs{{"stride", window.strides}, {"padding", padding}};
  if (std::any_of(window.dilations.begin(), window.dilations.end(),
                  [](auto d) { return d != 1; })) {
    attrs["dilation"] = window.dilations;
  }
  if (groups != 1) attrs["groups"] = groups;
  return op.emit(conv_name("", spatial, false), operands, std::move(attrs), x->dtype, shape);
}

void import_causal_conv(Op& op) {
  Value* x = op.in(0);
  Value* w = op.in(1);
  if (x->rank() != 3 || w->rank() != 3 || w->shape[0] != x->shape[1] || w->shape[1] != 1) {
    Op::refuse("operand and weights do not fit together");
  }
  const std::int64_t kept = w->shape[2] - 1;
  const std::string activation = op.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    Op::refuse("activation '" + activation + "'");
  }
  Shape shape = x->shape;
  shape[2] += kept;
  Value* padded = nullptr;
  if (op.has_input(3)) {
    if (op.in(3)->shape != Shape{shape[0], shape[1], kept}) Op::refuse("the state does not fit");
    padded = concatenated(op, {op.in(3), x}, 2);
  } else {
    padded = op.pad(x, {{0, 0}, {0, 0}, {kept, 0}}, 0);
  }
  std::vector<Value*> operands{padded, w};
  if (op.has_input(2)) operands.push_back(op.in(2));
  Value* y =
      op.emit("aten.conv1d.default", operands, Json{{"groups", x->shape[1]}}, x->dtype, x->shape);
  op.set(0, activation == "none" ? y : op.emit_like("aten.silu.default", {y}));
  op.set(1, op.slice(padded, 2, x->shape[2], shape[2]));
}

void import_conv_transpose(Op& op) {
  Value* x = op.in(0);
  Value* w = op.in(1);
  const std::size_t spatial = spatial_axes(x, w);
  const std::int64_t groups = op.integer("group", 1);
  if (groups < 1 || x->shape[1] != w->shape[0] || x->shape[1] % groups != 0) {
    Op::refuse("channels of " + shape_text(x->shape) + " and " + shape_text(w->shape) +
               " do not fit");
  }
  const Ints kernel(w->shape.begin() + 2, w->shape.end());
  check_kernel_shape(op, kernel);
  const Ints strides = checked_list(op, "strides", spatial, 1, 1);
  const Ints dilations = checked_list(op, "dilations", spatial, 1, 1);
  Ints extra = checked_list(op, "output_padding", spatial, 0, 0);
  const Ints pads = checked_list(op, "pads", 2 * spatial, 0, 0);
  const std::string auto_pad = op.text("auto_pad", "NOTSET");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!is_same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    Op::refuse("auto_pad '" + auto_pad + "'");
  }
  std::optional<Ints> wanted = op.list("output_shape");
  if (wanted && wanted->size() == spatial + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (wanted && wanted->size() != spatial) Op::refuse("'output_shape' does not fit its operand");
  Ints begin;
  Ints end;
  Shape full{x->shape[0], w->shape[1] * groups};
  for (std::size_t i = 0; i < spatial; ++i) {
    full.push_back((x->shape[i + 2] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 +
                   extra[i]);
    if (wanted || is_same) {
      const std::int64_t size = wanted ? (*wanted)[i] : x->shape[i + 2] * strides[i];
      std::int64_t total = full.back() - size;
      if (total < 0 && extra[i] - total < std::max(strides[i], dilations[i])) {
        // The stated size reaches further than the windows: as output_padding does.
        extra[i] -= total;
        full.back() = size;
        total = 0;
      }
      begin.push_back(auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2);
      end.push_back(total - begin.back());
    } else {
      begin.push_back(auto_pad == "VALID" ? 0 : pads[i]);
      end.push_back(auto_pad == "VALID" ? 0 : pads[i + spatial]);
    }
    if (begin[i] < 0 || end[i] < 0 || begin[i] + end[i] > full.back()) {
      Op::refuse("its result is larger than its windows reach");
    }
  }
  check_elements(x, full);
  std::vector<Value*> operands{x, w};
  if (op.has_input(2)) operands.push_back(op.in(2));
  const bool is_even = begin == end;
  Json attrs{{"stride", strides}, {"padding", is_even ? begin : Ints(spatial, 0)}};
  if (std::any_of(extra.begin(), extra.end(), [](auto p) { return p != 0; })) {
    attrs["output_padding"] = extra;
  }
  if (groups != 1) attrs["groups"] = groups;
  if (std::any_of(dilations.begin(), dilations.end(), [](auto d) { return d != 1; })) {
    attrs["dilation"] = dilations;
  }
  for (std::size_t i = 0; i < spatial && is_even; ++i) full[i + 2] -= begin[i] + end[i];
  Value* value =
      op.emit(conv_name("_transpose", spatial, true), operands, std::move(attrs), x->dtype, full);
  for (std::size_t i = 0; i < spatial && !is_even; ++i) {
    value = op.slice(value, static_cast<std::int64_t>(i) + 2, begin[i], full[i + 2] - end[i]);
  }
  op.set(0, value);
}

}  // namespace npu::onnx
