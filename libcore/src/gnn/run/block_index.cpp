// SPDX-License-Identifier: Apache-2.0
// The index of a folder of units: the one place that knows its keys.
//
// An index comes from outside, so nothing of it is used before all of it was checked: files have
// the names that follow from what they hold, units are listed once and in order. O(size of the
// document * log).
#include "gnn/run/block_index.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

constexpr std::int32_t kBlocksVersion = 1;
constexpr std::int64_t kMostStages = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRows = std::int64_t{1} << 50;
constexpr std::size_t kKeyLength = 32;
constexpr std::size_t kDigestLength = 16;
constexpr std::size_t kLongestName = 64;

constexpr FieldStyle kBlockStyle{.names_key = true,
                                 .missing = "the index is not complete: the key '{}' is missing",
                                 .missing_at_key = false};

Json backends_json(const IndexedDevice& device) {
  Json list = Json::array();
  for (const IndexedBackend& backend : device.backends) {
    list.push_back({{"name", backend.name},
                    {"version", backend.version},
                    {"fingerprint", backend.fingerprint}});
  }
  return list;
}

Json block_json(const IndexedBlock& unit, const std::string& device) {
  const BlockKey& key = unit.key;
  Json programs = Json::array();
  for (const IndexedProgram& program : unit.programs) {
    programs.push_back({{"key", program.key}, {"xxh3", program.digest}});
  }
  return {{"unit", block_name(key, device)},
          {"device", device},
          {"layer", key.layer},
          {"first", key.first},
          {"last", key.last},
          {"owned", key.owned},
          {"local", key.local},
          {"edges", key.edges},
          {"backend", unit.backend},
          {"features", unit.is_narrow ? "bfloat16" : "float32"},
          {"programs", std::move(programs)},
          {"subgraphs", unit.subgraphs}};
}

IndexedDevice read_indexed_device(const JsonFields& fields) {
  IndexedDevice device{fields.text("name"), {}};
  fields.for_each("backends", [&](const JsonFields& backend) {
    device.backends.push_back(
        {backend.text("name"), backend.text("version"), backend.text("fingerprint")});
  });
  return device;
}

// Devices are looked up by name, and backends by theirs.
void check_devices(const JsonFields& index, const std::vector<IndexedDevice>& devices) {
  std::vector<std::string> names;
  for (const IndexedDevice& device : devices) {
    names.push_back(device.name);
    std::vector<std::string> backends;
    for (const IndexedBackend& backend : device.backends) backends.push_back(backend.name);
    std::sort(backends.begin(), backends.end());
    const auto twice = std::adjacent_find(backends.begin(), backends.end());
    if (twice != backends.end()) {
      index.refuse("devices",
                   "backend '" + *twice + "' of device '" + device.name + "' is listed twice");
    }
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) index.refuse("devices", "device '" + *twice + "' is listed twice");
}

std::string read_digits(const JsonFields& fields, const char* key, std::size_t length) {
  std::string text = fields.text(key);
  if (text.size() != length || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    fields.refuse(
        key, "expected " + std::to_string(length) + " hexadecimal digits, found '" + text + "'");
  }
  return text;
}

std::vector<std::int64_t> read_subgraph_ids(const JsonFields& fields) {
  std::vector<std::int64_t> ids;
  for (const Json& element : fields.list("subgraphs")) {
    const auto id = json_integer(&element);
    if (!id || *id < 0 || (!ids.empty() && *id <= ids.back())) {
      fields.refuse("subgraphs",
                    "expected ascending numbers of at least 0, found " + value_or_type(&element));
    }
    ids.push_back(*id);
  }
  return ids;
}

