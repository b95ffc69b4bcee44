// SPDX-License-Identifier: Apache-2.0
// Makes a template of the documents of a model at several sizes.
//
// The documents are walked side by side. Where integers differ, they are a vector of numbers, one
// for each sample, and an expression is looked for that has just these: the most telling candidates
// first, so that an accident of the numbers does not win over what the op says. All candidates must
// hold at every sample. O(size of the documents x samples); what is found is kept by its numbers.
#include "ir/unify_sizes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "support/checked.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

using Numbers = std::vector<std::int64_t>;  // one for each sample

constexpr std::int64_t kMostDivisor = 64;
constexpr std::size_t kMostKnownSizes = 256;  // that are combined with each other
constexpr std::size_t kMostFactors = 64;      // of products of three

/// a with numbers[i] = a * values[i] + b for all i; nothing if there is none, or a is 0.
std::optional<std::pair<std::int64_t, std::int64_t>> line_through(const Numbers& values,
                                                                  const Numbers& numbers) {
  std::size_t other = 1;
  while (other < values.size() && values[other] == values[0]) ++other;
  if (other == values.size()) return std::nullopt;
  const std::int64_t run = values[other] - values[0];
  const std::int64_t rise = numbers[other] - numbers[0];
  if (rise == 0 || rise % run != 0) return std::nullopt;
  const std::int64_t factor = rise / run;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto product = checked_multiply(factor, values[i]);
    std::int64_t rest = 0;
    if (!product || __builtin_sub_overflow(numbers[i], *product, &rest)) return std::nullopt;
    if (i == 0) offset = rest;
    if (rest != offset) return std::nullopt;
  }
  return std::pair(factor, offset);
}

/// Finds expressions for numbers.
class SizeFinder {
 public:
  SizeFinder(std::vector<SizeBindings> points, const SizeSymbols& symbols)
      : points_(std::move(points)) {
    for (const SizeSymbol& symbol : symbols.list()) {
      names_.push_back(symbol.name);
      steps_.push_back(symbol.multiple_of);
      note(SizeExpression::symbol(symbol.name));
    }
  }

  std::optional<Numbers> numbers_of(const SizeExpression& size) const {
    Numbers numbers;
    try {
      for (const SizeBindings& point : points_) numbers.push_back(size.evaluate(point));
    } catch (const Error&) {
      return std::nullopt;
    }
    return numbers;
  }

  /// `hints` are tried first.
  std::optional<SizeExpression> find(const Numbers& numbers,
                                     const std::vector<SizeExpression>& hints) {
    for (const SizeExpression& hint : hints) {
      if (numbers_of(hint) == numbers) return note(hint);
    }
    if (const auto found = known_.find(numbers); found != known_.end()) return found->second;
    for (const auto& search : {&SizeFinder::sum_of_symbols, &SizeFinder::of_known,
                               &SizeFinder::quotient, &SizeFinder::of_products}) {
      try {
        const auto found = (this->*search)(numbers);
        if (found && numbers_of(*found) == numbers) return note(*found);
      } catch (const Error&) {
        continue;  // of numbers that are too large
      }
    }
    return std::nullopt;
  }

 private:
  SizeExpression note(const SizeExpression& size) {
    const auto numbers = numbers_of(size);
    if (!numbers) return size;
    const auto [found, is_new] = known_.try_emplace(*numbers, size);
    if (is_new) order_.push_back(*numbers);
    return found->second;
  }

