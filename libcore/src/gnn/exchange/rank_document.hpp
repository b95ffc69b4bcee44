// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gnn/exchange/rank_plan.hpp"
#include "npu/support/json.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {

/// A cover as one text.
std::string cover_text(const std::vector<CrossingRow>& cover);
/// That of the key `cover`. Throws Error kParse.
std::vector<CrossingRow> read_cover(const JsonFields& fields);

/// The object `ranks` of a plan.
Json to_json(const RankPlan& plan);
/// Checks types and ranges, and that every rank's parts are those of one node of the tree over all
/// `part_count` parts. Throws Error kParse.
RankPlan read_rank_plan(const JsonFields& fields, std::int32_t part_count);

}  // namespace npu::gnn
