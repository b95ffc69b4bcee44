// SPDX-License-Identifier: Apache-2.0
// Sizes that vary: the algebra of integer expressions over symbols.
//
// An expression is a sum of terms, a term a factor times atoms, an atom a symbol or a division,
// remainder, min or max of expressions. Sums are merged and products multiplied out, so the form is
// canonical for polynomials; of a division, whole multiples of the divisor are taken out, common
// factors cancelled, and divisions of divisions joined, which is what chains of strided
// convolutions give. Sizes are bounded (kMostLeaves, kDeepest), so every operation takes a bounded
// time. What would need to know the symbols' ranges is not simplified.
#include "ir/size_expression.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "npu/support/error.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

[[noreturn]] void refuse_size(const std::string& what) {
  throw Error(ErrorCode::kInvalidGraph, what);
}

// The least int64 is none of them: its magnitude could not be written or negated.
std::int64_t size_or_refuse(std::optional<std::int64_t> value) {
  if (!value || *value == std::numeric_limits<std::int64_t>::min()) {
    refuse_size("a number does not fit in 63 bits");
  }
  return *value;
}

std::int64_t sum_or_refuse(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return size_or_refuse(__builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum));
}

std::int64_t product_or_refuse(std::int64_t a, std::int64_t b) {
  return size_or_refuse(checked_multiply(a, b));
}

// For a positive divisor, neither overflows.
std::int64_t floor_quotient(std::int64_t a, std::int64_t divisor) noexcept {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}
std::int64_t floor_rest(std::int64_t a, std::int64_t divisor) noexcept {
  const std::int64_t rest = a % divisor;
  return rest < 0 ? rest + divisor : rest;
}

// Ends of ranges: the ends of int64 are infinite, and stay so.
constexpr std::int64_t kNoMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kNoMax = std::numeric_limits<std::int64_t>::max();

SizeRange sum_of(const SizeRange& a, const SizeRange& b) {
  SizeRange sum;
  if (a.min == kNoMin || b.min == kNoMin || __builtin_add_overflow(a.min, b.min, &sum.min)) {
    sum.min = kNoMin;
  }
  if (a.max == kNoMax || b.max == kNoMax || __builtin_add_overflow(a.max, b.max, &sum.max)) {
    sum.max = kNoMax;
  }
  return sum;
}

// Of two ends, infinite ones included; what does not fit is infinite.
std::int64_t end_product(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const bool is_infinite = a == kNoMin || a == kNoMax || b == kNoMin || b == kNoMax;
  const auto product = is_infinite ? std::nullopt : checked_multiply(a, b);
  if (product) return *product;
  return (a < 0) == (b < 0) ? kNoMax : kNoMin;
}

SizeRange product_of(const SizeRange& a, const SizeRange& b) {
  const auto [low, high] = std::minmax({end_product(a.min, b.min), end_product(a.min, b.max),
                                        end_product(a.max, b.min), end_product(a.max, b.max)});
  return {low, high};
}

SizeRange quotient_of(const SizeRange& a, std::int64_t divisor) {
  return {a.min == kNoMin ? kNoMin : floor_quotient(a.min, divisor),
          a.max == kNoMax ? kNoMax : floor_quotient(a.max, divisor)};
}

SizeRange rest_of(const SizeRange& a, std::int64_t divisor) {
  const bool is_bounded = a.min != kNoMin && a.max != kNoMax;
  if (is_bounded && floor_quotient(a.min, divisor) == floor_quotient(a.max, divisor)) {
    return {floor_rest(a.min, divisor), floor_rest(a.max, divisor)};
  }
  return {0, divisor - 1};
}

}  // namespace

struct SizeExpression::Atom {
  AtomKind kind = AtomKind::kSymbol;
  std::vector<SizeExpression> operands = {};  // of all but symbols
  std::int64_t divisor = 0;                   // kFloorDivide, kModulo
  std::string text = {};                      // a symbol's name, or the canonical form
  std::size_t leaves = 1;
  int depth = 0;
};

SizeExpression::Term::Term(std::int64_t factor_, Atoms atoms_)
    : factor(factor_), atoms(std::move(atoms_)) {
  for (const auto& atom : atoms) {
    if (!key.empty()) key += "*";
    const bool is_quotient =
        atom->kind == AtomKind::kFloorDivide || atom->kind == AtomKind::kModulo;
    key += is_quotient ? "(" + atom->text + ")" : atom->text;
  }
}

