// SPDX-License-Identifier: Apache-2.0
// What crosses between devices, and the object `exchange` of a plan, in which covers are written as
// those of ranks. O(size of the object).
#include "gnn/exchange/device_exchange.hpp"

#include <limits>
#include <utility>

#include "gnn/exchange/device_exchange_document.hpp"
#include "gnn/exchange/rank_document.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

constexpr std::int64_t kMostNodes = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostRows = std::int64_t{1} << 50;

PartCover read_part(const JsonFields& fields, std::int32_t part_count) {
  PartCover part;
  part.part = static_cast<std::int32_t>(fields.integer("part", 0, part_count - 1));
  part.edges = fields.integer("edges", 1, kMostRows);
  part.sources = fields.integer("sources", 1, kMostNodes);
  part.targets = fields.integer("targets", 1, kMostNodes);
  part.rows = fields.integer("rows", 1, part.sources);
  part.cover = read_cover(fields);
  if (part.cover.size() == index_of(part.rows)) return part;
  fields.refuse("cover", "expected " + std::to_string(part.rows) + " rows, found " +
                             std::to_string(part.cover.size()));
}

}  // namespace

std::int64_t PartCover::saved_rows(bool is_max) const noexcept {
  return sources - rows - (is_max || rows == sources ? 0 : 1);
}

Json to_json(const DeviceExchange& exchange) {
  Json json = {{"host", exchange.host}};
  Json& layers = json["layers"] = Json::array();
  for (const LayerCrossing& layer : exchange.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"rows", layer.rows},
                      {"halo", layer.halo},
                      {"bytes", layer.bytes}});
  }
  Json& parts = json["parts"] = Json::array();
  for (const PartCover& part : exchange.parts) {
    parts.push_back({{"part", part.part},
                     {"edges", part.edges},
                     {"sources", part.sources},
                     {"targets", part.targets},
                     {"rows", part.rows},
                     {"cover", cover_text(part.cover)}});
  }
  return json;
}

DeviceExchange read_device_exchange(const JsonFields& fields, std::int32_t part_count) {
  DeviceExchange exchange;
  exchange.host = fields.text("host");
  fields.for_each("layers", [&](const JsonFields& layer) {
    exchange.layers.push_back(
        {static_cast<std::int32_t>(layer.integer("layer", 1, kMostNodes)),
         layer.integer("rows", 0, kMostRows), layer.integer("halo", 0, kMostRows),
         layer.integer("bytes", 0, std::numeric_limits<std::int64_t>::max())});
  });
  fields.for_each("parts", [&](const JsonFields& part) {
    PartCover next = read_part(part, part_count);
    if (!exchange.parts.empty() && exchange.parts.back().part >= next.part) {
      part.refuse("part", "parts are not in order");
    }
    exchange.parts.push_back(std::move(next));
  });
  return exchange;
}

}  // namespace npu::gnn
