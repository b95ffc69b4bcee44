// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX Runtime (com.microsoft) that it writes into the models that it has optimised, in
// terms of plain ones.
#include <cmath>

#include "rules/attention.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

Value* layer_norm(Op& op, Value* x, Value* weight, Value* bias, bool is_simplified) {
  const Shape normalized{x->shape.back()};
  if (weight->shape != normalized || (bias != nullptr && bias->shape != normalized)) {
    Op::refuse("weight or bias do not fit the last axis");
  }
  std::vector<Value*> operands{x, weight};
  if (bias != nullptr) operands.push_back(bias);
  const double eps = op.real("epsilon", is_simplified ? from_float(1e-6F) : from_float(1e-12F));
  return op.emit_like(is_simplified ? "aten.rms_norm.default" : "aten.layer_norm.default", operands,
                      Json{{"normalized_shape", normalized}, {"eps", eps}});
}

// The tables of GroupQueryAttention's rotation at the positions [past, past + length).
Value* table_rows(Op& op, Value* table, std::int64_t past, std::int64_t length) {
  if (table->shape[0] < past + length) Op::refuse("a table that is too short");
  Value* rows = op.slice(table, 0, past, past + length);
  return op.view(rows, {1, length, table->shape[1]});
}

// What GroupQueryAttention has of keys and values: how many rows count after the step.
struct CachedRows {
  std::int64_t past = 0;   // rows of the caches
  bool is_shared = false;  // the new rows go into the buffer of the past
  Value* valid = nullptr;  // int64 [1], the rows that count; null: all that the shapes say
};

// The number of rows that a model states of a cache among its inputs or outputs.
const DimProto* stated_rows(const std::vector<ValueProto>& values, std::string_view name) {
  for (const ValueProto& value : values) {
    if (value.name == name && value.dims.size() == 4) return &value.dims[2];
  }
  return nullptr;
}

// Whether past and present are one buffer: both are stated to have the same number of rows.
bool is_shared_buffer(Op& op, const Value* past) {
  if (op.node().outputs.size() < 2) return false;
  const GraphProto& graph = op.importer().model().graph;
  const DimProto* before = stated_rows(graph.inputs, past->name);
  const DimProto* after = stated_rows(graph.outputs, op.node().outputs[1]);
  if (before == nullptr || after == nullptr) return false;
  if (before->value || after->value) return before->value == after->value;
  return !before->symbol.empty() && before->symbol == after->symbol;
}

// seqlens_k, which is one less than the rows that count. What is not known at import is data: of a
// batch of one row, whose past has no free rows or is a buffer that its new rows go into.
CachedRows cached_rows(Op& op, Value* past_k, std::int64_t batch, std::int64_t length) {
  CachedRows rows;
  rows.past = past_k == nullptr ? 0 : past_k->shape[2];
  rows.is_shared = past_k != nullptr && is_shared_buffer(op, past_k);
  Value* last = op.in(5);
  if (op.importer().known(last) == nullptr || rows.is_shared) {
    if (past_k != nullptr && batch != 1) {
      Op::refuse("seqlens_k is data for a batch of " + std::to_string(batch) +
                 "; give the batch with --bind, as 1");
    }
    if (past_k == nullptr || last->count() != 1) {
      op.integers(5, "seqlens_k");
      Op::refuse("seqlens_k does not fit the batch");
    }
    rows.valid = op.scalar("add", op.cast(op.view(last, {1}), DType::kInt64), 1);
    return rows;
  }
  for (const std::int64_t each : op.integers(5, "seqlens_k")) {
    if (each != rows.past + length - 1) {
      Op::refuse("seqlens_k holds " + std::to_string(each) + ", but past and new keys are " +
                 std::to_string(rows.past + length) + "; caches with free room are not imported");
    }
  }
  // What the shapes say already.
  if (const Tensor* total = op.importer().known(op.maybe_in(6))) {
    if (total->element_count() != 1 ||
        total->value_as_double(0) != static_cast<double>(rows.past + length)) {
      Op::refuse("total_sequence_length is not that of past and new keys, " +
                 std::to_string(rows.past + length));
    }
  }
  return rows;
}

