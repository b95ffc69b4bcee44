// SPDX-License-Identifier: Apache-2.0
// Reads what a program was given, whatever format it has: tells documents, bundles and models of
// other formats apart by their first bytes, gives sizes their values and verifies. A file is
// mapped; a pipe is read once.
#include "document_input.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "io.hpp"
#include "ir/bind_sizes.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "ops/check_template.hpp"
#include "ops/written_views.hpp"
#include "options/validators.hpp"
#include "support/json_fields.hpp"

namespace npu::cli {

void stop_on_errors(const Diagnostics& diagnostics) {
  if (diagnostics.has_errors()) throw StopOnDiagnostics{};
}

void DocumentInput::add_option(CLI::App& app) {
  option_ = app.add_option("GRAPH", path_, "document to read; - is stdin")->default_str("-");
}

void DocumentInput::add_import_options(CLI::App& app) {
  repeatable(app.add_option("--bind", bindings_,
                            "give a size of a template, or a symbolic dimension of a model such as "
                            "ONNX, a value, or with MIN..MAX[:STEP] a smaller range; repeatable"))
      ->type_name("NAME=N");
  repeatable(app.add_option("--freeze", frozen_,
                            "make an input of a model such as ONNX a constant, from a .npy or .pb "
                            "file; repeatable"))
      ->type_name("INPUT=FILE");
}

bool DocumentInput::is_terminal() const {
  return option_ != nullptr && option_->count() == 0 && ::isatty(STDIN_FILENO) == 1;
}

ImportOptions DocumentInput::import_options() const {
  ImportOptions options;
  for (const std::string& text : bindings_) {
    if (!is_stated_range(text)) add_binding(options, text);
  }
  for (const std::string& text : frozen_) add_frozen(options, text);
  return options;
}

std::optional<Graph> DocumentInput::imported(const std::string& path, const std::string& text) {
  const bool is_file = text.empty() && path != "-" && is_regular_file(path);
  std::optional<Graph> graph;
  if (is_file) {
    const MappedFile file(path);
    const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
    if (!begins_like_document(bytes) && !Bundle::has_magic(bytes)) {
      graph = import_model(path, bytes, import_options(), diagnostics_);
    }
  } else if (!text.empty() && !begins_like_document(text) && !Bundle::has_magic(text)) {
    graph = import_model("", text, import_options(), diagnostics_);
  }
  if (graph) stop_on_errors(diagnostics_);
  const bool says = is_file || !text.empty();
  if (says && !graph && !frozen_.empty()) {
    throw Error(ErrorCode::kUsage, "--freeze is for models that a frontend imports, and '" +
                                       input_name(path) + "' is none");
  }
  return graph;
}

std::vector<StatedRange> DocumentInput::stated_ranges() const {
  std::vector<StatedRange> ranges;
  for (const std::string& text : bindings_) {
    if (is_stated_range(text)) ranges.push_back(parse_stated_range(text));
  }
  return ranges;
}

void DocumentInput::refuse_ranges() const {
  const std::vector<StatedRange> ranges = stated_ranges();
  if (ranges.empty()) return;
  throw Error(ErrorCode::kUsage, "--bind " + ranges.front().name +
                                     "=MIN..MAX leaves the size open, and a value is needed here; "
                                     "npu-compile --buckets takes several");
}

Graph& DocumentInput::read_graph() {
  refuse_ranges();
  // Never freed: the process is about to end, and freeing a large document takes 10 % of its time.
  static Graph* const graph = new Graph;
  if (!read_ahead_ && !is_terminal()) {
    if (std::optional<Graph> model = imported(path_, {})) return *graph = *std::move(model);
  }
  const std::string text = read_text();
  if (Bundle::has_magic(text)) {
    throw Error(ErrorCode::kParse,
                "is a compiled bundle, expected a document; npu-run runs bundles",
                {.file = input_name(path_)});
  }
  if (std::optional<Graph> model = imported("-", text)) return *graph = *std::move(model);
  *graph = read_document(text, input_name(path_));
  // Once in a pipe: whoever wrote the target has said it.
  if (graph->npu_member("target") == nullptr) warn_of_written_views(*graph, diagnostics_);
  return *graph;
}

SizeBindings DocumentInput::bound_sizes() const {
  SizeBindings sizes;
  for (const auto& [name, value] : import_options().bindings) sizes.emplace(name, value);
  return sizes;
}

Template DocumentInput::read_sizes() {
  const std::string name = input_name(path_);
  SizeBindings sizes = bound_sizes();
  std::string text;
  std::optional<Json> document;
  const bool is_file = path_ != "-" && is_regular_file(path_);
  if (is_file) {
    const MappedFile file(path_);
    text.assign(reinterpret_cast<const char*>(file.data()), file.size());
  } else {
    text = read_text();
  }
  if (Bundle::has_magic(text)) {
    throw Error(ErrorCode::kParse, "is a compiled bundle, expected a template", {.file = name});
  }
  if (!begins_like_document(text)) {
    document = import_template(is_file ? path_ : "", text, import_options(), diagnostics_);
    stop_on_errors(diagnostics_);
    sizes.clear();
  }
  if (!document) document = parse_json(text, name);
  if (!SizeSymbols::are_in(*document)) {
    throw Error(ErrorCode::kUsage, name + " has no sizes that vary, npu.symbols");
  }
  const std::vector<StatedRange> ranges = stated_ranges();
  if (!ranges.empty()) document = narrow_sizes(*std::move(document), ranges, name);
  Template model = checked_template(*std::move(document), name);
  return sizes.empty() ? model : narrowed_template(model, sizes);
}

Template DocumentInput::checked_template(Json document, const std::string& name) {
  Template model = Template::read(std::move(document), name, diagnostics_);
  stop_on_errors(diagnostics_);
  check_template(model, diagnostics_);
  stop_on_errors(diagnostics_);
  return model;
}

Template DocumentInput::narrowed_template(const Template& model, const SizeBindings& sizes) {
  Template narrowed = Template::read(narrowed_document(model, sizes), model.file(), diagnostics_);
  stop_on_errors(diagnostics_);
  return narrowed;
}

ReadDocument DocumentInput::read_any(const std::string& path, const SizesFunction& bound) {
  refuse_ranges();
  const std::string text = read_file(path);
  if (!begins_like_document(text)) {
    throw Error(ErrorCode::kParse, "expected a document; npu-tag makes one of a model",
                {.file = path});
  }
  Json document = parse_json(text, path);
  ReadDocument read;
  if (!SizeSymbols::are_in(document)) {
    read.graph = npu::read_graph(text, path, diagnostics_);
    stop_on_errors(diagnostics_);
    return read;
  }
  Template model = checked_template(std::move(document), path);
  const SizeBindings sizes = bound(model.symbols());
  if (model.symbols().unbound_text(sizes).empty()) {
    read.graph = bind_sizes(model, sizes, diagnostics_);
  } else {
    read.sizes = sizes.empty() ? std::move(model) : narrowed_template(model, sizes);
  }
  stop_on_errors(diagnostics_);
  return read;
}

Template DocumentInput::read_model(const std::string& path) {
  const bool is_graph = path == path_;
  const std::string text = is_graph ? read_text() : read_file(path);
  const std::string name = input_name(path);
  std::optional<Json> document;
  if (begins_like_document(text)) {
    document = parse_json(text, name);
  } else {
    const ImportOptions options = is_graph ? import_options() : ImportOptions();
    document = import_template(path == "-" ? "" : path, text, options, diagnostics_);
    stop_on_errors(diagnostics_);
    if (!document) {
      throw Error(ErrorCode::kParse, "is no document and no model that a frontend imports",
                  {.file = name});
    }
  }
  const bool binds = is_graph && begins_like_document(text) && SizeSymbols::are_in(*document);
  if (find_member(*document, "npu") == nullptr) (*document)["npu"] = {{"version", 1}};
  Json& npu = *find_member(*document, "npu");
  if (find_member(npu, "symbols") == nullptr) npu["symbols"] = Json::object();
  const std::vector<StatedRange> ranges = stated_ranges();
  if (is_graph && !ranges.empty()) document = narrow_sizes(*std::move(document), ranges, name);
  Template model = checked_template(*std::move(document), name);
  const SizeBindings sizes = binds ? bound_sizes() : SizeBindings();
  return sizes.empty() ? model : narrowed_template(model, sizes);
}

void DocumentInput::refuse_path(const std::string& why) const {
  if (option_ != nullptr && option_->count() > 0) {
    throw Error(ErrorCode::kUsage, "GRAPH '" + path_ + "': " + why);
  }
}

Graph& DocumentInput::read_template() {
  // Only its document, with everything in it, and the file that its paths are relative to.
  static Graph* const model = new Graph;
  const Template sized = read_sizes();
  model->file = sized.file();
  model->document() = sized.document();
  return *model;
}

Graph DocumentInput::read_document(const std::string& text, const std::string& file) {
  Graph graph = read_sized_graph(text, file, bound_sizes(), diagnostics_, check_template);
  stop_on_errors(diagnostics_);
  return graph;
}

std::string DocumentInput::read_text() {
  if (is_terminal()) {
    throw Error(ErrorCode::kUsage, "no GRAPH given and stdin is a terminal");
  }
  if (!read_ahead_) return read_input(path_);
  return *std::exchange(read_ahead_, std::nullopt);
}

std::shared_ptr<const Bundle> DocumentInput::read_bundle(bool required, DigestCheck check) {
  refuse_ranges();
  if (path_ != "-" && (is_regular_file(path_) || ::access(path_.c_str(), F_OK) != 0)) {
    if (!required && !Bundle::is_bundle(path_)) return nullptr;
    auto bundle = Bundle::open(path_, check);
    refuse_bindings(*bundle);
    return bundle;
  }
  // Input that can be read only once, such as a pipe, is kept for read_graph.
  read_ahead_ = read_text();
  if (!required && !Bundle::has_magic(*read_ahead_)) return nullptr;
  auto bundle = Bundle::from_bytes(*read_ahead_, input_name(path_), check);
  refuse_bindings(*bundle);
  return bundle;
}

void DocumentInput::refuse_bindings(const Bundle& bundle) const {
  bool has_sizes = false;
  for (std::size_t i = 0; i < bundle.documents().size(); ++i) {
    has_sizes = has_sizes || !bundle.template_document(i).empty();
  }
  if ((bindings_.empty() || has_sizes) && frozen_.empty()) return;
  throw Error(ErrorCode::kUsage, "--bind and --freeze: '" + input_name(path_) +
                                     "' is compiled, and its sizes have values");
}

}  // namespace npu::cli
