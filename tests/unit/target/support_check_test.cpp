// SPDX-License-Identifier: Apache-2.0
#include "target/support_check.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/json.hpp"

namespace npu {
namespace {

// A device with the given rules, as JSON text.
Target target_with(const std::string& ops, const std::string& more = "") {
  return parse_target(
      parse_json(R"({"name": "t", "devices": [{"name": "npu", "peak_flops": {"float32": 1},
                                     "memory_bandwidth": 1, "ops": )" +
                     ops + more + "}]}",
                 "target.json"),
      "target.json");
}

// The reason for which the last node of the graph is refused; "" if it runs.
std::string reason(const test::GraphBuilder& builder, const Target& target) {
  const Graph graph = builder.build();
  const NodeId last{static_cast<std::int32_t>(graph.nodes().size()) - 1};
  const SupportResult result = check_support(graph, last, target.devices.front());
  CHECK(result.supported == result.reason.empty());
  return result.reason;
}

test::GraphBuilder conv(const Json& attrs = Json::object(), const std::string& dtype = "float32") {
  return test::GraphBuilder()
      .input("x", {1, 8, 8, 8}, dtype)
      .weight("w", {8, 8, 1, 1}, dtype)
      .node("n", "aten.conv2d.default", {"x", "p_w"}, {1, 8, 8, 8}, attrs, dtype)
      .output("n");
}

std::string conv_reason(const std::string& constraint, const Json& attrs = Json::object()) {
  return reason(conv(attrs), target_with(R"([{"types": ["aten.conv2d.default"], "attrs": {)" +
                                         constraint + "}}]"));
}

TEST_CASE("an op without a rule is unsupported") {
  CHECK(reason(conv(), target_with("[]")) == "unsupported op");
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.relu.default"]}])")) == "unsupported op");
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"]}])")).empty());
}

TEST_CASE("dtypes of operands and results") {
  const Target target = target_with(R"([{"types": ["aten.conv2d.default", "aten.to.dtype"],
                                         "dtypes": ["float32", "bfloat16"]}])");
  CHECK(reason(conv(), target).empty());
  CHECK(reason(conv({}, "float64"), target) == "dtype float64");
  const auto cast = test::GraphBuilder().input("x").node("n", "aten.to.dtype", {"x"}, {4},
                                                         {{"dtype", "float16"}}, "float16");
  CHECK(reason(test::GraphBuilder(cast).output("n"), target) == "dtype float16");
}

TEST_CASE("the device's dtypes and rank hold for rules without their own") {
  const std::string more = R"(, "dtypes": ["float16"], "rank": [2, 2])";
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"]}])", more)) ==
        "dtype float32");
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"], "dtypes": "*"}])",
                                   more)) == "rank 4");
  CHECK(reason(conv(),
               target_with(R"([{"types": ["aten.conv2d.default"], "dtypes": "*", "rank": [4, 4]}])",
                           more))
            .empty());
}

TEST_CASE("dtypes by argument") {
  const Target target = target_with(R"([{"types": ["aten.embedding.default"],
                                         "dtypes": {"*": ["float32"], "indices": ["int64"]}},
                                        {"types": ["aten.eq.Scalar"],
                                         "dtypes": {"*": ["float32"], "result": ["bool"]}}])");
  const auto lookup = [](const std::string& table, const std::string& indices) {
    return test::GraphBuilder()
        .weight("t", {10, 4}, table)
        .input("i", {3}, indices)
        .node("n", "aten.embedding.default", {"p_t", "i"}, {3, 4}, Json::object(), table)
        .output("n");
  };
  CHECK(reason(lookup("float32", "int64"), target).empty());
  CHECK(reason(lookup("float32", "int32"), target) == "dtype int32");
  CHECK(reason(lookup("int64", "int64"), target) == "dtype int64");
  const auto compare = [](const std::string& result) {
    return test::GraphBuilder()
        .input("x")
        .node("n", "aten.eq.Scalar", {"x"}, {4}, {{"other", 1}}, result)
        .output("n");
  };
  CHECK(reason(compare("bool"), target).empty());
  CHECK(reason(compare("float32"), target) == "dtype float32");
}

