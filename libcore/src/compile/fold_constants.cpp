// SPDX-License-Identifier: Apache-2.0
// Computes the results of folded nodes, once, before the partitions that read them are compiled.
//
// Input:  a graph with folded nodes, and its weights.
// Output: the tensors that others read of those nodes, as weights.
// All folded nodes are one sub-IR, which a device runs like any partition, so a result has the bits
// that it would have at run time. The cache keeps the results in place of a program, so the backend
// (libtorch, as a rule) need not be loaded to look them up: the key has a digest of the backend's
// file, and the level of instructions that it may use, in place of its fingerprint. Cost: the
// backend's, and O(bytes of the weights read).
#include "npu/compile/fold_constants.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "compile/sub_ir.hpp"
#include "device/device_instance.hpp"
#include "device/isa_level.hpp"
#include "ir/folded_nodes.hpp"
#include "ir/mention_form.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "ops/constant_ops.hpp"
#include "support/checked.hpp"
#include "support/digest.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

using FoldClock = std::chrono::steady_clock;

constexpr std::uint64_t kResultAlignment = 64;

/// The folded nodes of a graph as a sub-IR.
struct FoldedPart {
  Json document;
  std::vector<TensorId> weights;                ///< that its nodes read
  std::vector<TensorId> results;                ///< that others read
  std::vector<std::pair<DType, Shape>> inputs;  ///< whose elements nobody reads
};

/// Makes the sub-IR of the folded nodes, and checks that they depend on constants alone: the
/// document says which nodes are folded, and may come from anywhere.
class FoldedPartMaker {
 public:
  explicit FoldedPartMaker(const Graph& graph)
      : graph_(graph), is_read_(graph.tensors().size(), 0) {}

  FoldedPart make() {
    for (const char* key : {"graph_inputs", "graph_outputs", "weights", "nodes"}) {
      part_.document[key] = Json::array();
    }
    for (std::size_t i = 0; i < graph_.folded().size(); ++i) add_node(i);
    for (const TensorId id : graph_.graph_outputs()) is_read_[index_of(id)] = 1;
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const TensorInfo& tensor = graph_.tensors()[i];
      if (!tensor.is_folded() || (is_read_[i] == 0 && tensor.consumers.empty())) continue;
      part_.results.push_back(id_at<TensorId>(i));
      part_.document["graph_outputs"].push_back(
          tensor_mention(tensor.name, tensor.shape, tensor.dtype));
    }
    return std::move(part_);
  }

 private:
  void add_node(std::size_t index) {
    const Node& node = graph_.folded()[index].node;
    if (!is_repeatable(graph_, node)) fail(index, "its results may differ from run to run");
    Json inputs = Json::array();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      inputs.push_back(operand(index, i));
    }
    Json outputs = Json::array();
    for (const TensorId id : node.outputs) {
      const TensorInfo& tensor = graph_.tensor(id);
      outputs.push_back(tensor_mention(tensor.name, tensor.shape, tensor.dtype));
    }
    Json attrs = node.attrs();
    set_non_finite_form(attrs, NonFiniteForm::kText);
    part_.document["nodes"].push_back({{"name", node.name},
                                       {"op_type", node.op_type},
                                       {"inputs", std::move(inputs)},
                                       {"outputs", std::move(outputs)},
                                       {"attrs", std::move(attrs)}});
  }

  Json operand(std::size_t index, std::size_t place) {
    const Node& node = graph_.folded()[index].node;
    const TensorId id = node.inputs[place];
    const TensorInfo& tensor = graph_.tensor(id);
    const OperandUse use = operand_use(node, place);
    if (use != OperandUse::kElements) return stand_in(node, tensor, use);
    if (tensor.kind != TensorKind::kWeight) {
      fail(index, "it reads '" + tensor.name + "', which is no constant");
    }
    Json json = tensor_mention(tensor.name, tensor.shape, tensor.dtype);
    if (!tensor.is_folded() && std::exchange(is_read_[index_of(id)], char{1}) == 0) {
      part_.weights.push_back(id);
      part_.document["weights"].push_back(json);
    }
    return json;
  }

  /// An input in place of a tensor that a node reads only the type of, which may be any.
  Json stand_in(const Node& node, const TensorInfo& tensor, OperandUse use) {
    const Shape shape = use == OperandUse::kShape && !node.outputs.empty()
                            ? graph_.tensor(node.outputs.front()).shape
                            : Shape{};
    std::string name = node.name + ":like";
    while (graph_.find_tensor(name).valid()) name += '\'';
    Json json = tensor_mention(name, shape, tensor.dtype);
    part_.document["graph_inputs"].push_back(json);
    part_.inputs.emplace_back(tensor.dtype, shape);
    return json;
  }

  [[noreturn]] void fail(std::size_t index, const std::string& reason) const {
    const FoldedNode& folded = graph_.folded()[index];
    throw Error(ErrorCode::kInvalidGraph,
                "node '" + folded.node.name + "' (" + folded.node.op_type + ") is folded, but " +
                    reason + "; run npu-tag again",
                {.file = graph_.file,
                 .pointer = "/nodes/" + std::to_string(index_of(folded.before) + index)});
  }

  const Graph& graph_;
  FoldedPart part_;
  std::vector<char> is_read_;  // by tensor: a weight that is listed, or an output of the graph
};

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kResultAlignment - 1) / kResultAlignment * kResultAlignment;
}

