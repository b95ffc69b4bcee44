// SPDX-License-Identifier: Apache-2.0
// Which entry of a bundle a run takes. Sizes come from the shapes of the inputs that are given: a
// dimension that is a symbol of the template, or a multiple of one plus a number, has its value.
// What inputs do not say is what the chosen entry was compiled for. O(entries x symbols).
#include "runtime/entries/choose_entry.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// The value of the only symbol of a size that is a multiple of it plus a number.
std::optional<std::int64_t> solved_size(const SizeExpression& size, const std::string& symbol,
                                        std::int64_t rows) {
  const std::int64_t factor = size.linear_factor(symbol);
  if (factor == 0) return std::nullopt;
  const auto rest = (size - SizeExpression(factor) * SizeExpression::symbol(symbol)).constant();
  std::int64_t difference = 0;
  if (!rest || __builtin_sub_overflow(rows, *rest, &difference)) return std::nullopt;
  if (difference % factor != 0 || difference / factor < 0) return std::nullopt;
  return difference / factor;
}

class SizeReader {
 public:
  SizeReader(const Template& model, AskedSizes& asked) : model_(model), asked_(asked) {}

  /// First what is a symbol itself, in all inputs, then what is made of one.
  void read(const std::vector<std::pair<std::string, Shape>>& shapes) {
    for (const bool is_itself : {true, false}) {
      for (const auto& [input, shape] : shapes) read(input, shape, is_itself);
    }
  }

 private:
  void read(const std::string& input, const Shape& shape, bool is_itself) {
    const SizeShape* sizes = model_.shape(input);
    // What does not have the model's dimensions is told where inputs are read.
    if (sizes == nullptr || sizes->size() != shape.size()) return;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const SizeExpression& size = (*sizes)[d];
      const std::set<std::string> symbols = size.symbols();
      if (symbols.size() != 1 || (size.text() == *symbols.begin()) != is_itself) continue;
      const auto value =
          is_itself ? std::optional(shape[d]) : solved_size(size, *symbols.begin(), shape[d]);
      if (value) note(*symbols.begin(), *value, input);
    }
  }

  void note(const std::string& symbol, std::int64_t value, const std::string& input) {
    const auto [known, is_new] = asked_.try_emplace(symbol);
    if (is_new) {
      known->second = {value, "input '" + printable_text(input) + "' has " + std::to_string(value) +
                                  " rows along " + symbol};
      first_.emplace(symbol, input);
      return;
    }
    if (known->second.value == value) return;
    const auto first = first_.find(symbol);
    if (first == first_.end()) {
      throw Error(ErrorCode::kInvalidGraph, known->second.from + ", but input '" +
                                                printable_text(input) + "' has " +
                                                std::to_string(value));
    }
    throw Error(ErrorCode::kInvalidGraph, "inputs '" + printable_text(first->second) + "' and '" +
                                              printable_text(input) + "' disagree about " + symbol +
                                              ": " + std::to_string(known->second.value) + " and " +
                                              std::to_string(value));
  }

  const Template& model_;
  AskedSizes& asked_;
  std::map<std::string, std::string, std::less<>> first_;  // input that said it, by symbol
};

/// "S=32,64,700": the capacities that there are, and one more.
std::string buckets_with(const std::vector<BundleEntry>& entries, const std::string& symbol,
                         std::int64_t value) {
  std::set<std::int64_t> values{value};
  for (const BundleEntry& entry : entries) values.insert(entry.bound.find(symbol)->second);
  std::string text;
  for (const std::int64_t each : values) {
    text += (text.empty() ? symbol + "=" : ",") + std::to_string(each);
  }
  return text;
}

