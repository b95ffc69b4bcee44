// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/frontend.hpp"
#include "ir/bind_sizes.hpp"
#include "ir/narrow_sizes.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"

namespace npu::cli {

/// Ends the body of Tool::run after diagnostics were collected, which Tool::run prints.
struct StopOnDiagnostics {};
/// Throws it if there are errors among them.
void stop_on_errors(const Diagnostics& diagnostics);

/// A document of npu-ir(5), whose sizes vary or do not.
struct ReadDocument {
  std::optional<Template> sizes;
  Graph graph;  ///< without `sizes`
};
/// The values that some of the sizes of a template get.
using SizesFunction = std::function<SizeBindings(const SizeSymbols& symbols)>;

/// What a program reads: a document, a template, a bundle or a model of another format, from a file
/// or stdin. Faults go to the diagnostics; if there are errors, the body of Tool::run ends.
class DocumentInput {
 public:
  explicit DocumentInput(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  DocumentInput(const DocumentInput&) = delete;
  DocumentInput& operator=(const DocumentInput&) = delete;

  /// [GRAPH], default "-".
  void add_option(CLI::App& app);
  /// --bind and --freeze, for tools that take templates and models of other formats.
  void add_import_options(CLI::App& app);

  /// The GRAPH argument; "-" is stdin.
  const std::string& path() const noexcept { return path_; }

  /// Reads and verifies the document; the graph lives as long as the program. A model of another
  /// format is imported (frontend/frontend.hpp).
  Graph& read_graph();
  /// The values of --bind.
  SizeBindings bound_sizes() const;
  /// The input as a template: a document with sizes that vary, or a model of another format with
  /// symbolic dimensions, as far as --bind leaves them open. Checked. Throws Error kUsage if no
  /// size varies.
  Template read_sizes();
  /// A file beside GRAPH, a document: as a template, as far as `bound` leaves its sizes open, or as
  /// a verified graph.
  ReadDocument read_any(const std::string& path, const SizesFunction& bound);
  /// The file as a template, also if its sizes do not vary: a document, or a model of another
  /// format with all symbolic dimensions. --bind and --freeze are for GRAPH alone.
  Template read_model(const std::string& path);
  /// Throws Error kUsage, "GRAPH: WHY", if the argument was given.
  void refuse_path(const std::string& why) const;
  /// Its document, as long as the program lives.
  Graph& read_template();
  /// The graph if the input is of a format that a frontend reads: a file with an empty `text`, else
  /// the bytes `text` of a pipe.
  std::optional<Graph> imported(const std::string& path, const std::string& text);
  /// The document `text`, verified; a template gets the values of --bind.
  Graph read_document(const std::string& text, const std::string& file);
  /// The bytes of the input.
  std::string read_text();
  /// The input as a bundle. A file is mapped, stdin or a pipe is read into memory. --bind is for
  /// one with a template. For an input that does not begin like a bundle the result is null, and
  /// the caller continues with read_graph; if a bundle is required, that is an error.
  std::shared_ptr<const Bundle> read_bundle(bool required = false,
                                            DigestCheck check = DigestCheck::kAtOnce);

 private:
  ImportOptions import_options() const;
  /// Those of --bind that leave a size open.
  std::vector<StatedRange> stated_ranges() const;
  void refuse_ranges() const;
  /// The template that a document is, checked.
  Template checked_template(Json document, const std::string& name);
  Template narrowed_template(const Template& model, const SizeBindings& sizes);
  void refuse_bindings(const Bundle& bundle) const;
  /// Whether nobody named an input and stdin would have to be typed.
  bool is_terminal() const;

  Diagnostics& diagnostics_;
  CLI::Option* option_ = nullptr;
  std::string path_ = "-";
  std::vector<std::string> bindings_;
  std::vector<std::string> frozen_;
  std::optional<std::string> read_ahead_;  // of an input that can be read only once
};

}  // namespace npu::cli
