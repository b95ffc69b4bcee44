// SPDX-License-Identifier: Apache-2.0
// npu.weights_map: weights that lie in ranges of files of another format, as a frontend found them.
// Reading maps the files, compares their digests once, and copies only what is encoded, transposed
// or not aligned. O(bytes of the files).
#include "frontend/weight_map.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "frontend/frontend.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/checked.hpp"
#include "support/digest.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

[[noreturn]] void fail_map(const std::string& file, const std::string& place,
                           const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, text,
              {.file = file, .pointer = "/npu/weights_map" + place});
}

const std::string& text_member(const Json& json, std::string_view key, const std::string& file,
                               const std::string& place) {
  const Json* value = find_member(json, key);
  if (value == nullptr || !value->is_string()) {
    fail_map(file, place, "expected a string '" + std::string(key) + "'");
  }
  return value->get_ref<const std::string&>();
}

std::uint64_t size_member(const Json& json, std::string_view key, const std::string& file,
                          const std::string& place, bool is_optional = false) {
  const Json* value = find_member(json, key);
  if (value == nullptr && is_optional) return 0;
  if (value == nullptr || !value->is_number_unsigned()) {
    fail_map(file, place, "expected an integer '" + std::string(key) + "' of at least 0");
  }
  return value->get<std::uint64_t>();
}

const Json& list_member(const Json& map, const char* key, const std::string& file) {
  const Json* list = find_member(map, key);
  if (list == nullptr || !list->is_array()) {
    fail_map(file, "", "expected an array '" + std::string(key) + "'");
  }
  return *list;
}

WeightRange read_range(const Json& json, std::size_t files, const std::string& file,
                       const std::string& place) {
  if (const Json* data = find_member(json, "data"); data != nullptr && data->is_binary()) {
    return {.bytes = data->get_binary().size(), .data = &data->get_binary()};
  }
  WeightRange range{.file = size_member(json, "file", file, place, true),
                    .offset = size_member(json, "offset", file, place),
                    .bytes = size_member(json, "bytes", file, place)};
  if (range.file >= files) fail_map(file, place + "/file", "there is no such file");
  if (const Json* encoding = find_member(json, "encoding")) {
    if (*encoding != "varint") fail_map(file, place + "/encoding", "expected \"varint\"");
    range.is_varint = true;
  }
  if (const Json* transposed = find_member(json, "transposed")) {
    if (!transposed->is_boolean()) fail_map(file, place + "/transposed", "expected a bool");
    range.transposed = transposed->get<bool>();
  }
  return range;
}

// The path of the first file, resolved against the folder of the document.
std::filesystem::path model_path(const std::string& document, const std::string& path) {
  const std::filesystem::path model(path);
  if (model.is_absolute() || document.empty() || document == "<stdin>") return model;
  return std::filesystem::path(document).parent_path() / model;
}

// Elements as LEB128 numbers; what does not fit into the dtype is cut, as protobuf does.
bool decode_varints(const std::byte* data, std::size_t size, Tensor& tensor) {
  const std::size_t width = dtype_size(tensor.dtype());
  std::size_t at = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    std::uint64_t value = 0;
    int shift = 0;
    for (;; shift += 7) {
      if (at >= size || shift > 63) return false;
      const auto byte = static_cast<std::uint64_t>(data[at++]);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    if (tensor.dtype() == DType::kBool) value = value != 0 ? 1 : 0;
    std::memcpy(tensor.mutable_data() + static_cast<std::size_t>(i) * width, &value, width);
  }
  return at == size;
}

void transpose_bytes(const std::byte* from, std::byte* to, std::size_t rows, std::size_t columns,
                     std::size_t width) {
  constexpr std::size_t kBlock = 32;
  for (std::size_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (std::size_t c0 = 0; c0 < columns; c0 += kBlock) {
      for (std::size_t r = r0; r < std::min(rows, r0 + kBlock); ++r) {
        for (std::size_t c = c0; c < std::min(columns, c0 + kBlock); ++c) {
          std::memcpy(to + (r * columns + c) * width, from + (c * rows + r) * width, width);
        }
      }
    }
  }
}

}  // namespace

Json weight_file_entry(const char* key, const std::string& name, const void* data,
                       std::size_t size) {
  return Json{{key, name}, {"bytes", size}, {"xxh3", hex_text(xxh3_64(data, size))}};
}