TEST_CASE("rank of the first operand, or of the result if there is none") {
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"], "rank": [3, 3]}])")) ==
        "rank 4");
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"], "rank": [5, null]}])")) ==
        "rank 4");
  CHECK(reason(conv(), target_with(R"([{"types": ["aten.conv2d.default"], "rank": [4, null]}])"))
            .empty());
  const auto full = test::GraphBuilder().node("n", "aten.full.default", {}, {2, 2},
                                              {{"size", {2, 2}}, {"fill_value", 0}});
  CHECK(reason(test::GraphBuilder(full).output("n"),
               target_with(R"([{"types": ["aten.full.default"], "rank": [0, 1]}])")) == "rank 2");
}

TEST_CASE("number of operands") {
  const Target target = target_with(R"([{"types": ["aten.cat.default"], "inputs": [2, 2]}])");
  const auto cat = [](const std::vector<std::string>& names) {
    return test::GraphBuilder()
        .input("a")
        .input("b")
        .input("c")
        .node("n", "aten.cat.default", names, Shape{static_cast<std::int64_t>(4 * names.size())})
        .output("n");
  };
  CHECK(reason(cat({"a", "b"}), target).empty());
  CHECK(reason(cat({"a", "b", "c"}), target) == "3 inputs");
  CHECK(reason(cat({"a"}), target) == "1 input");
}

TEST_CASE("attribute ranges, after defaults") {
  CHECK(conv_reason(R"("groups": {"min": 1, "max": 4})").empty());
  CHECK(conv_reason(R"("groups": {"min": 2})") == "attribute groups=1");  // the default
  CHECK(conv_reason(R"("groups": {"max": 4})", {{"groups", 8}}) == "attribute groups=8");
  CHECK(conv_reason(R"("stride": {"each": {"max": 2}})", {{"stride", {2, 3}}}) ==
        "attribute stride=[2,3]");
  CHECK(conv_reason(R"("stride": {"each": {"min": 2, "max": 3}})", {{"stride", {2, 3}}}).empty());
  CHECK(conv_reason(R"("stride": {"each": {"min": 2}})") == "attribute stride=[1,1]");
  CHECK(conv_reason(R"("groups": {"each": {"min": 1}})") == "attribute groups=1");  // no list
}

