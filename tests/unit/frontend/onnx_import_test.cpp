// SPDX-License-Identifier: Apache-2.0
// ONNX models through the frontend that the build made: what becomes of them, and what is refused.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"
#include "frontend/weight_map.hpp"
#include "npu/runtime/weight_store.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Proto unary_graph(std::string_view op, const std::vector<std::int64_t>& shape) {
  return Proto()
      .message(1, onnx_node(op, {"x"}, {"y"}, "first"))
      .message(11, onnx_value("x", shape))
      .message(12, onnx_value("y", shape));
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("onnx: nodes, inputs and outputs keep their names", "[frontend]") {
  const Imported model = import_bytes(onnx_model(unary_graph("Relu", {2, 3})).text());
  CHECK(model.errors.empty());
  REQUIRE(model.graph.nodes().size() == 1);
  CHECK(model.graph.nodes()[0].name == "first");
  CHECK(model.graph.nodes()[0].op_type == "aten.relu.default");
  CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).name == "y");
}

TEST_CASE("onnx: everything that is refused is reported at once", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Nothing", {"x"}, {"a"}, "one"))
                          .message(1, onnx_node("Relu", {"a"}, {"b"}, "two"))
                          .message(1, onnx_node("Unique", {"x"}, {"c"}, "three"))
                          .message(1, onnx_node("Relu", {"missing"}, {"d"}, "four"))
                          .message(11, onnx_value("x", {4}))
                          .message(12, onnx_value("b", {4}));
  CHECK(import_bytes(onnx_model(graph).text()).errors ==
        "node 'one' (Nothing-13): is not an op that is imported\n"
        "node 'three' (Unique-13): the shape of its result depends on data: 'x' has to be known at "
        "import; --freeze gives inputs values, and it depends on 'x'\n"
        "node 'four' (Relu-13): reads 'missing', which nothing before it makes\n");
}

TEST_CASE("onnx: of many faults twenty are told, and how many more there are", "[frontend]") {
  const auto lines = [](int faults) {
    Proto graph;
    for (int i = 0; i < faults; ++i) {
      graph.message(1, onnx_node("Nothing", {"x"}, {"y" + std::to_string(i)}));
    }
    graph.message(11, onnx_value("x", {4})).message(12, onnx_value("y0", {4}));
    return import_bytes(onnx_model(graph).text()).errors;
  };
  const std::string all = lines(20);
  CHECK(std::count(all.begin(), all.end(), '\n') == 20);
  const std::string some = lines(57);
  CHECK(some == all +
                    "and 37 more faults; npu-tag --list-ops --frontend onnx lists what is "
                    "imported\n");
}

TEST_CASE("onnx: symbolic dimensions are bound, and listed if they are not", "[frontend]") {
  const std::string bytes = onnx_model(unary_graph("Relu", {0, 3})).text();
  CHECK(import_bytes(bytes).errors ==
        "size 's' (dimension 0 of input 'x') has no value; give it one with --bind s=N\n");
  ImportOptions options;
  add_binding(options, "s=5");
  const Imported bound = import_bytes(bytes, options);
  CHECK(bound.errors.empty());
  CHECK(bound.graph.tensor(bound.graph.graph_inputs()[0]).shape == Shape{5, 3});
  add_binding(options, "t=5");
  CHECK(import_bytes(bytes, options).errors == "--bind: no input has the symbolic dimension 't'\n");
  CHECK_THROWS_AS(add_binding(options, "s=-1"), Error);
  CHECK_THROWS_AS(add_binding(options, "s"), Error);
}

