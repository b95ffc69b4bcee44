// SPDX-License-Identifier: Apache-2.0
// The section npu.symbols of a template: names of sizes, their ranges and where their values come
// from. Ranges may mention other symbols, so they are put in an order first; a circle is a fault.
// O(symbols x mentions).
#include "ir/size_symbols.hpp"

#include <algorithm>
#include <limits>

#include "npu/support/ids.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostSymbols = 64;
constexpr std::int64_t kAboveLeast = 1000;  // that samples go, where no largest value is stated
constexpr int kBetween = 14;

std::string quoted_symbol(std::string_view name) { return "'" + short_text(name) + "'"; }

/// Reads the members of one symbol.
class SymbolReader {
 public:
  SymbolReader(std::string file, std::string pointer, Diagnostics& diagnostics)
      : file_(std::move(file)), pointer_(std::move(pointer)), diagnostics_(diagnostics) {}

  SizeSymbol read(std::string_view name, const Json& json) {
    SizeSymbol symbol;
    symbol.name = name;
    if (!is_size_symbol(name)) {
      error("", quoted_symbol(name) +
                    " is no name for a size: expected a letter or '_', then letters, digits, '_' "
                    "and '.'");
    }
    if (!json.is_object()) {
      error("", "expected an object, found " + std::string(json_type_name(json)));
      return symbol;
    }
    if (const Json* min = find_member(json, "min")) symbol.min = end_of_range(*min, "min");
    if (const Json* max = find_member(json, "max"); max != nullptr && !max->is_null()) {
      symbol.max = end_of_range(*max, "max");
    }
    if (const Json* multiple = find_member(json, "multiple_of")) {
      const auto value = json_integer(multiple);
      if (!value || *value < 1) {
        error("/multiple_of",
              "expected an integer of at least 1, found " + value_or_type(multiple));
      } else {
        symbol.multiple_of = *value;
      }
    }
    if (const Json* of = find_member(json, "of")) read_origins(*of, symbol);
    return symbol;
  }

 private:
  void error(const std::string& below, std::string text) {
    diagnostics_.error({.file = file_, .pointer = pointer_ + below}, std::move(text));
  }

  SizeExpression end_of_range(const Json& json, const std::string& key) {
    try {
      if (json.is_string()) return SizeExpression::parse(json.get_ref<const std::string&>());
      if (const auto value = json_integer(&json)) return *value;
      error("/" + key, "expected an integer or a size, found " + value_or_type(&json));
    } catch (const Error& fault) {
      error("/" + key, fault.message());
    }
    return 1;
  }

  void read_origins(const Json& of, SizeSymbol& symbol) {
    if (!of.is_array()) {
      return error("/of", "expected an array, found " + std::string(json_type_name(of)));
    }
    for (std::size_t i = 0; i < of.size(); ++i) {
      const auto dimension =
          of[i].is_array() && of[i].size() == 2 ? json_integer(&of[i][1]) : std::nullopt;
      if (!dimension || *dimension < 0 || !of[i][0].is_string()) {
        error("/of/" + std::to_string(i), "expected [\"INPUT\", DIMENSION]");
        continue;
      }
      symbol.of.emplace_back(of[i][0].get<std::string>(), *dimension);
    }
  }

  std::string file_;
  std::string pointer_;
  Diagnostics& diagnostics_;
};

std::int64_t up_to_multiple(std::int64_t value, std::int64_t multiple) {
  const std::int64_t rest = ((value % multiple) + multiple) % multiple;
  std::int64_t raised = 0;
  if (rest == 0 || __builtin_add_overflow(value, multiple - rest, &raised)) return value;
  return raised;
}

// Spreads the numbers of samples over ranges, the same in every run.
std::uint64_t mixed(std::uint64_t state) {
  state += 0x9E3779B97F4A7C15ULL;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31);
}

}  // namespace

Json size_json(const SizeExpression& size) {
  const auto number = size.constant();
  return number ? Json(*number) : Json(size.text());
}

bool SizeSymbols::are_in(const Json& document) {
  const Json* npu = find_member(document, "npu");
  const Json* symbols = npu != nullptr ? find_member(*npu, "symbols") : nullptr;
  return symbols != nullptr && !(symbols->is_structured() && symbols->empty());
}

