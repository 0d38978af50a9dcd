// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tests of migration share: a kernel that the test makes up, and memory of the real one.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "invented_machine.h"
#include "memory/huge_pages.h"
#include "memory/migration.h"
#include "memory/nodes.h"
#include "topology/source.h"

namespace bosk::memory::testing {
inline constexpr uintptr_t kPageSize = 4096;
inline constexpr uintptr_t kBase = uintptr_t{1} << 32;
inline constexpr uintptr_t kHuge = uintptr_t{2} << 20;

/// move_pages as do_pages_move() of Linux 6.1 to 6.18 does it: pages are queued until one has a status of its own or
/// another target; the queue is then tried as a whole, and the first that fails ends the call.
class FakeKernel {
 public:
  struct Page {
    int node = -1;  // -1: absent
    bool pinned = false;
    bool shared = false;
    int busy = 0;        // so many times
    uintptr_t huge = 0;  // key of the huge page that it is a part of
    bool locked = false;
    bool held = false;  // advice does nothing, and says nothing: the page is shared with a child
  };

  std::map<uintptr_t, Page> pages;
  std::map<int, long> room;  // free pages; no entry: plenty
  std::set<int> forbidden;
  long moves = 0;           // calls that moved
  long queries = 0;         // calls that asked
  unsigned long asked = 0;  // pages that they asked about
  unsigned long sent = 0;   // pages that were to move
  std::set<int>
      in_pieces;      // nodes without room for a whole huge page: it is taken apart on the way
  bool scans = true;  // as Linux since 6.7
  long splits = 0;
  std::set<uintptr_t> small_for_good;  // blocks with MADV_NOHUGEPAGE
  std::mutex lock;

  long advise(uintptr_t at, size_t bytes, int advice) {
    const std::lock_guard guard(lock);
    if (advice == MADV_NOHUGEPAGE) {
      EXPECT_EQ(bytes, kHuge);
      EXPECT_EQ(at % kHuge, 0u);
      small_for_good.insert(at);
      return 0;
    }
    EXPECT_EQ(advice, MADV_COLD);
    EXPECT_EQ(bytes, kPageSize);
    const auto found = pages.find(at);
    if (found == pages.end()) return -ENOMEM;
    if (found->second.locked) return -EINVAL;
    const uintptr_t huge = found->second.huge;
    if (huge == 0 || found->second.held) return 0;
    ++splits;
    for (auto& [key, page] : pages)
      if (page.huge == huge) page.huge = 0;
    return 0;
  }
  int is_huge(uintptr_t block) {
    const std::lock_guard guard(lock);
    if (!scans) return -1;
    const auto found = pages.find(block);
    return found != pages.end() && found->second.huge != 0 ? 1 : 0;
  }

  long call(unsigned long count, void** address, const int* nodes, int* status) {
    const std::lock_guard guard(lock);
    if (nodes == nullptr) {
      ++queries;
      asked += count;
      for (unsigned long i = 0; i < count; ++i) status[i] = where(address[i]);
      return 0;
    }
    ++moves;
    sent += count;
    std::vector<uintptr_t> queue;
    std::set<uintptr_t> isolated;  // huge pages
    unsigned long start = 0;
    int node = -1;
    const auto flush = [&](unsigned long end) -> long {
      if (queue.empty()) return 0;
      long failed = 0;
      bool full = false;
      for (const uintptr_t page : queue) {
        if (pages[page].pinned) {
          ++failed;
        } else if (room.contains(node) && room[node] == 0) {
          full = true;
          break;
        } else {
          put(page, node);
        }
      }
      queue.clear();
      isolated.clear();
      if (full) return -ENOMEM;
      if (failed != 0) return failed + static_cast<long>(count - end);
      for (unsigned long i = start; i < end; ++i) status[i] = node;
      return 0;
    };
    for (unsigned long i = 0; i < count; ++i) {
      if (forbidden.contains(nodes[i])) {
        const long answer = flush(i);
        return answer < 0 ? answer : -EACCES;
      }
      if (node == -1) {
        node = nodes[i];
        start = i;
      } else if (node != nodes[i]) {
        if (const long answer = flush(i); answer != 0) return answer;
        start = i;
        node = nodes[i];
      }
      const auto key = reinterpret_cast<uintptr_t>(address[i]);
      const auto found = pages.find(key);
      int code;
      if (found == pages.end() || found->second.node < 0) {
        code = -ENOENT;
      } else if (found->second.node == node) {
        code = node;
      } else if (found->second.shared) {
        code = -EACCES;
      } else if (found->second.busy > 0) {
        --found->second.busy;
        code = -EBUSY;
      } else if (found->second.huge != 0 && !isolated.insert(found->second.huge).second) {
        code = -EBUSY;
      } else {
        queue.push_back(key);
        continue;
      }
      status[i] = code;
      if (const long answer = flush(i); answer != 0) return answer;
      node = -1;
    }
    return flush(count);
  }

