// SPDX-License-Identifier: Apache-2.0
// Cases of compile and of blobs: what is refused and how, malformed sub-IRs, the same bytes for the
// same arguments, and damage.
#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "conformance/cases/cases.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {
namespace {

// Whether it can be run all the same.
bool runs(const Harness& harness, const GraphSpec& graph, const std::string& blob) {
  Findings ignored;
  const Harness quiet(harness.library, ignored, harness.quick);
  try {
    const Instance instance = make_instance(quiet, quiet.open(), graph, blob);
    auto error = sized<npu_error>();
    return run(quiet, instance, error) == NPU_OK;
  } catch (const CaseStopped&) {
    return false;
  }
}

// Not taken, and by name: what a device does not run must not be computed wrongly.
void expect_refused(const Harness& harness, npu_device* device, const GraphSpec& graph,
                    const std::string& what) {
  const Compiled compiled = harness.compile(device, graph);
  if (compiled.status == NPU_OK && (harness.library.flags & NPU_ANY_OP) != 0) {
    // Such a backend looks at shapes when it runs.
    harness.found.expect(!runs(harness, graph, compiled.blob), what + " compiles and runs");
    return;
  }
  harness.found.expect(
      compiled.status == NPU_UNSUPPORTED || compiled.status == NPU_INVALID,
      "compile of " + what + " gives " + status_name(compiled.status) + ", expected UNSUPPORTED");
  if (compiled.status == NPU_OK) return;
  const std::string& name = graph.nodes.back().name;
  const std::string node(compiled.error.node, ::strnlen(compiled.error.node, 256));
  const std::string text(compiled.error.text, ::strnlen(compiled.error.text, 1024));
  harness.found.expect(node == name || text.find(name) != std::string::npos,
                       "compile of " + what + " does not name the node: " + text);
}

TensorSpec named(const std::string& name, DType dtype, Shape shape) {
  return {name, dtype, std::move(shape)};
}

constexpr const char* kUnaryOps[] = {"aten.relu.default", "aten.neg.default", "aten.abs.default"};
constexpr const char* kBinaryOps[] = {"aten.add.Tensor", "aten.mul.Tensor"};

GraphSpec good_node(const char* op, DType dtype) {
  std::vector<TensorSpec> operands{named("x", dtype, {3, 5})};
  if (std::find(std::begin(kBinaryOps), std::end(kBinaryOps), op) != std::end(kBinaryOps)) {
    operands.push_back(named("y", dtype, {3, 5}));
  }
  return one_node(op, operands, named("node_at_fault", dtype, {3, 5}));
}

/// An op in a dtype.
using TypedOp = std::pair<const char*, DType>;

/// Which of them compile. All side by side first, and halves of what is refused, since drivers take
/// longer to begin a program than to compile a kernel of it.
std::set<TypedOp> compiled_ops(const Harness& harness, npu_device* device,
                               const std::vector<TypedOp>& ops) {
  std::set<TypedOp> taken;
  std::vector<std::span<const TypedOp>> open{ops};
  while (!open.empty()) {
    const std::span<const TypedOp> some = open.back();
    open.pop_back();
    if (some.empty()) continue;
    std::vector<GraphSpec> graphs;
    for (const auto& [op, dtype] : some) graphs.push_back(good_node(op, dtype));
    if (harness.compile(device, side_by_side(graphs)).status == NPU_OK) {
      taken.insert(some.begin(), some.end());
    } else if (some.size() > 1) {
      open.push_back(some.subspan(some.size() / 2));
      open.push_back(some.first(some.size() / 2));
    }
  }
  return taken;
}

std::set<TypedOp> compiled_ops(const Harness& harness, npu_device* device) {
  std::vector<TypedOp> ops;
  for (const DType dtype : harness.facts().dtypes) {
    for (const char* op : kUnaryOps) ops.emplace_back(op, dtype);
    for (const char* op : kBinaryOps) ops.emplace_back(op, dtype);
  }
  return compiled_ops(harness, device, ops);
}

// Relu and add are what most devices have; an op that is not compiled at all says nothing.
void check_wrong_shapes(const Harness& harness, npu_device* device, DType dtype,
                        const std::set<TypedOp>& compiled) {
  const auto x = named("x", dtype, {3, 5});
  const auto y = named("y", dtype, {3, 5});
  const auto good = named("node_at_fault", dtype, {3, 5});
  for (const char* op : kUnaryOps) {
    if (!compiled.contains({op, dtype})) continue;
    const std::string what(op);
    const auto other = named("node_at_fault", dtype, {3, 4});
    expect_refused(harness, device, one_node(op, {x}, other), what + " with a shorter result");
    expect_refused(harness, device, one_node(op, {x}, named("node_at_fault", dtype, {300, 500})),
                   what + " with a much larger result");
    expect_refused(harness, device, one_node(op, {x, y}, good), what + " with two operands");
    expect_refused(harness, device, one_node(op, {}, good), what + " without operands");
    const DType wrong = dtype == DType::kInt64 ? DType::kInt32 : DType::kInt64;
    expect_refused(harness, device, one_node(op, {x}, named("node_at_fault", wrong, {3, 5})),
                   what + " with a result of another dtype");
  }
  for (const char* op : kBinaryOps) {
    if (!compiled.contains({op, dtype})) continue;
    const std::string what(op);
    const auto short_y = named("y", dtype, {3, 4});
    expect_refused(harness, device, one_node(op, {x, short_y}, good),
                   what + " of [3, 5] and [3, 4]");
    const auto row = named("y", dtype, {3});
    expect_refused(harness, device, one_node(op, {x, row}, good), what + " of [3, 5] and [3]");
    const auto shorter = named("node_at_fault", dtype, {3, 4});
    expect_refused(harness, device, one_node(op, {x, y}, shorter), what + " with a shorter result");
    expect_refused(harness, device, one_node(op, {x}, good), what + " with one operand");
    expect_refused(harness, device, one_node(op, {x, y, named("z", dtype, {3, 5})}, good),
                   what + " with three operands");
  }
}

/// An attribute that an op has means something: what a device does not heed it refuses.
void check_attributes(const Harness& harness, npu_device* device, DType dtype) {
  const auto x = named("x", dtype, {3, 5});
  const auto y = named("y", dtype, {3, 5});
  const auto sum = named("node_at_fault", dtype, {3, 5});
  const GraphSpec scaled = one_node("aten.add.Tensor", {x, y}, sum, {{"alpha", 3}});
  const Compiled compiled = harness.compile(device, scaled);
  if (compiled.status == NPU_OK) {
    const Instance instance = make_instance(harness, harness.open(), scaled, compiled.blob);
    const Tensor actual = run_and_read(harness, instance).front();
    Tensor expected(dtype, sum.shape);
    for (std::int64_t i = 0; i < expected.element_count(); ++i) {
      set_element(
          expected, i,
          instance.inputs[0].value_as_double(i) + 3 * instance.inputs[1].value_as_double(i));
    }
    harness.found.expect(compare_tensors(actual, expected, tolerance_of(dtype)).ok,
                         "an add with an alpha of 3 compiles and gives other values than x + 3 y");
  } else {
    expect_refused(harness, device, scaled, "an add with an alpha of 3");
  }
  if (harness.compile(device, one_node("aten.add.Tensor", {x, y}, sum)).status == NPU_OK) {
    expect_refused(harness, device, one_node("aten.add.Tensor", {x, y}, sum, {{"alpha", "three"}}),
                   "an add whose alpha is a text");
  }
  if (harness.compile(device, one_node("aten.softmax.int", {x}, sum, {{"dim", 1}})).status ==
      NPU_OK) {
    expect_refused(harness, device, one_node("aten.softmax.int", {x}, sum, {{"dim", 5}}),
                   "a softmax along dimension 5 of 2");
  }
}

/// More dimensions than most devices have: taken and computed, or refused.
void check_high_rank(const Harness& harness, npu_device* device, DType dtype) {
  const Shape shape{1, 2, 1, 2, 1, 2, 1, 1, 2, 1, 1, 2};
  const GraphSpec graph = one_node("aten.relu.default", {named("x", dtype, shape)},
                                   named("node_at_fault", dtype, shape));
  const Compiled compiled = harness.compile(device, graph);
  if (compiled.status != NPU_OK) {
    expect_refused(harness, device, graph, "relu of 12 dimensions");
    return;
  }
  const Instance instance = make_instance(harness, harness.open(), graph, compiled.blob);
  const Tensor actual = run_and_read(harness, instance).front();
  bool is_right = true;
  for (std::int64_t i = 0; i < actual.element_count(); ++i) {
    const double value = instance.inputs.front().value_as_double(i);
    is_right = is_right && actual.value_as_double(i) == (value < 0 ? 0 : value);
  }
  harness.found.expect(is_right, "relu of 12 dimensions compiles and gives other values");
}

}  // namespace

