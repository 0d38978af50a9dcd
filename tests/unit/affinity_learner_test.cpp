// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses from whoever has them: what is made of them, and files of them, whole and damaged.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "affinity/learner.h"
#include "affinity/recording.h"

namespace bosk::affinity {
namespace {

NodeOfCpu two_nodes() { return {{0, 0, 1, 1}, 2}; }

Access access(uint32_t thread, uint64_t address, uint16_t cpu, uint16_t space = 0) {
  return {1, address, thread, space, cpu, AccessKind::kWrite};
}

Access first_touch(uint32_t thread, uint64_t address, uint16_t cpu) {
  return {1, address, thread, 0, cpu, AccessKind::kFault};
}

TEST(Learner, ThreadsAreNumberedAsTheyAreSeen) {
  Learner learner(two_nodes());
  learner.add(access(700, 0, 0));
  learner.add(access(300, 100, 2));
  learner.add(access(700, 0, 3));
  ASSERT_EQ(learner.threads().size(), 2U);
  EXPECT_EQ(learner.threads()[0].number, 700U);
  EXPECT_EQ(learner.threads()[0].cpu, 3U) << "where it was seen last";
  EXPECT_EQ(learner.threads()[0].accesses, 2U);
  EXPECT_EQ(learner.matrix().at(0, 1), 2U);
  EXPECT_EQ(learner.pages().page(0)[0], 1U);
  EXPECT_EQ(learner.pages().page(0)[1], 2U);
}

TEST(Learner, AFirstTouchTellsWhoSharesAndNotWhoUses) {
  Learner learner(two_nodes());
  EXPECT_EQ(learner.add(first_touch(1, 0, 0)), kNoNode);
  EXPECT_TRUE(learner.pages().page(0).empty());
  EXPECT_EQ(learner.add(access(2, 0, 2)), kNoNode) << "one access is none by equation 6";
  EXPECT_EQ(learner.add(access(2, 0, 2)), 1U);
  EXPECT_EQ(learner.matrix().at(0, 1), 2U) << "the sub-block remembers both";
}

TEST(Learner, WhatWasLongAgoSaysLessToWhoActs) {
  Learner acts(two_nodes(), Learner::kRecentAccesses);
  Learner looks(two_nodes());
  for (int i = 0; i < 200; ++i) {
    acts.add(access(1, 0, 0));
    looks.add(access(1, 0, 0));
  }
  int needed = 0;
  while (acts.add(access(2, 0, 2)) != 1 && needed < 1000) ++needed;
  EXPECT_LE(needed, 2 * static_cast<int>(Learner::kRecentAccesses));
  int looked = 0;
  while (looks.add(access(2, 0, 2)) != 1 && looked < 1000) ++looked;
  EXPECT_GT(looked, 100);
}

TEST(Learner, AThreadsHomeIsTheNodeOfWhatItWritesTo) {
  Learner learner(NodeOfCpu{{0, 1, 2, 3}, 4}, Learner::kRecentAccesses);
  const auto write = [&](uint32_t thread, uint16_t cpu, uint64_t page, int times) {
    for (int i = 0; i < times; ++i)
      learner.add({1, page * 4096, thread, 1, cpu, AccessKind::kWrite});
  };
  // Thread 0 alone on node 2, threads 1 and 2 on two nodes with the same pages.
  for (uint64_t page = 0; page < 8; ++page) write(10, 2, page, 2);
  EXPECT_EQ(learner.home(0), kNoNode) << "eight accesses are few";
  for (uint64_t page = 0; page < 8; ++page) write(10, 2, page, 4);
  EXPECT_EQ(learner.home(0), 2U);
  for (int round = 0; round < 20; ++round)
    for (uint64_t page = 100; page < 108; ++page) {
      write(11, 0, page, 1);
      write(12, 3, page, 1);
    }
  EXPECT_EQ(learner.home(1), kNoNode);
  EXPECT_EQ(learner.home(2), kNoNode);
  // On another node it is still at home where its pages are, until these have been used there for longer.
  for (uint64_t page = 0; page < 8; ++page) write(10, 1, page, 1);
  EXPECT_EQ(learner.home(0), 2U);
  for (int round = 0; round < 20; ++round)
    for (uint64_t page = 0; page < 8; ++page) write(10, 1, page, 1);
  EXPECT_EQ(learner.home(0), 1U);
  // What was touched first says nothing.
  for (uint64_t page = 200; page < 300; ++page)
    learner.add({1, page * 4096, 13, 1, 1, AccessKind::kFault});
  EXPECT_EQ(learner.home(3), kNoNode);
}

TEST(Learner, TheSameAddressInAnotherSpaceIsAnotherPage) {
  Learner learner(two_nodes());
  learner.add(access(1, 4096, 0, 1));
  learner.add(access(2, 4096, 0, 2));
  EXPECT_EQ(learner.matrix().threads(), 0U);
  learner.add(access(2, 4096, 0, 1));
  EXPECT_EQ(learner.matrix().at(0, 1), 1U);
}

TEST(Learner, ANumberMayComeAgain) {
  Learner learner(two_nodes());
  learner.add(access(1, 0, 0));
  learner.thread_ended(1);
  learner.add(access(1, 0, 0));
  EXPECT_EQ(learner.threads().size(), 2U);
  EXPECT_EQ(learner.matrix().at(0, 1), 1U) << "two threads that bore one number";
}

TEST(Learner, ThreadsBeyondTheLimitCountForNodesOnly) {
  Learner learner(two_nodes());
  for (uint32_t thread = 0; thread < Learner::kMostMatrixThreads + 5; ++thread)
    learner.add(access(thread, uint64_t{thread} << 12, 0));
  learner.add(access(Learner::kMostMatrixThreads + 2, 0, 2));
  EXPECT_EQ(learner.threads().size(), Learner::kMostMatrixThreads);
  EXPECT_EQ(learner.of_unknown_threads(), 6U);
  EXPECT_EQ(learner.pages().page(0)[1], 1U);
}

TEST(Learner, AForgottenSpaceIsEmpty) {
  Learner learner(two_nodes());
  for (const uint16_t space : {uint16_t{3}, uint16_t{UINT16_MAX}}) {
    learner.add(access(1, kSpaceBytes - 1, 0, space));
    learner.add(access(1, 5 * 4096, 0, space));
    learner.forget(space, 0, kSpaceBytes - 1);
    EXPECT_TRUE(learner.pages().page(key_of(access(1, kSpaceBytes - 1, 0, space))).empty());
    EXPECT_TRUE(learner.pages().page(key_of(access(1, 5 * 4096, 0, space))).empty());
  }
}

TEST(Learner, UnknownCpusAreOnNoNodeAndNoPu) {
  Learner learner(two_nodes());
  learner.add(access(1, 0, kNoCpu));
  learner.add(access(2, 0, 99));
  EXPECT_EQ(learner.matrix().at(0, 1), 1U);
  EXPECT_TRUE(learner.pages().page(0).empty());
}

class Recording : public testing::Test {
 protected:
  Recording() {
    char name[] = "/tmp/bosk-recording-XXXXXX";
    close(mkstemp(name));
    path_ = name;
  }
  ~Recording() override { std::filesystem::remove(path_); }

