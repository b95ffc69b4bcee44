// SPDX-License-Identifier: Apache-2.0
// Splits runs into nodes, borders and starts of partitions, and averages many of them.
//
// Medians of parts do not add up to the median of the whole: in every run some kernel of a hundred
// is interrupted, each time another one, so the whole has delays that no part's median shows. Means
// over the same runs do add up. O(runs * (nodes + borders)).
#include "profile/run_samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "profile/step_attribution.hpp"
#include "support/statistics.hpp"

namespace npu {
namespace {

constexpr double kCopyBytes = 4096;  // an empty copy takes as long as copying so many bytes

class Dissection {
 public:
  Dissection(const Graph& graph, const PartitionPlan& plan,
             const std::vector<CompiledPartition>& partitions, const RunRecord& record)
      : graph_(graph), plan_(plan), partitions_(partitions), record_(record) {}

  RunSample run() {
    sample_.whole_us = record_.total_us;
    sample_.node_us.assign(graph_.nodes().size(), 0);
    double inside = 0;
    for (std::size_t s = 0; s < record_.steps.size(); ++s) {
      const StepRecord& step = record_.steps[s];
      const double us = step.end_us - step.start_us;
      inside += us;
      switch (step.kind) {
        case StepRecord::Kind::kPartition:
          add_partition(step, us);
          break;
        case StepRecord::Kind::kTransfer:
          add_transfer(step, us);
          break;
        case StepRecord::Kind::kInput:
          add_input(s, us);
          break;
        case StepRecord::Kind::kOutput:
          add_output(us);
          break;
      }
    }
    std::map<std::string, double> count;
    for (const Partition& partition : plan_.partitions) ++count[partition.device];
    const double between = std::max(0.0, record_.total_us - inside);
    for (auto& [device, us] : sample_.start_us) {
      us = us / count[device] + between / static_cast<double>(plan_.partitions.size());
    }
    return std::move(sample_);
  }

 private:
  double& node_us(NodeId id) { return sample_.node_us[index_of(id)]; }

  void add_partition(const StepRecord& step, double us) {
    const auto index = static_cast<std::size_t>(step.index);
    const Partition& partition = plan_.partitions[index];
    const PartitionTimes times = attribute_times(graph_, partition, *partitions_[index].report,
                                                 step.step_ns, step.node_ns, us);
    for (std::size_t i = 0; i < partition.nodes.size(); ++i) {
      node_us(partition.nodes[i]) += times.node_us[i];
    }
    for (const auto& [tensor, read_us] : times.reads_us) {
      sample_.border_us[{tensor, partition.device}] += read_us;
    }
    for (const auto& [tensor, write_us] : times.writes_us) {
      std::set<std::string> readers;
      for (const NodeId consumer : graph_.tensor(tensor).consumers) {
        const std::string& device = *graph_.node(consumer).device;
        if (device != partition.device) readers.insert(device);
      }
      for (const std::string& device : readers) {
        sample_.border_us[{tensor, device}] += write_us / static_cast<double>(readers.size());
      }
    }
    sample_.start_us[partition.device] += times.rest_us;
  }

  void add_transfer(const StepRecord& step, double us) {
    const Transfer& transfer = plan_.transfers[static_cast<std::size_t>(step.index)];
    double sum = 0;
    const auto work = [&](TensorId id) {
      return static_cast<double>(graph_.tensor(id).bytes()) + kCopyBytes;
    };
    for (const TensorId id : transfer.tensors) sum += work(id);
    for (const TensorId id : transfer.tensors) {
      sample_.border_us[{id, transfer.to_device}] += us * work(id) / sum;
    }
  }

  // The record of the uploads precedes that of the partition that needs them.
  void add_input(std::size_t s, double us) {
    if (s + 1 >= record_.steps.size()) return;
    const StepRecord& next = record_.steps[s + 1];
    if (next.kind != StepRecord::Kind::kPartition) return;
    const Partition& partition = plan_.partitions[static_cast<std::size_t>(next.index)];
    std::vector<NodeId> readers;
    for (const TensorId id : partition.boundary.inputs) {
      const TensorInfo& tensor = graph_.tensor(id);
      if (tensor.kind != TensorKind::kGraphInput) continue;
      for (const NodeId consumer : tensor.consumers) {
        if (!std::binary_search(partition.nodes.begin(), partition.nodes.end(), consumer)) continue;
        readers.push_back(consumer);
        break;
      }
    }
    for (const NodeId reader : readers) node_us(reader) += us / static_cast<double>(readers.size());
  }

  void add_output(double us) {
    std::vector<NodeId> producers;
    for (const TensorId id : graph_.graph_outputs()) {
      if (graph_.tensor(id).producer.valid()) producers.push_back(graph_.tensor(id).producer);
    }
    for (const NodeId node : producers) node_us(node) += us / static_cast<double>(producers.size());
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const std::vector<CompiledPartition>& partitions_;
  const RunRecord& record_;
  RunSample sample_;
};

/// `values` by run; `counted` are the runs that the mean is taken over.
MeasuredTime time_of(const std::vector<double>& values, const std::vector<std::size_t>& counted) {
  MeasuredTime time;
  for (const std::size_t run : counted)
    time.us += values[run] / static_cast<double>(counted.size());
  time.median_us = median(values);
  time.mad_us = median_absolute_deviation(values, time.median_us);
  time.runs = static_cast<std::int32_t>(values.size());
  return time;
}

}  // namespace

RunSample take_apart(const Graph& graph, const PartitionPlan& plan,
                     const std::vector<CompiledPartition>& partitions, const RunRecord& record) {
  return Dissection(graph, plan, partitions, record).run();
}

RunSummary summarize(const std::vector<RunSample>& samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return samples[a].whole_us < samples[b].whole_us;
  });
  // Other load can only add time, and may last for more than half of the runs; the luckiest runs
  // are left out as well.
  const std::size_t begin = samples.size() / 8;
  const std::size_t end = std::max(begin + 1, 3 * samples.size() / 8);
  const std::vector<std::size_t> counted(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                         order.begin() + static_cast<std::ptrdiff_t>(end));
  const auto gather = [&](const auto& value) {
    std::vector<double> values;
    for (const RunSample& sample : samples) values.push_back(value(sample));
    return time_of(values, counted);
  };
  RunSummary summary;
  summary.whole = gather([](const RunSample& sample) { return sample.whole_us; });
  for (std::size_t n = 0; n < samples.front().node_us.size(); ++n) {
    summary.nodes.push_back(gather([n](const RunSample& sample) { return sample.node_us[n]; }));
  }
  for (const auto& [crossing, us] : samples.front().border_us) {
    summary.borders[crossing] = gather([&key = crossing](const RunSample& sample) {
      const auto found = sample.border_us.find(key);
      return found == sample.border_us.end() ? 0.0 : found->second;
    });
  }
  for (const auto& [device, us] : samples.front().start_us) {
    summary.start_us[device] = gather([&key = device](const RunSample& sample) {
                                 const auto found = sample.start_us.find(key);
                                 return found == sample.start_us.end() ? 0.0 : found->second;
                               }).us;
  }
  return summary;
}

}  // namespace npu
