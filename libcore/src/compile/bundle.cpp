// SPDX-License-Identifier: Apache-2.0
// Reads *.npub files (npub(5)): a header of 64 bytes, a JSON manifest, then sections at multiples
// of 4096 bytes, so that a mapping serves each one in place.
//
// A reader trusts nothing: every offset and length is checked before a byte of a section is used,
// sections may not overlap, and the bytes between them are zero. The digests of header, manifest
// and documents are checked at once, those of other sections then, too, or when they are first
// used, so a change to any byte that is used is detected. Checking is O(bytes), at memory speed;
// nothing is copied. Leaves out: authenticity. A digest guards against damage, not against somebody
// who can compute one.
#include "npu/compile/bundle.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <set>

#include "compile/bundle_format.hpp"
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

constexpr std::uint64_t kMaxManifestBytes = 1 << 28;

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
  const std::size_t room = bundle_aligned(std::max<std::size_t>(bytes.size(), 1), kBundleAlignment);
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
    const bool has_entries = top.has("template") || top.has("documents");
    read_weights(top, has_entries);
    has_entries ? read_entries(top) : read_model(top);
    for (std::size_t i = 0; i < bundle_.sections_.size(); ++i) {
      if (bundle_.check_ == DigestCheck::kAtOnce || bundle_.is_document_[i]) {
        bundle_.check_section(i);
      }
    }
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
    top.for_each("sections", [&](const JsonFields& fields) {
      BundleSection section{fields.text("name"), fields.unsigned_integer("offset"),
                            fields.unsigned_integer("size"), read_digest(fields, "xxh3")};
      check_place(fields, section, covered);
      check_zero(covered, section.offset);
      covered = section.offset + section.size;
      if (section.name == kWeightsSection) bundle_.weights_section_ = sections.size();
      sections.push_back(std::move(section));
    });
    if (covered != bundle_.size_) {
      refuse("has " + std::to_string(bundle_.size_ - covered) + " bytes behind its last section");
    }
    bundle_.checked_.assign(sections.size(), false);
    bundle_.is_document_.assign(sections.size(), false);
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

  /// One document without a template: its parts stand in the manifest itself.
  void read_model(const JsonFields& top) {
    bundle_.documents_.emplace_back();
    BundleEntry entry;
    entry.document = SIZE_MAX;
    for (std::size_t i = 0; i < bundle_.sections_.size(); ++i) {
      if (bundle_.sections_[i].name == kDocumentSection) entry.document = i;
    }
    if (entry.document == SIZE_MAX) refuse("has no section 'document'");
    bundle_.is_document_[entry.document] = true;
    read_partitions(top, entry);
    for (std::size_t i = 0; i < bundle_.weights_.size(); ++i) entry.weights.push_back(i);
    bundle_.entries_.push_back(std::move(entry));
  }

  void read_template(const JsonFields& fields, BundleDocument& document) {
    document.template_section = read_section_index(fields, "template");
    bundle_.is_document_[*document.template_section] = true;
  }

  /// Several documents have names; a single one is that of the manifest's template.
  void read_documents(const JsonFields& top) {
    if (!top.has("documents")) return read_template(top, bundle_.documents_.emplace_back());
    std::set<std::string> names;
    top.for_each("documents", [&](const JsonFields& fields) {
      BundleDocument& document = bundle_.documents_.emplace_back();
      document.name = fields.text("name");
      if (document.name.empty()) fields.refuse("name", "a document needs a name");
      if (!names.insert(document.name).second) {
        fields.refuse("name",
                      "document '" + printable_text(document.name) + "' stands there twice");
      }
      if (fields.has("template")) read_template(fields, document);
    });
    if (names.size() < 2) top.refuse("documents", "expected at least two documents");
  }

  /// The place of the document that an entry is made of.
  std::size_t read_document_index(const JsonFields& fields) const {
    const std::uint64_t index = fields.unsigned_integer("of");
    if (index < bundle_.documents_.size()) return index;
    fields.refuse("of", "there is no document " + std::to_string(index));
  }

  void read_entries(const JsonFields& top) {
    read_documents(top);
    std::set<std::string> names;
    top.for_each("entries", [&](const JsonFields& fields) {
      BundleEntry entry;
      entry.name = fields.text("name");
      if (entry.name.empty()) fields.refuse("name", "an entry needs a name");
      if (!names.insert(entry.name).second) {
        fields.refuse("name", "entry '" + printable_text(entry.name) + "' stands there twice");
      }
      if (bundle_.documents_.size() > 1) entry.of = read_document_index(fields);
      for (const auto& [symbol, value] : fields.object("bound").items()) {
        const auto number = json_integer(&value);
        if (!number || *number < 0) fields.refuse("bound", "expected integers of at least 0");
        entry.bound.emplace(symbol, *number);
      }
      entry.predicted_us = fields.number("predicted_us", std::numeric_limits<double>::max());
      if (fields.has("logits")) {
        if (fields.text("logits") != "last") fields.refuse("logits", "expected 'last'");
        entry.has_last_row = true;
      }
      entry.document = read_section_index(fields, "document");
      bundle_.is_document_[entry.document] = true;
      read_partitions(fields, entry);
      read_entry_weights(fields, entry);
      bundle_.entries_.push_back(std::move(entry));
    });
    if (names.empty()) top.refuse("entries", "expected at least one entry");
  }

  void read_entry_weights(const JsonFields& fields, BundleEntry& entry) const {
    std::set<std::string_view> names;
    for (const Json& place : fields.list("weights")) {
      const auto index = json_unsigned(&place);
      if (!index || *index >= bundle_.weights_.size()) {
        fields.refuse("weights", "expected places in the list of " +
                                     std::to_string(bundle_.weights_.size()) + " weights");
      }
      const std::string& name = bundle_.weights_[*index].name;
      if (!names.insert(name).second) {
        fields.refuse("weights", "weight '" + printable_text(name) + "' stands there twice");
      }
      entry.weights.push_back(*index);
    }
  }

  std::size_t read_section_index(const JsonFields& fields, std::string_view key) const {
    const std::uint64_t index = fields.unsigned_integer(key);
    if (index >= bundle_.sections_.size()) {
      fields.refuse(key, "there is no section " + std::to_string(index));
    }
    return index;
  }

  void read_partitions(const JsonFields& owner, BundleEntry& entry) {
    owner.for_each("partitions", [&](const JsonFields& fields) {
      BundlePartition partition;
      partition.device = fields.text("device");
      partition.backend = fields.text("backend");
      partition.backend_version = fields.text("backend_version");
      partition.fingerprint = fields.text("fingerprint");
      partition.section = read_section_index(fields, "section");
      partition.holds_weights = fields.flag("holds_weights");
      partition.program = fields.text_or("program", "");
      if (fields.has("layouts")) read_layouts(fields, partition);
      partition.report = std::shared_ptr<const Json>(bundle_.manifest_, &fields.object("report"));
      entry.partitions.push_back(std::move(partition));
    });
  }

  static void read_layouts(const JsonFields& fields, BundlePartition& partition) {
    for (const auto& [tensor, layout] : fields.object("layouts").items()) {
      const auto* name = layout.get_ptr<const std::string*>();
      if (name == nullptr || name->empty()) fields.refuse("layouts", "expected names of layouts");
      partition.layouts.emplace(tensor, *name);
    }
  }

  /// Entries may have different weights of one name.
  void read_weights(const JsonFields& top, bool has_entries) {
    const std::uint64_t room =
        bundle_.weights_section_ ? bundle_.sections_[*bundle_.weights_section_].size : 0;
    std::set<std::string> names;
    top.for_each("weights", [&](const JsonFields& fields) {
      if (!bundle_.weights_section_) fields.refuse("offset", "there is no section 'weights'");
      BundleWeight weight = read_weight(fields, room);
      if (!has_entries && !names.insert(weight.name).second) {
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
  if (check_ == DigestCheck::kOmitted && !is_document_[index]) return;
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

std::string_view Bundle::document(std::size_t entry) const noexcept {
  const BundleSection& section = sections_[entries_[entry].document];
  return text_of(data_.get() + section.offset, section.size);
}

std::string_view Bundle::template_document(std::size_t of) const noexcept {
  if (!documents_[of].template_section) return {};
  const BundleSection& section = sections_[*documents_[of].template_section];
  return text_of(data_.get() + section.offset, section.size);
}

std::shared_ptr<const std::byte> Bundle::section(std::size_t index) const {
  return {data_, data_.get() + sections_[index].offset};
}

Tensor Bundle::weight(const BundleWeight& weight) const {
  check_section(*weights_section_);
  const std::byte* data = data_.get() + sections_[*weights_section_].offset + weight.offset;
  Tensor tensor(weight.dtype, weight.shape, std::shared_ptr<const std::byte>(data_, data));
  if (weight.dtype == DType::kBool &&
      std::any_of(data, data + tensor.bytes(), [](std::byte b) { return b > std::byte{1}; })) {
    throw Error(ErrorCode::kParse,
                "bool weight '" + weight.name + "' holds a byte other than 0 and 1",
                {.file = name_});
  }
  return tensor;
}

}  // namespace npu
