// SPDX-License-Identifier: Apache-2.0
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"

namespace npu {
namespace {

// npu runs relu, add, split and getitem in float32, gpu runs relu and sigmoid, cpu everything.
Target three_devices() {
  return parse_target(parse_json(R"({
    "name": "three",
    "devices": [
      {"name": "npu", "dtypes": ["float32"],
       "ops": [{"types": ["aten.relu.default", "aten.add.Tensor", "aten.split.Tensor",
                          "aten.max.dim", "<built-in function getitem>"]}],
       "peak_flops": {"float32": 1}, "memory_bandwidth": 1},
      {"name": "gpu", "ops": [{"types": ["aten.relu.default", "aten.sigmoid.default", "aten.split.Tensor"]}],
       "peak_flops": {"float32": 1}, "memory_bandwidth": 1},
      {"name": "cpu", "ops": "*", "peak_flops": {"float32": 1}, "memory_bandwidth": 1}],
    "links": [{"from": "npu", "to": "cpu", "bandwidth": 1}, {"from": "npu", "to": "gpu", "bandwidth": 1},
              {"from": "gpu", "to": "cpu", "bandwidth": 1}]
  })",
                                 "three.json"),
                      "three.json");
}

struct Tagged {
  Graph graph;
  bool changed = false;
  std::vector<std::string> messages = {};
  /// "device reason" of a node.
  std::string tag(const std::string& name) const {
    const Node& node = graph.node(graph.find_node(name));
    return node.device.value_or("-") + (node.device_reason ? " " + *node.device_reason : "");
  }
};

Tagged tag(Graph graph, const TagOptions& options = {}) {
  Tagged result{std::move(graph)};
  Diagnostics diagnostics;
  result.changed = tag_ops(result.graph, three_devices(), options, diagnostics);
  for (const Diagnostic& entry : diagnostics.entries())
    result.messages.push_back(format_diagnostic(entry));
  return result;
}

test::GraphBuilder chain() {
  return test::GraphBuilder().lines(R"(
    input x
    a = relu(x)
    b = sigmoid(a)
    c = tanh(b)
    d = relu(c); output d)");
}

using Messages = std::vector<std::string>;

TEST_CASE("a graph without nodes gets the target") {
  const Tagged tagged = tag(test::GraphBuilder().input("x").output("x").build());
  CHECK(tagged.changed);
  REQUIRE(tagged.graph.npu_member("target") != nullptr);
  CHECK(*tagged.graph.npu_member("target") == *three_devices().json);
  CHECK(tagged.messages.empty());
}

TEST_CASE("each node goes to the first device that runs it") {
  const Tagged tagged = tag(chain().build());
  CHECK(tagged.changed);
  CHECK(tagged.messages.empty());
  CHECK(tagged.tag("a") == "npu");
  CHECK(tagged.tag("b") == "gpu unsupported op");
  CHECK(tagged.tag("c") == "cpu unsupported op");
  CHECK(tagged.tag("d") == "npu");
  CHECK(*tagged.graph.npu_member("target") == *three_devices().json);
  CHECK(*tagged.graph.npu_member("version") == Json(1));
}

