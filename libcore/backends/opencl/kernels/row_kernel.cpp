// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax and norms: each row of an operand belongs to a work group, or on a CPU and
// for short rows to a work item. Ops of one group share their rows, so that a norm that is written
// out is one kernel. Time: a pass over the rows for each reduction and one for the results.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/row_writer.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

/// Which elements of an operand make a row.
struct RowSpace {
  TensorId input;
  Shape rows;
  Shape inner;
  std::vector<bool> is_reduced;  ///< by dimension of the operand; empty for groups of channels
  std::int64_t channels = 0;     ///< of a group of channels

  bool operator==(const RowSpace& other) const {
    return rows == other.rows && inner == other.inner && is_reduced == other.is_reduced &&
           channels == other.channels;
  }
  /// The index in the operand of an element of a row.
  Index full(const Index& row, const Index& element) const {
    if (channels > 0) {
      Index index{row[0], plus(times(row[1], channels), element[0])};
      index.insert(index.end(), element.begin() + 1, element.end());
      return index;
    }
    Index index;
    std::size_t r = 0;
    std::size_t e = 0;
    for (const bool reduced : is_reduced) index.push_back(reduced ? element[e++] : row[r++]);
    return index;
  }
  /// That of a row in a result that keeps the dimensions, or drops them.
  Index outer(const Index& row, bool keeps) const {
    Index index;
    std::size_t r = 0;
    for (const bool reduced : is_reduced) {
      if (!reduced) index.push_back(row[r++]);
      if (reduced && keeps) index.emplace_back("0");
    }
    return index;
  }
};

std::vector<std::int64_t> stated_dimensions(const BoundNode& node) {
  for (const char* name : {"dim", "dims"}) {
    const BoundArgument* argument = node.find(name);
    if (argument == nullptr || argument->kind != BoundArgument::Kind::kValue) continue;
    if (argument->value.is_array()) return node.integers(name);
    return {node.integer(name)};
  }
  return {};
}

RowSpace space_of(Emitter& emitter, NodeId id) {
  const BoundNode& node = emitter.model().bound(id);
  const std::string_view name = functional_name(node.node().op_type);
  RowSpace space;
  space.input = tensor_of(emitter, node, node.find("input") != nullptr ? "input" : "self");
  const Shape& shape = emitter.shape(space.input);
  space.is_reduced.assign(shape.size(), false);
  if (name == "layer_norm" || name == "rms_norm") {
    const std::vector<std::int64_t> normalized = node.integers("normalized_shape");
    const std::size_t skipped = shape.size() - std::min(shape.size(), normalized.size());
    if (Shape(shape.begin() + static_cast<std::ptrdiff_t>(skipped), shape.end()) != normalized) {
      emitter.refuse(node.node(), "its shape does not end with normalized_shape");
    }
    std::fill(space.is_reduced.begin() + static_cast<std::ptrdiff_t>(skipped),
              space.is_reduced.end(), true);
  } else if (name == "group_norm") {
    const std::int64_t groups = node.integer("num_groups");
    if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
      emitter.refuse(node.node(), "its groups do not fit");
    }
    space.is_reduced.clear();
    space.channels = shape[1] / groups;
    space.rows = {shape[0], groups};
    space.inner.assign(shape.begin() + 1, shape.end());
    space.inner[0] = space.channels;
    return space;
  } else if (name == "instance_norm") {
    if (shape.size() < 2) emitter.refuse(node.node(), "its operand has too few dimensions");
    std::fill(space.is_reduced.begin() + 2, space.is_reduced.end(), true);
  } else if (name.find("adaptive") != std::string_view::npos) {
    const auto rank = static_cast<std::ptrdiff_t>(spatial_rank(node.node().op_type));
    if (static_cast<std::ptrdiff_t>(shape.size()) <= rank) {
      emitter.refuse(node.node(), "its operand has too few dimensions");
    }
    std::fill(space.is_reduced.end() - rank, space.is_reduced.end(), true);
  } else {
    const std::vector<std::int64_t> dimensions = stated_dimensions(node);
    // Of these two ops alone, no dimensions stand for none.
    const bool is_of_dims = node.node().op_type.ends_with(".dims") && !node.is_none("dim");
    if (dimensions.empty() && !is_of_dims) {
      std::fill(space.is_reduced.begin(), space.is_reduced.end(), true);
    }
    for (const std::int64_t each : dimensions) {
      const auto d = static_cast<std::size_t>(dimension_of(emitter, node, each, shape.size()));
      if (d < space.is_reduced.size()) space.is_reduced[d] = true;
    }
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (space.is_reduced[d] ? space.inner : space.rows).push_back(shape[d]);
  }
  return space;
}

