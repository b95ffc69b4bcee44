// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace npu::gnn {

/// Numbers that several owners read and nobody changes: copies share them.
template <typename Number>
class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(std::vector<Number> numbers)  // NOLINT(google-explicit-constructor): as a vector is
      : numbers_(std::make_shared<const std::vector<Number>>(std::move(numbers))) {}
  SharedArray(std::initializer_list<Number> numbers) : SharedArray(std::vector<Number>(numbers)) {}
  /// Those of a vector that outlives the array and its copies.
  static SharedArray of(const std::vector<Number>& numbers) {
    SharedArray array;
    array.numbers_ = std::shared_ptr<const std::vector<Number>>(&numbers, [](const auto*) {});
    return array;
  }

  std::size_t size() const noexcept { return numbers_ == nullptr ? 0 : numbers_->size(); }
  bool empty() const noexcept { return size() == 0; }
  const Number* data() const noexcept { return numbers_ == nullptr ? nullptr : numbers_->data(); }
  const Number& operator[](std::size_t index) const noexcept { return data()[index]; }
  const Number& back() const noexcept { return data()[size() - 1]; }
  const Number* begin() const noexcept { return data(); }
  const Number* end() const noexcept { return data() + size(); }

  friend bool operator==(const SharedArray& array, const SharedArray& other) {
    return std::equal(array.begin(), array.end(), other.begin(), other.end());
  }
  friend bool operator==(const SharedArray& array, const std::vector<Number>& numbers) {
    return std::equal(array.begin(), array.end(), numbers.begin(), numbers.end());
  }

 private:
  std::shared_ptr<const std::vector<Number>> numbers_;
};

}  // namespace npu::gnn
