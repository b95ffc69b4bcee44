// SPDX-License-Identifier: Apache-2.0
// Every text of device_reason in documents is read and written back byte for byte.
#include "ir/device_reason.hpp"

#include "catch.hpp"

using namespace npu;
using Kind = DeviceReason::Kind;

TEST_CASE("device reason: texts of documents, and what they mean") {
  struct Case {
    const char* text;
    Kind kind;
    const char* detail;
  };
  const Case cases[] = {
      {"", Kind::kNone, ""},
      {"forced", Kind::kForced, ""},
      {"kept", Kind::kKept, ""},
      {"min nodes", Kind::kMinNodes, ""},
      {"min flops", Kind::kMinFlops, ""},
      {"max partitions", Kind::kMaxPartitions, ""},
      {"follows its producer", Kind::kFollowsProducer, ""},
      {"constant", Kind::kConstant, ""},
      {"unsupported op", Kind::kUnsupportedOp, ""},
      {"cheaper on cpu", Kind::kCheaper, "cpu"},
      {"cheaper on ", Kind::kCheaper, ""},
      {"getitem: unsupported op", Kind::kNotTakenApart, "unsupported op"},
      {"dtype int64 of input 0 is not supported", Kind::kRefused,
       "dtype int64 of input 0 is not supported"},
      {"backend 'npu': no memory", Kind::kRefused, "backend 'npu': no memory"},
      {"forced ", Kind::kRefused, "forced "},
      {"Forced", Kind::kRefused, "Forced"},
      {"memory limit", Kind::kRefused, "memory limit"},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.text);
    const DeviceReason reason = DeviceReason::parse(expected.text);
    CHECK((reason.kind() == expected.kind));
    CHECK(reason.detail() == expected.detail);
    CHECK(reason.text() == expected.text);
    CHECK(reason == DeviceReason(expected.kind, expected.detail));
  }
}

TEST_CASE("device reason: hands and limits fix a node, preferences and refusals do not") {
  for (int k = 0; k <= static_cast<int>(Kind::kRefused); ++k) {
    CAPTURE(k);
    const auto kind = static_cast<Kind>(k);
    const DeviceReason reason(kind, "x");
    const bool by_hand = kind == Kind::kForced || kind == Kind::kKept;
    const bool by_limit =
        kind == Kind::kMinNodes || kind == Kind::kMinFlops || kind == Kind::kMaxPartitions;
    CHECK(reason.is_by_hand() == by_hand);
    CHECK(reason.is_by_limit() == by_limit);
    CHECK(reason.is_fixed() == (by_hand || by_limit));
    // A kind is one of the five: fixed, preference, folded, unsupported, refused.
    const bool refusal =
        kind == Kind::kConstant || kind == Kind::kUnsupportedOp || kind == Kind::kRefused;
    CHECK(reason.is_preference() == (!reason.is_fixed() && !refusal));
  }
}

TEST_CASE("device reason: of a node and into it") {
  Node node;
  CHECK((DeviceReason::of(node).kind() == Kind::kNone));
  DeviceReason(Kind::kCheaper, "cpu").store(node);
  CHECK(node.device_reason == "cheaper on cpu");
  CHECK(DeviceReason::of(node) == DeviceReason(Kind::kCheaper, "cpu"));
  DeviceReason().store(node);
  CHECK_FALSE(node.device_reason.has_value());
}
