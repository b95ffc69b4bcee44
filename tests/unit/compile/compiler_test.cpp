// SPDX-License-Identifier: Apache-2.0
// Compiling plans on a vendor's backend: the same bytes for any number of threads, partitions that
// move when they are refused, and bundles that run only on the machine they were compiled for.
#include "npu/compile/compiler.hpp"

#include "catch.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/weight_store.hpp"
#include "runtime/random_tensor.hpp"
#include "support/temporary_folder.hpp"
#include "vendor.hpp"

using namespace npu;
using npu::test::GraphBuilder;
using npu::test::has_cpu;
using npu::test::random_vendor_graph;
using npu::test::Setting;
using npu::test::use_vendor_backend;
using npu::test::vendor_target;

namespace {

std::vector<Tensor> random_weights(const Graph& graph) {
  Diagnostics diagnostics;
  auto weights = load_weights(graph, {.file = {}, .random_seed = 1}, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return weights;
}

PartitionPlan plan_of(Graph& graph) {
  Diagnostics diagnostics;
  return partition_graph(graph, {}, diagnostics).plan;
}

std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const TensorId id : graph.graph_inputs()) inputs.push_back(random_input(graph, id, seed));
  return inputs;
}

/// One thread a device, so that blobs do not depend on the machine.
ExecutorOptions one_thread() {
  ExecutorOptions options;
  options.threads = 1;
  return options;
}

CompileOptions compile_options(std::int32_t jobs = 1) {
  CompileOptions options;
  options.threads = 1;
  options.jobs = jobs;
  return options;
}

std::string bundle_of(Graph graph, const CompileOptions& options, CompileCache* cache,
                      std::int64_t* hits = nullptr, const Target& target = vendor_target()) {
  const auto plan = plan_of(graph);
  const auto weights = random_weights(graph);
  const auto model = compile_graph(graph, plan, target, weights, options, cache);
  if (hits != nullptr) *hits = model.cache_hits;
  return bundle_bytes(bundle_content(graph, model, target, weights, options));
}

/// Everything on the cpu, which the vendor has no part in.
std::vector<Tensor> reference(const Graph& graph, const std::vector<Tensor>& weights,
                              const std::vector<Tensor>& inputs) {
  const PartitionPlan whole = single_partition_plan(graph, "cpu");
  return compile_and_load(graph, whole, vendor_target(), weights, one_thread())
      .run(inputs, nullptr);
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!compare_tensors(a[i], b[i], {0, 0}).ok) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the bytes of a bundle do not depend on jobs or cache", "[compile][compiler]") {
  use_vendor_backend();
  const test::TemporaryFolder folder;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    const Graph graph = random_vendor_graph(seed, 40);
    const std::string bytes = bundle_of(graph, compile_options(1), nullptr);
    CHECK(bundle_of(graph, compile_options(4), nullptr) == bytes);
    CompileCache cache({.enabled = true, .folder = folder / "c"});
    std::int64_t hits = -1;
    CHECK(bundle_of(graph, compile_options(4), &cache, &hits) == bytes);
    CHECK(bundle_of(graph, compile_options(2), &cache, &hits) == bytes);
    CHECK(hits == static_cast<std::int64_t>(
                      Bundle::from_bytes(bytes, "b")->entries().front().partitions.size()));
    CompileOptions other = compile_options();
    other.precision = "bf16";
    bundle_of(graph, other, &cache, &hits);
    CHECK(hits == 0);
  }
}

TEST_CASE("a bundle runs in place, without the weights that its blobs hold",
          "[compile][compiler]") {
  use_vendor_backend();
  for (const std::string backend : {"vendor", "onednn"}) {
    const bool holds_weights = backend == "onednn";
    if (holds_weights && !has_cpu()) return;
    const Target& target = vendor_target(backend);
    for (std::uint32_t seed = 10; seed < 15; ++seed) {
      Graph graph = random_vendor_graph(seed, 30, backend);
      const auto bundle =
          Bundle::from_bytes(bundle_of(graph, compile_options(), nullptr, nullptr, target), "b");
      CHECK(bundle->weights().empty() == holds_weights);
      Diagnostics diagnostics;
      const Graph document = read_graph(bundle->document(), "b", diagnostics);
      const auto plan = read_partition_plan(document, diagnostics);
      REQUIRE_FALSE(diagnostics.has_errors());
      const auto partitions = bundled_partitions(*bundle, plan, target);
      for (std::size_t i = 0; i < partitions.size(); ++i) {
        CHECK(partitions[i].blob.data ==
              bundle->section(bundle->entries().front().partitions[i].section));
        CHECK(reinterpret_cast<std::uintptr_t>(partitions[i].blob.data.get()) % 4096 == 0);
      }
      Executor executor(document, plan, target, bundled_weights(*bundle, document), one_thread(),
                        partitions, {});
      const auto inputs = random_inputs(graph, seed);
      const auto outputs = executor.run(inputs, nullptr);
      if (has_cpu()) CHECK(same(outputs, reference(graph, random_weights(graph), inputs)));
    }
  }
}

