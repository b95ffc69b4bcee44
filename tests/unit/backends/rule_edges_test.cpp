// SPDX-License-Identifier: Apache-2.0
// The table of a device and its backend are two statements of what runs there. Nodes at the edges
// of every rule hold them to each other: a node of the op corpus is changed in one or two things,
// an extent, a rank, a dtype, an attribute to a bound of a rule or past it; libtorch says whether
// that is a node, and what it gives. The backend is asked, nothing is compiled for it.
//
// NPU_EDGE_NODES sets the number of nodes for each op, NPU_EDGE_SEED the seed.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "conformance/harness/graph_spec.hpp"
#include "device/device_instance.hpp"
#include "graph_builder.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/file_io.hpp"
#include "npu/target/target.hpp"
#include "ops/op_catalogue.hpp"
#include "target/support_check.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

struct EdgeTensor {
  Shape shape;
  DType dtype = DType::kFloat32;
  bool is_weight = false;
};

struct EdgeNode {
  std::string op;
  std::vector<EdgeTensor> operands;
  Json attrs = Json::object();
  std::vector<EdgeTensor> results = {};

  /// A document with this node.
  std::string document() const {
    test::GraphBuilder graph;
    std::vector<std::string> names;
    for (const EdgeTensor& operand : operands) {
      const std::string name = "x" + std::to_string(names.size());
      const std::string dtype(dtype_name(operand.dtype));
      if (operand.is_weight) {
        graph.weight(name, operand.shape, dtype);
      } else {
        graph.input(name, operand.shape, dtype);
      }
      names.push_back((operand.is_weight ? "p_" : "") + name);
    }
    std::vector<Shape> shapes;
    std::vector<std::string> dtypes;
    for (const EdgeTensor& result : results) {
      shapes.push_back(result.shape);
      dtypes.emplace_back(dtype_name(result.dtype));
    }
    if (results.size() == 1) {
      return graph.node("y", op, names, shapes[0], attrs, dtypes[0]).output("y").text();
    }
    graph.node_with_typed_results("y", op, names, shapes, dtypes, attrs);
    for (std::size_t i = 0; i < results.size(); ++i) graph.output("y_" + std::to_string(i));
    return graph.text();
  }
};

/// The node as a backend gets it.
struct Question {
  explicit Question(const EdgeNode& node) : graph(read_valid_graph(node.document(), "edge.json")) {
    const std::vector<NodeId> nodes = all_nodes(graph);
    const SubgraphBoundary boundary = find_boundary(graph, nodes);
    sub_ir = write_subgraph(graph, nodes, boundary);
    signature.nodes = 1;
    for (const TensorId id : boundary.outputs) {
      signature.outputs.push_back({graph.tensor(id).dtype, graph.tensor(id).shape});
    }
  }

  Graph graph;
  std::string sub_ir;
  ProgramSignature signature;
};

// ---- What a node gives ----

/// Indices are zeros, all else ones.
Tensor plain_values(const EdgeNode& node, std::size_t operand) {
  const EdgeTensor& type = node.operands[operand];
  Tensor tensor(type.dtype, type.shape);
  bool is_index = false;
  for (const char* name : {"index", "embedding", "gather", "scatter", "segment", "getitem"}) {
    is_index |= operand > 0 && is_integer(type.dtype) && node.op.find(name) != std::string::npos;
  }
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    conformance::set_element(tensor, i, is_index ? 0 : 1);
  }
  return tensor;
}

void run(const EdgeNode& node, DeviceInstance& cpu) {
  const Question question(node);
  std::vector<NamedTensor> weights;
  std::map<std::string, Tensor> inputs;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (node.operands[i].is_weight) {
      weights.push_back({"p_" + name, plain_values(node, i)});
    } else {
      inputs[name] = plain_values(node, i);
    }
  }
  const auto program =
      cpu.compile_and_load(question.sub_ir, std::move(weights), question.signature);
  std::vector<std::shared_ptr<DeviceBuffer>> buffers;
  std::vector<npu_buffer*> handles;
  for (const TensorId id : question.graph.graph_inputs()) {
    buffers.push_back(cpu.import_tensor(inputs.at(question.graph.tensor(id).name)));
    handles.push_back(buffers.back()->get());
  }
  program->run(handles);
}

/// "found float32 [2, 3]" at the end of `text`.
bool read_type(const std::string& text, EdgeTensor& type) {
  const std::size_t at = text.rfind("found ");
  if (at == std::string::npos) return false;
  std::istringstream in(text.substr(at + 6));
  std::string dtype;
  in >> dtype;
  const auto known = parse_dtype(dtype);
  if (!known) return false;
  type = {{}, *known};
  char mark = 0;
  for (std::int64_t extent = 0; in >> mark && in >> extent;) type.shape.push_back(extent);
  return true;
}

