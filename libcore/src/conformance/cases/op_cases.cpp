// SPDX-License-Identifier: Apache-2.0
// The case of ops: nodes drawn at random, in every dtype that the device lists. A backend may
// refuse any of them; what it takes it has to compute as the op is defined.
#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/cases.hpp"
#include "conformance/oracle/op_oracle.hpp"
#include "npu/runtime/compare.hpp"

namespace npu::conformance {
namespace {

bool is_drawn(const OpDefinition& op, DType dtype) {
  if (dtype == DType::kBool || dtype == DType::kComplex64 || dtype == DType::kComplex128) {
    return false;
  }
  if (is_floating_point(dtype)) return true;
  return dtype == DType::kUInt8 ? op.takes_unsigned : op.takes_integers;
}

/// A node that is drawn, in a dtype.
struct Question {
  DrawnNode node;
  DType dtype = DType::kFloat32;
};

using Batch = std::span<const Question>;

/// All of them side by side: drivers take longer to begin a program than to compile a kernel of it.
GraphSpec graph_of(Batch batch) {
  GraphSpec graph;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const DrawnNode& drawn = batch[n].node;
    const std::string name = "n" + std::to_string(n);
    NodeSpec node{name, drawn.op, {}, {name, batch[n].dtype, drawn.result}, drawn.attrs};
    for (std::size_t i = 0; i < drawn.operands.size(); ++i) {
      const std::string operand = name + "_x" + std::to_string(i);
      graph.inputs.push_back({operand, batch[n].dtype, drawn.operands[i]});
      node.operands.push_back(operand);
    }
    graph.nodes.push_back(std::move(node));
    graph.outputs.push_back(name);
  }
  return graph;
}

std::string description(const DrawnNode& node, DType dtype) {
  std::string text = node.op + " of " + std::string(dtype_name(dtype));
  for (const Shape& shape : node.operands) text += " " + shape_text(shape);
  return text + " " + node.attrs.dump();
}

Tensor expected_of(const DrawnNode& node, std::span<const Tensor> inputs, DType dtype) {
  std::vector<Values> operands;
  for (const Tensor& input : inputs) operands.push_back(values_of(input));
  const Values result = node.evaluate(operands);
  Tensor expected(dtype, node.result);
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    set_element(expected, i, result.data[static_cast<std::size_t>(i)].value);
  }
  return expected;
}

bool sums_products(const std::string& op) {
  return op == "aten.mm.default" || op == "aten.bmm.default" || op == "aten.linear.default" ||
         op == "aten.conv2d.default";
}

void compare(const Harness& harness, const DrawnNode& node, DType dtype, const Tensor& actual,
             const Tensor& expected) {
  Tolerance tolerance = tolerance_of(dtype);
  // Terms of up to 16 may cancel, and some libraries add them up in the dtype of the result.
  if (sums_products(node.op)) tolerance.atol *= 10;
  const Comparison comparison = compare_tensors(actual, expected, tolerance);
  harness.found.expect(
      comparison.ok, description(node, dtype) + ": " + std::to_string(comparison.out_of_tolerance) +
                         " of " + std::to_string(comparison.elements) +
                         " values are wrong, the worst is " +
                         std::to_string(comparison.worst_actual) + " in place of " +
                         std::to_string(comparison.worst_expected));
}

void compare_all(const Harness& harness, Batch batch, const Instance& instance) {
  const std::vector<Tensor> results = run_and_read(harness, instance);
  std::span<const Tensor> inputs = instance.inputs;
  for (std::size_t n = 0; n < batch.size(); ++n) {
    const auto& [node, dtype] = batch[n];
    const std::size_t operands = node.operands.size();
    compare(harness, node, dtype, results[n], expected_of(node, inputs.first(operands), dtype));
    inputs = inputs.subspan(operands);
  }
}

/// How many of the nodes the device takes; what it takes is compared. A batch with a node that is
/// refused is halved until that stands alone.
std::size_t check_nodes(const Harness& harness, Batch questions, std::uint64_t seed,
                        std::set<DType>& computed) {
  std::size_t taken = 0;
  std::vector<Batch> open{questions};
  while (!open.empty()) {
    const Batch batch = open.back();
    open.pop_back();
    const GraphSpec graph = graph_of(batch);
    DevicePtr device = harness.open();
    const Compiled compiled = harness.compile(device.get(), graph);
    if (compiled.status == NPU_OK) {
      taken += batch.size();
      for (const Question& question : batch) computed.insert(question.dtype);
      compare_all(harness, batch,
                  make_instance(harness, std::move(device), graph, compiled.blob, seed));
    } else if (batch.size() > 1) {
      harness.found.expect(compiled.status == NPU_UNSUPPORTED,
                           "compile of " + std::to_string(batch.size()) +
                               " nodes side by side gives " + status_name(compiled.status) + ": " +
                               compiled.error.text);
      open.push_back(batch.subspan(batch.size() / 2));
      open.push_back(batch.first(batch.size() / 2));
    } else {
      harness.found.expect(compiled.status == NPU_UNSUPPORTED,
                           description(batch[0].node, batch[0].dtype) + ": compile gives " +
                               status_name(compiled.status) + ": " + compiled.error.text);
    }
  }
  return taken;
}

