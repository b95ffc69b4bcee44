// SPDX-License-Identifier: Apache-2.0
// What the opencl backend makes of the models of testdata, without a device: a kernel for each
// fusion group, for both kinds of tiles.
#include "lowering/lower_graph.hpp"

#include <algorithm>
#include <regex>

#include "catch.hpp"
#include "lowering/blob.hpp"
#include "lowering/scratch_plan.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

Graph fused_model(const std::string& name) {
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/" + name + ".json";
  Graph graph = read_valid_graph(read_file(file), file);
  Diagnostics diagnostics;
  tag_ops(graph, load_target("opencl"), {}, diagnostics);
  fuse_ops(graph, {}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

LoweredGraph lowered(const Graph& graph, bool is_cpu) {
  Machine machine;
  machine.has_float64 = true;
  machine.is_cpu = is_cpu;
  return lower_graph(graph, machine, [](std::size_t, std::size_t) {});
}

struct Operand {
  Shape shape;
  std::string dtype = "float32";
};

/// A model of one node, in the form of npu-ir(5).
Graph one_node(const std::string& op, const std::vector<Operand>& operands, const Shape& result,
               const Json& attrs, const std::string& result_dtype = "float32") {
  Json inputs = Json::array();
  for (const Operand& each : operands) {
    inputs.push_back({{"name", "x" + std::to_string(inputs.size())},
                      {"shape", each.shape},
                      {"dtype", each.dtype}});
  }
  const Json y = {{"name", "y"}, {"shape", result}, {"dtype", result_dtype}};
  Json of_y = y;
  of_y["producer_node"] = "y";
  const Json node = {{"name", "y"},
                     {"op_type", op},
                     {"inputs", inputs},
                     {"outputs", Json::array({y})},
                     {"attrs", attrs}};
  const Json document = {{"model_name", "one"},
                         {"graph_inputs", inputs},
                         {"graph_outputs", Json::array({of_y})},
                         {"weights", Json::array()},
                         {"nodes", Json::array({node})}};
  return read_valid_graph(document.dump(), "one");
}

std::string refusal(const Graph& graph) {
  try {
    lowered(graph, true);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kUnsupported ? error.message() : "another error";
  }
  return "none";
}

}  // namespace

TEST_CASE("as many kernels as fusion groups") {
  for (const char* name : {"small/bert_tiny",
                           "small/conv_kinds",
                           "small/depthwise",
                           "small/encoder",
                           "small/gpt_small",
                           "small/gru",
                           "small/in_place_view",
                           "small/inception",
                           "small/index_none",
                           "small/lstm",
                           "small/mlp",
                           "small/plain_norms",
                           "small/residual",
                           "small/scalar_math",
                           "small/self_attention",
                           "small/several_outputs",
                           "small/shapes",
                           "small/squeeze_excite",
                           "small/tied_weights",
                           "bert_base",
                           "inception_v3",
                           "mobilenet_v2",
                           "resnet18",
                           "resnet50",
                           "vit_b_16"}) {
    const Graph graph = fused_model(name);
    for (const Node& node : graph.nodes()) REQUIRE(node.device == "gpu");
    const FusionReport fusion = fusion_report(graph);
    for (const bool is_cpu : {true, false}) {
      const LoweredGraph plan = lowered(graph, is_cpu);
      INFO(name << (is_cpu ? " with tiles of a CPU: " : " with tiles of a GPU: ") << plan.report);
      const Json report = parse_json(plan.report, "report");
      // A view that is an output, beside what it is a view of, is copied.
      const auto copies = find_member(report, "reorders")->get<std::int64_t>();
      CHECK(static_cast<std::int64_t>(plan.plan.launches.size()) - copies == fusion.kernels);
      CHECK(copies <= static_cast<std::int64_t>(graph.graph_outputs().size()) - 1);
      CHECK(find_member(report, "splits")->empty());
    }
  }
}

TEST_CASE("the targets give the device the ops that it has kernels for, and no others") {
  for (const char* name : {"opencl", "trio"}) {
    CAPTURE(name);
    const Target target = load_target(name);
    const Device* gpu = target.find_device("gpu");
    REQUIRE(gpu != nullptr);
    for (const std::string_view op : catalogued_ops()) {
      CAPTURE(op);
      if (find_row(op) != nullptr) CHECK(gpu->rules_by_type.contains(op));
    }
    for (const OpRule& rule : gpu->rules) {
      for (const std::string& op : rule.types) {
        CAPTURE(op);
        CHECK(find_row(op) != nullptr);
      }
    }
  }
}

TEST_CASE("kernels with one text are one, and the same model gives the same source") {
  const Graph graph = fused_model("resnet18");
  const LoweredGraph first = lowered(graph, true);
  CHECK(first.plan.programs.size() < first.plan.launches.size());
  CHECK(first.source == lowered(graph, true).source);
}

TEST_CASE("kernels whose operands differ in their rows alone have one source") {
  const auto source = [](std::int64_t rows) {
    const Graph product = one_node("aten.linear.default", {{{rows, 24}}, {{8, 24}}, {{8}}},
                                   {rows, 8}, Json::object());
    const Graph chain = one_node("aten.relu.default", {{{rows, 24}}}, {rows, 24}, Json::object());
    return lowered(product, true).source + lowered(chain, true).source +
           lowered(product, false).source;
  };
  CHECK(source(33) == source(50));
  const LoweredGraph plan =
      lowered(one_node("aten.relu.default", {{{50, 24}}}, {50, 24}, Json::object()), true);
  CHECK(plan.plan.launches.at(0).sizes == std::vector<std::uint64_t>{1200});
}

TEST_CASE("no variable of a kernel has an argument's name") {
  const Graph graph = one_node("aten.cumsum.default", {{{1, 15}}}, {1, 15}, {{"dim", 0}});
  const std::string source = lowered(graph, true).source;
  const std::regex argument("const u?long ([a-z]+[0-9]+)[,)]");
  auto next = std::sregex_iterator(source.begin(), source.end(), argument);
  CHECK(next != std::sregex_iterator());
  for (; next != std::sregex_iterator(); ++next)
    CHECK(source.find(" " + next->str(1) + " = ") == std::string::npos);
}

TEST_CASE("each kernel is a program of its own, whichever stand beside it") {
  const LoweredGraph plan = lowered(fused_model("resnet18"), true);
  const auto sources = pieces_of(plan.plan, plan.source, &ProgramPart::source_bytes);
  for (const std::string_view source : sources) {
    const std::size_t first = source.find("__kernel");
    CHECK(first != std::string_view::npos);
    CHECK(source.find("__kernel", first + 1) == std::string_view::npos);
  }
  const LoweredGraph chain =
      lowered(one_node("aten.relu.default", {{{50, 24}}}, {50, 24}, Json::object()), true);
  const LoweredGraph longer =
      lowered(one_node("aten.relu.default", {{{51, 24}}}, {51, 24}, Json::object()), true);
  CHECK(chain.source == longer.source);
}

TEST_CASE("measured sizes are taken, and refused where no kernel has them") {
  const Graph graph =
      one_node("aten.linear.default", {{{64, 24}}, {{32, 24}}}, {64, 32}, Json::object());
  const auto with = [&](bool is_cpu, const std::vector<std::int64_t>& sizes) {
    Machine machine;
    machine.is_cpu = is_cpu;
    machine.tuning["product float32 b1 m64 n32 k24 nt"] = sizes;
    return lower_graph(graph, machine, [](std::size_t, std::size_t) {});
  };
  const LoweredGraph rule = lowered(graph, false);
  REQUIRE(rule.tunables.at(0).has_value());
  CHECK(rule.tunables[0]->key == "product float32 b1 m64 n32 k24 nt");
  for (const auto& sizes : rule.tunables[0]->candidates) {
    const Launch launch = with(false, sizes).plan.launches.at(0);
    CHECK(launch.local == std::array<std::uint64_t, 3>{
                              static_cast<std::uint64_t>(sizes[4]),
                              static_cast<std::uint64_t>(sizes[3]),
                              static_cast<std::uint64_t>(sizes.size() == 6 ? sizes[5] : 1)});
  }
  CHECK(with(true, {4, 16, 8, 1, 1}).plan.launches.at(0).global ==
        std::array<std::uint64_t, 3>{2, 16, 1});
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{8, 32, 64},
                                                 {0, 32, 64, 1, 1},
                                                 {9, 32, 16, 2, 1},
                                                 {64, 64, 16, 32, 32},
                                                 {32, 32, 16, 8, 8, 3},
                                                 {32, 32, 16, 8, 8, 8},
                                                 {32, 32, 16, 8, 8, 2, 2},
                                                 {64, 64, 4, 8, 8, 4},
                                                 {4096, 4096, 4096, 1, 1},
                                                 {64, 64, 512, 8, 8}}) {
    CHECK_THROWS_AS(with(false, sizes), Error);
  }
  // What an item has to itself: sums of 8 * 1024 * 4 bytes, and tiles of (8 + 1024) * 8 * 4.
  CHECK_THROWS_AS(with(true, {8, 1024, 8, 1, 1}), Error);
  CHECK_NOTHROW(with(true, {8, 1024, 4, 1, 1}));
}

