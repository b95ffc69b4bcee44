// SPDX-License-Identifier: Apache-2.0
// Writes what the nodes of a model that are kept read of sizes of the past: positions, masks as
// npu.length_mask, numbers and sequences. Each is written once. O(rank) nodes' text for a tensor.
#include "passes/states/past_writer.hpp"

#include <algorithm>
#include <cmath>

#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

Json mention_of(const std::string& name, const Json& shape, DType dtype) {
  return {{"name", name}, {"shape", shape}, {"dtype", std::string(dtype_name(dtype))}};
}

Json number_json(double value, bool is_integer) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (is_integer) return static_cast<std::int64_t>(value);
  return value;
}

std::string torch_dtype(DType dtype) { return "torch." + std::string(dtype_name(dtype)); }

}  // namespace

PastWriter::PastWriter(const PastModel& model, std::int64_t capacity, const std::string& positions,
                       const SizeShape& shape, Json& nodes)
    : model_(model), nodes_(nodes) {
  capacity_.emplace(model.caches().past_symbol, SizeExpression(capacity) - model.caches().fresh);
  for (const TensorInfo& tensor : model.graph().tensors()) taken_.insert(tensor.name);
  for (const Node& node : model.graph().nodes()) taken_.insert(node.name);
  taken_.insert(positions);
  input_ = mention(positions, shape, DType::kInt64);
}

Json PastWriter::size(const SizeExpression& size) const { return size_json(when_full(size)); }

Json PastWriter::shape(const SizeShape& shape) const {
  Json list = Json::array();
  for (const SizeExpression& each : shape) list.push_back(size(each));
  return list;
}

Json PastWriter::mention(const std::string& name, const SizeShape& sizes, DType dtype) const {
  return mention_of(name, shape(sizes), dtype);
}

void PastWriter::release(const Node& node) {
  const std::string& result = model_.graph().tensor(node.outputs[0]).name;
  if (node.name == result && released_.insert(result).second) taken_.erase(result);
}

