// SPDX-License-Identifier: Apache-2.0
// A work group brings a tile of both operands into local memory; each item keeps rows * columns
// sums in registers, for which it reads rows + columns values of the tiles, 16 bytes at a time.
// While it computes on one tile, the elements of the next are on their way into its registers. What
// a summand's place is made of (channel and tap of a convolution) stands in a small table, which
// the items fill for the next tile. Slices of a group go over other summands of the same tile of
// the result; their sums are added by halves, in an order that is always the same. Sums of very
// many summands are sums of blocks: the rounding error of one running sum grows with their number.
// 2 * batch * m * n * k operations; each operand is read n / tile or m / tile times.
#include "kernels/tiled_product.hpp"

#include <algorithm>

namespace npu::opencl {
namespace {

/// More summands than this are added up in blocks. Most networks on images have up to 4608: there a
/// second set of registers would cost more than the error is worth.
constexpr std::int64_t kMostSummands = 8192;

/// One of the two operands of a tile.
struct Side {
  std::string name;
  std::int64_t width;         ///< of the tile
  std::int64_t items;         ///< along it
  std::string item;           ///< this one's number along it
  std::int64_t values;        ///< of an item
  std::string extent;         ///< of the product
  std::int64_t known_extent;  ///< 0: the kernel is passed it
  std::string begin;
  bool k_is_fast;  ///< neighbours in memory are neighbours in k
  bool is_left;
};

/// A place in a tile.
struct Brought {
  std::string k;
  std::string other;
};

class TiledProductWriter {
 public:
  TiledProductWriter(Emitter& emitter, const ProductSpec& spec, const Tiling& tiling,
                     const Tunable& tunable)
      : emitter_(emitter),
        spec_(spec),
        tunable_(tunable),
        tile_(tiling),
        row_count_(emitter.size(spec.m)),
        type_(value_type(spec.dtype)),
        has_half_tiles_(spec.dtype == DType::kFloat16 && emitter.model().machine().has_float16),
        left_{"left", tile_.m,      tile_.items_m,
              "lm",   tile_.rows(), row_count_,
              0,      "m0",         !spec.left_is_transposed,
              true},
        right_{"right",
               tile_.n,
               tile_.items_n,
               "ln",
               tile_.columns(),
               text_of(spec.n),
               spec.n,
               "n0",
               spec.right_is_transposed,
               false},
        summand_parts_(varying_parts()) {}

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
    emitter_.line("const int item = lm * " + text_of(tile_.items_n) + " + ln;");
    emitter_.line(std::string("const int ls = ") + (tile_.slices > 1 ? "get_local_id(2);" : "0;"));
    declare_tiles();
    emitter_.line(type_ + " acc[" + text_of(tile_.rows()) + "][" + text_of(tile_.columns()) + "];");
    loop_over_sums([&] { emitter_.line("acc[i][j] = 0;"); });
    declare_loaded(left_);
    declare_loaded(right_);
    const std::int64_t span = tile_.k * tile_.slices;
    steps_ = (spec_.k + span - 1) / span;
    const bool has_blocks = steps_ * tile_.k > kMostSummands;
    if (has_blocks) declare_block_sums();
    if (!summand_parts_.empty()) {
      note_summands("0");
      emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    }
    emitter_.open("for (int step = 0; step <= " + text_of(steps_) + "; ++step)");
    emitter_.open("if (step < " + text_of(steps_) + ")");
    emitter_.line("const " + index + " k0 = " + first_summand("step") + ";");
    load(left_);
    load(right_);
    emitter_.close();
    emitter_.open("if (step > 0)");
    multiply();
    if (has_blocks) add_block();
    emitter_.close();
    emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    emitter_.open("if (step < " + text_of(steps_) + ")");
    keep(left_);
    keep(right_);
    if (!summand_parts_.empty()) note_summands("step + 1");
    emitter_.close();
    emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    emitter_.close();
    if (has_blocks) loop_over_sums([&] { emitter_.line("acc[i][j] += blocks[i][j];"); });
    if (tile_.slices > 1) add_slices();
  }

