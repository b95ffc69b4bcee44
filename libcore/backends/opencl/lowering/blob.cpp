// SPDX-License-Identifier: Apache-2.0
// A blob: a head with sizes and a digest, and then the plan as JSON, the report, the fingerprint of
// the device, the kernels' source and the driver's binary. The digest finds damage; every number of
// the plan is checked besides. O(bytes).
#include "lowering/blob.hpp"

#include <cstdint>
#include <cstring>
#include <iterator>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "support/checked.hpp"
#include "support/digest.hpp"

namespace npu::opencl {
namespace {

constexpr char kMagic[8] = {'n', 'p', 'u', 'o', 'c', 'l', '0', '5'};
constexpr std::size_t kParts = 5;

struct BlobHead {
  char magic[8];
  std::uint64_t digest;  ///< of all behind it
  std::uint64_t sizes[kParts];
};

[[noreturn]] void malformed(const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, "the blob is malformed: " + text);
}

Json tensors_json(const std::vector<PlanTensor>& tensors) {
  Json list = Json::array();
  for (const PlanTensor& tensor : tensors) {
    list.push_back(
        {{"name", tensor.name}, {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}});
  }
  return list;
}

std::string plan_json(const Plan& plan) {
  Json launches = Json::array();
  for (const Launch& launch : plan.launches) {
    Json places = Json::array();
    for (const Place& place : launch.arguments) {
      places.push_back({static_cast<int>(place.kind), place.value});
    }
    launches.push_back({{"kernel", launch.kernel},
                        {"arguments", std::move(places)},
                        {"global", launch.global},
                        {"local", launch.local},
                        {"nodes", launch.nodes},
                        {"sizes", launch.sizes}});
  }
  Json aliases = Json::array();
  for (const PlanAlias& alias : plan.aliases) {
    aliases.push_back({alias.input, alias.output, alias.is_in_place ? 1 : 0, alias.offset});
  }
  Json programs = Json::array();
  for (const ProgramPart& part : plan.programs) {
    programs.push_back({part.source_bytes, part.binary_bytes});
  }
  const Json json = {{"inputs", tensors_json(plan.inputs)},
                     {"outputs", tensors_json(plan.outputs)},
                     {"weights", tensors_json(plan.weights)},
                     {"programs", std::move(programs)},
                     {"nodes", plan.nodes},
                     {"scratch_bytes", plan.scratch_bytes},
                     {"faults", plan.faults},
                     {"launches", std::move(launches)},
                     {"aliases", std::move(aliases)}};
  return json.dump();
}

const Json& member(const Json& json, const char* key) {
  const Json* found = find_member(json, key);
  if (found == nullptr) malformed(std::string("'") + key + "' is missing");
  return *found;
}

std::uint64_t number(const Json& json) {
  if (!json.is_number_unsigned() && !(json.is_number_integer() && json.get<std::int64_t>() >= 0)) {
    malformed("a number is expected");
  }
  return json.get<std::uint64_t>();
}

const Json& list(const Json& json) {
  if (!json.is_array()) malformed("a list is expected");
  return json;
}

std::array<std::uint64_t, 3> three(const Json& json) {
  if (list(json).size() != 3) malformed("three numbers are expected");
  std::array<std::uint64_t, 3> result{};
  for (std::size_t i = 0; i < 3; ++i) {
    result[i] = number(json[i]);
    if (result[i] == 0 || result[i] > (std::uint64_t{1} << 40)) malformed("a size of a launch");
  }
  return result;
}

std::vector<PlanTensor> read_tensors(const Json& json) {
  std::vector<PlanTensor> result;
  for (const Json& each : list(json)) {
    PlanTensor tensor;
    const Json& name = member(each, "name");
    const Json& dtype = member(each, "dtype");
    if (!name.is_string() || !dtype.is_string()) malformed("a tensor has no name or dtype");
    tensor.name = name.get<std::string>();
    const auto parsed = parse_dtype(dtype.get<std::string>());
    if (!parsed) malformed("a tensor has an unknown dtype");
    tensor.dtype = *parsed;
    for (const Json& extent : list(member(each, "shape"))) {
      tensor.shape.push_back(static_cast<std::int64_t>(number(extent)));
    }
    const auto count = checked_element_count(tensor.shape);
    const auto bytes =
        count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(tensor.dtype)))
              : std::nullopt;
    if (!bytes) malformed("a tensor is too large");
    tensor.bytes = static_cast<std::uint64_t>(*bytes);
    result.push_back(std::move(tensor));
  }
  return result;
}

