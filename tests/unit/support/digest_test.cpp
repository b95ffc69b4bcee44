// SPDX-License-Identifier: Apache-2.0
// Digests are stored in files: they must be XXH3's on every machine and in every build.
#include "support/digest.hpp"

#include <set>
#include <string>

#include "catch.hpp"

using namespace npu;

TEST_CASE("64-bit digests are those of XXH3", "[support][digest]") {
  CHECK(hex_text(xxh3_64("", 0)) == "2d06800538d394c2");  // the published value for no bytes
  const std::string text(100'000, 'x');
  const std::string_view view = text;
  // Cut anywhere, the pieces give what the whole gives.
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{99'999}}) {
    CHECK(xxh3_64({view.substr(0, cut), view.substr(cut)}) == xxh3_64(text.data(), text.size()));
  }
}

TEST_CASE("numbers are written with all their digits", "[support][digest]") {
  CHECK(hex_text(0) == "0000000000000000");
  CHECK(hex_text(0x0123456789abcdefU) == "0123456789abcdef");
}

TEST_CASE("fields cannot run into each other", "[support][digest]") {
  std::set<std::string> seen;
  const auto of = [&](std::initializer_list<std::string_view> fields) {
    Digest digest;
    for (const std::string_view field : fields) digest.add(field);
    CHECK(digest.hex().size() == 32);
    seen.insert(digest.hex());
  };
  of({});
  of({""});
  of({"", ""});
  of({"ab", "c"});
  of({"a", "bc"});
  of({"abc"});
  CHECK(seen.size() == 6);
}
