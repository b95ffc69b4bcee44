// SPDX-License-Identifier: Apache-2.0
// Reads and writes tables of measured times of an ordinary model. The files are untrusted: every
// number is checked to be finite and not negative, every name to exist, and nothing may be listed
// twice. O(entries log entries).
#include "cost/node_table.hpp"

#include <cmath>
#include <set>
#include <tuple>

#include "ir/folded_nodes.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/digest.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr std::string_view kKind = "node-profile";
constexpr int kVersion = 1;
constexpr double kMaxUs = 1e15;  // thirty years

double rounded(double value) { return std::round(value * 1000) / 1000; }

/// "expected a string 'node', found 3", at the object if there is no such key.
constexpr FieldStyle kStyle{.names_key = true,
                            .takes_empty_text = false,
                            .found = FieldStyle::Found::kValue,
                            .missing = {},
                            .missing_at_key = false};

MeasuredTime time_of(const JsonFields& fields) {
  return {.us = fields.number("us", kMaxUs),
          .median_us = fields.number("median_us", kMaxUs),
          .mad_us = fields.number("mad_us", kMaxUs),
          .runs = static_cast<std::int32_t>(fields.integer("runs", 0, INT32_MAX))};
}

/// Reads the lists of a table. `devices` comes first: the others name them.
class TableReader {
 public:
  explicit TableReader(NodeTable& table) : table_(table) {}

  void read(const JsonFields& top) {
    top.for_each("devices", [&](const JsonFields& fields) { add_device(fields); });
    top.for_each("nodes", [&](const JsonFields& fields) { add_node(fields, table_.nodes); });
    top.for_each("borders", [&](const JsonFields& fields) { add_border(fields); });
    top.for_each("transfers", [&](const JsonFields& fields) { add_link(fields); });
    top.for_each("placements", [&](const JsonFields& fields) { add_placement(fields); });
    if (top.has("int8")) {
      nodes_.clear();
      top.for_each("int8", [&](const JsonFields& fields) { add_node(fields, table_.int8); });
    }
    if (top.has("conversions")) {
      top.for_each("conversions", [&](const JsonFields& fields) { add_conversion(fields); });
    }
    if (top.has("tensor_conversions")) {
      top.for_each("tensor_conversions",
                   [&](const JsonFields& fields) { add_tensor_conversion(fields); });
    }
  }

 private:
  std::string device(const JsonFields& fields, std::string_view key) const {
    std::string name = fields.text(key);
    if (table_.find_device(name) < 0) {
      fields.refuse(key, "device '" + name + "' is not in 'devices'");
    }
    return name;
  }

  void add_device(const JsonFields& fields) {
    NodeTableDevice entry{.name = fields.text("name"),
                          .backend = fields.text("backend"),
                          .partition_us = fields.number("partition_us", kMaxUs)};
    if (table_.find_device(entry.name) >= 0) {
      fields.refuse("name", "device '" + entry.name + "' is listed twice");
    }
    table_.devices.push_back(std::move(entry));
  }

  void add_node(const JsonFields& fields, std::vector<NodeTime>& list) {
    NodeTime entry{.node = fields.text("node"),
                   .device = device(fields, "device"),
                   .time = time_of(fields),
                   .kernel = fields.text_or("kernel", "")};
    if (!nodes_.emplace(entry.node, entry.device).second) {
      fields.refuse("",
                    "node '" + entry.node + "' is listed twice for device '" + entry.device + "'");
    }
    list.push_back(std::move(entry));
  }

  static bool is_to_int8(const JsonFields& fields) {
    const std::string to = fields.text("to");
    if (to != "int8" && to != "float32") fields.refuse("to", "expected int8 or float32");
    return to == "int8";
  }

  void add_tensor_conversion(const JsonFields& fields) {
    TensorConversion entry{.tensor = fields.text("tensor"),
                           .device = device(fields, "device"),
                           .to_int8 = is_to_int8(fields),
                           .us = fields.number("us", kMaxUs)};
    if (!tensor_conversions_.emplace(entry.tensor, entry.device, entry.to_int8).second) {
      fields.refuse(
          "", "tensor '" + entry.tensor + "' is listed twice for device '" + entry.device + "'");
    }
    table_.tensor_conversions.push_back(std::move(entry));
  }

