// SPDX-License-Identifier: Apache-2.0
// The report of a run: its JSON to the byte, its tables, its metrics.
#include "npu/runtime/run_report.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "device/cpu_family.hpp"

using namespace npu;

namespace {

RunReport small_report() {
  RunReport report;
  report.model = "m";
  report.target = "host";
  report.precision = "f32";
  report.outputs.push_back({.name = "y", .shape = {2, 3}, .dtype = DType::kFloat32});
  report.placement.push_back(
      {.device = "npu", .backend = "onednn", .nodes = 4, .partitions = 1, .ms = 1.25});
  RunStep input{.kind = StepRecord::Kind::kInput, .device = "npu"};
  input.tensors = 1;
  input.bytes = 24;
  input.path = "wrapped";
  RunStep partition{.kind = StepRecord::Kind::kPartition, .id = 0, .device = "npu"};
  partition.nodes = 4;
  partition.ms = 1.23456;
  partition.predicted_ms = 0.5;
  RunStep transfer{.kind = StepRecord::Kind::kTransfer, .id = 2, .device = "cpu"};
  transfer.from = 0;
  transfer.to = 1;
  transfer.tensors = 2;
  transfer.listed_tensors = 3;
  transfer.bytes = 4000;
  transfer.copied_bytes = 4000;
  transfer.path = "copied";
  RunStep idle = transfer;  // everything was there already
  idle.tensors = 0;
  idle.bytes = 0;
  idle.copied_bytes = 0;
  idle.path.clear();
  report.steps = {input, partition, transfer, idle};
  report.weight_tensors = 5;
  report.weight_bytes = 600;
  report.measured_ms = 2;
  report.first_ms = 3.00004;
  report.load_ms = 4;
  report.predicted_ms = 0.75;
  report.backends = {{"onednn", "1.2"}};
  return report;
}

ComparisonReport comparison_of(Comparison comparison) {
  ComparisonReport report;
  report.outputs.push_back({.name = "y", .comparison = std::move(comparison), .tolerance = {}});
  return report;
}

}  // namespace

TEST_CASE("run report: JSON of a plain run") {
  const Json json = run_report_json(small_report());
  CHECK(
      json.dump() ==
      R"({"model":"m","target":"host","precision":"f32",)"
      R"("outputs":[{"name":"y","shape":[2,3],"dtype":"float32"}],)"
      R"("placement":[{"device":"npu","backend":"onednn","nodes":4,"partitions":1,"ms":1.25}],)"
      R"("left_device":0,"steps":[{"kind":"inputs","device":"npu","tensors":1,"bytes":24,"copied_bytes":0,)"
      R"("path":"wrapped","ms":0.0},)"
      R"({"kind":"partition","id":0,"device":"npu","nodes":4,"ms":1.2346,"predicted_ms":0.5},)"
      R"({"kind":"transfer","id":2,"device":"cpu","from":0,"to":1,"tensors":2,"listed_tensors":3,)"
      R"("bytes":4000,"copied_bytes":4000,"path":"copied","ms":0.0,"predicted_ms":0.0},)"
      R"({"kind":"transfer","id":2,"device":"cpu","from":0,"to":1,"tensors":0,"listed_tensors":3,)"
      R"("bytes":0,"copied_bytes":0,"path":"","ms":0.0,"predicted_ms":0.0}],)"
      R"("transfers":1,"transferred_tensors":2,"transfer_bytes":4000,"copied_bytes":4000,"overlap":false,)"
      R"("weights":{"tensors":5,"bytes":600},"predicted_ms":0.75,"measured_ms":2.0,)"
      R"("first_ms":3.0,"load_ms":4.0,"backends":{"onednn":"1.2"}})");
}

