// SPDX-License-Identifier: Apache-2.0
// The report of a compilation, whatever a backend reports about its partitions.
#include "npu/compile/compile_report.hpp"

#include "catch.hpp"

using namespace npu;

namespace {

CompiledPartition partition_of(const char* device, const char* backend, std::uint64_t bytes,
                               Json report) {
  CompiledPartition partition;
  partition.device = device;
  partition.backend = backend;
  partition.blob.size = bytes;
  partition.report = std::move(report);
  return partition;
}

CompiledModel two_partitions() {
  CompiledModel model;
  model.partitions.push_back(
      partition_of("npu", "onednn", 4096,
                   {{"nodes", 3},
                    {"kernels", 2},
                    {"reorders", 1},
                    {"predicted_kernels", 0},
                    {"splits",
                     {{{"pattern", "conv-post-ops"}, {"node", "gelu"}, {"reason", "it is a pass"}},
                      7,
                      {{"pattern", 1}}}},
                    {"flops", 2e6},
                    {"weight_bytes", 500},
                    {"arena_bytes", 64}}));
  model.partitions[0].cache_hit = true;
  model.partitions[0].compile_ms = 1.25;
  // A vendor's backend that reports nonsense.
  model.partitions.push_back(
      partition_of("cpu", "vendor", 10, {{"nodes", 4}, {"kernels", "many"}, {"flops", nullptr}}));
  model.refusals.push_back(
      {.device = "npu", .to = "cpu", .nodes = 4, .first_node = "a", .reason = "no"});
  model.cache_hits = 1;
  model.cache_misses = 1;
  model.compile_ms = 7;
  return model;
}

}  // namespace

TEST_CASE("compile report: numbers that a backend does not give stay absent") {
  const CompileReport report = compile_report(two_partitions());
  REQUIRE(report.partitions.size() == 2);
  CHECK(report.partitions[0].numbers.flops == 2e6);
  CHECK(report.partitions[1].numbers.nodes == 4);
  CHECK(report.partitions[1].numbers.kernels == std::nullopt);
  CHECK(number_cells(report.partitions[1].numbers) ==
        std::vector<std::string>{"4", "-", "-", "-", "-", "-"});
  CHECK(number_cells(read_compile_numbers({{"nodes", 2.5}, {"kernels", 3.0}})).front() == "2.5");
}

TEST_CASE("compile report: tables") {
  CompileReport report = compile_report(two_partitions());
  report.cache_enabled = true;
  report.precision = "bf16";
  report.worst_relative_error = 0.0125;
  CHECK(
      format_compile_report(report) ==
      "partition  device  backend  nodes  kernels  reorders       flops  weights  arena     blob  "
      "compile ms  cache\n"
      "        0  npu     onednn       3        2         1  2.00 MFLOP    500 B   64 B  4.10 kB  "
      "       1.2  hit\n"
      "        1  cpu     vendor       4        -         -           -        -      -     10 B  "
      "       0.0  miss\n"
      "4 nodes from 'a' on went from npu to cpu: no\n"
      "partition 0: fusion group 'conv-post-ops' is split at 'gelu': it is a pass\n"
      "partition 0: fusion group '-' is split at '-': -\n"
      "\n"
      "total\n"
      "partitions                           2\n"
      "compile ms                         7.0\n"
      "cache                 1 hits, 1 misses\n"
      "precision                         bf16\n"
      "worst relative error          1.25e-02\n");
  report.cache_enabled = false;
  CHECK(format_compile_report(report).find("off\n") != std::string::npos);
}

TEST_CASE(
    "compile report: what a narrow precision is computed in, where a backend has the choice") {
  CompiledModel model = two_partitions();
  const auto precision_of = [&](const char* first, const char* second) {
    model.partitions[0].report = Json{{"computes_in", first}};
    model.partitions[1].report = Json{{"computes_in", second}};
    CompileReport report = compile_report(model);
    report.precision = "bf16";
    const std::string text = format_compile_report(report);
    const std::size_t end = text.rfind('\n');
    return text.substr(text.rfind("bf16"), end - text.rfind("bf16"));
  };
  CHECK(precision_of("float32", "float32") == "bf16, computed in float32");
  CHECK(precision_of("bfloat16", "float32") == "bf16, computed in bfloat16 and float32");
  CHECK(precision_of("bfloat16", "float16") == "bf16, computed in bfloat16 and float16");
}

TEST_CASE("compile report: metrics sum what backends give") {
  const auto metrics = compile_metrics(compile_report(two_partitions()));
  CHECK(metrics.at("partitions") == 2);
  CHECK(metrics.at("refused") == 1);
  CHECK(metrics.at("kernels") == 2);
  CHECK(metrics.at("predicted_kernels") == 0);
  CHECK(metrics.at("splits") == 2);
  CHECK(metrics.at("blob_bytes") == 4106);
  CHECK(metrics.at("compile_ms") == 7);
  CHECK_FALSE(metrics.contains("worst_relative_error"));
  CHECK(compile_metrics({}).at("kernels") == 0);
}

TEST_CASE("compile report: the share of int8 multiply-adds") {
  CompiledModel model = two_partitions();
  CHECK(compile_metrics(compile_report(model)).at("int8_macs") == 0);
  CHECK(format_compile_report(compile_report(model)).find("int8") == std::string::npos);
  model.partitions.push_back(partition_of("npu", "onednn", 1, {{"macs", 300}, {"int8_macs", 100}}));
  model.partitions.push_back(partition_of("npu", "onednn", 1, {{"macs", 100}, {"int8_macs", 100}}));
  model.partitions.push_back(partition_of("npu", "vendor", 1, {{"macs", 100}}));  // not stated
  CHECK(compile_metrics(compile_report(model)).at("int8_macs") == 0.5);
  CHECK(format_compile_report(compile_report(model)).find("int8 multiply-adds") !=
        std::string::npos);
  CHECK(format_compile_report(compile_report(model)).find("50.0%") != std::string::npos);
}