TEST_CASE("tiles of a product follow its extents and the units of the device") {
  const auto tiling = [](std::int64_t rows, std::int64_t columns, std::int64_t summands,
                         std::int64_t units) {
    Machine machine;
    machine.compute_units = units;
    machine.max_group = 1024;
    machine.local_bytes = 49152;
    const Graph graph = one_node("aten.linear.default", {{{rows, summands}}, {{columns, summands}}},
                                 {rows, columns}, Json::object());
    return lower_graph(graph, machine, [](std::size_t, std::size_t) {})
        .tunables.at(0)
        .value_or(Tunable{})
        .candidates.at(0);
  };
  // Much to do: large tiles. Few results of many summands: slices on as many units as there are.
  CHECK(tiling(4096, 4096, 1024, 132) == std::vector<std::int64_t>{128, 128, 8, 16, 16});
  const std::vector<std::int64_t> small = tiling(49, 512, 4608, 132);
  REQUIRE(small.size() == 6);
  CHECK(small[5] >= 4);
  CHECK((49 + small[0] - 1) / small[0] * (512 / small[1]) >= 64);
  CHECK(tiling(64, 64, 16, 132).size() == 5);  // one step: nothing to share
}

TEST_CASE("rows are measured by their ops and their type") {
  Machine machine;
  const auto lower = [&](const std::string& op, const std::string& dtype) {
    return lower_graph(one_node(op, {{{64, 300}, dtype}}, {64}, {{"dim", {1}}}, dtype), machine,
                       [](std::size_t, std::size_t) {});
  };
  const auto key = [&](const std::string& op, const std::string& dtype) {
    return lower(op, dtype).tunables.at(0).value_or(Tunable{}).key;
  };
  CHECK(key("aten.amax.default", "float32") == "rows float32 amax n64 of 300");
  CHECK(key("aten.amax.default", "float16") == "rows float16 amax n64 of 300");
  CHECK(key("aten.amin.default", "float32") == "rows float32 amin n64 of 300");
  const auto lanes = [&] {
    return lower("aten.amax.default", "float32").plan.launches.at(0).local[0];
  };
  machine.max_group = 1024;
  machine.tuning["rows float32 amax n64 of 300"] = {512};
  CHECK(lanes() == 512);
  // Two reductions of up to 8 bytes for each of 512 items.
  machine.local_bytes = 8191;
  CHECK_THROWS_WITH(lanes(), Catch::Contains("are no sizes of it on this device"));
  machine.tuning["rows float32 amax n64 of 300"] = {256};  // the rule's
  machine.local_bytes = 1024;
  CHECK(lanes() == 256);
}

