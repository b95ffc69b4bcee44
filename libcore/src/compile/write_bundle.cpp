// SPDX-License-Identifier: Apache-2.0
// Writes *.npub files (npub(5)).
//
// Sections are views of what the content holds, so nothing large is copied. With entries, equal
// weights of several of them are written once, and so is a blob that several of their partitions
// have in the same memory. Without, the manifest has the model's members itself, and weights are
// written as they are listed. Cost: O(bytes) for the digests, and a second walk over weights of
// several entries to find those that are equal.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compile/bundle_format.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "support/byte_order.hpp"
#include "support/digest.hpp"

namespace npu {
namespace {

std::string_view bytes_text_of(const void* data, std::uint64_t size) {
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

/// The weights of all entries, one after another in their section.
class WeightPool {
 public:
  /// Equal weights have one place if they `share`.
  explicit WeightPool(bool share) : share_(share) {}

  /// Its place in the list of weights.
  std::size_t add(const std::string& name, const Tensor& tensor) {
    const std::string_view bytes = bytes_text_of(tensor.data(), tensor.bytes());
    std::uint64_t offset = 0;
    if (const auto known = share_ ? find(bytes) : std::nullopt) {
      offset = *known;
    } else {
      offset = append(bytes);
    }
    Json row = {{"name", name},
                {"dtype", dtype_name(tensor.dtype())},
                {"shape", tensor.shape()},
                {"offset", offset}};
    if (share_) {
      const auto [found, is_new] = rows_.try_emplace(row.dump(), list_.size());
      if (!is_new) return found->second;
    }
    list_.push_back(std::move(row));
    return list_.size() - 1;
  }

  const Json& list() const noexcept { return list_; }
  const std::vector<std::string_view>& parts() const noexcept { return parts_; }

 private:
  std::optional<std::uint64_t> find(std::string_view bytes) const {
    const auto [begin, end] = places_.equal_range(xxh3_64(bytes.data(), bytes.size()));
    for (auto place = begin; place != end; ++place) {
      if (place->second.second == bytes) return place->second.first;
    }
    return std::nullopt;
  }

  std::uint64_t append(std::string_view bytes) {
    static const std::string zeros(kWeightAlignment, '\0');
    const std::uint64_t offset = bundle_aligned(end_, kWeightAlignment);
    if (offset > end_) parts_.push_back(std::string_view(zeros).substr(0, offset - end_));
    parts_.push_back(bytes);
    end_ = offset + bytes.size();
    if (share_) places_.emplace(xxh3_64(bytes.data(), bytes.size()), std::pair(offset, bytes));
    return offset;
  }

  bool share_;
  Json list_ = Json::array();
  std::vector<std::string_view> parts_;
  std::uint64_t end_ = 0;
  std::unordered_map<std::string, std::size_t> rows_;
  std::unordered_multimap<std::uint64_t, std::pair<std::uint64_t, std::string_view>> places_;
};

/// Header, manifest, padding and sections of a bundle, as views and the text that they refer to.
class BundleLayout {
 public:
  explicit BundleLayout(const BundleContent& content)
      : content_(content), weights_(content.has_entries()) {
    if (content.has_entries()) {
      for (const BundleContent::Document& document : content.documents) add_template(document);
      for (std::size_t i = 0; i < content.entries.size(); ++i) {
        add_entry(content.entries[i], " " + std::to_string(i));
      }
    } else {
      add_entry(content.entries.front(), "");
    }
    if (!weights_.list().empty()) add_section(std::string(kWeightsSection), weights_.parts());
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
  /// Where the parts of an entry are.
  struct Places {
    std::size_t document = 0;
    std::vector<std::size_t> blobs;
    std::vector<std::size_t> weights;
  };

  static std::string_view zeros(std::uint64_t count) {
    static const std::string text(kBundleAlignment, '\0');
    return std::string_view(text).substr(0, static_cast<std::size_t>(count));
  }

  std::size_t add_section(std::string name, std::vector<std::string_view> parts) {
    Section section{.name = std::move(name), .parts = std::move(parts)};
    for (const std::string_view part : section.parts) section.size += part.size();
    section.digest = xxh3_64(section.parts);
    sections_.push_back(std::move(section));
    return sections_.size() - 1;
  }

  void add_template(const BundleContent::Document& document) {
    templates_.emplace_back();
    if (document.template_text.empty()) return;
    const std::string name = document.name.empty() ? "" : " " + document.name;
    templates_.back() = add_section("template" + name, {document.template_text});
  }

  void add_entry(const BundleContent::Entry& entry, const std::string& number) {
    Places places;
    places.document = add_section(std::string(kDocumentSection) + number, {entry.document});
    for (std::size_t i = 0; i < entry.partitions.size(); ++i) {
      const auto& piece = entry.partitions[i];
      const std::string_view blob = bytes_text_of(piece.blob.get(), piece.blob_size);
      const auto [known, is_new] = blobs_.try_emplace({blob.data(), blob.size()}, sections_.size());
      if (is_new || !content_.has_entries()) {
        const std::string name = number.empty() ? "" : number + ".";
        places.blobs.push_back(
            add_section("partition" + (number.empty() ? " " : name) + std::to_string(i), {blob}));
      } else {
        places.blobs.push_back(known->second);
      }
    }
    for (const auto& [name, tensor] : entry.weights) {
      places.weights.push_back(weights_.add(name, tensor));
    }
    places_.push_back(std::move(places));
  }

  static Json partitions_json(const BundleContent::Entry& entry, const Places& places) {
    Json list = Json::array();
    for (std::size_t i = 0; i < entry.partitions.size(); ++i) {
      const BundlePartition& partition = entry.partitions[i].entry;
      list.push_back({{"id", i},
                      {"device", partition.device},
                      {"backend", partition.backend},
                      {"backend_version", partition.backend_version},
                      {"fingerprint", partition.fingerprint},
                      {"section", places.blobs[i]},
                      {"holds_weights", partition.holds_weights}});
      if (!partition.program.empty()) list.back()["program"] = partition.program;
      if (!partition.layouts.empty()) list.back()["layouts"] = partition.layouts;
      list.back()["report"] = *partition.report;
    }
    return list;
  }

  Json entries_json() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < content_.entries.size(); ++i) {
      const BundleContent::Entry& entry = content_.entries[i];
      list.push_back(
          {{"name", entry.name}, {"bound", entry.bound}, {"predicted_us", entry.predicted_us}});
      if (entry.has_last_row) list.back()["logits"] = "last";
      list.back()["document"] = places_[i].document;
      list.back()["partitions"] = partitions_json(entry, places_[i]);
      list.back()["weights"] = places_[i].weights;
      if (content_.documents.size() > 1) list.back()["of"] = entry.of;
    }
    return list;
  }

  Json documents_json() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < content_.documents.size(); ++i) {
      list.push_back({{"name", content_.documents[i].name}});
      if (templates_[i]) list.back()["template"] = *templates_[i];
    }
    return list;
  }

  Json manifest() const {
    Json json = Json::object();
    json["producer"] = content_.producer;
    json["target"] = content_.target;
    json["precision"] = content_.precision;
    for (const auto& [key, value] : content_.provenance.items()) json[key] = value;
    if (content_.has_entries()) {
      if (content_.documents.size() > 1) {
        json["documents"] = documents_json();
      } else {
        json["template"] = *templates_.front();
      }
      json["entries"] = entries_json();
    } else {
      json["partitions"] = partitions_json(content_.entries.front(), places_.front());
    }
    json["weights"] = weights_.list();
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
        section.offset = bundle_aligned(offset, kBundleAlignment);
        offset = section.offset + section.size;
      }
      manifest_ = manifest().dump();
      const std::uint64_t needed =
          bundle_aligned(kBundleHeaderBytes + manifest_.size(), kBundleAlignment);
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
  WeightPool weights_;
  std::vector<Section> sections_;
  std::vector<std::optional<std::size_t>> templates_;  // by document
  std::vector<Places> places_;                         // by entry
  std::map<std::pair<const char*, std::size_t>, std::size_t> blobs_;
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

}  // namespace npu
