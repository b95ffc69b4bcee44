// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/align.hpp"
#include "partition/plan_checks.hpp"
#include "partition/report/partition_json.hpp"
#include "tensor/slow_layout.hpp"

namespace npu {
namespace {

using test::GraphBuilder;

const Shape kImage{1, 8, 4, 4};

struct Aligned {
  Graph graph;
  AlignResult result;
  std::vector<std::string> messages = {};

  AlignMode mode(const std::string& name) const {
    for (const AlignNode& node : result.nodes) {
      if (node.name == name) return node.mode;
    }
    return AlignMode::kUnknown;
  }
  std::string allowed(const std::string& name) const {
    for (const AlignNode& node : result.nodes) {
      if (node.name == name) {
        return std::string(align_mode_name(node.allowed)) + " " + std::string(node.rule);
      }
    }
    return "-";
  }
  /// "tensor>A: users" and "tensor>N: users", in node order.
  std::vector<std::string> conversions() const {
    std::vector<std::string> lines;
    for (const AlignConversion& conversion : result.conversions) {
      std::string line = conversion.tensor + (conversion.to_nalign ? ">N:" : ">A:");
      for (const std::string& user : conversion.users) line += " " + user;
      lines.push_back(line);
    }
    return lines;
  }
  std::vector<std::string> removed() const {
    std::vector<std::string> lines;
    for (const AlignRemoval& removal : result.removed) {
      lines.push_back(removal.tensor + (removal.to_nalign ? ">N " : ">A ") + removal.cause);
    }
    return lines;
  }
  std::vector<std::string> operands(const std::string& name) const {
    std::vector<std::string> names;
    for (const TensorId id : graph.node(graph.find_node(name)).inputs) {
      names.push_back(graph.tensor(id).name);
    }
    return names;
  }
};

Aligned align(Graph graph, const AlignOptions& options = {}) {
  Aligned aligned{std::move(graph), {}};
  Diagnostics diagnostics;
  aligned.result = align_layout(aligned.graph, options, diagnostics);
  for (const Diagnostic& entry : diagnostics.entries()) {
    aligned.messages.push_back(format_diagnostic(entry));
  }
  // What was written is a valid document that holds together.
  const Graph again = read_valid_graph(write_graph(aligned.graph), "again.json");
  Diagnostics faults;
  verify_alignment(again, faults);
  CHECK(test::errors_of(faults).empty());
  return aligned;
}

Aligned greedy(Graph graph) { return align(std::move(graph), {.algorithm = "greedy"}); }

using Lines = std::vector<std::string>;

GraphBuilder conv_builder(const Shape& shape = kImage) {
  GraphBuilder builder;
  builder.input("x", shape).weight("w", {shape[1], shape[1], 1, 1});
  return builder;
}

// ---- rules ----

TEST_CASE("a graph without nodes has nothing to align") {
  const Aligned aligned = align(GraphBuilder().input("x").output("x").build());
  CHECK(aligned.result.costs.conversions == 0);
  CHECK(aligned.result.nodes.empty());
  CHECK(aligned.graph.npu_member("layout") != nullptr);
}

TEST_CASE("the mode that rules give each op") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,4,4]; weight w [8,8,1,1]; weight m [8,8]; weight v [8]
    conv = conv2d(x, p_w)
    pool = max_pool2d(conv) [1,8,2,2] {"kernel_size": [2, 2]}
    mean = aten.mean.dim(pool) [1,8] {"dim": [2, 3]}
    linear = linear(mean, p_m)
    transposed = permute(conv) {"dims": [0, 1, 3, 2]}
    cat = cat(conv, conv) [1,16,4,4] {"dim": 1, "_tensor_list_sizes": [2]}
    padded = constant_pad_nd(conv) [1,8,6,6] {"pad": [1, 1, 1, 1]}
    scattered = scatter_add(conv, conv, conv) {"dim": 0}
    relu = relu(conv)
    rank3 = view(conv) [1,8,16] {"size": [1, 8, 16]}
    rank1 = view(conv) [128] {"size": [128]}
    rank5 = view(conv) [1,8,1,4,4] {"size": [1, 8, 1, 4, 4]}
    gemm3 = matmul(rank3, rank3)
    scalar = sum(conv) []
    biased = aten.add.Tensor(conv, p_v)
    cast = aten.to.dtype(conv) int64 {"dtype": "torch.int64"}
    pinned = relu(conv) dev_info="NALIGN"
    pinned2 = conv2d(conv, p_w) dev_info={"align_mode": "nalign"}
    pinned3 = conv2d(conv, p_w) dev_info="both"
    elsewhere = relu(conv) dev_info="cpu"
    custom = my.op(conv))");
  const Aligned aligned = align(builder.build());
  const std::map<std::string, std::string> expected{{"conv", "ALIGN conv"},
                                                    {"pool", "ALIGN pool"},
                                                    {"mean", "ALIGN reduce"},
                                                    {"linear", "ALIGN gemm"},
                                                    {"transposed", "ALIGN transpose"},
                                                    {"cat", "ALIGN concatenate"},
                                                    {"padded", "ALIGN pad"},
                                                    {"scattered", "ALIGN scatter"},
                                                    {"relu", "BOTH both"},
                                                    {"rank3", "NALIGN odd-rank"},
                                                    {"rank1", "NALIGN odd-rank"},
                                                    {"rank5", "NALIGN odd-rank"},
                                                    {"gemm3", "NALIGN odd-rank"},
                                                    {"scalar", "NALIGN rank"},
                                                    {"biased", "BOTH broadcast"},
                                                    {"cast", "NALIGN dtype"},
                                                    {"pinned", "NALIGN dev_info"},
                                                    {"pinned2", "NALIGN dev_info"},
                                                    {"pinned3", "BOTH dev_info"},
                                                    {"elsewhere", "BOTH both"},
                                                    {"custom", "BOTH both"}};
  for (const auto& [name, rule] : expected) {
    CAPTURE(name);
    CHECK(aligned.allowed(name) == rule);
  }
  CHECK(aligned.messages.empty());
}

