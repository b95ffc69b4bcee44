// SPDX-License-Identifier: Apache-2.0
// Writes the proof of a placement's lower bound into the document,
// and checks the proof in a document.
//
// The check follows the definition of what is proved, not the solver: times are those of
// plan_metrics, the cost of the cut is summed from the device of each node, and the bound is what
// remains after moving parts of the tensors' prices to their producers and readers
// (certified_bound). For more than two devices the bound is solved again from the prices of the
// nodes, which are its proof; an exhaustive search is repeated. O(nodes + edges) for two devices.
#include <algorithm>
#include <cmath>
#include <map>

#include "npu/partition/metrics.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/support/ids.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/placement/certificate_json.hpp"

namespace npu {
namespace {

constexpr double kSlackUs = 0.002;  // metrics are rounded to nanoseconds

/// The certificate's name for an item or a fused node: that of its first node.
const std::string& item_name(const Graph& graph, const PlacementProblem& problem,
                             std::int32_t item) {
  return graph.node(problem.first_node[index_of(item)]).name;
}
const std::string& fused_node_name(const Graph& graph, const PlacementProblem& problem,
                                   std::int32_t fused_node) {
  return graph.node(problem.fused.members[index_of(fused_node)].front()).name;
}

Json ticks_json(const PlacementProblem& problem) {
  return problem.ticks_per_us >= 1 ? Json(static_cast<std::int64_t>(problem.ticks_per_us))
                                   : Json(problem.ticks_per_us);
}

Json flows_to_json(const Graph& graph, const PlacementProblem& problem,
                   const CutCertificate& certificate) {
  Json flows = Json::array();
  for (const PlacementProblem::Tensor& tensor : problem.tensors) {
    for (std::int32_t r = tensor.begin; r < tensor.end; ++r) {
      const std::int64_t flow = certificate.flow[index_of(r)];
      if (flow == 0) continue;
      flows.push_back({graph.tensor(tensor.id).name,
                       item_name(graph, problem, problem.readers[index_of(r)]), flow});
    }
  }
  return flows;
}

Json bound_to_json(const Graph& graph, const PlacementProblem& problem,
                   const CutCertificate& certificate) {
  Json json = {{"value", certificate.value}, {"flows", flows_to_json(graph, problem, certificate)}};
  if (certificate.paths.count == 0) return json;
  const FusedGraph& fused = problem.fused;
  Json starts = Json::array();
  Json steps = Json::array();
  for (std::size_t u = 0; u < fused.size(); ++u) {
    const auto fused_node = static_cast<std::int32_t>(u);
    if (certificate.paths.starts[u] > 0) {
      starts.push_back({fused_node_name(graph, problem, fused_node), certificate.paths.starts[u]});
    }
    for (auto a = static_cast<std::size_t>(fused.offsets[u]);
         a < static_cast<std::size_t>(fused.offsets[u + 1]); ++a) {
      if (certificate.paths.arcs[a] == 0) continue;
      steps.push_back({fused_node_name(graph, problem, fused_node),
                       fused_node_name(graph, problem, fused.targets[a]), certificate.paths.arcs[a],
                       certificate.launch_flow[a]});
    }
  }
  json["paths"] = {{"count", certificate.paths.count}, {"starts", starts}, {"steps", steps}};
  return json;
}

/// Reads `npu.partition.certificate`; every name and number is checked before it is used.
class CertificateChecker {
 public:
  CertificateChecker(const Graph& graph, const CostModel& cost, Diagnostics& diagnostics)
      : graph_(graph), cost_(cost), diagnostics_(diagnostics), target_(graph_target(graph)) {}

