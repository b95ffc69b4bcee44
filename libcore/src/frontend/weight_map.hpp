// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Where the data of a weight lies: in a range of a file or, where a frontend has computed it, in
/// the graph.
struct WeightRange {
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_varint = false;   ///< one LEB128 number for each element
  bool transposed = false;  ///< the range holds the transpose of the document's matrix
  const Json::binary_t* data = nullptr;
};

/// An element of `files` of npu.weights_map: {key: name, "bytes": ..., "xxh3": ...}.
Json weight_file_entry(const char* key, const std::string& name, const void* data,
                       std::size_t size);
/// An element of `tensors`.
Json weight_range_entry(const std::string& name, const WeightRange& range);
/// An element of `tensors` with the data itself, which no text holds: rebase_weight_map refuses it.
Json weight_data_entry(const std::string& name, const void* data, std::size_t bytes);

/// `npu.weights_map` of a document, which comes from outside: every field is checked, and files
/// beside the first are opened below its folder only.
class WeightMap {
 public:
  /// Nothing if the document has no map. The graph outlives the map. Throws Error kInvalidGraph for
  /// a malformed one.
  static std::optional<WeightMap> of(const Graph& graph);
  /// That of the model at `path`, which a frontend reads, with whatever sizes its weights are of;
  /// nothing if no frontend recognises it, or it has faults, which are collected. Throws what
  /// import_template does.
  static std::optional<WeightMap> of_model(const std::string& path, Diagnostics& diagnostics);

  /// The tensor's data, shared with the mapped file where it lies there as it is; nothing if the
  /// map does not name the tensor. Throws Error kIo or kParse if a file is missing, has changed
  /// since the document was made, or its range does not hold such a tensor.
  std::optional<Tensor> find(const TensorInfo& tensor);

 private:
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::string digest;
    std::shared_ptr<const MappedFile> mapped;
  };
  static WeightMap read(const Json& map, const std::string& document);
  const MappedFile& open(std::uint64_t index);

  std::shared_ptr<const Json> made_;  // by a frontend; null: the document's own
  std::string file_;                  // the document
  std::string folder_;                // of the first file
  std::vector<File> files_;
  std::map<std::string, WeightRange, std::less<>> ranges_;
};

/// Rewrites a relative path of the first file so that a reader of the document at `output` (empty:
/// stdout) can resolve it. Throws Error kUnsupported if the map holds data.
void rebase_weight_map(Graph& graph, const std::string& output);

}  // namespace npu
