// SPDX-License-Identifier: Apache-2.0
// States of a sub-IR: written where they lie if nothing reads them as they were behind that, and
// copied otherwise. Without a device.
#include "lowering/state_writes.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "lowering/blob.hpp"
#include "lowering/lower_graph.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

/// Of a cache: 2 x 12 x 4 floats.
constexpr std::uint64_t kStateBytes = 384;

struct NodeSpec {
  std::string name;  ///< also of its result
  std::string op;
  std::vector<std::string> inputs;
  Json attrs = Json::object();
  std::optional<int> group = {};
};

/// A cache of 12 rows, another one, positions and three new rows.
class SubIr {
 public:
  SubIr() {
    for (const char* name : {"state", "other"}) tensors_[name] = tensor(name, {2, 12, 4});
    tensors_["at"] = tensor("at", {3}, "int64");
    tensors_["rows"] = tensor("rows", {2, 3, 4});
    tensors_["count"] = tensor("count", {}, "int64");
  }

  SubIr& node(const NodeSpec& spec, const Shape& shape = {2, 12, 4}) {
    tensors_[spec.name] = tensor(spec.name, shape);
    Json inputs = Json::array();
    for (const std::string& input : spec.inputs) inputs.push_back(tensors_.at(input));
    Json node = {{"name", spec.name},
                 {"op_type", spec.op},
                 {"inputs", std::move(inputs)},
                 {"outputs", Json::array({tensors_.at(spec.name)})},
                 {"attrs", spec.attrs}};
    if (spec.group) node["fusion_group"] = *spec.group;
    nodes_.push_back(std::move(node));
    return *this;
  }

  /// index_copy of the new rows into a tensor.
  SubIr& copy(const std::string& name, const std::string& into, const std::string& rows = "rows") {
    return node({name, "aten.index_copy.default", {into, "at", rows}, {{"dim", 1}}});
  }

  SubIr& relu(const std::string& name, const std::string& of, std::optional<int> group = {}) {
    return node({name, "aten.relu.default", {of}, Json::object(), group});
  }

  SubIr& alias(const std::string& output, const std::string& input) {
    aliases_.push_back({{"output", output}, {"input", input}});
    return *this;
  }

  Graph graph(const std::vector<std::string>& outputs) const {
    Json inputs = Json::array();
    for (const char* name : {"state", "other", "at", "rows", "count"}) {
      inputs.push_back(tensors_.at(name));
    }
    Json given = Json::array();
    for (const std::string& output : outputs) given.push_back(tensors_.at(output));
    const Json document = {{"model_name", "states"},
                           {"graph_inputs", std::move(inputs)},
                           {"graph_outputs", std::move(given)},
                           {"weights", Json::array()},
                           {"nodes", nodes_},
                           {"aliases", aliases_}};
    return read_valid_graph(document.dump(), "states.json");
  }

 private:
  static Json tensor(const std::string& name, const Shape& shape,
                     const std::string& dtype = "float32") {
    return {{"name", name}, {"shape", shape}, {"dtype", dtype}};
  }

  std::map<std::string, Json> tensors_;
  Json nodes_ = Json::array();
  Json aliases_ = Json::array();
};

struct Lowered {
  LoweredGraph lowered;
  Json report;
  Graph graph;

  explicit Lowered(Graph of)
      : lowered(lower_graph(of, {}, [](std::size_t, std::size_t) {})),
        report(parse_json(lowered.report, "report")),
        graph(std::move(of)) {
    // What it makes is what a blob may hold.
    std::string blob;
    Plan plan = lowered.plan;
    std::uint64_t bytes = 0;
    for (const ProgramPart& part : plan.programs) bytes += part.source_bytes;
    REQUIRE(bytes == lowered.source.size());
    for (const std::string& part : write_blob(plan, "{}", "d", lowered.source, "")) blob += part;
    CHECK_NOTHROW(read_blob(blob.data(), blob.size()));
  }

