// SPDX-License-Identifier: Apache-2.0
// Scaled dot product attention: a work group, or on a CPU a work item, has one row of queries and
// goes over the keys in pieces with a running maximum (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018), so that no matrix of scores is in memory. Where the mask is the
// length of a cache, it is not read, but the positions that it follows from: a row begins and ends
// with the keys that it sees. So does an attention over a cache that is written out in several
// nodes, whose scores may be capped, and which may have a bias and sinks. O(queries * keys that
// they see * (width of keys + width of values)).
#include <algorithm>
#include <cmath>

#include "kernels/group_kernel.hpp"

namespace npu::opencl {
namespace {

struct Attention {
  TensorId query, key, value;
  std::optional<TensorId> mask;  ///< or a bias
  Shape batch;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t width = 0;
  std::int64_t value_width = 0;
  std::int64_t shared_heads = 1;  ///< query heads for each head of keys and values
  bool is_causal = false;
  double scale = 1;
  double cap = 0;                      ///< what the tanh of a score is multiplied with; 0: no cap
  std::optional<TensorId> sinks;       ///< scores without a value, by plane
  bool is_key_exchanged = false;       ///< keys are columns
  const BoundNode* lengths = nullptr;  ///< of a cache: npu.length_mask
};

Attention read_attention(const Emitter& emitter, const BoundNode& node) {
  Attention a;
  a.query = tensor_of(emitter, node, "query");
  a.key = tensor_of(emitter, node, "key");
  a.value = tensor_of(emitter, node, "value");
  a.mask = node.tensor("attn_mask");
  a.is_causal = node.boolean("is_causal");
  const Shape& q = emitter.shape(a.query);
  const Shape& k = emitter.shape(a.key);
  const Shape& v = emitter.shape(a.value);
  const std::size_t rank = q.size();
  const DType dtype = emitter.dtype(a.query);
  const bool shares = node.find("enable_gqa") != nullptr && node.boolean("enable_gqa");
  bool fits = rank >= 2 && k.size() == rank && v.size() == rank && is_floating_point(dtype) &&
              emitter.dtype(a.key) == dtype && emitter.dtype(a.value) == dtype &&
              node.number("dropout_p") == 0 && k[rank - 1] == q[rank - 1] &&
              k[rank - 2] == v[rank - 2];
  for (std::size_t d = 0; fits && d + 2 < rank; ++d) {
    const bool is_head = shares && d + 3 == rank && k[d] > 0 && q[d] % k[d] == 0;
    fits = k[d] == v[d] && (k[d] == q[d] || is_head);
  }
  if (!fits) emitter.refuse(node.node(), "its operands are not supported");
  a.batch.assign(q.begin(), q.end() - 2);
  if (rank >= 3 && k[rank - 3] > 0) a.shared_heads = q[rank - 3] / k[rank - 3];
  a.queries = q[rank - 2];
  a.keys = k[rank - 2];
  a.width = q[rank - 1];
  a.value_width = v[rank - 1];
  a.scale = node.find("scale") != nullptr && !node.is_none("scale")
                ? node.number("scale")
                : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(a.width, 1)));
  Shape expected = q;
  expected.back() = a.keys;
  if (const auto mask = length_mask_of(emitter.model(), node)) {
    a.lengths = &emitter.model().bound(*mask);
    a.mask.reset();
  }
  if (a.mask) emitter.expect_broadcast(node.node(), *a.mask, expected);
  expected.back() = a.value_width;
  emitter.expect_shape(node.node(), 0, expected);
  emitter.expect_dtype(node.node(), 0, dtype);
  return a;
}

Attention read_form(const Emitter& emitter, const CachedAttentionForm& form) {
  Attention a;
  a.query = form.query;
  a.key = form.key;
  a.value = form.value;
  const Shape& q = emitter.shape(a.query);
  a.batch.assign(q.begin(), q.end() - 2);
  a.queries = q[q.size() - 2];
  a.keys = emitter.shape(a.key).back();
  a.width = q.back();
  a.value_width = emitter.shape(a.value).back();
  a.is_key_exchanged = true;
  a.scale = form.scale;
  a.cap = form.cap;
  if (form.sinks.valid()) a.sinks = form.sinks;
  if (form.bias.valid()) a.mask = form.bias;
  a.lengths = &emitter.model().bound(form.lengths);
  return a;
}

std::string number(std::int64_t value) { return std::to_string(value); }

class AttentionWriter {
 public:
  AttentionWriter(Emitter& emitter, const Attention& a)
      : emitter_(emitter), a_(a), dtype_(emitter.dtype(a.query)), type_(value_type(dtype_)) {
    const Machine& machine = emitter.model().machine();
    lanes_ = machine.is_cpu ? 1 : 64;
    piece_ = std::min<std::int64_t>(std::max<std::int64_t>(a.keys, 1), 1024);
    each_ = (a.value_width + lanes_ - 1) / lanes_;
  }

