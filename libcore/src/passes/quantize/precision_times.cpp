// SPDX-License-Identifier: Apache-2.0
// Predicted times of ops in both precisions. O(nodes).
#include "passes/quantize/precision_times.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "npu/support/ids.hpp"
#include "target/support_check.hpp"

namespace npu::quantize {
namespace {

constexpr double kBytesRatio = 4;

const Device& device_of(const Graph& graph, NodeId id, const Target& target) {
  const std::optional<std::string>& name = graph.node(id).device;
  if (name.has_value()) {
    if (const Device* device = target.find_device(*name)) return *device;
  }
  for (const Device& device : target.devices) {
    if (check_support(graph, id, device).supported) return device;
  }
  return target.devices.back();
}

double int8_ratio(const Device& device) {
  const auto int8 = device.peak_flops.find(DType::kInt8);
  const double floats = device.flops_per_second(DType::kFloat32);
  return int8 != device.peak_flops.end() && floats > 0 ? int8->second / floats : kBytesRatio;
}

/// What a table has of int8.
class MeasuredInt8 {
 public:
  explicit MeasuredInt8(const NodeTable* table) : table_(table) {
    if (table == nullptr) return;
    for (std::size_t i = 0; i < table->int8.size(); ++i) {
      nodes_[table->int8[i].node].push_back(i);
    }
    for (const TensorConversion& each : table->tensor_conversions) {
      tensors_.emplace(std::tuple(each.tensor, each.device, each.to_int8), each.us);
    }
  }

  std::optional<double> conversion_us(const std::string& tensor, const std::string& device,
                                      bool to_int8) const {
    const auto found = tensors_.find(std::tuple(tensor, device, to_int8));
    return found == tensors_.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<double> node_us(const std::string& node, const std::string& device) const {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return std::nullopt;
    for (const std::size_t i : found->second) {
      if (table_->int8[i].device == device) return table_->int8[i].time.us;
    }
    return std::nullopt;
  }

  const ConversionFit* conversion(const std::string& device, bool to_int8) const {
    if (table_ == nullptr) return nullptr;
    for (const ConversionFit& fit : table_->conversions) {
      if (fit.device == device && fit.to_int8 == to_int8) return &fit;
    }
    return nullptr;
  }

 private:
  const NodeTable* table_;
  NameIndex<std::vector<std::size_t>> nodes_;  // indices into table_->int8, by device
  std::map<std::tuple<std::string, std::string, bool>, double> tensors_;
};

/// How much longer conversions took where they stand than by themselves: of those that were
/// measured between the same two ops, else before the same op, else of all.
class ConversionShares {
 public:
  void add(const std::array<std::string, 3>& kinds, double alone_us, double measured_us) {
    for (const std::string& kind : kinds) {
      sums_[kind].first += alone_us;
      sums_[kind].second += measured_us;
    }
  }

  double of(const std::array<std::string, 3>& kinds) const {
    for (const std::string& kind : kinds) {
      const auto found = sums_.find(kind);
      if (found != sums_.end() && found->second.first > 0) {
        return found->second.second / found->second.first;
      }
    }
    return 1;
  }

 private:
  std::map<std::string, std::pair<double, double>> sums_;
};

class TimePredictor {
 public:
  TimePredictor(const Graph& graph, const PrecisionProblem& problem, const Target& target,
                const CostModel& cost, const NodeTable* measured)
      : graph_(graph), problem_(problem), target_(target), cost_(cost), measured_(measured) {
    for (const Value& value : problem.values) {
      for (const bool to_int8 : {true, false}) {
        const auto known = measured_conversion(value, to_int8);
        if (!known) continue;
        shares_.add(kinds_of(value, to_int8), conversion_alone_us(value, to_int8), *known);
      }
    }
  }

  PrecisionTimes run() const {
    PrecisionTimes times;
    for (const Unit& unit : problem_.units) add_unit(unit, times);
    for (const Value& value : problem_.values) {
      times.to_int8_us.push_back(conversion_us(value, true));
      times.to_float_us.push_back(conversion_us(value, false));
    }
    return times;
  }

