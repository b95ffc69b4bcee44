// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/support/json.hpp"

namespace npu::gnn {

/// How fast rows cross between ranks.
struct RankLink {
  std::int64_t bytes_per_second = 0;  ///< that a rank can send and receive, together
  double latency_us = 0;              ///< of a message
  bool operator==(const RankLink&) const = default;
};

/// What was measured between every two processes of a launcher; npu-gnn(5), kind "links".
struct RankLinks {
  std::int32_t rank_count = 0;
  std::vector<RankLink> links;  ///< by sender * rank_count + receiver; a rank's own is not used
  const RankLink& at(std::int32_t from, std::int32_t to) const {
    return links[static_cast<std::size_t>(from) * static_cast<std::size_t>(rank_count) +
                 static_cast<std::size_t>(to)];
  }
  bool operator==(const RankLinks&) const = default;
};

Json to_json(const RankLinks& links);
/// Throws Error kParse for a document that is no complete list of links.
RankLinks links_from_json(const Json& document, const std::string& file);
RankLinks read_rank_links(const std::string& path);

/// Measures as one of several processes that a launcher has started, all of which call it: the
/// first one gets the links, the others nothing. A pair takes some tenths of a second, while the
/// other ranks wait. Throws Error kFailed if there is one process.
std::optional<RankLinks> measure_rank_links();

}  // namespace npu::gnn
