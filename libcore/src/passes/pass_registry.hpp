// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// One pass, run with its default options.
struct PassInfo {
  std::string_view name;     ///< kebab-case; also the stem of its file and its test
  std::string_view summary;  ///< one line
  bool (*run)(Graph& graph, const Target& target, Diagnostics& diagnostics);  ///< true if changed
};

/// In the order in which a pipeline runs them.
std::span<const PassInfo> passes();

}  // namespace npu
