// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/process_report.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bosk/report/source_lines.h"
#include "omp/report_data.h"

namespace bosk::tools {
namespace {

// In the order in which they are written.
using Json = nlohmann::ordered_json;
using omp::ReportDataHead;

constexpr double kNs = 1e-9;

double seconds(const Json& from, const char* name) { return from.at(name).get<double>() * kNs; }

std::string text_or_empty(const Json& from, const char* name) {
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? found->get<std::string>() : "";
}

Shares parse_shares(const Json& from) {
  Shares shares;
  for (const ShareWords& words : kShareWords) shares.*words.share = seconds(from, words.key);
  return shares;
}

RegionReport parse_region(const Json& from) {
  RegionReport region;
  region.file = text_or_empty(from, "file");
  region.offset = from.value("offset", uint64_t{0});
  region.level = from.at("level");
  region.smallest = from.at("threads").at(0);
  region.largest = from.at("threads").at(1);
  region.modes = from.at("modes").get<std::vector<std::string>>();
  region.calls = from.at("calls");
  region.open = seconds(from, "open");
  region.longest = seconds(from, "longest");
  region.shares = parse_shares(from.at("shares"));
  for (const auto& [name, count] : from.at("teams").items()) region.teams.emplace_back(name, count);
  return region;
}

/// The last text that was written whole. Empty: none was, or this is no such file.
std::string last_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() < omp::kReportDataHeadBytes + size_t{2} * ReportDataHead::kTextBytes) return "";
  uint64_t magic;
  uint32_t count;
  uint32_t lengths[2];
  std::memcpy(&magic, bytes.data() + offsetof(ReportDataHead, magic), sizeof magic);
  std::memcpy(&count, bytes.data() + offsetof(ReportDataHead, count), sizeof count);
  std::memcpy(lengths, bytes.data() + offsetof(ReportDataHead, bytes), sizeof lengths);
  const uint32_t which = count % 2;
  if (magic != ReportDataHead::kMagic || count == 0 || lengths[which] > ReportDataHead::kTextBytes)
    return "";
  return bytes.substr(omp::kReportDataHeadBytes + size_t{which} * ReportDataHead::kTextBytes,
                      lengths[which]);
}

std::string object_and_offset(const RegionReport& region) {
  if (region.file.empty()) return "code that was made at run time";
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(region.offset));
  return std::filesystem::path(region.file).filename().string() + offset;
}

bool is_own_cpu(unsigned cpu) {
  constexpr unsigned kCpus = 8192;  // that Linux can have
  alignas(cpu_set_t) char mask[kCpus / 8] = {};
  auto* set = reinterpret_cast<cpu_set_t*>(mask);
  return cpu < kCpus && sched_getaffinity(0, sizeof mask, set) == 0 &&
         CPU_ISSET_S(cpu, sizeof mask, set);
}

/// Of this process, whose CPUs are those of the program that it has started. Nodes that are not there have none.
std::vector<uint32_t> cpus_of_nodes(size_t nodes) {
  std::vector<uint32_t> result(nodes, 0);
  for (size_t node = 0; node < nodes; ++node) {
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    // "0-3,8"
    for (std::string range; std::getline(file, range, ',');) {
      unsigned first = 0;
      unsigned last = 0;
      const int numbers = std::sscanf(range.c_str(), "%u-%u", &first, &last);
      if (numbers == 1) last = first;
      for (unsigned cpu = first; numbers > 0 && cpu <= last; ++cpu)
        result[node] += is_own_cpu(cpu) ? 1 : 0;
    }
  }
  return result;
}

void name_regions(std::vector<RegionReport>* regions) {
  SourceLines lines;
  for (RegionReport& region : *regions) {
    const std::string line = lines.find(region.file, region.offset);
    region.where = !line.empty() ? line : object_and_offset(region);
  }
}

}  // namespace

uint64_t ProcessReport::counter(const std::string& name) const {
  for (const auto& [known, count] : counters)
    if (known == name) return count;
  return 0;
}

uint32_t ProcessReport::largest_team() const {
  uint32_t largest = 1;
  for (const RegionReport& region : regions) largest = std::max(largest, region.largest);
  return largest;
}

uint32_t ProcessReport::used_cpus() const { return std::min(cpus, largest_team()); }

ProcessReport parse_report(const std::string& text) {
  const Json from = Json::parse(text);
  ProcessReport report;
  report.process = from.at("process");
  report.program = from.at("program");
  report.other_runtime = text_or_empty(from, "other_runtime");
  if (from.at("rank").is_number()) report.rank = from.at("rank").get<int>();
  report.has_ended = from.at("has_ended");
  report.elapsed = seconds(from, "elapsed");
  report.cpus = from.at("cpus");
  report.wait_policy = text_or_empty(from, "wait_policy");
  report.policy = text_or_empty(from, "policy");
  const Json& modes = from.at("modes");
  report.why_kernel_threads = text_or_empty(modes, "why_kernel_threads");
  report.observed_teams = modes.at("observed_teams");
  report.observer = text_or_empty(modes, "observer");
  report.bound_teams = modes.at("bound_teams");
  if (const auto usage = from.find("usage"); usage != from.end()) {
    report.cpu_time = seconds(*usage, "user") + seconds(*usage, "system");
    report.system_time = seconds(*usage, "system");
    report.memory_kib = usage->at("memory_kib");
    report.page_faults = usage->at("page_faults");
    report.preempted = usage->at("preempted");
  }
  const Json& memory = from.at("memory");
  report.memory.own = memory.at("own");
  report.memory.huge = memory.at("huge");
  report.memory.nodes = memory.at("nodes").get<std::vector<uint64_t>>();
  for (const auto& [name, count] : from.at("counters").items())
    report.counters.emplace_back(name, count);
  for (const Json& each : from.at("regions")) {
    RegionReport region = parse_region(each);
    add(&report.shares, region.shares);
    // The rest is no region's: what ran beside all of them.
    if (region.calls != 0) report.regions.push_back(std::move(region));
  }
  std::stable_sort(report.regions.begin(), report.regions.end(),
                   [](const RegionReport& a, const RegionReport& b) { return a.open > b.open; });
  // Nobody sampled it, and one CPU of those that it uses later had to do.
  report.shares.serial += seconds(from, "before") * report.used_cpus();
  return report;
}

std::vector<ProcessReport> read_reports(const std::string& folder) {
  std::vector<ProcessReport> reports;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string text = last_text(entry.path());
    if (text.empty()) continue;
    try {
      reports.push_back(parse_report(text));
      MemoryReport& memory = reports.back().memory;
      memory.node_cpus = cpus_of_nodes(memory.nodes.size());
      name_regions(&reports.back().regions);
    } catch (const std::exception&) {
      // Of a process that has overwritten its own memory, say.
    }
  }
  std::sort(reports.begin(), reports.end(),
            [](const ProcessReport& a, const ProcessReport& b) { return a.process < b.process; });
  return reports;
}

}  // namespace bosk::tools
