// SPDX-License-Identifier: Apache-2.0
// Reads and writes tables of measured times of an ordinary model. Documents come from files that
// anybody can edit: every number is checked to be finite and not negative, every name to be there,
// and nothing may be listed twice. O(entries log entries).
#include "npu/cost/node_table.hpp"

#include <cmath>
#include <set>
#include <tuple>

#include "npu/support/digest.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu {
namespace {

constexpr std::string_view kKind = "node-profile";
constexpr int kVersion = 1;
constexpr double kMostUs = 1e15;  // thirty years

double rounded(double value) { return std::round(value * 1000) / 1000; }

/// The members of one object, with the place for messages.
class Reader {
 public:
  Reader(const Json& json, const std::string& file, std::string pointer)
      : json_(json), file_(file), pointer_(std::move(pointer)) {
    if (!json.is_object()) {
      fail("", "expected an object, found " + std::string(json_type_name(json)));
    }
  }

  std::string text(std::string_view key) const {
    const Json* member = find_member(json_, key);
    if (member == nullptr || !member->is_string() ||
        member->get_ref<const std::string&>().empty()) {
      fail(member == nullptr ? "" : key,
           "expected a string '" + std::string(key) + "'" + found(member));
    }
    return member->get<std::string>();
  }

  std::string text_or(std::string_view key, std::string otherwise) const {
    return find_member(json_, key) == nullptr ? std::move(otherwise) : text(key);
  }

  double number(std::string_view key, double most = kMostUs) const {
    const Json* member = find_member(json_, key);
    if (member == nullptr || !member->is_number() || !(member->get<double>() >= 0) ||
        !(member->get<double>() <= most)) {
      fail(member == nullptr ? "" : key,
           "expected a number '" + std::string(key) + "' of at least 0" + found(member));
    }
    return member->get<double>();
  }

  std::int64_t count(std::string_view key, std::int64_t most) const {
    const Json* member = find_member(json_, key);
    // What was parsed is unsigned, what a program has put there may not be.
    if (member == nullptr || !member->is_number_integer() ||
        (!member->is_number_unsigned() && member->get<std::int64_t>() < 0) ||
        member->get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      fail(member == nullptr ? "" : key, "expected an integer '" + std::string(key) + "' in 0.." +
                                             std::to_string(most) + found(member));
    }
    return member->get<std::int64_t>();
  }

  MeasuredTime time() const {
    return {.us = number("us"),
            .median_us = number("median_us"),
            .mad_us = number("mad_us"),
            .runs = static_cast<std::int32_t>(count("runs", INT32_MAX))};
  }

  const Json& list(std::string_view key) const {
    const Json* member = find_member(json_, key);
    if (member == nullptr || !member->is_array()) {
      fail(member == nullptr ? "" : key,
           "expected an array '" + std::string(key) + "'" + found(member));
    }
    return *member;
  }

  [[noreturn]] void fail(std::string_view key, const std::string& text) const {
    std::string pointer = pointer_;
    if (!key.empty()) pointer += "/" + pointer_token(key);
    throw Error(ErrorCode::kParse, text, {.file = file_, .pointer = std::move(pointer)});
  }