TEST_CASE("a program of one text has one binary, whatever was started before") {
  Machine machine;
  const auto source = [&](std::int64_t rows) {
    return lower_graph(one_node("aten.relu.default", {{{rows, 64}}}, {rows, 64}, Json::object()),
                       machine, [](std::size_t, std::size_t) {})
        .source;
  };
  CHECK(source(33) == source(5000));
  machine.finishes_at_start = true;
  CHECK(source(33) == source(50));
  CHECK(source(33) != source(5000));  // more than 65535 elements are a large range
}

TEST_CASE("tiles of float16 are halves where the device computes with them") {
  const auto source = [](bool has_float16) {
    Json inputs = Json::array();
    for (const auto& [name, shape] :
         {std::pair<const char*, Shape>{"x0", {64, 24}}, {"x1", {32, 24}}}) {
      inputs.push_back({{"name", name}, {"shape", shape}, {"dtype", "float16"}});
    }
    const Json y = {{"name", "y"}, {"shape", {64, 32}}, {"dtype", "float16"}};
    Json of_y = y;
    of_y["producer_node"] = "y";
    const Json node = {{"name", "y"},
                       {"op_type", "aten.linear.default"},
                       {"inputs", inputs},
                       {"outputs", Json::array({y})},
                       {"attrs", Json::object()}};
    const Json document = {{"model_name", "half"},
                           {"graph_inputs", inputs},
                           {"graph_outputs", Json::array({of_y})},
                           {"weights", Json::array()},
                           {"nodes", Json::array({node})}};
    Machine machine;
    machine.has_float16 = has_float16;
    const Graph graph = read_valid_graph(document.dump(), "half");
    return lower_graph(graph, machine, [](std::size_t, std::size_t) {}).source;
  };
  const std::string with = source(true);
  CHECK(with.starts_with("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"));
  CHECK(with.find("__local half tiles[") != std::string::npos);
  CHECK(with.find("(*(__local const half") != std::string::npos);
  CHECK(with.find("  float acc[") != std::string::npos);
  const std::string without = source(false);
  CHECK(without.find("half tiles") == std::string::npos);
  CHECK(without.find("cl_khr_fp16") == std::string::npos);
  CHECK(without.find("vload_half(") != std::string::npos);
}

