// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who migrates: the asker and workers, first of the target node, whoever asks; and nobody waits for a worker. The
// kernel is made up: its move_pages says who calls.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "in_child.h"
#include "memory/migration.h"
#include "omp/team.h"
#include "sched/scheduler.h"
#include "threads/home.h"
#include "threads/migration_crew.h"
#include "threads/operations.h"

namespace bosk::threads {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 5 * 4096 + 17;
constexpr uint32_t kNode = 1;  // of two, with two PUs each

const std::vector<std::pair<std::string, std::string>> kTwoNodes = {
    {"BOSK_SYNTHETIC", "node:2 core:2 pu:1"}, {"BOSK_WORKERS", "4"}};

std::atomic<uint64_t> looked_at{0};
std::atomic<bool> helped{false};
std::atomic<uint64_t> helped_at_node{0};  // calls
std::atomic<bool> wait_for_help{false};
pthread_t asker;

bool plays_worker_of_node() {
  const sched::Thread* me = context::self();
  const Home* h = home();
  if (me == nullptr || h == nullptr || me->worker == nullptr || me->worker->pool != h->pool)
    return false;
  return h->machine->node_of_pu(sched::pu_of_worker(*h->machine, me->worker->index)) == kNode;
}

/// All pages are there. The asker's first call returns when somebody else has come as well: if nobody does, the test
/// does not end. Where the node's workers are long in coming, on a crowded machine, others may have done it all.
long all_there(unsigned long count, void** pages, const int* nodes, int* status) {
  // Samples, which come before, have gaps.
  const auto* first = static_cast<const char*>(pages[0]);
  if (nodes == nullptr && count > 1 && pages[1] == first + kPage) looked_at.fetch_add(count);
  if (pthread_equal(pthread_self(), asker) == 0) {
    if (plays_worker_of_node()) helped_at_node.fetch_add(1);
    helped.store(true);
  } else if (wait_for_help.load()) {
    while (!helped.load()) sched_yield();
  }
  const int there = memory::kernel_node_of(kNode);
  for (unsigned long i = 0; i < count; ++i) status[i] = there;
  return 0;
}

/// Addresses that nobody touches: the kernel that is made up does not look either.
void* range() {
  static void* const at =
      mmap(nullptr, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at;
}

/// True: all pages were looked at once.
bool migrate(bool must_be_helped) {
  looked_at.store(0);
  helped.store(false);
  wait_for_help.store(must_be_helped);
  asker = pthread_self();
  const memory::Moved moved = memory::migrate_pages(range(), kPages * kPage, kNode);
  return moved == memory::Moved{.already = kPages} && looked_at.load() == kPages &&
         (!must_be_helped || helped.load());
}

void use_crew() {
  // The machine as the process sees it; the home reads the same one.
  bosk_thread_t first;
  create_thread(&first, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  join_thread(first, nullptr);
  if (!memory::use_machine(*home()->machine)) _exit(2);
  memory::set_move_pages(all_there);
  memory::set_migration_crew(migration_crew());
}

/// 0: all was well.
template <typename Body>
std::string on_two_nodes(Body body) {
  const auto result = bosk::testing::in_child(kTwoNodes, [&] { return std::to_string(body()); });
  return result.status == 0 ? result.output : "no answer: " + result.errors;
}
#define IN_TWO_NODES(...) EXPECT_EQ(on_two_nodes(__VA_ARGS__), "0")

TEST(MigrationCrew, WorkersOfTheNodeHelpMain) {
  IN_TWO_NODES([] {
    use_crew();
    for (int i = 0; i < 20 || helped_at_node.load() == 0; ++i)
      if (!migrate(true)) return 1;
    return 0;
  });
}

TEST(MigrationCrew, AThreadOfTheHomeIsHelped) {
  IN_TWO_NODES([] {
    use_crew();
    bosk_thread_t thread;
    void* good = nullptr;
    create_thread(
        &thread, nullptr, [](void*) -> void* { return migrate(true) ? &looked_at : nullptr; },
        nullptr);
    join_thread(thread, &good);
    return good != nullptr ? 0 : 1;
  });
}

TEST(MigrationCrew, AForeignThreadIsHelped) {
  IN_TWO_NODES([] {
    use_crew();
    bool good = false;
    std::thread foreign([&] { good = migrate(true); });
    foreign.join();
    return good ? 0 : 1;
  });
}

/// All workers are busy with members that wait for the migration: it must not wait for them.
TEST(MigrationCrew, InARegionOfAllWorkersTheAskerIsEnough) {
  IN_TWO_NODES([] {
    use_crew();
    static std::atomic<int> done{0};
    static std::atomic<bool> good{false};
    for (int i = 1; i <= 20; ++i) {
      omp::parallel(
          [](void*) {
            static std::atomic<int> arrived{0};
            const int mine = arrived.fetch_add(1);
            if (mine % 4 == 0) {
              good.store(migrate(false));
              done.fetch_add(1);
            }
            while (done.load() <= mine / 4) sched_yield();
          },
          nullptr, 4, 0);
      if (!good.load()) return 1;
    }
    return 0;
  });
}

/// One has no workers to lend it: it does all by itself.
TEST(MigrationCrew, AForeignThreadWithoutAHomeIsAlone) {
  IN_TWO_NODES([] {
    memory::set_move_pages(all_there);
    memory::set_migration_crew(migration_crew());
    bool good = false;
    std::thread foreign([&] { good = migrate(false) && home() == nullptr && !helped.load(); });
    foreign.join();
    return good ? 0 : 1;
  });
}

TEST(MigrationCrew, WithPreemptionOffTheAskerIsAlone) {
  IN_TWO_NODES([] {
    use_crew();
    context::preempt_disable();
    const bool good = migrate(false) && !helped.load();
    context::preempt_enable();
    return good ? 0 : 1;
  });
}

TEST(MigrationCrew, AForkedChildHasACrewOfItsOwn) {
  IN_TWO_NODES([] {
    use_crew();
    if (!migrate(true)) return 1;
    const pid_t child = fork();
    if (child == 0) _exit(migrate(true) && migrate(true) ? 0 : 1);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 2;
    return migrate(true) ? 0 : 3;
  });
}

TEST(MigrationCrew, ManyAskAtOnce) {
  IN_TWO_NODES([] {
    use_crew();
    static std::atomic<int> wrong{0};
    wait_for_help.store(false);
    const auto ask = [] {
      for (int i = 0; i < 50; ++i)
        if (memory::migrate_pages(range(), kPages * kPage, kNode) !=
            memory::Moved{.already = kPages})
          wrong.fetch_add(1);
    };
    std::thread foreign(ask);
    omp::parallel([](void* data) { (*static_cast<decltype(ask)*>(data))(); },
                  const_cast<void*>(static_cast<const void*>(&ask)), 6, 0);
    foreign.join();
    return wrong.load();
  });
}

}  // namespace
}  // namespace bosk::threads