  static RecordingHead head() {
    RecordingHead head;
    head.host = "here";
    head.program = "./app a\nb";
    head.source = "a test";
    head.nodes = two_nodes();
    return head;
  }
  static Access nth(uint32_t i) {
    return {i,
            uint64_t{i} * 4097,
            i % 7,
            static_cast<uint16_t>(i % 3),
            static_cast<uint16_t>(i % 4),
            AccessKind::kWrite};
  }
  void write(uint32_t accesses) const {
    RecordingWriter writer(path_, head());
    for (uint32_t i = 0; i < accesses; ++i) writer.add(nth(i));
    writer.thread_ended(5, 9);
    writer.finish();
  }
  RecordingCounts read() {
    seen_.clear();
    ended_.clear();
    return read_recording(path_, {[&](const Access& access) { seen_.push_back(access); },
                                  [&](uint32_t thread) { ended_.push_back(thread); }});
  }
  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void replace(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }
  std::string why_not() {
    try {
      read();
    } catch (const RecordingError& error) {
      return error.what();
    }
    return "";
  }

  std::string path_;
  std::vector<Access> seen_;
  std::vector<uint32_t> ended_;
};

TEST_F(Recording, ComesBackAsItWasWritten) {
  write(10000);
  const RecordingHead again = read_recording_head(path_);
  EXPECT_EQ(again.host, "here");
  EXPECT_EQ(again.program, "./app a?b") << "a head's line is one line";
  EXPECT_EQ(again.source, "a test");
  EXPECT_EQ(again.blind, "");
  EXPECT_EQ(again.nodes, two_nodes());
  const RecordingCounts counts = read();
  EXPECT_EQ(counts.good, 10001U);
  EXPECT_EQ(counts.bad, 0U);
  EXPECT_FALSE(counts.is_cut_off);
  ASSERT_EQ(seen_.size(), 10000U);
  for (uint32_t i = 0; i < 10000; ++i) {
    const Access wanted = nth(i);
    ASSERT_EQ(seen_[i].time_ns, wanted.time_ns);
    ASSERT_EQ(seen_[i].address, wanted.address);
    ASSERT_EQ(seen_[i].thread, wanted.thread);
    ASSERT_EQ(seen_[i].space, wanted.space);
    ASSERT_EQ(seen_[i].cpu, wanted.cpu);
    ASSERT_EQ(seen_[i].kind, wanted.kind);
  }
  EXPECT_EQ(ended_, std::vector<uint32_t>{5});
}

TEST_F(Recording, EachDamagedByteIsNoticed) {
  write(20);
  const std::string whole = contents();
  const size_t records = whole.find("\n\n") + 2;
  for (size_t at = records; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    replace(damaged);
    const RecordingCounts counts = read();
    ASSERT_EQ(counts.bad, 1U) << at - records;
    ASSERT_EQ(counts.good, 20U);
  }
}

TEST_F(Recording, OneThatIsCutOffGivesWhatThereIs) {
  write(20);
  replace(contents().substr(0, contents().size() - 33));
  const RecordingCounts counts = read();
  EXPECT_TRUE(counts.is_cut_off);
  EXPECT_EQ(counts.good, 19U);
}

TEST_F(Recording, ZerosOfAFileSystemAreNoRecords) {
  write(3);
  replace(contents() + std::string(2 * 32, '\0'));
  EXPECT_EQ(read().bad, 2U);
  replace(contents() + std::string(1024, '\0'));
  EXPECT_NE(why_not().find("most of its records are damaged"), std::string::npos);
}

TEST_F(Recording, WhatIsNoneSaysSo) {
  for (const char* text : {"", "\n", "hello",
                           "\x7f"
                           "ELF\n\n"}) {
    replace(text);
    EXPECT_NE(why_not().find("not a recording"), std::string::npos) << text;
  }
  replace("bosk-accesses 2\n\n");
  EXPECT_NE(why_not().find("another version"), std::string::npos);
  replace("bosk-accesses 1\nhost: x\n");
  EXPECT_NE(why_not().find("ends within its head"), std::string::npos);
  replace("bosk-accesses 1\nhost: x\n\n");
  EXPECT_NE(why_not().find("no line \"cpus: \""), std::string::npos);
  for (const char* cpus : {"0", "0=", "x=1", "0=99999", "65535=0", "0=0,1=0"}) {
    replace(std::string("bosk-accesses 1\ncpus: ") + cpus + "\n\n");
    EXPECT_NE(why_not().find("a damaged head"), std::string::npos) << cpus;
  }
  // A line without an end must not be read into memory whole.
  replace("bosk-accesses 1\nhost: " + std::string(size_t{3} << 20, 'x'));
  EXPECT_NE(why_not().find("ends within its head"), std::string::npos);
  std::filesystem::remove(path_);
  EXPECT_NE(why_not().find("No such file"), std::string::npos);
}

TEST_F(Recording, AFullDiskIsSaid) {
  try {
    RecordingWriter writer("/dev/full", head());
    for (uint32_t i = 0; i < 1000; ++i) writer.add(nth(i));
    writer.finish();
    FAIL() << "nothing was said";
  } catch (const RecordingError& error) {
    EXPECT_NE(std::string(error.what()).find("not whole"), std::string::npos);
  }
}

}  // namespace
}  // namespace bosk::affinity
