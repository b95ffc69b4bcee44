// SPDX-License-Identifier: Apache-2.0
// Expressions are texts: numbers are folded here, and an index that was taken apart and is put
// together again, which compilers do not see through; the rest is left to the driver's compiler.
// O(rank^3) at most.
#include "emit/index.hpp"

#include <algorithm>
#include <cstddef>

namespace npu::opencl {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The dimensions of `shape` that are not 1.
std::vector<std::size_t> real_dimensions(const Shape& shape) {
  std::vector<std::size_t> result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) result.push_back(d);
  }
  return result;
}

}  // namespace

std::string plus(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  if (b == "0") return a;
  if (is_number(a) && is_number(b)) return std::to_string(std::stoll(a) + std::stoll(b));
  return "(" + a + " + " + b + ")";
}

std::string plus(const std::string& a, std::int64_t b) {
  if (b < 0) return "(" + a + " - " + std::to_string(-b) + ")";
  return plus(a, std::to_string(b));
}

std::string times(const std::string& a, std::int64_t factor) {
  if (a == "0" || factor == 0) return "0";
  if (factor == 1) return a;
  if (is_number(a)) return std::to_string(std::stoll(a) * factor);
  return "(" + a + " * " + std::to_string(factor) + ")";
}

std::string divided(const std::string& a, std::int64_t divisor) {
  if (divisor == 1 || a == "0") return a;
  if (is_number(a)) return std::to_string(std::stoll(a) / divisor);
  return "(" + a + " / " + std::to_string(divisor) + ")";
}

std::string modulo(const std::string& a, std::int64_t divisor) {
  if (divisor == 1 || a == "0") return "0";
  if (is_number(a)) return std::to_string(std::stoll(a) % divisor);
  return "(" + a + " % " + std::to_string(divisor) + ")";
}

namespace {

/// The dividend of a remainder that modulo() wrote; empty if it is none.
std::string dividend_of(const std::string& text, std::int64_t divisor) {
  const std::string end = " % " + std::to_string(divisor) + ")";
  if (!text.starts_with("(") || !text.ends_with(end)) return {};
  return text.substr(1, text.size() - 1 - end.size());
}

/// Indices that index_of_place() made of one place are that place again.
struct Joined {
  std::size_t first;  ///< dimension
  std::string place;
};

Joined joined_dimensions(const Index& index, const Shape& shape, std::size_t last) {
  const std::string place = dividend_of(index[last], shape[last]);
  if (place.empty()) return {last, index[last]};
  for (std::size_t first = 0; first < last; ++first) {
    const auto from = static_cast<std::ptrdiff_t>(first);
    const auto to = static_cast<std::ptrdiff_t>(last) + 1;
    const Shape part(shape.begin() + from, shape.begin() + to);
    if (std::equal(index.begin() + from, index.begin() + to, index_of_place(place, part).begin())) {
      return {first, place};
    }
  }
  return {last, index[last]};
}

}  // namespace

std::string linear_place(const Index& index, const Shape& shape) {
  std::string place = "0";
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const Joined joined = joined_dimensions(index, shape, d);
    place = plus(times(joined.place, stride), place);
    for (;; --d) {
      stride *= std::max<std::int64_t>(shape[d], 1);
      if (d == joined.first) break;
    }
  }
  return place;
}

Index index_of_place(const std::string& place, const Shape& shape) {
  Index index(shape.size(), "0");
  const std::vector<std::size_t> real = real_dimensions(shape);
  std::int64_t stride = 1;
  for (std::size_t i = real.size(); i-- > 0;) {
    const std::size_t d = real[i];
    const std::string above = divided(place, stride);
    index[d] = i == 0 ? above : modulo(above, std::max<std::int64_t>(shape[d], 1));
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  return index;
}

Index reshaped_index(const Index& index, const Shape& from, const Shape& to) {
  if (from == to) return index;
  const std::vector<std::size_t> sources = real_dimensions(from);
  const std::vector<std::size_t> targets = real_dimensions(to);
  Index result(to.size(), "0");
  std::size_t s = 0;
  std::size_t t = 0;
  while (s < sources.size() && t < targets.size()) {
    // The fewest dimensions of both sides that have equally many elements.
    Index group_index{index[sources[s]]};
    Shape group_from{from[sources[s]]};
    Shape group_to{to[targets[t]]};
    std::int64_t count_from = group_from[0];
    std::int64_t count_to = group_to[0];
    const std::size_t first = t;
    ++s, ++t;
    while (count_from != count_to && (s < sources.size() || t < targets.size())) {
      if ((count_from < count_to || t == targets.size()) && s < sources.size()) {
        group_index.push_back(index[sources[s]]);
        group_from.push_back(from[sources[s]]);
        count_from *= from[sources[s++]];
      } else {
        group_to.push_back(to[targets[t]]);
        count_to *= to[targets[t++]];
      }
    }
    const Index part = group_from == group_to
                           ? group_index
                           : index_of_place(linear_place(group_index, group_from), group_to);
    for (std::size_t i = 0; i < part.size(); ++i) result[targets[first + i]] = part[i];
  }
  return result;
}

Index broadcast_index(const Index& index, const Shape& operand) {
  Index result(operand.size(), "0");
  const std::size_t skipped = index.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] != 1) result[d] = index[skipped + d];
  }
  return result;
}

bool join_shape(Shape& shape, const Shape& other) {
  if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& extent = shape[shape.size() - 1 - i];
    const std::int64_t wanted = other[other.size() - 1 - i];
    if (extent != wanted && extent != 1 && wanted != 1) return false;
    if (extent == 1) extent = wanted;
  }
  return true;
}

std::string index_key(const Index& index) {
  std::string key = "[";
  for (const std::string& each : index) key += each + ",";
  return key + "]";
}

}  // namespace npu::opencl