  // One symbol after the other: each adds a multiple, for which the differences between samples in
  // which the others are alike would be needed; so the system is solved as a whole, in fractions.
  std::optional<SizeExpression> sum_of_symbols(const Numbers& numbers) const {
    const std::size_t width = names_.size() + 1;
    std::vector<std::vector<long double>> table;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      auto& row = table.emplace_back();
      for (const std::string& name : names_) {
        row.push_back(static_cast<long double>(points_[i].find(name)->second));
      }
      row.push_back(1);
      row.push_back(static_cast<long double>(numbers[i]));
    }
    for (std::size_t column = 0; column < width; ++column) {
      const auto pivot = std::max_element(
          table.begin() + static_cast<std::ptrdiff_t>(column), table.end(),
          [&](const auto& a, const auto& b) { return std::abs(a[column]) < std::abs(b[column]); });
      if (pivot == table.end() || std::abs((*pivot)[column]) < 1e-9L) return std::nullopt;
      std::swap(table[column], *pivot);
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (i == column) continue;
        const long double factor = table[i][column] / table[column][column];
        for (std::size_t k = column; k <= width; ++k) table[i][k] -= factor * table[column][k];
      }
    }
    SizeExpression sum;
    for (std::size_t column = 0; column < width; ++column) {
      const long double value = table[column][width] / table[column][column];
      if (!(std::abs(value) < 0x1p62L)) return std::nullopt;
      const auto whole = static_cast<std::int64_t>(value < 0 ? value - 0.5L : value + 0.5L);
      sum = sum + (column < names_.size()
                       ? SizeExpression(whole) * SizeExpression::symbol(names_[column])
                       : SizeExpression(whole));
    }
    return sum;  // whether it has the numbers is looked at by find()
  }

  std::optional<SizeExpression> of_known(const Numbers& numbers) const {
    const std::size_t count = std::min(order_.size(), kMostKnownSizes);
    const auto size_at = [&](std::size_t i) { return known_.at(order_[i]); };
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto line = line_through(order_[i], numbers)) {
        return SizeExpression(line->first) * size_at(i) + line->second;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = i; k < count; ++k) {
        const auto both = product_of(order_[i], order_[k]);
        if (!both) continue;
        if (const auto line = line_through(*both, numbers)) {
          return SizeExpression(line->first) * (size_at(i) * size_at(k)) + line->second;
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < count; ++k) {
        if (i == k) continue;
        Numbers rest;
        for (std::size_t p = 0; p < numbers.size(); ++p) {
          rest.push_back(numbers[p] - order_[i][p] - order_[k][p]);
        }
        if (std::equal(rest.begin() + 1, rest.end(), rest.begin())) {
          return size_at(i) + size_at(k) + rest.front();
        }
      }
    }
    return std::nullopt;
  }

  // (S + b) // c, if the numbers leave one choice, or are the same share of each size: then with a
  // multiple of c.
  std::optional<SizeExpression> quotient(const Numbers& numbers) const {
    std::optional<SizeExpression> found;
    for (std::size_t s = 0; s < names_.size(); ++s) {
      const std::string& name = names_[s];
      for (std::int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
        // n*c <= S + b < n*c + c at every sample.
        std::int64_t low = INT64_MIN;
        std::int64_t high = INT64_MAX;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          if (std::abs(numbers[i]) > INT32_MAX) return std::nullopt;
          const std::int64_t begin = numbers[i] * divisor - points_[i].find(name)->second;
          low = std::max(low, begin);
          high = std::min(high, begin + divisor - 1);
        }
        if (low > high) continue;
        if (steps_[s] % divisor == 0 && high - low == divisor - 1) {
          const std::int64_t offset = high - ((high % divisor) + divisor) % divisor;
          return (SizeExpression::symbol(name) + offset).floor_divide(divisor);
        }
        if (low < high || found) return std::nullopt;
        found = (SizeExpression::symbol(name) + low).floor_divide(divisor);
      }
    }
    return found;
  }

  // A product of two or three known sizes, or a part of it, as of tiles of images that are rows.
  std::optional<SizeExpression> of_products(const Numbers& numbers) const {
    const std::size_t count = std::min(order_.size(), kMostFactors);
    const auto size_at = [&](std::size_t i) { return known_.at(order_[i]); };
    std::map<Numbers, std::tuple<std::size_t, std::size_t, std::int64_t>> products;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = i; k < count; ++k) {
        const auto both = product_of(order_[i], order_[k]);
        if (!both) continue;
        const auto [primitive, divisor] = without_divisor(*both);
        if (divisor != 0) products.try_emplace(primitive, i, k, divisor);
      }
    }
    const auto find = [&](const Numbers& wanted) -> std::optional<SizeExpression> {
      const auto [primitive, factor] = without_divisor(wanted);
      const auto found = products.find(primitive);
      if (factor == 0 || found == products.end()) return std::nullopt;
      const auto [a, b, own] = found->second;
      const std::int64_t divisor = own / std::gcd(factor, own);
      if (divisor > kMostDivisor) return std::nullopt;
      const SizeExpression part(factor / std::gcd(factor, own));
      const SizeExpression product = part * size_at(a) * size_at(b);
      return divisor == 1 ? product : product.floor_divide(divisor);
    };
    if (auto found = find(numbers)) return found;
    for (std::size_t i = 0; i < count; ++i) {
      Numbers rest;
      for (std::size_t p = 0; p < numbers.size(); ++p) {
        const std::int64_t known = order_[i][p];
        if (known != 0 && numbers[p] % known == 0) rest.push_back(numbers[p] / known);
      }
      if (rest.size() != numbers.size()) continue;
      if (const auto found = find(rest)) return size_at(i) * *found;
    }
    return std::nullopt;
  }

  static std::optional<Numbers> product_of(const Numbers& a, const Numbers& b) {
    Numbers products;
    for (std::size_t p = 0; p < a.size(); ++p) {
      const auto product = checked_multiply(a[p], b[p]);
      if (!product) return std::nullopt;
      products.push_back(*product);
    }
    return products;
  }

  static std::pair<Numbers, std::int64_t> without_divisor(Numbers numbers) {
    std::int64_t divisor = 0;
    for (const std::int64_t number : numbers) divisor = std::gcd(divisor, number);
    for (std::int64_t& number : numbers) number = divisor > 0 ? number / divisor : number;
    return {std::move(numbers), divisor};
  }

  std::vector<SizeBindings> points_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> steps_;  // of which the size is a multiple
  std::map<Numbers, SizeExpression> known_;
  std::vector<Numbers> order_;
};

