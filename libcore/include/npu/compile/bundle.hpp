// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/shared_json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The format of *.npub files; see npub(5).
inline constexpr int kBundleVersion = 1;
inline constexpr std::size_t kBundleAlignment = 4096;

/// A section of a bundle: its place in the file, and the digest of its bytes.
struct BundleSection {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t digest = 0;  ///< XXH3, 64 bits
};

/// One partition of a compiled model, as the manifest describes it.
struct BundlePartition {
  std::string device;
  std::string backend;
  std::string backend_version;
  std::string fingerprint;     ///< of the backend that made the blob; no other loads it
  std::size_t section = 0;     ///< the blob
  std::string program = {};    ///< its name in a blob of several; empty: there is one
  bool holds_weights = false;  ///< packed, in the blob
  /// Of inputs and outputs that are not row-major, by name.
  std::map<std::string, std::string> layouts = {};
  SharedJson report;  ///< nodes, kernels, reorders, ...; an object
};

/// A weight that is passed to a backend when the bundle is loaded.
struct BundleWeight {
  std::string name;  ///< the tensor's name in the document
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t offset = 0;  ///< in the section "weights"
};

/// A document of npu-ir(5) that entries of a bundle are made of.
struct BundleDocument {
  std::string name;                             ///< empty: the bundle has only this one
  std::optional<std::size_t> template_section;  ///< of one whose sizes vary
};

/// A graph of a bundle, compiled: a document, or a document at one choice of its sizes.
struct BundleEntry {
  std::string name;                                        ///< empty: the bundle has no entries
  std::size_t of = 0;                                      ///< place in Bundle::documents
  std::map<std::string, std::int64_t, std::less<>> bound;  ///< value of each symbol
  double predicted_us = 0;                                 ///< of a run; only with a name
  bool has_last_row = false;  ///< for a token loop: logits of the last token alone
  std::size_t document = 0;   ///< section
  std::vector<BundlePartition> partitions;
  std::vector<std::size_t> weights;  ///< places in Bundle::weights; no two have one name
};

/// When the digests of a bundle's sections are checked; those of header, manifest, template and
/// documents are checked at once in any case.
enum class DigestCheck : std::uint8_t {
  kAtOnce,  ///< before there is an object
  kOnUse,   ///< by Bundle::check_section, which whoever uses a section calls
  kOmitted,
};

/// A mapped bundle. Every offset and length of the file is checked before there is an object, so
/// users may rely on them; sections share the mapping and are never copied.
class Bundle : public std::enable_shared_from_this<Bundle> {
 public:
  /// True if the bytes begin with the magic number of a bundle, whatever follows.
  static bool has_magic(std::string_view bytes) noexcept;
  /// The same for the file at `path`; false if it cannot be read.
  static bool is_bundle(const std::string& path);

