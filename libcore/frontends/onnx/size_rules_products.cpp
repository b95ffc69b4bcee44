// SPDX-License-Identifier: Apache-2.0
// What ops say of sizes that sum over them: products, reductions, windows, attention, recurrences.
#include <algorithm>

#include "size_rules.hpp"

namespace npu::onnx {

void SizeRules::matmul() {
  if (shape(0) == nullptr || shape(1) == nullptr) return;
  Dims a = *shape(0);
  Dims b = *shape(1);
  if (a.empty() || b.empty()) return;
  const bool left_is_vector = a.size() == 1;
  const bool right_is_vector = b.size() == 1;
  if (left_is_vector) a.insert(a.begin(), number(1));
  if (right_is_vector) b.push_back(number(1));
  solver_.equate(a.back(), b[b.size() - 2]);
  Dims result = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!left_is_vector) result.push_back(a[a.size() - 2]);
  if (!right_is_vector) result.push_back(b.back());
  give(std::move(result));
}

void SizeRules::gemm() {
  const Dims* a = shape(0);
  const Dims* b = shape(1);
  if (a == nullptr || b == nullptr || a->size() != 2 || b->size() != 2) return;
  const std::size_t left = integer("transA", 0) != 0 ? 1 : 0;
  const std::size_t right = integer("transB", 0) != 0 ? 1 : 0;
  solver_.equate((*a)[1 - left], (*b)[right]);
  give({(*a)[left], (*b)[1 - right]});
}

void SizeRules::reduce() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const auto axes = integers(1, "axes");
  if (!axes && has(1)) return;
  const bool keeps = integer("keepdims", 1) != 0;
  const bool all = (!axes || axes->empty()) && integer("noop_with_empty_axes", 0) == 0;
  std::vector<bool> goes(dims->size(), all);
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>())) {
    const std::int64_t own = axis_in(axis, dims->size());
    if (!is_axis(own, dims->size())) return;
    goes[static_cast<std::size_t>(own)] = true;
  }
  Dims result;
  for (std::size_t d = 0; d < dims->size(); ++d) {
    if (!goes[d]) result.push_back((*dims)[d]);
    if (goes[d] && keeps) result.push_back(number(1));
  }
  give(std::move(result));
}

void SizeRules::convolution() {
  const Dims* x = shape(0);
  const Dims* weight = shape(1);
  if (x == nullptr || weight == nullptr || x->size() != weight->size() || x->size() < 3) return;
  Dims result{(*x)[0], (*weight)[0]};
  const std::size_t rank = x->size() - 2;
  const auto strides = list("strides").value_or(std::vector<std::int64_t>(rank, 1));
  const auto dilations = list("dilations").value_or(std::vector<std::int64_t>(rank, 1));
  const auto pads = list("pads").value_or(std::vector<std::int64_t>(2 * rank, 0));
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank) return;
  std::string_view mode;
  for (const AttributeProto& attribute : node_->attributes) {
    if (attribute.name == "auto_pad") mode = attribute.s;
  }
  for (std::size_t d = 0; d < rank; ++d) {
    const auto kernel = constant_of((*weight)[d + 2]);
    result.push_back(windows((*x)[d + 2], kernel.value_or(0), strides[d], dilations[d],
                             pads[d] + pads[d + rank], mode.starts_with("SAME")));
  }
  give(std::move(result));
}

void SizeRules::pooling() {
  const Dims* x = shape(0);
  const auto kernel = list("kernel_shape");
  if (x == nullptr || !kernel || x->size() != kernel->size() + 2) return;
  const std::size_t rank = kernel->size();
  const auto strides = list("strides").value_or(std::vector<std::int64_t>(rank, 1));
  const auto dilations = list("dilations").value_or(std::vector<std::int64_t>(rank, 1));
  const auto pads = list("pads").value_or(std::vector<std::int64_t>(2 * rank, 0));
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank) return;
  if (integer("ceil_mode", 0) != 0) return;
  std::string_view mode;
  for (const AttributeProto& attribute : node_->attributes) {
    if (attribute.name == "auto_pad") mode = attribute.s;
  }
  Dims result{(*x)[0], (*x)[1]};
  for (std::size_t d = 0; d < rank; ++d) {
    result.push_back(windows((*x)[d + 2], (*kernel)[d], strides[d], dilations[d],
                             pads[d] + pads[d + rank], mode.starts_with("SAME")));
  }
  give(std::move(result));
}

void SizeRules::global_pooling() {
  const Dims* x = shape(0);
  if (x == nullptr || x->size() < 2) return;
  Dims result(x->size(), number(1));
  std::copy_n(x->begin(), 2, result.begin());
  give(std::move(result));
}

