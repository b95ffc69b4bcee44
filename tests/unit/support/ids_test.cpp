// SPDX-License-Identifier: Apache-2.0
#include "npu/support/ids.hpp"

#include <string>
#include <unordered_set>

#include "catch.hpp"

using namespace npu;

namespace {
using AppleId = Id<struct AppleTag>;
using PearId = Id<struct PearTag>;
}  // namespace

TEST_CASE("An id without a value is not valid; one of an index has that index") {
  CHECK_FALSE(AppleId{}.valid());
  CHECK(id_at<AppleId>(3).valid());
  CHECK(index_of(id_at<AppleId>(3)) == 3);
  CHECK(id_at<AppleId>(3) == AppleId{3});
  CHECK(AppleId{2} < AppleId{3});
  CHECK(index_of(AppleId{7}) == 7);
  CHECK(index_of(std::int32_t{7}) == 7);
}

TEST_CASE("Ids of different lists are different types") {
  CHECK_FALSE((std::is_same_v<AppleId, PearId>));
  CHECK_FALSE((std::is_convertible_v<AppleId, PearId>));
  CHECK_FALSE((std::is_convertible_v<std::int32_t, AppleId>));
}

TEST_CASE("Ids are keys of hash tables") {
  const std::unordered_set<AppleId> set{AppleId{1}, AppleId{2}, AppleId{1}};
  CHECK(set.size() == 2);
  CHECK(set.contains(AppleId{2}));
}

TEST_CASE("A vector of ids is indexed by its ids and counts them in order") {
  IdVector<AppleId, std::string> names;
  CHECK(names.empty());
  const AppleId first = names.push_back("boskoop");
  const AppleId second = names.push_back("gala");
  CHECK(first == AppleId{0});
  CHECK(names[second] == "gala");
  names[first] = "elstar";
  std::string all;
  for (const AppleId id : names.ids()) all += names[id] + ' ';
  CHECK(all == "elstar gala ");

  std::string again;
  for (const AppleId id : ids_of<AppleId>(names)) again += names[id] + ' ';
  CHECK(again == all);

  IdVector<AppleId, int> counts(3, 5);
  counts.resize(4, 1);
  CHECK(counts.items() == std::vector<int>{5, 5, 5, 1});
  counts.assign(2, 0);
  CHECK(counts.size() == 2);
}

TEST_CASE("The range of an empty list is empty") {
  for (const AppleId id : IdRange<AppleId>(0)) FAIL("an id " << id.value);
  SUCCEED();
}