TEST_CASE("slices are aligned unless they cut channels off at a multiple") {
  const auto rule = [](const Json& attrs, const Shape& from = {2, 256}, const Shape& to = {2, 64}) {
    GraphBuilder builder;
    builder.input("x", from).node("slice", "aten.slice.Tensor", {"x"}, to, attrs).output("slice");
    return align(builder.build()).allowed("slice");
  };
  CHECK(rule({{"dim", 1}, {"start", 64}, {"end", 128}}) == "NALIGN slice");
  CHECK(rule({{"dim", -1}, {"start", 1}, {"end", 64}}) == "NALIGN slice");
  CHECK(rule({{"dim", 1}, {"start", -64}, {"end", INT64_MAX}}) == "NALIGN slice");  // 192..256
  CHECK(rule({{"dim", 1}, {"start", -64}}) == "NALIGN slice");  // the end is that of the axis
  CHECK(rule({{"dim", 1}, {"start", 0}, {"end", 64}}) == "ALIGN slice");
  CHECK(rule({{"dim", 1}, {"start", 64}, {"end", 127}}) == "ALIGN slice");
  CHECK(rule({{"dim", 1}, {"end", 128}}) == "ALIGN slice");
  CHECK(rule({{"dim", 0}, {"start", 1}, {"end", 64}}) == "ALIGN slice");  // another axis
  CHECK(rule({{"start", 1}, {"end", 64}}) == "ALIGN slice");              // dim is 0 by default
  CHECK(rule({{"dim", 3}, {"start", 64}, {"end", 128}}, {1, 4, 2, 128}, {1, 4, 2, 64}) ==
        "ALIGN slice");  // channels are axis 1, whatever the last one is
  CHECK(rule({{"dim", 1}, {"start", 64}, {"end", 128}}, {1, 128, 2, 2}, {1, 64, 2, 2}) ==
        "NALIGN slice");
}

TEST_CASE("a mode that a result cannot have is not taken from dev_info") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,4,4] int64
    n = my.op(x) dev_info="ALIGN"; output n)");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.allowed("n") == "NALIGN dtype");
  CHECK(aligned.messages ==
        Lines{"test.json: /nodes/0/dev_info: warning: node 'n' cannot be ALIGN: its result 'n' is "
              "int64, which has no aligned form"});
}

// ---- the walk-through ----

TEST_CASE("an op that takes both follows its parent") {
  GraphBuilder builder = conv_builder();
  builder.node("conv", "aten.conv2d.default", {"x", "p_w"})
      .node("relu", "aten.relu.default", {"conv"})
      .node("conv2", "aten.conv2d.default", {"relu", "p_w"})
      .output("conv2");
  for (const Aligned& aligned : {align(builder.build()), greedy(builder.build())}) {
    CHECK(aligned.mode("relu") == AlignMode::kAlign);
    CHECK(aligned.conversions() == Lines{"x>A: conv", "conv2>N: graph output"});
    CHECK(aligned.operands("conv") == Lines{"x_aligned", "p_w"});
    CHECK(aligned.graph.tensor(aligned.graph.graph_outputs().front()).name == "conv2");
  }
}

TEST_CASE("what an ALIGN op makes for an unaligned end is converted as early as memory asks for") {
  // relu may be either; unaligned it needs less memory. Greedy follows the parent.
  GraphBuilder builder = conv_builder({1, 3, 4, 4});
  builder.node("conv", "aten.conv2d.default", {"x", "p_w"})
      .node("relu", "aten.relu.default", {"conv"})
      .output("relu");
  const Aligned optimal = align(builder.build());
  CHECK(optimal.mode("relu") == AlignMode::kNalign);
  CHECK(optimal.conversions() == Lines{"x>A: conv", "conv>N: relu"});
  // Two aligned tensors of 3 channels padded to 4: 256 bytes instead of 192.
  CHECK(optimal.result.costs.padded_bytes == 2 * (256 - 192));
  const Aligned forward = greedy(builder.build());
  CHECK(forward.mode("relu") == AlignMode::kAlign);
  CHECK(forward.conversions() == Lines{"x>A: conv", "relu>N: graph output"});
  CHECK(forward.result.costs.padded_bytes == 3 * (256 - 192));
}

TEST_CASE("the documented case: an add of one ALIGN and two NALIGN parents") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [4]; weight w [1,8,4,4]
    a = my.op(p_w) dev_info="ALIGN"
    b = my.op(p_w) dev_info="NALIGN"
    c = my.op(p_w) dev_info="NALIGN"
    sum = my.add3(a, b, c)
    end = my.op(sum) dev_info="NALIGN"; output end)");
  const Aligned optimal = align(builder.build());
  CHECK(optimal.conversions() == Lines{"a>N: sum"});
  CHECK(optimal.result.greedy.conversions == 3);
  const Aligned forward = greedy(builder.build());
  CHECK(forward.conversions() == Lines{"b>A: sum", "c>A: sum", "sum>N: end"});
  CHECK(forward.result.costs.conversions == 3);
  const AlignCertificate& certificate = *optimal.result.certificate;
  CHECK(certificate.cut == certificate.flow);
  CHECK(certificate.cut / certificate.scale == 1);
}

TEST_CASE("one conversion serves all users of a tensor, and several operands of one user") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    u1 = my.op(x) [1,8,4,4] dev_info="ALIGN"
    u2 = my.three(x, x, p_w) [1,8,4,4] dev_info="ALIGN"
    u3 = my.two(u1, x) dev_info="NALIGN"
    u4 = my.two(u1, u1) dev_info="NALIGN"; output u3)");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.conversions() == Lines{"x>A: u1 u2", "u1>N: u3 u4"});
  CHECK(aligned.operands("u2") == Lines{"x_aligned", "x_aligned", "p_w"});
  CHECK(aligned.operands("u3") == Lines{"u1", "x"});
  CHECK(aligned.operands("u4") == Lines{"u1", "u1"});
  const Node& made = aligned.graph.node(aligned.graph.find_node("u1"));
  CHECK(aligned.graph.tensor(made.outputs.front()).name == "u1_aligned");
  const Node& converter = aligned.graph.node(aligned.graph.find_node("u1_unaligned"));
  CHECK(converter.op_type == "npu.channel_norm");
  CHECK(converter.attrs() == Json{{"direction", true}, {"layout", "tx8"}});
}