Place read_place(const Json& json, const Plan& plan) {
  if (list(json).size() != 2) malformed("an argument has not two numbers");
  const std::uint64_t kind = number(json[0]);
  Place place{static_cast<PlaceKind>(kind), number(json[1])};
  const std::uint64_t limits[] = {plan.inputs.size(), plan.outputs.size(), plan.weights.size(),
                                  plan.scratch_bytes, plan.faults.size()};
  if (kind >= std::size(limits) || place.value >= limits[kind])
    malformed("an argument is out of range");
  return place;
}

void read_programs(const Json& json, Plan& plan) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  for (const Json& each : list(json)) {
    if (list(each).size() != 2) malformed("a program has not two numbers");
    const ProgramPart part{number(each[0]), number(each[1])};
    // OpenCL would read a source of length 0 up to a null byte.
    const bool fits =
        part.source_bytes != 0 && part.source_bytes < kMost && part.binary_bytes < kMost;
    if (!fits) malformed("a program is empty or too large");
    plan.programs.push_back(part);
  }
}

/// Whether the programs' pieces are the whole of a text.
void check_pieces(const Plan& plan, std::string_view text, std::uint64_t ProgramPart::*bytes) {
  std::uint64_t left = text.size();
  for (const ProgramPart& part : plan.programs) {
    if (part.*bytes > left) malformed("a program is cut");
    left -= part.*bytes;
  }
  if (left != 0) malformed("it has more code than its programs");
}

PlanAlias read_alias(const Json& json, const Plan& plan) {
  if (list(json).size() != 4) malformed("an alias has not four numbers");
  const PlanAlias alias{number(json[0]), number(json[1]), number(json[2]) == 1, number(json[3])};
  if (alias.input >= plan.inputs.size() || alias.output >= plan.outputs.size() ||
      number(json[2]) > 1) {
    malformed("an alias is no pair of an input and an output");
  }
  const PlanTensor& input = plan.inputs[static_cast<std::size_t>(alias.input)];
  const PlanTensor& output = plan.outputs[static_cast<std::size_t>(alias.output)];
  if (input.dtype != output.dtype || input.shape != output.shape) {
    malformed("an alias is a pair of tensors that differ");
  }
  const bool is_there = alias.is_in_place || (output.bytes <= plan.scratch_bytes &&
                                              alias.offset <= plan.scratch_bytes - output.bytes);
  if (!is_there) malformed("what is copied to an output does not lie in scratch memory");
  return alias;
}

constexpr std::size_t kNone = SIZE_MAX;

/// What may be one buffer is right in one: nothing reads the input from where an output is begun
/// that lies there, and nothing writes an output that is copied when all is done.
void check_launches(const Plan& plan, const std::vector<std::size_t>& alias_of_input,
                    const std::vector<std::size_t>& alias_of_output) {
  std::vector<bool> is_begun(plan.aliases.size(), false);
  for (const Launch& launch : plan.launches) {
    for (const Place& place : launch.arguments) {
      if (place.kind != PlaceKind::kOutput) continue;
      const std::size_t alias = alias_of_output[static_cast<std::size_t>(place.value)];
      if (alias == kNone) continue;
      if (!plan.aliases[alias].is_in_place) malformed("an output is written that is copied");
      is_begun[alias] = true;
    }
    for (const Place& place : launch.arguments) {
      if (place.kind != PlaceKind::kInput) continue;
      const std::size_t alias = alias_of_input[static_cast<std::size_t>(place.value)];
      if (alias != kNone && is_begun[alias]) malformed("an input is read that may be overwritten");
    }
  }
}

void read_aliases(const Json& json, Plan& plan) {
  std::vector<std::size_t> inputs(plan.inputs.size(), kNone);
  std::vector<std::size_t> outputs(plan.outputs.size(), kNone);
  for (const Json& each : list(json)) {
    const PlanAlias alias = read_alias(each, plan);
    std::size_t& input = inputs[static_cast<std::size_t>(alias.input)];
    std::size_t& output = outputs[static_cast<std::size_t>(alias.output)];
    if (input != kNone || output != kNone) malformed("a tensor is in two aliases");
    input = output = plan.aliases.size();
    plan.aliases.push_back(alias);
  }
  check_launches(plan, inputs, outputs);
}

