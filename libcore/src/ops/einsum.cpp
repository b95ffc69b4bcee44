// SPDX-License-Identifier: Apache-2.0
// Reads the equation of an einsum as a product of matrices. Targets ask by this what their devices
// take, and backends compute what it says, so that the two cannot differ. O(labels^2).
#include "ops/einsum.hpp"

#include <algorithm>
#include <utility>

#include "support/checked.hpp"

namespace npu {
namespace {

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// What an equation without "->" stands for: the labels that stand in it once, by name.
std::string implied_result(const std::string& operands) {
  std::string result;
  for (const char c : operands) {
    if (c != ',' && c != '.' && std::count(operands.begin(), operands.end(), c) == 1) result += c;
  }
  std::sort(result.begin(), result.end());
  return operands.find("...") == std::string::npos ? result : "..." + result;
}

class Reader {
 public:
  Reader(const std::vector<Shape>& shapes, std::string& reason)
      : shapes_(shapes), reason_(reason) {}

  bool read(std::string equation) {
    std::erase(equation, ' ');
    if (shapes_.size() != 2) return fail("only two operands are supported");
    if (equation.find("->") == std::string::npos) equation += "->" + implied_result(equation);
    const std::size_t arrow = equation.find("->");
    const std::size_t comma = equation.find(',');
    if (comma >= arrow || has(equation.substr(comma + 1, arrow - comma - 1), ',')) {
      return fail("it is not of two operands");
    }
    return add_operand(equation.substr(0, comma)) &&
           add_operand(equation.substr(comma + 1, arrow - comma - 1)) &&
           set_result(equation.substr(arrow + 2)) && sort_labels();
  }

  EinsumProduct product;

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  static std::string with_digits(const std::string& part, std::size_t dimensions) {
    const std::size_t dots = part.find("...");
    if (dots == std::string::npos) return part;
    std::string digits;
    for (std::size_t i = dimensions; i > 0; --i) digits += static_cast<char>('0' + i - 1);
    return part.substr(0, dots) + digits + part.substr(dots + 3);
  }

  bool check_labels(const std::string& part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      if (c == '.' && part.compare(i, 3, "...") == 0 && part.find("...") == i) {
        i += 2;
        continue;
      }
      const bool is_label = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!is_label) return fail("'" + std::string(1, c) + "' is no label");
      if (part.find(c) != i) return fail("label '" + std::string(1, c) + "' stands twice");
    }
    return true;
  }

  bool add_operand(const std::string& part) {
    if (!check_labels(part)) return false;
    const Shape& shape = shapes_[product.operands.size()];
    const bool has_dots = part.find("...") != std::string::npos;
    const std::size_t letters = part.size() - (has_dots ? 3 : 0);
    if (has_dots ? shape.size() < letters : shape.size() != letters) {
      return fail("'" + part + "' is not of rank " + std::to_string(shape.size()));
    }
    const std::size_t dimensions = shape.size() - letters;
    most_ = std::max(most_, dimensions);
    const std::string labels = with_digits(part, dimensions);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (product.extents.emplace(labels[i], shape[i]).first->second == shape[i]) continue;
      return fail("the dimensions of label '" + std::string(1, labels[i]) + "' differ");
    }
    product.operands.push_back(labels);
    return true;
  }

  bool set_result(const std::string& part) {
    if (!check_labels(part)) return false;
    product.result = with_digits(part, most_);
    for (const char c : product.result) {
      if (product.extents.contains(c)) continue;
      return fail("'" + std::string(1, c) + "' is in no operand");
    }
    return true;
  }

  bool sort_labels() {
    const std::string& left = product.operands[0];
    const std::string& right = product.operands[1];
    for (const char c : product.result) {
      std::string& part = has(left, c) && has(right, c) ? product.batch
                          : has(left, c)                ? product.rows
                                                        : product.columns;
      part += c;
    }
    for (const char c : left + right) {
      if (has(product.result, c) || has(product.inner, c)) continue;
      if (!has(left, c) || !has(right, c)) {
        return fail("label '" + std::string(1, c) + "' is summed in one operand alone");
      }
      product.inner += c;
    }
    return true;
  }

  const std::vector<Shape>& shapes_;
  std::string& reason_;
  std::size_t most_ = 0;  ///< dimensions that "..." stands for
};

}  // namespace

Shape EinsumProduct::shape_of(const std::string& labels) const {
  Shape shape;
  for (const char c : labels) shape.push_back(extents.at(c));
  return shape;
}

std::int64_t EinsumProduct::count_of(const std::string& labels) const {
  return checked_element_count(shape_of(labels)).value_or(0);
}

std::optional<EinsumProduct> read_einsum_product(const std::string& equation,
                                                 const std::vector<Shape>& shapes,
                                                 std::string& reason) {
  Reader reader(shapes, reason);
  if (!reader.read(equation)) return std::nullopt;
  return std::move(reader.product);
}

}  // namespace npu