using Values = std::vector<const Json*>;  // what stands at one place, one for each sample

/// What an op gives for a dimension by itself, for those that divide: convolutions, pooling, slices
/// with steps. `size` is that of the first operand in this dimension, `place` counts dimensions
/// behind the channels.
std::vector<SizeExpression> formulas(const Json& node, const SizeExpression& size,
                                     std::size_t dimension, std::size_t rank) {
  const Json none = Json::object();
  const Json* attrs = member_object(node, "attrs");
  if (attrs == nullptr) attrs = &none;
  const std::string* op = member_text(node, "op_type");
  if (op == nullptr) return {};
  if (*op == "aten.slice.Tensor") {
    const auto axis = member_integer(*attrs, "dim").value_or(0);
    const auto start = member_integer(*attrs, "start").value_or(0);
    const auto step = member_integer(*attrs, "step").value_or(1);
    const bool is_here = axis == static_cast<std::int64_t>(dimension);
    if (!is_here || start < 0 || step < 1) return {};
    return {(size - start + (step - 1)).floor_divide(step)};
  }
  const bool is_convolution = op->starts_with("aten.conv") && !op->starts_with("aten.conv_");
  const bool is_pooling = op->starts_with("aten.max_pool") || op->starts_with("aten.avg_pool");
  if ((!is_convolution && !is_pooling) || dimension < 2 || rank < 3) return {};
  const std::size_t place = dimension - 2;
  const auto given = [&](std::string_view key, std::int64_t absent) -> std::int64_t {
    const Json* value = find_member(*attrs, key);
    if (value != nullptr && value->is_array()) {
      if (value->empty()) return absent;
      value = &(*value)[place < value->size() ? place : 0];
    }
    return json_integer(value).value_or(absent);
  };
  std::int64_t kernel = given("kernel_size", 0);
  if (is_convolution) {
    const Json* inputs = member_list(node, "inputs");
    const Json* shape =
        inputs != nullptr && inputs->size() > 1 ? member_list((*inputs)[1], "shape") : nullptr;
    kernel = shape != nullptr && shape->size() == rank
                 ? json_integer(&(*shape)[dimension]).value_or(0)
                 : 0;
  }
  const std::int64_t stride = given("stride", is_convolution ? 1 : kernel);
  if (kernel < 1 || stride < 1) return {};
  const SizeExpression covered = size + SizeExpression(2) * SizeExpression(given("padding", 0)) -
                                 SizeExpression(given("dilation", 1)) * SizeExpression(kernel - 1) -
                                 1;
  const SizeExpression up = (covered + (stride - 1)).floor_divide(stride);
  // Rounded up, the last window may begin in the padding, and is left out then.
  return {covered.floor_divide(stride) + 1, up + 1, up};
}

