// SPDX-License-Identifier: Apache-2.0
#include "ir/unify_sizes.hpp"

#include <functional>
#include <string>

#include "catch.hpp"
#include "ir/bind_sizes.hpp"

using namespace npu;

namespace {

Json tensor(const std::string& name, const Json& shape) {
  return {{"name", name}, {"shape", shape}, {"dtype", "float32"}};
}

Json node(const std::string& name, const std::string& op, Json inputs, const Json& shape,
          Json attrs = Json::object()) {
  return {{"name", name},
          {"op_type", op},
          {"inputs", std::move(inputs)},
          {"outputs", {tensor(name, shape)}},
          {"attrs", std::move(attrs)}};
}

// Of one node a braced list is the node itself.
Json listed(const Json& json) { return json.is_array() ? json : Json::array({json}); }

Json document(const Json& inputs, const Json& nodes) {
  return {{"model_name", "m"},
          {"graph_inputs", listed(inputs)},
          {"graph_outputs", Json::array()},
          {"weights", Json::array()},
          {"nodes", listed(nodes)}};
}

struct Unified {
  std::optional<Json> model;
  std::string faults;
};

Unified unify(const std::vector<std::string>& names,
              const std::function<Json(const SizeBindings&)>& make, std::int64_t least = 5,
              std::int64_t step = 1, std::set<std::string>* varying = nullptr) {
  std::vector<SizeSample> samples;
  for (SizeBindings& point : sizes_to_sample(names, least, step)) {
    Json made = make(point);
    samples.push_back({std::move(point), std::move(made)});
  }
  std::vector<SizeSymbol> list;
  for (const std::string& name : names) {
    list.emplace_back();
    list.back().name = name;
  }
  Diagnostics diagnostics;
  Unified unified;
  unified.model =
      unify_sizes(samples, SizeSymbols::of(std::move(list)), varying, "m.json", diagnostics);
  for (const Diagnostic& fault : diagnostics.entries()) unified.faults += fault.text + "\n";
  return unified;
}

Json shape_of(const Json& model, std::size_t n) { return model["nodes"][n]["outputs"][0]["shape"]; }

}  // namespace

TEST_CASE("unify: samples have consecutive sizes, and symbols that do not follow each other") {
  CHECK(sizes_to_sample({"S"}, 5, 1)[0] == SizeBindings{{"S", 5}});
  const auto points = sizes_to_sample({"A", "B", "C"}, 64, 32);
  CHECK(points.size() == 10);
  for (const char* name : {"A", "B", "C"}) {
    std::set<std::int64_t> values;
    for (const SizeBindings& point : points) values.insert(point.find(name)->second);
    CHECK(values.size() == 10);
    CHECK(values.contains(64));
    CHECK(values.contains(96));
    CHECK(values.contains(128));
  }
  std::set<std::int64_t> differences;
  for (const SizeBindings& point : points) {
    differences.insert(point.find("A")->second - point.find("B")->second);
  }
  CHECK(differences.size() > 4);
}

TEST_CASE("unify: sums, products and attributes") {
  const Unified unified = unify({"P", "S"}, [](const SizeBindings& at) {
    const std::int64_t p = at.find("P")->second;
    const std::int64_t s = at.find("S")->second;
    return document(
        {tensor("x", {1, s, 8}), tensor("past", {1, p, 8})},
        {node("joined", "aten.cat.default", {tensor("past", {1, p, 8}), tensor("x", {1, s, 8})},
              {1, p + s, 8}, {{"dim", 1}}),
         node("scores", "custom.scores", {tensor("joined", {1, p + s, 8})}, {s, p + s}),
         node("flat", "aten.view.default", {tensor("scores", {s, p + s})}, {s * (p + s)},
              {{"size", {s * (p + s)}}}),
         node("twice", "custom.op", {tensor("x", {1, s, 8})}, {2 * s + 3 * p - 1},
              {{"n", 3 * p}, {"other", 7}}),
         node("pixels", "custom.op", {tensor("x", {1, s, 8})}, {p * s + 1})});
  });
  CHECK(unified.faults.empty());
  REQUIRE(unified.model);
  CHECK((*unified.model)["graph_inputs"][0]["shape"] == Json({1, "S", 8}));
  CHECK(shape_of(*unified.model, 0) == Json({1, "P + S", 8}));
  CHECK(SizeExpression::parse(shape_of(*unified.model, 2)[0].get<std::string>()) ==
        SizeExpression::parse("S*(P + S)"));
  CHECK((*unified.model)["nodes"][2]["attrs"]["size"] == shape_of(*unified.model, 2));
  CHECK(shape_of(*unified.model, 3) == Json({"3*P + 2*S - 1"}));
  CHECK((*unified.model)["nodes"][3]["attrs"] == Json({{"n", "3*P"}, {"other", 7}}));
  CHECK(shape_of(*unified.model, 4) == Json({"P*S + 1"}));
  Diagnostics faults;
  Template::read(*unified.model, "m.json", faults);
  CHECK(!faults.has_errors());
}

