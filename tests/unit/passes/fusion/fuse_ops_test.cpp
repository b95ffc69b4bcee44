// SPDX-License-Identifier: Apache-2.0
// Fusion groups: each pattern on the smallest graph that shows it, counts of whole models, and the
// rules that hold for every graph, checked by their definition.
#include <set>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "ops/op_catalogue.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

const Shape kImage{1, 8, 6, 6};

// "pattern: a b c", one line a group, aliases alone left out.
Lines groups_of(const Graph& graph, const FuseOptions& options = {}) {
  Lines lines;
  for (const FusionGroup& group : plan_fusion(graph, options).groups) {
    if (group.pattern == "alias") continue;
    std::string line = group.pattern + ":";
    for (const NodeId id : group.nodes) line += " " + graph.node(id).name;
    lines.push_back(line);
  }
  return lines;
}

FuseOptions only(const std::vector<std::string>& patterns) { return {.patterns = patterns}; }

// A small language for graphs: conv, bn and so on with their weights.
class Net : public GraphBuilder {
 public:
  Net() { input("x", kImage); }
  Net& node(const std::string& name, const std::string& op, const Lines& in,
            const Json& attrs = Json::object()) {
    GraphBuilder::node(name, op, in, attrs);
    return *this;
  }
  Net& node(const std::string& name, const std::string& op, const Lines& in, const Shape& result,
            const Json& attrs = Json::object(), const std::string& dtype = "float32") {
    GraphBuilder::node(name, op, in, result, attrs, dtype);
    return *this;
  }
  Net& on(const std::string& device) {
    GraphBuilder::on(device);
    return *this;
  }
  Net& conv(const std::string& name, const std::string& in, const Shape& weight = {8, 8, 3, 3},
            const Shape& result = kImage) {
    GraphBuilder::weight(name + "_w", weight);
    node(name, "aten.conv2d.default", {in, "p_" + name + "_w"}, result, Json{{"padding", {1, 1}}});
    return *this;
  }
  Net& bn(const std::string& name, const std::string& in, const Shape& shape = kImage,
          bool training = false) {
    std::vector<std::string> operands{in};
    for (const char* part : {"_g", "_b", "_m", "_v"}) {
      GraphBuilder::weight(name + part, {shape[1]});
      operands.push_back("p_" + name + part);
    }
    node(name, "aten.batch_norm.default", operands, shape,
         Json{{"training", training}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
    return *this;
  }
  Net& relu(const std::string& name, const std::string& in) {
    node(name, "aten.relu.default", {in});
    return *this;
  }
  Net& add(const std::string& name, const std::string& a, const std::string& b) {
    node(name, "aten.add.Tensor", {a, b});
    return *this;
  }
  Net& mul(const std::string& name, const std::string& a, const std::string& b) {
    node(name, "aten.mul.Tensor", {a, b});
    return *this;
  }
  Net& linear(const std::string& name, const std::string& in, const Shape& result,
              std::int64_t inner) {
    GraphBuilder::weight(name + "_w", {result.back(), inner});
    node(name, "aten.linear.default", {in, "p_" + name + "_w"}, result);
    return *this;
  }
};

Graph model(const std::string& name) {
  const std::string path = NPU_TEST_DATA_DIR "/models/" + name + ".json";
  return read_valid_graph(read_file(path), path);
}

struct Counts {
  std::int64_t groups = 0;
  std::int64_t kernels = 0;
  bool operator==(const Counts&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.groups << " groups, " << counts.kernels << " kernels";
}

Counts counts_of(const std::string& name, const std::vector<std::string>& patterns) {
  Graph graph = model(name);
  Diagnostics diagnostics;
  fuse_ops(graph, only(patterns), diagnostics);
  const FusionReport report = fusion_report(graph);
  return {report.groups, report.kernels};
}

// ---- the rules, by their definition ----

bool selects(const Graph& graph, NodeId reader, TensorId tensor) {
  const Node& node = graph.node(reader);
  if (node.op_type != "<built-in function getitem>") return true;
  return node.inputs.at(node.attrs().at("index").get<std::size_t>()) == tensor;
}

std::set<int> readers_of(const Graph& graph, TensorId tensor) {
  std::set<int> readers;
  for (const NodeId reader : graph.tensor(tensor).consumers) {
    if (selects(graph, reader, tensor)) readers.insert(reader.value);
  }
  return readers;
}

bool is_block(const std::string& pattern) {
  static const std::set<std::string> blocks{"multi-head-attention", "attention", "rms-norm",
                                            "layer-norm"};
  return blocks.count(pattern) != 0;
}

bool is_of_kernels(const std::string& pattern) {
  for (const FusionPattern& known : fusion_patterns()) {
    if (known.name == pattern) return !known.in_all && known.name != "chain";
  }
  return false;
}

Lines kernel_patterns() {
  Lines names{"none"};
  for (const FusionPattern& known : fusion_patterns()) {
    if (is_of_kernels(std::string(known.name))) names.emplace_back(known.name);
  }
  return names;
}

// Says what is wrong with a plan; empty if nothing is.
std::string fault_of(const Graph& graph, const FusionPlan& plan, std::int64_t max_ops) {
  std::vector<int> owner(graph.nodes().size(), -1);
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const FusionGroup& group = plan.groups[g];
    if (group.nodes.empty()) return "an empty group";
    if (!std::is_sorted(group.nodes.begin(), group.nodes.end())) return "nodes out of order";
    if (static_cast<std::int64_t>(group.nodes.size()) > max_ops) return "a group too large";
    for (const NodeId id : group.nodes) {
      if (owner.at(static_cast<std::size_t>(id.value)) != -1) return "a node in two groups";
      owner[static_cast<std::size_t>(id.value)] = static_cast<int>(g);
      if (graph.node(id).device != graph.node(group.nodes.front()).device) return "two devices";
    }
  }
  if (std::count(owner.begin(), owner.end(), -1) != 0) return "a node in no group";
  if (quotient_has_cycle(graph, owner, plan.groups.size())) return "a cycle of groups";
  std::set<TensorId> outputs(graph.graph_outputs().begin(), graph.graph_outputs().end());
  // What nothing needs is not computed, and reads nothing.
  std::set<int> unused;
  for (int n = static_cast<int>(owner.size()); n-- > 0;) {
    const std::vector<TensorId>& results = graph.node({n}).outputs;
    const bool needed = std::any_of(results.begin(), results.end(), [&](TensorId id) {
      const std::set<int> readers = readers_of(graph, id);
      return outputs.count(id) != 0 ||
             !std::includes(unused.begin(), unused.end(), readers.begin(), readers.end());
    });
    if (!needed) unused.insert(n);
  }
  for (const FusionGroup& group : plan.groups) {
    const int own = owner[static_cast<std::size_t>(group.nodes.front().value)];
    for (const NodeId id : group.nodes) {
      for (const TensorId output : graph.node(id).outputs) {
        std::set<int> readers = readers_of(graph, output);
        if (is_of_kernels(group.pattern)) {
          std::erase_if(readers, [&](int reader) { return unused.count(reader) != 0; });
        }
        std::size_t inside = 0;
        for (const int reader : readers) inside += owner[static_cast<std::size_t>(reader)] == own;
        if (inside == 0) continue;  // not an inner result
        if (outputs.count(output) != 0) return "an inner result is an output: " + group.pattern;
        if (inside != readers.size()) return "an inner result is read outside: " + group.pattern;
        if (readers.size() > 1 && !is_block(group.pattern)) {
          return "an inner result has several readers: " + group.pattern;
        }
      }
    }
    const std::int64_t kernels =
        std::count_if(group.nodes.begin(), group.nodes.end(),
                      [&](NodeId id) { return !is_alias_node(graph, graph.node(id)); });
    if ((group.pattern == "alias") != (kernels == 0)) return "what an alias is";
    if (group.nodes.size() > 1 && kernels < 2 && !is_of_kernels(group.pattern)) {
      return "a group that saves nothing";
    }
  }
  return "";
}

// One of the blocks that random ops would hardly ever make; gives its result.
std::string add_random_block(GraphBuilder& builder, std::mt19937& random, const std::string& name,
                             const std::string& a, const std::string& b) {
  const Shape channels{1, 8, 1, 1};
  const Shape row{1, 8, 6, 1};
  const auto node = [&](const std::string& suffix, const std::string& op, const Lines& in,
                        const Shape& shape, const Json& attrs = Json::object()) {
    builder.node(name + suffix, "aten." + op, in, shape, attrs);
    return name + suffix;
  };
  switch (random() % 6) {
    case 5: {
      const std::string c =
          node("_c", "conv2d.default", {a, random() % 2 == 0 ? "p_k" : "p_d"}, kImage);
      const std::string n = node("_n", "batch_norm.default", {c, "p_c", "p_c", "p_c", "p_c"},
                                 kImage, Json{{"training", false}});
      return node("_r", "relu.default", {n}, kImage);
    }
    case 0: {
      const std::string q = node("_q", "linear.default", {a, "p_w"}, kImage);
      const std::string k = node("_k", "linear.default", {a, "p_w"}, kImage);
      const std::string scores = node("_s", "matmul.default", {q, k}, kImage);
      const std::string soft = node("_p", "softmax.int", {scores}, kImage, Json{{"dim", -1}});
      const std::string out = node("_a", "matmul.default", {soft, b}, kImage);
      return node("_o", "linear.default", {out, "p_w"}, kImage);
    }
    case 1: {
      const std::string q = node("_q", "linear.default", {a, "p_w"}, kImage);
      return node("_a", "scaled_dot_product_attention.default", {q, b, b}, kImage);
    }
    case 2: {
      const std::string mean = node("_c", "mean.dim", {a}, row);
      const std::string d = random() % 2 == 0 ? node("_d", "sub.Tensor", {a, mean}, kImage) : a;
      const std::string square = node("_q", "square.default", {d}, kImage);
      const std::string m = node("_m", "mean.dim", {square}, row);
      const std::string root = node("_r", "rsqrt.default", {m}, row);
      return node("_n", "mul.Tensor", {d, root}, kImage);
    }
    case 3: {
      const std::string pool = node("_p", "adaptive_avg_pool2d.default", {a}, channels);
      const std::string fc = node("_f", "conv2d.default", {pool, "p_k"}, channels);
      const std::string gate = node("_g", "sigmoid.default", {fc}, channels);
      return node("_m", "mul.Tensor", {random() % 2 == 0 ? a : b, gate}, kImage);
    }
    default: {
      const std::string left = node("_l", "conv2d.default", {a, "p_k"}, kImage);
      const std::string right = node("_r", "conv2d.default", {a, "p_k"}, kImage);
      return node("_c", "cat.default", {left, b, right}, Shape{1, 24, 6, 6});
    }
  }
}

// Any ops in any order, some of the shapes that the patterns ask for.
Graph random_network(std::mt19937& random, int nodes, int devices) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  GraphBuilder builder;
  builder.lines(R"(
    input x, y [1,8,6,6]
    weight w [1,8,6,6]; weight k [8,8,1,1]; weight d [8,1,3,3]; weight c [8])");
  std::vector<std::string> results{"x", "y"};
  // Mostly what was made last, so that chains appear.
  const auto pick = [&] {
    const std::size_t back = below(3) != 0 ? below(2) : below(results.size());
    return results[results.size() - 1 - std::min(back, results.size() - 1)];
  };
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "n" + std::to_string(n);
    const std::string a = pick();
    const std::string b = pick();
    bool several = false;
    if (below(12) == 0) {  // on no device: whatever else is untagged may join
      results.push_back(add_random_block(builder, random, name, a, b));
      continue;
    }
    switch (below(20)) {
      case 0:
        builder.node(name, "aten.relu.default", {a}, kImage);
        break;
      case 1:
        builder.node(name, "aten.add_.Tensor", {a, b}, kImage);
        break;
      case 2:
        builder.node(name, "aten.mul.Tensor", {b, a}, kImage);
        break;
      case 3:
        builder.node(name, "aten.conv2d.default", {a, "p_k"}, kImage);
        break;
      case 4:
        builder.node(name, "aten.conv2d.default", {a, "p_d"}, kImage, Json{{"groups", 8}});
        break;
      case 5:
        builder.node(name, "aten.batch_norm.default", {a, "p_c", "p_c", "p_c", "p_c"}, kImage,
                     Json{{"training", below(8) == 0}});
        break;
      case 6:
        builder.node(name, "aten.linear.default", {a, "p_w"}, kImage);
        break;
      case 7:
        builder.node(name, "aten.matmul.default", {a, b}, kImage);
        break;
      case 8:
        builder.node(name, "aten.softmax.int", {a}, kImage, Json{{"dim", -1}});
        break;
      case 9:
        builder.node(name, "aten.cat.default", {a, b}, kImage);
        break;
      case 10:
        builder.node(name, "aten.transpose.int", {a}, kImage);
        break;
      case 11:
        builder.node(name, "aten.slice.Tensor", {a}, Shape{1, 8, 3, 6});
        break;
      case 12:
        builder.node_with_results(name, "aten.chunk.default", {a}, {kImage, kImage, kImage});
        several = true;
        break;
      case 13:
        builder.node(name, "aten.mean.dim", {a}, Shape{1, 8, 6, 1});
        break;
      case 14:
        builder.node(name, "aten.rsqrt.default", {a}, Shape{1, 8, 6, 1});
        break;
      case 15:
        builder.node(name, "aten.pow.Tensor_Scalar", {a}, kImage, Json{{"exponent", 2}});
        break;
      case 16:
        builder.node(name, "aten.sub.Tensor", {a, b}, kImage);
        break;
      case 17:
        builder.node(name, "aten.layer_norm.default", {a}, kImage);
        break;
      case 18:
        builder.node(name, "custom.op", {a, b}, kImage);
        break;
      default:
        builder.node(name, "aten.sigmoid.default", {a}, Shape{1, 8, 1, 1});
        break;
    }
    if (devices > 0 && (devices > 1 || below(4) != 0)) {
      builder.on("d" + std::to_string(below(static_cast<std::size_t>(devices))));
    }
    if (several) {
      const Lines parts{name + "_0", name + "_1", name + "_2"};
      for (int i = 0; i < 3; ++i) {
        if (below(4) == 0) continue;
        const std::string item = name + "_item" + std::to_string(i);
        builder.node(item, "<built-in function getitem>", parts, kImage, Json{{"index", i}});
        results.push_back(item);
      }
    } else {
      results.push_back(name);
      if (below(12) == 0) builder.output(name);
    }
  }
  builder.output(results.back());
  return builder.build();
}

}  // namespace

