// SPDX-License-Identifier: Apache-2.0
// The ONNX frontend: a model is refused with a message, or becomes a document that the reader
// accepts, with weights inside of the file. No file beside the model is ever opened here.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "importer.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "write_document.hpp"

using npu::fuzz::require;

namespace {

class NoFiles : public npu::onnx::Surroundings {
 public:
  npu::onnx::ExternalFile open(const std::string& /*name*/) override {
    throw npu::onnx::Refusal{"there are no files here"};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  npu::onnx::looks_like_onnx(bytes);
  NoFiles files;
  try {
    npu::onnx::Importer importer(bytes, {}, files);
    importer.run();
    if (importer.has_errors()) return 0;
    const npu::onnx::WrittenModel model = npu::onnx::write_document(importer);
    npu::Diagnostics diagnostics;
    npu::read_graph(model.document, "fuzz", diagnostics);
    if (diagnostics.has_errors()) {
      require(false, npu::format_diagnostic(diagnostics.entries().front()).c_str());
    }
    for (const npu::onnx::WeightPlace& place : model.weights) {
      require(place.offset <= size && place.bytes <= size - place.offset,
              "a weight is in the file");
    }
  } catch (const npu::Error&) {
  } catch (const npu::onnx::Refusal&) {
  }
  return 0;
}
