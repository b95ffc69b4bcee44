// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exit_status.hpp"
#include "frontend/frontend.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/cache.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu::cli {

class Logger;

/// Named numbers that --assert compares.
using Metrics = std::map<std::string, double>;

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

  /// [GRAPH] (default "-"), -o/--output (default "-") and add_import_options.
  void add_graph_io();
  /// Only -o/--output (default "-"), for tools that add their inputs themselves.
  void add_output();
  /// The output file; "-" is stdout.
  const std::string& output() const noexcept { return output_; }
  /// The folder of --output; empty for stdout.
  std::string output_folder() const;
  /// The GRAPH argument; "-" is stdin.
  const std::string& input() const noexcept { return input_; }
  /// Only [GRAPH], for tools whose product is a report.
  void add_graph_input();
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

  /// --bind and --freeze, for tools that take models of other formats.
  void add_import_options();
  /// Reads and verifies the document; the graph lives as long as the program. A model of another
  /// format is imported (frontend/frontend.hpp). If it is not valid, prints the diagnostics and
  /// ends the body.
  Graph& read_graph();
  /// The graph if the input is of a format that a frontend reads: a file with an empty `text`, else
  /// the bytes `text` of a pipe.
  std::optional<Graph> imported(const std::string& input, const std::string& text);
  /// The bytes of the input.
  std::string read_text();
  /// The input as a bundle. A file is mapped, stdin or a pipe is read into memory. For an input
  /// that does not begin like a bundle the result is null, and the caller continues with
  /// read_graph; if a bundle is required, that is an error.
  std::shared_ptr<const Bundle> read_bundle(bool required = false,
                                            DigestCheck check = DigestCheck::kAtOnce);
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
  void stop_on_errors();

 private:
  struct Assertion {
    std::string text;
    std::string metric = {};
    std::string comparison = {};
    double value = 0;
  };
  int parse(int argc, char** argv);
  int guarded(const std::function<ExitStatus()>& body);
  void print_diagnostics();
  void flush_output();
  Assertion parse_assertion(const std::string& text) const;
  void start_logger();
  ImportOptions import_options() const;

  std::string name_;
  CLI::App app_;
  std::unique_ptr<Logger> logger_;
  Diagnostics diagnostics_;
  std::size_t printed_ = 0;
  std::string input_ = "-";
  std::string output_ = "-";
  std::string infinity_ = "keep";
  std::vector<std::string> bindings_;
  std::vector<std::string> frozen_;
  bool has_input_ = false;
  bool input_is_terminal_ = false;
  bool wants_report_ = false;
  int verbose_ = 0;
  bool quiet_ = false;
  std::vector<std::string> assertion_texts_;
  std::string read_ahead_;  // input that can be read only once, if read_bundle has read it
  bool has_read_ahead_ = false;
  std::function<void(const TextSink&)> write_pending_;  // empty: nothing is written
};

/// Checks that a number lies in [minimum, maximum], with a message that fits on a line.
CLI::Validator in_range(std::int64_t minimum, std::int64_t maximum);
/// One of a few words.
CLI::Validator one_of(std::vector<std::string> words);
/// A number of bytes: an integer, optionally followed by k, M, G or T.
CLI::Validator byte_size();
/// A seed: an unsigned 64-bit integer.
CLI::Validator seed();
/// A file to write besides the document; refuses "-", since stdout carries that.
CLI::Validator file_beside_stdout();
/// Anything but the empty text.
CLI::Validator not_empty();
/// A finite number of at least 0.
CLI::Validator finite_at_least_zero();
/// For deadlines.
std::chrono::steady_clock::time_point seconds_from_now(double seconds);

}  // namespace npu::cli
