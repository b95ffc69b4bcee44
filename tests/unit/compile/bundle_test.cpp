// SPDX-License-Identifier: Apache-2.0
// Bundles are read as they were written, every byte is guarded, and no manifest leads outside.
#include "npu/compile/bundle.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "catch.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/digest.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;

namespace {

std::shared_ptr<const std::byte> bytes_of(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, reinterpret_cast<const std::byte*>(owner->data())};
}

BundleContent sample() {
  BundleContent content;
  content.producer = "test";
  content.target = "host";
  content.precision = "f32";
  content.entries.front().document = "{\"nodes\": []}";
  content.provenance["model"] = "sample";
  for (const std::string blob : {"first blob", "second"}) {
    content.entries.front().partitions.push_back({{.device = "cpu",
                                                   .backend = "aten",
                                                   .backend_version = "1",
                                                   .fingerprint = "any",
                                                   .section = 0,
                                                   .holds_weights = false,
                                                   .report = Json{{"nodes", 1}}},
                                                  bytes_of(blob),
                                                  blob.size()});
  }
  Tensor floats(DType::kFloat32, {2, 3});
  for (int i = 0; i < 6; ++i) floats.as_mutable<float>()[i] = static_cast<float>(i);
  content.entries.front().weights.emplace_back("w", floats);
  content.entries.front().weights.emplace_back("scalar", Tensor(DType::kInt64, {}));
  content.entries.front().weights.emplace_back("none", Tensor(DType::kFloat32, {0}));
  content.entries.front().weights.emplace_back("mask", Tensor(DType::kBool, {3}));
  return content;
}

/// Two sizes of a model: one blob for both, and weights of which one differs.
BundleContent sized_sample() {
  BundleContent content = sample();
  content.documents.front().template_text = R"({"npu": {"symbols": {"S": {}}}})";
  BundleContent::Entry& small = content.entries.front();
  small.partitions.pop_back();
  small.weights.resize(2);
  small.name = "S=8";
  small.bound = {{"S", 8}};
  small.predicted_us = 1.5;
  BundleContent::Entry large = small;
  large.name = "S=16";
  large.bound = {{"S", 16}};
  large.predicted_us = 3;
  large.has_last_row = true;
  large.document = R"({"nodes": [], "graph_outputs": []})";
  large.weights.front().second = Tensor(DType::kFloat32, {2, 3});
  std::memcpy(large.weights.front().second.mutable_data(), small.weights.front().second.data(), 24);
  large.weights.back().second = Tensor(DType::kInt64, {});
  large.weights.back().second.as_mutable<std::int64_t>()[0] = 7;
  content.entries.push_back(std::move(large));
  return content;
}

/// Two documents: one with two sizes, and one without any.
BundleContent document_sample() {
  BundleContent content = sized_sample();
  content.documents.front().name = "encode";
  content.documents.push_back({"decode", ""});
  BundleContent::Entry decode = content.entries.front();
  decode.name = "decode";
  decode.of = 1;
  decode.bound.clear();
  content.entries.push_back(std::move(decode));
  return content;
}

std::string refusal(const std::string& bytes) {
  try {
    Bundle::from_bytes(bytes, "b");
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::kParse));
    CHECK(error.location().file.starts_with("b"));
    return error.message();
  }
  return {};
}

