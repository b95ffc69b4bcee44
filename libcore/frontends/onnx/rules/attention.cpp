// SPDX-License-Identifier: Apache-2.0
// Attention, rotary embeddings and caches. What is attention as PyTorch has it becomes
// aten.scaled_dot_product_attention; capped scores, sinks and scores that are a result are written
// out.
#include "rules/attention.hpp"

#include <cmath>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

Value* infinity_of(Op& op, DType dtype, double value) {
  return op.filled({}, dtype, json_number_of(value, dtype));
}

}  // namespace

Value* ascending(Op& op, std::int64_t count, const Shape& shape) {
  if (count > Importer::kMostKnown) Op::refuse("a sequence of " + std::to_string(count));
  if (op.importer().settings().notes_computed) {
    Value* sequence =
        op.emit("aten.arange.start_step", {},
                Json{{"start", 0}, {"end", count}, {"step", 1}, {"dtype", "torch.int64"}},
                DType::kInt64, {count});
    return op.view(sequence, shape);
  }
  Ints values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return op.integer_constant(values, shape);
}

namespace {

// Where a mask that blocks keys holds; `mask` may be null.
Value* both(Op& op, Value* mask, Value* allowed) {
  if (mask == nullptr) return allowed;
  const Shape shape = broadcast(mask->shape, allowed->shape);
  if (mask->dtype == DType::kBool) {
    return op.emit("aten.logical_and.default", {mask, allowed}, Json::object(), DType::kBool,
                   shape);
  }
  return op.emit("aten.where.self", {allowed, mask, infinity_of(op, mask->dtype, -kInfinity)},
                 Json::object(), mask->dtype, shape);
}

// The keys that each query may see, as a mask: those of `mask`, in front of it, and that count.
Value* whole_mask(Op& op, const Heads& heads) {
  const std::int64_t queries = heads.q->shape[2];
  const std::int64_t keys = heads.k->shape[2];
  const std::int64_t batch = heads.q->shape[0];
  Value* mask = heads.mask;
  if (mask != nullptr && mask->rank() > 0 && mask->shape.back() < keys && mask->shape.back() != 1) {
    std::vector<std::pair<std::int64_t, std::int64_t>> pads(mask->shape.size(), {0, 0});
    pads.back().second = keys - mask->shape.back();
    mask = op.pad(mask, pads, mask->dtype == DType::kBool ? 0 : -kInfinity);
  }
  Value* valid = heads.valid == nullptr ? nullptr : op.view(heads.valid, {batch, 1, 1, 1});
  if (heads.is_causal || heads.has_window()) {
    Value* key = ascending(op, keys, {1, keys});
    Value* query = ascending(op, queries, {queries, 1});
    Value* own =
        heads.offset == 0 ? query : op.scalar("add", query, static_cast<double>(heads.offset));
    if (heads.is_offset_by_valid) {
      own = op.binary("add", query, op.scalar("sub", valid, static_cast<double>(queries)));
    }
    const auto bound = [&](const char* relation, double distance) {
      Value* end = distance == 0 ? own : op.scalar("add", own, distance);
      mask = both(op, mask, op.compare(relation, key, end));
    };
    if (heads.is_causal) bound("le", 0);
    if (heads.right >= 0 && !heads.is_causal) bound("le", static_cast<double>(heads.right));
    if (heads.left >= 0) bound("ge", -static_cast<double>(heads.left));
  }
  if (valid != nullptr) mask = both(op, mask, op.compare("lt", ascending(op, keys, {keys}), valid));
  return mask;
}

// Each head of k or v for all queries' heads that share it.
Value* repeated_heads(Op& op, Value* x, std::int64_t heads) {
  const Shape& shape = x->shape;
  if (shape[1] == heads) return x;
  const std::int64_t each = heads / shape[1];
  Value* wide = op.expand(op.view(x, {shape[0], shape[1], 1, shape[2], shape[3]}),
                          {shape[0], shape[1], each, shape[2], shape[3]});
  return op.view(wide, {shape[0], heads, shape[2], shape[3]});
}

void check_heads(const Heads& heads) {
  const Shape& q = heads.q->shape;
  const Shape& k = heads.k->shape;
  const Shape& v = heads.v->shape;
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && k[0] == q[0] &&
                    v[0] == q[0] && k[1] == v[1] && k[2] == v[2] && k[3] == q[3] && k[1] > 0 &&
                    q[1] % k[1] == 0;
  if (!fits) {
    Op::refuse("queries, keys and values of shapes " + shape_text(q) + ", " + shape_text(k) +
               " and " + shape_text(v) + " do not fit together");
  }
  if (heads.mask != nullptr) {
    const Shape& mask = heads.mask->shape;
    if (mask.empty() || mask.size() > 4) Op::refuse("the mask does not fit");
  }
}

// Scores that are capped, with sinks, or a result: written out.
Attended attend_in_steps(Op& op, const Heads& heads, Value* mask, std::int64_t mode) {
  const std::int64_t count = heads.q->shape[1];
  const DType dtype = heads.q->dtype;
  const DType wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  if (heads.scale < 0) Op::refuse("a negative scale");
  // The queries alone, since keys may be a whole cache.
  Value* q = op.scalar("mul", op.cast(heads.q, wide), heads.scale);
  Value* k = op.cast(repeated_heads(op, heads.k, count), wide);
  Value* v = op.cast(repeated_heads(op, heads.v, count), wide);
  const Shape shape{q->shape[0], count, q->shape[2], k->shape[2]};
  Value* scores =
      op.emit("aten.matmul.default", {q, op.permute(k, {0, 1, 3, 2})}, Json::object(), wide, shape);
  Attended result;
  if (mode == 0) result.scores = scores;
  if (heads.softcap != 0) {
    scores = op.emit_like("aten.tanh.default", {op.scalar("div", scores, heads.softcap)});
    scores = op.scalar("mul", scores, heads.softcap);
    if (mode == 1) result.scores = scores;
  }
  if (mask != nullptr && mask->dtype == DType::kBool) {
    scores = op.emit("aten.where.ScalarOther", {mask, scores},
                     Json{{"other", json_number_of(-kInfinity, wide)}}, wide,
                     broadcast(mask->shape, shape));
  } else if (mask != nullptr) {
    scores = op.binary("add", scores, op.cast(mask, wide));
  }
  if (scores->shape != shape) Op::refuse("the mask does not fit");
  if (result.scores == nullptr && mode <= 2) result.scores = scores;
  if (heads.sinks != nullptr) {
    Value* sinks = op.view(op.cast(heads.sinks, wide), {1, count, 1, 1});
    scores = concatenated(op, {scores, op.expand(sinks, {shape[0], count, shape[2], 1})}, 3);
  }
  Value* weights = op.emit_like("aten.softmax.int", {scores}, Json{{"dim", 3}});
  if (heads.sinks != nullptr) weights = op.slice(weights, 3, 0, shape[3]);
  if (mode == 3) result.scores = weights;
  result.scores = op.cast(result.scores, dtype);
  Value* y = op.emit("aten.matmul.default", {weights, v}, Json::object(), wide,
                     {shape[0], count, shape[2], v->shape[3]});
  result.y = op.cast(y, dtype);
  return result;
}

// A past, and what is new, along the axis of keys.
Value* with_past(Op& op, Value* past, Value* x) {
  return past == nullptr ? x : concatenated(op, {past, x}, 2);
}

// Scores are at least as precise as the operands, and float32 for shorter ones.
void check_softmax_precision(Op& op, DType dtype) {
  const std::int64_t stated = op.integer("softmax_precision", onnx_dtype_number(dtype));
  const auto wanted = onnx_dtype(stated);
  if (!wanted || !is_floating_point(*wanted) ||
      (*wanted == DType::kFloat64 && dtype != DType::kFloat64)) {
    Op::refuse("softmax_precision " + onnx_dtype_text(stated) + " of operands of type " +
               std::string(dtype_name(dtype)));
  }
}

std::int64_t window_size(Op& op, const char* name) {
  const std::int64_t size = op.integer(name, -1);
  if (size < -1) Op::refuse("'" + std::string(name) + "' is " + std::to_string(size));
  return size;
}

}  // namespace

