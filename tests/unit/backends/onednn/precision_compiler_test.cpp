// SPDX-License-Identifier: Apache-2.0
// How the onednn backend compiles for bf16 and f16.
#include <string>

#include "backends/onednn/compiled_graph.hpp"
#include "catch.hpp"

namespace npu {
namespace {

using test::CallError;
using test::GraphBuilder;
using test::onednn::api;
using test::onednn::check_bfloat16;
using test::onednn::CompiledGraph;
using test::onednn::has_avx2;
using test::onednn::kBFloat16;
using test::onednn::kFastBFloat16;
using test::onednn::kSlowBFloat16;
using test::onednn::open_device;
using test::onednn::residual_block;
using test::onednn::runs_kernel;

}  // namespace

TEST_CASE("onednn computes float32 graphs in bfloat16 if asked to and that is faster",
          "[onednn][compiler]") {
  check_bfloat16(residual_block(32), 2e-2);
  if (!has_avx2()) return;
  const std::string level = test::onednn::isa_level();
  const bool multiplies = level == "avx512_bf16" || level == "avx512_fp16" || level == "amx";
  CompiledGraph exact(residual_block(32));
  CHECK(find_member(exact.report, "computes_in") == nullptr);
  for (const char* rate : {kFastBFloat16, kSlowBFloat16}) {
    INFO(rate << " at " << level);
    CompiledGraph compiled(residual_block(32), kBFloat16, 2, rate);
    CHECK(compiled.report.at("precision") == "bf16");
    const bool narrow = multiplies && rate == kFastBFloat16;
    CHECK(compiled.report.at("computes_in") == (narrow ? "bfloat16" : "float32"));
    if (!narrow) continue;
    CHECK(compiled.count("weight_bytes") < exact.count("weight_bytes"));
    CHECK(compiled.error_against_cpu() > exact.error_against_cpu());
  }
}

TEST_CASE("onednn stores in 16 bits what it computes in float32", "[onednn][compiler]") {
  if (!has_avx2()) return;
  const std::string precision = GENERATE("f16", "bf16");
  GraphBuilder graph;
  graph.input("x", {1, 512}).weight("w", {512, 512});
  graph.node("y", "aten.linear.default", {"x", "p_w"}, Shape{1, 512}).output("y");
  CompiledGraph exact(graph);
  CompiledGraph compiled(graph, R"({"precision": ")" + precision + R"("})", 2, kSlowBFloat16);
  CHECK(runs_kernel(compiled, "gemv"));
  CHECK(2 * compiled.count("weight_bytes") == exact.count("weight_bytes"));
  const double error = compiled.error_against_cpu();
  CHECK(error > exact.error_against_cpu());
  CHECK(error < (precision == "f16" ? 1e-3 : 1e-2));
}

TEST_CASE("onednn refuses a rate of bfloat16 that is none", "[onednn][compiler]") {
  for (const char* rate : {"0", "-1", "101", "\"fast\"", "null", "[1]"}) {
    npu_device* device = nullptr;
    CallError error;
    const std::string options = std::string(R"({"bfloat16_rate": )") + rate + "}";
    CHECK(api().open_device(1, options.c_str(), &device, &error) == NPU_INVALID);
    CHECK(std::string(error.text) ==
          "device option 'bfloat16_rate': expected a number above 0 and up to 100");
  }
}

}  // namespace npu
