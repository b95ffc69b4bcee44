// SPDX-License-Identifier: Apache-2.0
// The nodes that a backend is asked about when a target is written for it.
//
// What a rule of a target can say (ranks, numbers of operands, values of arguments, predicates) is
// what the samples of an op differ in, so that answers can be told apart by rules. Shapes are
// small: nothing is run.
#include "profile/backend_questions.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

using Samples = std::vector<OpSample>;

/// The same node with its operands as inputs, and with those from `first` on as weights.
void add_both(Samples& samples, const OpSample& sample, std::size_t first) {
  samples.push_back(sample);
  samples.push_back(sample);
  samples.back().first_weight = first;
}

/// A convolution of an image of 8 by 9, or a line of 9.
struct ConvolutionSample {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::int64_t kernel = 3;
  bool has_bias = true;
};

OpSample convolution_sample(const ConvolutionSample& c, std::size_t dims) {
  constexpr std::int64_t kChannels = 4;
  constexpr std::int64_t kFilters = 8;
  Shape image{2, kChannels};
  Shape filter{kFilters, kChannels / c.groups};
  Shape result{2, kFilters};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t size = d + 1 == dims ? 9 : 8;
    image.push_back(size);
    filter.push_back(c.kernel);
    result.push_back((size + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1);
  }
  OpSample sample{{image, filter}, result};
  if (c.has_bias) sample.operands.push_back({kFilters});
  const auto list = [&](std::int64_t value) { return std::vector<std::int64_t>(dims, value); };
  sample.attrs = {{"stride", list(c.stride)},
                  {"padding", list(c.padding)},
                  {"dilation", list(c.dilation)},
                  {"groups", c.groups}};
  return sample;
}

OpQuestion convolutions(const std::string& op, std::size_t dims) {
  OpQuestion question{op, false, {}};
  for (const ConvolutionSample& c :
       {ConvolutionSample{}, ConvolutionSample{.has_bias = false}, ConvolutionSample{.kernel = 1},
        ConvolutionSample{.padding = 1}, ConvolutionSample{.stride = 2},
        ConvolutionSample{.dilation = 2}, ConvolutionSample{.groups = 2},
        ConvolutionSample{.groups = 4}}) {
    add_both(question.samples, convolution_sample(c, dims), 1);
  }
  return question;
}

OpQuestion linear() {
  OpQuestion question{"aten.linear.default", false, {}};
  for (const Shape& rows : {Shape{}, Shape{3}, Shape{2, 3}, Shape{2, 3, 2}}) {
    OpSample sample{{rows, {5, 4}}, rows};
    sample.operands.front().push_back(4);
    sample.result.push_back(5);
    add_both(question.samples, sample, 1);
    sample.operands.push_back({5});
    add_both(question.samples, sample, 1);
  }
  return question;
}

OpQuestion addmm() {
  OpQuestion question{"aten.addmm.default", false, {}};
  add_both(question.samples, {{{5}, {3, 4}, {4, 5}}, {3, 5}}, 2);
  add_both(question.samples, {{{3, 5}, {3, 4}, {4, 5}}, {3, 5}}, 2);
  return question;
}

OpQuestion batch_norm() {
  OpQuestion question{"aten.batch_norm.default", false, {}};
  const Json attrs = {
      {"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", false}};
  for (const Shape& shape :
       {Shape{2, 4}, Shape{2, 4, 5}, Shape{2, 4, 5, 6}, Shape{2, 4, 3, 2, 5}}) {
    add_both(question.samples, {{shape, {4}, {4}, {4}, {4}}, shape, attrs}, 1);
  }
  return question;
}

OpQuestion layer_norm() {
  OpQuestion question{"aten.layer_norm.default", false, {}};
  const Json last = {{"normalized_shape", {4}}, {"eps", 1e-5}};
  const Json two = {{"normalized_shape", {3, 4}}, {"eps", 1e-5}};
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 4}, Shape{1, 2, 3, 4}}) {
    add_both(question.samples, {{shape, {4}, {4}}, shape, last}, 1);
    question.samples.push_back({{shape}, shape, last});
  }
  add_both(question.samples, {{{2, 3, 4}, {3, 4}, {3, 4}}, {2, 3, 4}, two}, 1);
  return question;
}