void check_refusals(const Harness& harness) {
  const DevicePtr device = harness.open();
  const auto& dtypes = harness.facts().dtypes;
  const DType dtype = dtypes.empty() ? DType::kFloat32 : dtypes.front();
  const auto x = named("x", dtype, {3, 5});
  expect_refused(harness, device.get(),
                 one_node("check.no_such_op.default", {x}, named("node_at_fault", dtype, {3, 5})),
                 "an op that does not exist");
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto other = static_cast<DType>(i);
    if (std::find(dtypes.begin(), dtypes.end(), other) != dtypes.end()) continue;
    expect_refused(
        harness, device.get(),
        one_node("aten.relu.default", {named("x", other, {3})}, named("node_at_fault", other, {3})),
        "relu of " + std::string(dtype_name(other)) + ", which the device does not list");
  }
  const std::set<TypedOp> compiled = compiled_ops(harness, device.get());
  for (const DType listed : dtypes) check_wrong_shapes(harness, device.get(), listed, compiled);
  // Of one dtype, since a driver may take a second for each kernel.
  const auto real = std::find_if(dtypes.begin(), dtypes.end(),
                                 [](DType each) { return is_floating_point(each); });
  if (real == dtypes.end()) return;
  check_attributes(harness, device.get(), *real);
  check_high_rank(harness, device.get(), *real);
}