TEST_CASE("the reason is that of the preferred device") {
  const Tagged tagged = tag(test::graph_of(R"(
    input x [4] float64
    a = relu(x)
    b = aten.add.Tensor(a, x); output b)"));
  CHECK(tagged.tag("a") == "gpu dtype float64");
  CHECK(tagged.tag("b") == "cpu dtype float64");
}

TEST_CASE("tagging twice changes nothing") {
  Graph graph = tag(chain().build()).graph;
  const std::string once = write_graph(graph);
  Diagnostics diagnostics;
  CHECK_FALSE(tag_ops(graph, three_devices(), {}, diagnostics));
  CHECK(write_graph(graph) == once);
}

TEST_CASE("what an earlier run wrote and is no longer true is dropped") {
  test::GraphBuilder builder = chain();
  builder.key("device", "cpu")
      .key("device_reason", "forced")
      .key("partition", 3)
      .key("fusion_group", 2);
  builder.document()["npu"] = {{"version", 1},
                               {"weights_file", "w.safetensors"},
                               {"fusion", Json::object()},
                               {"partition", Json::object()},
                               {"layout", Json::object()},
                               {"other", 1}};
  const Tagged tagged = tag(builder.build());
  const Node& node = tagged.graph.nodes().back();
  CHECK(tagged.tag("d") == "npu");
  CHECK_FALSE(node.partition);
  CHECK_FALSE(node.fusion_group);
  for (const char* stale : {"fusion", "partition", "layout"}) {
    CHECK(tagged.graph.npu_member(stale) == nullptr);
  }
  CHECK(*tagged.graph.npu_member("weights_file") == Json("w.safetensors"));
  CHECK(*tagged.graph.npu_member("other") == Json(1));
  const std::string text = write_graph(tagged.graph);
  CHECK(text.find("device_reason\":\"forced") == std::string::npos);
  CHECK(text.find("\"partition\"") == std::string::npos);
}

TEST_CASE("force by op type, by name, by glob") {
  CHECK(tag(chain().build(), {.force = {{"cpu", "aten.relu.default"}}}).tag("a") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "aten.relu.default"}}}).tag("d") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "d"}}}).tag("a") == "npu");
  CHECK(tag(chain().build(), {.force = {{"cpu", "d"}}}).tag("d") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "aten.r*"}}}).tag("a") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "[ab]"}}}).tag("b") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "?"}}}).tag("d") == "cpu forced");
  CHECK(tag(chain().build(), {.force = {{"cpu", "*"}}}).tag("c") == "cpu forced");
  // A node that is forced to where it would be anyway is pinned there.
  CHECK(tag(chain().build(), {.force = {{"npu", "a"}}}).tag("a") == "npu forced");
}

TEST_CASE("a later rule wins") {
  const Tagged tagged = tag(chain().build(), {.force = {{"cpu", "*"}, {"gpu", "aten.relu.*"}}});
  CHECK(tagged.tag("a") == "gpu forced");
  CHECK(tagged.tag("b") == "cpu forced");
  CHECK(tagged.messages.empty());
}

TEST_CASE("bad-force") {
  CHECK_THROWS_WITH(tag(chain().build(), {.force = {{"tpu", "a"}}}),
                    "error: --force tpu=a: target 'three' has no device 'tpu', only npu, gpu, cpu");

  const Tagged unable = tag(chain().build(), {.force = {{"npu", "aten.*"}}});
  CHECK(unable.messages ==
        Messages{
            "test.json: /nodes/1: error: node 'b' (aten.sigmoid.default) is forced to 'npu', which "
            "cannot run it: unsupported op",
            "test.json: /nodes/2: error: node 'c' (aten.tanh.default) is forced to 'npu', which "
            "cannot "
            "run it: unsupported op"});
  CHECK_FALSE(unable.changed);

  const Tagged unused = tag(chain().build(), {.force = {{"cpu", "conv*"}}});
  CHECK(unused.messages == Messages{"test.json: warning: --force cpu=conv* matches no node"});
  CHECK(unused.tag("a") == "npu");
}

TEST_CASE("a node that no device runs") {
  const Tagged tagged = tag(chain().node("e", "my.op", {"d"}).build());
  CHECK(tagged.messages ==
        Messages{
            "test.json: /nodes/4: error: no device of target 'three' runs node 'e' (my.op): npu: "
            "unsupported op; gpu: unsupported op; cpu: unsupported op; --load-ops makes the ops of "
            "a library known"});
  CHECK_FALSE(tagged.changed);
}

