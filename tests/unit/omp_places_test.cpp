// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Place lists, their syntax, their source in /sys, and how teams are laid over them.
#include "omp/places.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "omp/places_sysfs.h"

namespace bosk::omp {
namespace {

using base::MessageLog;
using topology::ProcessCpus;
using Cpus = std::vector<uint32_t>;
using CpuSet = std::set<uint32_t>;

class Mask {
 public:
  explicit Mask(const Cpus& numbers) {
    topology::Error error;
    EXPECT_TRUE(topology::set_process_cpus(&cpus_, numbers.data(),
                                           static_cast<uint32_t>(numbers.size()), &error));
  }
  ~Mask() { topology::free_process_cpus(&cpus_); }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  operator const ProcessCpus&() const { return cpus_; }

 private:
  ProcessCpus cpus_;
};

Cpus first_cpus(uint32_t n) {
  Cpus numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

std::string text_of(const PlaceList& list) {
  std::string text;
  for (uint32_t i = 0; i < list.count(); i++) {
    text += i == 0 ? "{" : ",{";
    std::string separator;
    for (const CpuRange& range : list.ranges(i)) {
      text += separator + std::to_string(range.first);
      if (range.count > 1) text += ":" + std::to_string(range.count);
      separator = ",";
    }
    text += "}";
  }
  return text;
}

std::string lines_of(const MessageLog& log) {
  std::string text;
  for (const char* line = log.lines(); *line != '\0'; line += strlen(line) + 1) {
    text += std::string(line) + "\n";
  }
  return text;
}

// A machine without any answer: abstract names fail.
bool list_nothing(const void*, PlaceKind, const ProcessCpus&, uint32_t, PlaceList*) {
  return false;
}
constexpr PlaceSource kNoSource{list_nothing, nullptr};

struct Parsed {
  bool good;
  std::string places;
  std::string messages;
};

Parsed parse(const std::string& text, const Cpus& allowed, const PlaceSource& source = kNoSource,
             bool syntax_only = false) {
  const Mask mask(allowed);
  PlaceList list;
  MessageLog log;
  Parsed result;
  result.good = parse_places(text.c_str(), mask, source, syntax_only, &list, &log);
  result.places = text_of(list);
  result.messages = lines_of(log);
  list.release();
  log.release();
  return result;
}

Parsed parse_affinity(const std::string& text, const Cpus& allowed, bool syntax_only = false) {
  const Mask mask(allowed);
  PlaceList list;
  MessageLog log;
  Parsed result;
  result.good = parse_cpu_affinity(text.c_str(), mask, syntax_only, &list, &log);
  result.places = text_of(list);
  result.messages = lines_of(log);
  list.release();
  log.release();
  return result;
}

constexpr char kInvalid[] = "Invalid value for environment variable OMP_PLACES\n";

// ---- The list itself

TEST(PlaceList, RangesGrowTogetherAndAreAsked) {
  PlaceList list;
  ASSERT_TRUE(list.start_place());
  for (uint32_t cpu : {3u, 4u, 5u, 9u}) ASSERT_TRUE(list.add_cpu(cpu));
  ASSERT_TRUE(list.start_place());
  ASSERT_TRUE(list.add_range(10, 2));
  EXPECT_EQ(text_of(list), "{3:3,9},{10:2}");
  EXPECT_EQ(list.n_cpus(0), 4u);
  EXPECT_TRUE(list.contains(0, 5));
  EXPECT_FALSE(list.contains(0, 6));
  EXPECT_FALSE(list.contains(0, 10));
  int numbers[4] = {};
  list.cpu_numbers(0, numbers);
  EXPECT_EQ(std::vector<int>(numbers, numbers + 4), (std::vector<int>{3, 4, 5, 9}));
  uint64_t word[1] = {0};
  list.fill_mask(0, word, 1);
  EXPECT_EQ(word[0], 0x238u);
  list.release();
}

TEST(PlaceList, AMaskThatIsTooShortIsNotOverrun) {
  PlaceList list;
  ASSERT_TRUE(list.start_place());
  ASSERT_TRUE(list.add_range(60, 10));
  uint64_t words[2] = {0, 42};
  list.fill_mask(0, words, 1);
  EXPECT_EQ(words[0], 0xf000000000000000u);
  EXPECT_EQ(words[1], 42u);
  list.release();
}

// ---- OMP_PLACES: every line of the table was checked against libgomp 12 (tests/env/compare_env.py
// repeats that for a machine of two CPUs).

struct Good {
  const char* text;
  const char* places;
};

TEST(ParsePlaces, WellFormedLists) {
  const Good table[] = {
      {"0", "{0}"},
      {"0,1", "{0},{1}"},
      {"{0}", "{0}"},
      {"{0:2}", "{0:2}"},
      {"{0}:2", "{0},{1}"},
      {"{0:4}:2:4", "{0:4},{4:4}"},
      {"{3}:4:-1", "{3},{2},{1},{0}"},
      {"{0:3:2}", "{0,2,4}"},
      {"{6:4:-2}", "{0,2,4,6}"},
      {"{0,1,!1}", "{0}"},
      {"{!1,0,1}", "{0}"},
      {"{0},{1},{0},!{0}", "{1},{0}"},
      {"{0,1},!{0:2},{1}", "{1}"},
      {"{0}:3:0", "{0},{0},{0}"},
      {"{0:2:0}", "{0}"},
      {" { 0 : 2 } : 2 : 2 , 7 ", "{0:2},{2:2},{7}"},
      {"{0:1:-1}", "{0}"},
      {"+0,{+1}", "{0},{1}"},
      {"{1}:1:-5", "{1}"},
      {"2:3:2", "{2},{4},{6}"},
      {"{7,0,3,2}", "{0,2:2,7}"},
  };
  for (const Good& line : table) {
    const Parsed parsed = parse(line.text, first_cpus(8));
    EXPECT_TRUE(parsed.good) << line.text;
    EXPECT_EQ(parsed.places, line.places) << line.text;
    EXPECT_EQ(parsed.messages, "") << line.text;
  }
}

TEST(ParsePlaces, MalformedLists) {
  for (const char* text : {"",
                           " ",
                           "x",
                           "{",
                           "{}",
                           "{0",
                           "{0,}",
                           "{0},",
                           "{0},,{1}",
                           "{0}}",
                           "{0} {1}",
                           "0 1",
                           "0-1",
                           "{x}",
                           "{0:}",
                           "{0:0}",
                           "{0:1:}",
                           "{0}:",
                           "{0}:0",
                           "{0}:1:x",
                           "{0:2,!0:1}",
                           "!{0}:2",
                           "{0}:-1",
                           "{-1}",
                           "{99999999999999999999}",
                           "{1:2:99999999999999999999}",
                           "{0}:65537:0",
                           "{0}:40000:0,{0}:40000:0",
                           "thread",
                           "threadsx",
                           "threads,cores",
                           "threads(",
                           "threads(1",
                           "threads()",
                           "threads(x)",
                           "threads(0)",
                           "threads(-1)",
                           "threads(1)x",
                           "{64},x"}) {
    const Parsed parsed = parse(text, first_cpus(8));
    EXPECT_FALSE(parsed.good) << text;
    EXPECT_EQ(parsed.places, "") << text;
    EXPECT_EQ(parsed.messages, kInvalid) << text;
    // Binding off: only the form is looked at, and it is wrong all the same.
    EXPECT_EQ(parse(text, first_cpus(8), kNoSource, true).messages, kInvalid) << text;
  }
}

TEST(ParsePlaces, WhatIsNotThereIsNamed) {
  const Good table[] = {
      {"{64}", "Logical CPU number 64 out of range\n"},
      {"{0:65}", "Logical CPU number 64 out of range\n"},
      {"{0:2:-1}", "Logical CPU number 0+-1 out of range\n"},
      {"{0}:65", "Logical CPU number 63+1 out of range\n"},
      {"{0:4}:20:4", "Logical CPU number 60+4 out of range\n"},
      {"{0:4}:22:3", "Logical CPU number 61+3 out of range\n"},
      {"{1}:3:-1", "Logical CPU number 0+-1 out of range\n"},
      {"{1}:2:9223372036854775807", "Logical CPU number 1+9223372036854775807 out of range\n"},
      {"{1:2:9223372036854775807}", "Logical CPU number 9223372036854775808 out of range\n"},
      {"{1:2:-9223372036854775808}", "Logical CPU number 1+-9223372036854775808 out of range\n"},
      {"{1}:2:-9223372036854775808", "Logical CPU number 1+-9223372036854775808 out of range\n"},
      {"{!0}", "Logical CPU 0 to be removed is not in the set\n"},
      {"{0,!0,!0}", "Logical CPU 0 to be removed is not in the set\n"},
      {"{!64,0}", "Logical CPU number 64 out of range\n"},
      {"{0},!{1}", "Trying to remove a non-existing place from list of places\n"},
      {"!{0},{0}", "Trying to remove a non-existing place from list of places\n"},
      {"{0,9},{1},!{0}", "Trying to remove a non-existing place from list of places\n"},
      {"0,!0", "All places have been removed\n"},
      {"{9}", "None of the places contain usable logical CPUs\n"},
      {"{0,!0}", "None of the places contain usable logical CPUs\n"},
  };
  for (const Good& line : table) {
    const Parsed parsed = parse(line.text, first_cpus(8));
    EXPECT_FALSE(parsed.good) << line.text;
    EXPECT_EQ(parsed.places, "") << line.text;
    EXPECT_EQ(parsed.messages, line.places + std::string(kInvalid)) << line.text;
    // Nothing of this is told while binding is off.
    const Parsed form = parse(line.text, first_cpus(8), kNoSource, true);
    EXPECT_TRUE(form.good) << line.text;
    EXPECT_EQ(form.messages, "") << line.text;
  }
}

TEST(ParsePlaces, OnlyWhatTheMaskAllowsStays) {
  EXPECT_EQ(parse("{0:4}", {1, 3}).places, "{1,3}");
  EXPECT_EQ(parse("{0,9}", {0, 1}).places, "{0}");
  const Parsed reduced = parse("{0}:8", {0, 1});
  EXPECT_EQ(reduced.places, "{0},{1}");
  EXPECT_EQ(reduced.messages,
            "Number of places reduced from 8 to 2 because some places didn't contain any usable "
            "logical CPUs\n");
}

TEST(ParsePlaces, MoreThan1024Cpus) {
  const Parsed parsed = parse("{0:1500}:2:1500,4999", first_cpus(5000));
  EXPECT_TRUE(parsed.good);
  EXPECT_EQ(parsed.places, "{0:1500},{1500:1500},{4999}");
  EXPECT_EQ(parse("{5056}", first_cpus(5000)).messages,
            std::string("Logical CPU number 5056 out of range\n") + kInvalid);
}

TEST(ParsePlaces, AbstractNamesWithoutAMachine) {
  const Parsed parsed = parse("cores(2)", first_cpus(4));
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.messages, "Error reading core/socket topology\n");
  EXPECT_TRUE(parse("cores(2)", first_cpus(4), kNoSource, true).good);
}

TEST(ParsePlaces, MemoryIsBounded) {
  // 4,096 ranges in each of 65,535 places: more than is kept.
  const Parsed parsed = parse("{0:4096:2}:65535:0", first_cpus(8192));
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.messages,
            std::string("Out of memory trying to allocate places list\n") + kInvalid);
}

// Lists made at random, with the answer worked out on plain sets.
class RandomList {
 public:
  RandomList(uint32_t seed, uint32_t limit) : random_(seed), limit_(limit) {}

