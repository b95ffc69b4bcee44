// SPDX-License-Identifier: Apache-2.0
// Loops of ONNX models: what their trips become, and which are refused. And results whose shape
// depends on data.
#include "frontend/onnx_imported.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// A loop of `trips` trips that adds x to its state, and returns every state; its condition is
// constant or, if asked, computed from the state.
Proto loop_model(std::int64_t trips, bool is_data_dependent = false, int nodes = 1) {
  Proto body;
  body.message(11, onnx_value("i", {})).message(11, onnx_value("c", {}));
  body.message(11, onnx_value("s", {2}));
  std::string last = "s";
  for (int n = 0; n < nodes; ++n) {
    const std::string next = "s" + std::to_string(n);
    body.message(1, onnx_node("Add", {last, "x"}, {next}));
    last = next;
  }
  if (is_data_dependent) {
    body.message(1, onnx_node("ReduceSum", {last}, {"sum"}))
        .message(1, onnx_node("Less", {"sum", "bound"}, {"c_out"}));
  } else {
    body.message(1, onnx_node("Identity", {"c"}, {"c_out"}));
  }
  body.message(12, onnx_value("c_out", {})).message(12, onnx_value(last, {2}));
  body.message(12, onnx_value(last, {2}));
  Proto graph;
  graph.message(1, onnx_node("Loop", {"m", "yes", "x"}, {"final", "all"}, "loop")
                       .message(5, onnx_graph("body", body)));
  graph.message(5, onnx_integers("m", {}, {trips}))
      .message(5, onnx_integers("yes", {}, {1}, 9))
      .message(5, onnx_tensor("bound", {1}, {3}));
  graph.message(11, onnx_value("x", {2}));
  graph.message(12, onnx_value("final", {2})).message(12, onnx_value("all", {trips, 2}));
  return onnx_model(graph);
}

}  // namespace

TEST_CASE("onnx: the trips of a loop stand one after another", "[frontend]") {
  const Imported model = import_bytes(loop_model(3).text());
  CHECK(model.errors.empty());
  const std::vector<std::string> ops = model.ops();
  CHECK(std::count(ops.begin(), ops.end(), "aten.add.Tensor") == 3);
  CHECK(std::count(ops.begin(), ops.end(), "aten.cat.default") == 1);
  CHECK(model.graph.tensor(model.graph.graph_outputs()[1]).shape == Shape{3, 2});
  // Each trip has its name, and the loop's own node is called after it.
  CHECK(model.graph.nodes()[0].name == "loop/0/s0");
  CHECK(model.graph.nodes()[1].name == "loop/1/s0");
}

TEST_CASE("onnx: a loop without a trip has empty results of the shape that its body states",
          "[frontend]") {
  const Imported model = import_bytes(loop_model(0).text());
  CHECK(model.errors.empty());
  CHECK(model.graph.tensor(model.graph.graph_outputs()[1]).shape == Shape{0, 2});
}

TEST_CASE("onnx: loops that do not end by what is known are refused", "[frontend]") {
  CHECK(import_bytes(loop_model(2, true).text()).errors ==
        "node 'loop' (Loop-13): the condition of its next trip 'loop/0/c_out' has to be known at "
        "import; --freeze gives inputs values, and it depends on 'x'\n");
  // 10,000 nodes at most, with one for each trip.
  CHECK(import_bytes(loop_model(1'000'000'000'000, false, 4).text()).errors ==
        "node 'loop' (Loop-13): unfolds into more than 10000 nodes, after 1667 trips of 5 nodes "
        "each\n");
}

TEST_CASE("onnx: loops without nodes in loops without nodes end", "[frontend]") {
  // Each level has 9,000 trips, of which three make 7 * 10^11.
  Proto body;
  body.message(11, onnx_value("i", {})).message(11, onnx_value("c", {}));
  body.message(12, onnx_value("c", {}));
  for (int level = 0; level < 3; ++level) {
    Proto outer;
    outer.message(11, onnx_value("i", {})).message(11, onnx_value("c", {}));
    outer.message(1, onnx_node("Loop", {"m", "yes"}, {}).message(5, onnx_graph("body", body)));
    outer.message(12, onnx_value("c", {}));
    body = outer;
  }
  const Proto graph =
      Proto()
          .message(1, onnx_node("Loop", {"m", "yes"}, {}).message(5, onnx_graph("body", body)))
          .message(5, onnx_integers("m", {}, {9000}))
          .message(5, onnx_integers("yes", {}, {1}, 9));
  CHECK(import_bytes(onnx_model(graph).text()).errors.find("more than 10000 nodes") !=
        std::string::npos);
}

TEST_CASE("onnx: a fault in a loop's body is told once", "[frontend]") {
  Proto body;
  body.message(11, onnx_value("i", {})).message(11, onnx_value("c", {}));
  body.message(1, onnx_node("Nothing", {"x"}, {"s"}, "inner"));
  body.message(12, onnx_value("c", {})).message(12, onnx_value("s", {2}));
  const Proto graph =
      Proto()
          .message(1,
                   onnx_node("Loop", {"m", ""}, {"y"}, "loop").message(5, onnx_graph("body", body)))
          .message(5, onnx_integers("m", {}, {7}))
          .message(11, onnx_value("x", {2}))
          .message(12, onnx_value("y", {7, 2}));
  CHECK(import_bytes(onnx_model(graph).text()).errors ==
        "node 'loop/0/inner' (Nothing-13): is not an op that is imported\n");
}

