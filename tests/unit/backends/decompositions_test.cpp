// SPDX-License-Identifier: Apache-2.0
// Every decomposition on npu and gpu beside libtorch's own kernel of the op, over drawn shapes,
// dtypes and arguments. Elements that are moved and integers have to be the same; floats may differ
// by the roundings of the terms that they are made of.
#include "ops/decompositions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/op_corpus.hpp"
#include "catch.hpp"
#include "conformance/harness/graph_spec.hpp"
#include "conformance/oracle/op_oracle.hpp"
#include "device/device_instance.hpp"
#include "graph_builder.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/tag.hpp"
#include "npu/target/select_devices.hpp"
#include "ops/op_name.hpp"
#include "target/decompose_list.hpp"
#include "test_paths.hpp"

namespace npu::decomposition_test {
namespace {

using conformance::NodeDraw;
using Ints = std::vector<std::int64_t>;

/// A node of one op with the result that PyTorch gives it.
struct Drawn {
  std::string op;
  std::vector<Tensor> operands = {};
  Json attrs = Json::object();
  Shape result = {};
  DType dtype = DType::kFloat32;
  double terms = 0;  ///< roundings of an element; 0: none
};

Tensor drawn(NodeDraw& d, const Shape& shape, DType dtype) {
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const bool is_float = is_floating_point(dtype);
    const double least = dtype == DType::kUInt8 || dtype == DType::kBool ? 0 : -9;
    const double number = static_cast<double>(d.pick(0, 1800)) / 100 + least;
    conformance::set_element(tensor, i,
                             dtype == DType::kBool ? static_cast<double>(d.pick(0, 1))
                             : is_float            ? number / 4
                                                   : std::floor(number));
  }
  return tensor;
}

Tensor numbers(NodeDraw& d, const Shape& shape, std::int64_t limit, DType dtype = DType::kInt64) {
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    conformance::set_element(tensor, i, static_cast<double>(d.pick(0, limit - 1)));
  }
  return tensor;
}

Shape shape_of_rank(NodeDraw& d, std::int64_t least, std::int64_t most, std::int64_t extent = 7) {
  Shape shape(static_cast<std::size_t>(d.pick(least, most)));
  for (auto& each : shape) each = d.pick(1, extent);
  return shape;
}

std::int64_t any_dim(NodeDraw& d, std::int64_t dim, std::int64_t rank) {
  return d.chance(50) ? dim : dim - rank;
}

const DType kAll[] = {DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool, DType::kInt8};
DType any_dtype(NodeDraw& d) { return kAll[d.pick(0, 4)]; }

// ---- Draws, in the order of the table of decompositions ----

void draw_addcmul(NodeDraw& d, Drawn& node) {
  node.dtype = node.op.find("div") != std::string::npos || d.chance(70)
                   ? d.chance(30) ? DType::kBFloat16 : DType::kFloat32
                   : d.one_of({DType::kInt64, DType::kInt32, DType::kInt8});
  node.result = shape_of_rank(d, 0, 4);
  for (int i = 0; i < 3; ++i) {
    Shape shape = i == d.pick(0, 2) ? node.result : d.broadcast_to(node.result);
    node.operands.push_back(drawn(d, i == 0 ? node.result : shape, node.dtype));
  }
  if (node.op.find("div") != std::string::npos) {
    Tensor& by = node.operands[2];
    for (std::int64_t i = 0; i < by.element_count(); ++i) {
      conformance::set_element(by, i, 0.5 + static_cast<double>(d.pick(0, 20)) / 8);
    }
  }
  if (d.chance(50)) {
    node.attrs["value"] = is_floating_point(node.dtype) ? d.one_of<Json>({0.5, -2.0, 0.1, 3, 0})
                                                        : d.one_of<Json>({2, -3, 0});
  }
  node.terms = 4;
}

void draw_extremum(NodeDraw& d, Drawn& node) {
  node.dtype = any_dtype(d);
  node.result = shape_of_rank(d, 0, 4);
  node.operands = {drawn(d, node.result, node.dtype),
                   drawn(d, d.broadcast_to(node.result), node.dtype)};
  if (d.chance(50)) std::swap(node.operands[0], node.operands[1]);
  if (node.dtype == DType::kFloat32 && d.chance(50)) {
    conformance::set_element(node.operands[0], 0, std::numeric_limits<double>::quiet_NaN());
  }
}

