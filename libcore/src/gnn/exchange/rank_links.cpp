// SPDX-License-Identifier: Apache-2.0
// The document of measured links between ranks. O(links).
#include "gnn/exchange/rank_links.hpp"

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

constexpr std::int64_t kMostLinkedRanks = 1024;
constexpr double kLongestLinkUs = 1e9;
constexpr FieldStyle kLinksStyle;

}  // namespace

Json to_json(const RankLinks& links) {
  Json json = {{"npu", {{"version", 1}, {"kind", "links"}}}, {"ranks", links.rank_count}};
  Json& list = json["links"] = Json::array();
  for (std::int32_t from = 0; from < links.rank_count; ++from) {
    for (std::int32_t to = 0; to < links.rank_count; ++to) {
      if (from == to) continue;
      const RankLink& link = links.at(from, to);
      list.push_back({{"from", from},
                      {"to", to},
                      {"bytes_per_second", link.bytes_per_second},
                      {"latency_us", link.latency_us}});
    }
  }
  return json;
}

RankLinks links_from_json(const Json& document, const std::string& file) {
  const JsonFields fields(document, file, "", kLinksStyle);
  const Json* head = document.is_object() ? find_member(document, "npu") : nullptr;
  const Json* kind = head == nullptr ? nullptr : find_member(*head, "kind");
  if (kind == nullptr || *kind != "links") {
    throw Error(ErrorCode::kParse, "expected links between ranks, which npu-profile --links writes",
                {.file = file});
  }
  RankLinks links;
  links.rank_count = static_cast<std::int32_t>(fields.integer("ranks", 1, kMostLinkedRanks));
  const std::int64_t last = links.rank_count - 1;
  links.links.resize(index_of(links.rank_count) * index_of(links.rank_count));
  fields.for_each("links", [&](const JsonFields& item) {
    const std::int64_t from = item.integer("from", 0, last);
    const std::int64_t to = item.integer("to", 0, last);
    RankLink& link = links.links[index_of(from * links.rank_count + to)];
    if (from == to) item.refuse("to", "a rank sends nothing to itself");
    if (link.bytes_per_second > 0) item.refuse("to", "this link is listed twice");
    link = {item.integer("bytes_per_second", 1, std::int64_t{1} << 50),
            item.number("latency_us", kLongestLinkUs)};
  });
  for (std::int64_t from = 0; from <= last; ++from) {
    for (std::int64_t to = 0; to <= last; ++to) {
      if (from == to || links.links[index_of(from * links.rank_count + to)].bytes_per_second > 0) {
        continue;
      }
      fields.refuse("links", "the link from rank " + std::to_string(from) + " to rank " +
                                 std::to_string(to) + " is missing");
    }
  }
  return links;
}

RankLinks read_rank_links(const std::string& path) {
  return links_from_json(parse_json(read_file(path), path), path);
}

}  // namespace npu::gnn
