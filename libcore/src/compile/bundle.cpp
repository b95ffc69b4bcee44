// SPDX-License-Identifier: Apache-2.0
// Reads and writes *.npub files (npub(5)): a header of 64 bytes, a JSON manifest, then sections at
// multiples of 4096 bytes, so that a mapping serves each one in place.
//
// A reader trusts nothing: every offset and length is checked before a byte of a section is used,
// sections may not overlap, and the bytes between them are zero. The digests of header, manifest
// and document are checked at once, those of other sections then, too, or when they are first used,
// so a change to any byte that is used is detected. Checking is O(bytes), at memory speed; nothing
// is copied.
// Leaves out: authenticity. A digest guards against damage, not against somebody who can compute
// one.
#include "npu/compile/bundle.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "device/isa_level.hpp"
#include "npu/compile/compile_report.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/byte_order.hpp"
#include "support/checked.hpp"
#include "support/digest.hpp"
#include "support/elapsed.hpp"
#include "support/json_fields.hpp"
#include "support/open_file.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

// The first byte is not UTF-8, and the line ends do not survive a transfer in text mode.
constexpr std::array<char, 8> kBundleMagic{'\x89', 'N', 'P', 'U', 'B', '\r', '\n', '\x1a'};
constexpr std::size_t kBundleHeaderBytes = 64;
constexpr std::size_t kWeightAlignment = 64;
constexpr std::uint64_t kMaxManifestBytes = 1 << 28;
constexpr std::string_view kDocumentName = "document";
constexpr std::string_view kWeightsName = "weights";

std::uint64_t aligned(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

std::string_view text_of(const std::byte* data, std::uint64_t size) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
}

/// Messages about the manifest use the default wording.
constexpr FieldStyle kStyle{};

std::uint64_t read_digest(const JsonFields& fields, std::string_view key) {
  const std::string text = fields.text(key);
  std::uint64_t value = 0;
  bool valid = text.size() == 16;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    valid = valid && (is_digit || (c >= 'a' && c <= 'f'));
    value = value * 16 + static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  if (!valid) fields.refuse(key, "'" + text + "' is no digest; expected 16 hexadecimal digits");
  return value;
}