void draw_diff(NodeDraw& d, Drawn& node) {
  node.dtype = any_dtype(d);
  Shape shape = shape_of_rank(d, 1, 3);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  std::int64_t& length = shape[static_cast<std::size_t>(dim)];
  length += 3;
  const Tensor self = drawn(d, shape, node.dtype);
  const std::int64_t n = d.pick(0, 3);
  node.operands = {self};
  std::int64_t all = length;
  const bool has_append = d.chance(30);
  if (d.chance(40)) {
    Shape part = shape;
    part[static_cast<std::size_t>(dim)] = d.pick(1, 2);
    node.operands.push_back(drawn(d, part, node.dtype));
    if (has_append) node.attrs["_none_args"] = {"prepend"};
    if (n > 0) all += part[static_cast<std::size_t>(dim)];
  }
  node.attrs["n"] = n;
  node.attrs["dim"] = any_dim(d, dim, rank);
  node.result = shape;
  node.result[static_cast<std::size_t>(dim)] = all - n;
  node.terms = 4;
}

void draw_in_dtype(NodeDraw& d, Drawn& node) {
  const Shape shape = shape_of_rank(d, 1, 3);
  const std::string name(functional_name(node.op));
  const bool is_mean = name == "mean";
  node.dtype = is_mean || d.chance(50) ? DType::kFloat32 : d.one_of({DType::kInt32, DType::kInt64});
  const DType from = d.one_of({DType::kFloat32, DType::kInt64, DType::kInt32, DType::kInt8});
  node.operands = {drawn(d, shape, from)};
  node.attrs["dtype"] = "torch." + std::string(dtype_name(node.dtype));
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  node.result = shape;
  node.terms = 1000;
  if (name == "cumsum") {
    node.attrs["dim"] = any_dim(d, dim, rank);
    return;
  }
  if (node.op.ends_with(".default")) {
    node.result = {};
    return;
  }
  const bool is_list = name != "prod";
  node.attrs["dim"] = is_list ? Json({any_dim(d, dim, rank)}) : Json(any_dim(d, dim, rank));
  const bool keep = d.chance(50);
  node.attrs["keepdim"] = keep;
  if (keep) {
    node.result[static_cast<std::size_t>(dim)] = 1;
  } else {
    node.result.erase(node.result.begin() + dim);
  }
}

void draw_norm(NodeDraw& d, Drawn& node) {
  const Shape shape = shape_of_rank(d, 1, 4);
  const std::int64_t rank = std::ssize(shape);
  node.operands = {drawn(d, shape, DType::kFloat32)};
  node.attrs["ord"] = d.one_of<Json>({0, 1, 2, 3.0, 0.5, "inf", "-inf"});
  const bool keep = d.chance(50);
  node.attrs["keepdim"] = keep;
  std::set<std::int64_t> dims;
  if (d.chance(80)) {
    for (std::int64_t i = d.pick(1, rank); i > 0; --i) dims.insert(d.pick(0, rank - 1));
    for (const std::int64_t dim : dims) node.attrs["dim"].push_back(any_dim(d, dim, rank));
  } else {
    for (std::int64_t i = 0; i < rank; ++i) dims.insert(i);
  }
  for (std::int64_t i = 0; i < rank; ++i) {
    if (dims.contains(i) && keep) node.result.push_back(1);
    if (!dims.contains(i)) node.result.push_back(shape[static_cast<std::size_t>(i)]);
  }
  node.terms = 4000;
}

void draw_histc(NodeDraw& d, Drawn& node) {
  Tensor self = drawn(d, shape_of_rank(d, 1, 3, 20), DType::kFloat32);
  for (std::int64_t i = 0; i < self.element_count(); ++i) {
    if (d.chance(40)) conformance::set_element(self, i, static_cast<double>(d.pick(-3, 4)));
  }
  node.operands = {self};
  // Edges that floats hold: at others libtorch 1.13 counts some elements in the bin beside.
  const std::int64_t bins = d.one_of({1, 2, 4, 8}), least = d.pick(-2, 0);
  node.attrs = {{"bins", bins}, {"min", least}, {"max", least + d.one_of({1, 2, 4})}};
  node.result = {bins};
}