TEST_CASE("a broadcast operand is compatible with both") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    input row [1,8,1,4]
    conv = conv2d(x, p_w)
    sum = aten.add.Tensor(row, conv) [1,8,4,4]
    conv2 = conv2d(sum, p_w); output conv2)");
  for (const Aligned& aligned : {align(builder.build()), greedy(builder.build())}) {
    // The graph input comes first, but the complete operand decides.
    CHECK(aligned.mode("sum") == AlignMode::kAlign);
    CHECK(aligned.conversions() == Lines{"x>A: conv", "conv2>N: graph output"});
  }
}

TEST_CASE("conversions that cost nothing are not inserted") {
  GraphBuilder builder;
  builder.lines(R"(
    input flat [16]; input pixel [1,40,1,1]; weight c [1,8,4,4]; weight v [8]
    a = my.op(flat) [16,1] dev_info="ALIGN"
    b = my.op(pixel) dev_info="ALIGN"
    d = my.op(p_c, p_v) dev_info="ALIGN"; output b)");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.conversions().empty());
  CHECK(aligned.removed() == Lines{"flat>A one-dimensional", "pixel>A channels only",
                                   "b>N channels only", "p_c>A constant"});
}

TEST_CASE("results of a list and their getitems have one mode") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    conv = conv2d(x, p_w)
    split = aten.split.Tensor(conv) [1,4,4,4] [1,4,4,4] {"split_size": 4, "dim": 1}
    get0 = getitem(split_0, split_1) {"index": 0}
    get1 = getitem(split_0, split_1) {"index": 1}
    out = my.op(get0) dev_info="NALIGN"; output out, get1)");
  for (const Aligned& aligned : {align(builder.build()), greedy(builder.build())}) {
    CHECK(aligned.mode("split") == aligned.mode("get0"));
    CHECK(aligned.mode("split") == aligned.mode("get1"));
  }
  CHECK(align(builder.build()).conversions() == Lines{"x>A: conv", "conv>N: split"});
}

// ---- existing conversions ----

TEST_CASE("a channel_norm that stands in the document is respected") {
  GraphBuilder builder = conv_builder();
  builder.node("norm", "npu.channel_norm", {"x"}, kImage, {{"direction", false}})
      .node("conv", "aten.conv2d.default", {"norm", "p_w"})
      .node("back", "npu.channel_norm", {"conv"}, kImage, {{"direction", true}})
      .output("back");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.allowed("norm") == "ALIGN channel_norm");
  CHECK(aligned.allowed("back") == "NALIGN channel_norm");
  CHECK(aligned.conversions() == Lines{"x>A: conv", "back>N: graph output"});
  CHECK(std::all_of(aligned.result.conversions.begin(), aligned.result.conversions.end(),
                    [](const AlignConversion& conversion) { return conversion.existed; }));
  CHECK(aligned.result.costs.conversions == 2);
  CHECK(aligned.graph.nodes().size() == 3);
}

TEST_CASE("channel_norms that do nothing are taken out") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    input flat [8]; weight k [1,8,4,4]
    conv = conv2d(x, p_w)
    to = npu.channel_norm(conv) [1,8,4,4] {"direction": true}
    fro = npu.channel_norm(to) {"direction": false}
    # cancels
    conv2 = conv2d(fro, p_w)
    flat_norm = npu.channel_norm(flat) {"direction": false}
    weight_norm = npu.channel_norm(p_k) {"direction": false}
    use = my.op(flat_norm, weight_norm) [1,8,4,4]
    one = npu.channel_norm(conv2) {"direction": true}
    two = npu.channel_norm(conv2) {"direction": true}
    reader = my.op(two) dev_info="NALIGN"; output one, use, reader)");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.conversions() == Lines{"x>A: conv", "one>N: reader graph output"});
  CHECK(aligned.operands("conv2") == Lines{"conv", "p_w"});
  CHECK(aligned.operands("use") == Lines{"flat", "p_k"});
  CHECK(aligned.operands("reader") == Lines{"one"});
  std::vector<std::string> removed = aligned.removed();
  std::sort(removed.begin(), removed.end());
  CHECK(removed == Lines{"conv2>N twice", "conv>N unused", "flat>A one-dimensional",
                         "p_k>A constant", "to>A cancelled"});
}

TEST_CASE("a reader of a channel_norm that wants the other form reads its operand") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    norm = npu.channel_norm(x) [1,8,4,4] {"direction": false}
    conv = conv2d(norm, p_w)
    plain = my.op(norm) dev_info="NALIGN"; output plain)");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.operands("plain") == Lines{"x"});
  CHECK(aligned.conversions() == Lines{"x>A: conv"});
  CHECK(aligned.result.costs.conversions == 1);
}

TEST_CASE("a second run gives the same bytes, whatever ran first") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,4,4]; weight w [8,8,1,1]
    conv = conv2d(x, p_w)
    relu = relu(conv)
    view = view(relu) [1,8,16] {"size": [1, 8, 16]}
    conv2 = conv2d(relu, p_w); output view, conv2)");
  Graph once = builder.build();
  Diagnostics diagnostics;
  CHECK(align_layout(once, {}, diagnostics).changed);
  const std::string first = write_graph(once);
  Graph twice = read_valid_graph(first, "test.json");
  CHECK_FALSE(align_layout(twice, {}, diagnostics).changed);
  CHECK(write_graph(twice) == first);
  Graph other = read_valid_graph(first, "test.json");
  align_layout(other, {.algorithm = "greedy"}, diagnostics);
  align_layout(other, {}, diagnostics);
  CHECK(write_graph(other) == first);
}

TEST_CASE("a folded node that reads a shape keeps its place") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,4,4]; weight w [8,8,1,1]
    conv = conv2d(x, p_w)
    ones = full_like(conv) {"fill_value": 1.0} folded=true
    view = view(conv) [1,8,16] {"size": [1, 8, 16]}; output ones, view)");
  const std::string algorithm = GENERATE("greedy", "optimal");
  Graph graph = builder.build();
  Diagnostics diagnostics;
  CHECK(align_layout(graph, {.algorithm = algorithm}, diagnostics).changed);
  const std::string first = write_graph(graph);
  CHECK_FALSE(align_layout(graph, {.algorithm = algorithm}, diagnostics).changed);
  CHECK(write_graph(graph) == first);
}