Plan read_plan(std::string_view text) {
  const Json json = parse_json(text, "the blob's plan");
  Plan plan;
  plan.inputs = read_tensors(member(json, "inputs"));
  plan.outputs = read_tensors(member(json, "outputs"));
  plan.weights = read_tensors(member(json, "weights"));
  read_programs(member(json, "programs"), plan);
  plan.nodes = number(member(json, "nodes"));
  plan.scratch_bytes = number(member(json, "scratch_bytes"));
  for (const Json& fault : list(member(json, "faults"))) {
    if (!fault.is_string()) malformed("a fault has no text");
    plan.faults.push_back(fault.get<std::string>());
  }
  for (const Json& each : list(member(json, "launches"))) {
    Launch launch;
    launch.kernel = number(member(each, "kernel"));
    if (launch.kernel >= plan.programs.size()) malformed("there is no such kernel");
    for (const Json& place : list(member(each, "arguments"))) {
      launch.arguments.push_back(read_place(place, plan));
    }
    launch.global = three(member(each, "global"));
    launch.local = three(member(each, "local"));
    for (std::size_t d = 0; d < 3; ++d) {
      if (launch.global[d] % launch.local[d] != 0) malformed("a launch has a part of a work group");
    }
    for (const Json& node : list(member(each, "nodes"))) {
      launch.nodes.push_back(number(node));
      if (launch.nodes.back() >= plan.nodes) malformed("there is no such node");
    }
    for (const Json& size : list(member(each, "sizes"))) {
      launch.sizes.push_back(number(size));
      if (launch.sizes.back() > INT64_MAX) malformed("a bound of a launch");
    }
    plan.launches.push_back(std::move(launch));
  }
  read_aliases(member(json, "aliases"), plan);
  return plan;
}

}  // namespace

std::vector<std::string_view> pieces_of(const Plan& plan, std::string_view text,
                                        std::uint64_t ProgramPart::*bytes) {
  std::vector<std::string_view> pieces;
  for (const ProgramPart& part : plan.programs) {
    const auto size = static_cast<std::size_t>(part.*bytes);
    pieces.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

std::vector<std::string> write_blob(const Plan& plan, std::string_view report,
                                    std::string_view fingerprint, std::string_view source,
                                    std::string_view binary) {
  std::vector<std::string> parts{{},
                                 plan_json(plan),
                                 std::string(report),
                                 std::string(fingerprint),
                                 std::string(source),
                                 std::string(binary)};
  BlobHead head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  for (std::size_t i = 0; i < kParts; ++i) head.sizes[i] = parts[i + 1].size();
  std::vector<std::string_view> digested{
      {reinterpret_cast<const char*>(head.sizes), sizeof head.sizes}};
  digested.insert(digested.end(), parts.begin() + 1, parts.end());
  head.digest = xxh3_64(digested);
  parts[0].assign(reinterpret_cast<const char*>(&head), sizeof head);
  return parts;
}

BlobParts read_blob(const void* blob, std::uint64_t size) {
  BlobHead head{};
  if (blob == nullptr || size < sizeof head) malformed("it is too short");
  std::memcpy(&head, blob, sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0) malformed("it is of another format");
  const char* all = static_cast<const char*>(blob);
  std::uint64_t at = sizeof head;
  std::string_view parts[kParts];
  for (std::size_t i = 0; i < kParts; ++i) {
    if (head.sizes[i] > size - at) malformed("it is cut");
    parts[i] = {all + at, static_cast<std::size_t>(head.sizes[i])};
    at += head.sizes[i];
  }
  if (at != size) malformed("it is longer than it says");
  constexpr std::size_t kDigested = sizeof head.magic + sizeof head.digest;
  if (xxh3_64(all + kDigested, static_cast<std::size_t>(size - kDigested)) != head.digest) {
    malformed("its digest differs");
  }
  Plan plan = read_plan(parts[0]);
  check_pieces(plan, parts[3], &ProgramPart::source_bytes);
  check_pieces(plan, parts[4], &ProgramPart::binary_bytes);
  return {std::move(plan), parts[1], parts[2], parts[3], parts[4]};
}

}  // namespace npu::opencl
