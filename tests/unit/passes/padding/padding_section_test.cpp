// SPDX-License-Identifier: Apache-2.0
#include "passes/padding/padding_section.hpp"

#include <string>

#include "catch.hpp"
#include "passes/padding/pad_graph.hpp"
#include "template_lines.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Graph padded_graph() {
  Diagnostics faults;
  PaddedGraph padded = pad_graph(template_of(R"(
    size S 2..64 multiple 2; input x [1,S,4]
    y = sum.dim_IntList(x) [1,4] {"dim": [1]}
    output y)"),
                                 {{"S", 8}}, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
  return std::move(padded.graph);
}

std::string first_fault(Graph graph, const Json& section) {
  graph.set_npu_member("padding", section);
  Diagnostics diagnostics;
  verify_padding(graph, diagnostics);
  return diagnostics.entries().empty() ? std::string("none")
                                       : diagnostics.entries().front().location.pointer + ": " +
                                             diagnostics.entries().front().text;
}

}  // namespace

TEST_CASE("padding section: read as it was written", "[padding]") {
  const Graph graph = padded_graph();
  Diagnostics diagnostics;
  const auto section = padding::PaddingSection::read(graph, diagnostics);
  REQUIRE(section);
  CHECK(section->to_json() == *graph.npu_member("padding"));
  CHECK(section->symbols[0].multiple_of == 2);
  CHECK(section->symbols[0].min == 2);
  CHECK(section->find("x", 1)->text() == "S");
  CHECK(section->find("x", 0) == nullptr);
  CHECK(section->find("y", 0) == nullptr);
}

TEST_CASE("padding section: what is malformed is told with its place", "[padding]") {
  const Graph graph = padded_graph();
  const Json good = *graph.npu_member("padding");
  CHECK(first_fault(graph, good) == "none");
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json changed = good;
    changed[nlohmann::ordered_json::json_pointer(pointer)] = value;
    return first_fault(graph, changed);
  };
  for (const Json& value : {Json(), Json(3), Json("S"), Json::array(), Json::object()}) {
    CHECK(first_fault(graph, value) != "none");
  }
  CHECK(with("/symbols/S/capacity", 0) ==
        "/npu/padding/symbols/S/capacity: expected an integer of at least 1 and at most "
        "1099511627776");
  CHECK(with("/symbols/S/capacity", 9223372036854775807).find("at most") != std::string::npos);
  CHECK(with("/symbols/S/min", 10).find("at most 8") != std::string::npos);
  CHECK(with("/symbols/S/min", 3) ==
        "/npu/padding/symbols/S: 'capacity' or 'min' is no multiple of 'multiple_of'");
  CHECK(with("/symbols/S/valid", 3).find("expected a string") != std::string::npos);
  CHECK(with("/symbols/S/valid", "y").find("no graph input") != std::string::npos);
  CHECK(with("/symbols/S/other", 3).find("unknown key 'other'") != std::string::npos);
  CHECK(with("/claim", "bits") == "/npu/padding/claim: expected \"exact\"");
  CHECK(with("/tensors/0", Json::array({"x", 1, "S"})) ==
        "/npu/padding/tensors/0: expected [tensor, dimension, size, class]");
  CHECK(with("/tensors/0/0", "nothing") ==
        "/npu/padding/symbols/S: no dimension of a graph input is 'S' in 'tensors'");
  CHECK(with("/tensors/0/1", -1).find("has no dimension -1") != std::string::npos);
  CHECK(with("/tensors/0/1", 9223372036854775807).find("has no dimension") != std::string::npos);
  CHECK(with("/tensors/0/2", "S *").find("/npu/padding/tensors/0/2: ") == 0);
  CHECK(with("/tensors/1/2", "T").find("size 'T' is not in symbols") != std::string::npos);
  CHECK(with("/tensors/1/2", "4611686018427387904 * S") != "none");
  CHECK(with("/tensors/1/2", "8 - S + S") != "none");
  CHECK(with("/tensors/1/2", "16 - S").find("expected 1 to 8") != std::string::npos);
  CHECK(with("/tensors/0/3", "Q").find("expected R, Z, N, F, A") != std::string::npos);
  CHECK(with("/masks/0/fill", "nine") != "none");
  CHECK(with("/masks/0/for", 3) != "none");
  CHECK(with("/masks/0/dim", -1) != "none");
  CHECK(with("/cut", -1) != "none");
  CHECK(with("/cut", 5).find("the masks have 128 bytes") != std::string::npos);
  CHECK(with("/flow", 1000).find("more than the cut") != std::string::npos);
  Json twice = good;
  twice["tensors"].push_back(twice["tensors"][0]);
  CHECK(first_fault(graph, twice).find("stated twice") != std::string::npos);
}
