// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gnn/block/gnn_programs.hpp"
#include "gnn/model/stage_table.hpp"

namespace npu::gnn {

/// Times the links between every two devices, of which one is the host ("cpu", else the first):
/// uploads, downloads, and both one after the other between two that are not the host.
std::vector<ProfileLink> measure_links(const std::vector<GnnDevice>& devices);

}  // namespace npu::gnn
