// SPDX-License-Identifier: Apache-2.0
// What conversions take where they stand. A conversion by itself moves bytes; in a model it may
// also take a layout apart that a concatenation was to find, or keep a product from writing where
// its reader reads. That shows only in documents of both precisions, so those that are chosen by
// the table so far are run, and what they take beyond the times of their nodes is the conversions'.
// The times of the nodes and conversions of a document that was run add up to its own,
// but for how much slower or faster the machine was by then, which kernels away from them tell.
//
// Cost: up to kRounds * errors choices and runs of the model; O(nodes + kernels) for each of them.
#include "profile/tensor_conversions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "npu/support/ids.hpp"

namespace npu {
namespace {

constexpr double kErrors[]{1e-4, 1e-3, 1e-2};
constexpr int kRounds = 5;

/// One kernel of a document on one device: its time, and its nodes.
struct KernelTime {
  double us = 0;
  std::vector<NodeId> nodes;
};

class ConversionAttribution {
 public:
  ConversionAttribution(const Graph& model, const Graph& document, const QuantizeResult& choice)
      : model_(model), document_(document) {
    for (const QuantizedNode& node : choice.nodes) {
      if (node.precision == Precision::kInt8) int8_.insert(node.name);
    }
    for (const PrecisionConversion& each : choice.conversions) {
      const TensorId tensor = document.find_tensor(each.tensor);
      if (tensor.valid()) converted_.emplace(tensor, 0);
    }
  }

  /// Microseconds by tensor that is converted.
  std::map<TensorId, double> run(const std::string& device, const NodeTable& times,
                                 const NodeTable& table) {
    for (auto& [tensor, us] : converted_) us = 0;
    const std::map<std::string, double> floats = times_on(device, table.nodes);
    const std::map<std::string, double> integers = times_on(device, table.int8);
    std::vector<Beside> all;
    for (const auto& [name, kernel] : kernels_on(device, times)) {
      double known = 0;
      for (const NodeId id : kernel.nodes) {
        const std::string& node = document_.node(id).name;
        const auto& list = int8_.contains(node) ? integers : floats;
        if (const auto found = list.find(node); found != list.end()) known += found->second;
      }
      all.push_back({kernel.us, known, conversions_at(kernel)});
    }
    const double pace = pace_of(all);
    for (const Beside& each : all) share(each.us / pace - each.known_us, each.conversions);
    return converted_;
  }

 private:
  /// What a kernel took, what its nodes take, and the conversions beside it.
  struct Beside {
    double us = 0;
    double known_us = 0;
    std::set<TensorId> conversions;
  };

  /// How much slower the machine was than when the table was measured, by the kernels that no
  /// conversion touches; 1 if they are too few to say.
  static double pace_of(const std::vector<Beside>& all) {
    constexpr double kEnough = 0.05;  // of the time
    double every = 0;
    double known = 0;
    double us = 0;
    for (const Beside& each : all) {
      every += each.known_us;
      if (!each.conversions.empty()) continue;
      known += each.known_us;
      us += each.us;
    }
    return known > kEnough * every && us > 0 ? us / known : 1;
  }

  static std::map<std::string, double> times_on(const std::string& device,
                                                const std::vector<NodeTime>& nodes) {
    std::map<std::string, double> times;
    for (const NodeTime& node : nodes) {
      if (node.device == device) times[node.node] = node.time.us;
    }
    return times;
  }

  std::map<std::string, KernelTime> kernels_on(const std::string& device,
                                               const NodeTable& times) const {
    std::map<std::string, KernelTime> kernels;
    for (const NodeTime& entry : times.nodes) {
      const NodeId id = document_.find_node(entry.node);
      if (entry.device != device || !id.valid()) continue;
      KernelTime& kernel = kernels[entry.kernel.empty() ? entry.node : entry.kernel];
      kernel.us += entry.time.us;
      kernel.nodes.push_back(id);
    }
    return kernels;
  }

