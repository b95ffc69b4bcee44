// SPDX-License-Identifier: Apache-2.0
// The binary form of a graph: a header of 64 bytes, the offsets of the rows, the ids of the nodes
// if they are not their numbers, and the sources of all edges, row by row, all little-endian.
//
// The header states how many there are of each, so the size of the file is known before anything
// else is read, and nothing is allocated for a header that lies. Offsets have 64 bits: the number
// of edges is only limited by the file. Reading all is O(bytes), mapping a file O(1).
#include "gnn/graph/binary_graph.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "gnn/graph/edge_rows.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "NPUGRAPH";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHasIds = 1;

struct BinaryHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = kVersion;
  std::uint32_t flags = 0;
  std::uint64_t nodes = 0;
  std::uint64_t edges = 0;
  std::array<std::uint64_t, 4> reserved{};
};
static_assert(sizeof(BinaryHeader) == 64);

[[noreturn]] void fail(const std::string& file, const std::string& text) {
  throw Error(ErrorCode::kParse, text, {.file = file});
}

struct BinaryLayout {
  std::size_t nodes = 0;
  std::size_t edges = 0;
  std::size_t ids = 0;      // where they begin; 0: there are none
  std::size_t sources = 0;  // where they begin
};

BinaryLayout layout_of(std::string_view bytes, const std::string& file) {
  if (!is_binary_graph(bytes)) fail(file, "expected a graph that begins with NPUGRAPH");
  BinaryHeader header;
  if (bytes.size() < sizeof header) fail(file, "the header of the graph is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kVersion) {
    fail(file, "version " + std::to_string(header.version) + " of the binary form, expected " +
                   std::to_string(kVersion));
  }
  const bool is_plain = std::all_of(header.reserved.begin(), header.reserved.end(),
                                    [](std::uint64_t word) { return word == 0; });
  if ((header.flags & ~kHasIds) != 0 || !is_plain) {
    fail(file, "the header has bits that version " + std::to_string(kVersion) + " does not define");
  }
  if (header.nodes < 1 || header.nodes > static_cast<std::uint64_t>(kMaxNodes)) {
    fail(file, "the graph has " + std::to_string(header.nodes) + " nodes, expected 1 to " +
                   std::to_string(kMaxNodes));
  }
  // Node counts fit in 31 bits, so only the edges can overflow the sum.
  BinaryLayout layout;
  layout.nodes = header.nodes;
  std::size_t end = sizeof header + 8 * (header.nodes + 1);
  if ((header.flags & kHasIds) != 0) {
    layout.ids = end;
    end += 8 * header.nodes;
  }
  layout.sources = end;
  if (bytes.size() < end || (bytes.size() - end) % 4 != 0 ||
      (bytes.size() - end) / 4 != header.edges) {
    fail(file, "a graph of " + std::to_string(header.nodes) + " nodes and " +
                   std::to_string(header.edges) + " edges does not have " +
                   std::to_string(bytes.size()) + " bytes");
  }
  layout.edges = header.edges;
  return layout;
}

template <typename Number>
void copy_from(std::string_view bytes, std::size_t begin, std::size_t count,
               std::vector<Number>& numbers) {
  numbers.resize(count);
  if (count > 0) std::memcpy(numbers.data(), bytes.data() + begin, count * sizeof(Number));
}

// The first row begins with the first edge, and the last one ends with the last.
void check_ends(std::span<const std::int64_t> offsets, std::size_t edges, const std::string& file) {
  if (offsets.front() == 0 && offsets.back() >= 0 && index_of(offsets.back()) == edges) return;
  fail(file, "the rows go from " + std::to_string(offsets.front()) + " to " +
                 std::to_string(offsets.back()) + ", expected 0 to " + std::to_string(edges));
}

// What is wrong with a row; empty if nothing is.
std::string row_fault(std::span<const std::int64_t> offsets, std::span<const std::int32_t> sources,
                      std::int32_t node) {
  const std::int64_t begin = offsets[index_of(node)];
  const std::int64_t end = offsets[index_of(node) + 1];
  const std::string name = "the row of node " + std::to_string(node);
  if (begin < 0 || end < begin || index_of(end) > sources.size()) {
    return name + " goes from " + std::to_string(begin) + " to " + std::to_string(end) +
           ", which is not within the " + std::to_string(sources.size()) + " edges";
  }
  const auto nodes = static_cast<std::int32_t>(offsets.size()) - 1;
  std::int32_t least = 0;
  for (const std::int32_t source : sources.subspan(index_of(begin), index_of(end - begin))) {
    if (source < least || source >= nodes) {
      return name + " has the source " + std::to_string(source) +
             ", expected ascending ones in 0.." + std::to_string(nodes - 1);
    }
    least = source;
  }
  return {};
}

