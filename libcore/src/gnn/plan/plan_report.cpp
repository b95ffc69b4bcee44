// SPDX-License-Identifier: Apache-2.0
// Plans for people: tables, a drawing and a trace of the simulated schedule. Nothing is recomputed.
// O(size of the plan).
#include "gnn/plan/plan_report.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "gnn/graph/edge_rows.hpp"
#include "support/chrome_trace.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

std::string ms_text(double value) { return fixed_text(value, 3); }
std::string percent_text(double value) { return fixed_text(100 * value, 2) + " %"; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : short_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::vector<std::string> devices_of(const GnnPlan& plan) {
  std::vector<std::string> names;
  for (const PlanDevice& device : plan.devices) names.push_back(device.name);
  return names;
}

// Every layer's search for the smallest largest load came to its end.
bool selection_is_proven(const GnnPlan& plan) {
  return std::all_of(plan.proof.layers.begin(), plan.proof.layers.end(),
                     [](const LayerProof& proof) { return proof.search_finished; });
}

constexpr std::ptrdiff_t kRanksColumn = 5;  // of the table over k, if there are ranks

std::string sweep_table(const GnnPlan& plan) {
  std::vector<std::vector<std::string>> rows{
      {">k", ">edge cut", ">halo", ">pad", ">makespan ms", ">bound ms", ">gap", "best alone"}};
  const bool has_ranks = plan.choice.ranks.has_value();
  if (has_ranks) rows.front().insert(rows.front().begin() + kRanksColumn, ">of ranks ms");
  const auto add = [&](std::vector<std::string> row, const std::string& of_ranks) {
    if (has_ranks) row.insert(row.begin() + kRanksColumn, of_ranks);
    rows.push_back(std::move(row));
  };
  for (const SweepRow& row : plan.search.sweep) {
    const std::string k = std::to_string(row.k) + (row.k == plan.choice.k ? " *" : "");
    const std::string cut = std::to_string(row.edge_cut);
    const std::string halo = std::to_string(row.halo);
    if (!row.infeasible.empty()) {
      add({k, cut, halo, "", "", "", "", row.infeasible}, "");
      continue;
    }
    std::string best;
    double best_ms = 0;
    for (const auto& [name, ms] : row.single_device_ms) {
      if (!best.empty() && ms >= best_ms) continue;
      best = name;
      best_ms = ms;
    }
    if (!best.empty()) best += " " + ms_text(best_ms) + " ms";
    if (!row.passed_over.empty()) best += "; passed over: " + row.passed_over;
    add({k, cut, halo, std::to_string(row.pad), ms_text(row.makespan_ms),
         ms_text(row.lower_bound_ms), percent_text(row.gap), best},
        row.ranks_makespan_ms ? ms_text(*row.ranks_makespan_ms) : "");
  }
  return table_text(rows);
}

// How the parts were found, where METIS did not cut the graph itself.
std::string cut_text(const GnnPlan& plan) {
  if (plan.choice.partition && plan.choice.partition->processes > 0) {
    return "parts by " + plan.choice.partition->partitioner + " in " +
           count_text(plan.choice.partition->processes, "process", "processes") + "\n";
  }
  if (!plan.choice.partition || plan.choice.partition->levels == 0) return {};
  return "parts by multilevel partitioning: " + std::to_string(plan.choice.partition->levels) +
         (plan.choice.partition->levels == 1 ? " level" : " levels") +
         ", METIS on the coarsest of " + std::to_string(plan.choice.partition->coarsest_nodes) +
         " nodes\n";
}

std::string loads_table(const GnnPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"device", ">load ms", "share of the makespan"}};
  for (const auto& [name, load] : plan.predicted.loads_ms) {
    rows.push_back(
        {name, ms_text(load),
         plan.predicted.makespan_ms > 0 ? percent_text(load / plan.predicted.makespan_ms) : "-"});
  }
  return table_text(rows);
}

std::string device_plans_table(const GnnPlan& plan) {
  // A device plan may have several clusters.
  std::vector<std::size_t> subgraphs(plan.choice.device_plans.size(), 0);
  for (const PlanCluster& cluster : plan.choice.clusters) {
    subgraphs.at(static_cast<std::size_t>(cluster.device_plan)) += cluster.subgraphs.size();
  }
  std::vector<std::vector<std::string>> rows{{">subgraphs", ">layer", "plan"}};
  for (std::size_t p = 0; p < subgraphs.size(); ++p) {
    const PlannedStages& device_plan = plan.choice.device_plans[p];
    rows.push_back(
        {std::to_string(subgraphs[p]), std::to_string(device_plan.layer), device_plan.key});
  }
  return table_text(rows);
}