void put_u64(std::string& bytes, std::size_t at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

std::uint64_t get_u64(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

/// The bundle with its manifest changed and every digest of header and manifest right again, as a
/// forger would have it. The manifest keeps its room: it is padded or must fit.
std::string forged(std::string bytes, const std::function<void(Json&)>& change) {
  const std::size_t size = get_u64(bytes, 32);
  Json manifest = Json::parse(bytes.substr(64, size));
  change(manifest);
  const std::string text = manifest.dump();
  REQUIRE(text.size() <= kBundleAlignment - 64);
  std::string padded = text;
  padded.resize(kBundleAlignment - 64, '\0');
  bytes.replace(64, kBundleAlignment - 64, padded);
  put_u64(bytes, 32, text.size());
  put_u64(bytes, 40, xxh3_64(text.data(), text.size()));
  put_u64(bytes, 56, xxh3_64(bytes.data(), 56));
  return bytes;
}

struct Forgery {
  const char* name;
  std::function<void(Json&)> change;
  const char* message;
};

/// Well-formed files whose manifest lies. testdata/bad/bundle has them as files.
const std::vector<Forgery>& forgeries() {
  static const std::vector<Forgery> list{
      {"section-outside", [](Json& m) { m["sections"][1]["offset"] = 1 << 20; }, "of a file of"},
      {"section-size-overflows", [](Json& m) { m["sections"][1]["size"] = std::uint64_t{1} << 63; },
       "of a file of"},
      {"section-offset-huge", [](Json& m) { m["sections"][1]["offset"] = 0xfffffffffffff000U; },
       "of a file of"},
      {"sections-overlap", [](Json& m) { m["sections"][2]["offset"] = m["sections"][1]["offset"]; },
       "overlaps"},
      {"section-over-manifest", [](Json& m) { m["sections"][0]["offset"] = 0; }, "overlaps"},
      {"section-not-aligned", [](Json& m) { m["sections"][1]["offset"] = 8193; },
       "is not a multiple of 4096"},
      {"section-digest-differs", [](Json& m) { m["sections"][1]["xxh3"] = "0000000000000000"; },
       "is damaged"},
      {"section-digest-short", [](Json& m) { m["sections"][1]["xxh3"] = "00"; }, "is no digest"},
      {"section-left-out", [](Json& m) { m["sections"].erase(3); }, "behind its last section"},
      {"sections-missing", [](Json& m) { m.erase("sections"); }, "is missing"},
      {"sections-object", [](Json& m) { m["sections"] = Json::object(); }, "expected an array"},
      {"document-missing", [](Json& m) { m["sections"][0]["name"] = "other"; },
       "no section 'document'"},
      {"partition-section-outside", [](Json& m) { m["partitions"][0]["section"] = 9; },
       "there is no section 9"},
      {"partition-backend-integer", [](Json& m) { m["partitions"][0]["backend"] = 1; },
       "expected a string"},
      {"partition-report-array", [](Json& m) { m["partitions"][0]["report"] = Json::array(); },
       "expected an object"},
      {"weight-outside", [](Json& m) { m["weights"][0]["offset"] = 4096; },
       "does not lie in section"},
      {"weight-shape-huge",
       [](Json& m) {
         m["weights"][0]["shape"] = {INT64_MAX, INT64_MAX};
       },
       "does not lie in section"},
      {"weight-shape-negative",
       [](Json& m) {
         m["weights"][0]["shape"] = {-1, 2};
       },
       "expected non-negative integers"},
      {"weight-dtype-unknown", [](Json& m) { m["weights"][0]["dtype"] = "float7"; },
       "unknown dtype"},
      {"weight-not-aligned", [](Json& m) { m["weights"][0]["offset"] = 1; },
       "does not lie in section"},
      {"weight-twice", [](Json& m) { m["weights"][1]["name"] = "w"; }, "stands there twice"},
      {"weights-without-section",
       [](Json& m) {
         m["sections"][3]["name"] = "other";
         for (Json& weight : m["weights"]) weight["shape"] = {0};
       },
       "no section 'weights'"},
      {"target-missing", [](Json& m) { m.erase("target"); }, "is missing"},
      {"manifest-array", [](Json& m) { m = Json::array(); }, "expected an object"},
  };
  return list;
}

/// The same of a bundle with entries.
const std::vector<Forgery>& document_forgeries() {
  static const std::vector<Forgery> list{
      {"document-twice", [](Json& m) { m["documents"][1]["name"] = "encode"; },
       "'encode' stands there twice"},
      {"document-without-name", [](Json& m) { m["documents"][1]["name"] = ""; },
       "a document needs a name"},
      {"documents-single", [](Json& m) { m["documents"].erase(1); },
       "expected at least two documents"},
      {"documents-integer", [](Json& m) { m["documents"] = 3; }, "expected an array"},
      {"document-template-outside", [](Json& m) { m["documents"][0]["template"] = 99; },
       "there is no section 99"},
      {"entry-of-outside", [](Json& m) { m["entries"][2]["of"] = 2; }, "there is no document 2"},
      {"entry-of-missing", [](Json& m) { m["entries"][2].erase("of"); }, "is missing"},
  };
  return list;
}

const std::vector<Forgery>& entry_forgeries() {
  static const std::vector<Forgery> list{
      {"entries-missing", [](Json& m) { m.erase("entries"); }, "is missing"},
      {"entries-none", [](Json& m) { m["entries"] = Json::array(); }, "at least one entry"},
      {"entry-twice", [](Json& m) { m["entries"][1]["name"] = "S=8"; }, "stands there twice"},
      {"entry-without-name", [](Json& m) { m["entries"][0]["name"] = ""; }, "needs a name"},
      {"entry-bound-negative", [](Json& m) { m["entries"][0]["bound"]["S"] = -1; },
       "expected integers of at least 0"},
      {"entry-bound-huge", [](Json& m) { m["entries"][0]["bound"]["S"] = std::uint64_t{1} << 63; },
       "expected integers of at least 0"},
      {"entry-bound-list", [](Json& m) { m["entries"][0]["bound"] = {1}; }, "expected an object"},
      {"entry-time-negative", [](Json& m) { m["entries"][0]["predicted_us"] = -1; },
       "expected a number"},
      {"entry-logits-of-some", [](Json& m) { m["entries"][0]["logits"] = "first"; },
       "expected 'last'"},
      {"entry-document-outside", [](Json& m) { m["entries"][0]["document"] = 5; },
       "there is no section 5"},
      {"entry-partition-outside",
       [](Json& m) { m["entries"][0]["partitions"][0]["section"] = 1e9; }, "expected"},
      {"entry-weight-outside", [](Json& m) { m["entries"][0]["weights"][0] = 3; },
       "list of 3 weights"},
      {"entry-weight-negative", [](Json& m) { m["entries"][0]["weights"][0] = -1; },
       "list of 3 weights"},
      {"entry-weight-twice",
       [](Json& m) {
         m["entries"][0]["weights"] = {0, 0};
       },
       "stands there twice"},
      {"template-outside", [](Json& m) { m["template"] = 5; }, "there is no section 5"},
      {"template-text", [](Json& m) { m["template"] = "0"; }, "expected"},
  };
  return list;
}

}  // namespace

TEST_CASE("a bundle holds what was written, aligned and in place", "[compile][bundle]") {
  const test::TemporaryFolder folder;
  const BundleContent content = sample();
  write_bundle(folder / "b.npub", content);
  CHECK(Bundle::is_bundle(folder / "b.npub"));
  const auto bundle = Bundle::open(folder / "b.npub");
  CHECK(bundle->document() == content.entries.front().document);
  CHECK(bundle->target() == "host");
  CHECK(bundle->precision() == "f32");
  REQUIRE(bundle->entries().front().partitions.size() == 2);
  const BundlePartition& second = bundle->entries().front().partitions[1];
  CHECK(second.backend == "aten");
  CHECK(*second.report == Json{{"nodes", 1}});
  CHECK(std::memcmp(bundle->section(second.section).get(), "second", 6) == 0);
  for (const BundleSection& section : bundle->sections()) {
    CHECK(section.offset % kBundleAlignment == 0);
  }
  REQUIRE(bundle->weights().size() == 4);
  const Tensor floats = bundle->weight(bundle->weights()[0]);
  CHECK(floats.as<float>()[5] == 5.0F);
  CHECK(reinterpret_cast<std::uintptr_t>(floats.data()) % 64 == 0);
  CHECK(bundle->weight(bundle->weights()[1]).bytes() == 8);
  CHECK(bundle->weight(bundle->weights()[2]).bytes() == 0);
  CHECK(folder.entries() == 1);  // nothing temporary is left
}

TEST_CASE("the same content gives the same bytes, in memory as in a file", "[compile][bundle]") {
  const test::TemporaryFolder folder;
  write_bundle(folder / "a", sample());
  const std::string bytes = bundle_bytes(sample());
  CHECK(read_file(folder / "a") == bytes);
  CHECK(Bundle::from_bytes(bytes, "b")->document() == sample().entries.front().document);
}

TEST_CASE("a bundle without partitions or weights is one", "[compile][bundle]") {
  BundleContent content = sample();
  content.entries.front().partitions.clear();
  content.entries.front().weights.clear();
  CHECK(Bundle::from_bytes(bundle_bytes(content), "b")->entries().front().partitions.empty());
}

TEST_CASE("entries of a bundle share what is equal", "[compile][bundle]") {
  const BundleContent content = sized_sample();
  const auto bundle = Bundle::from_bytes(bundle_bytes(content), "b");
  CHECK(bundle->template_document() == content.documents.front().template_text);
  REQUIRE(bundle->entries().size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const BundleEntry& entry = bundle->entries()[i];
    const BundleContent::Entry& written = content.entries[i];
    CHECK(entry.name == written.name);
    CHECK(entry.bound == written.bound);
    CHECK(entry.predicted_us == written.predicted_us);
    CHECK(entry.has_last_row == written.has_last_row);
    CHECK(bundle->document(i) == written.document);
    REQUIRE(entry.partitions.size() == 1);
    REQUIRE(entry.weights.size() == 2);
    for (std::size_t w = 0; w < 2; ++w) {
      const BundleWeight& weight = bundle->weights()[entry.weights[w]];
      CHECK(weight.name == written.weights[w].first);
      CHECK(std::memcmp(bundle->weight(weight).data(), written.weights[w].second.data(),
                        written.weights[w].second.bytes()) == 0);
    }
  }
  const auto& [small, large] = std::pair(bundle->entries()[0], bundle->entries()[1]);
  CHECK(small.partitions[0].section == large.partitions[0].section);
  CHECK(small.weights[0] == large.weights[0]);
  CHECK(small.weights[1] != large.weights[1]);
  CHECK(bundle->weights().size() == 3);
  CHECK(bundle->sections().size() == 5);  // template, two documents, a blob, weights
  const std::string text = format_bundle(*bundle);
  CHECK_THAT(text, Catch::Contains("S=16 0"));
  CHECK(bundle_info(*bundle)["entries"].size() == 2);
}

TEST_CASE("a bundle of several documents says which its entries are made of", "[compile][bundle]") {
  const auto bundle = Bundle::from_bytes(bundle_bytes(document_sample()), "b");
  REQUIRE(bundle->documents().size() == 2);
  CHECK(bundle->documents()[0].name == "encode");
  CHECK(bundle->documents()[1].name == "decode");
  CHECK(bundle->template_document(0) == document_sample().documents[0].template_text);
  CHECK(bundle->template_document(1).empty());
  REQUIRE(bundle->entries().size() == 3);
  CHECK(bundle->entries()[1].of == 0);
  CHECK(bundle->entries()[2].of == 1);
  CHECK(bundle->entries()[2].weights == bundle->entries()[0].weights);
  CHECK_FALSE(bundle->manifest().contains("template"));
  CHECK_THAT(format_bundle(*bundle), Catch::Contains("decode 0"));
}

TEST_CASE("a single entry with a template keeps its name", "[compile][bundle]") {
  BundleContent content = sized_sample();
  content.entries.pop_back();
  const auto bundle = Bundle::from_bytes(bundle_bytes(content), "b");
  REQUIRE(bundle->entries().size() == 1);
  CHECK(bundle->entries().front().name == "S=8");
}

TEST_CASE("any byte of a bundle with entries that changes is found", "[compile][bundle]") {
  const std::string bytes = bundle_bytes(sized_sample());
  REQUIRE(refusal(bytes).empty());
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    INFO("byte " << i);
    REQUIRE_FALSE(refusal(damaged).empty());
  }
  for (const std::size_t section : {0U, 1U, 3U}) {  // the template and the documents
    std::string damaged = bytes;
    damaged[Bundle::from_bytes(bytes, "b")->sections()[section].offset] ^= 1;
    INFO("section " << section);
    CHECK_THROWS_AS(Bundle::from_bytes(damaged, "b", DigestCheck::kOmitted), Error);
  }
}