  int node_at(uintptr_t index) { return pages[kBase + index * kPageSize].node; }

 private:
  int where(void* address) {
    const auto found = pages.find(reinterpret_cast<uintptr_t>(address));
    return found == pages.end() || found->second.node < 0 ? -ENOENT : found->second.node;
  }
  void put(uintptr_t page, int node) {
    const uintptr_t huge = pages[page].huge;
    if (huge == 0) return put_one(pages[page], node);
    const bool apart = in_pieces.contains(node);
    for (auto& [key, other] : pages)
      if (other.huge == huge) {
        if (apart) other.huge = 0;
        if (!apart || !other.pinned) put_one(other, node);
      }
  }
  void put_one(Page& page, int node) {
    page.node = node;
    if (room.contains(node)) --room[node];
  }
};

inline FakeKernel* fake = nullptr;

/// Four nodes, the kernel's (the fake one's, that is) or invented ones. For good: the table keeps what was once in use.
inline const topology::Machine& four_nodes(bool of_the_kernel) {
  const auto make = [](bool this_system) {
    topology::Machine* machine = test::symmetric(4, 1, 2, 1).release();
    machine->this_system = this_system;
    return machine;
  };
  static const topology::Machine* const the_kernels = make(true);
  static const topology::Machine* const invented = make(false);
  return of_the_kernel ? *the_kernels : *invented;
}

/// The fake kernel is the one that is asked.
class Migrations : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(use_machine(four_nodes(true)));
    fake = &kernel_;
    set_move_pages([](unsigned long count, void** pages, const int* nodes, int* status) {
      return fake->call(count, pages, nodes, status);
    });
    static const HugePageCalls calls{
        [](uintptr_t at, size_t bytes, int advice) { return fake->advise(at, bytes, advice); },
        [](uintptr_t block) { return fake->is_huge(block); }};
    set_huge_page_calls(&calls);
  }
  void TearDown() override {
    set_move_pages(nullptr);
    set_huge_page_calls(nullptr);
    set_migration_crew(nullptr);
  }

  void fill(uintptr_t count, int node) {
    for (uintptr_t i = 0; i < count; ++i) page(i).node = node;
  }
  FakeKernel::Page& page(uintptr_t index) { return kernel_.pages[kBase + index * kPageSize]; }
  static void* at(uintptr_t index) { return reinterpret_cast<void*>(kBase + index * kPageSize); }

  FakeKernel kernel_;
};

/// The real kernel. With several nodes in the lab: tests/lab/CMakeLists.txt.
class RealMigration : public ::testing::Test {
 protected:
  static constexpr size_t kPages = 40'000;  // several batches

  void SetUp() override {
    topology::Error error;
    static const topology::Machine* machine = topology::load_machine({}, &error);
    ASSERT_NE(machine, nullptr) << error.text;
    machine_ = machine;
    ASSERT_TRUE(use_machine(*machine));
    int status = 0;
    void* page = &status;
    if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &status, MPOL_MF_MOVE) != 0)
      GTEST_SKIP() << "this kernel does not let us move pages: " << strerror(errno);
  }
  void TearDown() override {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  char* map(size_t pages, bool huge = false) {
    bytes_ = pages * kPageSize + (huge ? kHuge : 0);
    void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(made, MAP_FAILED);
    memory_ = static_cast<char*>(made);
    madvise(memory_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (!huge) return memory_;
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory_) + kHuge - 1) & -kHuge);
  }
  /// No page of zeros: when Linux 6.12 splits a huge page, such ones are absent afterwards.
  static void write(char* memory, size_t pages) {
    for (size_t i = 1; i <= pages; ++i)
      for (size_t at = 0; at < kPageSize; at += 512)
        memcpy(memory + (i - 1) * kPageSize + at, &i, sizeof i);
  }
  static bool is_written(const char* memory, size_t pages) {
    for (size_t i = 1; i <= pages; ++i)
      for (size_t at = 0; at < kPageSize; at += 512)
        if (memcmp(memory + (i - 1) * kPageSize + at, &i, sizeof i) != 0) return false;
    return true;
  }
  /// By the kernel's own word: how many of the pages are on the node.
  size_t pages_on(const char* memory, size_t pages, NodeIndex node) {
    std::vector<void*> addresses(pages);
    std::vector<int> status(pages);
    for (size_t i = 0; i < pages; ++i) addresses[i] = const_cast<char*>(memory) + i * kPageSize;
    EXPECT_EQ(syscall(SYS_move_pages, 0, pages, addresses.data(), nullptr, status.data(), 0), 0);
    return static_cast<size_t>(
        std::ranges::count(status, static_cast<int>(machine_->node_array[node].os_index)));
  }
  void move_to(char* memory, size_t pages, NodeIndex node) {
    migrate_pages(memory, pages * kPageSize, node);
    ASSERT_EQ(pages_on(memory, pages, node), pages);
  }

  const topology::Machine* machine_ = nullptr;
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace bosk::memory::testing