TEST_CASE("onnx: a product with a constant matrix is linear, its weight a range of the file",
          "[frontend]") {
  const TemporaryFolder folder;
  // W is 2 x 3; the document has its transpose.
  const Proto graph = Proto()
                          .message(1, onnx_node("MatMul", {"x", "W"}, {"p"}))
                          .message(1, onnx_node("Add", {"p", "b"}, {"y"}))
                          .message(5, onnx_tensor("W", {2, 3}, {1, 2, 3, 4, 5, 6}))
                          .message(5, onnx_tensor("b", {3}, {7, 8, 9}))
                          .message(11, onnx_value("x", {4, 2}))
                          .message(12, onnx_value("y", {4, 3}));
  const std::string path = folder / "model.onnx";
  const std::string bytes = onnx_model(graph).text();
  write(path, bytes);
  Imported model = import_bytes(bytes, {}, path);
  CHECK(model.errors.empty());
  REQUIRE(model.graph.nodes().size() == 1);
  CHECK(model.graph.nodes()[0].op_type == "aten.linear.default");
  Diagnostics diagnostics;
  const auto weights = load_weights(model.graph, {}, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  const Tensor& w = weights[static_cast<std::size_t>(model.graph.find_tensor("W.t").value)];
  CHECK(w.shape() == Shape{3, 2});
  CHECK(std::vector<float>(w.as<float>(), w.as<float>() + 6) ==
        std::vector<float>{1, 4, 2, 5, 3, 6});
  // Whoever changes the file is told.
  write(path, bytes + std::string(2, '\0'));
  CHECK_THROWS_WITH(load_weights(model.graph, {}, diagnostics),
                    Catch::Contains("has changed since the document was made"));
  // Through a pipe the values go into the document.
  const Imported piped = import_bytes(bytes);
  CHECK(piped.graph.npu_member("weights_map") == nullptr);
  CHECK(constant_tensor(piped.graph, piped.graph.tensor(piped.graph.find_tensor("W.t")))
            .as<float>()[1] == 4);
}

TEST_CASE("onnx: external data comes from below the model's folder only", "[frontend]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  write(folder / "secret", std::string(64, 'x'));
  write(folder / "in/data", std::string(64, '\0'));
  std::filesystem::create_symlink("../secret", folder / "in/link");
  std::filesystem::create_symlink("data", folder / "in/near");
  const auto errors_for = [&](const std::string& location, const std::string& offset) {
    const Proto tensor = Proto()
                             .number(1, 4)
                             .number(2, 1)
                             .bytes(8, "w")
                             .number(14, 1)
                             .message(13, Proto().bytes(1, "location").bytes(2, location))
                             .message(13, Proto().bytes(1, "offset").bytes(2, offset))
                             .message(13, Proto().bytes(1, "length").bytes(2, "16"));
    const Proto graph = Proto()
                            .message(1, onnx_node("Add", {"x", "w"}, {"y"}))
                            .message(5, tensor)
                            .message(11, onnx_value("x", {4}))
                            .message(12, onnx_value("y", {4}));
    const std::string bytes = onnx_model(graph).text();
    write(folder / "in/model.onnx", bytes);
    return import_bytes(bytes, {}, folder / "in/model.onnx").errors;
  };
  CHECK(errors_for("data", "48").empty());
  CHECK(errors_for("near", "0").empty());
  CHECK(errors_for("data", "49").find("lies behind the end of 'data'") != std::string::npos);
  CHECK(errors_for("data", "18446744073709551615").find("behind the end") != std::string::npos);
  CHECK(errors_for("data", "-1").find("expected a number") != std::string::npos);
  CHECK(errors_for("../secret", "0").find("is not below the folder") != std::string::npos);
  CHECK(errors_for(folder / "secret", "0").find("is not below the folder") != std::string::npos);
  CHECK(errors_for("link", "0").find("leads out of its folder") != std::string::npos);
  CHECK(errors_for("", "0").find("is not below the folder") != std::string::npos);
  CHECK(errors_for("none", "0").find("No such file") != std::string::npos);
}

TEST_CASE("onnx: hostile models get one line each", "[frontend]") {
  // A dimension of 2^63 - 1, twice.
  CHECK(import_bytes(onnx_model(unary_graph("Relu", {INT64_MAX, INT64_MAX})).text())
            .errors.find("is too large") != std::string::npos);
  // 10 GB that are not there.
  const Proto claim = Proto().number(1, 2'500'000'000).number(2, 1).bytes(8, "w").bytes(9, "1234");
  const Proto graph = unary_graph("Relu", {2}).message(5, claim);
  CHECK(import_bytes(onnx_model(graph).text()).errors ==
        "constant 'w' of shape [2500000000] needs 10000000000 bytes, its data has 4\n");
  // Functions that call each other.
  const auto function = [](const char* name, const char* callee) {
    return Proto().bytes(1, name).bytes(4, "x").bytes(5, "y").bytes(10, "d").message(
        7, onnx_node(callee, {"x"}, {"y"}).bytes(7, "d"));
  };
  const Proto caller = Proto()
                           .message(1, onnx_node("f", {"x"}, {"y"}).bytes(7, "d"))
                           .message(11, onnx_value("x", {2}))
                           .message(12, onnx_value("y", {2}));
  const Proto cyclic = onnx_model(caller)
                           .message(8, Proto().bytes(1, "d").number(2, 1))
                           .message(25, function("f", "g"))
                           .message(25, function("g", "f"));
  CHECK(import_bytes(cyclic.text()).errors.find("functions call each other more than 64 deep") !=
        std::string::npos);
  // Each function calls the next one twice; the last one adds 65536 known numbers.
  Proto bomb = Proto()
                   .message(1, onnx_node("ConstantOfShape", {"n"}, {"z"}))
                   .message(1, onnx_node("f0", {"z"}, {"q"}).bytes(7, "d"))
                   .message(1, onnx_node("Relu", {"x"}, {"y"}))
                   .message(5, onnx_integers("n", {1}, {65536}))
                   .message(11, onnx_value("x", {2}))
                   .message(12, onnx_value("y", {2}));
  Proto unfolding = onnx_model(bomb).message(8, Proto().bytes(1, "d").number(2, 1));
  for (int i = 0; i < 30; ++i) {
    const std::string callee = "f" + std::to_string(i + 1);
    Proto body = Proto().bytes(1, "f" + std::to_string(i)).bytes(4, "x").bytes(5, "y");
    if (i == 29) {
      body.message(7, onnx_node("Add", {"x", "x"}, {"y"}));
    } else {
      body.message(7, onnx_node(callee, {"x"}, {"t"}).bytes(7, "d"))
          .message(7, onnx_node(callee, {"t"}, {"y"}).bytes(7, "d"));
    }
    unfolding.message(25, body.bytes(10, "d").message(9, Proto().number(2, 13)));
  }
  CHECK(import_bytes(unfolding.text()).errors == "the model unfolds into more than 200000 nodes\n");
  // Text that is not UTF-8 never reaches the document.
  const Proto equation = Proto().bytes(1, "equation").bytes(4, "i\xff,i->i").number(20, 3);
  Proto product = Proto()
                      .message(1, onnx_node("Einsum", {"x", "x"}, {"y"}, "e").message(5, equation))
                      .message(11, onnx_value("x", {2}))
                      .message(12, onnx_value("y", {2}));
  CHECK(import_bytes(onnx_model(product).text()).errors ==
        "node 'e' (Einsum-13): the equation has another character than letters\n");
  // If in If in If ...
  Proto inner = unary_graph("Relu", {2});
  for (int depth = 0; depth < 100; ++depth) {
    const Proto branch = Proto().bytes(1, "then_branch").message(6, inner).number(20, 5);
    inner = Proto().message(1, onnx_node("If", {"x"}, {"y"}).message(5, branch));
  }
  CHECK(import_bytes(onnx_model(inner).text()).errors.find("nested more than 64 deep") !=
        std::string::npos);
}

TEST_CASE("onnx: pads that differ at the two ends become a node", "[frontend]") {
  const Proto conv =
      onnx_node("Conv", {"x", "w"}, {"y"}, "c").message(5, onnx_ints("pads", {0, 1, 2, 1}));
  const Proto graph = Proto()
                          .message(1, conv)
                          .message(5, onnx_tensor("w", {1, 1, 3, 3}, std::vector<float>(9, 1)))
                          .message(11, onnx_value("x", {1, 1, 5, 5}))
                          .message(12, onnx_value("y", {1, 1, 5, 5}));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  REQUIRE(model.graph.nodes().size() == 2);
  CHECK(model.graph.nodes()[0].name == "c:1");
  CHECK(model.graph.nodes()[0].attrs()["pad"] == Json({1, 1, 0, 2}));
  CHECK(model.graph.nodes()[1].name == "c");
  CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).shape == Shape{1, 1, 5, 5});
}

