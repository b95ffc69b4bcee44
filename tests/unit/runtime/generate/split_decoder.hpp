// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "catch.hpp"
#include "ir/bind_sizes.hpp"
#include "npu/passes/tag.hpp"
#include "runtime/generate/session_model.hpp"
#include "runtime/generate/small_decoder.hpp"

namespace npu::test {

/// Steps of `rows` ids of a decoder whose attention, also where it is written out, and the caches
/// that it reads are on the device "cpu", and all else on the first of a target that takes it.
inline std::unique_ptr<SessionModel> split_decoder(const Template& decoder,
                                                   const std::string& target, std::int64_t rows) {
  Diagnostics diagnostics;
  Graph graph = bind_sizes(decoder, {{"T", rows}}, diagnostics);
  TagOptions tags;
  for (const char* glob : {"aten.index_copy.*", "aten.scaled_dot_product_attention.*",
                           "npu.length_mask", "aten.unsqueeze.*", "aten.expand.*", "aten.reshape.*",
                           "aten.transpose.*", "aten.matmul.*"}) {
    tags.force.push_back({"cpu", glob});
  }
  tag_ops(graph, load_target(target), tags, diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE_FALSE(diagnostics.has_errors());
  RunModelOptions options;
  options.cache.enabled = false;
  auto model = SessionModel::open(std::move(graph), options, diagnostics);
  REQUIRE(model != nullptr);
  return model;
}

}  // namespace npu::test