SizeExpression::SizeExpression(std::int64_t value) : constant_(size_or_refuse(value)) {}

SizeExpression SizeExpression::of_atom(Atom atom) {
  if (atom.kind != AtomKind::kSymbol) {
    atom.leaves = 0;
    for (const SizeExpression& operand : atom.operands) {
      atom.leaves += operand.leaves();
      atom.depth = std::max(atom.depth, operand.depth() + 1);
    }
    if (atom.kind == AtomKind::kFloorDivide || atom.kind == AtomKind::kModulo) {
      const SizeExpression& operand = atom.operands.front();
      const bool is_bare = operand.terms_.size() == 1 && operand.constant_ == 0 &&
                           operand.terms_[0].factor == 1 && operand.terms_[0].atoms.size() == 1 &&
                           operand.terms_[0].atoms[0]->kind != AtomKind::kFloorDivide &&
                           operand.terms_[0].atoms[0]->kind != AtomKind::kModulo;
      atom.text = (is_bare ? operand.text() : "(" + operand.text() + ")") +
                  (atom.kind == AtomKind::kFloorDivide ? " // " : " % ") +
                  std::to_string(atom.divisor);
    } else {
      for (const SizeExpression& operand : atom.operands) {
        atom.text += (atom.text.empty() ? (atom.kind == AtomKind::kMin ? "min(" : "max(") : ", ") +
                     operand.text();
      }
      atom.text += ")";
    }
  }
  SizeExpression expression;
  expression.terms_.emplace_back(1, Atoms{std::make_shared<const Atom>(std::move(atom))});
  expression.check_limits();
  return expression;
}

SizeExpression SizeExpression::symbol(std::string_view name) {
  if (!is_size_symbol(name)) refuse_size("'" + std::string(name) + "' is no name for a size");
  return of_atom({.kind = AtomKind::kSymbol, .text = std::string(name)});
}

std::string SizeExpression::text() const {
  std::string sum;
  const auto append = [&sum](std::int64_t number, const std::string& of) {
    if (!sum.empty()) sum += number < 0 ? " - " : " + ";
    if (sum.empty() && number < 0) sum += "-";
    const std::int64_t magnitude = number < 0 ? -number : number;
    const std::string digits = std::to_string(magnitude);
    sum += of.empty() ? digits : magnitude == 1 ? of : digits + "*" + of;
  };
  // What is added stands first, so that no text begins with a sign that need not.
  for (const Term& term : terms_) {
    if (term.factor < 0) continue;
    const bool is_alone = term.factor == 1 && term.atoms.size() == 1;
    append(term.factor, is_alone ? term.atoms.front()->text : term.key);
  }
  const bool constant_first = sum.empty() && constant_ > 0;
  if (constant_first) append(constant_, "");
  for (const Term& term : terms_) {
    if (term.factor < 0) append(term.factor, term.key);
  }
  if ((constant_ != 0 && !constant_first) || sum.empty()) append(constant_, "");
  return sum;
}

bool SizeExpression::operator==(const SizeExpression& other) const {
  return constant_ == other.constant_ &&
         std::equal(
             terms_.begin(), terms_.end(), other.terms_.begin(), other.terms_.end(),
             [](const Term& a, const Term& b) { return a.factor == b.factor && a.key == b.key; });
}

std::size_t SizeExpression::leaves() const noexcept {
  std::size_t count = 0;
  for (const Term& term : terms_) {
    for (const auto& atom : term.atoms) count += atom->leaves;
  }
  return count;
}

int SizeExpression::depth() const noexcept {
  int deepest = 0;
  for (const Term& term : terms_) {
    for (const auto& atom : term.atoms) deepest = std::max(deepest, atom->depth);
  }
  return deepest;
}

void SizeExpression::check_limits() const {
  if (leaves() > kMostLeaves) {
    refuse_size("a size mentions symbols more than " + std::to_string(kMostLeaves) + " times");
  }
  if (depth() > kDeepest) {
    refuse_size("divisions, min and max of a size are nested more than " +
                std::to_string(kDeepest) + " deep");
  }
}

