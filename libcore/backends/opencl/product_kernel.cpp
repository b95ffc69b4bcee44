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

/// Whether a device computes a product in such tiles.
bool fits(const Machine& machine, const ProductSpec& spec, const Tiling& t) {
  constexpr std::int64_t kMostPrivate = 65536;  // bytes of an array that an item has to itself
  const auto bytes =
      static_cast<std::int64_t>(dtype_size(spec.dtype) < 4 ? 4 : dtype_size(spec.dtype));
  const std::int64_t items = t.items_m * t.items_n;
  if (t.m % t.items_m != 0 || t.n % t.items_n != 0 || items > machine.max_group) return false;
  const std::int64_t sums = t.m * t.n / items * bytes;
  const std::int64_t tiles = (t.m + t.n) * t.k * bytes;
  if (items == 1) return sums + tiles <= kMostPrivate;
  return sums <= kMostPrivate && tiles <= machine.local_bytes;
}

Tunable tunable_of(const Machine& machine, const ProductSpec& spec) {
  const Tiling rule = choose_tiling(machine, spec);
  Tunable tunable;
  tunable.key = "product " + std::string(dtype_name(spec.dtype)) + " b" + text_of(spec.batch) +
                " m" + text_of(spec.m) + " n" + text_of(spec.n) + " k" + text_of(spec.k) + " " +
                (spec.left_is_transposed ? "t" : "n") + (spec.right_is_transposed ? "t" : "n");
  tunable.candidates.push_back({rule.m, rule.n, rule.k, rule.items_m, rule.items_n});
  const std::vector<Tiling> others =
      machine.is_cpu
          ? std::vector<Tiling>{{4, 32, 64, 1, 1}, {4, 64, 64, 1, 1},  {8, 16, 64, 1, 1},
                                {8, 64, 64, 1, 1}, {16, 32, 64, 1, 1}, {8, 32, 128, 1, 1}}
          : std::vector<Tiling>{{16, 32, 16, 8, 8},   {32, 32, 16, 8, 8},   {32, 64, 16, 8, 16},
                                {64, 64, 16, 16, 16}, {64, 64, 8, 16, 16},  {128, 64, 16, 16, 16},
                                {64, 128, 8, 16, 16}, {128, 128, 8, 16, 16}};
  for (const Tiling& each : others) {
    const std::vector<std::int64_t> sizes{each.m, each.n, each.k, each.items_m, each.items_n};
    const bool is_new = std::ranges::find(tunable.candidates, sizes) == tunable.candidates.end();
    // A tile of more than twice the rows would mostly be empty.
    if (is_new && each.m < 2 * std::max<std::int64_t>(spec.m, 1) && fits(machine, spec, each)) {
      tunable.candidates.push_back(sizes);
    }
  }
  return tunable;
}

Tiling tiling_of(const Machine& machine, const ProductSpec& spec, const Tunable& tunable) {
  const auto* sizes = tuned_sizes(machine, tunable.key);
  if (sizes == nullptr) return choose_tiling(machine, spec);
  const auto is_size = [](std::int64_t size) { return size >= 1 && size <= 4096; };
  if (sizes->size() != 5 || !std::ranges::all_of(*sizes, is_size)) {
    refuse_tuning(tunable.key, *sizes);
  }
  const std::vector<std::int64_t>& s = *sizes;
  const Tiling tiling{s[0], s[1], s[2], s[3], s[4]};
  if (!fits(machine, spec, tiling)) refuse_tuning(tunable.key, s);
  return tiling;
}

class ProductWriter {
 public:
  ProductWriter(Emitter& emitter, const ProductSpec& spec)
      : emitter_(emitter),
        spec_(spec),
        tunable_(tunable_of(emitter.model().machine(), spec)),
        tile_(tiling_of(emitter.model().machine(), spec, tunable_)),
        row_count_(emitter.size(spec.m)),
        type_(value_type(spec.dtype)),
        has_half_tiles_(spec.dtype == DType::kFloat16 && emitter.model().machine().has_float16),
        is_single_(tile_.items_m * tile_.items_n == 1) {}

