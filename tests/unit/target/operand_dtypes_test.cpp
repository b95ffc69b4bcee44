// SPDX-License-Identifier: Apache-2.0
// Ops with an operand that is no number beside floats: a mask, an index, offsets. npu-tag is asked
// with it in its own dtype; what it leaves to the next device, the page of the device names.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

/// Arguments that are no numbers.
constexpr std::array<std::string_view, 8> kNames{
    "attn_mask", "condition", "mask", "index", "indices", "offsets", "lengths", "batch_sizes"};

struct Operand {
  Shape shape;
  std::string dtype = "float32";
};

struct Question {
  std::string op;
  std::vector<Operand> operands;
  std::vector<Shape> results;
  Json attrs = Json::object();
};

std::vector<Question> questions() {
  const Shape x{4, 6};
  const Operand floats{x};
  std::vector<Question> all;
  const auto attend = [&](const std::string& op, const Shape& mask, const Json& attrs = {}) {
    const Shape q{2, 4, 5, 8};
    const Shape k{2, attrs.is_object() ? 2 : 4, 6, 8};
    all.push_back({op, {{q}, {k}, {k}, {mask, "bool"}}, {q}, attrs});
  };
  for (const Shape& mask : {Shape{2, 4, 5, 6}, Shape{2, 1, 1, 6}, Shape{5, 6}, Shape{6}, Shape{}}) {
    attend("aten.scaled_dot_product_attention.default", mask);
  }
  attend("aten.scaled_dot_product_attention.default", {2, 1, 5, 6}, {{"enable_gqa", true}});
  const Shape q{2, 4, 5, 8};
  all.push_back({"aten._scaled_dot_product_flash_attention_for_cpu.default",
                 {{q}, {q}, {q}, {{2, 1, 5, 5}, "bool"}},
                 {q, {2, 4, 5}}});
  const Shape wide{2, 5, 8};
  all.push_back({"aten._native_multi_head_attention.default",
                 {{wide}, {wide}, {wide}, {{24, 8}}, {{24}}, {{8, 8}}, {{8}}, {{5, 5}, "bool"}},
                 {wide, {2, 5, 5}},
                 {{"embed_dim", 8}, {"num_head", 2}}});
  all.push_back({"aten._transformer_encoder_layer_fwd.default",
                 {{wide},
                  {{24, 8}},
                  {{24}},
                  {{8, 8}},
                  {{8}},
                  {{8}},
                  {{8}},
                  {{8}},
                  {{8}},
                  {{16, 8}},
                  {{16}},
                  {{8, 16}},
                  {{8}},
                  {{5, 5}, "bool"}},
                 {wide},
                 {{"embed_dim", 8},
                  {"num_heads", 2},
                  {"use_gelu", false},
                  {"norm_first", false},
                  {"eps", 1e-5}}});
  for (const Shape& mask : {x, Shape{6}, Shape{4, 1}, Shape{}}) {
    const Operand truth{mask, "bool"};
    all.push_back({"aten.where.self", {truth, floats, floats}, {x}});
    all.push_back({"aten.where.ScalarOther", {truth, floats}, {x}, {{"other", "-inf"}}});
    all.push_back({"aten.where.ScalarSelf", {truth, floats}, {x}, {{"self", 0}}});
    all.push_back({"aten.where.Scalar", {truth}, {mask}, {{"self", 0.0}, {"other", -1.0}}});
    all.push_back({"aten.masked_fill.Scalar", {floats, truth}, {x}, {{"value", "-inf"}}});
    all.push_back({"aten.masked_fill.Tensor", {floats, truth, {{}}}, {x}});
    all.push_back({"aten.masked_scatter.default", {floats, truth, floats}, {x}});
  }
  for (const char* dtype : {"int64", "int32"}) {
    const Operand line{{3}, dtype};
    const Operand square{{4, 3}, dtype};
    const Json list{{"_tensor_list_sizes", {1}}};
    const Json along{{"dim", 1}};
    const Shape some{4, 3};
    Json reduce = along;
    reduce["reduce"] = "amax";
    Json number = along;
    number["value"] = 1.5;
    all.push_back({"aten.embedding.default", {floats, square}, {{4, 3, 6}}});
    all.push_back({"aten.index.Tensor", {floats, line}, {{3, 6}}, list});
    all.push_back({"aten.index_put.default", {floats, line, {{3, 6}}}, {x}, list});
    all.push_back({"aten.index_select.default", {floats, line}, {some}, along});
    all.push_back({"aten.gather.default", {floats, square}, {some}, along});
    all.push_back({"aten.take_along_dim.default", {floats, square}, {some}, along});
    all.push_back({"aten.index_copy.default", {floats, line, {some}}, {x}, along});
    all.push_back({"aten.index_add.default", {floats, line, {some}}, {x}, along});
    all.push_back({"aten.scatter.src", {floats, square, {some}}, {x}, along});
    all.push_back({"aten.scatter.value", {floats, square}, {x}, number});
    all.push_back({"aten.scatter_add.default", {floats, square, {some}}, {x}, along});
    all.push_back({"aten.scatter_reduce.two", {floats, square, {some}}, {x}, reduce});
    all.push_back(
        {"aten.embedding_bag.default", {floats, line, {{2}, dtype}}, {{2, 6}, {3}, {2}, {2}}});
    all.push_back({"npu.segment_reduce", {floats, {{3}, dtype}, {{5}, dtype}}, {{2, 6}}});
  }
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    Question in_place = all[i];
    in_place.op.insert(in_place.op.rfind('.'), "_");
    if (is_catalogued(in_place.op)) all.push_back(std::move(in_place));
  }
  return all;
}