// ---- fusion groups ----

TEST_CASE("no conversion goes inside a fusion group") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    conv = conv2d(x, p_w) fusion_group=3
    relu = relu(conv) fusion_group=3; output relu)");
  const Aligned aligned = align(builder.build());
  // Alone, relu would be NALIGN.
  CHECK(aligned.mode("relu") == AlignMode::kAlign);
  CHECK(aligned.conversions() == Lines{"x>A: conv", "relu>N: graph output"});
  CHECK(aligned.result.splits.empty());
}

TEST_CASE("a group whose members cannot agree is split") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    conv = conv2d(x, p_w) fusion_group=1
    relu = relu(conv) fusion_group=1
    view = view(relu) [1,8,16] {"size": [1, 8, 16]} fusion_group=1; output view)");
  Graph fused = builder.build();
  fused.set_npu_member("fusion", {{"groups", Json::array({{{"id", 1},
                                                           {"pattern", "conv_act"},
                                                           {"nodes", {"conv", "relu", "view"}},
                                                           {"inputs", {"x"}},
                                                           {"outputs", {"view"}}}})}});
  const Aligned aligned = align(std::move(fused));
  REQUIRE(aligned.result.splits.size() == 1);
  const AlignSplit& split = aligned.result.splits.front();
  CHECK(split.groups == std::vector<std::int64_t>{1, 2});
  CHECK(split.aligned + " " + split.aligned_rule == "conv conv");
  CHECK(split.unaligned + " " + split.unaligned_rule == "view odd-rank");
  CHECK(aligned.graph.node(aligned.graph.find_node("conv")).fusion_group == 1);
  CHECK(aligned.graph.node(aligned.graph.find_node("relu")).fusion_group == 2);
  CHECK(aligned.graph.node(aligned.graph.find_node("view")).fusion_group == 2);
  const Json& groups = aligned.graph.npu_member("fusion")->at("groups");
  REQUIRE(groups.size() == 2);
  CHECK(groups[0] == Json{{"id", 1},
                          {"pattern", "single"},
                          {"nodes", {"conv"}},
                          {"inputs", {"x_aligned"}},
                          {"outputs", {"conv_aligned"}}});
  CHECK(groups[1]["nodes"] == Json{"relu", "view"});
  CHECK(groups[1]["inputs"] == Json{"conv"});
  // The split is not reported as new the second time, but not forgotten either.
  const std::string text = write_graph(aligned.graph);
  Graph again = read_valid_graph(text, "test.json");
  Diagnostics diagnostics;
  CHECK_FALSE(align_layout(again, {}, diagnostics).changed);
  CHECK(write_graph(again) == text);
}

TEST_CASE("an op whose tensors are the same in both layouts goes along with its group") {
  GraphBuilder builder = conv_builder();
  builder
      .node("pool", "aten.adaptive_avg_pool2d.default", {"x"}, Shape{1, 8, 1, 1},
            {{"output_size", {1, 1}}})
      .key("fusion_group", 0)
      .node("flat", "aten.flatten.using_ints", {"pool"}, Shape{8}, {{"start_dim", 0}})
      .key("fusion_group", 0)
      .output("flat");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.allowed("flat") == "NALIGN odd-rank");
  CHECK(aligned.result.splits.empty());
  CHECK(aligned.mode("flat") == AlignMode::kAlign);
  CHECK(aligned.conversions() == Lines{"x>A: pool"});
}

TEST_CASE("a group that is not convex is refused") {
  GraphBuilder builder;
  builder.lines(R"(
    input x [1,8,4,4]
    a = my.op(x) fusion_group=0
    b = my.op(a)
    c = my.op(b) fusion_group=0; output c)");
  Graph graph = builder.build();
  Diagnostics diagnostics;
  CHECK_THROWS_WITH(align_layout(graph, {}, diagnostics),
                    Catch::Matchers::Contains("fusion group 0 is not convex"));
}

// ---- partitions ----

Json two_devices() {
  return parse_json(R"({
    "name": "two",
    "devices": [
      {"name": "npu", "ops": "*", "align": {"layout": "blocked", "channel_multiple": 16},
       "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9},
      {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1e9}, "memory_bandwidth": 1e9}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1e9}]})",
                    "two.json");
}

TEST_CASE("a transfer resets to NALIGN, and partitions keep their inputs and outputs") {
  GraphBuilder builder = conv_builder();
  builder.document()["npu"] = {{"target", two_devices()}};
  builder.lines(R"(
    conv = conv2d(x, p_w) @npu
    relu = relu(conv) @cpu
    relu2 = relu(relu) @npu
    conv2 = conv2d(relu2, p_w) @npu
    last = aten.add.Tensor(conv2, conv) @npu; output last)");
  Graph graph = builder.build();
  Diagnostics diagnostics;
  const PartitionResult before = partition_graph(graph, {}, diagnostics);
  const Aligned aligned = align(graph);
  // conv leaves its partition, to the cpu and to the second npu partition; there it comes in
  // row-major, although it never left the device. The add fits there: conv2 is converted for it.
  CHECK(aligned.conversions() ==
        Lines{"x>A: conv", "conv>N: relu last", "relu2>A: conv2", "conv2>N: last"});
  CHECK(aligned.mode("relu") == AlignMode::kUnknown);
  const Graph read = read_valid_graph(write_graph(aligned.graph), "test.json");
  const PartitionPlan after = read_partition_plan(read, diagnostics);
  CHECK(test::errors_of(diagnostics) == Lines{});
  REQUIRE(after.partitions.size() == before.plan.partitions.size());
  for (std::size_t p = 0; p < after.partitions.size(); ++p) {
    const Json& written = (*aligned.graph.npu_member("partition"))["partitions"][p];
    Json inputs = Json::array();
    for (const TensorId id : after.partitions[p].boundary.inputs) {
      inputs.push_back(aligned.graph.tensor(id).name);
    }
    CHECK(written["inputs"] == inputs);
    CHECK(written["inputs"] == (*graph.npu_member("partition"))["partitions"][p]["inputs"]);
  }
  const Json& steps = (*aligned.graph.npu_member("partition"))["steps"];
  CHECK(steps == (*graph.npu_member("partition"))["steps"]);
  // The metrics are those that the plan would have had with these nodes.
  const Json metrics =
      metrics_to_json(plan_metrics(aligned.graph, after, before.target), before.target);
  const Json& found = (*aligned.graph.npu_member("partition"))["metrics"];
  for (const auto& [name, value] : metrics.items()) {
    INFO(name);
    CHECK(found.at(name) == value);
  }
}

