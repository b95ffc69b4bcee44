// SPDX-License-Identifier: Apache-2.0
// What npu-tag makes of a decoder with caches, and of the encoder in front of it.
#include "tag_documents.hpp"

#include <optional>
#include <utility>

#include "passes/states/adopt_caches.hpp"
#include "passes/states/encode_document.hpp"

namespace npu::cli {

Graph document_with_states(Tool& tool, const TagArguments& arguments) {
  AdoptOptions options{.capacity = arguments.capacity,
                       .states = arguments.state_names(),
                       .source_rows = arguments.source_rows,
                       .start = arguments.start};
  if (!arguments.genai.empty()) {
    const GenaiConfig config = read_genai_config(arguments.genai);
    options.names = config.names;
    options.longest = config.max_length.value_or(0);
  }
  const Template sized = tool.input().read_sizes();
  auto document = adopt_caches(sized, options, tool.diagnostics());
  tool.stop_on_errors();
  Graph model;
  model.file = sized.file();
  model.document() = *std::move(document);
  return model;
}

Graph document_of_encoder(Tool& tool, const TagArguments& arguments) {
  const Template encoder = tool.input().read_model(tool.graph_path());
  const Template decoder = tool.input().read_model(arguments.encode_for);
  std::optional<Template> cross;
  if (!arguments.cross.empty()) cross = tool.input().read_model(arguments.cross);
  auto document = encode_document(encoder, decoder.document(), arguments.encode_for,
                                  cross ? &*cross : nullptr, tool.diagnostics());
  tool.stop_on_errors();
  Graph model;
  model.file = encoder.file();
  model.document() = *std::move(document);
  return model;
}

}  // namespace npu::cli
