// SPDX-License-Identifier: Apache-2.0
// Reading a document node by node gives what reading it as a whole gives.
#include "ir/document_stream.hpp"

#include <filesystem>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/mention_form.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"

using namespace npu;
using namespace npu::test;

namespace {

std::string read_as_a_whole(const std::string& text) {
  Diagnostics diagnostics;
  return write_graph(assemble_graph(parse_python_json(text, "f"), "f", diagnostics));
}

bool is_streamed(const std::string& text) {
  const auto take = [](auto&&...) { return true; };
  return stream_document(text, take, take);
}

// `count` nodes in a chain, with names of `width` letters.
std::string chain(int count, int width) {
  GraphBuilder builder;
  builder.input("x").weight("w", {4});
  std::string before = "x";
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(width), 'n');
    builder.node(name, i % 3 == 0 ? "aten.add.Tensor" : "aten.relu.default",
                 i % 3 == 0 ? std::vector<std::string>{before, "p_w"} : std::vector{before});
    before = name;
  }
  return builder.output(before).text();
}

}  // namespace

TEST_CASE("stream: documents of models are read node by node, and written with the same bytes") {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(NPU_TEST_DATA_DIR) + "/models/small")) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = read_file(entry.path().string());
    if (text.find("\"nodes\"") == std::string::npos) continue;
    CAPTURE(entry.path().string());
    CHECK(is_streamed(text));
    CHECK(write_graph(read_valid_graph(text, "f")) == read_as_a_whole(text));
    ++count;
  }
  CHECK(count > 5);
}

TEST_CASE("stream: lists of the usual form are held as a form") {
  const Graph graph = read_valid_graph(chain(2, 1), "f");
  CHECK(find_member(graph.nodes()[1].json, "name")->is_null());
  CHECK(mention_form(*find_member(graph.nodes()[1].json, "outputs")) == MentionForm::kBare);
  CHECK(graph.nodes()[0].inputs.size() == 2);
  CHECK(graph.tensor(graph.nodes()[0].inputs[1]).kind == TensorKind::kWeight);
}

TEST_CASE("stream: a document of several pieces") {
  const std::string text = chain(300, 5000);  // 6 MB, pieces of one
  CHECK(is_streamed(text));
  const Graph graph = read_valid_graph(text, "f");
  CHECK(graph.nodes().size() == 300);
  CHECK(write_graph(graph) == read_as_a_whole(text));
  // A comma too many, or one too few, where a piece ends or anywhere else.
  int count = 0;
  for (std::size_t place = text.find("},{\"name\""); place != std::string::npos;
       place = text.find("},{\"name\"", place + 1)) {
    if (++count % 29 != 0) continue;
    std::string broken = text;
    broken.insert(place + 1, ",");
    CHECK_FALSE(is_streamed(broken));
    broken.erase(place + 1, 2);
    CHECK_FALSE(is_streamed(broken));
  }
  CHECK(count > 29);
}

TEST_CASE("stream: what is not of the usual form is read as it was, with its keys") {
  for (
      const char* mention :
      {R"({"name": "x", "shape": [4], "dtype": "float32", "mine": 1})",
       R"({"dtype": "float32", "name": "x", "shape": [4]})", R"({"name": "x"})",
       R"({"name": "x", "shape": [4], "dtype": "float32", "producer_node": null, "producer_output_idx": null})",
       R"({"name": "x", "shape": [4], "dtype": "float32", "producer_node": "x", "producer_output_idx": 0})"}) {
    const std::string text =
        R"({"graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}], "graph_outputs": [], )"
        R"("nodes": [{"op_type": "my.op", "mine": [1, {"a": null}], "name": "n", "inputs": [)" +
        std::string(mention) + R"(], "outputs": [{"shape": [4], "dtype": "float32"}]}]})";
    CAPTURE(mention);
    CHECK(write_graph(read_valid_graph(text, "f")) == read_as_a_whole(text));
  }
}

TEST_CASE("stream: texts that are no such document") {
  for (const char* text : {"", "[]", "{}", R"({"nodes": 3})", R"({"nodes": [)",
                           R"({"nodes": []})"
                           " x",
                           R"({"nodes": [)"
                           "]",
                           R"({"nodes": [], "nodes": []})", R"({"nodes": [,]})",
                           R"({"nodes": [3]})", R"({"a": "nodes" []})", R"({"nodes": [}])",
                           R"({"nodes": [{"name": "a", "name": "a", "op_type": "b"}]})"}) {
    CAPTURE(text);
    CHECK_FALSE(is_streamed(text));
  }
  CHECK(is_streamed(R"({"nodes": [ ]})"));
}