TEST_CASE("onnx: zeros in front of a pool that has none are the pool's", "[frontend]") {
  const auto ops_of = [](const std::vector<std::int64_t>& pads, std::int64_t kernel,
                         std::vector<std::int64_t> own, std::int64_t extent) {
    Proto graph = Proto()
                      .message(1, onnx_node("Pad", {"x", "p"}, {"q"}, "pad"))
                      .message(1, onnx_node("AveragePool", {"q"}, {"y"}, "pool")
                                      .message(5, onnx_ints("kernel_shape", {kernel, kernel}))
                                      .message(5, onnx_ints("pads", own)))
                      .message(5, onnx_integers("p", {8}, pads))
                      .message(11, onnx_value("x", {1, 2, 5, 5}))
                      .message(12, onnx_result("y"));
    const Imported model = import_bytes(onnx_model(graph).text());
    CHECK(model.errors.empty());
    CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).shape.back() == extent);
    return model.ops();
  };
  using Ops = std::vector<std::string>;
  const Ops one{"aten.avg_pool2d.default"};
  const Ops two{"aten.constant_pad_nd.default", "aten.avg_pool2d.default"};
  CHECK(ops_of({0, 0, 1, 1, 0, 0, 1, 1}, 3, {0, 0, 0, 0}, 5) == one);
  CHECK(ops_of({0, 0, 1, 1, 0, 0, 1, 1}, 3, {1, 1, 1, 1}, 7) == two);
  CHECK(ops_of({0, 0, 2, 2, 0, 0, 2, 2}, 3, {0, 0, 0, 0}, 7) ==
        two);  // more than half of the window
  CHECK(ops_of({0, 0, 2, 2, 0, 0, 0, 0}, 3, {0, 0, 0, 0}, 5) == two);
  CHECK(ops_of({0, 1, 0, 0, 0, 1, 0, 0}, 3, {0, 0, 0, 0}, 3) == two);  // channels
}