/// An op in a dtype, with what its draws go on from.
struct Source {
  const OpDefinition* op = nullptr;
  DType dtype = DType::kFloat32;
  Random random;
};

/// In groups, each of which has every op once, in a dtype that differs from group to group: so the
/// first one has every op and, as far as there are as many ops, every dtype.
std::vector<std::vector<Source>> sources_of(const Harness& harness) {
  const std::vector<DType>& dtypes = harness.facts().dtypes;
  std::vector<std::vector<Source>> groups(dtypes.size());
  std::uint64_t number = 0;
  std::size_t row = 0;
  for (const OpDefinition& op : op_definitions()) {
    std::size_t column = row++;
    for (const DType dtype : dtypes) {
      std::vector<Source>& group = groups[column++ % groups.size()];
      if (!is_drawn(op, dtype)) continue;
      ++number;
      group.push_back({&op, dtype, Random(1000 * number + static_cast<std::uint64_t>(dtype))});
    }
  }
  std::erase_if(groups, [](const std::vector<Source>& group) { return group.empty(); });
  return groups;
}

/// Draws from sources and checks what comes of it.
class OpChecker {
 public:
  explicit OpChecker(const Harness& harness) : harness_(harness) {}

  void draw(Source& source) {
    questions_.push_back({draw_node(*source.op, source.random, source.dtype), source.dtype});
  }
  std::size_t drawn() const { return questions_.size(); }
  void check(std::uint64_t seed) {
    taken_ += check_nodes(harness_, questions_, seed, computed_);
    questions_.clear();
  }
  std::size_t taken() const { return taken_; }
  bool has_computed(DType dtype) const { return computed_.contains(dtype); }

 private:
  const Harness& harness_;
  std::vector<Question> questions_;
  std::set<DType> computed_;
  std::size_t taken_ = 0;
};

/// A dtype that is listed for arithmetic has some op, which may not have been drawn yet.
void check_promised_dtypes(const Harness& harness, std::vector<std::vector<Source>>& groups,
                           OpChecker& checker) {
  for (const DType dtype : harness.facts().arithmetic) {
    bool is_drawn_at_all = false;
    for (std::vector<Source>& group : groups) {
      for (Source& source : group) {
        if (source.dtype != dtype) continue;
        is_drawn_at_all = true;
        if (checker.has_computed(dtype)) continue;
        checker.draw(source);
        checker.check(0);
      }
    }
    harness.found.expect(!is_drawn_at_all || checker.has_computed(dtype),
                         "the device lists " + std::string(dtype_name(dtype)) +
                             " for arithmetic, but not one node of common ops compiles in it");
  }
}

}  // namespace

// Each round draws every op in every dtype once. The first group is always made. A driver that
// takes a second to compile a kernel gets no more than fit into the time, unless their number is
// given; one that is quick gets what is left of a round at once, since sub-IRs of many nodes are
// what models are.
void check_ops(const Harness& harness) {
  using Time = std::chrono::steady_clock;
  const std::uint64_t rounds = harness.quick ? 3 : 12;
  const std::chrono::seconds most(harness.quick ? 5 : 15);
  const auto begin = Time::now();
  const auto is_over = [&](int share) {
    return harness.random_nodes == 0 && share * (Time::now() - begin) > most;
  };
  std::vector<std::vector<Source>> groups = sources_of(harness);
  std::uint64_t all = 0;
  for (const auto& group : groups) all += group.size();
  std::uint64_t left = harness.random_nodes > 0 ? harness.random_nodes : rounds * all;
  OpChecker checker(harness);
  for (std::uint64_t round = 0; left > 0 && all > 0 && !is_over(1); ++round) {
    for (std::size_t g = 0; g < groups.size() && left > 0; ++g) {
      if (round + g > 0 && is_over(1)) break;
      for (Source& source : groups[g]) {
        if (left == 0) break;
        checker.draw(source);
        --left;
      }
      constexpr int kQuickShare = 20;
      const bool is_last = g + 1 == groups.size() || left == 0;
      const bool is_first = round == 0 && g == 0;
      if (is_first || is_last || is_over(kQuickShare)) checker.check(round);
    }
    if (checker.drawn() > 0) checker.check(round);
  }
  harness.found.expect(checker.taken() > 0, "not one node of common ops compiles");
  check_promised_dtypes(harness, groups, checker);
}

}  // namespace npu::conformance