std::string classes_table(const GnnPlan& plan) {
  std::map<std::string, std::int64_t> reasons;
  for (const RejectedPlan& rejected : plan.search.rejected) ++reasons[rejected.reason];
  std::vector<std::vector<std::string>> rows{{">classes", "legal or why not"}};
  rows.push_back({std::to_string(plan.search.legal_classes), "legal"});
  for (const auto& [reason, count] : reasons) rows.push_back({std::to_string(count), reason});
  return table_text(rows);
}

// What switching takes, and would take without clusters.
std::string switches_text(const GnnPlan& plan) {
  if (!plan.switches_cost()) return {};
  std::string text = "a switch takes";
  for (const PlanDevice& device : plan.devices) {
    text += (&device == &plan.devices.front() ? " " : ", ") + ms_text(device.switch_ms) +
            " ms on " + device.name;
  }
  return text + "; all of them " + ms_text(plan.predicted.switching_ms) +
         " ms; with a switch before every subgraph the makespan is " +
         ms_text(plan.predicted.ungrouped_ms) + " ms: grouping saves " +
         ms_text(plan.predicted.ungrouped_ms - plan.predicted.makespan_ms) + " ms\n";
}

std::string ranks_text(const RankPlan& plan) {
  std::vector<std::vector<std::string>> ranks{
      {">rank", ">parts", ">nodes", ">edges", ">rows in", ">rows out", ">memory", ">compute ms"}};
  for (const PlannedRank& rank : plan.ranks) {
    const bool streams = plan.streams(ranks.size() - 1);
    ranks.push_back(
        {std::to_string(ranks.size() - 1), std::to_string(rank.parts.size()),
         std::to_string(rank.nodes), std::to_string(rank.edges), std::to_string(rank.rows_in),
         std::to_string(rank.rows_out),
         streams ? bytes_text(static_cast<double>(rank.streamed_bytes)) + " of " +
                       bytes_text(static_cast<double>(rank.memory_bytes))
                 : bytes_text(static_cast<double>(rank.memory_bytes)),
         ms_text(std::accumulate(rank.compute_ms.begin(), rank.compute_ms.end(), 0.0))});
  }
  const double bytes_of_row =
      plan.rows() > 0 ? static_cast<double>(plan.bytes()) / static_cast<double>(plan.rows()) : 0;
  std::vector<std::vector<std::string>> pairs{
      {">from", ">to", ">edges", ">halo", ">rows", ">of them sums", ">bytes"}};
  for (const RankPair& pair : plan.pairs) {
    const auto sums = std::count_if(pair.cover.begin(), pair.cover.end(),
                                    [](const CrossingRow& row) { return row.is_sum; });
    pairs.push_back({std::to_string(pair.from), std::to_string(pair.to), std::to_string(pair.edges),
                     std::to_string(pair.sources), std::to_string(pair.rows), std::to_string(sums),
                     bytes_text(bytes_of_row * static_cast<double>(pair.rows))});
  }
  std::string text =
      "\n" + table_text(ranks) + "makespan of all ranks " + ms_text(plan.makespan_ms()) + " ms, " +
      (plan.exchange_ms.empty() ? "without exchanges: give --links or --rank-bandwidth"
                                : "exchanges included") +
      "\n";
  if (plan.pairs.empty()) return text;
  text += "\n" + table_text(pairs) + std::to_string(plan.rows()) + " of " +
          std::to_string(plan.halo()) + " halo rows cross before every layer" +
          (plan.sums ? ", proven to be the fewest; " : "; ") +
          bytes_text(static_cast<double>(plan.bytes())) + " in all layers\n";
  if (plan.knows_links()) {
    text += "predicted for the exchange:";
    for (std::size_t l = 0; l < plan.exchange_ms.size(); ++l) {
      text += (l == 0 ? " " : ", ") + ms_text(plan.exchange_ms[l]);
    }
    text += " ms before the layers, ";
    text += plan.link ? "at " + bytes_text(static_cast<double>(plan.link->bytes_per_second)) +
                            "/s and " + fixed_text(plan.link->latency_us, 1) + " us a message\n"
                      : "by measured links\n";
  }
  if (!plan.features_because.empty()) {
    text += "only features cross: " + plan.features_because + "\n";
  }
  return text;
}

}  // namespace

