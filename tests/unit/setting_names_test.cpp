// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names that users get wrong, and names of reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "base/report_name.h"
#include "base/setting_names.h"

namespace bosk {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;

std::string noted() {
  base::MessageLog log;
  base::note_unknown_settings(&log);
  std::string lines;
  for (const char* line = log.lines(); *line != '\0'; line += strlen(line) + 1)
    lines += std::string(line) + "\n";
  log.release();
  return lines;
}

TEST(SettingNames, the_nearest_is_named) {
  const std::pair<const char*, const char*> cases[] = {
      {"BOSK_POLCY", "POLICY"},         {"BOSK_WORKER", "WORKERS"},
      {"BOSK_IDENTIY", "IDENTITY"},     {"BOSK_PREEMPT", "PREEMPT_PERIOD"},
      {"BOSK_NEXTTOUCH", "NEXT_TOUCH"}, {"BOSK_REPROT", "REPORT"},
      {"BOSK_SYNTETIC", "SYNTHETIC"},   {"BOSK_LAOD", "LOAD"},
  };
  for (const auto& [given, meant] : cases) {
    if (strcmp(given, "BOSK_LAOD") == 0) {
      EXPECT_EQ(base::nearest_setting(given), nullptr) << "two letters of four";
      continue;
    }
    ASSERT_NE(base::nearest_setting(given), nullptr) << given;
    EXPECT_THAT(base::nearest_setting(given), StrEq(meant)) << given;
  }
  for (const char* far : {"BOSK_", "BOSK_X", "BOSK_FROBNICATE", "OMP_NUM_THREADS"})
    EXPECT_EQ(base::nearest_setting(far), nullptr) << far;
  EXPECT_EQ(base::nearest_setting(("BOSK_" + std::string(5000, 'R')).c_str()), nullptr);
}

TEST(SettingNames, a_line_for_each_that_is_nearly_one) {
  for (const char* name :
       {"BOSK_POLCY", "BOSK_FROBNICATE", "BOSK_ROOT", "BOSK_HOME", "BOSK_TEST_SOMETHING",
        "BOSK_MODULE_DIR", "BOSK_POLICY", "BOSK_STEPS", "BOSK_LAB"})
    setenv(name, "cache", 1);
  const std::string lines = noted();
  EXPECT_THAT(lines, HasSubstr("there is no variable BOSK_POLCY; did you mean BOSK_POLICY?\n"));
  for (const char* silent :
       {"variable BOSK_ROOT", "BOSK_FROBNICATE", "BOSK_STEPS", "BOSK_LAB", "BOSK_HOME",
        "BOSK_TEST_SOMETHING", "BOSK_MODULE_DIR", "variable BOSK_POLICY"})
    EXPECT_THAT(lines, Not(HasSubstr(silent)));
  for (const char* name :
       {"BOSK_POLCY", "BOSK_FROBNICATE", "BOSK_ROOT", "BOSK_HOME", "BOSK_TEST_SOMETHING",
        "BOSK_MODULE_DIR", "BOSK_POLICY", "BOSK_STEPS", "BOSK_LAB"})
    unsetenv(name);
}

// Whoever adds a setting to the documents is told of the list here.
TEST(SettingNames, all_of_the_documents_are_known) {
  std::ifstream document(BOSK_SOURCE_DIR "/docs/environment.md");
  ASSERT_TRUE(document.is_open());
  const std::string text((std::istreambuf_iterator<char>(document)),
                         std::istreambuf_iterator<char>());
  const std::regex name("`(BOSK_[A-Z_]+)`");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    names.insert((*at)[1]);
  EXPECT_GT(names.size(), 12u);
  for (const std::string& each : names) {
    const char* before = getenv(each.c_str());
    if (before == nullptr) setenv(each.c_str(), "1", 1);
    EXPECT_THAT(noted(), Not(HasSubstr("variable " + each + " "))) << each;
    EXPECT_THAT(noted(), Not(HasSubstr("variable " + each + ";"))) << each;
    if (before == nullptr) unsetenv(each.c_str());
    // Of the tool's installation, not read by the library.
    if (each == "BOSK_HOME" || each == "BOSK_ROOT") continue;
    ASSERT_NE(base::nearest_setting(each.c_str()), nullptr) << each;
    EXPECT_THAT(base::nearest_setting(each.c_str()), StrEq(each.substr(strlen("BOSK_")))) << each;
  }
}

std::string expanded(const char* pattern) {
  char name[64];
  return base::expand_report_name(pattern, 1234, name, sizeof name) ? name : "does not fit";
}

TEST(ReportName, process_and_rank) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"})
    unsetenv(name);
  EXPECT_EQ(base::mpi_rank(), nullptr);
  EXPECT_EQ(expanded("r-%p-%r.txt"), "r-1234-0.txt");
  setenv("PMI_RANK", "7", 1);
  EXPECT_EQ(expanded("r-%p-%r.txt"), "r-1234-7.txt");
  EXPECT_EQ(expanded("100%%.%x%"), "100%.%x%");
  setenv("OMPI_COMM_WORLD_RANK", "../3", 1);
  EXPECT_EQ(expanded("%r"), "7") << "what is no number is no rank";
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("PMI_RANK");
  EXPECT_EQ(expanded((std::string(62, 'a') + "b").c_str()), std::string(62, 'a') + "b");
  EXPECT_EQ(expanded((std::string(63, 'a') + "b").c_str()), "does not fit");
  EXPECT_EQ(expanded((std::string(60, 'a') + "%p").c_str()), "does not fit");
}

}  // namespace
}  // namespace bosk
