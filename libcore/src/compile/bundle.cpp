// SPDX-License-Identifier: Apache-2.0
// Reads and writes *.npub files (npub(5)): a header of 64 bytes, a JSON manifest, then sections at
// multiples of 4096 bytes, so that a mapping serves each one in place.
//
// A reader takes nothing on trust: every offset, length and digest is checked before a byte of a
// section is used, sections may not overlap, and what lies between them is zero, so a change of any
// byte of a file is found. Reading is O(bytes) for the digests, at memory speed; nothing is copied.
// Leaves out: authenticity. A digest guards against damage, not against somebody who can compute
// one.
#include "npu/compile/bundle.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "npu/support/checked.hpp"
#include "npu/support/digest.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

// The first byte is no UTF-8 and the line ends do not survive a transfer as text.
constexpr std::array<char, 8> kMagic{'\x89', 'N', 'P', 'U', 'B', '\r', '\n', '\x1a'};
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kWeightAlignment = 64;
constexpr std::uint64_t kMaxManifestBytes = 1 << 28;
constexpr std::string_view kDocumentName = "document";
constexpr std::string_view kWeightsName = "weights";

std::uint64_t read_u64(const std::byte* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

void append_u64(std::string& text, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
}

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::string_view text_of(const std::byte* data, std::uint64_t size) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
}

/// The manifest's members, with the place in every message.
class Fields {
 public:
  Fields(const Json& json, const std::string& file, std::string pointer)
      : json_(json), file_(file), pointer_(std::move(pointer)) {
    if (!json_.is_object()) fail({}, "an object", json_);
  }

  [[noreturn]] void refuse(std::string_view key, std::string text) const {
    const std::string place = key.empty() ? pointer_ : pointer_ + "/" + std::string(key);
    throw Error(ErrorCode::kParse, std::move(text), {.file = file_, .pointer = place});
  }
  std::string text(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_string()) fail(key, "a string", value);
    return value.get<std::string>();
  }
  std::uint64_t number(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_number_unsigned()) fail(key, "a non-negative integer", value);
    return value.get<std::uint64_t>();
  }
  bool flag(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_boolean()) fail(key, "true or false", value);
    return value.get<bool>();
  }
  const Json& array(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_array()) fail(key, "an array", value);
    return value;
  }
  const Json& object(std::string_view key) const {
    const Json& value = member(key);
    if (!value.is_object()) fail(key, "an object", value);
    return value;
  }
  std::uint64_t digest(std::string_view key) const {
    const std::string text_value = text(key);
    std::uint64_t value = 0;
    bool valid = text_value.size() == 16;
    for (const char c : text_value) {
      const bool is_digit = c >= '0' && c <= '9';
      valid = valid && (is_digit || (c >= 'a' && c <= 'f'));
      value = value * 16 + static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
    }
    if (!valid) refuse(key, "'" + text_value + "' is no digest; expected 16 hexadecimal digits");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view key, std::string_view expected, const Json& found) const {
    refuse(key,
           "expected " + std::string(expected) + ", found " + std::string(json_type_name(found)));
  }
  const Json& member(std::string_view key) const {
    const Json* value = find_member(json_, key);
    if (value == nullptr) refuse(key, "is missing");
    return *value;
  }

  const Json& json_;
  const std::string& file_;
  std::string pointer_;
};

std::string index_pointer(std::string_view list, std::size_t index) {
  return "/" + std::string(list) + "/" + std::to_string(index);
}

Shape read_shape(const Fields& fields) {
  Shape shape;
  for (const Json& dimension : fields.array("shape")) {
    if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > INT64_MAX) {
      fields.refuse("shape", "expected non-negative integers");
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

}  // namespace

bool Bundle::has_magic(std::string_view bytes) noexcept {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool Bundle::is_bundle(const std::string& path) {
  // Non-blocking, and regular files only: opening a pipe would take bytes from its reader.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  std::array<char, kMagic.size()> start{};
  const ssize_t count = ::pread(file, start.data(), start.size(), 0);
  ::close(file);
  return count == static_cast<ssize_t>(start.size()) && has_magic({start.data(), start.size()});
}

std::shared_ptr<const Bundle> Bundle::open(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  const auto file = std::make_shared<const MappedFile>(path);
  std::shared_ptr<Bundle> bundle(new Bundle);
  bundle->name_ = path;
  bundle->data_ = {file, file->data()};
  bundle->size_ = file->size();
  bundle->parse();
  bundle->open_ms_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return bundle;
}

std::shared_ptr<const Bundle> Bundle::from_bytes(std::string_view bytes, const std::string& name) {
  std::shared_ptr<Bundle> bundle(new Bundle);
  bundle->name_ = name;
  bundle->size_ = bytes.size();
  const std::size_t room = aligned(std::max<std::size_t>(bytes.size(), 1), kBundleAlignment);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kBundleAlignment, room));
  if (memory == nullptr) throw std::bad_alloc();
  bundle->data_ = std::shared_ptr<const std::byte>(
      memory, [](const std::byte* data) { std::free(const_cast<std::byte*>(data)); });
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  bundle->parse();
  return bundle;
}