  void write_sums() {
    const std::string& index = emitter_.index_type();
    Shape rows = a_.batch;
    rows.push_back(a_.queries);
    emitter_.line("const " + index + " r = get_group_id(0);");
    emitter_.line("const int lane = get_local_id(0);");
    row_ = emitter_.define_index(index_of_place("r", rows));
    key_row_ = row_;
    if (a_.shared_heads > 1) {
      std::string& head = key_row_[key_row_.size() - 2];
      head = emitter_.define(index, divided(head, a_.shared_heads));
    }
    if (lanes_ > 1) {
      emitter_.local_array(type_, "scores", {piece_});
    } else {
      emitter_.line(type_ + " scores[" + number(piece_) + "];");
    }
    emitter_.line(type_ + " sums[" + number(each_) + "];");
    emitter_.line("for (int j = 0; j < " + number(each_) + "; ++j) sums[j] = 0;");
    if (a_.sinks) {
      Index at = row_;
      at.emplace_back("0");
      emitter_.line(type_ + " most = " + emitter_.broadcast_element(*a_.sinks, at, dtype_) +
                    ", total = 1;");
    } else {
      emitter_.line(type_ + " most = " + lowest(dtype_) + ", total = 0;");
    }
    find_keys();
    emitter_.open("for (" + index + " s0 = " + first_ + "; s0 < " + behind_ +
                  "; s0 += " + number(piece_) + ")");
    emitter_.line("const int here = min((int)(" + behind_ + " - s0), " + number(piece_) + ");");
    write_scores();
    write_weights();
    add_values();
    emitter_.close();
  }

  void write_results(const std::function<void(const Index&, const std::string&)>& store) {
    emitter_.open("for (int j = 0; j < " + number(each_) + "; ++j)");
    const std::string d = emitter_.define("int", "lane + j * " + number(lanes_));
    emitter_.open("if (" + d + " < " + number(a_.value_width) + ")");
    Index place = row_;
    place.push_back(d);
    store(place, emitter_.define(dtype_, "total == 0 ? 0 : sums[j] / total"));
    emitter_.close();
    emitter_.close();
  }

  GeneratedKernel finish() {
    std::uint64_t rows = static_cast<std::uint64_t>(a_.queries);
    for (const std::int64_t each : a_.batch) rows *= static_cast<std::uint64_t>(each);
    return finished(emitter_, {rows, 1, 1}, {static_cast<std::uint64_t>(lanes_), 1, 1});
  }

 private:
  /// The keys that the row sees, from first_ to those in front of behind_.
  void find_keys() {
    first_ = "0";
    behind_ = number(a_.keys);
    if (a_.lengths == nullptr) return;
    const std::string& index = emitter_.index_type();
    const auto within = [&](const std::string& place) {
      return "clamp(" + place + ", 0L, " + number(a_.keys) + "L)";
    };
    std::string behind = behind_ + "L";
    if (const auto valid = a_.lengths->tensor("valid")) {
      behind = within(emitter_.element(*valid, {}));
    }
    if (const auto positions = a_.lengths->tensor("positions")) {
      // Far positions are moved to where no key is seen, or all are, so that nothing overflows.
      const std::int64_t window = a_.lengths->integer("window");
      const std::int64_t reach = std::clamp<std::int64_t>(window, 0, std::int64_t{1} << 46);
      const std::string position =
          emitter_.define("long", "clamp(" + emitter_.element(*positions, {row_.back()}) +
                                      ", -1L, " + number(a_.keys + reach) + "L)");
      if (a_.lengths->boolean("causal")) behind = "min(" + behind + ", " + position + " + 1)";
      if (window > 0) {
        first_ = emitter_.define(index,
                                 "(" + index + ")" + within(position + " - " + number(reach - 1)));
      }
    }
    behind_ = emitter_.define(index, "(" + index + ")(" + behind + ")");
  }

  void barrier() {
    if (lanes_ > 1) emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
  }
  Index key_index(const std::string& place, const std::string& column) const {
    Index index(key_row_.begin(), key_row_.end() - 1);
    index.push_back(place);
    index.push_back(column);
    return index;
  }
  std::string key_element(const std::string& place, const std::string& column) const {
    Index index = key_index(place, column);
    if (a_.is_key_exchanged) std::swap(index.end()[-1], index.end()[-2]);
    return emitter_.element(a_.key, index);
  }

  void write_scores() {
    emitter_.open("for (int s = lane; s < here; s += " + number(lanes_) + ")");
    const std::string place = emitter_.define(emitter_.index_type(), "s0 + s");
    emitter_.line(type_ + " score = 0;");
    emitter_.open("for (int c = 0; c < " + number(a_.width) + "; ++c)");
    Index query = row_;
    query.emplace_back("c");
    emitter_.line("score += " + emitter_.element(a_.query, query) + " * " +
                  key_element(place, "c") + ";");
    emitter_.close();
    emitter_.line("score *= " + literal(a_.scale, dtype_) + ";");
    if (a_.cap != 0) emitter_.line("score = tanh(score) * " + literal(a_.cap, dtype_) + ";");
    if (a_.mask) {
      Index at = row_;
      at.push_back(place);
      const bool is_truth = emitter_.dtype(*a_.mask) == DType::kBool;
      const std::string mask =
          emitter_.broadcast_element(*a_.mask, at, is_truth ? DType::kBool : dtype_);
      emitter_.line(is_truth ? "if (!" + mask + ") score = " + lowest(dtype_) + ";"
                             : "score += " + mask + ";");
    }
    if (a_.is_causal) {
      emitter_.line("if (" + place + " > " + row_.back() + ") score = " + lowest(dtype_) + ";");
    }
    emitter_.line("scores[s] = score;");
    emitter_.close();
    barrier();
  }