void draw_copy(NodeDraw& d, Drawn& node) {
  const DType from = any_dtype(d);
  node.result = shape_of_rank(d, 0, 3);
  node.operands = {drawn(d, node.result, from)};
  node.dtype = from;
  if (node.op == "aten.to.device") {
    node.dtype = any_dtype(d);
    node.attrs = {{"device", "cpu"}, {"dtype", "torch." + std::string(dtype_name(node.dtype))}};
  }
  if (node.op == "aten.to.other") {
    node.dtype = any_dtype(d);
    node.operands.push_back(drawn(d, {2}, node.dtype));
  }
}

void draw_empty(NodeDraw& d, Drawn& node) {
  node.result = shape_of_rank(d, 1, 3);
  if (node.op != "aten.empty.memory_format") node.operands = {drawn(d, node.result, node.dtype)};
  if (node.op != "aten.empty_like.default") node.attrs["size"] = node.result;
}

void draw_cat(NodeDraw& d, Drawn& node) {
  Shape shape = shape_of_rank(d, 1, 3);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  std::int64_t& length = shape[static_cast<std::size_t>(dim)];
  std::int64_t all = 0;
  const std::int64_t count = d.pick(1, 3), empty = d.pick(0, count);
  for (std::int64_t i = 0; i <= count; ++i) {
    length = i == empty ? 0 : d.pick(1, 4);
    all += length;
    const bool is_old = i == empty && d.chance(50);
    node.operands.push_back(drawn(d, is_old ? Shape{0} : shape, DType::kFloat32));
  }
  length = all;
  node.result = shape;
  node.attrs = {{"dim", any_dim(d, dim, rank)}, {"_tensor_list_sizes", {count + 1}}};
}

void draw_unfold(NodeDraw& d, Drawn& node) {
  node.dtype = any_dtype(d);
  Shape shape = shape_of_rank(d, 1, 3);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  const std::int64_t size = d.pick(1, 4), step = d.chance(40) ? size : d.pick(1, 5);
  std::int64_t& length = shape[static_cast<std::size_t>(dim)];
  length += size;
  node.operands = {drawn(d, shape, node.dtype)};
  node.attrs = {{"dimension", any_dim(d, dim, rank)}, {"size", size}, {"step", step}};
  length = (length - size) / step + 1;
  node.result = shape;
  node.result.push_back(size);
}

/// Two dimensions of windows: how many there are.
Ints draw_windows(NodeDraw& d, Drawn& node, const Ints& image, const Ints& kernel) {
  Ints dilation, padding, stride, count;
  for (std::size_t i = 0; i < 2; ++i) {
    stride.push_back(d.pick(1, 3));
    padding.push_back(d.pick(0, 2));
    dilation.push_back(d.pick(1, 2));
    count.push_back((image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] +
                    1);
  }
  node.attrs = {
      {"kernel_size", kernel}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}};
  return count;
}

void draw_im2col(NodeDraw& d, Drawn& node) {
  const bool folds = node.op == "aten.col2im.default";
  const Ints image{d.pick(5, 9), d.pick(5, 9)}, kernel{d.pick(1, 3), d.pick(1, 3)};
  const Ints count = draw_windows(d, node, image, kernel);
  const std::int64_t channels = d.pick(1, 3);
  Shape whole{channels, image[0], image[1]};
  Shape columns{channels * kernel[0] * kernel[1], count[0] * count[1]};
  if (d.chance(60)) {
    const std::int64_t images = d.pick(1, 2);
    whole.insert(whole.begin(), images);
    columns.insert(columns.begin(), images);
  }
  node.operands = {drawn(d, folds ? columns : whole, DType::kFloat32)};
  node.result = folds ? whole : columns;
  if (folds) node.attrs["output_size"] = image;
  if (folds) node.terms = 9;
}

void draw_pad(NodeDraw& d, Drawn& node) {
  const std::string name(functional_name(node.op));
  std::int64_t count = d.pick(1, 3);
  std::string mode = d.one_of<const char*>({"reflect", "replicate", "circular"});
  if (name != "pad") {
    count = name[name.size() - 2] - '0';
    mode = name.starts_with("refl") ? "reflect" : "replicate";
  } else {
    node.attrs["mode"] = mode;
  }
  // As pad has it, and the others: dimensions in front of those that are padded.
  Shape shape = shape_of_rank(d, count + 1, count + 2, 5);
  if (name == "pad" || std::ssize(shape) > count + 1) shape.resize(index_of(count + 2), 2);
  Ints pad;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t& length = shape[index_of(std::ssize(shape) - 1 - i)];
    length += 3;
    for (int side = 0; side < 2; ++side) pad.push_back(d.pick(mode == "circular" ? 0 : -1, 3));
  }
  node.operands = {drawn(d, shape, DType::kFloat32)};
  node.result = shape;
  for (std::int64_t i = 0; i < count; ++i) {
    node.result[index_of(std::ssize(shape) - 1 - i)] +=
        pad[index_of(2 * i)] + pad[index_of(2 * i + 1)];
  }
  node.attrs[name == "pad" ? "pad" : "padding"] = pad;
}

