// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "bosk/escaped.h"

namespace bosk::tools {
namespace {

constexpr size_t kRegionLines = 10;
/// Changes below that part of the longer time are not told: two runs of one program differ by as much.
constexpr double kSamePart = 0.02;

std::string row(const std::string& name, double before, double after) {
  return fmt::format("{:<28} {:>10.3f} {:>10.3f} {:>+10.3f}\n", name, before, after,
                     after - before);
}

std::string sentence(const ProcessReport& before, const ProcessReport& after,
                     const std::string& before_name, const std::string& after_name) {
  const std::string times = fmt::format("{:.3g} s, {:.3g} s", after.elapsed, before.elapsed);
  const double ratio = before.elapsed > 0 ? after.elapsed / before.elapsed : 1;
  if (std::abs(ratio - 1) < kSamePart)
    return fmt::format("{} takes as long as {}: {}\n", after_name, before_name, times);
  if (ratio < 1)
    return fmt::format("{} is {:.3g} times as fast as {}: {}\n", after_name, 1 / ratio, before_name,
                       times);
  return fmt::format("{} takes {:.3g} times as long as {}: {}\n", after_name, ratio, before_name,
                     times);
}

std::string shares(const Shares& before, const Shares& after) {
  std::string text =
      fmt::format("{:<28} {:>10} {:>10} {:>10}\n", "s of CPUs", "before", "after", "change");
  const double least = 0.0005 * std::max(before.sum(), after.sum());
  for (const ShareWords& words : kShareWords)
    if (std::max(before.*words.share, after.*words.share) >= least)
      text += row(words.label, before.*words.share, after.*words.share);
  return text + row("all", before.sum(), after.sum());
}

std::string regions(const ProcessReport& before, const ProcessReport& after) {
  std::map<std::string, std::pair<double, double>> open;
  for (const RegionReport& region : before.regions) open[region.where].first += region.open;
  for (const RegionReport& region : after.regions) open[region.where].second += region.open;
  std::vector<std::pair<std::string, std::pair<double, double>>> changed(open.begin(), open.end());
  const double least = kSamePart * std::max(before.elapsed, after.elapsed);
  std::erase_if(changed, [&](const auto& each) {
    return std::abs(each.second.second - each.second.first) < least;
  });
  std::stable_sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second.second - a.second.first) > std::abs(b.second.second - b.second.first);
  });
  if (changed.empty()) return "regions: none is open for a longer or shorter time\n";
  std::string text =
      fmt::format("{:<28} {:>10} {:>10} {:>10}\n", "regions, s open", "before", "after", "change");
  for (size_t i = 0; i < std::min(changed.size(), kRegionLines); ++i)
    text += row(shortened(escaped(changed[i].first), 28), changed[i].second.first,
                changed[i].second.second);
  return text;
}

}  // namespace

ProcessReport sum_of(const std::vector<ProcessReport>& reports) {
  ProcessReport sum;
  for (const ProcessReport& report : reports) {
    sum.elapsed = std::max(sum.elapsed, report.elapsed);
    add(&sum.shares, report.shares);
    sum.regions.insert(sum.regions.end(), report.regions.begin(), report.regions.end());
  }
  return sum;
}

std::string report_difference(const ProcessReport& before, const ProcessReport& after,
                              const std::string& before_name, const std::string& after_name) {
  return sentence(before, after, escaped(before_name), escaped(after_name)) + "\n" +
         shares(before.shares, after.shares) + "\n" + regions(before, after);
}

}  // namespace bosk::tools
