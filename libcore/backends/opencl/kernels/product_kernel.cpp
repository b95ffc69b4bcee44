// SPDX-License-Identifier: Apache-2.0
// Sums of products in tiles; the ops behind the product are applied where a sum is complete. On a
// CPU a work group is one item, whose tile its vectors compute; elsewhere see tiled_product.cpp.
// Sums of many summands are sums of blocks: the rounding error of one running sum grows with their
// number. 2 * batch * m * n * k operations; each operand is read n / tile or m / tile times.
#include <algorithm>
#include <utility>

#include "kernels/group_kernel.hpp"
#include "kernels/row_writer.hpp"
#include "kernels/tiled_product.hpp"
#include "ops/product_spec.hpp"

namespace npu::opencl {
namespace {

/// A tile of one work item.
class ProductWriter {
 public:
  ProductWriter(Emitter& emitter, const ProductSpec& spec, const Tiling& tiling, Tunable tunable)
      : emitter_(emitter),
        spec_(spec),
        tunable_(std::move(tunable)),
        tile_(tiling),
        row_count_(emitter.size(spec.m)),
        type_(value_type(spec.dtype)),
        has_half_tiles_(spec.dtype == DType::kFloat16 && emitter.model().machine().has_float16) {}

  /// Up to where the sums of this item stand in acc[i][j].
  void write_sums() {
    const std::string& index = emitter_.index_type();
    emitter_.line("const " + index + " n0 = (" + index + ")get_group_id(0) * " + text_of(tile_.n) +
                  ";");
    emitter_.line("const " + index + " m0 = (" + index + ")get_group_id(1) * " + text_of(tile_.m) +
                  ";");
    emitter_.line("const " + index + " b = get_group_id(2);");
    tile("left", tile_.m);
    tile("right", tile_.n);
    emitter_.line(type_ + " acc[" + text_of(tile_.m) + "][" + text_of(tile_.n) + "];");
    loop_over_sums([&] { emitter_.line("acc[i][j] = 0;"); });
    const bool has_blocks = spec_.k > kBlockSummands;
    if (has_blocks) {
      emitter_.line(type_ + " blocks[" + text_of(tile_.m) + "][" + text_of(tile_.n) + "];");
      loop_over_sums([&] { emitter_.line("blocks[i][j] = 0;"); });
    }
    emitter_.open("for (" + index + " k0 = 0; k0 < " + text_of(spec_.k) +
                  "; k0 += " + text_of(tile_.k) + ")");
    load_tile("left", tile_.m, row_count_, "m0", !spec_.left_is_transposed, true);
    load_tile("right", tile_.n, text_of(spec_.n), "n0", spec_.right_is_transposed, false);
    emitter_.open("for (int kk = 0; kk < " + text_of(tile_.k) + "; ++kk)");
    loop_over_sums([&] {
      const std::string widened = has_half_tiles_ ? "(float)" : "";
      emitter_.line("acc[i][j] += " + widened + "left[kk][i] * " + widened + "right[kk][j];");
    });
    emitter_.close();
    if (has_blocks) add_block();
    emitter_.close();
    if (has_blocks) loop_over_sums([&] { emitter_.line("acc[i][j] += blocks[i][j];"); });
  }

  /// Calls `store` with each place of the result and its sum.
  void write_results(const std::function<void(const Index&, const std::string&)>& store) {
    loop_over_sums([&] {
      const std::string m = emitter_.define(emitter_.index_type(), "m0 + i");
      const std::string n = emitter_.define(emitter_.index_type(), "n0 + j");
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
        {1, 1, 1});
    kernel.tunable = tunable_;
    return kernel;
  }

 private:
  /// Behind the last tile of a block its sums start anew.
  void add_block() {
    const std::int64_t span = std::max<std::int64_t>(1, kBlockSummands / tile_.k) * tile_.k;
    emitter_.open("if ((k0 + " + text_of(tile_.k) + ") % " + text_of(span) + " == 0)");
    loop_over_sums([&] {
      emitter_.line("blocks[i][j] += acc[i][j];");
      emitter_.line("acc[i][j] = 0;");
    });
    emitter_.close();
  }

  void tile(const std::string& name, std::int64_t width) {
    const std::string type = has_half_tiles_ ? "half" : type_;
    emitter_.line(type + " " + name + "[" + text_of(tile_.k) + "][" + text_of(width) + "];");
  }
  template <typename Body>
  void loop_over_sums(Body&& body) {
    emitter_.open("for (int i = 0; i < " + text_of(tile_.m) + "; ++i)");
    emitter_.open("for (int j = 0; j < " + text_of(tile_.n) + "; ++j)");
    body();
    emitter_.close();
    emitter_.close();
  }

  /// Brings a tile of an operand into `name`[k][other], zeros where it ends.
  void load_tile(const std::string& name, std::int64_t width, const std::string& extent,
                 const std::string& begin, bool k_is_fast, bool is_left) {
    const std::string e = emitter_.fresh("e");
    emitter_.open("for (int " + e + " = 0; " + e + " < " + text_of(width * tile_.k) + "; ++" + e +
                  ")");
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
  const Machine& machine = task.model.machine();
  Tunable tunable = tunable_of(machine, spec);
  const Tiling tiling = tiling_of(machine, spec, tunable);
  if (tiling.items() > 1) return tiled_product(emitter, task, spec, tiling, tunable, result);
  ProductWriter writer(emitter, spec, tiling, std::move(tunable));
  return finished_kernel(writer, emitter, task, result);
}

}  // namespace npu::opencl
