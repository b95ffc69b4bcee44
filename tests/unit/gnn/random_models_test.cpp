// SPDX-License-Identifier: Apache-2.0
// Random models, graphs and features: a plan over devices and parts, the whole graph in one task,
// and blocks of stages one after another give what double precision gives.
//
// A model takes each of its layers from a model of testdata, with weights of its own. Graphs have
// loops, parallel edges and nodes without edges; features are in a fifth of the cases large,
// infinite or no numbers. Every number of the reference has a bound of its error: each rounding is
// a unit of the largest sum of magnitudes that any order of the same sums can have, and errors go
// through functions as their slopes are.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gnn/block/gnn_block.hpp"
#include "gnn/graph/features.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "gnn/make_plan.hpp"
#include "gnn/run/plan_devices.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run_plan.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kRandomFolder = std::string(NPU_TEST_DATA_DIR) + "/gnn/";
constexpr double kUnit = 0x1p-24;
// From here on float32 may overflow where double does not, or underflow.
constexpr double kLargest = 1e36;
constexpr double kSmallest = 1e-36;

std::uint32_t below(std::uint32_t count, std::mt19937& random) {
  return static_cast<std::uint32_t>(random() % count);
}

/// A number, the most that sums of magnitudes can be that it comes from, and a bound of its error.
struct Bounded {
  double value = 0;
  double most = 0;
  double error = 0;

  /// What comes out of a function: no other order of sums leads to it.
  static Bounded computed(double value, double error) {
    return {value, std::abs(value) + error, error};
  }
};
Bounded exact(double value) { return {value, std::abs(value), 0}; }

Bounded operator+(const Bounded& a, const Bounded& b) {
  const double most = a.most + b.most;
  return {a.value + b.value, most, a.error + b.error + kUnit * most};
}
Bounded operator*(const Bounded& a, const Bounded& b) {
  const double most = a.most * b.most;
  return {a.value * b.value, most,
          a.most * b.error + b.most * a.error + a.error * b.error + kUnit * most};
}
Bounded operator/(const Bounded& a, const Bounded& b) {
  const double least = std::abs(b.value) - b.error;
  const double most = a.most / least;
  return {a.value / b.value, most, a.error / least + most * b.error / least + kUnit * most};
}
/// Functions are within 4 units of their value.
Bounded function(const Bounded& a, double (*f)(double), double slope) {
  const double value = f(a.value);
  return Bounded::computed(value, a.error * slope + 4 * kUnit * (std::abs(value) + 1));
}
Bounded exponential(const Bounded& a) {
  const double value = std::exp(a.value);
  return Bounded::computed(value, value * (std::expm1(a.error) + 4 * kUnit));
}
Bounded larger(const Bounded& a, const Bounded& b) {
  const bool is_a = std::isnan(a.value) || a.value >= b.value;
  return Bounded::computed(is_a ? a.value : b.value, std::max(a.error, b.error));
}

using Rows = std::vector<std::vector<Bounded>>;
using Weights = std::map<std::string, Tensor>;

/// One layer of a kind on a whole graph.
class Layer {
 public:
  Layer(const CsrGraph& graph, const Weights& weights, std::string key)
      : graph_(graph), weights_(weights), key_("layers." + std::move(key) + ".") {}

  Rows run(const std::string& kind, const Rows& x) const {
    if (kind == "gcn") return gcn(x);
    if (kind == "gat") return gat(x);
    const bool is_max = kind == "largest";
    const Rows sums =
        aggregated(x, [&](const auto& rows) { return is_max ? most(rows) : mean(rows); });
    return sum(with_bias(product(sums, "lin_l.weight"), "lin_l.bias"), product(x, "lin_r.weight"));
  }

 private:
  using Columns = std::vector<Bounded>;

  Bounded weight(const std::string& name, std::size_t i) const {
    return exact(weights_.at(key_ + name).as<float>()[i]);
  }

  Rows product(const Rows& x, const std::string& name) const {
    const std::size_t fout = static_cast<std::size_t>(weights_.at(key_ + name).shape()[0]);
    Rows result(x.size(), Columns(fout));
    for (std::size_t v = 0; v < x.size(); ++v) {
      for (std::size_t c = 0; c < fout; ++c) {
        for (std::size_t k = 0; k < x[v].size(); ++k) {
          result[v][c] = result[v][c] + x[v][k] * weight(name, c * x[v].size() + k);
        }
      }
    }
    return result;
  }

