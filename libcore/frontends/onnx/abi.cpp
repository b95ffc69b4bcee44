// SPDX-License-Identifier: Apache-2.0
// The functions of npu/frontend.h: ONNX models. Everything is caught here, since no exception may
// cross; the frontend opens no file but through the host.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "import_template.hpp"
#include "importer.hpp"
#include "list_ops.hpp"
#include "npu/frontend.h"
#include "npu/support/error.hpp"
#include "write_document.hpp"

namespace npu::onnx {
namespace {

/// What a result points to.
struct Owned {
  WrittenModel model;
  std::vector<npu_frontend_weight> weights;
  std::vector<Finding> findings;
  std::vector<npu_frontend_message> messages;
};

class HostFiles : public Surroundings {
 public:
  explicit HostFiles(const npu_frontend_request& request) : request_(request) {}

  ExternalFile open(const std::string& name) override {
    npu_frontend_file file{};
    file.struct_size = sizeof file;
    npu_frontend_error error{};
    error.struct_size = sizeof error;
    if (request_.open_file == nullptr ||
        request_.open_file(request_.context, name.c_str(), &file, &error) != 0) {
      error.text[sizeof error.text - 1] = '\0';
      throw Refusal{error.text};
    }
    return {file.number, {static_cast<const char*>(file.data), file.size}};
  }

 private:
  const npu_frontend_request& request_;
};

void set_text(npu_frontend_error* error, const char* text) {
  if (error == nullptr) return;
  const std::size_t size = std::min(std::strlen(text), sizeof error->text - 1);
  std::memcpy(error->text, text, size);
  error->text[size] = '\0';
}

template <typename T>
T element_at(const T* first, std::uint64_t stride, std::uint64_t index) {
  T element{};
  std::memcpy(&element, reinterpret_cast<const char*>(first) + stride * index,
              std::min<std::uint64_t>(stride, sizeof element));
  return element;
}

Settings settings_of(const npu_frontend_request& request) {
  Settings settings;
  settings.is_pipe = request.path == nullptr;
  settings.takes_data = NPU_FRONTEND_HAS(&request, takes_data) && request.takes_data != 0;
  for (std::uint64_t i = 0; i < request.binding_count; ++i) {
    const auto binding = element_at(request.bindings, request.binding_stride, i);
    settings.bindings[binding.name] = binding.value;
  }
  for (std::uint64_t i = 0; i < request.frozen_count; ++i) {
    const auto frozen = element_at(request.frozen, request.frozen_stride, i);
    Tensor tensor(static_cast<DType>(frozen.dtype),
                  Shape(frozen.shape, frozen.shape + frozen.rank));
    if (frozen.bytes > 0) std::memcpy(tensor.mutable_data(), frozen.data, frozen.bytes);
    settings.frozen.emplace(frozen.name, std::move(tensor));
  }
  return settings;
}

void fill_result(Owned& owned, bool has_document, npu_frontend_result& result) {
  for (const Finding& finding : owned.findings) {
    const bool is_error = finding.level == Finding::Level::kError;
    owned.messages.push_back({sizeof(npu_frontend_message),
                              is_error ? NPU_FRONTEND_ERROR : NPU_FRONTEND_WARNING, 0,
                              finding.text.c_str()});
  }
  for (const WeightPlace& place : owned.model.weights) {
    owned.weights.push_back({sizeof(npu_frontend_weight), place.name.c_str(), place.file,
                             place.offset, place.bytes,
                             place.is_varint ? NPU_FRONTEND_VARINT : NPU_FRONTEND_PLAIN,
                             place.transposed ? 1u : 0u, place.data});
  }
  result.messages = owned.messages.data();
  result.message_count = owned.messages.size();
  result.message_stride = sizeof(npu_frontend_message);
  result.weights = owned.weights.data();
  result.weight_count = owned.weights.size();
  result.weight_stride = sizeof(npu_frontend_weight);
  if (!has_document) return;
  result.document = owned.model.document.data();
  result.document_size = owned.model.document.size();
}

// 0 if there is a document.
std::int32_t finish(std::unique_ptr<Owned> owned, npu_frontend_result& result) {
  const bool has_document =
      std::none_of(owned->findings.begin(), owned->findings.end(),
                   [](const Finding& finding) { return finding.level == Finding::Level::kError; });
  fill_result(*owned, has_document, result);
  result.owner = owned.release();
  return has_document ? 0 : 1;
}

std::int32_t recognises(const void* head, std::uint64_t size) {
  return looks_like_onnx({static_cast<const char*>(head), size}) ? 1 : 0;
}

std::int32_t import_model(const npu_frontend_request* request, npu_frontend_result* result,
                          npu_frontend_error* error) {
  try {
    auto owned = std::make_unique<Owned>();
    HostFiles files(*request);
    if (NPU_FRONTEND_HAS(request, wants_template) && request->wants_template != 0) {
      try {
        owned->model = import_template({static_cast<const char*>(request->data), request->size},
                                       settings_of(*request), files, owned->findings);
      } catch (const Refusal& refusal) {
        owned->findings.push_back({Finding::Level::kError, refusal.reason});
      } catch (const Error& fault) {
        owned->findings.push_back({Finding::Level::kError, fault.message()});
      }
      return finish(std::move(owned), *result);
    }
    Importer importer({static_cast<const char*>(request->data), request->size},
                      settings_of(*request), files);
    try {
      importer.run();
      if (!importer.has_errors()) owned->model = write_document(importer);
    } catch (const Refusal& refusal) {
      importer.add_error(refusal.reason);
    } catch (const Error& fault) {
      importer.add_error(fault.message());
    }
    owned->findings = importer.findings();
    return finish(std::move(owned), *result);
  } catch (const std::bad_alloc&) {
    set_text(error, "out of memory");
  } catch (const std::exception& fault) {
    set_text(error, fault.what());
  }
  return 1;
}

void import_free(npu_frontend_result* result) {
  delete static_cast<Owned*>(result->owner);
  result->owner = nullptr;
}

const char* list_ops() {
  static const std::string text = op_list_json();
  return text.c_str();
}

constexpr const char* kFeatures[] = {"bind", "freeze", "ops", "sizes", nullptr};

constexpr npu_frontend kTable = {sizeof(npu_frontend),
                                 NPU_FRONTEND_ABI_VERSION,
                                 0,
                                 "onnx",
                                 NPU_VERSION,
                                 kFeatures,
                                 &recognises,
                                 &import_model,
                                 &import_free,
                                 &list_ops};

}  // namespace
}  // namespace npu::onnx

extern "C" __attribute__((visibility("default"))) const npu_frontend* npu_frontend_entry(
    std::uint32_t abi_version) {
  return abi_version >= NPU_FRONTEND_ABI_VERSION ? &npu::onnx::kTable : nullptr;
}