TEST_CASE("nothing and one node") {
  CHECK(groups_of(GraphBuilder().input("x").build()).empty());
  CHECK(groups_of(Net().relu("a", "x").output("a").build()) == Lines{"single: a"});
  const Graph alias = GraphBuilder().input("x").node("v", "aten.view.default", {"x"}).build();
  const FusionPlan plan = plan_fusion(alias, {});
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].pattern == "alias");
}

TEST_CASE("what stands behind a convolution or a matrix product") {
  CHECK(groups_of(Net().conv("c", "x").bn("b", "c").relu("r", "b").output("r").build()) ==
        Lines{"conv-bn-act: c b r"});
  CHECK(groups_of(Net().conv("c", "x").bn("b", "c").output("b").build()) == Lines{"conv-bn: c b"});
  CHECK(groups_of(Net().conv("c", "x").relu("r", "c").output("r").build()) ==
        Lines{"conv-act: c r"});
  CHECK(groups_of(Net()
                      .conv("c", "x")
                      .bn("b", "c")
                      .add("s", "b", "x")
                      .relu("r", "s")
                      .output("r")
                      .build()) == Lines{"residual: c b s r"});
  CHECK(groups_of(Net().conv("c", "x").bn("b", "c").add("s", "x", "b").output("s").build()) ==
        Lines{"residual: c b s"});
  CHECK(groups_of(Net().linear("l", "x", kImage, 6).relu("r", "l").output("r").build()) ==
        Lines{"linear-act: l r"});
  CHECK(groups_of(
            Net().linear("l", "x", kImage, 6).bn("b", "l").relu("r", "b").output("r").build()) ==
        Lines{"linear-bn-act: l b r"});
  CHECK(groups_of(Net()
                      .linear("l", "x", kImage, 6)
                      .node("d", "aten.dropout.default", {"l"}, Json{{"p", 0.1}, {"train", false}})
                      .add("s", "d", "x")
                      .output("s")
                      .build()) == Lines{"residual: l d s"});
  // A second activation is none of the named patterns.
  CHECK(groups_of(Net().conv("c", "x").relu("r", "c").mul("m", "r", "x").output("m").build()) ==
        Lines{"epilogue: c r m"});
}

