// SPDX-License-Identifier: Apache-2.0
// Templates: a document is refused with messages, or every tensor of what a binding gives has the
// shape that the template's sizes are worth, and the bound document is an ordinary one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "ir/bind_sizes.hpp"
#include "npu/ir/json_reader.hpp"
#include "ops/check_template.hpp"

using npu::fuzz::require;

namespace {

void check_binding(const npu::Template& model, const npu::SizeBindings& values) {
  require(!model.symbols().fault(values), "samples are within the ranges");
  npu::Diagnostics faults;
  npu::Graph graph;
  try {
    graph = npu::bind_sizes(model, values, faults);
  } catch (const npu::Error& error) {
    require(!error.message().empty(), "a message says what is wrong");
    return;
  }
  if (faults.has_errors()) return;
  require(!npu::SizeSymbols::are_in(graph.document()), "a bound document has no symbols");
  for (const npu::TensorInfo& tensor : graph.tensors()) {
    const npu::SizeShape* shape = model.shape(tensor.name);
    if (shape == nullptr) continue;
    require(shape->size() == tensor.shape.size(), "the rank is the template's");
    for (std::size_t i = 0; i < shape->size(); ++i) {
      require((*shape)[i].evaluate(values) == tensor.shape[i], "the shape is the template's");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Json document;
  try {
    document = npu::parse_json(text, "fuzz.json");
  } catch (const npu::Error&) {
    return 0;
  }
  if (!npu::SizeSymbols::are_in(document)) return 0;
  npu::Diagnostics faults;
  const npu::Template model = npu::Template::read(std::move(document), "fuzz.json", faults);
  if (!faults.has_errors()) npu::check_template(model, faults);
  for (const npu::Diagnostic& fault : faults.entries()) {
    require(!fault.text.empty() && fault.location.file == "fuzz.json",
            "messages say what and where");
  }
  if (faults.has_errors()) return 0;
  const auto samples = model.symbols().samples();
  for (std::size_t i = 0; i < samples.size() && i < 3; ++i) check_binding(model, samples[i]);
  return 0;
}