namespace {

void expect_invalid(const Harness& harness, npu_device* device, const std::string& text,
                    const std::string& what) {
  const Compiled compiled = harness.compile(device, text);
  harness.found.expect(
      compiled.status == NPU_INVALID,
      "compile of " + what + " gives " + status_name(compiled.status) + ", not INVALID");
}

// A correct document with one fault each.
struct Fault {
  const char* what;
  void (*make)(Json& document);
};

const Fault kFaults[] = {
    {"a sub-IR of another version", [](Json& document) { document["ir_version"] = 1000; }},
    {"a sub-IR whose version is a text", [](Json& document) { document["ir_version"] = "1"; }},
    {"a sub-IR without nodes", [](Json& document) { document.erase("nodes"); }},
    {"a sub-IR whose nodes are an object",
     [](Json& document) { document["nodes"] = Json::object(); }},
    {"a sub-IR with a node that is a number",
     [](Json& document) { document["nodes"].push_back(5); }},
    {"a node without an op", [](Json& document) { document["nodes"][0].erase("op_type"); }},
    {"a node whose inputs are null",
     [](Json& document) { document["nodes"][0]["inputs"] = nullptr; }},
    {"a tensor of an unknown dtype",
     [](Json& document) { document["graph_inputs"][0]["dtype"] = "float31"; }},
    {"a tensor with a negative extent",
     [](Json& document) {
       document["graph_inputs"][0]["shape"][0] = -3;
       document["nodes"][0]["inputs"][0]["shape"][0] = -3;
     }},
    {"a tensor with an extent that is a text",
     [](Json& document) { document["graph_inputs"][0]["shape"][0] = "n"; }},
    {"a tensor of more bytes than there are",
     [](Json& document) {
       const Json shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       document["graph_inputs"][0]["shape"] = shape;
       document["nodes"][0]["inputs"][0]["shape"] = shape;
     }},
    {"a node that reads what nothing produces",
     [](Json& document) {
       document["nodes"][0]["inputs"][0]["name"] = "ghost";
       document["nodes"][0]["inputs"][0].erase("producer_node");
     }},
    {"a node that reads its own result",
     [](Json& document) {
       Json& node = document["nodes"][0];
       node["inputs"][0] = node["outputs"][0];
     }},
    {"two tensors of one name",
     [](Json& document) { document["graph_inputs"].push_back(document["graph_inputs"][0]); }},
    {"a graph output that nothing produces",
     [](Json& document) { document["graph_outputs"][0]["name"] = "ghost"; }}};

}  // namespace

void check_malformed_sub_irs(const Harness& harness) {
  const Instance sample = make_sample(harness);
  npu_device* device = sample.device.get();
  const std::string text = sub_ir_text(sample.graph);
  const std::size_t places = harness.quick ? 16 : 64;
  const std::size_t end = text.find_last_of('}');
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t size = end * i / places;
    expect_invalid(harness, device, text.substr(0, size),
                   "a sub-IR cut after " + std::to_string(size) + " bytes");
  }
  for (const Fault& fault : kFaults) {
    Json document = sub_ir_json(sample.graph);
    fault.make(document);
    expect_invalid(harness, device, write_document(document), fault.what);
  }
  expect_invalid(harness, device, "[[[[[[[[[[", "brackets");
  expect_invalid(harness, device, std::string(100000, '['), "100000 brackets");
  harness.found.expect(!run_and_read(harness, sample).empty(), "the model no longer runs");
}

void check_same_blob(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const Compiled again = harness.compile_with(
      sample.device.get(), sample.graph, [](npu_compile_args& args) { args.progress = nullptr; });
  harness.found.require(again.status == NPU_OK, "a second compile fails");
  const bool is_same = again.blob == sample.blob;
  const bool is_promised = (harness.library.flags & NPU_DETERMINISTIC) != 0;
  if (is_promised) harness.found.note(sample.blob);
  harness.found.expect(is_same || !is_promised,
                       "the same arguments compile to other bytes, but NPU_DETERMINISTIC is set");
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const Instance other = make_instance(harness, harness.open(), sample.graph, again.blob);
  harness.found.expect(same_bits(run_and_read(harness, other), expected),
                       "the second blob computes other values");
}

