// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of a comparison: first what went wrong, then which is faster, then the numbers.
#include "bosk/compare/text.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "bosk/compare/statistics.h"
#include "bosk/escaped.h"

namespace bosk::tools {
namespace {

using Variants = std::vector<VariantRuns>;

std::string runs_in_words(size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "run" : "runs");
}

// --- how runs ended

bool failed(const MeasuredRun& run) { return run.wait_status != 0; }

std::string status_in_words(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("{}", WEXITSTATUS(wait_status));
  const char* name = sigabbrev_np(WTERMSIG(wait_status));
  return name != nullptr ? fmt::format("SIG{}", name)
                         : fmt::format("signal {}", WTERMSIG(wait_status));
}

/// "by SIGSEGV", "with status 3".
std::string ending_in_words(int wait_status) {
  return fmt::format("{} {}", WIFSIGNALED(wait_status) ? "by" : "with status",
                     status_in_words(wait_status));
}

/// All runs ended as `wait_status` says.
bool all_ended_so(const VariantRuns& variant, int wait_status) {
  return std::all_of(variant.runs.begin(), variant.runs.end(),
                     [=](const MeasuredRun& run) { return run.wait_status == wait_status; });
}

int first_status(const Variants& variants) { return variants[0].runs[0].wait_status; }

bool all_ended_alike(const Variants& variants) {
  return std::all_of(variants.begin(), variants.end(), [&](const VariantRuns& variant) {
    return all_ended_so(variant, first_status(variants));
  });
}

/// "0 in 3 runs, SIGSEGV in 2", in the order in which they were seen.
std::string statuses_of(const VariantRuns& variant) {
  std::vector<std::pair<int, size_t>> counts;
  for (const MeasuredRun& run : variant.runs) {
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& counted) {
      return counted.first == run.wait_status;
    });
    if (found == counts.end()) {
      counts.emplace_back(run.wait_status, 1);
    } else {
      found->second++;
    }
  }
  std::string result;
  for (const auto& [status, count] : counts) {
    const std::string times = result.empty() ? runs_in_words(count) : fmt::format("{}", count);
    result += fmt::format("{}{} in {}", result.empty() ? "" : ", ", status_in_words(status), times);
  }
  return result;
}

// --- times

bool on_libgomp(const Variants& variants, size_t number) {
  return variants[number].reference == number;
}

template <typename T>
std::vector<double> all_of_runs(const VariantRuns& variant, T MeasuredRun::* member) {
  std::vector<double> result;
  for (const MeasuredRun& run : variant.runs) result.push_back(run.*member);
  return result;
}

double median_wall(const VariantRuns& variant) {
  return estimate(all_of_runs(variant, &MeasuredRun::wall_seconds)).median;
}

/// Times of runs that ended differently say nothing of each other.
bool comparable(const Variants& variants, size_t number) {
  const VariantRuns& reference = variants[variants[number].reference];
  const int status = reference.runs[0].wait_status;
  return all_ended_so(reference, status) && all_ended_so(variants[number], status);
}

/// Its wall time as a part of libgomp's in the same round.
Estimate ratio(const Variants& variants, size_t number) {
  const VariantRuns& variant = variants[number];
  const VariantRuns& reference = variants[variant.reference];
  std::vector<double> ratios;
  for (size_t i = 0; i < variant.runs.size(); ++i) {
    ratios.push_back(variant.runs[i].wall_seconds / reference.runs[i].wall_seconds);
  }
  return estimate(std::move(ratios));
}

/// As many decimals as give `number` that many significant digits.
int decimals_for(double number, int significant) {
  if (!(number > 0) || !std::isfinite(number)) return significant - 1;
  // What is rounded up to the next power of ten needs one digit less; one too many does no harm.
  const int decimals = significant - 1 - static_cast<int>(std::floor(std::log10(number)));
  return std::clamp(decimals, 0, 6);
}

std::string three_digits(double number) {
  return fmt::format("{:.{}f}", number, decimals_for(number, 3));
}