  /// Up to where the sums of this item stand in acc[i][j].
  void write_sums() {
    const std::string& index = emitter_.index_type();
    emitter_.line("const " + index + " n0 = (" + index + ")get_group_id(0) * " + text_of(tile_.n) +
                  ";");
    emitter_.line("const " + index + " m0 = (" + index + ")get_group_id(1) * " + text_of(tile_.m) +
                  ";");
    emitter_.line("const " + index + " b = get_group_id(2);");
    emitter_.line("const int ln = get_local_id(0);");
    emitter_.line("const int lm = get_local_id(1);");
    tile("left", tile_.m);
    tile("right", tile_.n);
    emitter_.line(type_ + " acc[" + text_of(rows()) + "][" + text_of(columns()) + "];");
    loop_over_sums([&] { emitter_.line("acc[i][j] = 0;"); });
    emitter_.open("for (" + index + " k0 = 0; k0 < " + text_of(spec_.k) +
                  "; k0 += " + text_of(tile_.k) + ")");
    load_tile("left", tile_.m, row_count_, "m0", !spec_.left_is_transposed, true);
    load_tile("right", tile_.n, text_of(spec_.n), "n0", spec_.right_is_transposed, false);
    barrier();
    emitter_.open("for (int kk = 0; kk < " + text_of(tile_.k) + "; ++kk)");
    loop_over_sums([&] {
      const std::string widened = has_half_tiles_ ? "(float)" : "";
      emitter_.line("acc[i][j] += " + widened + "left[kk][" + row() + "] * " + widened +
                    "right[kk][" + column() + "];");
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
      emitter_.open("if (" + m + " < " + row_count_ + " && " + n + " < " + text_of(spec_.n) + ")");
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
    GeneratedKernel kernel = finished(
        emitter_,
        {tiles(spec_.n, tile_.n), tiles(spec_.m, tile_.m), static_cast<std::uint64_t>(spec_.batch)},
        {static_cast<std::uint64_t>(tile_.items_n), static_cast<std::uint64_t>(tile_.items_m), 1});
    kernel.tunable = tunable_;
    return kernel;
  }

 private:
  void tile(const std::string& name, std::int64_t width) {
    const std::string type = has_half_tiles_ ? "half" : type_;
    if (!is_single_) return emitter_.local_array(type, name, {tile_.k, width});
    emitter_.line(type + " " + name + "[" + text_of(tile_.k) + "][" + text_of(width) + "];");
  }
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
  void load_tile(const std::string& name, std::int64_t width, const std::string& extent,
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
    emitter_.open("if (" + k + " < " + text_of(spec_.k) + " && " + other + " < " + extent + ")");
    emitter_.line(value + " = " +
                  (is_left ? spec_.left("b", other, k) : spec_.right("b", k, other)) + ";");
    emitter_.close();
    emitter_.line(name + "[" + k_in_tile + "][" + other_in_tile +
                  "] = " + (has_half_tiles_ ? std::string(kHalfTile) : "") + value + ";");
    emitter_.close();
  }

  Emitter& emitter_;
  const ProductSpec& spec_;
  Tunable tunable_;
  Tiling tile_;
  std::string row_count_;  ///< of the result, as the kernel is passed it
  std::string type_;
  /// Operands are kept as they are stored, in half of the room; sums are of float32.
  bool has_half_tiles_;
  bool is_single_;
};

/// A matrix times a vector: each sum is a row that a work group reduces.
GeneratedKernel vector_kernel(Emitter& emitter, const KernelTask& task, const ProductSpec& spec,
                              TensorId result) {
  RowWriter rows(emitter, {spec.batch, spec.m, spec.n}, {spec.k}, {"product", spec.dtype, 1});
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
  return finished_kernel(writer, emitter, task, result);
}

}  // namespace npu::opencl
