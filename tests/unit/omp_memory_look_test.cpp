// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "omp/memory_look.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace bosk::omp {
namespace {

TEST(OmpMemoryLook, LinesOfOwnMemoryAreAddedByNode) {
  OwnMemory memory;
  add_numa_line("7f10 default anon=12 dirty=12 N0=10 N3=2 kernelpagesize_kB=4", &memory);
  add_numa_line("7f20 interleave:0-3 anon=1 dirty=1 N1=1 kernelpagesize_kB=2048", &memory);
  add_numa_line("7f30 default file=/lib/N9=5/x.so mapped=5 N0=5 kernelpagesize_kB=4", &memory);
  add_numa_line("7f40 default heap anon=1 dirty=1 active=0 N0=1", &memory);
  add_numa_line("", &memory);
  EXPECT_EQ(memory.nodes, 4u);
  EXPECT_EQ(memory.of_node[0], 11u * 4096);
  EXPECT_EQ(memory.of_node[1], 2u << 20);
  EXPECT_EQ(memory.of_node[2], 0u);
  EXPECT_EQ(memory.of_node[3], 2u * 4096);
}

TEST(OmpMemoryLook, NodesBeyondTheLastAreTheLast) {
  OwnMemory memory;
  add_numa_line("7f10 default anon=2 N63=1 N1000=1 kernelpagesize_kB=4", &memory);
  EXPECT_EQ(memory.nodes, OwnMemory::kNodes);
  EXPECT_EQ(memory.of_node[OwnMemory::kNodes - 1], 2u * 4096);
}

TEST(OmpMemoryLook, TheMostIsKept) {
  constexpr uint64_t kSecond = 1'000'000'000;
  constexpr size_t kBytes = 32 << 20;
  MemoryLook look;
  // Too young.
  look.look(kSecond, kSecond + 1);
  EXPECT_EQ(look.most().all, 0u);
  void* block = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  for (size_t at = 0; at < kBytes; at += 512) static_cast<volatile char*>(block)[at] = 1;
  look.look(0, kSecond);
  munmap(block, kBytes);
  EXPECT_GE(look.most().all, kBytes);
  const uint64_t most = look.most().all;
  look.look(0, uint64_t{1} << 62);
  EXPECT_EQ(look.most().all, most);
}

}  // namespace
}  // namespace bosk::omp
