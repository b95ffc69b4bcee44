// SPDX-License-Identifier: Apache-2.0
// Plans for people: tables, a drawing and a trace of the simulated schedule. Everything comes from
// the document and the schedule; nothing is computed anew. O(size of the plan).
#include <algorithm>
#include <map>

#include "npu/plan/plan_gnn.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

std::string ms_text(const Json& value) { return fixed_text(value.get<double>(), 3); }
std::string percent_text(double value) { return fixed_text(100 * value, 2) + " %"; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
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
  for (const Json& device : plan.document.at("devices")) names.push_back(device.at("name"));
  return names;
}

// Every layer's search for the smallest largest load came to its end.
bool selection_is_proven(const Json& plan) {
  const Json& bounds = plan.at("bounds");
  return std::all_of(bounds.begin(), bounds.end(),
                     [](const Json& bound) { return bound.at("search_finished").get<bool>(); });
}

}  // namespace

std::string format_plan_report(const Json& plan) {
  std::string text;
  std::vector<std::vector<std::string>> rows{
      {">k", ">edge cut", ">halo", ">pad", ">makespan ms", ">bound ms", ">gap", "best alone"}};
  for (const Json& row : plan.at("sweep")) {
    const std::string k = row.at("k").dump() + (row.at("k") == plan.at("k") ? " *" : "");
    if (row.contains("infeasible")) {
      rows.push_back({k, row.at("edge_cut").dump(), row.at("halo").dump(), "", "", "", "",
                      row.at("infeasible").get<std::string>()});
      continue;
    }
    std::string best;
    double best_ms = 0;
    for (const auto& [name, ms] : row.at("single_device_ms").items()) {
      if (!best.empty() && ms.get<double>() >= best_ms) continue;
      best = name;
      best_ms = ms.get<double>();
    }
    if (!best.empty()) best += " " + fixed_text(best_ms, 3) + " ms";
    rows.push_back({k, row.at("edge_cut").dump(), row.at("halo").dump(), row.at("pad").dump(),
                    ms_text(row.at("makespan_ms")), ms_text(row.at("lower_bound_ms")),
                    percent_text(row.at("gap").get<double>()), best});
  }
  text += table_text(rows) + "\n";
  rows = {{"device", ">load ms", "share of the makespan"}};
  const double makespan = plan.at("makespan_ms").get<double>();
  for (const auto& [name, load] : plan.at("loads_ms").items()) {
    rows.push_back(
        {name, ms_text(load), makespan > 0 ? percent_text(load.get<double>() / makespan) : "-"});
  }
  text += table_text(rows) + "\n";
  rows = {{">subgraphs", ">layer", "plan"}};
  // A plan may have several clusters.
  std::vector<std::size_t> subgraphs(plan.at("peps").size(), 0);
  for (const Json& cluster : plan.at("clusters")) {
    subgraphs.at(cluster.at("pep").get<std::size_t>()) += cluster.at("subgraphs").size();
  }
  for (std::size_t p = 0; p < subgraphs.size(); ++p) {
    const Json& pep = plan.at("peps").at(p);
    rows.push_back(
        {std::to_string(subgraphs[p]), pep.at("layer").dump(), pep.at("key").get<std::string>()});
  }
  text += table_text(rows) + "\n";
  std::map<std::string, std::int64_t> reasons;
  for (const Json& rejected : plan.at("rejected")) {
    ++reasons[rejected.at("reason").get<std::string>()];
  }
  rows = {{">classes", "legal or why not"}};
  rows.push_back({plan.at("legal_classes").dump(), "legal"});
  for (const auto& [reason, count] : reasons) rows.push_back({std::to_string(count), reason});
  text += table_text(rows) + "\n";
  text += "makespan " + ms_text(plan.at("makespan_ms")) + " ms, at least " +
          ms_text(plan.at("lower_bound_ms")) + " ms (gap " +
          percent_text(plan.at("gap").get<double>()) + "); largest load " +
          ms_text(plan.at("max_load_ms")) + " ms, at least " + ms_text(plan.at("load_bound_ms")) +
          " ms (gap " + percent_text(plan.at("load_gap").get<double>()) + ")\n";
  text += "least largest load found: " + ms_text(plan.at("least_load_ms")) + " ms (gap " +
          percent_text(plan.at("least_load_gap").get<double>()) +
          (selection_is_proven(plan) ? ", proven optimal)\n" : ")\n");
  if (const Json& single = plan.at("best_single_device"); single.is_object()) {
    text += "best single device: " + single.at("device").get<std::string>() + " " +
            ms_text(single.at("ms")) + " ms at k = " + single.at("k").dump() + "; speed-up " +
            fixed_text(plan.at("speedup").get<double>(), 2) + "\n";
  }
  text += plan.at("compiles").at("count").dump() + " static programs to compile (" +
          ms_text(plan.at("compiles").at("predicted_ms")) + " ms), " +
          plan.at("plan_switches").dump() + " plan switches, " + plan.at("extrapolated").dump() +
          " estimates outside the measured range\n";
  return text;
}

