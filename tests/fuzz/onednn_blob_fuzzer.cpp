// SPDX-License-Identifier: Apache-2.0
// Blobs of the onednn backend: one is refused, or it loads and runs. The content of a blob depends
// on the CPU, so an input is a list of edits to a blob that is compiled here: five bytes each, a
// position (32 bits, little endian, modulo the size; the upper half of the range counts within the
// header) and the byte to put there. After "CUT" four bytes say where the edited blob ends; after
// "RAW" the rest of the input is the blob itself.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_check.hpp"
#include "npu/backend.h"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"

using npu::fuzz::require;

namespace {

constexpr std::size_t kHeader = 80;

const npu_backend_api& api() {
  static const npu_backend_api* const loaded = [] {
    void* library = dlopen(NPU_TEST_BACKEND_DIR "/npu_backend_onednn.so", RTLD_NOW | RTLD_LOCAL);
    require(library != nullptr, "the backend can be opened");
    using Entry = const npu_backend_api* (*)(std::uint32_t);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, NPU_BACKEND_ENTRY_NAME));
    return entry(NPU_BACKEND_ABI_VERSION);
  }();
  return *loaded;
}

npu_device* device() {
  static npu_device* const opened = [] {
    npu_device* made = nullptr;
    npu_error error{};
    require(api().open_device(R"({"threads":1})", &made, &error) == NPU_OK, error.text);
    return made;
  }();
  return opened;
}

constexpr std::string_view kModel = R"({
"model_name":"m","graph_inputs":[{"name":"x","shape":[1,3,6,6],"dtype":"float32"}],
"graph_outputs":[{"name":"z","shape":[1,2],"dtype":"float32"}],
"weights":[{"name":"w","shape":[16,3,3,3],"dtype":"float32"},{"name":"v","shape":[2,256],"dtype":"float32"}],
"weight_name_mapping":{"p_w":"w","p_v":"v"},
"nodes":[
{"name":"y","op_type":"aten.conv2d.default","inputs":[{"name":"x","shape":[1,3,6,6],"dtype":"float32"},
{"name":"p_w","shape":[16,3,3,3],"dtype":"float32"}],"outputs":[{"name":"y","shape":[1,16,4,4],"dtype":"float32"}],"attrs":{}},
{"name":"r","op_type":"aten.relu.default","inputs":[{"name":"y","shape":[1,16,4,4],"dtype":"float32"}],
"outputs":[{"name":"r","shape":[1,16,4,4],"dtype":"float32"}],"attrs":{}},
{"name":"f","op_type":"aten.view.default","inputs":[{"name":"r","shape":[1,16,4,4],"dtype":"float32"}],
"outputs":[{"name":"f","shape":[1,256],"dtype":"float32"}],"attrs":{"size":[1,256]}},
{"name":"z","op_type":"aten.linear.default","inputs":[{"name":"f","shape":[1,256],"dtype":"float32"},
{"name":"p_v","shape":[2,256],"dtype":"float32"}],"outputs":[{"name":"z","shape":[1,2],"dtype":"float32"}],"attrs":{}}]})";

const std::vector<char>& compiled() {
  static const std::vector<char> blob = [] {
    const std::vector<float> w(16 * 27, 0.5F);
    const std::vector<float> v(512, 0.25F);
    const std::int64_t w_shape[]{16, 3, 3, 3};
    const std::int64_t v_shape[]{2, 256};
    const npu_tensor weights[]{{"p_w", NPU_FLOAT32, 4, w_shape, w.data(), w.size() * 4},
                               {"p_v", NPU_FLOAT32, 2, v_shape, v.data(), v.size() * 4}};
    npu_blob made{};
    npu_error error{};
    require(api().compile(device(), kModel.data(), kModel.size(), weights, 2, "{}", &made,
                          &error) == NPU_OK,
            error.text);
    const auto* data = static_cast<const char*>(made.data);
    std::vector<char> copy(data, data + made.size);
    api().blob_free(&made);
    return copy;
  }();
  return blob;
}

std::uint32_t number(const std::uint8_t* data) {
  return data[0] | static_cast<std::uint32_t>(data[1]) << 8 |
         static_cast<std::uint32_t>(data[2]) << 16 | static_cast<std::uint32_t>(data[3]) << 24;
}

std::vector<char> edited(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("RAW")) return {text.begin() + 3, text.end()};
  std::vector<char> blob = compiled();
  std::size_t end = blob.size();
  std::size_t at = 0;
  if (text.starts_with("CUT") && size >= 7) {
    end = number(data + 3) % (blob.size() + 1);
    at = 7;
  }
  for (; at + 5 <= size; at += 5) {
    const std::uint32_t position = number(data + at);
    const bool in_header = (position & 0x80000000U) != 0;
    blob[position % (in_header ? kHeader : blob.size())] = static_cast<char>(data[at + 4]);
  }
  blob.resize(end);
  return blob;
}

/// Runs a loaded program on zeros of the shapes that its sub-IR states.
void run(npu_program* program, const std::vector<char>& blob) {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::memcpy(&offset, blob.data() + 16, sizeof offset);
  std::memcpy(&length, blob.data() + 24, sizeof length);
  const npu::Graph graph = npu::read_valid_graph({blob.data() + offset, length}, "blob");
  std::vector<npu_buffer*> inputs;
  npu_error error{};
  for (const npu::TensorId id : graph.graph_inputs()) {
    const npu::TensorInfo& info = graph.tensor(id);
    npu_buffer* buffer = nullptr;
    require(api().buffer_allocate(device(), static_cast<npu_dtype>(info.dtype),
                                  static_cast<std::uint32_t>(info.shape.size()), info.shape.data(),
                                  &buffer, &error) == NPU_OK,
            error.text);
    inputs.push_back(buffer);
  }
  std::vector<npu_buffer*> outputs(graph.graph_outputs().size(), nullptr);
  const npu_status status =
      api().run(program, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &error);
  require(status == NPU_OK || error.text[0] != '\0', "errors say what");
  for (npu_buffer* buffer : inputs) api().buffer_free(buffer);
  for (npu_buffer* buffer : outputs) {
    if (buffer != nullptr) api().buffer_free(buffer);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<char> blob = edited(data, size);
  npu_error error{};
  npu_blob report{};
  if (api().blob_report(device(), blob.data(), blob.size(), &report, &error) == NPU_OK) {
    api().blob_free(&report);
  }
  npu_program* program = nullptr;
  const npu_status status =
      api().load(device(), blob.data(), blob.size(), nullptr, 0, &program, &error);
  if (status != NPU_OK) {
    require(error.text[0] != '\0', "errors say what");
    require(program == nullptr, "a refused blob gives no program");
    return 0;
  }
  run(program, blob);
  api().program_free(program);
  return 0;
}