class Unification {
 public:
  Unification(const std::vector<SizeSample>& samples, const SizeSymbols& symbols,
              std::set<std::string>* varying, std::string file, Diagnostics& diagnostics)
      : samples_(samples),
        symbols_(symbols),
        finder_(points_of(samples), symbols),
        varying_(varying),
        file_(std::move(file)),
        diagnostics_(diagnostics) {}

  std::optional<Json> unify() {
    const std::size_t before = diagnostics_.error_count();
    Values documents;
    for (const SizeSample& sample : samples_) documents.push_back(&sample.document);
    if (!same_nodes(documents)) return std::nullopt;
    Json result = Json::object();
    for (const auto& [key, value] : documents[0]->get_ref<const Json::object_t&>()) {
      append_member(result, key, Json());
    }
    // Tensors are known from where they are made on.
    std::vector<std::string> keys{"graph_inputs", "nodes"};
    for (const auto& [key, value] : documents[0]->get_ref<const Json::object_t&>()) {
      if (key != "graph_inputs" && key != "nodes") keys.push_back(key);
    }
    bool has_varying = false;
    for (const std::string& key : keys) {
      Values values;
      for (const Json* document : documents) {
        const Json* member = find_member(*document, key);
        if (member == nullptr) return refuse("a document has no '" + key + "'");
        values.push_back(member);
      }
      Json* to = find_member(result, key);
      if (key == "nodes") {
        *to = nodes(values);
      } else if (key == "weights" || key == "constants") {
        has_varying = !weights(key, values) || has_varying;
        *to = *values.front();
      } else {
        where_ = "'" + key + "'";
        node_ = nullptr;
        *to = merge(values, key);
      }
      if (diagnostics_.error_count() > before) return std::nullopt;
    }
    if (has_varying) return std::nullopt;
    Json* npu = find_member(result, "npu");
    if (npu == nullptr) {
      append_member(result, "npu", Json{{"version", 1}});
      npu = find_member(result, "npu");
    }
    set_member(*npu, "symbols", symbols_.to_json());
    return result;
  }

 private:
  static std::vector<SizeBindings> points_of(const std::vector<SizeSample>& samples) {
    std::vector<SizeBindings> points;
    for (const SizeSample& sample : samples) points.push_back(sample.values);
    return points;
  }

  std::optional<Json> refuse(std::string text) {
    diagnostics_.error({.file = file_}, std::move(text));
    return std::nullopt;
  }

  static std::string node_text(const Json& node) {
    const std::string* name = member_text(node, "name");
    const std::string* op = member_text(node, "op_type");
    return "'" + short_text(name != nullptr ? *name : "") + "' (" +
           short_text(op != nullptr ? *op : "") + ")";
  }

  bool same_nodes(const Values& documents) {
    const Json* first = member_list(*documents[0], "nodes");
    for (std::size_t i = 1; i < documents.size(); ++i) {
      const Json* other = member_list(*documents[i], "nodes");
      if (first == nullptr || other == nullptr) return refuse("a document has no nodes"), false;
      const std::size_t count = std::max(first->size(), other->size());
      for (std::size_t n = 0; n < count; ++n) {
        const std::string here = n < first->size() ? node_text((*first)[n]) : "nothing";
        const std::string there = n < other->size() ? node_text((*other)[n]) : "nothing";
        if (here == there) continue;
        refuse("the model is another one at another size: " + here + " for " +
               bindings_text(samples_[0].values) + ", " + there + " for " +
               bindings_text(samples_[i].values));
        return false;
      }
    }
    return true;
  }

