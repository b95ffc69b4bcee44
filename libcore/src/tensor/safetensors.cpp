// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors. Every size and offset of the header is checked before it is used;
// reading is O(header), writing O(bytes).
#include "npu/tensor/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation

constexpr std::array<std::pair<std::string_view, DType>, kDTypeCount> kNames{{
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"I8", DType::kInt8},
    {"U8", DType::kUInt8},
    {"I16", DType::kInt16},
    {"I32", DType::kInt32},
    {"I64", DType::kInt64},
    {"BOOL", DType::kBool},
    {"C64", DType::kComplex64},
    {"C128", DType::kComplex128},
}};

[[noreturn]] void fail_safetensors(const std::string& file, std::string text,
                                   std::string pointer = {}) {
  throw Error(ErrorCode::kParse, std::move(text), {.file = file, .pointer = std::move(pointer)});
}

std::uint64_t read_length(std::string_view bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return length;
}

std::size_t unsigned_value(const Json& json, const std::string& file, const std::string& pointer) {
  if (!json.is_number_unsigned()) {
    fail_safetensors(file,
                     "expected a non-negative integer, found " + std::string(json_type_name(json)),
                     pointer);
  }
  return json.get<std::size_t>();
}

SafetensorsEntry read_entry(const std::string& name, const Json& json, std::size_t data_size,
                            const std::string& file) {
  const std::string pointer = "/" + pointer_token(name);
  const Json* dtype = find_member(json, "dtype");
  const Json* shape = find_member(json, "shape");
  const Json* offsets = find_member(json, "data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr || !dtype->is_string() ||
      !shape->is_array() || !offsets->is_array() || offsets->size() != 2) {
    fail_safetensors(file, "expected an object with dtype, shape and two data_offsets", pointer);
  }
  SafetensorsEntry entry;
  entry.name = name;
  const auto& dtype_text = dtype->get_ref<const std::string&>();
  const auto* row = std::find_if(kNames.begin(), kNames.end(),
                                 [&](const auto& r) { return r.first == dtype_text; });
  if (row == kNames.end()) {
    fail_safetensors(file, "dtype '" + dtype_text + "' is not one that npu-tools reads",
                     pointer + "/dtype");
  }
  entry.dtype = row->second;
  for (std::size_t i = 0; i < shape->size(); ++i) {
    const std::string place = pointer + "/shape/" + std::to_string(i);
    const std::size_t dimension = unsigned_value((*shape)[i], file, place);
    if (dimension > static_cast<std::size_t>(INT64_MAX))
      fail_safetensors(file, "dimension too large", place);
    entry.shape.push_back(static_cast<std::int64_t>(dimension));
  }
  entry.begin = unsigned_value((*offsets)[0], file, pointer + "/data_offsets/0");
  entry.end = unsigned_value((*offsets)[1], file, pointer + "/data_offsets/1");
  if (entry.begin > entry.end || entry.end > data_size) {
    fail_safetensors(file,
                     "tensor '" + name + "' lies at bytes " + std::to_string(entry.begin) + " to " +
                         std::to_string(entry.end) + " of a data section of " +
                         std::to_string(data_size) + " bytes",
                     pointer + "/data_offsets");
  }
  const auto count = checked_element_count(entry.shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(entry.dtype)))
            : std::nullopt;
  if (!bytes || static_cast<std::size_t>(*bytes) != entry.end - entry.begin) {
    fail_safetensors(file,
                     "tensor '" + name + "' of dtype " + std::string(dtype_name(entry.dtype)) +
                         " and shape " + shape_text(entry.shape) + " does not have " +
                         std::to_string(entry.end - entry.begin) + " bytes",
                     pointer + "/data_offsets");
  }
  return entry;
}