IndexedBlock read_block(const JsonFields& fields, const std::vector<IndexedDevice>& devices) {
  IndexedBlock unit;
  const std::string name = fields.text("device");
  const auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const IndexedDevice& other) { return other.name == name; });
  if (device == devices.end()) fields.refuse("device", "device '" + name + "' is not in /devices");
  BlockKey& key = unit.key;
  key.device = static_cast<std::int32_t>(device - devices.begin());
  key.layer = static_cast<std::int32_t>(fields.integer("layer", 1, kMostStages));
  key.first = static_cast<std::int32_t>(fields.integer("first", 1, kMostStages));
  key.last = static_cast<std::int32_t>(fields.integer("last", key.first, kMostStages));
  key.owned = fields.integer("owned", 0, kMostRows);
  key.local = fields.integer("local", key.owned, kMostRows);
  key.edges = fields.integer("edges", 0, kMostRows);
  if (const std::string stated = fields.text("unit"); stated != block_name(key, name)) {
    fields.refuse("unit", "expected '" + block_name(key, name) + "', found '" + stated + "'");
  }
  unit.backend = fields.text("backend");
  if (std::none_of(device->backends.begin(), device->backends.end(),
                   [&](const IndexedBackend& backend) { return backend.name == unit.backend; })) {
    fields.refuse("backend", "backend '" + unit.backend + "' is none of device '" + name + "'");
  }
  const std::string features = fields.text("features");
  unit.is_narrow = features == "bfloat16";
  if (!unit.is_narrow && features != "float32") {
    fields.refuse("features", "expected float32 or bfloat16, found '" + features + "'");
  }
  fields.for_each("programs", [&](const JsonFields& program) {
    unit.programs.push_back(
        {read_digits(program, "key", kKeyLength), read_digits(program, "xxh3", kDigestLength)});
  });
  unit.subgraphs = read_subgraph_ids(fields);
  return unit;
}

void check_head(const Json& document, const std::string& file) {
  const Json* npu = find_member(document, "npu");
  const std::string* kind = npu == nullptr ? nullptr : json_text(find_member(*npu, "kind"));
  if (kind == nullptr || *kind != "units") {
    throw Error(ErrorCode::kParse, "expected an index of units, which npu-compile writes",
                {.file = file, .pointer = "/npu/kind"});
  }
  const Json* version = find_member(*npu, "version");
  if (version == nullptr || *version != kBlocksVersion) {
    throw Error(ErrorCode::kParse, "expected version " + std::to_string(kBlocksVersion),
                {.file = file, .pointer = "/npu/version"});
  }
}

}  // namespace

std::string block_name(const BlockKey& key, const std::string& device) {
  std::string name = device.empty() ? "_" : device.substr(0, kLongestName);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  for (char& c : name) {
    if (!is_plain(c)) c = '_';
  }
  // No name of a device that stays as it is has a dot.
  if (name != device) name += "." + std::to_string(key.device);
  for (const auto& [letter, number] : {std::pair<const char*, std::int64_t>{".layer", key.layer},
                                       {".stages", key.first},
                                       {"-", key.last},
                                       {".n", key.owned},
                                       {"of", key.local},
                                       {".m", key.edges}}) {
    name += letter + std::to_string(number);
  }
  return name;
}

Json to_json(const BlockIndex& index) {
  Json json;
  json["npu"] = {{"version", kBlocksVersion}, {"kind", "units"}};
  json["producer"] = index.producer;
  json["plan"] = index.plan;
  json["model_hash"] = index.model;
  json["graph_nodes"] = index.graph_nodes;
  json["graph_edges"] = index.graph_edges;
  json["partition"] = index.partition;
  json["weights"] = index.weights;
  json["precision"] = index.precision;
  Json& devices = json["devices"] = Json::array();
  for (const IndexedDevice& device : index.devices) {
    devices.push_back({{"name", device.name}, {"backends", backends_json(device)}});
  }
  Json& units = json["units"] = Json::array();
  for (const IndexedBlock& unit : index.units) {
    units.push_back(block_json(unit, index.devices.at(index_of(unit.key.device)).name));
  }
  return json;
}

BlockIndex block_index_from_json(const Json& document, const std::string& file) {
  check_head(document, file);
  const JsonFields fields(document, file, "", kBlockStyle);
  BlockIndex index;
  index.producer = fields.text_or("producer", {});
  index.plan = fields.text("plan");
  index.model = fields.text("model_hash");
  index.graph_nodes = fields.integer("graph_nodes", 0, kMostRows);
  index.graph_edges = fields.integer("graph_edges", 0, kMostRows);
  index.partition = fields.text("partition");
  index.weights = fields.text("weights");
  index.precision = fields.text("precision");
  fields.for_each("devices", [&](const JsonFields& device) {
    index.devices.push_back(read_indexed_device(device));
  });
  check_devices(fields, index.devices);
  fields.for_each("units", [&](const JsonFields& unit) {
    index.units.push_back(read_block(unit, index.devices));
    const std::size_t count = index.units.size();
    if (count > 1 && !(index.units[count - 2].key < index.units[count - 1].key)) {
      unit.refuse("", "expected units once each, by device, layer, stages and size");
    }
  });
  return index;
}

}  // namespace npu::gnn
