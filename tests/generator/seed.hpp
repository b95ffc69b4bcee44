// SPDX-License-Identifier: Apache-2.0
// One seed: a network, two ways to run it, and what was wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference.hpp"
#include "sized_network.hpp"

namespace npu::test {

struct Failure {
  Network network;
  Way way;
  std::string text;
  bool is_padded = false;  ///< it ran in a larger size
};

struct Totals {
  std::int64_t nodes = 0;
  std::int64_t compared = 0;
  std::int64_t unknown = 0;
  std::int64_t failed = 0;
  std::int64_t refused = 0;
  std::int64_t padded = 0;  ///< runs in a larger size
  std::map<std::string, std::int64_t> refusals = {};
};

/// Each fourth seed has single nodes in turn. `programs`: the folder of those that every
/// hundredth seed goes through as well; empty: none.
std::vector<Failure> check_seed(std::uint64_t seed, bool gpu, const std::string& programs,
                                Totals& totals);
/// A document that failed once: with drawn inputs, fused and plain, in float32 and in int8.
std::vector<Failure> check_document(const std::string& path, Totals& totals);
/// Empty, or what is wrong. What a device does not compute, and says so, is counted as refused.
std::string fault_of(const Network& network, const Way& way, Totals& totals);
/// Empty, or what is wrong with a run in a larger size. A network that does not follow the size
/// says nothing, and one without a rule is counted as refused.
std::string fault_of_padding(const Network& network, const SizeDraw& size, const Way& way,
                             Totals& totals);
/// The same through the programs in a folder.
std::string fault_of_programs(const Network& network, const Way& way, const std::string& programs,
                              Totals& totals);
/// Writes a model, its inputs and the commands that run it.
void write_failure(const Failure& failure, const std::string& folder, const std::string& name);

}  // namespace npu::test
