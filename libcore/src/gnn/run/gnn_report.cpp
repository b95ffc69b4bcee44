// SPDX-License-Identifier: Apache-2.0
// The report of running a plan: the document that npu-run writes, and a trace. O(steps).
#include "gnn/run/gnn_report.hpp"

#include "npu/support/ids.hpp"
#include "runtime/report_metrics.hpp"
#include "support/chrome_trace.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

Json simulated_json(const RunPlanReport& report) {
  return {{"simulated", true},
          {"predicted_ms", report.predicted_ms},
          {"simulated_ms", *report.simulated_ms},
          {"k", report.k}};
}

Json comparison_json(const Comparison& comparison) {
  Json json = {{"ok", comparison.ok},
               {"max_abs", comparison.max_abs},
               {"max_rel", comparison.max_rel},
               {"elements", comparison.elements},
               {"out_of_tolerance", comparison.out_of_tolerance}};
  if (!comparison.mismatch.empty()) json["mismatch"] = comparison.mismatch;
  return json;
}

// Steps and the time that each device spent on them.
void write_steps(const RunPlanReport& report, Json& json) {
  Json& steps = json["steps"] = Json::array();
  std::map<std::string, double> busy_ms;
  for (const PlanRunStep& step : report.steps) {
    const std::string& device = report.devices[index_of(step.device)];
    const double ms = step.end_ms - step.start_ms;
    Json item = {{"kind", "block"},     {"id", step.subgraph},
                 {"layer", step.layer}, {"stages", Json::array({step.first, step.last})},
                 {"device", device},    {"ms", ms}};
    if (step.moved) item["moved"] = true;
    steps.push_back(std::move(item));
    busy_ms[device] += ms;
  }
  Json& busy = json["busy_ms"] = Json::object();
  for (const auto& [name, ms] : busy_ms) busy[name] = ms;
}

Json ranks_json(const RankReport& ranks) {
  Json json = {{"size", ranks.size},
               {"exchange", ranks.exchange},
               {"exchanges", ranks.exchanges},
               {"rows", ranks.rows},
               {"planned_rows", ranks.planned_rows},
               {"bytes", ranks.bytes},
               {"exchange_ms", ranks.exchange_ms},
               {"hidden_ms", ranks.hidden_ms}};
  Json& layers = json["layers"] = Json::array();
  for (const RankReport::Layer& layer : ranks.layers) {
    layers.push_back({{"layer", layer.layer}, {"ms", layer.ms}, {"hidden_ms", layer.hidden_ms}});
  }
  Json& list = json["ranks"] = Json::array();
  for (const RankReport::Rank& rank : ranks.ranks) {
    Json& item = list.emplace_back(Json::object());
    item["rank"] = list.size() - 1;
    if (rank.predicted_ms) item["predicted_ms"] = *rank.predicted_ms;
    item["compute_ms"] = rank.compute_ms;
    item["held_ms"] = rank.held_ms;
    item["planned_bytes"] = rank.planned_bytes;
    item["peak_bytes"] = rank.peak_bytes;
    if (!rank.streams) continue;
    item["blocks_read"] = rank.blocks_read;
    item["bytes_read"] = rank.bytes_read;
    item["reads_of_row"] = rank.reads_of_row;
  }
  Json& pairs = json["pairs"] = Json::array();
  for (const RankReport::Pair& pair : ranks.pairs) {
    pairs.push_back({{"from", pair.from},
                     {"to", pair.to},
                     {"rows", pair.rows},
                     {"planned_rows", pair.planned_rows}});
  }
  return json;
}

Json exchange_json(const ExchangeReport& exchange) {
  Json json = {{"sums_ms", exchange.sums_ms}};
  Json& layers = json["layers"] = Json::array();
  for (const ExchangeReport::Layer& layer : exchange.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"rows", layer.rows},
                      {"planned_rows", layer.planned_rows},
                      {"halo", layer.halo}});
  }
  return json;
}

// Sums over the layers.
std::string exchange_text(const ExchangeReport& exchange) {
  ExchangeReport::Layer all;
  for (const ExchangeReport::Layer& layer : exchange.layers) {
    all.rows += layer.rows;
    all.planned_rows += layer.planned_rows;
    all.halo += layer.halo;
  }
  return std::to_string(all.rows) + " rows of other parts crossed to devices, " +
         std::to_string(all.planned_rows) + " by the plan, in place of " +
         std::to_string(all.halo) + "; the host added sums up in " +
         fixed_text(exchange.sums_ms, 3) + " ms\n";
}

