// SPDX-License-Identifier: Apache-2.0
// The document of links: there and back, and what it may not say.
#include "gnn/exchange/rank_links.hpp"

#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// The link from rank a to rank b moves 100 * a + b + 1 bytes a second.
RankLinks numbered_links(std::int32_t ranks) {
  RankLinks links;
  links.rank_count = ranks;
  for (std::int32_t from = 0; from < ranks; ++from) {
    for (std::int32_t to = 0; to < ranks; ++to) {
      const RankLink link{100 * from + to + 1, 0.5 * to};
      links.links.push_back(from == to ? RankLink{} : link);
    }
  }
  return links;
}

std::string refusal_of(const Json& document) {
  try {
    links_from_json(document, "links.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("links are read as they are written", "[plan][ranks]") {
  for (const std::int32_t ranks : {1, 2, 5}) {
    const RankLinks links = numbered_links(ranks);
    const RankLinks read = links_from_json(to_json(links), "links.json");
    CHECK(read == links);
    if (ranks > 1) CHECK(read.at(1, 0).bytes_per_second == 101);
  }
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "links.json", to_json(numbered_links(3)).dump());
  CHECK(read_rank_links(folder / "links.json") == numbered_links(3));
}

TEST_CASE("links that cannot be are refused with their place", "[plan][ranks]") {
  using Catch::Matchers::Contains;
  const Json good = to_json(numbered_links(3));
  REQUIRE(refusal_of(good) == "none");
  const auto refused = [&](const std::string& pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return refusal_of(bad);
  };
  CHECK_THAT(refused("/npu/kind", "plan"), Contains("npu-profile --links writes"));
  CHECK_THAT(refusal_of(Json::array()), Contains("links.json"));
  CHECK_THAT(refused("/ranks", 0), Contains("/ranks"));
  CHECK_THAT(refused("/ranks", 1025), Contains("/ranks"));
  CHECK_THAT(refused("/ranks", 4), Contains("the link from rank 0 to rank 3 is missing"));
  CHECK_THAT(refused("/ranks", 2), Contains("/links/1/to"));
  CHECK_THAT(refused("/links/0/to", 0), Contains("a rank sends nothing to itself"));
  CHECK_THAT(refused("/links/1/to", 1), Contains("this link is listed twice"));
  CHECK_THAT(refused("/links/0/from", -1), Contains("/links/0/from"));
  CHECK_THAT(refused("/links/2/bytes_per_second", 0), Contains("/links/2/bytes_per_second"));
  CHECK_THAT(refused("/links/2/latency_us", 1e10), Contains("/links/2/latency_us"));
}
