// SPDX-License-Identifier: Apache-2.0
// Builds small documents for tests, one line per node, through the same reader as users' files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::test {

class GraphBuilder {
 public:
  explicit GraphBuilder(const std::string& name = "test");

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

  Json& document() { return document_; }
  std::string text() const;
  /// Throws npu::Error if the document is not valid.
  Graph build() const;

 private:
  using Known = std::pair<Shape, std::string>;
  void remember(const std::string& name, const Shape& shape, const std::string& dtype);
  const Known& known(const std::string& name) const;
  Json mention(const std::string& name) const;
  Json without_results(const std::string& name, const std::string& op_type,
                       const std::vector<std::string>& inputs, const Json& attrs) const;

  Json document_ = Json::object();
  std::map<std::string, Known> tensors_;
};

/// "pointer: text" of every error, in order: what a reader of `text` would be told.
std::vector<std::string> errors_of(const Diagnostics& diagnostics);
std::vector<std::string> faults_of(std::string_view text);
std::vector<std::string> document_faults(const Json& document);

}  // namespace npu::test
