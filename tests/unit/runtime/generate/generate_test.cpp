// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/generate.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "runtime/generate/counting_model.hpp"
#include "runtime/generate/generate_report.hpp"

namespace npu {
namespace {

using Ids = std::vector<std::int64_t>;

class Collected : public IdSink {
 public:
  bool id(std::int64_t id) override {
    if (lines.empty() || is_ended) lines.emplace_back();
    is_ended = false;
    lines.back().push_back(id);
    return ++taken != most;
  }
  bool end_line() override {
    if (is_ended) lines.emplace_back();
    is_ended = true;
    return true;
  }
  std::vector<Ids> lines;
  bool is_ended = true;
  int taken = 0;
  int most = -1;  ///< ids after which nobody reads
};

RequestSource source_of_lines(std::vector<Ids> lines) {
  return [lines, next = std::size_t{0}]() mutable -> std::optional<TokenLine> {
    if (next == lines.size()) return std::nullopt;
    TokenLine line;
    line.ids = lines[next++];
    line.number = static_cast<std::int64_t>(next);
    return line;
  };
}

GenerateResult run_loop(StepModel& model, const std::vector<Ids>& lines,
                        const GenerateOptions& options, Collected& sink) {
  return generate(model, source_of_lines(lines), "t.ids", options, sink, {});
}

std::vector<StepEntry> ladder_entries() {
  return {{"T=1", 1, 101}, {"T=8", 8, 108}, {"T=32", 32, 132, false}};
}

std::string loop_fault(StepModel& model, const std::vector<Ids>& lines, ErrorCode code) {
  Collected sink;
  try {
    run_loop(model, lines, {.count = 4}, sink);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no fault";
}

TEST_CASE("ids follow the prompt, whatever the entries", "[generate]") {
  const Ids prompt{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  for (const auto& entries :
       {ladder_entries(), std::vector<StepEntry>{{"T=1", 1}}, std::vector<StepEntry>{{"T=8", 8, 1}},
        std::vector<StepEntry>{{"T=5", 5, 1, false}, {"T=1", 1, 1}}}) {
    CountingModel model(entries, 64);
    Collected sink;
    const GenerateResult result = run_loop(model, {prompt}, {.count = 20, .keep_ids = true}, sink);
    REQUIRE(sink.lines.size() == 1);
    CHECK(sink.lines[0] == model.expected(prompt, 20));
    CHECK(model.is_in_order);
    REQUIRE(result.requests.size() == 1);
    CHECK(result.requests[0].ids == sink.lines[0]);
    CHECK(result.requests[0].prompt == 11);
    CHECK(result.requests[0].new_ids == 20);
    CHECK(result.requests[0].ended == Ended::kCount);
    CHECK(result.step_ms.size() == 19);  // the first id comes from the prefill
    CHECK(result.position == 30);        // the last id has not been read
    // Behind each step of one token: positions 12 to 30, whose sum is 19 x 21.
    CHECK(result.position_sum == 399);
  }
}

TEST_CASE("requests are independent of each other", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  Collected sink;
  const auto result = run_loop(model, {{1, 2, 3}, {4}, {1, 2, 3}}, {.count = 5}, sink);
  REQUIRE(sink.lines.size() == 3);
  CHECK(sink.lines[0] == model.expected({1, 2, 3}, 5));
  CHECK(sink.lines[1] == model.expected({4}, 5));
  CHECK(sink.lines[2] == sink.lines[0]);
  CHECK(model.clears == 2);
  CHECK(result.requests[0].ids.empty());
  CHECK(result.requests[1].entries == std::map<std::int64_t, std::int64_t>{{1, 1}});
}

TEST_CASE("--keep goes on behind what was read and written", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  Collected sink;
  run_loop(model, {{1, 2, 3}, {7, 8}}, {.count = 4, .keep = true}, sink);
  REQUIRE(sink.lines.size() == 2);
  CHECK(sink.lines[0] == model.expected({1, 2, 3}, 4));
  Ids text{1, 2, 3};
  text.insert(text.end(), sink.lines[0].begin(), sink.lines[0].end());
  text.insert(text.end(), {7, 8});
  CHECK(sink.lines[1] == model.expected(text, 4));
  CHECK(model.clears == 0);
  CHECK(model.is_in_order);
}

/// A model with an encoder, whose source counts as ids that stand in front.
class EncodingModel : public CountingModel {
 public:
  using CountingModel::CountingModel;
  const SourceInput* source() const override { return &input_; }
  void check_source(const Tensor& source) const override {
    if (source.shape()[1] > 4) throw Error(ErrorCode::kInfeasible, "the source is too long");
  }
  std::string encode(const Tensor& source) override {
    encoded.emplace_back(source.as<std::int64_t>(),
                         source.as<std::int64_t>() + source.element_count());
    return "encode:S=4";
  }
  std::vector<Ids> encoded;

 private:
  SourceInput input_{.name = "ids", .dtype = DType::kInt64, .shape = {1, 4}, .vocabulary = 96};
};

RequestSource source_of_requests(std::vector<Request> requests) {
  return [requests, next = std::size_t{0}]() mutable -> std::optional<Request> {
    if (next == requests.size()) return std::nullopt;
    return requests[next++];
  };
}

Request request_of(std::int64_t number, const Ids& ids, const Ids& source) {
  Tensor tensor(DType::kInt64, {1, static_cast<std::int64_t>(source.size())});
  std::copy(source.begin(), source.end(), tensor.as_mutable<std::int64_t>());
  return {{.number = number, .ids = ids}, tensor};
}

TEST_CASE("the source of each request goes through the encoder once", "[generate]") {
  EncodingModel model(ladder_entries(), 64);
  Collected sink;
  const auto result =
      generate(model, source_of_requests({request_of(1, {1}, {7, 8}), request_of(2, {1, 2}, {9})}),
               "t.ids", {.count = 3}, sink, {});
  CHECK(model.encoded == std::vector<Ids>{{7, 8}, {9}});
  CHECK(sink.lines == std::vector<Ids>{model.expected({1}, 3), model.expected({1, 2}, 3)});
  CHECK(model.clears == 1);
  CHECK(result.requests[1].encode_entry == "encode:S=4");
  CHECK(generate_report_json(result, {})["generate"]["requests"][0]["encode"] == "encode:S=4");
  CHECK(generate_metrics(generate_report_json(result, {})).contains("encode_ms"));
}

TEST_CASE("a request without a source that the encoder needs is refused", "[generate]") {
  EncodingModel model(ladder_entries(), 64);
  CHECK_THAT(loop_fault(model, {{1, 2}}, ErrorCode::kUsage), Catch::Contains("t.ids:1") &&
                                                                 Catch::Contains("has no source") &&
                                                                 Catch::Contains("--source FILE"));
  Collected sink;
  try {
    generate(model, source_of_requests({request_of(3, {1}, {1, 2, 3, 4, 5})}), "t.ids",
             {.count = 1}, sink, {});
    FAIL_CHECK("no fault");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInfeasible);
    CHECK(error.location().line == 3);
  }
  CHECK(model.calls.empty());
  CHECK(model.encoded.empty());
  // In restored states there is one for the first request.
  generate(model, source_of_requests({Request({.number = 1, .ids = {4}})}), "t.ids",
           {.count = 1, .is_restored = true}, sink, {});
  CHECK(model.calls.size() == 1);
}

TEST_CASE("a stop id ends a line as its last id", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  const Ids ids = model.expected({5, 6}, 10);
  Collected sink;
  const auto result = run_loop(model, {{5, 6}}, {.count = 10, .stop = {95, ids[3]}}, sink);
  const auto end = std::find(ids.begin(), ids.end(), ids[3]) + 1;
  CHECK(sink.lines.at(0) == Ids(ids.begin(), end));
  CHECK(result.requests.at(0).ended == Ended::kStop);
}

TEST_CASE("the capacity ends a line", "[generate]") {
  CountingModel model(ladder_entries(), 16);
  Collected sink;
  const auto result = run_loop(model, {{1, 2, 3}, Ids(16, 4), Ids(15, 4)}, {.count = 100}, sink);
  CHECK(sink.lines.at(0) == model.expected({1, 2, 3}, 13));  // 3 + 13 = 16
  CHECK(result.requests.at(0).ended == Ended::kCapacity);
  CHECK(sink.lines.at(1).empty());
  CHECK(result.requests.at(1).ended == Ended::kCapacity);
  CHECK(sink.lines.at(2) == model.expected(Ids(15, 4), 1));
  CHECK(model.is_in_order);
}

TEST_CASE("a count that fills the cache is a count", "[generate]") {
  CountingModel model(ladder_entries(), 16);
  Collected sink;
  const auto result = run_loop(model, {{1, 2, 3}}, {.count = 13}, sink);
  CHECK(result.requests.at(0).ended == Ended::kCount);
}

TEST_CASE("a prompt that does not fit is refused before anything is computed", "[generate]") {
  CountingModel model(ladder_entries(), 16);
  CHECK(loop_fault(model, {Ids(17, 1)}, ErrorCode::kInfeasible) ==
        "t.ids:1: error: the prompt has 17 ids, more than the model's capacity of 16");
  CHECK(model.calls.empty());
  Collected sink;
  CHECK_THROWS_WITH(run_loop(model, {Ids(10, 1), {2, 2, 2}}, {.count = 4, .keep = true}, sink),
                    "t.ids:2: error: the prompt has 3 ids, more than the model's capacity of 16, "
                    "of which 14 are taken");
  CHECK(sink.lines.size() == 1);
}

TEST_CASE("a NaN is an error with step and entry", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  model.nan_at = 2;
  CHECK(loop_fault(model, {{1, 2, 3}}, ErrorCode::kFailed) ==
        "t.ids: error: request 1, step 0 (entry 'T=8'): the logit of id 5 is NaN");
  CountingModel later(ladder_entries(), 64);
  later.nan_at = 4;
  CHECK(loop_fault(later, {{1, 2, 3}}, ErrorCode::kFailed) ==
        "t.ids: error: request 1, step 2 (entry 'T=1'): the logit of id 5 is NaN");
}

TEST_CASE("the loop ends when nobody reads", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  Collected sink;
  sink.most = 3;
  const auto result = run_loop(model, {{1}, {2}}, {.count = 10}, sink);
  CHECK(result.is_cut_short);
  CHECK(sink.lines.size() == 1);
  CHECK(sink.lines[0].size() == 3);
}

TEST_CASE("restored states go on at their position", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  const Ids ids = model.expected({1, 2, 3}, 8);
  Collected first;
  const auto result = run_loop(model, {{1, 2, 3}}, {.count = 4}, first);
  Collected second;
  // The last id has not been read.
  run_loop(model, {{first.lines[0].back()}}, {.count = 4, .position = result.position}, second);
  CHECK(second.lines[0] == Ids(ids.begin() + 4, ids.end()));
}

TEST_CASE("sampled ids depend on the seed, the request and the step", "[generate]") {
  const auto lines_of_seed = [](std::uint64_t seed) {
    CountingModel model(ladder_entries(), 64);
    Collected sink;
    run_loop(model, {{1, 2}, {1, 2}}, {.count = 12, .sampler = {.temperature = 400, .seed = seed}},
             sink);
    return sink.lines;
  };
  const auto lines = lines_of_seed(3);
  CHECK(lines.at(0) != lines.at(1));
  CHECK(lines_of_seed(3) == lines);
  CHECK(lines_of_seed(4) != lines);
}

TEST_CASE("every number of the report is a metric", "[generate]") {
  CountingModel model(ladder_entries(), 64);
  Collected sink;
  const auto result = run_loop(model, {{1, 2}, {3}}, {.count = 3}, sink);
  StepModelFacts facts{.model = "m", .target = "host", .precision = "f32"};
  facts.load_ms = 1.5;
  facts.weight_bytes = 1000;
  facts.row_bytes = 10;
  facts.fixed_bytes = 7;
  facts.memory_bandwidth = 1e9;
  facts.states = {{"k0", "npu", "in_place", 640}};
  const Json report = generate_report_json(result, facts);
  const Json& section = report["generate"];
  CHECK(section["requests"][0]["prompt"] == 2);
  CHECK(section["requests"][0]["entries"] == Json{{"8", 1}});
  CHECK(section["new_ids"] == 6);
  // Positions 3, 4 and 2, 3: their mean is 3.
  CHECK(section["bytes_per_token"] == Json{{"weights", 1000}, {"cache", 37}});
  CHECK(report["states"][0]["path"] == "in_place");
  const auto metrics = generate_metrics(report);
  for (const char* key : {"requests",
                          "prompt_ids",
                          "new_ids",
                          "prefill_tokens_per_second",
                          "decode_tokens_per_second",
                          "step_ms.median",
                          "step_ms.p90",
                          "step_ms.p99",
                          "bytes_per_token",
                          "bytes_per_token.weights",
                          "bytes_per_token.cache",
                          "bandwidth_share",
                          "state_bytes",
                          "state_copied_bytes",
                          "state_transfer_bytes",
                          "sampler_ms",
                          "load_ms",
                          "peak_rss_bytes",
                          "first_token_ms",
                          "prefill_ms"}) {
    INFO(key);
    CHECK(metrics.contains(key));
  }
  CHECK(metrics.at("bytes_per_token") == 1037);
  CHECK(metrics.at("state_bytes") == 640);
  CHECK(format_generate_report(report).find("in_place") != std::string::npos);
}

}  // namespace
}  // namespace npu
