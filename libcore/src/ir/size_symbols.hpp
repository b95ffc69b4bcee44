// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/size_expression.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A size as documents have it: a number, or the text of an expression.
Json size_json(const SizeExpression& size);

/// A named size of a template.
struct SizeSymbol {
  std::string name;
  SizeExpression min = 1;             ///< may be of other symbols, as max
  std::optional<SizeExpression> max;  ///< nothing: no largest value is stated
  std::int64_t multiple_of = 1;
  /// Graph inputs and their dimensions that give the symbol a value.
  std::vector<std::pair<std::string, std::int64_t>> of;
};

/// `npu.symbols` of a document (npu-ir(5)): the sizes that a template leaves open.
class SizeSymbols {
 public:
  /// Whether a document has sizes without values: an `npu.symbols` that is not empty.
  static bool are_in(const Json& document);
  /// Reads `npu.symbols`; faults are added to `diagnostics`, those of ranges among them: no value
  /// in a range, or ranges that depend on each other in a circle.
  static SizeSymbols read(const Json& symbols, const std::string& file, Diagnostics& diagnostics);
  static SizeSymbols of(std::vector<SizeSymbol> list);

  const std::vector<SizeSymbol>& list() const noexcept { return list_; }
  const SizeSymbol* find(std::string_view name) const noexcept;
  /// "S, T": all names, in the document's order.
  std::string names() const;
  Json to_json() const;

  /// Why `values`, which has one for each symbol, does not suit; nothing if it does.
  std::optional<std::string> fault(const SizeBindings& values) const;
  /// "size 'S' has no value; give it one with --bind S=N (1..512, dimension 1 of input 'ids')", or
  /// the same for all that `values` lacks; empty if it lacks none.
  std::string unbound_text(const SizeBindings& values) const;
  /// Values that the ranges allow: all at their least, all at their largest, and some between. A
  /// symbol without a largest value goes up to 1,000 above its least.
  std::vector<SizeBindings> samples() const;
  /// "1..512, a multiple of 8".
  static std::string range_text(const SizeSymbol& symbol);

 private:
  struct Limits {
    std::int64_t min = 0;
    std::optional<std::int64_t> max;
  };
  Limits limits(const SizeSymbol& symbol, const SizeBindings& values) const;
  bool order_by_ranges(const std::string& file, Diagnostics& diagnostics);

  std::vector<SizeSymbol> list_;
  std::vector<std::size_t> order_;  // each after those that its range mentions
};

/// Text that follows a list of symbols and their origins: "(1..512, dimension 1 of input 'ids')".
struct UnboundSize {
  std::string name;
  std::string what;
};
/// One message for all sizes that have no value; empty if there are none.
std::string unbound_sizes_text(const std::vector<UnboundSize>& sizes);

/// "S=3, T=4".
std::string bindings_text(const SizeBindings& values);

}  // namespace npu