std::string device_of(const Question& question, const Target& target) {
  test::GraphBuilder builder;
  std::vector<std::string> names;
  for (const Operand& operand : question.operands) {
    names.push_back("i" + std::to_string(names.size()));
    builder.input(names.back(), operand.shape, operand.dtype);
  }
  if (question.results.size() == 1) {
    builder.node("y", question.op, names, question.results[0], question.attrs).output("y");
  } else {
    builder.node_with_results("y", question.op, names, question.results, question.attrs);
    builder.output("y_0");
  }
  Graph graph = builder.build();
  Diagnostics diagnostics;
  tag_ops(graph, target, {}, diagnostics);
  return graph.nodes().back().device.value_or("");
}

}  // namespace

TEST_CASE("masks, indices and lengths beside floats keep an op on the device in their own dtype",
          "[target]") {
  std::set<std::string, std::less<>> asked;
  const std::vector<Question> all = questions();
  for (const Question& question : all) asked.insert(question.op);
  for (const std::string_view op : catalogued_ops()) {
    for (const SchemaArgument& argument : find_op(op)->schema.arguments) {
      const bool is_tensor = argument.type == ArgumentType::kTensor ||
                             argument.type == ArgumentType::kTensorList ||
                             argument.type == ArgumentType::kOptionalTensorList;
      const bool is_one = std::find(kNames.begin(), kNames.end(), argument.name) != kNames.end();
      INFO(op << " " << argument.name);
      if (is_tensor && is_one) CHECK(asked.contains(op));
    }
  }
  struct Left {
    const char* target;
    const char* page;
    std::set<std::string_view> ops;
  };
  std::set<std::string_view> both{"aten._scaled_dot_product_flash_attention_for_cpu.default",
                                  "aten._native_multi_head_attention.default",
                                  "aten._transformer_encoder_layer_fwd.default",
                                  "aten.masked_scatter.default",
                                  "aten.take_along_dim.default",
                                  "aten.embedding_bag.default"};
  Left onednn{"host", "npu-onednn.7", both};
  onednn.ops.insert({"aten.index_add.default", "npu.segment_reduce"});
  for (const Left& left : {onednn, Left{"opencl", "npu-opencl.7", both}}) {
    const Target target = load_target(left.target);
    const std::string page = read_file(std::string(NPU_TEST_DATA_DIR) + "/../man/" + left.page);
    for (const Question& question : all) {
      const bool is_left = left.ops.contains(question.op);
      INFO(left.target << ": " << question.op << ", " << question.operands.back().dtype << " "
                       << shape_text(question.operands.back().shape));
      CHECK(device_of(question, target) == (is_left ? "cpu" : target.devices.front().name));
      std::string_view name = question.op;
      name = name.substr(name.starts_with("aten.") ? 5 : 0);
      if (!name.starts_with("npu.")) name = name.substr(0, name.find('.'));
      if (is_left) CHECK(page.find(' ' + std::string(name)) != std::string::npos);
    }
  }
}

}  // namespace npu
