// SPDX-License-Identifier: Apache-2.0
// A template, compiled for several sizes, runs at those of its inputs.
#include "runtime/entries/sized_request.hpp"

#include <algorithm>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/isa_level.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/support/error.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// y = relu(x + w) on rows of four, of which there are 2 to 32.
Template rows_of_four() {
  Json document = parse_json(R"({
    "model_name": "rows",
    "graph_inputs": [{"name": "x", "shape": ["S", 4], "dtype": "float32"}],
    "graph_outputs": [{"name": "y", "shape": ["S", 4], "dtype": "float32"}],
    "weights": [{"name": "w", "shape": [4], "dtype": "float32"}],
    "nodes": [
      {"name": "sum", "op_type": "aten.add.Tensor",
       "inputs": [{"name": "x", "shape": ["S", 4], "dtype": "float32"},
                  {"name": "w", "shape": [4], "dtype": "float32"}],
       "outputs": [{"name": "sum", "shape": ["S", 4], "dtype": "float32"}], "attrs": {"alpha": 1}},
      {"name": "y", "op_type": "aten.relu.default",
       "inputs": [{"name": "sum", "shape": ["S", 4], "dtype": "float32"}],
       "outputs": [{"name": "y", "shape": ["S", 4], "dtype": "float32"}], "attrs": {}}],
    "npu": {"version": 1, "symbols": {"S": {"min": 2, "max": 32}}}})",
                             "rows.json");
  Diagnostics diagnostics;
  Template model = Template::read(std::move(document), "rows.json", diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return model;
}

/// y = x w^T on rows of 64, beside the number of each row, which is folded for every size.
Template numbered_rows() {
  Json document = parse_json(R"({
    "model_name": "numbered",
    "graph_inputs": [{"name": "x", "shape": ["S", 64], "dtype": "float32"}],
    "graph_outputs": [{"name": "y", "shape": ["S", 64], "dtype": "float32"}],
    "weights": [{"name": "w", "shape": [64, 64], "dtype": "float32"}],
    "nodes": [
      {"name": "numbers", "op_type": "aten.arange.default", "inputs": [],
       "outputs": [{"name": "numbers", "shape": ["S"], "dtype": "float32"}],
       "attrs": {"end": "S", "dtype": "float32"}},
      {"name": "columns", "op_type": "aten.view.default",
       "inputs": [{"name": "numbers", "shape": ["S"], "dtype": "float32"}],
       "outputs": [{"name": "columns", "shape": ["S", 1], "dtype": "float32"}],
       "attrs": {"size": ["S", 1]}},
      {"name": "product", "op_type": "aten.linear.default",
       "inputs": [{"name": "x", "shape": ["S", 64], "dtype": "float32"},
                  {"name": "w", "shape": [64, 64], "dtype": "float32"}],
       "outputs": [{"name": "product", "shape": ["S", 64], "dtype": "float32"}], "attrs": {}},
      {"name": "y", "op_type": "aten.add.Tensor",
       "inputs": [{"name": "product", "shape": ["S", 64], "dtype": "float32"},
                  {"name": "columns", "shape": ["S", 1], "dtype": "float32"}],
       "outputs": [{"name": "y", "shape": ["S", 64], "dtype": "float32"}],
       "attrs": {"alpha": 1}}],
    "npu": {"version": 1, "symbols": {"S": {"min": 1, "max": 64}}}})",
                             "numbered.json");
  Diagnostics diagnostics;
  Template model = Template::read(std::move(document), "numbered.json", diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return model;
}

