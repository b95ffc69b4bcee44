// SPDX-License-Identifier: Apache-2.0
// npu-run's token loop between its streams: requests from a file or a pipe, ids to a file or a
// pipe, and the report to where it does not disturb them.
//
// Requests of a pipe are read while the loop goes on, and ids go to standard output one by one, so
// that a tokenizer can stand on each side.
#include "token_loop.hpp"

#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "interruptible_run.hpp"
#include "io.hpp"
#include "npu/ir/json_writer.hpp"
#include "requests.hpp"
#include "runtime/generate/generate_report.hpp"
#include "runtime/generate/session_model.hpp"
#include "runtime/session/saved_states.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

/// Ids as text: on standard output as they come, or kept for a file.
class IdText : public IdSink {
 public:
  explicit IdText(bool is_stdout) : is_stdout_(is_stdout) {}

  bool id(std::int64_t id) override {
    const std::string text = (is_begun_ ? " " : "") + std::to_string(id);
    is_begun_ = true;
    if (is_stdout_) return line_.add(text);
    text_ += text;
    return true;
  }
  bool end_line() override {
    is_begun_ = false;
    if (is_stdout_) return line_.end();
    text_ += '\n';
    return true;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  bool is_stdout_;
  bool is_begun_ = false;
  OutputLine line_;
  std::string text_;
};

/// A line on a terminal, a few times a second.
class RateLine {
 public:
  explicit RateLine(bool is_visible) : is_visible_(is_visible && ::isatty(STDERR_FILENO) == 1) {}
  ~RateLine() {
    if (has_line_) write_progress("");
  }
  RateLine(const RateLine&) = delete;
  RateLine& operator=(const RateLine&) = delete;

  GenerateProgressCallback callback() {
    if (!is_visible_) return {};
    return [this](const GenerateProgress& done) { show(done); };
  }

 private:
  void show(const GenerateProgress& done) {
    constexpr double kEverySeconds = 0.2;
    if (has_line_ && seconds_since(shown_) < kEverySeconds) return;
    std::string line = "request " + std::to_string(done.request) + ": ";
    if (done.prompt_left > 0) {
      line += "reading " + std::to_string(done.prompt_left) + " ids";
    } else {
      line += std::to_string(done.new_ids);
      if (done.count > 0) line += " of " + std::to_string(done.count);
      line += " ids, " + fixed_text(done.ids_per_second, 1) + " ids/s";
    }
    write_progress(line);
    shown_ = Clock::now();
    has_line_ = true;
  }

  bool is_visible_;
  bool has_line_ = false;
  Clock::time_point shown_;
};

bool writes_ids_to_stdout(const TokenLoopOptions& options) { return is_stdout(options.tokens_out); }

void check_stop_ids(const TokenLoopOptions& options, std::int64_t vocabulary) {
  for (const std::int64_t id : options.generate.stop) {
    if (id < vocabulary) continue;
    throw Error(ErrorCode::kUsage, "--stop " + std::to_string(id) +
                                       ": the id is not below the size of the vocabulary, " +
                                       std::to_string(vocabulary));
  }
}

/// The position that they are at.
std::int64_t restore_states(SessionModel& model, const std::string& path) {
  const SavedStates saved = read_saved_states(path);
  if (saved.position > model.capacity()) {
    throw Error(ErrorCode::kParse,
                "the position is " + std::to_string(saved.position) +
                    ", behind the model's capacity of " + std::to_string(model.capacity()),
                {.file = path});
  }
  model.session().set_state_values(saved.values);
  return saved.position;
}

/// Reads the requests, generates or scores, and writes ids; returns the report.
Json run_token_loop(const Tool& tool, SessionModel& model, const RunModelOptions& run,
                    const TokenLoopOptions& options) {
  const bool is_terminal = writes_ids_to_stdout(options) && output_is_terminal();
  const RequestFiles files{.tokens = options.wants_ids ? options.tokens : options.score,
                           .source = options.source,
                           .inputs = run.inputs,
                           .is_restored = !run.state_in.empty()};
  if (options.generate.keep && model.source() != nullptr) {
    throw Error(
        ErrorCode::kUsage,
        "--keep: the model has an encoder, so each request begins with a source of its own");
  }
  const RequestSource requests = requests_of(files, model);
  RateLine rate(tool.shows_progress() && !is_terminal);
  if (!options.wants_ids) {
    return score_report_json(score(model, requests, input_name(files.name()), rate.callback()),
                             model.facts());
  }
  check_stop_ids(options, model.vocabulary());
  GenerateOptions generate_options = options.generate;
  generate_options.keep_ids = options.tokens_out.empty();
  if (!run.state_in.empty()) {
    generate_options.is_restored = true;
    generate_options.position = restore_states(model, run.state_in);
  }
  IdText ids(writes_ids_to_stdout(options));
  const GenerateResult result =
      generate(model, requests, input_name(files.name()), generate_options, ids, rate.callback());
  if (!options.tokens_out.empty() && !writes_ids_to_stdout(options)) {
    write_output(options.tokens_out, ids.text());
  }
  if (!run.state_out.empty()) {
    write_saved_states(run.state_out, {model.session().state_values(), result.position});
  }
  return generate_report_json(result, model.facts());
}

}  // namespace

void check_token_loop(Tool& tool, const TokenLoopOptions& options) {
  const std::string& input = options.wants_ids ? options.tokens : options.score;
  const bool both = input == "-" && options.source == "-";
  if (both || ((input == "-" || options.source == "-") && tool.graph_path() == "-")) {
    throw Error(ErrorCode::kUsage, both
                                       ? "--source and the ids are both to come from standard input"
                                       : "GRAPH and the ids are both to come from standard input");
  }
  if (options.wants_ids && options.tokens.empty() && options.source.empty() &&
      tool.app().count("--inputs") == 0) {
    throw Error(ErrorCode::kUsage,
                "--generate needs --tokens FILE, or --source FILE or --inputs NAME=FILE of a model "
                "with an encoder");
  }
  if (writes_ids_to_stdout(options) && tool.has_output() && tool.output() == "-") {
    throw Error(ErrorCode::kUsage,
                "--tokens-out -: standard output carries the ids; give the report -o FILE");
  }
  tool.refuse({"--random-inputs", "--outputs", "--expect", "--verify", "--tap", "--rtol", "--atol",
               "--bench", "--trace", "--in-flight", "--no-overlap", "--features", "--device",
               "--units", "--simulate", "--steps"},
              options.wants_ids ? "is not for --generate" : "is not for --score");
  if (!options.wants_ids) tool.refuse({"--state-in", "--state-out"}, "is not for --score");
}

ExitStatus run_decoder(Tool& tool, const Bundle* bundle, RunModelOptions& options,
                       std::optional<double> deadline, const TokenLoopOptions& loop) {
  Json report;
  run_interruptibly(options, deadline, [&] {
    const SessionLogits logits = loop.wants_ids ? SessionLogits::kLastRow : SessionLogits::kAllRows;
    const auto model =
        bundle != nullptr
            ? SessionModel::open(*bundle, options, logits, tool.diagnostics())
            : SessionModel::open(std::move(tool.input().read_graph()), options, tool.diagnostics());
    tool.stop_on_errors();
    report = run_token_loop(tool, *model, options, loop);
  });
  if (tool.wants_report()) tool.report(format_generate_report(report));
  const ExitStatus status = tool.check_asserts(generate_metrics(report));
  const bool has_place = !writes_ids_to_stdout(loop) || tool.output() != "-";
  if (has_place) tool.write_text(write_document(report));
  return status;
}

}  // namespace npu::cli
