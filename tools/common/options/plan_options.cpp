// SPDX-License-Identifier: Apache-2.0
// The options of npu-plan, and the parsing of their values.
#include "options/plan_options.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "npu/support/error.hpp"
#include "options/key_value.hpp"
#include "options/part_counts.hpp"
#include "options/validators.hpp"

namespace npu::cli {
namespace {

// More than any model has.
constexpr std::int64_t kMaxStage = 1'000'000;

std::string parse_ratios(const std::string& text, std::vector<double>& ratios) {
  ratios.clear();
  for (const std::string_view part : comma_parts(text)) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || !(value > 0 && value < 1)) {
      return "'" + text + "' is no list of ratios between 0 and 1, for example 0.25,0.5,0.75";
    }
    ratios.push_back(value);
  }
  return {};
}

std::string parse_pad(const std::string& text, std::int64_t& pad) {
  if (text == "auto") {
    pad = 0;
    return {};
  }
  if (!parse_integer(text, pad) || pad < 1 || pad > 1'000'000'000) {
    return "'" + text + "' is neither 'auto' nor a number in 1..1000000000";
  }
  return {};
}

CLI::Validator imbalance() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool good =
            error == std::errc() && end == text.data() + text.size() && value > 1 && value <= 100;
        return good ? std::string() : "value " + text + " is not above 1 and at most 100";
      },
      "");
}

/// Adds an option whose text `parse` turns into a value or refuses with a message.
template <typename Value>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Value& value,
                        std::string (*parse)(const std::string&, Value&), const std::string& help) {
  return app
      .add_option_function<std::string>(
          name, [&value, parse](const std::string& text) { parse(text, value); }, help)
      ->check(
          CLI::Validator([&value, parse](std::string& text) { return parse(text, value); }, ""));
}

CLI::Option* add_repeatable(CLI::App& app, const std::string& name,
                            std::vector<std::string>& values, const std::string& help) {
  return repeatable(app.add_option(name, values, help));
}

void add_files(Tool& tool, gnn::MakePlanOptions& options) {
  CLI::App& app = tool.app();
  app.add_option("GRAPH", options.graph,
                 "graph: MatrixMarket, METIS .graph, .safetensors, else an edge list; - is stdin");
  tool.add_output();
  app.add_option("--model", options.model, "staged model")->type_name("FILE");
  app.add_option("--profile", options.profile,
                 "stage table by npu-profile, or table of published form (npu-gnn(5))")
      ->type_name("FILE");
  app.add_option("--bandwidths", options.bandwidths, "link rates of published form")
      ->type_name("FILE");
  app.add_option("--subgraphs", options.subgraphs,
                 "instead of GRAPH: JSON list of subgraphs with id, n (nodes) and m (edges)")
      ->type_name("FILE");
  app.add_option("--target", options.settings.target,
                 "target that says which device can run which stage")
      ->type_name("NAME|FILE")
      ->capture_default_str();
}

void add_parts(CLI::App& app, gnn::MakePlanOptions& options) {
  add_parsed(app, "-k,--parts", options.part_counts, parse_part_counts,
             "numbers of parts to try, such as 8..16 or 4,8; 1 is always tried [8..16]")
      ->type_name("LIST");
  app.add_option("--seeds", options.seed_count, "METIS runs for each k; the best is kept")
      ->type_name("N")
      ->check(in_range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "seed of the first run")
      ->type_name("SEED")
      ->check(seed())
      ->capture_default_str();
  app.add_option("--node-imbalance", options.node_imbalance,
                 "goal: most nodes of a part, as a multiple of the mean [1.05]")
      ->type_name("X")
      ->check(imbalance());
  app.add_option("--edge-imbalance", options.edge_imbalance,
                 "goal: most in-edges of a part, as a multiple of the mean [1.03]")
      ->type_name("X")
      ->check(imbalance());
  app.add_flag("--minimize-halo", options.minimize_volume,
               "let METIS minimise halo nodes instead of the edge cut");
  app.add_option_function<std::int64_t>(
         "--nodes",
         [&options](const std::int64_t& count) { options.graph_options.node_count = count; },
         "edge list: ids are nodes 0..N-1")
      ->type_name("N")
      ->check(in_range(1, 2'000'000'000));
  app.add_flag("--undirected", options.graph_options.undirected, "add missing reverse edges");
}

void add_partitioner(CLI::App& app, gnn::MakePlanOptions& options) {
  app.add_option_function<std::string>(
         "--partitioner",
         [&options](const std::string& text) {
           options.partitioner = text == "metis"        ? Partitioner::kMetis
                                 : text == "multilevel" ? Partitioner::kMultilevel
                                 : text == "ptscotch"   ? Partitioner::kPtScotch
                                                        : Partitioner::kAutomatic;
         },
         "metis, multilevel (coarsen once, METIS on what is left, refine), ptscotch (PT-Scotch, in "
         "all processes that mpirun has started) or auto: ptscotch under mpirun, else multilevel "
         "from a million edges on [auto]")
      ->type_name("METHOD")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text == "auto" || text == "metis" || text == "multilevel" || text == "ptscotch"
                       ? std::string()
                       : "'" + text + "' is none of auto, metis, multilevel and ptscotch";
          },
          ""));
  app.add_option("--threads", options.threads,
                 "threads, and METIS runs side by side, while the graph is cut; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
}

