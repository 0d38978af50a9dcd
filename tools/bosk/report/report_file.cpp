// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bosk/escaped.h"
#include "bosk/report/report_json.h"

namespace bosk::tools {
namespace {

// In the order in which they are written.
using Json = nlohmann::ordered_json;

std::string text_or_empty(const Json& value) {
  return value.is_string() ? value.get<std::string>() : "";
}

Shares shares_of(const Json& from) {
  Shares shares;
  for (const ShareWords& words : kShareWords) shares.*words.share = from.at(words.key);
  return shares;
}

RegionReport region_of(const Json& from) {
  RegionReport region;
  region.where = from.at("where");
  region.file = from.at("file");
  region.offset = from.at("offset");
  region.level = from.at("level");
  region.smallest = from.at("threads").at("smallest");
  region.largest = from.at("threads").at("largest");
  region.modes = from.at("modes").get<std::vector<std::string>>();
  region.calls = from.at("calls");
  region.open = from.at("open");
  region.longest = from.at("longest");
  region.shares = shares_of(from.at("shares"));
  // Reports of earlier versions have none.
  if (const auto teams = from.find("teams"); teams != from.end())
    for (const auto& [name, count] : teams->items()) region.teams.emplace_back(name, count);
  return region;
}

ProcessReport process_of(const Json& from) {
  ProcessReport report;
  report.process = from.at("process");
  report.program = from.at("program");
  report.other_runtime = text_or_empty(from.at("other_runtime"));
  if (from.at("rank").is_number()) report.rank = from.at("rank").get<int>();
  report.has_ended = from.at("has_ended");
  report.elapsed = from.at("elapsed");
  report.cpus = from.at("cpus");
  report.wait_policy = text_or_empty(from.at("wait_policy"));
  report.cpu_time = from.at("cpu_time");
  report.system_time = from.at("system_time");
  report.memory_kib = from.at("memory_kib");
  report.page_faults = from.at("page_faults");
  const Json& memory = from.at("memory");
  report.memory.own = memory.at("own");
  report.memory.huge = memory.at("huge");
  report.memory.nodes = memory.at("nodes").get<std::vector<uint64_t>>();
  report.memory.node_cpus = memory.at("node_cpus").get<std::vector<uint32_t>>();
  report.preempted = from.at("preempted");
  if (const auto policy = from.find("policy"); policy != from.end())
    report.policy = text_or_empty(*policy);
  const Json& mode = from.at("mode");
  report.why_kernel_threads = text_or_empty(mode.at("why_kernel_threads"));
  report.observed_teams = mode.at("observed_teams");
  report.observer = text_or_empty(mode.at("observer"));
  report.bound_teams = mode.at("bound_teams");
  report.shares = shares_of(from.at("shares"));
  for (const auto& [name, count] : from.at("counters").items())
    report.counters.emplace_back(name, count);
  for (const Json& region : from.at("regions")) report.regions.push_back(region_of(region));
  return report;
}

}  // namespace

std::vector<ProcessReport> parse_report_file(const std::string& text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw ReportFileError(fmt::format("{}: no JSON, or cut short", escaped(name)));
  const auto version = json.find("bosk_report");
  if (version == json.end() || !version->is_number_integer())
    throw ReportFileError(fmt::format(
        "{}: not a report of bosk (they are made by bosk run --report FILE.json)", escaped(name)));
  if (*version != kReportVersion)
    throw ReportFileError(fmt::format("{}: a report of version {}; this bosk reads version {}",
                                      escaped(name), version->get<int64_t>(), kReportVersion));
  try {
    std::vector<ProcessReport> reports;
    for (const Json& process : json.at("processes")) reports.push_back(process_of(process));
    return reports;
  } catch (const Json::exception& error) {
    throw ReportFileError(
        fmt::format("{}: a part of the report is missing, or is not what it should be ({})",
                    escaped(name), escaped(error.what())));
  }
}

std::vector<ProcessReport> read_report_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) throw ReportFileError(fmt::format("{}: {}", escaped(name), std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_report_file(text, name);
}

}  // namespace bosk::tools