OpQuestion pooling(const std::string& op) {
  OpQuestion question{op, false, {}};
  const auto add = [&](std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil,
                       const Shape& result) {
    question.samples.push_back({{{2, 4, 8, 9}},
                                {2, 4, result[0], result[1]},
                                {{"kernel_size", {kernel, kernel}},
                                 {"stride", {stride, stride}},
                                 {"padding", {padding, padding}},
                                 {"ceil_mode", ceil}}});
  };
  add(2, 2, 0, false, {4, 4});
  add(3, 2, 1, false, {4, 5});
  add(3, 1, 0, false, {6, 7});
  add(2, 2, 0, true, {4, 5});
  return question;
}

/// Sums and the like over one dimension, or the last two.
OpQuestion reductions(const std::string& op) {
  OpQuestion question{op, false, {}};
  const auto add = [&](const Shape& shape, const std::vector<std::int64_t>& dims, bool keeps) {
    Shape result;
    for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
      const bool is_joined = std::find(dims.begin(), dims.end(), d) != dims.end();
      if (!is_joined) result.push_back(shape[static_cast<std::size_t>(d)]);
      if (is_joined && keeps) result.push_back(1);
    }
    question.samples.push_back({{shape}, result, {{"dim", dims}, {"keepdim", keeps}}});
  };
  for (const bool keeps : {false, true}) {
    add({3, 4}, {1}, keeps);
    add({3, 4}, {0}, keeps);
    add({2, 3, 4}, {2}, keeps);
    add({2, 4, 5, 6}, {2, 3}, keeps);
    add({2, 4, 5, 6}, {1}, keeps);
  }
  return question;
}

OpQuestion softmax(const std::string& op) {
  OpQuestion question{op, false, {}};
  for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}, Shape{2, 2, 3, 5}}) {
    const std::int64_t last = std::ssize(shape) - 1;
    question.samples.push_back({{shape}, shape, {{"dim", last}}});
    question.samples.push_back({{shape}, shape, {{"dim", -1}}});
    if (last > 0) question.samples.push_back({{shape}, shape, {{"dim", last - 1}}});
  }
  return question;
}

OpQuestion permute() {
  return {"aten.permute.default",
          false,
          {{{{3, 4}}, {4, 3}, {{"dims", {1, 0}}}},
           {{{2, 3, 4}}, {2, 4, 3}, {{"dims", {0, 2, 1}}}},
           {{{2, 3, 4}}, {4, 3, 2}, {{"dims", {2, 1, 0}}}},
           {{{2, 3, 4, 5}}, {2, 4, 3, 5}, {{"dims", {0, 2, 1, 3}}}},
           {{{2, 3, 4, 5}}, {2, 4, 5, 3}, {{"dims", {0, 2, 3, 1}}}},
           {{{2, 3, 1, 4, 5}}, {2, 1, 3, 5, 4}, {{"dims", {0, 2, 1, 4, 3}}}}}};
}

OpQuestion concatenations() {
  OpQuestion question{"aten.cat.default", false, {}};
  const auto add = [&](std::vector<Shape> operands, Shape result, std::int64_t dim) {
    const auto count = static_cast<std::int64_t>(operands.size());
    question.samples.push_back(
        {std::move(operands), std::move(result), {{"dim", dim}, {"_tensor_list_sizes", {count}}}});
  };
  add({{3}, {4}}, {7}, 0);
  add({{3, 4}, {3, 2}}, {3, 6}, 1);
  add({{3, 4}, {2, 4}}, {5, 4}, 0);
  add({{2, 3, 4}, {2, 1, 4}, {2, 2, 4}}, {2, 6, 4}, 1);
  add({{2, 3, 4, 5}, {2, 1, 4, 5}}, {2, 4, 4, 5}, 1);
  return question;
}

