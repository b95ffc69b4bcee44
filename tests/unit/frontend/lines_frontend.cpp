// SPDX-License-Identifier: Apache-2.0
// A frontend of somebody else: a file whose first line is "lines" holds the names of ATen ops, one
// a line, that run one after another on four floats. It knows only npu/frontend.h, has no features,
// and tells about ops without a name.
#include <algorithm>
#include <string>

#include "npu/frontend.h"

namespace {

struct Model {
  std::string document;
  std::string text;
  npu_frontend_message message{};
};

std::int32_t recognises(const void* head, std::uint64_t size) {
  return std::string(static_cast<const char*>(head), size).rfind("lines\n", 0) == 0 ? 1 : 0;
}

std::int32_t import_model(const npu_frontend_request* request, npu_frontend_result* result,
                          npu_frontend_error* /*error*/) {
  auto* model = new Model;
  result->owner = model;
  const std::string text(static_cast<const char*>(request->data), request->size);
  const std::string type = "\"shape\": [4], \"dtype\": \"float32\"";
  std::string nodes;
  std::string last = "x";
  int count = 0;
  for (std::size_t at = 6; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string op = text.substr(at, end - at);
    at = end + 1;
    if (op.empty()) {
      model->text = "line " + std::to_string(count + 2) + " has no op";
      model->message = {sizeof model->message, NPU_FRONTEND_ERROR, 0, model->text.c_str()};
      result->messages = &model->message;
      result->message_count = 1;
      result->message_stride = sizeof model->message;
      return 1;
    }
    const std::string name = "n" + std::to_string(++count);
    nodes += (nodes.empty() ? "" : ",") + ("{\"name\": \"" + name) + "\", \"op_type\": \"" + op +
             "\", \"inputs\": [{\"name\": \"" + last + "\"}], \"outputs\": [{\"name\": \"" + name +
             "\", " + type + "}], \"attrs\": {}}";
    last = name;
  }
  model->document = "{\"graph_inputs\": [{\"name\": \"x\", " + type +
                    "}], \"graph_outputs\": [{\"name\": \"" + last + "\"}], \"nodes\": [" + nodes +
                    "]}";
  result->document = model->document.c_str();
  result->document_size = model->document.size();
  return 0;
}

void import_free(npu_frontend_result* result) { delete static_cast<Model*>(result->owner); }

const char* const kNoFeatures[] = {nullptr};

const npu_frontend kTable = {sizeof(npu_frontend),
                             NPU_FRONTEND_ABI_VERSION,
                             0,
                             "lines",
                             "1",
                             kNoFeatures,
                             &recognises,
                             &import_model,
                             &import_free,
                             nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_frontend* npu_frontend_entry(
    std::uint32_t abi_version) {
  return abi_version >= 1 ? &kTable : nullptr;
}
