// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_state.hpp"
#include "npu/device/blob.hpp"

namespace npu {

/// The states of a model, on the devices that own them; executors of all its entries share them.
/// For one thread.
class DeviceStates {
 public:
  struct Named {
    std::string name;
    std::string device;  ///< of the target
    DeviceState state;
  };

  /// That of a name. It is made, on this device, when it is first asked for. Throws Error
  /// kInvalidGraph if it has another dtype or shape.
  Named& find_or_make(const std::string& name, DType dtype, const Shape& shape,
                      const std::string& device, const std::shared_ptr<DeviceInstance>& instance);
  /// In the order in which they were made.
  const std::vector<std::unique_ptr<Named>>& list() const noexcept { return list_; }

  /// Back to zero.
  void clear();
  /// On the host, in the order of the list.
  std::vector<NamedTensor> values() const;
  /// One for each of them, in any order; all or nothing. Throws Error kInvalidGraph with what
  /// differs.
  void set_values(const std::vector<NamedTensor>& values);

  /// A run changes them between the two. After one that began and did not end, nobody knows what
  /// they are: throws Error kFailed until they are set anew.
  void begin_run();
  void end_run() noexcept { is_known_ = true; }

 private:
  Named* find(std::string_view name) const noexcept;
  void check_known() const;

  std::vector<std::unique_ptr<Named>> list_;
  bool is_known_ = true;
};

}  // namespace npu
