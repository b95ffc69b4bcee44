// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compile/tuning_table.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/runtime/compile_model.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The option --tune, and the file that it names.
class TuningFile {
 public:
  void add_option(Tool& tool);
  /// Reads the file, if there is one yet, and lets the compile use it. Nothing without --tune.
  void read(CompileModelOptions& options);
  /// Adds what was measured to the file, and says how much that was.
  void write(Tool& tool, const BundleContent& content);

 private:
  std::string path_;
  TuningTable table_;
};

}  // namespace npu::cli
