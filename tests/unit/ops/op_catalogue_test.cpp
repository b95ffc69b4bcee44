// SPDX-License-Identifier: Apache-2.0
#include "ops/op_catalogue.hpp"

#include <algorithm>
#include <thread>

#include "catch.hpp"
#include "ops/op_name.hpp"

namespace npu {
namespace {

TEST_CASE("every row of the catalogue parses and names its op") {
  const std::vector<std::string_view> ops = catalogued_ops();
  CHECK(ops.size() > 250);
  CHECK(std::is_sorted(ops.begin(), ops.end()));
  CHECK(std::adjacent_find(ops.begin(), ops.end()) == ops.end());
  for (const std::string_view op_type : ops) {
    CAPTURE(op_type);
    const OpInfo* op = find_op(op_type);
    REQUIRE(op != nullptr);
    CHECK(op->op_type == op_type);
    CHECK(op->schema.name == op_type);
    if (!op_type.starts_with("<") && !op_type.starts_with("npu.")) {
      CHECK((op_type.starts_with("aten.") || op_type.starts_with("quantized_decomposed.") ||
             op_type.starts_with("transformers.")));
      CHECK(std::count(op_type.begin(), op_type.end(), '.') == 2);
    }
    CHECK(op->is_in_place == is_in_place(op_type));
    const auto forms = op_forms(family_name(op_type));
    CHECK(std::find(forms.begin(), forms.end(), op_type) != forms.end());
    for (std::size_t i = 0; i < op->schema.arguments.size(); ++i) {
      CHECK(op->schema.arguments[i].type != ArgumentType::kOther);
    }
  }
}

TEST_CASE("an op and its in-place form are of one family and have one row") {
  const auto forms = op_forms("aten.mul");
  CHECK(std::vector<std::string_view>(forms.begin(), forms.end()) ==
        std::vector<std::string_view>{"aten.mul.Scalar", "aten.mul.Tensor", "aten.mul_.Scalar",
                                      "aten.mul_.Tensor"});
  CHECK(op_forms("aten.zero").size() == 1);  // zero_ alone
  CHECK(op_forms("aten.mul.Tensor").empty());
  CHECK(op_forms("").empty());
  const OpInfo* in_place = find_op("aten.mul_.Tensor");
  const OpInfo* other = find_op("aten.mul.Tensor");
  CHECK(in_place->role == other->role);
  CHECK(in_place->schema.arguments.size() == other->schema.arguments.size());
  CHECK(in_place != other);
}

TEST_CASE("a row of a table that names an op goes before that of its family") {
  struct Row {
    std::string_view op_type;
  };
  const std::vector<Row> rows{{"aten.max"}, {"aten.max.dim"}, {"aten.mul_.Scalar"}, {"custom.op"}};
  CHECK(find_op_row(rows, "aten.max.default") == &rows[0]);
  CHECK(find_op_row(rows, "aten.max.dim") == &rows[1]);
  CHECK(find_op_row(rows, "aten.mul_.Scalar") == &rows[2]);
  CHECK(find_op_row(rows, "aten.mul.Scalar") == nullptr);
  CHECK(find_op_row(rows, "aten.max.unknown") == nullptr);
  CHECK(find_op_row(rows, "aten.max") == nullptr);
  CHECK(find_op_row(rows, "custom.op") == nullptr);
}

TEST_CASE("an unknown op is not found") {
  CHECK(find_op("aten.conv2d") == nullptr);
  CHECK(find_op("conv2d") == nullptr);
  CHECK(find_op("") == nullptr);
  CHECK(find_op("npu.other") == nullptr);
}

TEST_CASE("kinds and flags") {
  const auto op = [](std::string_view name) { return *find_op(name); };
  CHECK(op("aten.conv2d.default").kind == OpKind::kAnchor);
  CHECK(op("aten.scaled_dot_product_attention.default").kind == OpKind::kAnchor);
  CHECK(op("aten.relu.default").kind == OpKind::kElementwise);
  CHECK_FALSE(op("aten.relu.default").is_in_place);
  CHECK(op("aten.relu_.default").is_in_place);
  CHECK(op("aten.add_.Tensor").kind == OpKind::kBroadcast);
  CHECK(op("aten.batch_norm.default").kind == OpKind::kBroadcast);
  CHECK(op("aten.layer_norm.default").kind == OpKind::kReduction);
  CHECK(op("aten.cat.default").kind == OpKind::kInjective);
  CHECK_FALSE(op("aten.cat.default").is_alias);
  CHECK(op("aten.view.default").is_alias);
  CHECK(op("aten.detach_.default").is_alias);
  CHECK(op("aten.transpose.int").is_alias);
  CHECK(op("<built-in function getitem>").is_alias);
  CHECK_FALSE(op("aten.clone.default").is_alias);
  CHECK_FALSE(op("aten.to.dtype").is_alias);
  CHECK(op("aten.lstm.input").kind == OpKind::kOpaque);
  CHECK(op("aten.lstm.input").schema.result_count == 3);
}

TEST_CASE("signatures that documents rely on") {
  const auto names = [](std::string_view op_type) {
    std::string text;
    for (const SchemaArgument& argument : find_op(op_type)->schema.arguments) {
      text += (text.empty() ? "" : " ") + argument.name;
      if (argument.default_value) text += "=" + argument.default_value->dump();
    }
    return text;
  };
  CHECK(names("aten.conv2d.default") ==
        "input weight bias=null stride=1 padding=0 dilation=1 groups=1");
  CHECK(names("aten.batch_norm.default") ==
        "input weight bias running_mean running_var training momentum eps cudnn_enabled");
  CHECK(names("aten.max_pool2d.default") ==
        "self kernel_size stride=[] padding=0 dilation=1 ceil_mode=false");
  CHECK(names("aten.avg_pool2d.default") ==
        "self kernel_size stride=[] padding=0 ceil_mode=false count_include_pad=true "
        "divisor_override=null");
  CHECK(names("aten.addmm.default") == "self mat1 mat2 beta=1 alpha=1");
  CHECK(names("aten.add.Tensor") == "self other alpha=1");
  CHECK(names("aten.hardtanh_.default") == "self min_val=-1 max_val=1");
  CHECK(names("aten.layer_norm.default") ==
        "input normalized_shape weight=null bias=null eps=1e-05 cudnn_enable=true");
  CHECK(names("aten.slice.Tensor") == "self dim=0 start=null end=null step=1");
  CHECK(names("aten.flatten.using_ints") == "self start_dim=0 end_dim=-1");
  CHECK(names("aten.embedding.default") ==
        "weight indices padding_idx=-1 scale_grad_by_freq=false sparse=false");
  CHECK(names("aten.cat.default") == "tensors dim=0");
  CHECK(names("aten.mean.dim") == "self dim keepdim=false dtype=null");
  CHECK(names("aten.softmax.int") == "self dim dtype=null");
  CHECK(names("aten.gelu.default") == "self approximate=\"none\"");
  CHECK(names("aten.scaled_dot_product_attention.default") ==
        "query key value attn_mask=null dropout_p=0.0 is_causal=false scale=null enable_gqa=false");
}

TEST_CASE("ops are looked up from several threads") {
  std::vector<const OpInfo*> found(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&found, i] { found[i] = find_op("aten.cumprod.default"); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const OpInfo* info : found) CHECK(info == found.front());
}

}  // namespace
}  // namespace npu
