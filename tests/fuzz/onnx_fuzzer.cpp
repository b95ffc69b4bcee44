// SPDX-License-Identifier: Apache-2.0
// The ONNX frontend: a model is refused with a message, or becomes a document that the reader
// accepts, with weights inside of the file. No file beside the model is ever opened here.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_check.hpp"
#include "import_template.hpp"
#include "importer.hpp"
#include "ir/bind_sizes.hpp"
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

// With its sizes left open the model is refused, or becomes a template that the reader accepts.
void check_template_of(std::string_view bytes) {
  NoFiles files;
  std::vector<npu::onnx::Finding> findings;
  const npu::onnx::WrittenModel model = npu::onnx::import_template(bytes, {}, files, findings);
  for (const npu::onnx::Finding& finding : findings) {
    if (finding.level == npu::onnx::Finding::Level::kError) return;
  }
  npu::Json document = npu::parse_json(model.document, "fuzz");
  if (!npu::SizeSymbols::are_in(document)) return;
  npu::Diagnostics faults;
  npu::Template::read(std::move(document), "fuzz", faults);
  if (faults.has_errors()) {
    require(false, npu::format_diagnostic(faults.entries().front()).c_str());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  npu::onnx::looks_like_onnx(bytes);
  NoFiles files;
  try {
    check_template_of(bytes);
  } catch (const npu::Error&) {
  } catch (const npu::onnx::Refusal&) {
  }
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
