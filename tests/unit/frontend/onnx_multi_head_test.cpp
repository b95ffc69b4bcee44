// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's attentions of as many heads of keys as of queries: sizes, and what is refused.
#include <string>
#include <vector>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Proto microsoft(const char* op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs) {
  return onnx_node(op, inputs, outputs, "node")
      .bytes(7, "com.microsoft")
      .message(5, onnx_int("num_heads", 4));
}

Proto decoder_step(const Proto& node, bool is_stack) {
  Proto graph;
  graph.message(1, node).message(11, named_value("x", {"batch", "new", "32"}));
  graph.message(11, named_value("mask", {"batch", "total"}, 6));
  graph.message(12, named_value("y", {"batch", "new", "32"}));
  if (is_stack) {
    graph.message(11, named_value("w", {"32", "96"})).message(11, named_value("b", {"96"}));
    graph.message(11, named_value("past", {"2", "batch", "4", "past", "8"}));
    return graph.message(12, named_value("present", {"2", "batch", "4", "total", "8"}));
  }
  for (const char* name : {"past_k", "past_v"}) {
    graph.message(11, named_value(name, {"batch", "4", "past", "8"}));
  }
  for (const char* name : {"present_k", "present_v"}) {
    graph.message(12, named_value(name, {"batch", "4", "total", "8"}));
  }
  return graph;
}

Imported imported(const Proto& graph, const std::vector<std::string>& more = {}) {
  Proto model = onnx_model(graph);
  model.message(8, Proto().bytes(1, "com.microsoft").number(2, 1));
  ImportOptions options;
  for (const char* text : {"batch=1", "new=3", "past=5"}) add_binding(options, text);
  for (const std::string& text : more) add_binding(options, text);
  return import_bytes(model.text(), options);
}

Shape shape_of(const Imported& model, std::size_t output) {
  return model.graph.tensor(model.graph.graph_outputs()[output]).shape;
}

const std::vector<std::string> kOperands{"x", "x", "x", "", "mask", "", "past_k", "past_v"};
const std::vector<std::string> kResults{"y", "present_k", "present_v"};

}  // namespace

TEST_CASE("onnx: attention of many heads puts new rows behind the past", "[frontend]") {
  // The mask has past and new rows, which nothing but the attention says.
  const Imported model =
      imported(decoder_step(microsoft("MultiHeadAttention", kOperands, kResults), false));
  CHECK(model.errors == "");
  CHECK(shape_of(model, 0) == Shape{1, 3, 32});
  CHECK(shape_of(model, 1) == Shape{1, 4, 8, 8});
  std::string ops;
  for (const std::string& op : model.ops()) ops += op + " ";
  CHECK_THAT(ops, Catch::Contains("aten.scaled_dot_product_attention.default"));
}

TEST_CASE("onnx: attention with its products takes a stack of keys and values", "[frontend]") {
  const Proto node = microsoft("Attention", {"x", "w", "b", "mask", "past"}, {"y", "present"})
                         .message(5, onnx_int("unidirectional", 1));
  const Imported model = imported(decoder_step(node, true));
  CHECK(model.errors == "");
  CHECK(shape_of(model, 0) == Shape{1, 3, 32});
  CHECK(shape_of(model, 1) == Shape{2, 1, 4, 8, 8});
}

TEST_CASE("onnx: attentions of many heads that do not fit are refused", "[frontend]") {
  const auto errors = [](const std::vector<std::string>& operands, const char* more = nullptr) {
    Proto node = microsoft("MultiHeadAttention", operands, kResults);
    if (more != nullptr) node.message(5, onnx_int(more, 1));
    return imported(decoder_step(node, false), {"total=8"}).errors;
  };
  CHECK_THAT(errors({"x", "x", "x", "", "mask"}),
             Catch::Contains("a mask of shape [1, 8] is none of [1, 3], [1, 3, 3] and [1]"));
  CHECK_THAT(errors({"x", "x", "x", "past_k"}), Catch::Contains("does not fit its operand"));
  CHECK_THAT(errors({"x"}), Catch::Contains("does not hold 3 parts"));
  CHECK_THAT(errors({"x", "x", "x", "", "", "past_k"}),
             Catch::Contains("shapes [1, 4, 5, 8] and [1, 4, 3, 3] do not fit together"));
  // A buffer of fixed size, whose rows an operand counts.
  CHECK_THAT(errors({"x", "x", "x", "", "mask", "", "past_k", "past_v", "mask"}),
             Catch::Contains("operand 8"));
  CHECK_THAT(errors(kOperands, "no_such_attribute"), Catch::Contains("no_such_attribute"));
  const Proto rotary = microsoft("Attention", {"x", "w", "b", "mask", "past"}, {"y", "present"})
                           .message(5, onnx_int("do_rotary", 1));
  CHECK_THAT(imported(decoder_step(rotary, true)).errors,
             Catch::Contains("'do_rotary' is imported only if it is 0"));
}
