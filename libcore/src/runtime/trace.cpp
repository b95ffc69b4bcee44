// SPDX-License-Identifier: Apache-2.0
// Writes a run as Chrome Trace Event JSON. Times are in microseconds, the format's unit.
#include "runtime/trace.hpp"

#include <map>

#include "support/chrome_trace.hpp"

namespace npu {
namespace {

class TraceWriter {
 public:
  TraceWriter(const Graph& graph, const PartitionPlan& plan, const RunRecord& record)
      : graph_(graph), plan_(plan), record_(record) {}

  std::string write() {
    trace_.name_process(graph_.model_name());
    for (const StepRecord& step : record_.steps) add(step);
    return trace_.text();
  }

 private:
  int track(const std::string& device) {
    const auto [where, is_new] = tracks_.emplace(device, static_cast<int>(tracks_.size()) + 1);
    if (is_new) trace_.name_track(where->second, device);
    return where->second;
  }

  void slice(const std::string& name, const char* category, int tid, TimeSpan span,
             const Json& args) {
    trace_.slice(tid, name, category, span.begin_us, span.end_us - span.begin_us, args);
  }

  void add(const StepRecord& step) {
    const int tid = track(step.device);
    switch (step.kind) {
      case StepRecord::Kind::kPartition:
        add_partition(step, tid);
        break;
      case StepRecord::Kind::kTransfer:
        add_transfer(step, tid);
        break;
      case StepRecord::Kind::kInput:
      case StepRecord::Kind::kOutput: {
        const bool is_input = step.kind == StepRecord::Kind::kInput;
        slice(is_input ? "inputs" : "outputs", "io", tid, {step.start_us, step.end_us},
              {{"tensors", step.tensors},
               {"bytes", step.bytes},
               {"copied_bytes", step.copied_bytes},
               {"path", path_text(step)}});
        break;
      }
    }
  }

  void add_partition(const StepRecord& step, int tid) {
    const Partition& partition = plan_.partitions[static_cast<std::size_t>(step.index)];
    slice("partition " + std::to_string(step.index), "partition", tid, {step.start_us, step.end_us},
          {{"nodes", partition.nodes.size()}});
    ended_[step.index] = {tid, step.end_us};
    const bool is_placed = step.node_spans.size() == step.node_ns.size();
    double at = step.start_us;
    for (std::size_t i = 0; i < step.node_ns.size() && i < partition.nodes.size(); ++i) {
      const double duration = static_cast<double>(step.node_ns[i]) / 1000;
      if (duration <= 0) continue;
      const Node& node = graph_.node(partition.nodes[i]);
      if (is_placed) {
        const TimeSpan& span = step.node_spans[i];
        slice(node.name, "node", tid, span,
              {{"op_type", node.op_type}, {"clock_error_us", step.clock_error_us}});
        continue;
      }
      slice(node.name, "node", tid, {at, at + duration}, {{"op_type", node.op_type}});
      at += duration;
    }
  }

  void add_transfer(const StepRecord& step, int tid) {
    const Transfer& transfer = plan_.transfers[static_cast<std::size_t>(step.index)];
    Json names = Json::array();
    for (const TensorId id : transfer.tensors) names.push_back(graph_.tensor(id).name);
    slice("transfer to " + transfer.to_device, "transfer", tid, {step.start_us, step.end_us},
          {{"tensors", std::move(names)},
           {"bytes", step.bytes},
           {"copied_bytes", step.copied_bytes},
           {"path", path_text(step)}});
    const auto source = ended_.find(transfer.from);
    if (source == ended_.end()) return;
    // A flow event binds to the slice that encloses its time; the start lies just inside the
    // producer.
    trace_.flow("transfer", source->second.first, source->second.second - 0.001, tid,
                step.start_us);
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const RunRecord& record_;
  ChromeTrace trace_;
  std::map<std::string, int> tracks_;
  std::map<std::int32_t, std::pair<int, double>> ended_;  // partition -> (track, time)
};

}  // namespace

std::string write_trace(const Graph& graph, const PartitionPlan& plan, const RunRecord& record) {
  return TraceWriter(graph, plan, record).write();
}

}  // namespace npu
