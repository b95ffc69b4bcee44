// SPDX-License-Identifier: Apache-2.0
// The table of ops as JSON, for `npu-tag --list-ops --frontend onnx` and the manual page.
#include "list_ops.hpp"

#include "importer.hpp"
#include "unread.hpp"

namespace npu::onnx {

std::string op_list_json() {
  std::string text = "{\n\"frontend\": \"onnx\",\n\"ops\": [\n";
  bool is_first = true;
  for (const OpRow& row : op_table()) {
    Json entry = Json::object();
    if (!row.domain.empty()) entry["domain"] = row.domain;
    entry["op"] = row.name;
    entry["since"] = row.since;
    entry[row.rule == nullptr ? "refused" : "becomes"] = row.becomes;
    for (const std::string_view name : ignored_names(row.notes)) entry["ignores"].push_back(name);
    text += (is_first ? "" : ",\n") + entry.dump();
    is_first = false;
  }
  return text + "\n]\n}\n";
}

}  // namespace npu::onnx