  void make() {
    text_.clear();
    places_.clear();
    const uint32_t intervals = pick(1, 6);
    for (uint32_t i = 0; i < intervals; i++) {
      if (i != 0) text_ += blank() + "," + blank();
      if (!places_.empty() && pick(0, 4) == 0) {
        remove_one();
      } else {
        add_interval();
      }
    }
  }
  const std::string& text() const { return text_; }
  const std::vector<CpuSet>& places() const { return places_; }

 private:
  uint32_t pick(uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random_);
  }
  std::string blank() { return std::string(pick(0, 5) == 0 ? 1 : 0, ' '); }

  static std::string plain(const CpuSet& cpus) {
    std::string text = "{", separator;
    for (uint32_t cpu : cpus) {
      text += separator + std::to_string(cpu);
      separator = ",";
    }
    return text + "}";
  }

  void remove_one() {
    const CpuSet gone = places_[pick(0, static_cast<uint32_t>(places_.size()) - 1)];
    if (gone.empty()) {
      text_ += "{0}";
      places_.push_back({0});
      return;
    }
    text_ += "!" + plain(gone);
    places_.erase(std::find(places_.begin(), places_.end(), gone));
  }

  CpuSet make_place() {
    CpuSet cpus;
    text_ += "{";
    const uint32_t parts = pick(1, 3);
    for (uint32_t i = 0; i < parts; i++) {
      const int64_t stride = static_cast<int64_t>(pick(0, 6)) - 3;
      const uint32_t length = pick(1, 4);
      const int64_t reach = stride * (length - 1);
      const int64_t from = pick(reach < 0 ? static_cast<uint32_t>(-reach) : 0,
                                limit_ - 1 - (reach > 0 ? static_cast<uint32_t>(reach) : 0));
      text_ += (i != 0 ? "," : "") + std::to_string(from) + ":" + std::to_string(length) + blank() +
               ":" + std::to_string(stride);
      for (uint32_t j = 0; j < length; j++) cpus.insert(static_cast<uint32_t>(from + j * stride));
    }
    if (pick(0, 3) == 0) {
      const uint32_t gone =
          *std::next(cpus.begin(), pick(0, static_cast<uint32_t>(cpus.size()) - 1));
      text_ += ",!" + std::to_string(gone);
      cpus.erase(gone);
    }
    text_ += "}";
    return cpus;
  }