std::string_view view_of(const void* data, std::size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

}  // namespace

bool is_binary_graph(std::string_view bytes) noexcept { return bytes.starts_with(kMagic); }

DataGraph parse_binary_graph(std::string_view bytes, const std::string& file) {
  const BinaryLayout layout = layout_of(bytes, file);
  DataGraph data;
  data.format = "binary";
  CsrGraph& graph = data.in_edges;
  copy_from(bytes, sizeof(BinaryHeader), layout.nodes + 1, graph.offsets);
  if (layout.ids > 0) copy_from(bytes, layout.ids, layout.nodes, data.ids);
  copy_from(bytes, layout.sources, layout.edges, graph.neighbors);
  check_ends(graph.offsets, layout.edges, file);
  for (std::int32_t v = 0; v < graph.node_count(); ++v) {
    if (const std::string fault = row_fault(graph.offsets, graph.neighbors, v); !fault.empty()) {
      fail(file, fault);
    }
  }
  return data;
}

void write_binary_graph(const std::string& path, const DataGraph& data) {
  const CsrGraph& graph = data.in_edges;
  BinaryHeader header;
  std::copy(kMagic.begin(), kMagic.end(), header.magic.begin());
  header.flags = data.ids.empty() ? 0 : kHasIds;
  header.nodes = static_cast<std::uint64_t>(graph.node_count());
  header.edges = static_cast<std::uint64_t>(graph.entry_count());
  write_file_atomically(
      path, {view_of(&header, sizeof header),
             view_of(graph.offsets.data(), graph.offsets.size() * sizeof(std::int64_t)),
             view_of(data.ids.data(), data.ids.size() * sizeof(std::int64_t)),
             view_of(graph.neighbors.data(), graph.neighbors.size() * sizeof(std::int32_t))});
}

GraphRows::GraphRows(const CsrGraph& graph) : offsets_(graph.offsets), sources_(graph.neighbors) {}

GraphRows::GraphRows(std::shared_ptr<const CsrGraph> graph) : GraphRows(*graph) {
  graph_ = std::move(graph);
}

GraphRows::GraphRows(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  const std::string_view bytes = view_of(file_->data(), file_->size());
  const BinaryLayout layout = layout_of(bytes, file_->path());
  // A mapping begins at a page, and every section at a multiple of its elements.
  offsets_ = {reinterpret_cast<const std::int64_t*>(file_->data() + sizeof(BinaryHeader)),
              layout.nodes + 1};
  sources_ = {reinterpret_cast<const std::int32_t*>(file_->data() + layout.sources), layout.edges};
  check_ends(offsets_, layout.edges, file_->path());
}

std::span<const std::int32_t> GraphRows::row(std::int32_t node) const {
  if (file_ != nullptr) {
    if (const std::string fault = row_fault(offsets_, sources_, node); !fault.empty()) {
      fail(file_->path(), fault);
    }
  }
  const std::int64_t begin = offsets_[index_of(node)];
  const std::int64_t end = offsets_[index_of(node) + 1];
  if (file_ != nullptr) note_read(begin, end);
  return sources_.subspan(index_of(begin), index_of(end - begin));
}

// A fault maps a window of pages around the one that was asked for. When many may be there, all are
// given back: the pages stay in the system's cache, and those that are read again come from there.
void GraphRows::note_read(std::int64_t begin, std::int64_t end) const noexcept {
  constexpr std::int64_t kWindow = std::int64_t{64} << 10;
  constexpr std::int64_t kMostKept = std::int64_t{16} << 20;
  const std::int64_t window = 4 * begin / kWindow;
  // The window of the row's offset, too.
  if (window != last_window_) kept_bytes_ += 2 * kWindow;
  kept_bytes_ += 4 * (end - begin);
  last_window_ = window;
  if (kept_bytes_ < kMostKept) return;
  kept_bytes_ = 0;
  last_window_ = -1;
  // Advice: what comes of it changes no byte.
  ::madvise(const_cast<std::byte*>(file_->data()), file_->size(), MADV_DONTNEED);
}

}  // namespace npu::gnn
