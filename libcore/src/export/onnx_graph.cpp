// SPDX-License-Identifier: Apache-2.0
// Collects nodes and constants of an ONNX model and writes them as a ModelProto.
//
// The values of constants are written from where they lie, between the heads of their messages, so
// that a model is not held twice. Weights stand in the file itself; of a model that is larger than
// a message of protobuf may be, all but small ones stand in a second file, as external data.
// O(nodes + bytes).
#include "export/onnx_graph.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/new_file.hpp"
#include "tensor/onnx_tensor.hpp"
#include "tensor/protobuf_writer.hpp"

namespace npu::onnx_export {
namespace {

constexpr std::int64_t kIrVersion = 9;  // the first one with opset 20
constexpr std::size_t kMostShared = 4096;
constexpr std::uint64_t kPage = 4096;  // constants outside begin at one, so that they can be mapped

enum class AttributeKind : std::uint8_t {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kInts = 7,
  kStrings = 8
};

struct AttributeWriter {
  WireWriter& out;
  void operator()(std::int64_t value) const {
    out.integer(3, value);
    kind(AttributeKind::kInt);
  }
  void operator()(float value) const {
    out.float32(2, value);
    kind(AttributeKind::kFloat);
  }
  void operator()(const std::string& value) const {
    out.bytes(4, value);
    kind(AttributeKind::kString);
  }
  void operator()(const OnnxInts& values) const {
    for (const std::int64_t value : values) out.integer(8, value);
    kind(AttributeKind::kInts);
  }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) out.bytes(9, value);
    kind(AttributeKind::kStrings);
  }

 private:
  void kind(AttributeKind value) const { out.integer(20, static_cast<std::int64_t>(value)); }
};

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

}  // namespace

std::string OnnxGraph::fresh(const std::string& wanted) {
  if (taken_.insert(wanted).second) return wanted;
  int& suffix = suffix_of_[wanted];
  for (;;) {
    std::string name = wanted + "_" + std::to_string(++suffix);
    if (taken_.insert(name).second) return name;
  }
}

void OnnxGraph::add_constant(const std::string& name, Tensor value) {
  constants_.emplace_back(name, std::move(value));
}

std::string OnnxGraph::constant(const std::string& wanted, const Tensor& value) {
  std::string key;
  if (value.bytes() <= kMostShared) {
    key = std::to_string(static_cast<int>(value.dtype())) + shape_text(value.shape());
    key += bytes_of(value);
    if (const auto found = small_.find(key); found != small_.end()) return found->second;
  }
  std::string name = fresh(wanted);
  add_constant(name, value);
  if (!key.empty()) small_.emplace(std::move(key), name);
  return name;
}

std::string OnnxGraph::integers(const OnnxInts& values) {
  Tensor tensor(DType::kInt64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as_mutable<std::int64_t>());
  return constant("integers", tensor);
}

std::string OnnxGraph::once(const std::string& key, const std::function<std::string()>& make) {
  const auto found = once_.find(key);
  if (found != once_.end()) return found->second;
  return once_.emplace(key, make()).first->second;
}

void OnnxGraph::add_input(const std::string& name, DType dtype, const Shape& shape) {
  inputs_.push_back({name, dtype, shape});
}

void OnnxGraph::add_output(const std::string& name, DType dtype, const Shape& shape) {
  outputs_.push_back({name, dtype, shape});
}

void OnnxGraph::drop_unread() {
  std::unordered_set<std::string> read;
  for (const Value& output : outputs_) read.insert(output.name);
  std::vector<OnnxNode> kept;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    const bool is_read = std::any_of(node->outputs.begin(), node->outputs.end(),
                                     [&](const std::string& name) { return read.contains(name); });
    if (!is_read) continue;
    read.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  nodes_ = std::move(kept);
  std::erase_if(constants_, [&](const auto& constant) { return !read.contains(constant.first); });
}

std::string OnnxGraph::value_message(const Value& value) {
  WireWriter shape;
  for (const std::int64_t extent : value.shape) {
    WireWriter dim;
    dim.integer(1, extent);
    shape.bytes(1, dim.message());
  }
  WireWriter tensor;
  tensor.integer(1, onnx_dtype_number(value.dtype));
  tensor.bytes(2, shape.message());
  WireWriter type;
  type.bytes(1, tensor.message());
  WireWriter message;
  message.bytes(1, value.name);
  message.bytes(2, type.message());
  return message.take();
}

