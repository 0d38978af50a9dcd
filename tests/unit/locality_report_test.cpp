// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From accesses to the two files: counts, the cache model between them, JSON that a parser takes, text.
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lab/plugin/report.h"

namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class LocalityReport : public ::testing::Test {
 protected:
  LocalityReport() {
    std::string name = ::testing::TempDir() + "/locality.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~LocalityReport() override {
    if (started_) locality_session_free(&session_);
    for (const std::string& file : files()) unlink((folder_ + "/" + file).c_str());
    rmdir(folder_.c_str());
  }
  /// Two nodes of two CPUs and 1 GiB.
  void start(bool objects = false, locality_cache_shape one = {0, 0},
             locality_cache_shape two = {0, 0}) {
    locality_address_map map;
    ASSERT_EQ(locality_map_parse(&map, "0-1/2-3", "1024/1024"), nullptr);
    started_ = locality_session_init(&session_, &map, objects, 64, one, two);
    ASSERT_TRUE(started_);
  }
  void access(unsigned cpu, uint64_t address, unsigned bytes, bool store) {
    locality_session_access(&session_, cpu, address, address,
                            locality_node_of(&session_.map, address), bytes, store);
  }
  void write(unsigned run = 1, bool complete = true) {
    const locality_report report{&session_, run, complete};
    ASSERT_TRUE(locality_report_write(&report, folder_.c_str()));
  }
  std::string content(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }
  Json json(const std::string& name = "locality.json") { return Json::parse(content(name)); }
  std::vector<std::string> files() {
    std::vector<std::string> names;
    DIR* folder = opendir(folder_.c_str());
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(folder);
    return names;
  }

  static constexpr uint64_t kNode1 = uint64_t{1} << 30;
  locality_session session_{};
  bool started_ = false;
  std::string folder_;
};

TEST_F(LocalityReport, CountsByNodes) {
  start();
  for (int i = 0; i < 3; i++) access(0, 0x1000, 8, false);
  access(1, kNode1, 4, false);
  access(2, 0x1000, 16, true);
  access(3, kNode1, 1, true);
  access(3, kNode1 * 2, 8, true);
  write();
  const Json result = json();
  EXPECT_EQ(result["loads"]["times"], Json::parse("[[3, 1], [0, 0]]"));
  EXPECT_EQ(result["loads"]["bytes"], Json::parse("[[24, 4], [0, 0]]"));
  EXPECT_EQ(result["stores"]["times"], Json::parse("[[0, 0], [1, 1]]"));
  EXPECT_EQ(result["stores"]["nowhere"], Json::parse("[0, 1]"));
  EXPECT_DOUBLE_EQ(result["local_share"], 0.666667);
  EXPECT_DOUBLE_EQ(result["local_share_of_bytes"], 0.555556);
  EXPECT_EQ(result["unit"], "accesses");
  EXPECT_TRUE(result["caches"].is_null());
  EXPECT_EQ(result["complete"], true);
  EXPECT_EQ(result["nodes"][1]["cpus"], Json::parse("[2, 3]"));
  EXPECT_EQ(result["nodes"][1]["check"], "unchecked");
  const std::string text = content("locality.txt");
  EXPECT_THAT(text, HasSubstr("local:  66.67 % of 6 accesses, 55.56 % of 45 bytes"));
  EXPECT_THAT(text, HasSubstr("in no node's memory: 1"));
}

TEST_F(LocalityReport, NothingCountedIsUnknownAndNotZero) {
  start();
  write();
  EXPECT_TRUE(json()["local_share"].is_null());
  EXPECT_THAT(content("locality.txt"), HasSubstr("local:        - of 0 accesses"));
}

TEST_F(LocalityReport, GroupsDigits) {
  start();
  locality_cells(&session_, 0, 0)[0].times = 1234567;
  locality_cells(&session_, 0, 0)[1].times = 1000;
  write();
  const std::string text = content("locality.txt");
  EXPECT_THAT(text, HasSubstr(" 1,234,567 "));
  EXPECT_THAT(text, HasSubstr(" 1,000 "));
}