// The positions of the new rows, int64 [length].
Value* positions_of(Op& op, const CachedRows& rows, std::int64_t length) {
  Value* places = ascending(op, length, {length});
  if (rows.valid == nullptr) return op.scalar("add", places, static_cast<double>(rows.past));
  return op.binary("add", places, op.scalar("sub", rows.valid, static_cast<double>(length)));
}

// Numbers of `bits` bits, packed from the low ends of bytes on along the last axis, as floats.
Value* unpacked(Op& op, Value* packed, std::int64_t bits) {
  if (packed->dtype != DType::kUInt8) Op::refuse("packed numbers that are no bytes");
  if (bits == 8) return op.cast(packed, DType::kFloat32);
  const std::int64_t each = 8 / bits;
  Shape shape = packed->shape;
  shape.push_back(1);
  Value* wide = op.view(op.cast(packed, DType::kInt32), shape);
  std::vector<Value*> parts;
  for (std::int64_t i = 0; i < each; ++i) {
    Value* part = op.emit_like("aten.floor_divide.Scalar", {wide},
                               Json{{"other", std::int64_t{1} << (i * bits)}});
    parts.push_back(
        op.emit_like("aten.remainder.Scalar", {part}, Json{{"other", std::int64_t{1} << bits}}));
  }
  Value* all = concatenated(op, parts, static_cast<std::int64_t>(shape.size()) - 1);
  shape = packed->shape;
  shape.back() *= each;
  return op.cast(op.view(all, shape), DType::kFloat32);
}

}  // namespace

void import_skip_norm(Op& op) {
  const bool is_simplified = op.node().op_type == "SkipSimplifiedLayerNormalization";
  Value* bias = op.maybe_in(is_simplified ? 3 : 4);
  if (op.wants(1) || op.wants(2)) Op::refuse("asks for the statistics of training");
  Value* sum = op.binary("add", op.in(0), op.in(1));
  if (bias != nullptr) sum = op.binary("add", sum, bias);
  op.set(0, layer_norm(op, sum, op.in(2), is_simplified ? nullptr : op.maybe_in(3), is_simplified));
  op.set(3, sum);
}

void import_simplified_norm(Op& op) {
  if (op.wants(1)) Op::refuse("asks for the statistics of training");
  import_rms_norm(op);
}

void import_biased_gelu(Op& op) {
  const std::string_view name = op.node().op_type;
  Value* x = op.in(0);
  if (op.has_input(1)) x = op.binary("add", x, op.in(1));
  if (name == "QuickGelu") {
    Value* gate = op.emit_like("aten.sigmoid.default",
                               {op.scalar("mul", x, op.real("alpha", from_float(1.702F)))});
    return op.set(0, op.binary("mul", x, gate));
  }
  Json attrs = Json::object();
  if (name == "FastGelu") attrs["approximate"] = "tanh";
  op.set(0, op.emit_like("aten.gelu.default", {x}, std::move(attrs)));
}

void import_fused_conv(Op& op) {
  Value* y = convolve(op, op.in(0), op.in(1), op.maybe_in(2));
  if (op.has_input(3)) y = op.binary("add", y, op.in(3));
  const std::string activation = op.text("activation", "");
  if (activation.empty()) return op.set(0, y);
  const std::vector<float> numbers = op.reals("activation_params");
  const auto number = [&](std::size_t i) {
    return i >= numbers.size() ? std::optional<double>() : from_float(numbers[i]);
  };
  op.set(0, activated(op, activation, y, number(0), number(1)));
}