 private:
  static std::string found(const Json* member) {
    if (member == nullptr) return ", found nothing";
    return ", found " + (member->is_structured()
                             ? std::string(json_type_name(*member))
                             : member->dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const Json& json_;
  const std::string& file_;
  std::string pointer_;
};

void write_time(Json& json, const MeasuredTime& time) {
  json["us"] = rounded(time.us);
  json["median_us"] = rounded(time.median_us);
  json["mad_us"] = rounded(time.mad_us);
  json["runs"] = time.runs;
}

}  // namespace

bool is_node_table(const Json& json) noexcept {
  const Json* npu = find_member(json, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  return kind != nullptr && *kind == kKind;
}

NodeTable NodeTable::parse(const Json& json, const std::string& file) {
  const Reader top(json, file, "");
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
  table.threads = static_cast<std::int32_t>(top.count("threads", 1024));
  if (const Json* fingerprint = find_member(json, "fingerprint")) table.fingerprint = *fingerprint;

  const auto each = [&](const char* key, const auto& read) {
    const Json& list = top.list(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      read(Reader(list[i], file, "/" + std::string(key) + "/" + std::to_string(i)));
    }
  };
  const auto device = [&](const Reader& reader, const char* key) {
    std::string name = reader.text(key);
    if (table.find_device(name) < 0) {
      reader.fail(key, "device '" + name + "' is not in 'devices'");
    }
    return name;
  };
  each("devices", [&](const Reader& reader) {
    NodeTableDevice entry{.name = reader.text("name"),
                          .backend = reader.text("backend"),
                          .partition_us = reader.number("partition_us")};
    if (table.find_device(entry.name) >= 0) {
      reader.fail("name", "device '" + entry.name + "' is listed twice");
    }
    table.devices.push_back(std::move(entry));
  });
  std::set<std::pair<std::string, std::string>> nodes;
  each("nodes", [&](const Reader& reader) {
    NodeTime entry{.node = reader.text("node"),
                   .device = device(reader, "device"),
                   .time = reader.time(),
                   .kernel = reader.text_or("kernel", "")};
    if (!nodes.emplace(entry.node, entry.device).second) {
      reader.fail("",
                  "node '" + entry.node + "' is listed twice for device '" + entry.device + "'");
    }
    table.nodes.push_back(std::move(entry));
  });
  std::set<std::tuple<std::string, std::string, std::string>> borders;
  each("borders", [&](const Reader& reader) {
    BorderTime entry{.tensor = reader.text("tensor"),
                     .from = device(reader, "from"),
                     .to = device(reader, "to"),
                     .bytes = reader.count("bytes", INT64_MAX),
                     .time = reader.time()};
    if (!borders.emplace(entry.tensor, entry.from, entry.to).second) {
      reader.fail("", "tensor '" + entry.tensor + "' is listed twice from '" + entry.from +
                          "' to '" + entry.to + "'");
    }
    table.borders.push_back(std::move(entry));
  });
  std::set<std::pair<std::string, std::string>> links;
  each("transfers", [&](const Reader& reader) {
    LinkFit entry{.from = device(reader, "from"),
                  .to = device(reader, "to"),
                  .latency_us = reader.number("latency_us"),
                  .bytes_per_s = reader.number("bytes_per_s", 1e18),
                  .samples = static_cast<std::int32_t>(reader.count("samples", INT32_MAX))};
    if (!links.emplace(entry.from, entry.to).second) {
      reader.fail("", "'" + entry.from + "' to '" + entry.to + "' is listed twice");
    }
    table.links.push_back(std::move(entry));
  });
  each("placements", [&](const Reader& reader) {
    table.placements.push_back({.name = reader.text("name"),
                                .partitions = reader.count("partitions", INT32_MAX),
                                .copied_tensors = reader.count("copied_tensors", INT32_MAX),
                                .predicted_us = reader.number("predicted_us"),
                                .time = reader.time()});
  });
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
  Json& node_list = json["nodes"] = Json::array();
  for (const NodeTime& node : nodes) {
    Json item = {{"node", node.node}, {"device", node.device}};
    write_time(item, node.time);
    if (!node.kernel.empty()) item["kernel"] = node.kernel;
    node_list.push_back(std::move(item));
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
  for (const Node& node : graph.nodes()) {
    digest.add(node.name);
    digest.add(node.op_type);
    digest.add(node.attrs().dump(-1, ' ', false, Json::error_handler_t::replace));
    for (const auto* list : {&node.inputs, &node.outputs}) {
      for (const TensorId id : *list) add_tensor(id);
      digest.add("");
    }
  }
  return digest.hex();
}

}  // namespace npu