Json PastWriter::add(const std::string& name, const std::string& op_type, const Json& inputs,
                     Json attrs, const Json& shape, DType dtype) {
  std::string unique = name;
  for (int i = 1; !taken_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  Json result = mention_of(unique, shape, dtype);
  nodes_.push_back({{"name", unique},
                    {"op_type", op_type},
                    {"inputs", inputs},
                    {"outputs", Json::array({result})},
                    {"attrs", std::move(attrs)}});
  return result;
}

const Json& PastWriter::positions() {
  if (positions_) return *positions_;
  const Json rows = Json::array({size(model_.caches().fresh)});
  positions_ = input_;
  if (member_list(input_, "shape")->size() != 1) {
    positions_ = add("positions", "aten.view.default", Json::array({input_}), {{"size", rows}},
                     rows, DType::kInt64);
  }
  return *positions_;
}

const Json& PastWriter::keys() {
  if (keys_) return *keys_;
  const Json count = Json::array({size(model_.caches().total)});
  const Json all =
      add("keys", "aten.arange.default", Json::array(),
          {{"end", count[0]}, {"dtype", torch_dtype(DType::kInt64)}}, count, DType::kInt64);
  keys_ = add("keys_used", "aten.minimum.default", Json::array({all, end_position(true)}),
              Json::object(), count, DType::kInt64);
  return *keys_;
}

const Json& PastWriter::mask(bool causal, std::int64_t window) {
  const auto found = masks_.find({causal, window});
  if (found != masks_.end()) return found->second;
  const bool reads_positions = causal || window > 0;
  Json inputs = Json::array();
  if (reads_positions) inputs.push_back(positions());
  if (!causal) {
    inputs.push_back(add("keys_used", "aten.add.Scalar", Json::array({end_position(true)}),
                         {{"other", 1}}, Json::array(), DType::kInt64));
  }
  const Json keys = size(model_.caches().total);
  const Json rows = reads_positions ? size(model_.caches().fresh) : Json(1);
  Json attrs{{"operands", !reads_positions ? "valid"
                          : causal         ? "positions"
                                           : "both"},
             {"keys", keys}};
  if (causal) attrs["causal"] = true;
  if (window > 0) attrs["window"] = window;
  Json made = add("length_mask", "npu.length_mask", inputs, std::move(attrs),
                  Json::array({1, 1, rows, keys}), DType::kBool);
  return masks_.emplace(std::pair{causal, window}, std::move(made)).first->second;
}

/// The position of the first new row, or that of the last one.
const Json& PastWriter::end_position(bool is_last) {
  std::optional<Json>& made = end_positions_[is_last ? 1 : 0];
  if (!made) {
    made = add(is_last ? "last_position" : "first_position", "aten.select.int",
               Json::array({positions()}), {{"dim", 0}, {"index", is_last ? -1 : 0}}, Json::array(),
               DType::kInt64);
  }
  return *made;
}

Json PastWriter::seen(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
                      const std::string& name) {
  SizeShape seen(shape.size(), SizeExpression(1));
  for (const std::size_t dim : dims) seen[dim] = shape[dim];
  const Json plain = this->shape(seen);
  if (*member_list(value, "shape") == plain) return value;
  const DType dtype = *parse_dtype(*member_text(value, "dtype"));
  return add(name, "aten.view.default", Json::array({value}), {{"size", plain}}, plain, dtype);
}

Json PastWriter::repeated(Json value, const SizeShape& shape, const std::string& name) {
  const Json whole = this->shape(shape);
  if (*member_list(value, "shape") == whole) return value;
  const DType dtype = *parse_dtype(*member_text(value, "dtype"));
  return add(name, "aten.expand.default", Json::array({value}), {{"size", whole}}, whole, dtype);
}

Json PastWriter::spread(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
                        const std::string& name) {
  return repeated(seen(std::move(value), shape, dims, name), shape, name);
}

Json PastWriter::shifted(Json value, std::int64_t by, const std::string& name) {
  if (by == 0) return value;
  const Json its_shape = *member_list(value, "shape");
  return add(name, "aten.add.Scalar", Json::array({std::move(value)}), {{"other", by}}, its_shape,
             DType::kInt64);
}

Json PastWriter::multiplied(Json value, std::int64_t factor, const std::string& name) {
  if (factor == 1) return value;
  const Json its_shape = *member_list(value, "shape");
  return add(name, "aten.mul.Scalar", Json::array({std::move(value)}), {{"other", factor}},
             its_shape, DType::kInt64);
}

/// What is added comes first, so that the rest can be subtracted.
Json PastWriter::sum_of(std::vector<Term> terms, std::int64_t number, const SizeShape& shape,
                        const std::string& name) {
  std::stable_partition(terms.begin(), terms.end(), [](const Term& t) { return t.factor > 0; });
  std::optional<Json> sum;
  for (Term& term : terms) {
    const bool is_taken_off = sum && term.factor == -1;
    Json next = multiplied(std::move(term.value), is_taken_off ? 1 : term.factor, name);
    if (!sum) next = shifted(std::move(next), number, name);
    next = seen(std::move(next), shape, term.along, name);
    if (!sum) {
      sum = std::move(next);
      continue;
    }
    Json joined = Json::array();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Json& a = (*member_list(*sum, "shape"))[d];
      joined.push_back(a == Json(1) ? (*member_list(next, "shape"))[d] : a);
    }
    sum = add(name, is_taken_off ? "aten.sub.Tensor" : "aten.add.Tensor",
              Json::array({*sum, std::move(next)}), Json::object(), joined, DType::kInt64);
  }
  return repeated(*std::move(sum), shape, name);
}

/// A sum: multiples of the positions of new rows, of keys, and of other places, each along its
/// dimension, of the first and the last position, and a number.
std::optional<Json> PastWriter::integers(const Affine& value, const SizeShape& shape,
                                         const std::vector<bool>& new_rows, const std::string& name,
                                         std::string& reason) {
  const CachePairs& caches = model_.caches();
  std::int64_t of_past = value.rest.linear_factor(caches.past_symbol);
  SizeExpression rest = value.rest - SizeExpression(of_past) * caches.past;
  std::int64_t of_fresh = 0;
  if (!caches.fresh.constant()) {
    of_fresh = rest.linear_factor(caches.fresh.text());
    rest = rest - SizeExpression(of_fresh) * caches.fresh;
  }
  const auto number = rest.constant();
  if (!number) {
    reason = "is " + value.rest.text() + ", which does not follow from positions";
    return std::nullopt;
  }
  const auto are_new = [&](std::size_t d) {
    return new_rows[d] || (shape[d] == caches.fresh && caches.fresh != SizeExpression(1));
  };
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (value.factors[d] == 0) continue;
    dims.push_back(d);
    // A new row is told by its position, which counts those of the past.
    if (!new_rows[d] && are_new(d)) of_past -= value.factors[d];
  }
  // That many rows of the past, and new ones, in terms of the first and the last position.
  const bool is_single = caches.fresh == SizeExpression(1);
  const std::int64_t of_last = of_fresh;
  const std::int64_t of_first = of_past - of_fresh;
  const std::int64_t left = *number + of_fresh;
  if (dims.size() == 1 && of_last == 0 && of_first == 0 && !are_new(dims[0]) &&
      !model_.has_past(shape[dims[0]])) {
    const std::int64_t step = value.factors[dims[0]];
    const Json count = Json::array({size(shape[dims[0]])});
    Json sequence =
        add(name, "aten.arange.start_step", Json::array(),
            {{"start", left},
             {"end", size(SizeExpression(left) + SizeExpression(step) * shape[dims[0]])},
             {"step", step},
             {"dtype", torch_dtype(DType::kInt64)}},
            count, DType::kInt64);
    return spread(std::move(sequence), shape, dims, name);
  }
  std::vector<Term> terms;
  for (const std::size_t d : dims) {
    Json term;
    if (are_new(d)) {
      term = positions();
    } else if (model_.has_past(shape[d])) {
      term = keys();
    } else {
      const Json count = Json::array({size(shape[d])});
      term = add(name, "aten.arange.default", Json::array(),
                 {{"end", count[0]}, {"dtype", torch_dtype(DType::kInt64)}}, count, DType::kInt64);
    }
    terms.push_back({std::move(term), value.factors[d], {d}});
  }
  if (of_first != 0) terms.push_back({is_single ? positions() : end_position(false), of_first, {}});
  if (of_last != 0) terms.push_back({end_position(true), of_last, {}});
  return sum_of(std::move(terms), left, shape, name);
}