TEST_CASE("named patterns without the generic one") {
  const Graph graph =
      Net().conv("c", "x").bn("b", "c").relu("r", "b").mul("m", "r", "x").output("m").build();
  CHECK(groups_of(graph, only({"conv-bn"})) == Lines{"conv-bn: c b", "single: r", "single: m"});
  CHECK(groups_of(graph, only({"conv-bn-act"})) == Lines{"conv-bn-act: c b r", "single: m"});
  CHECK(groups_of(graph, only({"conv-act"})) ==
        Lines{"single: c", "single: b", "single: r", "single: m"});
  CHECK(groups_of(graph, only({"none"})).size() == 4);
  CHECK(groups_of(graph, only({"default", "-epilogue", "-elementwise"})) ==
        Lines{"conv-bn-act: c b r", "single: m"});
  CHECK(groups_of(graph, only({"-conv-bn-act", "-conv-bn", "-epilogue"})) ==
        Lines{"single: c", "elementwise: b r m"});
}

TEST_CASE("what ends a group") {
  SECTION("a second reader") {
    CHECK(groups_of(Net()
                        .conv("c", "x")
                        .bn("b", "c")
                        .relu("r", "b")
                        .conv("d", "b")
                        .output("r")
                        .output("d")
                        .build()) == Lines{"conv-bn: c b", "single: r", "single: d"});
  }
  SECTION("an output of the graph") {
    CHECK(groups_of(
              Net().conv("c", "x").bn("b", "c").relu("r", "b").output("b").output("r").build()) ==
          Lines{"conv-bn: c b", "single: r"});
  }
  SECTION("another device") {
    CHECK(groups_of(Net()
                        .conv("c", "x")
                        .on("npu")
                        .bn("b", "c")
                        .on("npu")
                        .relu("r", "b")
                        .on("cpu")
                        .output("r")
                        .build()) == Lines{"conv-bn: c b", "single: r"});
  }
  SECTION("a node without a device beside one with a device") {
    CHECK(groups_of(Net().conv("c", "x").on("npu").relu("r", "c").output("r").build()) ==
          Lines{"single: c", "single: r"});
  }
  SECTION("a batch norm that trains") {
    CHECK(groups_of(
              Net().conv("c", "x").bn("b", "c", kImage, true).relu("r", "b").output("r").build()) ==
          Lines{"single: c", "reduction: b r"});
  }
  SECTION("a batch norm that reads the convolution as its variance") {
    Net net;
    net.conv("c", "x").input("z", kImage).weight("g", {8});
    net.node("b", "aten.batch_norm.default", {"z", "p_g", "p_g", "p_g", "c"}, kImage,
             Json{{"training", false}});
    CHECK(groups_of(net.output("b").build()) == Lines{"single: c", "single: b"});
  }
  SECTION("a larger result") {
    Net net;
    net.conv("c", "x", {8, 8, 6, 6}, {1, 8, 1, 1}).node("m", "aten.mul.Tensor", {"c", "x"}, kImage);
    CHECK(groups_of(net.output("m").build()) == Lines{"single: c", "single: m"});
  }
  SECTION("a result that loses elements on the way") {
    Net net;
    net.conv("c", "x").node("s", "aten.slice.Tensor", {"c"}, Shape{1, 8, 3, 6}).relu("r", "s");
    CHECK(groups_of(net.output("r").build()) == Lines{"single: c", "single: r"});
  }
  SECTION("a view that takes only its shape from the convolution") {
    Net net;
    net.conv("c", "x").node("v", "aten.view_as.default", {"x", "c"}, kImage).relu("r", "v");
    CHECK(groups_of(net.output("r").build()) == Lines{"single: c", "single: r"});
  }
  SECTION("an op that nobody knows") {
    CHECK(groups_of(
              Net().conv("c", "x").node("o", "my.op", {"c"}).relu("r", "o").output("r").build()) ==
          Lines{"single: c", "single: o", "single: r"});
  }
  SECTION("dropout that drops") {
    Net net;
    net.conv("c", "x").node("d", "aten.dropout.default", {"c"}, Json{{"p", 0.5}, {"train", true}});
    CHECK(groups_of(net.relu("r", "d").output("r").build()) ==
          Lines{"single: c", "single: d", "single: r"});
  }
  SECTION("the largest size") {
    CHECK(groups_of(Net().conv("c", "x").bn("b", "c").relu("r", "b").output("r").build(),
                    {.max_ops = 2}) == Lines{"conv-bn: c b", "single: r"});
    CHECK(groups_of(Net().conv("c", "x").bn("b", "c").relu("r", "b").output("r").build(),
                    {.max_ops = 1}) == Lines{"single: c", "single: b", "single: r"});
  }
}