/// A factor above 1, in so many digits that it is seen to be above.
std::string factor(double number) {
  int decimals = number < 2 ? 2 : number < 10 ? 1 : 0;
  while (decimals < 5 && std::round((number - 1) * std::pow(10, decimals)) < 1) ++decimals;
  return fmt::format("{:.{}f}", number, decimals);
}

// --- the verdict

/// Which of bosk's variants took the least time, of those that can be compared; variants.size(): none can.
size_t best_of_bosk(const Variants& variants) {
  size_t best = variants.size();
  for (size_t i = 0; i < variants.size(); ++i) {
    if (on_libgomp(variants, i) || !comparable(variants, i)) continue;
    if (best == variants.size() || median_wall(variants[i]) < median_wall(variants[best])) best = i;
  }
  return best;
}

std::string speed_sentence(const Variants& variants, size_t number) {
  const VariantRuns& variant = variants[number];
  const std::string& reference = variants[variant.reference].name;
  const size_t runs = variant.runs.size();
  size_t candidates = 0;
  for (size_t i = 0; i < variants.size(); ++i) candidates += on_libgomp(variants, i) ? 0 : 1;
  std::string name = variant.name;
  if (candidates > 1) name += fmt::format(" (the best of {})", candidates);
  const std::string bosk_time = three_digits(median_wall(variant));
  const std::string times = fmt::format("{} s, {} {} s", bosk_time, reference,
                                        three_digits(median_wall(variants[variant.reference])));
  if (runs == 1) return fmt::format("1 run cannot show a difference: {} {}", name, times);
  const Estimate part = ratio(variants, number);
  if (part.least <= 1 && part.most >= 1) {
    return fmt::format("no difference that {} can show: {} {} (medians)", runs_in_words(runs), name,
                       times);
  }
  const std::string of_runs = fmt::format("medians of {}{}", runs_in_words(runs),
                                          runs < kEnoughRuns ? ", too few to be sure" : "");
  if (part.most < 1) {
    return fmt::format("{} is {} times as fast as {}: {} ({})", name, factor(1 / part.median),
                       reference, times, of_runs);
  }
  return fmt::format("{} takes {} times {}'s time: {} ({})", name, factor(part.median), reference,
                     times, of_runs);
}

/// Where libgomp with another number of threads is faster than what was compared.
std::string fastest_sentence(const Variants& variants, size_t best) {
  size_t fastest = best;
  for (size_t i = 0; i < variants.size(); ++i) {
    const bool usable = all_ended_so(variants[i], variants[best].runs[0].wait_status);
    if (usable && median_wall(variants[i]) < median_wall(variants[fastest])) fastest = i;
  }
  if (!on_libgomp(variants, fastest) || fastest == variants[best].reference) return "";
  return fmt::format("the least time of all: {}, {} s\n", variants[fastest].name,
                     three_digits(median_wall(variants[fastest])));
}

std::string ending_sentence(const Variants& variants) {
  const int status = first_status(variants);
  if (all_ended_alike(variants)) {
    if (status == 0) return "";
    return fmt::format("every run ended {}\n", ending_in_words(status));
  }
  std::string sentence;
  for (const VariantRuns& variant : variants) {
    const auto bad = std::count_if(variant.runs.begin(), variant.runs.end(), failed);
    if (bad == 0) continue;
    sentence += fmt::format("{}{} failed in {} of {}", sentence.empty() ? "" : "; ", variant.name,
                            bad, runs_in_words(variant.runs.size()));
  }
  return sentence + "\n";
}

// --- the output

/// What libgomp writes otherwise from run to run, times for the most part: nothing can be said of that.
struct Varying {
  std::set<uint64_t> lines;
  /// Other numbers of lines, or very many: nothing can be said of the output as a whole.
  bool is_all = false;

  const Difference* first_other(const Differences& differences) const {
    for (const Difference& difference : differences.lines)
      if (!lines.contains(difference.line)) return &difference;
    return nullptr;
  }
  /// Is there a difference beside them?
  bool differs(const Differences& differences) const {
    return !is_all && (differences.has_more || first_other(differences) != nullptr);
  }
};

Varying varying_of(const VariantRuns& reference) {
  Varying varying;
  for (const MeasuredRun& run : reference.runs) {
    varying.is_all = varying.is_all || run.from_own_first.has_more;
    for (const Difference& difference : run.from_own_first.lines)
      varying.lines.insert(difference.line);
  }
  return varying;
}

