// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Soft-dirty marks of a child that writes where it is told to. (lab.learnt_older runs this on Debian's kernel.)
#include "affinity/observer/soft_dirty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "affinity/observer/fault_events.h"
#include "child_process.h"

namespace bosk::affinity {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHuge = size_t{2} << 20;

class SoftDirtyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!SoftDirty::is_there()) GTEST_SKIP() << "no soft-dirty marks in this kernel";
    ASSERT_EQ(pipe(to_.data()), 0);
    ASSERT_EQ(pipe(from_.data()), 0);
  }
  void TearDown() override {
    for (const auto& each : {to_, from_})
      for (const int end : each) close(end);
  }

  /// A child with memory at `begin`, all touched, that writes to one page after the other when it is told to. `advice`: of its memory.
  void start(size_t bytes, int advice) {
    const size_t with_room = bytes + kHuge;
    void* const at =
        mmap(nullptr, with_room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    madvise(at, with_room, advice);
    begin_ = (reinterpret_cast<uint64_t>(at) + kHuge - 1) / kHuge * kHuge;
    child_ = std::make_unique<Child>([&] {
      const auto write_all = [&] {
        for (size_t i = 0; i < bytes; i += kPage) *reinterpret_cast<volatile char*>(begin_ + i) = 1;
      };
      write_all();
      Child::say_ready();
      for (char word; read(to_[0], &word, 1) == 1;) {
        if (word == 'w') write_all();
        if (word == 'o') (void)!open("/proc/self/clear_refs", O_WRONLY);
        if (write(from_[1], &word, 1) != 1) return;
      }
    });
    munmap(at, with_room);
    std::string why;
    const pid_t number = child_->number();
    events_ = FaultEvents::open({&number, 1}, &why);
    if (!events_) GTEST_SKIP() << why;
    marks_ = std::make_unique<SoftDirty>(child_->number());
    bytes_ = bytes;
  }
  void tell(char word) {
    ASSERT_EQ(write(to_[1], &word, 1), 1);
    ASSERT_EQ(read(from_[0], &word, 1), 1);
  }
  /// Faults in its memory since the last call, by what they are taken for.
  std::array<size_t, 3> faults() {
    std::array<size_t, 3> found = {};
    events_->drain({[&](const FaultEvents::Fault& fault) {
                      if (fault.address < begin_ || fault.address >= begin_ + bytes_) return;
                      ++found.at(static_cast<size_t>(marks_->fault_at(fault.address)));
                    },
                    [](uint32_t, uint32_t, uint32_t) {}, [](uint32_t) {}});
    return found;
  }

  std::array<int, 2> to_ = {-1, -1};
  std::array<int, 2> from_ = {-1, -1};
  std::unique_ptr<Child> child_;
  std::unique_ptr<FaultEvents> events_;
  std::unique_ptr<SoftDirty> marks_;
  uint64_t begin_ = 0;
  size_t bytes_ = 0;
};

using Found = std::array<size_t, 3>;

TEST_F(SoftDirtyTest, TheFirstWriteToEachPageFaultsAndIsKnownForOne) {
  constexpr size_t kPages = 64;
  start(kPages * kPage, MADV_NOHUGEPAGE);
  if (IsSkipped()) return;
  EXPECT_GE(marks_->expected_faults(), double{kPages});
  EXPECT_TRUE(marks_->is_any_use());
  ASSERT_TRUE(marks_->clear());
  EXPECT_FALSE(marks_->is_any_use());
  tell('w');
  // They were there, but who was to know?
  EXPECT_EQ(faults(), (Found{kPages, 0, 0}));
  tell('w');
  EXPECT_EQ(faults(), (Found{0, 0, 0}));
  EXPECT_TRUE(marks_->is_any_use());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(marks_->clear());
    EXPECT_EQ(marks_->expected_faults(), double{kPages});
    tell('w');
    EXPECT_EQ(faults(), (Found{0, kPages, 0}));
  }
}

TEST_F(SoftDirtyTest, AHugePageIsSplitToSeeItsPartsAndJoined) {
  start(kHuge, MADV_HUGEPAGE);
  if (IsSkipped()) return;
  if (!marks_->is_in_huge_page(begin_)) GTEST_SKIP() << "no huge page, or one may not know";
  ASSERT_TRUE(marks_->clear());
  tell('w');
  EXPECT_EQ(faults(), (Found{1, 0, 0}));
  ASSERT_TRUE(marks_->clear());
  tell('w');
  if (marks_->split() == 0) GTEST_SKIP() << "it may not be split";
  EXPECT_EQ(faults(), (Found{0, kHuge / kPage, 0}));
  EXPECT_TRUE(marks_->is_in_huge_page(begin_)) << "it will be one again";
  marks_->finish();
  EXPECT_EQ(marks_->joined(), 1U);
  EXPECT_TRUE(marks_->is_in_huge_page(begin_));
}

TEST_F(SoftDirtyTest, WhoLooksAtItsMarksItselfKeepsThem) {
  start(kPage, MADV_NOHUGEPAGE);
  if (IsSkipped()) return;
  EXPECT_FALSE(uses_soft_dirty(child_->number()));
  tell('o');
  EXPECT_TRUE(uses_soft_dirty(child_->number()));
  EXPECT_FALSE(marks_->clear());
}

}  // namespace
}  // namespace bosk::affinity
