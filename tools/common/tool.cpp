// SPDX-License-Identifier: Apache-2.0
// The frame of every program. run() is the only try/catch, the only mapper to exit codes and the
// only printer, so the eight tools behave alike.
#include "tool.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "io.hpp"
#include "logger.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "npu_version.hpp"
#include "options/validators.hpp"
#include "signals.hpp"
#include "support/detailed_error.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

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

void Tool::add_graph_io() {
  input_.add_option(app_);
  add_output();
  input_.add_import_options(app_);
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
  app_.add_option("--deadline", seconds, what)->type_name("SECONDS")->check(seconds_to_wait());
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
  const auto check = [](const std::string& text) {
    try {
      check_assertion(text);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  repeatable(app_.add_option("--assert", assertion_texts_,
                             "exit 4 unless 'METRIC OP VALUE' holds, OP one of <= >= == != < >; "
                             "repeatable. Metrics: " +
                                 names))
      ->type_name("EXPR")
      ->check(check);
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

void Tool::stop_on_errors() const { cli::stop_on_errors(diagnostics_); }

void Tool::write_template(Graph& model) {
  rebase_weights_file(model, output_ == "-" ? std::string() : output_);
  write_text(write_document(model.document()));
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

ExitStatus Tool::check_asserts(const Metrics& metrics) {
  return assertions_hold(assertion_texts_, metrics,
                         [this](const std::string& text) { complain(text); })
             ? ExitStatus::kSuccess
             : ExitStatus::kAssertFailed;
}

std::chrono::steady_clock::time_point seconds_from_now(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace npu::cli
