// SPDX-License-Identifier: Apache-2.0
#include "graph_builder.hpp"

#include <algorithm>
#include <stdexcept>

namespace npu::test {
namespace {

DType dtype_called(const std::string& name) {
  const auto dtype = parse_dtype(name);
  if (!dtype) throw std::invalid_argument("no dtype is called " + name);
  return *dtype;
}

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  return text;
}

/// How much of a text there is up to one of these outside of brackets and strings.
std::size_t size_until(std::string_view text, std::string_view ends) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) in_string = !in_string;
    if (in_string) continue;
    if (depth == 0 && ends.find(c) != std::string_view::npos) return i;
    depth += c == '[' || c == '{' || c == '(' ? 1 : c == ']' || c == '}' || c == ')' ? -1 : 0;
  }
  return text.size();
}

/// Parts between semicolons and ends of lines; of a comment, none.
std::vector<std::string_view> statements_of(std::string_view text) {
  std::vector<std::string_view> found;
  for (text = without_blanks(text); !text.empty(); text = without_blanks(text)) {
    const bool is_comment = text.starts_with('#');
    const std::size_t size =
        is_comment ? std::min(text.find('\n'), text.size()) : size_until(text, ";\n");
    if (!is_comment && size > 0) found.push_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return found;
}

std::string op_called(const std::string& name) {
  if (name == "getitem") return "<built-in function getitem>";
  if (name.starts_with('"')) return name.substr(1, name.size() - 2);
  return name.find('.') == std::string::npos ? "aten." + name + ".default" : name;
}

}  // namespace

/// Reads a statement of GraphBuilder::lines.
class GraphBuilder::Statement {
 public:
  explicit Statement(std::string_view text) : text_(text), rest_(text) { skip_blanks(); }

  bool at_end() const { return rest_.empty(); }
  bool starts_with(char c) const { return rest_.starts_with(c); }
  /// Whether the next word says so; it is then behind.
  bool takes(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    skip_blanks();
    return true;
  }
  /// Up to one of these, or to the end.
  std::string until(std::string_view ends) {
    const std::size_t size = std::min(rest_.find_first_of(ends), rest_.size());
    std::string word(rest_.substr(0, size));
    while (word.ends_with(' ')) word.pop_back();
    rest_.remove_prefix(size);
    skip_blanks();
    return word;
  }
  /// Up to a character that must be there, and that is then behind.
  std::string before(char end) {
    std::string word = until(std::string_view(&end, 1));
    if (!starts_with(end)) fail();
    takes(std::string_view(&end, 1));
    return word;
  }
  std::vector<std::string> names(std::string_view ends) {
    std::vector<std::string> found;
    const std::string all_ends = "," + std::string(ends);
    do found.push_back(until(all_ends));
    while (takes(","));
    return found;
  }
  /// Up to a blank that is not inside of it.
  Json json() {
    const std::size_t size = size_until(rest_, " ");
    Json value = Json::parse(rest_.substr(0, size));
    rest_.remove_prefix(size);
    skip_blanks();
    return value;
  }
  /// "[1,2] int64", of which each part may be missing. False if all is.
  bool type(StatedTensor& tensor) {
    const bool has_shape = starts_with('[');
    if (has_shape) tensor.shape = json().get<Shape>();
    const std::string word(rest_.substr(0, std::min(rest_.find(' '), rest_.size())));
    const auto dtype = parse_dtype(word);
    if (!dtype) return has_shape;
    tensor.dtype = *dtype;
    return takes(word);
  }
  void end() const {
    if (!at_end()) fail();
  }
  [[noreturn]] void fail() const {
    throw std::invalid_argument("'" + std::string(text_) + "' is not understood from '" +
                                std::string(rest_) + "' on");
  }

 private:
  void skip_blanks() { rest_ = without_blanks(rest_); }
  std::string_view text_;
  std::string_view rest_;
};

GraphBuilder& GraphBuilder::lines(std::string_view text) {
  for (const std::string_view each : statements_of(text)) {
    Statement statement(each);
    if (statement.takes("model ")) {
      document()["model_name"] = statement.until(" ");
    } else if (statement.takes("input ")) {
      read_declaration(statement, true);
    } else if (statement.takes("weight ")) {
      read_declaration(statement, false);
    } else if (statement.takes("output ")) {
      for (const std::string& name : statement.names("")) output(name);
    } else {
      read_node(statement);
    }
    statement.end();
  }
  return *this;
}

void GraphBuilder::read_declaration(Statement& statement, bool is_input) {
  const std::vector<std::string> names = statement.names(" ");
  StatedTensor tensor{"", {4}};
  statement.type(tensor);
  for (const std::string& name : names) {
    tensor.name = name;
    if (is_input) {
      add_input(tensor);
    } else {
      add_weight(tensor, "p_" + name);
    }
  }
}

