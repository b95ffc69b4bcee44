// SPDX-License-Identifier: Apache-2.0
// Masks of random graphs against all subsets of tensors, and their certificates with one thing
// changed.
#include "passes/padding/place_masks.hpp"

#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "passes/padding/pad_graph.hpp"
#include "template_lines.hpp"

using namespace npu;
using namespace npu::test;
using namespace npu::padding;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kGraphs = 100;
#else
constexpr int kGraphs = 2000;
#endif

/// Tensors of [S,1] and [S,4], and ops that keep, break and need classes of rows.
std::string drawn_lines(std::mt19937& random) {
  // Both inputs are read, or nothing says what their sizes are.
  std::string lines =
      "size S 1..9; input x0 [S,1]; input x1 [S,4]; first = mul.Tensor(x0, x1) [S,4]\n";
  std::vector<std::pair<std::string, int>> tensors{{"x0", 1}, {"x1", 4}, {"first", 4}};
  const auto nodes = 2 + random() % 9;
  const auto pick = [&]() { return tensors[random() % tensors.size()]; };
  const auto shape = [](int width) { return " [S," + std::to_string(width) + "]"; };
  for (std::size_t n = 0; n < nodes; ++n) {
    const auto name = "n" + std::to_string(n);
    const auto [a, width] = pick();
    const auto [b, other] = pick();
    switch (random() % 9) {
      case 0:
        lines += name + " = relu(" + a + ")" + shape(width) + "\n";
        break;
      case 1:
        lines += name + " = cos(" + a + ")" + shape(width) + "\n";
        break;
      case 2:
        lines +=
            name + " = mul.Tensor(" + a + ", " + b + ")" + shape(std::max(width, other)) + "\n";
        tensors.emplace_back(name, std::max(width, other));
        continue;
      case 3:
      case 4:
        lines +=
            name + " = add.Tensor(" + a + ", " + b + ")" + shape(std::max(width, other)) + "\n";
        tensors.emplace_back(name, std::max(width, other));
        continue;
      case 5:
        lines += name + " = mul.Scalar(" + a + ")" + shape(width) + " {\"other\": 0.5}\n";
        break;
      case 6:
        lines += name + " = sum.dim_IntList(" + a + ") [" + std::to_string(width) +
                 "] {\"dim\": [0]}\noutput " + name + "\n";
        continue;
      case 7:
        lines += name + " = softmax.int(" + a + ")" + shape(width) + " {\"dim\": 0}\n";
        break;
      default:
        lines += name + " = amax(" + a + ") [" + std::to_string(width) +
                 "] {\"dim\": [0]}\noutput " + name + "\n";
        continue;
    }
    tensors.emplace_back(name, width);
  }
  return lines + "last = relu(" + tensors.back().first + ")" + shape(tensors.back().second) +
         "\noutput last\n";
}

struct Analysed {
  Graph graph;
  TensorSizes shapes;
  PaddingAnalysis analysis;
};

Analysed analysed(const Template& model) {
  Diagnostics faults;
  Graph graph = bind_sizes(model, {{"S", 9}}, faults);
  const PaddedSizes sizes({{.name = "S", .capacity = 9}});
  TensorSizes shapes(graph);
  for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
    const SizeShape& shape = *model.shape(graph.tensor(id).name);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!shape[d].is_constant()) shapes.set(id, d, shape[d]);
    }
  }
  PaddingAnalysis analysis = infer_tails(graph, sizes, shapes, faults);
  for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
  return {std::move(graph), std::move(shapes), std::move(analysis)};
}

/// Which tensors have a class along dimension 0 if those of a subset are masked.
class MaskedClasses {
 public:
  MaskedClasses(const Analysed& all, Fill fill, std::uint32_t masked)
      : all_(all), fill_(fill), masked_(masked) {
    has_.resize(all.graph.tensors().size(), 0);
    for (const Node& node : all.graph.nodes()) {
      const NodeRule& rule = all.analysis.rules[all.graph.find_node(node.name)];
      for (const ResultDim& along : rule.results) set(node, along);
    }
  }

  bool meets_all_needs() const {
    for (const NodeId id : ids_of<NodeId>(all_.graph.nodes())) {
      for (const TailNeed& need : all_.analysis.rules[id].needs) {
        if (need.fill != fill_) continue;
        const Place& place = need.places.front();
        if (!is_seen(all_.graph.node(id).inputs[index_of(place.operand)])) return false;
      }
    }
    return true;
  }

