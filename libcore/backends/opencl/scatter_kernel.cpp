// SPDX-License-Identifier: Apache-2.0
// Ops that write at places which a tensor holds: a work item copies all elements that only it may
// write, and then goes over the places in their order, so that sums are the same each time.
// O(elements of the result + places * elements of one) over the items.
#include <algorithm>

#include "group_kernel.hpp"
#include "npu/ops/op_name.hpp"
#include "npu/support/checked.hpp"

namespace npu::opencl {
namespace {

class ScatterWriter {
 public:
  ScatterWriter(Emitter& emitter, const BoundNode& node)
      : emitter_(emitter),
        node_(node),
        self_(tensor_of(emitter, node, "self")),
        result_(node.node().outputs[0]),
        dtype_(emitter.dtype(self_)),
        shape_(emitter.shape(self_)) {
    emitter.expect_shape(node.node(), 0, shape_);
    emitter.expect_dtype(node.node(), 0, dtype_);
  }

  GeneratedKernel write() {
    const bool puts = functional_name(node_.node().op_type) == "index_put";
    puts ? read_index_put() : read_scatter();
    Shape columns;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!is_written_[d]) columns.push_back(shape_[d]);
    }
    const std::int64_t count = checked_element_count(columns).value_or(0);
    emitter_.line("const " + emitter_.index_type() + " g = get_global_id(0);");
    emitter_.line("if (g >= " + std::to_string(count) + ") return;");
    column_ = emitter_.define_index(index_of_place("g", columns));
    copy_column();
    puts ? put_column() : scatter_column();
    return finished(emitter_, {static_cast<std::uint64_t>(count), 1, 1}, {1, 1, 1});
  }

 private:
  [[noreturn]] void refuse(const char* text) { emitter_.refuse(node_.node(), text); }

