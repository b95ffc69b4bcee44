// SPDX-License-Identifier: Apache-2.0
#include "template_lines.hpp"

#include <map>
#include <sstream>
#include <stdexcept>

namespace npu::test {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

Json shape_json(const std::string& text) {
  Json shape = Json::array();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::erase(part, '"');
    part = trimmed(part);
    if (part.empty()) continue;
    const bool is_number = part.find_first_not_of("0123456789") == std::string::npos;
    shape.push_back(is_number ? Json(std::stoll(part)) : Json(part));
  }
  return shape;
}

class LineReader {
 public:
  LineReader() {
    document_ = {
        {"model_name", "test"},           {"graph_inputs", Json::array()},
        {"graph_outputs", Json::array()}, {"weights", Json::array()},
        {"nodes", Json::array()},         {"npu", {{"version", 1}, {"symbols", Json::object()}}}};
  }

  void read(const std::string& line) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "size") return read_size(words);
    const std::string rest = trimmed(line.substr(first.size()));
    if (first == "input") return read_tensor(rest, "graph_inputs");
    if (first == "weight") return read_tensor(rest, "weights");
    if (first == "output") {
      document_["graph_outputs"].push_back(mentions_.at(rest));
      return;
    }
    read_node(line);
  }

  Json take() { return std::move(document_); }

 private:
  void read_size(std::istringstream& words) {
    std::string name;
    std::string range;
    std::string word;
    words >> name >> range;
    Json size{{"min", std::stoll(range.substr(0, range.find("..")))},
              {"max", std::stoll(range.substr(range.find("..") + 2))}};
    if (words >> word) {
      words >> word;
      size["multiple_of"] = std::stoll(word);
    }
    document_["npu"]["symbols"][name] = size;
  }

  // "x [1,S] int64"
  Json mention(const std::string& text) {
    const std::size_t open = text.find('[');
    const std::size_t close = text.find(']', open);
    std::string dtype = trimmed(text.substr(close + 1));
    if (dtype.empty()) dtype = "float32";
    Json tensor{{"name", trimmed(text.substr(0, open))},
                {"shape", shape_json(text.substr(open + 1, close - open - 1))},
                {"dtype", dtype}};
    mentions_[tensor["name"].get<std::string>()] = tensor;
    return tensor;
  }

  void read_tensor(const std::string& text, const char* list) {
    document_[list].push_back(mention(text));
  }

  // "y = op(a, b) [1,S] int64 {...}"; several results are y_0 [..] y_1 [..] behind "| "
  void read_node(const std::string& line) {
    const std::size_t equals = line.find('=');
    const std::size_t open = line.find('(', equals);
    const std::size_t close = line.find(')', open);
    const std::size_t brace = line.find('{', close);
    const std::string name = trimmed(line.substr(0, equals));
    std::string op = trimmed(line.substr(equals + 1, open - equals - 1));
    const bool is_getitem = op == "getitem";
    if (is_getitem) op = "<built-in function getitem>";
    if (op.find('.') == std::string::npos && !is_getitem) op += ".default";
    if (!is_getitem && !op.starts_with("aten.") && !op.starts_with("npu.")) op = "aten." + op;
    Json node{{"name", name}, {"op_type", op}, {"inputs", Json::array()}};
    std::istringstream operands(line.substr(open + 1, close - open - 1));
    for (std::string operand; std::getline(operands, operand, ',');) {
      if (!trimmed(operand).empty()) node["inputs"].push_back(mentions_.at(trimmed(operand)));
    }
    const std::string results = line.substr(close + 1, brace - close - 1);
    node["outputs"] = Json::array();
    if (results.find('|') == std::string::npos) {
      node["outputs"].push_back(mention(name + " " + results));
    } else {
      std::istringstream parts(results);
      int index = 0;
      for (std::string part; std::getline(parts, part, '|'); ++index) {
        node["outputs"].push_back(mention(name + "_" + std::to_string(index) + " " + part));
      }
    }
    node["attrs"] =
        brace == std::string::npos ? Json::object() : parse_json(line.substr(brace), "attrs");
    document_["nodes"].push_back(std::move(node));
  }

  Json document_;
  std::map<std::string, Json> mentions_;
};

}  // namespace

Json template_document(std::string_view lines) {
  LineReader reader;
  std::string text(lines);
  for (char& c : text) {
    if (c == ';') c = '\n';
  }
  std::istringstream list(text);
  for (std::string line; std::getline(list, line);) {
    if (const std::string statement = trimmed(line); !statement.empty()) reader.read(statement);
  }
  return reader.take();
}

Template template_of(std::string_view lines) {
  Diagnostics faults;
  Template model = Template::read(template_document(lines), "t.json", faults);
  if (!faults.entries().empty()) {
    throw std::logic_error(format_diagnostic(faults.entries().front()));
  }
  return model;
}

}  // namespace npu::test