  void add_interval() {
    const CpuSet cpus = make_place();
    const uint32_t length = pick(1, 4);
    int64_t stride = static_cast<int64_t>(pick(0, 8)) - 4;
    const int64_t reach = stride * (length - 1);
    if (!cpus.empty() && (static_cast<int64_t>(*cpus.begin()) + reach < 0 ||
                          static_cast<int64_t>(*cpus.rbegin()) + reach >= limit_)) {
      stride = 0;
    }
    text_ += ":" + std::to_string(length) + ":" + std::to_string(stride);
    for (uint32_t i = 0; i < length; i++) {
      CpuSet moved;
      for (uint32_t cpu : cpus) moved.insert(static_cast<uint32_t>(cpu + i * stride));
      places_.push_back(moved);
    }
  }

  std::mt19937 random_;
  uint32_t limit_;
  std::string text_;
  std::vector<CpuSet> places_;
};

TEST(ParsePlaces, AgreesWithAModelOnPlainSets) {
  for (uint32_t seed = 0; seed < 3000; seed++) {
    const uint32_t limit = seed % 2 == 0 ? 64 : 128;
    RandomList made(seed, limit);
    made.make();
    std::mt19937 random(seed);
    Cpus allowed{limit - 1};  // so that numbers up to the limit may be named
    for (uint32_t cpu = 0; cpu + 1 < limit; cpu++) {
      if (random() % 4 != 0) allowed.push_back(cpu);
    }
    PlaceList expected;
    for (const CpuSet& place : made.places()) {
      bool started = false;
      for (uint32_t cpu : place) {
        if (std::find(allowed.begin(), allowed.end(), cpu) == allowed.end()) continue;
        ASSERT_TRUE(started || expected.start_place());
        started = true;
        ASSERT_TRUE(expected.add_cpu(cpu));
      }
    }
    const Parsed parsed = parse(made.text(), allowed);
    EXPECT_EQ(parsed.places, text_of(expected)) << made.text();
    EXPECT_EQ(parsed.good, expected.count() != 0) << made.text() << "\n" << parsed.messages;
    // What is shown can be read again.
    if (parsed.good) {
      EXPECT_EQ(parse(parsed.places, allowed).places, parsed.places) << made.text();
    }
    expected.release();
  }
}

