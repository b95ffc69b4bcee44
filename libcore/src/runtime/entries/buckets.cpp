// SPDX-License-Identifier: Apache-2.0
// The choices of sizes that a template is compiled for: given, or found for how long requests are.
// A predicted time takes a placement of the whole document, so long lists of lengths are sampled.
// O(buckets log buckets), and for sizes that are found 25 placements and what best_sizes takes.
#include "runtime/entries/buckets.hpp"

#include <algorithm>
#include <utility>

#include "ir/generate_section.hpp"
#include "npu/partition/metrics.hpp"
#include "passes/padding/pad_graph.hpp"
#include "runtime/place_model.hpp"
#include "runtime/predicted_steps.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostBuckets = 1024;
constexpr std::size_t kMostSamples = 25;

double predicted_us(const Template& model, const SizeBindings& bucket,
                    const CompileModelOptions& options, Diagnostics& diagnostics) {
  Diagnostics found;  // how each size is placed is of no interest
  std::optional<Graph> last_row = last_row_graph(model, bucket, found);
  Graph graph = last_row ? *std::move(last_row) : bucket_graph(model, bucket, found);
  PlacedModel placed;
  if (!found.has_errors()) placed = place_model(graph, options.where, options.load_ops, found);
  for (const Diagnostic& fault : found.entries()) {
    if (fault.level == Level::kError) {
      diagnostics.error(fault.location, "bucket " + bucket_name(bucket) + ": " + fault.text);
    }
  }
  if (diagnostics.has_errors()) return 0;
  const PlanMetrics metrics = plan_metrics(graph, placed.plan, placed.target);
  return PredictedSteps(graph, placed.plan, placed.target).total_ms(metrics.predicted_us) * 1000;
}

}  // namespace

std::string bucket_name(const SizeBindings& bucket) {
  std::string name;
  for (const auto& [symbol, value] : bucket) {
    name += (name.empty() ? "" : ",") + symbol + "=" + std::to_string(value);
  }
  return name;
}

Graph bucket_graph(const Template& model, const SizeBindings& bucket, Diagnostics& diagnostics) {
  return pad_graph(model, bucket, diagnostics).graph;
}

std::optional<Graph> last_row_graph(const Template& model, const SizeBindings& bucket,
                                    Diagnostics& diagnostics) {
  Diagnostics faults;  // those of roles are told where a token loop begins
  const auto roles = read_generate_roles(model.document(), model.file(), faults);
  if (!roles || faults.has_errors()) return std::nullopt;
  PaddedGraph padded = pad_graph(model, bucket, diagnostics, {.last_row_of = roles->logits});
  if (!padded.has_last_row) return std::nullopt;
  return std::move(padded.graph);
}

std::vector<SizeBindings> checked_buckets(const Template& model,
                                          std::vector<SizeBindings> buckets) {
  const SizeSymbols& symbols = model.symbols();
  if (buckets.empty() || buckets.size() > kMostBuckets) {
    throw Error(ErrorCode::kUsage, "--buckets: expected 1 to " + std::to_string(kMostBuckets) +
                                       " choices of sizes, found " +
                                       std::to_string(buckets.size()));
  }
  for (const SizeBindings& bucket : buckets) {
    const std::string where = "bucket " + bucket_name(bucket) + ": ";
    for (const auto& [symbol, value] : bucket) {
      if (symbols.find(symbol) != nullptr) continue;
      throw Error(ErrorCode::kUsage, where + model.file() + " has no size '" + short_text(symbol) +
                                         "'; it has " + symbols.names());
    }
    if (const std::string unbound = symbols.unbound_text(bucket); !unbound.empty()) {
      throw Error(ErrorCode::kUsage, where + unbound + " or with --buckets");
    }
    if (const auto fault = symbols.fault(bucket)) throw Error(ErrorCode::kUsage, where + *fault);
  }
  std::sort(buckets.begin(), buckets.end());
  const auto twice = std::adjacent_find(buckets.begin(), buckets.end());
  if (twice != buckets.end()) {
    throw Error(ErrorCode::kUsage, "bucket " + bucket_name(*twice) + " stands there twice");
  }
  return buckets;
}

BestSizes auto_sizes(const Template& model, const std::string& symbol, std::size_t most,
                     const std::vector<LengthCount>& lengths, const CompileModelOptions& options,
                     Diagnostics& diagnostics) {
  const SizeSymbols& symbols = model.symbols();
  if (symbols.list().size() != 1 || symbols.find(symbol) == nullptr) {
    throw Error(ErrorCode::kUsage, "--buckets " + symbol + "=auto: " + model.file() + " has " +
                                       symbols.names() +
                                       "; expected one size that varies, others by --bind");
  }
  for (const LengthCount& each : lengths) {
    if (const auto fault = symbols.fault({{symbol, each.length}})) {
      throw Error(ErrorCode::kUsage, "--lengths: " + *fault);
    }
  }
  const std::size_t last = lengths.size() - 1;
  const std::size_t steps = std::min(last, kMostSamples - 1);
  std::vector<double> times(lengths.size());
  std::size_t before = 0;
  for (std::size_t step = 0; step <= steps; ++step) {
    const std::size_t at = steps == 0 ? 0 : last * step / steps;
    times[at] = predicted_us(model, {{symbol, lengths[at].length}}, options, diagnostics);
    if (diagnostics.has_errors()) return {};
    for (std::size_t i = before + 1; i < at; ++i) {
      const double share = static_cast<double>(lengths[i].length - lengths[before].length) /
                           static_cast<double>(lengths[at].length - lengths[before].length);
      times[i] = times[before] + share * (times[at] - times[before]);
    }
    before = at;
  }
  return best_sizes(lengths, times, most);
}

}  // namespace npu
