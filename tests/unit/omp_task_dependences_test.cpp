// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dependences: random clause lists in both layouts, checked pair by pair against the rules.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "omp/dependences.h"
#include "omp_task_support.h"

namespace bosk::omp {
namespace {

enum Kind { kIn = 1, kOut = 2, kInout = 3, kMutexinoutset = 4, kInoutset = 5 };

struct Clause {
  int address;  ///< -1: all memory
  Kind kind;
};

struct DependObject {
  void* address;
  uintptr_t kind;
};

/// What the compiler would pass.
struct Encoded {
  std::vector<void*> words;
  std::vector<DependObject> objects;
};

char memory[64];

void* word(uintptr_t value) { return reinterpret_cast<void*>(value); }
void* address_of(const Clause& clause) {
  return clause.address < 0 ? nullptr : &memory[clause.address * 8];
}

Encoded encode(const std::vector<Clause>& clauses, bool use_objects) {
  Encoded e;
  std::vector<void*> outs, exclusives, ins;
  for (const Clause& c : clauses) {
    const bool must = c.kind == kInoutset || c.address < 0;
    if (must || (use_objects && c.address % 2 == 0)) {
      e.objects.push_back({address_of(c), static_cast<uintptr_t>(c.kind)});
    } else if (c.kind == kIn) {
      ins.push_back(address_of(c));
    } else if (c.kind == kMutexinoutset) {
      exclusives.push_back(address_of(c));
    } else {
      outs.push_back(address_of(c));
    }
  }
  if (exclusives.empty() && e.objects.empty()) {
    e.words = {word(clauses.size()), word(outs.size())};
    if (clauses.empty()) e.words = {nullptr, nullptr, nullptr, nullptr, nullptr};
  } else {
    e.words = {nullptr, word(clauses.size()), word(outs.size()), word(exclusives.size()),
               word(ins.size())};
  }
  for (const auto* list : {&outs, &exclusives, &ins})
    e.words.insert(e.words.end(), list->begin(), list->end());
  for (DependObject& object : e.objects) e.words.push_back(&object);
  return e;
}

std::map<int, Kind> merged(const std::vector<Clause>& clauses) {
  std::map<int, Kind> result;
  for (const Clause& c : clauses) {
    auto [at, fresh] = result.insert({c.address, c.kind});
    if (!fresh && at->second != c.kind) at->second = kOut;
  }
  return result;
}

bool conflict(const std::vector<Clause>& a, const std::vector<Clause>& b) {
  const auto left = merged(a);
  const auto right = merged(b);
  if (left.empty() || right.empty()) return false;
  if (left.count(-1) != 0 || right.count(-1) != 0) return true;
  for (const auto& [address, kind] : left) {
    const auto other = right.find(address);
    if (other == right.end()) continue;
    if (kind == kIn && other->second == kIn) continue;
    if (kind == kInoutset && other->second == kInoutset) continue;
    return true;
  }
  return false;
}

struct Record {
  std::vector<Clause> clauses;
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
};

class Dependences : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, Dependences, testing::Values(1, 2, 4, 8));

/// Creates `tasks` children of the current task, and sometimes waits in between.
void create_random(std::mt19937& random, int tasks, int addresses, bool extremes) {
  std::vector<Record> records(tasks);
  std::atomic<int> clock{0};
  for (int i = 0; i < tasks; ++i) {
    Record& record = records[i];
    const int count = static_cast<int>(random() % 4) + (random() % 20 == 0 ? 12 : 0);
    for (int k = 0; k < count; ++k)
      record.clauses.push_back(
          {static_cast<int>(random() % addresses), static_cast<Kind>(1 + random() % 5)});
    if (extremes && random() % 15 == 0) record.clauses.push_back({-1, kInout});
    Encoded e = encode(record.clauses, random() % 2 == 0);
    const unsigned how = random() % 12;
    if (how == 0 && !record.clauses.empty()) {
      // A wait as an undeferred task would do it.
      if (DependenceNode* node =
              current_task()->dependences != nullptr
                  ? current_task()->dependences->probe(current_member()->queue, e.words.data())
                  : nullptr)
        wait_for_node(current_thread(), node);
      record.started = record.ended = ++clock;
    } else {
      std::atomic<int>* now = &clock;
      Record* mine = &record;
      const int work = static_cast<int>(random() % 300);
      TaskOptions options;
      options.deferrable = how != 1;
      if (!record.clauses.empty()) {
        options.flags = kTaskDepend;
        options.depend = e.words.data();
      }
      task(
          [now, mine, work] {
            mine->started = ++*now;
            for (int k = 0; k < work; ++k) asm volatile("");
            mine->ended = ++*now;
          },
          options);
      if (how == 1) {
        EXPECT_NE(record.ended.load(), 0);
      }
    }
    if (how == 2 && random() % 4 == 0) wait_for_children();
    e.words.assign(e.words.size(), word(0xdead));  // only valid during the call
  }
  wait_for_children();
  for (int j = 0; j < tasks; ++j) {
    ASSERT_NE(records[j].ended.load(), 0) << "task " << j << " did not run";
    for (int i = 0; i < j; ++i) {
      if (!conflict(records[i].clauses, records[j].clauses)) continue;
      ASSERT_LT(records[i].ended.load(), records[j].started.load())
          << "task " << j << " did not wait for task " << i;
    }
  }
}

TEST_P(Dependences, ConflictingTasksKeepTheirOrder) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    single_region(GetParam(), [&] {
      std::mt19937 random(seed);
      create_random(random, 150, 1 + static_cast<int>(seed % 7), seed % 2 == 0);
    });
  }
}