TEST(ParsePlaces, RandomTextNeverCrashesAndNeverInventsCpus) {
  constexpr char kLetters[] = "{}{}!,,::0123456789-+ ()threadscoresx";
  std::mt19937 random(7);
  uint32_t accepted = 0;
  for (int round = 0; round < 20000; round++) {
    std::string text;
    for (uint32_t length = random() % 14; length > 0; length--) {
      text += kLetters[random() % (sizeof kLetters - 1)];
    }
    const Mask mask({0, 1, 2, 3, 5, 70});
    PlaceList list;
    MessageLog log;
    const bool good = parse_places(text.c_str(), mask, kNoSource, false, &list, &log);
    EXPECT_EQ(good, list.count() != 0) << text;
    EXPECT_TRUE(good || !log.empty()) << text;
    for (uint32_t i = 0; i < list.count(); i++) {
      EXPECT_GT(list.n_cpus(i), 0u);
      for (const CpuRange& range : list.ranges(i)) {
        for (uint32_t cpu = range.first; cpu < range.first + range.count; cpu++) {
          EXPECT_TRUE(static_cast<const ProcessCpus&>(mask).contains(cpu)) << text;
        }
      }
    }
    accepted += good;
    list.release();
    log.release();
  }
  EXPECT_GT(accepted, 100u);
}

