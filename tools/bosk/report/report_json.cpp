// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_json.h"

#include <nlohmann/json.hpp>

#include "bosk/report/advice.h"
#include "bosk/report/report_page.h"

namespace bosk::tools {
namespace {

// In the order in which they are written.
using Json = nlohmann::ordered_json;

Json shares_json(const Shares& shares) {
  Json json;
  for (const ShareWords& words : kShareWords) json[words.key] = shares.*words.share;
  return json;
}

Json counts_json(const std::vector<std::pair<std::string, uint64_t>>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = count;
  return json;
}

Json region_json(const RegionReport& region) {
  Json json = {{"where", region.where},
               {"file", region.file},
               {"offset", region.offset},
               {"level", region.level},
               {"threads", {{"smallest", region.smallest}, {"largest", region.largest}}},
               {"modes", region.modes},
               {"calls", region.calls},
               {"open", region.open},
               {"longest", region.longest}};
  json["shares"] = shares_json(region.shares);
  json["teams"] = counts_json(region.teams);
  return json;
}

Json process_json(const ProcessReport& report) {
  Json json = {
      {"process", report.process},
      {"program", report.program},
      {"other_runtime", report.other_runtime.empty() ? Json(nullptr) : Json(report.other_runtime)},
      {"rank", report.rank ? Json(*report.rank) : Json(nullptr)},
      {"has_ended", report.has_ended},
      {"elapsed", report.elapsed},
      {"cpus", report.cpus},
      {"wait_policy", report.wait_policy.empty() ? Json(nullptr) : Json(report.wait_policy)},
      {"cpu_time", report.cpu_time},
      {"system_time", report.system_time},
      {"memory_kib", report.memory_kib},
      {"page_faults", report.page_faults},
      {"preempted", report.preempted},
      {"policy", report.policy.empty() ? Json(nullptr) : Json(report.policy)}};
  json["memory"] = {{"own", report.memory.own},
                    {"huge", report.memory.huge},
                    {"nodes", report.memory.nodes},
                    {"node_cpus", report.memory.node_cpus}};
  json["mode"] = {
      {"why_kernel_threads",
       report.why_kernel_threads.empty() ? Json(nullptr) : Json(report.why_kernel_threads)},
      {"observed_teams", report.observed_teams},
      {"observer", report.observer.empty() ? Json(nullptr) : Json(report.observer)},
      {"bound_teams", report.bound_teams}};
  json["shares"] = shares_json(report.shares);
  json["regions"] = Json::array();
  for (const RegionReport& region : report.regions) json["regions"].push_back(region_json(region));
  json["counters"] = counts_json(report.counters);
  json["verdict"] = report_verdict(report);
  json["advice"] = Json::array();
  for (const Advice& advice : advice_for(report))
    json["advice"].push_back({{"kind", advice_name(advice.kind)},
                              {"lost", advice.lost},
                              {"cause", advice.cause},
                              {"remedy", advice.remedy}});
  return json;
}

}  // namespace

std::string report_json(const std::vector<ProcessReport>& reports, const Json& learnt) {
  Json json = {{"bosk_report", kReportVersion}};
  json["processes"] = Json::array();
  for (const ProcessReport& report : reports) json["processes"].push_back(process_json(report));
  if (!learnt.is_null()) json["learnt"] = learnt;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bosk::tools
