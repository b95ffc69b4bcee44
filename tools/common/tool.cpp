// SPDX-License-Identifier: Apache-2.0
// The frame of every program. run() is the only try/catch, the only mapper to exit codes and the
// only printer, so the eight tools behave alike.
#include "tool.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "io.hpp"
#include "logger.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu_version.hpp"
#include "ops/written_views.hpp"
#include "signals.hpp"
#include "support/detailed_error.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

// Ends the body after diagnostics were collected; run() prints them.
struct StopOnDiagnostics {};

ExitStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
    case ErrorCode::kParse:
    case ErrorCode::kInvalidGraph:
    case ErrorCode::kUnsupported:
    case ErrorCode::kFailed:
      return ExitStatus::kBadInput;
    case ErrorCode::kUsage:
      return ExitStatus::kUsage;
    case ErrorCode::kInfeasible:
      return ExitStatus::kInfeasible;
  }
  return ExitStatus::kInternal;
}

// The largest number of metric names that a message lists.
std::string metric_names(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("?");
}

bool holds(double value, const std::string& comparison, double bound) {
  if (comparison == "<=") return value <= bound;
  if (comparison == ">=") return value >= bound;
  if (comparison == "==") return value == bound;
  if (comparison == "!=") return value != bound;
  if (comparison == "<") return value < bound;
  return value > bound;
}

// Accepts text that is a number as a whole and satisfies `accept`; else "value TEXT COMPLAINT".
template <typename Number>
CLI::Validator number_check(std::function<bool(Number)> accept, std::string complaint) {
  return CLI::Validator(
      [accept = std::move(accept), complaint = std::move(complaint)](std::string& text) {
        Number value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && end == text.data() + text.size();
        return is_number && accept(value) ? std::string() : "value " + text + " " + complaint;
      },
      "");
}

// "; did you mean --target?" if an unknown option was given that resembles a known one.
std::string option_advice(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& own = option->get_lnames();
    names.insert(names.end(), own.begin(), own.end());
  }
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with("--")) continue;
    const std::string name = nearest_option(word.substr(2, word.find('=') - 2), names);
    return name.empty() ? std::string() : "; did you mean --" + name + "?";
  }
  return {};
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

}  // namespace

