// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gnn/exchange/device_exchange.hpp"
#include "npu/support/json.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {

/// The object `exchange` of a plan.
Json to_json(const DeviceExchange& exchange);
/// Checks types and ranges, and that parts are below `part_count` and in order. Throws Error
/// kParse.
DeviceExchange read_device_exchange(const JsonFields& fields, std::int32_t part_count);

}  // namespace npu::gnn