TEST_CASE("keep_tags") {
  const auto graph = [] {
    return chain().key("device", "cpu").key("device_reason", "unsupported op").build();
  };
  CHECK(tag(graph()).tag("d") == "npu");
  CHECK(tag(graph(), {.keep_tags = true}).tag("d") == "cpu kept");
  CHECK(tag(graph(), {.keep_tags = true}).tag("a") == "npu");
  // A tag that is kept is pinned, on the preferred device, too.
  CHECK(tag(chain().key("device", "npu").build(), {.keep_tags = true}).tag("d") == "npu kept");
  // A device that the target does not have, or none.
  CHECK(tag(chain().key("device", "tpu").build(), {.keep_tags = true}).tag("d") == "npu");
  // dev_info comes first.
  CHECK(tag(chain().key("device", "cpu").key("dev_info", "gpu").build(), {.keep_tags = true})
            .tag("d") == "gpu kept");
  CHECK(tag(chain().key("device", "cpu").key("dev_info", "tpu").build(), {.keep_tags = true})
            .tag("d") == "cpu kept");
  // A rule wins over a tag.
  CHECK(tag(graph(), {.force = {{"gpu", "d"}}, .keep_tags = true}).tag("d") == "gpu forced");
  const Tagged unable =
      tag(chain().node("e", "aten.tanh.default", {"d"}).on("npu").output("e").build(),
          {.keep_tags = true});
  CHECK(unable.messages ==
        Messages{"test.json: /nodes/4: error: node 'e' (aten.tanh.default) is kept to "
                 "'npu', which cannot run it: unsupported op"});
}

// split -> two getitems; `op` makes the list.
Graph with_getitem(const std::string& op, const Json& attrs,
                   const std::string& second_dtype = "float32", const std::string& device = "") {
  Json document = parse_json(test::GraphBuilder().input("x", {4, 4}).text(), "x");
  const Json x = {{"name", "x"}, {"shape", {4, 4}}, {"dtype", "float32"}};
  const Json s0 = {{"name", "s_0"}, {"shape", {4}}, {"dtype", "float32"}};
  const Json s1 = {{"name", "s_1"}, {"shape", {4}}, {"dtype", second_dtype}};
  document["nodes"].push_back({{"name", "s"},
                               {"op_type", op},
                               {"inputs", Json::array({x})},
                               {"outputs", {s0, s1}},
                               {"attrs", attrs}});
  Json g = {{"name", "g"}, {"shape", {4}}, {"dtype", "float32"}};
  document["nodes"].push_back({{"name", "g"},
                               {"op_type", "<built-in function getitem>"},
                               {"inputs", {s0, s1}},
                               {"outputs", Json::array({g})},
                               {"attrs", {{"index", 0}}}});
  if (!device.empty()) document["nodes"].back()["device"] = device;
  document["graph_outputs"].push_back(g);
  return read_valid_graph(document.dump(), "test.json");
}

TEST_CASE("getitem goes with its producer") {
  const Json split = {{"split_size", 2}};
  const Tagged npu = tag(with_getitem("aten.split.Tensor", split));
  CHECK(npu.tag("s") == "npu");
  CHECK(npu.tag("g") == "npu");

  const Tagged cpu = tag(with_getitem("aten.chunk.default", {{"chunks", 2}}));
  CHECK(cpu.tag("s") == "cpu unsupported op");
  CHECK(cpu.tag("g") == "cpu follows its producer");

  const Tagged forced = tag(with_getitem("aten.split.Tensor", split), {.force = {{"cpu", "s"}}});
  CHECK(forced.tag("s") == "cpu forced");
  CHECK(forced.tag("g") == "cpu forced");

  // gpu runs split, but has no getitem to hand its results out.
  const Tagged gpu = tag(with_getitem("aten.split.Tensor", split), {.force = {{"gpu", "s"}}});
  CHECK(gpu.messages ==
        Messages{"test.json: /nodes/0: error: node 's' (aten.split.Tensor) is forced to 'gpu', "
                 "which cannot run it: getitem: unsupported op"});

  const Tagged apart = tag(with_getitem("aten.split.Tensor", split), {.force = {{"cpu", "g"}}});
  CHECK(apart.messages == Messages{"test.json: /nodes/1: error: node 'g' (<built-in function "
                                   "getitem>) is forced to 'cpu', but "
                                   "has to stay with its producer 's' on 'npu'"});

  // A kept tag gives way.
  const Tagged kept =
      tag(with_getitem("aten.split.Tensor", split, "float32", "cpu"), {.keep_tags = true});
  CHECK(kept.tag("g") == "npu");

  // The indices of max are int64, which this npu does not have.
  const Tagged max = tag(with_getitem("aten.max.dim", {{"dim", 0}}, "int64"));
  CHECK(max.tag("s") == "cpu dtype int64");
  CHECK(max.tag("g") == "cpu follows its producer");
}

