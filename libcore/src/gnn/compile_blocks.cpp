// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-compile for plans: every block that a run of the plan would compile, as
// files of its own.
//
// Tasks are those of the run, rank after rank, and so are blocks and programs; what differs is that
// the programs are kept. The tasks of one rank and one block are in memory at a time. Cost: the
// backends', plus that of loading the plan.
#include "gnn/compile_blocks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gnn/exchange/rank_layout.hpp"
#include "gnn/ranks/rank_parts.hpp"
#include "gnn/run/block_bundle.hpp"
#include "gnn/run/block_table.hpp"
#include "gnn/run/plan_devices.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/task_graph.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "support/digest.hpp"
#include "support/elapsed.hpp"
#include "support/new_folder.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

/// The subgraphs that use each unit.
using BlockUses = std::map<BlockKey, std::set<std::int64_t>>;

void add_uses(const TaskGraph& graph, const GnnPlan& plan, const StagedModel& model,
              BlockUses& uses) {
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (const ShareTask& task : graph.layers[l]) {
      const auto layer = static_cast<std::int32_t>(l) + 1;
      uses[block_key(model, layer, task, task.device, plan.devices[index_of(task.device)].is_static,
                     std::max<std::int64_t>(1, plan.choice.pad))]
          .insert(task.subgraph);
    }
  }
}

// Of all processes of a plan, one after another.
BlockUses uses_of(const GnnPlan& plan, const RunPlanOptions& options, LoadedPlan& loaded,
                  PhaseTimes& times) {
  BlockUses uses;
  if (!plan.choice.ranks) {
    loaded = load_plan_parts(plan, options, times);
    add_uses(build_task_graph(plan, loaded.task_parts(), loaded.rows(), stage_counts(loaded.model),
                              options.plan),
             plan, loaded.model, uses);
    return uses;
  }
  loaded.model = read_plan_model(plan, options.plan);
  loaded.weights = load_staged_weights(loaded.model, options.weights);
  const GraphRows rows = read_plan_rows(plan, options, times);
  const std::vector<std::int32_t> part_of =
      read_plan_partition(plan, options.plan, rows.node_count());
  const bool is_max = checked_edge_sums(plan, loaded.model, options.plan).is_max;
  GnnPlan bare = plan;  // tasks need no covers, which can have millions of rows
  for (RankPair& pair : bare.choice.ranks->pairs) pair.cover = {};
  for (std::int32_t rank = 0; index_of(rank) < plan.choice.ranks->ranks.size(); ++rank) {
    const RankLayout layout =
        lay_out_rank(*plan.choice.ranks, rows, part_of, rank, options.plan, is_max);
    check_rank_parts(plan, rank, layout.parts, options.plan);
    add_uses(build_task_graph(plan_of_rank(bare, rank), {layout.parts}, layout.row_count,
                              stage_counts(loaded.model), options.plan),
             plan, loaded.model, uses);
  }
  return uses;
}

class BlockFileWriter {
 public:
  BlockFileWriter(const LoadedPlan& loaded, const Target& target, const NewFolder& folder,
                  const std::string& producer)
      : loaded_(loaded), target_(target), folder_(folder), producer_(producer) {}

  IndexedBlock write(const BlockKey& key, const std::set<std::int64_t>& subgraphs,
                     const GnnDevice& device, CompiledBlockRow& row) {
    const auto start = Clock::now();
    const GnnBlock block(loaded_.model,
                         {key.layer, key.first, key.last, key.shape(), nullptr, true}, device,
                         loaded_.weights);
    row.ms = milliseconds_since(start);
    row.unit = block_name(key, device.name);
    row.backend = block.instance().backend().name();
    row.subgraphs = static_cast<std::int64_t>(subgraphs.size());
    IndexedBlock entry{key, row.backend, block.is_narrow(), {}, {}};
    entry.subgraphs.assign(subgraphs.begin(), subgraphs.end());
    for (const BlockStep& step : block.steps()) {
      const auto* program = std::get_if<ProgramStep>(&step);
      if (program == nullptr) continue;
      const StoredProgram& stored = program->kept->stored;
      entry.programs.push_back(
          {stored.key, hex_text(xxh3_64(stored.blob.data.get(), stored.blob.size))});
      ++row.programs;
      row.blob_bytes += static_cast<std::int64_t>(stored.blob.size);
    }
    write_file_atomically(folder_ / (row.unit + ".json"), write_graph(block.graph()));
    if (auto content = block_content(block, device, target_)) {
      content->producer = producer_;
      write_bundle(folder_ / (row.unit + ".npub"), *content);
    }
    return entry;
  }