Shape read_shape(const JsonFields& fields) {
  Shape shape;
  for (const Json& dimension : fields.list("shape")) {
    if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > INT64_MAX) {
      fields.refuse("shape", "expected non-negative integers");
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

}  // namespace

bool Bundle::has_magic(std::string_view bytes) noexcept {
  return bytes.size() >= kBundleMagic.size() &&
         std::memcmp(bytes.data(), kBundleMagic.data(), kBundleMagic.size()) == 0;
}

bool Bundle::is_bundle(const std::string& path) {
  // Regular files only: reading a pipe would take bytes from its reader.
  if (!is_regular_file(path)) return false;
  try {
    const OpenedFile file = open_to_read(path);
    std::array<char, kBundleMagic.size()> start{};
    const ssize_t count = ::pread(file.descriptor.get(), start.data(), start.size(), 0);
    return count == static_cast<ssize_t>(start.size()) && has_magic({start.data(), start.size()});
  } catch (const Error&) {
    return false;
  }
}

std::shared_ptr<const Bundle> Bundle::open(const std::string& path, DigestCheck check) {
  const auto start = Clock::now();
  const auto file = std::make_shared<const MappedFile>(path);
  std::shared_ptr<Bundle> bundle(new Bundle);
  bundle->name_ = path;
  bundle->check_ = check;
  bundle->data_ = {file, file->data()};
  bundle->size_ = file->size();
  bundle->parse();
  bundle->open_ms_ = milliseconds_since(start);
  return bundle;
}

std::shared_ptr<const Bundle> Bundle::from_bytes(std::string_view bytes, const std::string& name,
                                                 DigestCheck check) {
  std::shared_ptr<Bundle> bundle(new Bundle);
  bundle->name_ = name;
  bundle->check_ = check;
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

/// Reads a mapped file into a bundle, from the header to the weights; each step relies on the
/// checks of those before it.
class Bundle::Parser {
 public:
  explicit Parser(Bundle& bundle)
      : bundle_(bundle), bytes_(bundle.data_.get()), file_(bundle.name_ + " (manifest)") {}

  void run() {
    const std::uint64_t manifest_size = read_header();
    bundle_.manifest_ = std::make_shared<const Json>(
        parse_json(text_of(bytes_ + kBundleHeaderBytes, manifest_size), file_));
    const JsonFields top(bundle_.manifest(), file_, {}, kStyle);
    bundle_.target_ = top.text("target");
    bundle_.precision_ = top.text("precision");
    read_sections(top, kBundleHeaderBytes + manifest_size);
    read_partitions(top);
    read_weights(top);
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kParse, text, {.file = bundle_.name_});
  }

  /// Checks the header and the manifest's digest; returns the size of the manifest.
  std::uint64_t read_header() const {
    const std::uint64_t size = bundle_.size_;
    if (size < kBundleHeaderBytes || !has_magic(text_of(bytes_, kBundleHeaderBytes))) {
      refuse("is no bundle: it does not start with the header that npu-compile writes");
    }
    const std::uint64_t version = read_u64(bytes_ + 8);
    if (version != static_cast<std::uint64_t>(kBundleVersion)) {
      refuse("has bundle version " + std::to_string(version) + ", this program reads version " +
             std::to_string(kBundleVersion) + "; compile the model again with npu-compile");
    }
    if (read_u64(bytes_ + 56) != xxh3_64(bytes_, 56)) refuse("the header is damaged");
    const std::uint64_t file_size = read_u64(bytes_ + 16);
    if (file_size != size) {
      refuse("has " + std::to_string(size) + " bytes, its header says " +
             std::to_string(file_size) + (size < file_size ? "; it was cut short" : ""));
    }
    const std::uint64_t manifest_offset = read_u64(bytes_ + 24);
    const std::uint64_t manifest_size = read_u64(bytes_ + 32);
    if (manifest_offset != kBundleHeaderBytes || manifest_size > kMaxManifestBytes ||
        manifest_size > size - kBundleHeaderBytes || read_u64(bytes_ + 48) != 0) {
      refuse("the manifest does not lie where this version has it");
    }
    if (read_u64(bytes_ + 40) != xxh3_64(bytes_ + kBundleHeaderBytes, manifest_size)) {
      refuse("the manifest is damaged: its digest differs");
    }
    return manifest_size;
  }

  /// Reads the sections, in file order; the first `covered` bytes of the file are read already.
  void read_sections(const JsonFields& top, std::uint64_t covered) {
    std::vector<BundleSection>& sections = bundle_.sections_;
    bundle_.document_section_ = bundle_.weights_section_ = SIZE_MAX;
    top.for_each("sections", [&](const JsonFields& fields) {
      BundleSection section{fields.text("name"), fields.unsigned_integer("offset"),
                            fields.unsigned_integer("size"), read_digest(fields, "xxh3")};
      check_place(fields, section, covered);
      check_zero(covered, section.offset);
      covered = section.offset + section.size;
      if (section.name == kDocumentName) bundle_.document_section_ = sections.size();
      if (section.name == kWeightsName) bundle_.weights_section_ = sections.size();
      sections.push_back(std::move(section));
    });
    if (covered != bundle_.size_) {
      refuse("has " + std::to_string(bundle_.size_ - covered) + " bytes behind its last section");
    }
    if (bundle_.document_section_ == SIZE_MAX) refuse("has no section 'document'");
    bundle_.checked_.assign(sections.size(), false);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (bundle_.check_ == DigestCheck::kAtOnce || i == bundle_.document_section_) {
        bundle_.check_section(i);
      }
    }
  }

  void check_place(const JsonFields& fields, const BundleSection& section,
                   std::uint64_t covered) const {
    const std::uint64_t size = bundle_.size_;
    if (section.offset % kBundleAlignment != 0) {
      fields.refuse("offset", "offset " + std::to_string(section.offset) +
                                  " is not a multiple of " + std::to_string(kBundleAlignment));
    }
    if (section.offset > size || section.size > size - section.offset) {
      fields.refuse("offset", "section '" + section.name + "' lies at bytes " +
                                  std::to_string(section.offset) + " to " +
                                  std::to_string(section.offset + section.size) + " of a file of " +
                                  std::to_string(size) + " bytes");
    }
    if (section.offset < covered) {
      fields.refuse("offset", "section '" + section.name + "' overlaps what lies before it");
    }
  }

  void check_zero(std::uint64_t begin, std::uint64_t end) const {
    if (std::any_of(bytes_ + begin, bytes_ + end, [](std::byte b) { return b != std::byte{0}; })) {
      refuse("bytes " + std::to_string(begin) + " to " + std::to_string(end) +
             " belong to no section, but are not zero");
    }
  }

  void read_partitions(const JsonFields& top) {
    std::vector<BundlePartition>& partitions = bundle_.partitions_;
    top.for_each("partitions", [&](const JsonFields& fields) {
      BundlePartition partition;
      partition.device = fields.text("device");
      partition.backend = fields.text("backend");
      partition.backend_version = fields.text("backend_version");
      partition.fingerprint = fields.text("fingerprint");
      partition.section = fields.unsigned_integer("section");
      partition.holds_weights = fields.flag("holds_weights");
      if (fields.has("layouts")) read_layouts(fields, partition);
      partition.report = std::shared_ptr<const Json>(bundle_.manifest_, &fields.object("report"));
      if (partition.section >= bundle_.sections_.size()) {
        fields.refuse("section", "there is no section " + std::to_string(partition.section));
      }
      partitions.push_back(std::move(partition));
    });
  }

  static void read_layouts(const JsonFields& fields, BundlePartition& partition) {
    for (const auto& [tensor, layout] : fields.object("layouts").items()) {
      const auto* name = layout.get_ptr<const std::string*>();
      if (name == nullptr || name->empty()) fields.refuse("layouts", "expected names of layouts");
      partition.layouts.emplace(tensor, *name);
    }
  }

  void read_weights(const JsonFields& top) {
    const std::uint64_t room =
        bundle_.weights_section_ == SIZE_MAX ? 0 : bundle_.sections_[bundle_.weights_section_].size;
    std::set<std::string> names;
    top.for_each("weights", [&](const JsonFields& fields) {
      BundleWeight weight = read_weight(fields, room);
      if (!names.insert(weight.name).second) {
        fields.refuse("name", "weight '" + weight.name + "' stands there twice");
      }
      bundle_.weights_.push_back(std::move(weight));
    });
  }

  /// Reads a weight, which must lie in the first `room` bytes of its section.
  static BundleWeight read_weight(const JsonFields& fields, std::uint64_t room) {
    BundleWeight weight;
    weight.name = fields.text("name");
    const auto dtype = parse_dtype(fields.text("dtype"));
    if (!dtype) fields.refuse("dtype", "unknown dtype '" + fields.text("dtype") + "'");
    weight.dtype = *dtype;
    weight.shape = read_shape(fields);
    weight.offset = fields.unsigned_integer("offset");
    const auto count = checked_element_count(weight.shape);
    const auto size =
        count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(weight.dtype)))
              : std::nullopt;
    if (!size || weight.offset % kWeightAlignment != 0 || weight.offset > room ||
        static_cast<std::uint64_t>(*size) > room - weight.offset) {
      fields.refuse("offset", "weight '" + weight.name + "' does not lie in section 'weights'");
    }
    return weight;
  }

  Bundle& bundle_;
  const std::byte* bytes_;
  std::string file_;  ///< of the manifest, for messages
};

