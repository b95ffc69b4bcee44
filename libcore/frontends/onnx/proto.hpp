// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/onnx_tensor.hpp"

namespace npu::onnx {

struct GraphProto;

/// The values of AttributeProto.type that are read.
enum class AttributeType : std::uint8_t {
  kNone = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kSparse = 9,
  kOther = 10,
};

/// A tensor of which only the elements that are not zero are given.
struct SparseProto {
  OnnxTensor values;   ///< of one axis; its name is that of the whole
  OnnxTensor indices;  ///< int64, [values] into the elements or [values, rank]
  std::vector<std::int64_t> dims;
};

struct AttributeProto {
  std::string_view name;
  std::string_view ref;  ///< inside a function: the attribute of the call that it stands for
  AttributeType type = AttributeType::kNone;
  float f = 0;
  std::int64_t i = 0;
  std::string_view s;
  std::shared_ptr<const OnnxTensor> tensor;
  std::shared_ptr<const SparseProto> sparse;
  std::shared_ptr<const GraphProto> graph;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeProto {
  std::vector<std::string_view> inputs;  ///< an empty name: absent
  std::vector<std::string_view> outputs;
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;  ///< which of several functions of one name
  std::vector<AttributeProto> attributes;
};

/// One dimension: a number, a symbol, or neither.
struct DimProto {
  std::optional<std::int64_t> value;
  std::string_view symbol;
};

struct ValueProto {
  std::string_view name;
  bool is_tensor = false;  ///< neither sequence, map nor optional
  std::int64_t data_type = 0;
  bool has_shape = false;
  std::vector<DimProto> dims;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<ValueProto> inputs;
  std::vector<ValueProto> outputs;
  std::vector<ValueProto> values;
  std::vector<SparseProto> sparse_initializers;
};

struct OpsetProto {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;  ///< without a default
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetProto> opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer;
  std::string_view producer_version;
  std::vector<OpsetProto> opsets;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
};

/// Whether bytes begin as ONNX's exporters begin a model. Reads at most the first 4 KiB.
bool looks_like_onnx(std::string_view bytes) noexcept;

/// Reads a ModelProto; names and data stay views of `bytes`. Throws Error kParse for malformed
/// bytes, and for more than a million nodes, attributes or names.
ModelProto parse_onnx_model(std::string_view bytes);

}  // namespace npu::onnx