/// Fills in the results; false if `cpu`, a device of the aten backend, finds the node to be none.
bool find_results(EdgeNode& node, DeviceInstance& cpu) {
  // Where libtorch has no kernel for narrow floats, it gives whatever float is stated.
  const DType first = node.operands.empty() ? DType::kInt64 : node.operands.front().dtype;
  for (EdgeTensor& each : node.results) {
    const bool has_own = !node.attrs.value("dtype", Json()).is_null();
    if (is_floating_point(first) && !has_own) each.dtype = first;
  }
  for (std::size_t tries = 0; tries < 2 * node.results.size() + 4; ++tries) {
    try {
      run(node, cpu);
      return true;
    } catch (const Error& error) {
      // "result 'y_1': expected float32 [2], found int64 [2, 3]"; "expected 3 results, found 2".
      const std::string text = error.what();
      const std::size_t count = text.find(" results, found ");
      const std::size_t at = text.find("result 'y");
      if (count != std::string::npos) {
        const auto found = std::stoul(text.substr(count + 16));
        if (found == 0 || found >= node.results.size()) return false;
        node.results.resize(found);
        continue;
      }
      if (at == std::string::npos) return false;
      const std::size_t which = text[at + 9] == '_' ? std::stoul(text.substr(at + 10)) : 0;
      if (which >= node.results.size() || !read_type(text, node.results[which])) return false;
    }
  }
  return false;
}

// ---- Where nodes come from ----

/// A node of an op that the corpus has not.
EdgeNode plain_node(const OpInfo& info) {
  EdgeNode node;
  node.op = info.op_type;
  const auto has = [&](const char* text) { return node.op.find(text) != std::string::npos; };
  const std::size_t rank = has("1d") ? 3 : has("2d") ? 4 : has("3d") ? 5 : 3;
  const Shape shape(rank, 6);
  for (const SchemaArgument& argument : info.schema.arguments) {
    const std::string& name = argument.name;
    const bool may_be_missing = argument.optional || argument.default_value;
    if (may_be_missing && name != "output_size") continue;
    if (argument.type == ArgumentType::kTensor) {
      EdgeTensor operand{shape, DType::kFloat32};
      if (has("bitwise") || has("__")) operand.dtype = DType::kInt32;
      if (has(".dequantize") && node.operands.empty()) operand.dtype = DType::kInt8;
      if (name == "mask") operand.dtype = DType::kBool;
      if (name == "value") operand.shape.clear();
      if (name == "scales" || name == "zero_points") operand.shape = {6};
      if (name == "zero_points") operand.dtype = DType::kInt64;
      node.operands.push_back(operand);
    } else if (argument.type == ArgumentType::kIntList) {
      node.attrs[name] = std::vector<std::int64_t>(rank - 2, 8);
    } else if (argument.type == ArgumentType::kDType) {
      node.attrs[name] = "torch.int8";
    } else if (argument.type == ArgumentType::kBool) {
      node.attrs[name] = false;
    } else {
      node.attrs[name] = name == "quant_min" ? -128 : name == "quant_max" ? 127 : 2;
    }
  }
  return node;
}

using Bases = std::map<std::string, std::vector<EdgeNode>>;

/// Of the op corpus, by op.
Bases corpus_nodes() {
  Bases bases;
  constexpr std::size_t kMostOfAnOp = 12;
  constexpr std::int64_t kMostElements = 4096;
  std::set<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(NPU_TEST_DATA_DIR "/ops")) {
    if (each.path().extension() == ".json") files.insert(each.path());
  }
  for (const std::filesystem::path& file : files) {
    const Json category = parse_json(read_file(file.string()), file.string());
    for (const Json& json : category.at("cases")) {
      const Graph graph = read_valid_graph(json.at("ir").dump(), file.string());
      for (const Node& node : graph.nodes()) {
        EdgeNode base;
        base.op = node.op_type;
        base.attrs = node.attrs();
        std::int64_t elements = 0;
        const auto type_of = [&](TensorId id) {
          const TensorInfo& tensor = graph.tensor(id);
          elements = std::max(elements, Tensor(tensor.dtype, tensor.shape).element_count());
          return EdgeTensor{tensor.shape, tensor.dtype, tensor.kind == TensorKind::kWeight};
        };
        for (const TensorId id : node.inputs) base.operands.push_back(type_of(id));
        // Of weights alone, it would be computed when it is compiled.
        if (!base.operands.empty()) base.operands.front().is_weight = false;
        for (const TensorId id : node.outputs) base.results.push_back(type_of(id));
        std::vector<EdgeNode>& of_op = bases[node.op_type];
        if (elements > kMostElements || of_op.size() == kMostOfAnOp) continue;
        of_op.push_back(std::move(base));
      }
    }
  }
  return bases;
}

