// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The format of *.npub files; see npub(5).
inline constexpr int kBundleVersion = 1;
inline constexpr std::size_t kBundleAlignment = 4096;

/// A piece of a bundle: where it lies in the file, and what its bytes must hash to.
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
  std::string fingerprint;     ///< of the backend that made the blob; it runs only there
  std::size_t section = 0;     ///< the blob
  bool holds_weights = false;  ///< the blob has them packed
  Json report;                 ///< nodes, kernels, reorders, ...; an object
};

/// A weight that a backend is handed when the bundle is loaded.
struct BundleWeight {
  std::string name;  ///< the tensor's name in the document
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t offset = 0;  ///< in the section "weights"
};

/// A mapped bundle. The constructor checks every offset, length and digest of the file, so whoever
/// holds one may rely on them; sections share the mapping and are never copied.
class Bundle {
 public:
  /// True if the bytes start like a bundle, whatever follows.
  static bool has_magic(std::string_view bytes) noexcept;
  /// True if `path` is a file that starts like a bundle; false if it cannot be read.
  static bool is_bundle(const std::string& path);

  /// Maps a file. Throws Error kIo, or kParse with what is wrong and where.
  static std::shared_ptr<const Bundle> open(const std::string& path);
  /// Of bytes in memory, which are copied to aligned memory; `name` stands for them in messages.
  static std::shared_ptr<const Bundle> from_bytes(std::string_view bytes, const std::string& name);

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }
  /// The file, as it is mapped.
  std::string_view bytes() const noexcept {
    return {reinterpret_cast<const char*>(data_.get()), static_cast<std::size_t>(size_)};
  }
  /// What mapping and checking it took, in milliseconds.
  double open_ms() const noexcept { return open_ms_; }
  const Json& manifest() const noexcept { return manifest_; }
  const std::string& target() const noexcept { return target_; }
  const std::string& precision() const noexcept { return precision_; }
  const std::vector<BundleSection>& sections() const noexcept { return sections_; }
  const std::vector<BundlePartition>& partitions() const noexcept { return partitions_; }
  const std::vector<BundleWeight>& weights() const noexcept { return weights_; }

  /// The document of npu-ir(5) with its target and its plan.
  std::string_view document() const noexcept;
  /// The bytes of a section; the pointer keeps the mapping alive.
  std::shared_ptr<const std::byte> section(std::size_t index) const;
  /// The data of a weight, in place.
  Tensor weight(const BundleWeight& weight) const;

 private:
  class Parser;
  Bundle() = default;
  void parse();

  std::string name_;
  std::shared_ptr<const std::byte> data_;
  std::uint64_t size_ = 0;
  double open_ms_ = 0;
  Json manifest_;
  std::string target_;
  std::string precision_;
  std::vector<BundleSection> sections_;
  std::vector<BundlePartition> partitions_;
  std::vector<BundleWeight> weights_;
  std::size_t document_section_ = 0;
  std::size_t weights_section_ = 0;  ///< sections_.size() if there is none
};

/// What goes into a bundle; the bytes that pieces point to live until write_bundle returns.
struct BundleContent {
  std::string producer;
  std::string target;
  std::string precision;
  std::string document;
  Json provenance = Json::object();  ///< further members of the manifest
  struct PartitionPiece {
    BundlePartition entry;  ///< `section` is ignored
    std::shared_ptr<const std::byte> blob;
    std::uint64_t blob_size = 0;
  };
  std::vector<PartitionPiece> partitions;
  std::vector<std::pair<std::string, Tensor>> weights;
};

/// Writes a bundle under a temporary name in the same folder, syncs and renames it. The same
/// content gives the same bytes. Throws Error kIo.
void write_bundle(const std::string& path, const BundleContent& content);

/// The bytes that write_bundle writes.
std::string bundle_bytes(const BundleContent& content);

/// A table for people: sections, partitions and totals of a bundle.
std::string format_bundle(const Bundle& bundle);
/// The same as JSON, for `npu-compile --info`; a digest of the file stands in it unless it is
/// empty.
Json bundle_info(const Bundle& bundle, const std::string& sha256 = {});

}  // namespace npu