  const Plan& plan() const { return lowered.plan; }
  std::string said(const std::string& output) const {
    return find_member(*find_member(report, "aliases"), output.c_str())->get<std::string>();
  }
  /// The launch of a node; as many as there are if none is.
  std::size_t launch_of(const std::string& node) const {
    const auto found = std::ranges::find_if(plan().launches, [&](const Launch& launch) {
      return std::ranges::any_of(launch.nodes, [&](std::uint64_t each) {
        return graph.nodes()[static_cast<std::size_t>(each)].name == node;
      });
    });
    return static_cast<std::size_t>(found - plan().launches.begin());
  }
  bool touches(std::size_t launch, PlaceKind kind, std::uint64_t which) const {
    return std::ranges::any_of(plan().launches.at(launch).arguments, [&](const Place& place) {
      return place.kind == kind && place.value == which;
    });
  }
  bool any_touches(PlaceKind kind, std::uint64_t which) const {
    for (std::size_t i = 0; i < plan().launches.size(); ++i) {
      if (touches(i, kind, which)) return true;
    }
    return false;
  }
};

/// The only state is copied from scratch memory when all is done.
void check_copied(const SubIr& sub_ir, const std::vector<std::string>& outputs,
                  const std::string& output) {
  const Lowered made(sub_ir.graph(outputs));
  CHECK(made.said(output) == "copied");
  REQUIRE(made.plan().aliases.size() == 1);
  const PlanAlias& alias = made.plan().aliases[0];
  CHECK_FALSE(alias.is_in_place);
  CHECK_FALSE(made.any_touches(PlaceKind::kOutput, alias.output));
  CHECK(made.any_touches(PlaceKind::kScratch, alias.offset));
  CHECK(alias.offset + kStateBytes <= made.plan().scratch_bytes);
  // Nothing else lies there from when it is written on.
  bool is_written = false;
  for (std::size_t i = 0; i < made.plan().launches.size(); ++i) {
    const bool touches = made.touches(i, PlaceKind::kScratch, alias.offset);
    if (i + 1 == made.plan().launches.size()) CHECK((is_written || touches));
    is_written = is_written || touches;
  }
}

}  // namespace

TEST_CASE("state: new rows are written into the state's own memory, and read there") {
  const Lowered made(
      SubIr().copy("next", "state").relu("y", "next").alias("next", "state").graph({"y", "next"}));
  CHECK(made.said("next") == "in_place");
  REQUIRE(made.plan().aliases.size() == 1);
  CHECK(made.plan().aliases[0].input == 0);
  CHECK(made.plan().aliases[0].output == 1);
  CHECK(made.plan().aliases[0].is_in_place);
  CHECK(made.plan().launches.size() == 2);
  CHECK(made.plan().scratch_bytes == 0);
  CHECK_FALSE(made.any_touches(PlaceKind::kInput, 0));  // nobody copies what was there
  CHECK(made.touches(made.launch_of("y"), PlaceKind::kOutput, 1));
}

TEST_CASE("state: without a pair the same op copies the rest of its operand") {
  const Lowered made(SubIr().copy("next", "state").graph({"next"}));
  CHECK(made.plan().aliases.empty());
  CHECK(find_member(made.report, "aliases")->empty());
  CHECK(made.any_touches(PlaceKind::kInput, 0));
}