[[noreturn]] void refuse_sizes(const std::vector<BundleEntry>& entries, const AskedSizes& asked) {
  for (const auto& [symbol, size] : asked) {
    std::int64_t largest = 0;
    for (const BundleEntry& entry : entries) {
      largest = std::max(largest, entry.bound.find(symbol)->second);
    }
    if (size.value <= largest) continue;
    throw Error(ErrorCode::kInfeasible, size.from + "; the largest bucket is " +
                                            std::to_string(largest) + ": compile with --buckets " +
                                            buckets_with(entries, symbol, size.value));
  }
  std::string wanted;
  for (const auto& [symbol, size] : asked) {
    wanted += (wanted.empty() ? "" : ",") + symbol + "=" + std::to_string(size.value);
  }
  throw Error(ErrorCode::kInfeasible,
              "no bucket has room for all of " + wanted + ": compile with --bucket " + wanted);
}

void check_entries(const std::vector<BundleEntry>& entries, const Template& model) {
  for (const BundleEntry& entry : entries) {
    std::optional<std::string> fault;
    if (!model.symbols().unbound_text(entry.bound).empty() ||
        entry.bound.size() != model.symbols().list().size()) {
      fault = "its sizes are not those of the template: " + model.symbols().names();
    } else {
      fault = model.symbols().fault(entry.bound);
    }
    if (!fault) continue;
    throw Error(ErrorCode::kParse, "entry '" + printable_text(entry.name) + "': " + *fault,
                {.file = model.file()});
  }
}

}  // namespace

AskedSizes asked_sizes(const Template& model,
                       const std::vector<std::pair<std::string, Shape>>& shapes,
                       const SizeBindings& bound) {
  AskedSizes asked;
  for (const auto& [symbol, value] : bound) {
    const std::string text = "--bind " + symbol + "=" + std::to_string(value);
    if (model.symbols().find(symbol) == nullptr) {
      throw Error(ErrorCode::kUsage, text + ": " + model.file() + " has no size '" +
                                         short_text(symbol) + "'; it has " +
                                         model.symbols().names());
    }
    asked.emplace(symbol, AskedSize{value, text});
  }
  SizeReader(model, asked).read(shapes);
  return asked;
}

ChosenEntry choose_entry(const std::vector<BundleEntry>& entries, const Template& model,
                         const AskedSizes& asked) {
  check_entries(entries, model);
  if (std::all_of(entries.begin(), entries.end(),
                  [](const BundleEntry& entry) { return entry.has_last_row; })) {
    throw Error(ErrorCode::kUnsupported,
                "all entries give the logits of the last token alone: use --generate",
                {.file = model.file()});
  }
  const auto has_room = [&](const BundleEntry& entry) {
    return std::all_of(asked.begin(), asked.end(), [&](const auto& size) {
      return size.second.value <= entry.bound.find(size.first)->second;
    });
  };
  const auto cost = [&](const BundleEntry& entry) {
    double volume = 1;
    for (const auto& [symbol, value] : entry.bound) volume *= static_cast<double>(value);
    return std::tuple(entry.predicted_us, volume);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].has_last_row || !has_room(entries[i])) continue;
    if (!best || cost(entries[i]) < cost(entries[*best])) best = i;
  }
  if (!best) refuse_sizes(entries, asked);
  ChosenEntry chosen{.index = *best, .valid = entries[*best].bound};
  for (const auto& [symbol, size] : asked) chosen.valid[symbol] = size.value;
  if (const auto fault = model.symbols().fault(chosen.valid)) {
    std::string from;
    for (const auto& [symbol, size] : asked) from += (from.empty() ? "" : ", ") + size.from;
    throw Error(ErrorCode::kInfeasible, from + ": " + *fault);
  }
  return chosen;
}

double padded_share(const std::vector<Shape>& valid, const std::vector<Shape>& capacity) {
  double elements = 0;
  double room = 0;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    double own = 1;
    double of_capacity = 1;
    for (const std::int64_t rows : valid[i]) own *= static_cast<double>(rows);
    for (const std::int64_t rows : capacity[i]) of_capacity *= static_cast<double>(rows);
    elements += own;
    room += of_capacity;
  }
  return room > 0 ? 1 - elements / room : 0;
}

}  // namespace npu
