// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/device_answers.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/device/blob.hpp"

namespace npu {

/// Layouts of values that go from one partition to others; what is not there is row-major.
using BoundaryLayouts = std::map<TensorId, std::string>;

/// Asks the backend of a partition which layouts it takes, and offers for its outputs if its inputs
/// come as `inputs` says.
using LayoutQuestion =
    std::function<LayoutOffers(std::size_t partition, const LayoutNames& inputs)>;

/// What producers and consumers agree on, before anything is compiled: for each value that only
/// partitions of one device read, of a device that `takes_part`, the first layout that its producer
/// offers and all of them take. Each partition with such a value is asked at most once, in the
/// order of the plan's steps, so the result depends on the answers alone.
BoundaryLayouts agree_layouts(const Graph& graph, const PartitionPlan& plan,
                              const std::function<bool(const std::string& device)>& takes_part,
                              const LayoutQuestion& ask);

/// Those of one partition's inputs and outputs.
LayoutNames layouts_of(const Graph& graph, const Partition& partition,
                       const BoundaryLayouts& layouts);

/// Whether a backend that was asked for a layout may have meant that by its error. What it said to
/// check is then not worth more than its refusal: row-major is always right.
bool may_refuse_layouts(const BackendError& error);

/// The options of check and compile.
std::string compile_options_text(const std::string& precision, const LayoutNames& layouts);

/// An answer as the cache keeps it. Nothing if it is none.
Json offers_json(const LayoutOffers& offers);
std::optional<LayoutOffers> read_offers_json(const Json& json);

/// Throws Error kInvalidGraph where the compiled partitions of a device, which may come from a
/// file, do not have a value in one and the same layout, or not row-major what goes to another
/// device.
void check_layouts(const Graph& graph, const PartitionPlan& plan,
                   const std::vector<CompiledPartition>& compiled);

}  // namespace npu