void add_search(CLI::App& app, gnn::MakePlanOptions& options) {
  add_parsed(app, "--pad", options.pad, parse_pad,
             "round static shapes up to multiples of N; auto: the N with the least padded work and "
             "compile time [1000]")
      ->type_name("N|auto");
  add_parsed(app, "--ratios", options.settings.ratios, parse_ratios,
             "shares of the work by device to try, instead of a search")
      ->type_name("LIST");
  app.add_option("--segments", options.settings.max_segments, "most segments of a pipeline")
      ->type_name("N")
      ->check(in_range(1, 8))
      ->capture_default_str();
  app.add_option("--top-k", options.settings.top_k,
                 "fastest plans kept for each subgraph; 0 keeps all")
      ->type_name("N")
      ->check(in_range(0, 1'000'000))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--select",
         [&options](const std::string& text) { options.settings.greedy = text == "greedy"; },
         "optimal (bound, local search, branch and bound) or greedy [optimal]")
      ->type_name("METHOD")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text == "optimal" || text == "greedy"
                       ? std::string()
                       : "'" + text + "' is neither optimal nor greedy";
          },
          ""));
  app.add_option_function<std::string>(
         "--interpolation",
         [&options](const std::string& text) {
           options.settings.interpolation =
               text == "nearest" ? gnn::Interpolation::kNearest : gnn::Interpolation::kBilinear;
         },
         "bilinear (in n and m/n) or nearest [bilinear]")
      ->type_name("METHOD")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text == "bilinear" || text == "nearest"
                       ? std::string()
                       : "'" + text + "' is neither bilinear nor nearest";
          },
          ""));
  app.add_flag_callback(
      "--no-transfers", [&options] { options.settings.transfers = false; },
      "count no time for transfers between devices");
}

void add_devices(CLI::App& app, PlanOptions& options) {
  repeatable(app.add_option("--devices", options.plan.settings.devices,
                            "plan only for these devices of the profile"))
      ->type_name("NAME,...")
      ->delimiter(',');
  add_repeatable(app, "--exclude", options.excludes,
                 "stages that a device must not run; repeatable")
      ->type_name("DEVICE=STAGE,...");
  add_repeatable(app, "--memory", options.memory, "memory limit of a device; repeatable")
      ->type_name("DEVICE=BYTES");
  add_repeatable(app, "--resource", options.resources,
                 "devices with the same resource take turns; repeatable")
      ->type_name("DEVICE=NAME");
}

void add_ranks(CLI::App& app, gnn::MakePlanOptions& options) {
  app.add_option("--ranks", options.rank_count,
                 "spread the parts over this many processes; only the numbers of --parts are tried")
      ->type_name("N")
      ->check(in_range(1, 1024));
  app.add_option_function<std::string>(
         "--rank-memory",
         [&options](const std::string& text) { options.rank_memory = *parse_byte_size(text); },
         "the most that a rank may hold; k, M, G or T may follow the number; one that has to hold "
         "more keeps rows in files; exit 3 if that is not enough")
      ->type_name("SIZE")
      ->check(byte_size())
      ->needs("--ranks");
  auto* const bandwidth =
      app.add_option_function<std::string>(
             "--rank-bandwidth",
             [&options](const std::string& text) {
               if (!options.rank_link) options.rank_link.emplace();
               options.rank_link->bytes_per_second = *parse_byte_size(text);
             },
             "bytes a second that a rank can send and receive, together: predicts the time of "
             "exchanges; k, M, G or T may follow the number")
          ->type_name("SIZE")
          ->check(byte_size())
          ->needs("--ranks");
  app.add_option_function<std::int64_t>(
         "--rank-latency",
         [&options](const std::int64_t& us) {
           if (!options.rank_link) options.rank_link.emplace();
           options.rank_link->latency_us = static_cast<double>(us);
         },
         "time of a message between ranks, in microseconds [0]")
      ->type_name("US")
      ->check(in_range(0, 1'000'000'000))
      ->needs(bandwidth);
  app.add_option("--links", options.rank_links,
                 "links between ranks, which mpirun -n N npu-profile --links FILE has measured: "
                 "predict the time of exchanges")
      ->type_name("FILE")
      ->needs("--ranks")
      ->excludes(bandwidth);
  app.add_option_function<std::string>(
         "--exchange",
         [&options](const std::string& text) {
           options.features_only = text == "features";
           options.device_cover = text == "cover";
         },
         "what crosses between ranks or, without --ranks, between devices: cover (features or "
         "sums, the fewest rows) or features [cover with --ranks, else features]")
      ->type_name("METHOD")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text == "cover" || text == "features"
                       ? std::string()
                       : "'" + text + "' is neither cover nor features";
          },
          ""));
}