/// Writes the reductions of an op and binds its result.
class RowOp {
 public:
  RowOp(RowWriter& rows, const RowSpace& space, const BoundNode& node)
      : rows_(rows),
        space_(space),
        node_(node),
        result_(node.node().outputs[0]),
        dtype_(rows.emitter().dtype(space.input)) {}

  void write() {
    const std::string_view name = functional_name(node_.node().op_type);
    if (name.ends_with("softmax")) return softmax(name.find("log_") != std::string_view::npos);
    if (name.ends_with("_norm") && name != "linalg_vector_norm") return norm(name);
    if (name.starts_with("var") || name.starts_with("std")) return moments(name);
    reduction(name);
  }

 private:
  Emitter& emitter() { return rows_.emitter(); }
  std::string input_at(const Index& inner, DType dtype) {
    return emitter().element_as(space_.input, space_.full(rows_.row(), inner), dtype);
  }
  void need_floats() {
    if (!is_floating_point(dtype_)) emitter().refuse(node_.node(), "it needs floats");
    emitter().expect_shape(node_.node(), 0, emitter().shape(space_.input));
  }
  /// Only elements of this row are known; a loop over it asks for them by the same names.
  const Index& in_row(const Index& asked) {
    const Index& row = rows_.row();
    bool is_here = true;
    if (space_.channels > 0) {
      const std::string first = times(row[1], space_.channels);
      is_here = asked[0] == row[0] &&
                (first == "0" || asked[1] == first || asked[1].starts_with("(" + first + " + "));
    } else {
      std::size_t r = 0;
      for (std::size_t d = 0; d < asked.size(); ++d) {
        if (!space_.is_reduced[d]) is_here = is_here && asked[d] == row[r++];
      }
    }
    if (!is_here) throw CannotFuse{"a row's result is read in another row"};
    return asked;
  }

  void softmax(bool is_logarithm) {
    need_floats();
    emitter().expect_dtype(
        node_.node(), 0,
        node_.find("dtype") != nullptr && node_.dtype("dtype") ? *node_.dtype("dtype") : dtype_);
    const DType dtype = emitter().dtype(result_);
    const std::string most =
        rows_.reduce(dtype, "max", [&](const Index& i) { return input_at(i, dtype); });
    const std::string sum = rows_.reduce(dtype, "+", [&](const Index& i) {
      return "exp(" + input_at(i, dtype) + " - " + most + ")";
    });
    const std::string factor =
        emitter().define(dtype, is_logarithm ? most + " + log(" + sum + ")" : "1 / " + sum);
    emitter().bind(result_, [this, dtype, most, factor, is_logarithm](const Index& asked) {
      const std::string x = emitter().element_as(space_.input, in_row(asked), dtype);
      if (is_logarithm) return "(" + x + " - " + factor + ")";
      return emitter().define(dtype, "exp(" + x + " - " + most + ") * " + factor);
    });
  }

  /// The factor or summand of an element, by the dimensions that the op's weights have.
  std::string weight_at(const char* argument, const Index& asked, std::string_view name) {
    const auto tensor = node_.find(argument) != nullptr ? node_.tensor(argument) : std::nullopt;
    if (!tensor) return {};
    const bool by_channel = name == "group_norm" || name == "instance_norm";
    const Shape& shape = emitter().shape(*tensor);
    const Shape& whole = emitter().shape(space_.input);
    const Shape expected = by_channel ? Shape{whole[1]} : node_.integers("normalized_shape");
    if (shape != expected) emitter().refuse(node_.node(), "its weights do not fit");
    const Index place =
        by_channel ? Index{asked[1]}
                   : Index(asked.end() - static_cast<std::ptrdiff_t>(shape.size()), asked.end());
    return emitter().element_as(*tensor, place, dtype_);
  }