Json weight_range_entry(const std::string& name, const WeightRange& range) {
  Json entry{{"name", name}};
  if (range.file != 0) entry["file"] = range.file;
  entry["offset"] = range.offset;
  entry["bytes"] = range.bytes;
  if (range.is_varint) entry["encoding"] = "varint";
  if (range.transposed) entry["transposed"] = true;
  return entry;
}

Json weight_data_entry(const std::string& name, const void* data, std::size_t bytes) {
  const auto* first = static_cast<const std::uint8_t*>(data);
  return Json{{"name", name}, {"data", Json::binary({first, first + bytes})}};
}

std::optional<WeightMap> WeightMap::of(const Graph& graph) {
  const Json* json = graph.npu_member("weights_map");
  if (json == nullptr) return std::nullopt;
  return read(*json, graph.file);
}

std::optional<WeightMap> WeightMap::of_model(const std::string& path, Diagnostics& diagnostics) {
  const MappedFile model(path);
  const std::string_view bytes(reinterpret_cast<const char*>(model.data()), model.size());
  const auto document = import_template(path, bytes, {}, diagnostics);
  if (!document || diagnostics.has_errors()) return std::nullopt;
  const Json* npu = find_member(*document, "npu");
  const Json* json = npu == nullptr ? nullptr : find_member(*npu, "weights_map");
  if (json == nullptr) return WeightMap();
  auto made = std::make_shared<const Json>(*json);
  WeightMap map = read(*made, path);
  map.made_ = std::move(made);
  return map;
}

WeightMap WeightMap::read(const Json& json, const std::string& document) {
  WeightMap map;
  map.file_ = document;
  const Json& files = list_member(json, "files", document);
  if (files.empty()) fail_map(document, "/files", "expected at least one file");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string place = "/files/" + std::to_string(i);
    File file{.name = text_member(files[i], i == 0 ? "path" : "name", document, place),
              .bytes = size_member(files[i], "bytes", document, place),
              .digest = text_member(files[i], "xxh3", document, place),
              .mapped = nullptr};
    if (i == 0) {
      const std::filesystem::path path = model_path(document, file.name);
      file.name = path.string();
      map.folder_ = path.parent_path().string();
    }
    map.files_.push_back(std::move(file));
  }
  const Json& tensors = list_member(json, "tensors", document);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string place = "/tensors/" + std::to_string(i);
    const std::string& name = text_member(tensors[i], "name", document, place);
    if (!map.ranges_.emplace(name, read_range(tensors[i], files.size(), document, place)).second) {
      fail_map(document, place + "/name", "'" + name + "' stands there twice");
    }
  }
  return map;
}

const MappedFile& WeightMap::open(std::uint64_t index) {
  File& file = files_[static_cast<std::size_t>(index)];
  if (file.mapped != nullptr) return *file.mapped;
  auto mapped = index == 0 ? std::make_shared<const MappedFile>(file.name)
                           : std::make_shared<const MappedFile>(folder_, file.name);
  if (mapped->size() != file.bytes ||
      hex_text(xxh3_64(mapped->data(), mapped->size())) != file.digest) {
    throw Error(ErrorCode::kParse,
                "has changed since the document was made from it; make the document again",
                {.file = mapped->path()});
  }
  file.mapped = std::move(mapped);
  return *file.mapped;
}