void draw_one_hot(NodeDraw& d, Drawn& node) {
  node.result = shape_of_rank(d, 0, 3);
  const std::int64_t classes = d.pick(1, 9);
  node.operands = {numbers(d, node.result, classes)};
  node.attrs["num_classes"] = classes;
  node.result.push_back(classes);
  node.dtype = DType::kInt64;
}

void draw_scatter(NodeDraw& d, Drawn& node) {
  node.dtype = d.one_of({DType::kFloat32, DType::kFloat32, DType::kInt64, DType::kInt32});
  const Shape shape = shape_of_rank(d, 1, 3);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(0, rank - 1);
  Shape index = shape;
  index[static_cast<std::size_t>(dim)] = d.pick(1, 12);
  Shape source = index;
  if (d.chance(50) || node.op.find("scatter_add") != std::string::npos) {
    for (auto& extent : source) extent += d.pick(0, 2);
  }
  node.operands = {drawn(d, shape, node.dtype),
                   numbers(d, index, shape[static_cast<std::size_t>(dim)]),
                   drawn(d, source, node.dtype)};
  node.attrs["dim"] = any_dim(d, dim, rank);
  if (node.op.find("reduce") != std::string::npos) {
    node.attrs["reduce"] = d.one_of<const char*>({"sum", "mean", "amax", "amin"});
    node.attrs["include_self"] = d.chance(50);
  }
  node.result = shape;
  node.terms = 16;
}

void draw_weight_norm(NodeDraw& d, Drawn& node) {
  node.result = shape_of_rank(d, 2, 4);
  const std::int64_t rank = std::ssize(node.result), dim = d.chance(50) ? 0 : rank - 1;
  Shape length(node.result.size(), 1);
  length[static_cast<std::size_t>(dim)] = node.result[static_cast<std::size_t>(dim)];
  node.operands = {drawn(d, node.result, DType::kFloat32), drawn(d, length, DType::kFloat32)};
  node.attrs["dim"] = dim;
  node.terms = 400;
}

void draw_grouped_product(NodeDraw& d, Drawn& node) {
  const std::int64_t groups = d.pick(1, 4), rows = d.pick(1, 40), inner = d.pick(1, 40),
                     columns = d.pick(1, 40);
  const bool has_batches = node.op == "aten._grouped_mm.default";
  node.operands = {
      drawn(d, has_batches ? Shape{groups, rows, inner} : Shape{rows, inner}, DType::kFloat32),
      drawn(d, {groups, inner, columns}, DType::kFloat32)};
  node.result = has_batches ? Shape{groups, rows, columns} : Shape{rows, columns};
  node.terms = 41.0 * 6;
  if (has_batches) return;
  Ints ends;
  for (std::int64_t g = 0; g < groups; ++g) ends.push_back(d.pick(0, rows));
  std::sort(ends.begin(), ends.end());
  Tensor offsets(DType::kInt32, {groups});
  for (std::int64_t g = 0; g < groups; ++g) {
    conformance::set_element(offsets, g, static_cast<double>(ends[index_of(g)]));
  }
  node.operands.push_back(offsets);
}

void draw_tail(NodeDraw& d, Drawn& node) {
  const auto* const fill = d.one_of<const char*>({"zero", "lowest", "edge"});
  node.dtype = std::string_view(fill) == "lowest" ? DType::kFloat32 : any_dtype(d);
  node.result = shape_of_rank(d, 1, 4);
  const std::int64_t dim = d.pick(0, std::ssize(node.result) - 1);
  const std::int64_t rows = node.result[index_of(dim)];
  Tensor valid(DType::kInt64, {});
  *valid.as_mutable<std::int64_t>() = d.pick(std::string_view(fill) == "edge" ? 1 : 0, rows);
  node.operands = {drawn(d, node.result, node.dtype), valid};
  node.attrs = {{"dim", any_dim(d, dim, std::ssize(node.result))}, {"fill", fill}};
}