std::string OnnxGraph::node_message(const OnnxNode& node) {
  WireWriter message;
  for (const std::string& input : node.inputs) message.bytes(1, input);
  for (const std::string& output : node.outputs) message.bytes(2, output);
  message.bytes(3, node.outputs.front());
  message.bytes(4, node.op_type);
  for (const OnnxAttribute& each : node.attributes) {
    WireWriter attribute;
    attribute.bytes(1, each.name);
    std::visit(AttributeWriter{attribute}, each.value);
    message.bytes(5, attribute.message());
  }
  return message.take();
}

std::string OnnxGraph::constant_head(const std::string& name, const Tensor& value) {
  const std::string tensor = onnx_tensor_head(name, value);
  WireWriter head;
  head.head_of_bytes(5, tensor.size() + value.bytes());
  return head.take() + tensor;
}

std::string OnnxGraph::constant_elsewhere(const std::string& name, const Tensor& value,
                                          const std::string& file, std::uint64_t offset) {
  WireWriter tensor;
  for (const std::int64_t dim : value.shape()) tensor.integer(1, dim);
  tensor.integer(2, onnx_dtype_number(value.dtype()));
  tensor.bytes(8, name);
  const std::pair<const char*, std::string> entries[]{{"location", file},
                                                      {"offset", std::to_string(offset)},
                                                      {"length", std::to_string(value.bytes())}};
  for (const auto& [key, text] : entries) {
    WireWriter entry;
    entry.bytes(1, key);
    entry.bytes(2, text);
    tensor.bytes(13, entry.message());
  }
  constexpr std::int64_t kExternal = 1;
  tensor.integer(14, kExternal);
  WireWriter message;
  message.bytes(5, tensor.message());
  return message.take();
}

OnnxGraph::Pieces OnnxGraph::constants_inside() const {
  Pieces pieces;
  for (const auto& [name, value] : constants_) {
    pieces.heads.push_back(constant_head(name, value));
    pieces.values.push_back(bytes_of(value));
  }
  return pieces;
}

OnnxGraph::Pieces OnnxGraph::constants_beside(const std::string& file,
                                              std::vector<std::string_view>& data) const {
  static const std::string kPadding(kPage, '\0');
  Pieces pieces;
  std::uint64_t offset = 0;
  for (const auto& [name, value] : constants_) {
    if (value.bytes() < kPage) {
      pieces.heads.push_back(constant_head(name, value));
      pieces.values.push_back(bytes_of(value));
      continue;
    }
    const std::uint64_t rest = (kPage - offset % kPage) % kPage;
    if (rest > 0) data.push_back(std::string_view(kPadding).substr(0, rest));
    offset += rest;
    pieces.heads.push_back(constant_elsewhere(name, value, file, offset));
    pieces.values.emplace_back();
    data.push_back(bytes_of(value));
    offset += value.bytes();
  }
  return pieces;
}

void OnnxGraph::write(const std::string& path, const std::string& producer,
                      std::uint64_t most_bytes) const {
  // The graph: nodes and name, constants in pieces, inputs and outputs.
  WireWriter nodes;
  for (const OnnxNode& node : nodes_) nodes.bytes(1, node_message(node));
  nodes.bytes(2, name_);
  WireWriter ends;
  for (const Value& value : inputs_) ends.bytes(11, value_message(value));
  for (const Value& value : outputs_) ends.bytes(12, value_message(value));
  const std::uint64_t frame = nodes.message().size() + ends.message().size();

  WireWriter opset;
  opset.bytes(1, "");
  opset.integer(2, kOpset);
  WireWriter model;
  model.integer(1, kIrVersion);
  model.bytes(2, producer);
  model.bytes(8, opset.message());
  constexpr std::uint64_t kGraphHead = 16;  // at most

  Pieces constants = constants_inside();
  std::vector<std::string_view> data;
  const auto size_of_all = [&] { return frame + constants.bytes() + model.message().size(); };
  const std::string data_path = path + ".data";
  if (size_of_all() + kGraphHead > most_bytes) {
    constants = constants_beside(std::filesystem::path(data_path).filename().string(), data);
  }
  if (size_of_all() + kGraphHead > most_bytes) {
    throw Error(ErrorCode::kUnsupported,
                "the model needs " + std::to_string(size_of_all()) +
                    " bytes without its weights, and a file of ONNX holds 2 GiB",
                {.file = path});
  }
  model.head_of_bytes(7, frame + constants.bytes());
  std::vector<std::string_view> pieces{model.message(), nodes.message()};
  for (std::size_t i = 0; i < constants.heads.size(); ++i) {
    pieces.emplace_back(constants.heads[i]);
    pieces.push_back(constants.values[i]);
  }
  pieces.emplace_back(ends.message());
  if (data.empty()) return write_file_atomically(path, pieces);
  write_files_atomically({{data_path, data}, {path, pieces}});
}

}  // namespace npu::onnx_export
