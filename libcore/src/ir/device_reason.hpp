// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"

namespace npu {

/// Why a node is on its device: `device_reason` of npu-ir(5). Documents carry it as text for
/// people; whoever decides by it goes through this type.
class DeviceReason {
 public:
  enum class Kind : std::uint8_t {
    kNone,             ///< it is where the target prefers it
    kForced,           ///< by a rule of the user
    kKept,             ///< the document came with this device
    kMinNodes,         ///< its partition had too few nodes
    kMinFlops,         ///< its partition had too little work
    kMaxPartitions,    ///< there were too many partitions
    kCheaper,          ///< a strategy found it cheaper on the device `detail`
    kFollowsProducer,  ///< a getitem, which stays with what it takes apart
    kNotTakenApart,  ///< its results cannot be taken apart on a better device, because of `detail`
    kUnsupportedOp,  ///< a better device does not know the op
    kRefused,        ///< in the words of a target's rule or of a backend, `detail`
  };

  DeviceReason() = default;
  explicit DeviceReason(Kind kind, std::string detail = {})
      : kind_(kind), detail_(std::move(detail)) {}

  /// Never fails: what is none of the other kinds is kRefused. The empty text is kNone.
  static DeviceReason parse(std::string_view text);
  static DeviceReason of(const Node& node);

  /// What parse reads; empty for kNone.
  std::string text() const;
  /// Sets the node's device_reason; removes it for kNone.
  void store(Node& node) const;

  Kind kind() const noexcept { return kind_; }
  const std::string& detail() const noexcept { return detail_; }

  /// Nobody who looks for a better place moves the node: it was put there by hand or by a limit.
  /// Limits move further what a limit has moved, but nothing that was placed by hand; that is the
  /// one thing for which is_by_hand is to be asked.
  bool is_fixed() const noexcept { return is_by_hand() || is_by_limit(); }
  bool is_by_hand() const noexcept { return kind_ == Kind::kForced || kind_ == Kind::kKept; }
  bool is_by_limit() const noexcept {
    return kind_ == Kind::kMinNodes || kind_ == Kind::kMinFlops || kind_ == Kind::kMaxPartitions;
  }

  /// It says nothing of support. If the first device supports the node all the same, and the reason
  /// is of another kind, then something else keeps it from there, such as a failure to compile.
  bool is_preference() const noexcept {
    return kind_ == Kind::kNone || kind_ == Kind::kCheaper || kind_ == Kind::kNotTakenApart ||
           kind_ == Kind::kFollowsProducer;
  }

  friend bool operator==(const DeviceReason&, const DeviceReason&) = default;

 private:
  Kind kind_ = Kind::kNone;
  std::string detail_;
};

}  // namespace npu