void draw_length_mask(NodeDraw& d, Drawn& node) {
  const auto* const operands = d.one_of<const char*>({"positions", "valid", "both"});
  const bool has_positions = std::string_view(operands) != "valid";
  const std::int64_t keys = d.pick(1, 40);
  const std::int64_t rows = has_positions ? d.pick(1, 9) : 1;
  node.dtype = DType::kBool;
  node.result = {1, 1, rows, keys};
  node.attrs = {{"operands", operands}, {"keys", keys}};
  if (has_positions) {
    node.operands.push_back(numbers(d, {rows}, keys + 5));
    const bool is_causal = d.chance(60);
    if (is_causal || d.chance(30)) node.attrs["causal"] = is_causal;
    if (!is_causal || d.chance(50)) node.attrs["window"] = d.pick(1, keys + 3);
  }
  if (std::string_view(operands) != "positions") {
    node.operands.push_back(numbers(d, {}, keys + 2));
  }
}

struct DrawRow {
  std::string_view family;
  void (*draw)(NodeDraw&, Drawn&);
};

constexpr DrawRow kDraws[] = {{"_grouped_mm", draw_grouped_product},
                              {"_weight_norm", draw_weight_norm},
                              {"addcdiv", draw_addcmul},
                              {"addcmul", draw_addcmul},
                              {"cat", draw_cat},
                              {"col2im", draw_im2col},
                              {"concat", draw_cat},
                              {"cumsum", draw_in_dtype},
                              {"diff", draw_diff},
                              {"empty", draw_empty},
                              {"empty_like", draw_empty},
                              {"histc", draw_histc},
                              {"im2col", draw_im2col},
                              {"lift_fresh", draw_copy},
                              {"lift_fresh_copy", draw_copy},
                              {"linalg_vector_norm", draw_norm},
                              {"max", draw_extremum},
                              {"mean", draw_in_dtype},
                              {"min", draw_extremum},
                              {"new_empty", draw_empty},
                              {"one_hot", draw_one_hot},
                              {"pad", draw_pad},
                              {"prod", draw_in_dtype},
                              {"reflection_pad1d", draw_pad},
                              {"reflection_pad2d", draw_pad},
                              {"reflection_pad3d", draw_pad},
                              {"replication_pad1d", draw_pad},
                              {"replication_pad2d", draw_pad},
                              {"replication_pad3d", draw_pad},
                              {"scatter_add", draw_scatter},
                              {"scatter_reduce", draw_scatter},
                              {"sum", draw_in_dtype},
                              {"to", draw_copy},
                              {"unfold", draw_unfold},
                              {"npu.length_mask", draw_length_mask},
                              {"npu.tail", draw_tail},
                              {"", draw_grouped_product}};

// ---- Running ----

test::GraphBuilder document_of(const Drawn& node) {
  test::GraphBuilder graph;
  std::vector<std::string> names;
  for (const Tensor& operand : node.operands) {
    names.push_back("x" + std::to_string(names.size()));
    graph.input(names.back(), operand.shape(), std::string(dtype_name(operand.dtype())));
  }
  graph.node("y", node.op, names, node.result, node.attrs, std::string(dtype_name(node.dtype)));
  return graph.output("y");
}

struct Ran {
  Tensor result;
  bool decomposed = false;
};

Ran run_on(const Drawn& node, const Target& target) {
  Graph graph = document_of(node).build();
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  REQUIRE(test::errors_of(diagnostics).empty());
  const PartitionPlan plan = partition_graph(graph, {}, diagnostics).plan;
  Ran ran;
  ran.decomposed = !tag_report(graph, target).decomposed.empty();
  for (const Node& each : graph.nodes()) {
    if (ran.decomposed) CHECK(each.device == target.devices.front().name);
  }
  std::vector<Tensor> weights(graph.tensors().size());
  ran.result = test::run_graph(graph, plan, target, weights, node.operands).at(0);
  return ran;
}

double size_of(const Tensor& tensor) {
  double most = 1;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const double size = std::abs(tensor.value_as_double(i));
    if (std::isfinite(size)) most = std::max(most, size);
  }
  return most;
}