TEST_CASE("float64 between integers is float32 where all of its nodes go") {
  const std::string library = "quantized_decomposed.";
  const Json scale{{"scale", 0.1},
                   {"zero_point", 3},
                   {"quant_min", 0},
                   {"quant_max", 255},
                   {"dtype", "torch.uint8"}};
  Json exact = scale;
  exact["out_dtype"] = "torch.float64";
  const Graph graph =
      test::GraphBuilder()
          .input("q", {4}, "uint8")
          .node("x", library + "dequantize_per_tensor.default", {"q"}, Shape{4}, exact, "float64")
          .node("y", "aten.sigmoid.default", {"x"}, Shape{4}, Json::object(), "float64")
          .node("r", library + "quantize_per_tensor.default", {"y"}, Shape{4}, scale, "uint8")
          .output("r")
          .build();
  const auto devices = [&](const TagOptions& options) {
    Graph tagged = graph;
    Diagnostics diagnostics;
    tag_ops(tagged, load_target("host"), options, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    std::string text;
    for (const Node& node : tagged.nodes()) text += node.device.value_or("-") + " ";
    return text;
  };
  TagOptions options;
  CHECK(devices(options) == "npu npu npu ");
  for (const char* glob : {"aten.*", "x", "*.quantize_*"}) {
    options.force = {{"cpu", glob}};
    CHECK(devices(options) == "cpu cpu cpu ");
  }
  options.force = {{"npu", "*"}};
  CHECK(devices(options) == "npu npu npu ");
  // A document that came with a device for one of them.
  Graph kept = graph;
  kept.nodes()[1].device = "cpu";
  options = {};
  options.keep_tags = true;
  Diagnostics diagnostics;
  tag_ops(kept, load_target("host"), options, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  for (const Node& node : kept.nodes()) CHECK(node.device == "cpu");
}

TEST_CASE("the report counts nodes, FLOPs and bytes") {
  const Graph graph = tag(chain().build()).graph;
  const TagReport report = tag_report(graph, three_devices());
  CHECK(report.nodes == 4);
  CHECK(report.flops == 16);      // 4 nodes of 4 elements
  CHECK(report.bytes == 4 * 32);  // 16 bytes in, 16 out
  REQUIRE(report.devices.size() == 3);
  CHECK(report.devices[0].device == "npu");
  CHECK(report.devices[0].nodes == 2);
  CHECK(report.devices[0].flops == 8);
  CHECK(report.devices[0].bytes == 64);
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0].op_type == "aten.relu.default");
  CHECK(report.rows[0].count == 2);
  CHECK(report.rows[0].reason.empty());
  CHECK(report.rows[2].device == "cpu");
  CHECK(report.rows[2].reason == "unsupported op");

  const auto metrics = tag_metrics(report);
  CHECK(metrics.at("nodes") == 4);
  CHECK(metrics.at("nodes_npu") == 2);
  CHECK(metrics.at("nodes_gpu") == 1);
  CHECK(metrics.at("nodes_cpu") == 1);
  CHECK(metrics.at("flops_cpu") == 4);
  CHECK(metrics.at("bytes_gpu") == 32);
  CHECK(metrics.at("coverage_nodes") == 0.5);
  CHECK(metrics.at("coverage_flops") == 0.5);
  CHECK(metrics.at("coverage_bytes") == 0.5);
  CHECK(metrics.at("unsupported_ops") == 2);
  CHECK(metrics.at("left_device") == 2);

  CHECK(format_tag_report(report) ==
        "op                    device  nodes   flops  bytes  reason\n"
        "aten.relu.default     npu         2  8 FLOP   64 B  -\n"
        "aten.sigmoid.default  gpu         1  4 FLOP   32 B  unsupported op\n"
        "aten.tanh.default     cpu         1  4 FLOP   32 B  unsupported op\n"
        "\n"
        "device  nodes  share   flops  share  bytes  share\n"
        "npu         2  50.0%  8 FLOP  50.0%   64 B  50.0%\n"
        "gpu         1  25.0%  4 FLOP  25.0%   32 B  25.0%\n"
        "cpu         1  25.0%  4 FLOP  25.0%   32 B  25.0%\n"
        "left npu: 2 nodes: 1 sigmoid (unsupported op), 1 tanh (unsupported op)\n");
}