Tool::Tool(std::string name, std::string summary)
    : name_(std::move(name)),
      app_(std::move(summary), name_),
      logger_(std::make_unique<Logger>(name_)) {
  app_.set_version_flag("--version", name_ + " " NPU_VERSION, "print the version and exit");
  app_.set_help_flag("-h,--help", "print this help and exit");
  app_.add_flag("-v,--verbose", verbose_,
                "log to stderr what each stage does and how long it takes; -vv: also why. NPU_LOG "
                "sets levels by module, see npu(7)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app_.add_flag("-q,--quiet", quiet_, "print errors only");
  app_.get_formatter()->column_width(34);
  app_.option_defaults()->always_capture_default(false);
}

void Tool::add_graph_input() {
  has_input_ = true;
  app_.add_option("GRAPH", input_, "document to read; - is stdin")->default_str("-");
}

void Tool::add_graph_io() {
  add_graph_input();
  add_output();
  add_import_options();
  app_.add_option("--json-infinity", infinity_,
                  "write infinities and NaN as strings (text), bare as Python's json module does "
                  "(bare), or as they were read (keep)")
      ->type_name("FORM")
      ->default_str("keep")
      ->check(one_of({"keep", "text", "bare"}));
}

void Tool::add_output() {
  app_.add_option("-o,--output", output_, "file to write; - is stdout")
      ->type_name("FILE")
      ->default_str("-");
}

void Tool::add_cache(CacheOptions& cache) {
  app_.add_option("--cache-dir", cache.folder,
                  "folder of compiled partitions [$XDG_CACHE_HOME/npu, ~/.cache/npu]")
      ->type_name("DIR");
  app_.add_flag_callback(
      "--no-cache", [&cache] { cache.enabled = false; }, "neither read nor write the cache");
  app_.add_option_function<std::string>(
          "--cache-limit",
          [&cache](const std::string& text) { cache.limit_bytes = *parse_byte_size(text); },
          "largest size of the cache in bytes; k, M, G or T may follow the number [8G]")
      ->type_name("SIZE")
      ->check(byte_size());
}

void Tool::add_memory_limit(Json& backend_options) {
  app_.add_option_function<std::string>(
          "--memory-limit",
          [&backend_options](const std::string& text) {
            backend_options["memory_limit"] = static_cast<std::uint64_t>(*parse_byte_size(text));
          },
          "memory that a model may take of each device; k, M, G or T may follow the number; exit 3 "
          "with a table if it needs more")
      ->type_name("SIZE")
      ->check(byte_size());
}

void Tool::add_deadline(std::optional<double>& seconds, const std::string& what) {
  constexpr double kYear = 365.0 * 24 * 3600;
  app_.add_option("--deadline", seconds, what)
      ->type_name("SECONDS")
      ->check(number_check<double>([](double value) { return value > 0 && value <= kYear; },
                                   "is not a number of seconds above 0 and at most 31536000, a "
                                   "year"));
}

void Tool::add_precision(std::string& precision, const std::string& what) {
  app_.add_option("--precision", precision, what)
      ->type_name("f32|bf16|f16")
      ->check(one_of({"f32", "bf16", "f16"}));
}

std::string Tool::plan_precision(const std::string& precision) {
  if (precision == "f16") {
    throw Error(ErrorCode::kUsage, "--precision f16: the features of a plan are f32 or bf16");
  }
  return precision;
}

void Tool::refuse(const std::vector<std::string>& options, const std::string& why) const {
  for (const std::string& option : options) {
    if (app_.count(option) > 0) throw Error(ErrorCode::kUsage, option + " " + why);
  }
}

void Tool::add_assert(const std::string& names) {
  app_.add_option("--assert", assertion_texts_,
                  "exit 4 unless 'METRIC OP VALUE' holds, OP one of <= >= == != < >; repeatable. "
                  "Metrics: " +
                      names)
      ->type_name("EXPR")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(CLI::Validator(
          [this](std::string& text) {
            try {
              parse_assertion(text);
            } catch (const Error& error) {
              return error.message();
            }
            return std::string();
          },
          ""));
}

void Tool::add_report(const std::string& what) {
  app_.add_flag("--report", wants_report_, "print to stderr " + what);
}

void Tool::add_examples(const std::vector<std::string>& lines) {
  std::string text = "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  app_.footer(text);
}

Tool::~Tool() { set_log_sink(nullptr); }

void Tool::start_logger() {
  if (quiet_) return logger_->set_quiet();
  LogLevels levels(verbose_);
  if (const char* text = std::getenv("NPU_LOG")) levels.set(text);
  if (levels.is_silent()) return;
  logger_->set_levels(levels);
  set_log_sink(logger_.get());
}

bool Tool::shows_progress() const noexcept { return !quiet_ && logger_->levels().is_silent(); }

int Tool::run(int argc, char** argv, const std::function<ExitStatus()>& body) {
  keep_stdout_for_output();
  install_signal_handlers(name_);
  const int parsed = parse(argc, argv);
  if (parsed >= 0) return parsed;
  begin_body();
  const int status = guarded([&] {
    start_logger();
    return body();
  });
  end_body();
  return status;
}

int Tool::parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return guarded([&] { return write_text(app_.help()), ExitStatus::kSuccess; });
  } catch (const CLI::CallForVersion&) {
    return guarded([&] { return write_text(name_ + " " NPU_VERSION "\n"), ExitStatus::kSuccess; });
  } catch (const CLI::ParseError& error) {
    logger_->error(error.what() + option_advice(app_));
    write_message("Try '" + name_ + " --help'.\n");
    return static_cast<int>(ExitStatus::kUsage);
  }
  if (is_stdout(output_)) output_ = "-";
  if (has_input_ && app_.count("GRAPH") == 0 && ::isatty(STDIN_FILENO) == 1) {
    input_is_terminal_ = true;
  }
  return -1;
}

int Tool::guarded(const std::function<ExitStatus()>& body) {
  try {
    const ExitStatus status = body();
    print_diagnostics();
    flush_output();
    return static_cast<int>(status);
  } catch (const StopOnDiagnostics&) {
    print_diagnostics();
    return static_cast<int>(ExitStatus::kBadInput);
  } catch (const Error& error) {
    print_diagnostics();
    logger_->error(error.what());
    if (const auto* more = dynamic_cast<const DetailedError*>(&error)) {
      write_message(more->details());
    }
    if (error.code() == ErrorCode::kUsage) write_message("Try '" + name_ + " --help'.\n");
    return static_cast<int>(status_of(error.code()));
  } catch (const std::bad_alloc&) {
    logger_->error("error: out of memory");
    return static_cast<int>(ExitStatus::kInfeasible);
  } catch (const std::exception& error) {
    logger_->error(std::string("internal error, please report: ") + error.what());
    return static_cast<int>(ExitStatus::kInternal);
  }
}