// Like the reference implementation, refuses files whose tensors overlap or leave bytes unused.
void check_coverage(const std::vector<SafetensorsEntry>& entries, std::size_t data_size,
                    const std::string& file) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::size_t covered = 0;
  for (const SafetensorsEntry* entry : order) {
    const std::string pointer = "/" + pointer_token(entry->name) + "/data_offsets";
    if (entry->begin < covered) {
      fail_safetensors(file, "tensor '" + entry->name + "' overlaps the one before it", pointer);
    }
    if (entry->begin > covered) {
      fail_safetensors(file,
                       "bytes " + std::to_string(covered) + " to " + std::to_string(entry->begin) +
                           " of the data section belong to no tensor",
                       pointer);
    }
    covered = entry->end;
  }
  if (covered != data_size) {
    fail_safetensors(file, "the data section has " + std::to_string(data_size) +
                               " bytes, its tensors " + std::to_string(covered));
  }
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(std::string_view bytes, const std::string& file,
                                                std::size_t& data_begin) {
  if (bytes.size() < kLengthBytes) {
    fail_safetensors(file,
                     "a safetensors file starts with 8 bytes of header length; this one has " +
                         std::to_string(bytes.size()) + " bytes in all");
  }
  const std::uint64_t length = read_length(bytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    fail_safetensors(file, "the header is said to have " + std::to_string(length) +
                               " bytes, but only " + std::to_string(bytes.size() - kLengthBytes) +
                               " follow");
  }
  data_begin = kLengthBytes + static_cast<std::size_t>(length);
  const std::size_t data_size = bytes.size() - data_begin;
  const Json header = parse_json(bytes.substr(kLengthBytes, length), file + " (header)");
  if (!header.is_object()) {
    fail_safetensors(file, "the header is expected to be an object, found " +
                               std::string(json_type_name(header)));
  }
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    entries.push_back(read_entry(name, json, data_size, file));
  }
  check_coverage(entries, data_size, file);
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(std::make_shared<const MappedFile>(path)) {
  const std::string_view bytes(reinterpret_cast<const char*>(file_->data()), file_->size());
  entries_ = parse_safetensors(bytes, path, data_begin_);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const SafetensorsEntry& entry, std::string_view n) { return entry.name < n; });
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

Tensor SafetensorsFile::tensor(const SafetensorsEntry& entry) const {
  const std::byte* data = file_->data() + data_begin_ + entry.begin;
  const std::size_t size = entry.end - entry.begin;
  if (entry.dtype == DType::kBool) {
    const auto* bad = std::find_if(data, data + size, [](std::byte b) { return b > std::byte{1}; });
    if (bad != data + size) {
      fail_safetensors(path(), "bool tensor '" + entry.name + "' holds the byte " +
                                   std::to_string(static_cast<int>(*bad)) + ", expected 0 or 1");
    }
  }
  if (reinterpret_cast<std::uintptr_t>(data) % dtype_size(entry.dtype) != 0) {
    Tensor copy(entry.dtype, entry.shape);
    std::memcpy(copy.mutable_data(), data, size);
    return copy;
  }
  return Tensor(entry.dtype, entry.shape, std::shared_ptr<const std::byte>(file_, data));
}

void write_safetensors(const std::string& path,
                       const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Json header = Json::object();
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    Json entry = Json::object();
    for (const auto& [text, dtype] : kNames) {
      if (dtype == tensor.dtype()) entry["dtype"] = text;
    }
    entry["shape"] = tensor.shape();
    entry["data_offsets"] = {offset, offset + tensor.bytes()};
    offset += tensor.bytes();
    header[name] = std::move(entry);
  }
  std::string header_text = header.dump();
  header_text.append((8 - header_text.size() % 8) % 8, ' ');
  std::string content;
  content.reserve(kLengthBytes + header_text.size() + offset);
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    content += static_cast<char>((header_text.size() >> (8 * i)) & 0xff);
  }
  content += header_text;
  for (const auto& [name, tensor] : tensors) {
    content.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  }
  write_file_atomically(path, content);
}

}  // namespace npu
