// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `bosk run --compare` concludes from numbers, and how it finds where outputs part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "bosk/compare/output.h"
#include "bosk/compare/statistics.h"
#include "bosk/compare/text.h"
#include "bosk/escaped.h"
#include "bosk/memory_file.h"

namespace bosk::tools {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int exited(int status) { return status << 8; }

using Variants = std::vector<VariantRuns>;

VariantRuns variant(const char* name, size_t reference, const std::vector<double>& walls) {
  VariantRuns result;
  result.name = name;
  result.reference = reference;
  for (const double wall : walls) {
    MeasuredRun run;
    run.wall_seconds = wall;
    run.cpu_seconds = 2 * wall;
    run.peak_mib = 100;
    result.runs.push_back(run);
  }
  return result;
}

Variants two(const std::vector<double>& libgomp, const std::vector<double>& bosk) {
  return {variant("libgomp", 0, libgomp), variant("bosk", 0, bosk)};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// --- statistics

TEST(Estimate, IsTheMedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(estimate({3, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(estimate({4, 1, 3, 2}).median, 2.5);
  EXPECT_DOUBLE_EQ(estimate({7}).median, 7);
}

std::vector<double> one_to(int count) {
  std::vector<double> numbers;
  for (int i = 1; i <= count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(Estimate, LeavesOutAsManyAsNinetyPercentAllow) {
  // From tables of the sign test: 2 P(at most k heads) <= 0.1.
  const struct {
    int count;
    int outside;
  } known[] = {{1, 0}, {2, 0}, {4, 0}, {5, 0}, {7, 0}, {8, 1}, {10, 1}, {11, 2}, {20, 5}, {25, 7}};
  for (const auto& [count, outside] : known) {
    const Estimate of = estimate(one_to(count));
    EXPECT_EQ(of.least, 1 + outside) << count;
    EXPECT_EQ(of.most, count - outside) << count;
  }
  const Estimate many = estimate(one_to(1000));
  EXPECT_NEAR(many.least, 474, 1);
  EXPECT_NEAR(many.most, 527, 1);
}

// --- the verdict

TEST(CompareText, TellsHowManyTimesAsFast) {
  const std::string text =
      comparison_text(two({2.0, 2.1, 2.0, 2.2, 1.9}, {0.25, 0.26, 0.25, 0.25, 0.25}));
  EXPECT_EQ(first_line(text),
            "bosk is 8.0 times as fast as libgomp: 0.250 s, libgomp 2.00 s (medians of 5 runs)");
  EXPECT_THAT(text, HasSubstr("\nexit status   0 in all runs\n"));
  EXPECT_THAT(text, HasSubstr("\noutput        the same in all runs\n"));
}

TEST(CompareText, TellsThatBoskIsSlower) {
  const std::string text = comparison_text(two({1, 1, 1, 1, 1}, {1.4, 1.4, 1.5, 1.3, 1.41}));
  EXPECT_EQ(first_line(text),
            "bosk takes 1.40 times libgomp's time: 1.40 s, libgomp 1.00 s (medians of 5 runs)");
}

TEST(CompareText, ShowsASmallDifferenceThatAllRunsHave) {
  const std::string text = comparison_text(two({1, 1, 1, 1, 1}, std::vector<double>(5, 1.002)));
  EXPECT_THAT(text, StartsWith("bosk takes 1.002 times libgomp's time: "));
}

TEST(CompareText, FindsNoDifferenceWhereTheIntervalHoldsOne) {
  const std::string text = comparison_text(two({1, 1, 1, 1, 1}, {0.8, 0.8, 0.8, 0.8, 1.0}));
  EXPECT_EQ(first_line(text),
            "no difference that 5 runs can show: bosk 0.800 s, libgomp 1.00 s (medians)");
}

TEST(CompareText, ComparesWithinRounds) {
  // Times that grow from round to round are no difference between the two.
  const std::string text = comparison_text(two({1, 2, 3, 4, 5}, {0.9, 1.8, 2.7, 3.6, 4.5}));
  EXPECT_THAT(text, StartsWith("bosk is 1.11 times as fast as libgomp: "));
  EXPECT_THAT(text, HasSubstr("0.900 (0.900 to 0.900)"));
}

TEST(CompareText, DoesNotTrustFewRuns) {
  EXPECT_THAT(
      comparison_text(two({1, 1}, {0.5, 0.5})),
      StartsWith("bosk is 2.0 times as fast as libgomp: 0.500 s, libgomp 1.00 s (medians of "
                 "2 runs, too few to be sure)\n"));
  EXPECT_THAT(comparison_text(two({1}, {0.5})),
              StartsWith("1 run cannot show a difference: bosk 0.500 s, libgomp 1.00 s\n"));
}

TEST(CompareText, ShowsThreeDigitsOfMilliseconds) {
  const std::string text = comparison_text(two({0.00412, 0.00412}, {0.00206, 0.00206}));
  EXPECT_THAT(text, HasSubstr("0.00206 s, libgomp 0.00412 s"));
  EXPECT_THAT(text, HasSubstr("\nlibgomp   0.00412   0.00412   0.00412   0.00824          100\n"));
}

TEST(CompareText, AlignsTheTable) {
  const std::string text = comparison_text(two({2, 2.5, 2}, {0.25, 0.5, 0.25}));
  EXPECT_THAT(
      text,
      HasSubstr(
          "          wall s    from      to   CPU s   memory MiB         wall / libgomp's\n"
          "libgomp    2.000   2.000   2.500   4.000          100\n"
          "bosk       0.250   0.250   0.500   0.500          100   0.125 (0.125 to 0.200)\n"));
}

// --- policies and threads

TEST(CompareText, NamesTheBestPolicy) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1.5));
  variants.push_back(variant("bosk under spread", 0, std::vector<double>(5, 1)));
  EXPECT_THAT(comparison_text(variants),
              StartsWith("bosk under spread (the best of 2) is 2.0 times as "
                         "fast as libgomp: 1.00 s, libgomp 2.00 s"));
}

TEST(CompareText, ComparesWithTheSameNumberOfThreads) {
  const Variants variants = {variant("libgomp with 2 threads", 0, std::vector<double>(5, 4)),
                             variant("bosk with 2 threads", 0, std::vector<double>(5, 2)),
                             variant("libgomp with 4 threads", 2, std::vector<double>(5, 1)),
                             variant("bosk with 4 threads", 2, std::vector<double>(5, 3))};
  const std::string text = comparison_text(variants);
  EXPECT_THAT(text,
              StartsWith("bosk with 2 threads (the best of 2) is 2.0 times as fast as libgomp "
                         "with 2 threads: "));
  // That libgomp is faster with another number is not hidden.
  EXPECT_THAT(text, HasSubstr("\nthe least time of all: libgomp with 4 threads, 1.00 s\n"));
  EXPECT_THAT(text, HasSubstr("3.00 (3.00 to 3.00)"));
}

// --- runs that fail

TEST(CompareText, SaysFirstThatRunsFailed) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1));
  variants[1].runs[1].wait_status = SIGSEGV;
  variants[1].runs[3].wait_status = SIGSEGV;
  variants[1].last_errors = {"it is broken"};
  const std::string text = comparison_text(variants);
  EXPECT_THAT(text, StartsWith("bosk failed in 2 of 5 runs\n"
                               "times of runs that ended differently are not compared\n"));
  EXPECT_THAT(text, Not(HasSubstr("as fast as")));
  EXPECT_THAT(text, HasSubstr("\nexit status   libgomp: 0 in 5 runs\n"
                              "              bosk: 0 in 3 runs, SIGSEGV in 2\n"));
  EXPECT_THAT(text,
              HasSubstr("\nstandard error of bosk, run 2, which ended by SIGSEGV; its last lines:\n"
                        "  it is broken\n"));
  EXPECT_EQ(common_status(variants), 1);
}

TEST(CompareText, ComparesRunsThatAllFailedAlike) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1));
  for (VariantRuns& each : variants) {
    for (MeasuredRun& run : each.runs) run.wait_status = exited(3);
  }
  EXPECT_THAT(comparison_text(variants),
              StartsWith("every run ended with status 3\nbosk is 2.0 times as fast as libgomp: "));
  EXPECT_EQ(common_status(variants), 3);
  for (VariantRuns& each : variants) {
    for (MeasuredRun& run : each.runs) run.wait_status = SIGTERM;
  }
  EXPECT_EQ(common_status(variants), 128 + SIGTERM);
}