std::string gantt_svg(const GnnPlan& plan) {
  const std::vector<std::string> devices = devices_of(plan);
  double makespan = 0;
  for (const ScheduledTask& task : plan.schedule) makespan = std::max(makespan, task.end_ms);
  constexpr double kLeft = 80;
  constexpr double kWidth = 1000;
  constexpr double kRow = 36;
  const double scale = makespan > 0 ? kWidth / makespan : 0;
  const double height = 40 + kRow * static_cast<double>(devices.size()) + 24;
  const auto number = [](double value) { return fixed_text(value, 2); };
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    number(kLeft + kWidth + 20) + "\" height=\"" + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"11\">\n";
  svg += "<text x=\"8\" y=\"18\">k = " + plan.document.at("k").dump() + ", makespan " +
         number(makespan) + " ms, bound " +
         number(plan.document.at("lower_bound_ms").get<double>()) + " ms</text>\n";
  static constexpr const char* kColors[] = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1",
                                            "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#bab0ac"};
  std::map<std::string, std::size_t> color_of;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const double y = 30 + kRow * static_cast<double>(d);
    svg += "<text x=\"8\" y=\"" + number(y + 20) + "\">" + escaped(devices[d]) + "</text>\n";
    svg += "<line x1=\"" + number(kLeft) + "\" y1=\"" + number(y + kRow - 3) + "\" x2=\"" +
           number(kLeft + kWidth) + "\" y2=\"" + number(y + kRow - 3) + "\" stroke=\"#ddd\"/>\n";
  }
  for (const ScheduledTask& task : plan.schedule) {
    const auto device = static_cast<double>(std::find(devices.begin(), devices.end(), task.device) -
                                            devices.begin());
    const std::size_t color = color_of.emplace(task.pep, color_of.size()).first->second;
    svg += "<rect x=\"" + number(kLeft + task.start_ms * scale) + "\" y=\"" +
           number(30 + kRow * device + 2) + "\" width=\"" +
           number(std::max(0.5, (task.end_ms - task.start_ms) * scale)) +
           "\" height=\"28\" fill=\"" + kColors[color % 10] +
           "\" stroke=\"white\" stroke-width=\"0.5\"><title>layer " + std::to_string(task.layer) +
           ", subgraph " + std::to_string(task.subgraph) + " " + task.block + ": " +
           number(task.start_ms) + " - " + number(task.end_ms) + " ms, " + escaped(task.pep) +
           "</title></rect>\n";
  }
  const double axis = 30 + kRow * static_cast<double>(devices.size()) + 14;
  for (int tick = 0; tick <= 10; ++tick) {
    svg += "<text x=\"" + number(kLeft + kWidth * tick / 10) + "\" y=\"" + number(axis) +
           "\" text-anchor=\"middle\">" + number(makespan * tick / 10) + "</text>\n";
  }
  return svg + "</svg>\n";
}

std::string schedule_trace(const GnnPlan& plan) {
  const std::vector<std::string> devices = devices_of(plan);
  std::string text = "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [";
  bool first = true;
  const auto add = [&](const Json& event) {
    text += (first ? "\n" : ",\n") + event.dump();
    first = false;
  };
  for (std::size_t d = 0; d < devices.size(); ++d) {
    add({{"ph", "M"},
         {"pid", 1},
         {"tid", d + 1},
         {"name", "thread_name"},
         {"args", {{"name", devices[d]}}}});
  }
  for (const ScheduledTask& task : plan.schedule) {
    const auto device = std::find(devices.begin(), devices.end(), task.device) - devices.begin();
    add({{"name", "subgraph " + std::to_string(task.subgraph) + " " + task.block},
         {"cat", "predicted"},
         {"ph", "X"},
         {"ts", task.start_ms * 1000},
         {"dur", (task.end_ms - task.start_ms) * 1000},
         {"pid", 1},
         {"tid", device + 1},
         {"args", {{"layer", task.layer}, {"pep", task.pep}}}});
  }
  return text + "\n]}\n";
}

}  // namespace npu