 private:
  void add_unit(const Unit& unit, PrecisionTimes& times) const {
    double floats = 0;
    double integers = 0;
    double measured = 0;
    bool is_measured = false;
    for (const NodeId id : unit.members) {
      const Device& device = device_of(graph_, id, target_);
      const double us = cost_.node_us(graph_, id, device);
      const double overhead = std::min(us, device.node_overhead_us);
      floats += us;
      integers += overhead + (us - overhead) / speedup(unit, id, device);
      const auto known = measured_.node_us(graph_.node(id).name, device.name);
      measured += known.value_or(0);
      is_measured = is_measured || (known && id == unit.members.front());
    }
    times.float_us.push_back(floats);
    times.int8_us.push_back(is_measured ? measured : integers);
  }

  static double speedup(const Unit& unit, NodeId id, const Device& device) {
    // The second product of an attention has two rows of bytes for each row of weights.
    constexpr double kRowsOfAttention = 1.5;
    if (unit.kind == UnitKind::kAttention) return int8_ratio(device) / kRowsOfAttention;
    const bool has_product = unit.kind == UnitKind::kWeighted || unit.kind == UnitKind::kProduct;
    const bool is_product = has_product && id == unit.members.front();
    return is_product ? int8_ratio(device) : kBytesRatio;
  }

  const Unit* producer_of(const Value& value) const {
    return value.producer < 0 ? nullptr : &problem_.units[index_of(value.producer)];
  }

  const Device& device_of_value(const Value& value) const {
    const Unit* producer = producer_of(value);
    return producer == nullptr ? target_.devices.front()
                               : device_of(graph_, producer->members.back(), target_);
  }

  std::optional<double> measured_conversion(const Value& value, bool to_int8) const {
    return measured_.conversion_us(graph_.tensor(value.tensor).name, device_of_value(value).name,
                                   to_int8);
  }

  /// What conversions that take about the same time have in common, the closest first.
  std::array<std::string, 3> kinds_of(const Value& value, bool to_int8) const {
    const auto op_of = [&](std::int32_t unit) -> std::string {
      if (unit < 0) return "";
      return graph_.node(problem_.units[index_of(unit)].members.front()).op_type;
    };
    const std::string all = to_int8 ? "int8" : "float32";
    const std::string before =
        all + " " + op_of(value.readers.empty() ? -1 : value.readers.front());
    return {before + " " + op_of(value.producer), before, all};
  }

  double conversion_us(const Value& value, bool to_int8) const {
    if (const auto known = measured_conversion(value, to_int8)) return *known;
    return conversion_alone_us(value, to_int8) * shares_.of(kinds_of(value, to_int8));
  }

  double conversion_alone_us(const Value& value, bool to_int8) const {
    const Unit* producer = producer_of(value);
    const Device& device = device_of_value(value);
    const double bytes = static_cast<double>(graph_.tensor(value.tensor).bytes());
    if (const ConversionFit* fit = measured_.conversion(device.name, to_int8)) {
      // A product writes floats itself: only their bytes count.
      const bool is_written =
          !to_int8 && producer != nullptr &&
          (producer->kind == UnitKind::kWeighted || multiplies_activations(producer->kind));
      return (is_written ? 0 : fit->latency_us) +
             (fit->bytes_per_s > 0 ? 1e6 * bytes / fit->bytes_per_s : 0);
    }
    const double moved = bytes + bytes / kBytesRatio;
    return device.node_overhead_us +
           (device.memory_bandwidth > 0 ? 1e6 * moved / device.memory_bandwidth : 0);
  }

  const Graph& graph_;
  const PrecisionProblem& problem_;
  const Target& target_;
  const CostModel& cost_;
  MeasuredInt8 measured_;
  ConversionShares shares_;
};

}  // namespace

PrecisionTimes predict_times(const Graph& graph, const PrecisionProblem& problem,
                             const Target& target, const CostModel& cost,
                             const NodeTable* measured) {
  return TimePredictor(graph, problem, target, cost, measured).run();
}

}  // namespace npu::quantize