  /// Maps a file. Throws Error kIo, or kParse with what is wrong and where.
  static std::shared_ptr<const Bundle> open(const std::string& path,
                                            DigestCheck check = DigestCheck::kAtOnce);
  /// A bundle in memory; its bytes are copied to aligned memory. Messages call it `name`.
  static std::shared_ptr<const Bundle> from_bytes(std::string_view bytes, const std::string& name,
                                                  DigestCheck check = DigestCheck::kAtOnce);

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }
  /// The bytes of the file, as mapped.
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(data_.get()), static_cast<std::size_t>(size_)};
  }
  /// Time spent on mapping and checking it, in milliseconds.
  double open_ms() const noexcept { return open_ms_; }
  const Json& manifest() const noexcept { return *manifest_; }
  const std::string& target() const noexcept { return target_; }
  const std::string& precision() const noexcept { return precision_; }
  const std::vector<BundleSection>& sections() const noexcept { return sections_; }
  /// At least one; several share states by name.
  const std::vector<BundleDocument>& documents() const noexcept { return documents_; }
  /// At least one; one if there is one document, without a template.
  const std::vector<BundleEntry>& entries() const noexcept { return entries_; }
  const std::vector<BundleWeight>& weights() const noexcept { return weights_; }

  /// Checks the digest of a section unless that was done, or is not wanted. Any thread may call it.
  /// Throws Error kParse.
  void check_section(std::size_t index) const;
  /// The document of an entry, of npu-ir(5) with its target and its plan.
  std::string_view document(std::size_t entry = 0) const noexcept;
  /// The template of npu-ir(5) that entries of a document are bound from; empty if there is none.
  std::string_view template_document(std::size_t of = 0) const noexcept;
  /// The bytes of a section; the pointer shares ownership of the mapping.
  std::shared_ptr<const std::byte> section(std::size_t index) const;
  /// The data of a weight, in place. Throws Error kParse if its section is damaged.
  Tensor weight(const BundleWeight& weight) const;

 private:
  class Parser;
  Bundle() = default;
  void parse();

  std::string name_;
  DigestCheck check_ = DigestCheck::kAtOnce;
  std::shared_ptr<const std::byte> data_;
  std::uint64_t size_ = 0;
  double open_ms_ = 0;
  std::shared_ptr<const Json> manifest_;  // partitions share their reports with it
  std::string target_;
  std::string precision_;
  std::vector<BundleSection> sections_;
  std::vector<BundleDocument> documents_;
  std::vector<BundleEntry> entries_;
  std::vector<BundleWeight> weights_;
  mutable std::mutex mutex_;           // of checked_
  mutable std::vector<bool> checked_;  // by section
  std::vector<bool> is_document_;      // by section; templates are some, too
  std::optional<std::size_t> weights_section_;
};

/// The level of instructions (device/isa_level.hpp) that a bundle was compiled for; nothing if
/// it states none of this CPU's architecture.
std::optional<std::size_t> bundle_isa_level(const Bundle& bundle);

/// The family (device/cpu_family.hpp) of the CPU that it was compiled on; empty if it states
/// none.
std::string bundle_cpu_family(const Bundle& bundle);

/// What goes into a bundle; the blobs and weights must live until write_bundle returns.
struct BundleContent {
  struct PartitionPiece {
    BundlePartition entry;  ///< `section` is ignored
    std::shared_ptr<const std::byte> blob;
    std::uint64_t blob_size = 0;
  };
  struct Document {
    std::string name;           ///< empty: there is only this one
    std::string template_text;  ///< empty: its sizes do not vary, and it has one entry
  };
  struct Entry {
    std::string name;    ///< as `bound` and `predicted_us`, of use with has_entries() only
    std::size_t of = 0;  ///< place in `documents`
    std::map<std::string, std::int64_t, std::less<>> bound;
    double predicted_us = 0;
    bool has_last_row = false;
    std::string document;
    std::vector<PartitionPiece> partitions;
    std::vector<std::pair<std::string, Tensor>> weights;
  };
  std::string producer;
  std::string target;
  std::string precision;
  Json provenance = Json::object();  ///< further members of the manifest
  std::vector<Document> documents = std::vector<Document>(1);
  std::vector<Entry> entries = std::vector<Entry>(1);

  /// Whether there is more than one document without a template, which has no name.
  bool has_entries() const noexcept {
    return documents.size() > 1 || !documents.front().template_text.empty();
  }
};

/// Writes a bundle under a temporary name in the same folder, syncs and renames it. The same
/// content gives the same bytes. With entries, what several entries have in common is written
/// once: equal weights, and blobs in the same memory. Throws Error kIo.
void write_bundle(const std::string& path, const BundleContent& content);

/// The bytes that write_bundle writes.
std::string bundle_bytes(const BundleContent& content);

/// A table for people: sections, partitions and totals of a bundle.
std::string format_bundle(const Bundle& bundle);
/// The same as JSON, for `npu-compile --info`; with the digest of
/// the file unless that is empty.
Json bundle_info(const Bundle& bundle, const std::string& sha256 = {});

}  // namespace npu