void compare(const Drawn& node, const Tensor& found, const Tensor& wanted) {
  REQUIRE(found.shape() == wanted.shape());
  REQUIRE(found.dtype() == wanted.dtype());
  const bool is_exact = node.terms == 0 || !is_floating_point(node.dtype);
  const double roundoff = node.dtype == DType::kBFloat16 ? 0x1p-8 : 0x1p-24;
  const double bound = is_exact ? 0 : node.terms * roundoff * size_of(wanted);
  for (std::int64_t i = 0; i < wanted.element_count(); ++i) {
    const double a = found.value_as_double(i), b = wanted.value_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    INFO("element " << i << ": " << a << " for " << b);
    if (std::abs(a - b) <= bound) continue;
    FAIL_CHECK("differs by " << a - b);
    return;
  }
}

bool is_available(const char* backend) {
  try {
    DeviceInstance::open(Backend::load(backend), "{}");
    return true;
  } catch (const Error& error) {
    WARN(backend << " is left out: " << error.what());
    return false;
  }
}

}  // namespace

TEST_CASE("decompositions give what libtorch's kernels give", "[decompositions]") {
  ::setenv("NPU_BACKEND_PATH", test::backend_dir(), 1);
  std::vector<Target> targets;
  targets.push_back(load_target("host"));
  if (is_available("opencl")) targets.push_back(load_target("opencl"));
  const Target cpu = select_devices(load_target("host"), {"cpu"}, {});
  const char* cases = std::getenv("NPU_DECOMPOSITION_CASES");
  const int count = cases == nullptr ? 8 : std::atoi(cases);
  const std::vector<std::string> by_parts = decompose_list(targets.front(), "npu");
  conformance::Random random(1);
  int on_gpu = 0;
  for (const std::string_view op : decomposed_ops()) {
    const auto* row = std::find_if(std::begin(kDraws), std::end(kDraws), [&](const DrawRow& each) {
      return each.family == (op.starts_with("npu.") ? op : functional_name(op));
    });
    CAPTURE(op);
    REQUIRE(row != std::end(kDraws));
    std::vector<int> decomposed(targets.size(), 0);
    for (int i = 0; i < count; ++i) {
      Drawn node{.op = std::string(op)};
      NodeDraw draw(random, node.op, DType::kFloat32);
      row->draw(draw, node);
      INFO(document_of(node).text());
      const bool is_defined = functional_name(op).find("empty") == std::string_view::npos;
      std::optional<Tensor> wanted;
      if (is_defined) wanted = run_on(node, cpu).result;
      // Drivers take long to compile what a target of OpenCL runs.
      for (std::size_t t = 0; t < (i == 0 ? targets.size() : 1); ++t) {
        CAPTURE(targets[t].name);
        const Ran ran = run_on(node, targets[t]);
        decomposed[t] += ran.decomposed ? 1 : 0;
        if (wanted) compare(node, ran.result, *wanted);
      }
    }
    // What has a kernel on npu is drawn for those that have none.
    const bool has_parts =
        std::any_of(by_parts.begin(), by_parts.end(),
                    [&](const std::string& type) { return op.starts_with(type); });
    CHECK((decomposed[0] > 0) == has_parts);
    if (targets.size() > 1) on_gpu += decomposed[1];
  }
  // Some of the nodes that are drawn are run whole there.
  if (targets.size() > 1) CHECK(on_gpu > 25);
}

TEST_CASE("rows behind the valid ones, on a device without npu.tail", "[decompositions]") {
  ::setenv("NPU_BACKEND_PATH", test::backend_dir(), 1);
  Json json = *load_target("host").json;
  for (Json& device : json["devices"]) {
    if (device["name"] != "npu") continue;
    device["decompose"].push_back("npu.tail");
    Json& rules = device["ops"];
    rules.erase(
        std::remove_if(rules.begin(), rules.end(),
                       [](const Json& rule) { return rule["types"] == Json::array({"npu.tail"}); }),
        rules.end());
  }
  const Target plain = parse_target(json, "plain.json");
  const Target cpu = select_devices(load_target("host"), {"cpu"}, {});
  conformance::Random random(2);
  int decomposed = 0;
  for (int i = 0; i < 40; ++i) {
    Drawn node{.op = "npu.tail"};
    NodeDraw draw(random, node.op, DType::kFloat32);
    draw_tail(draw, node);
    INFO(document_of(node).text());
    const Ran ran = run_on(node, plain);
    decomposed += ran.decomposed ? 1 : 0;
    compare(node, ran.result, run_on(node, cpu).result);
  }
  CHECK(decomposed > 30);
}

}  // namespace npu::decomposition_test