// ---- GOMP_CPU_AFFINITY

constexpr char kInvalidAffinity[] = "Invalid value for enviroment variable GOMP_CPU_AFFINITY\n";

TEST(ParseCpuAffinity, WellFormedLists) {
  const Good table[] = {
      {"0", "{0}"},
      {"3 1,0", "{3},{1},{0}"},
      {"0-3", "{0},{1},{2},{3}"},
      {"0-7:3", "{0},{3},{6}"},
      {" 0 , 1\t2 ", "{0},{1},{2}"},
      {"0 0", "{0},{0}"},
      {"0- 1", "{0},{1}"},
      {"0-1: 1", "{0},{1}"},
      {"5-5:9", "{5}"},
      {"0-6:18446744073709551615", "{0}"},
  };
  for (const Good& line : table) {
    const Parsed parsed = parse_affinity(line.text, first_cpus(8));
    EXPECT_TRUE(parsed.good) << line.text;
    EXPECT_EQ(parsed.places, line.places) << line.text;
    EXPECT_EQ(parsed.messages, "") << line.text;
    EXPECT_TRUE(parse_affinity(line.text, first_cpus(8), true).good) << line.text;
    EXPECT_EQ(parse_affinity(line.text, first_cpus(8), true).places, "") << line.text;
  }
}

TEST(ParseCpuAffinity, MalformedLists) {
  for (const char* text : {"",        " ",        "x",   "0x",    "0,",
                           ",0",      "0,,1",     "1-0", "0-",    "0-1:",
                           "0-1:0",   "0-1:-1",   "-1",  "0 -1",  "0 - 1",
                           "0-1 :1",  "0:2",      "{0}", "65536", "99999999999999999999",
                           "0-65536", "0-65535 0"}) {
    const Parsed parsed = parse_affinity(text, first_cpus(8));
    EXPECT_FALSE(parsed.good) << text;
    EXPECT_EQ(parsed.messages, kInvalidAffinity) << text;
    EXPECT_EQ(parse_affinity(text, first_cpus(8), true).messages, kInvalidAffinity) << text;
  }
}

TEST(ParseCpuAffinity, TheMaskIsObeyed) {
  const Parsed some = parse_affinity("0 1 2 3", {1, 3});
  EXPECT_TRUE(some.good);
  EXPECT_EQ(some.places, "{1},{3}");
  EXPECT_EQ(some.messages,
            "Number of places reduced from 4 to 2 because some places didn't contain any usable "
            "logical CPUs\n");
  const Parsed none = parse_affinity("0 2", {1, 3});
  EXPECT_FALSE(none.good);
  EXPECT_EQ(none.messages, "None of the places contain usable logical CPUs\n");
}

// ---- /sys

