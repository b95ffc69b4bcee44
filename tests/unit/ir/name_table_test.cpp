// SPDX-License-Identifier: Apache-2.0
#include "npu/ir/name_table.hpp"

#include <functional>
#include <string>

#include "catch.hpp"

using namespace npu;

namespace {

/// A list of names and its table.
struct NamedList {
  std::vector<std::string> list;
  NameTable table;

  std::int32_t add(const std::string& name) {
    list.push_back(name);
    return table.insert(name, static_cast<std::int32_t>(list.size()) - 1, name_of());
  }
  std::int32_t find(std::string_view name) const { return table.find(name, name_of()); }

 private:
  std::function<const std::string&(std::int32_t)> name_of() const {
    return
        [this](std::int32_t i) -> const std::string& { return list[static_cast<std::size_t>(i)]; };
  }
};

}  // namespace

TEST_CASE("name table: an empty one finds nothing") {
  NamedList names;
  CHECK(names.find("a") == -1);
  CHECK(names.find("") == -1);
  names.table.reserve(100);
  CHECK(names.find("a") == -1);
}

TEST_CASE("name table: the first element keeps a name") {
  NamedList names;
  CHECK(names.add("a") == -1);
  CHECK(names.add("") == -1);
  CHECK(names.add("a") == 0);
  CHECK(names.add("b") == -1);
  CHECK(names.find("a") == 0);
  CHECK(names.find("") == 1);
  CHECK(names.find("b") == 3);
  CHECK(names.find("c") == -1);
}

TEST_CASE("name table: finds all of many names, however it has grown") {
  const bool reserves = GENERATE(false, true);
  constexpr std::int32_t kCount = 20'000;
  NamedList names;
  if (reserves) names.table.reserve(kCount);
  for (std::int32_t i = 0; i < kCount; ++i) {
    REQUIRE(names.add("node_" + std::to_string(i)) == -1);
  }
  const NamedList copy = names;
  for (std::int32_t i = 0; i < kCount; ++i) {
    REQUIRE(names.find("node_" + std::to_string(i)) == i);
    REQUIRE(copy.find("node_" + std::to_string(i)) == i);
    REQUIRE(names.find("tensor_" + std::to_string(i)) == -1);
  }
}
