// SPDX-License-Identifier: Apache-2.0
// npu_network_generator -- draws small networks, runs each in two ways and compares with exact
// arithmetic; what fails is shrunk and written as a document that runs alone.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "npu/support/error.hpp"
#include "reference.hpp"
#include "shrink.hpp"

namespace {

using namespace npu::test;

struct Options {
  std::uint64_t start = 1;
  std::uint64_t seeds = 0;
  std::uint64_t gpu_seeds = 0;
  std::uint64_t repeat = 1;
  bool verbose = false;
  bool shrinks = true;
  bool differences = false;
  std::string keep;
  std::string programs;
  std::vector<std::string> documents;
};

class Generator {
 public:
  explicit Generator(const Options& options) : options_(options) {}

  bool run() {
    const auto begin = std::chrono::steady_clock::now();
    for (const std::string& document : options_.documents) {
      for (const Failure& failure : check_document(document, totals_))
        std::printf("%s: %s\n  %s\n", document.c_str(), failure.text.c_str(),
                    failure.way.commands(document).c_str());
    }
    run_seeds(options_.seeds, false);
    run_seeds(options_.gpu_seeds, true);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf(
        "%lld nodes of %lld seeds in %.1f s; %lld numbers compared, %lld unknown, in %lld padded "
        "runs, too; %lld failed\n",
        static_cast<long long>(totals_.nodes),
        static_cast<long long>(options_.seeds + options_.gpu_seeds), seconds.count(),
        static_cast<long long>(totals_.compared), static_cast<long long>(totals_.unknown),
        static_cast<long long>(totals_.padded), static_cast<long long>(totals_.failed));
    for (const auto& [text, count] : totals_.refusals)
      std::printf("  refused %lld times: %s\n", static_cast<long long>(count), text.c_str());
    return totals_.failed == 0;
  }

 private:
  void run_seeds(std::uint64_t count, bool gpu) {
    for (std::uint64_t run = 0; run < count * options_.repeat; ++run) {
      const std::uint64_t seed = options_.start + run / options_.repeat;
      const std::string name = (gpu ? "gpu" : "seed") + std::to_string(seed);
      if (options_.verbose) std::fprintf(stderr, "%s\n", name.c_str());
      for (const Failure& found : check_seed(seed, gpu, options_.programs, totals_)) {
        const Failure failure = options_.shrinks && !found.is_padded ? shrink(found) : found;
        std::printf(
            "%s: %s\n  %s\n%s\n", name.c_str(), failure.text.c_str(),
            failure.way.commands(name + (failure.way.opset > 0 ? ".onnx" : ".json")).c_str(),
            failure.network.text().c_str());
        if (!options_.keep.empty()) write_failure(failure, options_.keep, name);
        std::fflush(stdout);
      }
    }
  }

  const Options& options_;
  Totals totals_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"draws small networks, runs each in two ways and compares with exact arithmetic"};
  app.add_option("--start", options.start, "the first seed");
  app.add_option("--seeds", options.seeds, "how many");
  app.add_option("--gpu-seeds", options.gpu_seeds, "how many on the device gpu");
  app.add_option("--repeat", options.repeat, "runs of each seed, which finds races");
  app.add_flag("!--no-shrink", options.shrinks, "print what fails as it was drawn");
  app.add_flag("-v", options.verbose, "print each seed first");
  app.add_option("--keep", options.keep, "folder for documents of failures");
  app.add_option("--programs", options.programs,
                 "folder of the programs, which run every hundredth seed");
  app.add_flag("--differences", options.differences, "list what pages state and nothing compares");
  app.add_option("documents", options.documents, "documents that failed once, to run first");
  CLI11_PARSE(app, argc, argv);
  for (const StatedDifference& stated : stated_differences()) {
    if (!options.differences) break;
    std::printf("%s %s\n", std::string(stated.page).c_str(), std::string(stated.sentence).c_str());
  }
  if (options.differences) return 0;
  try {
    return Generator(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npu_network_generator: %s\n", error.what());
    return 70;
  }
}