CompileEntriesResult compiled(const std::vector<std::int64_t>& sizes,
                              const Template& model = rows_of_four(),
                              const std::string& device = "cpu") {
  std::vector<SizeBindings> buckets;
  for (const std::int64_t size : sizes) buckets.push_back({{"S", size}});
  CompileModelOptions options;
  options.where.devices = {device};
  if (device != "cpu") options.where.devices.emplace_back("cpu");
  options.weights.random_seed = 3;
  options.cache.enabled = false;
  Diagnostics diagnostics;
  CompileEntriesResult result =
      compile_entries(model, checked_buckets(model, buckets), options, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return result;
}

/// The bundle, whose documents say that padding is proved if they do not yet.
std::shared_ptr<const Bundle> proved_bundle(CompileEntriesResult result) {
  for (BundleContent::Entry& entry : result.content.entries) {
    Json document = parse_json(entry.document, "document");
    Json& npu = *find_member(document, "npu");
    if (find_member(npu, "padding") == nullptr) npu["padding"] = Json::object();
    entry.document = document.dump();
  }
  return Bundle::from_bytes(bundle_bytes(result.content), "rows.npub");
}

RunReport run(const Bundle& bundle, const RunModelOptions& options) {
  Diagnostics diagnostics;
  RunReport report = run_bundle(bundle, options, diagnostics);
  for (const Diagnostic& entry : diagnostics.entries()) {
    if (entry.level == Level::kError) throw Error(ErrorCode::kInvalidGraph, entry.text);
  }
  return report;
}

}  // namespace

TEST_CASE("buckets: choices are checked and sorted", "[runtime][entries]") {
  const Template model = rows_of_four();
  const std::vector<SizeBindings> sorted{{{"S", 2}}, {{"S", 16}}};
  CHECK(checked_buckets(model, {sorted[1], sorted[0]}) == sorted);
  CHECK(bucket_name({{"S", 3}, {"B", 2}}) == "B=2,S=3");
  const std::vector<std::vector<SizeBindings>> bad{{},
                                                   {{}},
                                                   {{{"T", 2}}},
                                                   {{{"S", 2}, {"T", 2}}},
                                                   {{{"S", 1}}},
                                                   {{{"S", 33}}},
                                                   {{{"S", 4}}, {{"S", 4}}}};
  for (const auto& buckets : bad) {
    CAPTURE(buckets.size());
    CHECK_THROWS_AS(checked_buckets(model, buckets), Error);
  }
}

TEST_CASE("sizes: runs are padded, cut and compared at the sizes of their inputs",
          "[runtime][entries]") {
  if (!has_cpu()) return;
  const CompileEntriesResult result = compiled({16, 8});
  REQUIRE(result.entries.size() == 2);
  CHECK(result.entries[0].name == "S=8");
  CHECK(result.entries[0].predicted_us <= result.entries[1].predicted_us);
  CHECK(result.weights_copies == 1);
  CHECK(entries_metrics(result).at("entries") == 2);
  CHECK_THAT(format_entries_report(result), Catch::Contains("S=16") && Catch::Contains("total"));
  const auto bundle = proved_bundle(result);
  CHECK(bundle->weights().size() == 1);  // one for both

  const TemporaryFolder folder;
  for (const std::int64_t rows : {2, 5, 8, 9, 16}) {
    CAPTURE(rows);
    Tensor x(DType::kFloat32, {rows, 4});
    for (std::int64_t i = 0; i < x.element_count(); ++i) {
      x.as_mutable<float>()[i] = static_cast<float>(i % 7) - 3;
    }
    write_npy(folder / "x.npy", x);
    RunModelOptions options;
    options.inputs = {{.input = {}, .path = folder / "x.npy"}};
    options.outputs = folder / "y.npy";
    options.verify_device = "cpu";
    options.bench = 2;
    const RunReport report = run(*bundle, options);
    REQUIRE(report.entry);
    const std::int64_t capacity = rows <= 8 ? 8 : 16;
    CHECK(report.entry->name == "S=" + std::to_string(capacity));
    CHECK(report.entry->valid.at("S") == rows);
    CHECK(report.entry->padded_share ==
          Approx(1 - static_cast<double>(rows) / static_cast<double>(capacity)));
    REQUIRE(report.outputs.size() == 1);
    CHECK(report.outputs[0].shape == Shape{rows, 4});
    REQUIRE(report.verify);
    CHECK(report.verify->ok());
    const Tensor y = read_npy(folder / "y.npy");
    REQUIRE(y.shape() == Shape{rows, 4});
    const Tensor w = bundle->weight(bundle->weights()[0]);
    for (std::int64_t i = 0; i < y.element_count(); ++i) {
      CHECK(y.as<float>()[i] == std::max(0.0F, x.as<float>()[i] + w.as<float>()[i % 4]));
    }
    CHECK(run_metrics(report).at("padded_share") ==
          Approx(report.entry->padded_share).margin(1e-6));
  }
}

