// SPDX-License-Identifier: Apache-2.0
// The entry that a run takes: by the shapes of its inputs, the least predicted time, and what is
// said if there is none.
#include "runtime/entries/choose_entry.hpp"

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

/// Inputs of [B, S], [B, 2 * S + 1] and [T].
Template sized() {
  Json document = parse_json(R"({
    "graph_inputs": [{"name": "ids", "shape": ["B", "S"], "dtype": "float32"},
                     {"name": "wide", "shape": ["B", "2*S + 1"], "dtype": "float32"},
                     {"name": "mask", "shape": [1, "S"], "dtype": "float32"}],
    "graph_outputs": [], "weights": [], "nodes": [],
    "npu": {"version": 1, "symbols": {"B": {"max": 8}, "S": {"min": 2, "max": 1000}}}})",
                             "sized.json");
  Diagnostics diagnostics;
  Template model = Template::read(std::move(document), "sized.json", diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return model;
}

BundleEntry entry(std::int64_t b, std::int64_t s, double us) {
  BundleEntry made;
  made.name = "B=" + std::to_string(b) + ",S=" + std::to_string(s);
  made.bound = {{"B", b}, {"S", s}};
  made.predicted_us = us;
  return made;
}

std::vector<BundleEntry> ladder() {
  return {entry(1, 32, 10), entry(1, 64, 25), entry(4, 32, 20), entry(1, 512, 300)};
}

AskedSizes sizes(const std::vector<std::pair<std::string, Shape>>& shapes,
                 const SizeBindings& bound = {}) {
  return asked_sizes(sized(), shapes, bound);
}

std::string error_of(const std::function<void()>& body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    CHECK((error.code() == code));
    return error.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("entries: those of a token loop are for nobody else", "[runtime][entries]") {
  const Template model = sized();
  std::vector<BundleEntry> entries = ladder();
  entries[0].has_last_row = true;
  CHECK(choose_entry(entries, model, sizes({{"ids", {1, 20}}})).index == 2);
  for (BundleEntry& entry : entries) entry.has_last_row = true;
  CHECK_THAT(error_of(
                 [&] {
                   choose_entry(entries, model, sizes({{"ids", {1, 20}}}));
                 },
                 ErrorCode::kUnsupported),
             Catch::Contains("the last token alone"));
}

TEST_CASE("entries: sizes come from the shapes of inputs", "[runtime][entries]") {
  AskedSizes asked = sizes({{"ids", {2, 40}}});
  CHECK(asked.at("B").value == 2);
  CHECK(asked.at("S").value == 40);
  asked = sizes({{"wide", {3, 81}}});  // 2 * 40 + 1
  CHECK(asked.at("S").value == 40);
  CHECK(sizes({{"wide", {3, 80}}}).count("S") == 0);  // of no S: told where it is read
  CHECK(sizes({{"ids", {40}}, {"other", {1}}}).empty());
  CHECK(sizes({}, {{"S", 7}}).at("S").value == 7);
}

TEST_CASE("entries: inputs that disagree are named", "[runtime][entries]") {
  CHECK(error_of(
            [] {
              sizes({{"ids", {1, 40}}, {"mask", {1, 41}}});
            },
            ErrorCode::kInvalidGraph) == "inputs 'ids' and 'mask' disagree about S: 40 and 41");
  CHECK(error_of(
            [] {
              sizes({{"ids", {1, 40}}}, {{"S", 41}});
            },
            ErrorCode::kInvalidGraph) == "--bind S=41, but input 'ids' has 40");
  CHECK(error_of(
            [] {
              sizes({}, {{"T", 41}});
            },
            ErrorCode::kUsage) == "--bind T=41: sized.json has no size 'T'; it has B, S");
}

TEST_CASE("entries: the one with the least time that fits is taken", "[runtime][entries]") {
  const auto chosen = [](const AskedSizes& asked) {
    return choose_entry(ladder(), sized(), asked);
  };
  CHECK(chosen(sizes({{"ids", {1, 32}}})).index == 0);
  CHECK(chosen(sizes({{"ids", {1, 33}}})).index == 1);
  CHECK(chosen(sizes({{"ids", {2, 9}}})).index == 2);
  CHECK(chosen(sizes({{"mask", {1, 65}}})).index == 3);
  // What nothing says is what the entry has.
  CHECK(chosen({}).index == 0);
  CHECK(chosen({}).valid == SizeBindings{{"B", 1}, {"S", 32}});
  CHECK(chosen(sizes({{"ids", {2, 9}}})).valid == SizeBindings{{"B", 2}, {"S", 9}});
  // Of equal times the smaller.
  std::vector<BundleEntry> equal{entry(1, 64, 5), entry(1, 32, 5)};
  CHECK(choose_entry(equal, sized(), {}).index == 1);
}

TEST_CASE("entries: beyond the largest, or outside of the range", "[runtime][entries]") {
  const auto refusal = [](const AskedSizes& asked) {
    return error_of([&] { choose_entry(ladder(), sized(), asked); }, ErrorCode::kInfeasible);
  };
  CHECK(refusal(sizes({{"ids", {1, 700}}})) ==
        "input 'ids' has 700 rows along S; the largest bucket is 512: compile with --buckets "
        "S=32,64,512,700");
  CHECK(refusal(sizes({{"ids", {4, 64}}})) ==
        "no bucket has room for all of B=4,S=64: compile with --bucket B=4,S=64");
  CHECK_THAT(refusal(sizes({{"ids", {1, 1}}})),
             Catch::Contains("input 'ids' has 1 rows along S") && Catch::Contains("2..1000"));
}

TEST_CASE("entries: a bundle whose entries are not those of its template", "[runtime][entries]") {
  std::vector<BundleEntry> other = ladder();
  other.back().bound.erase("B");
  CHECK_THAT(error_of([&] { choose_entry(other, sized(), {}); }, ErrorCode::kParse),
             Catch::Contains("entry 'B=1,S=512'"));
  other = ladder();
  other.front().bound["S"] = 1;
  CHECK_THAT(error_of([&] { choose_entry(other, sized(), {}); }, ErrorCode::kParse),
             Catch::Contains("entry 'B=1,S=32'"));
}

TEST_CASE("entries: the share of padding", "[runtime][entries]") {
  CHECK(padded_share({{1, 40}}, {{1, 64}}) == Approx(1 - 40.0 / 64));
  CHECK(padded_share({{2, 3}, {5}}, {{2, 3}, {5}}) == 0);
  CHECK(padded_share({}, {}) == 0);
}
