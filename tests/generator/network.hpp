// SPDX-License-Identifier: Apache-2.0
// Small networks drawn from the op catalogue: nodes around an op that a device claims or fuses,
// chains of functions of one kind, shared operands, results that are read twice or returned; or
// single nodes in turn, layers with each argument at its edge while all others are plain.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "op_rows.hpp"

namespace npu::test {

struct NetworkTensor {
  enum class Kind : std::uint8_t { kInput, kWeight, kResult };
  std::string name;
  Kind kind = Kind::kInput;
  Values values;     ///< what it holds; of a result, what float32 gives
  Tensor data = {};  ///< of an input or weight
};

struct NetworkNode {
  std::string op;
  Json attrs = Json::object();
  std::vector<std::size_t> operands;  ///< tensors
  std::vector<std::size_t> results;
};

struct Network {
  std::vector<NetworkTensor> tensors;
  std::vector<NetworkNode> nodes;
  std::vector<std::size_t> outputs;

  Json document(bool with_constants) const;
  /// Of a node, in documents.
  std::string name_of(const NetworkNode& node) const;
  std::vector<Tensor> inputs() const;
  /// Of inputs and weights, by name.
  std::map<std::string, Tensor> data() const;
  std::string text() const;  ///< one line for each node
};

/// What all nodes of a network have in common.
struct NetworkStyle {
  DType dtype = DType::kFloat32;
  std::int64_t most_nodes = 8;
  bool has_specials = false;  ///< NaN, infinities, -0, subnormal and huge numbers
  bool may_be_empty = false;
  std::int64_t opset = 0;     ///< of ONNX, in which every node has a form; 0: any node will do
  std::string first = {};     ///< the op of the first node; empty: drawn
  bool is_chain = false;      ///< a node reads the last result and constants alone
  bool is_attention = false;  ///< one attention, written out
  std::int64_t turn = -1;     ///< of single nodes, which read inputs alone; below 0: of a network
};
NetworkStyle draw_style(Random& random);
Network draw_network(Random& random, NetworkStyle style);

/// Computes all results anew, after a change; false if that is not possible.
bool recompute(Network& network);
/// Removes nodes that no output needs, and tensors that no node reads.
void remove_unread(Network& network);
/// Those that draw_network draws from: every op that a device of the built-in targets claims.
const std::vector<std::string>& drawn_ops();
/// What devices claim and no row defines.
std::vector<std::string> undefined_ops();

Tensor tensor_of(const Values& values);
Tensor random_values(const DrawnOperand& operand, Random& random);

}  // namespace npu::test