void import_fused_mat_mul(Op& op) {
  Value* a = op.in(0);
  Value* b = op.in(1);
  if (op.integer("transBatchA", 0) != 0 || op.integer("transBatchB", 0) != 0) {
    Op::refuse("transposed batches");
  }
  const auto turned = [&](Value* x, const char* name) {
    if (op.integer(name, 0) == 0 || x->rank() < 2) return x;
    Ints order;
    for (std::int64_t i = 0; i < x->rank(); ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return op.permute(x, order);
  };
  a = turned(a, "transA");
  b = turned(b, "transB");
  const double alpha = op.real("alpha", 1);
  Value* y = op.emit("aten.matmul.default", {a, b}, Json::object(), a->dtype,
                     matrix_product_shape(a->shape, b->shape));
  op.set(0, alpha == 1 ? y : op.scalar("mul", y, alpha));
}

constexpr std::int64_t kMostHeads = 1 << 20;

/// -1 without.
std::int64_t local_window(Op& op) {
  const std::int64_t window = op.integer("local_window_size", -1);
  if (window < -1 || window == 0) Op::refuse("'local_window_size' is " + std::to_string(window));
  return window;
}

/// Null without. A smooth softmax adds 1 to the sum of exponentials: that of a score of 0.
Value* head_sinks(Op& op, std::int64_t heads) {
  const bool is_smooth = op.integer("smooth_softmax", 0) > 0;
  Value* sinks = op.maybe_in(11);
  if (sinks == nullptr && is_smooth) sinks = op.constant_value(Tensor(DType::kFloat32, {heads}));
  if (sinks != nullptr && sinks->shape != Shape{heads}) {
    Op::refuse("head_sink of shape " + shape_text(sinks->shape) + " is not one number a head");
  }
  return sinks;
}

/// Queries and keys turned by the tables of angles at their positions.
void turn_heads(Op& op, const CachedRows& rows, std::int64_t batch, std::int64_t length,
                Heads& form) {
  Value* positions = op.maybe_in(9);
  if (positions != nullptr && positions->shape != Shape{batch, length}) {
    Op::refuse("position_ids of shape " + shape_text(positions->shape) + " do not fit the queries");
  }
  const auto table = [&](std::size_t index) {
    Value* whole = op.in(index);
    if (whole->rank() != 2) Op::refuse("a table of rank " + std::to_string(whole->rank()));
    if (positions != nullptr) return rows_at(op, whole, positions);
    const bool is_known = rows.valid == nullptr && !op.importer().settings().notes_computed;
    if (is_known) return table_rows(op, whole, rows.past, length);
    return rows_at(op, whole, op.view(positions_of(op, rows, length), {1, length}));
  };
  Value* cos = table(7);
  Value* sin = table(8);
  const bool is_interleaved = op.integer("rotary_interleaved", 0) != 0;
  const auto turn = [&](Value* x) {
    Value* y = rotated(op, op.permute(x, {0, 2, 1, 3}), cos, sin, is_interleaved);
    return op.permute(y, {0, 2, 1, 3});
  };
  form.q = turn(form.q);
  form.k = turn(form.k);
}

void import_group_query_attention(Op& op) {
  const std::int64_t heads = op.integer("num_heads", 0);
  const std::int64_t kv = op.integer("kv_num_heads", 0);
  Value* q = op.in(0);
  Value* k = op.maybe_in(1);
  Value* v = op.maybe_in(2);
  if (q->rank() != 3 || heads < 1 || kv < 1 || heads > kMostHeads || kv > kMostHeads) {
    Op::refuse("'num_heads' do not fit");
  }
  if (k == nullptr) {
    // All three in one.
    if (q->shape[2] % (heads + 2 * kv) != 0) Op::refuse("'num_heads' do not fit");
    const std::int64_t size = q->shape[2] / (heads + 2 * kv);
    k = op.slice(q, 2, heads * size, (heads + kv) * size);
    v = op.slice(q, 2, (heads + kv) * size, q->shape[2]);
    q = op.slice(q, 2, 0, heads * size);
  }
  const std::int64_t window = local_window(op);
  Value* past_k = op.maybe_in(3);
  Value* past_v = op.maybe_in(4);
  if ((past_k == nullptr) != (past_v == nullptr) || (past_k != nullptr && past_k->rank() != 4)) {
    Op::refuse("past keys and values do not fit together");
  }
  const std::int64_t length = q->shape[1];
  const CachedRows rows = cached_rows(op, past_k, q->shape[0], length);
  op.maybe_in(6);  // total_sequence_length, which the shapes or seqlens_k say
  Heads form{split_heads(op, q, heads), split_heads(op, k, kv), split_heads(op, v, kv)};
  if (op.integer("do_rotary", 0) != 0) turn_heads(op, rows, q->shape[0], length, form);
  if (rows.is_shared) {
    Value* places = positions_of(op, rows, length);
    const auto written = [&](Value* past, Value* fresh) {
      if (past->shape[1] != fresh->shape[1] || past->shape[3] != fresh->shape[3]) {
        Op::refuse("past keys and values do not fit together");
      }
      return op.emit_like("aten.index_copy.default", {past, places, fresh}, Json{{"dim", 2}});
    };
    form.k = written(past_k, form.k);
    form.v = written(past_v, form.v);
  } else if (rows.past > 0) {
    form.k = concatenated(op, {past_k, form.k}, 2);
    form.v = concatenated(op, {past_v, form.v}, 2);
  }
  form.mask = op.maybe_in(10);
  form.is_causal = true;
  form.offset = rows.valid == nullptr ? rows.past : 0;
  form.valid = rows.valid;
  form.is_offset_by_valid = rows.valid != nullptr;
  if (window > 0) form.left = window - 1;  // its own place is one of the window
  form.softcap = op.real("softcap", 0);
  form.sinks = head_sinks(op, heads);
  form.scale = op.real("scale", 0);
  if (form.scale == 0) form.scale = 1 / std::sqrt(static_cast<double>(form.q->shape[3]));
  op.set(0, merge_heads(op, attend(op, form, -1).y));
  op.set(1, form.k);
  op.set(2, form.v);
}

void import_mat_mul_n_bits(Op& op) {
  Value* x = op.in(0);
  Value* packed = op.in(1);
  Value* scales = op.in(2);
  const std::int64_t bits = op.integer("bits", 4);
  const std::int64_t block = op.integer("block_size", 0);
  const std::int64_t rows = op.integer("N", 0);
  const std::int64_t depth = op.integer("K", 0);
  if (bits != 2 && bits != 4 && bits != 8) Op::refuse(std::to_string(bits) + " bits");
  if (op.has_input(4)) Op::refuse("groups in another order (g_idx)");
  if (rows < 1 || depth < 1 || block < 16 || block > 1 << 20 || x->rank() < 1 ||
      x->shape.back() != depth || x->dtype != DType::kFloat32) {
    Op::refuse("'N', 'K' or 'block_size' do not fit");
  }
  const std::int64_t blocks = (depth + block - 1) / block;
  if (packed->shape != Shape{rows, blocks, block * bits / 8} || scales->count() != rows * blocks) {
    Op::refuse("weights and scales do not fit 'N' and 'K'");
  }
  Value* weights = unpacked(op, packed, bits);
  Value* zero = op.maybe_in(3);
  if (zero == nullptr) {
    weights = op.scalar("sub", weights, static_cast<double>(std::int64_t{1} << (bits - 1)));
  } else {
    if (zero->dtype == DType::kUInt8) {
      // Rows end at whole bytes.
      const std::int64_t bytes = (blocks * bits + 7) / 8;
      zero = unpacked(op, op.view(zero, {rows, bytes}), bits);
      zero = op.slice(zero, 1, 0, blocks);
    }
    weights = op.binary("sub", weights, op.view(op.cast(zero, DType::kFloat32), {rows, blocks, 1}));
  }
  weights = op.binary("mul", weights, op.view(op.cast(scales, DType::kFloat32), {rows, blocks, 1}));
  weights = op.slice(op.view(weights, {rows, blocks * block}), 1, 0, depth);
  std::vector<Value*> operands{x, weights};
  if (op.has_input(5)) operands.push_back(op.in(5));
  Shape shape = x->shape;
  shape.back() = rows;
  op.set(0, op.emit("aten.linear.default", operands, Json::object(), x->dtype, shape));
}

}  // namespace npu::onnx