TEST_CASE("onnx: a GELU with tanh is put together again", "[frontend]") {
  const auto ops_of = [](float cubed, float factor) {
    const Proto graph = Proto()
                            .message(1, onnx_node("Pow", {"x", "three"}, {"cube"}, "a"))
                            .message(1, onnx_node("Mul", {"cube", "c"}, {"d"}, "b"))
                            .message(1, onnx_node("Add", {"x", "d"}, {"e"}, "c"))
                            .message(1, onnx_node("Mul", {"e", "f"}, {"g"}, "d"))
                            .message(1, onnx_node("Tanh", {"g"}, {"h"}, "e"))
                            .message(1, onnx_node("Add", {"h", "one"}, {"i"}, "f"))
                            .message(1, onnx_node("Mul", {"x", "i"}, {"j"}, "g"))
                            .message(1, onnx_node("Mul", {"j", "half"}, {"y"}, "h"))
                            .message(5, onnx_tensor("three", {}, {3}))
                            .message(5, onnx_tensor("c", {}, {cubed}))
                            .message(5, onnx_tensor("f", {}, {factor}))
                            .message(5, onnx_tensor("one", {}, {1}))
                            .message(5, onnx_tensor("half", {}, {0.5F}))
                            .message(11, onnx_value("x", {4}))
                            .message(12, onnx_value("y", {4}));
    return import_bytes(onnx_model(graph).text()).ops();
  };
  CHECK(ops_of(0.044715F, 0.7978845608F) == std::vector<std::string>{"aten.gelu.default"});
  CHECK(ops_of(0.04471F, 0.7978845608F).size() == 8);
  CHECK(ops_of(0.044715F, 0.79F).size() == 8);
}

