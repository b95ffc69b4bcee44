// SPDX-License-Identifier: Apache-2.0
// The object `ranks` of a plan. Covers can have millions of rows, so each is one string: "12>40"
// where the features of node 12 cross, "12+40" where the sum for node 40 does, in the order of the
// matching's edges. O(size of the object).
#include "gnn/exchange/rank_document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "gnn/exchange/part_tree.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr std::int64_t kLargestId = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kLargestCount = std::int64_t{1} << 50;
constexpr double kLongestLatency = 1e9;

// Takes a node's number off the front.
bool take_node(std::string_view& text, std::int32_t& node) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  if (error != std::errc() || node < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::vector<double> read_times(const JsonFields& fields, const char* key) {
  std::vector<double> times;
  for (const Json& element : fields.list(key)) {
    if (!element.is_number()) {
      fields.refuse(key, "expected milliseconds, found " + value_or_type(&element));
    }
    times.push_back(element.get<double>());
  }
  return times;
}

PlannedRank read_share(const JsonFields& fields) {
  PlannedRank rank;
  for (const Json& element : fields.list("parts")) {
    const auto part = json_integer(&element);
    if (!part || *part < 0 || *part > kLargestId) {
      fields.refuse("parts", "expected numbers of parts, found " + value_or_type(&element));
    }
    rank.parts.push_back(static_cast<std::int32_t>(*part));
  }
  rank.nodes = fields.integer("nodes", 0, kLargestCount);
  rank.edges = fields.integer("edges", 0, kLargestCount);
  rank.rows_in = fields.integer("rows_in", 0, kLargestCount);
  rank.rows_out = fields.integer("rows_out", 0, kLargestCount);
  rank.memory_bytes = fields.integer("memory_bytes", 0, kLargestCount);
  if (fields.has("streamed_bytes")) {
    rank.streamed_bytes = fields.integer("streamed_bytes", 0, kLargestCount);
  }
  if (fields.has("compute_ms")) rank.compute_ms = read_times(fields, "compute_ms");
  return rank;
}

RankPair read_pair(const JsonFields& fields, bool sums, std::size_t rank_count) {
  const auto last = static_cast<std::int64_t>(rank_count) - 1;
  RankPair pair;
  pair.from = static_cast<std::int32_t>(fields.integer("from", 0, last));
  pair.to = static_cast<std::int32_t>(fields.integer("to", 0, last));
  if (pair.from == pair.to) fields.refuse("to", "a rank sends nothing to itself");
  pair.edges = fields.integer("edges", 1, kLargestCount);
  pair.sources = fields.integer("sources", 1, kLargestId);
  pair.targets = fields.integer("targets", 1, kLargestId);
  pair.rows = fields.integer("rows", 1, pair.sources);
  if (fields.has("bytes_per_second")) {
    pair.link = {fields.integer("bytes_per_second", 1, kLargestCount),
                 fields.number("latency_us", kLongestLatency)};
  }
  if (!sums) return pair;
  pair.cover = read_cover(fields);
  if (pair.cover.size() == index_of(pair.rows)) return pair;
  fields.refuse("cover", "expected " + std::to_string(pair.rows) + " rows, found " +
                             std::to_string(pair.cover.size()));
}

// What the other numbers of the object add up to.
void check_sums(const JsonFields& fields, const RankPlan& plan) {
  for (const PlannedRank& rank : plan.ranks) {
    if (rank.compute_ms.empty() || rank.compute_ms.size() == plan.row_bytes.size()) continue;
    fields.refuse("ranks", "expected a compute_ms for each of " +
                               std::to_string(plan.row_bytes.size()) + " layers, found " +
                               std::to_string(rank.compute_ms.size()));
  }
  const std::pair<const char*, std::int64_t> counts[]{
      {"rows", plan.rows()}, {"halo", plan.halo()}, {"bytes", plan.bytes()}};
  for (const auto& [key, sum] : counts) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (!fields.has(key) || fields.integer(key, 0, kMost) == sum) continue;
    fields.refuse(key, "the pairs add up to " + std::to_string(sum));
  }
  if (!fields.has("makespan_ms")) return;
  const double stated = fields.number("makespan_ms", std::numeric_limits<double>::max());
  const double sum = plan.makespan_ms();
  if (std::abs(stated - sum) <= 1e-5 + 1e-9 * sum) return;
  fields.refuse("makespan_ms",
                "exchange_ms and compute_ms add up to " + std::to_string(sum) + " ms");
}

void read_link(const JsonFields& fields, RankPlan& plan) {
  plan.link = {fields.integer("link_bytes_per_second", 1, kLargestCount),
               fields.number("link_latency_us", kLongestLatency)};
}

// The links of pairs, of all or of none.
void check_links(const JsonFields& fields, const RankPlan& plan) {
  const auto with_link = std::count_if(plan.pairs.begin(), plan.pairs.end(),
                                       [](const RankPair& pair) { return pair.link.has_value(); });
  if (with_link > 0 && (plan.link || index_of(with_link) != plan.pairs.size())) {
    fields.refuse("pairs", "expected one link for all pairs, or one of each");
  }
}

// Every part in one rank, and every rank a node of the tree.
void check_parts(const JsonFields& fields, const RankPlan& plan, std::int32_t part_count) {
  const std::vector<std::int32_t> order = plan.part_order();
  const std::set<std::int32_t> distinct(order.begin(), order.end());
  if (order.size() != index_of(part_count) || distinct.size() != order.size() ||
      *distinct.rbegin() >= part_count) {
    fields.refuse("ranks", "expected each of " + std::to_string(part_count) + " parts in one rank");
  }
  const PartTree tree(order);
  PartTree::Node node;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    node.end = node.begin + static_cast<std::int32_t>(plan.ranks[r].parts.size());
    if (!tree.has(node)) {
      fields.refuse("ranks", "the parts of rank " + std::to_string(r) +
                                 " are not those of one node of the tree over all parts");
    }
    node.begin = node.end;
  }
}

}  // namespace

