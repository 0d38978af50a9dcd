// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMP_*, GOMP_* and BOSK_*: grammars, what a process loads, and the rules of the ICVs.
#include "omp/environment.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/parse.h"
#include "base/settings.h"
#include "in_child.h"
#include "omp/display_env.h"
#include "omp/places.h"
#include "omp/team.h"
#include "sched/configuration.h"
#include "topology/process_cpus.h"

namespace bosk::omp {
namespace {

using base::MappedArray;
using testing::ChildResult;
using testing::in_child;
using testing::Variables;

// ---- Words and numbers

TEST(TextReader, Numbers) {
  uint64_t n = 0;
  EXPECT_TRUE(base::parse_number(" +18446744073709551615 ", 0, UINT64_MAX, &n));
  EXPECT_EQ(n, UINT64_MAX);
  EXPECT_TRUE(base::parse_number("\t007\n", 1, 9, &n));
  EXPECT_EQ(n, 7u);
  for (const char* text : {"", " ", "x", "-1", "- 1", "+ 1", "+", "++1", "1 1", "1x", "0x1", "1.",
                           "18446744073709551616", "99999999999999999999999", "10"}) {
    EXPECT_FALSE(base::parse_number(text, 0, 9, &n)) << text;
    EXPECT_EQ(n, 7u);
  }
}

TEST(TextReader, SignedNumbers) {
  const struct {
    const char* text;
    int64_t value;
  } good[] = {{"0", 0},
              {" -5", -5},
              {"+5", 5},
              {"9223372036854775807", INT64_MAX},
              {"-9223372036854775808", INT64_MIN}};
  for (const auto& line : good) {
    base::TextReader reader(line.text);
    int64_t value = 1;
    EXPECT_TRUE(reader.take_signed(&value)) << line.text;
    EXPECT_EQ(value, line.value);
    EXPECT_TRUE(reader.at_end());
  }
  for (const char* text : {"", "-", "--1", "-+1", "+-1", "- 1", "9223372036854775808",
                           "-9223372036854775809", "18446744073709551617"}) {
    base::TextReader reader(text);
    int64_t value = 1;
    EXPECT_FALSE(reader.take_signed(&value)) << text;
    EXPECT_EQ(reader.position(), text);
  }
}

TEST(TextReader, WordsAreWholeAndOfAnyCase) {
  base::TextReader reader(" Static,4");
  EXPECT_FALSE(reader.take_word("stat"));
  EXPECT_TRUE(reader.take_word("STATIC"));
  EXPECT_TRUE(reader.take(','));
  EXPECT_EQ(reader.peek(), '4');
  bool value = false;
  EXPECT_TRUE(base::parse_choice(" tRuE ", "true", "false", &value));
  EXPECT_TRUE(value);
  for (const char* text : {"truefalse", "true x", "tru", "", "true_", "true1"}) {
    EXPECT_FALSE(base::parse_choice(text, "true", "false", &value)) << text;
  }
}

// ---- One variable at a time

TEST(ParseSchedule, Forms) {
  const uint32_t mono = kScheduleMonotonic;
  const struct {
    const char* text;
    uint32_t schedule;
    int32_t chunk;
  } good[] = {
      {"static", kScheduleStatic | mono, 0},
      {"static,0", kScheduleStatic | mono, 0},
      {" STATIC , 4 ", kScheduleStatic | mono, 4},
      {"nonmonotonic:static", kScheduleStatic, 0},
      {"monotonic : static", kScheduleStatic | mono, 0},
      {"dynamic", kScheduleDynamic, 1},
      {"dynamic,0", kScheduleDynamic, 1},
      {"nonmonotonic:dynamic,+2", kScheduleDynamic, 2},
      {"Monotonic:Dynamic", kScheduleDynamic | mono, 1},
      {"guided,5", kScheduleGuided, 5},
      {"auto", kScheduleAuto, 1},
      {"monotonic:auto,5", kScheduleAuto | mono, 5},
      {"static,2147483647", kScheduleStatic | mono, INT32_MAX},
  };
  for (const auto& line : good) {
    uint32_t schedule = 0;
    int32_t chunk = -7;
    EXPECT_EQ(parse_schedule(line.text, &schedule, &chunk), ScheduleParse::kOk) << line.text;
    EXPECT_EQ(schedule, line.schedule) << line.text;
    EXPECT_EQ(chunk, line.chunk) << line.text;
  }
  uint32_t schedule = 0;
  int32_t chunk = -7;
  for (const char* text : {"", " ", "runtime", "staticx", "static 4", "monotonic",
                           "monotonic:", "monotonic:monotonic:static", "dynamicx,2", ",4"}) {
    EXPECT_EQ(parse_schedule(text, &schedule, &chunk), ScheduleParse::kUnknownKind) << text;
  }
  for (const char* text : {"static,", "static,x", "static,-1", "static,4,5", "dynamic,2x",
                           "guided,2147483648", "auto,"}) {
    EXPECT_EQ(parse_schedule(text, &schedule, &chunk), ScheduleParse::kBadChunk) << text;
  }
  EXPECT_EQ(schedule, 0u);
  EXPECT_EQ(chunk, -7);
}

std::vector<uint32_t> thread_list(const char* text) {
  MappedArray<uint32_t> list;
  std::vector<uint32_t> numbers;
  if (parse_thread_list(text, &list)) numbers.assign(list.data(), list.data() + list.size());
  list.release();
  return numbers;
}

TEST(ParseThreadList, Forms) {
  using List = std::vector<uint32_t>;
  EXPECT_EQ(thread_list("4"), List{4});
  EXPECT_EQ(thread_list(" 4 , +2,03 "), (List{4, 2, 3}));
  EXPECT_EQ(thread_list("2147483647"), List{2147483647});
  for (const char* text : {"", " ", "0", "-1", "4,", ",4", "4,,2", "4 2", "1,0", "x", "4x", "1,x",
                           "2147483648", "4294967296", "99999999999999999999"}) {
    EXPECT_EQ(thread_list(text), List{}) << text;
  }
  std::string many = "1";
  for (int i = 2; i <= 400; i++) many += "," + std::to_string(i);
  const List kept = thread_list(many.c_str());
  ASSERT_EQ(kept.size(), kMostListed);
  EXPECT_EQ(kept.back(), kMostListed);
  EXPECT_EQ(thread_list((many + ",x").c_str()), List{});
}

std::string bind_list(const char* text) {
  MappedArray<Bind> list;
  std::string kinds;
  if (parse_bind_list(text, &list)) {
    for (uint32_t i = 0; i < list.size(); i++) kinds += std::to_string(static_cast<int>(list[i]));
  }
  list.release();
  return kinds;
}

TEST(ParseBindList, Forms) {
  EXPECT_EQ(bind_list("false"), "0");
  EXPECT_EQ(bind_list(" TRUE "), "1");
  EXPECT_EQ(bind_list("master"), "2");
  EXPECT_EQ(bind_list("Primary , close,SPREAD"), "234");
  for (const char* text : {"", " ", "x", "close,", ",close", "close spread", "closex", "true,close",
                           "close,true", "false,false", "close,,close"}) {
    EXPECT_EQ(bind_list(text), "") << text;
  }
}

TEST(ParseStackSize, Forms) {
  const struct {
    const char* text;
    uint64_t bytes;
  } good[] = {{"100", 102400},
              {"0", 0},
              {"4096B", 4096},
              {"4096 b", 4096},
              {"3M", 3u << 20},
              {" 3 m ", 3u << 20},
              {"20000k", 20480000},
              {"2G", uint64_t{2} << 30},
              {"17179869183g", 17179869183u * (uint64_t{1} << 30)}};
  for (const auto& line : good) {
    uint64_t bytes = 1;
    EXPECT_TRUE(parse_stack_size(line.text, &bytes)) << line.text;
    EXPECT_EQ(bytes, line.bytes) << line.text;
  }
  uint64_t bytes = 1;
  for (const char* text : {"", "x", "-1", "1T", "3MB", "3M x", "1.5M", "M", "18014398509481984",
                           "17179869184G", "99999999999999999999", "3 3"}) {
    EXPECT_FALSE(parse_stack_size(text, &bytes)) << text;
  }
  EXPECT_EQ(bytes, 1u);
}

TEST(ParseSpinCount, Forms) {
  const struct {
    const char* text;
    uint64_t count;
  } good[] = {{"0", 0},
              {"1k", 1000},
              {" 2 M ", 2000000},
              {"3g", 3000000000},
              {"1T", 1000000000000},
              {"infinite", UINT64_MAX},
              {"Infinity", UINT64_MAX},
              {"18446744073709551615", UINT64_MAX},
              {"18446744073709T", UINT64_MAX},
              {"18446744T", 18446744000000000000u}};
  for (const auto& line : good) {
    uint64_t count = 1;
    EXPECT_TRUE(parse_spin_count(line.text, &count)) << line.text;
    EXPECT_EQ(count, line.count) << line.text;
  }
  uint64_t count = 1;
  for (const char* text :
       {"", "x", "1b", "1kx", "inf", "infinite x", "-1", "k", "99999999999999999999"}) {
    EXPECT_FALSE(parse_spin_count(text, &count)) << text;
  }
  EXPECT_EQ(count, 1u);
}

TEST(ParseWords, Choices) {
  WaitPolicy policy = WaitPolicy::kUnset;
  EXPECT_TRUE(parse_wait_policy(" Active ", &policy));
  EXPECT_EQ(policy, WaitPolicy::kActive);
  EXPECT_TRUE(parse_wait_policy("passive", &policy));
  EXPECT_EQ(policy, WaitPolicy::kPassive);
  EXPECT_FALSE(parse_wait_policy("active x", &policy));
  TargetOffload offload = TargetOffload::kDefault;
  EXPECT_TRUE(parse_target_offload("MANDATORY", &offload));
  EXPECT_EQ(offload, TargetOffload::kMandatory);
  EXPECT_FALSE(parse_target_offload("", &offload));
  DisplayEnv display = DisplayEnv::kFalse;
  EXPECT_TRUE(parse_display_env("verbose", &display));
  EXPECT_EQ(display, DisplayEnv::kVerbose);
  EXPECT_FALSE(parse_display_env("1", &display));
}

// No text may crash a parser or make it accept values out of range.
TEST(Parsers, SurviveRandomText) {
  constexpr char kLetters[] = "0123456789,:kMGTb+- staticdynamicclosetrue@us";
  std::mt19937 random(3);
  for (int round = 0; round < 30000; round++) {
    std::string text;
    for (uint32_t length = random() % 12; length > 0; length--) {
      text += kLetters[random() % (sizeof kLetters - 1)];
    }
    const char* c = text.c_str();
    uint32_t schedule = kScheduleStatic;
    int32_t chunk = 0;
    parse_schedule(c, &schedule, &chunk);
    EXPECT_GE(chunk, 0) << text;
    for (uint32_t n : thread_list(c)) {
      EXPECT_GE(n, 1u) << text;
      EXPECT_LE(n, static_cast<uint32_t>(INT32_MAX)) << text;
    }
    bind_list(c);
    uint64_t number;
    parse_stack_size(c, &number);
    parse_spin_count(c, &number);
    uint32_t period = 0;
    if (base::parse_period(c, &period)) {
      EXPECT_TRUE(period == 0 || (period >= 100 && period <= 10'000'000)) << text;
    }
    base::PolicyList policies{};
    if (base::parse_policy_list(c, &policies)) {
      EXPECT_GE(policies.count, 1u);
      EXPECT_NE(policies.clause[0].name[0] != '\0', policies.clause[0].plugin != nullptr);
      base::release_policy_list(&policies);
    }
  }
}

TEST(Parsers, NumbersAndListsRoundTrip) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; round++) {
    const uint64_t bytes = random() >> (random() % 64);
    uint64_t read = 0;
    EXPECT_TRUE(parse_stack_size((std::to_string(bytes) + "B").c_str(), &read));
    EXPECT_EQ(read, bytes);
    std::vector<uint32_t> numbers(1 + random() % 20);
    std::string text;
    for (uint32_t& n : numbers) {
      n = 1 + static_cast<uint32_t>(random() % INT32_MAX);
      text += (text.empty() ? "" : ",") + std::to_string(n);
    }
    EXPECT_EQ(thread_list(text.c_str()), numbers);
  }
}

