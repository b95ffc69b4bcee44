// SPDX-License-Identifier: Apache-2.0
// Blobs of the onednn backend: one is refused, or it loads and runs. The content of a blob depends
// on the CPU, so an input is a list of edits to a blob that is compiled here: five bytes each, a
// position (32 bits, little endian, modulo the size; its upper two bits say of what: 0 or 1 the
// blob, 2 the header, 3 the plan) and the byte to put there. After "CUT" four bytes say where the
// edited blob ends; after "NUM" the fifth byte of an edit is the index of a number of 64 bits that
// is put into the plan, as its counts, sizes and offsets are; after "RAW" the rest of the input is
// the blob itself. After "IR:" the rest is a sub-IR, which is compiled: a blob no longer holds one,
// so this is where shapes can be stated that the operands do not give.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend_calls.hpp"
#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

namespace {

constexpr std::size_t kHeader = 72;

using npu::test::CallError;

const npu::test::BackendCalls& api() {
  static const npu::test::BackendCalls loaded(NPU_TEST_BACKEND_DIR "/npu_backend_onednn.so");
  return loaded;
}

npu_device* device() {
  static npu_device* const opened = [] {
    npu_device* made = nullptr;
    CallError error;
    require(api().open_device(1, nullptr, &made, &error) == NPU_OK, error.text);
    return made;
  }();
  return opened;
}

/// A text of npu-ir: nodes with their operands.
class Model {
 public:
  Model& tensor(const std::string& name, const std::string& shape, const char* type = "float32") {
    tensors_[name] =
        R"({"name":")" + name + R"(","shape":)" + shape + R"(,"dtype":")" + type + "\"}";
    return *this;
  }
  Model& node(const std::string& result, const std::string& op,
              const std::vector<std::string>& operands, const std::string& attributes = "") {
    std::string list;
    for (const std::string& operand : operands) {
      list += (list.empty() ? "" : ",") + tensors_.at(operand);
    }
    nodes_ += (nodes_.empty() ? "" : ",") + (R"({"name":")" + result + R"(","op_type":"aten.)") +
              op + R"(","inputs":[)" + list + R"(],"outputs":[)" + tensors_.at(result) +
              R"(],"attrs":{)" + attributes + "}}";
    return *this;
  }
  std::string text(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const std::vector<std::string>& weights) const {
    std::string mapping;
    for (const std::string& weight : weights) {
      mapping += (mapping.empty() ? "\"" : ",\"") + weight + "\":\"" + weight + "\"";
    }
    return R"({"model_name":"m","graph_inputs":[)" + joined(inputs) + R"(],"graph_outputs":[)" +
           joined(outputs) + R"(],"weights":[)" + joined(weights) + R"(],"weight_name_mapping":{)" +
           mapping + R"(},"nodes":[)" + nodes_ + "]}";
  }

 private:
  std::string joined(const std::vector<std::string>& names) const {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ",") + tensors_.at(name);
    return list;
  }
  std::map<std::string, std::string> tensors_;
  std::string nodes_;
};

