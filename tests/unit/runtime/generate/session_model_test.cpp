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

  CompiledDecoder(const std::vector<std::string>& devices, const std::vector<std::int64_t>& sizes,
                  std::int64_t capacity = 64) {
    Diagnostics diagnostics;
    const Template decoder = test::decoder_template(capacity, diagnostics);
    CompileModelOptions options;
    options.where.devices = devices;
    options.cache.enabled = false;
    std::vector<SizeBindings> buckets;
    for (const std::int64_t size : sizes) buckets.push_back({{"T", size}});
    const CompileEntriesResult compiled =
        compile_entries(decoder, checked_buckets(decoder, buckets), options, diagnostics);
    INFO(test::text_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    bundle = Bundle::from_bytes(bundle_bytes(compiled.content), "decoder.npub");
    model = SessionModel::open(*bundle, {}, diagnostics);
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
      CompiledDecoder decoder(devices, {rows});
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