void add_products(std::vector<OpQuestion>& questions) {
  questions.push_back(convolutions("aten.conv2d.default", 2));
  questions.push_back(convolutions("aten.conv1d.default", 1));
  questions.push_back(linear());
  questions.push_back(addmm());
  questions.push_back({"aten.mm.default", false, {}});
  add_both(questions.back().samples, {{{3, 4}, {4, 5}}, {3, 5}}, 1);
  questions.push_back({"aten.bmm.default", false, {}});
  add_both(questions.back().samples, {{{2, 3, 4}, {2, 4, 5}}, {2, 3, 5}}, 1);
  questions.push_back({"aten.matmul.default", false, {}});
  add_both(questions.back().samples, {{{3, 4}, {4, 5}}, {3, 5}}, 1);
  add_both(questions.back().samples, {{{2, 3, 4}, {4, 5}}, {2, 3, 5}}, 1);
  add_both(questions.back().samples, {{{2, 2, 3, 4}, {2, 2, 4, 5}}, {2, 2, 3, 5}}, 1);
}

void add_movement(std::vector<OpQuestion>& questions) {
  questions.push_back(permute());
  questions.push_back({"aten.transpose.int",
                       false,
                       {{{{3, 4}}, {4, 3}, {{"dim0", 0}, {"dim1", 1}}},
                        {{{2, 3, 4}}, {2, 4, 3}, {{"dim0", 1}, {"dim1", 2}}},
                        {{{2, 3, 4, 5}}, {2, 4, 3, 5}, {{"dim0", 1}, {"dim1", 2}}}}});
  questions.push_back({"aten.t.default", false, {{{{3, 4}}, {4, 3}}}});
  questions.push_back(concatenations());
  for (const auto& [op, key] :
       {std::pair("aten.view.default", "size"), std::pair("aten.reshape.default", "shape")}) {
    questions.push_back({op,
                         false,
                         {{{{3, 4}}, {12}, {{key, {12}}}},
                          {{{2, 3, 4}}, {2, 12}, {{key, {2, 12}}}},
                          {{{2, 3, 4, 5}}, {2, 60}, {{key, {2, -1}}}},
                          {{{2, 12}}, {2, 3, 4}, {{key, {2, 3, 4}}}}}});
  }
  questions.push_back({"aten.flatten.using_ints",
                       false,
                       {{{{2, 3, 4}}, {2, 12}, {{"start_dim", 1}, {"end_dim", -1}}},
                        {{{2, 3, 4, 5}}, {2, 60}, {{"start_dim", 1}, {"end_dim", -1}}},
                        {{{2, 3, 4}}, {24}, {{"start_dim", 0}, {"end_dim", -1}}}}});
  questions.push_back(
      {"aten.unsqueeze.default",
       false,
       {{{{3, 4}}, {1, 3, 4}, {{"dim", 0}}}, {{{3, 4}}, {3, 4, 1}, {{"dim", -1}}}}});
  questions.push_back({"aten.select.int",
                       false,
                       {{{{3, 4}}, {4}, {{"dim", 0}, {"index", 1}}},
                        {{{2, 3, 4}}, {2, 4}, {{"dim", 1}, {"index", 2}}}}});
  questions.push_back(
      {"aten.slice.Tensor",
       false,
       {{{{3, 8}}, {2, 8}, {{"dim", 0}, {"start", 1}, {"end", 3}, {"step", 1}}},
        {{{3, 8}}, {3, 4}, {{"dim", 1}, {"start", 0}, {"end", 8}, {"step", 2}}},
        {{{2, 3, 8}}, {2, 3, 5}, {{"dim", 2}, {"start", 3}, {"end", 8}, {"step", 1}}}}});
  questions.push_back(
      {"aten.contiguous.default", false, {{{{3, 4}}, {3, 4}}, {{{2, 3, 4, 5}}, {2, 3, 4, 5}}}});
}

bool gives_bool(std::string_view op) {
  constexpr std::array<std::string_view, 8> kBegins{"aten.eq.",      "aten.ne.", "aten.lt.",
                                                    "aten.le.",      "aten.gt.", "aten.ge.",
                                                    "aten.logical_", "aten.is"};
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return op.starts_with(begin); });
}

