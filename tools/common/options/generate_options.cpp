// SPDX-License-Identifier: Apache-2.0
// The options of npu-run's token loop.
#include "options/generate_options.hpp"

#include "io.hpp"
#include "options/validators.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

constexpr std::int64_t kMostIds = std::int64_t{1} << 40;
constexpr std::int64_t kLargestId = (std::int64_t{1} << 31) - 1;

void add_sampler_options(CLI::App& app, SamplerOptions& options, CLI::Option* generate) {
  app.add_option("--temperature", options.temperature,
                 "with --generate: draw ids by their probability at temperature X; 0 takes the "
                 "most likely one")
      ->type_name("X")
      ->check(temperature())
      ->capture_default_str()
      ->needs(generate);
  app.add_option("--top-k", options.top_k,
                 "with --temperature: draw from the K most likely ids; 0 means all")
      ->type_name("K")
      ->check(in_range(0, kLargestId))
      ->capture_default_str()
      ->needs(generate);
  app.add_option("--top-p", options.top_p,
                 "with --temperature: draw from the fewest ids with a probability of P together")
      ->type_name("P")
      ->check(share())
      ->capture_default_str()
      ->needs(generate);
  app.add_option("--seed", options.seed, "with --temperature: of the random numbers")
      ->type_name("SEED")
      ->check(seed())
      ->capture_default_str()
      ->needs(generate);
}

}  // namespace

void add_generate_options(Tool& tool, TokenLoopOptions& options) {
  CLI::App& app = tool.app();
  CLI::Option* generate =
      app.add_option_function<std::int64_t>(
             "--generate",
             [&options](std::int64_t count) {
               options.generate.count = count;
               options.wants_ids = true;
             },
             "GRAPH is a decoder: write up to N ids behind each request of --tokens")
          ->type_name("N")
          ->check(in_range(1, kMostIds));
  app.add_option("--tokens", options.tokens,
                 "with --generate: requests, each a line of decimal ids; '-' is stdin; with an "
                 "encoder the ids that the decoder begins with [what the model says]")
      ->type_name("FILE|-")
      ->check(not_empty())
      ->needs(generate);
  app.add_option("--tokens-out", options.tokens_out,
                 "with --generate: write the new ids, a line a request; '-' is stdout, id by id")
      ->type_name("FILE|-")
      ->check(not_empty())
      ->needs(generate);
  add_sampler_options(app, options.generate.sampler, generate);
  app.add_option_function<std::string>(
         "--stop",
         [&options](const std::string& text) {
           if (const auto ids = integer_list(text)) options.generate.stop = *ids;
         },
         "with --generate: end a line behind one of these ids")
      ->type_name("ID,...")
      ->check(id_list())
      ->needs(generate);
  app.add_flag("--keep", options.generate.keep,
               "with --generate: a request goes on behind the one before, as in a chat")
      ->needs(generate);
  app.add_option("--score", options.score,
                 "GRAPH is a decoder: report the negative log-likelihood of the ids of FILE, lines "
                 "as of --tokens")
      ->type_name("FILE|-")
      ->check(not_empty())
      ->excludes(generate);
  app.add_option(
         "--source", options.source,
         "of a model with an encoder: what it reads, a line of ids for each request; '-' is "
         "stdin; tensors, such as features of a sound, by --inputs NAME=FILE")
      ->type_name("FILE|-")
      ->check(not_empty());
}

}  // namespace npu::cli
