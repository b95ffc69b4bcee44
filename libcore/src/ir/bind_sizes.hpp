// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/size_expression.hpp"
#include "ir/size_symbols.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// The sizes of a tensor's dimensions.
using SizeShape = std::vector<SizeExpression>;

/// The same as documents have it.
Json shape_json(const SizeShape& shape);

/// A document of npu-ir(5) whose sizes vary: shapes and integer attributes are expressions over the
/// symbols of `npu.symbols`.
class Template {
 public:
  /// Reads what varies: symbols, and every size, which must be one for all values in the ranges (it
  /// is computed for SizeSymbols::samples), the same wherever a tensor is mentioned. Faults are
  /// added to `diagnostics`; what does not vary is checked when it is bound.
  static Template read(Json document, const std::string& file, Diagnostics& diagnostics);

  const SizeSymbols& symbols() const noexcept { return symbols_; }
  const Json& document() const noexcept { return document_; }
  const std::string& file() const noexcept { return file_; }
  /// What the mentions of a tensor state, numbers included; null if none states a shape. Names are
  /// those of the bound graph.
  const SizeShape* shape(std::string_view tensor) const;
  /// The size that a string in attrs stands for: one whose symbols are all those of this template.
  /// Nothing for other strings.
  std::optional<SizeExpression> size_in_attrs(const std::string& text) const;

 private:
  friend class TemplateReader;
  SizeSymbols symbols_;
  Json document_;
  std::string file_;
  NameIndex<SizeShape> shapes_;
};

/// The document with a number for every size: an ordinary one, with the names of the template's
/// nodes and tensors, and without `npu.symbols`. `values` needs one for every symbol, in its range;
/// throws Error kUsage for a name that is none or a value that does not suit, kInvalidGraph with
/// the list of what has no value.
Json bound_document(const Template& model, const SizeBindings& values);

/// The template with some of its sizes bound: a template of the others, or a bound document. Throws
/// Error kUsage as bound_document does, and kInvalidGraph if a size leaves its limits.
Json narrowed_document(const Template& model, const SizeBindings& values);

/// bound_document, read and verified as assemble_graph does.
Graph bind_sizes(const Template& model, const SizeBindings& values, Diagnostics& diagnostics);

/// Looks at a template before it is bound.
using TemplateCheckFunction = std::function<void(const Template& model, Diagnostics& diagnostics)>;

/// read_graph for a document that may be a template, which `check` is shown if it has no faults.
/// Throws as bind_sizes does, and Error kUsage if `values` are given for a document without sizes
/// that vary.
Graph read_sized_graph(std::string_view text, const std::string& file, const SizeBindings& values,
                       Diagnostics& diagnostics, const TemplateCheckFunction& check = {});

}  // namespace npu