// Keeps the order, and merges terms of the same atoms.
void SizeExpression::add_term(Term term) {
  if (term.factor == 0) return;
  const auto place = std::find_if(terms_.begin(), terms_.end(), [&](const Term& other) {
    if (other.atoms.size() != term.atoms.size()) return other.atoms.size() < term.atoms.size();
    return other.key >= term.key;
  });
  if (place == terms_.end() || place->atoms.size() != term.atoms.size() || place->key != term.key) {
    terms_.insert(place, std::move(term));
    return;
  }
  place->factor = sum_or_refuse(place->factor, term.factor);
  if (place->factor == 0) terms_.erase(place);
}

void SizeExpression::add(std::int64_t factor, const SizeExpression& other) {
  constant_ = sum_or_refuse(constant_, product_or_refuse(factor, other.constant_));
  for (const Term& term : other.terms_) {
    add_term({product_or_refuse(factor, term.factor), term.atoms});
  }
  check_limits();
}

SizeExpression operator+(const SizeExpression& a, const SizeExpression& b) {
  SizeExpression sum = a;
  sum.add(1, b);
  return sum;
}

SizeExpression operator-(const SizeExpression& a, const SizeExpression& b) {
  SizeExpression difference = a;
  difference.add(-1, b);
  return difference;
}

SizeExpression operator*(const SizeExpression& a, const SizeExpression& b) {
  SizeExpression product;
  product.add(a.constant_, b);
  for (const auto& left : a.terms_) {
    if (b.constant_ != 0)
      product.add_term({product_or_refuse(left.factor, b.constant_), left.atoms});
    for (const auto& right : b.terms_) {
      SizeExpression::Atoms atoms = left.atoms;
      atoms.insert(atoms.end(), right.atoms.begin(), right.atoms.end());
      std::stable_sort(atoms.begin(), atoms.end(),
                       [](const auto& x, const auto& y) { return x->text < y->text; });
      product.add_term({product_or_refuse(left.factor, right.factor), std::move(atoms)});
      product.check_limits();
    }
  }
  product.check_limits();
  return product;
}

SizeExpression SizeExpression::floor_divide(std::int64_t divisor) const {
  if (divisor < 1) refuse_size("a size is divided by " + std::to_string(divisor));
  SizeExpression whole;
  SizeExpression rest;
  std::int64_t common = divisor;
  for (const Term& term : terms_) {
    whole.add_term({floor_quotient(term.factor, divisor), term.atoms});
    rest.add_term({floor_rest(term.factor, divisor), term.atoms});
    common = std::gcd(common, floor_rest(term.factor, divisor));
  }
  whole.constant_ = floor_quotient(constant_, divisor);
  if (rest.terms_.empty()) return whole;
  for (Term& term : rest.terms_) term.factor /= common;
  rest.constant_ = floor_rest(constant_, divisor) / common;
  divisor /= common;
  // A division of a division is one: ((X // a) + b) // c is (X + a*b) // (a*c).
  if (rest.terms_.size() == 1 && rest.terms_[0].factor == 1 && rest.terms_[0].atoms.size() == 1 &&
      rest.terms_[0].atoms[0]->kind == AtomKind::kFloorDivide) {
    const Atom& inner = *rest.terms_[0].atoms[0];
    const SizeExpression numerator =
        inner.operands[0] + product_or_refuse(inner.divisor, rest.constant_);
    return whole + numerator.floor_divide(product_or_refuse(inner.divisor, divisor));
  }
  return whole +
         of_atom(
             {.kind = AtomKind::kFloorDivide, .operands = {std::move(rest)}, .divisor = divisor});
}

SizeExpression SizeExpression::modulo(std::int64_t divisor) const {
  if (divisor < 1) refuse_size("a size is divided by " + std::to_string(divisor));
  SizeExpression rest(floor_rest(constant_, divisor));
  std::int64_t common = std::gcd(divisor, rest.constant_);
  for (const Term& term : terms_) {
    rest.add_term({floor_rest(term.factor, divisor), term.atoms});
    common = std::gcd(common, floor_rest(term.factor, divisor));
  }
  if (rest.terms_.empty()) return rest;
  for (Term& term : rest.terms_) term.factor /= common;
  rest.constant_ /= common;
  return SizeExpression(common) * of_atom({.kind = AtomKind::kModulo,
                                           .operands = {std::move(rest)},
                                           .divisor = divisor / common});
}

