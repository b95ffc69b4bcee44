// SPDX-License-Identifier: Apache-2.0
#include "options/tuning_file.hpp"

#include <filesystem>
#include <system_error>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu::cli {

void TuningFile::add_option(Tool& tool) {
  tool.app()
      .add_option(
          "--tune", path_,
          "measure sizes of kernels on the devices, and keep them in FILE for the next time")
      ->type_name("FILE")
      ->check([](const std::string& path) {
        return path == "-" ? std::string("expected a file, not '-'") : std::string();
      });
}

void TuningFile::read(CompileModelOptions& options) {
  if (path_.empty()) return;
  std::error_code fault;
  if (std::filesystem::exists(path_, fault) || fault) {  // a fault has its words from read_file
    try {
      table_ = tuning_table_from_json(parse_json(read_file(path_), path_), path_);
    } catch (const Error& error) {
      const std::string& pointer = error.location().pointer;
      const bool is_other_file = pointer.empty() || pointer == "/npu/kind";
      if (error.code() == ErrorCode::kIo || !is_other_file) throw;
      throw Error(error.code(),
                  error.message() + " (--tune FILE is for measurements, not the model)",
                  error.location());
    }
  }
  options.compile.backend_options.update(tuning_options(table_));
}

void TuningFile::write(Tool& tool, const BundleContent& content) {
  if (path_.empty()) return;
  const std::size_t count = add_measured(table_, content);
  tool.report("tuned " + std::to_string(count) + " kernels\n");
  std::error_code ignored;
  if (count == 0 && std::filesystem::exists(path_, ignored)) return;
  write_file_atomically(path_, to_json(table_).dump(1) + "\n");
}

}  // namespace npu::cli