void Tool::print_diagnostics() {
  const auto& entries = diagnostics_.entries();
  for (; printed_ < entries.size(); ++printed_) {
    logger_->diagnostic(entries[printed_]);
  }
}

void Tool::stop_on_errors() {
  if (diagnostics_.has_errors()) throw StopOnDiagnostics{};
}

void Tool::add_import_options() {
  const auto repeatable = [this](const char* name, std::vector<std::string>& values,
                                 const char* type, const char* text) {
    app_.add_option(name, values, text)
        ->type_name(type)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  repeatable("--bind", bindings_, "NAME=N",
             "give a symbolic dimension of a model such as ONNX a value; repeatable");
  repeatable("--freeze", frozen_, "INPUT=FILE",
             "make an input of a model such as ONNX a constant, from a .npy or .pb file; "
             "repeatable");
}

ImportOptions Tool::import_options() const {
  ImportOptions options;
  for (const std::string& text : bindings_) add_binding(options, text);
  for (const std::string& text : frozen_) add_frozen(options, text);
  return options;
}

std::optional<Graph> Tool::imported(const std::string& input, const std::string& text) {
  const bool is_file = text.empty() && input != "-" && is_regular_file(input);
  std::optional<Graph> graph;
  if (is_file) {
    const MappedFile file(input);
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    if (!begins_like_document(bytes) && !Bundle::has_magic(bytes)) {
      graph = import_model(input, bytes, import_options(), diagnostics_);
    }
  } else if (!text.empty() && !begins_like_document(text) && !Bundle::has_magic(text)) {
    graph = import_model("", text, import_options(), diagnostics_);
  }
  if (graph) stop_on_errors();
  const bool says = is_file || !text.empty();
  if (says && !graph && !(bindings_.empty() && frozen_.empty())) {
    throw Error(ErrorCode::kUsage,
                "--bind and --freeze are for models that a frontend imports, and '" +
                    input_name(input) + "' is none");
  }
  return graph;
}

Graph& Tool::read_graph() {
  // Never freed: the process is about to end, and freeing a large document takes 10 % of its time.
  static Graph* const graph = new Graph;
  if (!has_read_ahead_ && !input_is_terminal_) {
    if (std::optional<Graph> model = imported(input_, {})) return *graph = *std::move(model);
  }
  const std::string text = read_text();
  if (Bundle::has_magic(text)) {
    throw Error(ErrorCode::kParse,
                "is a compiled bundle, expected a document; npu-run runs bundles",
                {.file = input_name(input_)});
  }
  if (std::optional<Graph> model = imported("-", text)) return *graph = *std::move(model);
  *graph = npu::read_graph(text, input_name(input_), diagnostics_);
  stop_on_errors();
  // Once in a pipe: whoever wrote the target has said it.
  if (graph->npu_member("target") == nullptr) warn_of_written_views(*graph, diagnostics_);
  return *graph;
}

std::string Tool::read_text() {
  if (input_is_terminal_) {
    throw Error(ErrorCode::kUsage, "no GRAPH given and stdin is a terminal");
  }
  if (!has_read_ahead_) return read_input(input_);
  has_read_ahead_ = false;
  return std::move(read_ahead_);
}

std::shared_ptr<const Bundle> Tool::read_bundle(bool required, DigestCheck check) {
  if (input_ != "-" && (is_regular_file(input_) || ::access(input_.c_str(), F_OK) != 0)) {
    return required || Bundle::is_bundle(input_) ? Bundle::open(input_, check) : nullptr;
  }
  // Input that can be read only once, such as a pipe, is kept for read_graph.
  read_ahead_ = read_text();
  has_read_ahead_ = true;
  if (!required && !Bundle::has_magic(read_ahead_)) return nullptr;
  return Bundle::from_bytes(read_ahead_, input_name(input_), check);
}

std::string Tool::producer() const { return name_ + " " NPU_VERSION; }

void Tool::write_bundle(BundleContent& content) {
  stop_on_errors();
  content.producer = producer();
  if (output_ != "-") return npu::write_bundle(output_, content);
  if (output_is_terminal()) {
    throw Error(ErrorCode::kUsage, "stdout is a terminal, and a bundle is binary; give -o FILE");
  }
  write_text(bundle_bytes(content));
}

void Tool::write_graph(Graph& graph) {
  stop_on_errors();
  rebase_weights_file(graph, output_ == "-" ? std::string() : output_);
  if (infinity_ == "text") set_non_finite_form(graph, NonFiniteForm::kText);
  if (infinity_ == "bare") set_non_finite_form(graph, NonFiniteForm::kBare);
  write_pending_ = [&graph](const TextSink& sink) { npu::write_graph(graph, sink); };
}

std::string Tool::output_folder() const {
  if (output_ == "-") return {};
  const std::string folder = std::filesystem::path(output_).parent_path();
  return folder.empty() ? "." : folder;
}

void Tool::write_text(std::string text) {
  write_pending_ = [text = std::move(text)](const TextSink& sink) { sink(text); };
}

void Tool::flush_output() {
  if (write_pending_) write_output(output_, write_pending_);
  write_pending_ = nullptr;
}

void Tool::complain(const std::string& text) {
  print_diagnostics();
  logger_->error(text);
}

void Tool::note(const std::string& text) {
  print_diagnostics();
  write_message(text);
}

void Tool::report(const std::string& text) {
  if (wants_report_) note(text);
}

Tool::Assertion Tool::parse_assertion(const std::string& text) const {
  const std::size_t begin = text.find_first_of("<>=!");
  const std::size_t end = text.find_first_not_of("<>=!", begin);
  Assertion assertion{.text = text};
  if (begin != std::string::npos && end != std::string::npos) {
    assertion.metric = trimmed(std::string_view(text).substr(0, begin));
    assertion.comparison = text.substr(begin, end - begin);
    const std::string number = trimmed(std::string_view(text).substr(end));
    const auto [last, error] =
        std::from_chars(number.data(), number.data() + number.size(), assertion.value);
    const std::string& op = assertion.comparison;
    const bool known =
        op == "<=" || op == ">=" || op == "==" || op == "!=" || op == "<" || op == ">";
    if (known && !assertion.metric.empty() && error == std::errc() &&
        last == number.data() + number.size()) {
      return assertion;
    }
  }
  throw Error(ErrorCode::kUsage,
              "'" + text + "' is not METRIC OP VALUE, for example 'transfers<=4'");
}

ExitStatus Tool::check_asserts(const Metrics& metrics) {
  ExitStatus status = ExitStatus::kSuccess;
  for (const std::string& text : assertion_texts_) {
    const Assertion assertion = parse_assertion(text);
    const auto metric = metrics.find(assertion.metric);
    if (metric == metrics.end()) {
      throw Error(ErrorCode::kUsage, "--assert '" + text + "': unknown metric '" +
                                         assertion.metric +
                                         "', expected one of: " + metric_names(metrics));
    }
    if (holds(metric->second, assertion.comparison, assertion.value)) continue;
    complain("assertion '" + text + "' does not hold: " + assertion.metric + " is " +
             number_text(metric->second));
    status = ExitStatus::kAssertFailed;
  }
  return status;
}

CLI::Validator in_range(std::int64_t minimum, std::int64_t maximum) {
  return number_check<std::int64_t>(
      [minimum, maximum](std::int64_t value) { return value >= minimum && value <= maximum; },
      "is not in " + std::to_string(minimum) + ".." + std::to_string(maximum));
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& text) {
        std::string list;
        for (const std::string& word : words) {
          if (word == text) return std::string();
          list += (list.empty() ? "" : ", ") + word;
        }
        return "value " + text + " is not one of " + list;
      },
      "");
}

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) {
        if (parse_byte_size(text)) return std::string();
        const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
        const bool is_large = unit > 0 && parse_byte_size("1" + text.substr(unit));
        return "value " + text +
               (is_large ? " is above " + std::to_string(INT64_MAX) + " bytes"
                         : " is no size, for example 500M or 8G");
      },
      "");
}

CLI::Validator seed() {
  return number_check<std::uint64_t>([](std::uint64_t) { return true; },
                                     "is not in 0.." + std::to_string(UINT64_MAX));
}

CLI::Validator file_beside_stdout() {
  return CLI::Validator(
      [](std::string& text) {
        return is_stdout(text) || text.empty()
                   ? "'" + text + "' is no file name, and stdout carries the document"
                   : std::string();
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "'' is no name" : std::string(); }, "");
}

CLI::Validator finite_at_least_zero() {
  return number_check<double>([](double value) { return std::isfinite(value) && value >= 0; },
                              "is not a finite number of at least 0");
}

std::chrono::steady_clock::time_point seconds_from_now(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace npu::cli