TEST_CASE("run report: what is not always there") {
  RunReport report = small_report();
  report.compile =
      CompileSource{.ms = 1.5, .cache_enabled = true, .cache_hits = 1, .cache_misses = 2};
  report.bundle = BundleSource{.bytes = 4096, .open_ms = 0.25};
  report.bench = BenchSummary{.runs = 3,
                              .median_ms = 2,
                              .min_ms = 1,
                              .p90_ms = 5,
                              .p99_ms = 6,
                              .runs_per_second = 1234.567,
                              .peak_rss_bytes = 1000};
  report.in_flight = InFlightSummary{.runs = 3, .is_same = true};
  report.worst_relative_error = std::numeric_limits<double>::infinity();
  Comparison same;
  same.elements = 6;
  report.verify = comparison_of(same);
  report.verify->device = "cpu";
  report.verify->ms = 7;
  const Json json = run_report_json(report);
  CHECK(json["compile"].dump() == R"({"ms":1.5,"cache":true,"cache_hits":1,"cache_misses":2})");
  CHECK(json["bundle"].dump() == R"({"bytes":4096,"open_ms":0.25})");
  report.bundle->cpu_family = "amd-zen9";
  CHECK(run_report_json(report)["bundle"]["cpu_family"] == "amd-zen9");
  CHECK(json["bench"].dump() ==
        R"({"runs":3,"median_ms":2.0,"min_ms":1.0,"p90_ms":5.0,"p99_ms":6.0,)"
        R"("runs_per_second":1234.57,"first_ms":3.0,"load_ms":4.0,"peak_rss_bytes":1000})");
  CHECK(json["in_flight"].dump() == R"({"runs":3,"same_outputs":true})");
  CHECK(json["worst_relative_error"] == "inf");
  CHECK(json["verify"].dump() ==
        R"({"ok":true,"outputs":[{"name":"y","ok":true,"max_abs":0.0,"max_rel":0.0,"rtol":0.001,)"
        R"("atol":0.0001,"elements":6,"out_of_tolerance":0}],"device":"cpu","ms":7.0})");
  CHECK_FALSE(json.contains("expect"));

  const auto metrics = run_metrics(report);
  CHECK(metrics.at("transfers") == 1);
  CHECK(metrics.at("median_ms") == 2);
  CHECK(metrics.at("first_ms") == 3);  // rounded as in the document
  CHECK_FALSE(metrics.contains("worst_relative_error"));
  CHECK_FALSE(metrics.contains("model"));
  CHECK_FALSE(metrics.contains("ms"));
}

TEST_CASE("run report: outputs that differ") {
  Comparison comparison;
  comparison.ok = false;
  comparison.elements = 6;
  comparison.out_of_tolerance = 2;
  comparison.max_abs = 0.5;
  comparison.max_rel = NAN;
  comparison.worst_index = 3;
  comparison.worst_actual = 1.5;
  comparison.worst_expected = NAN;
  const ComparisonReport differs = comparison_of(comparison);
  CHECK_FALSE(differs.ok());
  CHECK(mismatch_text(differs.outputs[0]) ==
        "output 'y': 2 of 6 elements are out of tolerance; the worst is element 3: 1.5, expected "
        "nan");
  RunReport report = small_report();
  report.expect = differs;
  const Json json = run_report_json(report)["expect"]["outputs"][0];
  CHECK(json["max_rel"] == "nan");
  CHECK(json["worst"].dump() == R"({"index":3,"actual":1.5,"expected":"nan"})");
  CHECK(format_run_report(report).find("y       differs  5.00e-01      nan   2 of 6\n") !=
        std::string::npos);

  Comparison absent;
  absent.ok = false;
  absent.mismatch = "is not in the file";
  const ComparisonReport missing = comparison_of(absent);
  CHECK(mismatch_text(missing.outputs[0]) == "output 'y' is not in the file");
  report.expect = missing;
  CHECK(run_report_json(report)["expect"].dump() ==
        R"({"ok":false,"outputs":[{"name":"y","ok":false,"mismatch":"is not in the file"}]})");
}

TEST_CASE("run report: tables") {
  CHECK(format_run_report(small_report()) ==
        "device  backend  nodes  partitions     ms\n"
        "npu     onednn       4           1  1.250\n"
        "\n"
        "step             device  nodes  tensors    bytes     ms  predicted ms  path\n"
        "inputs           npu                  1     24 B  0.000                wrapped\n"
        "partition 0      npu         4                    1.235         0.500\n"
        "transfer 0 -> 1  cpu                  2  4.00 kB  0.000         0.000  copied\n"
        "transfer 0 -> 1  cpu                  0      0 B  0.000         0.000\n"
        "\n"
        "total\n"
        "transfers           1\n"
        "transferred   4.00 kB\n"
        "copied        4.00 kB\n"
        "weights         600 B\n"
        "load ms         4.000\n"
        "first run ms    3.000\n"
        "measured ms     2.000\n"
        "predicted ms    0.750\n");
}

TEST_CASE("run report: a line for a bundle that was compiled on another family of CPUs") {
  RunReport report = small_report();
  const std::string before = format_run_report(report);
  for (const std::string& family : {std::string(), std::string(cpu_family())}) {
    report.bundle = BundleSource{.bytes = 4096, .open_ms = 0.25, .cpu_family = family};
    CHECK(format_run_report(report) == before);
  }
  report.bundle->cpu_family = "amd-zen9";
  CHECK(format_run_report(report).find(
            "the bundle's kernels were chosen for CPUs of the family amd-zen9, this one is of " +
            std::string(cpu_family()) + ": others might be faster\n") != std::string::npos);
}