std::optional<Tensor> WeightMap::find(const TensorInfo& tensor) {
  auto found = ranges_.find(tensor.weight_key);
  if (found == ranges_.end()) found = ranges_.find(tensor.name);
  if (found == ranges_.end()) return std::nullopt;
  const WeightRange& range = found->second;
  if (range.data != nullptr) {
    Tensor copy(tensor.dtype, tensor.shape);
    if (range.bytes != static_cast<std::uint64_t>(tensor.bytes())) {
      throw Error(ErrorCode::kUnsupported,
                  "weight '" + found->first + "' has " + std::to_string(range.bytes) +
                      " bytes, its shape needs " + std::to_string(tensor.bytes()),
                  {.file = file_});
    }
    if (range.bytes > 0) std::memcpy(copy.mutable_data(), range.data->data(), range.data->size());
    return copy;
  }
  const MappedFile& file = open(range.file);
  const auto fail = [&](const std::string& text) {
    throw Error(ErrorCode::kParse, "weight '" + found->first + "' " + text, {.file = file.path()});
  };
  if (range.offset > file.size() || range.bytes > file.size() - range.offset) {
    fail("lies behind the end of the file");
  }
  const std::byte* data = file.data() + range.offset;
  const auto size = static_cast<std::size_t>(tensor.bytes());
  const std::size_t width = dtype_size(tensor.dtype);
  if (range.is_varint) {
    if (range.bytes < size / width) fail("has fewer numbers than its shape needs");
    Tensor decoded(tensor.dtype, tensor.shape);
    if (!decode_varints(data, range.bytes, decoded)) fail("is not encoded as its shape needs");
    return decoded;
  }
  if (range.bytes != size) {
    fail("has " + std::to_string(range.bytes) + " bytes, its shape needs " + std::to_string(size));
  }
  const bool is_bool = tensor.dtype == DType::kBool;
  if (is_bool && std::any_of(data, data + size, [](std::byte b) { return b > std::byte{1}; })) {
    fail("holds a bool that is neither 0 nor 1");
  }
  if (range.transposed) {
    if (tensor.shape.size() != 2) fail("is transposed, but no matrix");
    Tensor turned(tensor.dtype, tensor.shape);
    transpose_bytes(data, turned.mutable_data(), static_cast<std::size_t>(tensor.shape[0]),
                    static_cast<std::size_t>(tensor.shape[1]), width);
    return turned;
  }
  if (reinterpret_cast<std::uintptr_t>(data) % width != 0) {
    Tensor copy(tensor.dtype, tensor.shape);
    std::memcpy(copy.mutable_data(), data, size);
    return copy;
  }
  const auto& owner = files_[static_cast<std::size_t>(range.file)].mapped;
  return Tensor(tensor.dtype, tensor.shape, std::shared_ptr<const std::byte>(owner, data));
}

void write_imported_weights(Graph& graph, const std::string& path, Diagnostics& diagnostics) {
  auto map = WeightMap::of(graph);
  const auto is_weight = [](const TensorInfo& tensor) {
    return tensor.kind == TensorKind::kWeight && !tensor.is_constant;
  };
  if (!map && std::any_of(graph.tensors().begin(), graph.tensors().end(), is_weight)) {
    throw Error(ErrorCode::kUsage,
                "--weights-out is for the weights of models that a frontend imports, and the "
                "weights of this document are not in another format");
  }
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (!map) break;
    if (auto found = map->find(tensor)) tensors.emplace_back(tensor.name, *std::move(found));
  }
  if (tensors.empty())
    diagnostics.note({.file = path}, "the model has no weights, so the file has none");
  write_safetensors(path, tensors);
  graph.erase_npu_member("weights_map");
  const auto folder = [](const std::filesystem::path& file) {
    return std::filesystem::absolute(file.parent_path() / ".").lexically_normal();
  };
  const std::filesystem::path file(path);
  const bool is_apart = file.is_absolute();
  const std::string base = graph.file == "<stdin>" ? "" : graph.file;
  graph.set_npu_member(
      "weights_file",
      is_apart ? path : (folder(file) / file.filename()).lexically_relative(folder(base)).string());
}

void rebase_weight_map(Graph& graph, const std::string& output) {
  const Json* json = graph.npu_member("weights_map");
  const Json* tensors = json == nullptr ? nullptr : find_member(*json, "tensors");
  std::uint64_t computed = 0;
  for (std::size_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
    const Json* data = find_member((*tensors)[i], "data");
    if (data != nullptr && data->is_binary()) computed += data->get_binary().size();
  }
  if (computed > 0) {
    throw Error(ErrorCode::kUnsupported,
                "constants of " + bytes_text(static_cast<double>(computed)) +
                    " are in no file, and more than a document holds: let npu-tag write them with "
                    "--weights-out FILE, or give npu-run or npu-compile the model itself",
                {.file = graph.file});
  }
  const Json* files = json == nullptr ? nullptr : find_member(*json, "files");
  if (files == nullptr || !files->is_array() || files->empty()) return;
  const Json* path = find_member(files->front(), "path");
  if (path == nullptr || !path->is_string()) return;
  if (std::filesystem::path(path->get<std::string>()).is_absolute()) return;
  const std::filesystem::path folder =
      std::filesystem::absolute(std::filesystem::path(output).parent_path() / ".")
          .lexically_normal();
  const std::filesystem::path file =
      std::filesystem::absolute(model_path(graph.file, path->get<std::string>()))
          .lexically_normal();
  Json changed = *json;
  changed["files"][0]["path"] = file.lexically_relative(folder).string();
  graph.set_npu_member("weights_map", std::move(changed));
}

}  // namespace npu