TEST_CASE("layouts of a partition come back as they were", "[compile][bundle]") {
  BundleContent content = sample();
  const std::map<std::string, std::string> layouts{{"x", "b:1"}, {"y", "b:2"}};
  content.entries.front().partitions[1].entry.layouts = layouts;
  const std::string bytes = bundle_bytes(content);
  const auto bundle = Bundle::from_bytes(bytes, "b");
  CHECK(bundle->entries().front().partitions[0].layouts.empty());
  CHECK(bundle->entries().front().partitions[1].layouts == layouts);
  for (const Json& none : {Json(3), Json::array({"b:1"}), Json{{"x", 1}}, Json{{"x", ""}}}) {
    INFO(none.dump());
    CHECK_FALSE(
        refusal(forged(bytes, [&](Json& m) { m["partitions"][1]["layouts"] = none; })).empty());
  }
}

TEST_CASE("a manifest longer than a page moves the sections", "[compile][bundle]") {
  BundleContent content = sample();
  content.provenance["note"] = std::string(20000, 'x');
  const auto bundle = Bundle::from_bytes(bundle_bytes(content), "b");
  CHECK(bundle->sections().front().offset == 6 * kBundleAlignment);  // 64 + 21 kB, rounded up
  CHECK(bundle->document() == content.entries.front().document);
}

