// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "npu/ir/graph.hpp"

namespace npu {

/// Why a node is on its device: `device_reason` of npu-ir(5). Documents carry it as text for
/// people; code that bases decisions on it uses this type.
class DeviceReason {
 public:
  enum class Kind : std::uint8_t {
    kNone,             ///< it is on the device that the target prefers
    kForced,           ///< by a rule of the user
    kKept,             ///< the document came with this device
    kMinNodes,         ///< its partition had too few nodes
    kMinFlops,         ///< its partition had too little work
    kMaxPartitions,    ///< there were too many partitions
    kCheaper,          ///< a strategy found it cheaper on the device `detail`
    kFollowsProducer,  ///< a getitem, which stays with its producer
    kNotTakenApart,    ///< the getitem of its results cannot run on a better device: `detail`
    kConstant,         ///< it is folded, and on no device
    kUnsupportedOp,    ///< a better device does not know the op
    kRefused,          ///< `detail` is the text of a target's rule or of a backend
  };

  DeviceReason() = default;
  explicit DeviceReason(Kind kind, std::string detail = {})
      : kind_(kind), detail_(std::move(detail)) {}

  /// Never fails: a text of no other kind is kRefused. The empty text is kNone.
  static DeviceReason parse(std::string_view text);
  static DeviceReason of(const Node& node);

  /// The inverse of parse; empty for kNone.
  std::string text() const;
  /// Sets the node's device_reason; removes it for kNone.
  void store(Node& node) const;

  Kind kind() const noexcept { return kind_; }
  const std::string& detail() const noexcept { return detail_; }

  /// No optimisation moves the node: it was placed by hand or by a limit. Limits may move a node
  /// again that a limit has moved, but never one that was placed by hand; that is the only decision
  /// for which is_by_hand should be asked.
  bool is_fixed() const noexcept { return is_by_hand() || is_by_limit(); }
  bool is_by_hand() const noexcept { return kind_ == Kind::kForced || kind_ == Kind::kKept; }
  bool is_by_limit() const noexcept {
    return kind_ == Kind::kMinNodes || kind_ == Kind::kMinFlops || kind_ == Kind::kMaxPartitions;
  }

  /// The reason has nothing to do with support. If the first device supports the node and this is
  /// false, something else keeps the node off that device, such as a failure to compile.
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