void add_binary_graph(CLI::App& app, gnn::MakePlanOptions& options) {
  app.add_option("--csr", options.csr_file,
                 "write the graph in binary form, which the plan then names: ranks read their rows "
                 "of it alone")
      ->type_name("FILE")
      ->check(file_beside_stdout());
}

}  // namespace

void PlanOptions::finish() {
  check_complete();
  if (plan.rank_link && plan.rank_link->bytes_per_second < 1) {
    throw Error(ErrorCode::kUsage, "--rank-bandwidth: expected at least a byte a second");
  }
  if (plan.rank_count > 0) plan.device_cover = false;
  gnn::PlanSettings& settings = plan.settings;
  for (const std::string& text : memory) {
    const auto [device, value] = split_key_value(text, "--memory", "DEVICE=VALUE");
    const std::vector<std::int64_t> bytes = parse_integers(value, "--memory");
    if (bytes.size() != 1 || bytes[0] < 1) {
      throw Error(ErrorCode::kUsage, "--memory '" + text + "': expected a number of bytes");
    }
    settings.memory.push_back({device, bytes[0]});
  }
  for (const std::string& text : resources) {
    const auto [device, name] = split_key_value(text, "--resource", "DEVICE=VALUE");
    settings.resources.push_back({device, name});
  }
  for (const std::string& text : excludes) {
    const auto [device, value] = split_key_value(text, "--exclude", "DEVICE=VALUE");
    gnn::ExcludedStages excluded{device, {}};
    for (const std::int64_t stage : parse_integers(value, "--exclude")) {
      if (stage < 1 || stage > kMaxStage) {
        throw Error(ErrorCode::kUsage, "--exclude '" + text + "': stage " + std::to_string(stage) +
                                           " is not in 1.." + std::to_string(kMaxStage));
      }
      excluded.stages.push_back(static_cast<std::int32_t>(stage));
    }
    settings.excluded.push_back(std::move(excluded));
  }
}

// Reports everything that is missing at once.
void PlanOptions::check_complete() const {
  std::vector<std::string> missing;
  if (plan.graph.empty() && plan.subgraphs.empty()) {
    missing.emplace_back("a GRAPH or --subgraphs FILE");
  }
  if (plan.profile.empty()) missing.emplace_back("--profile FILE");
  if (!plan.graph.empty() && !plan.subgraphs.empty()) {
    missing.emplace_back("either a GRAPH or --subgraphs FILE, not both");
  }
  if (plan.model.empty() && plan.settings.transfers && plan.subgraphs.empty()) {
    missing.emplace_back("--model FILE (or --no-transfers: transfers depend on sizes of tensors)");
  }
  if (missing.empty()) return;
  std::string text = "expected ";
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (i > 0) text += i + 1 < missing.size() ? ", " : " and ";
    text += missing[i];
  }
  throw Error(ErrorCode::kUsage, text);
}

void add_plan_options(Tool& tool, PlanOptions& options) {
  CLI::App& app = tool.app();
  add_files(tool, options.plan);
  add_parts(app, options.plan);
  add_partitioner(app, options.plan);
  add_search(app, options.plan);
  add_devices(app, options);
  add_ranks(app, options.plan);
  add_binary_graph(app, options.plan);
  app.add_option("--partition-file", options.plan.partition_file,
                 "file for the partition [beside the plan, ending in .part]")
      ->type_name("FILE")
      ->check(file_beside_stdout());
}

}  // namespace npu::cli