 private:
  const LoadedPlan& loaded_;
  const Target& target_;
  const NewFolder& folder_;
  const std::string& producer_;
};

}  // namespace

CompileBlocksReport compile_blocks(const RunPlanOptions& options, const BlockFolder& folder,
                                   Diagnostics& diagnostics) {
  CompileBlocksReport report;
  NewFolder files(folder.path);
  const GnnPlan plan = read_runnable_plan(options.plan);
  LoadedPlan loaded;
  const BlockUses uses = uses_of(plan, options, loaded, report.times);
  std::optional<PhaseTimes::Scope> phase(std::in_place, report.times, "devices and programs");
  CompileCache cache(options.cache);
  ProgramCounts counts;
  const std::vector<GnnDevice> devices = open_devices(plan, options, cache, counts);
  const Target target = load_target(options.target.empty() ? plan.settings.target : options.target);
  BlockIndex index = index_head(plan, precision_of(plan, options.precision));
  index.producer = folder.producer;
  index.weights = weights_digest(loaded.weights);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    index.devices[d].backends = block_backends(devices[d]);
  }
  BlockFileWriter writer(loaded, target, files, folder.producer);
  for (const auto& [key, subgraphs] : uses) {
    const GnnDevice& device = devices[index_of(key.device)];
    report_progress(options.progress,
                    static_cast<double>(index.units.size()) / static_cast<double>(uses.size()),
                    block_name(key, device.name));
    index.units.push_back(writer.write(key, subgraphs, device, report.units.emplace_back()));
  }
  write_file_atomically(files / std::string(kBlockIndexFile), write_document(to_json(index)));
  files.publish();
  for (const std::string& warning : cache.take_warnings()) diagnostics.warning({}, warning);
  report.compiled = counts.compiled;
  report.cache_hits = counts.cache_hits;
  phase.reset();
  return report;
}

std::string format_blocks_report(const CompileBlocksReport& report) {
  std::vector<std::vector<std::string>> rows{
      {"unit", "backend", ">subgraphs", ">programs", ">bytes", ">ms"}};
  for (const CompiledBlockRow& unit : report.units) {
    rows.push_back({unit.unit, unit.backend, std::to_string(unit.subgraphs),
                    std::to_string(unit.programs), bytes_text(static_cast<double>(unit.blob_bytes)),
                    fixed_text(unit.ms, 1)});
  }
  const std::map<std::string, double> sums = blocks_metrics(report);
  return table_text(rows) + std::to_string(report.units.size()) + " units, " +
         fixed_text(sums.at("programs"), 0) + " programs, " + bytes_text(sums.at("blob_bytes")) +
         "; of static devices " + std::to_string(report.compiled) + " compiled, " +
         std::to_string(report.cache_hits) + " from the cache\n\n" +
         format_phase_times(report.times);
}

std::map<std::string, double> blocks_metrics(const CompileBlocksReport& report) {
  std::map<std::string, double> metrics = {{"units", static_cast<double>(report.units.size())},
                                           {"programs", 0},
                                           {"blob_bytes", 0},
                                           {"compile_ms", 0},
                                           {"static_compiles", report.compiled},
                                           {"cache_hits", report.cache_hits}};
  for (const CompiledBlockRow& unit : report.units) {
    metrics["programs"] += static_cast<double>(unit.programs);
    metrics["blob_bytes"] += static_cast<double>(unit.blob_bytes);
    metrics["compile_ms"] += unit.ms;
  }
  return metrics;
}

bool is_plan_file(const std::string& path) {
  if (!is_regular_file(path)) return false;
  // Where every plan has its kind; what follows can be long.
  constexpr std::size_t kHead = 256;
  const MappedFile file(path);
  std::string head(reinterpret_cast<const char*>(file.data()), std::min(kHead, file.size()));
  std::erase_if(head, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return head.starts_with(R"({"npu":{)") && head.find(R"("kind":"plan")") != std::string::npos;
}

}  // namespace npu::gnn