// ---- Changes ----

/// The same draws for the same seed, whatever the standard library.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(count));
  }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  template <typename T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  }

 private:
  std::mt19937_64 engine_;
};

const std::vector<DType> kDTypes{
    DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64, DType::kInt8,
    DType::kUInt8,   DType::kInt16,    DType::kInt32,   DType::kInt64,   DType::kBool};

/// Texts that arguments take; most fit another argument, and are no node then.
const std::map<std::string, std::vector<Json>> kTexts{
    {"padding", {"same", "valid"}},
    {"approximate", {"none", "tanh"}},
    {"rounding_mode", {"floor", "trunc", nullptr}},
    {"indexing", {"ij", "xy"}},
    {"reduce", {"sum", "prod", "mean", "amax", "amin"}},
    {"mode", {"constant", "reflect", "replicate", "circular"}},
    {"equation",
     {"ij,jk->ik", "ii,ij->ij", "ij,jj->i", "i,j->ij", "ij,ij->", "ij,ij->ji", "ij,jk", "ij,kl->i",
      "...ij,...jk->...ik", "ij , jk -> ik", "ij,ji->ij", "bij,bjk->bik", "iji,jik->ik"}}};

/// What the rules for the op say of an argument, and a step to each side.
void add_bounds(const Device& table, const std::string& op, const std::string& argument,
                std::vector<Json>& values) {
  const auto rules = table.rules_by_type.find(op);
  if (rules == table.rules_by_type.end()) return;
  for (const std::size_t index : rules->second) {
    for (const AttributeRule& rule : table.rules[index].attributes) {
      if (rule.argument != argument) continue;
      for (const auto& bound : {rule.min, rule.max, rule.each_min, rule.each_max}) {
        if (!bound) continue;
        for (const double value : {*bound - 1, *bound, *bound + 1}) {
          const auto whole = static_cast<std::int64_t>(std::clamp(value, -1e18, 1e18));
          values.push_back(static_cast<double>(whole) == value ? Json(whole) : Json(value));
        }
      }
      if (rule.equals) values.push_back(*rule.equals);
      if (rule.in) values.insert(values.end(), rule.in->begin(), rule.in->end());
    }
  }
}

class Change {
 public:
  Change(EdgeNode& node, const Device& table, Draw& draw)
      : node_(node), table_(table), draw_(draw) {}

  void apply() {
    std::int64_t kind = draw_.below(node_.operands.empty() ? 1 : 10);
    // libtorch does not look at the shapes of parameters of recurrent layers.
    if (node_.attrs.contains("num_layers") && kind >= 5) kind = 3;
    if (kind < 3) return attribute();
    auto& operands = node_.operands;
    EdgeTensor& one = operands[static_cast<std::size_t>(draw_.below(std::ssize(operands)))];
    const DType first = operands.front().dtype;
    switch (kind) {
      case 3:
      case 4: {
        const DType other = draw_.one_of(kDTypes);
        for (EdgeTensor& each : operands) {
          if (each.dtype == first) each.dtype = other;
        }
        return;
      }
      case 5:
        one.dtype = draw_.one_of(kDTypes);
        return;
      case 6:
        return extents(one);
      case 7:
        return rank(one);
      case 8:
        if (&one != &operands.front()) one.is_weight = !one.is_weight;
        return;
      default:
        return missing();
    }
  }

 private:
  void extents(EdgeTensor& one) {
    if (draw_.one_in(2)) {  // all the same, so that any two of them fit
      const std::int64_t extent = draw_.one_of<std::int64_t>({0, 1, 1, 2, 2, 3});
      for (EdgeTensor& each : node_.operands)
        std::fill(each.shape.begin(), each.shape.end(), extent);
    } else if (!one.shape.empty()) {
      std::int64_t& extent =
          one.shape[static_cast<std::size_t>(draw_.below(std::ssize(one.shape)))];
      extent = draw_.one_of<std::int64_t>({1, 1, 0, extent + 1});
    }
  }