std::optional<Json> PastWriter::choice(const Formula& formula, const SizeShape& shape, DType dtype,
                                       const std::string& name, std::string& reason) {
  const CachePairs& caches = model_.caches();
  const auto keys = keys_dim(model_, formula, shape);
  const auto form = keys ? mask_form(model_, formula, shape, *keys, reason) : std::nullopt;
  if (!form) {
    if (!keys) reason = "has no dimension of " + caches.total.text() + " keys";
    return std::nullopt;
  }
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < *keys; ++d) {
    if (shape[d] == caches.fresh && caches.fresh != SizeExpression(1)) dims = {d};
  }
  if (dims.empty() && (form->causal || form->window > 0) && caches.fresh != SizeExpression(1)) {
    reason = "has its keys in front of its rows";
    return std::nullopt;
  }
  dims.push_back(*keys);
  Json value = mask(form->causal, form->window);
  if (!form->causal && form->window < 0) dims.erase(dims.begin(), dims.end() - 1);
  const Json its_shape = *member_list(value, "shape");
  if (dtype == DType::kBool) {
    if (form->hidden != 0) {
      value = add(name, "aten.logical_not.default", Json::array({value}), Json::object(), its_shape,
                  DType::kBool);
    }
  } else {
    value = add(
        name, "aten.where.Scalar", Json::array({value}),
        {{"self", number_json(form->shown, false)}, {"other", number_json(form->hidden, false)}},
        its_shape, DType::kFloat32);
    if (dtype != DType::kFloat32) {
      value = add(name, "aten.to.dtype", Json::array({value}), {{"dtype", torch_dtype(dtype)}},
                  its_shape, dtype);
    }
  }
  return spread(std::move(value), shape, dims, name);
}

std::optional<Json> PastWriter::tensor(TensorId id, const Formula& formula, std::string& reason) {
  const auto found = made_.find(id.value);
  if (found != made_.end()) return found->second;
  const SizeShape& sizes = model_.shape(id);
  auto made = tensor(model_.graph().tensor(id), formula, sizes,
                     std::vector<bool>(sizes.size(), false), reason);
  if (made) made_.emplace(id.value, *made);
  return made;
}

std::optional<Json> PastWriter::tensor(const TensorInfo& info, const Formula& formula,
                                       const SizeShape& sizes, const std::vector<bool>& new_rows,
                                       std::string& reason) {
  if (const auto number = formula.number()) {
    const bool is_integer = !is_floating_point(info.dtype) && info.dtype != DType::kBool;
    const Json value =
        info.dtype == DType::kBool ? Json(*number != 0) : number_json(*number, is_integer);
    return add(info.name, "aten.full.default", Json::array(),
               {{"size", shape(sizes)}, {"fill_value", value}, {"dtype", torch_dtype(info.dtype)}},
               shape(sizes), info.dtype);
  }
  if (!formula.integer) return choice(formula, sizes, info.dtype, info.name, reason);
  auto made = integers(*formula.integer, sizes, new_rows, info.name, reason);
  if (made && info.dtype != DType::kInt64) {
    made = add(info.name, "aten.to.dtype", Json::array({*made}),
               {{"dtype", torch_dtype(info.dtype)}}, shape(sizes), info.dtype);
  }
  return made;
}

}  // namespace npu::states
