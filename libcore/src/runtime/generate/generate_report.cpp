// SPDX-License-Identifier: Apache-2.0
// What a token loop did, as JSON, as numbers for --assert and as a table. O(requests + steps log
// steps).
#include "runtime/generate/generate_report.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "npu/support/progress.hpp"
#include "runtime/report_numbers.hpp"
#include "support/json_fields.hpp"
#include "support/statistics.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

double tenth_us(double ms) { return std::round(ms * 10'000) / 10'000; }

/// Per second, to three decimals; 0 if no time was taken.
double rate(double count, double ms) { return ms > 0 ? std::round(1e6 * count / ms) / 1000 : 0; }

Json distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"median", tenth_us(values.empty() ? 0 : nearest_rank(values, 0.5))},
          {"p90", tenth_us(values.empty() ? 0 : nearest_rank(values, 0.9))},
          {"p99", tenth_us(values.empty() ? 0 : nearest_rank(values, 0.99))}};
}

Json request_json(const GeneratedRequest& request) {
  Json entries = Json::object();
  for (const auto& [rows, steps] : request.entries) entries[std::to_string(rows)] = steps;
  Json json{{"prompt", request.prompt},
            {"new", request.new_ids},
            {"ended", ended_name(request.ended)},
            {"first_token_ms", tenth_us(request.first_token_ms)},
            {"prefill_ms", tenth_us(request.prefill_ms)},
            {"entries", std::move(entries)}};
  if (!request.encode_entry.empty()) {
    json["encode"] = request.encode_entry;
    json["encode_ms"] = tenth_us(request.encode_ms);
  }
  if (!request.ids.empty()) json["ids"] = request.ids;
  return json;
}

Json head_json(const StepModelFacts& facts) {
  return {{"model", facts.model}, {"target", facts.target}, {"precision", facts.precision}};
}

/// What both reports say of memory and states.
void add_states(Json& section, const StepModelFacts& facts, std::int64_t copied,
                std::int64_t transferred) {
  std::int64_t bytes = 0;
  for (const StepState& state : facts.states) bytes += state.bytes;
  section["state_bytes"] = bytes;
  section["state_copied_bytes"] = copied;
  section["state_transfer_bytes"] = transferred;
}

void add_tail(Json& json, Json section, const char* key, const StepModelFacts& facts) {
  section["load_ms"] = tenth_us(facts.load_ms);
  section["peak_rss_bytes"] = peak_rss_bytes();
  json[key] = std::move(section);
  Json states = Json::array();
  for (const StepState& state : facts.states) {
    states.push_back({{"name", state.name},
                      {"device", state.device},
                      {"path", state.path},
                      {"bytes", state.bytes}});
  }
  json["states"] = std::move(states);
  if (!facts.backends.empty()) json["backends"] = facts.backends;
}

const Json* section_of(const Json& report) {
  const Json* section = member_object(report, "generate");
  return section != nullptr ? section : member_object(report, "score");
}

}  // namespace

Json generate_report_json(const GenerateResult& result, const StepModelFacts& facts) {
  Json json = head_json(facts);
  Json section = Json::object();
  Json requests = Json::array();
  std::int64_t prompt_ids = 0;
  std::int64_t new_ids = 0;
  for (const GeneratedRequest& request : result.requests) {
    requests.push_back(request_json(request));
    prompt_ids += request.prompt;
    new_ids += request.new_ids;
  }
  section["requests"] = std::move(requests);
  section["prompt_ids"] = prompt_ids;
  section["new_ids"] = new_ids;
  double decode_ms = 0;
  for (const double ms : result.step_ms) decode_ms += ms;
  const auto steps = static_cast<double>(result.step_ms.size());
  const double decode_rate = rate(steps, decode_ms);
  section["prefill_tokens_per_second"] =
      rate(static_cast<double>(result.prefill_ids), result.prefill_ms);
  section["decode_tokens_per_second"] = decode_rate;
  section["step_ms"] = distribution(result.step_ms);
  // What a step of one token reads: the weights, the rows in use, and states that have no rows.
  const double positions = steps > 0 ? result.position_sum / steps : 0;
  const auto cache =
      static_cast<std::int64_t>(std::llround(positions * static_cast<double>(facts.row_bytes))) +
      facts.fixed_bytes;
  section["bytes_per_token"] = {{"weights", facts.weight_bytes}, {"cache", cache}};
  if (facts.memory_bandwidth > 0) {
    const double bytes = static_cast<double>(facts.weight_bytes + cache);
    section["bandwidth_share"] =
        std::round(1e4 * bytes * decode_rate / facts.memory_bandwidth) / 1e4;
  }
  add_states(section, facts, result.copied_bytes, result.transfer_bytes);
  section["sampler_ms"] = tenth_us(result.sampler_ms);
  add_tail(json, std::move(section), "generate", facts);
  return json;
}

Json score_report_json(const ScoreResult& result, const StepModelFacts& facts) {
  Json json = head_json(facts);
  Json section = Json::object();
  Json lines = Json::array();
  for (const ScoredLine& line : result.lines) {
    lines.push_back({{"ids", line.ids}, {"nll", json_safe(line.nll)}});
  }
  section["requests"] = std::move(lines);
  section["scored_ids"] = result.scored;
  const double mean = result.scored > 0 ? result.nll / static_cast<double>(result.scored) : 0;
  section["nll_per_token"] = json_safe(mean);
  section["perplexity"] = json_safe(std::exp(mean));
  section["prefill_tokens_per_second"] = rate(static_cast<double>(result.scored), result.ms);
  add_states(section, facts, result.copied_bytes, result.transfer_bytes);
  add_tail(json, std::move(section), "score", facts);
  return json;
}

std::map<std::string, double> generate_metrics(const Json& report) {
  std::map<std::string, double> metrics;
  const Json* section = section_of(report);
  if (section == nullptr) return metrics;
  for (const auto& [key, value] : section->items()) {
    if (value.is_number()) metrics[key] = value.get<double>();
    if (!value.is_object()) continue;
    for (const auto& [part, number] : value.items()) {
      metrics[key + "." + part] = number.get<double>();
    }
  }
  if (metrics.contains("bytes_per_token.weights")) {
    metrics["bytes_per_token"] =
        metrics["bytes_per_token.weights"] + metrics["bytes_per_token.cache"];
  }
  const Json& requests = (*section)["requests"];
  metrics["requests"] = static_cast<double>(requests.size());
  for (const char* key : {"first_token_ms", "prefill_ms", "encode_ms"}) {
    for (const Json& request : requests) {
      if (const auto ms = member_double(request, key)) metrics[key] = std::max(metrics[key], *ms);
    }
  }
  return metrics;
}

std::string format_generate_report(const Json& report) {
  std::vector<std::vector<std::string>> rows{{"measure", ">value"}};
  for (const auto& [name, value] : generate_metrics(report)) {
    const bool is_bytes = name.find("bytes") != std::string::npos;
    const bool is_whole = value == std::floor(value);
    rows.push_back({name, is_bytes ? bytes_text(value) : fixed_text(value, is_whole ? 0 : 3)});
  }
  std::string text = table_text(rows);
  const Json* states = member_list(report, "states");
  if (states == nullptr || states->empty()) return text;
  std::vector<std::vector<std::string>> table{{"state", "device", "path", ">bytes"}};
  for (const Json& state : *states) {
    table.push_back({*member_text(state, "name"), *member_text(state, "device"),
                     *member_text(state, "path"),
                     bytes_text(member_double(state, "bytes").value_or(0))});
  }
  return text + "\n" + table_text(table);
}

}  // namespace npu