TEST_CASE("unify: what divides is the op's own formula, or the only one possible") {
  const Unified unified = unify({"H"}, [](const SizeBindings& at) {
    const std::int64_t h = at.find("H")->second;
    const std::int64_t once = (h + 1) / 2;
    const std::int64_t again = (once - 1) / 2 + 1;
    const std::int64_t sliced = (again - 1 + 2) / 3;
    return document(
        {tensor("x", {1, 3, h, 9})},
        {node("conv", "aten.conv2d.default", {tensor("x", {1, 3, h, 9}), tensor("w", {4, 3, 3, 3})},
              {1, 4, once, 5}, {{"stride", {2, 2}}, {"padding", {1, 1}}}),
         node("pool", "aten.max_pool2d.default", {tensor("conv", {1, 4, once, 5})},
              {1, 4, again, 3}, {{"kernel_size", {1, 1}}, {"stride", {2, 2}}}),
         node("slice", "aten.slice.Tensor", {tensor("pool", {1, 4, again, 3})}, {1, 4, sliced, 3},
              {{"dim", 2}, {"start", 1}, {"end", 9999}, {"step", 3}}),
         node("half", "custom.half", {tensor("x", {1, 3, h, 9})}, {h / 2})});
  });
  CHECK(unified.faults.empty());
  REQUIRE(unified.model);
  CHECK(shape_of(*unified.model, 0) == Json({1, 4, "(H + 1) // 2", 5}));
  CHECK(shape_of(*unified.model, 1) == Json({1, 4, "(H + 3) // 4", 3}));
  CHECK(shape_of(*unified.model, 2) == Json({1, 4, "(H + 7) // 12", 3}));
  CHECK(shape_of(*unified.model, 3) == Json({"H // 2"}));
}

TEST_CASE("unify: products of three sizes, and parts of them") {
  const auto unified = unify(
      {"B", "H", "W"},
      [](const SizeBindings& at) {
        const std::int64_t b = at.find("B")->second;
        const std::int64_t h = at.find("H")->second;
        const std::int64_t w = at.find("W")->second;
        return document(
            {tensor("x", {b, h, w})},
            {node("tiles", "aten.view.default", {tensor("x", {b, h, w})}, {b * h * w / 64, 64}),
             node("rows", "aten.view.default", {tensor("tiles", {b * h * w / 64, 64})},
                  {2 * b, h * w / 4, 2})});
      },
      64, 32);
  REQUIRE(unified.model);
  const Json& nodes = (*unified.model)["nodes"];
  CHECK(nodes[0]["outputs"][0]["shape"][0] == "((H*W) // 64)*B");
  CHECK(nodes[1]["outputs"][0]["shape"].dump() == R"(["2*B","(H*W) // 4",2])");
}

TEST_CASE("unify: what follows no size is told with node, argument and numbers") {
  const auto with = [](const std::function<std::int64_t(std::int64_t)>& size) {
    return unify({"S"}, [&](const SizeBindings& at) {
      const std::int64_t s = at.find("S")->second;
      return document({tensor("x", {s})},
                      {node("odd", "custom.odd", {tensor("x", {s})}, {s}, {{"n", size(s)}})});
    });
  };
  CHECK(with([](std::int64_t s) { return s * s * s * s * s; })
            .faults.starts_with("node 'odd' (custom.odd): attrs.n follows no size: 3125 for S=5; "
                                "7776 for S=6; 16807 for S=7; "));
  // Several divisions would do.
  CHECK(with([](std::int64_t s) {
          return (s + 20) / 40;
        }).faults.starts_with("node 'odd' (custom.odd): attrs.n follows no size: 0 for S=5"));
  CHECK(with([](std::int64_t) { return 3; }).faults.empty());
}

TEST_CASE("unify: a node behind a size that follows nothing is looked at, too") {
  const auto unified = unify({"S"}, [](const SizeBindings& at) {
    const std::int64_t s = at.find("S")->second;
    return document({tensor("x", {s})},
                    {node("odd", "custom.odd", {tensor("x", {s})}, {s % 4}),
                     node("y", "aten.slice.Tensor", {tensor("odd", {s % 4})}, {s})});
  });
  CHECK(unified.faults.starts_with("node 'odd' (custom.odd): outputs.0.shape.0 follows no size"));
}

TEST_CASE("unify: another model, and other constants, are faults") {
  const auto forked = unify({"S"}, [](const SizeBindings& at) {
    const std::int64_t s = at.find("S")->second;
    const char* op = s > 6 ? "aten.exp.default" : "aten.relu.default";
    return document({tensor("x", {s})}, {node("y", op, {tensor("x", {s})}, {s})});
  });
  CHECK(forked.faults ==
        "the model is another one at another size: 'y' (aten.relu.default) for S=5, 'y' "
        "(aten.exp.default) for S=7\n");
  const auto constants = [](const SizeBindings& at) {
    const std::int64_t s = at.find("S")->second;
    Json made = document({tensor("x", {s})}, Json::array());
    made["constants"] = {{"c", {{"data", {s}}, {"dtype", "int64"}}},
                         {"d", {{"data", {1}}, {"dtype", "int64"}}}};
    return made;
  };
  CHECK(unify({"S"}, constants).faults == "constant 'c' differs from size to size\n");
  std::set<std::string> varying;
  const Unified known = unify({"S"}, constants, 5, 1, &varying);
  CHECK(!known.model);
  CHECK(known.faults.empty());
  CHECK(varying == std::set<std::string>{"c"});
}
