// SPDX-License-Identifier: Apache-2.0
// Makes a decoder with caches that grow one with states of a fixed capacity.
//
// Input:  a template in which outputs are inputs with new rows behind them.
// Output: a document in which these are states (adopter.cpp).
// Stacks of caches are taken apart, turned ones are straightened, equations become products, ids of
// 32 bits get 64, sizes of batches become 1, the capacity is chosen, and detours are taken out
// first; what an encoder's source gives is bound before and becomes states behind. O(nodes).
#include "passes/states/adopt_caches.hpp"

#include <string>
#include <utility>
#include <vector>

#include "passes/states/adopter.hpp"
#include "passes/states/decoder_inputs.hpp"
#include "passes/states/plain/plain_decoder.hpp"
#include "passes/states/plain/straighten_caches.hpp"
#include "passes/states/plain/unstack_caches.hpp"
#include "passes/states/plain/widen_inputs.hpp"
#include "passes/states/plain/write_products.hpp"
#include "passes/states/source_inputs.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace states {
namespace {

/// With where the sizes that are left stand; checked like any other template.
std::optional<Json> finished(Json document, const std::string& file, Diagnostics& diagnostics) {
  if (!SizeSymbols::are_in(document)) return document;
  const Template result = Template::read(document, file, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  set_member(*find_member(document, "npu"), "symbols", result.symbols().to_json());
  return document;
}

/// Whether the template holds for a past of no row up to one less than the capacity.
bool holds_for_past(const Template& model, const CachePairs& caches, std::int64_t capacity,
                    Diagnostics& diagnostics) {
  for (const SizeSymbol& symbol : model.symbols().list()) {
    if (symbol.name != caches.past_symbol) continue;
    const auto refuse = [&](const std::string& text) {
      diagnostics.error({.file = model.file()}, "size '" + symbol.name + "' is " + text);
      return false;
    };
    const auto least = symbol.min.constant();
    if (!least || *least > 1) {
      return refuse("at least " + symbol.min.text() + ", but a decoder begins without a past");
    }
    if (symbol.multiple_of != 1) {
      return refuse("a multiple of " + std::to_string(symbol.multiple_of) +
                    ", but a past grows by any number of rows");
    }
    const auto most = symbol.max ? symbol.max->constant() : std::nullopt;
    if (most && *most + 1 < capacity) {
      return refuse("at most " + std::to_string(*most) + "; expected --capacity of at most " +
                    std::to_string(*most + 1));
    }
  }
  return true;
}

/// All that is about the caches that a step writes.
std::optional<Json> adopt_written(const Template& model, const AdoptOptions& options,
                                  Diagnostics& diagnostics) {
  const std::vector<State> others =
      named_states(model.document(), options.states, model.file(), diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  std::vector<std::string> reasons;
  auto plain = unstack_caches(model, others, reasons);
  if (!plain) plain = straighten_caches(model);
  if (!plain) plain = write_products(model);
  if (!plain) plain = widened_inputs(model, options.names);
  if (plain) {
    const Template caches = Template::read(*std::move(plain), model.file(), diagnostics);
    if (diagnostics.has_errors()) return std::nullopt;
    return adopt_written(caches, options, diagnostics);
  }
  auto caches = find_cache_pairs(model, others, diagnostics);
  if (!caches) {
    for (const std::string& reason : reasons) diagnostics.error({.file = model.file()}, reason);
    return std::nullopt;
  }
  if (const std::vector<std::string> batch = batch_symbols(model, *caches); !batch.empty()) {
    SizeBindings one;
    for (const std::string& name : batch) one.emplace(name, 1);
    const Template single =
        Template::read(narrowed_document(model, one), model.file(), diagnostics);
    if (diagnostics.has_errors()) return std::nullopt;
    return adopt_written(single, options, diagnostics);
  }
  std::int64_t capacity = options.capacity;
  if (caches->is_fixed) {
    const std::int64_t rows = *caches->total.constant();
    if (capacity != 0 && capacity != rows) {
      diagnostics.error({.file = model.file()}, "its caches have " + std::to_string(rows) +
                                                    " rows, whatever --capacity " +
                                                    "says; leave it out");
      return std::nullopt;
    }
    capacity = rows;
  } else if (capacity == 0 && options.longest != 0) {
    capacity = options.longest;
  } else if (capacity == 0) {
    diagnostics.error({.file = model.file()},
                      "its caches grow: say with --capacity how many rows they are to have");
    return std::nullopt;
  }
  if (!caches->is_fixed && !holds_for_past(model, *caches, capacity, diagnostics)) {
    return std::nullopt;
  }
  const PastModel past(model, *caches, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  const auto inputs = find_decoder_inputs(past, options.names, diagnostics);
  if (!inputs) return std::nullopt;
  if (auto shorter = plain_decoder(past, *inputs, capacity)) {
    const Template rest = Template::read(*std::move(shorter), model.file(), diagnostics);
    if (diagnostics.has_errors()) return std::nullopt;
    return adopt_written(rest, options, diagnostics);
  }
  auto document = adopted_document(past, *inputs, capacity, others, diagnostics);
  if (!document) return std::nullopt;
  return finished(*std::move(document), model.file(), diagnostics);
}

}  // namespace
}  // namespace states

std::optional<Json> adopt_caches(const Template& model, const AdoptOptions& options,
                                 Diagnostics& diagnostics) {
  const std::vector<std::string> sources = states::source_inputs(model.document());
  if (sources.empty()) {
    const bool is_asked = options.source_rows != 0 || !options.start.empty();
    if (!is_asked) return states::adopt_written(model, options, diagnostics);
    diagnostics.error({.file = model.file()},
                      "no input comes of an encoder's source, whatever --source-rows or --start "
                      "says; leave it out");
    return std::nullopt;
  }
  const auto bound = states::bind_source(model, sources, options.source_rows, diagnostics);
  if (!bound) return std::nullopt;
  auto document = states::adopt_written(*bound, options, diagnostics);
  if (!document) return std::nullopt;
  states::add_source_states(*document, sources);
  if (options.start.empty()) return document;
  Json* roles = find_member(*find_member(*document, "npu"), "generate");
  if (roles == nullptr) {
    diagnostics.error({.file = model.file()},
                      "its tokens and logits are not known, so there are no ids to --start with");
    return std::nullopt;
  }
  set_member(*roles, "start", options.start);
  return document;
}

}  // namespace npu