TEST_CASE("attribute values") {
  CHECK(conv_reason(R"("dilation": {"equals": [1, 1]})").empty());
  CHECK(conv_reason(R"("dilation": {"equals": [1, 1]})", {{"dilation", 1}}).empty());
  CHECK(conv_reason(R"("dilation": {"equals": 1})", {{"dilation", {1, 1}}}).empty());
  CHECK(conv_reason(R"("dilation": {"equals": [1, 1]})", {{"dilation", {2, 2}}}) ==
        "attribute dilation=[2,2]");
  CHECK(conv_reason(R"("groups": {"in": [1, 8]})", {{"groups", 8}}).empty());
  CHECK(conv_reason(R"("groups": {"in": [1, 8]})", {{"groups", 4}}) == "attribute groups=4");

  const Target target = target_with(
      R"([{"types": ["aten.max_pool2d.default"], "attrs": {"ceil_mode": {"in": [false]}}},
          {"types": ["aten.softmax.int"], "attrs": {"dtype": {"in": [null, "float32"]}}},
          {"types": ["aten.scaled_dot_product_attention.default"], "attrs": {"attn_mask": {"equals": null}}},
          {"types": ["aten.add.Tensor"], "attrs": {"other": {"max": 3}}},
          {"types": ["aten.clamp.default"], "attrs": {"min": {"min": 0}}}])");
  const auto node = [](const std::string& op_type, std::vector<std::string> inputs,
                       const Json& attrs) {
    return test::GraphBuilder()
        .input("x", {1, 2, 4, 4})
        .input("y", {1, 2, 4, 4})
        .node("n", op_type, inputs, {1, 2, 4, 4}, attrs)
        .output("n");
  };
  const Json pool = {{"kernel_size", {2, 2}}, {"ceil_mode", true}};
  CHECK(reason(node("aten.max_pool2d.default", {"x"}, pool), target) == "attribute ceil_mode=true");
  CHECK(reason(node("aten.softmax.int", {"x"}, {{"dim", 1}}), target).empty());
  CHECK(reason(node("aten.softmax.int", {"x"}, {{"dim", 1}, {"dtype", "torch.float32"}}), target)
            .empty());
  CHECK(reason(node("aten.softmax.int", {"x"}, {{"dim", 1}, {"dtype", "torch.float64"}}), target) ==
        "attribute dtype=float64");
  const std::string sdpa = "aten.scaled_dot_product_attention.default";
  CHECK(reason(node(sdpa, {"x", "x", "x"}, Json::object()), target).empty());
  CHECK(reason(node(sdpa, {"x", "x", "x", "y"}, Json::object()), target) ==
        "attribute attn_mask=a tensor");
  CHECK(reason(node("aten.add.Tensor", {"x"}, {{"other", 2}}), target).empty());
  CHECK(reason(node("aten.add.Tensor", {"x", "y"}, Json::object()), target) ==
        "attribute other=a tensor");
  CHECK(reason(node("aten.clamp.default", {"x"}, {{"max", 1}}), target) == "attribute min=null");
}

TEST_CASE("arguments that do not bind") {
  CHECK(reason(conv({{"strides", 1}}), target_with(R"([{"types": ["aten.conv2d.default"]}])")) ==
        "arguments do not bind: aten.conv2d.default has no argument 'strides'; did you mean "
        "'stride'?");
}

TEST_CASE("of several alternatives the one that got furthest gives the reason") {
  const Target target = target_with(R"([
      {"types": ["aten.conv2d.default"], "dtypes": ["float16"]},
      {"types": ["aten.conv2d.default"], "attrs": {"groups": {"max": 4}, "stride": {"equals": 1}}},
      {"types": ["aten.conv2d.default"], "rank": [3, 3]}])");
  CHECK(reason(conv(), target).empty());  // the second
  CHECK(reason(conv({{"stride", 2}}), target) == "attribute stride=[2,2]");
  CHECK(reason(conv({{"groups", 8}}), target) == "attribute groups=8");
  CHECK(reason(conv({{"groups", 8}}, "float16"), target).empty());  // the first
  CHECK(reason(conv({}, "float64"), target_with(R"([
      {"types": ["aten.conv2d.default"], "rank": [3, 3], "dtypes": ["float64"]},
      {"types": ["aten.conv2d.default"], "dtypes": ["float16"]}])")) == "rank 4");
}

TEST_CASE("a device for any op") {
  const Target target = target_with(R"("*")");
  const auto node = [](const std::string& op_type) {
    return test::GraphBuilder().input("x").node("n", op_type, {"x"}, {{"index", 0}}).output("n");
  };
  CHECK(reason(node("aten.relu.default"), target).empty());
  CHECK(reason(node("aten.not_in_the_catalogue.default"), target).empty());
  CHECK(reason(node("<built-in function getitem>"), target).empty());
  CHECK(reason(node("wrap_with_set_grad_enabled"), target).empty());
  CHECK(reason(node("my.op"), target) == "unsupported op");
  CHECK(reason(node("npu.other"), target) == "unsupported op");
  CHECK(reason(node("npu.segment_reduce"), target).empty());
  // Its backend has schemas of its own, so arguments are not checked here.
  CHECK(reason(conv({{"strides", 1}}), target).empty());
  CHECK(reason(conv({}, "float64"), target_with(R"("*")", R"(, "dtypes": ["float32"])")) ==
        "dtype float64");
  const Target custom = target_with(R"(["*", {"types": ["my.op", "npu.channel_norm"]}])");
  CHECK(reason(node("my.op"), custom).empty());
  CHECK(reason(node("npu.channel_norm"), custom).empty());
  CHECK(reason(node("aten.relu.default"), custom).empty());
}

