// SPDX-License-Identifier: Apache-2.0
// The cost of a subgraph under a plan, from measured tables.
//
// A block is looked up as a whole where the table has it, since summing its stages overestimates a
// fused block several times. Sizes: a block computes its owned nodes (or all local ones where edges
// read its result) and the edges into them; a share of p % takes p % of both; static devices are
// looked up at the padded size. A transfer is charged to the end that is not the host, or to the
// receiver, as is what the change from one device to another takes besides. The split of a group is
// found by bisection over whole percents, since the time of each member grows with its share:
// O(devices log 100) estimates for two, O(log^2) for three.
#include "gnn/plan/costs/device_plan_costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "npu/support/ids.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

// The segment that makes a tensor; nothing if it comes from the host.
std::optional<std::size_t> segment_of(const DevicePlan& device_plan, std::int32_t producer) {
  for (std::size_t s = 0; s < device_plan.segments.size(); ++s) {
    const StageSegment& segment = device_plan.segments[s];
    if (producer >= segment.first && producer <= segment.last) return s;
  }
  return std::nullopt;
}

// A share of a device plan.
struct SharePlace {
  std::size_t segment = 0;
  std::size_t share = 0;
  auto operator<=>(const SharePlace&) const = default;
};

// Charges transfers to the shares of a device plan.
class TransferCosts {
 public:
  TransferCosts(const StageTable& profile, const std::string& host, const DevicePlan& device_plan,
                DevicePlanCost& cost)
      : profile_(profile), host_(host), plan_(device_plan), cost_(cost) {}

  void from_host(const SharePlace& to, double bytes) {
    charge(to, profile_.transfer_ms(host_, name(to), bytes));
  }
  void to_host(const SharePlace& from, double bytes) {
    charge(from, profile_.transfer_ms(name(from), host_, bytes));
  }
  // What one share reads of the results of a segment: of each of its shares as much as that makes.
  void pass_on(std::size_t from_segment, const SharePlace& to, double bytes) {
    for (std::size_t j = 0; j < plan_.segments[from_segment].shares.size(); ++j) {
      const SharePlace from{from_segment, j};
      const double sent = bytes * at(from).percent / 100.0;
      const double ms = profile_.transfer_ms(name(from), name(to), sent);
      if (at(from).device != at(to).device) crossing_[{from, to}] += sent;
      charge(name(to) == host_ ? from : to, ms);
    }
  }
  // What changing from one device to another takes besides, by all bytes that go between two
  // shares.
  void add_handovers() {
    for (const auto& [places, bytes] : crossing_) {
      const auto& [from, to] = places;
      charge(to, profile_.handover_ms(name(from), name(to), bytes));
    }
  }

 private:
  const GroupShare& at(const SharePlace& place) const {
    return plan_.segments[place.segment].shares[place.share];
  }
  const std::string& name(const SharePlace& place) const {
    return profile_.devices[index_of(at(place).device)].name;
  }
  void charge(const SharePlace& to, double ms) {
    cost_.share_ms[to.segment][to.share] += ms;
    cost_.transfer_ms += ms;
  }

  const StageTable& profile_;
  const std::string& host_;
  const DevicePlan& plan_;
  DevicePlanCost& cost_;
  std::map<std::pair<SharePlace, SharePlace>, double> crossing_;  // bytes
};

// The times of devices, resources and the subgraph from those of its shares: devices that share a
// resource take turns.
void add_up(const DevicePlan& device_plan, const DevicePlanCosts& costs, DevicePlanCost& cost) {
  for (std::size_t s = 0; s < device_plan.segments.size(); ++s) {
    std::vector<double> segment_ms(index_of(costs.resource_count()), 0);
    for (std::size_t i = 0; i < device_plan.segments[s].shares.size(); ++i) {
      const std::int32_t device = device_plan.segments[s].shares[i].device;
      const std::size_t resource = index_of(costs.resource_of(device));
      cost.device_ms[index_of(device)] += cost.share_ms[s][i];
      cost.resource_ms[resource] += cost.share_ms[s][i];
      segment_ms[resource] += cost.share_ms[s][i];
    }
    cost.latency_ms += *std::max_element(segment_ms.begin(), segment_ms.end());
  }
}

}  // namespace