/// The first run whose output differs from the reference's in what does not vary there. Null: none.
const MeasuredRun* first_unlike(const Variants& variants, size_t number) {
  const VariantRuns& variant = variants[number];
  const Varying varying = varying_of(variants[variant.reference]);
  for (const MeasuredRun& run : variant.runs)
    if (varying.differs(run.from_reference)) return &run;
  return nullptr;
}

bool output_differs(const Variants& variants, size_t number) {
  return !on_libgomp(variants, number) && first_unlike(variants, number) != nullptr;
}

/// A line, and both texts with who wrote them.
std::string place_in_words(const Difference& difference, const std::string& first,
                           const std::string& second) {
  std::string text = fmt::format("line {}:\n", difference.line);
  const size_t width = std::max(width_of_text(first), width_of_text(second));
  for (const auto& [name, line] :
       {std::pair(first, difference.first), std::pair(second, difference.second)}) {
    text += fmt::format("  {}{}  {}\n", name, std::string(width - width_of_text(name), ' '), line);
  }
  return text;
}

std::string difference_in_words(const Variants& variants, size_t number) {
  const VariantRuns& variant = variants[number];
  const std::string& reference = variants[variant.reference].name;
  const Varying varying = varying_of(variants[variant.reference]);
  const size_t runs = variant.runs.size();
  const auto unlike = static_cast<size_t>(
      std::count_if(variant.runs.begin(), variant.runs.end(),
                    [&](const MeasuredRun& run) { return varying.differs(run.from_reference); }));
  const bool varies =
      std::any_of(variant.runs.begin(), variant.runs.end(),
                  [&](const MeasuredRun& run) { return varying.differs(run.from_own_first); });
  std::string text = fmt::format("differs between {} and {}", reference, variant.name);
  if (unlike < runs) text += fmt::format(" in {} of {}", unlike, runs_in_words(runs));
  if (varies) text += fmt::format(", which varies, while {} does not", reference);
  if (runs == 1) text += " (1 run cannot tell whether it varies on libgomp, too)";
  const Differences& shown = first_unlike(variants, number)->from_reference;
  const Difference* first = varying.first_other(shown);
  return text + "; first in " +
         place_in_words(first != nullptr ? *first : shown.lines.back(), reference, variant.name);
}

/// What varies on libgomp, with an example. Empty: nothing does.
std::string varying_in_words(const Variants& variants) {
  for (size_t i = 0; i < variants.size(); ++i) {
    if (!on_libgomp(variants, i)) continue;
    const Varying varying = varying_of(variants[i]);
    if (varying.lines.empty()) continue;
    const auto example =
        std::find_if(variants[i].runs.begin(), variants[i].runs.end(),
                     [](const MeasuredRun& run) { return !run.from_own_first.none(); });
    const std::string place =
        place_in_words(example->from_own_first.lines.front(), "one run", "another");
    if (varying.is_all)
      return fmt::format(
          "differs from run to run on {}, too: nothing can be said of it; first in {}",
          variants[i].name, place);
    const size_t lines = varying.lines.size();
    return fmt::format("not compared: {} that differ{} from run to run on {}, too; {}{}",
                       lines == 1 ? "a line" : fmt::format("{} lines", lines),
                       lines == 1 ? "s" : "", variants[i].name, lines == 1 ? "" : "the first is ",
                       place);
  }
  return "";
}

std::string output_in_words(const Variants& variants) {
  std::string text;
  for (size_t i = 0; i < variants.size(); ++i)
    if (output_differs(variants, i)) text += difference_in_words(variants, i);
  const std::string varying = varying_in_words(variants);
  const bool is_all = std::any_of(
      variants.begin(), variants.end(),
      [&](const VariantRuns& variant) { return varying_of(variants[variant.reference]).is_all; });
  if (text.empty() && is_all) return varying;
  if (text.empty()) {
    const Varying masked = varying_of(variants[0]);
    const bool same = std::all_of(variants.begin(), variants.end(), [&](const auto& variant) {
      return std::none_of(variant.runs.begin(), variant.runs.end(), [&](const MeasuredRun& run) {
        return masked.differs(run.from_first_variant);
      });
    });
    text = same ? "the same in all runs\n"
                : "differs with the number of threads, not between libgomp and bosk\n";
  }
  return text + (varying.empty() ? "" : "              " + varying);
}

