// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// A value that flows between the stages of a layer.
struct StageTensor {
  std::string name;
  std::int32_t producer = 0;  ///< stage, counted from 1; 0: an input of the layer
  std::vector<std::int32_t>
      consumers;          ///< ascending; stage_count + 1 stands for the layer's output
  double node_bytes = 0;  ///< per node
  double edge_bytes = 0;  ///< per edge
  double fixed_bytes = 0;
  bool local_rows = false;  ///< has rows for halo nodes as well (edges read them), after owned ones

  /// Whether one of the stages first..last makes it, or reads it.
  bool is_made_in(std::int32_t first, std::int32_t last) const noexcept {
    return producer >= first && producer <= last;
  }
  bool is_read_in(std::int32_t first, std::int32_t last) const noexcept;
};

struct StageInfo {
  std::string name;
  bool local_rows = false;   ///< computes rows for halo nodes as well
  bool writes_rows = false;  ///< by index, whatever may become a segment reduction later
  double weight_bytes = 0;
  Json ir;  ///< with "n" and "m" in its shapes
};

struct LayerInfo {
  std::vector<StageInfo> stages;
  std::vector<StageTensor> tensors;
  std::int64_t input_features = 0;
  std::int64_t output_features = 0;
  std::int32_t stage_count() const { return static_cast<std::int32_t>(stages.size()); }
  /// Whether stages first..last read rows of nodes of other parts.
  bool reads_other_parts(std::int32_t first, std::int32_t last) const;
};

/// Sizes to substitute for the symbols of a block.
struct BlockShape {
  std::int64_t owned = 0;  ///< "n": nodes to compute
  std::int64_t local = 0;  ///< "n" where halo nodes count as well
  std::int64_t edges = 0;  ///< "m"
};

/// A model as a sequence of stages (document of kind "staged", npu-gnn(5)). Layers run one after
/// another; the output of one is the input "x" of the next.
struct StagedModel {
  std::string file;
  std::string name;
  std::string weights_file;  ///< as the document says; empty: none
  bool one_loop = false;     ///< it is for graphs in which each node has exactly one loop
  std::vector<LayerInfo> layers;
  std::string hash;  ///< of the structure, for profiles and plans

  /// Stages first..last of a layer (both from 1) as one graph with static shapes. Its inputs are
  /// the tensors that the block reads but does not produce, its outputs those that later stages or
  /// the layer need.
  Graph block(std::int32_t layer, std::int32_t first, std::int32_t last,
              const BlockShape& shape) const;
};

/// The names that a layer may read without producing them: node features, sources and targets of
/// the edges as int64 [2, m], and the in-degree of every node in the whole graph as float32 [n].
inline constexpr std::string_view kFeatureInput = "x";
inline constexpr std::string_view kEdgeInput = "edge_index";
inline constexpr std::string_view kDegreeInput = "degree";

/// Throws Error kParse or kInvalidGraph with the place of the first fault.
StagedModel parse_staged_model(const Json& json, const std::string& file);
StagedModel read_staged_model(const std::string& path);

/// The path of a file that a document names relative to itself; empty if it names none.
std::string path_beside(const std::string& document, const std::string& named);

/// The weights of a staged model by state-dict key: from `file`, else from the one that it names.
std::map<std::string, Tensor> load_staged_weights(const StagedModel& model,
                                                  const std::string& file);

/// False for an ordinary document of npu-ir(5); true for one that states its kind, whether staged
/// or not.
bool is_staged_model(const Json& json) noexcept;

/// Why a device cannot run stage `stage` (from 1) of a layer; empty if it can.
std::string stage_refusal(const StagedModel& model, std::int32_t layer, std::int32_t stage,
                          const Device& device);

}  // namespace npu::gnn