TEST_CASE("a recurrent layer refuses what does not fit it") {
  const auto gru = [](const Shape& state, const Shape& weight, const Json& attrs) {
    Json all = {{"_tensor_list_sizes", {2}},
                {"has_biases", false},
                {"num_layers", 1},
                {"dropout", 0.0},
                {"train", false},
                {"bidirectional", false},
                {"batch_first", false}};
    all.update(attrs);
    Json inputs = Json::array();
    for (const Shape& shape : {Shape{5, 3, 6}, state, weight, Shape{24, 8}}) {
      inputs.push_back(
          {{"name", "x" + std::to_string(inputs.size())}, {"shape", shape}, {"dtype", "float32"}});
    }
    const Json y = {{"name", "y"}, {"shape", {5, 3, 8}}, {"dtype", "float32"}};
    const Json last = {{"name", "last"}, {"shape", {1, 3, 8}}, {"dtype", "float32"}};
    Json of_y = y;
    of_y["producer_node"] = "y";
    const Json node = {{"name", "y"},
                       {"op_type", "aten.gru.input"},
                       {"inputs", inputs},
                       {"outputs", {y, last}},
                       {"attrs", all}};
    const Json document = {{"model_name", "one"},
                           {"graph_inputs", inputs},
                           {"graph_outputs", Json::array({of_y})},
                           {"weights", Json::array()},
                           {"nodes", Json::array({node})}};
    return refusal(read_valid_graph(document.dump(), "one"));
  };
  CHECK(gru({1, 3, 8}, {24, 6}, Json::object()) == "none");
  CHECK(gru({1, 3, 8}, {24, 7}, Json::object()) ==
        "node 'y' (aten.gru.input): a parameter: expected float32 [24, 6], found float32 [24, 7]");
  CHECK(gru({1, 4, 8}, {24, 6}, Json::object()) ==
        "node 'y' (aten.gru.input): a state: expected float32 [1, 3, 8], found float32 [1, 4, 8]");
  CHECK(gru({2, 3, 8}, {24, 6}, {{"num_layers", 2}}) ==
        "node 'y' (aten.gru.input): its parameters are of another number of layers");
  CHECK(gru({1, 3, 8}, {24, 6}, {{"num_layers", 0}}) ==
        "node 'y' (aten.gru.input): expected 1 to 256 layers, found 0");
  CHECK(gru({1, 3, 8}, {24, 6}, {{"train", true}, {"dropout", 0.5}}) ==
        "node 'y' (aten.gru.input): it is in training mode");
}

