// SPDX-License-Identifier: Apache-2.0
// Gathers the data of weights from a safetensors file (mapped, not copied), from the document's
// constants, or from a seed.
#include "npu/runtime/weight_store.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include "frontend/weight_map.hpp"
#include "npu/support/log.hpp"
#include "ops/schema.hpp"
#include "runtime/random_tensor.hpp"

namespace npu {
namespace {

template <typename T>
void store_integer(Tensor& tensor, std::int64_t index, const Json& value, const std::string& name) {
  std::int64_t number = 0;
  if (value.is_boolean()) {
    number = value.get<bool>() ? 1 : 0;
  } else if (value.is_number_integer() &&
             (!value.is_number_unsigned() ||
              value.get<std::uint64_t>() <=
                  std::uint64_t{std::numeric_limits<std::int64_t>::max()})) {
    number = value.get<std::int64_t>();
  } else if (value.is_number_float() &&
             std::nearbyint(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < 0x1p63) {
    number = static_cast<std::int64_t>(value.get<double>());
  } else {
    throw Error(ErrorCode::kInvalidGraph,
                "constant '" + name + "' holds " + value.dump() + ", which is no 64-bit integer");
  }
  if (number < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
      number > static_cast<std::int64_t>(std::numeric_limits<T>::max())) {
    throw Error(ErrorCode::kInvalidGraph, "constant '" + name + "' holds " + value.dump() +
                                              ", which " + std::string(dtype_name(tensor.dtype())) +
                                              " cannot represent");
  }
  tensor.as_mutable<T>()[index] = static_cast<T>(number);
}

void store_value(Tensor& tensor, std::int64_t index, const Json& value, const std::string& name) {
  if (is_floating_point(tensor.dtype())) {
    const auto number = json_number(value);
    if (!number) {
      throw Error(ErrorCode::kInvalidGraph,
                  "constant '" + name + "' holds " + value.dump() + ", expected a number");
    }
    switch (tensor.dtype()) {
      case DType::kFloat64:
        tensor.as_mutable<double>()[index] = *number;
        break;
      case DType::kFloat16:
        tensor.as_mutable<std::uint16_t>()[index] = float_to_float16(static_cast<float>(*number));
        break;
      case DType::kBFloat16:
        tensor.as_mutable<std::uint16_t>()[index] = float_to_bfloat16(static_cast<float>(*number));
        break;
      default:
        tensor.as_mutable<float>()[index] = static_cast<float>(*number);
    }
    return;
  }
  switch (tensor.dtype()) {
    case DType::kInt8:
      return store_integer<std::int8_t>(tensor, index, value, name);
    case DType::kUInt8:
      return store_integer<std::uint8_t>(tensor, index, value, name);
    case DType::kInt16:
      return store_integer<std::int16_t>(tensor, index, value, name);
    case DType::kInt32:
      return store_integer<std::int32_t>(tensor, index, value, name);
    case DType::kInt64:
      return store_integer<std::int64_t>(tensor, index, value, name);
    case DType::kBool:
      tensor.as_mutable<std::uint8_t>()[index] =
          (value.is_boolean() ? value.get<bool>() : value != 0 && value != 0.0) ? 1 : 0;
      return;
    default:
      throw Error(ErrorCode::kInvalidGraph,
                  "constant '" + name + "' has dtype " + std::string(dtype_name(tensor.dtype())) +
                      ", which `constants` cannot hold; put it into the weights file");
  }
}

void store_values(Tensor& tensor, std::int64_t& index, const Json& json, const std::string& name) {
  if (json.is_array()) {
    for (const Json& element : json) store_values(tensor, index, element, name);
    return;
  }
  if (index >= tensor.element_count()) {
    throw Error(ErrorCode::kInvalidGraph, "constant '" + name + "' has too many values");
  }
  store_value(tensor, index++, json, name);
}

const SafetensorsEntry* find_entry(const SafetensorsFile& file, const TensorInfo& tensor) {
  const SafetensorsEntry* entry = file.find(tensor.weight_key);
  return entry != nullptr ? entry : file.find(tensor.name);
}

/// Whether bytes begin as safetensors do: with the size of a header that is a JSON object.
bool begins_like_safetensors(const std::string& path) {
  const MappedFile file(path);
  return file.size() > 8 && file.data()[8] == std::byte{'{'};
}

std::string tensor_type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

}  // namespace

std::string weights_file_of(const Graph& graph) {
  const Json* member = graph.npu_member("weights_file");
  if (member == nullptr || !member->is_string()) return {};
  const std::filesystem::path path(member->get<std::string>());
  if (path.empty() || path.is_absolute() || graph.file.empty() || graph.file == "<stdin>") {
    return path.string();
  }
  return (std::filesystem::path(graph.file).parent_path() / path).string();
}

void rebase_weights_file(Graph& graph, const std::string& output) {
  rebase_weight_map(graph, output);
  const Json* member = graph.npu_member("weights_file");
  const std::filesystem::path path(weights_file_of(graph));
  if (path.empty() || std::filesystem::path(member->get<std::string>()).is_absolute()) return;
  // Lexically, so that the result depends only on the names and links stay as the user wrote them.
  const std::filesystem::path folder =
      std::filesystem::absolute(std::filesystem::path(output).parent_path() / ".")
          .lexically_normal();
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  graph.set_npu_member("weights_file", file.lexically_relative(folder).string());
}

Tensor constant_tensor(const Graph& graph, const TensorInfo& tensor) {
  const Json* constants = find_member(graph.document(), "constants");
  const Json* entry = constants == nullptr ? nullptr : find_member(*constants, tensor.name);
  if (entry == nullptr && constants != nullptr) entry = find_member(*constants, tensor.weight_key);
  const Json* data = entry == nullptr ? nullptr : find_member(*entry, "data");
  if (data == nullptr) {
    throw Error(ErrorCode::kInvalidGraph, "constant '" + tensor.name + "' has no data");
  }
  Tensor result(tensor.dtype, tensor.shape);
  std::int64_t index = 0;
  store_values(result, index, *data, tensor.name);
  if (index != result.element_count()) {
    throw Error(ErrorCode::kInvalidGraph, "constant '" + tensor.name + "' has " +
                                              std::to_string(index) + " values, its shape " +
                                              shape_text(tensor.shape) + " needs " +
                                              std::to_string(result.element_count()));
  }
  return result;
}

std::vector<Tensor> load_weights(const Graph& graph, const WeightSource& source,
                                 Diagnostics& diagnostics,
                                 const std::function<const Tensor*(const TensorInfo&)>& loaded) {
  const LogTimer timer(LogModule::kRead);
  std::unique_ptr<const SafetensorsFile> file;
  std::optional<WeightMap> map;
  if (!source.file.empty() && !begins_like_safetensors(source.file)) {
    map = WeightMap::of_model(source.file, diagnostics);
    if (diagnostics.has_errors()) return {};
  }
  if (!source.file.empty() && !map) file = std::make_unique<const SafetensorsFile>(source.file);
  // Weights that are made up take the place of the document's own.
  if (!map && !source.random_seed) map = WeightMap::of(graph);
  std::vector<Tensor> weights(graph.tensors().size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorInfo& tensor = graph.tensors()[i];
    if (tensor.kind != TensorKind::kWeight || tensor.is_folded()) continue;
    if (const Tensor* same = loaded && !tensor.is_constant ? loaded(tensor) : nullptr) {
      weights[i] = *same;
      continue;
    }
    const SafetensorsEntry* entry = file ? find_entry(*file, tensor) : nullptr;
    if (entry != nullptr) {
      if (entry->dtype != tensor.dtype || entry->shape != tensor.shape) {
        diagnostics.error({.file = source.file}, "weight '" + entry->name + "' is " +
                                                     tensor_type_text(entry->dtype, entry->shape) +
                                                     ", the graph says " +
                                                     tensor_type_text(tensor.dtype, tensor.shape));
        continue;
      }
      weights[i] = file->tensor(*entry);
    } else if (auto mapped = map ? map->find(tensor) : std::nullopt) {
      weights[i] = *std::move(mapped);
    } else if (tensor.is_constant) {
      weights[i] = constant_tensor(graph, tensor);
    } else if (source.random_seed) {
      weights[i] =
          random_weight(tensor.dtype, tensor.shape, tensor.weight_key, *source.random_seed);
    } else if (!source.file.empty()) {
      diagnostics.error({.file = source.file}, "weight '" + tensor.weight_key + "' (" +
                                                   tensor_type_text(tensor.dtype, tensor.shape) +
                                                   ") is missing");
    } else {
      diagnostics.error({.file = graph.file},
                        "weight '" + tensor.weight_key +
                            "' has no data: give --weights FILE or --random-weights SEED");
      break;  // every other weight lacks data for the same reason
    }
  }
  timer.done([&] {
    return "weights: " + (!source.file.empty() ? source.file
                          : source.random_seed
                              ? "made up from seed " + std::to_string(*source.random_seed)
                              : std::string("the document's own"));
  });
  return weights;
}

}  // namespace npu