TEST(CompareText, ChoosesTheBestOfThoseThatEndedWell) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1));
  variants.push_back(variant("bosk under spread", 0, std::vector<double>(5, 0.1)));
  for (MeasuredRun& run : variants[2].runs) run.wait_status = exited(1);
  const std::string text = comparison_text(variants);
  EXPECT_THAT(text,
              StartsWith("bosk under spread failed in 5 of 5 runs\nbosk (the best of 2) is 2.0 "));
}

// --- outputs

void set_unlike(MeasuredRun* run, const Differences& differences) {
  run->from_reference = run->from_first_variant = differences;
}

TEST(CompareText, TellsThatTheOutputDiffers) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1));
  const Differences seventh = {{{7, "\"a\"", "\"b\""}}};
  for (MeasuredRun& run : variants[1].runs) set_unlike(&run, seventh);
  const std::string text = comparison_text(variants);
  EXPECT_THAT(first_line(text), HasSubstr("; its output is not libgomp's, see below"));
  EXPECT_THAT(text, HasSubstr("\noutput        differs between libgomp and bosk; first in line 7:\n"
                              "  libgomp  \"a\"\n"
                              "  bosk     \"b\"\n"));
  // The same where it varies on bosk only.
  set_unlike(&variants[1].runs[2], {});
  variants[1].runs[2].from_own_first = seventh;
  EXPECT_THAT(
      comparison_text(variants),
      HasSubstr("bosk in 4 of 5 runs, which varies, while libgomp does not; first in line 7:"));
}

