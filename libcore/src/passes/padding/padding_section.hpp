// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "passes/padding/infer_tails.hpp"

namespace npu::padding {

/// One dimension of a tensor that varies, and what its rows behind the valid ones hold.
struct PaddedTensor {
  std::string name;
  std::int64_t dim = 0;
  SizeExpression size;  ///< the number of valid rows
  TailClass tail;
};

/// One npu.tail of a document, and why it is there.
struct PaddingMask {
  std::string node;
  std::string tensor;  ///< whose rows it replaces
  std::int64_t dim = 0;
  Fill fill = Fill::kZero;
  std::int64_t bytes = 0;            ///< of the tensor
  std::vector<std::string> readers;  ///< nodes, in list order

  bool operator==(const PaddingMask&) const = default;
};

/// `npu.padding` of a document, as npu-ir(5) has it: the certificate that padding changes nothing.
struct PaddingSection {
  std::vector<PaddedSymbol> symbols;
  std::vector<PaddedTensor> tensors;  ///< all dimensions that vary: inputs, then results in order
  std::vector<PaddingMask> masks;
  std::int64_t cut = 0;   ///< bytes of the tensors that are masked
  std::int64_t flow = 0;  ///< of the proof that fewer do not do

  Json to_json() const;
  /// Reads what a document states; faults of form are added to `diagnostics`. Nothing if it has no
  /// such section, or one with faults.
  static std::optional<PaddingSection> read(const Graph& graph, Diagnostics& diagnostics);
  /// The number of valid rows of a dimension; null if it does not vary.
  const SizeExpression* find(std::string_view tensor, std::int64_t dim) const noexcept;
};

/// All npu.tail nodes of a graph, as its masks.
std::vector<PaddingMask> masks_of(const Graph& graph);

}  // namespace npu::padding
