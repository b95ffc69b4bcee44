// SPDX-License-Identifier: Apache-2.0
// Builds small documents for tests, one line per node, through the same reader as users' files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/document_builder.hpp"
#include "npu/ir/graph.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::test {

class GraphBuilder : public DocumentBuilder {
 public:
  explicit GraphBuilder(const std::string& name = "test") : DocumentBuilder(name) {}

  /// Statements, on lines of their own or behind semicolons; lines that begin with # say nothing:
  ///
  ///     model small; input x, y [1,8,4,4] float16
  ///     weight w [8,8,3,3]
  ///     c = conv2d(x, p_w) [1,8,4,4] {"padding": [1, 1]} @npu partition=0
  ///     s = aten.split.Tensor(c) [1,4,4,4] [1,4,4,4] {"split_size": 4, "dim": 1}
  ///     output c, s_0
  ///
  /// The op of a name alone is that of ATen, its default overload, unless it stands in quotes;
  /// getitem is Python's. Inputs are [4] in float32 if nothing is said, results as the first
  /// operand is. A node with several shapes has as many results. Behind @ is the device; other
  /// members of the node follow as JSON. A name that nothing has defined yet is of [4] in float32,
  /// too.
  GraphBuilder& lines(std::string_view text);

  GraphBuilder& input(const std::string& name, const Shape& shape = {4},
                      const std::string& dtype = "float32");
  /// A weight with the placeholder name p_<name>.
  GraphBuilder& weight(const std::string& name, const Shape& shape,
                       const std::string& dtype = "float32");
  /// A node with one result of the shape and dtype of its first operand, unless they are given.
  GraphBuilder& node(const std::string& name, const std::string& op_type,
                     const std::vector<std::string>& inputs, const Json& attrs = Json::object());
  GraphBuilder& node(const std::string& name, const std::string& op_type,
                     const std::vector<std::string>& inputs, const Shape& shape,
                     const Json& attrs = Json::object(), const std::string& dtype = "float32");
  /// A node with several results, <name>_0, <name>_1 and so on.
  GraphBuilder& node_with_results(const std::string& name, const std::string& op_type,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<Shape>& results,
                                  const Json& attrs = Json::object(),
                                  const std::string& dtype = "float32");
  /// The same with a dtype for each result.
  GraphBuilder& node_with_typed_results(const std::string& name, const std::string& op_type,
                                        const std::vector<std::string>& inputs,
                                        const std::vector<Shape>& results,
                                        const std::vector<std::string>& dtypes, const Json& attrs);
  /// `device` of the node that was added last.
  GraphBuilder& on(const std::string& device);
  GraphBuilder& key(const std::string& name, const Json& value);
  GraphBuilder& output(const std::string& name);

  std::string text() const;
  /// Throws npu::Error if the document is not valid.
  Graph build() const;

 private:
  class Statement;
  void read_declaration(Statement& statement, bool is_input);
  void read_node(Statement& statement);
  /// That of the tensor, which may be defined later, or not at all.
  const StatedTensor& known(const std::string& name);
  void add(const std::string& name, const std::string& op_type,
           const std::vector<std::string>& inputs, const std::vector<StatedTensor>& results,
           const Json& attrs);
};

/// The graph of GraphBuilder::lines.
Graph graph_of(std::string_view lines);

/// "pointer: text" of every error, in order: what a reader of `text` would be told.
std::vector<std::string> errors_of(const Diagnostics& diagnostics);
std::vector<std::string> faults_of(std::string_view text);
std::vector<std::string> document_faults(const Json& document);

}  // namespace npu::test
