// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "csr/csr_graph.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "npu/support/file_io.hpp"

namespace npu::gnn {

/// Whether bytes begin as the binary form of a graph does (npu-gnn(5)).
bool is_binary_graph(std::string_view bytes) noexcept;

/// All of a graph, checked. Throws Error kParse with what is wrong.
DataGraph parse_binary_graph(std::string_view bytes, const std::string& file);

/// Writes a graph atomically; `data` has no weights of edges.
void write_binary_graph(const std::string& path, const DataGraph& data);

/// Rows of a graph, in memory or in a mapped file of the binary form, of which only those rows are
/// read that are asked for, and few of their pages are kept. To be used by one thread.
class GraphRows {
 public:
  /// Refers to the graph.
  explicit GraphRows(const CsrGraph& graph);
  explicit GraphRows(std::shared_ptr<const CsrGraph> graph);
  /// Throws Error kParse for a header or a size that is wrong, and for rows that do not begin and
  /// end with the edges.
  explicit GraphRows(std::shared_ptr<const MappedFile> file);

  std::int32_t node_count() const noexcept {
    return static_cast<std::int32_t>(offsets_.size()) - 1;
  }
  std::int64_t entry_count() const noexcept { return static_cast<std::int64_t>(sources_.size()); }
  /// The sources of the edges into a node. Throws Error kParse if the file's row is not sound.
  std::span<const std::int32_t> row(std::int32_t node) const;
  std::int64_t degree(std::int32_t node) const {
    return static_cast<std::int64_t>(row(node).size());
  }
  /// Where the row of a node begins, as the file says; node_count() is the end of the last one.
  std::int64_t row_begin(std::int32_t node) const noexcept {
    return offsets_[static_cast<std::size_t>(node)];
  }

 private:
  void note_read(std::int64_t begin, std::int64_t end) const noexcept;

  std::shared_ptr<const MappedFile> file_;
  mutable std::int64_t kept_bytes_ = 0;  // of the file, at most
  mutable std::int64_t last_window_ = -1;
  std::shared_ptr<const CsrGraph> graph_;
  std::span<const std::int64_t> offsets_;
  std::span<const std::int32_t> sources_;
};

}  // namespace npu::gnn
