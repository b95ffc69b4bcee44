// SPDX-License-Identifier: Apache-2.0
// The option of npu-compile for models of several documents: --entry. Sizes of --bind and --buckets
// are for all documents that have them, since a size such as the capacity of a state is one in all
// of them; one that no document has is misspelt.
#include "options/entry_options.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "interruptible_compile.hpp"
#include "options/key_value.hpp"
#include "options/validators.hpp"
#include "profile/quantize_documents.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"

namespace npu::cli {
namespace {

constexpr std::size_t kMostName = 80;

/// A name that the names of entries are made of, "NAME:S=64".
bool is_entry_name(const std::string& name) {
  return name.size() <= kMostName && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

/// Those of some sizes that a template has; `used` collects their names.
SizeBindings sizes_of(const SizeSymbols& symbols, const SizeBindings& all,
                      std::set<std::string>& used) {
  SizeBindings own;
  for (const auto& [name, value] : all) {
    if (symbols.find(name) == nullptr) continue;
    own.emplace(name, value);
    used.insert(name);
  }
  return own;
}

/// Those of --buckets that a template has.
BucketOptions buckets_of(const SizeSymbols& symbols, const BucketOptions& all,
                         std::set<std::string>& used) {
  BucketOptions own;
  for (const std::string& text : all.products) {
    const std::string name = split_key_value(text, "--buckets", "NAME=N,N...").key;
    if (symbols.find(name) == nullptr) continue;
    own.products.push_back(text);
    used.insert(name);
  }
  return own;
}

class DocumentsReader {
 public:
  DocumentsReader(Tool& tool, const BucketOptions& buckets)
      : tool_(tool), buckets_(buckets), bound_(tool.input().bound_sizes()) {}

  DocumentToCompile read(const std::string& text) {
    const KeyValue named = split_key_value(text, "--entry", "NAME=FILE");
    if (!is_entry_name(named.key)) {
      throw Error(ErrorCode::kUsage, "--entry " + text + ": expected a name of at most " +
                                         std::to_string(kMostName) + " letters, digits, _ - and .");
    }
    if (!names_.insert(named.key).second) {
      throw Error(ErrorCode::kUsage,
                  "--entry " + text + ": '" + named.key + "' stands there twice");
    }
    DocumentToCompile document{.name = named.key};
    ReadDocument input = tool_.input().read_any(
        named.value, [&](const SizeSymbols& symbols) { return sizes_of(symbols, bound_, used_); });
    if (!input.sizes) {
      document.graph = std::move(input.graph);
      return document;
    }
    const BucketOptions own = buckets_of(input.sizes->symbols(), buckets_, used_);
    if (!own.wanted()) {
      throw Error(ErrorCode::kUsage, input.sizes->symbols().unbound_text({}) + " or --buckets",
                  {.file = input.sizes->file()});
    }
    document.buckets = checked_buckets(*input.sizes, own.list());
    document.model = std::move(input.sizes);
    return document;
  }

  /// Refuses sizes that no document has.
  void check_all_used() const {
    for (const auto& [name, value] : bound_) refuse_unused("--bind", name);
    for (const std::string& text : buckets_.products) {
      refuse_unused("--buckets", split_key_value(text, "--buckets", "NAME=N,N...").key);
    }
  }

 private:
  void refuse_unused(const std::string& option, const std::string& name) const {
    if (used_.contains(name)) return;
    throw Error(ErrorCode::kUsage, option + ": no document of --entry has a size '" + name + "'");
  }

  Tool& tool_;
  const BucketOptions& buckets_;
  SizeBindings bound_;
  std::set<std::string> names_;
  std::set<std::string> used_;  // sizes
};

/// Gives the documents their precisions, and says what came of it.
Metrics quantize(Tool& tool, std::vector<DocumentToCompile>& documents,
                 const CompilePrecision& precision, const CompileModelOptions& options,
                 std::optional<double> deadline) {
  std::vector<CompileQuantizedResult> results;
  compile_interruptibly(
      options, deadline, tool.verbosity() < 0, [&](const CompileModelOptions& watched) {
        results = quantize_documents(documents, precision.options(watched), tool.diagnostics());
      });
  tool.stop_on_errors();
  for (std::size_t d = 0; d < results.size(); ++d) {
    const std::string name = documents[d].name + ": ";
    if (tool.verbosity() >= 0) tool.complain(name + quantized_summary(results[d]));
    tool.report(name + format_quantize_report(results[d].precision));
  }
  return quantized_documents_metrics(results);
}

}  // namespace

void add_entry_options(Tool& tool, EntryOptions& options) {
  repeatable(tool.app().add_option(
                 "--entry", options.texts,
                 "instead of GRAPH: compile several documents, which share states by their names, "
                 "to one bundle; with --buckets for those of the sizes that each has; repeatable"))
      ->type_name("NAME=FILE");
}

ExitStatus compile_documents(Tool& tool, const EntryOptions& entries, const BucketOptions& buckets,
                             const CompileModelOptions& options, const CompilePrecision* precision,
                             TuningFile& tuning, std::optional<double> deadline) {
  if (entries.texts.size() < 2) {
    throw Error(ErrorCode::kUsage,
                "--entry: expected at least two documents; give a single one as GRAPH");
  }
  tool.refuse({"--bucket", "--lengths", "--freeze"}, "does not go with --entry");
  tool.input().refuse_path("--entry names what is compiled");
  if (buckets.is_auto()) {
    throw Error(ErrorCode::kUsage, "--buckets NAME=auto:K does not go with --entry");
  }
  DocumentsReader reader(tool, buckets);
  std::vector<DocumentToCompile> documents;
  for (const std::string& text : entries.texts) documents.push_back(reader.read(text));
  reader.check_all_used();
  Metrics int8;
  if (precision != nullptr) {
    int8 = quantize(tool, documents, *precision, options, deadline);
  }
  CompileEntriesResult result;
  compile_interruptibly(
      options, deadline, tool.verbosity() < 0, [&](const CompileModelOptions& watched) {
        result = compile_entries(std::move(documents), watched, tool.diagnostics());
      });
  tool.stop_on_errors();
  tool.report(format_entries_report(result));
  Metrics metrics = entries_metrics(result);
  metrics.merge(int8);
  const ExitStatus status = tool.check_asserts(metrics);
  tool.write_bundle(result.content);
  tuning.write(tool, result.content);
  return status;
}

}  // namespace npu::cli