SizeExpression SizeExpression::extreme(AtomKind kind, std::span<const SizeExpression> operands) {
  const auto beats = [kind](std::int64_t difference) {
    return kind == AtomKind::kMin ? difference < 0 : difference > 0;
  };
  // Those that none of the others beats, or equals, for all values.
  std::vector<SizeExpression> kept;
  const auto add = [&](const SizeExpression& operand) {
    for (SizeExpression& other : kept) {
      const auto difference = (operand - other).constant();
      if (!difference) continue;
      if (beats(*difference)) other = operand;
      return;
    }
    kept.push_back(operand);
  };
  for (const SizeExpression& operand : operands) {
    const bool is_same_kind =
        operand.constant_ == 0 && operand.terms_.size() == 1 && operand.terms_[0].factor == 1 &&
        operand.terms_[0].atoms.size() == 1 && operand.terms_[0].atoms[0]->kind == kind;
    if (!is_same_kind) {
      add(operand);
      continue;
    }
    for (const SizeExpression& inner : operand.terms_[0].atoms[0]->operands) add(inner);
  }
  if (kept.empty()) refuse_size("min and max need an operand");
  if (kept.size() == 1) return kept.front();
  std::sort(kept.begin(), kept.end(),
            [](const SizeExpression& a, const SizeExpression& b) { return a.text() < b.text(); });
  return of_atom({.kind = kind, .operands = std::move(kept)});
}

SizeExpression SizeExpression::min(std::span<const SizeExpression> operands) {
  return extreme(AtomKind::kMin, operands);
}

SizeExpression SizeExpression::max(std::span<const SizeExpression> operands) {
  return extreme(AtomKind::kMax, operands);
}

std::optional<std::int64_t> SizeExpression::constant() const noexcept {
  return terms_.empty() ? std::optional(constant_) : std::nullopt;
}

std::set<std::string> SizeExpression::symbols() const {
  std::set<std::string> names;
  for (const Term& term : terms_) {
    for (const auto& atom : term.atoms) {
      if (atom->kind == AtomKind::kSymbol) names.insert(atom->text);
      for (const SizeExpression& operand : atom->operands) names.merge(operand.symbols());
    }
  }
  return names;
}

std::int64_t SizeExpression::linear_factor(std::string_view name) const {
  std::int64_t factor = 0;
  for (const Term& term : terms_) {
    if (term.atoms.size() == 1 && term.atoms[0]->kind == AtomKind::kSymbol &&
        term.atoms[0]->text == name) {
      factor = term.factor;
      continue;
    }
    for (const auto& atom : term.atoms) {
      if (atom->kind == AtomKind::kSymbol && atom->text == name) return 0;
      for (const SizeExpression& operand : atom->operands) {
        if (operand.symbols().contains(std::string(name))) return 0;
      }
    }
  }
  return factor;
}

std::int64_t SizeExpression::evaluate(const SizeBindings& values) const {
  const auto value_of = [&values](const Atom& atom) {
    if (atom.kind == AtomKind::kSymbol) {
      const auto found = values.find(atom.text);
      if (found == values.end()) refuse_size("size '" + atom.text + "' has no value");
      return found->second;
    }
    std::int64_t value = atom.operands.front().evaluate(values);
    if (atom.kind == AtomKind::kFloorDivide) return floor_quotient(value, atom.divisor);
    if (atom.kind == AtomKind::kModulo) return floor_rest(value, atom.divisor);
    for (const SizeExpression& operand : atom.operands) {
      const std::int64_t other = operand.evaluate(values);
      value = atom.kind == AtomKind::kMin ? std::min(value, other) : std::max(value, other);
    }
    return value;
  };
  std::int64_t sum = constant_;
  for (const Term& term : terms_) {
    std::int64_t product = term.factor;
    for (const auto& atom : term.atoms) product = product_or_refuse(product, value_of(*atom));
    sum = sum_or_refuse(sum, product);
  }
  return sum;
}

