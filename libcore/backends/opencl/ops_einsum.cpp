// SPDX-License-Identifier: Apache-2.0
// einsum of two operands as a batched matrix product: a letter in both operands and the result is
// a batch dimension, one in both operands alone is summed, the others are rows and columns.
#include <algorithm>
#include <array>

#include "npu/ops/op_name.hpp"
#include "npu/support/checked.hpp"
#include "op_table.hpp"
#include "product_kernel.hpp"

namespace npu::opencl {
namespace {

enum Part : std::uint8_t { kBatch, kRowLetters, kColumnLetters, kSummed, kPartCount };

bool has_letter(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

/// An equation, read and compared with its operands.
struct Einsum {
  std::string left;
  std::string right;
  std::string result;
  std::map<char, std::int64_t> extents;
  std::array<std::string, kPartCount> parts;

  Shape shape_of(const std::string& letters) const {
    Shape shape;
    for (const char letter : letters) shape.push_back(extents.at(letter));
    return shape;
  }
  std::int64_t count_of(Part part) const {
    return checked_element_count(shape_of(parts[part])).value_or(0);
  }
  /// The index of a tensor with these letters, by the places of parts.
  Index index_for(const std::string& letters,
                  std::initializer_list<std::pair<Part, std::string>> known) const {
    std::map<char, std::string> places;
    for (const auto& [part, place] : known) {
      const Index index = index_of_place(place, shape_of(parts[part]));
      for (std::size_t i = 0; i < index.size(); ++i) places[parts[part][i]] = index[i];
    }
    Index index;
    for (const char letter : letters) index.push_back(places.at(letter));
    return index;
  }
};

void note_extents(const Emitter& emitter, const BoundNode& node, Einsum& einsum,
                  const std::string& letters, const Shape& shape) {
  bool fits = letters.size() == shape.size();
  for (std::size_t i = 0; fits && i < letters.size(); ++i) {
    fits = letters.find(letters[i], i + 1) == std::string::npos &&
           einsum.extents.emplace(letters[i], shape[i]).first->second == shape[i];
  }
  if (!fits) emitter.refuse(node.node(), "its equation does not fit its operands");
}

void sort_letters(const Emitter& emitter, const BoundNode& node, Einsum& einsum) {
  for (const auto& [letter, extent] : einsum.extents) {
    const bool in_result = has_letter(einsum.result, letter);
    const bool in_left = has_letter(einsum.left, letter);
    const bool in_both = in_left && has_letter(einsum.right, letter);
    if (!in_result && !in_both) emitter.refuse(node.node(), "a letter is summed in one operand");
    const Part part =
        in_both ? (in_result ? kBatch : kSummed) : (in_left ? kRowLetters : kColumnLetters);
    einsum.parts[part] += letter;
  }
  for (std::size_t i = 0; i < einsum.parts.size(); ++i) {
    const std::string& order = i == kSummed ? einsum.right : einsum.result;
    std::ranges::sort(einsum.parts[i], {}, [&](char letter) { return order.find(letter); });
  }
}

Einsum read_einsum(const Emitter& emitter, const BoundNode& node,
                   const std::vector<TensorId>& tensors) {
  std::string equation = node.string("equation");
  std::erase(equation, ' ');
  const std::size_t comma = equation.find(',');
  const std::size_t arrow = equation.find("->");
  if (tensors.size() != 2 || comma == std::string::npos || arrow == std::string::npos ||
      arrow < comma || has_letter(equation, '.')) {
    emitter.refuse(node.node(), "its equation is not supported");
  }
  Einsum einsum;
  einsum.left = equation.substr(0, comma);
  einsum.right = equation.substr(comma + 1, arrow - comma - 1);
  einsum.result = equation.substr(arrow + 2);
  note_extents(emitter, node, einsum, einsum.left, emitter.shape(tensors[0]));
  note_extents(emitter, node, einsum, einsum.right, emitter.shape(tensors[1]));
  for (std::size_t i = 0; i < einsum.result.size(); ++i) {
    if (!einsum.extents.contains(einsum.result[i])) {
      emitter.refuse(node.node(), "its result has a letter of its own");
    }
    if (einsum.result.find(einsum.result[i], i + 1) != std::string::npos) {
      emitter.refuse(node.node(), "its result has a letter twice");
    }
  }
  sort_letters(emitter, node, einsum);
  emitter.expect_shape(node.node(), 0, einsum.shape_of(einsum.result));
  return einsum;
}

}  // namespace

ProductSpec einsum_product(Emitter& emitter, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  const Einsum einsum = read_einsum(emitter, node, tensors);
  ProductSpec spec;
  spec.dtype = emitter.dtype(tensors[0]);
  if (emitter.dtype(tensors[1]) != spec.dtype) {
    emitter.refuse(node.node(), "its operands differ in dtype");
  }
  emitter.expect_dtype(node.node(), 0, spec.dtype);
  spec.batch = einsum.count_of(kBatch);
  spec.m = einsum.count_of(kRowLetters);
  spec.n = einsum.count_of(kColumnLetters);
  spec.k = einsum.count_of(kSummed);
  spec.right_is_transposed =
      !einsum.right.empty() && has_letter(einsum.parts[kSummed], einsum.right.back());
  spec.left_is_transposed =
      !einsum.left.empty() && has_letter(einsum.parts[kRowLetters], einsum.left.back());
  const TensorId a = tensors[0];
  const TensorId b = tensors[1];
  spec.left = [=, &emitter](const std::string& at, const std::string& m, const std::string& k) {
    return emitter.element(
        a, einsum.index_for(einsum.left, {{kBatch, at}, {kRowLetters, m}, {kSummed, k}}));
  };
  spec.right = [=, &emitter](const std::string& at, const std::string& k, const std::string& n) {
    return emitter.element(
        b, einsum.index_for(einsum.right, {{kBatch, at}, {kColumnLetters, n}, {kSummed, k}}));
  };
  spec.place = [=](const std::string& at, const std::string& m, const std::string& n) {
    return einsum.index_for(einsum.result, {{kBatch, at}, {kRowLetters, m}, {kColumnLetters, n}});
  };
  return spec;
}

}  // namespace npu::opencl