  /// Calls `store` with each place of the result and its sum.
  void write_results(const std::function<void(const Index&, const std::string&)>& store) {
    if (tile_.slices > 1) emitter_.open("if (ls == 0)");
    unrolled("j", tile_.columns(), [&] {
      const std::string n = emitter_.define(emitter_.index_type(), "n0 + " + place_of(right_, "j"));
      emitter_.open("if (" + n + " < " + text_of(spec_.n) + ")");
      Index column;
      if (spec_.parts) column = emitter_.define_index(spec_.parts->of_column(n));
      unrolled("i", tile_.rows(), [&] {
        const std::string m =
            emitter_.define(emitter_.index_type(), "m0 + " + place_of(left_, "i"));
        emitter_.open("if (" + m + " < " + row_count_ + ")");
        const Index place = emitter_.define_index(spec_.parts ? spec_.parts->place("b", m, column)
                                                              : spec_.place("b", m, n));
        const std::string sum =
            spec_.finish != nullptr ? spec_.finish("acc[i][j]", place) : "acc[i][j]";
        store(place, emitter_.define(spec_.dtype, sum));
        emitter_.close();
      });
      emitter_.close();
    });
    if (tile_.slices > 1) emitter_.close();
  }

  GeneratedKernel finish() {
    const auto tiles = [](std::int64_t extent, std::int64_t tile) {
      return static_cast<std::uint64_t>((extent + tile - 1) / tile);
    };
    GeneratedKernel kernel = finished(
        emitter_,
        {tiles(spec_.n, tile_.n), tiles(spec_.m, tile_.m), static_cast<std::uint64_t>(spec_.batch)},
        {static_cast<std::uint64_t>(tile_.items_n), static_cast<std::uint64_t>(tile_.items_m),
         static_cast<std::uint64_t>(tile_.slices)});
    kernel.tunable = tunable_;
    return kernel;
  }

 private:
  std::int64_t pitch(const Side& side) const { return side.width + kTilePadding; }
  std::int64_t loads(const Side& side) const {
    return (side.width * tile_.k + tile_.items() - 1) / tile_.items();
  }
  std::string stored_type() const { return has_half_tiles_ ? "half" : type_; }

  /// One array for the tiles of all slices, of which the sums of slices take the room later.
  void declare_tiles() {
    const std::int64_t of_slice = tile_.k * (pitch(left_) + pitch(right_));
    emitter_.local_array(stored_type(), "tiles", {tile_.slices * of_slice});
    const std::string slice = tile_.slices > 1 ? " + ls * " + text_of(of_slice) : "";
    const std::string pointer = "__local " + stored_type() + "* ";
    emitter_.line(pointer + "left = tiles" + slice + ";");
    emitter_.line(pointer + "right = left + " + text_of(tile_.k * pitch(left_)) + ";");
    if (summand_parts_.empty()) return;
    emitter_.local_array("int", "summands", {tile_.slices * tile_.k * std::ssize(summand_parts_)});
  }

  /// Of this item's slice in a step.
  std::string first_summand(const std::string& step) const {
    const std::string number = tile_.slices > 1
                                   ? "((" + step + ") * " + text_of(tile_.slices) + " + ls)"
                                   : "(" + step + ")";
    return "(" + emitter_.index_type() + ")" + number + " * " + text_of(tile_.k);
  }