// Whether the model states that a result has this many rows: present is the buffer of the past.
bool SizeRules::states_rows(std::size_t output, const Dim& rows) const {
  if (output >= node_->outputs.size() || !rows) return false;
  const auto found = stated_.find(node_->outputs[output]);
  if (found == stated_.end() || found->second->dims.size() != 4) return false;
  const DimProto& dim = found->second->dims[2];
  const Dim is = dim.value ? number(*dim.value) : stated(dim.symbol);
  return is && *is == *rows;
}

// ONNX's own, with (Q, K, V, mask, past key, past value), and the one of GroupQueryAttention, with
// (query, key, value, past key, past value).
void SizeRules::attention() {
  const bool is_grouped = node_->op_type == "GroupQueryAttention";
  const Dims* query = shape(0);
  if (query == nullptr || query->size() < 3) return;
  give(*query);
  const std::size_t places = query->size() == 4 ? 2 : 1;  // of positions
  const auto positions = [&](std::size_t input) -> Dim {
    const Dims* dims = shape(input);
    return dims != nullptr && dims->size() > places ? (*dims)[places] : std::nullopt;
  };
  const auto length_of_past = [&](std::size_t input) -> Dim {
    const Dims* dims = shape(input);
    return dims != nullptr && dims->size() == 4 ? (*dims)[2] : std::nullopt;
  };
  const std::size_t past = is_grouped ? 3 : 4;
  if (has(1) && has(2)) solver_.equate(positions(1), positions(2));
  if (has(past) && has(past + 1)) {
    solver_.equate(length_of_past(past), length_of_past(past + 1));
  }
  const Dim fresh = has(1) ? positions(1) : positions(0);
  const bool is_shared = is_grouped && has(past) && states_rows(1, length_of_past(past));
  const Dim total = is_shared   ? length_of_past(past)
                    : has(past) ? sum(length_of_past(past), fresh)
                                : fresh;
  if (!is_grouped && has(3)) {
    if (const Dims* mask = shape(3); mask != nullptr && mask->size() >= 2) {
      if (!is_one(mask->back())) solver_.equate(mask->back(), total);
      const Dim& rows = (*mask)[mask->size() - 2];
      if (!is_one(rows)) solver_.equate(rows, positions(0));
    }
  }
  for (std::size_t i = 1; i <= 2; ++i) {
    const Dims* cache = shape(past + i - 1);
    if (cache == nullptr || cache->size() != 4) continue;
    give({(*cache)[0], (*cache)[1], total, (*cache)[3]}, i);
  }
}

// ONNX Runtime's MultiHeadAttention, with (query, key, value, bias, mask, bias of scores, past key,
// past value), and its Attention, with (input, weights, bias, mask, stack of the past).
void SizeRules::multi_head() {
  const bool is_projected = node_->op_type == "Attention";
  const Dims* query = shape(0);
  if (query == nullptr || (query->size() != 3 && query->size() != 5)) return;
  const Dims* key = is_projected || !has(1) ? query : shape(1);
  const Dims* value = is_projected || !has(2) ? key : shape(2);
  if (key == nullptr || value == nullptr) return;
  const auto rows_of = [](const Dims& dims) { return dims[dims.size() == 4 ? 2 : 1]; };
  const auto width_of = [&](const Dims& dims) {
    if (dims.size() == 5) return product(dims[2], dims[4]);
    return dims.size() == 4 ? product(dims[1], dims[3]) : dims.back();
  };
  if (key->size() < 3 || value->size() < 3) return;
  if (has(1) && has(2) && !is_projected) solver_.equate(rows_of(*key), rows_of(*value));
  Dim width = width_of(*value);
  if (is_projected) {
    const Dims* weight = shape(1);
    const auto widths = list("qkv_hidden_sizes");
    const auto whole =
        weight == nullptr || weight->size() != 2 ? std::nullopt : constant_of((*weight)[1]);
    width = widths && widths->size() == 3 ? number((*widths)[2])
            : whole                       ? number(*whole / 3)
                                          : std::nullopt;
  }
  give({(*query)[0], (*query)[1], width});
  for (std::size_t i = is_projected ? 4 : 6, to = 1; i < (is_projected ? 5U : 8U); ++i, ++to) {
    const Dims* past = shape(i);
    if (past == nullptr || past->size() != (is_projected ? 5U : 4U)) continue;
    Dims present = *past;
    Dim& rows = present[present.size() - 2];
    rows = sum(rows, rows_of(*key));
    give(std::move(present), to);
  }
}

void SizeRules::recurrent() {
  const Dims* x = shape(0);
  const Dims* weight = shape(2);
  if (x == nullptr || weight == nullptr || x->size() != 3 || weight->size() != 3) return;
  if (integer("layout", 0) != 0) return;
  const Dim& width = weight->back();
  give({(*x)[0], (*weight)[0], (*x)[1], width});
  give({(*weight)[0], (*x)[1], width}, 1);
  give({(*weight)[0], (*x)[1], width}, 2);
  if (const Dims* state = shape(5); state != nullptr && state->size() == 3) {
    solver_.equate((*state)[1], (*x)[1]);
  }
}

}  // namespace npu::onnx
