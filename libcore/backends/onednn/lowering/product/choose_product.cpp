// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a product with constant weights: for each candidate the reason why it
// cannot, or an estimate in cycles. Estimates count multiply-adds of vectors and the time that
// weights take from memory. Entries that share their weights read them in one order, though a few
// rows alone would be faster in another, so that they are stored once. Where Strassen's step is
// worth its sums is measured: they take a share of the time that falls with the columns, with k and
// with the rows. O(1).
#include "lowering/product/choose_product.hpp"

#include <utility>

#include "kernels/product/half_gemm.hpp"

namespace npu::onednn {

namespace {

constexpr double kStrassenShare = 7.0 / 8.0;

/// Of our kernels.
template <typename Product>
double weight_bytes(const Product& product) {
  return static_cast<double>(product.inner * product.columns) *
         static_cast<double>(dtype_size(product.weight_type));
}

double product_cycles(const PackedGemm& gemm, const CpuRates& rates, std::int64_t lanes,
                      double cost = 1.0) {
  return direct_cycles(static_cast<double>(gemm.images * gemm.rows) *
                           static_cast<double>(gemm.inner * gemm.columns) * cost,
                       weight_bytes(gemm), lanes, rates);
}

double product_cycles(const PackedGemm& gemm, const CpuRates& rates) {
  return product_cycles(gemm, rates, lanes_of(gemm.isa));
}

/// The same by oneDNN, whose weights are floats.
double primitive_cycles(PackedGemm gemm, const CpuRates& rates) {
  gemm.weight_type = DType::kFloat32;
  return product_cycles(gemm, rates);
}

/// Strassen's step takes an eighth of the multiplications away.
double strassen_cycles(const PackedGemm& gemm, const CpuRates& rates) {
  return direct_cycles(kStrassenShare * static_cast<double>(gemm.images * gemm.rows) *
                           static_cast<double>(gemm.inner * gemm.columns),
                       weight_bytes(gemm), lanes_of(gemm.isa), rates);
}

/// One run over the weights is all there is to a few rows.
double gemv_cycles(const Gemv& call, const CpuRates& rates) {
  return direct_cycles(0.0, weight_bytes(call), lanes_of(call.isa), rates);
}

std::string at_least(const char* what, std::int64_t least, std::int64_t found) {
  return "it needs " + std::to_string(least) + " " + what + ", found " + std::to_string(found);
}

std::string strassen_refusal(const PackedGemm& gemm, const Machine& machine) {
  if (!machine.has_avx2()) return kNoAvx2;
  const CpuRates& rates = machine.rates();
  if (gemm.rows < rates.min_rows) return at_least("rows or pixels", rates.min_rows, gemm.rows);
  if (gemm.inner < rates.min_strassen_inner) {
    return at_least("source features", rates.min_strassen_inner, gemm.inner);
  }
  if (gemm.columns < rates.min_strassen_columns) {
    return at_least("target features", rates.min_strassen_columns, gemm.columns);
  }
  if (!suits_strassen(gemm, machine)) {
    return "the features are no multiples of 32 (source) and 64 (target)";
  }
  return "";
}

Candidate strassen_candidate(PackedGemm gemm, std::string refusal, const Machine& machine) {
  Candidate result{PackedGemm::kStrassenName, {}, {}, std::move(refusal)};
  if (!result.refusal.empty()) return result;
  gemm.use_strassen = true;
  result.cycles = strassen_cycles(gemm, machine.rates());
  result.kernel = gemm;
  return result;
}

/// Why a product by the definition does not take such features; empty if it does.
std::string features_refusal(const PackedGemm& gemm) {
  if (gemm.inner % kFeatureStep == 0 && gemm.columns % kFeatureStep == 0) return "";
  return "the features are no multiples of 16";
}

/// Whether entries with other numbers of rows would each order the weights in its own way: as they
/// are for a few rows, as Strassen's step reads them or as oneDNN does for many.
bool needs_common_order(const PackedGemm& gemm, const ProductShape& shape, const Machine& machine) {
  if (!machine.has_avx2() || !features_refusal(gemm).empty()) return false;
  if (machine.multiplies_float16 && gemm.weight_type == DType::kFloat16) return false;
  PackedGemm least = gemm;
  least.rows = shape.entries.least;
  PackedGemm most = gemm;
  most.rows = shape.entries.most;
  const bool differs_by_rows = least.rows <= Gemv::kMaxRows && most.rows > Gemv::kMaxRows;
  return differs_by_rows || suits_strassen(least, machine) != suits_strassen(most, machine);
}

/// All candidates where entries with other numbers of rows read the same weights.
std::vector<Candidate> shared_candidates(PackedGemm gemm, const ProductShape& shape,
                                         const Machine& machine) {
  const std::string reason = "entries of " + std::to_string(shape.entries.least) + " to " +
                             std::to_string(shape.entries.most) +
                             " rows read the weights in one order";
  PackedGemm most = gemm;
  most.rows = shape.entries.most;
  gemm.strassen_order = suits_strassen(most, machine);
  Candidate classic{PackedGemm::kName, {}, {}, {}};
  classic.cycles = product_cycles(gemm, machine.rates());
  classic.kernel = gemm;
  gemm.strassen_order = false;
  return {std::move(classic), strassen_candidate(gemm, strassen_refusal(gemm, machine), machine),
          Candidate{Gemv::kName, {}, {}, reason}, Candidate{kOneDnn, {}, {}, reason}};
}

/// By the definition with weights of float32: oneDNN's products without AVX-512 are its GEMM, which
/// takes as long, but orders the weights in every run and needs the same threads for the same bits,
/// so that a busy neighbour holds it up.
std::optional<Candidate> float32_candidate(const PackedGemm& gemm, const Machine& machine) {
  if (gemm.weight_type != DType::kFloat32 || machine.isa == VectorIsa::kAvx512) return std::nullopt;
  Candidate result{PackedGemm::kName, {}, {}, machine.has_avx2() ? "" : kNoAvx2};
  if (result.refusal.empty()) result.refusal = features_refusal(gemm);
  if (!result.refusal.empty()) return result;
  result.cycles = product_cycles(gemm, machine.rates());
  result.kernel = gemm;
  return result;
}

/// By the definition with weights of 16 bits, which oneDNN's products do not read; in float16 where
/// the CPU computes in it. `cost`: beside what else there is.
std::optional<Candidate> narrow_candidate(const PackedGemm& gemm, const std::string& refusal,
                                          const Machine& machine, double cost) {
  if (gemm.weight_type == DType::kFloat32) return std::nullopt;
  const bool in_float16 = machine.multiplies_float16 && gemm.weight_type == DType::kFloat16;
  Candidate result{in_float16 ? HalfGemm::kName : PackedGemm::kName, {}, {}, refusal};
  if (result.refusal.empty()) result.refusal = features_refusal(gemm);
  if (!result.refusal.empty()) return result;
  if (!in_float16) {
    result.cycles = product_cycles(gemm, machine.rates(), lanes_of(gemm.isa), cost);
    result.kernel = gemm;
    return result;
  }
  // AVX512-FP16 has twice the multiply-adds (a26e8a40).
  result.cycles = product_cycles(gemm, machine.rates(), 2 * lanes_of(gemm.isa));
  result.kernel = HalfGemm{.images = gemm.images,
                           .rows = gemm.rows,
                           .inner = gemm.inner,
                           .columns = gemm.columns,
                           .source = gemm.source,
                           .target = gemm.target,
                           .has_bias = false,
                           .epilogue = {},
                           .threads = gemm.threads,
                           .isa = gemm.isa};
  return result;
}

Candidate gemv_candidate(const Gemv& gemv, std::string refusal, const Machine& machine) {
  Candidate result{Gemv::kName, {}, {}, std::move(refusal)};
  if (result.refusal.empty() && gemv.rows > Gemv::kMaxRows) {
    result.refusal = "it takes " + std::to_string(Gemv::kMaxRows) + " rows at most, found " +
                     std::to_string(gemv.rows);
  }
  if (!result.refusal.empty()) return result;
  result.cycles = gemv_cycles(gemv, machine.rates());
  result.kernel = gemv;
  return result;
}

}  // namespace

bool suits_strassen(const PackedGemm& gemm, const Machine& machine) {
  const CpuRates& rates = machine.rates();
  return gemm.rows >= rates.min_rows && gemm.inner % (2 * kFeatureStep) == 0 &&
         gemm.columns % (4 * kFeatureStep) == 0 && gemm.inner >= rates.min_strassen_inner &&
         gemm.columns >= rates.min_strassen_columns;
}

bool suits_norm(const PackedGemm& gemm, const Machine& machine) {
  return machine.has_avx2() && gemm.inner % kFeatureStep == 0 && gemm.columns % kFeatureStep == 0 &&
         (gemm.inner >= machine.rates().min_norm_inner ||
          gemm.rows <= machine.rates().max_norm_rows);
}

PackedGemm pointwise_gemm(const Shape& target, std::int64_t source_channels,
                          const Machine& machine) {
  const std::int64_t lanes = machine.lanes();
  PackedGemm gemm;
  gemm.isa = machine.isa;
  gemm.weight_type = machine.weight_type;
  gemm.threads = machine.threads;
  gemm.images = target[0];
  for (std::size_t i = 2; i < target.size(); ++i) gemm.rows *= target[i];
  gemm.inner = source_channels;
  gemm.columns = target[1];
  gemm.source = {gemm.rows * gemm.inner, lanes, gemm.rows * lanes};
  gemm.target = {gemm.rows * gemm.columns, lanes, gemm.rows * lanes};
  return gemm;
}

std::vector<Candidate> pointwise_candidates(const PackedGemm& gemm, const std::string& refusal,
                                            const Machine& machine) {
  std::vector<Candidate> candidates;
  // One pixel of each image: blocks of channels lie side by side.
  const Gemv gemv{.rows = gemm.images,
                  .inner = gemm.inner,
                  .columns = gemm.columns,
                  .source_row = gemm.inner,
                  .weight_type = machine.weight_type,
                  .threads = machine.threads,
                  .isa = machine.isa};
  candidates.push_back(gemv_candidate(
      gemv, refusal.empty() && gemm.rows != 1 ? "an image has more than one pixel" : refusal,
      machine));
  candidates.push_back(strassen_candidate(
      gemm, refusal.empty() ? strassen_refusal(gemm, machine) : refusal, machine));
  if (auto own = narrow_candidate(gemm, refusal, machine, machine.rates().narrow_pointwise)) {
    candidates.push_back(*std::move(own));
  }
  return candidates;
}

std::vector<Candidate> choose_product(const ProductShape& shape, const Epilogue& epilogue,
                                      const Machine& machine) {
  PackedGemm gemm;
  gemm.isa = machine.isa;
  gemm.rows = shape.rows;
  gemm.inner = shape.inner;
  gemm.columns = shape.columns;
  const std::int64_t lanes = machine.lanes();
  gemm.source = {0, shape.source_row, shape.source_block != 0 ? shape.source_block : lanes};
  gemm.target = {0, shape.columns, lanes};
  if (shape.blocked_target) gemm.target = {0, lanes, shape.rows * lanes};
  gemm.weight_type = machine.weight_type;
  gemm.threads = machine.threads;
  const Gemv gemv{.rows = shape.rows,
                  .inner = shape.inner,
                  .columns = shape.columns,
                  .source_row = shape.source_row,
                  .weight_type = machine.weight_type,
                  .threads = machine.threads,
                  .isa = machine.isa};
  if (needs_common_order(gemm, shape, machine)) {
    return ranked(shared_candidates(gemm, shape, machine), epilogue);
  }
  const bool has_rows = shape.source_block == 0 && !shape.blocked_target;
  std::vector<Candidate> candidates{
      gemv_candidate(gemv, has_rows ? "" : "rows lie in blocks", machine),
      strassen_candidate(gemm, strassen_refusal(gemm, machine), machine)};
  if (auto own = float32_candidate(gemm, machine)) candidates.push_back(*std::move(own));
  candidates.push_back({kOneDnn, {}, primitive_cycles(gemm, machine.rates()), ""});
  if (auto own = narrow_candidate(gemm, "", machine, machine.rates().narrow_product)) {
    candidates.push_back(*std::move(own));
  }
  return ranked(std::move(candidates), epilogue);
}

}  // namespace npu::onednn
