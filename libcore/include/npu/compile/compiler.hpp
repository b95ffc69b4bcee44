// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/compile/cache.hpp"
#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"
#include "npu/target/target.hpp"

namespace npu {

class DeviceInstance;

/// How a compile is watched and stopped.
struct CompileControl {
  /// Called from any thread, one at a time. The share begins again where nodes that a backend
  /// refused are compiled for another device.
  ProgressCallback progress;
  /// What is not compiled by then is not compiled.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Where large blobs are kept, in files without a name, until they are written; empty: in memory.
  std::string blob_folder;
};

struct CompileOptions {
  std::string precision = "f32";  ///< or "bf16", "f16"; see npu/backend.h
  std::int32_t threads = 0;       ///< per device, when the program runs; 0: all cores
  std::int32_t jobs = 1;          ///< partitions compiled concurrently; 0: all cores
  /// Values between partitions of one device may lie as its backend likes: see agree_layouts. Only
  /// an Executor makes buffers that fit then.
  bool layouts = false;
  bool fallback = true;  ///< nodes that a backend refuses go to the next device
  /// Further members of the options that each backend is opened with, on top of the target's.
  Json backend_options = Json::object();
  CompileControl control;
};

/// The options that the backend of a device is opened with, as JSON: the
/// target's, `threads` and `extra`.
std::string backend_options_text(const Device& device, std::int32_t threads, const Json& extra);

/// Which of a backend's devices a target's device is, as in Backend::device.
std::string device_instance(const Device& device);

/// Devices that are open, by their names in the target.
using OpenDevices = std::map<std::string, std::shared_ptr<DeviceInstance>>;

/// A partition, ready to be loaded by the backend that made it.
struct CompiledPartition {
  std::string device;
  std::string backend;
  std::string backend_version;
  std::string fingerprint;
  bool holds_weights = false;  ///< load needs no weights
  LayoutNames layouts = {};    ///< of inputs and outputs that are not row-major
  std::string program = {};    ///< its name in a blob of several; empty: there is one
  Blob blob;
  std::function<void()> check_blob;  ///< called before runs; throws if the blob is damaged
  SharedJson report;                 ///< the backend's; always has "nodes", "flops", "weight_bytes"
  bool cache_hit = false;
  double compile_ms = 0;  ///< cache look-up included
};

/// Partitions that are compiled already, by device, and by compile options and sub-IR.
using KnownPartitions = std::map<std::pair<std::string, std::string>, CompiledPartition>;

/// A partition that its backend did not compile, and where its nodes went.
struct Refusal {
  std::string device;
  std::string to;
  std::int64_t nodes = 0;
  std::string first_node;
  std::string reason;
};

struct CompiledModel {
  PartitionPlan plan;
  std::vector<CompiledPartition> partitions;  ///< by partition id
  std::vector<Refusal> refusals;
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;
  std::int64_t programs_built = 0;  ///< pieces that backends share between models and made anew
  std::int64_t programs_found = 0;  ///< those that were there
  double compile_ms = 0;
  /// The devices that were opened to compile, by name, for a run in the same process.
  OpenDevices devices;
};

/// Compiles every partition of `plan`. `weights` by TensorId, as load_weights returns them; `cache`
/// may be null. The result does not depend on `jobs`. With `fallback`, nodes that a backend refuses
/// go to the next device of the target that runs them, `graph` is partitioned again (convex, or
/// contiguous if the plan was), and `graph` and the result hold the new plan. Without `fallback`,
/// or if no device is left, throws Error with the backend's text; so does whatever is no refusal. A
/// device is opened once, unless it is among `devices`, which are open with the same options. What
/// is among `known` is not compiled. It stops with Error kFailed if options.control.progress says
/// so, with kInfeasible at the deadline.
CompiledModel compile_graph(Graph& graph, const PartitionPlan& plan, const Target& target,
                            const std::vector<Tensor>& weights, const CompileOptions& options,
                            CompileCache* cache, const OpenDevices& devices = {},
                            KnownPartitions known = {});

/// As above without fallback: the plan stays as it is.
CompiledModel compile_plan(const Graph& graph, const PartitionPlan& plan, const Target& target,
                           const std::vector<Tensor>& weights, const CompileOptions& options,
                           CompileCache* cache, const OpenDevices& devices = {},
                           KnownPartitions known = {});

/// The report of a compiled partition: the backend's, its memory, and the numbers that every report
/// has. `predicted_kernels` as make_sub_ir counts them.
Json partition_report(DeviceInstance& instance, const Blob& blob, const Graph& graph,
                      const Partition& partition, std::int64_t predicted_kernels);

/// The bundle of a compiled model; `graph` is as compile_graph left it. Holds the weights that the
/// graph's outputs and backends without NPU_BLOB_HOLDS_WEIGHTS need.
BundleContent bundle_content(const Graph& graph, const CompiledModel& model, const Target& target,
                             const std::vector<Tensor>& weights, const CompileOptions& options);

/// The partitions of an entry of a bundle, not copied. Throws Error kParse if they do not match
/// `plan`, kUnsupported if a backend is missing or is not the one that compiled them.
std::vector<CompiledPartition> bundled_partitions(const Bundle& bundle, const PartitionPlan& plan,
                                                  const Target& target, std::size_t entry = 0);

/// The weights of an entry of a bundle, by TensorId; the others stay empty. Throws Error kParse for
/// a weight that differs from what its document declares.
std::vector<Tensor> bundled_weights(const Bundle& bundle, const Graph& graph,
                                    std::size_t entry = 0);

}  // namespace npu
