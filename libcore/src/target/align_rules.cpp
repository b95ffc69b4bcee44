// SPDX-License-Identifier: Apache-2.0
// Reads and checks the `align` section of a target's device. Unknown keys are faults, as everywhere
// in a target: ignoring a misspelt rule would give layouts that the device does not have.
#include "target/align_rules.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "ops/op_catalogue.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMaxChannels = 1 << 20;

class AlignRulesReader {
 public:
  AlignRulesReader(const std::string& file, std::string pointer, Diagnostics& diagnostics)
      : file_(file), root_(std::move(pointer)), diagnostics_(diagnostics) {}

  void read(const Json& json, AlignRules& rules) {
    if (!json.is_object()) return;  // the target's reader reports it
    const std::vector<std::string> keys{
        "layout",     "channel_multiple", "ranks",      "dtypes",   "min_channels",
        "align_only", "nalign_only",      "slice_axis", "to_align", "to_nalign"};
    for (const auto& [key, value] : json.items()) {
      const std::string below = root_ + "/" + pointer_token(key);
      if (key == "layout") {
        read_family(value, below, rules);
      } else if (key == "channel_multiple") {
        rules.channel_multiple = integer(value, below, 1, kMaxChannels, 64);
      } else if (key == "ranks") {
        read_ranks(value, below, rules);
      } else if (key == "dtypes") {
        read_dtypes(value, below, rules);
      } else if (key == "min_channels") {
        rules.min_channels = integer(value, below, 0, kMaxChannels, 0);
      } else if (key == "align_only") {
        read_ops(value, below, rules.align_only_classes, rules.align_only_ops);
      } else if (key == "nalign_only") {
        read_ops(value, below, rules.nalign_only_classes, rules.nalign_only_ops);
      } else if (key == "slice_axis") {
        rules.slice_axis.reset();
        if (!value.is_null()) rules.slice_axis = integer(value, below, -64, 63, -1);
      } else if (key == "to_align" || key == "to_nalign") {
        read_rate(value, below, key == "to_align" ? rules.to_align : rules.to_nalign);
      } else {
        fault(below, unknown_key_text(key, keys));
      }
    }
    rules.layout.block = rules.channel_multiple;
    check_overlap(rules);
  }

