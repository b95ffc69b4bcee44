// SPDX-License-Identifier: Apache-2.0
// The options of npu-compile for sizes that vary.
#include "options/bucket_options.hpp"

#include <charconv>
#include <sstream>
#include <string_view>
#include <utility>

#include "interruptible_compile.hpp"
#include "npu/support/file_io.hpp"
#include "options/key_value.hpp"
#include "options/validators.hpp"
#include "runtime/entries/best_sizes.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

constexpr std::string_view kAuto = "auto:";

/// Finds the sizes of --buckets S=auto:K; `best` says what they cost.
std::vector<SizeBindings> found_buckets(const BucketOptions& options, const Template& model,
                                        const CompileModelOptions& compile, BestSizes& best,
                                        Diagnostics& diagnostics) {
  const KeyValue sizes = split_key_value(options.products.front(), "--buckets", "NAME=auto:K");
  if (options.products.size() != 1 || !options.single.empty() || options.lengths.empty()) {
    throw Error(ErrorCode::kUsage,
                "--buckets " + sizes.key + "=auto:K needs --lengths FILE and no other buckets");
  }
  const auto most = parse_integers(sizes.value.substr(kAuto.size()), "--buckets " + sizes.key);
  if (most.size() != 1 || most.front() < 1 || most.front() > 64) {
    throw Error(ErrorCode::kUsage,
                "--buckets " + options.products.front() + ": expected NAME=auto:K with K in 1..64");
  }
  const auto lengths = parse_lengths(read_file(options.lengths), options.lengths);
  best = auto_sizes(model, sizes.key, static_cast<std::size_t>(most.front()), lengths, compile,
                    diagnostics);
  std::vector<SizeBindings> buckets;
  for (const std::int64_t size : best.sizes) buckets.push_back({{sizes.key, size}});
  return buckets;
}

[[noreturn]] void refuse_twice(const std::string& option, const std::string& symbol) {
  throw Error(ErrorCode::kUsage, option + " names '" + symbol + "' twice");
}

}  // namespace

void add_sizes(const std::string& text, SizeBindings& sizes) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    std::int64_t value = 0;
    const char* end = part.data() + part.size();
    const auto read = equals == std::string::npos
                          ? std::from_chars_result{end, std::errc::invalid_argument}
                          : std::from_chars(part.data() + equals + 1, end, value);
    if (read.ec != std::errc() || read.ptr != end || value < 1) {
      throw Error(ErrorCode::kUsage, "--bucket " + text + ": expected NAME=N with N of at least 1");
    }
    if (!sizes.emplace(part.substr(0, equals), value).second) {
      throw Error(ErrorCode::kUsage,
                  "--bucket " + text + ": '" + part.substr(0, equals) + "' has a value already");
    }
  }
}

bool BucketOptions::is_auto() const noexcept {
  return !products.empty() &&
         products.front().find(std::string("=").append(kAuto)) != std::string::npos;
}

std::vector<SizeBindings> BucketOptions::list() const {
  if (!lengths.empty()) {
    throw Error(ErrorCode::kUsage, "--lengths goes with --buckets NAME=auto:K");
  }

  std::vector<SizeBindings> buckets;
  if (!products.empty()) buckets.emplace_back();
  for (const std::string& text : products) {
    const KeyValue sizes = split_key_value(text, "--buckets", "NAME=N,N...");
    std::vector<SizeBindings> longer;
    for (const std::int64_t value : parse_integers(sizes.value, "--buckets")) {
      for (SizeBindings bucket : buckets) {
        if (!bucket.emplace(sizes.key, value).second) refuse_twice("--buckets", sizes.key);
        longer.push_back(std::move(bucket));
      }
      // Further ones would only take memory until they are refused.
      constexpr std::size_t kMost = 100'000;
      if (longer.size() > kMost) {
        throw Error(ErrorCode::kUsage,
                    "--buckets: more than " + std::to_string(kMost) + " choices of sizes");
      }
    }
    buckets = std::move(longer);
  }
  for (const std::string& text : single) {
    add_sizes(text, buckets.emplace_back());
  }
  return buckets;
}

void add_bucket_options(Tool& tool, BucketOptions& options) {
  repeatable(tool.app().add_option(
                 "--buckets", options.products,
                 "compile a template, or a model such as ONNX with symbolic dimensions, for these "
                 "values of a size; of several sizes for all combinations; repeatable; "
                 "NAME=auto:K: for the best K values by --lengths"))
      ->type_name("NAME=N,N...");
  repeatable(tool.app().add_option("--bucket", options.single,
                                   "the same for one choice of all sizes; repeatable"))
      ->type_name("NAME=N,...");
  tool.app()
      .add_option("--lengths", options.lengths,
                  "with --buckets NAME=auto:K: how long requests are, one length a line")
      ->type_name("FILE")
      ->check(not_empty());
}

ExitStatus compile_buckets(Tool& tool, const BucketOptions& buckets,
                           const CompileModelOptions& options, const CompilePrecision* precision,
                           TuningFile& tuning, std::optional<double> deadline) {
  std::vector<SizeBindings> list;
  if (!buckets.is_auto()) list = buckets.list();
  Template model = tool.input().read_sizes();
  if (model.symbols().list().empty()) {
    throw Error(ErrorCode::kUsage,
                "--buckets: --bind gives every size of " + model.file() + " a value");
  }
  CompileQuantizedResult int8;
  if (precision != nullptr) {
    compile_interruptibly(
        options, deadline, tool.verbosity() < 0, [&](const CompileModelOptions& watched) {
          QuantizedDocument made = quantize_document(
              {.model = std::move(model)}, precision->options(watched), tool.diagnostics());
          int8 = std::move(made.sample);
          model = *std::move(made.document.model);
        });
    tool.stop_on_errors();
    if (tool.verbosity() >= 0) tool.complain(quantized_summary(int8));
    tool.report(format_quantize_report(int8.precision));
  }
  BestSizes best;
  if (buckets.is_auto()) {
    list = found_buckets(buckets, model, options, best, tool.diagnostics());
    tool.stop_on_errors();
  }
  list = checked_buckets(model, std::move(list));
  CompileEntriesResult result;
  compile_interruptibly(options, deadline, tool.verbosity() < 0,
                        [&](const CompileModelOptions& watched) {
                          result = compile_entries(model, list, watched, tool.diagnostics());
                        });
  tool.stop_on_errors();
  tool.report(format_entries_report(result));
  Metrics metrics = entries_metrics(result);
  if (precision != nullptr) metrics.merge(compile_quantized_metrics(int8));
  if (buckets.is_auto()) {
    tool.report("by " + buckets.lengths + ": expected ms " +
                fixed_text(best.expected_us / 1000, 3) + ", of which " +
                fixed_text(best.padded_share * 100, 1) +
                "% of the rows are padding; with every length as a bucket " +
                fixed_text(best.bound_us / 1000, 3) + "\n");
    metrics["expected_ms"] = best.expected_us / 1000;
    metrics["bound_ms"] = best.bound_us / 1000;
    metrics["padded_share"] = best.padded_share;
  }
  const ExitStatus status = tool.check_asserts(metrics);
  tool.write_bundle(result.content);
  tuning.write(tool, result.content);
  return status;
}

}  // namespace npu::cli