// --- the table

/// Columns of text: the first to the left, the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], width_of_text(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(width[i] - width_of_text(row[i]), ' ');
      line += i == 0 ? row[i] + blanks : "   " + blanks + row[i];
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ratio_cell(const Variants& variants, size_t number) {
  if (on_libgomp(variants, number)) return "";
  if (!comparable(variants, number)) return "-";
  const Estimate part = ratio(variants, number);
  const int decimals = decimals_for(part.least, 3);
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", part.median, decimals, part.least, decimals,
                     part.most, decimals);
}

std::string table(const Variants& variants) {
  double least_wall = HUGE_VAL;
  double least_cpu = HUGE_VAL;
  for (const VariantRuns& variant : variants) {
    for (const double wall : all_of_runs(variant, &MeasuredRun::wall_seconds))
      least_wall = std::min(least_wall, wall);
    const double cpu = estimate(all_of_runs(variant, &MeasuredRun::cpu_seconds)).median;
    if (cpu > 0) least_cpu = std::min(least_cpu, cpu);
  }
  const auto wall = [decimals = decimals_for(least_wall, 3)](double seconds) {
    return fmt::format("{:.{}f}", seconds, decimals);
  };
  const int cpu_decimals = decimals_for(least_cpu, 3);
  std::vector<std::vector<std::string>> rows = {
      {"", "wall s", "from", "to", "CPU s", "memory MiB", "wall / libgomp's"}};
  for (size_t i = 0; i < variants.size(); ++i) {
    std::vector<double> walls = all_of_runs(variants[i], &MeasuredRun::wall_seconds);
    const auto [least, most] = std::minmax_element(walls.begin(), walls.end());
    const double cpu = estimate(all_of_runs(variants[i], &MeasuredRun::cpu_seconds)).median;
    const double memory = estimate(all_of_runs(variants[i], &MeasuredRun::peak_mib)).median;
    rows.push_back({variants[i].name, wall(estimate(walls).median), wall(*least), wall(*most),
                    fmt::format("{:.{}f}", cpu, cpu_decimals),
                    fmt::format("{:.{}f}", memory, memory < 100 ? 1 : 0), ratio_cell(variants, i)});
  }
  return aligned(rows);
}

std::string statuses_in_words(const Variants& variants) {
  if (all_ended_alike(variants)) return status_in_words(first_status(variants)) + " in all runs\n";
  std::string text;
  for (const VariantRuns& variant : variants) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "              ", variant.name,
                        statuses_of(variant));
  }
  return text;
}

std::string errors_in_words(const VariantRuns& variant) {
  const auto bad = std::find_if(variant.runs.begin(), variant.runs.end(), failed);
  if (bad == variant.runs.end() || variant.last_errors.empty()) return "";
  std::string text =
      fmt::format("\nstandard error of {}, run {}, which ended {}; its last lines:\n", variant.name,
                  bad - variant.runs.begin() + 1, ending_in_words(bad->wait_status));
  for (const std::string& line : variant.last_errors) text += "  " + line + "\n";
  return text;
}

}  // namespace

std::string comparison_text(const Variants& variants) {
  std::string text = ending_sentence(variants);
  const size_t best = best_of_bosk(variants);
  if (best == variants.size()) {
    text += "times of runs that ended differently are not compared\n";
  } else {
    text += speed_sentence(variants, best);
    if (output_differs(variants, best)) text += "; its output is not libgomp's, see below";
    text += "\n" + fastest_sentence(variants, best);
  }
  text += "\n" + table(variants);
  text += "\nexit status   " + statuses_in_words(variants);
  text += "output        " + output_in_words(variants);
  for (const VariantRuns& variant : variants) text += errors_in_words(variant);
  return text;
}

int common_status(const Variants& variants) {
  const int status = first_status(variants);
  if (!all_ended_alike(variants)) return 1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace bosk::tools