DevicePlanCosts::DevicePlanCosts(const StageTable& profile, const PlanLayer& layer,
                                 const CostSettings& settings)
    : profile_(profile), layer_(layer), settings_(settings) {
  for (const ProfileDevice& device : profile.devices) {
    const auto found = std::find(resource_names_.begin(), resource_names_.end(), device.resource);
    resources_.push_back(static_cast<std::int32_t>(found - resource_names_.begin()));
    if (found == resource_names_.end()) resource_names_.push_back(device.resource);
  }
}

std::string DevicePlanCosts::structure_refusal(const DevicePlan& structure) const {
  for (const StageSegment& segment : structure.segments) {
    for (const GroupShare& share : segment.shares) {
      const std::string& name = profile_.devices[index_of(share.device)].name;
      for (std::int32_t s = segment.first; s <= segment.last; ++s) {
        const std::string& refusal = layer_.refusals[index_of(share.device)][index_of(s - 1)];
        if (refusal.empty()) continue;
        return name + " does not run stage " + std::to_string(s) + " (" +
               layer_.stage_names[index_of(s - 1)] + "): " + refusal;
      }
      if (!profile_.time_ms(share.device, layer_.number, segment.first, segment.last, 1000, 5000)
               .known) {
        return "the profile has no times of " + name + " for stages " +
               std::to_string(segment.first) + "-" + std::to_string(segment.last);
      }
    }
  }
  return {};
}

DevicePlanCosts::WorkSize DevicePlanCosts::work_size(std::int32_t device, std::int32_t first,
                                                     std::int32_t last,
                                                     const SubgraphSize& subgraph,
                                                     std::int32_t percent) const {
  bool local = layer_.info != nullptr;
  for (std::int32_t s = first; s <= last && local; ++s) {
    local = layer_.info->stages[index_of(s - 1)].local_rows;
  }
  const double ratio = percent / 100.0;
  WorkSize size;
  size.n = std::max(1.0, ratio * static_cast<double>(local ? subgraph.n : subgraph.owned()));
  size.m = ratio * static_cast<double>(subgraph.m);
  if (profile_.devices[index_of(device)].is_static) {
    const auto pad = static_cast<double>(settings_.pad);
    size.n = std::ceil(size.n / pad) * pad;
    size.m = std::max(1.0, std::ceil(size.m / pad)) * pad;
  }
  return size;
}

Estimate DevicePlanCosts::block_ms(std::int32_t device, std::int32_t first, std::int32_t last,
                                   const SubgraphSize& subgraph, std::int32_t percent) const {
  const WorkSize size = work_size(device, first, last, subgraph, percent);
  if (settings_.whole_graph && percent == 100) {
    return profile_.whole_ms(device, layer_.number, first, last, size.n, size.m,
                             settings_.interpolation);
  }
  if (profile_.has_halo_times()) return part_ms(device, first, last, subgraph, percent);
  return profile_.time_ms(device, layer_.number, first, last, size.n, size.m,
                          settings_.interpolation);
}

// Of owned nodes with their edges, and of the halo that these read.
Estimate DevicePlanCosts::part_ms(std::int32_t device, std::int32_t first, std::int32_t last,
                                  const SubgraphSize& subgraph, std::int32_t percent) const {
  const double ratio = percent / 100.0;
  const double owned = ratio * static_cast<double>(subgraph.owned());
  double edges = ratio * static_cast<double>(subgraph.m);
  // A share of the owned nodes reads at most one source an edge, and never more than there are.
  double local = std::min(static_cast<double>(subgraph.n), owned + edges);
  double nodes = std::max(1.0, owned);
  if (profile_.devices[index_of(device)].is_static) {
    const auto pad = static_cast<double>(settings_.pad);
    const auto padded = [&](double value) { return std::max(1.0, std::ceil(value / pad)) * pad; };
    nodes = padded(nodes);
    local = padded(local);
    edges = padded(edges);
  }
  return profile_.halo_ms(device, layer_.number, first, last, nodes, edges,
                          std::max(0.0, local - nodes), settings_.interpolation);
}

double DevicePlanCosts::tensor_bytes(const StageTensor& tensor, const SubgraphSize& subgraph,
                                     double ratio) const {
  const auto owned = static_cast<double>(subgraph.owned());
  const auto edges = static_cast<double>(subgraph.m);
  double rows = ratio * owned;
  // A share of the owned nodes reads at most one source an edge, and never more than there are.
  if (tensor.local_rows) {
    rows = std::min(static_cast<double>(subgraph.n), ratio * owned + ratio * edges);
  }
  return tensor.node_bytes * rows + tensor.edge_bytes * ratio * edges + tensor.fixed_bytes;
}

