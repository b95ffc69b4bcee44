// SPDX-License-Identifier: Apache-2.0
// Pooling: an element is a loop over its window.
#include <algorithm>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

/// One spatial dimension of a pooling.
struct Window {
  std::int64_t extent;  ///< of the operand
  std::int64_t result;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t pad;
  std::int64_t dilation;
};

std::int64_t pooled_extent(const Window& window, bool rounds_up) {
  // A window that is cut off at the end counts if it is rounded up, the first one, too.
  const std::int64_t span = window.extent + 2 * window.pad - window.dilation * (window.kernel - 1) -
                            1 + (rounds_up ? window.stride - 1 : 0);
  if (span < 0) return -1;
  std::int64_t result = span / window.stride + 1;
  if (rounds_up && (result - 1) * window.stride >= window.extent + window.pad) --result;
  return result;
}

std::vector<Window> windows_of(Emitter& emitter, const BoundNode& node, TensorId self) {
  const Shape& from = emitter.shape(self);
  const Shape& to = emitter.shape(node.node().outputs[0]);
  const auto rank = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  const std::vector<std::int64_t> kernel = node.integers("kernel_size");
  std::vector<std::int64_t> stride = node.integers("stride");
  const std::vector<std::int64_t> pad = node.integers("padding");
  const bool dilates = node.find("dilation") != nullptr;
  const std::vector<std::int64_t> dilation =
      dilates ? node.integers("dilation") : std::vector<std::int64_t>(rank, 1);
  if (stride.empty()) stride = kernel;
  const auto fits = [rank](const std::vector<std::int64_t>& list, std::int64_t least) {
    return list.size() == rank && std::all_of(list.begin(), list.end(), [least](auto n) {
             return n >= least && n <= INT32_MAX;
           });
  };
  if (from.size() <= rank || from.size() != to.size() || !fits(kernel, 1) || !fits(stride, 1) ||
      !fits(pad, 0) || !fits(dilation, 1)) {
    emitter.refuse(node.node(), "its window does not fit its operand");
  }
  Shape expected = from;
  std::vector<Window> windows;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = from.size() - rank + i;
    windows.push_back({from[d], to[d], kernel[i], stride[i], pad[i], dilation[i]});
    expected[d] = pooled_extent(windows.back(), node.boolean("ceil_mode"));
  }
  emitter.expect_shape(node.node(), 0, expected);
  return windows;
}

std::string minimum(const std::string& a, std::int64_t b) {
  return "min((int)(" + a + "), " + std::to_string(b) + ")";
}

/// Loops over begin..end of each spatial dimension and adds up into `sum`.
void add_range(Emitter& emitter, TensorId self, const Index& index,
               const std::vector<std::pair<std::string, std::string>>& ranges,
               const std::string& sum) {
  Index source = index;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::string place = emitter.fresh("k");
    emitter.open("for (int " + place + " = " + ranges[i].first + "; " + place + " < " +
                 ranges[i].second + "; ++" + place + ")");
    source[source.size() - ranges.size() + i] = place;
  }
  emitter.line(sum + " += " + emitter.element(self, source) + ";");
  for (std::size_t i = 0; i < ranges.size(); ++i) emitter.close();
}

std::string sum_variable(Emitter& emitter, DType dtype) {
  std::string name = emitter.fresh("s");
  emitter.line(value_type(dtype) + " " + name + " = 0;");
  return name;
}

}  // namespace