TEST_CASE("of two convolutions that are added the later one takes the add") {
  CHECK(groups_of(Net()
                      .conv("c1", "x")
                      .bn("b1", "c1")
                      .conv("c2", "x")
                      .bn("b2", "c2")
                      .add("s", "b1", "b2")
                      .relu("r", "s")
                      .output("r")
                      .build()) == Lines{"conv-bn: c1 b1", "residual: c2 b2 s r"});
}

TEST_CASE("element-wise trees") {
  Net net;
  net.relu("a", "x").relu("b", "x").mul("m", "a", "b").add("s", "m", "x").relu("r", "s");
  CHECK(groups_of(net.output("r").build()) == Lines{"elementwise: a b m s r"});
  SECTION("broadcast") {
    Net gate;
    gate.weight("g", {8, 1, 1});
    gate.node("e", "aten.exp.default", {"p_g"}, Shape{8, 1, 1})
        .node("m", "aten.mul.Tensor", {"x", "e"}, kImage);
    CHECK(groups_of(gate.output("m").build()) == Lines{"elementwise: e m"});
  }
  SECTION("a diamond forks, so it is split there") {
    Net diamond;
    diamond.relu("a", "x").relu("b", "a").node("c", "aten.neg.default", {"a"}).add("s", "b", "c");
    CHECK(groups_of(diamond.output("s").build()) == Lines{"single: a", "elementwise: b c s"});
  }
  SECTION("an operand of a convolution's add") {
    Net operand;
    operand.relu("a", "x").conv("c", "x").add("s", "c", "a");
    CHECK(groups_of(operand.output("s").build()) == Lines{"residual: a c s"});
  }
  SECTION("not into a convolution's own input") {
    CHECK(groups_of(Net().relu("a", "x").conv("c", "a").output("c").build()) ==
          Lines{"single: a", "single: c"});
  }
  SECTION("gathers and cats in front") {
    Net cat;
    cat.node("c", "aten.cat.default", {"x", "x"}, Shape{2, 8, 6, 6}).relu("r", "c");
    CHECK(groups_of(cat.output("r").build()) == Lines{"injective: c r"});
    CHECK(groups_of(cat.build(), only({"-injective"})) == Lines{"single: c", "single: r"});
  }
  SECTION("reductions") {
    Net mean;
    mean.mul("m", "x", "x")
        .node("a", "aten.mean.dim", {"m"}, Shape{1, 8, 6, 1}, Json{{"dim", {-1}}});
    mean.node("r", "aten.rsqrt.default", {"a"});
    CHECK(groups_of(mean.output("r").build()) == Lines{"reduction: m a r"});
  }
  SECTION("not in front of overlapping windows") {
    Net pool;
    pool.relu("a", "x").node("p", "aten.max_pool2d.default", {"a"}, Shape{1, 8, 4, 4},
                             Json{{"kernel_size", {3, 3}}, {"stride", {1, 1}}});
    CHECK(groups_of(pool.relu("r", "p").output("r").build()) ==
          Lines{"single: a", "reduction: p r"});
  }
}