void Bundle::parse() {
  const auto refuse = [&](const std::string& text) -> void {
    throw Error(ErrorCode::kParse, text, {.file = name_});
  };
  const std::byte* bytes = data_.get();
  if (size_ < kHeaderBytes || !has_magic(text_of(bytes, kHeaderBytes))) {
    refuse("is no bundle: it does not start with the header that npu-compile writes");
  }
  const std::uint64_t version = read_u64(bytes + 8);
  if (version != static_cast<std::uint64_t>(kBundleVersion)) {
    refuse("has bundle version " + std::to_string(version) + ", this program reads version " +
           std::to_string(kBundleVersion) + "; compile the model again with npu-compile");
  }
  if (read_u64(bytes + 56) != xxh3_64(bytes, 56)) refuse("the header is damaged");
  const std::uint64_t file_size = read_u64(bytes + 16);
  if (file_size != size_) {
    refuse("has " + std::to_string(size_) + " bytes, its header says " + std::to_string(file_size) +
           (size_ < file_size ? "; it was cut short" : ""));
  }
  const std::uint64_t manifest_offset = read_u64(bytes + 24);
  const std::uint64_t manifest_size = read_u64(bytes + 32);
  if (manifest_offset != kHeaderBytes || manifest_size > kMaxManifestBytes ||
      manifest_size > size_ - kHeaderBytes || read_u64(bytes + 48) != 0) {
    refuse("the manifest does not lie where this version has it");
  }
  if (read_u64(bytes + 40) != xxh3_64(bytes + kHeaderBytes, manifest_size)) {
    refuse("the manifest is damaged: its digest differs");
  }
  const std::string manifest_name = name_ + " (manifest)";
  manifest_ = parse_json(text_of(bytes + kHeaderBytes, manifest_size), manifest_name);
  const Fields top(manifest_, manifest_name, {});
  target_ = top.text("target");
  precision_ = top.text("precision");

  // Sections, in the order in which they lie in the file.
  std::uint64_t covered = kHeaderBytes + manifest_size;
  document_section_ = weights_section_ = SIZE_MAX;
  const auto check_zero = [&](std::uint64_t begin, std::uint64_t end) {
    if (std::any_of(bytes + begin, bytes + end, [](std::byte b) { return b != std::byte{0}; })) {
      refuse("bytes " + std::to_string(begin) + " to " + std::to_string(end) +
             " belong to no section, but are not zero");
    }
  };
  for (const Json& json : top.array("sections")) {
    const Fields fields(json, manifest_name, index_pointer("sections", sections_.size()));
    BundleSection section{fields.text("name"), fields.number("offset"), fields.number("size"),
                          fields.digest("xxh3")};
    if (section.offset % kBundleAlignment != 0) {
      fields.refuse("offset", "offset " + std::to_string(section.offset) +
                                  " is not a multiple of " + std::to_string(kBundleAlignment));
    }
    if (section.offset > size_ || section.size > size_ - section.offset) {
      fields.refuse("offset", "section '" + section.name + "' lies at bytes " +
                                  std::to_string(section.offset) + " to " +
                                  std::to_string(section.offset + section.size) + " of a file of " +
                                  std::to_string(size_) + " bytes");
    }
    if (section.offset < covered) {
      fields.refuse("offset", "section '" + section.name + "' overlaps what lies before it");
    }
    check_zero(covered, section.offset);
    if (section.digest != xxh3_64(bytes + section.offset, section.size)) {
      refuse("section '" + section.name + "' is damaged: its digest differs");
    }
    covered = section.offset + section.size;
    if (section.name == kDocumentName) document_section_ = sections_.size();
    if (section.name == kWeightsName) weights_section_ = sections_.size();
    sections_.push_back(std::move(section));
  }
  if (covered != size_) {
    refuse("has " + std::to_string(size_ - covered) + " bytes behind its last section");
  }
  if (document_section_ == SIZE_MAX) refuse("has no section 'document'");

  for (const Json& json : top.array("partitions")) {
    const Fields fields(json, manifest_name, index_pointer("partitions", partitions_.size()));
    BundlePartition partition;
    partition.device = fields.text("device");
    partition.backend = fields.text("backend");
    partition.backend_version = fields.text("backend_version");
    partition.fingerprint = fields.text("fingerprint");
    partition.section = fields.number("section");
    partition.holds_weights = fields.flag("holds_weights");
    partition.report = fields.object("report");
    if (partition.section >= sections_.size()) {
      fields.refuse("section", "there is no section " + std::to_string(partition.section));
    }
    partitions_.push_back(std::move(partition));
  }

  const std::uint64_t weights_size =
      weights_section_ == SIZE_MAX ? 0 : sections_[weights_section_].size;
  std::set<std::string> names;
  for (const Json& json : top.array("weights")) {
    const Fields fields(json, manifest_name, index_pointer("weights", weights_.size()));
    BundleWeight weight;
    weight.name = fields.text("name");
    const auto dtype = parse_dtype(fields.text("dtype"));
    if (!dtype) fields.refuse("dtype", "unknown dtype '" + fields.text("dtype") + "'");
    weight.dtype = *dtype;
    weight.shape = read_shape(fields);
    weight.offset = fields.number("offset");
    const auto count = checked_element_count(weight.shape);
    const auto size =
        count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(weight.dtype)))
              : std::nullopt;
    if (!size || weight.offset % kWeightAlignment != 0 || weight.offset > weights_size ||
        static_cast<std::uint64_t>(*size) > weights_size - weight.offset) {
      fields.refuse("offset", "weight '" + weight.name + "' does not lie in section 'weights'");
    }
    if (!names.insert(weight.name).second) {
      fields.refuse("name", "weight '" + weight.name + "' stands there twice");
    }
    weights_.push_back(std::move(weight));
  }
}