TEST_CASE("any byte that changes is found", "[compile][bundle]") {
  const std::string bytes = bundle_bytes(sample());
  REQUIRE(refusal(bytes).empty());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    INFO("byte " << i);
    REQUIRE_FALSE(refusal(damaged).empty());
  }
}

TEST_CASE("sections can be checked when they are used, or never", "[compile][bundle]") {
  const std::string bytes = bundle_bytes(sample());
  const auto whole = Bundle::from_bytes(bytes, "b");
  const std::size_t count = whole->sections().size();
  REQUIRE(count == 4);  // document, two partitions, weights
  for (std::size_t damaged = 0; damaged < count; ++damaged) {
    std::string copy = bytes;
    copy[whole->sections()[damaged].offset] ^= 1;
    INFO("section " << damaged);
    CHECK(refusal(copy) ==
          "section '" + whole->sections()[damaged].name + "' is damaged: its digest differs");
    if (damaged == 0) {  // whoever opens a bundle reads its document
      CHECK_THROWS_AS(Bundle::from_bytes(copy, "b", DigestCheck::kOnUse), Error);
      CHECK_THROWS_AS(Bundle::from_bytes(copy, "b", DigestCheck::kOmitted), Error);
      continue;
    }
    const auto lazy = Bundle::from_bytes(copy, "b", DigestCheck::kOnUse);
    const auto blind = Bundle::from_bytes(copy, "b", DigestCheck::kOmitted);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK_NOTHROW(blind->check_section(i));
      for (int again = 0; again < 2; ++again) {  // what is damaged stays so
        if (i == damaged) {
          CHECK_THROWS_AS(lazy->check_section(i), Error);
        } else {
          CHECK_NOTHROW(lazy->check_section(i));
        }
      }
    }
    if (damaged == 3) CHECK_THROWS_AS(lazy->weight(lazy->weights()[0]), Error);
  }
}