TEST_CASE("what does not fit is refused by the node's name") {
  CHECK(refusal(one_node("aten.relu.default", {{{3, 5}}}, {3, 4}, Json::object())) ==
        "node 'y' (aten.relu.default): expected a result of shape [3, 5], found [3, 4]");
  CHECK(refusal(one_node("aten.t.default", {{{3, 5}}}, {3, 5}, Json::object())) ==
        "node 'y' (aten.t.default): expected a result of shape [5, 3], found [3, 5]");
  CHECK(refusal(one_node("aten.relu.default", {{{3, 5}}}, {3, 5}, Json::object())) == "none");
}

TEST_CASE("operands that do not broadcast are refused") {
  const Json index = {{"_tensor_list_sizes", {2}}};
  CHECK(refusal(one_node("aten.masked_fill.Scalar", {{{3, 5}}, {{3, 4}, "bool"}}, {3, 5},
                         {{"value", 0.0}})) ==
        "node 'y' (aten.masked_fill.Scalar): its operands do not broadcast to one shape");
  CHECK(refusal(one_node("aten.masked_fill.Scalar", {{{3, 5}}, {{3, 1}, "bool"}}, {3, 5},
                         {{"value", 0.0}})) == "none");
  CHECK(refusal(one_node("aten.index.Tensor", {{{6, 7}}, {{2}, "int64"}, {{3}, "int64"}}, {3},
                         index)) == "node 'y' (aten.index.Tensor): its indices do not broadcast");
  CHECK(refusal(one_node("aten.index.Tensor", {{{6, 7}}, {{3}, "int64"}, {{1}, "int64"}}, {3},
                         index)) == "none");
  CHECK(refusal(one_node("aten.scaled_dot_product_attention.default",
                         {{{1, 2, 4, 8}}, {{1, 2, 6, 8}}, {{1, 2, 6, 8}}, {{4, 5}}}, {1, 2, 4, 8},
                         Json::object())) ==
        "node 'y' (aten.scaled_dot_product_attention.default): an operand of shape [4, 5] does not "
        "broadcast to [1, 2, 4, 6]");
}

TEST_CASE("einsums that are no product of matrices are refused") {
  const auto einsum = [](const char* equation, const Shape& result) {
    return refusal(one_node("aten.einsum.default", {{{2, 3}}, {{3, 4}}}, result,
                            {{"equation", equation}, {"_tensor_list_sizes", {2}}}));
  };
  CHECK(einsum("ij,jk->ik", {2, 4}) == "none");
  CHECK(einsum("...j,jk->...k", {2, 4}) == "none");
  CHECK(einsum("ij,jk", {2, 4}) == "none");
  const std::string refused = "node 'y' (aten.einsum.default): 'equation': label ";
  CHECK(einsum("ij,jk->iik", {2, 2, 4}) == refused + "'i' stands twice");
  CHECK(einsum("ij,kl->il", {2, 4}) == refused + "'j' is summed in one operand alone");
}

