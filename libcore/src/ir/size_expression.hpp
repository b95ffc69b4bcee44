// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

class SizeExpression;

/// A value for each symbol.
using SizeBindings = std::map<std::string, std::int64_t, std::less<>>;
/// What stands for each symbol.
using SizeSubstitution = std::map<std::string, SizeExpression, std::less<>>;

/// All integers from min to max. The ends of int64 stand for "no bound".
struct SizeRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool operator==(const SizeRange&) const = default;
};
using SizeRanges = std::map<std::string, SizeRange, std::less<>>;

/// Makes something of an expression, part by part; what it makes is called by numbers.
class SizeVisitor {
 public:
  virtual ~SizeVisitor() = default;
  virtual std::int32_t number(std::int64_t value) = 0;
  virtual std::int32_t symbol(const std::string& name) = 0;
  virtual std::int32_t add(std::int32_t a, std::int32_t b) = 0;
  virtual std::int32_t multiply(std::int32_t a, std::int32_t b) = 0;
  virtual std::int32_t floor_divide(std::int32_t a, std::int64_t divisor) = 0;
  virtual std::int32_t modulo(std::int32_t a, std::int64_t divisor) = 0;
  virtual std::int32_t min(std::int32_t a, std::int32_t b) = 0;
  virtual std::int32_t max(std::int32_t a, std::int32_t b) = 0;
};

/// An integer expression over named symbols, as npu-ir(5) defines it: + - *, floor division and
/// remainder by a positive integer (`-7 // 2` is -4, `-7 % 2` is 1), min and max.
///
/// It is kept in one canonical form, a sum of products, so that expressions which follow from each
/// other by the rules of sums, products and nested divisions are equal: `(S - 1) // 2 + 1` is
/// `(S + 1) // 2`. Different forms may still have equal values.
///
/// Every operation throws Error kInvalidGraph where the magnitude of a number would not fit in 63
/// bits, or the expression would exceed the limits below; so parse(text()) never fails.
class SizeExpression {
 public:
  static constexpr std::size_t kMostText = 65536;  ///< bytes that parse takes
  static constexpr std::size_t kMostName = 80;     ///< bytes of a symbol
  static constexpr std::size_t kMostLeaves = 64;   ///< mentions of symbols in canonical form
  static constexpr int kDeepest = 16;              ///< divisions, min and max inside of each other

  SizeExpression() = default;
  SizeExpression(std::int64_t value);  // NOLINT(google-explicit-constructor)
  /// Throws Error kInvalidGraph for a name that is none; see is_size_symbol.
  static SizeExpression symbol(std::string_view name);
  /// Throws Error kInvalidGraph with the column of what is not understood.
  static SizeExpression parse(std::string_view text);

  SizeExpression operator-() const { return SizeExpression(0) - *this; }
  friend SizeExpression operator+(const SizeExpression& a, const SizeExpression& b);
  friend SizeExpression operator-(const SizeExpression& a, const SizeExpression& b);
  friend SizeExpression operator*(const SizeExpression& a, const SizeExpression& b);
  /// The quotient rounded down, and what it leaves, from 0 to divisor - 1. Throw for a divisor
  /// below 1.
  SizeExpression floor_divide(std::int64_t divisor) const;
  SizeExpression modulo(std::int64_t divisor) const;
  /// Of at least one expression.
  static SizeExpression min(std::span<const SizeExpression> operands);
  static SizeExpression max(std::span<const SizeExpression> operands);

  /// The canonical text, the same for equal expressions: "2*S + 1", "(S + 1) // 2".
  std::string text() const;
  bool operator==(const SizeExpression& other) const;

  bool is_constant() const noexcept { return terms_.empty(); }
  /// The number that it is; nothing if it has symbols.
  std::optional<std::int64_t> constant() const noexcept;
  std::set<std::string> symbols() const;
  /// The factor a if it is a*name + rest, with a rest that does not have the symbol; 0 otherwise.
  std::int64_t linear_factor(std::string_view name) const;

  /// Throws Error kInvalidGraph if a symbol has no value, or if a step leaves 63 bits.
  std::int64_t evaluate(const SizeBindings& values) const;
  /// Calls the visitor for each part, and returns what it calls the whole.
  std::int32_t visit(SizeVisitor& visitor) const;
  /// Symbols that `values` does not have stay.
  SizeExpression substitute(const SizeSubstitution& values) const;
  /// Holds all values that it has while each symbol is in its range, and may hold more: mentions of
  /// a symbol count as independent. A symbol without a range may have any value.
  SizeRange bounds(const SizeRanges& ranges) const;

 private:
  struct Atom;
  using Atoms = std::vector<std::shared_ptr<const Atom>>;
  struct Term {
    Term(std::int64_t factor_, Atoms atoms_);
    std::int64_t factor;
    Atoms atoms;      // at least one, in the order of their texts
    std::string key;  // the product of their texts
  };
  enum class AtomKind : std::uint8_t { kSymbol, kFloorDivide, kModulo, kMin, kMax };

  static SizeExpression of_atom(Atom atom);
  static SizeExpression extreme(AtomKind kind, std::span<const SizeExpression> operands);
  void add(std::int64_t factor, const SizeExpression& other);
  void add_term(Term term);
  void check_limits() const;
  std::size_t leaves() const noexcept;
  int depth() const noexcept;

  std::vector<Term> terms_;  // factors that are not 0; by falling degree, then by text
  std::int64_t constant_ = 0;
};

/// Whether a name can be a symbol: letters, digits, '_' and '.', begins with a letter or '_', at
/// most SizeExpression::kMostName bytes, and no word that means something else: min, max, inf,
/// infinity, nan, none, true, false in any case.
bool is_size_symbol(std::string_view name) noexcept;

}  // namespace npu