std::string ranks_table(const RankReport& ranks) {
  std::vector<std::vector<std::string>> rows{
      {">rank", ">predicted ms", ">computed ms", ">held ms", ">planned", ">peak memory", "read"}};
  for (const RankReport::Rank& rank : ranks.ranks) {
    rows.push_back({std::to_string(rows.size() - 1),
                    rank.predicted_ms ? fixed_text(*rank.predicted_ms, 3) : "-",
                    fixed_text(rank.compute_ms, 3), fixed_text(rank.held_ms, 3),
                    bytes_text(static_cast<double>(rank.planned_bytes)),
                    bytes_text(static_cast<double>(rank.peak_bytes)),
                    rank.streams ? bytes_text(static_cast<double>(rank.bytes_read)) + " in " +
                                       std::to_string(rank.blocks_read) + " blocks, each row " +
                                       fixed_text(rank.reads_of_row, 2) + " times a layer"
                                 : ""});
  }
  return table_text(rows);
}

// Which runs the measured time is of.
std::string measured_of(const RunPlanReport& report) {
  if (!report.bench) return "the first run";
  return "the median of " + std::to_string(report.bench->runs) + " further runs";
}

}  // namespace

std::string format_run_times(const RunPlanReport& report) {
  if (report.simulated_ms) return {};
  std::string text = "first run " + fixed_text(report.first_ms, 3) +
                     " ms: it also makes memory, threads and caches warm\n";
  text += "measured_ms " + fixed_text(report.measured_ms, 3) + " is " + measured_of(report);
  text += report.bench ? "\n" : "; --bench N measures further ones\n";
  if (const auto& ranks = report.ranks) {
    text += std::to_string(ranks->size) + (ranks->size == 1 ? " rank; " : " ranks; ") +
            std::to_string(ranks->rows) + " rows crossed before every layer, " +
            std::to_string(ranks->planned_rows) + " by the plan; " +
            bytes_text(static_cast<double>(ranks->bytes)) + " in all, " +
            fixed_text(ranks->exchange_ms, 3) + " ms on the first rank, of which " +
            fixed_text(ranks->hidden_ms, 3) + " ms while it computed what needs none of them\n" +
            ranks_table(*ranks);
  }
  if (report.exchange) text += exchange_text(*report.exchange);
  return text + "predicted " + fixed_text(report.predicted_ms, 3) + " ms, for runs when warm\n\n";
}

Json to_json(const RunPlanReport& report) {
  if (report.simulated_ms) return simulated_json(report);
  Json json;
  json["outputs"] =
      Json::array({{{"name", "out"}, {"shape", report.output}, {"dtype", "float32"}}});
  write_steps(report, json);
  json["k"] = report.k;
  json["predicted_ms"] = report.predicted_ms;
  json["first_ms"] = report.first_ms;
  json["measured_ms"] = report.measured_ms;
  json["measured_of"] = measured_of(report);
  json["load_ms"] = report.load_ms;
  json["compile_ms"] = report.compile_ms;
  json["static_compiles"] = report.static_compiles;
  json["cache_hits"] = report.cache_hits;
  if (report.units) json["units"] = *report.units;
  json["fused_reductions"] = report.fused_reductions;
  json["products_first"] = report.products_first;
  json["precision"] = report.precision;
  json["reexecuted"] = report.reexecuted;
  if (const auto& bench = report.bench) {
    json["bench"] = {{"runs", bench->runs},
                     {"median_ms", bench->median_ms},
                     {"min_ms", bench->min_ms},
                     {"p90_ms", bench->p90_ms}};
  }
  if (report.comparison) json["comparison"] = comparison_json(*report.comparison);
  if (report.ranks) json["ranks"] = ranks_json(*report.ranks);
  if (report.exchange) json["exchange"] = exchange_json(*report.exchange);
  return json;
}

std::map<std::string, double> run_metrics(const RunPlanReport& report) {
  return report_metrics(to_json(report));
}

std::string run_trace(const RunPlanReport& report) {
  ChromeTrace trace;
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    trace.name_track(static_cast<int>(d) + 1, report.devices[d]);
  }
  for (const PlanRunStep& step : report.steps) {
    const double ms = step.end_ms - step.start_ms;
    Json args = {{"layer", step.layer}, {"measured_ms", ms}};
    if (step.predicted_ms) args["predicted_ms"] = *step.predicted_ms;
    trace.slice(step.device + 1,
                "subgraph " + std::to_string(step.subgraph) + " [" + std::to_string(step.first) +
                    "-" + std::to_string(step.last) + "]",
                "measured", step.start_ms * 1000, ms * 1000, args);
  }
  if (!report.ranks) return trace.text();
  const int track = static_cast<int>(report.devices.size()) + 1;
  trace.name_track(track, "exchange");
  for (const RankReport::Layer& layer : report.ranks->layers) {
    trace.slice(track, "rows of other ranks", "measured", layer.start_ms * 1000,
                (layer.end_ms - layer.start_ms) * 1000,
                {{"layer", layer.layer}, {"hidden_ms", layer.hidden_ms}});
  }
  return trace.text();
}

}  // namespace npu::gnn
