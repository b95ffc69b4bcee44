// SPDX-License-Identifier: Apache-2.0
// The small decoder, compiled for steps of several sizes, against what NumPy computes
// (testdata/models/decoders/decoder.py).
#include "runtime/generate/session_model.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "runtime/generate/generate.hpp"
#include "runtime/generate/small_decoder.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

/// A decoder with steps of some sizes.
struct CompiledDecoder {
  std::shared_ptr<const Bundle> bundle;
  std::unique_ptr<SessionModel> model;
  std::vector<CompiledEntry> entries;

  CompiledDecoder(const std::vector<std::string>& devices, const std::vector<std::int64_t>& sizes,
                  SessionLogits logits = SessionLogits::kLastRow, std::int64_t capacity = 64) {
    Diagnostics diagnostics;
    const Template decoder = test::decoder_template(capacity, diagnostics);
    CompileModelOptions options;
    options.where.devices = devices;
    options.cache.enabled = false;
    std::vector<SizeBindings> buckets;
    for (const std::int64_t size : sizes) buckets.push_back({{"T", size}});
    CompileEntriesResult compiled =
        compile_entries(decoder, checked_buckets(decoder, buckets), options, diagnostics);
    INFO(test::text_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    bundle = Bundle::from_bytes(bundle_bytes(compiled.content), "decoder.npub");
    entries = std::move(compiled.entries);
    model = SessionModel::open(*bundle, {}, logits, diagnostics);
    REQUIRE(model != nullptr);
  }
};

TEST_CASE("the logits of a text are the same by chunks of any size", "[generate][decoder]") {
  if (!test::use_backends()) return;
  const std::vector<std::int64_t> text = test::decoder_ids("text");
  const Tensor expected = test::decoder_reference("logits");
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"cpu"}, std::vector<std::string>{"npu", "cpu"}}) {
    for (const std::int64_t rows : {64, 32, 8, 1}) {
      CAPTURE(devices.front(), rows);
      CompiledDecoder decoder(devices, {rows}, SessionLogits::kAllRows);
      CHECK(decoder.model->capacity() == 64);
      CHECK(decoder.model->vocabulary() == 96);
      const auto logits = test::logits_by(*decoder.model, 0, text, static_cast<std::size_t>(rows));
      CHECK(test::largest_difference(logits, expected) < 1e-4);
      // Behind clear() everything is as before, bit for bit.
      CHECK(test::logits_by(*decoder.model, 0, text, static_cast<std::size_t>(rows)) == logits);
      // Chunks that are padded, up to the end of the cache.
      if (rows == 8)
        CHECK(test::largest_difference(test::logits_by(*decoder.model, 0, text, 5), expected) <
              1e-4);
    }
  }
}

TEST_CASE("a step for the token loop gives the last row of all", "[generate][decoder]") {
  if (!test::use_backends()) return;
  const std::vector<std::int64_t> text = test::decoder_ids("text");
  const Tensor expected = test::decoder_reference("logits");
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"cpu"}, std::vector<std::string>{"npu", "cpu"}}) {
    CAPTURE(devices.front());
    CompiledDecoder decoder(devices, {1, 8});
    Diagnostics diagnostics;
    const auto all_rows =
        SessionModel::open(*decoder.bundle, {}, SessionLogits::kAllRows, diagnostics);
    REQUIRE(all_rows != nullptr);
    REQUIRE(decoder.model->entries().size() == 2);
    CHECK(decoder.model->entries()[0].gives_all_rows);
    CHECK_FALSE(decoder.model->entries()[1].gives_all_rows);
    // Whole steps and padded ones, the last of which ends at the last position.
    for (const std::size_t rows : {8, 5}) {
      decoder.model->clear();
      all_rows->clear();
      for (std::size_t i = 0; i < text.size(); i += rows) {
        const auto ids = std::span(text).subspan(i, std::min(rows, text.size() - i));
        const auto first = static_cast<std::int64_t>(i);
        const auto logits = decoder.model->step(1, ids, first);
        const auto all = all_rows->step(1, ids, first);
        REQUIRE(logits.size() == 96);
        REQUIRE(all.size() == ids.size() * 96);
        const float* exact = expected.as<float>() + (i + ids.size() - 1) * 96;
        float worst = 0;
        float worst_exact = 0;
        for (std::size_t id = 0; id < 96; ++id) {
          worst = std::max(worst, std::abs(logits[id] - all.last(96)[id]));
          worst_exact = std::max(worst_exact, std::abs(logits[id] - exact[id]));
        }
        CHECK(worst < 1e-5F);
        CHECK(worst_exact < 1e-4F);
      }
    }
    CHECK(decoder.model->state_copied_bytes() == 0);
  }
}

TEST_CASE("a step for the token loop computes one row of the head", "[generate][decoder]") {
  if (!test::use_backends()) return;
  CompiledDecoder decoder({"cpu"}, {1, 8});
  const auto flops = [&](std::size_t entry) {
    return compile_metrics(decoder.entries.at(entry).report).at("flops");
  };
  REQUIRE(decoder.entries.size() == 3);
  CHECK(decoder.entries[0].name == "T=1");
  CHECK(decoder.entries[1].name == "T=8");
  CHECK(decoder.entries[2].name == "T=8 last");
  // Of the last layer 7 of 8 rows are gone from the query, what is behind the attention, and the
  // head: 5 products of 64 by 64, and one of 64 by 96.
  const double row = 2.0 * (5 * 64 * 64 + 64 * 96);
  CHECK(flops(1) - flops(2) >= 7 * row);
  CHECK(flops(2) >= flops(0));
}

TEST_CASE("greedy ids are those of NumPy, whatever the entries", "[generate][decoder]") {
  if (!test::use_backends()) return;
  const std::vector<std::int64_t> expected = test::decoder_ids("greedy");
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{1}, std::vector<std::int64_t>{1, 4},
        std::vector<std::int64_t>{8}}) {
    CompiledDecoder decoder({"cpu"}, sizes);
    struct TakenIds : IdSink {
      bool id(std::int64_t id) override { return ids.push_back(id), true; }
      bool end_line() override { return true; }
      std::vector<std::int64_t> ids;
    } sink;
    bool is_first = true;
    const auto source = [&]() -> std::optional<TokenLine> {
      if (!is_first) return std::nullopt;
      is_first = false;
      return TokenLine{1, test::decoder_ids("prompt")};
    };
    const GenerateResult result =
        generate(*decoder.model, source, "prompt", {.count = 100}, sink, {});
    CHECK(sink.ids == expected);  // 7 + 57 = 64
    CHECK(result.requests.at(0).ended == Ended::kCapacity);
    CHECK(result.copied_bytes == 0);
  }
}

TEST_CASE("what is no decoder is refused", "[generate][decoder]") {
  if (!test::use_backends()) return;
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/small/mlp.json";
  Diagnostics diagnostics;
  Graph graph = read_graph(read_file(file), file, diagnostics);
  RunModelOptions options;
  options.where.devices = {"cpu"};
  options.cache.enabled = false;
  CHECK_THROWS_WITH(SessionModel::open(std::move(graph), options, diagnostics),
                    Catch::Contains("npu.generate"));
}

}  // namespace
}  // namespace npu