  std::string run() {
    const PartitionPlan plan = read_partition_plan(graph_, diagnostics_);
    if (diagnostics_.has_errors()) return {};
    lines_ += "plan: " + std::to_string(plan.partitions.size()) + " partitions, " +
              std::to_string(plan.steps.size()) + " steps in a valid order\n";
    certificate_ = find_member(*graph_.npu_member("partition"), "certificate");
    if (certificate_ == nullptr && plan.strategy == "mincut") {
      error("/certificate", "expected an object");
      return {};
    }
    if (!check_cost()) return {};
    problem_ = build_placement_problem(graph_, target_, cost_);
    for (std::size_t i = 0; i < problem_.items; ++i) {
      item_by_node_.emplace(problem_.first_node[i].value, static_cast<std::int32_t>(i));
    }
    check_metrics(plan);
    if (certificate_ == nullptr) {
      lines_ += "no certificate: only the strategy mincut writes one\n";
    } else {
      check_bound();
    }
    return diagnostics_.has_errors() ? std::string() : lines_;
  }

 private:
  // The times of a plan can only be checked against their source.
  bool check_cost() {
    const Json* stated = find_member(*graph_.npu_member("partition"), "cost");
    const Json given = cost_.provenance();
    if (stated == nullptr && given.is_null()) return true;
    if (stated == nullptr) {
      error("", "the plan's times come from the target's rates; verify it without --profile");
      return false;
    }
    if (given.is_null()) {
      error("/cost",
            "the plan's times come from a table of npu-profile; give it with --profile FILE");
      return false;
    }
    return true;
  }

  void error(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = graph_.file, .pointer = "/npu/partition" + pointer},
                       std::move(text));
  }

  std::optional<double> metric(const char* name) {
    const Json* metrics = find_member(*graph_.npu_member("partition"), "metrics");
    const Json* value = metrics == nullptr ? nullptr : find_member(*metrics, name);
    if (value != nullptr && value->is_number()) return value->get<double>();
    error(std::string("/metrics/") + name, "expected a number");
    return std::nullopt;
  }

  void expect_metric(const char* name, double expected, double per_us) {
    const auto value = metric(name);
    if (!value || std::abs(*value - expected) <= per_us * kSlackUs + 1e-9 * std::abs(expected)) {
      return;
    }
    error(std::string("/metrics/") + name, "found " + Json(*value).dump() + ", but the plan has " +
                                               Json(std::round(expected * 1000) / 1000).dump());
  }

  // Ticks are rounded for each item, tensor and launch; the plan's time is not.
  double slack() const {
    const auto terms = static_cast<double>(problem_.items + problem_.readers.size() + 1);
    return kSlackUs + 1e-9 * predicted_ + terms / problem_.ticks_per_us;
  }

  void check_metrics(const PartitionPlan& plan) {
    const PlanMetrics metrics = plan_metrics(graph_, plan, target_, cost_);
    predicted_ = metrics.predicted_us;
    expect_metric("predicted_us", metrics.predicted_us, 1);
    const std::string all = "all_" + target_.devices.back().name + "_us";
    expect_metric(all.c_str(), metrics.all_on_last_us, 1);
    lines_ += "times: those of the plan\n";
    if (certificate_ == nullptr) return;
    bool all_on_last = true;
    for (const std::uint64_t devices : problem_.node_devices) {
      all_on_last = all_on_last && (devices >> (problem_.devices - 1) & 1U) != 0;
    }
    if (!all_on_last) {
      lines_ += "some nodes cannot be on " + target_.devices.back().name + "\n";
      return;
    }
    if (metrics.predicted_us > metrics.all_on_last_us + slack()) {
      error("/metrics/predicted_us", "more than on " + target_.devices.back().name + " alone");
    }
    lines_ += "not above " + target_.devices.back().name + " alone\n";
  }