TEST_CASE("onnx: a norm of groups that stand as channels is a group norm", "[frontend]") {
  const auto ops_of = [](float one, const std::vector<std::int64_t>& scale) {
    const Proto graph =
        Proto()
            .message(1, onnx_node("Reshape", {"x", "in"}, {"a"}, "a"))
            .message(1, onnx_node("InstanceNormalization", {"a", "ones", "zeros"}, {"b"}, "b"))
            .message(1, onnx_node("Reshape", {"b", "out"}, {"c"}, "c"))
            .message(1, onnx_node("Mul", {"c", "w"}, {"d"}, "d"))
            .message(1, onnx_node("Add", {"d", "v"}, {"y"}, "e"))
            .message(5, onnx_integers("in", {3}, {2, 2, -1}))
            .message(5, onnx_integers("out", {4}, {2, 4, 3, 3}))
            .message(5, onnx_tensor("ones", {2}, {one, 1}))
            .message(5, onnx_tensor("zeros", {2}, {0, 0}))
            .message(5, onnx_tensor("w", scale, {1, 2, 3, 4}))
            .message(5, onnx_tensor("v", {4, 1, 1}, {5, 6, 7, 8}))
            .message(11, onnx_value("x", {2, 4, 3, 3}))
            .message(12, onnx_value("y", {2, 4, 3, 3}));
    const Imported model = import_bytes(onnx_model(graph).text());
    CHECK(model.errors.empty());
    if (model.graph.nodes().size() == 1) {
      CHECK(model.graph.nodes()[0].attrs()["num_groups"] == 2);
      CHECK(model.graph.nodes()[0].inputs.size() == 3);
    }
    return model.ops();
  };
  CHECK(ops_of(1, {4, 1, 1}) == std::vector<std::string>{"aten.group_norm.default"});
  CHECK(ops_of(1, {1, 4, 1, 1}) == std::vector<std::string>{"aten.group_norm.default"});
  CHECK(ops_of(2, {4, 1, 1}).size() == 5);
}

TEST_CASE("onnx: indices that are not constant stay as they are for ops that count from the end",
          "[frontend]") {
  const auto imported = [](const std::string& kind, std::int64_t axis) {
    const Proto graph =
        Proto()
            .message(1, onnx_node(kind, {"x", "at"}, {"y"}, "g").message(5, onnx_int("axis", axis)))
            .message(11, onnx_value("x", {3, 4, 5}))
            .message(11, onnx_value("at", {2, 2, 2}, 7))
            .message(12, onnx_result("y"));
    const Imported model = import_bytes(onnx_model(graph).text());
    CHECK(model.errors.empty());
    return model;
  };
  const Imported rows = imported("Gather", 0);
  CHECK(rows.ops() == std::vector<std::string>{"aten.index.Tensor"});
  CHECK_FALSE(rows.graph.nodes()[0].attrs().contains("_tensor_list_none_masks"));
  const Imported columns = imported("Gather", 1);
  CHECK(columns.ops() == std::vector<std::string>{"aten.index.Tensor"});
  CHECK(columns.graph.nodes()[0].attrs()["_tensor_list_none_masks"] == Json({{true, false}}));
  CHECK(columns.graph.tensor(columns.graph.graph_outputs()[0]).shape == Shape{3, 2, 2, 2, 5});
  // An index out of range has to stay so: a remainder would turn it into another element.
  CHECK(imported("GatherElements", 1).ops() ==
        std::vector<std::string>{"aten.lt.Scalar", "aten.add.Tensor", "aten.where.self",
                                 "aten.gather.default"});
}

TEST_CASE("onnx: a number that Where chooses beside a tensor is one", "[frontend]") {
  const auto imported = [](const std::vector<std::string>& operands) {
    Proto graph;
    graph.message(5, onnx_tensor("zero", {}, {0.0F}))
        .message(5, onnx_tensor("one", {}, {1.0F}))
        .message(5, onnx_tensor("line", {3}, {0.0F, 0.0F, 0.0F}))
        .message(1, onnx_node("IsNaN", {"x"}, {"c"}))
        .message(1, onnx_node("Where", {"c", operands[0], operands[1]}, {"y"}))
        .message(11, onnx_value("x", {2, 3}))
        .message(12, onnx_value("y", {2, 3}));
    const Imported model = import_bytes(onnx_model(graph, 18).text());
    CHECK(model.errors.empty());
    CHECK(model.graph.nodes().size() == 2);
    return std::pair{model.graph.nodes()[1].op_type, model.graph.nodes()[1].attrs()};
  };
  CHECK(imported({"zero", "x"}) ==
        std::pair{std::string("aten.where.ScalarSelf"), Json{{"self", 0.0}}});
  CHECK(imported({"x", "one"}) ==
        std::pair{std::string("aten.where.ScalarOther"), Json{{"other", 1.0}}});
  CHECK(imported({"line", "x"}).first == "aten.where.self");
  CHECK(imported({"zero", "one"}).first == "aten.where.self");
}