TEST_CASE("partitions that do not fit the nodes are refused") {
  GraphBuilder builder;
  builder.document()["npu"] = {{"target", two_devices()},
                               {"partition", {{"partitions", Json::array()}}}};
  builder.input("x", kImage).node("a", "my.op", {"x"}, kImage).on("npu").output("a");
  Graph graph = builder.build();
  Diagnostics diagnostics;
  CHECK_THROWS_WITH(align_layout(graph, {}, diagnostics),
                    Catch::Matchers::Contains("node 'a' is in no partition; run npu-partition"));
  const auto refuse = [&](const Json& partitions, const std::string& text) {
    graph.set_npu_member("partition", {{"partitions", partitions}});
    CHECK_THROWS_WITH(align_layout(graph, {}, diagnostics), Catch::Matchers::Contains(text));
  };
  refuse(3, "expected an array");
  refuse(Json::array({{{"nodes", "a"}}}), "expected an array of node names");
  refuse(Json::array({{{"nodes", {"b"}}}}), "the graph has no node \"b\"");
  refuse(Json::array({{{"nodes", {"a", "a"}}}}), "is in two partitions");
  refuse(Json::array({{{"nodes", {"a"}}}}), "node 'a' has the partition null, but npu.partition");
  graph.nodes()[0].partition = 3;
  refuse(Json::array({{{"nodes", {"a"}}}}), "lists it in partition 0; run npu-partition again");
  graph.erase_npu_member("partition");
  CHECK_THROWS_WITH(align_layout(graph, {}, diagnostics),
                    Catch::Matchers::Contains("but the document has no npu.partition"));
}

TEST_CASE("options that do not exist are refused") {
  Graph graph = GraphBuilder().input("x").output("x").build();
  Diagnostics diagnostics;
  CHECK_THROWS_WITH(align_layout(graph, {.algorithm = "fast"}, diagnostics),
                    Catch::Matchers::Contains("expected one of optimal, greedy"));
  CHECK_THROWS_WITH(align_layout(graph, {.weight = "ms"}, diagnostics),
                    Catch::Matchers::Contains("expected one of count, bytes, time"));
}

TEST_CASE("a target without aligned layouts leaves everything as it is") {
  Json target = two_devices();
  target["devices"][0].erase("align");
  GraphBuilder builder = conv_builder();
  builder.document()["npu"] = {{"target", target}};
  builder.node("conv", "aten.conv2d.default", {"x", "p_w"}).on("npu").output("conv");
  const Aligned aligned = align(builder.build());
  CHECK(aligned.conversions().empty());
  CHECK(aligned.messages ==
        Lines{"test.json: warning: no device of target 'two' has an 'align' section; there is "
              "nothing to align"});
}

// ---- random graphs, against the definition ----

/// A graph as the tests know it. Operand -1 - i is graph input i.
struct Model {
  struct Op {
    int pin = 0;  // 1: ALIGN, -1: NALIGN, 0: both
    std::vector<int> operands;
    Shape shape;
    int group = -1;
    bool is_output = false;
    bool on_npu = true;
  };
  std::vector<Shape> inputs;
  std::vector<Op> ops;

  Graph build() const {
    GraphBuilder builder;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      builder.input("x" + std::to_string(i), inputs[i]);
    for (std::size_t n = 0; n < ops.size(); ++n) {
      const Op& op = ops[n];
      std::vector<std::string> names;
      for (const int operand : op.operands) {
        names.push_back(operand < 0 ? "x" + std::to_string(-1 - operand)
                                    : "n" + std::to_string(operand));
      }
      const std::string name = "n" + std::to_string(n);
      builder.node(name, "my.op", names, op.shape);
      if (op.pin != 0) builder.key("dev_info", op.pin > 0 ? "ALIGN" : "NALIGN");
      if (op.group >= 0) builder.key("fusion_group", op.group);
      if (!op.on_npu) builder.on("cpu");
      if (op.is_output) builder.output(name);
    }
    return builder.build();
  }

  static bool differs(const Shape& shape) {
    return shape[0] * shape[2] * shape[3] != 1;  // all are of rank 4
  }
};

struct RandomOptions {
  int ops = 10;
  int most_free = 14;
  bool groups = false;
  bool devices = false;
};

Model random_model(std::mt19937& random, const RandomOptions& options) {
  const auto below = [&](int bound) {
    return static_cast<int>(random() % static_cast<unsigned>(bound));
  };
  const auto shape = [&]() -> Shape {
    if (below(8) == 0) return {1, below(70) + 1, 1, 1};
    return {below(2) + 1, below(140) + 1, below(3) + 1, 2};
  };
  Model model;
  for (int i = below(2); i >= 0; --i) model.inputs.push_back(shape());
  const int share = 20 + below(60);
  int free_ops = 0;
  for (int n = 0; n < options.ops; ++n) {
    Model::Op op;
    for (int i = below(4); i > 0; --i) {
      const int from = below(n + 1);
      op.operands.push_back(from == n ? -1 - below(static_cast<int>(model.inputs.size()))
                                      : std::max(0, n - 1 - below(below(n) + 1)));
    }
    op.pin = below(100) < share ? 0 : below(2) * 2 - 1;
    if (op.pin == 0 && ++free_ops > options.most_free) op.pin = 1;
    op.shape = shape();
    op.is_output = below(5) == 0;
    op.on_npu = !options.devices || below(4) != 0;
    model.ops.push_back(std::move(op));
  }
  if (options.groups) {
    // A node with a single reader may share its reader's group: always convex.
    for (int n = options.ops - 1; n > 0; --n) {
      Model::Op& op = model.ops[static_cast<std::size_t>(n)];
      if (op.group < 0) op.group = n;
      for (const int operand : op.operands) {
        if (operand < 0 || below(2) == 0) continue;
        int readers = 0;
        for (const Model::Op& other : model.ops) {
          readers += std::count(other.operands.begin(), other.operands.end(), operand) > 0 ? 1 : 0;
        }
        Model::Op& parent = model.ops[static_cast<std::size_t>(operand)];
        if (readers == 1 && parent.group < 0 && parent.on_npu == op.on_npu) parent.group = op.group;
      }
    }
  }
  return model;
}