// ---- A whole process

std::string summary() {
  const ProcessIcvs& p = process_icvs();
  const DataIcvs& i = p.initial;
  char line[512];
  snprintf(
      line, sizeof line,
      "n=%u/%u limit=%u sched=%x,%d dev=%d levels=%u dyn=%d bind=%d/%u stack=%zu spins=%llu/%d "
      "cancel=%d show=%d prio=%d teams=%u,%u alloc=%lu",
      i.nthreads, p.nthreads.count, i.thread_limit, i.run_sched, i.run_sched_chunk,
      i.default_device, i.max_active_levels, i.dynamic, static_cast<int>(i.bind), p.bind.count,
      p.stack_size, static_cast<unsigned long long>(p.spin_count), p.spin_count_given,
      p.cancellation, p.display_affinity, p.max_task_priority, p.num_teams, p.teams_thread_limit,
      static_cast<unsigned long>(p.default_allocator));
  return line;
}

uint32_t cpus_here() {
  topology::ProcessCpus cpus;
  topology::Error error;
  EXPECT_TRUE(topology::load_process_cpus(&cpus, &error));
  const uint32_t count = cpus.count;
  topology::free_process_cpus(&cpus);
  return count;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string defaults() {
  const std::string n = std::to_string(cpus_here());
  return "n=" + n +
         "/0 limit=4294967295 sched=2,1 dev=0 levels=1 dyn=0 bind=0/0 stack=0 spins=300000/0 "
         "cancel=0 show=0 prio=0 teams=0,0 alloc=1";
}

TEST(ProcessIcvs, Defaults) {
  const ChildResult child = in_child({}, summary);
  EXPECT_EQ(child.output, defaults());
  EXPECT_EQ(child.errors, "");
  EXPECT_EQ(child.status, 0);
}

TEST(ProcessIcvs, EveryVariableArrives) {
  const ChildResult child = in_child({{"OMP_NUM_THREADS", "4,2"},
                                      {"OMP_THREAD_LIMIT", "50"},
                                      {"OMP_SCHEDULE", "guided,7"},
                                      {"OMP_DEFAULT_DEVICE", "3"},
                                      {"OMP_DYNAMIC", "true"},
                                      {"OMP_PROC_BIND", "spread,close"},
                                      {"OMP_STACKSIZE", "3M"},
                                      {"OMP_WAIT_POLICY", "active"},
                                      {"OMP_CANCELLATION", "true"},
                                      {"OMP_DISPLAY_AFFINITY", "true"},
                                      {"OMP_MAX_TASK_PRIORITY", "9"},
                                      {"OMP_NUM_TEAMS", "5"},
                                      {"OMP_TEAMS_THREAD_LIMIT", "6"},
                                      {"OMP_ALLOCATOR", "omp_high_bw_mem_alloc"}},
                                     summary);
  EXPECT_EQ(child.output,
            "n=4/2 limit=50 sched=3,7 dev=3 levels=255 dyn=1 bind=4/2 stack=3145728 "
            "spins=30000000000/0 cancel=1 show=1 prio=9 teams=5,6 alloc=4");
  EXPECT_EQ(child.errors, "");
}

TEST(ProcessIcvs, MalformedValuesAreNamedInLibgompsOrderAndTheDefaultsStay) {
  Variables all;
  const char* names[] = {"OMP_SCHEDULE",
                         "OMP_DYNAMIC",
                         "OMP_CANCELLATION",
                         "OMP_DISPLAY_AFFINITY",
                         "OMP_DEFAULT_DEVICE",
                         "OMP_TARGET_OFFLOAD",
                         "OMP_MAX_TASK_PRIORITY",
                         "OMP_ALLOCATOR",
                         "OMP_THREAD_LIMIT",
                         "GOMP_DEBUG",
                         "OMP_NUM_THREADS",
                         "OMP_NUM_TEAMS",
                         "OMP_TEAMS_THREAD_LIMIT",
                         "OMP_PROC_BIND",
                         "OMP_MAX_ACTIVE_LEVELS",
                         "OMP_NESTED",
                         "OMP_PLACES",
                         "GOMP_CPU_AFFINITY",
                         "OMP_WAIT_POLICY",
                         "GOMP_SPINCOUNT",
                         "OMP_STACKSIZE",
                         "GOMP_STACKSIZE",
                         "OMP_DISPLAY_ENV"};
  std::string expected;
  for (const std::string name : names) {
    all.emplace_back(name, "?");
    const bool typo = name == "GOMP_CPU_AFFINITY", kind = name == "OMP_SCHEDULE";
    expected += std::string("\nlibgomp: ") + (kind ? "Unknown" : "Invalid") + " value for " +
                (typo ? "enviroment" : "environment") + " variable " + name + "\n";
  }
  const ChildResult child = in_child(all, summary);
  EXPECT_EQ(child.errors, expected);
  EXPECT_EQ(child.output, defaults());
}

TEST(ProcessIcvs, PartOfAMalformedValueIsNotUsed) {
  for (const auto& [name, value] : Variables{{"OMP_DYNAMIC", "true x"},
                                             {"OMP_NUM_THREADS", "4,x"},
                                             {"OMP_PROC_BIND", "close,x"},
                                             {"OMP_PLACES", "{0},x"},
                                             {"OMP_STACKSIZE", "3Mx"}}) {
    const ChildResult child = in_child({{name, value}}, summary);
    EXPECT_EQ(child.output, defaults()) << name;
    EXPECT_EQ(child.errors, "\nlibgomp: Invalid value for environment variable " + name + "\n");
  }
  const ChildResult chunk = in_child({{"OMP_SCHEDULE", "static,x"}}, summary);
  EXPECT_EQ(chunk.output, defaults());
  EXPECT_EQ(chunk.errors,
            "\nlibgomp: Invalid value for chunk size in environment variable OMP_SCHEDULE\n");
}

std::string levels_with(const Variables& variables) {
  return in_child(variables,
                  [] { return std::to_string(process_icvs().initial.max_active_levels); })
      .output;
}

TEST(ProcessIcvs, ActiveLevels) {
  EXPECT_EQ(levels_with({{"OMP_MAX_ACTIVE_LEVELS", "3"}}), "3");
  EXPECT_EQ(levels_with({{"OMP_MAX_ACTIVE_LEVELS", "0"}}), "0");
  EXPECT_EQ(levels_with({{"OMP_MAX_ACTIVE_LEVELS", "1000"}}), "255");
  EXPECT_EQ(levels_with({{"OMP_NESTED", "true"}}), "255");
  EXPECT_EQ(levels_with({{"OMP_NESTED", "true"}, {"OMP_MAX_ACTIVE_LEVELS", "1"}}), "1");
  EXPECT_EQ(levels_with({{"OMP_NUM_THREADS", "3,2"}}), "255");
  EXPECT_EQ(levels_with({{"OMP_PROC_BIND", "close,spread"}}), "255");
  EXPECT_EQ(levels_with({{"OMP_NUM_THREADS", "3,2"}, {"OMP_NESTED", "false"}}), "1");
  EXPECT_EQ(levels_with({{"OMP_NUM_THREADS", "3,2"}, {"OMP_MAX_ACTIVE_LEVELS", "1"}}), "1");
  EXPECT_EQ(levels_with({{"OMP_NUM_THREADS", "3,2"}, {"OMP_NESTED", "?"}}), "255");
}

TEST(ProcessIcvs, StackSizes) {
  const auto stack = [](const Variables& variables) {
    return in_child(variables, [] { return std::to_string(process_icvs().stack_size); });
  };
  EXPECT_EQ(stack({{"GOMP_STACKSIZE", "200"}}).output, "204800");
  EXPECT_EQ(stack({{"OMP_STACKSIZE", "300"}, {"GOMP_STACKSIZE", "200"}}).output, "307200");
  EXPECT_EQ(stack({{"OMP_STACKSIZE", "x"}, {"GOMP_STACKSIZE", "200"}}).output, "204800");
  const ChildResult small = stack({{"OMP_STACKSIZE", "1"}, {"GOMP_STACKSIZE", "200"}});
  EXPECT_EQ(small.output, "0");
  EXPECT_EQ(small.errors.rfind("\nlibgomp: Stack size less than minimum of ", 0), 0u)
      << small.errors;
  EXPECT_EQ(stack({{"OMP_STACKSIZE", "9007199254740992"}}).errors,
            "\nlibgomp: Stack size larger than system limit\n");
}

TEST(ProcessIcvs, WaitingAndSpinning) {
  const auto spins = [](const Variables& variables) {
    return in_child(variables, [] { return std::to_string(process_icvs().spin_count); }).output;
  };
  EXPECT_EQ(spins({}), "300000");
  EXPECT_EQ(spins({{"OMP_WAIT_POLICY", "passive"}}), "0");
  EXPECT_EQ(spins({{"OMP_WAIT_POLICY", "active"}}), "30000000000");
  EXPECT_EQ(spins({{"OMP_WAIT_POLICY", "active"}, {"GOMP_SPINCOUNT", "5k"}}), "5000");
  EXPECT_EQ(spins({{"OMP_WAIT_POLICY", "active"}, {"GOMP_SPINCOUNT", "?"}}), "30000000000");
}

TEST(ProcessIcvs, TheSpinCountSaysHowLongAWorkerPolls) {
  const auto cycles = [](Variables variables) {
    const ChildResult child = in_child(variables, [] {
      attach_thread();
      return std::to_string(sched::configuration().spin_cycles);
    });
    return std::stoull(child.output);
  };
  EXPECT_EQ(cycles({{"OMP_WAIT_POLICY", "active"}, {"GOMP_SPINCOUNT", "0"}}), 0u);
  EXPECT_EQ(cycles({{"OMP_WAIT_POLICY", "passive"}, {"GOMP_SPINCOUNT", "infinite"}}), UINT64_MAX);
  // A poll takes at least a cycle of the counter, and less than a million.
  const uint64_t million = cycles({{"GOMP_SPINCOUNT", "1M"}});
  EXPECT_GE(million, 1'000'000u);
  EXPECT_LT(million, 1'000'000'000'000u);
}

std::string binding() {
  const ProcessIcvs& p = process_icvs();
  std::string text = std::to_string(static_cast<int>(p.initial.bind)) + ":";
  for (uint32_t i = 0; i < p.places->count(); i++) {
    text += " " + std::to_string(p.places->n_cpus(i));
  }
  return text;
}

TEST(ProcessIcvs, BindingIsOnWhenItIsAskedFor) {
  const uint32_t n = cpus_here();
  const auto bound = [](const Variables& variables) { return in_child(variables, binding).output; };
  std::string one_each;
  for (uint32_t i = 0; i < n; i++) one_each += " 1";
  EXPECT_EQ(bound({}), "0:");
  EXPECT_EQ(bound({{"OMP_PROC_BIND", "true"}}), "1:" + one_each);
  EXPECT_EQ(bound({{"OMP_PROC_BIND", "spread"}}), "4:" + one_each);
  EXPECT_EQ(bound({{"OMP_PLACES", "threads"}}), "1:" + one_each);
  EXPECT_EQ(bound({{"OMP_PLACES", "threads(1)"}, {"OMP_PROC_BIND", "close"}}), "3: 1");
  EXPECT_EQ(bound({{"OMP_PLACES", "threads"}, {"OMP_PROC_BIND", "false"}}), "0:");
  EXPECT_EQ(bound({{"OMP_PLACES", "?"}, {"OMP_PROC_BIND", "close"}}), "3:" + one_each);
  EXPECT_EQ(bound({{"OMP_PLACES", "threads(1)"}, {"OMP_PROC_BIND", "?"}}), "1: 1");
  EXPECT_EQ(bound({{"GOMP_CPU_AFFINITY", "0-65535"}}), "1:" + one_each);
  EXPECT_EQ(bound({{"GOMP_CPU_AFFINITY", "0-65535"}, {"OMP_PLACES", "threads(1)"}}), "1: 1");
  EXPECT_EQ(bound({{"GOMP_CPU_AFFINITY", "0-65535"}, {"OMP_PROC_BIND", "false"}}), "0:");
}

TEST(ProcessIcvs, SuffixesAndForeignVariables) {
  const ChildResult child = in_child({{"OMP_NUM_THREADS_ALL", "3"},
                                      {"OMP_NUM_THREADS_DEV_0", "x"},
                                      {"OMP_SCHEDULE_ALL", "static"},
                                      {"OMP_SCHEDULE", "guided"},
                                      {"OMP_DYNAMIC_DEV", "x"},
                                      {"KMP_AFFINITY", "verbose,compact"},
                                      {"KMP_BLOCKTIME", "x"}},
                                     summary);
  EXPECT_EQ(child.errors, "");
  std::string expected = replaced(defaults(), "sched=2,1", "sched=3,1");
  expected = "n=3" + expected.substr(expected.find("/0 limit"));
  expected = replaced(expected, "n=3/0", "n=3/1");
  EXPECT_EQ(child.output, expected);
  EXPECT_EQ(in_child({{"OMP_NUM_THREADS_ALL", "?"}}, summary).errors,
            "\nlibgomp: Invalid value for environment variable OMP_NUM_THREADS_ALL\n");
}

TEST(ProcessIcvs, ManyThreadsAtOnceLoadOneAndComplainOnce) {
  const ChildResult child = in_child({{"OMP_NUM_THREADS", "?"}, {"OMP_PLACES", "threads"}}, [] {
    std::atomic<int> ready{0};
    std::vector<const ProcessIcvs*> seen(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < seen.size(); i++) {
      threads.emplace_back([&, i] {
        ready++;
        while (ready < 8) std::this_thread::yield();
        seen[i] = &process_icvs();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const ProcessIcvs* p : seen) {
      if (p != &process_icvs() || p->places->count() == 0) return "not one";
    }
    return "one";
  });
  EXPECT_EQ(child.output, "one");
  EXPECT_EQ(child.errors, "\nlibgomp: Invalid value for environment variable OMP_NUM_THREADS\n");
}

TEST(ProcessIcvs, ErrnoIsTheProgramsOwn) {
  const ChildResult child = in_child({{"OMP_PLACES", "cores"}, {"OMP_NUM_THREADS", "?"}}, [] {
    errno = 4242;
    process_icvs();
    return std::to_string(errno);
  });
  EXPECT_EQ(child.output, "4242");
}

TEST(ProcessIcvs, LaterChangesOfTheEnvironmentDoNotMatter) {
  const ChildResult child = in_child({{"OMP_AFFINITY_FORMAT", "%n"}}, [] {
    process_icvs();
    setenv("OMP_AFFINITY_FORMAT", "overwritten", 1);
    setenv("OMP_NUM_THREADS", "77", 1);
    return std::string(process_icvs().affinity_format) +
           (process_icvs().initial.nthreads == 77 ? " changed" : "");
  });
  EXPECT_EQ(child.output, "%n");
}

// ---- OMP_DISPLAY_ENV

std::string verbose_text(const Variables& variables) {
  return in_child(variables,
                  [] {
                    display_env(true);
                    return std::string();
                  })
      .errors;
}

TEST(DisplayEnv, EveryLine) {
  const std::string text = verbose_text({{"OMP_NUM_THREADS", "4,2"},
                                         {"OMP_SCHEDULE", "monotonic:dynamic,4"},
                                         {"OMP_PROC_BIND", "master,close"},
                                         {"OMP_WAIT_POLICY", "active"},
                                         {"OMP_STACKSIZE", "1M"},
                                         {"OMP_THREAD_LIMIT", "9"},
                                         {"OMP_PLACES", "numa_domains(0)"},
                                         {"OMP_TARGET_OFFLOAD", "disabled"}});
  // Binding is on, so there are places; which depends on the machine.
  const size_t from = text.find("OMP_PLACES = '{");
  ASSERT_NE(from, std::string::npos);
  const std::string places = text.substr(from + 14, text.find('\'', from + 14) - from - 14);
  EXPECT_EQ(text,
            "\nlibgomp: Invalid value for environment variable OMP_PLACES\n"
            "\nOPENMP DISPLAY ENVIRONMENT BEGIN\n"
            "  _OPENMP = '201511'\n"
            "  OMP_DYNAMIC = 'FALSE'\n"
            "  OMP_NESTED = 'TRUE'\n"
            "  OMP_NUM_THREADS = '4,2'\n"
            "  OMP_SCHEDULE = 'MONOTONIC:DYNAMIC,4'\n"
            "  OMP_PROC_BIND = 'MASTER,CLOSE'\n"
            "  OMP_PLACES = '" +
                places +
                "'\n"
                "  OMP_STACKSIZE = '1048576'\n"
                "  OMP_WAIT_POLICY = 'ACTIVE'\n"
                "  OMP_THREAD_LIMIT = '9'\n"
                "  OMP_MAX_ACTIVE_LEVELS = '255'\n"
                "  OMP_NUM_TEAMS = '0'\n"
                "  OMP_TEAMS_THREAD_LIMIT = '0'\n"
                "  OMP_CANCELLATION = 'FALSE'\n"
                "  OMP_DEFAULT_DEVICE = '0'\n"
                "  OMP_MAX_TASK_PRIORITY = '0'\n"
                "  OMP_DISPLAY_AFFINITY = 'FALSE'\n"
                "  OMP_AFFINITY_FORMAT = 'level %L thread %i affinity %A'\n"
                "  OMP_ALLOCATOR = 'omp_default_mem_alloc'\n"
                "  OMP_TARGET_OFFLOAD = 'DISABLED'\n"
                "  GOMP_CPU_AFFINITY = ''\n"
                "  GOMP_STACKSIZE = '1048576'\n"
                "  GOMP_SPINCOUNT = '30000000000'\n"
                "OPENMP DISPLAY ENVIRONMENT END\n");
}

TEST(DisplayEnv, PlacesAsRanges) {
  PlaceList list;
  ASSERT_TRUE(list.start_place());
  ASSERT_TRUE(list.add_range(0, 4));
  ASSERT_TRUE(list.add_range(8, 1));
  ASSERT_TRUE(list.start_place());
  ASSERT_TRUE(list.add_cpu(5));
  ProcessIcvs process{};
  process.initial.run_sched = kScheduleStatic;
  process.places = &list;
  MappedArray<char> text;
  ASSERT_TRUE(format_env(process, {3, 4, "%n"}, false, &text));
  const std::string shown(text.data(), text.size());
  EXPECT_NE(shown.find("  OMP_PLACES = '{0:4,8},{5}'\n"), std::string::npos);
  EXPECT_NE(shown.find("  OMP_SCHEDULE = 'NONMONOTONIC:STATIC'\n"), std::string::npos);
  EXPECT_NE(shown.find("  OMP_NUM_TEAMS = '3'\n  OMP_TEAMS_THREAD_LIMIT = '4'\n"),
            std::string::npos);
  EXPECT_NE(shown.find("  OMP_AFFINITY_FORMAT = '%n'\n"), std::string::npos);
  EXPECT_EQ(shown.find("GOMP_"), std::string::npos);
  text.release();
  list.release();
}

TEST(DisplayEnv, IsShownOnceWhenTheEnvironmentIsRead) {
  const auto shown = [](const char* value) {
    const std::string errors = in_child({{"OMP_DISPLAY_ENV", value}}, [] {
                                 process_icvs();
                                 process_icvs();
                                 return std::string();
                               }).errors;
    int times = 0;
    for (size_t at = 0; (at = errors.find("ENVIRONMENT BEGIN", at)) != std::string::npos; at++) {
      times++;
    }
    return std::to_string(times) +
           (errors.find("GOMP_SPINCOUNT") != std::string::npos ? " verbose" : "");
  };
  EXPECT_EQ(shown("false"), "0");
  EXPECT_EQ(shown("true"), "1");
  EXPECT_EQ(shown("verbose"), "1 verbose");
  EXPECT_EQ(shown("?"), "0");
}

TEST(DisplayEnv, NumbersOfTeamsFollowTheRoutines) {
  const ChildResult child = in_child({{"OMP_NUM_TEAMS", "5"}}, [] {
    std::string seen = std::to_string(num_teams_icv());
    set_num_teams_icv(3);
    set_num_teams_icv(-1);
    set_teams_thread_limit_icv(7);
    set_teams_thread_limit_icv(-5);
    display_env(false);
    seen += std::to_string(num_teams_icv()) + std::to_string(teams_thread_limit_icv());
    set_num_teams_icv(0);
    return seen + std::to_string(num_teams_icv());
  });
  EXPECT_EQ(child.output, "5370");
  EXPECT_NE(child.errors.find("  OMP_NUM_TEAMS = '3'\n  OMP_TEAMS_THREAD_LIMIT = '7'\n"),
            std::string::npos);
}

// ---- The routines' rules

DataIcvs some_icvs() {
  return {.nthreads = 4,
          .thread_limit = UINT32_MAX,
          .run_sched = kScheduleDynamic,
          .run_sched_chunk = 77,
          .default_device = 0,
          .max_active_levels = 2,
          .dynamic = false,
          .bind = Bind::kFalse};
}

TEST(IcvRoutines, ThreadsLevelsAndDevices) {
  DataIcvs i = some_icvs();
  for (int n : {-5, 0, 1}) {
    set_num_threads(&i, n);
    EXPECT_EQ(i.nthreads, 1u);
  }
  set_num_threads(&i, INT32_MAX);
  EXPECT_EQ(i.nthreads, static_cast<uint32_t>(INT32_MAX));
  set_max_active_levels(&i, -1);
  EXPECT_EQ(i.max_active_levels, 2);
  for (int levels : {0, 3, 255}) {
    set_max_active_levels(&i, levels);
    EXPECT_EQ(i.max_active_levels, levels);
  }
  set_max_active_levels(&i, INT32_MAX);
  EXPECT_EQ(i.max_active_levels, 255);
  set_default_device(&i, 3);
  EXPECT_EQ(i.default_device, 3);
  set_default_device(&i, -1);
  EXPECT_EQ(i.default_device, 0);
  EXPECT_EQ(clamped_int(UINT32_MAX), INT32_MAX);
  EXPECT_EQ(clamped_int(7), 7);
}

TEST(IcvRoutines, Nested) {
  DataIcvs i = some_icvs();
  const struct {
    uint8_t before;
    bool on;
    uint8_t after;
  } table[] = {{1, true, 255},  {3, true, 255}, {0, true, 255},
               {255, false, 1}, {1, false, 1},  {0, false, 0}};
  for (const auto& line : table) {
    i.max_active_levels = line.before;
    set_nested(&i, line.on);
    EXPECT_EQ(i.max_active_levels, line.after);
  }
  i.max_active_levels = 2;
  EXPECT_TRUE(nested(i, 0));
  EXPECT_TRUE(nested(i, 1));
  EXPECT_FALSE(nested(i, 2));
  i.max_active_levels = 1;
  EXPECT_FALSE(nested(i, 0));
}

TEST(IcvRoutines, Schedule) {
  const struct {
    uint32_t kind;
    int chunk;
    uint32_t kind_after;
    int chunk_after;
  } table[] = {
      {kScheduleStatic, -5, kScheduleStatic, 0},
      {kScheduleStatic, 4, kScheduleStatic, 4},
      {kScheduleDynamic, 0, kScheduleDynamic, 1},
      {kScheduleGuided | kScheduleMonotonic, 4, kScheduleGuided | kScheduleMonotonic, 4},
      {kScheduleAuto, 4, kScheduleAuto, 77},
      {0, 4, kScheduleDynamic, 77},
      {5, 4, kScheduleDynamic, 77},
      {kScheduleMonotonic, 4, kScheduleDynamic, 77},
      {0x40000001, 4, kScheduleDynamic, 77},
  };
  for (const auto& line : table) {
    DataIcvs i = some_icvs();
    set_schedule(&i, line.kind, line.chunk);
    EXPECT_EQ(i.run_sched, line.kind_after) << std::hex << line.kind;
    EXPECT_EQ(i.run_sched_chunk, line.chunk_after) << std::hex << line.kind;
  }
}

TEST(IcvRoutines, TheNextLevelTakesTheNextEntry) {
  uint32_t threads[] = {4, 3, 2};
  Bind binds[] = {Bind::kSpread, Bind::kClose};
  ProcessIcvs process{};
  process.nthreads = {threads, 3};
  process.bind = {binds, 2};
  DataIcvs icvs = some_icvs();
  icvs.bind = Bind::kSpread;
  icvs = icvs_for_level(icvs, 1, process);
  EXPECT_EQ(icvs.nthreads, 3u);
  EXPECT_EQ(icvs.bind, Bind::kClose);
  set_num_threads(&icvs, 9);
  icvs = icvs_for_level(icvs, 2, process);
  EXPECT_EQ(icvs.nthreads, 2u);
  EXPECT_EQ(icvs.bind, Bind::kClose);
  set_num_threads(&icvs, 9);
  icvs = icvs_for_level(icvs, 3, process);
  EXPECT_EQ(icvs.nthreads, 9u);  // past the list: the opener's own
  // Binding that is off stays off.
  icvs.bind = Bind::kFalse;
  EXPECT_EQ(icvs_for_level(icvs, 1, process).bind, Bind::kFalse);
  // One entry is no list.
  process.nthreads.count = 1;
  EXPECT_EQ(icvs_for_level(some_icvs(), 1, process).nthreads, 4u);
}

// ---- The size of a team

uint32_t size_of(TeamRequest request, DataIcvs icvs) {
  ProcessIcvs process{};
  process.available_cpus = 4;
  return resolve_team_size(request, icvs, process);
}

TEST(TeamSize, ClauseListAndLevels) {
  DataIcvs icvs = some_icvs();
  EXPECT_EQ(
      size_of({.num_threads_clause = 0, .sections = 0, .active_level = 0, .threads_busy = 1}, icvs),
      4u);
  EXPECT_EQ(size_of({7, 0, 0, 1}, icvs), 7u);
  EXPECT_EQ(size_of({1, 0, 0, 1}, icvs), 1u);
  EXPECT_EQ(size_of({7, 0, 1, 4}, icvs), 7u);
  EXPECT_EQ(size_of({7, 0, 2, 4}, icvs), 1u);
  icvs.max_active_levels = 0;
  EXPECT_EQ(size_of({7, 0, 0, 1}, icvs), 1u);
}

TEST(TeamSize, SectionsCountOnlyWithDynamicThreads) {
  DataIcvs icvs = some_icvs();
  EXPECT_EQ(size_of({8, 2, 0, 1}, icvs), 8u);
  icvs.dynamic = true;
  EXPECT_LE(size_of({8, 2, 0, 1}, icvs), 2u);
  EXPECT_GE(size_of({8, 2, 0, 1}, icvs), 1u);
  EXPECT_LE(size_of({100, 0, 0, 1}, icvs), 4u);
}

TEST(TeamSize, ThreadLimitIsSharedByTheContentionGroup) {
  DataIcvs icvs = some_icvs();
  icvs.thread_limit = 10;
  EXPECT_EQ(size_of({8, 0, 0, 1}, icvs), 8u);
  EXPECT_EQ(size_of({20, 0, 0, 1}, icvs), 10u);
  EXPECT_EQ(size_of({8, 0, 1, 8}, icvs), 3u);
  EXPECT_EQ(size_of({8, 0, 1, 10}, icvs), 1u);
  EXPECT_EQ(size_of({8, 0, 1, 15}, icvs), 1u);
  EXPECT_EQ(size_of({8, 0, 0, 0}, icvs), 8u);
  // Whatever is asked for: never none, never more than the limit leaves.
  std::mt19937 random(9);
  for (int round = 0; round < 5000; round++) {
    icvs.thread_limit = 1 + random() % 20;
    icvs.nthreads = 1 + random() % 30;
    const TeamRequest request{static_cast<uint32_t>(random() % 30), 0,
                              static_cast<uint32_t>(random() % 3),
                              static_cast<uint32_t>(1 + random() % 25)};
    const uint32_t n = size_of(request, icvs);
    EXPECT_GE(n, 1u);
    if (request.threads_busy <= icvs.thread_limit) {
      EXPECT_LE(request.threads_busy + n - 1, icvs.thread_limit);
    } else {
      EXPECT_EQ(n, 1u);
    }
  }
}

TEST(TeamSize, DynamicThreadsLeaveRoomForTheLoad) {
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 0.0), 4u);
  EXPECT_EQ(dynamic_thread_limit_at(3, 4, 0.0), 3u);
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 0.89), 4u);
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 0.95), 3u);
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 2.0), 2u);
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 4.0), 1u);
  EXPECT_EQ(dynamic_thread_limit_at(8, 4, 1e30), 1u);
  const uint32_t now = dynamic_thread_limit(8, 4);
  EXPECT_GE(now, 1u);
  EXPECT_LE(now, 4u);
}