SizeSymbols SizeSymbols::of(std::vector<SizeSymbol> list) {
  SizeSymbols symbols;
  symbols.list_ = std::move(list);
  Diagnostics none;
  symbols.order_by_ranges("", none);
  return symbols;
}

SizeSymbols SizeSymbols::read(const Json& json, const std::string& file, Diagnostics& diagnostics) {
  const std::string pointer = "/npu/symbols";
  SizeSymbols symbols;
  if (!json.is_object() || json.size() > kMostSymbols) {
    diagnostics.error({.file = file, .pointer = pointer},
                      json.is_object()
                          ? std::to_string(json.size()) + " sizes, expected at most " +
                                std::to_string(kMostSymbols)
                          : "expected an object, found " + std::string(json_type_name(json)));
    return symbols;
  }
  const std::size_t before = diagnostics.error_count();
  for (const auto& [name, entry] : json.get_ref<const Json::object_t&>()) {
    symbols.list_.push_back(
        SymbolReader(file, pointer + "/" + pointer_token(name), diagnostics).read(name, entry));
  }
  for (const SizeSymbol& symbol : symbols.list_) {
    std::set<std::string> mentioned = symbol.min.symbols();
    if (symbol.max) mentioned.merge(symbol.max->symbols());
    for (const std::string& other : mentioned) {
      if (symbols.find(other) != nullptr) continue;
      diagnostics.error({.file = file, .pointer = pointer + "/" + pointer_token(symbol.name)},
                        "the range of " + quoted_symbol(symbol.name) + " mentions " +
                            quoted_symbol(other) + ", expected one of " + symbols.names());
    }
  }
  if (diagnostics.error_count() > before || !symbols.order_by_ranges(file, diagnostics)) {
    return symbols;
  }
  if (symbols.samples().empty()) {
    diagnostics.error(
        {.file = file, .pointer = pointer}, "no values are within all ranges: " + [&] {
          std::string text;
          for (const SizeSymbol& symbol : symbols.list_) {
            text += (text.empty() ? "" : ", ") + quoted_symbol(symbol.name) + " in " +
                    range_text(symbol);
          }
          return text;
        }());
  }
  return symbols;
}

// Depth first; false, with a message, if a range depends on itself.
bool SizeSymbols::order_by_ranges(const std::string& file, Diagnostics& diagnostics) {
  order_.clear();
  std::vector<bool> done(list_.size(), false);
  // In each round those go that depend on nothing that is left, at most kMostSymbols rounds.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (done[i]) continue;
      std::set<std::string> mentioned = list_[i].min.symbols();
      if (list_[i].max) mentioned.merge(list_[i].max->symbols());
      const bool is_free = std::all_of(mentioned.begin(), mentioned.end(), [&](const auto& name) {
        const SizeSymbol* other = find(name);
        return other != nullptr && done[index_of(other - list_.data())];
      });
      if (!is_free) continue;
      done[i] = moved = true;
      order_.push_back(i);
    }
  }
  if (order_.size() == list_.size()) return true;
  std::string circle;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (!done[i]) circle += (circle.empty() ? "" : ", ") + quoted_symbol(list_[i].name);
  }
  diagnostics.error({.file = file, .pointer = "/npu/symbols"},
                    "the ranges of " + circle + " depend on each other in a circle");
  return false;
}

const SizeSymbol* SizeSymbols::find(std::string_view name) const noexcept {
  const auto found = std::find_if(list_.begin(), list_.end(),
                                  [&](const SizeSymbol& symbol) { return symbol.name == name; });
  return found != list_.end() ? &*found : nullptr;
}

std::string SizeSymbols::names() const {
  std::string text;
  for (const SizeSymbol& symbol : list_) text += (text.empty() ? "" : ", ") + symbol.name;
  return short_text(text);
}

Json SizeSymbols::to_json() const {
  Json json = Json::object();
  for (const SizeSymbol& symbol : list_) {
    Json entry = Json::object();
    entry["min"] = size_json(symbol.min);
    if (symbol.max) entry["max"] = size_json(*symbol.max);
    if (symbol.multiple_of != 1) entry["multiple_of"] = symbol.multiple_of;
    Json of = Json::array();
    for (const auto& [input, dimension] : symbol.of) of.push_back({input, dimension});
    if (!of.empty()) entry["of"] = std::move(of);
    json[symbol.name] = std::move(entry);
  }
  return json;
}