TEST_CASE("depthwise and pointwise") {
  const auto net = [](const Shape& pointwise, const Shape& result) {
    return Net()
        .conv("d", "x", {8, 1, 3, 3})
        .bn("b", "d")
        .relu("r", "b")
        .conv("p", "r", pointwise, result)
        .output("p")
        .build();
  };
  CHECK(groups_of(net({4, 8, 1, 1}, {1, 4, 6, 6})) == Lines{"depthwise-pointwise: d b r p"});
  CHECK(groups_of(net({4, 8, 3, 3}, {1, 4, 6, 6})) == Lines{"conv-bn-act: d b r", "single: p"});
  CHECK(groups_of(net({4, 8, 1, 1}, {1, 4, 3, 3})) == Lines{"conv-bn-act: d b r", "single: p"});
  CHECK(groups_of(net({8, 1, 1, 1}, kImage)) == Lines{"conv-bn-act: d b r", "single: p"});
}

TEST_CASE("attention that is written out") {
  GraphBuilder builder;
  builder.lines(R"(
    input q, k, v [2,4,4]; input mask [4,4]
    scale = aten.div.Tensor(q) {"other": 2.0}
    kt = aten.transpose.int(k)
    scores = bmm(scale, kt)
    masked = aten.add.Tensor(scores, mask)
    soft = aten.softmax.int(masked) {"dim": -1}
    drop = dropout(soft) {"p": 0.1, "train": false}
    out = bmm(drop, v))");
  CHECK(groups_of(builder.output("out").build()) ==
        Lines{"attention: scale scores masked soft drop out"});
  CHECK(groups_of(builder.build(), only({"-attention"})) ==
        Lines{"single: scale", "epilogue: scores masked", "single: soft", "single: out"});
  SECTION("but not two layers with a softmax between them") {
    Net gate;
    gate.linear("a", "x", kImage, 6).node("s", "aten.softmax.int", {"a"}, Json{{"dim", -1}});
    CHECK(groups_of(gate.linear("b", "s", kImage, 6).output("b").build()) ==
          Lines{"single: a", "single: s", "single: b"});
  }
}

TEST_CASE("multi-head attention") {
  const Shape tokens{1, 4, 8};
  const Shape heads{1, 4, 2, 4};
  Net net;
  net.input("t", tokens);
  for (const std::string part : {"q", "k", "v"}) {
    net.linear(part, "t", tokens, 8);
    net.node(part + "h", "aten.view.default", {part}, heads);
    net.node(part + "t", "aten.transpose.int", {part + "h"}, Shape{1, 2, 4, 4});
  }
  net.node("a", "aten.scaled_dot_product_attention.default", {"qt", "kt", "vt"});
  net.node("at", "aten.transpose.int", {"a"}, heads);
  net.node("ar", "aten.reshape.default", {"at"}, tokens);
  net.linear("o", "ar", tokens, 8).add("s", "o", "t");
  const Graph graph = net.output("s").build();
  CHECK(groups_of(graph, only({"default", "multi-head-attention"})) ==
        Lines{"multi-head-attention: q qh qt k kh kt v vh vt a at ar o s"});
  CHECK(groups_of(graph) ==
        Lines{"single: q", "single: k", "single: v", "single: a", "residual: o s"});
  CHECK(groups_of(graph, only({"default", "qkv-merge"})) ==
        Lines{"qkv-merge: q k v", "single: a", "residual: o s"});
}

TEST_CASE("matrix products on one input, with a gate between them") {
  Net net;
  net.linear("gate", "x", kImage, 6).node("act", "aten.silu.default", {"gate"});
  net.linear("up", "x", kImage, 6).mul("m", "act", "up");
  CHECK(groups_of(net.output("m").build(), only({"default", "qkv-merge"})) ==
        Lines{"qkv-merge: gate act up m"});
}

TEST_CASE("matrix products on one input stay apart if one waits for something else") {
  // b is added to what comes from a: one kernel for both could not run before or after c.
  Net net;
  net.linear("a", "x", kImage, 6).node("c", "my.op", {"a"}).linear("b", "x", kImage, 6);
  CHECK(groups_of(net.add("s", "b", "c").output("s").build(), only({"all"})) ==
        Lines{"single: a", "single: c", "residual: b s"});
}