TEST_CASE("state: a chain of writes is one piece of memory") {
  const Lowered made(
      SubIr()
          .copy("first", "state")
          .node({"second", "npu.tail", {"first", "count"}, {{"dim", 1}, {"fill", "edge"}}})
          .alias("second", "state")
          .graph({"second"}));
  CHECK(made.said("second") == "in_place");
  CHECK(made.plan().scratch_bytes == 0);
  REQUIRE(made.plan().launches.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(made.touches(i, PlaceKind::kOutput, 0));
  CHECK_FALSE(made.any_touches(PlaceKind::kInput, 0));
}

TEST_CASE("state: what reads it as it was runs before, wherever it stands in the list") {
  const Lowered made(SubIr()
                         .copy("next", "state")
                         .relu("y", "next")
                         .relu("old", "state")
                         .alias("next", "state")
                         .graph({"old", "y", "next"}));
  CHECK(made.said("next") == "in_place");
  REQUIRE(made.plan().launches.size() == 3);
  CHECK(made.launch_of("old") < made.launch_of("next"));
  CHECK(made.launch_of("next") < made.launch_of("y"));
}

TEST_CASE("state: a group that reads it as it was and as it will be becomes two kernels") {
  const Lowered made(SubIr()
                         .relu("old", "state", 1)
                         .copy("next", "state")
                         .node({"y", "aten.add.Tensor", {"old", "next"}, Json::object(), 1})
                         .alias("next", "state")
                         .graph({"y", "next"}));
  CHECK(made.said("next") == "in_place");
  REQUIRE(made.plan().launches.size() == 3);
  CHECK(made.launch_of("old") < made.launch_of("next"));
  CHECK(made.launch_of("next") < made.launch_of("y"));
  const Json& splits = *find_member(made.report, "splits");
  REQUIRE(splits.size() == 1);
  CHECK(splits[0]["node"] == "y");
  CHECK(splits[0]["reason"] == "a state that it reads is overwritten in between");
  // Without a pair it is one kernel.
  const Lowered whole(SubIr()
                          .relu("old", "state", 1)
                          .copy("next", "state")
                          .node({"y", "aten.add.Tensor", {"old", "next"}, Json::object(), 1})
                          .graph({"y", "next"}));
  CHECK(whole.plan().launches.size() == 2);
}

TEST_CASE("state: one is copied where an op reads it as it was and as it will be") {
  const auto model = [] {
    return SubIr()
        .copy("next", "state")
        .node({"y", "aten.add.Tensor", {"state", "next"}})
        .alias("next", "state");
  };
  check_copied(model(), {"y", "next"}, "next");
  // Another state beside it is not.
  const Lowered both(model()
                         .copy("far", "other")
                         .relu("z", "far")
                         .alias("far", "other")
                         .graph({"y", "next", "z", "far"}));
  CHECK(both.said("next") == "copied");
  CHECK(both.said("far") == "in_place");
}

TEST_CASE("state: one is copied that is needed as it was when the run is done") {
  const Json moved = {{"dim0", 0}, {"dim1", 2}};
  // A view of it is a result.
  check_copied(SubIr()
                   .node({"turned", "aten.transpose.int", {"state"}, moved}, {4, 12, 2})
                   .copy("next", "state")
                   .alias("next", "state"),
               {"turned", "next"}, "next");
  // What is between is a result.
  check_copied(SubIr().copy("first", "state").copy("second", "first").alias("second", "state"),
               {"first", "second"}, "second");
}

TEST_CASE("state: one is copied whose new rows are rows of itself") {
  check_copied(
      SubIr()
          .node({"part", "aten.slice.Tensor", {"state"}, {{"dim", 1}, {"start", 1}, {"end", 4}}},
                {2, 3, 4})
          .copy("next", "state", "part")
          .alias("next", "state"),
      {"next"}, "next");
}

TEST_CASE("state: one is copied that no chain of writes in part leads to") {
  check_copied(SubIr()
                   .node({"next", "aten.add.Tensor", {"state", "other"}})
                   .relu("y", "state")
                   .alias("next", "state"),
               {"next", "y"}, "next");
  // A view of another state, which is written beside it.
  const Json turn = {{"dim0", 1}, {"dim1", 1}};
  const Lowered swapped(SubIr()
                            .node({"a", "aten.transpose.int", {"other"}, turn})
                            .node({"b", "aten.transpose.int", {"state"}, turn})
                            .alias("a", "state")
                            .alias("b", "other")
                            .graph({"a", "b"}));
  for (const PlanAlias& alias : swapped.plan().aliases) CHECK_FALSE(alias.is_in_place);
  CHECK(swapped.plan().aliases.at(0).offset != swapped.plan().aliases.at(1).offset);
  CHECK(swapped.plan().scratch_bytes >= 2 * kStateBytes);
  for (std::uint64_t i = 0; i < 2; ++i) CHECK_FALSE(swapped.any_touches(PlaceKind::kOutput, i));
}

TEST_CASE("state: two whose new rows are each other's keep an order, or one is copied") {
  const Json part = {{"dim", 1}, {"start", 1}, {"end", 4}};
  const Lowered made(SubIr()
                         .node({"p", "aten.slice.Tensor", {"state"}, part}, {2, 3, 4})
                         .node({"q", "aten.slice.Tensor", {"other"}, part}, {2, 3, 4})
                         .copy("a", "state", "q")
                         .copy("b", "other", "p")
                         .alias("a", "state")
                         .alias("b", "other")
                         .graph({"a", "b"}));
  CHECK(made.said("a") == "in_place");
  CHECK(made.said("b") == "copied");
  // b reads a state before a writes it.
  CHECK(made.launch_of("b") < made.launch_of("a"));
}

}  // namespace npu::opencl