TEST_CASE("a bundle that was cut short or has more behind it is refused", "[compile][bundle]") {
  const std::string bytes = bundle_bytes(sample());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{63},
                                 std::size_t{64}, std::size_t{4096}, bytes.size() - 1}) {
    INFO(size << " bytes");
    CHECK_FALSE(refusal(bytes.substr(0, size)).empty());
  }
  CHECK_FALSE(refusal(bytes + '\0').empty());
}

TEST_CASE("a manifest that leads out of the file or contradicts itself is refused",
          "[compile][bundle]") {
  const std::string bytes = bundle_bytes(sample());
  for (const Forgery& forgery : forgeries()) {
    INFO(forgery.name);
    CHECK_THAT(refusal(forged(bytes, forgery.change)), Catch::Contains(forgery.message));
  }
  CHECK(refusal(forged(bytes, [](Json&) {})).empty());  // the forger's work itself is sound
  const std::string sized = bundle_bytes(sized_sample());
  for (const Forgery& forgery : entry_forgeries()) {
    INFO(forgery.name);
    CHECK_THAT(refusal(forged(sized, forgery.change)), Catch::Contains(forgery.message));
  }
  CHECK(refusal(forged(sized, [](Json&) {})).empty());
  const std::string documents = bundle_bytes(document_sample());
  for (const Forgery& forgery : document_forgeries()) {
    INFO(forgery.name);
    CHECK_THAT(refusal(forged(documents, forgery.change)), Catch::Contains(forgery.message));
  }
  CHECK(refusal(forged(documents, [](Json&) {})).empty());
}

