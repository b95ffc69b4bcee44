// SPDX-License-Identifier: Apache-2.0
// Runs the cases of npu-backend(3). A case that crashes, hangs or leaves the process spoilt must
// not take the others with it, so each has a process of its own; this one never loads the backend.
// A case that is asked for alone runs here, where a debugger can follow it.
#include "conformance/check_backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "conformance/cases/cases.hpp"
#include "conformance/check_report.hpp"
#include "conformance/harness/captured_output.hpp"
#include "conformance/harness/child_process.hpp"
#include "device/backend.hpp"
#include "device/device_call.hpp"
#include "device/probe.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "support/text.hpp"

namespace npu {
namespace conformance {
namespace {

const Case& find_case(int number) {
  for (const Case& entry : all_cases()) {
    if (entry.number == number) return entry;
  }
  throw Error(ErrorCode::kUsage, "--case: there is no case " + std::to_string(number) +
                                     "; npu-backend(3) lists them, up to " +
                                     std::to_string(all_cases().back().number));
}

CaseOutcome outcome_of(const Case& entry) {
  CaseOutcome outcome;
  outcome.number = entry.number;
  outcome.title = entry.title;
  return outcome;
}

// Why the case says nothing about this backend; nothing if it does.
std::optional<std::string> reason_against(const Case& entry, const Library& library) {
  if (!entry.feature.empty() && !library.has_feature(entry.feature)) {
    return "the backend does not list the feature " + std::string(entry.feature);
  }
  return std::nullopt;
}

CaseOutcome run_here(const Case& entry, const Library& library,
                     const CheckBackendOptions& options) {
  CaseOutcome outcome = outcome_of(entry);
  if (auto reason = reason_against(entry, library)) {
    outcome.result = CaseResult::kNotApplicable;
    outcome.reason = *std::move(reason);
    return outcome;
  }
  Findings found;
  try {
    entry.check(Harness(library, found, options.quick, options.random_nodes));
  } catch (const CaseStopped&) {
    // The finding says why.
  } catch (const NotApplicable& reason) {
    outcome.result = CaseResult::kNotApplicable;
    outcome.reason = reason.reason;
    return outcome;
  }
  outcome.checks = found.checks();
  outcome.findings = found.texts();
  outcome.digest = found.digest();
  return outcome;
}

void add_library(const Library& library, BackendCheck& check) {
  check.backend = library.name;
  check.version = library.version;
  check.features = library.features;
  for (const DeviceSheet& device : library.devices) {
    check.devices.push_back({device.id, device.fingerprint});
  }
}

BackendCheck check_here(const CheckBackendOptions& options) {
  const Case& entry = find_case(options.cases.front());
  BackendCheck check;
  std::string printed;
  {
    const CapturedOutput captured;
    const Library library = open_library(options.backend);
    add_library(library, check);
    check.cases.push_back(run_here(entry, library, options));
    printed = captured.text();
  }
  CaseOutcome& outcome = check.cases.front();
  if (!printed.empty()) {
    outcome.findings.push_back("the backend writes to standard output or error: " +
                               short_text(printed));
  }
  for (std::string& text : outcome.findings) text = printable_text(text);
  if (!outcome.findings.empty()) outcome.result = CaseResult::kFail;
  return check;
}

// What the end of a child without a document says.
std::string end_text(const ChildResult& child, std::chrono::seconds limit) {
  if (child.is_overdue) {
    return "makes no progress for " + std::to_string(limit.count()) + " s, or ends in none";
  }
  if (child.signal != 0) {
    return "ends with signal " + std::to_string(child.signal) + " (" + ::strsignal(child.signal) +
           ")";
  }
  std::string text = "ends the process with status " + std::to_string(child.status);
  const std::string errors = child.errors.substr(0, child.errors.find('\n'));
  if (!errors.empty()) text += ": " + short_text(errors);
  return text;
}

std::optional<BackendCheck> read_child(const ChildResult& child) {
  if (child.is_overdue || child.signal != 0) return std::nullopt;
  try {
    return read_backend_check(parse_json(child.output, "a case"));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool are_same_devices(const std::vector<CheckedDevice>& a, const std::vector<CheckedDevice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const CheckedDevice& x, const CheckedDevice& y) {
                      return x.id == y.id && x.fingerprint == y.fingerprint;
                    });
}

void add_child(const Case& entry, const ChildResult& child, std::chrono::seconds limit,
               BackendCheck& check) {
  std::optional<BackendCheck> read = read_child(child);
  if (!read || read->cases.size() != 1) {
    CaseOutcome outcome = outcome_of(entry);
    outcome.result = CaseResult::kFail;
    outcome.findings.push_back(end_text(child, limit));
    check.cases.push_back(std::move(outcome));
    return;
  }
  CaseOutcome outcome = std::move(read->cases.front());
  if (check.version.empty() && check.devices.empty()) {
    check.version = read->version;
    check.features = read->features;
    check.devices = read->devices;
  } else if (entry.check == check_infos && !are_same_devices(check.devices, read->devices)) {
    outcome.result = CaseResult::kFail;
    outcome.findings.push_back("in another process the devices have other ids or fingerprints");
  }
  check.cases.push_back(std::move(outcome));
}

/// Runs the case once more, in a process of its own, with as few repetitions as show it.
void compare_elsewhere(const Case& entry, std::vector<std::string> arguments, bool is_quick,
                       std::chrono::seconds limit, CaseOutcome& outcome) {
  const std::string before = std::exchange(outcome.digest, {});
  if (before.empty()) return;
  if (!is_quick) arguments.emplace_back("--quick");
  const ChildResult child = run_self(arguments, limit);
  const std::optional<BackendCheck> read = read_child(child);
  ++outcome.checks;
  std::string fault;
  if (!read || read->cases.size() != 1) {
    fault = end_text(child, limit);
  } else if (read->cases.front().digest != before) {
    fault = entry.if_other;
  }
  if (fault.empty()) return;
  outcome.result = CaseResult::kFail;
  outcome.findings.push_back("in another process: " + fault);
}

}  // namespace
}  // namespace conformance

bool BackendCheck::passed() const noexcept {
  return std::none_of(cases.begin(), cases.end(), [](const CaseOutcome& outcome) {
    return outcome.result == CaseResult::kFail;
  });
}

BackendCheck check_backend(const CheckBackendOptions& options,
                           const std::vector<std::string>& child_arguments) {
  if (options.cases.size() == 1) return conformance::check_here(options);
  const std::string path = Backend::find_file(options.backend);
  if (path.empty()) conformance::open_library(options.backend);  // throws
  // Every case would find it, and one that hangs would take as long as all of them may.
  const std::string fault = probe_library(LibraryKind::kAny, path);
  if (!fault.empty()) refuse_file(path, "the backend " + fault);
  BackendCheck check;
  check.backend = options.backend;
  for (const conformance::Case& entry : conformance::all_cases()) {
    if (!options.cases.empty() && std::find(options.cases.begin(), options.cases.end(),
                                            entry.number) == options.cases.end()) {
      continue;
    }
    std::vector<std::string> arguments = child_arguments;
    arguments.insert(arguments.end(), {"--case", std::to_string(entry.number)});
    const auto child = conformance::run_self(arguments, options.limit);
    conformance::add_child(entry, child, options.limit, check);
    conformance::compare_elsewhere(entry, arguments, options.quick, options.limit,
                                   check.cases.back());
  }
  for (const int number : options.cases) conformance::find_case(number);
  return check;
}

}  // namespace npu