TEST_CASE("norms that are written out") {
  const Shape row{1, 8, 6, 1};
  SECTION("root mean square, of a cast") {
    Net net;
    net.weight("g", {6});
    net.node("f", "aten.to.dtype", {"x"}, kImage, Json{{"dtype", "torch.float64"}}, "float64");
    net.node("sq", "aten.pow.Tensor_Scalar", {"f"}, Json{{"exponent", 2}});
    net.node("m", "aten.mean.dim", {"sq"}, row, Json{{"dim", {-1}}, {"keepdim", true}}, "float64");
    net.node("e", "aten.add.Tensor", {"m"}, Json{{"other", 1e-6}})
        .node("r", "aten.rsqrt.default", {"e"});
    net.node("s", "aten.mul.Tensor", {"f", "r"}).node("w", "aten.mul.Tensor", {"s", "p_g"});
    CHECK(groups_of(net.output("w").build()) == Lines{"rms-norm: f sq m e r s w"});
    // A norm of something that others read, too, leaves it alone.
    CHECK(groups_of(net.output("f").build()) == Lines{"single: f", "rms-norm: sq m e r s w"});
  }
  SECTION("layer norm") {
    Net net;
    net.node("mu", "aten.mean.dim", {"x"}, row).node("d", "aten.sub.Tensor", {"x", "mu"}, kImage);
    net.mul("sq", "d", "d").node("m", "aten.mean.dim", {"sq"}, row);
    net.node("e", "aten.add.Tensor", {"m"}, Json{{"other", 1e-6}})
        .node("r", "aten.sqrt.default", {"e"});
    net.node("s", "aten.div.Tensor", {"d", "r"}).output("s");
    CHECK(groups_of(net.build()) == Lines{"layer-norm: mu d sq m e r s"});
  }
  SECTION("a cube is no square") {
    Net net;
    net.node("sq", "aten.pow.Tensor_Scalar", {"x"}, Json{{"exponent", 3}});
    net.node("m", "aten.mean.dim", {"sq"}, row).node("r", "aten.rsqrt.default", {"m"});
    net.node("s", "aten.mul.Tensor", {"x", "r"}).output("s");
    CHECK(groups_of(net.build()) == Lines{"reduction: sq m r", "single: s"});
  }
  SECTION("in one op, with an add before it") {
    Net net;
    net.add("a", "x", "x").node("n", "aten.layer_norm.default", {"a"}).output("n");
    CHECK(groups_of(net.build()) == Lines{"layer-norm: a n"});
  }
}

TEST_CASE("channel gates") {
  Net net;
  const Shape channels{1, 8, 1, 1};
  net.conv("c", "x").node("p", "aten.adaptive_avg_pool2d.default", {"c"}, channels);
  net.conv("f1", "p", {2, 8, 1, 1}, {1, 2, 1, 1}).node("a", "aten.silu.default", {"f1"});
  net.conv("f2", "a", {8, 2, 1, 1}, channels).node("g", "aten.sigmoid.default", {"f2"});
  net.node("m", "aten.mul.Tensor", {"g", "c"}, kImage);
  CHECK(groups_of(net.output("m").build()) == Lines{"single: c", "squeeze-excite: p f1 a f2 g m"});
}

TEST_CASE("branches that meet in a cat") {
  Net net;
  net.conv("s", "x").conv("a", "s").relu("ar", "a").conv("b", "s", {8, 8, 1, 1}).relu("br", "b");
  net.conv("e", "x").node("cat", "aten.cat.default", {"ar", "br", "e"}, Shape{1, 24, 6, 6});
  const Graph graph = net.output("cat").build();
  CHECK(groups_of(graph) == Lines{"single: s", "horizontal: a ar b br cat", "single: e"});
  CHECK(groups_of(graph, only({"-horizontal"})) ==
        Lines{"single: s", "conv-act: a ar", "conv-act: b br", "single: e", "single: cat"});
  CHECK(groups_of(graph, only({"-horizontal", "concat-slices"})) ==
        Lines{"single: s", "conv-act: a ar", "conv-act: b br", "concat-slices: e cat"});
  SECTION("a cat of something that exists already has to copy") {
    Net copy;
    copy.conv("a", "x").node("cat", "aten.cat.default", {"x", "a"}, Shape{1, 16, 6, 6});
    CHECK(groups_of(copy.output("cat").build(), only({"all"})) ==
          Lines{"single: a", "single: cat"});
  }
}

TEST_CASE("results of one op reach their getitems one by one") {
  GraphBuilder builder;
  builder.input("x", {1, 8, 4, 4}).weight("w", {8, 8, 1, 1}).weight("c", {8});
  builder.node("conv", "aten.conv2d.default", {"x", "p_w"});
  builder.node_with_results("bn", "aten._native_batch_norm_legit_no_training.default",
                            {"conv", "p_c", "p_c", "p_c", "p_c"}, {{1, 8, 4, 4}, {0}, {0}},
                            Json{{"momentum", 0.1}, {"eps", 1e-5}});
  builder.node("item", "<built-in function getitem>", {"bn_0", "bn_1", "bn_2"}, Shape{1, 8, 4, 4},
               Json{{"index", 0}});
  builder.node("relu", "aten.relu_.default", {"item"});
  CHECK(groups_of(builder.output("relu").build()) == Lines{"conv-bn-act: conv bn item relu"});
}

TEST_CASE("counts of whole models") {
  const auto without = [](std::vector<std::string> names) {
    names.insert(names.begin(), "default");
    return names;
  };
  SECTION("chains that stop at forks and joins") {
    CHECK(counts_of("resnet18", {"chain"}).groups == 32);
    CHECK(counts_of("resnet34", {"chain"}).groups == 56);
    CHECK(counts_of("resnet50", {"chain"}).groups == 73);
    CHECK(counts_of("mobilenet_v2", {"chain"}).groups == 66);
    CHECK(counts_of("inception_v3", {"chain"}).groups == 126);
  }
  SECTION("anchors and residuals") {
    const auto plain = without({"-depthwise-pointwise", "-horizontal", "-injective"});
    CHECK(counts_of("resnet18", plain) == Counts{24, 23});
    CHECK(counts_of("resnet34", plain) == Counts{40, 39});
    CHECK(counts_of("resnet50", plain) == Counts{57, 56});
    CHECK(counts_of("mobilenet_v2", plain) == Counts{56, 54});
    CHECK(counts_of("inception_v3", plain) == Counts{126, 124});
    CHECK(counts_of("inception_v3", without({"-horizontal", "-injective", "concat-slices"})) ==
          Counts{111, 109});
    // 114 with adds and layer norms apart
    CHECK(counts_of("bert_base", without({"-injective", "-layer-norm"})) == Counts{212, 114});
    CHECK(counts_of("bert_base", without({"-injective", "-layer-norm", "qkv-merge"})) ==
          Counts{188, 90});
  }
  SECTION("what the kernels of the target 'host' compute") {
    CHECK(counts_of("resnet18", kernel_patterns()).kernels == 23);
    CHECK(counts_of("resnet50", kernel_patterns()).kernels == 56);
    CHECK(counts_of("mobilenet_v2", kernel_patterns()).kernels == 38);
    CHECK(counts_of("inception_v3", kernel_patterns()).kernels == 109);
    CHECK(counts_of("bert_base", kernel_patterns()).kernels == 102);
    CHECK(counts_of("vit_b_16", kernel_patterns()).kernels == 101);
  }
  SECTION("defaults, and what can be added to them") {
    CHECK(counts_of("resnet18", {"default"}) == Counts{24, 23});
    CHECK(counts_of("resnet34", {"default"}) == Counts{40, 39});
    CHECK(counts_of("resnet50", {"default"}) == Counts{57, 56});
    CHECK(counts_of("mobilenet_v2", {"default"}) == Counts{39, 37});
    CHECK(counts_of("inception_v3", {"default"}) == Counts{118, 116});
    CHECK(counts_of("inception_v3", {"default", "concat-slices"}) == Counts{107, 105});
    CHECK(counts_of("bert_base", {"default"}) == Counts{208, 110});
    CHECK(counts_of("bert_base", {"default", "qkv-merge"}) == Counts{184, 86});
    CHECK(counts_of("bert_base", {"all"}) == Counts{64, 62});
    CHECK(counts_of("vit_b_16", {"default"}) == Counts{322, 88});
  }
}

