// SPDX-License-Identifier: Apache-2.0
// The texts of device_reason, written and parsed in one place, byte for byte. Texts that match no
// kind (a target's rule, the message of a backend that failed to compile, the text of an older or
// newer program) are kept as they are. O(length of the text).
#include "ir/device_reason.hpp"

#include <array>
#include <utility>

namespace npu {
namespace {

using Kind = DeviceReason::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 8> kTexts{{
    {Kind::kForced, "forced"},
    {Kind::kKept, "kept"},
    {Kind::kMinNodes, "min nodes"},
    {Kind::kMinFlops, "min flops"},
    {Kind::kMaxPartitions, "max partitions"},
    {Kind::kFollowsProducer, "follows its producer"},
    {Kind::kConstant, "constant"},
    {Kind::kUnsupportedOp, "unsupported op"},
}};

/// A kind whose detail follows.
constexpr std::array<std::pair<Kind, std::string_view>, 3> kPrefixes{{
    {Kind::kCheaper, "cheaper on "},
    {Kind::kNotTakenApart, "getitem: "},
    {Kind::kRefused, ""},
}};

}  // namespace

DeviceReason DeviceReason::parse(std::string_view text) {
  if (text.empty()) return {};
  for (const auto& [kind, known] : kTexts) {
    if (text == known) return DeviceReason(kind);
  }
  for (const auto& [kind, prefix] : kPrefixes) {
    if (!text.starts_with(prefix)) continue;
    return DeviceReason(kind, std::string(text.substr(prefix.size())));
  }
  return {};
}

DeviceReason DeviceReason::of(const Node& node) {
  return node.device_reason ? parse(*node.device_reason) : DeviceReason();
}

std::string DeviceReason::text() const {
  for (const auto& [kind, known] : kTexts) {
    if (kind == kind_) return std::string(known);
  }
  for (const auto& [kind, prefix] : kPrefixes) {
    if (kind == kind_) return std::string(prefix) + detail_;
  }
  return {};
}

void DeviceReason::store(Node& node) const {
  if (kind_ == Kind::kNone) {
    node.device_reason.reset();
  } else {
    node.device_reason = text();
  }
}

}  // namespace npu