// ---- BOSK_*

TEST(Settings, Policies) {
  base::PolicyList list{};
  ASSERT_TRUE(base::parse_policy_list("burst", &list));
  EXPECT_EQ(list.count, 1u);
  EXPECT_STREQ(list.clause[0].name, "burst");
  EXPECT_STREQ(list.clause[0].argument, "");
  EXPECT_STREQ(list.clause[0].level, "");
  ASSERT_TRUE(base::parse_policy_list(" spread@machine , burst:node@l3-2 ", &list));
  EXPECT_EQ(list.count, 2u);
  EXPECT_STREQ(list.clause[0].name, "spread");
  EXPECT_STREQ(list.clause[0].level, "machine");
  EXPECT_STREQ(list.clause[1].argument, "node");
  EXPECT_STREQ(list.clause[1].level, "l3-2");
  for (const char* text : {"", " ", ",", "a,", ",a", "a:", "a@", "a@b:c", "a b", "a:b:c", "a!",
                           "a,a,a,a,a,a,a,a,a", "a123456789012345678901234567890123"}) {
    EXPECT_FALSE(base::parse_policy_list(text, &list)) << text;
  }
  EXPECT_EQ(list.count, 2u);
}

TEST(Settings, PoliciesInFiles) {
  const struct {
    const char* text;
    const char* path;
    const char* argument;
    const char* level;
  } good[] = {
      {"./mine.so", "./mine.so", "", ""},
      {"mine.so:3", "mine.so", "3", ""},
      {" /opt/my policies/a-1.2_x.so : 3:1 / 2 @ node", "/opt/my policies/a-1.2_x.so", "3:1 / 2",
       "node"},
      {"dir/name-without-end", "dir/name-without-end", "", ""},
      {R"(/a\,b\:c\@d\\e.so:x\,y\@z)", R"(/a,b:c@d\e.so)", "x,y@z", ""},
      {R"(./blank\ )", "./blank ", "", ""},
  };
  for (const auto& line : good) {
    for (const char* more : {"", ",burst@core"}) {
      const std::string text = line.text + std::string(more);
      base::PolicyList list{};
      ASSERT_TRUE(base::parse_policy_list(text.c_str(), &list)) << text;
      EXPECT_EQ(list.count, more[0] != '\0' ? 2u : 1u) << text;
      EXPECT_STREQ(list.clause[0].plugin, line.path);
      EXPECT_STREQ(list.clause[0].name, "");
      EXPECT_STREQ(list.clause[0].argument, line.argument);
      EXPECT_STREQ(list.clause[0].level, line.level);
      EXPECT_EQ(list.clause[1].plugin, nullptr);
      base::release_policy_list(&list);
    }
  }
  base::PolicyList list{};
  const std::string long_argument = "./a.so:" + std::string(256, 'x');
  const std::string long_path = "./" + std::string(4095, 'x');
  for (const std::string& text : {std::string("./a.so:"), std::string("./a.so@"), long_argument,
                                  std::string("./a.so@l3:3"), long_path, std::string("./a.so,")}) {
    EXPECT_FALSE(base::parse_policy_list(text.c_str(), &list)) << text;
    EXPECT_EQ(list.count, 0u);
  }
}