void Bundle::parse() { Parser(*this).run(); }

void Bundle::check_section(std::size_t index) const {
  if (check_ == DigestCheck::kOmitted && index != document_section_) return;
  {
    const std::lock_guard lock(mutex_);
    if (checked_[index]) return;
  }
  const BundleSection& section = sections_[index];
  if (section.digest != xxh3_64(data_.get() + section.offset, section.size)) {
    throw Error(ErrorCode::kParse, "section '" + section.name + "' is damaged: its digest differs",
                {.file = name_});
  }
  const std::lock_guard lock(mutex_);
  checked_[index] = true;
}

std::string_view Bundle::document() const noexcept {
  const BundleSection& section = sections_[document_section_];
  return text_of(data_.get() + section.offset, section.size);
}

std::shared_ptr<const std::byte> Bundle::section(std::size_t index) const {
  return {data_, data_.get() + sections_[index].offset};
}

Tensor Bundle::weight(const BundleWeight& weight) const {
  check_section(weights_section_);
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

/// Header, manifest, padding and sections of a bundle, as views and the text that they refer to.
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
                                    {"holds_weights", entry.holds_weights}});
      if (!entry.layouts.empty()) json["partitions"].back()["layouts"] = entry.layouts;
      json["partitions"].back()["report"] = *entry.report;
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

  /// The manifest holds offsets that depend on its length: repeats until the length is stable.
  void place() {
    std::uint64_t begin = kBundleAlignment;
    for (;;) {
      std::uint64_t offset = begin;
      for (Section& section : sections_) {
        section.offset = aligned(offset, kBundleAlignment);
        offset = section.offset + section.size;
      }
      manifest_ = manifest().dump();
      const std::uint64_t needed = aligned(kBundleHeaderBytes + manifest_.size(), kBundleAlignment);
      if (needed <= begin) break;
      begin = needed;
    }
    const std::uint64_t end = sections_.back().offset + sections_.back().size;
    header_.append(kBundleMagic.data(), kBundleMagic.size());
    append_u64(header_, kBundleVersion);
    append_u64(header_, end);
    append_u64(header_, kBundleHeaderBytes);
    append_u64(header_, manifest_.size());
    append_u64(header_, xxh3_64(manifest_.data(), manifest_.size()));
    append_u64(header_, 0);
    append_u64(header_, xxh3_64(header_.data(), header_.size()));
    pieces_ = {header_, manifest_};
    std::uint64_t at = kBundleHeaderBytes + manifest_.size();
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

std::optional<std::size_t> bundle_isa_level(const Bundle& bundle) {
  const Json* isa = find_member(bundle.manifest(), "isa");
  if (isa == nullptr || !isa->is_string()) return std::nullopt;
  const auto level = find_isa_level(isa->get<std::string>());
  return level && is_native_isa_level(*level) ? level : std::nullopt;
}

std::string bundle_cpu_family(const Bundle& bundle) {
  const std::string* family = member_text(bundle.manifest(), "cpu_family");
  return family == nullptr ? std::string() : printable_text(*family);
}

Json bundle_info(const Bundle& bundle, const std::string& sha256) {
  Json info = {{"bundle_version", kBundleVersion}, {"bytes", bundle.size()}};
  if (!sha256.empty()) info["sha256"] = sha256;
  // Facts about the file take precedence over what its manifest states.
  for (const auto& [key, value] : bundle.manifest().items()) {
    if (!info.contains(key)) info[key] = value;
  }
  return info;
}

namespace {

/// What each partition takes of memory by its backend's report; "-" for what that does not say.
std::string memory_table(const Bundle& bundle) {
  std::vector<std::vector<std::string>> rows{
      {"memory", ">weights", ">scratch", ">in and out", ">other", "accuracy"}};
  for (std::size_t i = 0; i < bundle.partitions().size(); ++i) {
    std::vector<std::string> cells{"memory of partition " + std::to_string(i)};
    static const Json kNone;
    const Json* found = member_object(*bundle.partitions()[i].report, "memory");
    const Json& memory = found != nullptr ? *found : kNone;
    for (const char* key : {"weights_bytes", "scratch_bytes", "boundary_bytes", "other_bytes"}) {
      const auto bytes = member_double(memory, key);
      cells.push_back(bytes ? bytes_text(*bytes) : "-");
    }
    const std::string* accuracy = member_text(memory, "accuracy");
    cells.push_back(accuracy != nullptr ? *accuracy : "-");
    rows.push_back(std::move(cells));
  }
  return table_text(rows);
}

}  // namespace

std::string format_bundle(const Bundle& bundle) {
  std::vector<std::vector<std::string>> head{{"bundle", bundle.name()}};
  for (const char* key : {"producer", "model", "target", "precision", "isa", "cpu_family"}) {
    const Json* value = find_member(bundle.manifest(), key);
    head.push_back({key, value == nullptr     ? "-"
                         : value->is_string() ? value->get<std::string>()
                                              : value->dump()});
  }
  head.push_back({"size", bytes_text(static_cast<double>(bundle.size()))});
  std::vector<std::vector<std::string>> partitions{{">partition", "device", "backend", ">nodes",
                                                    ">kernels", ">reorders", ">flops", ">weights",
                                                    ">arena", "fingerprint"}};
  for (std::size_t i = 0; i < bundle.partitions().size(); ++i) {
    const BundlePartition& row = bundle.partitions()[i];
    std::vector<std::string> cells{std::to_string(i), row.device, row.backend};
    for (std::string& cell : number_cells(read_compile_numbers(*row.report))) {
      cells.push_back(std::move(cell));
    }
    cells.push_back(row.fingerprint);
    partitions.push_back(std::move(cells));
  }
  std::vector<std::vector<std::string>> sections{{"section", ">offset", ">bytes", "xxh3"}};
  for (const BundleSection& section : bundle.sections()) {
    sections.push_back({section.name, std::to_string(section.offset), std::to_string(section.size),
                        hex_text(section.digest)});
  }
  return table_text(head) + "\n" + table_text(partitions) + "\n" + memory_table(bundle) + "\n" +
         table_text(sections);
}

}  // namespace npu
