// SPDX-License-Identifier: Apache-2.0
// A frontend that breaks the rules of npu/frontend.h: a file whose first line is "liar" names on
// its second one which rule. What it returns else is a model with one weight.
#include <cstdlib>
#include <cstring>
#include <string>

#include "npu/frontend.h"

namespace {

constexpr const char* kLyingDocument =
    R"({"graph_inputs": [{"name": "x", "shape": [4], "dtype": "float32"}],
        "graph_outputs": [{"name": "y"}],
        "weights": [{"name": "w", "shape": [4], "dtype": "float32"}],
        "nodes": [{"name": "y", "op_type": "aten.add.Tensor",
                   "inputs": [{"name": "x"}, {"name": "w", "shape": [4], "dtype": "float32"}],
                   "outputs": [{"name": "y", "shape": [4], "dtype": "float32"}], "attrs": {}}]})";

struct LyingModel {
  std::string text;
  npu_frontend_weight weights[2]{};
  npu_frontend_message message{};
};

std::int32_t recognises_liar(const void* head, std::uint64_t size) {
  return std::string(static_cast<const char*>(head), size).rfind("liar\n", 0) == 0 ? 1 : 0;
}

void lie(const std::string& rule, LyingModel& model, npu_frontend_result& result) {
  npu_frontend_weight& weight = model.weights[0];
  if (rule == "weights-null") result.weights = nullptr;
  if (rule == "weights-count") result.weight_count = std::uint64_t{1} << 40;
  if (rule == "weights-stride") result.weight_stride = 8;
  if (rule == "weights-far-stride") result.weight_stride = std::uint64_t{1} << 40;
  if (rule == "weight-no-name") weight.name = nullptr;
  if (rule == "weight-empty-name") weight.name = "";
  if (rule == "weight-name") weight.name = "w\xff";
  if (rule == "weight-terminal-name") weight.name = "w\x1b[2J";
  if (rule == "weight-of-none") weight.name = "v";
  if (rule == "weight-file") weight.file = 7;
  if (rule == "weight-offset") weight.offset = UINT64_MAX;
  if (rule == "weight-bytes") weight.bytes = UINT64_MAX;
  if (rule == "weight-encoding") weight.encoding = 9;
  if (rule == "weight-data") {
    weight.data = kLyingDocument;
    weight.bytes = UINT64_MAX;
  }
  if (rule == "weight-twice") {
    model.weights[1] = weight;
    result.weight_count = 2;
  }
  if (rule == "messages-null") result.message_count = 3;
  if (rule == "messages-stride" || rule == "message-no-text") {
    result.messages = &model.message;
    result.message_count = 1;
    result.message_stride = rule == "messages-stride" ? 0 : sizeof model.message;
  }
  if (rule == "document-null") result.document = nullptr;
  if (rule == "document-size") result.document_size = UINT64_MAX;
  if (rule == "document-utf8") {
    model.text = "{\"model_name\": \"\xff\"}";
    result.document = model.text.c_str();
    result.document_size = model.text.size();
  }
}

std::int32_t import_lies(const npu_frontend_request* request, npu_frontend_result* result,
                         npu_frontend_error* error) {
  auto* model = new LyingModel;
  result->owner = model;
  const std::string text(static_cast<const char*>(request->data), request->size);
  const std::string rule = text.substr(5, text.find('\n', 5) - 5);
  result->document = kLyingDocument;
  result->document_size = std::strlen(kLyingDocument);
  model->weights[0] = {sizeof(npu_frontend_weight), "w", 0, 0, 16, NPU_FRONTEND_PLAIN, 0, nullptr};
  result->weights = model->weights;
  result->weight_count = 1;
  result->weight_stride = sizeof(npu_frontend_weight);
  lie(rule, *model, *result);
  if (rule == "error-without-end") {
    std::memset(error->text, 'e', sizeof error->text);
    return 1;
  }
  if (rule == "file-no-name") {
    npu_frontend_file file{};
    return request->open_file(request->context, nullptr, &file, error);
  }
  return 0;
}

void free_lies(npu_frontend_result* result) { delete static_cast<LyingModel*>(result->owner); }

const char* list_lies() {
  const char* rule = std::getenv("LIAR_OPS");
  if (rule == nullptr) return "{\"ops\": []}\n";
  if (std::strcmp(rule, "null") == 0) return nullptr;
  if (std::strcmp(rule, "utf8") == 0) return "{\"ops\": \"\xff\"}\n";
  if (std::strcmp(rule, "terminal") == 0) return "{\"ops\": \"\x1b[2J\"}\n";
  if (std::strcmp(rule, "json") == 0) return "no list";
  static const std::string kLong((std::size_t{1} << 24) + 1, ' ');
  return kLong.c_str();
}

const char* const kLyingFeatures[] = {"ops", nullptr};

const npu_frontend kLyingTable = {sizeof(npu_frontend),
                                  NPU_FRONTEND_ABI_VERSION,
                                  0,
                                  "liar",
                                  "1",
                                  kLyingFeatures,
                                  &recognises_liar,
                                  &import_lies,
                                  &free_lies,
                                  &list_lies};

}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_frontend* npu_frontend_entry(
    std::uint32_t abi_version) {
  return abi_version >= 1 ? &kLyingTable : nullptr;
}