/// Primitives and kernels of many kinds: convolutions (direct, Winograd), pooling, an epilogue,
/// concatenation, norms, products (GEMV, batched), attention, softmax, copies, rows by index.
const std::string& model_text() {
  static const std::string text = [] {
    Model model;
    model.tensor("x", "[1,3,10,10]").tensor("i", "[4]", "int64").tensor("t", "[1,2,4,8]");
    model.tensor("w", "[16,3,3,3]").tensor("u", "[16,16,3,3]").tensor("v", "[2,256]");
    model.tensor("e", "[7,8]").tensor("n", "[8]");
    model.tensor("a", "[1,16,8,8]").tensor("b", "[1,16,8,8]").tensor("c", "[1,16,8,8]");
    model.tensor("d", "[1,16,4,4]").tensor("f", "[1,256]").tensor("z", "[1,2]");
    model.tensor("g", "[4,8]").tensor("h", "[4,8]").tensor("j", "[8,4]").tensor("k", "[4,4]");
    model.tensor("l", "[4,12]").tensor("m", "[4,12]").tensor("o", "[1,2,4,8]");
    model.tensor("p", "[4,8]").tensor("q", "[4,12]");
    model.node("a", "conv2d.default", {"x", "w"})
        .node("b", "conv2d.default", {"a", "u"}, R"("padding":[1,1])")
        .node("c", "relu.default", {"b"})
        .node("d", "max_pool2d.default", {"c"}, R"("kernel_size":[2,2])")
        .node("f", "view.default", {"d"}, R"("size":[1,256])")
        .node("z", "linear.default", {"f", "v"})
        .node("g", "embedding.default", {"e", "i"})
        .node("h", "layer_norm.default", {"g", "n"}, R"("normalized_shape":[8])")
        .node("j", "permute.default", {"h"}, R"("dims":[1,0])")
        .node("k", "matmul.default", {"h", "j"})
        .node("p", "gelu.default", {"h"})
        .node("l", "cat.default", {"k", "p"}, R"("dim":1)")
        .node("m", "softmax.int", {"l"}, R"("dim":1)")
        .node("q", "tanh.default", {"m"})
        .node("o", "scaled_dot_product_attention.default", {"t", "t", "t"});
    return model.text({"x", "i", "t"}, {"z", "q", "o"}, {"w", "u", "v", "e", "n"});
  }();
  return text;
}

/// Its weights, all with the same data, which has to be as long as the longest.
std::vector<npu_tensor> weights_of(const npu::Graph& graph, const std::vector<float>& values) {
  std::vector<npu_tensor> weights;
  for (const npu::TensorInfo& info : graph.tensors()) {
    if (info.kind != npu::TensorKind::kWeight) continue;
    weights.push_back(npu::test::tensor_view(info.name.c_str(), static_cast<npu_dtype>(info.dtype),
                                             info.shape, values.data(),
                                             static_cast<std::uint64_t>(info.bytes())));
  }
  return weights;
}

/// A sub-IR is refused with a reason, or gives a blob. It is what libcore has verified, so a text
/// that is no graph at all says nothing here.
void compile(const std::string& text) {
  constexpr std::int64_t kMostBytes = 1 << 16;
  npu::Graph graph;
  try {
    graph = npu::read_valid_graph(text, "sub-IR");
  } catch (const npu::Error&) {
    return;
  }
  for (const npu::TensorInfo& info : graph.tensors()) {
    if (info.kind == npu::TensorKind::kWeight && info.bytes() > kMostBytes) return;
  }
  const std::vector<float> values(kMostBytes / sizeof(float), 0.25F);
  const std::vector<npu_tensor> weights = weights_of(graph, values);
  std::string made;
  CallError error;
  const npu_status status = api().compile(device(), text, weights, "{}", &made, &error);
  require(status == NPU_OK || error.text[0] != '\0', "errors say what");
}

const std::string& compiled() {
  static const std::string blob = [] {
    const npu::Graph graph = npu::read_valid_graph(model_text(), "model");
    const std::vector<float> values(16 * 16 * 9, 0.25F);
    std::string made;
    CallError error;
    require(api().compile(device(), model_text(), weights_of(graph, values), "{}", &made, &error) ==
                NPU_OK,
            error.text);
    return made;
  }();
  return blob;
}

std::uint32_t number(const std::uint8_t* data) {
  return data[0] | static_cast<std::uint32_t>(data[1]) << 8 |
         static_cast<std::uint32_t>(data[2]) << 16 | static_cast<std::uint32_t>(data[3]) << 24;
}

std::uint64_t header_number(const std::string& blob, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, blob.data() + offset, sizeof value);
  return value;
}