TEST(CompareText, LinesThatVaryOnLibgompAreNotCompared) {
  Variants variants = two(std::vector<double>(5, 2), std::vector<double>(5, 1));
  const Differences ninth = {{{9, "\"1 s\"", "\"2 s\""}}};
  variants[0].runs[4].from_own_first = ninth;
  set_unlike(&variants[0].runs[4], ninth);
  for (MeasuredRun& run : variants[1].runs) set_unlike(&run, ninth);
  const std::string same = comparison_text(variants);
  EXPECT_THAT(
      same,
      HasSubstr(
          "\noutput        the same in all runs\n"
          "              not compared: a line that differs from run to run on libgomp, too; line 9:\n"
          "  one run  \"1 s\"\n"
          "  another  \"2 s\"\n"));
  EXPECT_THAT(same, Not(HasSubstr("not libgomp's")));
  // Another line.
  set_unlike(&variants[1].runs[1], {{{7, "\"a\"", "\"b\""}, {9, "\"1 s\"", "\"3 s\""}}});
  const std::string other = comparison_text(variants);
  EXPECT_THAT(other,
              HasSubstr("differs between libgomp and bosk in 1 of 5 runs; first in line 7:"));
  EXPECT_THAT(other, HasSubstr("not compared: a line that differs"));
  // Another number of lines, on bosk, …
  Differences more = ninth;
  more.has_more = true;
  set_unlike(&variants[1].runs[1], more);
  EXPECT_THAT(comparison_text(variants),
              HasSubstr("differs between libgomp and bosk in 1 of 5 runs"));
  // … and on libgomp.
  variants[0].runs[4].from_own_first = more;
  const std::string silent = comparison_text(variants);
  EXPECT_THAT(silent,
              HasSubstr("\noutput        differs from run to run on libgomp, too: nothing can be "
                        "said of it; first in line 9:\n"
                        "  one run  \"1 s\"\n"));
  EXPECT_THAT(silent, Not(HasSubstr("not libgomp's")));
}

TEST(CompareText, OneRunCannotTellWhetherTheOutputVaries) {
  Variants variants = two({2}, {1});
  set_unlike(&variants[1].runs[0], {{{1, "\"a\"", "\"b\""}}});
  EXPECT_THAT(comparison_text(variants),
              HasSubstr("1 run cannot tell whether it varies on libgomp, too"));
}

