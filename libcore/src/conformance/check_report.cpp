// SPDX-License-Identifier: Apache-2.0
// The document and the table of a conformance check.
#include "conformance/check_report.hpp"

#include <string>
#include <string_view>

#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::string_view result_name(CaseResult result) {
  switch (result) {
    case CaseResult::kPass:
      return "pass";
    case CaseResult::kFail:
      return "fail";
    case CaseResult::kNotApplicable:
      return "not applicable";
  }
  return "";
}

CaseResult result_of(const std::string& name) {
  for (const CaseResult result :
       {CaseResult::kPass, CaseResult::kFail, CaseResult::kNotApplicable}) {
    if (name == result_name(result)) return result;
  }
  throw Error(ErrorCode::kParse, "unknown result '" + name + "'");
}

std::int64_t count(const BackendCheck& check, CaseResult result) {
  std::int64_t number = 0;
  for (const CaseOutcome& outcome : check.cases) number += outcome.result == result ? 1 : 0;
  return number;
}

Json outcome_json(const CaseOutcome& outcome) {
  Json json = {{"case", outcome.number},
               {"title", outcome.title},
               {"result", result_name(outcome.result)},
               {"checks", outcome.checks}};
  if (!outcome.findings.empty()) json["findings"] = outcome.findings;
  if (!outcome.reason.empty()) json["reason"] = outcome.reason;
  if (!outcome.digest.empty()) json["digest"] = outcome.digest;
  return json;
}

}  // namespace

Json backend_check_json(const BackendCheck& check) {
  Json json = {{"backend", check.backend}, {"version", check.version}};
  json["features"] = check.features;
  json["devices"] = Json::array();
  for (const CheckedDevice& device : check.devices) {
    json["devices"].push_back({{"id", device.id}, {"fingerprint", device.fingerprint}});
  }
  json["passed"] = count(check, CaseResult::kPass);
  json["failed"] = count(check, CaseResult::kFail);
  json["not_applicable"] = count(check, CaseResult::kNotApplicable);
  json["cases"] = Json::array();
  for (const CaseOutcome& outcome : check.cases) json["cases"].push_back(outcome_json(outcome));
  return json;
}

std::string format_backend_check(const BackendCheck& check) {
  std::vector<std::vector<std::string>> rows = {{">case", "title", "result", ">checks", "remark"}};
  for (const CaseOutcome& outcome : check.cases) {
    rows.push_back({std::to_string(outcome.number), outcome.title,
                    std::string(result_name(outcome.result)), std::to_string(outcome.checks),
                    outcome.findings.empty() ? outcome.reason : outcome.findings.front()});
    for (std::size_t i = 1; i < outcome.findings.size(); ++i) {
      rows.push_back({"", "", "", "", outcome.findings[i]});
    }
  }
  return "backend '" + check.backend + "' " + check.version + "\n" + table_text(rows) +
         std::to_string(count(check, CaseResult::kPass)) + " pass, " +
         std::to_string(count(check, CaseResult::kFail)) + " fail, " +
         std::to_string(count(check, CaseResult::kNotApplicable)) + " not applicable\n";
}

namespace conformance {

BackendCheck read_backend_check(const Json& json) {
  BackendCheck check;
  check.backend = json.at("backend").get<std::string>();
  check.version = json.at("version").get<std::string>();
  check.features = json.at("features").get<std::vector<std::string>>();
  for (const Json& device : json.at("devices")) {
    check.devices.push_back(
        {device.at("id").get<std::string>(), device.at("fingerprint").get<std::string>()});
  }
  for (const Json& entry : json.at("cases")) {
    CaseOutcome outcome;
    outcome.number = entry.at("case").get<int>();
    outcome.title = entry.at("title").get<std::string>();
    outcome.result = result_of(entry.at("result").get<std::string>());
    outcome.checks = entry.at("checks").get<std::int64_t>();
    if (const Json* findings = find_member(entry, "findings")) {
      outcome.findings = findings->get<std::vector<std::string>>();
    }
    if (const Json* reason = find_member(entry, "reason")) {
      outcome.reason = reason->get<std::string>();
    }
    if (const Json* digest = find_member(entry, "digest")) {
      outcome.digest = digest->get<std::string>();
    }
    check.cases.push_back(std::move(outcome));
  }
  return check;
}

}  // namespace conformance
}  // namespace npu