std::int32_t SizeExpression::visit(SizeVisitor& visitor) const {
  const auto visit_atom = [&visitor](const Atom& atom) {
    if (atom.kind == AtomKind::kSymbol) return visitor.symbol(atom.text);
    std::int32_t value = atom.operands.front().visit(visitor);
    if (atom.kind == AtomKind::kFloorDivide) return visitor.floor_divide(value, atom.divisor);
    if (atom.kind == AtomKind::kModulo) return visitor.modulo(value, atom.divisor);
    for (std::size_t i = 1; i < atom.operands.size(); ++i) {
      const std::int32_t other = atom.operands[i].visit(visitor);
      value = atom.kind == AtomKind::kMin ? visitor.min(value, other) : visitor.max(value, other);
    }
    return value;
  };
  std::optional<std::int32_t> sum;
  const auto add = [&](std::int32_t part) { sum = sum ? visitor.add(*sum, part) : part; };
  for (const Term& term : terms_) {
    std::int32_t product = visit_atom(*term.atoms.front());
    for (std::size_t i = 1; i < term.atoms.size(); ++i) {
      product = visitor.multiply(product, visit_atom(*term.atoms[i]));
    }
    if (term.factor != 1) product = visitor.multiply(product, visitor.number(term.factor));
    add(product);
  }
  if (constant_ != 0 || !sum) add(visitor.number(constant_));
  return *sum;
}

SizeExpression SizeExpression::substitute(const SizeSubstitution& values) const {
  const auto value_of = [&values](const std::shared_ptr<const Atom>& atom) {
    if (atom->kind == AtomKind::kSymbol) {
      const auto found = values.find(atom->text);
      return found != values.end() ? found->second : symbol(atom->text);
    }
    std::vector<SizeExpression> operands;
    operands.reserve(atom->operands.size());
    for (const SizeExpression& operand : atom->operands) {
      operands.push_back(operand.substitute(values));
    }
    if (atom->kind == AtomKind::kFloorDivide) return operands.front().floor_divide(atom->divisor);
    if (atom->kind == AtomKind::kModulo) return operands.front().modulo(atom->divisor);
    return extreme(atom->kind, operands);
  };
  SizeExpression sum(constant_);
  for (const Term& term : terms_) {
    SizeExpression product(term.factor);
    for (const auto& atom : term.atoms) product = product * value_of(atom);
    sum.add(1, product);
  }
  return sum;
}

SizeRange SizeExpression::bounds(const SizeRanges& ranges) const {
  const auto range_of = [&ranges](const Atom& atom) {
    if (atom.kind == AtomKind::kSymbol) {
      const auto found = ranges.find(atom.text);
      return found != ranges.end() ? found->second : SizeRange{};
    }
    SizeRange range = atom.operands.front().bounds(ranges);
    if (atom.kind == AtomKind::kFloorDivide) return quotient_of(range, atom.divisor);
    if (atom.kind == AtomKind::kModulo) return rest_of(range, atom.divisor);
    for (const SizeExpression& operand : atom.operands) {
      const SizeRange other = operand.bounds(ranges);
      const bool is_min = atom.kind == AtomKind::kMin;
      range.min = is_min ? std::min(range.min, other.min) : std::max(range.min, other.min);
      range.max = is_min ? std::min(range.max, other.max) : std::max(range.max, other.max);
    }
    return range;
  };
  SizeRange sum{constant_, constant_};
  for (const Term& term : terms_) {
    SizeRange product{term.factor, term.factor};
    for (const auto& atom : term.atoms) product = product_of(product, range_of(*atom));
    sum = sum_of(sum, product);
  }
  return sum;
}

bool is_size_symbol(std::string_view name) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto is_letter = [&](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || name.size() > SizeExpression::kMostName) return false;
  if (!is_letter(name.front()) && name.front() != '_') return false;
  if (!std::all_of(name.begin(), name.end(),
                   [&](char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; })) {
    return false;
  }
  constexpr std::array<std::string_view, 8> kWords{"min", "max",  "inf",  "infinity",
                                                   "nan", "none", "true", "false"};
  return std::none_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return std::equal(word.begin(), word.end(), name.begin(), name.end(),
                      [&](char a, char b) { return a == lower(b); });
  });
}

}  // namespace npu