  void read_scatter() {
    if (shape_.empty()) refuse("a scalar is not supported");
    dimension_ = static_cast<std::size_t>(
        dimension_of(emitter_, node_, node_.integer("dim"), shape_.size()));
    is_written_.assign(shape_.size(), false);
    is_written_[dimension_] = true;
    adds_ = functional_name(node_.node().op_type) == "scatter_add";
    index_ = tensor_of(emitter_, node_, "index");
    const Shape& index = emitter_.shape(index_);
    if (index.size() != shape_.size() || !is_place(index_)) refuse("its index does not fit");
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (d != dimension_ && index[d] > shape_[d]) refuse("its index is larger than its operand");
    }
    if (const auto source = node_.find("src") != nullptr ? node_.tensor("src") : std::nullopt) {
      const Shape& from = emitter_.shape(*source);
      bool fits = from.size() == index.size() && emitter_.dtype(*source) == dtype_;
      for (std::size_t d = 0; fits && d < from.size(); ++d) fits = index[d] <= from[d];
      if (!fits) refuse("its source does not fit");
    }
  }

  void read_index_put() {
    adds_ = node_.boolean("accumulate");
    indices_ = node_.tensors("indices");
    is_written_.assign(shape_.size(), false);
    if (indices_.size() > shape_.size()) refuse("it has too many indices");
    for (std::size_t d = 0; d < indices_.size(); ++d) {
      if (!indices_[d].valid()) continue;
      if (!is_place(indices_[d])) refuse("its indices are no integers");
      is_written_[d] = true;
      if (!join_shape(places_, emitter_.shape(indices_[d]))) refuse("its indices do not broadcast");
    }
    const auto first = std::ranges::find(is_written_, true);
    if (first == is_written_.end()) refuse("it has no indices");
    const auto last = std::find(is_written_.rbegin(), is_written_.rend(), true).base() - 1;
    const auto written = std::ranges::count(is_written_, true);
    at_ = last - first + 1 == written ? first - is_written_.begin() : 0;
    values_ = tensor_of(emitter_, node_, "values");
    if (emitter_.dtype(values_) != dtype_) refuse("its values have another dtype");
    Shape whole;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!is_written_[d]) whole.push_back(shape_[d]);
    }
    whole.insert(whole.begin() + at_, places_.begin(), places_.end());
    emitter_.expect_broadcast(node_.node(), values_, whole);
  }

  bool is_place(TensorId tensor) const {
    return emitter_.dtype(tensor) == DType::kInt64 || emitter_.dtype(tensor) == DType::kInt32;
  }

  /// An index of the result with the written dimensions from `written`.
  Index whole_index(const Index& written) const {
    Index index;
    std::size_t w = 0;
    std::size_t c = 0;
    for (const bool is_written : is_written_) {
      index.push_back(is_written ? written[w++] : column_[c++]);
    }
    return index;
  }

  void loop(const std::string& name, std::int64_t count) {
    emitter_.open("for (" + emitter_.index_type() + " " + name + " = 0; " + name + " < " +
                  std::to_string(count) + "; ++" + name + ")");
  }

  void copy_column() {
    Shape written;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (is_written_[d]) written.push_back(shape_[d]);
    }
    loop("c", checked_element_count(written).value_or(0));
    const Index index = whole_index(emitter_.define_index(index_of_place("c", written)));
    emitter_.store(result_, index, emitter_.element(self_, index));
    emitter_.close();
  }

  std::string bounded(const std::string& stated, std::int64_t extent) {
    return emitter_.place_within(node_.node(), stated, extent);
  }

  void write_element(const Index& index, const std::string& value) {
    if (!adds_) return emitter_.store(result_, index, value);
    if (dtype_ == DType::kFloat16 || dtype_ == DType::kBFloat16) {
      refuse("sums of 16-bit floats are not supported");
    }
    emitter_.line(emitter_.pointer(result_, true) + "[" + linear_place(index, shape_) +
                  "] += " + value + ";");
  }

  void scatter_column() {
    const Shape& index = emitter_.shape(index_);
    std::string inside = "1";
    Index at;
    std::size_t c = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      at.push_back(d == dimension_ ? "e" : column_[c++]);
      if (d != dimension_ && index[d] < shape_[d]) {
        inside += " && " + at[d] + " < " + std::to_string(index[d]);
      }
    }
    emitter_.open("if (" + inside + ")");
    loop("e", index[dimension_]);
    Index target = at;
    target[dimension_] = bounded(emitter_.element(index_, at), shape_[dimension_]);
    const bool has_source = node_.find("src") != nullptr;
    write_element(target, has_source ? emitter_.element(*node_.tensor("src"), at)
                                     : operand(emitter_, node_, "value", {}, dtype_));
    emitter_.close();
    emitter_.close();
  }

  void put_column() {
    loop("e", checked_element_count(places_).value_or(0));
    const Index place = emitter_.define_index(index_of_place("e", places_));
    Index written;
    for (std::size_t d = 0; d < indices_.size(); ++d) {
      if (!indices_[d].valid()) continue;
      written.push_back(bounded(
          emitter_.broadcast_element(indices_[d], place, emitter_.dtype(indices_[d])), shape_[d]));
    }
    Index from = column_;
    from.insert(from.begin() + at_, place.begin(), place.end());
    write_element(whole_index(written), emitter_.broadcast_element(values_, from, dtype_));
    emitter_.close();
  }

  Emitter& emitter_;
  const BoundNode& node_;
  TensorId self_;
  TensorId result_;
  DType dtype_;
  Shape shape_;
  bool adds_ = false;
  std::vector<bool> is_written_;  ///< dimensions in which an item writes anywhere
  Index column_;                  ///< the item's index in the others
  // scatter
  std::size_t dimension_ = 0;
  TensorId index_;
  // index_put
  std::vector<TensorId> indices_;
  Shape places_;
  std::ptrdiff_t at_ = 0;
  TensorId values_;
};

}  // namespace

GeneratedKernel scatter_kernel(const KernelTask& task, NodeId heavy) {
  const Node& node = task.model.node(heavy);
  if (task.nodes.size() != 1 || task.results.size() != 1 ||
      task.results[0].tensor != node.outputs[0] || task.results[0].output >= 0) {
    throw CannotFuse{"a scatter stands alone"};
  }
  Emitter emitter(task.model, {heavy});
  return ScatterWriter(emitter, task.model.bound(heavy)).write();
}

}  // namespace npu::opencl
