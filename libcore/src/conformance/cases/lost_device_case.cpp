// SPDX-License-Identifier: Apache-2.0
// The case of a device that is lost in a run: it says so from then on, what it made is freed, and a
// new one works.
#include "conformance/cases/cases.hpp"

namespace npu::conformance {

void check_lost_device(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  {
    const Instance doomed = make_instance(
        harness,
        harness.open([](npu_open_args& args) { args.options = R"({"test": "lose"})"; },
                     "device_open with the option \"test\": \"lose\""),
        sample.graph, sample.blob);
    for (const char* which : {"a run that loses the device", "a run on a device that is lost"}) {
      auto error = sized<npu_error>();
      const npu_status status = run(harness, doomed, error);
      harness.check_error(status, error, which);
      harness.found.expect(status == NPU_DEVICE_LOST,
                           std::string(which) + " gives " + status_name(status));
    }
    if (harness.api.device_status != nullptr) {
      auto error = sized<npu_error>();
      const npu_status status = harness.api.device_status(doomed.device.get(), &error);
      harness.found.expect(status == NPU_DEVICE_LOST,
                           "device_status of a device that is lost gives " + status_name(status));
    }
  }  // everything of it is freed here
  const Instance again = make_instance(harness, harness.open(), sample.graph, sample.blob);
  harness.found.expect(same_bits(run_and_read(harness, again), expected),
                       "a device that is opened after another one was lost gives other values");
}

}  // namespace npu::conformance