class FakeSysfs : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/bosk-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text << "\n";
  }

  // Two sockets of two cores of two threads; the numbers go round the sockets first: socket n % 2,
  // core n / 2 % 2, thread n / 4. A shared L3 per socket; node 1 holds socket 0.
  void make_machine() {
    for (uint32_t cpu = 0; cpu < 8; cpu++) {
      const std::string at = "cpu/cpu" + std::to_string(cpu) + "/";
      const uint32_t socket = cpu % 2, core = cpu % 4;
      const std::string sockets[] = {"0,2,4,6", "1,3,5,7"};
      file(at + "topology/core_siblings_list", sockets[socket]);
      file(at + "topology/thread_siblings_list",
           std::to_string(core) + "," + std::to_string(core + 4));
      file(at + "cache/index0/level", "1");
      file(at + "cache/index0/shared_cpu_list",
           std::to_string(core) + "," + std::to_string(core + 4));
      file(at + "cache/index1/level", "3");
      file(at + "cache/index1/shared_cpu_list", sockets[socket]);
    }
    file("node/online", "0-2");
    file("node/node0/cpulist", "1,3,5,7");
    file("node/node1/cpulist", "0,2,4,6");
    file("node/node2/cpulist", "");
  }

  std::string places(const std::string& text, const Cpus& allowed = first_cpus(8)) {
    const Parsed parsed = parse(text, allowed, sysfs_place_source(root_.c_str()));
    return parsed.good ? parsed.places : "error: " + parsed.messages;
  }

  std::string root_;
};

TEST_F(FakeSysfs, EveryKindInTheMachinesOrder) {
  make_machine();
  EXPECT_EQ(places("threads"), "{0},{4},{2},{6},{1},{5},{3},{7}");
  EXPECT_EQ(places("cores"), "{0,4},{2,6},{1,5},{3,7}");
  EXPECT_EQ(places("sockets"), "{0,2,4,6},{1,3,5,7}");
  EXPECT_EQ(places("ll_caches"), "{0,2,4,6},{1,3,5,7}");
  EXPECT_EQ(places("numa_domains"), "{1,3,5,7},{0,2,4,6}");
}

TEST_F(FakeSysfs, ACountTakesTheFirst) {
  make_machine();
  EXPECT_EQ(places("threads(3)"), "{0},{4},{2}");
  EXPECT_EQ(places("CORES ( 1 )"), "{0,4}");
  EXPECT_EQ(places("sockets(7)"), "{0,2,4,6},{1,3,5,7}");
  EXPECT_EQ(places("numa_domains(1)"), "{1,3,5,7}");
}

TEST_F(FakeSysfs, OnlyAllowedCpus) {
  make_machine();
  EXPECT_EQ(places("threads", {1, 4, 5, 6}), "{1},{5},{4},{6}");
  EXPECT_EQ(places("cores", {1, 4, 5, 6}), "{1,5},{4},{6}");
  EXPECT_EQ(places("sockets", {0, 2, 3}), "{0,2},{3}");
  EXPECT_EQ(places("numa_domains", {0, 2}), "{0,2}");
}

TEST_F(FakeSysfs, AMachineThatDoesNotTell) {
  const std::string error = "error: Error reading core/socket topology\n";
  EXPECT_EQ(places("threads"), error);
  EXPECT_EQ(places("ll_caches"), error);
  // Without NUMA there is one domain.
  EXPECT_EQ(places("numa_domains"), "{0:8}");
  make_machine();
  file("cpu/cpu2/topology/thread_siblings_list", "nonsense");
  EXPECT_EQ(places("cores"), error);
  EXPECT_EQ(places("sockets"), "{0,2,4,6},{1,3,5,7}");
  file("cpu/cpu0/topology/core_siblings_list", "1");  // not itself: must not loop
  EXPECT_EQ(places("sockets"), error);
  EXPECT_EQ(places("threads"), error);
}

TEST_F(FakeSysfs, DefaultPlacesAlwaysExist) {
  const Mask mask(first_cpus(8));
  PlaceList list;
  ASSERT_TRUE(default_places(mask, sysfs_place_source(root_.c_str()), &list));
  EXPECT_EQ(text_of(list), "{0},{1},{2},{3},{4},{5},{6},{7}");
  list.release();
  make_machine();
  ASSERT_TRUE(default_places(mask, sysfs_place_source(root_.c_str()), &list));
  EXPECT_EQ(text_of(list), "{0},{4},{2},{6},{1},{5},{3},{7}");
  list.release();
}