std::string_view Bundle::document() const noexcept {
  const BundleSection& section = sections_[document_section_];
  return text_of(data_.get() + section.offset, section.size);
}

std::shared_ptr<const std::byte> Bundle::section(std::size_t index) const {
  return {data_, data_.get() + sections_[index].offset};
}

Tensor Bundle::weight(const BundleWeight& weight) const {
  const std::byte* data = data_.get() + sections_[weights_section_].offset + weight.offset;
  Tensor tensor(weight.dtype, weight.shape, std::shared_ptr<const std::byte>(data_, data));
  if (weight.dtype == DType::kBool &&
      std::any_of(data, data + tensor.bytes(), [](std::byte b) { return b > std::byte{1}; })) {
    throw Error(ErrorCode::kParse,
                "bool weight '" + weight.name + "' holds a byte other than 0 and 1",
                {.file = name_});
  }
  return tensor;
}

namespace {

/// Header, manifest, padding and sections of a bundle, as views and the texts behind them.
class BundleLayout {
 public:
  explicit BundleLayout(const BundleContent& content) : content_(content) {
    add_section(std::string(kDocumentName), {content.document});
    for (std::size_t i = 0; i < content.partitions.size(); ++i) {
      const auto& piece = content.partitions[i];
      add_section("partition " + std::to_string(i), {text_of(piece.blob.get(), piece.blob_size)});
    }
    if (!content.weights.empty()) add_weights();
    place();
  }

  const std::vector<std::string_view>& pieces() const noexcept { return pieces_; }

 private:
  struct Section {
    std::string name;
    std::vector<std::string_view> parts;
    std::uint64_t size = 0;
    std::uint64_t digest = 0;
    std::uint64_t offset = 0;
  };

  static std::string_view zeros(std::uint64_t count) {
    static const std::string text(kBundleAlignment, '\0');
    return std::string_view(text).substr(0, static_cast<std::size_t>(count));
  }

  void add_section(std::string name, std::vector<std::string_view> parts) {
    Section section{.name = std::move(name), .parts = std::move(parts)};
    for (const std::string_view part : section.parts) section.size += part.size();
    section.digest = xxh3_64(section.parts);
    sections_.push_back(std::move(section));
  }

  void add_weights() {
    std::vector<std::string_view> parts;
    std::uint64_t offset = 0;
    for (const auto& [name, tensor] : content_.weights) {
      const std::uint64_t begin = aligned(offset, kWeightAlignment);
      if (begin > offset) parts.push_back(zeros(begin - offset));
      parts.push_back(text_of(tensor.data(), tensor.bytes()));
      weights_.push_back({{"name", name},
                          {"dtype", dtype_name(tensor.dtype())},
                          {"shape", tensor.shape()},
                          {"offset", begin}});
      offset = begin + tensor.bytes();
    }
    add_section(std::string(kWeightsName), std::move(parts));
  }

  Json manifest() const {
    Json json = Json::object();
    json["producer"] = content_.producer;
    json["target"] = content_.target;
    json["precision"] = content_.precision;
    for (const auto& [key, value] : content_.provenance.items()) json[key] = value;
    json["partitions"] = Json::array();
    for (std::size_t i = 0; i < content_.partitions.size(); ++i) {
      const BundlePartition& entry = content_.partitions[i].entry;
      json["partitions"].push_back({{"id", i},
                                    {"device", entry.device},
                                    {"backend", entry.backend},
                                    {"backend_version", entry.backend_version},
                                    {"fingerprint", entry.fingerprint},
                                    {"section", i + 1},
                                    {"holds_weights", entry.holds_weights},
                                    {"report", entry.report}});
    }
    json["weights"] = weights_;
    json["sections"] = Json::array();
    for (const Section& section : sections_) {
      json["sections"].push_back({{"name", section.name},
                                  {"offset", section.offset},
                                  {"size", section.size},
                                  {"xxh3", hex_text(section.digest)}});
    }
    return json;
  }