TEST_CASE("onnx: the end of an axis in front of its beginning is a roll", "[frontend]") {
  // Rolls along two axes; `middle` is where the first slice ends and the second one begins.
  const auto imported = [](std::int64_t middle) {
    Proto graph;
    const auto add_roll = [&](const std::string& x, const std::string& y, std::int64_t axis,
                              std::int64_t from, std::int64_t to) {
      const std::string back = y + "b";
      const std::string front = y + "f";
      graph
          .message(1, onnx_node("Slice", {x}, {back}, back)
                          .message(5, onnx_ints("starts", {from}))
                          .message(5, onnx_ints("ends", {1000}))
                          .message(5, onnx_ints("axes", {axis})))
          .message(1, onnx_node("Slice", {x}, {front}, front)
                          .message(5, onnx_ints("starts", {0}))
                          .message(5, onnx_ints("ends", {to}))
                          .message(5, onnx_ints("axes", {axis})))
          .message(1,
                   onnx_node("Concat", {back, front}, {y}, y).message(5, onnx_int("axis", axis)));
    };
    add_roll("x", "m", 1, 2, 2);
    add_roll("m", "y", 2, -4, middle);
    graph.message(11, onnx_value("x", {2, 6, 7})).message(12, onnx_result("y"));
    return import_bytes(onnx_model(graph, 9).text());
  };
  const Imported rolled = imported(3);
  REQUIRE(rolled.ops() == std::vector<std::string>{"aten.roll.default"});
  CHECK(rolled.graph.nodes()[0].attrs()["shifts"] == Json({4, 4}));
  CHECK(rolled.graph.nodes()[0].attrs()["dims"] == Json({1, 2}));
  CHECK(imported(4).ops().size() == 4);
}

TEST_CASE("onnx: constants that are too many for a document are nodes or data", "[frontend]") {
  // 17 constants of 2^16 elements each are more than 2^20.
  const auto graph_of = [](const std::string& maker) {
    Proto graph;
    std::string last = "x";
    for (int i = 0; i < 17; ++i) {
      const std::string number = std::to_string(i);
      if (maker == "Range") {
        graph.message(5, onnx_integers("f" + number, {}, {i}))
            .message(5, onnx_integers("l" + number, {}, {i + 65536}))
            .message(1, onnx_node("Range", {"f" + number, "l" + number, "one"}, {"c" + number}));
      } else {
        const Proto fill = Proto().bytes(1, "value").message(5, onnx_integers("", {1}, {i}));
        graph.message(1, onnx_node("ConstantOfShape", {"n"}, {"c" + number})
                             .message(5, Proto(fill).number(20, 4)));
      }
      graph.message(1, onnx_node("Add", {last, "c" + number}, {"a" + number}));
      last = "a" + number;
    }
    return graph.message(5, onnx_integers("one", {}, {1}))
        .message(5, onnx_integers("n", {1}, {65536}))
        .message(11, onnx_value("x", {65536}, 7))
        .message(12, onnx_value(last, {65536}, 7));
  };
  const Imported fills = import_bytes(onnx_model(graph_of("ConstantOfShape")).text());
  CHECK(fills.errors.empty());
  const auto ops = fills.ops();
  CHECK(std::count(ops.begin(), ops.end(), "aten.full.default") == 17);
  CHECK(fills.graph.npu_member("weights_map") == nullptr);

  const TemporaryFolder folder;
  Imported ranges = import_bytes(onnx_model(graph_of("Range")).text());
  CHECK(ranges.errors.empty());
  CHECK(ranges.ops().size() == 17);
  Diagnostics diagnostics;
  const auto check = [&](const Graph& graph, const WeightSource& source) {
    const auto weights = load_weights(graph, source, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    const Tensor& c3 = weights[static_cast<std::size_t>(graph.find_tensor("c3").value)];
    REQUIRE(c3.element_count() == 65536);
    CHECK(c3.as<std::int64_t>()[0] == 3);
    CHECK(c3.as<std::int64_t>()[65535] == 65538);
  };
  check(ranges.graph, {});
  CHECK_THROWS_WITH(rebase_weights_file(ranges.graph, ""),
                    Catch::Contains("constants of 8.91 MB are in no file, and more than a document "
                                    "holds: let npu-tag write them with --weights-out FILE"));
  write_imported_weights(ranges.graph, folder / "w.safetensors", diagnostics);
  rebase_weights_file(ranges.graph, "");
  WeightSource source;
  source.file = folder / "w.safetensors";
  check(ranges.graph, source);
}
