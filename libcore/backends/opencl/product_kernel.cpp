// SPDX-License-Identifier: Apache-2.0
// Sums of products in tiles: the work group brings a tile of both operands into local memory, each
// work item keeps its part of the result in registers, and the ops behind the product are applied
// where a sum is complete. On a CPU a work group is one item, whose tile its vectors compute.
// 2 * batch * m * n * k operations; each operand is read n / tile or m / tile times.
#include "product_kernel.hpp"

#include <algorithm>

#include "group_kernel.hpp"

namespace npu::opencl {
namespace {

struct Tiling {
  std::int64_t m;  ///< of the result
  std::int64_t n;
  std::int64_t k;
  std::int64_t items_m;  ///< work items along m
  std::int64_t items_n;
};

Tiling choose_tiling(const Machine& machine, const ProductSpec& spec) {
  if (machine.is_cpu) {
    const std::int64_t m = spec.m >= 8 ? 8 : std::max<std::int64_t>(spec.m, 1);
    return {m, 32, 64, 1, 1};
  }
  const bool is_large = spec.m >= 64 && spec.n >= 64 && machine.max_group >= 256;
  return is_large ? Tiling{64, 64, 16, 16, 16} : Tiling{16, 32, 16, 8, 8};
}

std::string text_of(std::int64_t number) { return std::to_string(number); }

class ProductWriter {
 public:
  ProductWriter(Emitter& emitter, const ProductSpec& spec)
      : emitter_(emitter),
        spec_(spec),
        tile_(choose_tiling(emitter.model().machine(), spec)),
        type_(value_type(spec.dtype)),
        is_single_(tile_.items_m * tile_.items_n == 1) {}

  /// Up to where the sums of this item stand in acc[i][j].
  void write_sums() {
    const std::string& index = emitter_.index_type();
    const std::string storage = is_single_ ? "" : "__local ";
    emitter_.line("const " + index + " n0 = (" + index + ")get_group_id(0) * " + text_of(tile_.n) +
                  ";");
    emitter_.line("const " + index + " m0 = (" + index + ")get_group_id(1) * " + text_of(tile_.m) +
                  ";");
    emitter_.line("const " + index + " b = get_group_id(2);");
    emitter_.line("const int ln = get_local_id(0);");
    emitter_.line("const int lm = get_local_id(1);");
    emitter_.line(storage + type_ + " left[" + text_of(tile_.k) + "][" + text_of(tile_.m) + "];");
    emitter_.line(storage + type_ + " right[" + text_of(tile_.k) + "][" + text_of(tile_.n) + "];");
    emitter_.line(type_ + " acc[" + text_of(rows()) + "][" + text_of(columns()) + "];");
    loop_over_sums([&] { emitter_.line("acc[i][j] = 0;"); });
    emitter_.open("for (" + index + " k0 = 0; k0 < " + text_of(spec_.k) +
                  "; k0 += " + text_of(tile_.k) + ")");
    load_tile("left", tile_.m, spec_.m, "m0", !spec_.left_is_transposed, true);
    load_tile("right", tile_.n, spec_.n, "n0", spec_.right_is_transposed, false);
    barrier();
    emitter_.open("for (int kk = 0; kk < " + text_of(tile_.k) + "; ++kk)");
    loop_over_sums([&] {
      emitter_.line("acc[i][j] += left[kk][" + row() + "] * right[kk][" + column() + "];");
    });
    emitter_.close();
    barrier();
    emitter_.close();
  }

  /// Calls `store` with each place of the result and its sum.
  void write_results(const std::function<void(const Index&, const std::string&)>& store) {
    loop_over_sums([&] {
      const std::string m = emitter_.define(emitter_.index_type(), "m0 + " + row());
      const std::string n = emitter_.define(emitter_.index_type(), "n0 + " + column());
      emitter_.open("if (" + m + " < " + text_of(spec_.m) + " && " + n + " < " + text_of(spec_.n) +
                    ")");
      const Index place = emitter_.define_index(spec_.place("b", m, n));
      const std::string sum =
          spec_.finish != nullptr ? spec_.finish("acc[i][j]", place) : "acc[i][j]";
      store(place, emitter_.define(spec_.dtype, sum));
      emitter_.close();
    });
  }

  GeneratedKernel finish() {
    const auto tiles = [](std::int64_t extent, std::int64_t tile) {
      return static_cast<std::uint64_t>((extent + tile - 1) / tile);
    };
    return finished(
        emitter_,
        {tiles(spec_.n, tile_.n), tiles(spec_.m, tile_.m), static_cast<std::uint64_t>(spec_.batch)},
        {static_cast<std::uint64_t>(tile_.items_n), static_cast<std::uint64_t>(tile_.items_m), 1});
  }