  Rows with_bias(Rows x, const std::string& name) const {
    for (Columns& row : x) {
      for (std::size_t c = 0; c < row.size(); ++c) row[c] = row[c] + weight(name, c);
    }
    return x;
  }

  static Rows sum(Rows a, const Rows& b) {
    for (std::size_t v = 0; v < a.size(); ++v) {
      for (std::size_t c = 0; c < a[v].size(); ++c) a[v][c] = a[v][c] + b[v][c];
    }
    return a;
  }

  static Bounded total(const Columns& values) {
    Bounded result;
    for (const Bounded& value : values) result = result + value;
    return result;
  }
  static Bounded mean(const Columns& values) {
    return total(values) / exact(std::max<double>(1, static_cast<double>(values.size())));
  }
  static Bounded most(const Columns& values) {
    Bounded result = values.empty() ? Bounded{} : values.front();
    for (const Bounded& value : values) result = larger(result, value);
    return Bounded::computed(result.value, result.error);
  }

  /// What a function makes of each column of the rows that the edges into a node read.
  Rows aggregated(const Rows& x, const std::function<Bounded(const Columns&)>& each) const {
    Rows result(x.size());
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      for (std::size_t c = 0; c < x.front().size(); ++c) {
        Columns read;
        for (const std::int32_t u : graph_.row(v))
          read.push_back(x[static_cast<std::size_t>(u)][c]);
        result[static_cast<std::size_t>(v)].push_back(each(read));
      }
    }
    return result;
  }

  Bounded inverse_root(std::int32_t v) const {
    const double value = 1 / std::sqrt(static_cast<double>(graph_.degree(v)) + 1);
    return Bounded::computed(value, 4 * kUnit * value);
  }

  Rows gcn(const Rows& x) const {
    Rows sums(x.size(), Columns(x.front().size()));
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      Columns& row = sums[static_cast<std::size_t>(v)];
      const Bounded own = inverse_root(v);
      for (std::size_t c = 0; c < row.size(); ++c) {
        for (const std::int32_t u : graph_.row(v)) {
          row[c] = row[c] + x[static_cast<std::size_t>(u)][c] * (inverse_root(u) * own);
        }
        row[c] = row[c] + x[static_cast<std::size_t>(v)][c] * (own * own);
      }
    }
    return with_bias(product(sums, "lin.weight"), "bias");
  }

  Rows gat(const Rows& x) const {
    const Rows h = product(x, "lin.weight");
    const Shape& shape = weights_.at(key_ + "att_src").shape();
    const auto heads = static_cast<std::size_t>(shape[0]);
    const auto width = static_cast<std::size_t>(shape[1]);
    const auto score = [&](std::int32_t node, const char* side, std::size_t head) {
      Bounded result;
      for (std::size_t c = head * width; c < (head + 1) * width; ++c) {
        result = result + h[static_cast<std::size_t>(node)][c] * weight(side, c);
      }
      return result;
    };
    Rows result(x.size(), Columns(heads * width));
    for (std::int32_t v = 0; v < graph_.node_count(); ++v) {
      for (std::size_t head = 0; head < heads; ++head) {
        Columns scores;
        for (const std::int32_t u : graph_.row(v)) {
          const Bounded both = score(u, "att_src", head) + score(v, "att_dst", head);
          const double slope = both.value < 0 ? 0.2 : 1;
          scores.push_back(
              Bounded::computed(slope * both.value, both.error + kUnit * std::abs(both.value)));
        }
        const Bounded shift = most(scores);
        for (Bounded& each : scores) {
          // Both are computed from one shift: its error cancels.
          const double difference = each.value - shift.value;
          each = exponential(
              Bounded::computed(difference, 2 * each.error + kUnit * std::abs(difference)));
        }
        const Bounded sum = total(scores);
        for (std::size_t c = head * width; c < (head + 1) * width; ++c) {
          Bounded& to = result[static_cast<std::size_t>(v)][c];
          std::size_t e = 0;
          for (const std::int32_t u : graph_.row(v)) {
            to = to + h[static_cast<std::size_t>(u)][c] * (scores[e++] / sum);
          }
        }
      }
    }
    return with_bias(result, "bias");
  }

  const CsrGraph& graph_;
  const Weights& weights_;
  std::string key_;
};