/// Costs of one labelling, by definition.
struct Cost {
  std::int64_t conversions = 0;
  std::int64_t bytes = 0;
  std::int64_t padding = 0;
  std::int64_t aligned_ops = 0;
};

/// A model's tensors as bit masks over units: for exhaustive search.
class Exhaustive {
 public:
  explicit Exhaustive(const Model& model) : model_(model) {
    unit_of_.assign(model.ops.size(), -1);
    std::map<int, std::pair<bool, bool>> pins;
    for (const Model::Op& op : model.ops) {
      if (op.group < 0 || !op.on_npu) continue;
      if (op.pin > 0) pins[op.group].first = true;
      if (op.pin < 0) pins[op.group].second = true;
    }
    std::map<int, int> unit_of_group;
    for (std::size_t n = 0; n < model.ops.size(); ++n) {
      const Model::Op& op = model.ops[n];
      if (!op.on_npu) continue;
      const bool agrees = op.group >= 0 && !(pins[op.group].first && pins[op.group].second);
      if (agrees && unit_of_group.count(op.group) != 0) {
        unit_of_[n] = unit_of_group[op.group];
      } else {
        unit_of_[n] = static_cast<int>(pin_.size());
        pin_.push_back(0);
        size_.push_back(0);
        if (agrees) unit_of_group[op.group] = unit_of_[n];
      }
      if (op.pin != 0) pin_[static_cast<std::size_t>(unit_of_[n])] = op.pin;
      ++size_[static_cast<std::size_t>(unit_of_[n])];
    }
    for (std::size_t i = 0; i < model.inputs.size(); ++i) add_tensor(-1 - static_cast<int>(i));
    for (std::size_t n = 0; n < model.ops.size(); ++n) add_tensor(static_cast<int>(n));
    for (std::size_t u = 0; u < pin_.size(); ++u) {
      if (pin_[u] == 0) free_.push_back(static_cast<int>(u));
      if (pin_[u] > 0) fixed_ |= std::uint64_t{1} << u;
    }
  }

  std::size_t free_units() const { return free_.size(); }

  Cost cost(std::uint64_t aligned) const {
    Cost total;
    for (const TensorBits& tensor : tensors_) {
      const bool made = tensor.producer >= 0 && ((aligned >> tensor.producer) & 1) != 0;
      if (made) total.padding += tensor.padding;
      const bool wants_aligned = (tensor.users & aligned) != 0;
      const bool wants_plain = tensor.leaves || (tensor.users & ~aligned) != 0;
      if (made && wants_plain) {
        ++total.conversions;
        total.bytes += tensor.plain;
      }
      if (!made && wants_aligned) {
        ++total.conversions;
        total.bytes += tensor.plain + tensor.padding;
        total.padding += tensor.padding;
      }
    }
    for (std::size_t u = 0; u < size_.size(); ++u) {
      if (((aligned >> u) & 1) != 0) total.aligned_ops += size_[u];
    }
    return total;
  }

  /// The best by `key`, over all labellings.
  template <typename Key>
  Cost best(Key key) const {
    std::optional<Cost> found;
    for (std::uint64_t choice = 0; choice < (std::uint64_t{1} << free_.size()); ++choice) {
      std::uint64_t aligned = fixed_;
      for (std::size_t i = 0; i < free_.size(); ++i) {
        if (((choice >> i) & 1) != 0) aligned |= std::uint64_t{1} << free_[i];
      }
      const Cost here = cost(aligned);
      if (!found || key(here) < key(*found)) found = here;
    }
    return *found;
  }

  /// The forward pass of the source document, on units in their order of first members.
  std::uint64_t forward() const {
    std::vector<int> mode = pin_;
    for (std::size_t n = 0; n < model_.ops.size(); ++n) {
      if (unit_of_[n] < 0 || mode[static_cast<std::size_t>(unit_of_[n])] != 0) continue;
      std::pair<int, int> first{INT32_MAX, 0};
      for (const int operand : model_.ops[n].operands) {
        const int producer = operand < 0 ? -1 : unit_of_[static_cast<std::size_t>(operand)];
        const int label = producer < 0 ? -1 : mode[static_cast<std::size_t>(producer)];
        if (label != 0) first = std::min(first, {operand < 0 ? -1 : operand, label});
      }
      mode[static_cast<std::size_t>(unit_of_[n])] = first.second;
    }
    for (std::size_t n = model_.ops.size(); n-- > 0;) {
      if (unit_of_[n] < 0 || mode[static_cast<std::size_t>(unit_of_[n])] != 0) continue;
      int& label = mode[static_cast<std::size_t>(unit_of_[n])];
      for (std::size_t m = n + 1; m < model_.ops.size() && label == 0; ++m) {
        const auto& operands = model_.ops[m].operands;
        if (unit_of_[m] >= 0 &&
            std::find(operands.begin(), operands.end(), static_cast<int>(n)) != operands.end()) {
          label = mode[static_cast<std::size_t>(unit_of_[m])];
        }
      }
      if (label == 0) label = -1;
    }
    std::uint64_t aligned = 0;
    for (std::size_t u = 0; u < mode.size(); ++u) {
      if (mode[u] > 0) aligned |= std::uint64_t{1} << u;
    }
    return aligned;
  }

 private:
  struct TensorBits {
    int producer = -1;  // unit; -1: from outside
    std::uint64_t users = 0;
    bool leaves = false;
    std::int64_t plain = 0;
    std::int64_t padding = 0;
  };