TEST_CASE("sizes: entries on a device that packs weights share one copy", "[runtime][entries]") {
  if (!has_cpu()) return;
  const CompileEntriesResult result = compiled({4, 8, 33}, numbered_rows(), "npu");
  // Entries of few and of many rows read one order, where there are kernels of our own.
  const bool has_kernels = cpu_has(CpuFeature::kAvx2) || cpu_has(CpuFeature::kNeon);
  CHECK(result.weights_copies <= (has_kernels ? 1.05 : 2));
  const std::byte* blob = result.content.entries.front().partitions.front().blob.get();
  for (const BundleContent::Entry& entry : result.content.entries) {
    REQUIRE(entry.partitions.size() == 1);
    CHECK(entry.partitions.front().blob.get() == blob);
    CHECK(entry.partitions.front().entry.program == entry.name + " 0");
    CHECK(entry.partitions.front().entry.report->at("kernels") >= 1);
  }
  const Json& packed = *result.content.entries.front().partitions.front().entry.report;
  CHECK(packed.at("memory").at("weights_bytes") < 3 * 64 * 64 * 4);
  const auto bundle = proved_bundle(result);
  for (const std::int64_t rows : {3, 4, 8, 20, 33}) {
    CAPTURE(rows);
    RunModelOptions options;
    options.random_inputs = 5;
    options.sizes = {{"S", rows}};
    options.verify_device = "cpu";
    options.weights.random_seed = 3;
    const RunReport report = run(*bundle, options);
    CHECK(report.outputs[0].shape == Shape{rows, 64});
    REQUIRE(report.verify);
    CHECK(report.verify->ok());
  }
}

TEST_CASE("sizes: random inputs have the entry's, or those that are asked for",
          "[runtime][entries]") {
  if (!has_cpu()) return;
  const auto bundle = proved_bundle(compiled({8, 16}));
  RunModelOptions options;
  options.random_inputs = 1;
  CHECK(run(*bundle, options).entry->valid.at("S") == 8);
  options.sizes = {{"S", 11}};
  const RunReport report = run(*bundle, options);
  CHECK(report.entry->name == "S=16");
  CHECK(report.outputs[0].shape == Shape{11, 4});
  options.sizes = {{"S", 17}};
  CHECK_THROWS_WITH(run(*bundle, options),
                    Catch::Contains("--bind S=17; the largest bucket is 16: compile with "
                                    "--buckets S=8,16,17"));
}

TEST_CASE("sizes: what is not proved is not padded", "[runtime][entries]") {
  if (!has_cpu()) return;
  CompileEntriesResult result = compiled({8});
  for (BundleContent::Entry& entry : result.content.entries) {
    Json document = parse_json(entry.document, "document");
    find_member(document, "npu")->erase("padding");
    entry.document = document.dump();
  }
  const auto bundle = Bundle::from_bytes(bundle_bytes(result.content), "rows.npub");
  RunModelOptions options;
  options.random_inputs = 1;
  CHECK(run(*bundle, options).entry->padded_share == 0);
  options.sizes = {{"S", 5}};
  CHECK_THROWS_WITH(run(*bundle, options), Catch::Contains("is not proved for padding"));
}

TEST_CASE("sizes: inputs without data, or of another rank", "[runtime][entries]") {
  if (!has_cpu()) return;
  const auto bundle = proved_bundle(compiled({8}));
  CHECK_THROWS_WITH(run(*bundle, {}), Catch::Contains("input 'x' has no data"));
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", Tensor(DType::kFloat32, {5}));
  RunModelOptions options;
  options.inputs = {{.input = {}, .path = folder / "x.npy"}};
  CHECK_THROWS_WITH(run(*bundle, options), Catch::Contains("input 'x' is float32 [5]"));
}