void GraphBuilder::read_node(Statement& statement) {
  const std::string name = statement.before('=');
  const std::string op = statement.before('(');
  std::vector<std::string> operands;
  if (!statement.starts_with(')')) operands = statement.names(")");
  statement.before(')');
  const StatedTensor usual = operands.empty() ? StatedTensor{"", {4}} : known(operands.front());
  std::vector<StatedTensor> results;
  for (StatedTensor each = usual; statement.type(each); each = usual) results.push_back(each);
  if (results.empty()) results.push_back(usual);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].name = results.size() == 1 ? name : name + "_" + std::to_string(i);
  }
  add(name, op_called(op), operands, results,
      statement.starts_with('{') ? statement.json() : Json::object());
  while (!statement.at_end()) {
    if (statement.takes("@")) {
      on(statement.until(" "));
    } else {
      const std::string member = statement.before('=');
      key(member, statement.json());
    }
  }
}

GraphBuilder& GraphBuilder::input(const std::string& name, const Shape& shape,
                                  const std::string& dtype) {
  add_input({name, shape, dtype_called(dtype)});
  return *this;
}

GraphBuilder& GraphBuilder::weight(const std::string& name, const Shape& shape,
                                   const std::string& dtype) {
  add_weight({name, shape, dtype_called(dtype)}, "p_" + name);
  return *this;
}

GraphBuilder& GraphBuilder::node(const std::string& name, const std::string& op_type,
                                 const std::vector<std::string>& inputs, const Json& attrs) {
  StatedTensor result = inputs.empty() ? StatedTensor{"", {4}} : known(inputs.front());
  result.name = name;
  add(name, op_type, inputs, {result}, attrs);
  return *this;
}

GraphBuilder& GraphBuilder::node(const std::string& name, const std::string& op_type,
                                 const std::vector<std::string>& inputs, const Shape& shape,
                                 const Json& attrs, const std::string& dtype) {
  add(name, op_type, inputs, {{name, shape, dtype_called(dtype)}}, attrs);
  return *this;
}

GraphBuilder& GraphBuilder::node_with_results(const std::string& name, const std::string& op_type,
                                              const std::vector<std::string>& inputs,
                                              const std::vector<Shape>& results, const Json& attrs,
                                              const std::string& dtype) {
  const std::vector<std::string> dtypes(results.size(), dtype);
  return node_with_typed_results(name, op_type, inputs, results, dtypes, attrs);
}

GraphBuilder& GraphBuilder::node_with_typed_results(
    const std::string& name, const std::string& op_type, const std::vector<std::string>& inputs,
    const std::vector<Shape>& results, const std::vector<std::string>& dtypes, const Json& attrs) {
  std::vector<StatedTensor> stated;
  for (std::size_t i = 0; i < results.size(); ++i) {
    stated.push_back({name + "_" + std::to_string(i), results[i], dtype_called(dtypes[i])});
  }
  add(name, op_type, inputs, stated, attrs);
  return *this;
}

GraphBuilder& GraphBuilder::on(const std::string& device) { return key("device", device); }

GraphBuilder& GraphBuilder::key(const std::string& name, const Json& value) {
  set(name, value);
  return *this;
}

GraphBuilder& GraphBuilder::output(const std::string& name) {
  known(name);
  add_output(name);
  return *this;
}

std::string GraphBuilder::text() const { return document().dump(); }

Graph GraphBuilder::build() const { return read_valid_graph(text(), "test.json"); }

const StatedTensor& GraphBuilder::known(const std::string& name) {
  if (find(name) == nullptr) add_known({name, {4}});
  return *find(name);
}

void GraphBuilder::add(const std::string& name, const std::string& op_type,
                       const std::vector<std::string>& inputs,
                       const std::vector<StatedTensor>& results, const Json& attrs) {
  for (const std::string& input : inputs) known(input);
  add_node(name, op_type, inputs, results, attrs);
}

Graph graph_of(std::string_view lines) { return GraphBuilder().lines(lines).build(); }

std::vector<std::string> errors_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level != Level::kError) continue;
    lines.push_back(diagnostic.location.pointer + ": " + diagnostic.text);
  }
  return lines;
}

std::vector<std::string> faults_of(std::string_view text) {
  Diagnostics diagnostics;
  read_graph(text, "test.json", diagnostics);
  return errors_of(diagnostics);
}

std::vector<std::string> document_faults(const Json& document) {
  return faults_of(document.dump());
}

}  // namespace npu::test