TEST_CASE("what a backend refuses goes to the next device, and the result stays",
          "[compile][compiler]") {
  use_vendor_backend();
  if (!has_cpu()) return;
  const Setting refuse("WRAP_FAULT", "refuse=aten.neg.default");
  int refused = 0;
  for (std::uint32_t seed = 20; seed < 40; ++seed) {
    Graph graph = random_vendor_graph(seed, 25);
    const auto plan = plan_of(graph);
    const auto weights = random_weights(graph);
    const auto model =
        compile_graph(graph, plan, vendor_target(), weights, compile_options(2), nullptr);
    for (const Node& node : graph.nodes()) {
      if (node.op_type == "aten.neg.default") CHECK(node.device == "cpu");
    }
    for (const Refusal& refusal : model.refusals) {
      CHECK_THAT(refusal.reason, Catch::Contains("is not for this device"));
      CHECK(refusal.to != refusal.device);
      ++refused;
    }
    // The document that is left is a valid one with the plan that was compiled.
    Diagnostics diagnostics;
    const Graph again = read_graph(write_graph(graph), "again", diagnostics);
    const auto written = read_partition_plan(again, diagnostics);
    REQUIRE_FALSE(diagnostics.has_errors());
    REQUIRE(written.partitions.size() == model.partitions.size());
    Executor executor(graph, model.plan, vendor_target(), weights, one_thread(), model.partitions,
                      model.devices);
    const auto inputs = random_inputs(graph, seed);
    CHECK(same(executor.run(inputs, nullptr), reference(graph, weights, inputs)));
  }
  CHECK(refused > 0);
}

TEST_CASE("without fallback, and where no device is left, a refusal is an error",
          "[compile][compiler]") {
  use_vendor_backend();
  Graph graph = random_vendor_graph(50, 10);
  const auto plan = plan_of(graph);
  const auto weights = random_weights(graph);
  const Setting refuse("WRAP_FAULT", "refuse");
  CompileOptions strict = compile_options();
  strict.fallback = false;
  CHECK_THROWS_WITH(compile_graph(graph, plan, vendor_target(), weights, strict, nullptr),
                    Catch::Contains("is not for this device"));
  Target alone = vendor_target();
  alone.devices.pop_back();
  CHECK_THROWS_WITH(compile_graph(graph, plan, alone, weights, compile_options(), nullptr),
                    Catch::Contains("no device behind"));
}

TEST_CASE("a backend that lies about what it made is refused", "[compile][compiler]") {
  use_vendor_backend();
  Graph graph =
      GraphBuilder().input("x", {4}).node("r", "aten.relu.default", {"x"}).output("r").build();
  graph.nodes().front().device = "npu";
  graph.set_npu_member("target", *vendor_target().json);
  const auto plan = plan_of(graph);
  const auto weights = random_weights(graph);
  const auto inputs = random_inputs(graph, 0);
  const auto run = [&](const char* fault) {
    const Setting setting("WRAP_FAULT", fault);
    compile_and_load(graph, plan, vendor_target(), weights, one_thread()).run(inputs, nullptr);
  };
  CHECK_NOTHROW(run("none"));
  CHECK_THROWS_WITH(
      run("status"),
      Catch::Contains("failed without a message (running partition 0 on device 'npu'"));
  CHECK_THROWS_WITH(run("no-blob"), Catch::Contains("gave no blob"));
  CHECK_THROWS_WITH(run("no-model"), Catch::Contains("gave no model"));
  CHECK_THROWS_WITH(run("no-program"), Catch::Contains("made a program, but gave none"));
  CHECK_THROWS_WITH(run("no-buffer"), Catch::Contains("made a buffer, but gave none"));
  CHECK_THROWS_WITH(run("text"), Catch::Contains("????"));
  CHECK_NOTHROW(run("none"));  // nothing of it lasts
}

TEST_CASE("a bundle of another CPU or backend version asks to be compiled again",
          "[compile][compiler]") {
  use_vendor_backend();
  Graph graph = random_vendor_graph(60, 10);
  const auto plan = plan_of(graph);
  const auto weights = random_weights(graph);
  const auto model =
      compile_graph(graph, plan, vendor_target(), weights, compile_options(), nullptr);
  BundleContent content = bundle_content(graph, model, vendor_target(), weights, compile_options());
  const auto refusal = [&] {
    const auto bundle = Bundle::from_bytes(bundle_bytes(content), "b");
    try {
      bundled_partitions(*bundle, model.plan, vendor_target());
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(refusal().empty());
  content.entries.front().partitions[0].entry.fingerprint = "vendor 1.0 another CPU";
  CHECK_THAT(refusal(), Catch::Contains("compile the model again"));
  content.entries.front().partitions[0].entry.fingerprint = model.partitions[0].fingerprint;
  content.entries.front().partitions[0].entry.device = "cpu";
  CHECK_THAT(refusal(), Catch::Contains("was compiled for device 'cpu'"));
  content.entries.front().partitions.pop_back();
  CHECK_THAT(refusal(), Catch::Contains("compiled partitions, its document has"));
}
