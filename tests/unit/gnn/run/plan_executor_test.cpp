// SPDX-License-Identifier: Apache-2.0
// Plans whose devices fail: their remaining tasks run
// elsewhere, and the result is the same.
#include "gnn/run/plan_executor.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <optional>

#include "catch.hpp"
#include "gnn/run/plan_devices.hpp"
#include "npu/gnn/features.hpp"
#include "npu/gnn/plan_gnn.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kExecutorFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

/// A plan of five parts on three devices, loaded; its devices fail after some tasks.
class FailingPlan {
 public:
  FailingPlan() {
    PlanOptions options;
    options.graph = kExecutorFolder + "graph.mtx";
    options.model = kExecutorFolder + "graphsage.json";
    options.profile = kExecutorFolder + "profile.json";
    options.part_counts = {5};
    options.pad = 16;
    options.output = run_.plan = folder_ / "plan.json";
    Diagnostics diagnostics;
    write_file_atomically(options.output,
                          write_document(to_json(make_plan(options, diagnostics).plan)));
    run_.features = kExecutorFolder + "x.npy";
    run_.devices = {{"gpu", "aten"}};
    run_.cache.enabled = false;
    PhaseTimes times;
    loaded_ = load_plan(run_, times);
    cache_.emplace(run_.cache);
    devices_ = open_devices(loaded_.plan, run_, *cache_, counts_);
  }

  /// Devices that fail, by the number of tasks that they do before.
  std::unique_ptr<PlanExecutor> executor(const std::map<std::string, int>& fail_after,
                                         std::function<bool(std::int32_t)> goes_on = {}) {
    for (const auto& [device, after] : fail_after) left_[device] = after;
    ExecutorOptions options;
    options.goes_on = std::move(goes_on);
    options.before_task = [this](const std::string& device) {
      const auto found = left_.find(device);
      if (found != left_.end() && found->second-- <= 0) {
        throw Error(ErrorCode::kUnsupported, "the device was told to fail");
      }
    };
    return std::make_unique<PlanExecutor>(loaded_, devices_, run_.plan, options);
  }

 private:
  test::TemporaryFolder folder_;
  RunOptions run_;
  LoadedPlan loaded_;
  std::optional<CompileCache> cache_;
  ProgramCounts counts_;
  std::vector<GnnDevice> devices_;
  std::map<std::string, std::atomic<int>> left_;
};

}  // namespace

TEST_CASE("what a failed device has not done runs elsewhere", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  const Tensor expected = read_features(kExecutorFolder + "graphsage.expected.npy");
  for (const std::string device : {"npu", "gpu"}) {
    for (const int after : {0, 2}) {
      CAPTURE(device, after);
      FailingPlan plan;
      const auto executor = plan.executor({{device, after}});
      executor->execute();
      CHECK(compare_tensors(executor->output(), expected, {1e-4, 1e-5}).ok);
      CHECK(executor->scheduler().moved_count() > 0);
      REQUIRE(executor->scheduler().failures().size() == 1);
      CHECK(executor->scheduler().failures().front() ==
            "device '" + device + "' failed: error: the device was told to fail");
      // A device that has failed is given nothing in later runs.
      executor->execute();
      CHECK(compare_tensors(executor->output(), expected, {1e-4, 1e-5}).ok);
      CHECK(executor->scheduler().failures().size() == 1);
    }
  }
}

TEST_CASE("with no device left there is an error that says what could not run", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  FailingPlan plan;
  const auto executor = plan.executor({{"npu", 1}, {"gpu", 1}, {"cpu", 1}});
  CHECK_THROWS_WITH(executor->execute(), Catch::Matchers::Contains("no other device runs stages"));
}

TEST_CASE("a run that is asked to stop ends with an error", "[runtime][gnn]") {
  if (!test::use_backends()) return;
  FailingPlan plan;
  std::int32_t last_layer = 0;
  const auto executor = plan.executor({}, [&](std::int32_t layer) {
    last_layer = layer;
    return layer < 2;
  });
  CHECK_THROWS_WITH(executor->execute(), Catch::Matchers::Contains("interrupted"));
  CHECK(last_layer == 2);
}