 private:
  void fault(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = file_, .pointer = pointer}, std::move(text));
  }

  std::int64_t integer(const Json& value, const std::string& pointer, std::int64_t min,
                       std::int64_t max, std::int64_t otherwise) {
    if (value.is_number_integer() && value >= min && value <= max) return value.get<std::int64_t>();
    fault(pointer,
          fmt::format("expected an integer in {}..{}, found {}", min, max, number_or_type(&value)));
    return otherwise;
  }

  bool check_list(const Json& value, const std::string& pointer, std::string_view of) {
    if (value.is_array()) return true;
    fault(pointer, fmt::format("expected a list of {}, found {}", of, number_or_type(&value)));
    return false;
  }

  void read_family(const Json& value, const std::string& pointer, AlignRules& rules) {
    if (value.is_string()) {
      if (const auto family = parse_layout_family(value.get_ref<const std::string&>())) {
        rules.layout.family = *family;
        return;
      }
    }
    fault(pointer, fmt::format("expected one of tx8, blocked, channels_last, found {}",
                               value.is_string() ? value.dump() : number_or_type(&value)));
  }

  void read_ranks(const Json& value, const std::string& pointer, AlignRules& rules) {
    if (!check_list(value, pointer, "integers")) return;
    rules.ranks.clear();
    for (std::size_t i = 0; i < value.size(); ++i) {
      rules.ranks.push_back(integer(value[i], fmt::format("{}/{}", pointer, i), 1, 64, 4));
    }
  }

  void read_dtypes(const Json& value, const std::string& pointer, AlignRules& rules) {
    if (!check_list(value, pointer, "dtypes")) return;
    rules.dtypes.clear();
    if (value.empty()) fault(pointer, "expected at least one dtype");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string below = fmt::format("{}/{}", pointer, i);
      const auto dtype = value[i].is_string() ? parse_dtype(value[i].get_ref<const std::string&>())
                                              : std::optional<DType>();
      if (!dtype) {
        fault(below, fmt::format("unknown dtype {}; one of {}", value[i].dump(), dtype_names()));
      } else if (!has_aligned_form(*dtype)) {
        fault(below, fmt::format("{} has no aligned form; elements have 1, 2 or 4 bytes",
                                 dtype_name(*dtype)));
      } else {
        rules.dtypes.push_back(*dtype);
      }
    }
  }

  // Names with a dot or a space are op types, all others classes.
  void read_ops(const Json& value, const std::string& pointer, std::vector<AlignClass>& classes,
                std::vector<std::string>& op_types) {
    if (!check_list(value, pointer, "classes and op types")) return;
    classes.clear();
    op_types.clear();
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string below = fmt::format("{}/{}", pointer, i);
      if (!value[i].is_string()) {
        fault(below, fmt::format("expected a string, found {}", number_or_type(&value[i])));
        continue;
      }
      const auto& name = value[i].get_ref<const std::string&>();
      if (name.find_first_of(". ") != std::string::npos) {
        if (name.starts_with("aten.") && find_op(name) == nullptr) {
          const std::vector<std::string_view> ops = catalogued_ops();
          fault(below, fmt::format("unknown op type '{}'{}", name,
                                   spelling_hint(name, {ops.begin(), ops.end()})));
        }
        op_types.push_back(name);
      } else if (const auto align_class = parse_align_class(name)) {
        classes.push_back(*align_class);
      } else {
        fault(below, fmt::format("unknown class '{}'; one of {}", name,
                                 fmt::join(align_class_names(), ", ")));
      }
    }
  }

  void read_rate(const Json& value, const std::string& pointer, ConversionRate& rate) {
    if (!value.is_object()) {
      fault(pointer, fmt::format("expected an object, found {}", number_or_type(&value)));
      return;
    }
    for (const auto& [key, number] : value.items()) {
      const std::string below = pointer + "/" + pointer_token(key);
      if (key != "latency_us" && key != "bandwidth") {
        fault(below, unknown_key_text(key, {"latency_us", "bandwidth"}));
        continue;
      }
      const double parsed = number.is_number() ? number.get<double>() : -1;
      if (!std::isfinite(parsed) || parsed < 0 || (parsed == 0 && key == "bandwidth")) {
        fault(below,
              fmt::format("expected a number {} 0, found {}",
                          key == "bandwidth" ? "above" : "of at least", number_or_type(&number)));
        continue;
      }
      (key == "bandwidth" ? rate.bandwidth : rate.latency_us) = parsed;
    }
  }

  void check_overlap(const AlignRules& rules) {
    const auto in = [](const auto& list, const auto& value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    for (const AlignClass align_class : rules.nalign_only_classes) {
      if (!in(rules.align_only_classes, align_class)) continue;
      fault(root_ + "/nalign_only", fmt::format("class '{}' is in align_only, too; give align_only "
                                                "without it",
                                                align_class_name(align_class)));
    }
    for (const std::string& op_type : rules.nalign_only_ops) {
      if (!in(rules.align_only_ops, op_type)) continue;
      fault(root_ + "/nalign_only", fmt::format("op type '{}' is in align_only, too", op_type));
    }
  }

  const std::string& file_;
  std::string root_;
  Diagnostics& diagnostics_;
};

}  // namespace

AlignRules align_rules(const Device& device) {
  AlignRules rules;
  rules.to_align.bandwidth = rules.to_nalign.bandwidth = device.memory_bandwidth;
  Diagnostics diagnostics;
  AlignRulesReader({}, {}, diagnostics).read(device.align, rules);
  return rules;
}

void check_align_rules(const Json& align, const std::string& file, const std::string& pointer,
                       Diagnostics& diagnostics) {
  AlignRules rules;
  AlignRulesReader(file, pointer, diagnostics).read(align, rules);
}

}  // namespace npu