/// Numbers at which checks of counts, sizes and offsets may break.
constexpr std::uint64_t kNumbers[]{
    0,          1,          2,          3,          4,          8,          15,
    16,         17,         31,         63,         64,         65,         100,
    255,        256,        1024,       4096,       65536,      1U << 20,   0x7FFFFFFF,
    0x80000000, 1ULL << 32, 1ULL << 40, 1ULL << 46, 1ULL << 47, 1ULL << 60, 1ULL << 62,
    1ULL << 63, ~0ULL >> 1, ~0ULL,      ~0ULL - 1,  ~0ULL - 63};

std::string edited(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("RAW")) return std::string(text.substr(3));
  std::string blob = compiled();
  const std::size_t plan = header_number(blob, 24);
  const std::size_t plan_size = header_number(blob, 32);
  const bool puts_numbers = text.starts_with("NUM");
  std::size_t end = blob.size();
  std::size_t at = puts_numbers ? 3 : 0;
  if (text.starts_with("CUT") && size >= 7) {
    end = number(data + 3) % (blob.size() + 1);
    at = 7;
  }
  for (; at + 5 <= size; at += 5) {
    const std::uint32_t position = number(data + at);
    const std::uint32_t where = position >> 30;
    const std::uint32_t offset = where < 2 ? position : position & 0x3FFFFFFFU;
    if (puts_numbers) {
      const std::uint64_t value = kNumbers[data[at + 4] % std::size(kNumbers)];
      std::memcpy(blob.data() + plan + offset % (plan_size - sizeof value), &value, sizeof value);
    } else if (where < 2) {
      blob[offset % blob.size()] = static_cast<char>(data[at + 4]);
    } else if (where == 2) {
      blob[offset % kHeader] = static_cast<char>(data[at + 4]);
    } else {
      blob[plan + offset % plan_size] = static_cast<char>(data[at + 4]);
    }
  }
  blob.resize(end);
  return blob;
}

npu_buffer* make_buffer(const npu::TensorInfo& info) {
  npu_buffer* buffer = nullptr;
  CallError error;
  require(api().create_buffer(device(), static_cast<npu_dtype>(info.dtype), info.shape, &buffer,
                              &error) == NPU_OK,
          error.text);
  return buffer;
}

/// Runs a loaded program on zeros of the shapes that the model states.
void run(npu_program* program) {
  static const npu::Graph graph = npu::read_valid_graph(model_text(), "model");
  std::vector<npu_buffer*> inputs;
  std::vector<npu_buffer*> outputs;
  for (const npu::TensorId id : graph.graph_inputs()) {
    inputs.push_back(make_buffer(graph.tensor(id)));
    void* data = api().map(inputs.back());
    require(data != nullptr, "the memory of the backend is the host's");
    std::memset(data, 0, static_cast<std::size_t>(graph.tensor(id).bytes()));
  }
  for (const npu::TensorId id : graph.graph_outputs()) {
    outputs.push_back(make_buffer(graph.tensor(id)));
  }
  CallError error;
  const npu_status status = api().run(program, inputs, outputs, &error);
  require(status == NPU_OK || error.text[0] != '\0', "errors say what");
  for (npu_buffer* buffer : inputs) api()->buffer_free(buffer);
  for (npu_buffer* buffer : outputs) api()->buffer_free(buffer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("IR:")) {
    compile(std::string(text.substr(3)));
    return 0;
  }
  const std::string blob = edited(data, size);
  CallError error;
  std::string report;
  api().blob_report(device(), blob, &report, &error);
  npu_model* model = nullptr;
  if (api().load(device(), blob, {}, &model, &error) != NPU_OK) {
    require(error.text[0] != '\0', "errors say what");
    require(model == nullptr, "a refused blob gives no model");
    return 0;
  }
  npu_program* program = nullptr;
  if (api().create_program(model, &program, &error) == NPU_OK) {
    run(program);
  } else {
    require(error.text[0] != '\0', "errors say what");
    require(program == nullptr, "a refused program is none");
  }
  api()->program_free(program);
  api()->model_free(model);
  return 0;
}
