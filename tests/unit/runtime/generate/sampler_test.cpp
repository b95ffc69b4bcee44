// SPDX-License-Identifier: Apache-2.0
#include "runtime/generate/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "support/mixed.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// As tests/python/check_sampler.py makes them.
std::vector<float> logits_of(const Json& sampled) {
  const auto kind = sampled["kind"].get<std::string>();
  std::vector<float> logits(sampled["vocabulary"].get<std::size_t>());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::uint64_t place = sampled["logits"].get<std::uint64_t>() * 0x100000001b3 + i;
    const std::uint64_t bits = mixed(place + 0x9e3779b97f4a7c15);
    if (kind == "coarse") {
      logits[i] = (static_cast<float>(bits >> 60) - 8) * 0.5F;
    } else if (kind == "masked" && bits % 3 != 0) {
      logits[i] = -kInfinity;
    } else {
      logits[i] = static_cast<float>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) * 0x1p-20F;
    }
  }
  return logits;
}

TEST_CASE("draws are those of the reference in Python", "[sampler]") {
  const Json file =
      parse_json(read_file(std::string(NPU_TEST_DATA_DIR) + "/sampler.json"), "sampler.json");
  REQUIRE(file.size() > 100);
  std::int64_t total = 0;
  for (const Json& sampled : file) {
    const std::vector<float> logits = logits_of(sampled);
    Sampler sampler({.temperature = sampled["temperature"].get<double>(),
                     .top_k = sampled["top_k"].get<std::int64_t>(),
                     .top_p = sampled["top_p"].get<double>(),
                     .seed = sampled["seed"].get<std::uint64_t>()});
    const auto request = sampled["request"].get<std::uint64_t>();
    const auto draws = sampled["draws"].get<std::int64_t>();
    std::uint64_t digest = 0xcbf29ce484222325;
    std::vector<std::int64_t> first;
    for (std::int64_t step = 0; step < draws; ++step) {
      const std::int64_t id = sampler.pick(logits, request, static_cast<std::uint64_t>(step));
      digest = (digest ^ static_cast<std::uint64_t>(id)) * 0x100000001b3;
      if (first.size() < 16) first.push_back(id);
    }
    total += draws;
    INFO(sampled.dump());
    CHECK(Json(first) == sampled["first"]);
    CHECK(digest == std::stoull(sampled["digest"].get<std::string>(), nullptr, 16));
  }
  CHECK(total >= 100'000);
}

TEST_CASE("greedy takes the first of the largest", "[sampler]") {
  const auto greedy = [](std::vector<float> logits) { return Sampler({}).pick(logits, 0, 0); };
  CHECK(greedy({3}) == 0);
  CHECK(greedy({1, 5, 5, 2}) == 1);
  CHECK(greedy({-1, -5, -0.5F}) == 2);
  CHECK(greedy({-0.0F, 0.0F}) == 0);
  CHECK(greedy({-1, 0.0F, -0.0F}) == 1);
  CHECK(greedy({-kInfinity, -kInfinity}) == 0);
  CHECK(greedy({1, kInfinity, kInfinity}) == 1);
  CHECK(greedy({-3e38F, -kInfinity, -1e-45F}) == 2);
  for (std::size_t count = 1; count < 40; ++count) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<float> logits(count, -2);
      logits[at] = -1;
      REQUIRE(greedy(logits) == static_cast<std::int64_t>(at));
    }
  }
}

TEST_CASE("the first NaN is found wherever it is", "[sampler]") {
  std::vector<float> logits(10'000, 1);
  CHECK_FALSE(first_nan(logits));
  CHECK_FALSE(first_nan(std::vector<float>{kInfinity, -kInfinity}));
  for (const std::size_t at : {9'999, 8'192, 4'096, 4'095, 17, 0}) {
    logits[at] = at % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                             : -std::numeric_limits<float>::quiet_NaN();
    CHECK(first_nan(logits) == static_cast<std::int64_t>(at));
  }
}

TEST_CASE("the exponential is that of the mathematical library but for the last bits",
          "[sampler]") {
  CHECK(sampler_exp(0) == 1);
  CHECK(sampler_exp(-1000) == 0);
  CHECK(sampler_exp(-std::numeric_limits<double>::infinity()) == 0);
  for (double x = 0; x > -700; x -= 0.37) {
    // Errors of rounding of 13 steps whose terms shrink: below 2 units of the last place.
    CHECK(std::abs(sampler_exp(x) / std::exp(x) - 1) < 4e-16);
  }
}

TEST_CASE("shares of draws are the probabilities", "[sampler]") {
  // Weights 1, 2 and 4 of 7 at temperature 1.
  const std::vector<float> logits{0, std::log(2.0F), std::log(4.0F)};
  Sampler sampler({.temperature = 1, .seed = 11});
  std::vector<int> counts(3);
  constexpr int kDraws = 70'000;
  for (std::uint64_t i = 0; i < kDraws; ++i)
    ++counts[static_cast<std::size_t>(sampler.pick(logits, i % 7, i))];
  // The deviation of a count is at most sqrt(70,000 / 4) = 132; five of them.
  CHECK(std::abs(counts[0] - 10'000) < 660);
  CHECK(std::abs(counts[1] - 20'000) < 660);
  CHECK(std::abs(counts[2] - 40'000) < 660);
}

TEST_CASE("random numbers differ by seed, request and step", "[sampler]") {
  const double first = sampler_uniform(1, 2, 3);
  CHECK(first >= 0);
  CHECK(first < 1);
  CHECK(first != sampler_uniform(2, 2, 3));
  CHECK(first != sampler_uniform(1, 3, 3));
  CHECK(first != sampler_uniform(1, 2, 4));
  CHECK(sampler_uniform(1, 2, 3) == first);
}

}  // namespace
}  // namespace npu
