// SPDX-License-Identifier: Apache-2.0
// What a run has to give, with bounds that follow from where and in which precision each node runs.
#pragma once

#include <string>
#include <vector>

#include "ways.hpp"

namespace npu::test {

/// A difference that a manual page states, which is no fault: the results that it names are not
/// compared. tests/docs holds the pages to these sentences.
struct StatedDifference {
  std::string_view device;  ///< "*": all
  std::string_view ops;     ///< as in an OpRow
  enum class Where : std::uint8_t {
    kNaN,
    kNarrowNaN,
    kHuge,
    kOutOfRange,
    kWeight,
    kNarrowBeside,
    kAnywhere,
    kUnreached
  } where;
  std::string_view page;
  std::string_view sentence;
};
std::span<const StatedDifference> stated_differences();

/// What a node gives on a device that computes in `precision`: "f32", "bf16", "f16" or "int8".
/// `in_epilogue`: a kernel may compute it along with a product in front of it.
Results results_on(const std::string& device, const std::string& precision, const Call& call,
                   bool in_epilogue);
/// The outputs of `run`'s graph by definition. Throws Error kInvalidGraph for an op without one.
std::vector<Values> reference(const Run& run, const std::string& precision);

/// How an output differs.
struct Mismatch {
  std::string output;
  std::string text;
};
/// The first one; counts what was compared and what could not be.
std::optional<Mismatch> compare(const Run& run, const std::vector<Values>& expected,
                                std::int64_t& compared, std::int64_t& unknown);

}  // namespace npu::test