/// Results as the cache keeps them: one behind the other.
Blob pack(const std::vector<Tensor>& results) {
  std::uint64_t size = 0;
  for (const Tensor& tensor : results) size = aligned(size) + tensor.bytes();
  // An entry of the cache is never empty.
  Tensor bytes(DType::kUInt8, {static_cast<std::int64_t>(std::max<std::uint64_t>(size, 1))});
  std::uint64_t offset = 0;
  for (const Tensor& tensor : results) {
    offset = aligned(offset);
    if (tensor.bytes() > 0) {
      std::memcpy(bytes.mutable_data() + offset, tensor.data(), tensor.bytes());
    }
    offset += tensor.bytes();
  }
  const std::byte* data = bytes.data();
  const auto size_kept = static_cast<std::uint64_t>(bytes.bytes());
  auto owner = std::make_shared<Tensor>(std::move(bytes));
  return {std::shared_ptr<const std::byte>(std::move(owner), data), size_kept};
}

/// Nothing if the entry is not of these results.
std::optional<std::vector<Tensor>> unpack(const Graph& graph, const std::vector<TensorId>& ids,
                                          const Blob& blob) {
  std::vector<Tensor> results;
  std::uint64_t offset = 0;
  for (const TensorId id : ids) {
    const TensorInfo& tensor = graph.tensor(id);
    const auto bytes = static_cast<std::uint64_t>(tensor.bytes());
    offset = aligned(offset);
    if (offset > blob.size || bytes > blob.size - offset) return std::nullopt;
    results.emplace_back(tensor.dtype, tensor.shape,
                         std::shared_ptr<const std::byte>(blob.data, blob.data.get() + offset));
    offset += bytes;
  }
  return results;
}

/// A digest of the backend's file; nothing if there is none, and whoever loads it says so.
std::optional<std::string> file_digest(const std::string& backend) {
  const std::string path = Backend::find_file(backend);
  if (path.empty()) return std::nullopt;
  const MappedFile file(path);
  return hex_text(xxh3_64(file.data(), file.size()));
}

/// What bits may depend on besides the CPU, which every key has: the limit itself, since some code
/// heeds it above the CPU's level, too.
std::string isa_text() {
  const auto limit = isa_limit();
  return limit ? std::string(kIsaLevels[*limit]) : "any level";
}

std::vector<Tensor> compute(const Graph& graph, const FoldedPart& part,
                            const std::shared_ptr<DeviceInstance>& opened,
                            const std::string& sub_ir, std::vector<NamedTensor> weights) {
  const auto program = opened->compile_and_load(
      sub_ir, std::move(weights), program_signature(graph, graph.folded().size(), part.results));
  std::vector<std::shared_ptr<DeviceBuffer>> buffers;
  std::vector<npu_buffer*> inputs;
  for (const auto& [dtype, shape] : part.inputs) {
    buffers.push_back(opened->import_tensor(Tensor(dtype, shape)));
    inputs.push_back(buffers.back()->get());
  }
  std::vector<Tensor> results;
  for (const auto& buffer : program->run(inputs)) results.push_back(buffer->to_host());
  return results;
}

}  // namespace

FoldedConstants fold_constants(const Graph& graph, const Target& target,
                               const CompileOptions& options, CompileCache* cache,
                               std::vector<Tensor>& weights) {
  const auto start = FoldClock::now();
  FoldedConstants done;
  done.nodes = static_cast<std::int64_t>(graph.folded().size());
  if (graph.folded().empty()) return done;
  const FoldedPart part = FoldedPartMaker(graph).make();
  if (part.results.empty()) return done;
  const Device* device = folding_device(target);
  if (device == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "no device of target '" + target.name + "' has a backend to fold constants with",
                {.file = graph.file});
  }
  const LogTimer timer(LogModule::kCompile);
  const std::string sub_ir = write_document(part.document);
  std::vector<NamedTensor> read;
  for (const TensorId id : part.weights) {
    read.push_back({graph.tensor(id).name, weights[index_of(id)]});
  }
  const std::string device_text =
      backend_options_text(*device, options.threads, options.backend_options);
  std::string key;
  std::optional<std::vector<Tensor>> results;
  if (cache != nullptr && cache->enabled()) {
    if (const auto digest = file_digest(device->backend)) {
      key = cache_key({.backend = device->backend,
                       .backend_version = *digest,
                       .fingerprint = "folded constants 2, " + isa_text(),
                       .device = device_text,
                       .options = {},
                       .sub_ir = sub_ir,
                       .weights = &read});
      if (const auto entry = cache->find(key)) results = unpack(graph, part.results, entry->blob);
    }
  }
  done.cache_hit = results.has_value();
  if (!results) {
    const auto opened = DeviceInstance::open(Backend::load(device->backend), device_text);
    done.devices[device->name] = opened;
    results = compute(graph, part, opened, sub_ir, std::move(read));
    if (!key.empty()) cache->store(key, pack(*results), Json::object());
  }
  for (std::size_t i = 0; i < part.results.size(); ++i) {
    done.bytes = saturating_add(done.bytes, graph.tensor(part.results[i]).bytes());
    weights[index_of(part.results[i])] = std::move((*results)[i]);
  }
  done.device = device->name;
  done.tensors = static_cast<std::int64_t>(part.results.size());
  done.ms = std::chrono::duration<double, std::milli>(FoldClock::now() - start).count();
  timer.done([&] {
    return std::to_string(done.nodes) + " nodes folded to " + std::to_string(done.tensors) +
           " constants of " + bytes_text(static_cast<double>(done.bytes)) +
           (done.cache_hit ? ", from the cache" : " by '" + device->backend + "'");
  });
  return done;
}

}  // namespace npu
