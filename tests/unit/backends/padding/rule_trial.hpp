// SPDX-License-Identifier: Apache-2.0
// One op, run at its exact sizes and at its capacities, and what the rule of its class says of it.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "passes/padding/row_rules.hpp"

namespace npu::test {

/// Changes what a rule says, to see that a trial finds out.
using RuleMutation = std::function<void(padding::NodeRule& rule)>;

struct TrialCount {
  int run = 0;      ///< trials whose needs were met
  int skipped = 0;  ///< others
};

/// A template of one node, on the device "cpu". Executors are kept by sizes.
class RuleTrial {
 public:
  /// `lines` are those of template_document; `index_below` is the end of random integers.
  RuleTrial(const std::string& lines, const SizeBindings& capacities, std::int64_t index_below);
  ~RuleTrial();

  /// Draws sizes, values and classes of rows behind the valid ones, and runs. What is wrong: a
  /// valid row that differs, or rows that have not the class that the rule states; empty if
  /// nothing is, or if the rule's needs are not met.
  std::string run(std::mt19937& random, const RuleMutation& mutate, TrialCount& count);
  /// The rule with operands that repeat their last row.
  const padding::NodeRule& rule() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace npu::test