MemoryFile file_of(const std::string& text) {
  MemoryFile file;
  EXPECT_EQ(write(file.descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

TEST(Differences, AreNoneInTheSameText) {
  EXPECT_TRUE(differences(file_of(""), file_of("")).none());
  EXPECT_TRUE(differences(file_of("one\ntwo"), file_of("one\ntwo")).none());
}

TEST(Differences, NameTheLines) {
  const Differences found =
      differences(file_of("one\ntwo\nthree\n4\n"), file_of("one\ntow!\nthree\nfour\n"));
  ASSERT_EQ(found.lines.size(), 2u);
  EXPECT_FALSE(found.has_more);
  EXPECT_EQ(found.lines[0].line, 2);
  EXPECT_EQ(found.lines[0].first, "\"two\"");
  EXPECT_EQ(found.lines[0].second, "\"tow!\"");
  EXPECT_EQ(found.lines[1].line, 4);
  EXPECT_EQ(found.lines[1].second, "\"four\"");
}

TEST(Differences, FindWhatOneEndsBefore) {
  Differences found = differences(file_of("one\n"), file_of("one\ntwo\nthree\n"));
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_TRUE(found.has_more);
  EXPECT_EQ(found.lines[0].line, 2);
  EXPECT_EQ(found.lines[0].first, "no such line");
  found = differences(file_of("one\n"), file_of("one"));
  ASSERT_EQ(found.lines.size(), 1u);
  EXPECT_EQ(found.lines[0].line, 1);
  EXPECT_EQ(found.lines[0].first, "\"one\"");
  EXPECT_EQ(found.lines[0].second, "\"one\", and no newline");
}

TEST(Differences, AreCountedUpToAMost) {
  std::string ones;
  std::string twos;
  for (size_t i = 0; i <= Differences::kMost; ++i) {
    ones += "1\n";
    twos += "22\n";
  }
  const Differences found = differences(file_of(ones), file_of(twos));
  EXPECT_EQ(found.lines.size(), Differences::kMost);
  EXPECT_TRUE(found.has_more);
}

TEST(Differences, AreSeenFarInsideOfLongLines) {
  // Beyond what is read at once, and in the middle of lines that are longer than that.
  const std::string start = "first\n" + std::string(200000, 'x');
  const std::string end(100000, 'y');
  const Differences found =
      differences(file_of(start + "a" + end + "\nlast\n"), file_of(start + "b" + end + "\nlsat\n"));
  ASSERT_EQ(found.lines.size(), 2u);
  const Difference& first = found.lines[0];
  EXPECT_EQ(first.line, 2);
  EXPECT_THAT(first.first, StartsWith("\"…xxxxxxxxxxxxay"));
  EXPECT_THAT(first.second, StartsWith("\"…xxxxxxxxxxxxby"));
  EXPECT_EQ(width_of_text(first.first), 62);
  EXPECT_THAT(first.first, testing::EndsWith("y…\""));
  EXPECT_EQ(found.lines[1].line, 3);
  EXPECT_EQ(found.lines[1].second, "\"lsat\"");
}

TEST(LastLines, AreAtMostSoMany) {
  EXPECT_TRUE(last_lines(file_of(""), 2).empty());
  EXPECT_THAT(last_lines(file_of("a\nb\n\nc\n"), 3), testing::ElementsAre("b", "", "c"));
  EXPECT_THAT(last_lines(file_of("a\nb"), 3), testing::ElementsAre("a", "b"));
  EXPECT_THAT(last_lines(file_of(std::string(500000, 'x') + "\nend\r\n"), 1),
              testing::ElementsAre("end\\r"));
}

// --- text of others

TEST(Escaped, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(escaped("plain, größe, 日本, 🙂"), "plain, größe, 日本, 🙂");
  EXPECT_EQ(escaped("a\033[31m\r\n\tb\x7f"), "a\\x1b[31m\\r\\n\\tb\\x7f");
  EXPECT_EQ(escaped("\\x1b"), "\\\\x1b");
  // What is not UTF-8: alone, cut off, too long, half of a pair, beyond the last.
  EXPECT_EQ(escaped("\xff"), "\\xff");
  EXPECT_EQ(escaped("\xc3"), "\\xc3");
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  // C1 controls and those of direction are UTF-8.
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(escaped("\u202e"), "\\xe2\\x80\\xae");
  EXPECT_EQ(escaped(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("größe", 5), "größe");
  EXPECT_EQ(shortened("größe", 4), "grö…");
  EXPECT_EQ(shortened("日本語", 2), "日…");
}

}  // namespace
}  // namespace bosk::tools
