// SPDX-License-Identifier: Apache-2.0
// A plan as bytes and back. Structs are their fields one behind the other, in the order of kFields;
// a list is its count (32 bits) and its elements, an optional value a bool and the value, an enum
// one byte, a kernel its name and its fields. O(bytes) both ways.
#include "program/plan_format.hpp"

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernels/base/refuse.hpp"

namespace npu::onednn {

namespace {

class Writer {
 public:
  void operator()(const char* /*name*/, const auto& value) { put(value); }

  template <typename T>
  void put(const T& value) {
    if constexpr (kHasFields<T>) {
      for_each_field(value, *this);
    } else if constexpr (std::is_array_v<T>) {
      for (const auto& each : value) put(each);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      const auto* bytes = static_cast<const std::byte*>(static_cast<const void*>(&value));
      bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    }
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const T& each : list) put(each);
  }
  template <typename T, std::size_t kCount>
  void put(const std::array<T, kCount>& list) {
    for (const T& each : list) put(each);
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }
  void put(const Kernel& kernel) {
    std::visit(
        [&](const auto& each) {
          put(std::string(each.kName));
          put(each);
        },
        kernel);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void operator()(const char* name, auto& value) {
    field_ = name;
    get(value);
  }

  template <typename T>
  void get(T& value) {
    if constexpr (kHasFields<T>) {
      for_each_field(value, *this);
    } else if constexpr (std::is_array_v<T>) {
      for (auto& each : value) get(each);
    } else if constexpr (std::is_enum_v<T>) {
      static_assert(kEnumerators<T> > 0 && sizeof value == 1);
      value = static_cast<T>(byte_below(kEnumerators<T>));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = byte_below(2) != 0;
    } else {
      static_assert(std::is_arithmetic_v<T>);
      std::memcpy(&value, take(sizeof value), sizeof value);
    }
  }
  template <typename T>
  void get(std::vector<T>& list) {
    const std::uint32_t count = count_of_list();
    list.clear();
    // An element has one byte at least, so a count that is too large ends before memory does.
    for (std::uint32_t i = 0; i < count; ++i) get(list.emplace_back());
  }
  void get(std::vector<StepRecord>& steps) {
    const std::uint32_t count = count_of_list();
    for (std::uint32_t i = 0; i < count; ++i) {
      try {
        get(steps.emplace_back());
      } catch (const Error& error) {
        refuse("step " + std::to_string(i) + ": " + error.message());
      }
    }
  }
  template <typename T, std::size_t kCount>
  void get(std::array<T, kCount>& list) {
    for (T& each : list) get(each);
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool exists = false;
    get(exists);
    if (exists) get(value.emplace());
  }
  void get(std::string& text) {
    const std::uint32_t count = count_of_list();
    const auto* bytes = static_cast<const char*>(static_cast<const void*>(take(count)));
    text.assign(bytes, count);
  }
  void get(Kernel& kernel) {
    std::string name;
    get(name);
    if (!get_named(name, kernel)) refuse("there is no kernel of the name that it has");
  }

  bool at_end() const noexcept { return bytes_.empty(); }

 private:
  const std::byte* take(std::size_t count) {
    if (count > bytes_.size()) fail("the bytes end there");
    const std::byte* begin = bytes_.data();
    bytes_ = bytes_.subspan(count);
    return begin;
  }
  std::uint32_t count_of_list() {
    std::uint32_t count = 0;
    get(count);
    if (count > bytes_.size()) fail("the bytes end there");
    return count;
  }
  int byte_below(int limit) {
    const int value = std::to_integer<int>(*take(1));
    if (value >= limit) fail("found " + std::to_string(value));
    return value;
  }
  [[noreturn]] void fail(const std::string& reason) const {
    refuse("'" + std::string(field_) + "': " + reason);
  }
  template <std::size_t kIndex = 0>
  bool get_named(const std::string& name, Kernel& kernel) {
    if constexpr (kIndex == std::variant_size_v<Kernel>) {
      return false;
    } else {
      if (name != std::variant_alternative_t<kIndex, Kernel>::kName) {
        return get_named<kIndex + 1>(name, kernel);
      }
      get(kernel.emplace<kIndex>());
      return true;
    }
  }

  std::span<const std::byte> bytes_;
  const char* field_ = "";
};

}  // namespace

std::vector<std::byte> write_plan(const PlanRecord& plan) {
  Writer writer;
  writer.put(plan);
  return writer.take();
}

PlanRecord read_plan(std::span<const std::byte> bytes) {
  PlanRecord plan;
  try {
    Reader reader(bytes);
    reader.get(plan);
    if (!reader.at_end()) refuse("bytes follow its end");
  } catch (const Error& error) {
    refuse("the blob's plan is damaged: " + error.message());
  }
  return plan;
}

}  // namespace npu::onednn
