// SPDX-License-Identifier: Apache-2.0
// Asks a backend about the nodes of a sub-IR, and checks the form of its answer before anything is
// made of it. O(length of question and answer) besides the backend's own work.
#include "device/blob_memory.hpp"
#include "device/device_call.hpp"
#include "device/device_instance.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kLongestLayout = 255;
constexpr std::uint64_t kMostEstimate = std::uint64_t{1} << 60;

NodeAnswer read_answer(const Json& json, const Backend& backend) {
  const Json* ok = json.is_object() ? find_member(json, "ok") : nullptr;
  if (ok == nullptr || !ok->is_boolean()) {
    break_contract(backend, "check", "its answer about a node has no \"ok\" that is true or false");
  }
  NodeAnswer answer;
  answer.ok = ok->get<bool>();
  if (const Json* reason = find_member(json, "reason"); reason != nullptr && reason->is_string()) {
    answer.reason = text_of(reason->get_ref<const std::string&>().c_str());
  }
  if (!answer.ok && answer.reason.empty()) answer.reason = "refused without a reason";
  if (const Json* group = find_member(json, "group"); group != nullptr) {
    if (!group->is_number_integer()) {
      break_contract(backend, "check", "the \"group\" of a node in its answer is no integer");
    }
    answer.group = group->get<std::int64_t>();
  }
  return answer;
}

/// "boundaries" of an answer. Names of layouts are the backend's own, so that nobody else's are
/// mistaken for them.
LayoutOffers read_offers(const Json& answer, const Backend& backend) {
  LayoutOffers offers;
  const Json* boundaries = find_member(answer, "boundaries");
  if (boundaries == nullptr || !backend.has_feature("layouts")) return offers;
  if (!boundaries->is_object()) {
    break_contract(backend, "layouts", "the \"boundaries\" in its answer are no JSON object");
  }
  const std::string prefix = backend.name() + ":";
  for (const auto& [tensor, list] : boundaries->items()) {
    std::vector<std::string>& of_tensor = offers[tensor];
    for (const Json& layout : list) {
      const auto* name = layout.get_ptr<const std::string*>();
      if (!list.is_array() || name == nullptr || !name->starts_with(prefix) ||
          name->size() > kLongestLayout || printable_text(*name) != *name) {
        break_contract(backend, "layouts",
                       "the layouts for '" + printable_text(tensor) +
                           "' in its answer are no names that begin with '" + prefix + "'");
      }
      of_tensor.push_back(*name);
    }
  }
  return offers;
}

/// Estimates of an answer, which may have none.
CostEstimate read_costs(const Json& answer, const Backend& backend) {
  CostEstimate costs;
  if (const Json* memory = find_member(answer, "memory")) {
    const auto number = [&](const char* name) -> std::uint64_t {
      const Json* value = memory->is_object() ? find_member(*memory, name) : nullptr;
      if (memory->is_object() && value == nullptr) return 0;
      if (value == nullptr || !value->is_number_unsigned() ||
          value->get<std::uint64_t>() > kMostEstimate) {
        break_contract(backend, "check",
                       "the \"memory\" in its answer is no object of numbers of bytes");
      }
      return value->get<std::uint64_t>();
    };
    costs.weights_bytes = number("weights_bytes");
    costs.scratch_bytes = number("scratch_bytes");
    costs.has_memory = true;
  }
  if (const Json* seconds = find_member(answer, "seconds")) {
    if (!seconds->is_number() || !(seconds->get<double>() >= 0)) {
      break_contract(backend, "check", "the \"seconds\" in its answer are no number from 0 on");
    }
    costs.seconds = seconds->get<double>();
  }
  return costs;
}

}  // namespace

CheckAnswer DeviceInstance::check(const std::string& sub_ir, std::size_t nodes,
                                  const std::string& options) {
  npu_check_args args = sized<npu_check_args>();
  args.sub_ir = sub_ir.data();
  args.sub_ir_size = sub_ir.size();
  args.options = options.c_str();
  args.ir_version = NPU_IR_VERSION;
  BlobMemory memory;
  const npu_writer writer = memory.writer();
  args.answer = &writer;
  npu_error error = empty_error();
  check_status(backend_->api().check(device_, &args, &error), error, *backend_);
  const std::string_view text(reinterpret_cast<const char*>(memory.data()), memory.size());
  Json json;
  try {
    json = parse_json(text, "answer");
  } catch (const Error& fault) {
    break_contract(*backend_, "check", "its answer is no JSON: " + fault.message());
  }
  const Json* list = json.is_object() ? find_member(json, "nodes") : nullptr;
  if (list == nullptr || !list->is_array() || list->size() != nodes) {
    break_contract(
        *backend_, "check",
        "its answer has no \"nodes\" with one entry for each of " + std::to_string(nodes));
  }
  CheckAnswer answer;
  for (const Json& each : *list) answer.nodes.push_back(read_answer(each, *backend_));
  answer.layouts = read_offers(json, *backend_);
  answer.costs = read_costs(json, *backend_);
  return answer;
}

}  // namespace npu
