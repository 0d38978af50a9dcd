// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file of objects: what is read of it, and which object an address belongs to.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "lab/plugin/objects.h"
#ifdef BOSK_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

namespace {

class LocalityObjects : public ::testing::Test {
 protected:
  LocalityObjects() {
    locality_objects_init(&objects_);
    std::string name = ::testing::TempDir() + "/objects.XXXXXX";
    const int fd = mkstemp(name.data());
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
  }
  ~LocalityObjects() override {
    locality_objects_free(&objects_);
    unlink(path_.c_str());
  }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void replace(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  void read() { locality_objects_read(&objects_, path_.c_str()); }
  std::string at(uint64_t address) {
    const unsigned object = locality_object_of(&objects_, address);
    return object == 0 ? "-" : objects_.names[object];
  }

  locality_objects objects_;
  std::string path_;
};

TEST_F(LocalityObjects, ReadsLines) {
  append("# name and place\n\n0x1000 256 grid of cells \n  8192\t0x10\tflags\r\n");
  read();
  EXPECT_EQ(at(0xfff), "-");
  EXPECT_EQ(at(0x1000), "grid of cells");
  EXPECT_EQ(at(0x10ff), "grid of cells");
  EXPECT_EQ(at(0x1100), "-");
  EXPECT_EQ(at(0x200f), "flags");
  EXPECT_EQ(objects_.bad_lines, 0u);
}

TEST_F(LocalityObjects, TheSameNameIsOneObject) {
  append("100 10 a\n200 10 b\n300 10 a\n");
  read();
  EXPECT_EQ(objects_.count, 3u);
  EXPECT_EQ(at(105), "a");
  EXPECT_EQ(at(305), "a");
}

TEST_F(LocalityObjects, LaterLinesHold) {
  append("100 100 old\n120 20 new\n190 30 tail\n");
  read();
  EXPECT_EQ(at(119), "old");
  EXPECT_EQ(at(120), "new");
  EXPECT_EQ(at(139), "new");
  EXPECT_EQ(at(140), "old");
  EXPECT_EQ(at(189), "old");
  EXPECT_EQ(at(190), "tail");
  append("0 1000 all\n");
  read();
  EXPECT_EQ(at(125), "all");
  EXPECT_EQ(objects_.range_count, 1u);
}

TEST_F(LocalityObjects, AHalfLineWaitsForItsEnd) {
  append("100 10 a\n200 1");
  read();
  EXPECT_EQ(at(200), "-");
  append("0 b\n");
  read();
  EXPECT_EQ(at(209), "b");
  EXPECT_EQ(objects_.bad_lines, 0u);
}

TEST_F(LocalityObjects, AFileThatStartsAgainReplacesTheRanges) {
  append("100 10 a\n200 10 b\n");
  read();
  replace("300 10 b\n");
  read();
  EXPECT_EQ(at(105), "-");
  EXPECT_EQ(at(305), "b");
  EXPECT_EQ(locality_object_of(&objects_, 305), 2u) << "there are counts under its number";
}

TEST_F(LocalityObjects, CountsWhatItDoesNotUnderstand) {
  append(
      "here 10 a\n100 10\n100 0 a\n100 ten a\n-1 10 a\n0xffffffffffffffff 10 a\n99999999999999999999 1 a\n");
  append("100 10 " + std::string(kMaxObjectName + 1, 'x') + "\n" + std::string(10000, 'y') + "\n");
  append("100 10 " + std::string(kMaxObjectName, 'x') + "\n");
  read();
  EXPECT_EQ(objects_.bad_lines, 9u);
  EXPECT_EQ(at(100), std::string(kMaxObjectName, 'x'));
}

TEST_F(LocalityObjects, TooManyNamesAreSaid) {
  for (int i = 1; i <= kMaxObjects; i++) {
    append(std::to_string(i * 100) + " 10 o" + std::to_string(i) + "\n");
  }
  read();
  EXPECT_EQ(objects_.bad_lines, 1u);
  EXPECT_EQ(at((kMaxObjects - 1) * 100), "o" + std::to_string(kMaxObjects - 1));
  EXPECT_EQ(at(kMaxObjects * 100), "-");
}

TEST_F(LocalityObjects, NoFileIsNoError) {
  locality_objects_read(&objects_, "/nowhere/objects.txt");
  EXPECT_EQ(objects_.count, 1u);
}

#ifdef BOSK_HAVE_RAPIDCHECK
// Against an array that remembers the last writer of every address.
RC_GTEST_FIXTURE_PROP(LocalityObjects, AgreesWithAPaintedArray, ()) {
  locality_objects_reset(&objects_);
  constexpr int kSize = 200;
  std::array<std::string, kSize> painted;
  painted.fill("-");
  const int count = *rc::gen::inRange(0, 120);
  for (int i = 0; i < count; i++) {
    const int start = *rc::gen::inRange(0, kSize);
    const int length = *rc::gen::inRange(1, kSize + 1 - start);
    const std::string name = "n" + std::to_string(*rc::gen::inRange(0, 20));
    const std::string line = std::to_string(start) + " " + std::to_string(length) + " " + name;
    locality_objects_line(&objects_, line.c_str());
    for (int at = start; at < start + length; at++) painted[static_cast<size_t>(at)] = name;
  }
  for (int at = 0; at < kSize; at++) {
    RC_ASSERT(this->at(static_cast<uint64_t>(at)) == painted[static_cast<size_t>(at)]);
  }
  for (size_t i = 1; i < objects_.range_count; i++) {
    RC_ASSERT(objects_.ranges[i - 1].end <= objects_.ranges[i].start);
  }
}
#endif

}  // namespace