  std::optional<std::int64_t> integer(const Json& json, const char* key,
                                      const std::string& pointer) {
    const Json* value = find_member(json, key);
    if (value != nullptr && value->is_number_integer() &&
        !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX)) {
      return value->get<std::int64_t>();
    }
    error(pointer + "/" + key, "expected an integer");
    return std::nullopt;
  }

  const Json* array(const Json& json, const char* key, const std::string& pointer) {
    const Json* value = find_member(json, key);
    if (value != nullptr && value->is_array()) return value;
    error(pointer + "/" + key, "expected an array");
    return nullptr;
  }

  // A row of names, then of integers.
  bool is_row(const Json& row, std::size_t names, std::size_t integers) {
    if (!row.is_array() || row.size() != names + integers) return false;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i < names ? !row[i].is_string() : !row[i].is_number_integer()) return false;
      // Larger than any price, yet sums stay far below 128 bits.
      if (i >= names &&
          (row[i].is_number_unsigned() ? row[i].get<std::uint64_t>() > (std::uint64_t{1} << 61)
                                       : std::abs(row[i].get<double>()) > 0x1p61)) {
        return false;
      }
    }
    return true;
  }

  std::int32_t item_named(const Json& name) const {
    const NodeId node = graph_.find_node(name.get_ref<const std::string&>());
    const auto found = item_by_node_.find(node.value);
    return found == item_by_node_.end() ? -1 : found->second;
  }

  bool read_bound(const Json& json, const std::string& pointer, CutCertificate& result) {
    const auto value = integer(json, "value", pointer);
    const Json* flows = array(json, "flows", pointer);
    if (!value || flows == nullptr) return false;
    result.value = *value;
    result.flow.assign(problem_.readers.size(), 0);
    std::vector<std::int32_t> entry_of(graph_.tensors().size(), -1);
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> place_of;  // by tensor and reader
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      const PlacementProblem::Tensor& tensor = problem_.tensors[t];
      entry_of[index_of(tensor.id)] = static_cast<std::int32_t>(t);
      for (std::int32_t r = tensor.begin; r < tensor.end; ++r) {
        place_of.emplace(std::pair{static_cast<std::int32_t>(t), problem_.readers[index_of(r)]},
                         index_of(r));
      }
    }
    for (std::size_t i = 0; i < flows->size(); ++i) {
      const Json& row = (*flows)[i];
      const std::string place = pointer + "/flows/" + std::to_string(i);
      if (!is_row(row, 2, 1)) return refuse(place, "expected [tensor, node, integer]");
      const TensorId id = graph_.find_tensor(row[0].get_ref<const std::string&>());
      const std::int32_t item = item_named(row[1]);
      const std::int32_t t = id.valid() ? entry_of[index_of(id.value)] : -1;
      if (t < 0 || item < 0) return refuse(place, "no tensor or node of this name moves");
      const auto found = place_of.find({t, item});
      if (found == place_of.end()) return refuse(place, "the node does not read the tensor");
      result.flow[found->second] = row[2].get<std::int64_t>();
    }
    const Json* paths = find_member(json, "paths");
    return paths == nullptr || read_paths(*paths, pointer + "/paths", result);
  }

  bool read_paths(const Json& json, const std::string& pointer, CutCertificate& result) {
    const FusedGraph& fused = problem_.fused;
    const auto count = integer(json, "count", pointer);
    const Json* starts = array(json, "starts", pointer);
    const Json* steps = array(json, "steps", pointer);
    if (!count || starts == nullptr || steps == nullptr) return false;
    if (*count < 1 || *count > 1'000'000) return refuse(pointer + "/count", "not in 1..1000000");
    result.paths = {*count, std::vector<std::int64_t>(fused.size(), 0),
                    std::vector<std::int64_t>(fused.targets.size(), 0)};
    result.launch_flow.assign(fused.targets.size(), 0);
    const auto fused_node_named = [&](const Json& name) {
      const NodeId node = graph_.find_node(name.get_ref<const std::string&>());
      return node.valid() ? fused.fused_node_of[index_of(node.value)] : -1;
    };
    for (std::size_t i = 0; i < starts->size(); ++i) {
      const Json& row = (*starts)[i];
      const std::string place = pointer + "/starts/" + std::to_string(i);
      if (!is_row(row, 1, 1)) return refuse(place, "expected [node, integer]");
      const std::int32_t fused_node = fused_node_named(row[0]);
      if (fused_node < 0) return refuse(place, "the graph has no node of this name");
      result.paths.starts[index_of(fused_node)] = row[1].get<std::int64_t>();
    }
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> arc_of;  // by both ends
    for (std::size_t u = 0; u < fused.size(); ++u) {
      for (auto a = index_of(fused.offsets[u]); a < index_of(fused.offsets[u + 1]); ++a) {
        arc_of.emplace(std::pair{static_cast<std::int32_t>(u), fused.targets[a]}, a);
      }
    }
    for (std::size_t i = 0; i < steps->size(); ++i) {
      const Json& row = (*steps)[i];
      const std::string place = pointer + "/steps/" + std::to_string(i);
      if (!is_row(row, 2, 2)) return refuse(place, "expected [node, node, integer, integer]");
      const std::int32_t from = fused_node_named(row[0]);
      const std::int32_t to = fused_node_named(row[1]);
      const auto arc = arc_of.find({from, to});
      if (arc == arc_of.end()) return refuse(place, "the second node reads nothing of the first");
      result.paths.arcs[arc->second] = row[2].get<std::int64_t>();
      result.launch_flow[arc->second] = row[3].get<std::int64_t>();
    }
    return true;
  }

  bool refuse(const std::string& pointer, std::string text) {
    error(pointer, std::move(text));
    return false;
  }

  // True if the certificate proves its value.
  bool check_proof(const Json& json, const std::string& pointer) {
    CutCertificate certificate;
    if (!read_bound(json, pointer, certificate)) return false;
    std::string fault;
    const std::int64_t bound = certified_bound(problem_, certificate, fault);
    if (bound == kNever) return refuse(pointer, fault);
    if (bound != certificate.value) {
      return refuse(pointer + "/value", "found " + std::to_string(certificate.value) +
                                            ", but the flows prove " + std::to_string(bound));
    }
    return true;
  }

  void check_bound() {
    const std::string pointer = "/certificate";
    const Json* ticks = find_member(*certificate_, "ticks_per_us");
    const auto bound = integer(*certificate_, "lower_bound", pointer);
    const Json* proof = find_member(*certificate_, "proof");
    if (!bound) return;
    if (ticks == nullptr || !ticks->is_number() || ticks->get<double>() != problem_.ticks_per_us) {
      error(pointer + "/ticks_per_us", "expected " + ticks_json(problem_).dump());
      return;
    }
    const Json* cut = find_member(*certificate_, "cut");
    if (cut != nullptr && check_proof(*cut, pointer + "/cut")) check_cut(*cut, pointer + "/cut");
    std::int64_t proved = kNever;
    if (proof != nullptr && *proof == "cut") {
      const Json* json = find_member(*certificate_, "bound");
      if (json == nullptr || !check_proof(*json, pointer + "/bound")) {
        if (json == nullptr) error(pointer + "/bound", "expected an object");
        return;
      }
      proved = json->at("value").get<std::int64_t>();
    } else if (proof != nullptr && *proof == "prices") {
      if (!check_prices(pointer, proved)) return;
    } else if (proof != nullptr && *proof == "exhaustive") {
      proved = solve_placement(problem_).bound_ticks;
    } else {
      error(pointer + "/proof", "expected \"cut\", \"prices\" or \"exhaustive\"");
      return;
    }
    if (*bound > proved) {
      error(pointer + "/lower_bound", "found " + std::to_string(*bound) + ", but only " +
                                          std::to_string(proved) + " is proved");
      return;
    }
    const double bound_us = problem_.microseconds(*bound);
    if (const auto value = metric("lower_bound_us"); value && *value > bound_us + slack()) {
      error("/metrics/lower_bound_us", "more than the certificate proves");
    }
    if (bound_us > predicted_ + slack()) {
      error(pointer + "/lower_bound", "above the time of the plan");
    }
    lines_ += "lower bound: " + proof->get<std::string>() + ", " + Json(bound_us).dump() +
              " us, plan " + Json(std::round(predicted_ * 1000) / 1000).dump() + " us\n";
  }

  bool check_prices(const std::string& pointer, std::int64_t& proved) {
    const Json* rows = array(*certificate_, "prices", pointer);
    if (rows == nullptr) return false;
    std::vector<std::int64_t> prices(problem_.items, 0);
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const Json& row = (*rows)[i];
      const std::int32_t item = is_row(row, 1, 1) ? item_named(row[0]) : -1;
      if (item < 0)
        return refuse(pointer + "/prices/" + std::to_string(i), "expected [node, integer]");
      prices[index_of(item)] = row[1].get<std::int64_t>();
    }
    proved =
        priced_bound(problem_, prices) +
        (problem_.items == 0 ? 0
                             : *std::min_element(problem_.launch.begin(), problem_.launch.end()));
    return true;
  }

  // The cut that the flow belongs to costs as much as the flow carries.
  void check_cut(const Json& cut, const std::string& pointer) {
    const Json* far = array(cut, "far", pointer);
    if (far == nullptr) return;
    Assignment assignment(problem_.items, 0);
    for (std::size_t i = 0; i < far->size(); ++i) {
      const std::int32_t item = (*far)[i].is_string() ? item_named((*far)[i]) : -1;
      if (item < 0) {
        error(pointer + "/far/" + std::to_string(i), "no such item");
        return;
      }
      assignment[index_of(item)] = 1;
    }
    const std::int64_t value = cut.at("value").get<std::int64_t>();
    const std::int64_t cost = placement_cost(problem_, assignment);
    if (cost != value) {
      error(pointer + "/value", "the flow carries " + std::to_string(value) +
                                    ", but the cut costs " + std::to_string(cost));
      return;
    }
    lines_ += "cut: flow and cut are both " + Json(problem_.microseconds(value)).dump() + " us\n";
  }

  const Graph& graph_;
  const CostModel& cost_;
  Diagnostics& diagnostics_;
  Target target_;
  PlacementProblem problem_;
  const Json* certificate_ = nullptr;
  std::unordered_map<std::int32_t, std::int32_t> item_by_node_;
  double predicted_ = 0;
  std::string lines_;
};

}  // namespace