  void add_tensor(int id) {
    const Shape& shape = id < 0 ? model_.inputs[static_cast<std::size_t>(-1 - id)]
                                : model_.ops[static_cast<std::size_t>(id)].shape;
    if (!Model::differs(shape)) return;
    TensorBits tensor;
    tensor.producer = id < 0 ? -1 : unit_of_[static_cast<std::size_t>(id)];
    if (id >= 0) tensor.leaves = model_.ops[static_cast<std::size_t>(id)].is_output;
    for (std::size_t n = 0; n < model_.ops.size(); ++n) {
      const auto& operands = model_.ops[n].operands;
      if (std::find(operands.begin(), operands.end(), id) == operands.end()) continue;
      if (unit_of_[n] < 0) {
        tensor.leaves = true;
      } else if (unit_of_[n] != tensor.producer) {
        tensor.users |= std::uint64_t{1} << unit_of_[n];
      }
    }
    if (tensor.producer < 0) tensor.leaves = false;
    tensor.plain = shape[0] * shape[1] * shape[2] * shape[3] * 4;
    tensor.padding = test::SlowLayout{"tx8", 0}.bytes(shape, 4) - tensor.plain;
    tensors_.push_back(tensor);
  }

  const Model& model_;
  std::vector<int> unit_of_;
  std::vector<int> pin_;
  std::vector<int> size_;
  std::vector<int> free_;
  std::uint64_t fixed_ = 0;
  std::vector<TensorBits> tensors_;
};

std::int64_t channel_norms(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const Node& node) { return node.op_type == "npu.channel_norm"; });
}

/// What must hold whatever was chosen.
void check_document(const Aligned& aligned) {
  const AlignCosts& costs = aligned.result.costs;
  CHECK(channel_norms(aligned.graph) == costs.conversions);
  CHECK(costs.to_align + costs.to_nalign == costs.conversions);
  CHECK(static_cast<std::int64_t>(aligned.result.conversions.size()) == costs.conversions);
  std::int64_t bytes = 0;
  std::set<std::string> seen;
  for (const AlignConversion& conversion : aligned.result.conversions) {
    bytes += conversion.bytes;
    CHECK_FALSE(conversion.users.empty());
    CHECK(seen.insert(conversion.tensor).second);  // one a tensor
    const Node& node = aligned.graph.node(aligned.graph.find_node(conversion.node));
    CHECK(node.attrs().at("direction") == Json(conversion.to_nalign));
  }
  CHECK(bytes == costs.bytes);
}

TEST_CASE("optimal equals exhaustive search on random graphs") {
  std::mt19937 random(20);
  int most_free = 0;
  int better_than_greedy = 0;
  for (int round = 0; round < 2400; ++round) {
    CAPTURE(round);
    const Model model = random_model(random, {.ops = 2 + static_cast<int>(random() % 17),
                                              .groups = round % 3 == 1,
                                              .devices = round % 3 == 2});
    const Exhaustive search(model);
    REQUIRE(search.free_units() <= 14);
    most_free = std::max(most_free, static_cast<int>(search.free_units()));
    const Cost best = search.best([](const Cost& cost) {
      return std::tuple(cost.conversions, cost.padding, cost.aligned_ops);
    });
    const Aligned aligned = align(model.build());
    check_document(aligned);
    const AlignCosts& costs = aligned.result.costs;
    CHECK(costs.conversions == best.conversions);
    CHECK(costs.padded_bytes == best.padding);
    CHECK(align_metrics(aligned.result).at("nodes_align") == static_cast<double>(best.aligned_ops));
    const Cost forward = search.cost(search.forward());
    if (round % 3 == 0) {
      CHECK(aligned.result.greedy.conversions == forward.conversions);
      CHECK(aligned.result.greedy.bytes == forward.bytes);
    }
    CHECK(costs.conversions <= aligned.result.greedy.conversions);
    better_than_greedy += costs.conversions < aligned.result.greedy.conversions ? 1 : 0;
  }
  CHECK(most_free == 14);
  CHECK(better_than_greedy > 200);  // the comparison can tell the two apart
}

TEST_CASE("other weights equal exhaustive search, too") {
  std::mt19937 random(21);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Model model = random_model(
        random, {.ops = 2 + static_cast<int>(random() % 12), .groups = round % 2 == 1});
    const Exhaustive search(model);
    const Cost best =
        search.best([](const Cost& cost) { return std::tuple(cost.bytes, cost.padding); });
    const Aligned bytes = align(model.build(), {.weight = "bytes"});
    CHECK(bytes.result.costs.bytes == best.bytes);
    CHECK(bytes.result.costs.padded_bytes == best.padding);
    const Aligned time = align(model.build(), {.weight = "time"});
    CHECK(time.result.costs.predicted_us <= bytes.result.costs.predicted_us + 0.1);
    CHECK(time.result.costs.predicted_us <= align(model.build()).result.costs.predicted_us + 0.1);
  }
}

TEST_CASE("optimal never needs more conversions than greedy on larger graphs") {
  std::mt19937 random(22);
  std::int64_t fewer = 0;
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const Model model = random_model(random, {.ops = 20 + static_cast<int>(random() % 60),
                                              .most_free = 1000,
                                              .groups = round % 4 == 1,
                                              .devices = round % 4 >= 2});
    Graph graph = model.build();
    Diagnostics diagnostics;
    const AlignResult optimal = align_layout(graph, {}, diagnostics);
    CHECK(optimal.costs.conversions <= optimal.greedy.conversions);
    fewer += optimal.greedy.conversions - optimal.costs.conversions;
    if (round % 10 != 0) continue;
    // A second run starts from the same graph.
    const std::string text = write_graph(graph);
    Graph again = read_valid_graph(text, "test.json");
    CHECK_FALSE(align_layout(again, {}, diagnostics).changed);
    CHECK(write_graph(again) == text);
    align_layout(again, {.algorithm = "greedy"}, diagnostics);
    CHECK(channel_norms(again) == optimal.greedy.conversions);
    align_layout(again, {}, diagnostics);
    CHECK(write_graph(again) == text);
  }
  CHECK(fewer > 1000);
}

