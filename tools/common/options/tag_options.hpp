// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/passes/tag.hpp"
#include "npu/target/select_devices.hpp"
#include "passes/states/named_states.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-tag.
struct TagArguments {
  TagOptions tag;
  DeviceChoice where{.target = "host"};
  std::vector<std::string> force;  ///< DEVICE=GLOB
  std::vector<std::string> load_ops;
  std::string weights_out;
  std::string frontend;       ///< the one whose ops are listed
  std::string listed_device;  ///< of --list-ops; empty: all of them
  bool list_targets = false;
  bool print_target = false;
  bool as_template = false;
  bool as_states = false;
  std::vector<std::string> states;  ///< INPUT=OUTPUT
  std::int64_t capacity = 0;        ///< rows of each state
  std::string genai;                ///< genai_config.json; empty: none
  std::int64_t source_rows = 0;     ///< of states that come of an encoder's source
  std::vector<std::int64_t> start;  ///< ids that the decoder begins with
  std::string encode_for;           ///< document of the decoder that GRAPH is the encoder of
  std::string cross;                ///< decoder that projects hidden states; empty: none

  /// `tag`, with the values of --force. Throws Error kUsage for one that is not DEVICE=GLOB.
  TagOptions tag_options() const;
  /// The values of --state. Throws Error kUsage for one that is not INPUT=OUTPUT.
  std::vector<StateNames> state_names() const;
};

/// Adds them to a tool, with its input and its output.
void add_tag_options(Tool& tool, TagArguments& arguments);

/// --devices and --exclude-device.
void add_device_options(Tool& tool, DeviceChoice& where);

}  // namespace npu::cli