Json certificate_to_json(const Graph& graph, const PlacementProblem& problem,
                         const Placement& placement) {
  Json json = {{"ticks_per_us", ticks_json(problem)}, {"lower_bound", placement.bound_ticks}};
  switch (placement.proof) {
    case BoundProof::kCut:
      json["proof"] = "cut";
      break;
    case BoundProof::kPrices:
      json["proof"] = "prices";
      break;
    case BoundProof::kExhaustive:
      json["proof"] = "exhaustive";
      break;
  }
  if (problem.devices == 2 && problem.items > 0) {
    Json cut = bound_to_json(graph, problem, placement.cut);
    Json far = Json::array();
    for (std::size_t i = 0; i < problem.items; ++i) {
      if (placement.cut_assignment[i] == 1) {
        far.push_back(item_name(graph, problem, static_cast<std::int32_t>(i)));
      }
    }
    cut["far"] = std::move(far);
    json["cut"] = std::move(cut);
  }
  if (placement.proof == BoundProof::kCut) {
    json["bound"] = problem.items == 0 ? Json{{"value", 0}, {"flows", Json::array()}}
                                       : bound_to_json(graph, problem, placement.bound);
  } else if (placement.proof == BoundProof::kPrices) {
    Json prices = Json::array();
    for (std::size_t i = 0; i < problem.items; ++i) {
      prices.push_back(
          {item_name(graph, problem, static_cast<std::int32_t>(i)), placement.prices[i]});
    }
    json["prices"] = std::move(prices);
  }
  return json;
}

std::string check_certificate(const Graph& graph, const CostModel& cost, Diagnostics& diagnostics) {
  return CertificateChecker(graph, cost, diagnostics).run();
}

}  // namespace npu