TEST_F(LocalityReport, CountsByObjects) {
  start(true);
  locality_objects_line(&session_.objects, "0x1000 0x100 a \"quoted\" name\\");
  locality_objects_line(&session_.objects, "0x2000 0x100 b\x01\xe9");
  access(0, 0x1000, 8, false);
  access(2, 0x1000, 8, true);
  access(0, 0x2000, 8, false);
  access(0, 0x3000, 8, false);
  write();
  const Json result = json();
  EXPECT_EQ(result["loads"]["times"], Json::parse("[[3, 0], [0, 0]]")) << "all objects together";
  const Json& objects = result["objects"];
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0]["name"], "a \"quoted\" name\\");
  EXPECT_EQ(objects[0]["ranges"], Json::parse("[[4096, 256]]"));
  EXPECT_EQ(objects[0]["stores"]["times"], Json::parse("[[0, 0], [1, 0]]"));
  EXPECT_DOUBLE_EQ(objects[0]["local_share"], 0.5);
  EXPECT_EQ(objects[1]["name"], "b\x01\xc3\xa9");
  EXPECT_TRUE(objects[2]["name"].is_null());
  EXPECT_EQ(objects[2]["loads"]["times"], Json::parse("[[1, 0], [0, 0]]"));
  EXPECT_THAT(content("locality.txt"), HasSubstr("(everything else)"));
}

TEST_F(LocalityReport, CachesLetOnlyMissesThrough) {
  start(false, {512, 8}, {1024, 16});
  for (int turn = 0; turn < 4; turn++) {
    for (uint64_t line = 0; line < 4; line++) access(0, kNode1 + line * 64, 8, false);
  }
  access(1, kNode1, 8, true);
  access(2, kNode1, 8, false);
  write();
  const Json result = json();
  EXPECT_EQ(result["unit"], "lines");
  EXPECT_EQ(result["loads"]["times"], Json::parse("[[0, 4], [0, 1]]"));
  EXPECT_EQ(result["loads"]["bytes"], Json::parse("[[0, 256], [0, 64]]"));
  EXPECT_EQ(result["stores"]["times"], Json::parse("[[0, 0], [0, 0]]")) << "the line was there";
  EXPECT_EQ(result["write_backs"]["times"], Json::parse("[[0, 1], [0, 0]]"));
  EXPECT_EQ(result["caches"]["private"], Json::parse(R"({"bytes": 512, "ways": 8})"));
}

TEST_F(LocalityReport, AnAccessAcrossLinesIsTwo) {
  start(false, {512, 8}, {1024, 16});
  access(0, 60, 8, false);
  access(0, 4092, 8, false);  // the next page is not known
  write();
  EXPECT_EQ(json()["loads"]["times"], Json::parse("[[3, 0], [0, 0]]"));
}

TEST_F(LocalityReport, ResetForgetsCountsObjectsAndCaches) {
  start(true, {512, 8}, {1024, 16});
  locality_objects_line(&session_.objects, "0 100 a");
  session_.check[1] = kRight;
  access(0, 0, 8, true);
  locality_session_reset(&session_);
  access(0, 0, 8, false);
  write();
  const Json result = json();
  EXPECT_EQ(result["stores"]["times"], Json::parse("[[0, 0], [0, 0]]"));
  EXPECT_EQ(result["loads"]["times"], Json::parse("[[1, 0], [0, 0]]")) << "fetched again";
  EXPECT_EQ(result["objects"].size(), 1u);
  EXPECT_EQ(result["nodes"][1]["check"], "right");
}

TEST_F(LocalityReport, LaterRunsHaveFilesOfTheirOwnAndNothingElseIsLeft) {
  start();
  write(1);
  write(2, false);
  EXPECT_THAT(files(), ::testing::UnorderedElementsAre("locality.json", "locality.txt",
                                                       "locality-2.json", "locality-2.txt"));
  EXPECT_EQ(json("locality-2.json")["complete"], false);
  EXPECT_THAT(content("locality-2.txt"), HasSubstr("ended before"));
}

TEST_F(LocalityReport, AWrongCheckIsSaid) {
  start();
  session_.check[1] = kWrong;
  write();
  EXPECT_EQ(json()["nodes"][1]["check"], "wrong");
  EXPECT_THAT(content("locality.txt"), HasSubstr("NODE 1 IS NOT WHERE"));
}

TEST_F(LocalityReport, AFolderThatIsNotThereIsAnError) {
  start();
  const locality_report report{&session_, 1, true};
  errno = 0;
  EXPECT_FALSE(locality_report_write(&report, (folder_ + "/nowhere").c_str()));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(LocalityReport, WhatCannotBeReplacedStaysAndNoScratchIsLeft) {
  start();
  ASSERT_EQ(mkdir((folder_ + "/locality.txt").c_str(), 0700), 0);  // rename cannot replace a folder
  const locality_report report{&session_, 1, true};
  EXPECT_FALSE(locality_report_write(&report, folder_.c_str()));
  EXPECT_THAT(files(), ::testing::ElementsAre("locality.txt"));
  ASSERT_EQ(rmdir((folder_ + "/locality.txt").c_str()), 0);
}

}  // namespace
