// SPDX-License-Identifier: Apache-2.0
// sort, argsort and topk: a work group, or on a CPU a work item, has a row. Places are ordered, not
// elements: by their elements, and among equal ones by themselves, so that the order is total and
// results are those of a stable sort. NaN is the largest element.
//
// Sorting is bitonic in the memory of the places, in the form whose comparisons all point the same
// way, so that rows need not be padded: O(n log^2 n) comparisons of a row. topk looks k times for
// the first place behind the last one: O(n k).
#include <algorithm>

#include "kernels/group_kernel.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

constexpr std::int64_t kMostLanes = 256;

class SortWriter {
 public:
  SortWriter(Emitter& emitter, const BoundNode& node)
      : emitter_(emitter),
        node_(node),
        self_(tensor_of(emitter, node, "self")),
        shape_(emitter.shape(self_)) {
    if (shape_.empty()) emitter.refuse(node.node(), "a scalar is not supported");
    const std::string_view name = functional_name(node.node().op_type);
    takes_most_ = name == "topk";
    descends_ = node.boolean(takes_most_ ? "largest" : "descending");
    dimension_ =
        static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), shape_.size()));
    extent_ = shape_[dimension_];
    count_ = takes_most_ ? node.integer("k") : extent_;
    if (count_ < 0 || count_ > extent_) emitter.refuse(node.node(), "'k' is larger than its row");
    Shape expected = shape_;
    expected[dimension_] = count_;
    const std::vector<TensorId>& outputs = node.node().outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const bool is_places = i + 1 == outputs.size();
      emitter.expect_shape(node.node(), static_cast<int>(i), expected);
      emitter.expect_dtype(node.node(), static_cast<int>(i),
                           is_places ? DType::kInt64 : emitter.dtype(self_));
    }
    places_ = outputs.back();
    lanes_ = 1;
    const Machine& machine = emitter.model().machine();
    while (!machine.is_cpu && lanes_ < kMostLanes && 2 * lanes_ < extent_ &&
           2 * lanes_ <= machine.max_group) {
      lanes_ *= 2;
    }
  }

  GeneratedKernel write() {
    Shape rows = shape_;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(dimension_));
    emitter_.line("const " + emitter_.index_type() + " r = get_group_id(0);");
    emitter_.line("const int lane = get_local_id(0);");
    row_ = emitter_.define_index(index_of_place("r", rows));
    if (takes_most_) {
      find_first();
    } else {
      sort_places();
    }
    store_values();
    const auto groups =
        count_ == 0 ? 0 : static_cast<std::uint64_t>(checked_element_count(rows).value_or(0));
    return finished(emitter_, {groups, 1, 1}, {static_cast<std::uint64_t>(lanes_), 1, 1});
  }

 private:
  Index at(const std::string& place) const {
    Index index = row_;
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(dimension_), place);
    return index;
  }

  std::string place_at(const std::string& position) {
    return emitter_.pointer(places_, true) + "[" +
           linear_place(at(position), emitter_.shape(places_)) + "]";
  }

  void barrier(const char* memory) {
    if (lanes_ > 1) emitter_.line("barrier(CLK_" + std::string(memory) + "_MEM_FENCE);");
  }

  /// Whether place `a` comes in front of place `b`; both are names.
  std::string is_before(const std::string& a, const std::string& b) {
    const DType dtype = emitter_.dtype(self_);
    const std::string x = emitter_.define(dtype, emitter_.element(self_, at(a)));
    const std::string y = emitter_.define(dtype, emitter_.element(self_, at(b)));
    const auto is_less = [&](const std::string& low, const std::string& high) {
      const std::string less = low + " < " + high;
      if (!is_floating_point(dtype)) return "(" + less + ")";
      return "(" + less + " || (" + high + " != " + high + " && " + low + " == " + low + "))";
    };
    const std::string first = descends_ ? is_less(y, x) : is_less(x, y);
    const std::string second = descends_ ? is_less(x, y) : is_less(y, x);
    return "(" + first + " || (!" + second + " && " + a + " < " + b + "))";
  }

  void open_loop(const std::string& name, std::int64_t count) {
    emitter_.open("for (" + emitter_.index_type() + " " + name + " = lane; " + name + " < " +
                  std::to_string(count) + "; " + name + " += " + std::to_string(lanes_) + ")");
  }

  /// Swaps the places at i and the partner that `expression` gives, if they are in wrong order.
  void compare_with(const std::string& expression) {
    const std::string& type = emitter_.index_type();
    open_loop("i", extent_);
    emitter_.line("const " + type + " x = " + expression + ";");
    emitter_.open("if (x > i && x < " + std::to_string(extent_) + ")");
    const std::string low = emitter_.define(type, "(" + type + ")" + place_at("i"));
    const std::string high = emitter_.define(type, "(" + type + ")" + place_at("x"));
    emitter_.open("if (" + is_before(high, low) + ")");
    emitter_.line(place_at("i") + " = " + high + ";");
    emitter_.line(place_at("x") + " = " + low + ";");
    emitter_.close();
    emitter_.close();
    emitter_.close();
    barrier("GLOBAL");
  }

  void sort_places() {
    const std::string& type = emitter_.index_type();
    open_loop("i", extent_);
    emitter_.line(place_at("i") + " = i;");
    emitter_.close();
    barrier("GLOBAL");
    std::int64_t whole = 1;
    while (whole < extent_) whole *= 2;
    emitter_.open("for (long width = 2; width <= " + std::to_string(whole) + "; width *= 2)");
    compare_with("i ^ (width - 1)");
    emitter_.open("for (" + type + " step = width / 4; step > 0; step /= 2)");
    compare_with("i ^ step");
    emitter_.close();
    emitter_.close();
  }

  void find_first() {
    const std::string& type = emitter_.index_type();
    if (lanes_ > 1) emitter_.local_array(type, "found", {lanes_});
    emitter_.line(type + " last = -1;");
    emitter_.open("for (" + type + " t = 0; t < " + std::to_string(count_) + "; ++t)");
    emitter_.line(type + " best = -1;");
    open_loop("i", extent_);
    emitter_.line("int is_open = last < 0;");
    emitter_.open("if (!is_open)");
    emitter_.line("is_open = " + is_before("last", "i") + ";");
    emitter_.close();
    take_if("is_open", "best", "i");
    emitter_.close();
    if (lanes_ > 1) join_lanes();
    emitter_.line("last = best;");
    emitter_.line("if (lane == 0) " + place_at("t") + " = best;");
    emitter_.close();
    barrier("GLOBAL");
  }

  /// best = other, if that is there and comes in front.
  void take_if(const std::string& condition, const std::string& best, const std::string& other) {
    emitter_.open("if (" + condition + ")");
    emitter_.line("int is_first = " + best + " < 0;");
    emitter_.open("if (!is_first)");
    emitter_.line("is_first = " + is_before(other, best) + ";");
    emitter_.close();
    emitter_.line("if (is_first) " + best + " = " + other + ";");
    emitter_.close();
  }

  void join_lanes() {
    emitter_.line("found[lane] = best;");
    barrier("LOCAL");
    emitter_.open("for (int each = 0; each < " + std::to_string(lanes_) + "; ++each)");
    emitter_.line("const " + emitter_.index_type() + " other = found[each];");
    take_if("other >= 0", "best", "other");
    emitter_.close();
    barrier("LOCAL");
  }

  void store_values() {
    if (node_.node().outputs.size() < 2) return;
    open_loop("i", count_);
    const std::string place =
        emitter_.define(emitter_.index_type(), "(" + emitter_.index_type() + ")" + place_at("i"));
    emitter_.store(node_.node().outputs[0], at("i"), emitter_.element(self_, at(place)));
    emitter_.close();
  }

  Emitter& emitter_;
  const BoundNode& node_;
  TensorId self_;
  Shape shape_;
  TensorId places_;  ///< the result that says where elements were
  std::size_t dimension_ = 0;
  std::int64_t extent_ = 0;
  std::int64_t count_ = 0;  ///< of elements of a row in the result
  std::int64_t lanes_ = 1;
  bool takes_most_ = false;
  bool descends_ = false;
  Index row_;
};

}  // namespace

GeneratedKernel sort_kernel(const KernelTask& task, NodeId heavy) {
  if (task.nodes.size() != 1) throw CannotFuse{"a sort stands alone"};
  Emitter emitter(task.model, {heavy});
  return SortWriter(emitter, task.model.bound(heavy)).write();
}

}  // namespace npu::opencl
