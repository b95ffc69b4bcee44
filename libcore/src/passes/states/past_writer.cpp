// SPDX-License-Identifier: Apache-2.0
// Writes what the nodes of a model that are kept read of sizes of the past: positions, masks as
// npu.length_mask, numbers and sequences. Each is written once. O(rank) nodes' text for a tensor.
#include "passes/states/past_writer.hpp"

#include <cmath>

#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

Json mention(const std::string& name, const Json& shape, DType dtype) {
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
  input_ = mention(positions, this->shape(shape), DType::kInt64);
}

Json PastWriter::size(const SizeExpression& size) const {
  const SizeExpression result = size.substitute(capacity_);
  const auto number = result.constant();
  return number ? Json(*number) : Json(result.text());
}

Json PastWriter::shape(const SizeShape& shape) const {
  Json list = Json::array();
  for (const SizeExpression& each : shape) list.push_back(size(each));
  return list;
}

Json PastWriter::add(const std::string& name, const char* op_type, const Json& inputs, Json attrs,
                     const Json& shape, DType dtype) {
  std::string unique = name;
  for (int i = 1; !taken_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  Json result = mention(unique, shape, dtype);
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

const Json& PastWriter::mask(bool causal, std::int64_t window) {
  const auto found = masks_.find({causal, window});
  if (found != masks_.end()) return found->second;
  const bool reads_positions = causal || window > 0;
  Json inputs = Json::array();
  if (reads_positions) inputs.push_back(positions());
  if (!causal) {
    const Json last = add("last_position", "aten.select.int", Json::array({positions()}),
                          {{"dim", 0}, {"index", -1}}, Json::array(), DType::kInt64);
    inputs.push_back(add("keys_used", "aten.add.Scalar", Json::array({last}), {{"other", 1}},
                         Json::array(), DType::kInt64));
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

/// `value` seen with 1 for every dimension but `dims`, and repeated along the others.
Json PastWriter::spread(Json value, const SizeShape& shape, const std::vector<std::size_t>& dims,
                        const std::string& name) {
  SizeShape seen(shape.size(), SizeExpression(1));
  for (const std::size_t dim : dims) seen[dim] = shape[dim];
  const DType dtype = *parse_dtype(*member_text(value, "dtype"));
  const auto is_it = [&](const Json& wanted) { return *member_list(value, "shape") == wanted; };
  const Json plain = this->shape(seen);
  if (!is_it(plain)) {
    value = add(name, "aten.view.default", Json::array({value}), {{"size", plain}}, plain, dtype);
  }
  const Json whole = this->shape(shape);
  if (!is_it(whole)) {
    value = add(name, "aten.expand.default", Json::array({value}), {{"size", whole}}, whole, dtype);
  }
  return value;
}

std::optional<Json> PastWriter::integers(const Affine& value, const SizeShape& shape,
                                         const std::string& name, std::string& reason) {
  const CachePairs& caches = model_.caches();
  std::optional<std::size_t> dim;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (value.factors[d] == 0) continue;
    if (dim) {
      reason = "depends on two dimensions";
      return std::nullopt;
    }
    dim = d;
  }
  const auto shifted = [&](Json base, std::int64_t by) {
    if (by == 0) return base;
    const Json its_shape = *member_list(base, "shape");
    return add(name, "aten.add.Scalar", Json::array({base}), {{"other", by}}, its_shape,
               DType::kInt64);
  };
  const auto behind_past = (value.rest - caches.past).constant();
  const bool are_rows = dim ? shape[*dim] == caches.fresh && value.factors[*dim] == 1
                            : caches.fresh == SizeExpression(1);
  if (behind_past && are_rows) {
    std::vector<std::size_t> dims;
    if (dim) dims.push_back(*dim);
    return spread(shifted(positions(), *behind_past), shape, dims, name);
  }
  if (dim && !model_.has_past(value.rest) && value.rest.constant()) {
    const std::int64_t step = value.factors[*dim];
    const SizeExpression end = value.rest + SizeExpression(step) * shape[*dim];
    const Json count = Json::array({size(shape[*dim])});
    Json sequence = add(name, "aten.arange.start_step", Json::array(),
                        {{"start", size(value.rest)},
                         {"end", size(end)},
                         {"step", step},
                         {"dtype", torch_dtype(DType::kInt64)}},
                        count, DType::kInt64);
    return spread(std::move(sequence), shape, {*dim}, name);
  }
  const auto behind_all = (value.rest - caches.used()).constant();
  if (!dim && (behind_past || behind_all)) {
    const Json one =
        add(name, "aten.select.int", Json::array({positions()}),
            {{"dim", 0}, {"index", behind_past ? 0 : -1}}, Json::array(), DType::kInt64);
    return spread(shifted(one, behind_past ? *behind_past : *behind_all + 1), shape, {}, name);
  }
  reason = "is " + value.rest.text() + ", which does not follow from positions";
  return std::nullopt;
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
  const TensorInfo& info = model_.graph().tensor(id);
  const SizeShape& sizes = model_.shape(id);
  std::optional<Json> made;
  if (const auto number = formula.number()) {
    const bool is_integer = !is_floating_point(info.dtype) && info.dtype != DType::kBool;
    const Json value =
        info.dtype == DType::kBool ? Json(*number != 0) : number_json(*number, is_integer);
    made = add(info.name, "aten.full.default", Json::array(),
               {{"size", shape(sizes)}, {"fill_value", value}, {"dtype", torch_dtype(info.dtype)}},
               shape(sizes), info.dtype);
  } else if (formula.integer) {
    made = integers(*formula.integer, sizes, info.name, reason);
    if (made && info.dtype != DType::kInt64) {
      made = add(info.name, "aten.to.dtype", Json::array({*made}),
                 {{"dtype", torch_dtype(info.dtype)}}, shape(sizes), info.dtype);
    }
  } else {
    made = choice(formula, sizes, info.dtype, info.name, reason);
  }
  if (made) made_.emplace(id.value, *made);
  return made;
}

}  // namespace npu::states