  void add_conversion(const JsonFields& fields) {
    ConversionFit entry{
        .device = device(fields, "device"),
        .to_int8 = is_to_int8(fields),
        .latency_us = fields.number("latency_us", kMaxUs),
        .bytes_per_s = fields.number("bytes_per_s", 1e18),
        .samples = static_cast<std::int32_t>(fields.integer("samples", 0, INT32_MAX))};
    if (!conversions_.emplace(entry.device, entry.to_int8).second) {
      fields.refuse("", "conversions to " + fields.text("to") + " are listed twice for device '" +
                            entry.device + "'");
    }
    table_.conversions.push_back(std::move(entry));
  }

  void add_border(const JsonFields& fields) {
    BorderTime entry{.tensor = fields.text("tensor"),
                     .from = device(fields, "from"),
                     .to = device(fields, "to"),
                     .bytes = fields.integer("bytes", 0, INT64_MAX),
                     .time = time_of(fields)};
    if (!borders_.emplace(entry.tensor, entry.from, entry.to).second) {
      fields.refuse("", "tensor '" + entry.tensor + "' is listed twice from '" + entry.from +
                            "' to '" + entry.to + "'");
    }
    table_.borders.push_back(std::move(entry));
  }

  void add_link(const JsonFields& fields) {
    LinkFit entry{.from = device(fields, "from"),
                  .to = device(fields, "to"),
                  .latency_us = fields.number("latency_us", kMaxUs),
                  .bytes_per_s = fields.number("bytes_per_s", 1e18),
                  .samples = static_cast<std::int32_t>(fields.integer("samples", 0, INT32_MAX))};
    if (!links_.emplace(entry.from, entry.to).second) {
      fields.refuse("", "'" + entry.from + "' to '" + entry.to + "' is listed twice");
    }
    table_.links.push_back(std::move(entry));
  }

  void add_placement(const JsonFields& fields) {
    table_.placements.push_back({.name = fields.text("name"),
                                 .partitions = fields.integer("partitions", 0, INT32_MAX),
                                 .copied_tensors = fields.integer("copied_tensors", 0, INT32_MAX),
                                 .predicted_us = fields.number("predicted_us", kMaxUs),
                                 .time = time_of(fields)});
  }

  NodeTable& table_;
  std::set<std::pair<std::string, std::string>> nodes_;
  std::set<std::tuple<std::string, std::string, std::string>> borders_;
  std::set<std::pair<std::string, std::string>> links_;
  std::set<std::pair<std::string, bool>> conversions_;
  std::set<std::tuple<std::string, std::string, bool>> tensor_conversions_;
};

void write_time(Json& json, const MeasuredTime& time) {
  json["us"] = rounded(time.us);
  json["median_us"] = rounded(time.median_us);
  json["mad_us"] = rounded(time.mad_us);
  json["runs"] = time.runs;
}