TEST_CASE("an alias without a rule runs with every dtype and rank, one with a rule does not") {
  const Target target = target_with(R"([{"types": ["aten.to.dtype"], "requires": ["no_cast"]}])",
                                    R"(, "aliases": ["aten.view.default", "aten.to.dtype"],
                                        "dtypes": ["float32"], "rank": [4, 4])");
  const auto view = test::GraphBuilder()
                        .input("x", {4}, "int64")
                        .node("n", "aten.view.default", {"x"}, {2, 2}, {{"size", {2, 2}}}, "int64");
  CHECK(reason(test::GraphBuilder(view).output("n"), target).empty());
  const auto cast = test::GraphBuilder()
                        .input("x", {1, 1, 1, 4})
                        .node("n", "aten.to.dtype", {"x"}, {1, 1, 1, 4}, {{"dtype", "float32"}});
  CHECK(reason(test::GraphBuilder(cast).output("n"), target).empty());
  const auto other = test::GraphBuilder().input("x").node("n", "aten.to.dtype", {"x"}, {4},
                                                          {{"dtype", "float32"}});
  CHECK(reason(test::GraphBuilder(other).output("n"), target) == "rank 1");
}

// ---- Predicates ----

Target requiring(const std::string& op_type, const std::string& predicate) {
  return target_with(R"([{"types": [")" + op_type + R"("], "requires": [")" + predicate +
                     R"("]}])");
}

TEST_CASE("no_cast") {
  const auto cast = [](const std::string& dtype) {
    return test::GraphBuilder()
        .input("x")
        .node("n", "aten.to.dtype", {"x"}, {4}, {{"dtype", dtype}}, dtype)
        .output("n");
  };
  CHECK(reason(cast("float32"), requiring("aten.to.dtype", "no_cast")).empty());
  CHECK(reason(cast("float16"), requiring("aten.to.dtype", "no_cast")) == "cast");
}

TEST_CASE("eval_mode") {
  const auto dropout = [](double p, bool train) {
    return test::GraphBuilder()
        .input("x")
        .node("n", "aten.dropout.default", {"x"}, {4}, {{"p", p}, {"train", train}})
        .output("n");
  };
  const Target target = requiring("aten.dropout.default", "eval_mode");
  CHECK(reason(dropout(0.5, false), target).empty());
  CHECK(reason(dropout(0.5, true), target) == "training mode");
  CHECK(reason(dropout(0, true), target).empty());
  const auto attention = [](double p) {
    return test::GraphBuilder()
        .input("x", {2, 4})
        .node("n", "aten.scaled_dot_product_attention.default", {"x", "x", "x"}, {2, 4},
              {{"dropout_p", p}})
        .output("n");
  };
  const Target sdpa = requiring("aten.scaled_dot_product_attention.default", "eval_mode");
  CHECK(reason(attention(0), sdpa).empty());
  CHECK(reason(attention(0.1), sdpa) == "training mode");
}

