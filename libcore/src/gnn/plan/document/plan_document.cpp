// SPDX-License-Identifier: Apache-2.0
// The document of kind "plan": the one place that knows its keys.
//
// to_json writes what plan_from_json reads, in a fixed order of keys, so that equal plans give
// equal bytes. Keys that only people read may be missing from a document; those that the verifier
// or the runner needs may not. O(size of the document).
#include "gnn/plan/document/plan_document.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "gnn/exchange/device_exchange_document.hpp"
#include "gnn/exchange/rank_document.hpp"
#include "npu/support/file_io.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

constexpr std::int32_t kVersion = 1;
constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxCount = std::int64_t{1} << 50;
constexpr double kMaxNumber = std::numeric_limits<double>::max();

constexpr FieldStyle kStyle{.names_key = true,
                            .missing = "the plan is not complete: the key '{}' is missing",
                            .missing_at_key = false};

// ---- Settings that are written as "DEVICE=VALUE". ----

std::string number_list_text(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (const std::int32_t number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

// The setting, cut at its first '='.
std::pair<std::string, std::string> split_setting(const JsonFields& at, const std::string& key,
                                                  const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    at.refuse(key, "expected DEVICE=VALUE, found '" + text + "'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Numbers of at least 1 with commas between.
std::vector<std::int64_t> numbers_of(const JsonFields& at, const std::string& key,
                                     std::string_view text) {
  auto numbers = integer_list(text);
  const auto is_positive = [](std::int64_t number) { return number >= 1; };
  if (numbers && std::all_of(numbers->begin(), numbers->end(), is_positive)) return *numbers;
  at.refuse(key, "expected positive numbers behind '=', found '" + std::string(text) + "'");
}

std::vector<std::string> texts_of(const JsonFields& fields, const std::string& key) {
  std::vector<std::string> texts;
  for (const Json& element : fields.list(key)) {
    const std::string* text = json_text(&element);
    if (text == nullptr) fields.refuse(key, "expected strings, found " + value_or_type(&element));
    texts.push_back(*text);
  }
  return texts;
}

std::vector<double> doubles_of(const JsonFields& fields, const std::string& key) {
  std::vector<double> numbers;
  for (const Json& element : fields.list(key)) {
    const auto number = json_double(&element);
    if (!number) fields.refuse(key, "expected numbers, found " + value_or_type(&element));
    numbers.push_back(*number);
  }
  return numbers;
}

DeviceTimes times_of(const JsonFields& fields, const std::string& key) {
  DeviceTimes times;
  for (const auto& [device, value] : fields.object(key).items()) {
    const auto ms = json_double(&value);
    if (!ms) fields.refuse(key, "expected numbers, found " + value_or_type(&value));
    times.emplace_back(device, *ms);
  }
  return times;
}

bool flag_or(const JsonFields& fields, const std::string& key, bool otherwise) {
  return fields.has(key) ? fields.flag(key) : otherwise;
}

std::int64_t integer_or(const JsonFields& fields, const std::string& key, std::int64_t min,
                        std::int64_t max, std::int64_t otherwise) {
  return fields.has(key) ? fields.integer(key, min, max) : otherwise;
}

std::int32_t layer_of(const JsonFields& fields) {
  return static_cast<std::int32_t>(fields.integer("layer", 1, kMaxId));
}

Json times_json(const DeviceTimes& times) {
  Json json = Json::object();
  for (const auto& [device, ms] : times) json[device] = ms;
  return json;
}

// ---- What the plan was made from. ----

void write_files(const PlanFiles& files, Json& json) {
  if (!files.model.empty()) {
    json["model"] = files.model;
    json["model_hash"] = files.model_hash;
  }
  if (!files.graph.empty()) {
    json["graph"] = files.graph;
    json["graph_nodes"] = files.graph_nodes;
    json["graph_edges"] = files.graph_edges;
    if (files.node_count_given) json["graph_node_count_option"] = true;
    if (files.undirected) json["graph_undirected"] = true;
    if (files.one_loop) json["graph_one_loop"] = true;
  } else {
    json["subgraphs_file"] = files.subgraphs;
  }
  json["profile"] = files.profile;
  if (!files.precision.empty()) json["precision"] = files.precision;
  if (!files.bandwidths.empty()) json["bandwidths"] = files.bandwidths;
}

PlanFiles read_files(const JsonFields& plan) {
  PlanFiles files;
  files.model = plan.text_or("model", {});
  if (!files.model.empty()) files.model_hash = plan.text("model_hash");
  files.graph = plan.text_or("graph", {});
  if (!files.graph.empty()) {
    files.node_count_given = plan.has("graph_node_count_option");
    files.undirected = plan.has("graph_undirected");
    files.one_loop = plan.has("graph_one_loop");
    files.graph_nodes = files.node_count_given ? plan.integer("graph_nodes", 1, kMaxId)
                                               : integer_or(plan, "graph_nodes", 0, kMaxId, 0);
    files.graph_edges = integer_or(plan, "graph_edges", 0, kMaxCount, 0);
  }
  files.subgraphs = plan.text_or("subgraphs_file", {});
  files.profile = plan.text_or("profile", {});
  files.precision = plan.text_or("precision", {});
  if (!files.precision.empty() && files.precision != "bf16") {
    plan.refuse("precision", "expected \"bf16\", found \"" + files.precision + "\"");
  }
  files.bandwidths = plan.text_or("bandwidths", {});
  return files;
}

Json settings_json(const PlanSettings& settings) {
  Json json = {
      {"select", settings.greedy ? "greedy" : "optimal"},
      {"transfers", settings.transfers},
      {"interpolation",
       settings.interpolation == Interpolation::kBilinear ? "bilinear" : "nearest"},
      {"ratios", settings.ratios},
      {"max_segments", settings.max_segments},
      {"top_k", settings.top_k},
      {"target", settings.target},
      {"devices", settings.devices},
  };
  Json& excluded = json["exclude"] = Json::array();
  for (const ExcludedStages& entry : settings.excluded) {
    excluded.push_back(entry.device + "=" + number_list_text(entry.stages));
  }
  Json& memory = json["memory"] = Json::array();
  for (const MemoryLimit& entry : settings.memory) {
    memory.push_back(entry.device + "=" + std::to_string(entry.bytes));
  }
  Json& resources = json["resource"] = Json::array();
  for (const ResourceName& entry : settings.resources) {
    resources.push_back(entry.device + "=" + entry.resource);
  }
  return json;
}

PlanSettings read_settings(const JsonFields& fields) {
  PlanSettings settings;
  settings.greedy = fields.text_or("select", "optimal") == "greedy";
  settings.transfers = fields.flag("transfers");
  settings.interpolation = fields.text("interpolation") == "nearest" ? Interpolation::kNearest
                                                                     : Interpolation::kBilinear;
  settings.ratios = doubles_of(fields, "ratios");
  settings.max_segments = static_cast<std::int32_t>(fields.integer("max_segments", 1, 64));
  settings.top_k = static_cast<std::int32_t>(fields.integer("top_k", 0, kMaxId));
  settings.target = fields.text("target");
  settings.devices = texts_of(fields, "devices");
  for (const std::string& text : texts_of(fields, "exclude")) {
    const auto [device, value] = split_setting(fields, "exclude", text);
    ExcludedStages entry{device, {}};
    for (const std::int64_t stage : numbers_of(fields, "exclude", value)) {
      entry.stages.push_back(static_cast<std::int32_t>(std::min(stage, kMaxId)));
    }
    settings.excluded.push_back(std::move(entry));
  }
  for (const std::string& text : texts_of(fields, "memory")) {
    const auto [device, value] = split_setting(fields, "memory", text);
    settings.memory.push_back({device, numbers_of(fields, "memory", value).front()});
  }
  for (const std::string& text : texts_of(fields, "resource")) {
    const auto [device, value] = split_setting(fields, "resource", text);
    settings.resources.push_back({device, value});
  }
  return settings;
}

Json partition_json(const PlanPartition& partition) {
  Json json = {{"file", partition.file},
               {"hash", partition.hash},
               {"seed", partition.seed},
               {"edge_cut", partition.edge_cut},
               {"imbalance", partition.imbalance}};
  if (partition.repaired_parts > 0) json["repaired_parts"] = partition.repaired_parts;
  if (partition.levels > 0) json["levels"] = partition.levels;
  if (partition.levels > 0) json["coarsest_nodes"] = partition.coarsest_nodes;
  if (partition.processes > 0) json["partitioner"] = partition.partitioner;
  if (partition.processes > 0) json["processes"] = partition.processes;
  return json;
}

PlanPartition read_partition(const JsonFields& fields) {
  PlanPartition partition;
  partition.file = fields.text("file");
  partition.hash = fields.text("hash");
  if (fields.has("seed")) partition.seed = fields.unsigned_integer("seed");
  partition.edge_cut = integer_or(fields, "edge_cut", 0, kMaxCount, 0);
  if (fields.has("imbalance")) partition.imbalance = doubles_of(fields, "imbalance");
  partition.repaired_parts =
      static_cast<std::int32_t>(integer_or(fields, "repaired_parts", 0, kMaxId, 0));
  partition.levels = static_cast<std::int32_t>(integer_or(fields, "levels", 0, kMaxId, 0));
  partition.coarsest_nodes =
      static_cast<std::int32_t>(integer_or(fields, "coarsest_nodes", 0, kMaxId, 0));
  if (fields.has("partitioner")) partition.partitioner = fields.text("partitioner");
  partition.processes = static_cast<std::int32_t>(integer_or(fields, "processes", 0, kMaxId, 0));
  return partition;
}

Json subgraph_json(const PlanSubgraph& subgraph) {
  const SubgraphSize& size = subgraph.size;
  Json json = {{"id", size.id},
               {"n", size.n},
               {"m", size.m},
               {"halo", size.halo},
               {"n_pad", subgraph.padded_nodes},
               {"m_pad", subgraph.padded_edges},
               {"cut_edges", size.cut_edges}};
  if (size.saved > 0) json["saved"] = size.saved;
  return json;
}

PlanSubgraph read_subgraph(const JsonFields& fields) {
  PlanSubgraph subgraph;
  subgraph.size.id = static_cast<std::int32_t>(fields.integer("id", 0, kMaxId));
  subgraph.size.n = fields.integer("n", 0, kMaxCount);
  subgraph.size.m = fields.integer("m", 0, kMaxCount);
  subgraph.size.halo = fields.integer("halo", 0, kMaxCount);
  subgraph.size.cut_edges = fields.integer("cut_edges", 0, kMaxCount);
  subgraph.size.saved = integer_or(fields, "saved", 0, subgraph.size.halo, 0);
  subgraph.padded_nodes = fields.integer("n_pad", 0, kMaxCount);
  subgraph.padded_edges = fields.integer("m_pad", 0, kMaxCount);
  return subgraph;
}

// ---- What runs where. ----

Json device_plan_json(const PlannedStages& plan) {
  Json segments = Json::array();
  for (const PlannedSegment& segment : plan.segments) {
    Json shares = Json::array();
    for (const PlannedShare& share : segment.shares) {
      shares.push_back({{"device", share.device}, {"ratio", share.ratio}});
    }
    segments.push_back(
        {{"first", segment.first}, {"last", segment.last}, {"devices", std::move(shares)}});
  }
  return {
      {"id", plan.id}, {"layer", plan.layer}, {"key", plan.key}, {"segments", std::move(segments)}};
}

PlannedStages read_device_plan(const JsonFields& fields) {
  PlannedStages plan;
  plan.id = integer_or(fields, "id", 0, kMaxId, 0);
  plan.layer = static_cast<std::int32_t>(integer_or(fields, "layer", 1, kMaxId, 1));
  plan.key = fields.text_or("key", {});
  fields.for_each("segments", [&](const JsonFields& segment_fields) {
    PlannedSegment& segment = plan.segments.emplace_back();
    segment.first = static_cast<std::int32_t>(segment_fields.integer("first", 1, 64));
    segment.last = static_cast<std::int32_t>(segment_fields.integer("last", 1, 64));
    segment_fields.for_each("devices", [&](const JsonFields& share) {
      segment.shares.push_back({share.text("device"), share.number("ratio", 1)});
    });
  });
  return plan;
}

PlanCluster read_cluster(const JsonFields& fields) {
  PlanCluster cluster;
  cluster.layer = layer_of(fields);
  cluster.device_plan = fields.integer("pep", 0, kMaxId);
  for (const Json& element : fields.list("subgraphs")) {
    const auto id = json_integer(&element);
    if (!id) fields.refuse("subgraphs", "expected integers, found " + value_or_type(&element));
    cluster.subgraphs.push_back(*id);
  }
  return cluster;
}

Json assignment_json(const PlanAssignment& assignment) {
  Json json = {
      {"layer", assignment.layer},           {"subgraph", assignment.subgraph},
      {"pep", assignment.device_plan},       {"device_ms", times_json(assignment.device_ms)},
      {"latency_ms", assignment.latency_ms}, {"transfer_ms", assignment.transfer_ms}};
  if (assignment.extrapolated) json["extrapolated"] = true;
  if (assignment.disturbed) json["disturbed"] = true;
  return json;
}

PlanAssignment read_assignment(const JsonFields& fields) {
  PlanAssignment assignment;
  assignment.layer = layer_of(fields);
  assignment.subgraph = fields.integer("subgraph", 0, kMaxId);
  assignment.device_plan = fields.integer("pep", 0, kMaxId);
  assignment.device_ms = times_of(fields, "device_ms");
  assignment.latency_ms = fields.number("latency_ms", kMaxNumber);
  assignment.transfer_ms = fields.number_or("transfer_ms", kMaxNumber, 0);
  assignment.extrapolated = flag_or(fields, "extrapolated", false);
  assignment.disturbed = flag_or(fields, "disturbed", false);
  return assignment;
}

// ---- What it comes to. ----

void write_totals(const GnnPlan& plan, Json& json) {
  json["loads_ms"] = times_json(plan.predicted.loads_ms);
  json["max_load_ms"] = plan.predicted.max_load_ms;
  json["load_bound_ms"] = plan.proof.load_bound_ms;
  json["load_gap"] = plan.proof.load_gap;
  json["least_load_ms"] = plan.proof.least_load_ms;
  json["least_load_gap"] = plan.proof.least_load_gap;
  json["makespan_ms"] = plan.predicted.makespan_ms;
  json["lower_bound_ms"] = plan.proof.lower_bound_ms;
  json["gap"] = plan.proof.gap;
  json["best_single_device"] = nullptr;
  if (const auto& best = plan.predicted.best_single_device) {
    json["best_single_device"] = {{"device", best->device}, {"ms", best->ms}, {"k", best->k}};
    json["speedup"] = plan.predicted.speedup;
  }
  json["plan_switches"] = plan.predicted.plan_switches;
  if (plan.switches_cost()) {
    json["switching_ms"] = plan.predicted.switching_ms;
    json["ungrouped_ms"] = plan.predicted.ungrouped_ms;
  }
  json["extrapolated"] = plan.predicted.extrapolated;
  if (plan.predicted.disturbed > 0) json["disturbed"] = plan.predicted.disturbed;
  if (!plan.predicted.uncertain.empty()) json["uncertain"] = plan.predicted.uncertain;
  json["compiles"] = {{"count", plan.predicted.program_count},
                      {"predicted_ms", plan.predicted.compile_ms},
                      {"programs", plan.predicted.programs}};
}

void read_totals(const JsonFields& fields, GnnPlan& plan) {
  plan.predicted.loads_ms = times_of(fields, "loads_ms");
  plan.predicted.max_load_ms = fields.number("max_load_ms", kMaxNumber);
  plan.proof.load_bound_ms = fields.number("load_bound_ms", kMaxNumber);
  plan.proof.load_gap = fields.number_or("load_gap", kMaxNumber, 0);
  plan.proof.least_load_ms =
      fields.number_or("least_load_ms", kMaxNumber, plan.predicted.max_load_ms);
  plan.proof.least_load_gap = fields.number_or("least_load_gap", kMaxNumber, plan.proof.load_gap);
  plan.predicted.makespan_ms = fields.number("makespan_ms", kMaxNumber);
  plan.proof.lower_bound_ms = fields.number("lower_bound_ms", kMaxNumber);
  plan.proof.gap = fields.number("gap", kMaxNumber);
  if (const Json* best = fields.find("best_single_device"); best != nullptr && !best->is_null()) {
    const JsonFields single(*best, fields.file(), "/best_single_device", kStyle);
    plan.predicted.best_single_device = {single.text("device"), single.number("ms", kMaxNumber),
                                         static_cast<std::int32_t>(single.integer("k", 1, kMaxId))};
    plan.predicted.speedup = fields.number_or("speedup", kMaxNumber, 0);
  }
  plan.predicted.plan_switches =
      static_cast<std::int32_t>(integer_or(fields, "plan_switches", 0, kMaxId, 0));
  plan.predicted.switching_ms = fields.number_or("switching_ms", kMaxNumber, 0);
  plan.predicted.ungrouped_ms = fields.number_or("ungrouped_ms", kMaxNumber, 0);
  plan.predicted.extrapolated = integer_or(fields, "extrapolated", 0, kMaxCount, 0);
  plan.predicted.disturbed = integer_or(fields, "disturbed", 0, kMaxCount, 0);
  if (fields.has("uncertain")) plan.predicted.uncertain = texts_of(fields, "uncertain");
  if (fields.has("compiles")) {
    const JsonFields compiles(fields.object("compiles"), fields.file(), "/compiles", kStyle);
    plan.predicted.program_count = integer_or(compiles, "count", 0, kMaxCount, 0);
    plan.predicted.compile_ms = compiles.number_or("predicted_ms", kMaxNumber, 0);
    if (compiles.has("programs")) plan.predicted.programs = texts_of(compiles, "programs");
  }
}

Json proof_json(const LayerProof& proof) {
  return {{"layer", proof.layer},
          {"multipliers", proof.multipliers},
          {"dual_bound_ms", proof.dual_bound_ms},
          {"load_bound_ms", proof.load_bound_ms},
          {"least_load_ms", proof.least_load_ms},
          {"max_load_ms", proof.max_load_ms},
          {"makespan_ms", proof.makespan_ms},
          {"search_finished", proof.search_finished}};
}

LayerProof read_proof(const JsonFields& fields) {
  LayerProof proof;
  proof.layer = layer_of(fields);
  proof.multipliers = doubles_of(fields, "multipliers");
  proof.dual_bound_ms = fields.number("dual_bound_ms", kMaxNumber);
  proof.load_bound_ms = fields.number("load_bound_ms", kMaxNumber);
  proof.max_load_ms = fields.number("max_load_ms", kMaxNumber);
  proof.least_load_ms = fields.number_or("least_load_ms", kMaxNumber, proof.max_load_ms);
  proof.makespan_ms = fields.number_or("makespan_ms", kMaxNumber, 0);
  proof.search_finished = flag_or(fields, "search_finished", false);
  return proof;
}

Json sweep_json(const SweepRow& row) {
  Json json = {{"k", row.k}, {"edge_cut", row.edge_cut}, {"halo", row.halo}};
  if (!row.infeasible.empty()) {
    json["infeasible"] = row.infeasible;
    return json;
  }
  json["pad"] = row.pad;
  if (!row.passed_over.empty()) json["passed_over"] = row.passed_over;
  json["makespan_ms"] = row.makespan_ms;
  json["lower_bound_ms"] = row.lower_bound_ms;
  json["gap"] = row.gap;
  if (row.ranks_makespan_ms) json["ranks_makespan_ms"] = *row.ranks_makespan_ms;
  json["single_device_ms"] = times_json(row.single_device_ms);
  return json;
}

SweepRow read_sweep_row(const JsonFields& fields) {
  SweepRow row;
  row.k = static_cast<std::int32_t>(fields.integer("k", 1, kMaxId));
  row.edge_cut = fields.integer("edge_cut", 0, kMaxCount);
  row.halo = fields.integer("halo", 0, kMaxCount);
  row.infeasible = fields.text_or("infeasible", {});
  if (!row.infeasible.empty()) return row;
  row.pad = fields.integer("pad", 1, kMaxCount);
  row.passed_over = fields.text_or("passed_over", {});
  row.makespan_ms = fields.number("makespan_ms", kMaxNumber);
  row.lower_bound_ms = fields.number("lower_bound_ms", kMaxNumber);
  row.gap = fields.number("gap", kMaxNumber);
  if (fields.has("ranks_makespan_ms")) {
    row.ranks_makespan_ms = fields.number("ranks_makespan_ms", kMaxNumber);
  }
  row.single_device_ms = times_of(fields, "single_device_ms");
  return row;
}

// ---- Lists of sections. ----

template <typename Section, typename Write>
Json list_json(const std::vector<Section>& sections, const Write& write) {
  Json list = Json::array();
  for (const Section& section : sections) list.push_back(write(section));
  return list;
}

template <typename Section>
void read_list(const JsonFields& plan, const std::string& key, std::vector<Section>& sections,
               Section (*read)(const JsonFields&)) {
  plan.for_each(key, [&](const JsonFields& fields) { sections.push_back(read(fields)); });
}

}  // namespace

bool GnnPlan::switches_cost() const {
  return std::any_of(devices.begin(), devices.end(),
                     [](const PlanDevice& device) { return device.switch_ms > 0; });
}

bool is_plan(const Json& document) {
  const Json* npu = find_member(document, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  return kind != nullptr && *kind == "plan";
}

Json to_json(const GnnPlan& plan) {
  Json json;
  json["npu"] = {{"version", kVersion}, {"kind", "plan"}};
  write_files(plan.files, json);
  json["options"] = settings_json(plan.settings);
  json["devices"] = list_json(plan.devices, [](const PlanDevice& device) -> Json {
    Json item = {
        {"name", device.name}, {"resource", device.resource}, {"static", device.is_static}};
    if (!device.backend.empty()) item["backend"] = device.backend;
    if (device.switch_ms > 0) item["switch_ms"] = device.switch_ms;
    return item;
  });
  json["k"] = plan.choice.k;
  if (plan.choice.partition) json["partition"] = partition_json(*plan.choice.partition);
  json["pad"] = plan.choice.pad;
  json["subgraphs"] = list_json(plan.choice.subgraphs, subgraph_json);
  json["peps"] = list_json(plan.choice.device_plans, device_plan_json);
  json["clusters"] = list_json(plan.choice.clusters, [](const PlanCluster& cluster) -> Json {
    return {
        {"layer", cluster.layer}, {"pep", cluster.device_plan}, {"subgraphs", cluster.subgraphs}};
  });
  json["assignments"] = list_json(plan.choice.assignments, assignment_json);
  write_totals(plan, json);
  json["bounds"] = list_json(plan.proof.layers, proof_json);
  json["sweep"] = list_json(plan.search.sweep, sweep_json);
  json["rejected"] = list_json(plan.search.rejected, [](const RejectedPlan& entry) -> Json {
    return {{"layer", entry.layer}, {"pep", entry.device_plan}, {"reason", entry.reason}};
  });
  json["legal_classes"] = plan.search.legal_classes;
  if (plan.choice.ranks) json["ranks"] = to_json(*plan.choice.ranks);
  if (plan.choice.exchange) json["exchange"] = to_json(*plan.choice.exchange);
  return json;
}

GnnPlan plan_from_json(const Json& document, const std::string& file) {
  if (!is_plan(document)) {
    throw Error(ErrorCode::kParse, "expected a document of kind 'plan'",
                {.file = file, .pointer = "/npu/kind"});
  }
  if (const Json* version = find_member(document.at("npu"), "version");
      version == nullptr || *version != kVersion) {
    throw Error(ErrorCode::kParse, "expected version " + std::to_string(kVersion),
                {.file = file, .pointer = "/npu/version"});
  }
  const JsonFields fields(document, file, "", kStyle);
  GnnPlan plan;
  plan.files = read_files(fields);
  plan.settings = read_settings(JsonFields(fields.object("options"), file, "/options", kStyle));
  read_list<PlanDevice>(fields, "devices", plan.devices, [](const JsonFields& device) {
    return PlanDevice{device.text("name"), device.text("resource"), device.flag("static"),
                      device.text_or("backend", {}), device.number_or("switch_ms", kMaxNumber, 0)};
  });
  plan.choice.k = static_cast<std::int32_t>(fields.integer("k", 1, kMaxId));
  if (!plan.files.graph.empty()) {
    plan.choice.partition =
        read_partition(JsonFields(fields.object("partition"), file, "/partition", kStyle));
  }
  plan.choice.pad = fields.integer("pad", 0, kMaxCount);
  read_list(fields, "subgraphs", plan.choice.subgraphs, read_subgraph);
  read_list(fields, "peps", plan.choice.device_plans, read_device_plan);
  read_list(fields, "clusters", plan.choice.clusters, read_cluster);
  read_list(fields, "assignments", plan.choice.assignments, read_assignment);
  read_totals(fields, plan);
  read_list(fields, "bounds", plan.proof.layers, read_proof);
  if (fields.has("sweep")) read_list(fields, "sweep", plan.search.sweep, read_sweep_row);
  if (fields.has("rejected")) {
    read_list<RejectedPlan>(fields, "rejected", plan.search.rejected, [](const JsonFields& entry) {
      return RejectedPlan{layer_of(entry), entry.text("pep"), entry.text("reason")};
    });
  }
  plan.search.legal_classes = integer_or(fields, "legal_classes", 0, kMaxCount, 0);
  if (fields.has("ranks")) {
    plan.choice.ranks =
        read_rank_plan(JsonFields(fields.object("ranks"), file, "/ranks", kStyle), plan.choice.k);
  }
  if (fields.has("exchange")) {
    const JsonFields exchange(fields.object("exchange"), file, "/exchange", kStyle);
    plan.choice.exchange = read_device_exchange(exchange, plan.choice.k);
  }
  return plan;
}

GnnPlan read_plan(const std::string& path) {
  return plan_from_json(parse_json(read_file(path), path), path);
}

}  // namespace npu::gnn
