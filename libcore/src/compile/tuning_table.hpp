// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// Sizes that were measured to be the fastest, of the tiles and work groups of kernels. What they
/// mean is the backend's business.
struct TuningTable {
  using Sizes = std::vector<std::int64_t>;
  /// By the fingerprint of a device, then by the form and the sizes of a kernel.
  std::map<std::string, std::map<std::string, Sizes>> devices;

  bool operator==(const TuningTable&) const = default;
};

/// Throws Error kParse with the place in `file`.
TuningTable tuning_table_from_json(const Json& document, const std::string& file);
/// The whole document.
Json to_json(const TuningTable& table);

/// The options with which backends use a table and measure what it lacks; see
/// CompileOptions::backend_options.
Json tuning_options(const TuningTable& table);
/// Adds what the compile of a bundle measured; returns how many kernels that was.
std::size_t add_measured(TuningTable& table, const BundleContent& content);

}  // namespace npu