TEST_CASE("partitioned random graphs stay executable") {
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Model model = random_model(
        random, {.ops = 3 + static_cast<int>(random() % 30), .most_free = 1000, .devices = true});
    Graph graph = model.build();
    for (Node& node : graph.nodes()) node.device = node.device.value_or("npu");
    graph.set_npu_member("target", two_devices());
    Diagnostics diagnostics;
    partition_graph(graph, {.strategy = round % 2 == 0 ? Strategy::kConvex : Strategy::kContiguous},
                    diagnostics);
    const Json before = *graph.npu_member("partition");
    const Aligned aligned = align(std::move(graph));
    const Json& after = *aligned.graph.npu_member("partition");
    CHECK(after["steps"] == before["steps"]);
    const Graph read = read_valid_graph(write_graph(aligned.graph), "test.json");
    const PartitionPlan plan = read_partition_plan(read, diagnostics);
    CHECK(test::errors_of(diagnostics) == Lines{});
    CHECK(test::is_executable(aligned.graph, plan));
    for (std::size_t p = 0; p < plan.partitions.size(); ++p) {
      for (const auto& [key, list] : {std::pair("inputs", &plan.partitions[p].boundary.inputs),
                                      {"outputs", &plan.partitions[p].boundary.outputs}}) {
        Json names = Json::array();
        for (const TensorId id : *list) names.push_back(aligned.graph.tensor(id).name);
        CHECK(after["partitions"][p][key] == names);
        std::set<std::string> old_names;  // the order of production is another one now
        for (const Json& name : before["partitions"][p][key]) old_names.insert(name);
        CHECK(old_names == std::set<std::string>(names.begin(), names.end()));
      }
    }
  }
}

// ---- the verifier ----

TEST_CASE("the verifier finds what does not fit") {
  GraphBuilder builder = conv_builder();
  builder.node("conv", "aten.conv2d.default", {"x", "p_w"})
      .node("relu", "aten.relu.default", {"conv"})
      .node("conv2", "aten.conv2d.default", {"relu", "p_w"})
      .output("conv2");
  const Json good = parse_json(write_graph(align(builder.build()).graph), "good.json");
  const auto faults = [&](const std::function<void(Json&)>& damage) {
    Json document = good;
    damage(document["nodes"]);
    Diagnostics diagnostics;
    verify_alignment(read_valid_graph(document.dump(), "bad.json"), diagnostics);
    return test::errors_of(diagnostics);
  };
  // x_aligned conv relu conv2 conv2_unaligned
  CHECK(faults([](Json&) {}).empty());
  CHECK(faults([](Json& nodes) { nodes[2]["align_mode"] = "NALIGN"; }) ==
        Lines{"/nodes/2/inputs/0: node 'relu' reads 'conv' as NALIGN, but it is ALIGN",
              "/nodes/3/inputs/0: node 'conv2' reads 'relu' as ALIGN, but it is NALIGN"});
  CHECK(faults([](Json& nodes) { nodes[0]["attrs"]["direction"] = true; }) ==
        Lines{"/nodes/0/inputs/0: node 'x_aligned' reads 'x' as ALIGN, but it is NALIGN",
              "/nodes/1/inputs/0: node 'conv' reads 'x_aligned' as ALIGN, but it is NALIGN"});
  CHECK(faults([](Json& nodes) { nodes[4]["attrs"]["direction"] = false; }) ==
        Lines{"/nodes/4/inputs/0: node 'conv2_unaligned' reads 'conv2_aligned' as NALIGN, but it "
              "is ALIGN",
              "/nodes/4: tensor 'conv2' of node 'conv2_unaligned' is ALIGN and a graph output"});
  CHECK(faults([](Json& nodes) { nodes[1].erase("align_mode"); }) ==
        Lines{"/nodes/1/align_mode: node 'conv' has no mode; run npu-align first",
              "/nodes/2/inputs/0: node 'relu' reads 'conv' as ALIGN, but it is UNKNOWN"});
  CHECK(faults([](Json& nodes) {
          nodes[1]["fusion_group"] = 7;
          nodes[4]["op_type"] = "my.op";
          nodes[4]["fusion_group"] = 7;
        }) ==
        Lines{"/nodes/4/align_mode: node 'conv2_unaligned' is NALIGN, but 'conv' of the same "
              "fusion group is ALIGN",
              "/nodes/4/inputs/0: node 'conv2_unaligned' reads 'conv2_aligned' as NALIGN, but it "
              "is ALIGN"});
}

// ---- reports ----

TEST_CASE("a conversion names the ops and rules that force it") {
  GraphBuilder builder = conv_builder();
  builder.lines(R"(
    conv = conv2d(x, p_w)
    relu = relu(conv)
    relu2 = relu(relu)
    view = view(relu2) [1,8,16] {"size": [1, 8, 16]}; output view)");
  const Aligned forward = greedy(builder.build());
  REQUIRE(forward.result.conversions.size() == 2);
  const AlignConversion& last = forward.result.conversions.back();
  CHECK(last.tensor == "relu2");
  CHECK(last.from + " " + last.from_rule == "conv conv");  // by way of the relus
  CHECK(last.to + " " + last.to_rule == "view odd-rank");
  const std::string text = format_align_explanation(forward.result);
  CHECK(text.find("'conv' (conv) is ALIGN, 'view' (odd-rank) is NALIGN") != std::string::npos);
  CHECK(text.find("2 conversions (greedy); greedy: 2") != std::string::npos);
  const Aligned optimal = align(builder.build());
  CHECK(format_align_explanation(optimal.result).find("certificate: cut ") != std::string::npos);
  const std::string dot = alignment_to_dot(optimal.graph, optimal.result);
  for (const char* part : {"#ffd84d", "#c9c9c9", "#9fd88b", "shape=diamond", "to NALIGN"}) {
    CHECK(dot.find(part) != std::string::npos);
  }
}

// ---- growth ----

TEST_CASE("the network of the cut grows linearly") {
  const auto work = [](int ops) {
    std::mt19937 random(24);
    Graph graph = random_model(random, {.ops = ops, .most_free = ops, .groups = false}).build();
    Diagnostics diagnostics;
    const AlignResult result = align_layout(graph, {}, diagnostics);
    return std::pair(result.certificate->vertices, result.certificate->arcs);
  };
  const auto small = work(500);
  const auto large = work(4000);
  CHECK(large.first <= 10 * small.first);  // 8 times the ops
  CHECK(large.second <= 10 * small.second);
  CHECK(large.first <= 3 * 4000 + 2);  // an op and two helpers for its result
}

}  // namespace
}  // namespace npu