TEST_CASE("the rules hold for random graphs") {
  std::mt19937 random(1);
  const std::vector<FuseOptions> choices{{},
                                         only({"all"}),
                                         only({"chain"}),
                                         {.patterns = {"all"}, .max_ops = 5},
                                         only(kernel_patterns()),
                                         only({"elementwise"})};
  std::map<std::string, int> seen;
  for (int round = 0; round < 3000; ++round) {
    const Graph graph = random_network(random, 2 + round % 40, round % 4);
    const FuseOptions& options = choices[static_cast<std::size_t>(round) % choices.size()];
    const FusionPlan plan = plan_fusion(graph, options);
    const std::string fault = fault_of(graph, plan, options.max_ops);
    if (!fault.empty()) FAIL("round " << round << ": " << fault << "\n" << write_graph(graph));
    for (const FusionGroup& group : plan.groups) ++seen[group.pattern];
  }
  // Every pattern had its chance to be wrong.
  for (const FusionPattern& pattern : fusion_patterns()) {
    CAPTURE(pattern.name);
    if (is_of_kernels(std::string(pattern.name))) continue;  // they ask for more than chance makes
    CHECK(seen[std::string(pattern.name)] > 0);
  }
}

TEST_CASE("the rules hold for models on two devices") {
  std::mt19937 random(2);
  for (const std::string name :
       {"resnet18", "mobilenet_v2", "inception_v3", "vit_b_16", "bert_base"}) {
    Graph graph = model(name);
    for (int round = 0; round < 6; ++round) {
      for (Node& node : graph.nodes()) {
        const auto draw = random() % 20;
        node.device = draw == 0 ? "cpu" : "npu";
        if (draw == 1) node.device.reset();
      }
      for (const auto& options : {FuseOptions{}, only({"all"}), only(kernel_patterns())}) {
        CHECK(fault_of(graph, plan_fusion(graph, options), options.max_ops).empty());
      }
    }
  }
}

TEST_CASE("what is written") {
  Net net;
  net.conv("c", "x").on("npu").bn("b", "c").on("npu").relu("r", "b").on("npu").output("r");
  Graph graph = net.build();
  graph.node(NodeId{0}).partition = 3;
  graph.set_npu_member("partition", Json::object());
  Diagnostics diagnostics;
  CHECK(fuse_ops(graph, {}, diagnostics));
  CHECK_FALSE(fuse_ops(graph, {}, diagnostics));
  CHECK(graph.npu_member("partition") == nullptr);
  CHECK_FALSE(graph.node(NodeId{0}).partition.has_value());
  // image 8 * 36 floats: 1152 bytes; conv 2 * 72 * 288 flops, batch norm 2 * 288, relu 288
  CHECK(*find_member(*graph.npu_member("fusion"), "groups") ==
        Json::parse(R"([{"id": 0, "pattern": "conv-bn-act", "device": "npu",
          "nodes": ["c", "b", "r"], "inputs": ["x"], "outputs": ["r"],
          "flops": 42336, "bytes": 4736, "on_chip_bytes": 2304}])"));
  const Graph again = read_valid_graph(write_graph(graph), "again.json");
  CHECK(again.node(NodeId{2}).fusion_group == 0);
  const FusionReport report = fusion_report(again);
  CHECK(report.launches_before == 3);
  CHECK(report.kernels == 1);
  CHECK(report.traffic_bytes_before == 6 * 1152);
  CHECK(report.traffic_bytes == 2 * 1152);
  CHECK(fusion_metrics(report).at("groups_conv-bn-act") == 1);
}

TEST_CASE("partitions keep the groups") {
  for (const std::string name : {"resnet50", "mobilenet_v2", "inception_v3", "vit_b_16"}) {
    Graph graph = model(name);
    Diagnostics diagnostics;
    REQUIRE(tag_ops(graph, load_target("pytorch-apple"), {}, diagnostics));
    fuse_ops(graph, only({"all"}), diagnostics);
    const PartitionResult result =
        partition_graph(graph, {.strategy = Strategy::kConvex}, diagnostics);
    std::map<std::int64_t, std::set<std::int64_t>> partitions;
    for (const Node& node : graph.nodes()) partitions[*node.fusion_group].insert(*node.partition);
    for (const auto& [group, in] : partitions) CHECK(in.size() == 1);
    CHECK_FALSE(result.plan.partitions.empty());
  }
}

