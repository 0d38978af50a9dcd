// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the kernel says of pages that it has moved, while their age is looked at.
#include "memory/next_touch/userfault.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace bosk::memory {
namespace {

constexpr size_t kPage = 4096;

class UserfaultMoves : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    uint64_t features;
    file_ = open_userfault(false, UFFD_FEATURE_SIGBUS | kFeatureMove, 0, &features);
    if (file_ < 0) GTEST_SKIP() << "this kernel cannot move pages, or does not allow it";
    for (char*& place : places_) {
      // With a fence: two mappings, not one.
      place = static_cast<char*>(
          mmap(nullptr, bytes_ + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_NE(place, MAP_FAILED);
      ASSERT_EQ(mprotect(place, bytes_, PROT_READ | PROT_WRITE), 0);
    }
    memset(places_[0], 1, bytes_);
    for (char* place : places_)
      ASSERT_EQ(userfault_register(file_, address(place), address(place) + bytes_,
                                   UFFDIO_REGISTER_MODE_MISSING),
                0);
  }
  void TearDown() override {
    for (char* place : places_)
      if (place != nullptr) munmap(place, bytes_ + kPage);
    if (file_ >= 0) close(file_);
  }
  static uintptr_t address(const char* at) { return reinterpret_cast<uintptr_t>(at); }

  const size_t bytes_ = GetParam() * kPage;
  int file_ = -1;
  char* places_[2] = {};
};

// Linux 6.18 says in some of 100,000 cases that there is a page already: the one that it has just moved.
TEST_P(UserfaultMoves, AreNotDeniedWhilePagesAreLookedAt) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (unsigned i = 0; !done.load(std::memory_order_relaxed); ++i)
      madvise(places_[i & 1], kPage, MADV_COLD);
  });
  constexpr int kMoves = 100'000;
  bool denied = false;
  for (int i = 0; i < kMoves && !denied; ++i) {
    char* const from = places_[i & 1];
    char* const to = places_[~i & 1];
    from[0] = static_cast<char>(i);  // it is young again
    // Locked for the moment; but never, nothing having been moved, that it is there.
    long result = -EAGAIN;
    for (size_t at = 0; result == -EAGAIN && at < bytes_;) {
      const auto move = i % 4 < 2 ? userfault_move : userfault_move_all;
      size_t moved;
      result = move(file_, address(to) + at, address(from) + at, bytes_ - at, &moved);
      at += moved;
    }
    denied = result != 0;
    EXPECT_EQ(result, 0) << "move " << i;
    if (!denied) {
      EXPECT_EQ(to[0], static_cast<char>(i));
    }
  }
  done.store(true, std::memory_order_relaxed);
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Pages, UserfaultMoves, ::testing::Values(1, 16),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace bosk::memory