Bounded activated(const std::string& kind, const Bounded& x) {
  if (kind == "gat") {
    return function(
        x, [](double v) { return v < 0 ? std::expm1(v) : v; }, 1);
  }
  return Bounded::computed(x.value < 0 ? 0 : x.value, x.error);
}

/// A model, a graph and features, drawn by a seed and written to a folder.
struct Case {
  std::vector<std::string> kinds;
  CsrGraph graph;
  Weights weights;
  bool has_none = false;  ///< features that are no numbers
  Tensor x{DType::kFloat32, {0, 6}};

  Case(const test::TemporaryFolder& folder, std::uint32_t seed) {
    std::mt19937 random(seed);
    Json document;
    Json stages = Json::array();
    for (const int layer : {1, 2}) {
      kinds.push_back(
          std::vector<std::string>{"graphsage", "gcn", "gat", "largest"}[below(4, random)]);
      const std::string file = kRandomFolder + kinds.back();
      document = parse_json(read_file(file + ".json"), file);
      for (const Json& stage : document["stages"]) {
        if (stage["layer"] == layer) stages.push_back(stage);
      }
      const SafetensorsFile given(file + ".safetensors");
      for (const SafetensorsEntry& entry : given.entries()) {
        if (!entry.name.starts_with("layers." + std::to_string(layer - 1))) continue;
        weights[entry.name] = random_tensor(given.tensor(entry).shape(), random, 1);
      }
    }
    document["stages"] = std::move(stages);
    document["npu"]["weights_file"] = "model.safetensors";
    write_file_atomically(folder / "model.json", write_document(document));
    write_safetensors(folder / "model.safetensors", {weights.begin(), weights.end()});
    draw_graph(folder, random);
    const std::uint32_t kind = below(10, random);
    const bool has_large = kind == 0;
    has_none = kind < 2;
    x = random_tensor({graph.node_count(), 6}, random, has_large ? 500 : 1);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::vector<float> none =
        has_large ? std::vector{NAN, 3e38F} : std::vector{NAN, kInfinity, -kInfinity};
    for (std::int64_t i = 0; has_none && i < x.element_count(); ++i) {
      if (below(20, random) == 0) {
        x.as_mutable<float>()[i] = none[below(3, random) % none.size()];
      }
    }
    write_npy(folder / "x.npy", x);
  }

  Rows reference() const {
    Rows rows(static_cast<std::size_t>(graph.node_count()));
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.element_count()); ++i) {
      rows[i / 6].push_back(exact(x.as<float>()[i]));
    }
    for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
      rows = Layer(graph, weights, std::to_string(layer)).run(kinds[layer], rows);
      for (std::vector<Bounded>& row : rows) {
        for (Bounded& each : row) {
          each = layer + 1 < kinds.size() ? activated(kinds[layer], each)
                                          : Bounded::computed(each.value, each.error);
        }
      }
    }
    return rows;
  }

 private:
  static Tensor random_tensor(const Shape& shape, std::mt19937& random, float scale) {
    Tensor tensor(DType::kFloat32, shape);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.as_mutable<float>()[i] = scale * normal(random);
    }
    return tensor;
  }

  // Some nodes have all edges.
  void draw_graph(const test::TemporaryFolder& folder, std::mt19937& random) {
    const std::uint32_t nodes = 1 + below(40, random);
    const std::uint32_t edges = 1 + below(4 * nodes, random);
    std::string text = "%%MatrixMarket matrix coordinate pattern general\n" +
                       std::to_string(nodes) + " " + std::to_string(nodes) + " " +
                       std::to_string(edges) + "\n";
    for (std::uint32_t e = 0; e < edges; ++e) {
      const std::uint32_t target = below(1 + below(nodes, random), random);
      text += std::to_string(1 + below(nodes, random)) + " " + std::to_string(1 + target) + "\n";
    }
    write_file_atomically(folder / "graph.mtx", text);
    graph = read_graph_file(folder / "graph.mtx", {}).in_edges;
  }
};

