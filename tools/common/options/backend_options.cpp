// SPDX-License-Identifier: Apache-2.0
// Lists and checks backends.
#include "options/backend_options.hpp"

#include <chrono>
#include <vector>

#include "device/list_backends.hpp"
#include "npu/ir/json_writer.hpp"
#include "options/validators.hpp"

namespace npu::cli {

void add_backend_options(Tool& tool, BackendOptions& options) {
  CLI::App& app = tool.app();
  app.add_flag("--list-backends", options.list,
               "list the backends that are found with their devices, and exit");
  CLI::Option* check =
      app.add_option("--check-backend", options.check.backend,
                     "run the cases of npu-backend(3) against backend NAME, and exit; exit 4 if "
                     "one fails")
          ->type_name("NAME")
          ->check(not_empty());
  app.add_flag("--quick", options.check.quick, "with --check-backend: fewer repetitions")
      ->needs(check);
  repeatable(
      app.add_option("--case", options.check.cases,
                     "with --check-backend: only this case; repeatable. A single one runs in this "
                     "process, for a debugger"))
      ->type_name("NUMBER")
      ->needs(check);
  app.add_option("--random-nodes", options.check.random_nodes,
                 "with --check-backend: how many random nodes case 6 draws, compiles and compares; "
                 "by default those of a few seconds")
      ->type_name("N")
      ->check(in_range(1, 1'000'000))
      ->needs(check);
  app.add_option("--case-limit", options.case_seconds,
                 "with --check-backend: how long a case may go on without progress, " +
                     std::to_string(options.check.limit.count()) + " by default")
      ->type_name("SECONDS")
      ->check(in_range(1, 86400))
      ->needs(check);
}

ExitStatus run_backend_options(Tool& tool, const BackendOptions& options) {
  if (options.list) {
    const std::vector<ListedBackend> backends = list_backends();
    if (tool.wants_report()) tool.report(format_listed_backends(backends));
    tool.write_text(write_document(listed_backends_json(backends)));
    return ExitStatus::kSuccess;
  }
  std::vector<std::string> child = {"--check-backend", options.check.backend};
  if (options.check.quick) child.emplace_back("--quick");
  if (options.check.random_nodes > 0) {
    child.insert(child.end(), {"--random-nodes", std::to_string(options.check.random_nodes)});
  }
  CheckBackendOptions wanted = options.check;
  if (options.case_seconds > 0) wanted.limit = std::chrono::seconds(options.case_seconds);
  const BackendCheck check = check_backend(wanted, child);
  if (tool.wants_report()) tool.report(format_backend_check(check));
  tool.write_text(write_document(backend_check_json(check)));
  return check.passed() ? ExitStatus::kSuccess : ExitStatus::kAssertFailed;
}

}  // namespace npu::cli
