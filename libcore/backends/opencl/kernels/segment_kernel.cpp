// SPDX-License-Identifier: Apache-2.0
// Sums, means, maxima and softmax-weighted sums over the edges of rows, which lie together (CSR): a
// work item has an element of a row and goes over the row's edges in their order, so that results
// are the same each time and no message is in memory. On a GPU an item asks for several edges
// before it adds the first, since rows of many edges would wait for memory once an edge otherwise.
// Ops behind it are applied before it stores. O(edges * elements of a row) over the items; a
// softmax goes over the edges twice.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/group_kernel.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

enum class SegmentForm : std::uint8_t { kSum, kMean, kLargest, kSoftmax };

struct Segments {
  TensorId rows;
  TensorId offsets;
  std::optional<TensorId> places;   ///< of an edge in `rows`; none: its own number
  std::optional<TensorId> weights;  ///< factors of edges, of a softmax scores
  SegmentForm form = SegmentForm::kSum;
  Shape result;
  std::int64_t edges = 0;
};

bool is_offset_type(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

SegmentForm form_of(const Emitter& emitter, const BoundNode& node) {
  constexpr std::array<std::pair<std::string_view, SegmentForm>, 4> kForms = {
      {{"sum", SegmentForm::kSum},
       {"mean", SegmentForm::kMean},
       {"amax", SegmentForm::kLargest},
       {"softmax", SegmentForm::kSoftmax}}};
  const std::string stated = node.string("reduce");
  const auto* form = std::ranges::find(kForms, stated, [](const auto& each) { return each.first; });
  if (form == kForms.end()) {
    emitter.refuse(node.node(), "'reduce' is none of sum, mean, amax and softmax");
  }
  return form->second;
}

Segments read_segments(const Emitter& emitter, const BoundNode& node) {
  Segments s;
  s.rows = tensor_of(emitter, node, "self");
  s.offsets = tensor_of(emitter, node, "offsets");
  s.places = node.tensor("indices");
  s.weights = node.tensor("weights");
  s.form = form_of(emitter, node);
  const Shape& rows = emitter.shape(s.rows);
  const Shape& offsets = emitter.shape(s.offsets);
  if (rows.empty() || offsets.size() != 1 || offsets[0] < 1) {
    emitter.refuse(node.node(), "its operands have other ranks");
  }
  if (!is_offset_type(emitter.dtype(s.offsets))) {
    emitter.refuse(node.node(), "its offsets are no integers");
  }
  if (!is_floating_point(emitter.dtype(s.rows))) emitter.refuse(node.node(), "it needs floats");
  s.edges = rows[0];
  if (s.places) {
    const Shape& places = emitter.shape(*s.places);
    if (places.size() != 1 || !is_offset_type(emitter.dtype(*s.places))) {
      emitter.refuse(node.node(), "its indices do not fit");
    }
    s.edges = places[0];
  }
  if (s.form == SegmentForm::kSoftmax && !s.weights) {
    emitter.refuse(node.node(), "a softmax needs weights");
  }
  if (s.weights) {
    const Shape& weights = emitter.shape(*s.weights);
    bool fits = !weights.empty() && weights[0] == s.edges && weights.size() <= rows.size() &&
                is_floating_point(emitter.dtype(*s.weights));
    for (std::size_t d = 1; fits && d < weights.size(); ++d) {
      fits = weights[d] == rows[d] || weights[d] == 1;
    }
    if (!fits) emitter.refuse(node.node(), "its weights do not fit");
  }
  s.result = rows;
  s.result[0] = offsets[0] - 1;
  emitter.expect_shape(node.node(), 0, s.result);
  emitter.expect_dtype(node.node(), 0, emitter.dtype(s.rows));
  return s;
}

class SegmentWriter {
 public:
  SegmentWriter(Emitter& emitter, const Node& node, const Segments& segments)
      : emitter_(emitter),
        node_(node),
        s_(segments),
        dtype_(emitter.dtype(segments.rows)),
        type_(value_type(dtype_)) {}

  void write_sums() {
    const std::string& index = emitter_.index_type();
    count_ = checked_element_count(s_.result).value_or(0);
    emitter_.line("const " + index + " g = get_global_id(0);");
    emitter_.line("if (g >= " + emitter_.size(count_) + ") return;");
    at_ = emitter_.define_index(index_of_place("g", s_.result));
    begin_ = bound_at(at_[0]);
    end_ = bound_at(plus(at_[0], 1));
    if (s_.form == SegmentForm::kSoftmax) {
      emitter_.line(type_ + " most = " + lowest(dtype_) + ", total = 0;");
      over_edges(false, true, [&] {
        emitter_.line("most = factor > most || factor != factor ? factor : most;");
      });
    }
    emitter_.line(type_ + " sum = " +
                  (s_.form == SegmentForm::kLargest ? lowest(dtype_) : literal(0.0, dtype_)) + ";");
    over_edges(true, s_.weights.has_value(), [&] { add_edge(); });
    // A row without edges is 0.
    if (s_.form == SegmentForm::kMean) {
      emitter_.line("sum /= max(" + end_ + " - " + begin_ + ", (" + index + ")1);");
    } else if (s_.form == SegmentForm::kLargest) {
      emitter_.line("if (" + end_ + " <= " + begin_ + ") sum = 0;");
    } else if (s_.form == SegmentForm::kSoftmax) {
      emitter_.line("if (" + end_ + " > " + begin_ + ") sum /= total;");
    }
  }

  void write_results(const std::function<void(const Index&, const std::string&)>& store) {
    store(at_, emitter_.define(dtype_, "sum"));
  }

  GeneratedKernel finish() {
    constexpr std::uint64_t kGroup = 64;
    const auto items = static_cast<std::uint64_t>(count_);
    return finished(emitter_, {(items + kGroup - 1) / kGroup, 1, 1}, {kGroup, 1, 1});
  }

 private:
  /// One of the offsets, a number of edges.
  std::string bound_at(const std::string& row) {
    return emitter_.place_within(node_, emitter_.element(s_.offsets, {row}), s_.edges + 1);
  }

  /// Runs `body` for each edge in order, with its element as `value` and its weight as `factor`.
  template <typename Body>
  void over_edges(bool has_values, bool has_factors, const Body& body) {
    const std::string& index = emitter_.index_type();
    const std::string together = emitter_.model().machine().is_cpu ? "1" : "8";
    const auto of_each = [&](const auto& what) {
      emitter_.line("#pragma unroll");
      emitter_.open("for (int u = 0; u < " + together + "; ++u)");
      emitter_.line("const " + index + " e = first + u;");
      emitter_.open("if (e < " + end_ + ")");
      what();
      emitter_.close();
      emitter_.close();
    };
    emitter_.open("for (" + index + " first = " + begin_ + "; first < " + end_ +
                  "; first += " + together + ")");
    const bool has_places = has_values && s_.places.has_value();
    // Checks of places may store, so that no load behind one could go ahead of it.
    if (has_places) {
      emitter_.line(index + " places[" + together + "];");
      of_each([&] { emitter_.line("places[u] = " + place_of_edge() + ";"); });
    }
    if (has_values) emitter_.line(type_ + " values[" + together + "];");
    if (has_factors) emitter_.line(type_ + " factors[" + together + "];");
    of_each([&] {
      if (has_values) emitter_.line("values[u] = " + row_element() + ";");
      if (has_factors) emitter_.line("factors[u] = " + weight() + ";");
    });
    of_each([&] {
      if (has_values) emitter_.line("const " + type_ + " value = values[u];");
      if (has_factors) emitter_.line("const " + type_ + " factor = factors[u];");
      body();
    });
    emitter_.close();
  }

  std::string weight() {
    const Shape& shape = emitter_.shape(*s_.weights);
    Index place{"e"};
    for (std::size_t d = 1; d < shape.size(); ++d) place.push_back(shape[d] == 1 ? "0" : at_[d]);
    return emitter_.element_as(*s_.weights, place, dtype_);
  }

  std::string place_of_edge() {
    return emitter_.place_within(node_, emitter_.element(*s_.places, {"e"}),
                                 emitter_.shape(s_.rows)[0]);
  }

  std::string row_element() {
    Index from = at_;
    from[0] = s_.places ? emitter_.define(emitter_.index_type(), "places[u]") : "e";
    return emitter_.element(s_.rows, from);
  }

  void add_edge() {
    if (s_.form == SegmentForm::kSoftmax) {
      const std::string share = emitter_.define(dtype_, "exp(factor - most)");
      emitter_.line("total += " + share + ";");
      emitter_.line("sum += " + share + " * value;");
      return;
    }
    const std::string message =
        s_.weights ? emitter_.define(dtype_, "factor * value") : std::string("value");
    if (s_.form == SegmentForm::kLargest) {
      emitter_.line("if (" + message + " > sum || " + message + " != " + message +
                    ") sum = " + message + ";");
    } else {
      emitter_.line("sum += " + message + ";");
    }
  }

  Emitter& emitter_;
  const Node& node_;
  const Segments& s_;
  DType dtype_;
  std::string type_;
  std::int64_t count_ = 0;
  Index at_;
  std::string begin_;
  std::string end_;
};

}  // namespace

GeneratedKernel segment_kernel(const KernelTask& task, NodeId heavy) {
  Emitter emitter(task.model, {task.nodes.begin(), task.nodes.end()});
  const Segments segments = read_segments(emitter, task.model.bound(heavy));
  SegmentWriter writer(emitter, task.model.node(heavy), segments);
  return finished_kernel(writer, emitter, task, task.model.node(heavy).outputs[0]);
}

}  // namespace npu::opencl
