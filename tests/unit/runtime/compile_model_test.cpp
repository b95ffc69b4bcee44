// SPDX-License-Identifier: Apache-2.0
// From a document to the content of a bundle, with the vendor's backend.
#include "npu/runtime/compile_model.hpp"

#include "catch.hpp"
#include "compile/vendor.hpp"

using namespace npu;
using namespace npu::test;

namespace {

CompileModelOptions without_cache() {
  CompileModelOptions options;
  options.weights.random_seed = 3;
  options.cache.enabled = false;
  return options;
}

Tensor value_of(float value) {
  Tensor tensor(DType::kFloat32, {1});
  tensor.as_mutable<float>()[0] = value;
  return tensor;
}

}  // namespace

TEST_CASE("compile: a tagged document is partitioned, and the report is of what was compiled") {
  use_vendor_backend();
  Graph graph = random_vendor_graph(5, 12);
  Diagnostics diagnostics;
  const CompileModelResult result = compile_model(graph, without_cache(), diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  CHECK(graph.npu_member("partition") != nullptr);
  REQUIRE_FALSE(result.model.partitions.empty());
  CHECK(result.report.partitions.size() == result.model.partitions.size());
  CHECK(result.content.entries.front().partitions.size() == result.model.partitions.size());
  CHECK(result.report.precision == "f32");
  CHECK_FALSE(result.report.cache_enabled);
  CHECK(result.report.cache_misses == static_cast<std::int64_t>(result.model.partitions.size()));
  double nodes = 0;
  for (const CompiledRow& row : result.report.partitions) nodes += row.numbers.nodes.value_or(0);
  CHECK(nodes == 12);
  CHECK(result.content.provenance["random_weights"] == 3);
}

TEST_CASE("compile: a target beside that of the document is not used") {
  use_vendor_backend();
  Graph graph = random_vendor_graph(5, 4);
  CompileModelOptions options = without_cache();
  options.where.target = "host";
  Diagnostics diagnostics;
  compile_model(graph, options, diagnostics);
  REQUIRE(diagnostics.entries().size() == 1);
  CHECK(diagnostics.entries()[0].text.find(
            "--target host is ignored: the document is tagged for target '") == 0);
}

TEST_CASE("compile: weights without data are an error, and nothing is compiled") {
  use_vendor_backend();
  Graph graph = random_vendor_graph(5, 40);
  CompileModelOptions options = without_cache();
  options.weights.random_seed.reset();
  Diagnostics diagnostics;
  const CompileModelResult result = compile_model(graph, options, diagnostics);
  CHECK(diagnostics.has_errors());
  CHECK(result.model.partitions.empty());
}

TEST_CASE("worst relative error: the worst output of floats") {
  CHECK(worst_relative_error({}, {}) == 0);
  const std::vector<Tensor> actual{value_of(1), value_of(1.5F)};
  const std::vector<Tensor> expected{value_of(1), value_of(2)};
  CHECK(worst_relative_error(actual, expected) == 0.25);  // |1.5 - 2| / 2
  Tensor count(DType::kInt64, {1});
  Tensor other(DType::kInt64, {1});
  other.as_mutable<std::int64_t>()[0] = 9;
  CHECK(worst_relative_error({count}, {other}) == 0);  // integers are no matter of precision
}