/// What differs by more than its bound.
std::string difference(const Tensor& found, const Rows& expected) {
  const auto columns = static_cast<std::size_t>(found.shape()[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(found.element_count()); ++i) {
    const Bounded& wanted = expected[i / columns][i % columns];
    const double value = found.as<float>()[i];
    const bool has_bound = std::isfinite(wanted.error) && wanted.most < kLargest;
    const bool is_same =
        std::isnan(wanted.value) ? std::isnan(value)
        : std::isinf(wanted.value)
            ? value == wanted.value
            : !has_bound || std::abs(value - wanted.value) <= wanted.error + kSmallest;
    if (is_same) continue;
    return "row " + std::to_string(i / columns) + ", column " + std::to_string(i % columns) + ": " +
           std::to_string(value) + ", expected " + std::to_string(wanted.value) + " within " +
           std::to_string(wanted.error);
  }
  return {};
}

MakePlanOptions plan_options(const test::TemporaryFolder& folder) {
  MakePlanOptions options;
  options.graph = folder / "graph.mtx";
  options.model = folder / "model.json";
  options.profile = kRandomFolder + "profile.json";
  options.pad = 16;
  options.settings.greedy = true;
  options.settings.top_k = 4;
  options.output = folder / "plan.json";
  return options;
}

RunPlanOptions run_options(const test::TemporaryFolder& folder) {
  RunPlanOptions options;
  options.plan = folder / "plan.json";
  options.features = folder / "x.npy";
  options.devices = {{"gpu", "aten"}};
  options.cache.enabled = false;
  return options;
}

Tensor run(const test::TemporaryFolder& folder, const MakePlanOptions& options) {
  Diagnostics diagnostics;
  write_file_atomically(options.output,
                        write_document(to_json(make_plan(options, diagnostics).plan)));
  return run_plan(run_options(folder), diagnostics).output;
}

/// Each layer in blocks of one to three stages, on the cpu of the plan that lies there.
Tensor run_blocks(const test::TemporaryFolder& folder, const Case& drawn, std::mt19937& random) {
  PhaseTimes times;
  const RunPlanOptions options = run_options(folder);
  const LoadedPlan loaded = load_plan(options, times);
  CompileCache cache(options.cache);
  ProgramCounts counts;
  const std::vector<GnnDevice> devices = open_devices(loaded.plan, options, cache, counts);
  const std::int64_t nodes = drawn.graph.node_count();
  SubgraphView view;
  view.owned = view.local = nodes;
  view.offsets = drawn.graph.offsets;
  view.sources = drawn.graph.neighbors;
  Tensor x = loaded.features;
  for (std::int32_t l = 1; l <= 2; ++l) {
    std::map<std::string, BlockInput> values;
    values[std::string(kFeatureInput)] = {x, true, nullptr, nullptr};
    values[std::string(kDegreeInput)] = {loaded.degree, true, nullptr, nullptr};
    const std::int32_t count = loaded.model.layers[static_cast<std::size_t>(l - 1)].stage_count();
    for (std::int32_t first = 1; first <= count;) {
      const std::int32_t last =
          std::min(count, first + static_cast<std::int32_t>(below(3, random)));
      const BlockRequest request{l, first, last, {nodes, nodes, drawn.graph.entry_count()}};
      const GnnBlock block(loaded.model, request, devices.front(), loaded.weights);
      std::map<std::string, BlockInput> inputs;
      for (const std::string& name : block.input_names()) inputs[name] = values.at(name);
      for (auto& [name, value] : block.run(view, inputs)) {
        values[name] = {value, false, nullptr, nullptr};
        x = value;  // the last one is the layer's
      }
      first = last + 1;
    }
  }
  return x;
}

}  // namespace

TEST_CASE("plans, blocks and whole graphs are within the bounds of double precision",
          "[runtime][gnn]") {
  if (!test::use_backends()) return;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const test::TemporaryFolder folder;
    const Case drawn(folder, seed);
    const Rows expected = drawn.reference();
    std::mt19937 random(seed);
    CAPTURE(seed, drawn.kinds);
    MakePlanOptions options = plan_options(folder);
    const auto most = static_cast<std::uint32_t>(std::min(4, drawn.graph.node_count()));
    options.part_counts = {static_cast<std::int32_t>(1 + below(most, random))};
    options.device_cover = below(3, random) == 0;
    // A relu of oneDNN's on npu makes 0 of NaN, as npu-onednn(7) says.
    if (drawn.has_none) options.settings.devices = {"cpu", "gpu"};
    CHECK(difference(run(folder, options), expected) == "");
    options = plan_options(folder);
    options.part_counts = {1};
    options.settings.devices = {"cpu"};
    CHECK(difference(run(folder, options), expected) == "");
    CHECK(difference(run_blocks(folder, drawn, random), expected) == "");
  }
}