namespace {

LayerCrossing all_layers(const DeviceExchange& exchange) {
  LayerCrossing all;
  for (const LayerCrossing& layer : exchange.layers) {
    all.rows += layer.rows;
    all.halo += layer.halo;
    all.bytes += layer.bytes;
  }
  return all;
}

std::string exchange_text(const DeviceExchange& exchange) {
  const LayerCrossing all = all_layers(exchange);
  std::vector<std::vector<std::string>> rows{
      {">part", ">edges", ">halo", ">rows", ">of them sums"}};
  for (const PartCover& part : exchange.parts) {
    const auto sums = std::count_if(part.cover.begin(), part.cover.end(),
                                    [](const CrossingRow& row) { return row.is_sum; });
    rows.push_back({std::to_string(part.part), std::to_string(part.edges),
                    std::to_string(part.sources), std::to_string(part.rows), std::to_string(sums)});
  }
  return "\n" + table_text(rows) + std::to_string(all.rows) + " of " + std::to_string(all.halo) +
         " halo rows cross from " + exchange.host +
         " to the other devices in all layers, the fewest and a row of zeros for each part: " +
         bytes_text(static_cast<double>(all.bytes)) + "\n";
}

}  // namespace

std::map<std::string, double> plan_metrics(const GnnPlan& plan) {
  std::map<std::string, double> metrics;
  const Json document = to_json(plan);
  for (const auto& [key, value] : document.items()) {
    if (value.is_number()) metrics[key] = value.get<double>();
  }
  for (const auto& [device, load] : plan.predicted.loads_ms) metrics["load_ms_" + device] = load;
  metrics["compiles"] = static_cast<double>(plan.predicted.program_count);
  if (plan.choice.ranks) {
    metrics["ranks"] = static_cast<double>(plan.choice.ranks->ranks.size());
    metrics["exchange_rows"] = static_cast<double>(plan.choice.ranks->rows());
    if (plan.choice.ranks->knows_links()) {
      metrics["exchange_ms"] = std::accumulate(plan.choice.ranks->exchange_ms.begin(),
                                               plan.choice.ranks->exchange_ms.end(), 0.0);
    }
    metrics["exchange_bytes"] = static_cast<double>(plan.choice.ranks->bytes());
    metrics["halo_rows"] = static_cast<double>(plan.choice.ranks->halo());
    metrics["ranks_makespan_ms"] = plan.choice.ranks->makespan_ms();
  }
  if (plan.choice.exchange) {
    const LayerCrossing all = all_layers(*plan.choice.exchange);
    metrics["exchange_rows"] = static_cast<double>(all.rows);
    metrics["exchange_bytes"] = static_cast<double>(all.bytes);
    metrics["halo_rows"] = static_cast<double>(all.halo);
  }
  return metrics;
}

std::string format_plan_report(const GnnPlan& plan) {
  std::string text = sweep_table(plan) + cut_text(plan) + "\n" + loads_table(plan) + "\n" +
                     device_plans_table(plan) + "\n" + classes_table(plan) + "\n";
  text += "makespan " + ms_text(plan.predicted.makespan_ms) + " ms, at least " +
          ms_text(plan.proof.lower_bound_ms) + " ms (gap " + percent_text(plan.proof.gap) +
          "); largest load " + ms_text(plan.predicted.max_load_ms) + " ms, at least " +
          ms_text(plan.proof.load_bound_ms) + " ms (gap " + percent_text(plan.proof.load_gap) +
          ")\n";
  text += "least largest load found: " + ms_text(plan.proof.least_load_ms) + " ms (gap " +
          percent_text(plan.proof.least_load_gap) +
          (selection_is_proven(plan) ? ", proven optimal)\n" : ")\n");
  if (const auto& single = plan.predicted.best_single_device) {
    text += "best single device: " + single->device + " " + ms_text(single->ms) +
            " ms at k = " + std::to_string(single->k) + "; speed-up " +
            fixed_text(plan.predicted.speedup, 2) + "\n";
  }
  text += std::to_string(plan.predicted.program_count) + " static programs to compile (" +
          ms_text(plan.predicted.compile_ms) + " ms), " +
          std::to_string(plan.predicted.plan_switches) + " plan switches, " +
          std::to_string(plan.predicted.extrapolated) + " estimates outside the measured range\n";
  text += switches_text(plan);
  for (const std::string& reason : plan.predicted.uncertain) text += "uncertain: " + reason + "\n";
  if (plan.choice.ranks) text += ranks_text(*plan.choice.ranks);
  if (plan.choice.exchange) text += exchange_text(*plan.choice.exchange);
  return text;
}