 private:
  std::int64_t rows() const { return tile_.m / tile_.items_m; }
  std::int64_t columns() const { return tile_.n / tile_.items_n; }
  /// In the tile; neighbouring items have neighbouring columns.
  std::string row() const { return is_single_ ? "i" : "lm + i * " + text_of(tile_.items_m); }
  std::string column() const { return is_single_ ? "j" : "ln + j * " + text_of(tile_.items_n); }

  template <typename Body>
  void loop_over_sums(Body&& body) {
    emitter_.open("for (int i = 0; i < " + text_of(rows()) + "; ++i)");
    emitter_.open("for (int j = 0; j < " + text_of(columns()) + "; ++j)");
    body();
    emitter_.close();
    emitter_.close();
  }

  void barrier() {
    if (!is_single_) emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
  }

  /// Brings a tile of an operand into `name`[k][other], zeros where it ends. Neighbouring items
  /// read neighbours in memory.
  void load_tile(const std::string& name, std::int64_t width, std::int64_t extent,
                 const std::string& begin, bool k_is_fast, bool is_left) {
    const std::int64_t items = tile_.items_m * tile_.items_n;
    const std::string e = emitter_.fresh("e");
    const std::string first = is_single_ ? "0" : "lm * " + text_of(tile_.items_n) + " + ln";
    emitter_.open("for (int " + e + " = " + first + "; " + e + " < " + text_of(width * tile_.k) +
                  "; " + e + " += " + text_of(items) + ")");
    const std::int64_t fast = k_is_fast ? tile_.k : width;
    const std::string inner = emitter_.define("int", modulo(e, fast));
    const std::string outer = emitter_.define("int", divided(e, fast));
    const std::string& k_in_tile = k_is_fast ? inner : outer;
    const std::string& other_in_tile = k_is_fast ? outer : inner;
    const std::string k = emitter_.define(emitter_.index_type(), "k0 + " + k_in_tile);
    const std::string other = emitter_.define(emitter_.index_type(), begin + " + " + other_in_tile);
    const std::string value = emitter_.fresh("v");
    emitter_.line(type_ + " " + value + " = 0;");
    emitter_.open("if (" + k + " < " + text_of(spec_.k) + " && " + other + " < " + text_of(extent) +
                  ")");
    emitter_.line(value + " = " +
                  (is_left ? spec_.left("b", other, k) : spec_.right("b", k, other)) + ";");
    emitter_.close();
    emitter_.line(name + "[" + k_in_tile + "][" + other_in_tile + "] = " + value + ";");
    emitter_.close();
  }

  Emitter& emitter_;
  const ProductSpec& spec_;
  Tiling tile_;
  std::string type_;
  bool is_single_;
};

/// A matrix times a vector: each sum is a row that a work group reduces.
GeneratedKernel vector_kernel(Emitter& emitter, const KernelTask& task, const ProductSpec& spec,
                              TensorId result) {
  RowWriter rows(emitter, {spec.batch, spec.m, spec.n}, {spec.k});
  const Index row = rows.row();
  const std::string sum = rows.reduce(spec.dtype, "+", [&](const Index& k) {
    return spec.left(row[0], row[1], k[0]) + " * " + spec.right(row[0], k[0], row[2]);
  });
  rows.begin_single();
  const Index place = emitter.define_index(spec.place(row[0], row[1], row[2]));
  emitter.bind_value(result, place,
                     emitter.define(spec.dtype, spec.finish ? spec.finish(sum, place) : sum));
  std::vector<bool> stored(task.results.size(), false);
  store_results(emitter, task, {{result, place}}, stored);
  emitter.close();
  require_all_stored(stored);
  return rows.finish();
}

}  // namespace

GeneratedKernel product_kernel(const KernelTask& task, NodeId heavy) {
  Emitter emitter(task.model, {task.nodes.begin(), task.nodes.end()});
  const TensorId result = task.model.node(heavy).outputs[0];
  const ProductSpec spec = product_of(emitter, heavy);
  if (!task.model.machine().is_cpu && (spec.m == 1 || spec.n == 1)) {
    return vector_kernel(emitter, task, spec, result);
  }
  ProductWriter writer(emitter, spec);
  writer.write_sums();
  std::vector<bool> stored(task.results.size(), false);
  writer.write_results([&](const Index& place, const std::string& value) {
    emitter.bind_value(result, place, value);
    store_results(emitter, task, {{result, place}}, stored);
  });
  require_all_stored(stored);
  return writer.finish();
}

}  // namespace npu::opencl
