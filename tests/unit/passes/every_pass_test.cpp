// SPDX-License-Identifier: Apache-2.0
// Promises of every pass: the document after it is valid, a second run changes nothing, and it does
// the same to a graph that was never text.
#include <algorithm>
#include <filesystem>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/passes/align.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"

using namespace npu;

namespace {

struct Pass {
  const char* name;
  void (*run)(Graph& graph, const Target& target, Diagnostics& diagnostics);
};

/// In the order in which a pipeline runs them.
const Pass kPasses[] = {
    {"tag-ops", [](Graph& graph, const Target& target,
                   Diagnostics& diagnostics) { tag_ops(graph, target, {}, diagnostics); }},
    {"fuse-ops", [](Graph& graph, const Target& /*target*/,
                    Diagnostics& diagnostics) { fuse_ops(graph, {}, diagnostics); }},
    {"align-layout", [](Graph& graph, const Target& /*target*/,
                        Diagnostics& diagnostics) { align_layout(graph, {}, diagnostics); }},
};

// Documents that any program reads; staged models are of another kind.
std::vector<std::string> models() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(NPU_TEST_DATA_DIR "/models/small")) {
    if (entry.path().extension() != ".json") continue;
    const std::string file = entry.path().string();
    if (find_member(parse_json(read_file(file), file), "nodes") != nullptr) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

Graph read_again(const std::string& text) {
  Diagnostics diagnostics;
  Graph graph = read_graph(text, "again.json", diagnostics);
  for (const Diagnostic& entry : diagnostics.entries()) FAIL(format_diagnostic(entry));
  return graph;
}

// Splitting a group whose ops disagree changes what a second alignment explains, not what it does.
Json without_explanation(const std::string& text) {
  Json document = parse_json(text, "model.json");
  document["npu"].erase("layout");
  return document;
}

// What a program sets is a signed integer, what is parsed an unsigned one.
void make_signed(Json& json) {
  if (json.is_number_unsigned()) json = json.get<std::int64_t>();
  if (!json.is_structured()) return;
  for (Json& member : json) make_signed(member);
}

}  // namespace

TEST_CASE("Every pass does the same to a graph that was made in memory") {
  for (const std::string& file : models()) {
    Json document = parse_json(read_file(file), file);
    make_signed(document);
    Graph made = valid_graph(std::move(document), file);
    Graph read = read_valid_graph(read_file(file), file);
    for (const Pass& pass : kPasses) {
      CAPTURE(file, pass.name);
      Diagnostics of_made;
      Diagnostics of_read;
      pass.run(made, load_target("host"), of_made);
      pass.run(read, load_target("host"), of_read);
      CHECK(of_made.entries().size() == of_read.entries().size());
      CHECK((write_graph(made) == write_graph(read)));
    }
  }
}

TEST_CASE("After every pass a model is valid, and a second run changes nothing") {
  const std::vector<std::string> files = models();
  REQUIRE(files.size() >= 5);
  for (const char* name : {"host", "kpu"}) {
    const Target target = load_target(name);
    for (const std::string& file : files) {
      Graph graph = read_valid_graph(read_file(file), file);
      for (const Pass& pass : kPasses) {
        CAPTURE(file, name, pass.name);
        Diagnostics diagnostics;
        pass.run(graph, target, diagnostics);
        if (diagnostics.has_errors()) break;  // the target does not run one of the model's ops
        const std::string text = write_graph(graph);
        Graph again = read_again(text);
        pass.run(again, target, diagnostics);
        // In brackets: no failure is worth the text of a model.
        CHECK((without_explanation(write_graph(again)) == without_explanation(text)));
      }
    }
  }
}