Value* rows_at(Op& op, Value* table, Value* positions) {
  Shape shape = positions->shape;
  shape.push_back(table->shape[1]);
  return op.emit("aten.embedding.default", {table, op.cast(positions, DType::kInt64)},
                 Json::object(), table->dtype, shape);
}

Value* split_heads(Op& op, Value* x, std::int64_t heads) {
  if (x->rank() != 3 || heads < 1 || x->shape[2] % heads != 0) {
    Op::refuse("shape " + shape_text(x->shape) + " has no " + std::to_string(heads) + " heads");
  }
  Value* split = op.view(x, {x->shape[0], x->shape[1], heads, x->shape[2] / heads});
  return op.permute(split, {0, 2, 1, 3});
}

Value* merge_heads(Op& op, Value* x) {
  const Shape shape = x->shape;
  return op.view(op.permute(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Attended attend(Op& op, Heads heads, std::int64_t mode) {
  check_heads(heads);
  const bool is_grouped = heads.q->shape[1] != heads.k->shape[1];
  const bool is_plain = heads.softcap == 0 && heads.sinks == nullptr && mode < 0;
  const bool is_square = heads.is_causal && heads.mask == nullptr && heads.valid == nullptr &&
                         heads.offset == 0 && heads.left < 0;
  Value* mask = is_plain && is_square ? nullptr : whole_mask(op, heads);
  if (!is_plain) return attend_in_steps(op, heads, mask, mode);
  std::vector<Value*> operands{heads.q, heads.k, heads.v};
  if (mask != nullptr) {
    operands.push_back(mask->dtype == DType::kBool ? mask : op.cast(mask, heads.q->dtype));
  }
  Json attrs = Json::object();
  if (is_square) attrs["is_causal"] = true;
  if (std::abs(heads.scale * std::sqrt(static_cast<double>(heads.q->shape[3])) - 1) > 1e-6) {
    attrs["scale"] = heads.scale;
  }
  if (is_grouped) {
    operands[1] = repeated_heads(op, heads.k, heads.q->shape[1]);
    operands[2] = repeated_heads(op, heads.v, heads.q->shape[1]);
  }
  Shape shape = heads.q->shape;
  shape[3] = heads.v->shape[3];
  return {op.emit("aten.scaled_dot_product_attention.default", operands, std::move(attrs),
                  heads.q->dtype, shape),
          nullptr};
}

void import_attention(Op& op) {
  Heads heads{op.in(0), op.in(1), op.in(2), op.maybe_in(3)};
  const bool is_flat = heads.q->rank() == 3;
  if (is_flat) {
    const std::int64_t kv = op.integer("kv_num_heads", 0);
    heads.q = split_heads(op, heads.q, op.integer("q_num_heads", 0));
    heads.k = split_heads(op, heads.k, kv);
    heads.v = split_heads(op, heads.v, kv);
  }
  if (heads.q->rank() != 4 || heads.k->rank() != 4 || heads.v->rank() != 4) {
    Op::refuse("queries, keys and values are of rank 3 or 4");
  }
  if (op.has_input(4)) heads.offset = op.in(4)->rank() == 4 ? op.in(4)->shape[2] : 0;
  heads.k = with_past(op, op.maybe_in(4), heads.k);
  heads.v = with_past(op, op.maybe_in(5), heads.v);
  heads.valid = op.opset() >= 24 ? op.maybe_in(6) : nullptr;
  if (heads.valid != nullptr && heads.valid->shape != Shape{heads.q->shape[0]}) {
    Op::refuse("nonpad_kv_seqlen does not fit the batch");
  }
  heads.is_causal = op.integer("is_causal", 0) != 0;
  heads.is_offset_by_valid = heads.valid != nullptr && !op.has_input(4);
  heads.left = window_size(op, "left_window_size");
  heads.right = window_size(op, "right_window_size");
  check_softmax_precision(op, heads.q->dtype);
  heads.softcap = op.real("softcap", 0);
  heads.scale = op.real("scale", 0);
  if (op.attribute("scale") == nullptr) {
    heads.scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(heads.q->shape[3], 1)));
  }
  const Attended result =
      attend(op, heads, op.wants(3) ? op.integer("qk_matmul_output_mode", 0) : -1);
  op.set(0, is_flat ? merge_heads(op, result.y) : result.y);
  op.set(1, heads.k);
  op.set(2, heads.v);
  op.set(3, result.scores);
}

Value* rotated(Op& op, Value* x, Value* cos, Value* sin, bool is_interleaved) {
  const std::int64_t half = cos->shape.back();
  const std::int64_t size = x->shape[3];
  if (cos->rank() != 3 || cos->shape != sin->shape || 2 * half > size ||
      cos->shape[1] != x->shape[1] || (cos->shape[0] != 1 && cos->shape[0] != x->shape[0])) {
    Op::refuse("tables and operand do not fit together");
  }
  const Shape table{cos->shape[0], cos->shape[1], 1, half};
  cos = op.view(cos, table);
  sin = op.view(sin, table);
  Value* turned = op.slice(x, 3, 0, 2 * half);
  Value* a = is_interleaved ? op.slice(turned, 3, 0, 2 * half, 2) : op.slice(turned, 3, 0, half);
  Value* b =
      is_interleaved ? op.slice(turned, 3, 1, 2 * half, 2) : op.slice(turned, 3, half, 2 * half);
  Value* real = op.binary("sub", op.binary("mul", a, cos), op.binary("mul", b, sin));
  Value* imaginary = op.binary("add", op.binary("mul", a, sin), op.binary("mul", b, cos));
  Shape shape = real->shape;
  Value* both_parts = nullptr;
  if (is_interleaved) {
    shape.push_back(1);
    both_parts = concatenated(op, {op.view(real, shape), op.view(imaginary, shape)}, 4);
    shape.pop_back();
    shape[3] = 2 * half;
    both_parts = op.view(both_parts, shape);
  } else {
    both_parts = concatenated(op, {real, imaginary}, 3);
  }
  if (2 * half == size) return both_parts;
  return concatenated(op, {both_parts, op.slice(x, 3, 2 * half, size)}, 3);
}

void import_rotary(Op& op) {
  // ONNX Runtime's own op has the positions in front of the tables.
  const bool is_microsoft = op.node().domain == "com.microsoft";
  Value* x = op.in(0);
  Value* cos = op.in(is_microsoft ? 2 : 1);
  Value* sin = op.in(is_microsoft ? 3 : 2);
  Value* positions = op.maybe_in(is_microsoft ? 1 : 3);
  const bool is_flat = x->rank() == 3;
  if (!is_flat && x->rank() != 4) Op::refuse("an operand of rank " + std::to_string(x->rank()));
  Value* wide = nullptr;
  const Shape shape = x->shape;
  const std::int64_t rotary = op.integer("rotary_embedding_dim", 0);
  if (is_flat) {
    std::int64_t heads = op.integer("num_heads", 0);
    if (heads == 0 && rotary == 0)
      heads = shape[2] / std::max<std::int64_t>(2 * cos->shape.back(), 1);
    if (heads < 1 || shape[2] % heads != 0) Op::refuse("'num_heads' does not fit its operand");
    wide = op.view(x, {shape[0], shape[1], heads, shape[2] / heads});
  } else {
    wide = op.permute(x, {0, 2, 1, 3});
  }
  const std::int64_t length = wide->shape[1];
  if (positions != nullptr && cos->rank() != 2) Op::refuse("positions beside tables of rank 3");
  if (positions != nullptr) {
    if (positions->count() == 1 && length != 1) {
      // The position of the first element.
      positions = op.binary("add", op.view(positions, {1, 1}), ascending(op, length, {1, length}));
    }
    cos = rows_at(op, cos, positions);
    sin = rows_at(op, sin, positions);
  }
  if (cos->rank() == 2) cos = op.view(cos, {1, cos->shape[0], cos->shape[1]});
  if (sin->rank() == 2) sin = op.view(sin, {1, sin->shape[0], sin->shape[1]});
  if (cos->rank() == 3 && rotary != 0 && cos->shape[2] * 2 != rotary) {
    Op::refuse("'rotary_embedding_dim' does not fit the tables");
  }
  Value* y = rotated(op, wide, cos, sin, op.integer("interleaved", 0) != 0);
  op.set(0, is_flat ? op.view(y, shape) : op.permute(y, {0, 2, 1, 3}));
}

void import_tensor_scatter(Op& op) {
  Value* cache = op.in(0);
  Value* update = op.in(1);
  const std::int64_t axis = Op::axis_of(op.integer("axis", -2), cache->rank());
  const auto at = static_cast<std::size_t>(axis);
  const std::string mode = op.text("mode", "linear");
  if (mode != "linear" && mode != "circular") Op::refuse("mode '" + mode + "'");
  Shape others = update->shape;
  if (others.size() == cache->shape.size()) others[at] = cache->shape[at];
  if (axis < 1 || others != cache->shape || update->shape[at] > cache->shape[at] ||
      update->dtype != cache->dtype) {
    Op::refuse("cache and update do not fit together");
  }
  const std::int64_t length = update->shape[at];
  if (cache->shape[0] == 1 && mode == "linear") {
    // Of one sequence: rows by their numbers.
    Value* rows = ascending(op, length, {length});
    if (op.has_input(2)) {
      if (op.in(2)->shape != Shape{1}) Op::refuse("write_indices do not fit the batch");
      rows = op.binary("add", rows, op.cast(op.in(2), DType::kInt64));
    }
    return op.set(
        0, op.emit_like("aten.index_copy.default", {cache, rows, update}, Json{{"dim", axis}}));
  }
  Shape place_shape(update->shape.size(), 1);
  place_shape[at] = length;
  Value* places = ascending(op, length, place_shape);
  if (op.has_input(2)) {
    if (op.in(2)->shape != Shape{cache->shape[0]}) Op::refuse("write_indices do not fit the batch");
    Shape first(update->shape.size(), 1);
    first[0] = cache->shape[0];
    places = op.binary("add", places, op.view(op.cast(op.in(2), DType::kInt64), first));
  }
  if (mode == "circular") {
    places = op.emit_like("aten.remainder.Scalar", {places}, Json{{"other", cache->shape[at]}});
  }
  op.set(0, op.emit_like("aten.scatter.src", {cache, op.expand(places, update->shape), update},
                         Json{{"dim", axis}}));
}

}  // namespace npu::onnx