TEST_CASE("onnx: Scan walks along axes, also from their ends", "[frontend]") {
  Proto body;
  body.message(11, onnx_value("s", {3})).message(11, onnx_value("item", {3}));
  body.message(1, onnx_node("Add", {"s", "item"}, {"next"}))
      .message(1, onnx_node("Relu", {"next"}, {"shown"}));
  body.message(12, onnx_value("next", {3})).message(12, onnx_value("shown", {3}));
  const Proto scan = onnx_node("Scan", {"h", "x"}, {"last", "y"}, "scan")
                         .message(5, onnx_graph("body", body))
                         .message(5, onnx_int("num_scan_inputs", 1))
                         .message(5, onnx_ints("scan_input_axes", {1}))
                         .message(5, onnx_ints("scan_input_directions", {1}))
                         .message(5, onnx_ints("scan_output_axes", {-1}));
  const Proto graph = Proto()
                          .message(1, scan)
                          .message(11, onnx_value("h", {3}))
                          .message(11, onnx_value("x", {3, 4}))
                          .message(12, onnx_value("last", {3}))
                          .message(12, onnx_value("y", {3, 4}));
  const Imported model = import_bytes(onnx_model(graph).text());
  CHECK(model.errors.empty());
  CHECK(model.graph.tensor(model.graph.graph_outputs()[1]).shape == Shape{3, 4});
  // The last column comes first.
  REQUIRE(model.graph.nodes()[0].op_type == "aten.slice.Tensor");
  CHECK(model.graph.nodes()[0].attrs()["start"] == 3);
}

TEST_CASE("onnx: results whose shape depends on data fold from constants", "[frontend]") {
  const auto errors_of = [](const Proto& node, const std::vector<std::int64_t>& shape) {
    const Proto graph = Proto()
                            .message(1, node)
                            .message(5, onnx_tensor("w", {4}, {2, 1, 2, 0}))
                            .message(5, onnx_integers("keep", {4}, {0, 1, 1, 0}, 9))
                            .message(11, onnx_value("x", {4}))
                            .message(12, onnx_result("y"));
    const Imported model = import_bytes(onnx_model(graph).text());
    if (model.errors.empty()) {
      CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).shape == shape);
    }
    return model.errors;
  };
  CHECK(errors_of(onnx_node("Unique", {"w"}, {"y"}), {3}).empty());
  CHECK(errors_of(onnx_node("NonZero", {"w"}, {"y"}), {1, 3}).empty());
  CHECK(errors_of(onnx_node("Compress", {"x", "keep"}, {"y"}), {2}).empty());
  CHECK(errors_of(onnx_node("NonZero", {"x"}, {"y"}, "n"), {1, 3}) ==
        "node 'n' (NonZero-13): the shape of its result depends on data: 'x' has to be known at "
        "import; --freeze gives inputs values, and it depends on 'x'\n");
}

TEST_CASE("onnx: numbers of nodes that overflow or are missing are refused", "[frontend]") {
  const auto errors = [](const Proto& node, std::vector<Proto> values, const Proto& initializer) {
    Proto graph;
    graph.message(1, node).message(5, initializer).message(12, onnx_value("y", {1}));
    for (const Proto& value : values) graph.message(11, value);
    // Imports of ONNX's own ops and of ONNX Runtime's.
    Proto model = onnx_model(graph);
    model.message(8, Proto().bytes(1, "com.microsoft").number(2, 1));
    return import_bytes(model.text()).errors;
  };
  // heads + 2 * kv_heads is 2^64.
  const Proto attention =
      onnx_node("GroupQueryAttention", {"q", "", "", "", "", "last"}, {"y"}, "gqa")
          .bytes(7, "com.microsoft")
          .message(5, onnx_int("num_heads", 2))
          .message(5, onnx_int("kv_num_heads", INT64_MAX));
  const std::string heads =
      errors(attention, {onnx_value("q", {1, 2, 8})}, onnx_integers("last", {1}, {1}));
  CHECK_THAT(heads, Catch::Contains("'num_heads' do not fit"));
  const Proto unpool = onnx_node("MaxUnpool", {"x", "at"}, {"y"}, "unpool")
                           .message(5, onnx_ints("kernel_shape", {INT64_MAX}))
                           .message(5, onnx_ints("strides", {INT64_MAX}));
  const std::string large =
      errors(unpool, {onnx_value("x", {1, 1, 2})}, onnx_integers("at", {1, 1, 2}, {0, 1}));
  CHECK_THAT(large, Catch::Contains("too large"));
  const Proto loop =
      onnx_node("Loop", {"m", "", "x"}, {"y"}, "loop")
          .message(5,
                   onnx_graph(
                       "body",
                       Proto().message(12, onnx_value("c", {})).message(12, onnx_value("s", {1}))));
  const std::string trips = errors(loop, {onnx_value("x", {1})}, onnx_integers("m", {0}, {}));
  CHECK_THAT(trips, Catch::Contains("the trip count is expected to be one number"));
}