SizeSymbols::Limits SizeSymbols::limits(const SizeSymbol& symbol,
                                        const SizeBindings& values) const {
  Limits limits{.min = symbol.min.evaluate(values), .max = std::nullopt};
  if (symbol.max) limits.max = symbol.max->evaluate(values);
  return limits;
}

std::string SizeSymbols::range_text(const SizeSymbol& symbol) {
  const std::string multiple =
      symbol.multiple_of == 1 ? "" : ", a multiple of " + std::to_string(symbol.multiple_of);
  if (!symbol.max) return "at least " + symbol.min.text() + multiple;
  return symbol.min.text() + ".." + symbol.max->text() + multiple;
}

std::optional<std::string> SizeSymbols::fault(const SizeBindings& values) const {
  for (const SizeSymbol& symbol : list_) {
    const auto found = values.find(symbol.name);
    if (found == values.end()) return "size " + quoted_symbol(symbol.name) + " has no value";
    const std::int64_t value = found->second;
    try {
      const Limits range = limits(symbol, values);
      if (value >= 0 && value >= range.min && (!range.max || value <= *range.max) &&
          value % symbol.multiple_of == 0) {
        continue;
      }
    } catch (const Error& error) {
      return "the range of size " + quoted_symbol(symbol.name) + ": " + error.message();
    }
    return "size " + quoted_symbol(symbol.name) + " is " + std::to_string(value) + ", expected " +
           range_text(symbol);
  }
  return std::nullopt;
}

std::string SizeSymbols::unbound_text(const SizeBindings& values) const {
  std::vector<UnboundSize> unbound;
  for (const SizeSymbol& symbol : list_) {
    if (values.contains(symbol.name)) continue;
    std::string what = range_text(symbol);
    for (const auto& [input, dimension] : symbol.of) {
      what += ", dimension " + std::to_string(dimension) + " of input " + quoted_symbol(input);
      break;  // one says it
    }
    unbound.push_back({symbol.name, std::move(what)});
  }
  return unbound_sizes_text(unbound);
}

std::vector<SizeBindings> SizeSymbols::samples() const {
  std::vector<SizeBindings> samples;
  for (int sample = 0; sample < kBetween + 2; ++sample) {
    SizeBindings values;
    bool fits = true;
    for (const std::size_t i : order_) {
      const SizeSymbol& symbol = list_[i];
      std::int64_t least = 0;
      std::int64_t largest = 0;
      try {
        const Limits range = limits(symbol, values);
        least = up_to_multiple(std::max<std::int64_t>(range.min, 0), symbol.multiple_of);
        std::int64_t reach = 0;
        if (__builtin_mul_overflow(kAboveLeast, symbol.multiple_of, &reach) ||
            __builtin_add_overflow(least, reach, &reach)) {
          reach = least;
        }
        largest = range.max ? *range.max : reach;
      } catch (const Error&) {
        largest = -1;
      }
      if (least > largest) {
        fits = false;
        break;
      }
      const std::int64_t steps = (largest - least) / symbol.multiple_of;
      // The least ones and the largest one first, then some between.
      std::int64_t step = sample;
      if (sample == 1) step = steps;
      if (sample > 4) {
        step =
            static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(sample) * kMostSymbols + i) %
                                      (static_cast<std::uint64_t>(steps) + 1));
      }
      values[symbol.name] = least + std::min(step, steps) * symbol.multiple_of;
    }
    if (fits) samples.push_back(std::move(values));
  }
  return samples;
}

std::string unbound_sizes_text(const std::vector<UnboundSize>& sizes) {
  if (sizes.empty()) return {};
  std::string list;
  for (const UnboundSize& size : sizes) {
    list += (list.empty() ? "'" : ", '") + size.name + "' (" + size.what + ")";
  }
  if (sizes.size() == 1)
    return "size " + list + " has no value; give it one with --bind " + sizes.front().name + "=N";
  return std::to_string(sizes.size()) +
         " sizes have no value; give each one with --bind NAME=N: " + list;
}

std::string bindings_text(const SizeBindings& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(value);
  }
  return text;
}

}  // namespace npu