  /// The manifest holds offsets that depend on its own length: repeat until the length stays.
  void place() {
    std::uint64_t begin = kBundleAlignment;
    for (;;) {
      std::uint64_t offset = begin;
      for (Section& section : sections_) {
        section.offset = aligned(offset, kBundleAlignment);
        offset = section.offset + section.size;
      }
      manifest_ = manifest().dump();
      const std::uint64_t needed = aligned(kHeaderBytes + manifest_.size(), kBundleAlignment);
      if (needed <= begin) break;
      begin = needed;
    }
    const std::uint64_t end = sections_.back().offset + sections_.back().size;
    header_.append(kMagic.data(), kMagic.size());
    append_u64(header_, kBundleVersion);
    append_u64(header_, end);
    append_u64(header_, kHeaderBytes);
    append_u64(header_, manifest_.size());
    append_u64(header_, xxh3_64(manifest_.data(), manifest_.size()));
    append_u64(header_, 0);
    append_u64(header_, xxh3_64(header_.data(), header_.size()));
    pieces_ = {header_, manifest_};
    std::uint64_t at = kHeaderBytes + manifest_.size();
    for (const Section& section : sections_) {
      while (at < section.offset) {
        const std::uint64_t gap = std::min<std::uint64_t>(section.offset - at, kBundleAlignment);
        pieces_.push_back(zeros(gap));
        at += gap;
      }
      pieces_.insert(pieces_.end(), section.parts.begin(), section.parts.end());
      at += section.size;
    }
  }

  const BundleContent& content_;
  std::vector<Section> sections_;
  Json weights_ = Json::array();
  std::string manifest_;
  std::string header_;
  std::vector<std::string_view> pieces_;
};

}  // namespace

void write_bundle(const std::string& path, const BundleContent& content) {
  const BundleLayout layout(content);
  write_file_atomically(path, layout.pieces());
}

std::string bundle_bytes(const BundleContent& content) {
  const BundleLayout layout(content);
  std::string bytes;
  for (const std::string_view piece : layout.pieces()) bytes += piece;
  return bytes;
}

Json bundle_info(const Bundle& bundle) {
  Json info = {{"bundle_version", kBundleVersion}, {"bytes", bundle.size()}};
  for (const auto& [key, value] : bundle.manifest().items()) info[key] = value;
  return info;
}

std::string format_bundle(const Bundle& bundle) {
  const auto field = [](const Json& json, const char* key) {
    const Json* value = find_member(json, key);
    if (value == nullptr) return std::string("-");
    return value->is_string() ? value->get<std::string>() : value->dump();
  };
  const auto bytes_field = [](const Json& json, const char* key) {
    const Json* value = find_member(json, key);
    return value == nullptr || !value->is_number() ? std::string("-")
                                                   : bytes_text(value->get<double>());
  };
  std::vector<std::vector<std::string>> head{{"bundle", bundle.name()}};
  for (const char* key : {"producer", "model", "target", "precision"}) {
    head.push_back({key, field(bundle.manifest(), key)});
  }
  head.push_back({"size", bytes_text(static_cast<double>(bundle.size()))});
  std::vector<std::vector<std::string>> partitions{{">partition", "device", "backend", ">nodes",
                                                    ">kernels", ">reorders", ">flops", ">weights",
                                                    ">arena", "fingerprint"}};
  for (std::size_t i = 0; i < bundle.partitions().size(); ++i) {
    const BundlePartition& row = bundle.partitions()[i];
    const Json* flops = find_member(row.report, "flops");
    partitions.push_back(
        {std::to_string(i), row.device, row.backend, field(row.report, "nodes"),
         field(row.report, "kernels"), field(row.report, "reorders"),
         flops == nullptr || !flops->is_number() ? "-" : flops_text(flops->get<double>()),
         bytes_field(row.report, "weight_bytes"), bytes_field(row.report, "arena_bytes"),
         row.fingerprint});
  }
  std::vector<std::vector<std::string>> sections{{"section", ">offset", ">bytes", "xxh3"}};
  for (const BundleSection& section : bundle.sections()) {
    sections.push_back({section.name, std::to_string(section.offset), std::to_string(section.size),
                        hex_text(section.digest)});
  }
  return table_text(head) + "\n" + table_text(partitions) + "\n" + table_text(sections);
}

}  // namespace npu