TEST_CASE("weights_are_constant") {
  const Target target = requiring("aten.linear.default", "weights_are_constant");
  const auto builder = [] { return test::GraphBuilder().input("x", {2, 4}).weight("w", {4, 4}); };
  CHECK(
      reason(builder().node("n", "aten.linear.default", {"x", "p_w"}).output("n"), target).empty());
  CHECK(
      reason(builder().input("y", {4, 4}).node("n", "aten.linear.default", {"x", "y"}).output("n"),
             target) == "weights are computed");
  CHECK(reason(builder()
                   .node("t", "aten.t.default", {"p_w"})
                   .node("n", "aten.linear.default", {"x", "t"}, Shape{2, 4})
                   .output("n"),
               target)
            .empty());
  CHECK(reason(builder()
                   .node("r", "aten.relu.default", {"p_w"})
                   .node("n", "aten.linear.default", {"x", "r"}, Shape{2, 4})
                   .output("n"),
               target) == "weights are computed");
  const Target addmm = requiring("aten.addmm.default", "weights_are_constant");
  CHECK(
      reason(builder().node("n", "aten.addmm.default", {"x", "x", "p_w"}, Shape{2, 4}).output("n"),
             addmm)
          .empty());
  CHECK(reason(builder()
                   .input("y", {4, 4})
                   .node("n", "aten.addmm.default", {"x", "x", "y"}, Shape{2, 4})
                   .output("n"),
               addmm) == "weights are computed");
}