TEST(Settings, Periods) {
  const struct {
    const char* text;
    uint32_t us;
  } good[] = {{"10ms", 10000},  {"500us", 500}, {"0", 0},   {"off", 0},     {"OFF", 0},
              {"2 s", 2000000}, {"7", 7000},    {"0us", 0}, {"100us", 100}, {"10s", 10000000}};
  for (const auto& line : good) {
    uint32_t us = 1;
    EXPECT_TRUE(base::parse_period(line.text, &us)) << line.text;
    EXPECT_EQ(us, line.us) << line.text;
  }
  uint32_t us = 1;
  for (const char* text : {"", "soon", "-1", "99us", "11s", "10ns", "10 ms x", "1.5ms", "ms",
                           "off 1", "18446744073709551615s", "10001ms"}) {
    EXPECT_FALSE(base::parse_period(text, &us)) << text;
  }
  EXPECT_EQ(us, 1u);
}

std::string settings_text() {
  const base::Settings& s = base::settings();
  const auto text = [](const char* t) { return std::string(t != nullptr ? t : "-"); };
  std::string policy;
  for (uint32_t i = 0; i < s.policy.count; i++)
    policy += s.policy.clause[i].name + std::string("+");
  return policy + " " + std::to_string(s.preempt_period_us) + " " +
         std::to_string(s.redistribute_us) + " " + std::to_string(s.workers) + " " +
         std::to_string(static_cast<int>(s.identity)) + " " +
         std::to_string(static_cast<int>(s.homes)) + " " +
         std::to_string(s.selftest_fail_identity) + std::to_string(s.selftest_move_teams) + " " +
         text(s.report) + " " + text(s.topology_xml) + " " + text(s.synthetic);
}

