// SPDX-License-Identifier: Apache-2.0
// Plans that run: padding never counts, a failing device is replaced, reductions are right.
#include "gnn/run_plan.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "catch.hpp"
#include "device/isa_level.hpp"
#include "gnn/make_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "rows/segment_reduce.hpp"
#include "support/temporary_folder.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

std::string write_plan(const test::TemporaryFolder& folder, const std::string& model,
                       std::int32_t k) {
  MakePlanOptions options;
  options.graph = kFolder + "graph.mtx";
  options.model = kFolder + model + ".json";
  options.profile = kFolder + "profile.json";
  options.part_counts = {k};
  options.pad = 16;
  options.output = folder / "plan.json";
  Diagnostics diagnostics;
  write_file_atomically(options.output,
                        write_document(to_json(make_plan(options, diagnostics).plan)));
  return options.output;
}

RunPlanOptions run_options(const std::string& plan, const std::string& model) {
  RunPlanOptions options;
  options.plan = plan;
  options.features = kFolder + "x.npy";
  options.expect = kFolder + model + ".expected.npy";
  options.devices = {{"gpu", "aten"}};
  options.cache.enabled = false;  // nothing of other runs
  return options;
}

}  // namespace

TEST_CASE("segment reduction against a plain loop", "[runtime][gnn]") {
  const std::vector<std::int64_t> offsets{0, 0, 3, 4, 4, 7};
  const std::vector<std::int32_t> sources{1, 0, 1, 2, 2, 2, 0};
  const std::int64_t heads = 2;
  const std::int64_t width = 3;
  std::vector<float> x(18);
  std::vector<float> weights(14);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 7;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5F * static_cast<float>(i);
  for (const bool weighted : {false, true}) {
    for (const bool mean : {false, true}) {
      std::vector<float> out(30, -1);
      SegmentReduce reduce;
      reduce.offsets = offsets.data();
      reduce.sources = sources.data();
      reduce.x = {x.data()};
      reduce.weights = weighted ? weights.data() : nullptr;
      reduce.out = out.data();
      reduce.rows = 5;
      reduce.heads = heads;
      reduce.width = width;
      reduce.aggregate = mean ? Aggregate::kMean : Aggregate::kSum;
      segment_reduce(reduce, 2);
      for (std::int64_t v = 0; v < 5; ++v) {
        for (std::int64_t i = 0; i < 6; ++i) {
          float sum = 0;
          for (std::int64_t e = offsets[static_cast<std::size_t>(v)];
               e < offsets[static_cast<std::size_t>(v) + 1]; ++e) {
            const float w = weighted ? weights[static_cast<std::size_t>(e * 2 + i / 3)] : 1;
            sum += w * x[static_cast<std::size_t>(sources[static_cast<std::size_t>(e)] * 6 + i)];
          }
          const auto degree = static_cast<float>(offsets[static_cast<std::size_t>(v) + 1] -
                                                 offsets[static_cast<std::size_t>(v)]);
          if (mean && degree > 1) sum /= degree;
          CHECK(out[static_cast<std::size_t>(v * 6 + i)] == sum);
        }
      }
    }
  }
}