  /// Which parts of a summand vary. One is not worth a table.
  std::vector<std::size_t> varying_parts() const {
    std::vector<std::size_t> varying;
    if (!spec_.parts) return varying;
    const Index parts = spec_.parts->of_summand("k");
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p] != "0") varying.push_back(p);
    }
    if (varying.size() < 2) varying.clear();
    return varying;
  }

  std::string summand_part(const std::string& k_in_tile, std::size_t number) const {
    const std::string slice = tile_.slices > 1 ? "ls * " + text_of(tile_.k) + " + " : "";
    return "summands[(" + slice + k_in_tile + ") * " + text_of(std::ssize(summand_parts_)) + " + " +
           std::to_string(number) + "]";
  }

  /// The parts of the summands of a step, one item for each.
  void note_summands(const std::string& step) {
    const std::string e = emitter_.fresh("e");
    emitter_.open("for (int " + e + " = item; " + e + " < " + text_of(tile_.k) + "; " + e +
                  " += " + text_of(tile_.items()) + ")");
    const std::string k = emitter_.define(emitter_.index_type(), first_summand(step) + " + " + e);
    const Index parts = spec_.parts->of_summand(k);
    for (std::size_t i = 0; i < summand_parts_.size(); ++i) {
      emitter_.line(summand_part(e, i) + " = " + parts[summand_parts_[i]] + ";");
    }
    emitter_.close();
  }

  /// The right operand's element, by what is known of its summand and column.
  std::string right_element(const Brought& at, const std::string& k, const std::string& n) {
    if (summand_parts_.empty()) return spec_.right("b", k, n);
    Index summand(spec_.parts->of_summand(k).size(), "0");
    for (std::size_t i = 0; i < summand_parts_.size(); ++i) {
      summand[summand_parts_[i]] = emitter_.define("int", summand_part(at.k, i));
    }
    return spec_.parts->right("b", summand, emitter_.define_index(spec_.parts->of_column(n)));
  }

  /// Where value number `each` of an item lies along a side of the tile: vectors of neighbours.
  std::string place_of(const Side& side, const std::string& each) const {
    const std::int64_t width = vector_width(spec_.dtype, side.values);
    const std::string inner = modulo(each, width);
    return plus(plus(times(divided(each, width), width * side.items), times(side.item, width)),
                inner);
  }

  template <typename Body>
  void unrolled(const std::string& name, std::int64_t count, Body&& body) {
    emitter_.line("#pragma unroll");
    emitter_.open("for (int " + name + " = 0; " + name + " < " + text_of(count) + "; ++" + name +
                  ")");
    body();
    emitter_.close();
  }

  template <typename Body>
  void loop_over_sums(Body&& body) {
    unrolled("i", tile_.rows(), [&] { unrolled("j", tile_.columns(), body); });
  }

  void declare_loaded(const Side& side) {
    emitter_.line(type_ + " next_" + side.name + "[" + text_of(loads(side)) + "];");
  }

  /// A loop over the elements of a tile that this item brings. Neighbouring items have neighbours
  /// in memory.
  template <typename Body>
  void over_brought(const Side& side, Body&& body) {
    const std::int64_t all = side.width * tile_.k;
    const bool is_even = all % tile_.items() == 0;
    unrolled("l", loads(side), [&] {
      const std::string e = emitter_.define("int", "item + l * " + text_of(tile_.items()));
      if (!is_even) emitter_.open("if (" + e + " < " + text_of(all) + ")");
      const std::int64_t fast = side.k_is_fast ? tile_.k : side.width;
      const std::string inner = emitter_.define("int", modulo(e, fast));
      const std::string outer = emitter_.define("int", divided(e, fast));
      body(side.k_is_fast ? Brought{inner, outer} : Brought{outer, inner});
      if (!is_even) emitter_.close();
    });
  }

  /// Zeros where an operand ends.
  void load(const Side& side) {
    over_brought(side, [&](const Brought& at) {
      const std::string k = emitter_.define(emitter_.index_type(), "k0 + " + at.k);
      const std::string other =
          emitter_.define(emitter_.index_type(), side.begin + " + " + at.other);
      const std::string target = "next_" + side.name + "[l]";
      std::string inside;
      if (spec_.k % (tile_.k * tile_.slices) != 0) inside = k + " < " + text_of(spec_.k);
      if (side.known_extent == 0 || side.known_extent % side.width != 0) {
        inside += (inside.empty() ? "" : " && ") + other + " < " + side.extent;
      }
      if (!inside.empty()) {
        emitter_.line(target + " = 0;");
        emitter_.open("if (" + inside + ")");
      }
      emitter_.line(target + " = " +
                    (side.is_left ? spec_.left("b", other, k) : right_element(at, k, other)) + ";");
      if (!inside.empty()) emitter_.close();
    });
  }

  void keep(const Side& side) {
    over_brought(side, [&](const Brought& at) {
      emitter_.line(side.name + "[" + at.k + " * " + text_of(pitch(side)) + " + " + at.other +
                    "] = " + (has_half_tiles_ ? std::string(kHalfTile) : "") + "next_" + side.name +
                    "[l];");
    });
  }

  /// This item's values of a side at summand kk.
  void read_values(const Side& side) {
    const std::int64_t width = vector_width(spec_.dtype, side.values);
    const std::string local =
        side.name + " + kk * " + text_of(pitch(side)) + " + " + times(side.item, width);
    emitter_.line(type_ + " of_" + side.name + "[" + text_of(side.values) + "];");
    unrolled("v", side.values / width, [&] {
      const std::string at = local + " + v * " + text_of(width * side.items);
      const std::string suffix = width == 1 ? "" : text_of(width);
      const std::string read = "*(__local const " + stored_type() + suffix + "*)(" + at + ")";
      const std::string value = emitter_.fresh("q");
      emitter_.line("const " + type_ + suffix + " " + value + " = " +
                    (has_half_tiles_ ? "convert_float" + suffix + "(" + read + ")" : read) + ";");
      for (std::int64_t c = 0; c < width; ++c) {
        emitter_.line("of_" + side.name + "[v * " + text_of(width) + " + " + text_of(c) +
                      "] = " + value + (width == 1 ? "" : ".s" + text_of(c)) + ";");
      }
    });
  }

  void multiply() {
    unrolled("kk", tile_.k, [&] {
      read_values(left_);
      read_values(right_);
      loop_over_sums([&] { emitter_.line("acc[i][j] += of_left[i] * of_right[j];"); });
    });
  }

  void declare_block_sums() {
    emitter_.line(type_ + " blocks[" + text_of(tile_.rows()) + "][" + text_of(tile_.columns()) +
                  "];");
    loop_over_sums([&] { emitter_.line("blocks[i][j] = 0;"); });
  }

  /// Behind the last step of a block its sums start anew.
  void add_block() {
    const std::int64_t steps = std::max<std::int64_t>(1, kBlockSummands / tile_.k);
    emitter_.open("if (step % " + text_of(steps) + " == 0)");
    loop_over_sums([&] {
      emitter_.line("blocks[i][j] += acc[i][j];");
      emitter_.line("acc[i][j] = 0;");
    });
    emitter_.close();
  }

  /// The upper half of the slices leaves its sums in local memory, the lower half adds them.
  void add_slices() {
    const std::int64_t items = tile_.items();
    const std::string part = emitter_.fresh("part");
    emitter_.line("__local " + type_ + "* " + part + " = (__local " + type_ + "*)tiles;");
    for (std::int64_t half = tile_.slices / 2; half >= 1; half /= 2) {
      const auto place = [&](const std::string& slice) {
        return part + "[((" + slice + ") * " + text_of(tile_.rows() * tile_.columns()) + " + i * " +
               text_of(tile_.columns()) + " + j) * " + text_of(items) + " + item]";
      };
      emitter_.open("if (ls >= " + text_of(half) + " && ls < " + text_of(2 * half) + ")");
      loop_over_sums([&] { emitter_.line(place("ls - " + text_of(half)) + " = acc[i][j];"); });
      emitter_.close();
      emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
      emitter_.open("if (ls < " + text_of(half) + ")");
      loop_over_sums([&] { emitter_.line("acc[i][j] += " + place("ls") + ";"); });
      emitter_.close();
      emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
    }
  }

  Emitter& emitter_;
  const ProductSpec& spec_;
  const Tunable& tunable_;
  const Tiling& tile_;
  std::string row_count_;  ///< of the result, as the kernel is passed it
  std::string type_;
  /// Operands are kept as they are stored, in half of the room; sums are of float32.
  bool has_half_tiles_;
  Side left_;
  Side right_;
  std::vector<std::size_t> summand_parts_;  ///< that a table has, see note_summands()
  std::int64_t steps_ = 0;
};

}  // namespace

GeneratedKernel tiled_product(Emitter& emitter, const KernelTask& task, const ProductSpec& spec,
                              const Tiling& tiling, const Tunable& tunable, TensorId result) {
  TiledProductWriter writer(emitter, spec, tiling, tunable);
  return finished_kernel(writer, emitter, task, result);
}

}  // namespace npu::opencl