  void norm(std::string_view name) {
    need_floats();
    const bool centres = name != "rms_norm";
    if (name == "instance_norm" && !node_.boolean("use_input_stats")) {
      emitter().refuse(node_.node(), "it needs the input's statistics");
    }
    const std::string count =
        literal(static_cast<double>(std::max<std::int64_t>(rows_.inner_count(), 1)), dtype_);
    std::string mean = literal(0.0, dtype_);
    if (centres) {
      mean = emitter().define(dtype_, rows_.reduce(dtype_, "+", [&](const Index& i) {
        return input_at(i, dtype_);
      }) + " / " + count);
    }
    const std::string squares = rows_.reduce(dtype_, "+", [&](const Index& i) {
      const std::string x = emitter().define(dtype_, input_at(i, dtype_) + " - " + mean);
      return x + " * " + x;
    });
    const char* epsilon_name = node_.find("epsilon") != nullptr ? "epsilon" : "eps";
    const double epsilon = node_.is_none(epsilon_name)
                               ? static_cast<double>(std::numeric_limits<float>::epsilon())
                               : node_.number(epsilon_name);
    const std::string factor = emitter().define(
        dtype_, "1 / sqrt(" + squares + " / " + count + " + " + literal(epsilon, dtype_) + ")");
    const std::string kind(name);
    emitter().bind(result_, [this, mean, factor, kind](const Index& asked) {
      const std::string x = emitter().element(space_.input, in_row(asked));
      std::string value = "(" + x + " - " + mean + ") * " + factor;
      if (const std::string w = weight_at("weight", asked, kind); !w.empty()) value += " * " + w;
      if (const std::string b = weight_at("bias", asked, kind); !b.empty()) value += " + " + b;
      return emitter().define(dtype_, value);
    });
  }

  /// Variance or standard deviation, with the mean behind it where the op has two results.
  void moments(std::string_view name) {
    if (!is_floating_point(dtype_)) emitter().refuse(node_.node(), "it needs floats");
    const std::size_t results = name.ends_with("_mean") ? 2 : 1;
    for (std::size_t i = 0; i < results; ++i) check_reduced(name, dtype_, i);
    double correction = 1;
    if (node_.find("unbiased") != nullptr) {
      correction = node_.boolean("unbiased") ? 1 : 0;
    } else if (!node_.is_none("correction")) {
      correction = node_.number("correction");
    }
    const auto count = static_cast<double>(rows_.inner_count());
    const std::string mean = emitter().define(
        dtype_, rows_.reduce(dtype_, "+", [&](const Index& i) { return input_at(i, dtype_); }) +
                    " / " + literal(count, dtype_));
    const std::string squares = rows_.reduce(dtype_, "+", [&](const Index& i) {
      const std::string x = emitter().define(dtype_, input_at(i, dtype_) + " - " + mean);
      return x + " * " + x;
    });
    std::string value = squares + " / " + literal(std::max(count - correction, 0.0), dtype_);
    if (name.starts_with("std")) value = "sqrt(" + value + ")";
    const Index place = space_.outer(rows_.row(), keeps_dimensions(name));
    emitter().bind_value(result_, place, emitter().define(dtype_, value));
    if (results == 2) emitter().bind_value(node_.node().outputs[1], place, mean);
  }

  void reduction(std::string_view name) {
    const DType to = emitter().dtype(result_);
    const std::int64_t count = rows_.inner_count();
    const bool is_truth = name == "any" || name == "all";
    const bool is_norm = name == "linalg_vector_norm" || name == "norm";
    const bool is_mean = name == "mean" || name.find("adaptive") != std::string_view::npos;
    if ((is_mean || is_norm) && !is_floating_point(to)) {
      emitter().refuse(node_.node(), "it needs floats");
    }
    if (count == 0 && (name == "amax" || name == "amin" || name == "max" || name == "min")) {
      emitter().refuse(node_.node(), "it reduces no elements");
    }
    check_reduced(name, to, 0);
    double order = 2;
    if (is_norm) {
      const char* argument = name == "norm" ? "p" : "ord";
      if (!node_.is_none(argument)) order = node_.number(argument);
      if (order != 1 && order != 2) emitter().refuse(node_.node(), "it is not the norm 1 or 2");
    }
    const std::string operation = name == "amax" || name == "max"   ? "max"
                                  : name == "amin" || name == "min" ? "min"
                                  : name == "prod"                  ? "*"
                                  : name == "any"                   ? "|"
                                  : name == "all"                   ? "&"
                                                                    : "+";
    std::string value = rows_.reduce(to, operation, [&](const Index& i) {
      if (is_truth) return "(uchar)(" + input_at(i, dtype_) + " != 0)";
      std::string x = input_at(i, to);
      if (!is_norm) return x;
      const std::string once = emitter().define(to, x);
      return order == 1 ? "fabs(" + once + ")" : once + " * " + once;
    });
    if (is_mean) value = value + " / " + literal(static_cast<double>(count), to);
    if (is_norm && order == 2) value = "sqrt(" + value + ")";
    const bool keeps = keeps_dimensions(name);
    emitter().bind_value(result_, space_.outer(rows_.row(), keeps), emitter().define(to, value));
  }

