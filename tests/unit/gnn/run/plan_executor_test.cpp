// SPDX-License-Identifier: Apache-2.0
// Plans whose devices fail: their remaining tasks run elsewhere, and the result is the same. Rows
// that come while a layer is computed: nothing reads them before.
#include "gnn/run/plan_executor.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "catch.hpp"
#include "gnn/graph/features.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/run/plan_devices.hpp"
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
    MakePlanOptions options;
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

  std::unique_ptr<PlanExecutor> executor(PlanExecutorOptions options) {
    return std::make_unique<PlanExecutor>(loaded_, devices_, run_.plan, std::move(options));
  }

  /// Devices that fail, by the number of tasks that they do before.
  std::unique_ptr<PlanExecutor> executor(const std::map<std::string, int>& fail_after,
                                         std::function<bool(std::int32_t)> goes_on = {}) {
    for (const auto& [device, after] : fail_after) left_[device] = after;
    PlanExecutorOptions options;
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
  RunPlanOptions run_;
  LoadedPlan loaded_;
  std::optional<CompileCache> cache_;
  ProgramCounts counts_;
  std::vector<GnnDevice> devices_;
  std::map<std::string, std::atomic<int>> left_;
};

/// Takes some rows away before a layer and gives them back when they are waited for.
class TakenRows : public LateRows {
 public:
  explicit TakenRows(std::vector<char> is_late) : is_late_(std::move(is_late)) {}

  void take(Tensor& x) {
    width_ = static_cast<std::size_t>(x.shape()[1]);
    x_ = x.as_mutable<float>();
    kept_.assign(x_, x_ + is_late_.size() * width_);
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (is_late_[i / width_] != 0) x_[i] = std::numeric_limits<float>::quiet_NaN();
    }
    is_there_ = false;
  }
  const std::vector<char>& is_late() const override { return is_late_; }
  void await() override {
    const std::lock_guard lock(mutex_);
    if (is_there_) return;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (is_late_[i / width_] != 0) x_[i] = kept_[i];
    }
    is_there_ = true;
    ++waits_;
  }
  int waits() const noexcept { return waits_; }

 private:
  std::vector<char> is_late_;
  std::mutex mutex_;
  std::vector<float> kept_;
  float* x_ = nullptr;
  std::size_t width_ = 0;
  bool is_there_ = true;
  int waits_ = 0;
};

}  // namespace

TEST_CASE("rows that come late are waited for by what reads them, with the same bits",
          "[runtime][gnn]") {
  if (!test::use_backends()) return;
  FailingPlan plan;
  const auto at_once = plan.executor(PlanExecutorOptions{});
  at_once->execute();
  const Tensor expected = at_once->output();
  for (const std::size_t every : {1, 7, 60}) {
    std::vector<char> is_late(60, 0);
    for (std::size_t v = 0; v < is_late.size(); v += every) is_late[v] = 1;
    TakenRows rows(is_late);
    PlanExecutorOptions options;
    options.late = &rows;
    options.before_layer = [&](std::size_t, Tensor& x) { rows.take(x); };
    const auto executor = plan.executor(options);
    executor->execute();
    CHECK(std::memcmp(executor->output().data(), expected.data(), expected.bytes()) == 0);
    CHECK(rows.waits() == 2);  // once for each layer
    // Parts that read none of them come first.
    for (const std::vector<ShareTask>& tasks : executor->graph().layers) {
      std::set<std::int32_t> waiting;
      for (const ShareTask& task : tasks) {
        if (!task.view.reads_late.empty()) waiting.insert(task.subgraph);
      }
      REQUIRE_FALSE(waiting.empty());
      CHECK(std::is_partitioned(tasks.begin(), tasks.end(), [&](const ShareTask& task) {
        return !waiting.contains(task.subgraph);
      }));
    }
  }
}

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