Json nodes_json(const std::vector<NodeTime>& nodes) {
  Json list = Json::array();
  for (const NodeTime& node : nodes) {
    Json item = {{"node", node.node}, {"device", node.device}};
    write_time(item, node.time);
    if (!node.kernel.empty()) item["kernel"] = node.kernel;
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

bool is_node_table(const Json& json) noexcept {
  const Json* npu = find_member(json, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  return kind != nullptr && *kind == kKind;
}

NodeTable NodeTable::parse(const Json& json, const std::string& file) {
  const JsonFields top(json, file, "", kStyle);
  if (!is_node_table(json)) {
    throw Error(ErrorCode::kParse,
                "expected a document of kind '" + std::string(kKind) +
                    "', which npu-profile writes for an ordinary model",
                {.file = file, .pointer = "/npu/kind"});
  }
  const Json* version = find_member(*find_member(json, "npu"), "version");
  if (version == nullptr || *version != kVersion) {
    throw Error(ErrorCode::kParse, "expected version " + std::to_string(kVersion),
                {.file = file, .pointer = "/npu/version"});
  }
  NodeTable table;
  table.file = file;
  table.model = top.text_or("model", "");
  table.model_digest = top.text("model_digest");
  table.target = top.text("target");
  table.precision = top.text("precision");
  table.threads = static_cast<std::int32_t>(top.integer("threads", 0, 1024));
  if (const Json* fingerprint = top.find("fingerprint")) table.fingerprint = *fingerprint;
  TableReader(table).read(top);
  return table;
}

Json NodeTable::to_json() const {
  Json json = {{"npu", {{"version", kVersion}, {"kind", kKind}}}};
  if (!model.empty()) json["model"] = model;
  json["model_digest"] = model_digest;
  json["target"] = target;
  json["precision"] = precision;
  json["threads"] = threads;
  json["fingerprint"] = fingerprint;
  Json& device_list = json["devices"] = Json::array();
  for (const NodeTableDevice& device : devices) {
    device_list.push_back({{"name", device.name},
                           {"backend", device.backend},
                           {"partition_us", rounded(device.partition_us)}});
  }
  Json& transfers = json["transfers"] = Json::array();
  for (const LinkFit& link : links) {
    transfers.push_back({{"from", link.from},
                         {"to", link.to},
                         {"latency_us", rounded(link.latency_us)},
                         {"bytes_per_s", std::round(link.bytes_per_s)},
                         {"samples", link.samples}});
  }
  Json& placement_list = json["placements"] = Json::array();
  for (const PlacementTime& placement : placements) {
    Json item = {{"name", placement.name},
                 {"partitions", placement.partitions},
                 {"copied_tensors", placement.copied_tensors},
                 {"predicted_us", rounded(placement.predicted_us)}};
    write_time(item, placement.time);
    placement_list.push_back(std::move(item));
  }
  Json& border_list = json["borders"] = Json::array();
  for (const BorderTime& border : borders) {
    Json item = {{"tensor", border.tensor},
                 {"from", border.from},
                 {"to", border.to},
                 {"bytes", border.bytes}};
    write_time(item, border.time);
    border_list.push_back(std::move(item));
  }
  json["nodes"] = nodes_json(nodes);
  if (int8.empty() && conversions.empty()) return json;
  json["int8"] = nodes_json(int8);
  Json& conversion_list = json["conversions"] = Json::array();
  for (const ConversionFit& fit : conversions) {
    conversion_list.push_back({{"device", fit.device},
                               {"to", fit.to_int8 ? "int8" : "float32"},
                               {"latency_us", rounded(fit.latency_us)},
                               {"bytes_per_s", std::round(fit.bytes_per_s)},
                               {"samples", fit.samples}});
  }
  if (tensor_conversions.empty()) return json;
  Json& tensor_list = json["tensor_conversions"] = Json::array();
  for (const TensorConversion& each : tensor_conversions) {
    tensor_list.push_back({{"tensor", each.tensor},
                           {"device", each.device},
                           {"to", each.to_int8 ? "int8" : "float32"},
                           {"us", rounded(each.us)}});
  }
  return json;
}

std::int32_t NodeTable::find_device(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

NodeTable read_node_table(const std::string& path) {
  return NodeTable::parse(parse_json(read_file(path), path), path);
}

std::string model_digest(const Graph& graph) {
  Digest digest;
  const auto add_tensor = [&](TensorId id) {
    const TensorInfo& tensor = graph.tensor(id);
    digest.add(tensor.name);
    digest.add(dtype_name(tensor.dtype));
    for (const std::int64_t dimension : tensor.shape) {
      digest.add(static_cast<std::uint64_t>(dimension));
    }
    digest.add("");
  };
  for (const auto* list : {&graph.graph_inputs(), &graph.graph_outputs()}) {
    for (const TensorId id : *list) add_tensor(id);
    digest.add("");
  }
  // Of the model, whether parts of it are folded or not.
  for (const Node* each : document_nodes(graph)) {
    const Node& node = *each;
    digest.add(node.name);
    digest.add(node.op_type);
    Json attrs = node.attrs();
    set_non_finite_form(attrs, NonFiniteForm::kText);  // both forms are one model
    digest.add(attrs.dump(-1, ' ', false, Json::error_handler_t::replace));
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (const TensorId id : *list) add_tensor(id);
      digest.add("");
    }
  }
  return digest.hex();
}

}  // namespace npu