  /// The model's tensor that inserted nodes made this one of.
  TensorId origin(TensorId tensor) const {
    for (;;) {
      const NodeId producer = document_.tensor(tensor).producer;
      if (!producer.valid()) return tensor;
      const Node& node = document_.node(producer);
      if (model_.find_node(node.name).valid() || node.inputs.empty()) return tensor;
      tensor = node.inputs.front();
    }
  }

  std::set<TensorId> conversions_at(const KernelTime& kernel) const {
    std::set<TensorId> found;
    for (const NodeId id : kernel.nodes) {
      const Node& node = document_.node(id);
      for (const auto* list : {&node.inputs, &node.outputs}) {
        for (const TensorId tensor : *list) {
          const TensorId value = origin(tensor);
          if (converted_.contains(value)) found.insert(value);
        }
      }
    }
    return found;
  }

  void share(double us, const std::set<TensorId>& tensors) {
    double bytes = 0;
    for (const TensorId id : tensors) bytes += static_cast<double>(document_.tensor(id).bytes());
    for (const TensorId id : tensors) {
      if (bytes == 0) continue;
      converted_[id] += us * static_cast<double>(document_.tensor(id).bytes()) / bytes;
    }
  }

  const Graph& model_;
  const Graph& document_;
  std::set<std::string> int8_;  ///< nodes
  std::map<TensorId, double> converted_;
};

/// Which nodes are int8.
std::vector<bool> precisions_of(const QuantizeResult& choice) {
  std::vector<bool> result;
  for (const QuantizedNode& node : choice.nodes) {
    result.push_back(node.precision == Precision::kInt8);
  }
  return result;
}

/// Later measurements take the place of earlier ones.
void merge(std::vector<TensorConversion> measured, NodeTable& table) {
  std::map<std::tuple<std::string, std::string, bool>, std::size_t> places;
  const auto place_of = [&](const TensorConversion& each, std::size_t next) {
    return places.emplace(std::tuple(each.tensor, each.device, each.to_int8), next).first->second;
  };
  std::vector<TensorConversion>& list = table.tensor_conversions;
  for (std::size_t i = 0; i < list.size(); ++i) place_of(list[i], i);
  for (TensorConversion& each : measured) {
    const std::size_t place = place_of(each, list.size());
    if (place < list.size()) {
      list[place].us = each.us;
    } else {
      list.push_back(std::move(each));
    }
  }
}

}  // namespace

std::vector<TensorConversion> conversions_of(const Graph& model, const Graph& document,
                                             const QuantizeResult& choice, const NodeTable& times,
                                             const NodeTable& table) {
  std::vector<TensorConversion> result;
  ConversionAttribution attribution(model, document, choice);
  for (const NodeTableDevice& device : table.devices) {
    const bool is_measured =
        std::any_of(times.nodes.begin(), times.nodes.end(),
                    [&](const NodeTime& entry) { return entry.device == device.name; });
    if (!is_measured) continue;
    const std::map<TensorId, double> us = attribution.run(device.name, times, table);
    for (const PrecisionConversion& each : choice.conversions) {
      const auto found = us.find(document.find_tensor(each.tensor));
      if (found == us.end()) continue;
      result.push_back({.tensor = each.tensor,
                        .device = device.name,
                        .to_int8 = each.to_int8,
                        .us = std::max(0.0, found->second)});
    }
  }
  return result;
}

void add_tensor_conversions(const Graph& model, const ProfileModelOptions& options,
                            const std::function<NodeTable(const Graph&)>& measure,
                            Diagnostics& diagnostics, NodeTable& table) {
  std::set<std::vector<bool>> measured;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t before = measured.size();
    for (const double error : kErrors) {
      Graph document = model;
      QuantizeOptions quantize;
      quantize.target = options.target.empty() ? "host" : options.target;
      quantize.max_error = error;
      quantize.profile = table;
      Diagnostics notes;
      const QuantizeResult choice = quantize_model(document, *options.ranges, quantize, notes);
      if (choice.int8_ops == 0 || !measured.insert(precisions_of(choice)).second) continue;
      const NodeTable times = measure(document);
      if (diagnostics.has_errors()) return;
      merge(conversions_of(model, document, choice, times, table), table);
    }
    if (measured.size() == before) break;
  }
}

}  // namespace npu