  void rank(EdgeTensor& one) {
    const auto more = static_cast<std::size_t>(draw_.one_of<std::int64_t>({1, 1, 2, 7}));
    switch (draw_.below(4)) {
      case 0:
        for (EdgeTensor& each : node_.operands) each.shape.insert(each.shape.begin(), more, 1);
        return;
      case 1:
        one.shape.insert(one.shape.begin(), more, 1);
        return;
      case 2:
        if (!one.shape.empty()) one.shape.erase(one.shape.begin());
        return;
      default:
        for (EdgeTensor& each : node_.operands) {
          if (!each.shape.empty()) each.shape.erase(each.shape.begin());
        }
    }
  }

  /// An optional operand is left out, or a number stands for the second one.
  void missing() {
    const OpInfo* info = find_op(node_.op);
    const std::size_t last = node_.operands.size() - 1;
    if (info == nullptr || last == 0 || last >= info->schema.arguments.size()) return;
    const SchemaArgument& argument = info->schema.arguments[last];
    if (argument.type != ArgumentType::kTensor) return;
    node_.operands.pop_back();
    if (!argument.optional) node_.attrs[argument.name] = draw_.one_of<Json>({1, 2, 0.5, true});
  }

  void attribute() {
    const OpInfo* info = find_op(node_.op);
    if (info == nullptr) return;
    std::vector<const SchemaArgument*> values;
    for (const SchemaArgument& argument : info->schema.arguments) {
      const bool is_tensor = argument.type == ArgumentType::kTensor ||
                             argument.type == ArgumentType::kTensorList ||
                             argument.type == ArgumentType::kOptionalTensorList;
      if (!is_tensor) values.push_back(&argument);
    }
    if (values.empty()) return;
    const SchemaArgument& argument = *draw_.one_of(values);
    Json now;
    if (argument.default_value) now = *argument.default_value;
    if (node_.attrs.contains(argument.name)) now = node_.attrs[argument.name];
    std::vector<Json> pool;
    add_bounds(table_, node_.op, argument.name, pool);
    if (pool.empty() || draw_.one_in(2)) pool.push_back(value(argument, now));
    if (argument.optional && draw_.one_in(3)) pool = {nullptr};
    node_.attrs[argument.name] = draw_.one_of(pool);
  }

  Json value(const SchemaArgument& argument, const Json& now) {
    const std::vector<Json> integers{0, 1, 2, 3, -1, -2, 5};
    if (const auto texts = kTexts.find(argument.name); texts != kTexts.end() && now.is_string()) {
      return draw_.one_of(texts->second);
    }
    switch (argument.type) {
      case ArgumentType::kBool:
        return draw_.one_in(2);
      case ArgumentType::kDType:
        return "torch." + std::string(dtype_name(draw_.one_of(kDTypes)));
      case ArgumentType::kInt:
        return argument.name == "groups" ? Json(1 + draw_.below(3)) : draw_.one_of(integers);
      case ArgumentType::kScalar:
      case ArgumentType::kFloat:
        return draw_.one_of<Json>({0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 20, 25.5, 1e-4, 255, 1e10,
                                   "inf", "-inf", "nan", true});
      case ArgumentType::kIntList: {
        if (!now.is_array() || now.empty()) return Json::array({draw_.one_of(integers)});
        if (draw_.one_in(6)) return Json::array();
        Json list = now;
        list[static_cast<std::size_t>(draw_.below(std::ssize(list)))] = draw_.one_of(integers);
        return list;
      }
      default:
        return now;
    }
  }

  EdgeNode& node_;
  const Device& table_;
  Draw& draw_;
};

// ---- The comparison ----

std::int64_t edge_setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

std::shared_ptr<DeviceInstance> opened(const std::string& backend) {
  ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1);
  return DeviceInstance::open(Backend::load(backend), R"({"threads": 1})");
}

/// What tables leave to other devices though the backend takes it; there it is computed as well.
/// The other way round, a model would not compile.
bool is_left_out(const std::string& device, const std::string& op, const std::string& reason) {
  const auto starts = [](const std::string& text, std::initializer_list<const char*> with) {
    return std::any_of(with.begin(), with.end(),
                       [&](const char* each) { return text.starts_with(each); });
  };
  if (starts(reason, {"mixed dtypes", "cast"})) return true;
  // Not every device of OpenCL has float64; of other dtypes there are those that models use.
  if (device == "gpu")
    return starts(
        reason, {"dtype ", "empty tensor", "rank ", "attribute accumulate", "attribute exponent"});
  return starts(reason, {"dtype ", "scalar operand"}) &&
         starts(op,
                {"aten.arange.", "aten.clamp", "aten.linspace.", "aten.masked_fill",
                 "aten.maximum.", "aten.minimum.", "aten.scatter_add.", "aten.where.", "aten.add_.",
                 "aten.sub_.", "aten.mul_.", "aten.div_.", "quantized_decomposed."});
}