TEST_CASE("sizes that do not fit are refused") {
  constexpr std::int64_t kLarge = INT64_MAX - 1;
  const auto padded = [](const std::vector<std::int64_t>& pad) {
    return refusal(one_node("aten.constant_pad_nd.default", {{{3, 5}}}, {3, 6}, {{"pad", pad}}));
  };
  CHECK(padded({1, 0}) == "none");
  CHECK(padded({kLarge, 2 - kLarge}) ==
        "node 'y' (aten.constant_pad_nd.default): a pad is too large");
  CHECK(refusal(one_node("aten.repeat.default", {{{3, 4}}}, {3, 0}, {{"repeats", {1, kLarge}}})) ==
        "node 'y' (aten.repeat.default): a size is negative or too large");
  CHECK(refusal(one_node("aten.repeat_interleave.self_int", {{{3, 4}}}, {3, 0},
                         {{"repeats", kLarge}, {"dim", 1}})) ==
        "node 'y' (aten.repeat_interleave.self_int): a size is negative or too large");
  CHECK(refusal(one_node("aten.roll.default", {{{3, 5}}}, {3, 5},
                         {{"shifts", {INT64_MIN}}, {"dims", {1}}})) == "none");
  CHECK(refusal(one_node("aten.conv2d.default", {{{1, 2, 5, 5}}, {{2, 2, 3, 3}}}, {1, 2, 5, 5},
                         {{"padding", {1, INT32_MAX}}, {"dilation", {1, INT32_MAX}}})) ==
        "node 'y' (aten.conv2d.default): its places do not fit in 31 bits");
}

TEST_CASE("sorts and quantization refuse arguments that do not fit") {
  CHECK(refusal(one_node("aten.argsort.default", {{{3, 5}}}, {3, 4}, Json::object())) ==
        "node 'y' (aten.argsort.default): expected a result of shape [3, 5], found [3, 4]");
  CHECK(refusal(one_node("aten.topk.default", {{{3, 5}}}, {3, 6}, {{"k", 6}})) ==
        "node 'y' (aten.topk.default): 'k' is larger than its row");
  const auto dequantized = [](const std::string& dtype, const Shape& scales) {
    return refusal(
        one_node("quantized_decomposed.dequantize_per_channel.default",
                 {{{3, 5}, dtype}, {scales}, {scales, "int64"}}, {3, 5},
                 {{"axis", 1}, {"quant_min", -128}, {"quant_max", 127}, {"dtype", "torch.int8"}}));
  };
  CHECK(dequantized("int8", {5}) == "none");
  CHECK(dequantized("int8", {3}) ==
        "node 'y' (quantized_decomposed.dequantize_per_channel.default): its scales or zero points "
        "do not fit its axis");
  CHECK(dequantized("int64", {5}) ==
        "node 'y' (quantized_decomposed.dequantize_per_channel.default): expected an operand of "
        "int8, uint8, int16 or int32");
}

TEST_CASE("scatters that add up refuse what does not fit them") {
  const auto reduced = [](const char* how, const std::string& dtype) {
    return refusal(one_node("aten.scatter_reduce.two",
                            {{{3, 5}, dtype}, {{2, 4}, "int64"}, {{2, 4}, dtype}}, {3, 5},
                            {{"dim", 0}, {"reduce", how}}, dtype));
  };
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"}) {
    CHECK(reduced(how, "float32") == "none");
    CHECK(reduced(how, "int64") == "none");
    CHECK(reduced(how, "float16") ==
          "node 'y' (aten.scatter_reduce.two): sums of 16-bit floats are not supported");
  }
  CHECK(reduced("median", "float32") ==
        "node 'y' (aten.scatter_reduce.two): 'reduce' is none of sum, prod, mean, amax and amin");
  const auto added = [](const Shape& index, const Shape& source) {
    return refusal(one_node("aten.index_add.default", {{{3, 5}}, {index, "int64"}, {source}},
                            {3, 5}, {{"dim", 1}}));
  };
  CHECK(added({4}, {3, 4}) == "none");
  CHECK(added({}, {3, 1}) == "none");
  CHECK(added({4}, {3, 5}) == "node 'y' (aten.index_add.default): its source does not fit");
  CHECK(added({3, 4}, {3, 4}) == "node 'y' (aten.index_add.default): its index does not fit");
  const auto copied = [](const Shape& index, const Shape& source, const char* dtype) {
    return refusal(one_node("aten.index_copy.default",
                            {{{3, 5}, dtype}, {index, "int64"}, {source, dtype}}, {3, 5},
                            {{"dim", 1}}));
  };
  CHECK(copied({4}, {3, 4}, "float32") == "none");
  CHECK(copied({4}, {3, 5}, "float32") ==
        "node 'y' (aten.index_copy.default): its source does not fit");
}

