// SPDX-License-Identifier: Apache-2.0
// The patterns of what kernels compute, each on the smallest graph that shows it, and who asks for
// them: a target for its devices, or the groups that a graph has.
#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/target/target.hpp"
#include "passes/fusion/fusion_groups.hpp"
#include "passes/fusion/pattern_lines.hpp"

using namespace npu;
using namespace npu::test;

namespace {

const Shape kPicture{1, 16, 8, 8};

class KernelNet : public GraphBuilder {
 public:
  KernelNet& conv(const std::string& name, const std::string& in, const Shape& weight,
                  const Shape& result, const Json& attrs = Json::object()) {
    GraphBuilder::weight(name + "_w", weight);
    node(name, "aten.conv2d.default", {in, "p_" + name + "_w"}, result, attrs);
    return *this;
  }
  KernelNet& bn(const std::string& name, const std::string& in, const Shape& shape) {
    Lines operands{in};
    for (const char* part : {"_g", "_b", "_m", "_v"}) {
      GraphBuilder::weight(name + part, {shape[1]});
      operands.push_back("p_" + name + part);
    }
    node(name, "aten.batch_norm.default", operands, shape,
         Json{{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
    return *this;
  }
  KernelNet& linear(const std::string& name, const std::string& in, const Shape& result,
                    std::int64_t inner) {
    GraphBuilder::weight(name + "_w", {result.back(), inner});
    node(name, "aten.linear.default", {in, "p_" + name + "_w"}, result);
    return *this;
  }
};

Json padding(std::int64_t value) { return Json{{"padding", {value, value}}}; }

}  // namespace

TEST_CASE("kernels: what a primitive does before it stores") {
  KernelNet net;
  net.input("x", kPicture).input("z", kPicture);
  net.conv("c", "x", {16, 16, 3, 3}, kPicture, padding(1)).bn("n", "c", kPicture);
  net.node("r", "aten.relu.default", {"n"}, kPicture);
  net.node("s", "aten.add.Tensor", {"r", "z"}, kPicture);
  const std::string last = GENERATE("tanh", "gelu", "celu", "add.Tensor");
  net.node("y", "aten." + last + (last == "add.Tensor" ? "" : ".default"),
           last == "add.Tensor" ? Lines{"s", "s"} : Lines{"s"}, kPicture);
  net.output("y");
  // GELU is a pass of its own, a primitive has no CELU, and a value that is read twice must be.
  CHECK(lines_of(net.build(), just({"conv-post-ops"})) ==
        Lines{last == "tanh" ? "conv-post-ops: c n r s y" : "conv-post-ops: c n r s"});
}

TEST_CASE("kernels: a function whose result decides integers is computed alone") {
  // Read as it is, cut to integers, compared, rounded, ranked, or that behind ops that move
  // elements.
  const std::string reader =
      GENERATE("none", "to", "gt", "floor", "argmax", "mul, view, floor", "sum, floor");
  const std::string function = GENERATE("silu", "tanh", "relu", "hardswish");
  KernelNet net;
  net.input("x", kPicture);
  net.conv("c", "x", {16, 16, 3, 3}, kPicture, padding(1));
  net.node("f", "aten." + function + ".default", {"c"}, kPicture);
  std::string last = "f";
  if (reader.starts_with("mul")) {
    net.node("m", "aten.mul.Scalar", {"f"}, kPicture, Json{{"other", 3.0}});
    net.node("v", "aten.view.default", {"m"}, Shape{1024}, Json{{"size", {1024}}});
    net.node("y", "aten.floor.default", {"v"}, Shape{1024});
    last = "y";
  } else if (reader.starts_with("sum")) {
    net.node("s", "aten.sum.default", {"f"}, Shape{})
        .node("y", "aten.floor.default", {"s"}, Shape{});
    last = "y";
  } else if (reader == "to") {
    net.node("y", "aten.to.dtype", {"f"}, kPicture, Json{{"dtype", "int64"}}, "int64");
    last = "y";
  } else if (reader == "gt") {
    net.node("y", "aten.gt.Scalar", {"f"}, kPicture, Json{{"other", 0.5}}, "bool");
    last = "y";
  } else if (reader == "argmax") {
    net.node("y", "aten.argmax.default", {"f"}, Shape{}, Json::object(), "int64");
    last = "y";
  } else if (reader == "floor") {
    net.node("y", "aten.floor.default", {"f"}, kPicture);
    last = "y";
  }
  net.output(last);
  const bool is_exact = function == "relu" || function == "hardswish";
  const bool decides = reader != "none" && !reader.starts_with("sum");
  const Lines found = lines_of(net.build(), just({"conv-post-ops"}));
  INFO(function << " read by " << reader);
  if (decides && !is_exact) {
    CHECK(found.empty());
  } else {
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with("conv-post-ops: c f"));
  }
}

TEST_CASE("kernels: behind products, of two that are added the later one takes the sum") {
  KernelNet net;
  net.input("x", {4, 8});
  net.linear("a", "x", {4, 6}, 8).linear("b", "x", {4, 6}, 8);
  net.node("s", "aten.add.Tensor", {"a", "b"}, Shape{4, 6});
  net.node("v", "aten.view.default", {"s"}, Shape{2, 12}, Json{{"size", {2, 12}}});
  net.node("y", "aten.relu.default", {"v"}, Shape{2, 12}).output("y");
  CHECK(lines_of(net.build(), just({"product-post-ops"})) == Lines{"product-post-ops: b s v y"});
}

TEST_CASE("kernels: attention on batched products") {
  const std::string between = GENERATE("mask", "mask, factor", "factor, mask", "relu");
  KernelNet net;
  const Shape scores{2, 4, 4};
  net.lines(R"(
    input q [2,4,8]; input k [2,8,4]; input v [2,4,8]; input m [4,4]
    p = bmm(q, k) [2,4,4])");
  std::string value = "p";
  const auto factor = [&] {
    net.node("f", "aten.div.Tensor", {value}, scores, Json{{"other", 2.0}});
    value = "f";
  };
  const auto mask = [&] {
    net.node("a", "aten.add.Tensor", {value, "m"}, scores);
    value = "a";
  };
  if (between == "factor, mask") factor();
  if (between != "relu") mask();
  if (between == "mask, factor") factor();
  if (between == "relu") {
    net.node("r", "aten.relu.default", {"p"}, scores);
    value = "r";
  }
  net.node("s", "aten.softmax.int", {value}, scores, Json{{"dim", -1}});
  net.node("o", "aten.bmm.default", {"s", "v"}, Shape{2, 4, 8}).output("o");
  const Lines found = lines_of(net.build(), just({"scaled-attention"}));
  if (between == "mask") CHECK(found == Lines{"scaled-attention: p a s o"});
  if (between == "factor, mask") CHECK(found == Lines{"scaled-attention: p f a s o"});
  // A factor behind the mask would scale the mask, too.
  if (between == "mask, factor" || between == "relu") CHECK(found.empty());
}

TEST_CASE("kernels: attention with a mask of bool, and zeros in place of NaN") {
  const std::string mask = GENERATE("where", "fill", "integers", "large");
  const std::string guard = GENERATE("none", "zero", "one", "another", "output");
  const Shape scores{2, 4, 4};
  KernelNet net;
  net.input("q", {2, 4, 8}).input("k", {2, 8, 4}).input("v", {2, 4, 8});
  net.input("m", mask == "large" ? Shape{3, 2, 4, 4} : Shape{4, 4},
            mask == "integers" ? "uint8" : "bool");
  net.node("p", "aten.bmm.default", {"q", "k"}, scores);
  if (mask == "fill") {
    net.node("a", "aten.masked_fill.Scalar", {"p", "m"}, scores, Json{{"value", "-inf"}});
  } else {
    net.node("a", "aten.where.ScalarOther", {"m", "p"}, scores, Json{{"other", -1e9}});
  }
  net.node("s", "aten.softmax.int", {"a"}, scores, Json{{"dim", -1}});
  std::string weights = "s";
  if (guard != "none") {
    net.node("n", "aten.isnan.default", {guard == "another" ? "p" : "s"}, scores, Json::object(),
             "bool");
    net.node("g", "aten.where.ScalarSelf", {"n", "s"}, scores,
             Json{{"self", guard == "one" ? 1 : 0}});
    weights = "g";
  }
  net.node("o", "aten.bmm.default", {weights, "v"}, Shape{2, 4, 8}).output("o");
  if (guard == "output") net.output("s");
  const Lines found = lines_of(net.build(), just({"scaled-attention"}));
  const bool takes_mask = mask == "where" || mask == "fill";
  if (takes_mask && guard == "none") CHECK(found == Lines{"scaled-attention: p a s o"});
  if (takes_mask && guard == "zero") CHECK(found == Lines{"scaled-attention: p a s n g o"});
  if (!takes_mask || (guard != "none" && guard != "zero")) CHECK(found.empty());
}

TEST_CASE("kernels: attention on rows of length 1, with a factor for each head and masks") {
  const std::string other = GENERATE("nothing", "order", "least", "read twice", "shape");
  KernelNet net;
  const Shape rows{6, 2, 4, 8};
  const Shape lengths{6, 2, 4, 1};
  const Shape scores{6, 2, 4, 4};
  net.lines(R"(
    input q, k, v [6,2,4,8]; input h [2,1,1]; input b [1,2,4,4]; input m [1,2,1,4,4])");
  const auto normalized = [&](const std::string& x, bool is_other) {
    const double order = is_other && other == "order" ? 1.0 : 2.0;
    const double least = is_other && other == "least" ? 0.0 : 1e-12;
    net.node(x + "n", "aten.linalg_vector_norm.default", {x}, lengths,
             Json{{"ord", order}, {"dim", {-1}}, {"keepdim", true}});
    net.node(x + "c", "aten.clamp_min.default", {x + "n"}, lengths, Json{{"min", least}});
    net.node(x + "e", "aten.expand_as.default", {x + "c", x}, rows);
    net.node(x + "d", "aten.div.Tensor", {x, x + "e"}, rows);
  };
  normalized("q", true);
  normalized("k", false);
  net.lines(R"(
    kt = aten.transpose.int(kd) [6,2,8,4] {"dim0": -2, "dim1": -1}
    p = matmul(qd, kt) [6,2,4,4]
    f = aten.mul.Tensor(p, h)
    ab = aten.add.Tensor(f, b)
    s1 = view(ab) [3,2,2,4,4] {"size": [3, 2, 2, 4, 4]}
    a1 = aten.add.Tensor(s1, m)
    a2 = aten.add.Tensor(a1, m))");
  const Shape back = other == "shape" ? Shape{12, 4, 4} : scores;
  net.node("s2", "aten.view.default", {"a2"}, back, Json{{"size", back}});
  net.node("s", "aten.softmax.int", {"s2"}, back, Json{{"dim", -1}});
  if (other == "shape") {
    net.node("v3", "aten.view.default", {"v"}, {12, 4, 8}, Json{{"size", {12, 4, 8}}});
    net.node("o", "aten.matmul.default", {"s", "v3"}, Shape{12, 4, 8});
  } else {
    net.node("o", "aten.matmul.default", {"s", "v"}, rows);
  }
  net.output("o");
  if (other == "read twice") net.output("qd");
  const Lines found = lines_of(net.build(), just({"scaled-attention"}));
  const std::string query = other == "nothing" ? " qn qc qe qd" : "";
  // What the query is divided by is then computed for itself.
  if (other == "shape") {
    CHECK(found.empty());
  } else {
    CHECK(found == Lines{"scaled-attention:" + query + " kn kc ke kd kt p f ab s1 a1 a2 s2 s o"});
  }
}

TEST_CASE("kernels: attention goes through a dropout that drops nothing") {
  const double share = GENERATE(0.0, 0.1);
  KernelNet net;
  net.lines(R"(
    input q [2,4,8]; input k [2,8,4]; input v [2,4,8]
    p = bmm(q, k) [2,4,4]
    s = aten.softmax.int(p) {"dim": -1})");
  net.node("d", "aten.dropout.default", {"s"}, Shape{2, 4, 4}, Json{{"p", share}, {"train", true}});
  net.node("o", "aten.bmm.default", {"d", "v"}, Shape{2, 4, 8}).output("o");
  const Lines found = lines_of(net.build(), just({"scaled-attention"}));
  CHECK(found == (share == 0 ? Lines{"scaled-attention: p s d o"} : Lines{}));
}

TEST_CASE("kernels: channel gates of whole vectors") {
  const std::int64_t channels = GENERATE(16, 12);
  KernelNet net;
  const Shape image{1, channels, 8, 8};
  const Shape point{1, channels, 1, 1};
  net.input("x", image);
  net.node("m", "aten.mean.dim", {"x"}, point, Json{{"dim", {-1, -2}}, {"keepdim", true}});
  net.conv("a", "m", {4, channels, 1, 1}, {1, 4, 1, 1});
  net.node("r", "aten.relu.default", {"a"}, Shape{1, 4, 1, 1});
  net.conv("b", "r", {channels, 4, 1, 1}, point);
  net.node("g", "aten.sigmoid.default", {"b"}, point);
  net.node("y", "aten.mul.Tensor", {"g", "x"}, image).output("y");
  const Lines found = lines_of(net.build(), just({"channel-gate"}));
  CHECK(found == (channels == 16 ? Lines{"channel-gate: m a r b g y"} : Lines{}));
}

TEST_CASE("kernels: a pointwise convolution changes places with interpolations") {
  const std::string other = GENERATE("nothing", "sigmoid", "large", "two copies", "read twice");
  KernelNet net;
  net.input("x", kPicture).input("z", kPicture);
  net.input("s", other == "large" ? Shape{1, 16, 8, 8} : Shape{1, 16, 4, 4});
  net.node("u", "aten.upsample_bilinear2d.vec", {"s"}, kPicture,
           Json{{"output_size", {8, 8}}, {"align_corners", false}});
  Lines parts{"u", "x"};
  if (other == "two copies") parts.push_back("z");
  const auto channels = static_cast<std::int64_t>(16 * parts.size());
  net.node("t", "aten.cat.default", parts, {1, channels, 8, 8},
           Json{{"dim", 1}, {"_tensor_list_sizes", {parts.size()}}});
  net.conv("c", "t", {16, channels, 1, 1}, kPicture);
  net.node("y", other == "sigmoid" ? "aten.sigmoid.default" : "aten.relu.default", {"c"}, kPicture);
  net.output("y");
  if (other == "read twice") net.output("t");
  const Lines found =
      lines_of(net.build(), just({"conv-post-ops", "resized-pointwise", "expand-depthwise"}));
  CHECK(found == Lines{other == "nothing" ? "resized-pointwise: u t c y" : "conv-post-ops: c y"});
}

TEST_CASE("kernels: linear siblings whose results are only moved") {
  KernelNet net;
  net.input("x", {4, 8});
  net.linear("q", "x", {4, 6}, 8).linear("k", "x", {4, 6}, 8).linear("v", "x", {4, 6}, 8);
  for (const char* name : {"q", "k"}) {
    net.node(std::string(name) + "t", "aten.permute.default", {name}, Shape{6, 4},
             Json{{"dims", {1, 0}}});
    net.output(std::string(name) + "t");
  }
  net.node("r", "aten.relu.default", {"v"}, Shape{4, 6}).output("r");
  CHECK(lines_of(net.build(), just({"linear-siblings"})) == Lines{"linear-siblings: q k"});
}

TEST_CASE("kernels: a batch norm joins the pointwise convolution behind it") {
  const std::int64_t channels = GENERATE(16, 24);
  KernelNet net;
  const Shape image{1, channels, 8, 8};
  net.input("x", image);
  net.bn("n", "x", image);
  net.node("r", "aten.relu.default", {"n"}, image);
  net.conv("c", "r", {32, channels, 1, 1}, {1, 32, 8, 8});
  net.node("y", "aten.relu.default", {"c"}, Shape{1, 32, 8, 8}).output("y");
  const Lines found = lines_of(net.build(), just({"conv-post-ops", "norm-relu", "norm-pointwise"}));
  CHECK(found == (channels == 16 ? Lines{"norm-pointwise: n r c y"}
                                 : Lines{"norm-relu: n r", "conv-post-ops: c y"}));
}

TEST_CASE("kernels: a pointwise convolution joins the depthwise one behind it") {
  const std::int64_t taps = GENERATE(3, 7);
  KernelNet net;
  net.input("x", {1, 8, 8, 8});
  net.conv("e", "x", {16, 8, 1, 1}, kPicture);
  net.node("r", "aten.relu6.default", {"e"}, kPicture);
  Json attrs = padding(taps / 2);
  attrs["groups"] = 16;
  net.conv("d", "r", {16, 1, taps, taps}, kPicture, attrs);
  net.node("y", "aten.relu6.default", {"d"}, kPicture).output("y");
  const Lines found = lines_of(net.build(), just({"conv-post-ops", "expand-depthwise"}));
  CHECK(found == (taps == 3 ? Lines{"expand-depthwise: e r d y"}
                            : Lines{"conv-post-ops: e r", "conv-post-ops: d y"}));
}

TEST_CASE("kernels: nodes that become none") {
  KernelNet net;
  net.input("x", kPicture).weight("w", {1, 16, 8, 8});
  net.conv("a", "x", {16, 16, 1, 1}, kPicture).conv("b", "x", {32, 16, 1, 1}, {1, 32, 8, 8});
  net.node("k", "aten.exp.default", {"p_w"}, kPicture);
  net.node("u", "aten.exp.default", {"x"}, kPicture);
  net.node("cc", "aten.cat.default", {"a", "b"}, Shape{1, 48, 8, 8}, Json{{"dim", 1}});
  // A longer one in which the first lies as a whole; then one with an operand that lies elsewhere.
  net.conv("d", "cc", {16, 48, 1, 1}, kPicture);
  net.lines(R"(
    ccc = cat(a, b, d) [1,64,8,8] {"dim": 1}
    no = cat(d, a) [1,32,8,8] {"dim": 1}
    cl = clone(no)
    y = aten.add.Tensor(d, k) [1,16,8,8]; output y, ccc, cl)");
  const Graph graph = net.build();
  const FuseOptions options = just({"concat-in-place", "no-copy", "constant", "unused"});
  CHECK(lines_of(graph, options) == Lines{"constant: k", "unused: u", "concat-in-place: cc",
                                          "concat-in-place: ccc", "no-copy: cl"});
  Graph fused = graph;
  Diagnostics diagnostics;
  fuse_ops(fused, options, diagnostics);
  CHECK(fusion_report(fused).kernels == 5);  // a, b, d, no, y
}

TEST_CASE("kernels: a target says which patterns its devices have") {
  KernelNet net;
  net.input("x", kPicture);
  net.conv("a", "x", {16, 16, 1, 1}, kPicture).on("npu");
  net.node("b", "aten.gelu.default", {"a"}, kPicture).on("npu");
  net.conv("c", "b", {16, 16, 1, 1}, kPicture).on("cpu");
  net.node("d", "aten.gelu.default", {"c"}, kPicture).on("cpu").output("d");
  const Graph graph = net.build();
  FuseOptions options;
  CHECK(lines_of(graph, options) == Lines{"conv-act: a b", "conv-act: c d"});
  options.device_patterns["npu"] = {"conv-post-ops"};
  CHECK(lines_of(graph, options) == Lines{"conv-act: c d"});
  options.device_patterns["npu"] = {};
  CHECK(lines_of(graph, options) == Lines{"conv-act: c d"});
  options.patterns = {"default", "conv-act"};  // names hold for every device
  CHECK(lines_of(graph, options) == Lines{"conv-act: a b", "conv-act: c d"});
  options.patterns = {"-conv-act", "-epilogue"};
  options.device_patterns["npu"] = {"conv-act"};
  CHECK(lines_of(graph, options).empty());
}

TEST_CASE("kernels: the target of a document counts, and has to name patterns that exist") {
  KernelNet net;
  net.input("x", kPicture);
  net.conv("a", "x", {16, 16, 1, 1}, kPicture).on("npu");
  net.node("b", "aten.relu.default", {"a"}, kPicture).on("npu").output("b");
  Graph graph = net.build();
  Json target = *load_target("host").json;
  graph.set_npu_member("target", target);
  Diagnostics diagnostics;
  fuse_ops(graph, {}, diagnostics);
  CHECK(graph.npu_member("fusion")->at("groups")[0].at("pattern") == "conv-post-ops");
  target["devices"][0]["fusion"] = {"conv-post-ops", "conv-pots-ops"};
  graph.set_npu_member("target", target);
  try {
    fuse_ops(graph, {}, diagnostics);
    FAIL("an unknown pattern was taken");
  } catch (const Error& error) {
    CHECK(error.message() == "no fusion pattern 'conv-pots-ops'; did you mean 'conv-post-ops'?");
    CHECK(error.location().pointer == "/npu/target/devices/0/fusion/1");
  }
}

TEST_CASE("kernels: anchors without operands are left alone") {
  const std::string op = GENERATE("conv2d", "linear", "batch_norm");
  KernelNet net;
  net.input("x", kPicture);
  net.node("a", "aten." + op + ".default", {}, kPicture, Json{{"training", false}});
  net.bn("n", "a", kPicture);
  net.conv("c", "n", {16, 16, 1, 1}, kPicture).output("c");
  Lines all;
  for (const FusionPattern& pattern : fusion_patterns()) all.emplace_back(pattern.name);
  CHECK_NOTHROW(lines_of(net.build(), just(all)));
}

TEST_CASE("a quantized convolution takes its batch norm with it", "[fuse][kernel-patterns]") {
  const std::string library = "quantized_decomposed.";
  const Json scale = {{"scale", 0.1},
                      {"zero_point", 0},
                      {"quant_min", 0},
                      {"quant_max", 255},
                      {"dtype", "torch.uint8"}};
  const bool is_known = GENERATE(true, false);
  KernelNet net;
  const Shape image{1, 8, 4, 4};
  net.input("i", image, "uint8").input("m", {8}).weight("w", {8, 8, 1, 1}, "int8").weight("g", {8});
  net.node("x", library + "dequantize_per_tensor.default", {"i"}, image, scale);
  net.node("v", library + "dequantize_per_tensor.default", {"p_w"}, Shape{8, 8, 1, 1}, scale);
  net.node("c", "aten.conv2d.default", {"x", "v"}, image);
  net.node("n", "aten.batch_norm.default", {"c", "p_g", "p_g", is_known ? "p_g" : "m", "p_g"},
           image,
           Json{{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", false}});
  net.node("q", library + "quantize_per_tensor.default", {"n"}, image, scale, "uint8").output("q");
  const Lines found = lines_of(net.build(), just({"quantized"}));
  CHECK(found == (is_known ? Lines{"quantized: x v c n q"} : Lines{"quantized: x v c"}));
}

TEST_CASE("a quantized op takes its conversions with it", "[fuse][kernel-patterns]") {
  const std::string library = "quantized_decomposed.";
  const Shape shape{1, 16, 8, 8};
  const auto net_with = [&](bool is_read_twice, const std::string& dtype) {
    KernelNet net;
    net.input("qx", shape, dtype).weight("w", {16, 16, 1, 1}, "int8");
    net.weight("s", {16}).weight("z", {16}, "int64");
    net.node("x", library + "dequantize_per_tensor.default", {"qx"}, shape);
    net.node("v", library + "dequantize_per_channel.default", {"p_w", "p_s", "p_z"},
             Shape{16, 16, 1, 1});
    net.node("c", "aten.conv2d.default", {"x", "v"}, shape);
    net.node("r", "aten.relu.default", {"c"}, shape);
    net.node("q", library + "quantize_per_tensor.default", {"r"}, shape, {}, "uint8");
    net.node("y", library + "dequantize_per_tensor.default", {"q"}, shape);
    net.node("a", "aten.add.Tensor", {"y", is_read_twice ? "x" : "y"}, shape);
    net.node("p", library + "quantize_per_tensor.default", {"a"}, shape, {}, "int8");
    net.node("l", "aten.linear.default", {"y", "y"}, Shape{1, 16, 8, 8});
    net.output("p").output("l");
    return net;
  };
  const FuseOptions options = just({"constant", "quantized", "dequantized-on-read"});
  CHECK(lines_of(net_with(true, "uint8").build(), options) ==
        Lines{"dequantized-on-read: x", "constant: v", "quantized: c r q", "dequantized-on-read: y",
              "quantized: a p", "quantized: l"});
  CHECK(lines_of(net_with(false, "uint8").build(), options) ==
        Lines{"quantized: x c r q", "constant: v", "dequantized-on-read: y", "quantized: a p",
              "quantized: l"});
  // 16 bits are no operand of an int8 kernel.
  CHECK(lines_of(net_with(false, "int16").build(), options) ==
        Lines{"constant: v", "dequantized-on-read: y", "quantized: a p", "quantized: l"});
}

TEST_CASE("attentions over a cache read lengths in place of the mask that they share",
          "[fuse][kernel-patterns]") {
  const std::string reader = GENERATE("none", "output", "other", "unused");
  KernelNet net;
  net.input("q", {1, 4, 2, 8}).input("k", {1, 2, 32, 8}).input("v", {1, 2, 32, 8});
  net.input("p", {2}, "int64").input("m", {1, 1, 2, 32}, "bool");
  net.node("mask", "npu.length_mask", {"p"}, Shape{1, 1, 2, 32},
           {{"operands", "positions"}, {"keys", 32}, {"causal", true}}, "bool");
  const Json attrs{{"enable_gqa", true}};
  const std::string op = "aten.scaled_dot_product_attention.default";
  net.node("a", op, {"q", "k", "v", "mask"}, Shape{1, 4, 2, 8}, attrs);
  net.node("b", op, {"a", "k", "v", "mask"}, Shape{1, 4, 2, 8}, attrs);
  net.node("c", op, {"b", "k", "v", "m"}, Shape{1, 4, 2, 8}, attrs);
  net.output("c");
  if (reader == "output") net.output("mask");
  if (reader == "other" || reader == "unused") {
    net.node("not", "aten.logical_not.default", {"mask"}, Shape{1, 1, 2, 32}, {}, "bool");
  }
  if (reader == "other") net.output("not");
  const Lines found = lines_of(net.build(), just({"cached-attention", "mask-on-read"}));
  Lines expected{"cached-attention: a", "cached-attention: b"};
  if (reader == "none" || reader == "unused")
    expected.insert(expected.begin(), "mask-on-read: mask");
  CHECK(found == expected);
}

TEST_CASE("an attention over a cache that is written out is one kernel",
          "[fuse][kernel-patterns]") {
  const std::string form = GENERATE("fill", "where", "opposite", "plain", "sinks", "shifted",
                                    "added", "added twice", "read twice", "mask of its own",
                                    "finite", "factor behind the mask", "cap twice", "columns");
  const Shape scores{1, 4, 2, 32};
  const Shape mask{1, 1, 2, 32};
  const bool has_sinks = form == "sinks" || form == "shifted" || form == "columns";
  KernelNet net;
  net.lines(R"(
    input q [1,4,2,8]; input k [1,4,8,32]; input v [1,4,32,8]; input n [1,4,1,1])");
  net.input("at", {2}, "int64").input("own", mask, "bool");
  net.node("mask", "npu.length_mask", {"at"}, mask,
           {{"operands", "positions"}, {"keys", 32}, {"causal", true}}, "bool");
  net.node("not", "aten.bitwise_not.default", {"mask"}, mask, {}, "bool");
  net.node("p", "aten.matmul.default", {"q", "k"}, scores);
  net.node("f", "aten.div.Tensor", {"p"}, scores, {{"other", 4.0}});
  std::string value = "f";
  std::string cap;
  if (form != "plain") {
    net.node("t", "aten.tanh.default", {"f"}, scores);
    net.node("c", "aten.mul.Tensor", {"t"}, scores, {{"other", 5.0}});
    value = "c";
    cap = " t c";
  }
  if (form == "cap twice") {
    net.node("t2", "aten.tanh.default", {"c"}, scores);
    value = "t2";
  }
  const bool keeps = form == "where" || form == "mask of its own";
  const std::string truth = form == "mask of its own" ? "own" : keeps ? "mask" : "not";
  if (form.starts_with("added")) {
    net.node("z", "aten.zeros.default", {}, mask, {{"size", mask}});
    net.node("fm", "aten.masked_fill.Scalar", {"z", "not"}, mask, {{"value", "-inf"}});
    net.node("m", "aten.add.Tensor", {value, form == "added" ? "fm" : value}, scores);
  } else if (keeps || form == "opposite") {
    net.node("m", "aten.where.ScalarOther", {truth, value}, scores, {{"other", "-inf"}});
  } else {
    net.node("m", "aten.masked_fill.Scalar", {value, truth}, scores,
             {{"value", form == "finite" ? -100.0 : -3e38}});
  }
  value = "m";
  if (form == "factor behind the mask") {
    net.node("m2", "aten.mul.Tensor", {"m"}, scores, {{"other", 2.0}});
    value = "m2";
  }
  const Shape wide{1, 4, 2, 33};
  std::string sinks;
  if (has_sinks) {
    net.node("e", "aten.expand.default", {"n"}, Shape{1, 4, 2, 1}, {{"size", {1, 4, 2, 1}}});
    net.node("s", "aten.cat.default", {"m", "e"}, wide, {{"dim", -1}});
    value = "s";
    sinks = " s";
    if (form == "shifted") {
      net.node("l", "aten.amax.default", {"s"}, Shape{1, 4, 2, 1},
               {{"dim", {-1}}, {"keepdim", true}});
      net.node("d", "aten.sub.Tensor", {"s", "l"}, wide);
      value = "d";
      sinks = " s l d";
    }
  }
  net.node("w", "aten.softmax.int", {value}, has_sinks ? wide : scores, {{"dim", -1}});
  value = "w";
  if (has_sinks) {
    const bool is_last = form != "columns";
    net.node("g", "aten.slice.Tensor", {"w"}, scores,
             {{"dim", -1}, {"start", is_last ? 0 : 1}, {"end", is_last ? -1 : 33}});
    value = "g";
  }
  net.node("y", "aten.matmul.default", {value, "v"}, Shape{1, 4, 2, 8}).output("y");
  if (form == "read twice") net.output("c");
  const Lines found = lines_of(net.build(), just({"cached-attention", "mask-on-read"}));
  if (form == "added") {  // the mask of numbers is one that others could read, too
    CHECK(found == Lines{"cached-attention: p f t c m w y"});
    return;
  }
  const bool is_one = form == "fill" || form == "where" || form == "plain" || has_sinks;
  if (!is_one || form == "columns") {
    CHECK(found.empty());
    return;
  }
  Lines expected{"mask-on-read: mask"};
  if (form != "where") expected.push_back("mask-on-read: not");
  expected.push_back("cached-attention: p f" + cap + " m" + sinks + " w" + (has_sinks ? " g" : "") +
                     " y");
  CHECK(found == expected);
}

TEST_CASE("a product of integers takes conversions and zero points with it",
          "[fuse][kernel-patterns]") {
  const auto net_with = [&](const std::string& dtype, bool is_read_twice, const Json& alpha) {
    KernelNet net;
    const auto wide = [&](const std::string& name, const std::string& from, const Shape& shape) {
      net.node(name, "aten.to.dtype", {from}, shape, {{"dtype", "torch.int32"}}, "int32");
    };
    net.input("q", {4, 8}, dtype).input("z", {}, "uint8").weight("w", {8, 5}, "int8");
    wide("x", "q", {4, 8});
    wide("n", "z", {});
    wide("v", "p_w", {8, 5});
    net.node("s", "aten.sub.Tensor", {"x", "n"}, Shape{4, 8}, alpha, "int32");
    net.node("y", "aten.matmul.default", {"s", "v"}, Shape{4, 5}, Json::object(), "int32");
    net.output("y");
    if (is_read_twice) net.output("s");
    return lines_of(net.build(), just({"constant", "quantized"}));
  };
  const Json none = Json::object();
  CHECK(net_with("uint8", false, none) == Lines{"quantized: x v s y"});
  CHECK(net_with("int16", false, none) == Lines{"constant: v"});
  CHECK(net_with("uint8", true, none) == Lines{"constant: v"});
  CHECK(net_with("uint8", false, {{"alpha", 2}}) == Lines{"constant: v"});
}

TEST_CASE("kernels: within the groups that a graph has") {
  KernelNet net;
  net.input("x", kPicture);
  net.conv("a", "x", {16, 16, 1, 1}, kPicture).key("fusion_group", 3);
  net.lines(R"(
    b = relu(a) [1,16,8,8] fusion_group=3
    c = tanh(b) fusion_group=5
    d = tanh(c)
    e = tanh(d); output e)");
  const Graph graph = net.build();
  FuseOptions options = just({"conv-post-ops", "elementwise"});
  CHECK(lines_of(graph, options) == Lines{"conv-post-ops: a b c d e"});
  options.within_groups = true;
  CHECK(lines_of(graph, options) == Lines{"conv-post-ops: a b"});
}