TEST_F(FakeSysfs, LongListsAreReadWhole) {
  std::string all, separator;
  for (uint32_t cpu = 0; cpu < 4096; cpu += 2) {
    all += separator + std::to_string(cpu);
    separator = ",";
  }
  file("node/online", "0");
  file("node/node0/cpulist", all);
  const Mask mask(first_cpus(4096));
  PlaceList list;
  const PlaceSource source = sysfs_place_source(root_.c_str());
  ASSERT_TRUE(source.list(source.self, PlaceKind::kNumaDomains, mask, 9, &list));
  ASSERT_EQ(list.count(), 1u);
  EXPECT_EQ(list.n_cpus(0), 2048u);
  list.release();
}

TEST(Sysfs, ThisMachineHasEveryAllowedCpuInOneThreadPlace) {
  ProcessCpus cpus;
  topology::Error error;
  ASSERT_TRUE(topology::load_process_cpus(&cpus, &error));
  PlaceList list;
  ASSERT_TRUE(default_places(cpus, sysfs_place_source(), &list));
  EXPECT_EQ(list.count(), cpus.count);
  CpuSet seen;
  for (uint32_t i = 0; i < list.count(); i++) {
    ASSERT_EQ(list.n_cpus(i), 1u);
    seen.insert(list.ranges(i)[0].first);
    EXPECT_TRUE(cpus.contains(list.ranges(i)[0].first));
  }
  EXPECT_EQ(seen.size(), cpus.count);
  list.release();
  topology::free_process_cpus(&cpus);
}

// ---- Teams over places

using Members = std::vector<MemberPlace>;

Members lay(Bind bind, uint32_t first, uint32_t count, uint32_t place, uint32_t members) {
  const PlaceLayout layout(bind, first, count, place, members);
  Members all;
  for (uint32_t i = 0; i < members; i++) all.push_back(layout.of(i));
  return all;
}

// The rules of OpenMP 5.2 with libgomp's choices, one member after the other.
Members lay_one_by_one(Bind bind, uint32_t first, uint32_t count, uint32_t place,
                       uint32_t members) {
  Members all;
  const auto next = [&](uint32_t p) { return p + 1 == first + count ? first : p + 1; };
  if (bind == Bind::kPrimary || bind == Bind::kFalse) {
    return Members(members, {place, first, count});
  }
  if (bind == Bind::kSpread && members <= count) {
    // Cut the partition up from its start, larger parts first.
    Members parts;
    uint32_t at = first;
    for (uint32_t i = 0; i < members; i++) {
      const uint32_t size = count / members + (i < count % members ? 1 : 0);
      parts.push_back({at, at, size});
      at += size;
    }
    uint32_t own = 0;
    while (place >= parts[own].partition_first + parts[own].partition_count) own++;
    for (uint32_t i = 0; i < members; i++) all.push_back(parts[(own + i) % members]);
    all[0].place = place;
    return all;
  }
  uint32_t p = place;
  std::vector<uint32_t> places;
  if (members <= count) {
    for (uint32_t i = 0; i < members; i++, p = next(p)) places.push_back(p);
  } else {
    for (uint32_t k = 0; k < count; k++, p = next(p)) {
      places.insert(places.end(), members / count, p);
    }
    for (; places.size() < members; p = next(p)) places.push_back(p);
  }
  for (uint32_t each : places) {
    all.push_back(bind == Bind::kSpread ? MemberPlace{each, each, 1}
                                        : MemberPlace{each, first, count});
  }
  return all;
}

