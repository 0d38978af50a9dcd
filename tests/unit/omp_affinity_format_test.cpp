// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Affinity formats: expansion, truncation, errors, and affinity-format-var.
#include "omp/affinity_format.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "in_child.h"
#include "omp/environment.h"

namespace bosk::omp {
namespace {

using testing::in_child;

constexpr CpuRange kCpus[] = {{0, 4}, {8, 1}, {10, 2}};

AffinityValues values() {
  AffinityValues v;
  v.team_num = 1;
  v.num_teams = 3;
  v.nesting_level = 2;
  v.thread_num = 7;
  v.num_threads = 16;
  v.ancestor_tnum = -1;
  v.process_id = 4711;
  v.native_thread_id = 0x7f8f794287c0;
  v.host = "vm";
  v.cpus = kCpus;
  return v;
}

std::string expand(const std::string& format, AffinityFormatError* error) {
  char buffer[512];
  const size_t length =
      expand_affinity_format(format.c_str(), values(), buffer, sizeof buffer, error);
  EXPECT_EQ(length, strlen(buffer)) << format;
  return buffer;
}

std::string expand(const std::string& format) {
  AffinityFormatError error;
  const std::string text = expand(format, &error);
  EXPECT_EQ(error.kind, AffinityFormatError::kNone) << format;
  return text;
}

struct Line {
  const char* format;
  const char* text;
};

TEST(AffinityFormat, Fields) {
  const Line table[] = {
      {"", ""},
      {"plain text", "plain text"},
      {"%%", "%"},
      {"100%%|%%n", "100%|%n"},
      {"%t %T %L %n %N %a %P", "1 3 2 7 16 -1 4711"},
      {"%H", "vm"},
      {"%i", "0x7f8f794287c0"},
      {"%A", "0-3,8,10-11"},
      {"%{team_num} %{num_teams} %{nesting_level} %{thread_num}", "1 3 2 7"},
      {"%{num_threads} %{ancestor_tnum} %{process_id}", "16 -1 4711"},
      {"%{host} %{native_thread_id} %{thread_affinity}", "vm 0x7f8f794287c0 0-3,8,10-11"},
      {kDefaultAffinityFormat, "level 2 thread 0x7f8f794287c0 affinity 0-3,8,10-11"},
  };
  for (const Line& line : table) EXPECT_EQ(expand(line.format), line.text) << line.format;
}

// The same table as tests/env/compare_env.py, with values that can be told apart.
TEST(AffinityFormat, WidthsAndSides) {
  const Line table[] = {
      {"%5n|", "7    |"},
      {"%.5n|", "    7|"},
      {"%0.5n|", "00007|"},
      {"%0.1N|", "16|"},
      {"%0.5a|", "-0001|"},
      {"%.5a|", "   -1|"},
      {"%5a|", "-1   |"},
      {"%5H|", "vm   |"},
      {"%.5H|", "   vm|"},
      {"%0.5H|", "   vm|"},
      {"%1H|", "vm|"},
      {"%15A|", "0-3,8,10-11    |"},
      {"%.15A|", "    0-3,8,10-11|"},
      {"%0.15A|", "    0-3,8,10-11|"},
      {"%3A|", "0-3,8,10-11|"},
      {"%18i|", "0x7f8f794287c0    |"},
      {"%.18i|", "    0x7f8f794287c0|"},
      {"%0.18i|", "0x00007f8f794287c0|"},
      {"%0.5{thread_num}|", "00007|"},
      {"%.10{host}|", "        vm|"},
  };
  for (const Line& line : table) EXPECT_EQ(expand(line.format), line.text) << line.format;
}

TEST(AffinityFormat, Errors) {
  using Error = AffinityFormatError;
  const struct {
    const char* format;
    Error::Kind kind;
    const char* about;
  } table[] = {
      {"%05n", Error::kZeroWithoutDot, "5n"},
      {"%0n", Error::kZeroWithoutDot, "n"},
      {"%00.5n", Error::kZeroWithoutDot, "0.5n"},
      {"%.n", Error::kNoSize, "n"},
      {"%0.n", Error::kNoSize, "n"},
      {"%.0n", Error::kNoSize, "0n"},
      {"%0.05n", Error::kNoSize, "05n"},
      {"%..5n", Error::kNoSize, ".5n"},
      {"%", Error::kType, ""},
      {"%5", Error::kType, ""},
      {"%0.5", Error::kType, ""},
      {"%x", Error::kType, "x"},
      {"%-5n", Error::kType, "-5n"},
      {"%5%", Error::kType, "%"},
      {"%5.5n", Error::kType, ".5n"},
      {"%{", Error::kUnterminated, ""},
      {"%{host", Error::kUnterminated, "host"},
      {"%{}", Error::kLongName, "}"},
      {"%{n}", Error::kLongName, "n}"},
      {"%{HOST}", Error::kLongName, "HOST}"},
      {"%{hosts}", Error::kLongName, "hosts}"},
  };
  for (const auto& line : table) {
    Error error;
    const std::string format = std::string("7:%n ") + line.format;  // error.at points into it
    EXPECT_EQ(expand(format, &error), "7:7 ") << line.format;
    EXPECT_EQ(error.kind, line.kind) << line.format;
    ASSERT_NE(error.at, nullptr);
    EXPECT_STREQ(error.at, line.about) << line.format;
  }
}

TEST(AffinityFormat, AnErrorEndsTheProgramInLibgompsWords) {
  const struct {
    const char* format;
    std::string text;
  } table[] = {
      {"%05n", "leading zero not followed by dot in affinity format"},
      {"%.n", "leading zero or right justification in affinity format requires size"},
      {"%{foo}", "unsupported long type name 'foo' in affinity format"},
      {"%{foo", "unterminated long type name 'foo' in affinity format"},
      {"%x", "unsupported type x in affinity format"},
      {"%", std::string("unsupported type \0 in affinity format", 37)},
  };
  for (const auto& line : table) {
    const auto child = in_child({}, [&] {
      char buffer[64];
      expand_affinity_format(line.format, values(), buffer, sizeof buffer);
      return std::string("went on");
    });
    EXPECT_EQ(child.status, 1) << line.format;
    EXPECT_EQ(child.errors, "\nlibgomp: " + line.text + "\n") << line.format;
    EXPECT_EQ(child.output, "");
  }
}

TEST(AffinityFormat, CutToAnySize) {
  const std::string whole = expand("%n-%.6N-%A-%4H.");
  for (size_t size = 0; size <= whole.size() + 2; size++) {
    std::string buffer(whole.size() + 8, '#');
    AffinityFormatError error;
    EXPECT_EQ(expand_affinity_format("%n-%.6N-%A-%4H.", values(), buffer.data(), size, &error),
              whole.size());
    const size_t kept = size == 0 ? 0 : std::min(size - 1, whole.size());
    EXPECT_EQ(buffer.substr(0, kept), whole.substr(0, kept));
    if (size != 0) {
      EXPECT_EQ(buffer[kept], '\0');
    }
    EXPECT_EQ(buffer.substr(size == 0 ? 0 : kept + 1).find_first_not_of('#'), std::string::npos);
  }
}

TEST(AffinityFormat, WidthsOfAnySize) {
  AffinityFormatError error;
  char buffer[8];
  EXPECT_EQ(expand_affinity_format("%99999999999n|", values(), buffer, sizeof buffer, &error),
            100000000000u);
  EXPECT_STREQ(buffer, "7      ");
  expand_affinity_format("%99999999999999999999999n|", values(), buffer, sizeof buffer, &error);
  EXPECT_EQ(error.kind, AffinityFormatError::kNone);
  EXPECT_STREQ(buffer, "7      ");
}

TEST(AffinityFormat, RandomFormatsNeverOverrun) {
  constexpr char kLetters[] = "%%%%%0.123{}tTLnNaHPiAx thread_num";
  std::mt19937 random(11);
  uint32_t accepted = 0;
  for (int round = 0; round < 30000; round++) {
    std::string format;
    for (uint32_t length = random() % 12; length > 0; length--) {
      format += kLetters[random() % (sizeof kLetters - 1)];
    }
    char buffer[20];
    memset(buffer, '#', sizeof buffer);
    AffinityFormatError error;
    expand_affinity_format(format.c_str(), values(), buffer, 16, &error);
    EXPECT_NE(memchr(buffer, '\0', 16), nullptr) << format;
    EXPECT_EQ(std::string(buffer + 16, 4), "####") << format;
    accepted += error.kind == AffinityFormatError::kNone;
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(AffinityFormat, OneLineOnStandardError) {
  const auto child = in_child({}, [] {
    display_affinity("x %n", values());
    display_affinity("", values());
    display_affinity("%600n|", values());
    return std::string();
  });
  EXPECT_EQ(child.errors, "x 7\n\n7" + std::string(599, ' ') + "|\n");
  EXPECT_EQ(child.status, 0);
}

TEST(AffinityFormat, ProcessValues) {
  AffinityValues v;
  char host[kHostMax], expected[kHostMax];
  fill_process_values(&v, host);
  ASSERT_EQ(gethostname(expected, sizeof expected), 0);
  EXPECT_STREQ(v.host, expected);
  EXPECT_EQ(v.process_id, getpid());
}

std::string current_format() {
  char buffer[64];
  const size_t length = get_affinity_format(buffer, sizeof buffer);
  return buffer + ("/" + std::to_string(length));
}

TEST(AffinityFormatVariable, ComesFromTheEnvironmentAndCanBeSet) {
  EXPECT_EQ(in_child({}, [] { return std::string(affinity_format()); }).output,
            kDefaultAffinityFormat);
  const auto child = in_child({{"OMP_AFFINITY_FORMAT", "%A %n"}}, [] {
    std::string seen = current_format();
    set_affinity_format("hello   ", 5);
    seen += " " + current_format();
    set_affinity_format("", 0);
    seen += " " + current_format();
    set_affinity_format("hello", 5);
    seen += " " + current_format() + " " + affinity_format_or(nullptr) + affinity_format_or("") +
            affinity_format_or("x");
    return seen;
  });
  EXPECT_EQ(child.output, "%A %n/5 hello/5 /0 hello/5 hellohellox");
}

TEST(AffinityFormatVariable, IsCutLikeAString) {
  set_affinity_format("abcdef", 6);
  char buffer[8];
  memset(buffer, '#', sizeof buffer);
  EXPECT_EQ(get_affinity_format(buffer, 4), 6u);
  EXPECT_STREQ(buffer, "abc");
  memset(buffer, '#', sizeof buffer);
  EXPECT_EQ(get_affinity_format(buffer, 1), 6u);
  EXPECT_STREQ(buffer, "");
  memset(buffer, '#', sizeof buffer);
  EXPECT_EQ(get_affinity_format(buffer, 0), 6u);
  EXPECT_EQ(buffer[0], '#');
  EXPECT_EQ(get_affinity_format(nullptr, 0), 6u);
}

TEST(AffinityFormatVariable, ReadersSeeWholeFormatsWhileItIsSet) {
  const std::string first(200, 'a'), second(300, 'b');
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 2000; round++) {
        const std::string& mine = (round + i) % 2 == 0 ? first : second;
        set_affinity_format(mine.data(), mine.size());
        const std::string seen = affinity_format();
        EXPECT_TRUE(seen == first || seen == second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A format that was set before is not kept twice.
  set_affinity_format(first.data(), first.size());
  const char* kept = affinity_format();
  set_affinity_format(second.data(), second.size());
  set_affinity_format(first.data(), first.size());
  EXPECT_EQ(affinity_format(), kept);
}

}  // namespace
}  // namespace bosk::omp