TEST(Settings, DefaultsAndEmptyValues) {
  const std::string defaults = " 10000 0 0 0 0 00 - - -";
  EXPECT_EQ(in_child({}, settings_text).output, defaults);
  const ChildResult empty = in_child({{"BOSK_POLICY", ""},
                                      {"BOSK_PREEMPT_PERIOD", ""},
                                      {"BOSK_WORKERS", " "},
                                      {"BOSK_IDENTITY", ""},
                                      {"BOSK_WORKER_HOMES", ""},
                                      {"BOSK_SELFTEST", ""},
                                      {"BOSK_REPORT", ""}},
                                     settings_text);
  EXPECT_EQ(empty.output, defaults);
  EXPECT_EQ(empty.errors, "");
}

TEST(Settings, EveryVariableArrives) {
  const ChildResult child = in_child({{"BOSK_POLICY", "spread@machine,burst"},
                                      {"BOSK_PREEMPT_PERIOD", "500us"},
                                      {"BOSK_REDISTRIBUTE", "2s"},
                                      {"BOSK_WORKERS", "3"},
                                      {"BOSK_IDENTITY", "Strict"},
                                      {"BOSK_WORKER_HOMES", "On"},
                                      {"BOSK_SELFTEST", "fail-identity"},
                                      {"BOSK_REPORT", "out.txt"},
                                      {"BOSK_TOPOLOGY_XML", "m.xml"},
                                      {"BOSK_SYNTHETIC", "node:4 core:4 pu:1"}},
                                     settings_text);
  EXPECT_EQ(child.output, "spread+burst+ 500 2000000 3 1 2 10 out.txt m.xml node:4 core:4 pu:1");
  EXPECT_EQ(child.errors, "");
  EXPECT_EQ(in_child({{"BOSK_SELFTEST", "move-teams"}}, settings_text).output,
            " 10000 0 0 0 0 01 - - -");
}