 private:
  // A reader reads what is masked if that helps.
  bool is_seen(TensorId id) const {
    return has_[index_of(id)] != 0 || (masked_ >> index_of(id) & 1U) != 0;
  }

  void set(const Node& node, const ResultDim& along) {
    const Keep keep = fill_ == Fill::kZero ? along.zero : along.lowest;
    bool all = static_cast<std::int32_t>(along.values.size()) == along.value_operands &&
               !along.values.empty();
    bool any = false;
    for (const Place& place : along.values) {
      const bool seen = is_seen(node.inputs[index_of(place.operand)]);
      all = all && seen;
      any = any || (seen && others_are_fine(node, place.operand));
    }
    const bool has =
        keep == Keep::kYes || (keep == Keep::kAll && all) || (keep == Keep::kAny && any);
    has_[index_of(node.outputs[index_of(along.result)])] = has ? 1 : 0;
  }

  bool others_are_fine(const Node& node, std::int32_t operand) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i == index_of(operand)) continue;
      const TensorId id = node.inputs[i];
      const auto& [graph, shapes, analysis] = all_;
      if (fill_ == Fill::kZero ? !is_finite(graph, id, shapes, analysis.tails)
                               : !is_not_above(graph, id, shapes, analysis.tails)) {
        return false;
      }
    }
    return true;
  }

  const Analysed& all_;
  Fill fill_;
  std::uint32_t masked_;
  std::vector<char> has_;
};

std::int64_t cheapest(const Analysed& all, Fill fill) {
  std::vector<std::size_t> varying;
  for (const TensorId id : ids_of<TensorId>(all.graph.tensors())) {
    if (all.shapes.varies(id) && !all.graph.tensor(id).consumers.empty()) {
      varying.push_back(index_of(id));
    }
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t subset = 0; subset < (1U << varying.size()); ++subset) {
    std::uint32_t masked = 0;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < varying.size(); ++i) {
      if ((subset >> i & 1U) == 0) continue;
      masked |= 1U << varying[i];
      bytes += all.graph.tensor(id_at<TensorId>(varying[i])).bytes();
    }
    if (bytes < best && MaskedClasses(all, fill, masked).meets_all_needs()) best = bytes;
  }
  return best;
}

}  // namespace

TEST_CASE("masks of random graphs are the fewest", "[padding]") {
  std::mt19937 random(3);
  int with_masks = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const std::string lines = drawn_lines(random);
    INFO(lines);
    const Analysed all = analysed(template_of(lines));
    for (const Fill fill : {Fill::kZero, Fill::kLowest}) {
      const MaskPlan plan = place_masks(all.graph, all.analysis, all.shapes, fill);
      CHECK(plan.cut == plan.flow);
      REQUIRE(plan.cut == cheapest(all, fill));
      with_masks += plan.masks.empty() ? 0 : 1;
    }
  }
  CHECK(with_masks > kGraphs / 10);
}

TEST_CASE("a certificate with one thing changed is refused", "[padding]") {
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < kGraphs; ++i) {
    const std::string lines = drawn_lines(random);
    INFO(lines);
    Diagnostics faults;
    const PaddedGraph padded = pad_graph(template_of(lines), {{"S", 9}}, faults);
    REQUIRE(!faults.has_errors());
    const auto is_refused = [&](const Json& section) {
      Graph graph = padded.graph;
      graph.set_npu_member("padding", section);
      Diagnostics diagnostics;
      verify_padding(graph, diagnostics);
      return diagnostics.has_errors();
    };
    Json section = *padded.graph.npu_member("padding");
    REQUIRE(!is_refused(section));
    Json& tensors = section["tensors"];
    Json& entry = tensors[random() % tensors.size()];
    switch (random() % 3) {
      case 0: {
        constexpr const char* kClasses[] = {"R", "Z", "N", "F", "A"};
        const Json before = entry[3];
        while (entry[3] == before) entry[3] = kClasses[random() % 5];
        break;
      }
      case 1: {
        constexpr const char* kSizes[] = {"S + 1", "2*S - 9", "(S + 10) // 2", "9", "max(S, 5)"};
        entry[2] = kSizes[random() % 5];
        break;
      }
      default:
        if (section["masks"].empty()) {
          section["cut"] = 4;
        } else {
          Json& mask = section["masks"][random() % section["masks"].size()];
          mask[random() % 2 == 0 ? "tensor" : "node"] = "x9";
        }
    }
    accepted += is_refused(section) ? 0 : 1;
  }
  CHECK(accepted == 0);
}
