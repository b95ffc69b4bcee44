// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace npu {

/// A non-negative number as a container index.
template <std::integral Number>
constexpr std::size_t index_of(Number number) noexcept {
  return static_cast<std::size_t>(number);
}

/// The index of an element in a list. Ids into lists of different things are different types, so
/// that they cannot be mixed up; `Tag` only tells them apart.
template <typename Tag>
struct Id {
  std::int32_t value = -1;
  constexpr bool valid() const noexcept { return value >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

/// Id, NodeId, TensorId and other types of this form: aggregates of one number.
template <typename IdType>
concept IdLike = std::same_as<decltype(IdType::value), std::int32_t>;

/// The index of an id, which must be valid.
template <IdLike IdType>
constexpr std::size_t index_of(IdType id) noexcept {
  return static_cast<std::size_t>(id.value);
}

/// The id of element `index` of a list.
template <IdLike IdType>
constexpr IdType id_at(std::size_t index) noexcept {
  return IdType{static_cast<std::int32_t>(index)};
}

/// The ids of a list of `size` elements, for loops:
/// `for (const NodeId id : ids_of<NodeId>(graph.nodes()))`.
template <IdLike IdType>
class IdRange {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using pointer = const IdType*;
    using reference = IdType;

    constexpr Iterator() = default;
    constexpr explicit Iterator(std::int32_t value) noexcept : value_(value) {}
    constexpr IdType operator*() const noexcept { return IdType{value_}; }
    constexpr Iterator& operator++() noexcept {
      ++value_;
      return *this;
    }
    constexpr Iterator operator++(int) noexcept { return Iterator(value_++); }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::int32_t value_ = 0;
  };

  constexpr explicit IdRange(std::size_t size) noexcept : size_(static_cast<std::int32_t>(size)) {}
  constexpr Iterator begin() const noexcept { return Iterator(0); }
  constexpr Iterator end() const noexcept { return Iterator(size_); }

 private:
  std::int32_t size_;
};

template <IdLike IdType, typename List>
constexpr IdRange<IdType> ids_of(const List& list) noexcept {
  return IdRange<IdType>(list.size());
}

/// A std::vector indexed by ids of one type. Use char for flags, since
/// std::vector<bool> packs its elements.
template <IdLike IdType, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T()) : items_(size, value) {}

  T& operator[](IdType id) noexcept { return items_[index_of(id)]; }
  const T& operator[](IdType id) const noexcept { return items_[index_of(id)]; }

  std::size_t size() const noexcept { return items_.size(); }
  bool empty() const noexcept { return items_.empty(); }
  void assign(std::size_t size, const T& value) { items_.assign(size, value); }
  void resize(std::size_t size) { items_.resize(size); }
  void resize(std::size_t size, const T& value) { items_.resize(size, value); }
  void reserve(std::size_t size) { items_.reserve(size); }
  void clear() noexcept { items_.clear(); }
  /// Appends an element and returns its id.
  IdType push_back(T value) {
    items_.push_back(std::move(value));
    return id_at<IdType>(items_.size() - 1);
  }

  IdRange<IdType> ids() const noexcept { return IdRange<IdType>(items_.size()); }
  auto begin() noexcept { return items_.begin(); }
  auto end() noexcept { return items_.end(); }
  auto begin() const noexcept { return items_.begin(); }
  auto end() const noexcept { return items_.end(); }
  /// The plain vector, for code that does not use ids.
  std::vector<T>& items() noexcept { return items_; }
  const std::vector<T>& items() const noexcept { return items_; }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> items_;
};

}  // namespace npu

template <typename Tag>
struct std::hash<npu::Id<Tag>> {
  std::size_t operator()(npu::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