TEST(Settings, MalformedValuesAreNamedOnceWithWhatIsAccepted) {
  const ChildResult child = in_child({{"BOSK_POLICY", "a b"},
                                      {"BOSK_PREEMPT_PERIOD", "soon"},
                                      {"BOSK_REDISTRIBUTE", "10us"},
                                      {"BOSK_IDENTITY", "mine"},
                                      {"BOSK_WORKERS", "0"},
                                      {"BOSK_WORKER_HOMES", "yes"},
                                      {"BOSK_SELFTEST", "x"}},
                                     [] {
                                       settings_text();
                                       return settings_text();
                                     });
  EXPECT_EQ(child.output, " 10000 0 0 0 0 00 - - -");
  EXPECT_EQ(
      child.errors,
      "bosk: BOSK_POLICY=a b is not a list of policies; accepted: NAME[:ARGUMENT][@LEVEL], "
      "NAME a policy or a file such as ./mine.so, several with commas between (bosk topo names the "
      "levels); using the default policy\n"
      "bosk: BOSK_PREEMPT_PERIOD=soon is not a period; accepted: a number with us, ms or s from "
      "100us to 10s, or off; using 10ms\n"
      "bosk: BOSK_REDISTRIBUTE=10us is not a period; accepted: a number with us, ms or s from "
      "100us to 10s, or off; using off\n"
      "bosk: BOSK_IDENTITY=mine is not a kind of identity; accepted: auto, strict, relaxed, "
      "kthread; using auto\n"
      "bosk: BOSK_WORKERS=0 is not a number of workers; accepted: 1 to 65536; using one per CPU "
      "of the affinity mask\n"
      "bosk: BOSK_WORKER_HOMES=yes is not a choice; accepted: auto, on, off; using auto\n"
      "bosk: BOSK_SELFTEST=x is not a self-test; accepted: fail-identity, move-teams; using none\n");
}

}  // namespace
}  // namespace bosk::omp