TEST_P(Dependences, EveryTaskHasATableOfItsOwn) {
  single_region(GetParam(), [&] {
    for (unsigned i = 0; i < 8; ++i)
      task([i] {
        std::mt19937 random(100 + i);
        create_random(random, 60, 3, true);
      });
  });
}

TEST_P(Dependences, ManyReadersBetweenWriters) {
  constexpr int kReaders = 1000;
  int value = 0;
  std::atomic<int> wrong{0};
  std::atomic<int> reads{0};
  single_region(GetParam(), [&] {
    for (int round = 0; round < 5; ++round) {
      void* out[] = {word(1), word(1), &value};
      void* in[] = {word(1), word(0), &value};
      task([&value, round] { value = round + 1; }, {.flags = kTaskDepend, .depend = out});
      for (int i = 0; i < kReaders; ++i)
        task(
            [&value, &wrong, &reads, round] {
              if (value != round + 1) wrong.fetch_add(1);
              reads.fetch_add(1);
            },
            {.flags = kTaskDepend, .depend = in});
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(reads.load(), 5 * kReaders);
}

TEST_P(Dependences, AnEventReleasesSuccessors) {
  int order = 0;
  single_region(GetParam(), [&] {
    for (int round = 0; round < 20; ++round) {
      order = 0;
      void* depend[] = {word(1), word(1), &order};
      uintptr_t event = 0;
      detached_task(&event, [&order](uintptr_t) { __atomic_store_n(&order, 1, __ATOMIC_RELEASE); },
                    {.flags = kTaskDepend, .depend = depend});
      task(
          [&order] {
            EXPECT_EQ(order, 2);
            order = 3;
          },
          {.flags = kTaskDepend, .depend = depend});
      // The body may have run, the task is not complete; its successor must not start.
      while (__atomic_load_n(&order, __ATOMIC_ACQUIRE) == 0) run_one_descendant(current_thread());
      __atomic_store_n(&order, 2, __ATOMIC_RELEASE);
      fulfill_event(event);
      wait_for_children();
      EXPECT_EQ(order, 3);
    }
  });
}

TEST(DependenceTable, UsesMemoryForLivingTasksOnly) {
  region(1, [&](uint32_t) {
    // Ever new addresses, each task complete before the next: entries of ended tasks go.
    static char many[200000];
    int ran = 0;
    for (char& address : many) {
      void* depend[] = {word(1), word(1), &address};
      task([&ran] { ++ran; }, {.flags = kTaskDepend, .depend = depend});
      if ((&address - many) % 64 == 63) wait_for_children();
    }
    wait_for_children();
    EXPECT_TRUE(current_task()->dependences->empty());
    EXPECT_EQ(ran, 200000);
  });
}

TEST(DependenceList, ReadsBothLayouts) {
  void* a = &memory[0];
  void* b = &memory[8];
  void* c = &memory[16];
  void* old_form[] = {word(3), word(2), a, b, c};
  const DependenceList old_list(old_form);
  ASSERT_EQ(old_list.size(), 3u);
  EXPECT_EQ(old_list.kind(0), DependenceKind::kOut);
  EXPECT_EQ(old_list.kind(1), DependenceKind::kOut);
  EXPECT_EQ(old_list.kind(2), DependenceKind::kIn);
  EXPECT_EQ(old_list.address(2), reinterpret_cast<uintptr_t>(c));
  DependObject object{c, kInoutset};
  void* new_form[] = {nullptr, word(4), word(1), word(1), word(1), a, b, a, &object};
  const DependenceList new_list(new_form);
  ASSERT_EQ(new_list.size(), 4u);
  EXPECT_EQ(new_list.kind(1), DependenceKind::kOut);
  EXPECT_EQ(new_list.kind(2), DependenceKind::kIn);
  EXPECT_EQ(new_list.kind(3), DependenceKind::kInoutset);
  EXPECT_EQ(new_list.address(3), reinterpret_cast<uintptr_t>(c));
}

}  // namespace
}  // namespace bosk::omp