TEST(PlaceLayout, AgreesWithTheRulesTakenOneByOne) {
  for (const Bind bind : {Bind::kFalse, Bind::kTrue, Bind::kPrimary, Bind::kClose, Bind::kSpread}) {
    for (uint32_t count = 1; count <= 9; count++) {
      for (uint32_t first : {0u, 3u}) {
        for (uint32_t place = first; place < first + count; place++) {
          for (uint32_t members = 1; members <= 22; members++) {
            EXPECT_EQ(lay(bind, first, count, place, members),
                      lay_one_by_one(bind, first, count, place, members))
                << "bind " << static_cast<int>(bind) << " first " << first << " count " << count
                << " place " << place << " members " << members;
          }
        }
      }
    }
  }
}

std::vector<uint32_t> places_of(const Members& all) {
  std::vector<uint32_t> places;
  for (const MemberPlace& member : all) places.push_back(member.place);
  return places;
}

TEST(PlaceLayout, KnownExamples) {
  EXPECT_EQ(lay(Bind::kSpread, 0, 8, 0, 3), (Members{{0, 0, 3}, {3, 3, 3}, {6, 6, 2}}));
  EXPECT_EQ(lay(Bind::kSpread, 0, 8, 0, 4), (Members{{0, 0, 2}, {2, 2, 2}, {4, 4, 2}, {6, 6, 2}}));
  EXPECT_EQ(lay(Bind::kSpread, 0, 8, 5, 4), (Members{{5, 4, 2}, {6, 6, 2}, {0, 0, 2}, {2, 2, 2}}));
  EXPECT_EQ(places_of(lay(Bind::kClose, 0, 8, 0, 10)),
            (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1}));
  EXPECT_EQ(places_of(lay(Bind::kClose, 0, 8, 6, 4)), (std::vector<uint32_t>{6, 7, 0, 1}));
  EXPECT_EQ(places_of(lay(Bind::kClose, 0, 4, 0, 8)),
            (std::vector<uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(lay(Bind::kSpread, 2, 2, 3, 3), (Members{{3, 3, 1}, {2, 2, 1}, {3, 3, 1}}));
  EXPECT_EQ(places_of(lay(Bind::kPrimary, 0, 4, 2, 3)), (std::vector<uint32_t>{2, 2, 2}));
}

TEST(PlaceLayout, SpreadCutsThePartitionWithoutGapOrOverlap) {
  for (uint32_t count : {1u, 7u, 64u, 1000u}) {
    for (uint32_t members : {1u, 2u, 5u, 7u, 63u, 64u, 999u, 1000u}) {
      if (members > count) continue;
      std::vector<int> covered(count, 0);
      for (const MemberPlace& member : lay(Bind::kSpread, 10, count, 10 + count / 2, members)) {
        EXPECT_GE(member.place, member.partition_first);
        EXPECT_LT(member.place, member.partition_first + member.partition_count);
        EXPECT_LE(member.partition_count, count / members + 1);
        for (uint32_t i = 0; i < member.partition_count; i++) {
          covered[member.partition_first + i - 10]++;
        }
      }
      EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<long>(count));
    }
  }
}

TEST(PlaceLayout, ManyMembersShareEvenly) {
  for (const Bind bind : {Bind::kClose, Bind::kSpread}) {
    std::vector<uint32_t> load(12, 0);
    const PlaceLayout layout(bind, 0, 12, 5, 1'000'003);
    for (uint32_t i = 0; i < 1'000'003; i++) load[layout.of(i).place]++;
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most - *least, 1u);
  }
}

TEST(PlaceLayout, NoPlacesBindNobody) {
  const PlaceLayout layout(Bind::kSpread, 0, 0, 0, 4);
  EXPECT_EQ(layout.of(3), (MemberPlace{0, 0, 0}));
}

TEST(RegionBind, TheClauseCountsOnlyWhileBindingIsOn) {
  EXPECT_EQ(region_bind(Bind::kTrue, 0), Bind::kTrue);
  EXPECT_EQ(region_bind(Bind::kTrue, 4), Bind::kSpread);
  EXPECT_EQ(region_bind(Bind::kClose, 2), Bind::kPrimary);
  EXPECT_EQ(region_bind(Bind::kFalse, 4), Bind::kFalse);
  EXPECT_EQ(region_bind(Bind::kClose, 7), Bind::kClose);
}

}  // namespace
}  // namespace bosk::omp