TEST_CASE("a mean of what is scattered counts in memory of its own, and nothing is atomic") {
  const auto lower = [](const char* how) {
    return lowered(one_node("aten.scatter_reduce.two", {{{3, 5}}, {{2, 4}, "int64"}, {{2, 4}}},
                            {3, 5}, {{"dim", 0}, {"reduce", how}}),
                   true);
  };
  CHECK(lower("sum").plan.scratch_bytes == 0);
  CHECK(lower("mean").plan.scratch_bytes >= 60);  // 15 counts of 4 bytes
  CHECK(lower("mean").source.find("atomic") == std::string::npos);
}

TEST_CASE("an aggregation over edges is one kernel, whatever its sizes") {
  const auto lower = [](std::int64_t nodes, std::int64_t edges, const char* form, bool is_cpu) {
    return lowered(
        one_node("npu.segment_reduce",
                 {{{nodes + 7, 2, 3}}, {{nodes + 1}, "int64"}, {{edges}, "int32"}, {{edges, 2}}},
                 {nodes, 2, 3}, {{"reduce", form}}),
        is_cpu);
  };
  for (const char* form : {"sum", "mean", "amax", "softmax"}) {
    for (const bool is_cpu : {true, false}) {
      const LoweredGraph plan = lower(5, 11, form, is_cpu);
      CHECK(plan.plan.launches.size() == 1);
      CHECK(plan.source == lower(90, 300, form, is_cpu).source);
    }
  }
  CHECK(lower(5, 11, "sum", true).source.find("atomic") == std::string::npos);
  const auto refused = [](const std::vector<Operand>& operands, const Shape& result,
                          const Json& attrs) {
    return refusal(one_node("npu.segment_reduce", operands, result, attrs));
  };
  const std::string node = "node 'y' (npu.segment_reduce): ";
  const std::vector<Operand> plain = {{{9, 3}}, {{6}, "int64"}, {{11}, "int32"}};
  CHECK(refused(plain, {5, 3}, Json::object()) == "none");
  CHECK(refused(plain, {6, 3}, Json::object()) ==
        node + "expected a result of shape [5, 3], found [6, 3]");
  CHECK(refused(plain, {5, 3}, {{"reduce", "prod"}}) ==
        node + "'reduce' is none of sum, mean, amax and softmax");
  CHECK(refused(plain, {5, 3}, {{"reduce", "softmax"}}) == node + "a softmax needs weights");
  CHECK(refused({{{9, 3}}, {{6}}}, {5, 3}, Json::object()) == node + "its offsets are no integers");
  CHECK(refused({{{9, 3}}, {{6}, "int64"}, {{11}, "int32"}, {{12, 1}}}, {5, 3}, Json::object()) ==
        node + "its weights do not fit");
}