// Time of a share with transfers from and to the host, as an estimate of those between segments.
double DevicePlanCosts::split_time(std::int32_t device, const StageSegment& segment,
                                   const SubgraphSize& subgraph, std::int32_t percent) const {
  double ms = block_ms(device, segment.first, segment.last, subgraph, percent).value;
  if (!settings_.transfers || layer_.info == nullptr) return ms;
  const std::string& name = profile_.devices[index_of(device)].name;
  for (const StageTensor& tensor : layer_.info->tensors) {
    const bool reads =
        tensor.producer < segment.first && tensor.is_read_in(segment.first, segment.last);
    const bool makes = tensor.is_made_in(segment.first, segment.last) &&
                       !tensor.consumers.empty() && tensor.consumers.back() > segment.last;
    if (!reads && !makes) continue;
    const double bytes = tensor_bytes(tensor, subgraph, percent / 100.0);
    ms += reads ? profile_.transfer_ms(settings_.host, name, bytes)
                : profile_.transfer_ms(name, settings_.host, bytes);
  }
  return ms;
}

// Splits `percent` over the first `count` shares; returns the time of the slowest.
double DevicePlanCosts::best_split(const StageSegment& segment, const SubgraphSize& subgraph,
                                   std::size_t count, std::int32_t percent,
                                   std::vector<std::int32_t>& split) const {
  if (count == 1) {
    split[0] = percent;
    return percent == 0 ? 0 : split_time(segment.shares[0].device, segment, subgraph, percent);
  }
  const std::int32_t device = segment.shares[count - 1].device;
  const auto mine = [&](std::int32_t p) {
    return p == 0 ? 0 : split_time(device, segment, subgraph, p);
  };
  // The share of the last device grows until it is the slowest.
  std::int32_t low = 0;
  std::int32_t high = percent;
  while (low < high) {
    const std::int32_t middle = (low + high) / 2;
    if (mine(middle) < best_split(segment, subgraph, count - 1, percent - middle, split)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  double best = 0;
  std::int32_t best_share = -1;
  for (const std::int32_t p : {low - 1, low}) {
    if (p < 0 || p > percent) continue;
    const double time =
        std::max(mine(p), best_split(segment, subgraph, count - 1, percent - p, split));
    if (best_share < 0 || time < best) {
      best = time;
      best_share = p;
    }
  }
  best_split(segment, subgraph, count - 1, percent - best_share, split);
  split[count - 1] = best_share;
  return best;
}

SubgraphSize DevicePlanCosts::as_read(const DevicePlan& device_plan,
                                      const SubgraphSize& subgraph) const {
  SubgraphSize size = subgraph;
  if (subgraph.saved == 0 || layer_.info == nullptr) return size;
  const auto crosses = [&](const StageSegment& segment) {
    return layer_.info->reads_other_parts(segment.first, segment.last) &&
           std::any_of(segment.shares.begin(), segment.shares.end(), [&](const GroupShare& share) {
             return profile_.devices[index_of(share.device)].name != settings_.host;
           });
  };
  if (std::none_of(device_plan.segments.begin(), device_plan.segments.end(), crosses)) return size;
  size.n -= size.saved;
  size.halo -= size.saved;
  return size;
}

std::vector<DevicePlan> DevicePlanCosts::with_ratios(const DevicePlan& structure,
                                                     const SubgraphSize& whole) const {
  const SubgraphSize subgraph = as_read(structure, whole);
  std::vector<DevicePlan> result{structure};
  for (std::size_t s = 0; s < structure.segments.size(); ++s) {
    const StageSegment& segment = structure.segments[s];
    if (segment.shares.size() == 1) continue;
    std::vector<std::vector<std::int32_t>> splits;
    if (settings_.ratios.empty()) {
      std::vector<std::int32_t> split(segment.shares.size(), 0);
      best_split(segment, subgraph, segment.shares.size(), 100, split);
      if (std::find(split.begin(), split.end(), 0) == split.end()) splits.push_back(split);
      // The fastest split of one block is not what balances all of them: pairs get coarse steps,
      // too.
      for (std::int32_t percent = 10; segment.shares.size() == 2 && percent < 100; percent += 10) {
        const std::vector<std::int32_t> step{percent, 100 - percent};
        if (splits.empty() || splits.front() != step) splits.push_back(step);
      }
    } else {
      // Every tuple of the list whose rest goes to the last device; two devices take any ratio.
      std::vector<std::int32_t> split(segment.shares.size(), 0);
      const auto extend = [&](const auto& self, std::size_t i, std::int32_t left) -> void {
        if (i + 1 == split.size()) {
          if (left <= 0) return;
          split[i] = left;
          if (std::find(splits.begin(), splits.end(), split) == splits.end()) {
            splits.push_back(split);
          }
          return;
        }
        for (const double ratio : settings_.ratios) {
          split[i] = static_cast<std::int32_t>(std::lround(ratio * 100));
          if (split[i] > 0 && split[i] < left) self(self, i + 1, left - split[i]);
        }
      };
      extend(extend, 0, 100);
    }
    std::vector<DevicePlan> extended;
    for (const DevicePlan& device_plan : result) {
      for (const auto& split : splits) {
        DevicePlan next = device_plan;
        for (std::size_t i = 0; i < split.size(); ++i) {
          next.segments[s].shares[i].percent = split[i];
        }
        extended.push_back(std::move(next));
      }
    }
    result = std::move(extended);
  }
  return result;
}

std::string DevicePlanCosts::memory_refusal(std::int32_t device, const StageSegment& segment,
                                            const SubgraphSize& subgraph,
                                            std::int32_t percent) const {
  const ProfileDevice& info = profile_.devices[index_of(device)];
  if (info.memory_bytes <= 0) return {};
  const WorkSize size = work_size(device, segment.first, segment.last, subgraph, percent);
  double bytes =
      profile_.peak_bytes(device, layer_.number, segment.first, segment.last, size.n, size.m).value;
  if (layer_.info != nullptr) {
    // Halo rows are read as well, of which the table knows nothing; where the table states no
    // memory, all inputs, outputs and intermediate results count as live at the same time.
    double estimate = 0;
    double halo = 0;
    for (const StageTensor& tensor : layer_.info->tensors) {
      if (!tensor.is_made_in(segment.first, segment.last) &&
          !tensor.is_read_in(segment.first, segment.last)) {
        continue;
      }
      const double tensor_size = tensor_bytes(tensor, subgraph, percent / 100.0);
      estimate += tensor_size;
      if (tensor.local_rows) {
        halo += std::max(0.0, tensor_size - tensor.node_bytes * size.n);
      }
    }
    for (std::int32_t s = segment.first; s <= segment.last; ++s) {
      estimate += layer_.info->stages[index_of(s - 1)].weight_bytes;
    }
    bytes = bytes > 0 ? bytes + halo : estimate;
  }
  if (bytes <= info.memory_bytes) return {};
  return info.name + "[" + std::to_string(segment.first) + "-" + std::to_string(segment.last) +
         "] needs " + bytes_text(bytes) + " of " + bytes_text(info.memory_bytes);
}

DevicePlanCost DevicePlanCosts::cost(const DevicePlan& device_plan,
                                     const SubgraphSize& whole) const {
  const SubgraphSize subgraph = as_read(device_plan, whole);
  DevicePlanCost cost;
  cost.device_ms.assign(profile_.devices.size(), 0);
  cost.resource_ms.assign(resource_names_.size(), 0);
  for (const StageSegment& segment : device_plan.segments) {
    auto& row = cost.share_ms.emplace_back();
    for (const GroupShare& share : segment.shares) {
      const Estimate estimate =
          block_ms(share.device, segment.first, segment.last, subgraph, share.percent);
      cost.extrapolated = cost.extrapolated || estimate.extrapolated;
      cost.disturbed = cost.disturbed || estimate.disturbed;
      cost.compute_ms += estimate.value;
      if (estimate.disturbed) cost.disturbed_ms += estimate.value;
      row.push_back(estimate.value);
      if (cost.refusal.empty()) {
        cost.refusal = memory_refusal(share.device, segment, subgraph, share.percent);
      }
    }
  }
  if (settings_.transfers && layer_.info != nullptr) add_transfers(device_plan, subgraph, cost);
  add_up(device_plan, *this, cost);
  return cost;
}

// Adds up in the order of tensors, segments and shares: times are the same in every run.
void DevicePlanCosts::add_transfers(const DevicePlan& device_plan, const SubgraphSize& subgraph,
                                    DevicePlanCost& cost) const {
  TransferCosts transfers(profile_, settings_.host, device_plan, cost);
  for (const StageTensor& tensor : layer_.info->tensors) {
    const std::optional<std::size_t> source = segment_of(device_plan, tensor.producer);
    for (std::size_t s = 0; s < device_plan.segments.size(); ++s) {
      const StageSegment& segment = device_plan.segments[s];
      if (source == s || !tensor.is_read_in(segment.first, segment.last)) continue;
      for (std::size_t i = 0; i < segment.shares.size(); ++i) {
        const double bytes = tensor_bytes(tensor, subgraph, segment.shares[i].percent / 100.0);
        if (source) {
          transfers.pass_on(*source, {s, i}, bytes);
        } else {
          transfers.from_host({s, i}, bytes);
        }
      }
    }
    const bool leaves = !tensor.consumers.empty() && tensor.consumers.back() > layer_.stage_count;
    if (!leaves || !source) continue;
    const StageSegment& from = device_plan.segments[*source];
    for (std::size_t j = 0; j < from.shares.size(); ++j) {
      transfers.to_host({*source, j},
                        tensor_bytes(tensor, subgraph, from.shares[j].percent / 100.0));
    }
  }
  transfers.add_handovers();
}

std::vector<std::string> DevicePlanCosts::static_programs(const DevicePlan& device_plan,
                                                          const SubgraphSize& whole) const {
  const SubgraphSize subgraph = as_read(device_plan, whole);
  std::vector<std::string> programs;
  for (const StageSegment& segment : device_plan.segments) {
    for (const GroupShare& share : segment.shares) {
      const ProfileDevice& device = profile_.devices[index_of(share.device)];
      if (!device.is_static) continue;
      const WorkSize size =
          work_size(share.device, segment.first, segment.last, subgraph, share.percent);
      programs.push_back(device.name + "[" + std::to_string(segment.first) + "-" +
                         std::to_string(segment.last) + "]@" +
                         std::to_string(static_cast<std::int64_t>(size.n)) + "x" +
                         std::to_string(static_cast<std::int64_t>(size.m)));
    }
  }
  return programs;
}

double DevicePlanCosts::compile_ms(const DevicePlan& device_plan) const {
  double ms = 0;
  for (const StageSegment& segment : device_plan.segments) {
    for (const GroupShare& share : segment.shares) {
      if (!profile_.devices[index_of(share.device)].is_static) continue;
      ms = std::max(ms,
                    profile_.compile_ms(share.device, layer_.number, segment.first, segment.last));
    }
  }
  return ms;
}

std::string no_structure_reason(const DevicePlanCosts& costs, const PlanLayer& layer,
                                const StageTable& profile) {
  std::string text = "layer " + std::to_string(layer.number) + " has no legal plan";
  std::string separator = ": ";
  for (std::size_t d = 0; d < profile.devices.size(); ++d) {
    StageSegment segment{1, layer.stage_count, {{static_cast<std::int32_t>(d), 100}}};
    const std::string refusal = costs.structure_refusal(DevicePlan{{std::move(segment)}});
    if (refusal.empty()) continue;
    text += separator + refusal;
    separator = "; ";
  }
  return text;
}

std::vector<PlanCandidate> plan_candidates(const DevicePlanCosts& costs,
                                           const std::vector<DevicePlan>& structures,
                                           const SubgraphSize& subgraph,
                                           std::vector<std::string>* refusals) {
  std::vector<PlanCandidate> candidates;
  for (const DevicePlan& structure : structures) {
    for (DevicePlan& device_plan : costs.with_ratios(structure, subgraph)) {
      DevicePlanCost cost = costs.cost(device_plan, subgraph);
      if (cost.refusal.empty()) {
        candidates.push_back({std::move(device_plan), std::move(cost)});
      } else if (refusals != nullptr) {
        refusals->push_back(cost.refusal);
      }
    }
  }
  return candidates;
}

std::vector<DevicePlan> legal_structures(const DevicePlanCosts& costs, const PlanLayer& layer,
                                         std::int32_t device_count, std::int32_t max_segments) {
  std::vector<DevicePlan> legal =
      enumerate_device_plans(layer.stage_count, device_count, max_segments);
  std::erase_if(legal, [&](const DevicePlan& device_plan) {
    return !costs.structure_refusal(device_plan).empty();
  });
  return legal;
}

}  // namespace npu::gnn