test::GraphBuilder conv_and_norm(bool training = false) {
  test::GraphBuilder builder = conv();
  builder.document()["graph_outputs"] = Json::array();
  for (const char* name : {"g", "b", "m", "v"}) builder.weight(name, {8});
  return builder.node(
      "bn", "aten.batch_norm.default", {"n", "p_g", "p_b", "p_m", "p_v"}, {1, 8, 8, 8},
      {{"training", training}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
}

TEST_CASE("foldable_batch_norm") {
  const Target target = requiring("aten.batch_norm.default", "foldable_batch_norm");
  const std::string refused = "batch norm not behind a conv";
  CHECK(reason(conv_and_norm().output("bn"), target).empty());
  CHECK(reason(conv_and_norm(true).output("bn"), target) == refused);
  CHECK(reason(conv_and_norm().output("bn").output("n"), target) ==
        refused);  // someone else reads it

  test::GraphBuilder shared = conv();
  for (const char* name : {"g", "b", "m", "v"}) shared.weight(name, {8});
  shared.document()["graph_outputs"] = Json::array();
  shared.node("r", "aten.relu.default", {"n"})
      .node("bn", "aten.batch_norm.default", {"n", "p_g", "p_b", "p_m", "p_v"}, {1, 8, 8, 8},
            {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  CHECK(reason(shared.output("bn").output("r"), target) == refused);

  test::GraphBuilder alone;
  alone.input("x", {1, 8, 8, 8});
  for (const char* name : {"g", "b", "m", "v"}) alone.weight(name, {8});
  alone.node("bn", "aten.batch_norm.default", {"x", "p_g", "p_b", "p_m", "p_v"}, {1, 8, 8, 8},
             {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
  CHECK(reason(alone.output("bn"), target) == refused);
}

TEST_CASE("axes of a reduction") {
  const auto mean = [](const Shape& shape, const Json& dim) {
    return test::GraphBuilder()
        .input("x", shape)
        .node("n", "aten.mean.dim", {"x"}, {2}, {{"dim", dim}})
        .output("n");
  };
  const Target apple = requiring("aten.mean.dim", "mean_over_last_or_spatial");
  CHECK(reason(mean({2, 3}, {-1}), apple).empty());
  CHECK(reason(mean({2, 3}, {1}), apple).empty());
  CHECK(reason(mean({2, 3}, Json::array({0})), apple) == "mean over other axes");
  CHECK(reason(mean({2, 3, 4, 5}, {2, 3}), apple).empty());
  CHECK(reason(mean({2, 3, 4, 5}, {-1, -2}), apple).empty());
  CHECK(reason(mean({2, 3, 4, 5}, {1, 2}), apple) == "mean over other axes");
  CHECK(reason(mean({2, 3, 4}, {1, 2}), apple) == "mean over other axes");
  CHECK(reason(mean({2, 3}, nullptr), apple) == "mean over other axes");
  const Target last = requiring("aten.mean.dim", "over_last_dim");
  CHECK(reason(mean({2, 3}, {-1}), last).empty());
  CHECK(reason(mean({2, 3, 4, 5}, {2, 3}), last) == "not over the last axis");
}

TEST_CASE("predicates on the operands of a binary op") {
  const auto add = [](const Shape& a, const Shape& b, const Shape& result,
                      const std::string& second = "float32") {
    return test::GraphBuilder()
        .input("a", a)
        .input("b", b, second)
        .node("n", "aten.add.Tensor", {"a", "b"}, result)
        .output("n");
  };
  const std::string op = "aten.add.Tensor";
  CHECK(reason(add({2, 4}, {2, 4}, {2, 4}), requiring(op, "same_shape_operands")).empty());
  CHECK(reason(add({2, 4}, {4}, {2, 4}), requiring(op, "same_shape_operands")) ==
        "operands broadcast");
  CHECK(reason(add({2, 4}, {4}, {2, 4}), requiring(op, "keeps_first_shape")).empty());
  CHECK(reason(add({4}, {2, 4}, {2, 4}), requiring(op, "keeps_first_shape")) ==
        "broadcasts its first operand");
  CHECK(reason(add({4}, {4}, {4}), requiring(op, "same_dtype_operands")).empty());
  CHECK(reason(add({4}, {4}, {4}, "float16"), requiring(op, "same_dtype_operands")) ==
        "mixed dtypes");
  CHECK(reason(add({4}, {4}, {4}, "int64"), requiring(op, "same_dtype_operands")).empty());
  CHECK(reason(add({4}, {4}, {4}, "int64"), requiring(op, "one_dtype")) == "mixed dtypes");
  CHECK(reason(add({4}, {4}, {4}), requiring(op, "one_dtype")).empty());
  CHECK(reason(add({0, 4}, {4}, {0, 4}), requiring(op, "not_empty")) == "empty tensor");
  CHECK(reason(add({4}, {4}, {4}), requiring(op, "not_empty")).empty());
  CHECK(reason(add({4}, {4}, {4}), requiring(op, "tensor_operands")).empty());
  const auto scalar =
      test::GraphBuilder().input("x").node("n", "aten.add.Tensor", {"x"}, {4}, {{"other", 1}});
  CHECK(reason(test::GraphBuilder(scalar).output("n"), requiring(op, "tensor_operands")) ==
        "scalar operand");
}

TEST_CASE("ordered_bounds") {
  const auto clamp = [](const Json& attrs) {
    return test::GraphBuilder()
        .input("x")
        .node("n", "aten.clamp.default", {"x"}, {4}, attrs)
        .output("n");
  };
  const Target target = requiring("aten.clamp.default", "ordered_bounds");
  CHECK(reason(clamp({{"min", 0}, {"max", 6}}), target).empty());
  CHECK(reason(clamp({{"min", 6}, {"max", 6}}), target).empty());
  CHECK(reason(clamp({{"max", 6}}), target).empty());
  CHECK(reason(clamp({{"min", 7}, {"max", 6}}), target) == "lower bound above upper bound");
  CHECK(reason(clamp({{"min", "nan"}}), target) == "lower bound above upper bound");
  const auto hardtanh = test::GraphBuilder().input("x").node("n", "aten.hardtanh.default", {"x"},
                                                             {4}, {{"min_val", 2}});
  // max_val is 1 by default.
  CHECK(reason(test::GraphBuilder(hardtanh).output("n"),
               requiring("aten.hardtanh.default", "ordered_bounds")) ==
        "lower bound above upper bound");
}

TEST_CASE("no_projection") {
  const auto lstm = [](std::int64_t projected) {
    const Shape state{1, 2, projected};
    return test::GraphBuilder()
        .input("x", {3, 2, 5})
        .input("h", state)
        .input("c", {1, 2, 4})
        .weight("w", {16, 5})
        .weight("v", {16, projected})
        .node_with_results("n", "aten.lstm.input", {"x", "h", "c", "p_w", "p_v"},
                           {{3, 2, projected}, state, {1, 2, 4}},
                           {{"has_biases", false},
                            {"num_layers", 1},
                            {"dropout", 0.0},
                            {"train", false},
                            {"bidirectional", false},
                            {"batch_first", false},
                            {"_tensor_list_sizes", {2, 2}}},
                           "float32")
        .output("n_0");
  };
  const Target target = requiring("aten.lstm.input", "no_projection");
  CHECK(reason(lstm(4), target).empty());
  CHECK(reason(lstm(3), target) == "projection of the hidden state (proj_size)");
}

TEST_CASE("integer_steps") {
  const auto arange = [](const Json& attrs) {
    return test::GraphBuilder().node("n", "aten.arange.start_step", {}, {3}, attrs).output("n");
  };
  const Target target = requiring("aten.arange.start_step", "integer_steps");
  CHECK(reason(arange({{"start", 0}, {"end", 6}, {"step", 2}}), target).empty());
  CHECK(reason(arange({{"start", 0}, {"end", 5.5}, {"step", 2}}), target) ==
        "numbers that are no integers");
}

TEST_CASE("shapes of operands that belong together") {
  const auto node = [](const std::string& op, const std::vector<Shape>& shapes,
                       const Json& attrs = Json::object()) {
    test::GraphBuilder graph;
    std::vector<std::string> names;
    for (const Shape& shape : shapes) {
      names.push_back("x" + std::to_string(names.size()));
      graph.input(names.back(), shape, names.size() == 2 ? "int64" : "float32");
    }
    return graph.node("n", op, names, shapes[0], attrs).output("n");
  };
  const Json dim{{"dim", 0}};
  const Target ranks = requiring("aten.gather.default", "same_rank_operands");
  CHECK(reason(node("aten.gather.default", {{4, 2}, {1, 2}}, dim), ranks).empty());
  CHECK(reason(node("aten.gather.default", {{4}, {}}, dim), ranks) ==
        "operands of different ranks");
  const Target source = requiring("aten.scatter.src", "whole_source");
  CHECK(reason(node("aten.scatter.src", {{4, 2}, {1, 2}, {1, 2}}, dim), source).empty());
  CHECK(reason(node("aten.scatter.src", {{4, 2}, {1, 2}, {4, 2}}, dim), source) ==
        "scatters a part of src");
  const Target bias = requiring("aten.linear.default", "whole_bias");
  CHECK(reason(node("aten.linear.default", {{2, 3}, {3, 3}}), bias).empty());
  CHECK(reason(node("aten.linear.default", {{2, 3}, {3}}), bias) == "bias broadcasts");
  CHECK(reason(node("aten.linear.default", {{2, 3}, {3, 3}, {3}}), bias).empty());
  CHECK(reason(node("aten.linear.default", {{2, 3}, {3, 3}, {1}}), bias) == "bias broadcasts");
  const std::string op = "quantized_decomposed.quantize_per_tensor.tensor";
  const Json range{{"quant_min", -128}, {"quant_max", 127}, {"dtype", "torch.int8"}};
  CHECK(reason(node(op, {{4}, {1}, {}}, range), requiring(op, "single_scale")).empty());
  CHECK(reason(node(op, {{4}, {4}, {}}, range), requiring(op, "single_scale")) == "several scales");
}

TEST_CASE("no operand or result has more dimensions than the device or the rule") {
  const auto expand = [](std::size_t rank) {
    return test::GraphBuilder()
        .input("x", {4})
        .node("n", "aten.expand.default", {"x"}, Shape(rank, 4), {{"size", Shape(rank, 4)}})
        .output("n");
  };
  const std::string rank = R"(, "rank": [0, 3])";
  const Target target = target_with(R"([{"types": ["aten.expand.default"]}])", rank);
  CHECK(reason(expand(3), target).empty());
  CHECK(reason(expand(4), target) == "rank 4");
  const Target more = target_with(R"([{"types": ["aten.expand.default"], "rank": [0, 4]}])", rank);
  CHECK(reason(expand(4), more).empty());
}

TEST_CASE("einsum_product") {
  const auto einsum = [](const std::string& equation, const Shape& a, const Shape& b) {
    return test::GraphBuilder()
        .input("a", a)
        .input("b", b)
        .node("n", "aten.einsum.default", {"a", "b"}, {4},
              {{"equation", equation}, {"_tensor_list_sizes", {2}}})
        .output("n");
  };
  const Target target = requiring("aten.einsum.default", "einsum_product");
  const std::string refused = "equation is no product of two matrices";
  CHECK(reason(einsum("bij,bjk->bik", {2, 3, 4}, {2, 4, 5}), target).empty());
  CHECK(reason(einsum("...ij,jk", {2, 3, 4}, {4, 5}), target).empty());
  CHECK(reason(einsum("i,j->ij", {3}, {4}), target).empty());
  CHECK(reason(einsum("ii,ij->ij", {3, 3}, {3, 4}), target) == refused);
  CHECK(reason(einsum("ij,kl->ik", {3, 4}, {3, 4}), target) == refused);
  CHECK(reason(einsum("ij,jk->ik", {3, 1}, {4, 5}), target) == refused);
  CHECK(reason(einsum("...i,...i->...", {1, 3}, {2, 3}), target) == refused);
}

TEST_CASE("float64 between integers of 8 bits counts as float32 where a device says so") {
  const std::string library = "quantized_decomposed.";
  const Json integers{{"scale", 0.5},
                      {"zero_point", 3},
                      {"quant_min", 0},
                      {"quant_max", 255},
                      {"dtype", "torch.uint8"}};
  Json real = integers;
  real["out_dtype"] = "torch.float64";
  const auto graph = [&](const std::string& op, bool leaves) {
    test::GraphBuilder builder;
    builder.input("q", {2, 4}, "uint8")
        .node("x", library + "dequantize_per_tensor.default", {"q"}, Shape{2, 4}, real, "float64")
        .node("y", op, {"x"}, Shape{2, 4}, Json::object(), "float64")
        .node("r", library + "quantize_per_tensor.default", {"y"}, Shape{2, 4}, integers, "uint8")
        .output("r");
    if (leaves) builder.output("y");
    return builder.build();
  };
  Target target = load_target("host");
  Device& npu = target.devices.front();
  const auto runs = [&](const Graph& all) {
    std::string text;
    for (const char* name : {"x", "y", "r"}) {
      text += check_support(all, all.find_node(name), npu).supported ? '1' : '0';
    }
    return text;
  };
  CHECK(runs(graph("aten.sigmoid.default", false)) == "111");
  CHECK(runs(graph("aten.sigmoid.default", true)) == "000");
  // One that the device lacks keeps all of them from it.
  CHECK(runs(graph("aten.special_i0.default", false)) == "000");
  npu.narrows_float64 = false;
  CHECK(runs(graph("aten.sigmoid.default", false)) == "000");
}

TEST_CASE("claims that pytorch-apple's kernels cannot keep are not made") {
  const Target target = load_target("pytorch-apple");
  CHECK(reason(conv(), target).empty());
  CHECK(reason(conv({{"dilation", {2, 2}}}), target) == "attribute dilation=[2,2]");
  CHECK(reason(conv({}, "float64"), target) == "dtype float64");
  const auto pool = test::GraphBuilder()
                        .input("x", {1, 2, 4, 4})
                        .node("n", "aten.max_pool2d.default", {"x"}, {1, 2, 2, 2},
                              {{"kernel_size", {2, 2}}, {"ceil_mode", true}});
  CHECK(reason(test::GraphBuilder(pool).output("n"), target) == "attribute ceil_mode=true");
  CHECK(reason(conv_and_norm().output("bn"), target).empty());
}

}  // namespace
}  // namespace npu
