// SPDX-License-Identifier: Apache-2.0
// Ops that write at places which a tensor holds: a work item copies all elements that only it may
// write, and then goes over the places in their order, so that sums are the same each time.
// O(elements of the result + places * elements of one) over the items. Where the result lies in the
// operand's memory, as a state's does, nothing is copied. A mean counts what it has added in
// scratch memory.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/group_kernel.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

/// What becomes of an element and what is scattered to it.
enum class Combine : std::uint8_t { kReplace, kAdd, kMultiply, kLargest, kLeast, kMean };

class ScatterWriter {
 public:
  ScatterWriter(Emitter& emitter, const BoundNode& node, bool is_in_place)
      : emitter_(emitter),
        node_(node),
        is_in_place_(is_in_place),
        self_(tensor_of(emitter, node, "self")),
        result_(node.node().outputs[0]),
        dtype_(emitter.dtype(self_)),
        shape_(emitter.shape(self_)) {
    emitter.expect_shape(node.node(), 0, shape_);
    emitter.expect_dtype(node.node(), 0, dtype_);
  }

  GeneratedKernel write() {
    const std::string_view name = functional_name(node_.node().op_type);
    const bool puts = name == "index_put";
    if (puts) {
      read_index_put();
    } else if (is_list()) {
      read_index_list();
    } else {
      read_scatter();
    }
    const bool sums = combine_ != Combine::kReplace;
    if (sums && (dtype_ == DType::kFloat16 || dtype_ == DType::kBFloat16)) {
      refuse("sums of 16-bit floats are not supported");
    }
    Shape columns;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (!is_written_[d]) columns.push_back(shape_[d]);
    }
    const std::int64_t count = checked_element_count(columns).value_or(0);
    emitter_.line("const " + emitter_.index_type() + " g = get_global_id(0);");
    emitter_.line("if (g >= " + std::to_string(count) + ") return;");
    column_ = emitter_.define_index(index_of_place("g", columns));
    if (!is_in_place_) copy_column();
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
    read_combine();
    index_ = tensor_of(emitter_, node_, "index");
    const Shape& index = emitter_.shape(index_);
    if (index.size() != shape_.size() || !is_place(index_)) refuse("its index does not fit");
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (d != dimension_ && index[d] > shape_[d]) refuse("its index is larger than its operand");
    }
    places_at_ = index;
    if (node_.find("src") == nullptr) return;
    source_ = tensor_of(emitter_, node_, "src");
    const Shape& from = emitter_.shape(source_);
    bool fits = from.size() == index.size() && emitter_.dtype(source_) == dtype_;
    for (std::size_t d = 0; fits && d < from.size(); ++d) fits = index[d] <= from[d];
    if (!fits) refuse("its source does not fit");
  }

  void read_combine() {
    const std::string_view name = functional_name(node_.node().op_type);
    if (name == "scatter_add") combine_ = Combine::kAdd;
    if (name != "scatter_reduce") return;
    const std::string how = node_.string("reduce");
    constexpr std::array<std::pair<std::string_view, Combine>, 5> kWays = {
        {{"sum", Combine::kAdd},
         {"prod", Combine::kMultiply},
         {"mean", Combine::kMean},
         {"amax", Combine::kLargest},
         {"amin", Combine::kLeast}}};
    const auto* way = std::ranges::find(kWays, how, [](const auto& each) { return each.first; });
    if (way == kWays.end()) refuse("'reduce' is none of sum, prod, mean, amax and amin");
    combine_ = way->second;
    includes_self_ = node_.boolean("include_self");
  }

  void read_index_list() {
    if (shape_.empty()) refuse("a scalar is not supported");
    dimension_ = static_cast<std::size_t>(
        dimension_of(emitter_, node_, node_.integer("dim"), shape_.size()));
    is_written_.assign(shape_.size(), false);
    is_written_[dimension_] = true;
    if (is_index_add()) combine_ = Combine::kAdd;
    index_ = tensor_of(emitter_, node_, "index");
    source_ = tensor_of(emitter_, node_, "source");
    const Shape& index = emitter_.shape(index_);
    if (index.size() > 1 || !is_place(index_)) refuse("its index does not fit");
    places_at_ = shape_;
    places_at_[dimension_] = index.empty() ? 1 : index[0];
    if (emitter_.shape(source_) != places_at_ || emitter_.dtype(source_) != dtype_) {
      refuse("its source does not fit");
    }
  }

  void read_index_put() {
    if (node_.boolean("accumulate")) combine_ = Combine::kAdd;
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

  Index written_index(const std::string& place) {
    Shape written;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (is_written_[d]) written.push_back(shape_[d]);
    }
    return whole_index(emitter_.define_index(index_of_place(place, written)));
  }

  std::int64_t written_count() const {
    std::int64_t count = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (is_written_[d]) count *= shape_[d];
    }
    return count;
  }

  void copy_column() {
    loop("c", written_count());
    const Index index = written_index("c");
    emitter_.store(result_, index, emitter_.element(self_, index));
    if (combine_ == Combine::kMean) {
      emitter_.line(count_at(index) + " = " + (includes_self_ ? "1" : "0") + ";");
    }
    emitter_.close();
  }

  std::string bounded(const std::string& stated, std::int64_t extent) {
    return emitter_.place_within(node_.node(), stated, extent);
  }

  std::string result_at(const Index& index) {
    return emitter_.pointer(result_, true) + "[" + linear_place(index, shape_) + "]";
  }
  /// How many elements the mean at an index is of.
  std::string count_at(const Index& index) {
    if (counts_.empty()) {
      counts_ = emitter_.scratch(DType::kInt32, checked_element_count(shape_).value_or(0));
    }
    return counts_ + "[" + linear_place(index, shape_) + "]";
  }

  void write_element(const Index& index, const std::string& value) {
    if (combine_ == Combine::kReplace) return emitter_.store(result_, index, value);
    const std::string target = result_at(index);
    if (combine_ == Combine::kLargest || combine_ == Combine::kLeast) {
      // A NaN stays, whichever of the two it is.
      const std::string other = emitter_.define(dtype_, value);
      const char* order = combine_ == Combine::kLargest ? " > " : " < ";
      return emitter_.line("if (" + other + " != " + other + " || " + other + order + target +
                           ") " + target + " = " + other + ";");
    }
    emitter_.line(target + (combine_ == Combine::kMultiply ? " *= " : " += ") + value + ";");
    if (combine_ == Combine::kMean) emitter_.line("++" + count_at(index) + ";");
  }

  std::string first_value() const {
    if (combine_ == Combine::kLargest) return lowest(dtype_);
    if (combine_ == Combine::kLeast) return highest(dtype_);
    return literal(std::int64_t{combine_ == Combine::kMultiply ? 1 : 0}, dtype_);
  }

  /// Goes over the places of the column; `write` gets an index of the source and one of the result.
  template <typename Write>
  void over_places(const Write& write) {
    std::string inside = "1";
    Index at;
    std::size_t c = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      at.push_back(d == dimension_ ? "e" : column_[c++]);
      if (d != dimension_ && places_at_[d] < shape_[d]) {
        inside += " && " + at[d] + " < " + std::to_string(places_at_[d]);
      }
    }
    emitter_.open("if (" + inside + ")");
    loop("e", places_at_[dimension_]);
    Index place = at;
    if (is_list()) place = emitter_.shape(index_).empty() ? Index{} : Index{"e"};
    Index target = at;
    const std::string stated = emitter_.element(index_, place);
    target[dimension_] =
        bounded(is_list() && !is_index_add() ? not_negative(stated) : stated, shape_[dimension_]);
    write(at, target);
    emitter_.close();
    emitter_.close();
  }

  /// A place from the end is outside.
  std::string not_negative(const std::string& stated) const {
    return "(" + stated + " < 0 ? " + std::to_string(shape_[dimension_]) + " : " + stated + ")";
  }

  bool is_index_add() const { return functional_name(node_.node().op_type) == "index_add"; }
  /// index_add and index_copy: a list of places along a dimension.
  bool is_list() const {
    return is_index_add() || functional_name(node_.node().op_type) == "index_copy";
  }

  std::string scattered(const Index& at) {
    if (!source_.valid()) return operand(emitter_, node_, "value", {}, dtype_);
    std::string value = emitter_.element(source_, at);
    if (!is_index_add()) return value;
    return "(" + operand(emitter_, node_, "alpha", {}, dtype_) + " * " + value + ")";
  }

  void scatter_column() {
    if (!includes_self_) {
      over_places([&](const Index&, const Index& target) {
        emitter_.line(result_at(target) + " = " + first_value() + ";");
      });
    }
    over_places(
        [&](const Index& at, const Index& target) { write_element(target, scattered(at)); });
    if (combine_ == Combine::kMean) divide_column();
  }

  void divide_column() {
    loop("c", written_count());
    const Index index = written_index("c");
    const std::string sum = result_at(index);
    const std::string count = emitter_.define("int", "max(" + count_at(index) + ", 1)");
    if (is_floating_point(dtype_)) {
      emitter_.line(sum + " /= " + count + ";");
    } else {  // rounded down, as PyTorch does
      emitter_.line(sum + " = " + sum + " / " + count + " - (" + sum + " % " + count + " < 0);");
    }
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
  bool is_in_place_;  ///< the operand is where the result is to be
  TensorId self_;
  TensorId result_;
  DType dtype_;
  Shape shape_;
  Combine combine_ = Combine::kReplace;
  bool includes_self_ = true;
  std::string counts_;            ///< of a mean: a pointer
  std::vector<bool> is_written_;  ///< dimensions in which an item writes anywhere
  Index column_;                  ///< the item's index in the others
  // scatter, index_add and index_copy
  std::size_t dimension_ = 0;
  TensorId index_;
  TensorId source_;  ///< invalid: a number
  Shape places_at_;  ///< extents of the places, by dimension of the result
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
  return ScatterWriter(emitter, task.model.bound(heavy), task.is_in_place).write();
}

}  // namespace npu::opencl
