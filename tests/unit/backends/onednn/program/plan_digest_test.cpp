// SPDX-License-Identifier: Apache-2.0
// The digest of a plan's format: it changes with the name, the type and the order of a field, not
// with the order of kernels, and every packing kernel takes part in it.
#include "program/plan_digest.hpp"

#include <algorithm>

#include "catch.hpp"

namespace npu::onednn {
namespace {

struct Pair {
  static constexpr std::string_view kName = "pair";
  std::int64_t a = 0;
  std::int64_t b = 0;
};
struct Swapped {
  static constexpr std::string_view kName = "pair";
  std::int64_t b = 0;
  std::int64_t a = 0;
};
struct Renamed {
  static constexpr std::string_view kName = "pair";
  std::int64_t a = 0;
  std::int64_t c = 0;
};
struct Retyped {
  static constexpr std::string_view kName = "pair";
  std::int64_t a = 0;
  std::uint64_t b = 0;
};
struct Moved {
  static constexpr std::string_view kName = "pair";
  std::int64_t a = 0;
  std::int64_t b = 0;
};
struct Other {
  static constexpr std::string_view kName = "other";
  std::vector<Pair> pairs{};
};

template <typename T>
constexpr std::uint64_t digest_of() {
  return FieldDigest{}.add(std::type_identity<T>{}).value();
}

}  // namespace

NPU_FIELDS(Pair, a, b);
NPU_FIELDS(Swapped, b, a);
NPU_FIELDS(Renamed, a, c);
NPU_FIELDS(Retyped, a, b);
NPU_FIELDS(Moved, a, b);
NPU_FIELDS(Other, pairs);

TEST_CASE("names, types and order of fields are in a digest", "[onednn][plan]") {
  constexpr std::uint64_t kPair = digest_of<Pair>();
  CHECK(digest_of<Moved>() == kPair);
  CHECK(digest_of<Swapped>() != kPair);
  CHECK(digest_of<Renamed>() != kPair);
  CHECK(digest_of<Retyped>() != kPair);
  CHECK(digest_of<std::vector<Pair>>() != digest_of<std::optional<Pair>>());
  CHECK(digest_of<std::array<float, 2>>() != digest_of<std::array<float, 3>>());
  CHECK(digest_of<std::array<float, 2>>() != digest_of<std::array<double, 2>>());
  CHECK(digest_of<DType>() != digest_of<VectorIsa>());
}

TEST_CASE("the order of kernels is not in a digest, each of them is", "[onednn][plan]") {
  constexpr std::uint64_t kBoth = digest_of<std::variant<Pair, Other>>();
  CHECK(digest_of<std::variant<Other, Pair>>() == kBoth);
  CHECK(digest_of<std::variant<Pair>>() != kBoth);
  CHECK(digest_of<std::variant<Renamed, Other>>() != kBoth);
}

TEST_CASE("every packing kernel is in the digest of a plan", "[onednn][plan]") {
  std::vector<bool> seen(std::variant_size_v<Kernel>);
  for (const Kernel& kernel : packing_samples()) seen[kernel.index()] = true;
  CHECK(static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true)) ==
        std::variant_size_v<PackingKernel>);
  CHECK(plan_digest() != 0);
}

}  // namespace npu::onednn