TEST_CASE("what follows an aggregation element by element is in its kernel") {
  const Json x = {{"name", "x"}, {"shape", {9, 3}}, {"dtype", "float32"}};
  const Json offsets = {{"name", "o"}, {"shape", Json::array({6})}, {"dtype", "int64"}};
  const Json s = {{"name", "s"}, {"shape", {5, 3}}, {"dtype", "float32"}};
  const Json y = {{"name", "y"}, {"shape", {5, 3}}, {"dtype", "float32"}};
  Json of_y = y;
  of_y["producer_node"] = "y";
  const Json document = {{"model_name", "aggregation"},
                         {"graph_inputs", {x, offsets}},
                         {"graph_outputs", Json::array({of_y})},
                         {"weights", Json::array()},
                         {"nodes",
                          {{{"name", "s"},
                            {"op_type", "npu.segment_reduce"},
                            {"inputs", {x, offsets}},
                            {"outputs", Json::array({s})},
                            {"attrs", Json::object()}},
                           {{"name", "y"},
                            {"op_type", "aten.relu.default"},
                            {"inputs", Json::array({s})},
                            {"outputs", Json::array({y})},
                            {"attrs", Json::object()}}}}};
  Graph graph = read_valid_graph(document.dump(), "aggregation");
  Diagnostics diagnostics;
  tag_ops(graph, load_target("opencl"), {}, diagnostics);
  fuse_ops(graph, {}, diagnostics);
  for (const Node& node : graph.nodes()) CHECK(node.device == "gpu");
  CHECK(lowered(graph, true).plan.launches.size() == 1);
}

TEST_CASE("local memory of all reductions of a kernel is compared with the device's") {
  const Graph norm =
      one_node("aten.layer_norm.default", {{{4, 300}}}, {4, 300}, {{"normalized_shape", {300}}});
  Machine machine;
  // Two reductions of 256 items with 4 bytes each.
  for (const std::int64_t bytes : {2047, 2048}) {
    machine.local_bytes = bytes;
    std::string message = "none";
    try {
      lower_graph(norm, machine, [](std::size_t, std::size_t) {});
    } catch (const Error& error) {
      message = error.message();
    }
    CHECK(message == (bytes == 2048 ? "none"
                                    : "node 'y' (aten.layer_norm.default): it needs more local "
                                      "memory than the device has"));
  }
}

TEST_CASE("a kernel that reads places has a word to say that one is outside") {
  const Graph graph =
      one_node("aten.index_select.default", {{{6, 7}}, {{3}, "int64"}}, {3, 7}, {{"dim", 0}});
  const Plan plan = lowered(graph, true).plan;
  REQUIRE(plan.faults == std::vector<std::string>{"node 'y': an index is outside its dimension"});
  const auto is_fault = [](const Place& place) { return place.kind == PlaceKind::kFault; };
  CHECK(std::ranges::count_if(plan.launches.at(0).arguments, is_fault) == 1);
}

TEST_CASE("nothing is looked up where there are no results") {
  const auto select = [](std::int64_t rows, std::int64_t places) {
    return one_node("aten.index_select.default", {{{rows, 7}}, {{places}, "int64"}}, {places, 7},
                    {{"dim", 0}});
  };
  CHECK(lowered(select(0, 0), true).plan.launches.empty());
  CHECK(lowered(select(6, 0), true).plan.launches.empty());
  CHECK(refusal(select(0, 3)) ==
        "node 'y' (aten.index_select.default): it has an index into a dimension without elements");
}

TEST_CASE("tensors that live at once do not share memory") {
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % below;
  };
  std::vector<ScratchTensor> tensors;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t first = draw(40);
    tensors.push_back({1 + draw(5000), first, first + draw(6), 0});
  }
  const std::uint64_t bytes = plan_scratch(tensors);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ScratchTensor& a = tensors[i];
    sum += a.bytes;
    CHECK(a.offset % 256 == 0);
    CHECK(a.offset + a.bytes <= bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const ScratchTensor& b = tensors[j];
      const bool at_once = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      CHECK_FALSE((at_once && overlap));
    }
  }
  CHECK(bytes < sum);
}

}  // namespace npu::opencl