TEST_CASE("the number of threads does not change a sum", "[runtime][gnn]") {
  const std::int64_t rows = 3000;
  const std::int64_t width = 64;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> sources;
  for (std::int64_t v = 0; v < rows; ++v) {
    for (std::int64_t e = 0; e < (v % 37 == 0 ? 200 : v % 5); ++e) {
      sources.push_back(static_cast<std::int32_t>((v * 31 + e * 17) % rows));
    }
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  std::vector<float> x(static_cast<std::size_t>(rows * width));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  std::vector<float> one(x.size());
  std::vector<float> four(x.size());
  SegmentReduce reduce;
  reduce.offsets = offsets.data();
  reduce.sources = sources.data();
  reduce.x = {x.data()};
  reduce.rows = rows;
  reduce.width = width;
  reduce.out = one.data();
  segment_reduce(reduce, 1);
  reduce.out = four.data();
  segment_reduce(reduce, 4);
  CHECK(one == four);
}

TEST_CASE("rows that are no nodes never count", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  const test::TemporaryFolder folder;
  int static_programs = 0;
  for (const std::string model : {"graphsage", "gcn", "gat"}) {
    for (const std::int32_t k : {1, 5}) {
      RunPlanOptions options = run_options(write_plan(folder, model, k), model);
      options.padding = std::numeric_limits<float>::quiet_NaN();
      Diagnostics diagnostics;
      const RunPlanResult result = run_plan(options, diagnostics);
      CAPTURE(model, k);
      CHECK(result.within);
      static_programs += result.report.static_compiles;
    }
  }
  CHECK(static_programs > 0);
}

TEST_CASE("a CPU without vectors refuses features of bfloat16", "[runtime][gnn]") {
  if (!test::use_backends() || isa_level() > find_isa_level("generic")) return;
  const test::TemporaryFolder folder;
  RunPlanOptions options = run_options(write_plan(folder, "gcn", 5), "gcn");
  options.precision = "bf16";
  Diagnostics diagnostics;
  CHECK_THROWS_WITH(run_plan(options, diagnostics),
                    Catch::Contains("precision bf16 needs a CPU with AVX2, AVX-512 or NEON"));
}

TEST_CASE("features of bfloat16 lie within their tolerance", "[runtime][gnn]") {
  if (!test::use_backends() || isa_level() == find_isa_level("generic")) return;
  const test::TemporaryFolder folder;
  for (const std::string model : {"graphsage", "gcn", "gat"}) {
    for (const std::int32_t k : {1, 5}) {
      CAPTURE(model, k);
      RunPlanOptions options = run_options(write_plan(folder, model, k), model);
      Diagnostics diagnostics;
      const RunPlanResult wide = run_plan(options, diagnostics);
      CHECK(diagnostics.entries().empty());
      options.precision = "bf16";
      const RunPlanResult narrow = run_plan(options, diagnostics);
      CHECK(narrow.within);
      CHECK(diagnostics.entries().size() == 1);  // the plan's times are of float32
      options.threads = 1;
      const RunPlanResult alone = run_plan(options, diagnostics);
      const auto same = [](const Tensor& a, const Tensor& b) {
        return std::memcmp(a.data(), b.data(), a.bytes()) == 0;
      };
      CHECK(same(narrow.output, alone.output));
      CHECK_FALSE(same(narrow.output, wide.output));
    }
  }
}

TEST_CASE("a report has the keys of npu-run(1), and numbers to assert", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  const test::TemporaryFolder folder;
  RunPlanOptions options = run_options(write_plan(folder, "gcn", 5), "gcn");
  options.bench = 2;
  Diagnostics diagnostics;
  const gnn::RunPlanReport report = run_plan(options, diagnostics).report;
  const Json json = to_json(report);
  for (const char* key : {"outputs", "steps", "busy_ms", "k", "predicted_ms", "first_ms",
                          "measured_ms", "load_ms", "compile_ms", "static_compiles", "cache_hits",
                          "fused_reductions", "reexecuted", "bench", "comparison"}) {
    CAPTURE(key);
    CHECK(json.contains(key));
  }
  CHECK(json.at("steps").size() == report.steps.size());
  CHECK(json.at("comparison").at("ok") == true);
  const auto metrics = run_metrics(report);
  CHECK(metrics.at("k") == 5);
  CHECK(metrics.at("median_ms") == report.measured_ms);
  CHECK(metrics.at("runs") == 2);
  options.simulate = true;
  const Json simulated = to_json(run_plan(options, diagnostics).report);
  CHECK(simulated.size() == 4);
  CHECK(simulated.at("simulated") == true);
  CHECK(simulated.at("predicted_ms").get<double>() == report.predicted_ms);
}

TEST_CASE("a plan runs on the backends that its table was measured on", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  const test::TemporaryFolder folder;
  const std::string file = write_plan(folder, "gcn", 5);
  RunPlanOptions options = run_options(file, "gcn");
  options.devices.clear();
  Diagnostics diagnostics;
  const auto message = [&] {
    try {
      run_plan(options, diagnostics);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(message() ==
        "neither the plan nor target 'host' names a backend for device 'gpu': give --device "
        "gpu=BACKEND, such as gpu=aten");
  GnnPlan plan = read_plan(file);
  for (PlanDevice& device : plan.devices) {
    device.backend = device.name == "npu" ? "onednn" : "aten";
  }
  write_file_atomically(file, write_document(to_json(plan)));
  CHECK(message().empty());
  CHECK(diagnostics.entries().empty());
  // Another backend is taken, and told.
  options.devices = {{"npu", "aten"}};
  CHECK(message().empty());
  REQUIRE(diagnostics.entries().size() == 1);
  CHECK(diagnostics.entries()[0].text ==
        "device 'npu' runs on aten; the plan goes by times of onednn");
}

TEST_CASE("a report says which runs its times are of", "[runtime][gnn]") {
  gnn::RunPlanReport report;
  report.first_ms = 50;
  report.measured_ms = 50;
  report.predicted_ms = 9;
  CHECK(to_json(report).at("measured_of") == "the first run");
  CHECK(format_run_times(report) ==
        "first run 50.000 ms: it also makes memory, threads and caches warm\n"
        "measured_ms 50.000 is the first run; --bench N measures further ones\n"
        "predicted 9.000 ms, for runs when warm\n\n");
  report.measured_ms = 10;
  report.bench = {20, 10, 9, 12};
  CHECK(to_json(report).at("measured_of") == "the median of 20 further runs");
  report.simulated_ms = 9;
  CHECK(format_run_times(report).empty());
}