  bool keeps_dimensions(std::string_view name) const {
    if (name.find("adaptive") != std::string_view::npos) return true;
    return node_.find("keepdim") != nullptr && node_.boolean("keepdim");
  }

  void check_reduced(std::string_view name, DType to, std::size_t which) {
    const int result = static_cast<int>(which);
    const Shape& shape = emitter().shape(space_.input);
    Shape expected;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (!space_.is_reduced[d]) expected.push_back(shape[d]);
      if (space_.is_reduced[d] && keeps_dimensions(name)) expected.push_back(1);
    }
    emitter().expect_shape(node_.node(), result, expected);
    if (name == "any" || name == "all") {
      emitter().expect_dtype(node_.node(), result, dtype_ == DType::kUInt8 ? to : DType::kBool);
    } else if (const auto stated =
                   node_.find("dtype") != nullptr ? node_.dtype("dtype") : std::nullopt) {
      emitter().expect_dtype(node_.node(), result, *stated);
    } else if ((name == "sum" || name == "prod") && !is_floating_point(dtype_)) {
      emitter().expect_dtype(node_.node(), result, DType::kInt64);
    } else {
      emitter().expect_dtype(node_.node(), result, dtype_);
    }
  }

  RowWriter& rows_;
  const RowSpace& space_;
  const BoundNode& node_;
  TensorId result_;
  DType dtype_;
};

/// The ops in their order; each of them reduces its rows twice at most.
RowForm form_of(const KernelTask& task, const std::vector<NodeId>& heavy, DType dtype) {
  RowForm form{{}, dtype, 2 * static_cast<std::int64_t>(heavy.size())};
  for (const NodeId id : heavy) {
    if (!form.ops.empty()) form.ops += '+';
    form.ops += functional_name(task.model.node(id).op_type);
  }
  return form;
}

/// Softmax and norms have results of their operand's shape.
bool keeps_rows(const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  return name.ends_with("softmax") || (name.ends_with("_norm") && name != "linalg_vector_norm");
}

}  // namespace

GeneratedKernel row_kernel(const KernelTask& task, const std::vector<NodeId>& heavy) {
  Emitter emitter(task.model, {task.nodes.begin(), task.nodes.end()});
  std::vector<RowSpace> spaces;
  for (const NodeId id : heavy) spaces.push_back(space_of(emitter, id));
  for (const RowSpace& space : spaces) {
    if (!(space == spaces.front())) throw CannotFuse{"its reductions have different rows"};
  }
  const RowSpace& space = spaces.front();
  RowWriter rows(emitter, space.rows, space.inner,
                 form_of(task, heavy, emitter.dtype(space.input)));
  std::vector<RowOp> ops;
  ops.reserve(heavy.size());
  for (std::size_t i = 0; i < heavy.size(); ++i) {
    ops.emplace_back(rows, spaces[i], task.model.bound(heavy[i]));
    ops.back().write();
  }
  // Results of one element a row, and of whole rows.
  std::map<TensorId, Index> single;
  std::set<TensorId> whole{space.input};
  for (std::size_t i = 0; i < heavy.size(); ++i) {
    const Node& node = task.model.node(heavy[i]);
    whole.insert(spaces[i].input);
    if (keeps_rows(node)) {
      whole.insert(node.outputs[0]);
    } else {
      const bool keeps = task.model.shape(node.outputs[0]).size() == space.is_reduced.size();
      for (const TensorId output : node.outputs) {
        single.emplace(output, space.outer(rows.row(), keeps));
      }
    }
  }
  std::vector<bool> stored(task.results.size(), false);
  if (!single.empty()) {
    rows.begin_single();
    store_results(emitter, task, single, stored);
    emitter.close();
  }
  if (std::ranges::find(stored, false) != stored.end()) {
    const Index inner = rows.begin_loop();
    std::map<TensorId, Index> places;
    for (const TensorId each : whole) places.emplace(each, space.full(rows.row(), inner));
    store_results(emitter, task, places, stored);
    rows.end_loop();
  }
  require_all_stored(stored);
  return rows.finish();
}

}  // namespace npu::opencl
