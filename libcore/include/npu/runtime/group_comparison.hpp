// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "npu/runtime/compare.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// Where the results of a plan are compared with those of the reference.
struct GroupComparisonOptions {
  bool each = false;        ///< every result of every fusion group, in one run of each side
  bool isolate = false;     ///< each group alone, fed with the reference's inputs
  bool bisect = false;      ///< only as many runs as it takes to find the first group that differs
  std::string reduce = {};  ///< file for the smallest part of that group that differs; empty: none
  bool wanted() const noexcept { return each || isolate || bisect || !reduce.empty(); }
};

/// The result of a fusion group that is furthest from the reference.
struct ResultComparison {
  std::string tensor;
  Comparison comparison;
  double snr_db = 0;  ///< 10 log10 of the energy of the reference over that of the difference
};

/// A fusion group: the nodes between two places where values are in memory.
struct GroupComparison {
  enum class Error : std::uint8_t {
    kNone,       ///< within tolerance
    kInherited,  ///< what it reads is out of tolerance already
    kOwn,        ///< what it reads is within tolerance
  };
  std::vector<std::string> nodes;
  std::string device;
  std::string kernel;  ///< as the backend's compile report says; empty if it does not
  std::optional<ResultComparison> in_run;    ///< in a run of the whole plan
  std::optional<ResultComparison> isolated;  ///< fed with the reference's inputs
  Error error = Error::kNone;
};

/// Where results at borders came from.
struct ResultSources {
  std::int64_t tapped = 0;    ///< out of the programs that run anyway
  std::int64_t compiled = 0;  ///< nodes were compiled again with them as outputs
};

struct GroupReport {
  std::int64_t groups = 0;            ///< of the plan
  std::int64_t runs = 0;              ///< of the plan or of parts of it
  std::vector<GroupComparison> rows;  ///< in the order of execution; --bisect: the one it found
  std::optional<std::size_t> first;   ///< into rows: the first whose error is its own
  std::map<std::string, ResultSources> sources;  ///< by device; empty if each group ran alone
  std::vector<std::string> reduced_to;           ///< --reduce: nodes that are left
  std::vector<std::string> files;                ///< that it wrote
  bool ok() const noexcept;
};

Json group_report_json(const GroupReport& report);
std::string format_group_report(const GroupReport& report);
/// "the error begins in group 'conv .. relu' on npu: ..."; `report.first` has to be set.
std::string first_fault_text(const GroupReport& report);

}  // namespace npu