  Json nodes(const Values& lists) {
    Json result = Json::array();
    for (std::size_t n = 0; n < lists[0]->size(); ++n) {
      Values values;
      for (const Json* list : lists) values.push_back(&(*list)[n]);
      where_ = "node " + node_text(*values[0]);
      node_ = values[0];
      result.push_back(merge(values, ""));
    }
    return result;
  }

  // False if some differ that the caller wants to know.
  bool weights(const std::string& key, const Values& values) {
    std::set<std::string> names;
    const auto compare = [&](std::string_view name, const Values& entries) {
      const bool is_same = std::all_of(entries.begin(), entries.end(), [&](const Json* entry) {
        return entry != nullptr && *entry == *entries[0];
      });
      if (!is_same) names.insert(std::string(name));
    };
    const Json& first = *values[0];
    for (const Json* other : values) {
      if (other->size() != first.size())
        return refuse("the model has other " + key + " at other sizes"), true;
    }
    if (first.is_object()) {
      for (const auto& [name, entry] : first.get_ref<const Json::object_t&>()) {
        Values entries;
        for (const Json* value : values) entries.push_back(find_member(*value, name));
        compare(name, entries);
      }
    } else {
      for (std::size_t i = 0; i < first.size(); ++i) {
        Values entries;
        for (const Json* value : values) entries.push_back(&(*value)[i]);
        const std::string* name = member_text(first[i], "name");
        compare(name != nullptr ? *name : "", entries);
      }
    }
    if (names.empty()) return true;
    if (varying_ != nullptr) return varying_->merge(names), false;
    for (const std::string& name : names) {
      refuse("constant '" + short_text(name) + "' differs from size to size");
    }
    return true;
  }

  Json merge(const Values& values, const std::string& path) {
    const Json& first = *values[0];
    const auto all = [&](auto&& holds) {
      return std::all_of(values.begin(), values.end(),
                         [&](const Json* value) { return holds(*value); });
    };
    if (all([&](const Json& value) { return value == first; }) && !mentions_tensor(first)) {
      return first;
    }
    if (first.is_object() &&
        all([&](const Json& value) { return value.is_object() && value.size() == first.size(); })) {
      Json result = Json::object();
      for (const auto& [key, value] : first.get_ref<const Json::object_t&>()) {
        Values members;
        for (const Json* owner : values) members.push_back(find_member(*owner, key));
        if (std::find(members.begin(), members.end(), nullptr) != members.end()) {
          return fault(path + (path.empty() ? "" : ".") + key, members);
        }
        const std::string below = path + (path.empty() ? "" : ".") + key;
        const bool is_shape = key == "shape" && mentions_tensor(first);
        append_member(
            result, key,
            is_shape ? shape(*member_text(first, "name"), members, below) : merge(members, below));
      }
      return result;
    }
    if (first.is_array() &&
        all([&](const Json& value) { return value.is_array() && value.size() == first.size(); })) {
      Json result = Json::array();
      for (std::size_t i = 0; i < first.size(); ++i) {
        Values elements;
        for (const Json* list : values) elements.push_back(&(*list)[i]);
        result.push_back(merge(elements, path + "." + std::to_string(i)));
      }
      return result;
    }
    if (all([](const Json& value) { return json_integer(&value).has_value(); })) {
      return number(values, path, {});
    }
    return fault(path, values);
  }

  static bool mentions_tensor(const Json& json) {
    return json.is_object() && member_text(json, "name") != nullptr &&
           member_list(json, "shape") != nullptr;
  }

  Json number(const Values& values, const std::string& path,
              const std::vector<SizeExpression>& hints) {
    Numbers numbers;
    for (const Json* value : values) numbers.push_back(*json_integer(value));
    if (std::equal(numbers.begin() + 1, numbers.end(), numbers.begin())) return numbers.front();
    const auto size = finder_.find(numbers, hints);
    if (!size) return fault(path, values);
    return size->text();
  }

