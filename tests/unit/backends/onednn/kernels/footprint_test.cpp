// SPDX-License-Identifier: Apache-2.0
// What footprint_of says against what kernels do: every operand has exactly the bytes that it says,
// between pages that cannot be touched. Fields are drawn at random, around those of a kernel that
// runs; whatever footprint_of lets pass must run inside its operands.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>

#include "catch.hpp"
#include "kernels/base/fields.hpp"
#include "kernels/kernel.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

/// Memory that ends, or begins, at a page that cannot be touched.
class Guarded {
 public:
  Guarded(std::size_t bytes, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t body = (bytes + page - 1) / page * page;
    size_ = body + 2 * page;
    void* mapped = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    begin_ = static_cast<std::byte*>(mapped);
    REQUIRE(mprotect(begin_ + page, body, PROT_READ | PROT_WRITE) == 0);
    data_ = begin_ + page + (at_end ? body - bytes : 0);
  }
  Guarded(Guarded&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), data_(other.data_), size_(other.size_) {}
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded() {
    if (begin_ != nullptr) munmap(begin_, size_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* begin_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool is_small(const Footprint& footprint) {
  std::size_t bytes = footprint.write.bytes + footprint.scratch_bytes;
  for (const Access& read : footprint.reads) bytes += read.bytes;
  return bytes <= kMostBytes;
}

void run_guarded(const Kernel& kernel, const Footprint& footprint, bool at_end) {
  std::vector<Guarded> memory;
  std::vector<std::byte*> addresses;
  const auto add = [&](std::size_t bytes) {
    memory.emplace_back(bytes, at_end);
    addresses.push_back(memory.back().data());
  };
  for (const Access& read : footprint.reads) add(read.bytes);
  add(footprint.write.bytes);
  if (footprint.scratch_bytes != 0) add(footprint.scratch_bytes);
  run_kernel(kernel, addresses);  // zeros are numbers of every type, and indices
}

/// Fields of small kernels that run.
std::vector<Kernel> samples() {
  const VectorIsa isa = cpu_vector_isa();
  std::vector<Kernel> result;
  if (isa >= VectorIsa::kAvx2) {
    Winograd winograd;
    winograd.filter = {{2, 2}, {3, 3}};
    winograd.source_extent[0] = winograd.source_extent[1] = 6;
    winograd.target_extent[0] = winograd.target_extent[1] = 5;
    winograd.pad[0] = winograd.pad[1] = 1;
    winograd.has_bias = true;
    winograd.epilogue = {{EpilogueStep::Kind::kAdd, 0.0F, 0.0F}};
    result.emplace_back(winograd);
    winograd.filter = {{1, 4}, {1, 3}};
    winograd.pad[0] = 0;
    winograd.source_channels = 160;
    winograd.target_channels = 48;
    result.emplace_back(winograd);
    ImplicitGemm implicit;
    implicit.batch = 2;
    implicit.target_channels = 64;
    implicit.source_extent[0] = 5;
    implicit.source_extent[1] = implicit.target_extent[0] = 6;
    implicit.target_extent[1] = 7;
    implicit.taps[0] = 2;
    implicit.taps[1] = 3;
    implicit.dilation[0] = implicit.dilation[1] = 4;
    implicit.pad[0] = implicit.pad[1] = 5;
    implicit.has_bias = true;
    implicit.epilogue = {{EpilogueStep::Kind::kMultiply, 0.0F, 0.0F}};
    result.emplace_back(implicit);
    GroupedConvolution grouped;
    grouped.batch = 2;
    grouped.groups = 16;
    grouped.source_channels = 32;
    grouped.target_channels = 48;
    grouped.source_extent[0] = 5;
    grouped.source_extent[1] = 40;
    grouped.target_extent[0] = 4;
    grouped.target_extent[1] = 21;
    grouped.taps[0] = 2;
    grouped.taps[1] = 3;
    grouped.stride[1] = 2;
    grouped.dilation[0] = grouped.dilation[1] = 2;
    grouped.pad[0] = 1;
    grouped.pad[1] = 3;
    grouped.has_bias = true;
    grouped.epilogue = {{EpilogueStep::Kind::kMultiply, 0.0F, 0.0F}};
    result.emplace_back(grouped);
    PackedGemm gemm;
    gemm.rows = 30;
    gemm.inner = 32;
    gemm.columns = 48;
    gemm.source = {32 * 30, 32, 16};
    gemm.target = {48 * 30, 48, 16};
    gemm.has_norm = true;
    gemm.epilogue = {{EpilogueStep::Kind::kMultiply, 0.0F, 0.0F}};
    result.emplace_back(gemm);
    gemm.source = {0, 16, 480};  // channels in blocks
    gemm.target = {0, 16, 480};
    gemm.use_strassen = true;
    gemm.columns = 64;
    result.emplace_back(gemm);
    gemm.weight_type = DType::kFloat16;
    gemm.has_norm = false;
    result.emplace_back(gemm);
    gemm.weight_type = DType::kBFloat16;
    result.emplace_back(gemm);
    HalfGemm half;
    half.images = 2;
    half.rows = 30;
    half.inner = 32;
    half.columns = 48;
    half.source = {32 * 30, 16, 480};
    half.target = {48 * 30, 16, 480};
    half.has_bias = true;
    half.epilogue = {{EpilogueStep::Kind::kAdd, 0.0F, 0.0F}};
    result.emplace_back(half);
    ExpandDepthwise expand;
    expand.source_channels = 16;
    expand.channels = 48;
    expand.source_extent[0] = expand.source_extent[1] = 9;
    expand.target_extent[0] = expand.target_extent[1] = 5;
    expand.stride = 2;
    expand.pad[0] = expand.pad[1] = 1;
    expand.expand_epilogue = {{EpilogueStep::Kind::kSwish, 1.0F, 0.0F}};
    result.emplace_back(expand);
  }
  Gemv gemv{3, 37, 35, 40};
  gemv.epilogue = {{EpilogueStep::Kind::kAccumulate, 1.0F, 0.0F},
                   {EpilogueStep::Kind::kAdd, 0.0F, 0.0F}};
  result.emplace_back(gemv);
  gemv.weight_type = DType::kFloat16;
  result.emplace_back(gemv);
  gemv.weight_type = DType::kBFloat16;
  result.emplace_back(gemv);
  Attention attention;
  attention.queries = 50;
  attention.keys = 19;
  attention.width = 7;
  attention.value_width = 9;
  attention.has_mask = true;
  attention.query_strides[0] = attention.key_strides[0] = 7;
  attention.value_strides[0] = attention.result_row = 9;
  attention.query_strides[1] = attention.key_strides[1] = attention.value_strides[1] = 1;
  attention.mask_strides[0] = 19;
  attention.mask_strides[1] = 1;
  attention.query_offsets = attention.result_offsets = {0, 450};
  attention.key_offsets = attention.value_offsets = {0, 171};
  attention.mask_offsets = {0, 0};
  result.emplace_back(attention);
  attention.mask_type = DType::kBool;
  attention.key_offsets = attention.value_offsets = {0, 0};
  attention.has_factor = true;
  attention.factor_offsets = {1, 0};
  attention.least_key_length = 1.0F;
  result.emplace_back(attention);
  CachedAttention cached;
  cached.width = 7;
  cached.value_width = 9;
  cached.ranges = {300, true, true, true, 280};
  cached.query_strides[0] = cached.key_strides[0] = 7;
  cached.value_strides[0] = cached.result_row = 9;
  cached.query_strides[1] = cached.key_strides[1] = cached.value_strides[1] = 1;
  for (const std::int64_t queries : {3, 20}) {
    cached.queries = queries;
    cached.query_offsets = {0, queries * 7};
    cached.result_offsets = {0, queries * 9};
    cached.key_offsets = cached.value_offsets = {0, 0};
    result.emplace_back(cached);
    cached.key_offsets = {300 * 7, 0};
    cached.value_offsets = {0, 300 * 9};
    result.emplace_back(cached);
    cached.cap = 30;
    cached.has_sinks = true;
    cached.sink_offsets = {5, 0};
    result.emplace_back(cached);
    cached.has_bias = true;
    cached.bias_strides[0] = 300;
    cached.bias_strides[1] = 1;
    cached.bias_offsets = {0, queries * 300};
    result.emplace_back(cached);
    cached.has_sinks = cached.has_bias = false;
    cached.sink_offsets.clear();
    cached.bias_offsets.clear();
  }
  result.emplace_back(LengthMask{3, {19, true, true, true, 4}});
  SqueezeExcite excite;
  excite.lanes = lanes_of(isa);
  excite.channels = 32;
  excite.spatial = 5;
  excite.hidden = 3;
  excite.has_gate_bias = true;
  result.emplace_back(excite);
  excite.channels_last = true;
  result.emplace_back(excite);
  ScaleShift scale;
  scale.outer = scale.groups = scale.spatial = 3;
  scale.lanes = 16;
  result.emplace_back(scale);
  result.emplace_back(Elementwise{Elementwise::Function::kSoftplus, DType::kBFloat16, 37});
  result.emplace_back(Softmax{3, 37, 1});
  result.emplace_back(Softmax{2, 5, 37, true});
  result.emplace_back(BroadcastBinary{
      BinaryOp::kAdd, 1.0F, DType::kFloat32, DType::kFloat32, {3, 5}, {5, 1}, {0, 1}, {5, 1}});
  RmsNorm norm;
  norm.rows = 3;
  norm.inner = 5;
  norm.has_weight = true;
  result.emplace_back(norm);
  WindowPool average;
  average.planes = 2;
  average.extents[2] = 6;
  average.windows[2] = {{0, 3, 3}, {2, 6, 4}};
  result.emplace_back(average);
  result.emplace_back(MiddleReduction{ReductionOp::kMean, DType::kFloat32, 2, 3, 5});
  result.emplace_back(GatherRows{4, 3, 10, true, "g"});
  result.emplace_back(Sequence{2, 3, 5});
  Resample resample;
  resample.planes = 2;
  resample.lanes = 16;
  resample.extents[1] = 3;
  resample.extents[2] = 5;
  resample.width[1] = resample.width[2] = 2;
  resample.taps[1] = {{0, 0.5F}, {1, 0.5F}, {2, 1.0F}, {2, 0.0F}};
  resample.taps[2] = {{0, 0.25F}, {1, 0.75F}, {1, 0.5F}, {2, 0.5F}, {4, 1.0F}, {3, 0.0F}};
  result.emplace_back(resample);
  resample.adds = resample.relu = true;
  result.emplace_back(resample);
  GridSample sample;
  sample.mode = GridSample::Mode::kBicubic;
  sample.batch = sample.channels = 2;
  sample.source_extent[0] = 5;
  sample.source_extent[1] = 7;
  sample.target_extent[0] = 3;
  sample.target_extent[1] = 23;
  result.emplace_back(sample);
  GroupNorm groups;
  groups.outer = 2;
  groups.channels = 32;
  groups.vector = 24;
  groups.lanes = 16;
  groups.group_size = 8;
  groups.spatial = 5;
  groups.has_weight = groups.has_bias = true;
  result.emplace_back(groups);
  groups.lanes = 1;
  groups.channels = groups.vector = 15;
  groups.group_size = 5;
  result.emplace_back(groups);
  Recurrence recurrence;
  recurrence.layers = 2;
  recurrence.directions = 2;
  recurrence.batch = 7;
  recurrence.steps = 3;
  recurrence.inputs = 5;
  recurrence.hidden = 19;
  result.emplace_back(recurrence);
  recurrence.cell = Recurrence::Cell::kGru;
  recurrence.batch_first = true;
  result.emplace_back(recurrence);
  result.emplace_back(RecurrenceWeights{Recurrence::Cell::kGru, 5, 19, true});
  result.emplace_back(Convert{DType::kFloat32, DType::kBFloat16, 21});
  result.emplace_back(RoundToBFloat16{21});
  result.emplace_back(CopyBytes{21});
  result.emplace_back(StridedCopy{4, {3, 5}, {1, 3}, {5, 1}});
  IntegerRows windows_of_bytes;
  windows_of_bytes.type = DType::kInt8;
  windows_of_bytes.batch = 2;
  windows_of_bytes.groups = 2;
  windows_of_bytes.channels = 6;
  windows_of_bytes.extents[1] = 5;
  windows_of_bytes.extents[2] = 4;
  windows_of_bytes.taps[1] = 3;
  windows_of_bytes.taps[2] = 2;
  windows_of_bytes.dilation[1] = 2;
  windows_of_bytes.pad[1] = 1;
  windows_of_bytes.windows[1] = 3;
  windows_of_bytes.windows[2] = 2;
  windows_of_bytes.isa = isa;
  result.emplace_back(windows_of_bytes);
  windows_of_bytes.type = DType::kInt32;
  result.emplace_back(windows_of_bytes);
  result.emplace_back(IntegerPanels{DType::kUInt8, 2, 13, 37});
  IntegerProduct integers{DType::kUInt8, 2, 19, 13, 37, 19 * 37, 37, true, true, 128, -128};
  integers.uses_vnni = isa == VectorIsa::kAvx512 && cpu_has_vnni();
  integers.isa = isa;
  result.emplace_back(integers);
  integers.uses_vnni = false;
  integers.type = DType::kInt32;
  result.emplace_back(integers);
  result.emplace_back(PaddedCopy{DType::kFloat32, 1.0F, 40, 7, {4, {3, 5}, {5, 1}, {8, 1}}});
  result.emplace_back(Cast{DType::kFloat32, DType::kInt64, 21});
  result.emplace_back(PlainConcat{3, {5, 7}});
  using Binary = TypedBinary::Op;
  result.emplace_back(
      TypedBinary{Binary::kFloorDivide, DType::kBFloat16, 1, {3, 5}, {5, 1}, {0, 1}, {5, 1}, "d"});
  result.emplace_back(
      TypedBinary{Binary::kLess, DType::kInt64, 1, {3, 5}, {5, 1}, {1, 0}, {5, 1}, "l"});
  result.emplace_back(Quantize{DType::kInt8, true, 2, 3, 37, -128, 127, isa});
  result.emplace_back(Quantize{DType::kInt16, false, 1, 1, 37, -9, 99, isa});
  result.emplace_back(Dequantize{DType::kInt32, 2, 3, 37, isa});
  result.emplace_back(ByteTable{70, isa});
  QuantizedBinary binary;
  binary.b_type = DType::kInt8;
  binary.inner = 37;
  binary.isa = isa;
  result.emplace_back(binary);
  binary.repeat = 2;
  binary.outer = 3;
  binary.inner_repeat = 4;
  result.emplace_back(binary);
  QuantizedAverage mean_of_bytes;
  mean_of_bytes.batch = 2;
  mean_of_bytes.channels = 70;
  mean_of_bytes.extents[1] = 5;
  mean_of_bytes.extents[2] = 4;
  mean_of_bytes.windows[1] = {{0, 3, 3}, {2, 5, 3}};
  mean_of_bytes.windows[2] = {{0, 4, 4}};
  mean_of_bytes.isa = isa;
  result.emplace_back(mean_of_bytes);
  QuantizedResample resized_bytes;
  resized_bytes.batch = 2;
  resized_bytes.channels = 70;
  resized_bytes.extents[1] = 5;
  resized_bytes.extents[2] = 4;
  resized_bytes.width[2] = 2;
  resized_bytes.taps[1] = {{0, 1}, {2, 1}, {4, 1}};
  resized_bytes.taps[2] = {{0, 0.75F}, {1, 0.25F}, {2, 0.5F}, {3, 0.5F}};
  resized_bytes.isa = isa;
  result.emplace_back(resized_bytes);
  resized_bytes.width[2] = 1;
  resized_bytes.taps[2] = {{3, 1}, {1, 1}};
  result.emplace_back(resized_bytes);
  result.emplace_back(SplitRows{5, 37, isa});
  AttentionSum means;
  means.rows = 5;
  means.count = 37;
  means.width = 19;
  means.isa = isa;
  result.emplace_back(means);
  result.emplace_back(PaddedCopy{DType::kInt8, -3.0F, 40, 7, {1, {3, 5}, {5, 1}, {8, 1}}});
  result.emplace_back(Select{2, {3, 5}, {5, 1}, {0, 0}, {5, 1}, {5, 1}});
  result.emplace_back(IntegerReduction{IntegerReduction::Op::kProduct, DType::kInt32, 2, 3, 5});
  result.emplace_back(ArgReduction{DType::kBFloat16, true, true, 2, 3, 5});
  result.emplace_back(RunningSum{DType::kFloat32, 2, 3, 5});
  result.emplace_back(SortRows{DType::kInt32, true, true, 3, 7, 4});
  result.emplace_back(GroupedProduct{2, 9, 5, 19, "g", isa});
  result.emplace_back(CopyParts{
      2, {{0, 14, 0, {4, {3, 5}, {-5, -1}, {5, 1}}}, {1, 2, 6, {4, {2, 3}, {4, 0}, {5, 1}}}}});
  result.emplace_back(Triangle{8, 2, 3, 5, 1, true});
  result.emplace_back(TailRows{DType::kFloat32, TailRows::Fill::kZero, 2, 3, 5, "n"});
  result.emplace_back(IndexedCopy{DType::kFloat32,
                                  false,
                                  IndexedCopy::Combine::kReplace,
                                  true,
                                  20,
                                  {3, 5},
                                  {0, 1},
                                  {5, 1},
                                  {{4, 5, {1, 0}}},
                                  "i"});
  result.emplace_back(IndexedCopy{DType::kInt64,
                                  true,
                                  IndexedCopy::Combine::kAdd,
                                  false,
                                  20,
                                  {3, 5},
                                  {5, 0},
                                  {5, 1},
                                  {{5, 1, {5, 1}}},
                                  "s"});
  if (isa >= VectorIsa::kAvx2) {
    result.emplace_back(WinogradWeights{std::get<Winograd>(result[0])});
    Winograd strided = std::get<Winograd>(result[0]);
    strided.filter = {{2, 2}, {3, 3}, 2};
    strided.target_extent[0] = strided.target_extent[1] = 3;
    strided.batch = 6;
    strided.frames = 3;
    result.emplace_back(strided);
    result.emplace_back(WinogradWeights{strided});
    result.emplace_back(PackedGemmWeights{std::get<PackedGemm>(result[4])});
  }
  result.emplace_back(HalfWeights{77});
  result.emplace_back(HalfWeights{77, DType::kBFloat16});
  result.emplace_back(HalfGemmWeights{80, 5});
  result.emplace_back(ColumnScales{80, 5});
  result.emplace_back(PanelWeights{48, 5});
  result.emplace_back(GateWeights{20, 8, 5});
  const NormFold fold{1e-5F, 2, 3, 4, 5, true, true, true};
  result.emplace_back(FoldNormWeights{fold});
  result.emplace_back(FoldNormBias{fold});
  result.emplace_back(NormVectors{1e-5F, 5, 16, true, true});
  for (Kernel& kernel : result) set_isa(kernel, isa);
  return result;
}

/// Changes fields, each with a chance of one in so many.
class Mutator {
 public:
  Mutator(unsigned seed, int one_in) : engine_(seed), one_in_(one_in) {}

  void operator()(const char* /*name*/, auto& value) { change(value); }

  template <typename T>
  void change(T& value) {
    if constexpr (kHasFields<T>) {
      for_each_field(value, *this);
    } else if constexpr (std::is_array_v<T>) {
      for (auto& each : value) change(each);
    } else if (draw(one_in_) != 0) {
      return;
    } else if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(draw(kEnumerators<T>));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(draw(100)) - 50.0F;
    } else {
      value = static_cast<T>(number(static_cast<std::int64_t>(value)));
    }
  }
  template <typename T>
  void change(std::vector<T>& list) {
    for (T& each : list) change(each);
    if (draw(4 * one_in_) == 0) list.resize(static_cast<std::size_t>(draw(4)));
  }
  template <typename T, std::size_t kCount>
  void change(std::array<T, kCount>& list) {
    for (T& each : list) change(each);
  }
  void change(std::string& text) { text += "x"; }

 private:
  int draw(int below) { return static_cast<int>(engine_() % static_cast<unsigned>(below)); }
  std::int64_t number(std::int64_t old) {
    constexpr std::int64_t kEdges[]{
        0, 1, -1, 16, 32, 48, 64, 1 << 20, INT32_MAX, std::int64_t{1} << 46, INT64_MAX, INT64_MIN};
    switch (draw(6)) {
      case 0:
        return kEdges[draw(12)];
      case 1:
        return old + 1;
      case 2:
        return old - 1;
      case 3:
        return old * 2;
      default:
        return draw(40);
    }
  }

  std::mt19937 engine_;
  int one_in_;
};

}  // namespace

TEST_CASE("kernels stay inside their footprint", "[onednn][kernels][footprint]") {
  for (Kernel& kernel : samples()) {
    for (const int threads : {1, 3}) {
      set_threads(kernel, threads);
      INFO(kernel_name(kernel) << " on " << threads << " threads");
      const Footprint footprint = footprint_of(kernel);
      REQUIRE(is_small(footprint));
      run_guarded(kernel, footprint, true);
      run_guarded(kernel, footprint, false);
    }
  }
}

TEST_CASE("every kernel has a sample", "[onednn][kernels][footprint]") {
  std::vector<bool> seen(std::variant_size_v<Kernel>, cpu_vector_isa() < VectorIsa::kAvx2);
  for (const Kernel& kernel : samples()) seen[kernel.index()] = true;
  CHECK(std::count(seen.begin(), seen.end(), false) == 0);
}

TEST_CASE("kernels with any fields that pass stay inside their footprint",
          "[onednn][kernels][footprint]") {
  int ran = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    for (Kernel& kernel : samples()) {
      Mutator mutator(seed, 3 + static_cast<int>(seed % 20));
      std::visit([&](auto& each) { mutator.change(each); }, kernel);
      set_threads(kernel, 1 + static_cast<int>(seed % 3));
      try {
        const Footprint footprint = footprint_of(kernel);
        if (!is_small(footprint)) continue;
        INFO(kernel_name(kernel) << " with seed " << seed);
        run_guarded(kernel, footprint, seed % 2 == 0);
        ++ran;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(ran > 500);
  CHECK(refused > 500);
}

TEST_CASE("a kernel for another CPU is refused", "[onednn][kernels][footprint]") {
  if (cpu_vector_isa() == VectorIsa::kAvx512) return;
  CHECK_THROWS_WITH(footprint_of(Softmax{1, 1, 1, false, VectorIsa::kAvx512}),
                    Catch::Contains("this CPU"));
}

}  // namespace npu::onednn