TEST_CASE("unknown patterns") {
  const Graph graph = Net().relu("r", "x").build();
  for (const std::string name : {"conv-bn-actt", "", "-", "-default", "--chain", "chain,conv-bn"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(plan_fusion(graph, only({name})), Error);
  }
}

TEST_CASE("steps grow with the graph and no faster") {
  const FuseOptions options = GENERATE(only({"all"}), only(kernel_patterns()));
  const auto steps = [&](int nodes) {
    std::mt19937 random(7);
    return static_cast<double>(plan_fusion(random_network(random, nodes, 2), options).steps);
  };
  const double small = steps(500);
  CHECK(steps(1000) < 2.3 * small);
  CHECK(steps(4000) < 9.0 * small);
}

// ---- patterns from a file ----

namespace {

Lines pattern_faults(const std::string& text) {
  Diagnostics diagnostics;
  parse_fusion_patterns(Json::parse(text), "p.json", diagnostics);
  return errors_of(diagnostics);
}

FuseOptions with_patterns(const std::string& text) {
  Diagnostics diagnostics;
  FuseOptions options{.patterns = {"none"}};
  options.user_patterns = parse_fusion_patterns(Json::parse(text), "p.json", diagnostics);
  REQUIRE(errors_of(diagnostics).empty());
  return options;
}

}  // namespace

TEST_CASE("a user's pattern") {
  const Graph graph = Net()
                          .conv("c", "x")
                          .relu("r", "c")
                          .node("v", "aten.view.default", {"r"})
                          .mul("m", "v", "x")
                          .node("p", "aten.max_pool2d.default", {"m"}, Shape{1, 8, 3, 3},
                                Json{{"kernel_size", {2, 2}}})
                          .output("p")
                          .build();
  const auto groups = [&](const std::string& ops) {
    return groups_of(graph,
                     with_patterns(R"({"patterns": [{"name": "mine", "ops": )" + ops + "}]}"));
  };
  CHECK(groups(R"(["aten.conv2d.*", "aten.relu*"])") ==
        Lines{"mine: c r", "single: m", "single: p"});
  // Aliases may stand in between; repeated elements take as many as they can.
  const Lines all{"mine: c r v m p"};
  CHECK(
      groups(
          R"(["aten.conv*", {"kind": ["elementwise", "broadcast"], "min": 0, "max": 4}, "aten.max_pool2d.*"])") ==
      all);
  CHECK(groups(R"(["*", "*", {"kind": "alias"}, "*", "*"])") == all);
  CHECK(groups(R"(["*", {"op": "*", "max": 10}])") == all);
  CHECK(
      groups(
          R"([{"kind": "broadcast", "operand": 0}, {"op": "*", "attrs": {"kernel_size": 2, "ceil_mode": false}}])") ==
      Lines{"single: c", "single: r", "mine: m p"});
  CHECK(groups(R"([{"kind": "elementwise"}, {"kind": "broadcast", "operand": 1}])").size() == 4);
  CHECK(groups(R"([{"kind": "broadcast"}, {"op": "*", "same_shape": true}])").size() == 4);
  CHECK(groups(R"([{"kind": "broadcast"}, {"op": "*", "rank": [5, null]}])").size() == 4);
  CHECK(groups(R"([{"kind": "broadcast"}, {"op": "*", "dtypes": ["float16"]}])").size() == 4);
  CHECK(
      groups(R"([{"kind": "broadcast"}, {"op": "*", "attrs": {"kernel_size": [2, 3]}}])").size() ==
      4);
  CHECK(groups(R"([{"kind": "broadcast"}, {"op": "*", "attrs": {"no_such": 1}}])").size() == 4);
}

TEST_CASE("faults of a pattern file") {
  CHECK(pattern_faults("[]") == Lines{": expected an object, found a list of 0"});
  CHECK(pattern_faults("{}") ==
        Lines{"/patterns: expected a list of at most 256 patterns, found nothing"});
  CHECK(pattern_faults(R"({"patterns": [], "x": 1})") == Lines{"/x: unknown key 'x'"});
  CHECK(
      pattern_faults(R"({"patterns": [{"name": "A b", "ops": ["a", "b"]}]})") ==
      Lines{
          "/patterns/0/name: expected a name of small letters, digits and hyphens, found \"A b\""});
  CHECK(pattern_faults(R"({"patterns": [{"name": "conv-bn", "ops": ["a", "b"]}]})") ==
        Lines{"/patterns/0/name: the name 'conv-bn' is taken already"});
  CHECK(
      pattern_faults(
          R"({"patterns": [{"name": "a", "ops": ["a", "b"]}, {"name": "a", "ops": ["a", "b"]}]})") ==
      Lines{"/patterns/1/name: the name 'a' is taken already"});
  CHECK(pattern_faults(R"({"patterns": [{"name": "a", "ops": ["b"]}]})") ==
        Lines{"/patterns/0/ops: a pattern of one node fuses nothing"});
  CHECK(pattern_faults(
            R"({"patterns": [{"name": "a", "ops": [{"op": "b", "min": 0, "max": 3}]}]})") ==
        Lines{"/patterns/0/ops: all elements are optional: at least one must not be"});
  CHECK(pattern_faults(R"({"patterns": [{"name": "a", "ops": ["b", {"op": "c", "max": 64}]}]})") ==
        Lines{"/patterns/0/ops: the longest match has 65 nodes, at most 64 are allowed"});
  CHECK(
      pattern_faults(R"({"patterns": [{"name": "a", "ops": ["b", {"kind": "fast"}]}]})") ==
      Lines{"/patterns/0/ops/1/kind: unknown kind 'fast', expected one of elementwise, broadcast, "
            "injective, reduction, anchor, opaque, alias"});
  CHECK(pattern_faults(R"({"patterns": [{"name": "a", "ops": ["b", {"opp": "c"}]}]})") ==
        Lines{"/patterns/0/ops/1/opp: unknown key 'opp'; did you mean 'op'?",
              "/patterns/0/ops/1: expected 'op' or 'kind'; \"*\" is any op"});
  CHECK(
      pattern_faults(
          R"({"patterns": [{"name": "a", "ops": ["b", {"op": 1, "min": -1, "max": 2.5, "operand": "x", "rank": [3, 2], "dtypes": "f32", "attrs": [], "same_shape": 1}]}]})")
          .size() == 9);
}