  void write_weights() {
    emitter_.line(type_ + " now = most;");
    emitter_.line(
        "for (int s = 0; s < here; ++s) now = scores[s] > now || scores[s] != scores[s] ? "
        "scores[s] : now;");
    emitter_.line("const " + type_ + " base = now == " + lowest(dtype_) + " ? 0 : now;");
    emitter_.line("const " + type_ + " shrink = exp(most - base);");
    emitter_.line("most = now;");
    barrier();
    emitter_.line("for (int s = lane; s < here; s += " + number(lanes_) +
                  ") scores[s] = exp(scores[s] - base);");
    barrier();
    emitter_.line("total *= shrink;");
    emitter_.line("for (int s = 0; s < here; ++s) total += scores[s];");
  }

  void add_values() {
    emitter_.line("for (int j = 0; j < " + number(each_) + "; ++j) sums[j] *= shrink;");
    emitter_.open("for (int s = 0; s < here; ++s)");
    emitter_.line("const " + type_ + " weight = scores[s];");
    emitter_.open("for (int j = 0; j < " + number(each_) + "; ++j)");
    const std::string d = emitter_.define("int", "lane + j * " + number(lanes_));
    emitter_.open("if (" + d + " < " + number(a_.value_width) + ")");
    emitter_.line("sums[j] += weight * " + emitter_.element(a_.value, key_index("(s0 + s)", d)) +
                  ";");
    emitter_.close();
    emitter_.close();
    emitter_.close();
    barrier();
  }

  Emitter& emitter_;
  const Attention& a_;
  DType dtype_;
  std::string type_;
  std::int64_t lanes_ = 1;
  std::int64_t piece_ = 1;  ///< keys at once
  std::int64_t each_ = 1;   ///< columns of an item
  Index row_;
  Index key_row_;
  std::string first_;   ///< of the keys
  std::string behind_;  ///< the last one
};

}  // namespace

std::optional<NodeId> length_mask_of(const Model& model, const BoundNode& attention) {
  if (!attention.node().op_type.starts_with("aten.scaled_dot_product_attention"))
    return std::nullopt;
  const auto mask = attention.tensor("attn_mask");
  if (!mask) return std::nullopt;
  const NodeId producer = model.graph().tensor(*mask).producer;
  if (!producer.valid() || model.node(producer).op_type != "npu.length_mask") return std::nullopt;
  const BoundNode& lengths = model.bound(producer);
  const Shape& queries = model.shape(attention.node().inputs[0]);
  const Shape& keys = model.shape(attention.node().inputs[1]);
  const auto positions = lengths.tensor("positions");
  const bool fits = queries.size() >= 2 && keys.size() >= 2 &&
                    lengths.integer("keys") == keys[keys.size() - 2] &&
                    (!positions || model.count(*positions) == queries[queries.size() - 2]);
  return fits ? std::optional(producer) : std::nullopt;
}

std::optional<CachedAttentionForm> cached_attention_of(const Model& model,
                                                       const std::vector<NodeId>& nodes) {
  if (nodes.size() < 3 || model.node(nodes.back()).outputs.size() != 1) return std::nullopt;
  const auto form = cached_attention_form(model.graph(), nodes.back());
  if (!form) return std::nullopt;
  std::vector<NodeId> computed;
  std::ranges::copy_if(form->nodes, std::back_inserter(computed),
                       [&](NodeId id) { return !model.is_view(id); });
  const auto positions = model.bound(form->lengths).tensor("positions");
  const Shape& queries = model.shape(form->query);
  const bool has_rows = !positions || model.count(*positions) == queries[queries.size() - 2];
  Shape scores = queries;
  scores.back() = model.shape(form->key).back();
  const bool has_bias_in_place = !form->bias.valid() || form->bias_space == scores;
  return has_rows && has_bias_in_place && computed == nodes ? form : std::nullopt;
}

GeneratedKernel written_attention_kernel(const KernelTask& task, const CachedAttentionForm& form) {
  Emitter emitter(task.model, {task.nodes.begin(), task.nodes.end()});
  const Attention attention = read_form(emitter, form);
  AttentionWriter writer(emitter, attention);
  return finished_kernel(writer, emitter, task, task.model.node(form.nodes.back()).outputs[0]);
}

GeneratedKernel attention_kernel(const KernelTask& task, NodeId heavy) {
  Emitter emitter(task.model, {task.nodes.begin(), task.nodes.end()});
  const Attention attention = read_attention(emitter, task.model.bound(heavy));
  const TensorId result = task.model.node(heavy).outputs[0];
  AttentionWriter writer(emitter, attention);
  return finished_kernel(writer, emitter, task, result);
}

}  // namespace npu::opencl