std::string gantt_svg(const PlanResult& result) {
  const std::vector<std::string> devices = devices_of(result.plan);
  double makespan = 0;
  for (const ScheduledTask& task : result.schedule) makespan = std::max(makespan, task.end_ms);
  constexpr double kLeft = 80;
  constexpr double kWidth = 1000;
  constexpr double kRow = 36;
  const double scale = makespan > 0 ? kWidth / makespan : 0;
  const double height = 40 + kRow * static_cast<double>(devices.size()) + 24;
  const auto number = [](double value) { return fixed_text(value, 2); };
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    number(kLeft + kWidth + 20) + "\" height=\"" + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  svg += "<text x=\"8\" y=\"18\">k = " + std::to_string(result.plan.choice.k) + ", makespan " +
         number(makespan) + " ms, bound " + number(result.plan.proof.lower_bound_ms) +
         " ms</text>\n";
  static constexpr const char* kColors[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1",
                                            "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#bab0ac"};
  std::map<std::string, std::size_t> color_of;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const double y = 30 + kRow * static_cast<double>(d);
    svg += "<text x=\"8\" y=\"" + number(y + 20) + "\">" + escaped(devices[d]) + "</text>\n";
    svg += "<line x1=\"" + number(kLeft) + "\" y1=\"" + number(y + kRow - 3) + "\" x2=\"" +
           number(kLeft + kWidth) + "\" y2=\"" + number(y + kRow - 3) + "\" stroke=\"#ddd\"/>\n";
  }
  for (const ScheduledTask& task : result.schedule) {
    const auto device = static_cast<double>(std::find(devices.begin(), devices.end(), task.device) -
                                            devices.begin());
    const std::size_t color = color_of.emplace(task.device_plan, color_of.size()).first->second;
    svg += "<rect x=\"" + number(kLeft + task.start_ms * scale) + "\" y=\"" +
           number(30 + kRow * device + 2) + "\" width=\"" +
           number(std::max(0.5, (task.end_ms - task.start_ms) * scale)) +
           "\" height=\"28\" fill=\"" + kColors[color % 10] +
           "\" stroke=\"white\" stroke-width=\"0.5\"><title>layer " + std::to_string(task.layer) +
           ", subgraph " + std::to_string(task.subgraph) + " " + escaped(task.block) + ": " +
           number(task.start_ms) + " - " + number(task.end_ms) + " ms, " +
           escaped(task.device_plan) + "</title></rect>\n";
  }
  const double axis = 30 + kRow * static_cast<double>(devices.size()) + 14;
  for (int tick = 0; tick <= 10; ++tick) {
    svg += "<text x=\"" + number(kLeft + kWidth * tick / 10) + "\" y=\"" + number(axis) +
           "\" text-anchor=\"middle\">" + number(makespan * tick / 10) + "</text>\n";
  }
  return svg + "</svg>\n";
}

std::string schedule_trace(const PlanResult& result) {
  const std::vector<std::string> devices = devices_of(result.plan);
  ChromeTrace trace;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    trace.name_track(static_cast<int>(d) + 1, devices[d]);
  }
  for (const ScheduledTask& task : result.schedule) {
    const auto device = std::find(devices.begin(), devices.end(), task.device) - devices.begin();
    trace.slice(static_cast<int>(device) + 1,
                "subgraph " + std::to_string(task.subgraph) + " " + task.block, "predicted",
                task.start_ms * 1000, (task.end_ms - task.start_ms) * 1000,
                {{"layer", task.layer}, {"pep", task.device_plan}});
  }
  return trace.text();
}

}  // namespace npu::gnn