namespace {

// Loads a blob that may be damaged, and runs what comes of it: any values, but no crash.
npu_status try_blob(const Harness& harness, const Instance& sample, const std::string& blob) {
  const bool holds_weights = (harness.library.flags & NPU_BLOB_HOLDS_WEIGHTS) != 0;
  LoadedModel model(harness.api, blob,
                    holds_weights ? std::vector<WeightSpec>() : sample.graph.weights);
  auto error = sized<npu_error>();
  const npu_status status = model.load(sample.device.get(), error);
  harness.check_error(status, error, "model_load of a damaged blob");
  if (status != NPU_OK) return status;
  const auto args = sized<npu_program_args>();
  npu_program* program = nullptr;
  if (harness.api.program_create(model.get(), &args, &program, &error) != NPU_OK) return status;
  const ProgramPtr owned(program, harness.api.program_free);
  const std::vector<npu_buffer*> inputs = sample.input_handles();
  const std::vector<npu_buffer*> outputs = sample.output_handles();
  const npu_run_args with = run_args(inputs, outputs);
  harness.api.run(program, &with, &error);
  return status;
}

bool is_refusal(npu_status status) { return status == NPU_INVALID || status == NPU_INCOMPATIBLE; }

/// Where a blob names an architecture: as a string in quotes or between bytes that are no text, not
/// as a part of another name such as "jit:avx2".
std::size_t find_arch(const std::string& blob, const std::string& arch) {
  const auto ends_name = [&](std::size_t at) {
    const auto byte = at < blob.size() ? static_cast<unsigned char>(blob[at]) : 0;
    return byte == '"' || byte < 0x20 || byte >= 0x7F;
  };
  std::size_t at = arch.empty() ? std::string::npos : blob.find(arch);
  while (at != std::string::npos &&
         !((at == 0 || ends_name(at - 1)) && ends_name(at + arch.size()))) {
    at = blob.find(arch, at + 1);
  }
  return at;
}

/// A blob that names the device's architecture, with another name of the same length in its place.
void check_other_arch(const Harness& harness, const Instance& sample) {
  const std::string& arch = harness.facts().arch;
  std::string other = sample.blob;
  const std::size_t at = find_arch(other, arch);
  if (at == std::string::npos) return;
  other.replace(at, arch.size(), std::string(arch.size(), 'z'));
  const npu_status status = try_blob(harness, sample, other);
  harness.found.expect(is_refusal(status), "a blob for another arch than '" + arch + "' gives " +
                                               status_name(status) + ", not INCOMPATIBLE");
  if (harness.api.blob_check == nullptr) return;
  auto verdict = sized<npu_blob_verdict>();
  auto error = sized<npu_error>();
  const npu_status checked =
      harness.api.blob_check(sample.device.get(), other.data(), other.size(), &verdict, &error);
  harness.check_error(checked, error, "blob_check of a blob for another arch");
  harness.found.expect(
      checked == NPU_INVALID || (checked == NPU_OK && verdict.verdict == NPU_BLOB_OTHER),
      "blob_check takes a blob for another arch");
}

}  // namespace

void check_damaged_blobs(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::string& blob = sample.blob;
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t size = blob.size() * i / 64;
    const npu_status status = try_blob(harness, sample, blob.substr(0, size));
    harness.found.expect(is_refusal(status), "a blob cut from " + std::to_string(blob.size()) +
                                                 " to " + std::to_string(size) + " bytes gives " +
                                                 status_name(status) + ", not INVALID");
  }
  std::mt19937_64 random(7);
  const int flips = harness.quick ? 100 : 1000;
  for (int i = 0; i < flips; ++i) {
    std::string damaged = blob;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    const npu_status status = try_blob(harness, sample, damaged);
    harness.found.expect(
        status == NPU_OK || is_refusal(status) || status == NPU_UNSUPPORTED || status == NPU_MEMORY,
        "a blob with a changed byte gives " + status_name(status));
  }
  check_other_arch(harness, sample);
  std::string noise(4096, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  harness.found.expect(is_refusal(try_blob(harness, sample, noise)), "noise is taken for a blob");
  harness.found.expect(is_refusal(try_blob(harness, sample, std::string(4096, '\0'))),
                       "zeros are taken for a blob");
  harness.found.expect(same_bits(run_and_read(harness, sample), expected),
                       "the undamaged model gives other values afterwards");
}

}  // namespace npu::conformance