TEST_CASE("what a user put elsewhere has not left the device") {
  TagOptions options;
  options.force = {{"cpu", "aten.*"}};
  const TagReport report = tag_report(tag(chain().build(), options).graph, three_devices());
  CHECK(report.devices[2].nodes == 4);
  CHECK(left_device(report) == 0);
  CHECK(tag_metrics(report).at("left_device") == 0);
  CHECK(format_left_device(report) == "left npu: nothing\n");
}

TEST_CASE("the report of an empty graph") {
  const Graph graph = tag(test::GraphBuilder().input("x").output("x").build()).graph;
  const TagReport report = tag_report(graph, three_devices());
  CHECK(report.rows.empty());
  CHECK(tag_metrics(report).at("coverage_nodes") == 1);
  CHECK(tag_metrics(report).at("nodes_npu") == 0);
}

// Maximal runs of one device in list order.
int runs(const Graph& graph) {
  int count = 0;
  std::string last;
  for (const Node& node : graph.nodes()) {
    if (*node.device != last) ++count;
    last = *node.device;
  }
  return count;
}

TEST_CASE("published partition counts of pytorch-apple") {
  const auto count = [](const std::string& model, const std::vector<ForceRule>& force = {}) {
    const std::string path = NPU_TEST_DATA_DIR "/models/" + model + ".json";
    Graph graph = read_valid_graph(read_file(path), path);
    Diagnostics diagnostics;
    tag_ops(graph, load_target("pytorch-apple"), {.force = force}, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    return runs(graph);
  };
  CHECK(count("resnet18") == 1);
  CHECK(count("resnet50") == 1);
  CHECK(count("resnet50", {{"cpu", "aten.add_.Tensor"}}) == 33);
  CHECK(count("mobilenet_v2") == 71);
  CHECK(count("inception_v3") == 19);
  CHECK(count("inception_v3", {{"cpu", "aten.cat.default"}}) == 45);
  CHECK(count("bert_base") == 100);
}

TEST_CASE("published FLOPs of convolutions and fully connected layers") {
  const auto gflop = [](const std::string& model) {
    const std::string path = NPU_TEST_DATA_DIR "/models/" + model + ".json";
    const Graph graph = read_valid_graph(read_file(path), path);
    double flops = 0;
    for (const TagReportRow& row : [&] {
           Graph tagged = graph;
           Diagnostics diagnostics;
           tag_ops(tagged, load_target("host"), {}, diagnostics);
           return tag_report(tagged, load_target("host")).rows;
         }()) {
      if (row.op_type == "aten.conv2d.default" || row.op_type == "aten.linear.default")
        flops += row.flops;
    }
    return flops / 1e9;
  };
  CHECK(gflop("resnet18") == Approx(3.63).epsilon(0.002));
  CHECK(gflop("resnet50") == Approx(8.18).epsilon(0.002));
  CHECK(gflop("mobilenet_v2") == Approx(0.6016).epsilon(0.002));
}

}  // namespace
}  // namespace npu