/// "" if table and backend say the same of the node.
std::string disagreement(const EdgeNode& node, const Device& table, DeviceInstance& backend) {
  const Question question(node);
  const SupportResult claimed = check_support(question.graph, NodeId{0}, table);
  NodeAnswer taken;
  try {
    taken = backend.check(question.sub_ir, 1, "{}").nodes.at(0);
  } catch (const BackendError& error) {
    taken = {.ok = false, .reason = error.what(), .group = {}};
  }
  if (claimed.supported == taken.ok) return "";
  // libtorch 1.13 takes a source whose rows are not those of self, which PyTorch does not.
  if (taken.reason.ends_with("its source does not fit")) return "";
  if (!taken.ok) return node.op + ": refused: " + taken.reason;
  if (is_left_out(table.name, node.op, claimed.reason)) return "";
  return node.op + ": not claimed: " + claimed.reason;
}

/// Of a device's table and its backend, each kind once, with a document.
std::map<std::string, std::string> disagreements(const std::string& target_name,
                                                 const std::string& device,
                                                 DeviceInstance& backend) {
  const Target target = load_target(target_name);
  const Device& table = *target.find_device(device);
  const auto cpu = opened("aten");
  Bases corpus = corpus_nodes();
  std::set<std::string> ops;
  for (const auto& [op, rules] : table.rules_by_type) ops.insert(op);
  backend.list_ops([&](std::string_view op, std::string_view) { ops.emplace(op); });
  const std::int64_t count = edge_setting("NPU_EDGE_NODES", 10);
  Draw draw(static_cast<std::uint64_t>(edge_setting("NPU_EDGE_SEED", 1)));
  std::map<std::string, std::string> kinds;
  for (const std::string& op : ops) {
    // Made by passes; and such whose operands' values count, which who is asked does not see.
    if (op.starts_with("npu.") || op.find("_per_tensor.tensor") != std::string::npos) continue;
    const OpInfo* info = find_op(op);
    std::vector<EdgeNode> bases = corpus[op];
    if (bases.empty() && info != nullptr && info->is_in_place) {
      std::string functional = op;
      functional.erase(op.rfind('.') - 1, 1);
      bases = corpus[functional];
      for (EdgeNode& each : bases) each.op = op;
    }
    if (bases.empty() && info != nullptr) bases.push_back(plain_node(*info));
    constexpr std::size_t kMostParts = 33;  // a node may state fewer results than it has parts
    const bool gives_parts = op.find("split") != std::string::npos ||
                             op.find("chunk.") != std::string::npos ||
                             op.find("unbind") != std::string::npos;
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count && !bases.empty(); ++i) {
      EdgeNode node = bases[static_cast<std::size_t>(i) % bases.size()];
      if (gives_parts) node.results.resize(kMostParts);
      if (node.results.empty()) {
        node.results.resize(info == nullptr ? 1
                                            : static_cast<std::size_t>(info->schema.result_count));
      }
      for (std::int64_t changes = i == 0 ? 0 : 1 + draw.below(2); changes > 0; --changes) {
        Change(node, table, draw).apply();
      }
      try {
        if (!find_results(node, *cpu)) continue;
      } catch (const std::exception&) {
        continue;
      }
      ++found;
      std::string kind = disagreement(node, table, backend);
      if (!kind.empty()) kinds.emplace(std::move(kind), node.document());
    }
    if (found == 0) kinds.emplace(op + ": no node", "");
  }
  return kinds;
}

void check_none(const std::map<std::string, std::string>& kinds) {
  for (const auto& [kind, document] : kinds) {
    INFO(document);
    FAIL_CHECK(kind);
  }
  CHECK(kinds.empty());
}

}  // namespace

TEST_CASE("the npu table and the onednn backend agree at the edges of rules", "[edges]") {
  check_none(disagreements("host", "npu", *opened("onednn")));
}

TEST_CASE("the gpu table and the opencl backend agree at the edges of rules", "[edges]") {
  std::shared_ptr<DeviceInstance> backend;
  try {
    backend = opened("opencl");
  } catch (const Error& error) {
    WARN("left out: " << error.what());
    return;
  }
  check_none(disagreements("opencl", "gpu", *backend));
}

}  // namespace npu
