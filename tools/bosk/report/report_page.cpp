// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bosk/escaped.h"
#include "bosk/report/advice.h"

namespace bosk::tools {
namespace {

constexpr size_t kRegionLines = 8;
constexpr size_t kAdviceLines = 3;
constexpr size_t kBarWidth = 40;
constexpr size_t kTextWidth = 100;

double per_cent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

std::string seconds_text(double seconds) {
  return seconds < 10 ? fmt::format("{:.3f}", seconds) : fmt::format("{:.1f}", seconds);
}

/// In lines of kTextWidth, all but the first behind `indent` blanks.
std::string wrapped(const std::string& text, size_t indent) {
  std::string result;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > indent && column + 1 + width_of_text(word) > kTextWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width_of_text(word);
    at = end + 1;
  }
  return result;
}

std::string head(const ProcessReport& report) {
  std::string line = fmt::format("bosk report of {}: {} s on {} CPU{}, process {}",
                                 escaped(report.program), seconds_text(report.elapsed), report.cpus,
                                 report.cpus == 1 ? "" : "s", report.process);
  if (report.rank) line += fmt::format(", rank {}", *report.rank);
  if (!report.has_ended) line += " (it was killed, or has not ended: as far as it was recorded)";
  return line + "\n\n";
}

std::string name_of(const std::string& file) {
  return escaped(std::filesystem::path(file).filename().string());
}

std::string verdict(const ProcessReport& report, const std::vector<Advice>& advice) {
  if (!advice.empty())
    return fmt::format("{:.0f} % of the CPUs' time is lost by {}.", 100 * advice.front().lost,
                       escaped(advice.front().cause));
  return fmt::format(
      "Nothing to change: the CPUs compute in parallel regions for {:.0f} % of their time, and nothing that could "
      "be had more cheaply takes 5 % of it.",
      per_cent(report.shares.computing, report.shares.sum()));
}

void add_share(std::string* page, const char* name, double part, double all) {
  if (part < 0.0005 * all) return;
  const auto bar = static_cast<size_t>(std::lround(kBarWidth * part / all));
  *page += fmt::format("  {:<28} {:5.1f} %{}{}\n", name, per_cent(part, all), bar != 0 ? "  " : "",
                       std::string(bar, '#'));
}

std::string times(const ProcessReport& report) {
  const Shares& shares = report.shares;
  const double all = shares.sum();
  std::string page = fmt::format("time      {} s of CPUs, of which\n", seconds_text(all));
  for (const ShareWords& words : kShareWords)
    add_share(&page, words.label, shares.*words.share, all);
  return page + "\n";
}

std::string team_sizes(const RegionReport& region) {
  return region.smallest == region.largest ? fmt::format("{}", region.largest)
                                           : fmt::format("{}-{}", region.smallest, region.largest);
}

std::string mode_of(const RegionReport& region) {
  if (region.modes.empty()) return "-";
  if (region.modes.size() > 1) return "mixed";
  for (const ModeWords& words : kModeWords)
    if (region.modes.front() == words.key) return words.label;
  return "?";
}

std::string region_line(const RegionReport& region) {
  const double all = region.shares.sum();
  const double others = region.shares.waiting + region.shares.yielding + region.shares.polling +
                        region.shares.blocked + region.shares.runtime;
  return fmt::format(
      "{:>9} {:>8} {:>6} {:>9} {:>10.4g} {:>6.0f} {:>6.0f} {:>6.0f} {:>6.0f}  {}{}\n", region.calls,
      team_sizes(region), mode_of(region), seconds_text(region.open),
      1e3 * region.open / static_cast<double>(region.calls), per_cent(region.shares.computing, all),
      per_cent(region.shares.imbalance, all), per_cent(region.shares.barrier, all),
      per_cent(others, all),
      std::string(region.level > 1 ? 2 * std::min(region.level - 1, 4u) : 0, ' '),
      escaped(region.where));
}

std::string regions(const ProcessReport& report) {
  std::string page = fmt::format("{:<9} {:>8} {:>6} {:>9} {:>10} {:>6} {:>6} {:>6} {:>6}  {}\n",
                                 "regions", "threads", "mode", "s", "ms a call", "comp%", "imb%",
                                 "barr%", "other%", "where (inner ones further right)");
  for (size_t i = 0; i < std::min(report.regions.size(), kRegionLines); ++i)
    page += region_line(report.regions[i]);
  if (report.regions.size() > kRegionLines)
    page += fmt::format("          and {} more (--report=full)\n",
                        report.regions.size() - kRegionLines);
  return page;
}

std::string why_kernel_threads(const ProcessReport& report) {
  if (!report.why_kernel_threads.empty()) return escaped(report.why_kernel_threads);
  std::string why;
  if (report.observed_teams != 0) why = escaped(report.observer);
  if (report.bound_teams != 0) why += std::string(why.empty() ? "" : ", or ") + "bound to places";
  return why;
}

/// Of those that the regions' lines name.
std::string modes(const ProcessReport& report) {
  std::string text;
  for (const ModeWords& words : kModeWords) {
    if (std::none_of(report.regions.begin(), report.regions.end(), [&](const RegionReport& region) {
          return std::find(region.modes.begin(), region.modes.end(), words.key) !=
                 region.modes.end();
        }))
      continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", words.label, words.meaning);
    if (const std::string why = why_kernel_threads(report);
        words.key == std::string("kernel-threads") && !why.empty())
      text += " (" + why + ")";
  }
  if (!report.why_kernel_threads.empty() && text.find("kernel:") == std::string::npos)
    text += (text.empty() ? "" : "; ") +
            fmt::format("no user-level threads: {}", escaped(report.why_kernel_threads));
  return text.empty() ? "" : "mode      " + wrapped(text, 10) + "\n";
}

std::string how_often(uint64_t times) {
  return times == 1 ? "once" : fmt::format("{} times", times);
}

/// What was done with the region's teams, and why. Empty: nothing.
std::string team_line(const RegionReport& region) {
  std::string text;
  for (const TeamWords& words : kTeamWords) {
    const auto found = std::find_if(region.teams.begin(), region.teams.end(),
                                    [&](const auto& count) { return count.first == words.key; });
    if (found != region.teams.end())
      text += (text.empty() ? "" : "; ") +
              fmt::format(fmt::runtime(words.text), how_often(found->second));
  }
  return text.empty() ? "" : escaped(region.where) + ": " + text;
}

/// Of the regions that have a line.
std::string teams(const ProcessReport& report) {
  std::string page;
  for (size_t i = 0; i < std::min(report.regions.size(), kRegionLines); ++i)
    if (const std::string line = team_line(report.regions[i]); !line.empty())
      page += std::string(10, ' ') + wrapped(line, 12) + "\n";
  if (page.empty()) return "";
  if (report.policy.empty()) return "teams     " + page.substr(10);
  return "teams     placed by policy " + escaped(report.policy) + "\n" + page;
}

std::string others(const ProcessReport& report) {
  if (report.other_runtime.empty()) return "";
  return "not seen  " +
         wrapped(
             fmt::format(
                 "{} is in the process as well (Clang's or Intel's OpenMP), which bosk does not stand for: what "
                 "that one runs counts as the program's own code",
                 name_of(report.other_runtime)),
             10) +
         "\n";
}

std::string changes(const std::vector<Advice>& advice) {
  if (advice.empty()) return "";
  std::string page = "\nto change, the most worth first\n";
  for (size_t i = 0; i < std::min(advice.size(), kAdviceLines); ++i) {
    page += fmt::format(
        "  {}. {:4.1f} %  {}\n", i + 1, 100 * advice[i].lost,
        wrapped(fmt::format("{}: {}.", escaped(advice[i].cause), advice[i].remedy), 13));
  }
  return page;
}

}  // namespace

std::string report_verdict(const ProcessReport& report) {
  return verdict(report, advice_for(report));
}

std::string report_page(const ProcessReport& report) {
  if (report.regions.empty())
    return fmt::format(
        "bosk: {} (process {}): its OpenMP comes from {} (Clang's or Intel's), which bosk does not serve yet; there is no report of "
        "it\n",
        escaped(report.program), report.process, name_of(report.other_runtime));
  const std::vector<Advice> advice = advice_for(report);
  return head(report) + "verdict   " + wrapped(verdict(report, advice), 10) + "\n\n" +
         times(report) + regions(report) + modes(report) + teams(report) + others(report) +
         changes(advice);
}

}  // namespace bosk::tools
