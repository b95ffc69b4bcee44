// SPDX-License-Identifier: Apache-2.0
// The digest of a plan's format. Fields are digested when this is compiled; what kernels pack, when
// it is first asked for, since who builds for another CPU cannot run them. They pack for AVX2 and
// for AVX-512 on every CPU, with plain loops, so that the level of instructions does not count.
// Numbers are small and whole. O(bytes packed): some 0.3 MB.
#include "program/plan_digest.hpp"

#include <algorithm>

#include "kernels/base/refuse.hpp"
#include "kernels/kernel.hpp"
#include "kernels/product/packed_gemm_tasks.hpp"
#include "program/plan_format.hpp"
#include "support/digest.hpp"

namespace npu::onednn {

namespace {

std::vector<WinogradWeights> samples(const WinogradWeights& /*kernel*/) {
  struct Window {
    std::int64_t height, width, stride;
  };
  std::vector<WinogradWeights> result;
  for (const Window& window :
       {Window{3, 3, 1}, {5, 5, 1}, {1, 3, 1}, {1, 5, 1}, {1, 7, 1}, {3, 3, 2}}) {
    for (const auto& filter : winograd_filters(window.height, window.width, window.stride)) {
      Winograd call;
      call.filter = filter;
      result.push_back({call});
    }
  }
  // More than one panel of columns; with AVX-512 the last one is not full.
  for (const VectorIsa isa : {VectorIsa::kAvx2, VectorIsa::kAvx512}) {
    Winograd call = result.front().winograd;
    call.target_channels = isa == VectorIsa::kAvx2 ? 32 : 48;
    call.isa = isa;
    result.push_back({call});
  }
  return result;
}

std::vector<PackedGemmWeights> samples(const PackedGemmWeights& /*kernel*/) {
  PackedGemm narrow;
  narrow.inner = 64;
  narrow.columns = 32;
  PackedGemm strassen = narrow;
  strassen.use_strassen = true;
  strassen.columns = 64;
  PackedGemm wide;
  wide.isa = VectorIsa::kAvx512;
  wide.columns = 48;
  return {{narrow}, {wide}, {strassen}};
}

std::vector<HalfWeights> samples(const HalfWeights& /*kernel*/) {
  return {{77}, {77, DType::kBFloat16}};
}

std::vector<HalfGemmWeights> samples(const HalfGemmWeights& /*kernel*/) { return {{40, 5}}; }

std::vector<ColumnScales> samples(const ColumnScales& /*kernel*/) { return {{40, 5}}; }

std::vector<PanelWeights> samples(const PanelWeights& /*kernel*/) {
  return {{48, 6}, {48, 6, 32, true}};
}

std::vector<GateWeights> samples(const GateWeights& /*kernel*/) {
  return {{32, 16, 5}, {32, 8, 5}};
}

constexpr NormFold kFold{1e-5F, 2, 3, 4, 5, true, true, true};

std::vector<FoldNormWeights> samples(const FoldNormWeights& /*kernel*/) { return {{kFold}}; }

std::vector<FoldNormBias> samples(const FoldNormBias& /*kernel*/) { return {{kFold}}; }

std::vector<NormVectors> samples(const NormVectors& /*kernel*/) {
  return {{1e-5F, 5, 16, true, true}};
}

std::vector<RecurrenceWeights> samples(const RecurrenceWeights& /*kernel*/) {
  return {{Recurrence::Cell::kLstm, 5, 20, true}, {Recurrence::Cell::kGru, 5, 20, true}};
}

std::vector<IntegerRows> samples(const IntegerRows& /*kernel*/) {
  IntegerRows call;
  call.batch = 2;
  call.groups = 2;
  call.channels = 6;
  call.extents[2] = 5;
  call.taps[2] = 3;
  call.pad[2] = 1;
  call.windows[2] = 5;
  IntegerRows wide = call;
  wide.type = DType::kInt32;
  return {call, wide};
}

std::vector<IntegerPanels> samples(const IntegerPanels& /*kernel*/) {
  return {{DType::kInt8, 2, 6, 20}, {DType::kUInt8, 2, 6, 20}};
}

template <typename... Kernels>
std::vector<Kernel> samples_of(const std::variant<Kernels...>* /*list*/) {
  std::vector<Kernel> result;
  const auto add = [&](const auto& list) { result.insert(result.end(), list.begin(), list.end()); };
  (add(samples(Kernels{})), ...);
  return result;
}

/// Runs samples on the same numbers, each operand from another one on.
class Packer {
 public:
  Packer() {
    int number = 1;
    for (float& each : numbers_) {
      each = static_cast<float>(number);
      number = number > 1000 ? number - 997 : number + 7;
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 7 % 251);
  }

  std::uint64_t digest(const Kernel& kernel) {
    const Footprint footprint = footprint_of(kernel);
    std::vector<std::byte*> addresses;
    for (const Access& read : footprint.reads) {
      const std::size_t first = addresses.size() * kStep;
      const bool is_bytes = read.alignment == 1;
      require(first + read.bytes <= (is_bytes ? bytes_.size() : numbers_.size() * sizeof(float)),
              "a sample reads more numbers than there are");
      auto* const begin =
          is_bytes ? bytes_.data() : static_cast<std::byte*>(static_cast<void*>(numbers_.data()));
      addresses.push_back(begin + first);
    }
    target_.resize(std::max(target_.size(), footprint.write.bytes));
    addresses.push_back(target_.data());
    run_kernel(kernel, addresses);
    return xxh3_64(target_.data(), footprint.write.bytes);
  }

 private:
  static constexpr std::size_t kStep = 64;
  std::vector<float> numbers_ = std::vector<float>(8 << 10);
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1 << 10);
  std::vector<std::byte> target_ = std::vector<std::byte>(80 << 10);
};

}  // namespace

std::vector<Kernel> packing_samples() {
  return samples_of(static_cast<const PackingKernel*>(nullptr));
}

std::uint64_t plan_digest() {
  static const std::uint64_t digest = [] {
    constexpr std::uint64_t kFieldsDigest =
        FieldDigest{}.add(std::type_identity<PlanRecord>{}).value();
    std::vector<std::uint64_t> parts{kFieldsDigest, kPlanMeaning};
    Packer packer;
    for (const Kernel& kernel : packing_samples()) parts.push_back(packer.digest(kernel));
    // Where long sums are cut, in place of weights so large.
    for (const bool use_strassen : {false, true}) {
      PackedGemm gemm;
      gemm.inner = 2048;
      gemm.use_strassen = use_strassen;
      for (std::int64_t run = 0; run < packed_gemm::runs(gemm); ++run) {
        parts.push_back(static_cast<std::uint64_t>(packed_gemm::run_begin(gemm, run + 1)));
      }
    }
    return xxh3_64(parts.data(), parts.size() * sizeof parts[0]);
  }();
  return digest;
}

}  // namespace npu::onednn