  Json fault(const std::string& path, const Values& values) {
    std::string text = where_ + ": " + path + " follows no size:";
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string found = values[i] != nullptr
                              ? values[i]->dump(-1, ' ', false, Json::error_handler_t::replace)
                              : "nothing";
      if (found.size() > 40) found = found.substr(0, 37) + "...";
      text += (i == 0 ? " " : "; ") + found + " for " + bindings_text(samples_[i].values);
    }
    diagnostics_.error({.file = file_}, std::move(text));
    return nullptr;
  }

  // Found once, where the tensor is made.
  Json shape(const std::string& name, const Values& lists, const std::string& path) {
    const auto known = shapes_.find(name);
    if (known != shapes_.end() && known->second.size() == lists[0]->size()) return known->second;
    Json result = Json::array();
    for (const Json* list : lists) {
      if (!list->is_array() || list->size() != lists[0]->size()) return fault(path, lists);
    }
    for (std::size_t d = 0; d < lists[0]->size(); ++d) {
      Values values;
      bool is_integer = true;
      for (const Json* list : lists) {
        values.push_back(&(*list)[d]);
        is_integer = is_integer && json_integer(values.back()).has_value();
      }
      if (!is_integer) return fault(path, values);
      result.push_back(number(values, path + "." + std::to_string(d),
                              path.starts_with("outputs") ? hints(d, lists[0]->size())
                                                          : std::vector<SizeExpression>()));
    }
    shapes_.emplace(name, result);
    return result;
  }

  std::vector<SizeExpression> hints(std::size_t dimension, std::size_t rank) const {
    const Json* inputs = node_ != nullptr ? member_list(*node_, "inputs") : nullptr;
    if (inputs == nullptr || inputs->empty()) return {};
    const std::string* name = member_text((*inputs)[0], "name");
    const auto shape = name != nullptr ? shapes_.find(*name) : shapes_.end();
    if (shape == shapes_.end() || shape->second.size() != rank) return {};
    const Json& size = shape->second[dimension];
    if (size.is_null()) return {};  // it has a fault
    try {
      return formulas(*node_,
                      size.is_string() ? SizeExpression::parse(size.get<std::string>())
                                       : SizeExpression(size.get<std::int64_t>()),
                      dimension, rank);
    } catch (const Error&) {
      return {};
    }
  }

  const std::vector<SizeSample>& samples_;
  const SizeSymbols& symbols_;
  SizeFinder finder_;
  std::set<std::string>* varying_;
  std::string file_;
  Diagnostics& diagnostics_;
  std::string where_;
  const Json* node_ = nullptr;
  std::map<std::string, Json, std::less<>> shapes_;
};

}  // namespace

std::vector<SizeBindings> sizes_to_sample(const std::vector<std::string>& symbols,
                                          std::int64_t least, std::int64_t step,
                                          std::int64_t apart) {
  const std::size_t count = 6 + 2 * (symbols.empty() ? 0 : symbols.size() - 1);
  std::vector<SizeBindings> points(count);
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    for (std::size_t i = 0; i < count; ++i) {
      // Another order for each symbol: multiplied by a number without common factors.
      std::size_t turn = 2 * s + 1;
      while (std::gcd(turn, count) != 1) turn += 2;
      const auto at = static_cast<std::int64_t>((i * turn + s) % count);
      const std::int64_t steps = at < 3 ? at : 3 + apart * (at - 2) + static_cast<std::int64_t>(s);
      points[i][symbols[s]] = least + steps * step;
    }
  }
  return points;
}

std::optional<Json> unify_sizes(const std::vector<SizeSample>& samples, const SizeSymbols& symbols,
                                std::set<std::string>* varying, const std::string& file,
                                Diagnostics& diagnostics) {
  return Unification(samples, symbols, varying, file, diagnostics).unify();
}

}  // namespace npu
