// SPDX-License-Identifier: Apache-2.0
// T5's relative positions: a distance becomes a bucket by the logarithm, cut to an integer, so that
// a last place too much or too little is another row of a table.
#include <cmath>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

using namespace npu::test;
using namespace npu::test::onednn;

TEST_CASE("onednn: buckets of relative positions are those of the definition", "[onednn]") {
  // 16 buckets, of which the upper 8 go from 8 to 128 by powers of sqrt(2): at 16, 32, 64 and 128
  // the quotient is an integer, at all others it is far from one.
  constexpr std::int64_t kDistances = 4096;
  Array distances({kDistances}), buckets({kDistances});
  const auto in_float = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  for (std::int64_t distance = 1; distance <= kDistances; ++distance) {
    const auto x = static_cast<double>(distance);
    const auto i = static_cast<std::size_t>(distance - 1);
    distances.values[i] = x;
    const double logarithm = in_float(std::log(x / 8.0));
    buckets.values[i] = std::trunc(in_float(logarithm / in_float(std::log(16.0))) * 8.0);
  }
  Model model(NPU_FLOAT32);
  model.input("x", distances);
  model.node("ratio", "aten.div.Scalar", {"x"}, R"("other":8.0)");
  model.node("logarithm", "aten.log.default", {"ratio"});
  model.node("quotient", "aten.div.Scalar", {"logarithm"}, R"("other":2.772588722239781)");
  model.node("scaled", "aten.mul.Scalar", {"quotient"}, R"("other":8.0)");
  model.node("bucket", "aten.to.dtype", {"scaled"}, R"("dtype":"torch.int64")");
  model.output("bucket");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  CHECK(decode(run_once(device.get(), compiled, model).front()).values == buckets.values);
}