std::string cover_text(const std::vector<CrossingRow>& cover) {
  std::string text;
  text.reserve(cover.size() * 12);
  for (const CrossingRow& row : cover) {
    if (!text.empty()) text += ' ';
    text += std::to_string(row.source);
    text += row.is_sum ? '+' : '>';
    text += std::to_string(row.target);
  }
  return text;
}

std::vector<CrossingRow> read_cover(const JsonFields& fields) {
  const std::string text = fields.text("cover");
  std::string_view rest = text;
  std::vector<CrossingRow> cover;
  while (!rest.empty()) {
    CrossingRow row;
    bool is_good = take_node(rest, row.source) && (rest.starts_with('>') || rest.starts_with('+'));
    if (is_good) {
      row.is_sum = rest.front() == '+';
      rest.remove_prefix(1);
      is_good = take_node(rest, row.target) && (rest.empty() || rest.starts_with(' '));
    }
    if (!is_good) {
      fields.refuse("cover", "expected rows such as 12>40 or 12+40 with a blank between, found '" +
                                 std::string(rest.substr(0, 24)) + "' behind " +
                                 std::to_string(cover.size()) + " rows");
    }
    if (!rest.empty()) rest.remove_prefix(1);
    cover.push_back(row);
  }
  return cover;
}

Json to_json(const RankPlan& plan) {
  Json json = {{"count", plan.ranks.size()}, {"exchange", plan.sums ? "cover" : "features"}};
  if (!plan.features_because.empty()) json["features_because"] = plan.features_because;
  json["row_bytes"] = plan.row_bytes;
  json["rows"] = plan.rows();
  json["halo"] = plan.halo();
  json["bytes"] = plan.bytes();
  if (plan.link) {
    json["link_bytes_per_second"] = plan.link->bytes_per_second;
    json["link_latency_us"] = plan.link->latency_us;
  }
  if (plan.knows_links()) json["exchange_ms"] = plan.exchange_ms;
  if (plan.memory_limit > 0) json["memory_limit"] = plan.memory_limit;
  json["makespan_ms"] = plan.makespan_ms();
  Json& ranks = json["ranks"] = Json::array();
  for (const PlannedRank& rank : plan.ranks) {
    ranks.push_back({{"rank", ranks.size()},
                     {"parts", rank.parts},
                     {"nodes", rank.nodes},
                     {"edges", rank.edges},
                     {"rows_in", rank.rows_in},
                     {"rows_out", rank.rows_out},
                     {"memory_bytes", rank.memory_bytes},
                     {"streamed_bytes", rank.streamed_bytes},
                     {"compute_ms", rank.compute_ms}});
  }
  Json& pairs = json["pairs"] = Json::array();
  for (const RankPair& pair : plan.pairs) {
    Json& item = pairs.emplace_back(Json{{"from", pair.from},
                                         {"to", pair.to},
                                         {"edges", pair.edges},
                                         {"sources", pair.sources},
                                         {"targets", pair.targets},
                                         {"rows", pair.rows}});
    if (pair.link) {
      item["bytes_per_second"] = pair.link->bytes_per_second;
      item["latency_us"] = pair.link->latency_us;
    }
    if (plan.sums) item["cover"] = cover_text(pair.cover);
  }
  return json;
}

RankPlan read_rank_plan(const JsonFields& fields, std::int32_t part_count) {
  RankPlan plan;
  const std::string exchange = fields.text("exchange");
  if (exchange != "cover" && exchange != "features") {
    fields.refuse("exchange", "expected \"cover\" or \"features\", found \"" + exchange + "\"");
  }
  plan.sums = exchange == "cover";
  plan.features_because = fields.text_or("features_because", {});
  for (const Json& element : fields.list("row_bytes")) {
    const auto bytes = json_integer(&element);
    if (!bytes || *bytes < 0 || *bytes > kLargestId) {
      fields.refuse("row_bytes", "expected numbers of bytes, found " + value_or_type(&element));
    }
    plan.row_bytes.push_back(*bytes);
  }
  if (fields.has("memory_limit")) {
    plan.memory_limit = fields.integer("memory_limit", 1, kLargestCount);
  }
  if (fields.has("link_bytes_per_second")) read_link(fields, plan);
  fields.for_each("ranks", [&](const JsonFields& rank) { plan.ranks.push_back(read_share(rank)); });
  if (plan.ranks.empty() || index_of(fields.integer("count", 1, kLargestId)) != plan.ranks.size()) {
    fields.refuse("count", "the plan lists " + std::to_string(plan.ranks.size()) + " ranks");
  }
  check_parts(fields, plan, part_count);
  fields.for_each("pairs", [&](const JsonFields& pair) {
    plan.pairs.push_back(read_pair(pair, plan.sums, plan.ranks.size()));
    if (plan.pairs.size() < 2) return;
    const RankPair& before = plan.pairs[plan.pairs.size() - 2];
    const RankPair& last = plan.pairs.back();
    if (std::pair(before.from, before.to) >= std::pair(last.from, last.to)) {
      pair.refuse("", "pairs are not in order");
    }
  });
  check_links(fields, plan);
  if (plan.knows_links()) plan.exchange_ms = read_times(fields, "exchange_ms");
  check_sums(fields, plan);
  return plan;
}

}  // namespace npu::gnn