std::string max_pool_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType dtype = emitter.dtype(self);
  const std::vector<Window> windows = windows_of(emitter, node, self);
  std::string best = emitter.fresh("m");
  emitter.line(value_type(dtype) + " " + best + " = " + lowest(dtype) + ";");
  Index source = index;
  std::string inside = "1";
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    const std::size_t d = index.size() - windows.size() + i;
    const std::string step = emitter.fresh("k");
    const std::string place = emitter.fresh("k");
    emitter.open("for (int " + step + " = 0; " + step + " < " + std::to_string(window.kernel) +
                 "; ++" + step + ")");
    emitter.line("const int " + place + " = (int)" + times(index[d], window.stride) + " - " +
                 std::to_string(window.pad) + " + " + times(step, window.dilation) + ";");
    source[d] = place;
    inside += " && " + place + " >= 0 && " + place + " < " + std::to_string(window.extent);
  }
  emitter.open("if (" + inside + ")");
  const std::string value = emitter.element(self, source);
  const std::string is_nan = is_floating_point(dtype) ? " || " + value + " != " + value : "";
  emitter.line(best + " = " + value + " > " + best + is_nan + " ? " + value + " : " + best + ";");
  emitter.close();
  for (std::size_t i = 0; i < windows.size(); ++i) emitter.close();
  return best;
}

std::string average_pool_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType dtype = emitter.dtype(self);
  if (!is_floating_point(dtype)) emitter.refuse(node.node(), "it needs floats");
  const std::vector<Window> windows = windows_of(emitter, node, self);
  const bool counts_pad = node.boolean("count_include_pad");
  std::vector<std::pair<std::string, std::string>> ranges;
  std::string count = "1";
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    const std::string from = emitter.define(
        "int", "(int)" + times(index[index.size() - windows.size() + i], window.stride) + " - " +
                   std::to_string(window.pad));
    const std::string to = emitter.define(
        "int", minimum(from + " + " + std::to_string(window.kernel), window.extent + window.pad));
    const std::string begin = emitter.define("int", "max(" + from + ", 0)");
    const std::string end = emitter.define("int", minimum(to, window.extent));
    count += counts_pad ? " * (" + to + " - " + from + ")" : " * (" + end + " - " + begin + ")";
    ranges.emplace_back(begin, end);
  }
  if (node.find("divisor_override") != nullptr && !node.is_none("divisor_override")) {
    count = std::to_string(node.integer("divisor_override"));
  }
  const std::string sum = sum_variable(emitter, dtype);
  add_range(emitter, self, index, ranges, sum);
  return "(" + sum + " / (" + count + "))";
}

std::string adaptive_pool_element(Emitter& emitter, const BoundNode& node, int,
                                  const Index& index) {
  const TensorId self = tensor_of(emitter, node, "self");
  const DType dtype = emitter.dtype(self);
  const Shape& from = emitter.shape(self);
  const Shape& to = emitter.shape(node.node().outputs[0]);
  const auto rank = static_cast<std::size_t>(spatial_rank(node.node().op_type));
  const std::vector<std::int64_t> sizes = node.integers("output_size");
  if (!is_floating_point(dtype) || from.size() <= rank || sizes.size() != rank) {
    emitter.refuse(node.node(), "its operands are not supported");
  }
  Shape expected = from;
  std::copy(sizes.begin(), sizes.end(), expected.end() - static_cast<std::ptrdiff_t>(rank));
  emitter.expect_shape(node.node(), 0, expected);
  std::vector<std::pair<std::string, std::string>> ranges;
  std::string count = "1";
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = from.size() - rank + i;
    const std::string place = "(long)" + index[d];  // the products may need it
    const std::string extent = std::to_string(from[d]);
    const std::string parts = std::to_string(to[d]);
    const std::string begin =
        emitter.define("int", "(int)((" + place + " * " + extent + ") / " + parts + ")");
    const std::string end = emitter.define(
        "int", "(int)(((" + place + " + 1) * " + extent + " + " + parts + " - 1) / " + parts + ")");
    count += " * (" + end + " - " + begin + ")";
    ranges.emplace_back(begin, end);
  }
  const std::string sum = sum_variable(emitter, dtype);
  add_range(emitter, self, index, ranges, sum);
  return "(" + sum + " / (" + count + "))";
}

}  // namespace npu::opencl