/// Samples of an op of one or two tensors, with numbers for what else it needs; nothing for an op
/// that needs anything else.
std::optional<OpQuestion> elementwise(const OpInfo& info) {
  std::size_t tensors = 0;
  Json numbers = Json::object();
  for (const SchemaArgument& argument : info.schema.arguments) {
    if (argument.default_value || argument.optional) continue;
    const bool is_number =
        argument.type == ArgumentType::kScalar || argument.type == ArgumentType::kFloat;
    if (argument.type == ArgumentType::kTensor) {
      // A number in front of the tensors is no operand of a chain.
      if (!numbers.empty()) return std::nullopt;
      ++tensors;
    } else if (is_number) {
      numbers[argument.name] = 2;
    } else {
      return std::nullopt;
    }
  }
  if (tensors == 0 || tensors > 2 || info.schema.result_count != 1) return std::nullopt;
  OpQuestion question{std::string(info.op_type), gives_bool(info.op_type), {}};
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{2, 3, 4, 5},
                             Shape{2, 1, 3, 2, 3}, Shape{}, Shape{0, 3}}) {
    question.samples.push_back({std::vector<Shape>(tensors, shape), shape, numbers});
  }
  if (tensors == 1) return question;
  question.samples.push_back({{{3, 5}, {5}}, {3, 5}, numbers});
  question.samples.push_back({{{2, 3, 4, 5}, {1, 3, 1, 1}}, {2, 3, 4, 5}, numbers});
  if (!info.is_in_place) question.samples.push_back({{{3, 1}, {1, 5}}, {3, 5}, numbers});
  // A number in place of the second tensor.
  Json second = numbers;
  std::size_t seen = 0;
  for (const SchemaArgument& argument : info.schema.arguments) {
    if (argument.type == ArgumentType::kTensor && ++seen == 2) second[argument.name] = 2;
  }
  question.samples.push_back({{{3, 5}}, {3, 5}, second});
  return question;
}

}  // namespace

std::vector<OpQuestion> backend_questions() {
  std::vector<OpQuestion> questions;
  add_products(questions);
  questions.push_back(batch_norm());
  questions.push_back(layer_norm());
  questions.push_back(pooling("aten.max_pool2d.default"));
  questions.push_back(pooling("aten.avg_pool2d.default"));
  questions.push_back({"aten.adaptive_avg_pool2d.default",
                       false,
                       {{{{2, 4, 8, 8}}, {2, 4, 1, 1}, {{"output_size", {1, 1}}}},
                        {{{2, 4, 8, 8}}, {2, 4, 2, 2}, {{"output_size", {2, 2}}}}}});
  for (const char* op : {"aten.mean.dim", "aten.sum.dim_IntList", "aten.amax.default"}) {
    questions.push_back(reductions(op));
  }
  for (const char* op : {"aten.softmax.int", "aten.log_softmax.int"}) {
    questions.push_back(softmax(op));
  }
  add_movement(questions);
  for (const std::string_view op : catalogued_ops()) {
    const OpInfo& info = *find_op(op);
    if (info.kind != OpKind::kElementwise && info.kind != OpKind::kBroadcast) continue;
    // What chooses by a mask has operands of two dtypes.
    if (info.is_alias || op.starts_with("aten.where.") || op.starts_with("aten.masked_fill")) {
      continue;
    }
    if (auto question = elementwise(info)) questions.push_back(*std::move(question));
  }
  return questions;
}

conformance::GraphSpec question_graph(const std::string& op, bool gives_bool_result, DType dtype,
                                      std::span<const OpSample* const> samples) {
  conformance::GraphSpec graph;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    const OpSample& sample = *samples[n];
    const std::string name = "n" + std::to_string(n);
    const DType result = gives_bool_result ? DType::kBool : dtype;
    conformance::NodeSpec node{name, op, {}, {name, result, sample.result}, sample.attrs};
    for (std::size_t i = 0; i < sample.operands.size(); ++i) {
      const std::string operand = name + "_x" + std::to_string(i);
      if (i < sample.first_weight) {
        graph.inputs.push_back({operand, dtype, sample.operands[i]});
      } else {
        graph.weights.push_back({operand, Tensor(dtype, sample.operands[i])});
      }
      node.operands.push_back(operand);
    }
    graph.nodes.push_back(std::move(node));
    graph.outputs.push_back(name);
  }
  return graph;
}

}  // namespace npu