TEST_CASE("another version is named", "[compile][bundle]") {
  std::string bytes = bundle_bytes(sample());
  put_u64(bytes, 8, 2);
  put_u64(bytes, 56, xxh3_64(bytes.data(), 56));
  CHECK_THAT(refusal(bytes), Catch::Contains("has bundle version 2"));
}

TEST_CASE("a bool weight holds 0 and 1 alone", "[compile][bundle]") {
  BundleContent content = sample();
  Tensor mask(DType::kBool, {2});
  mask.as_mutable<std::uint8_t>()[1] = 2;
  content.entries.front().weights = {{"mask", mask}};
  const auto bundle = Bundle::from_bytes(bundle_bytes(content), "b");
  CHECK_THROWS_AS(bundle->weight(bundle->weights().front()), Error);
}

// Writes testdata/bad/bundle and the corpus anew after a change of the format:
//   NPU_BUNDLE_FOLDER=testdata/bad/bundle npu_unit_tests '[.make-bad-bundles]'
TEST_CASE("make bad bundles", "[.make-bad-bundles]") {
  const char* folder = std::getenv("NPU_BUNDLE_FOLDER");
  if (folder == nullptr) return;
  const std::string bytes = bundle_bytes(sample());
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(std::string(folder) + "/" + name + ".npub", std::ios::binary) << content;
  };
  for (const Forgery& forgery : forgeries()) write(forgery.name, forged(bytes, forgery.change));
  const std::string sized = bundle_bytes(sized_sample());
  for (const Forgery& forgery : entry_forgeries()) {
    write(forgery.name, forged(sized, forgery.change));
  }
  const std::string documents = bundle_bytes(document_sample());
  for (const Forgery& forgery : document_forgeries()) {
    write(forgery.name, forged(documents, forgery.change));
  }
  write("../../corpus/bundle/entries", sized);
  write("../../corpus/bundle/documents", documents);
  std::string damaged = bytes;
  damaged[damaged.size() - 20] ^= 1;
  write("weights-damaged", damaged);
  damaged = bytes;
  damaged[70] ^= 1;
  write("manifest-damaged", damaged);
  damaged = bytes;
  damaged[17] ^= 1;
  write("header-damaged", damaged);
  damaged = bytes;
  damaged[4000] = 'x';
  write("padding-not-zero", damaged);
  write("truncated", bytes.substr(0, bytes.size() / 2));
  write("header-alone", bytes.substr(0, 64));
  write("magic-alone", bytes.substr(0, 8));
  write("bytes-behind", bytes + std::string(100, 'x'));
  std::string newer = bytes;
  put_u64(newer, 8, 2);
  put_u64(newer, 56, xxh3_64(newer.data(), 56));
  write("version-2", newer);
}

TEST_CASE("a fault in a bundle's document has the bundle, the section, line and column") {
  const test::TemporaryFolder folder;
  const auto fault = [&](const std::string& document) {
    BundleContent content = sample();
    content.entries.front().document = document;
    write_bundle(folder / "b.npub", content);
    Diagnostics diagnostics;
    try {
      run_bundle(*Bundle::open(folder / "b.npub"), {}, diagnostics);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    REQUIRE(diagnostics.has_errors());
    return format_diagnostic(diagnostics.entries().front());
  };
  const std::string name = (folder / "b.npub") + " (document)";
  CHECK(fault("{\n  \"nodes\": [}\n}").starts_with(name + ":2:13: error: "));
  CHECK(fault("[]").starts_with(name + ": error: "));
  CHECK(fault(R"({"nodes": [], "weights": {}})").starts_with(name + ": "));
}
