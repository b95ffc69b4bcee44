// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "document_input.hpp"
#include "exit_status.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/cache.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "options/assertions.hpp"

namespace npu::cli {

class Logger;

/// What the eight programs share: flags, streams, messages and exit codes. A tool's main adds its
/// options, then calls run with a body that reads, makes one library call and writes.
class Tool {
 public:
  Tool(std::string name, std::string summary);
  ~Tool();
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  CLI::App& app() noexcept { return app_; }
  Diagnostics& diagnostics() noexcept { return diagnostics_; }

  /// The options of a program that reads a document and writes one: [GRAPH] (default "-"),
  /// -o/--output (default "-"), --bind, --freeze and --json-infinity.
  void add_graph_io();
  /// Only -o/--output (default "-"), for tools that add their inputs themselves.
  void add_output();
  /// The output file; "-" is stdout.
  const std::string& output() const noexcept { return output_; }
  /// Whether --output was given.
  bool has_output() const { return app_.count("--output") > 0; }
  /// The GRAPH argument; "-" is stdin.
  const std::string& graph_path() const noexcept { return input_.path(); }
  /// The folder of --output; empty for stdout.
  std::string output_folder() const;
  /// What the program reads, and the options about it.
  DocumentInput& input() noexcept { return input_; }
  /// --assert 'METRIC OP VALUE', repeatable; `names` is the help text about the metrics.
  void add_assert(const std::string& names);
  /// --report: calls of report() then write to stderr.
  void add_report(const std::string& what);
  /// --cache-dir, --no-cache and --cache-limit.
  void add_cache(CacheOptions& cache);
  /// --memory-limit, as the member of options that devices are opened with.
  void add_memory_limit(Json& backend_options);
  /// --deadline in seconds: above 0, at most a year.
  void add_deadline(std::optional<double>& seconds, const std::string& what);
  /// --precision f32|bf16|f16.
  void add_precision(std::string& precision, const std::string& what);
  /// The same for a plan of a graph neural network. Throws Error kUsage for f16.
  static std::string plan_precision(const std::string& precision);
  /// Throws Error kUsage, "OPTION WHY", if one of `options` was given; for options that the library
  /// would not see.
  void refuse(const std::vector<std::string>& options, const std::string& why) const;
  /// The Examples block of --help.
  void add_examples(const std::vector<std::string>& lines);

  /// Parses the command line, runs `body`, prints diagnostics and maps the outcome to an exit
  /// code.
  int run(int argc, char** argv, const std::function<ExitStatus()>& body);

  /// Writes what DocumentInput::read_template has returned.
  void write_template(Graph& model);
  /// "npu-align 1.2.3": what files state as their producer.
  std::string producer() const;
  /// Writes a bundle to --output at once, or keeps its bytes for stdout until the body has
  /// succeeded. Refuses a terminal.
  void write_bundle(BundleContent& content);
  /// Writes the document, which has to stay as it is until then, once the body has succeeded;
  /// `npu.weights_file` is rewritten so that it still resolves.
  void write_graph(Graph& graph);
  /// Keeps text for stdout or --output until the body has succeeded.
  void write_text(std::string text);
  /// Prints one line to stderr, with the program's name, whatever the verbosity.
  void complain(const std::string& text);
  /// Prints a table to stderr.
  void note(const std::string& text);
  /// Prints a table to stderr if --report was given.
  void report(const std::string& text);
  bool wants_report() const noexcept { return wants_report_; }
  bool has_asserts() const noexcept { return !assertion_texts_.empty(); }
  /// 1 for each -v; -1 for -q.
  int verbosity() const noexcept { return quiet_ ? -1 : verbose_; }
  /// Whether a progress line may be drawn: not with -q, nor beside log messages.
  bool shows_progress() const noexcept;
  /// Checks every --assert; kAssertFailed if one does not hold. An unknown metric is wrong usage.
  ExitStatus check_asserts(const Metrics& metrics);
  /// Throws if diagnostics has errors, so that run prints them and fails.
  void stop_on_errors() const;

 private:
  int parse(int argc, char** argv);
  int guarded(const std::function<ExitStatus()>& body);
  void print_diagnostics();
  void flush_output();
  void start_logger();

  std::string name_;
  CLI::App app_;
  std::unique_ptr<Logger> logger_;
  Diagnostics diagnostics_;
  std::size_t printed_ = 0;
  DocumentInput input_{diagnostics_};
  std::string output_ = "-";
  std::string infinity_ = "keep";
  bool wants_report_ = false;
  int verbose_ = 0;
  bool quiet_ = false;
  std::vector<std::string> assertion_texts_;
  std::function<void(const TextSink&)> write_pending_;  // empty: nothing is written
};

/// For deadlines.
std::chrono::steady_clock::time_point seconds_from_now(double seconds);

}  // namespace npu::cli
