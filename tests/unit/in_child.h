// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a piece of a test in a forked child with an environment of its own: what is read once per
// process is read afresh there.
#pragma once

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace bosk::testing {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct ChildResult {
  std::string output;  ///< what it returned
  std::string errors;  ///< what it wrote to standard error
  int status = -1;     ///< exit status; -1: it did not exit by itself
};

inline void unset_all_like(const char* prefix) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; entry++) {
    const std::string text = *entry;
    if (text.rfind(prefix, 0) == 0) names.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// `body` returns a text that the parent gets. The pipes hold 64 KiB: enough for what tests write.
template <typename Body>
ChildResult in_child(const Variables& variables, Body body) {
  int out[2], err[2];
  EXPECT_EQ(pipe(out), 0);
  EXPECT_EQ(pipe(err), 0);
  fflush(stdout);
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(err[1], STDERR_FILENO);
    for (const char* prefix : {"OMP_", "GOMP_", "KMP_", "BOSK_"}) unset_all_like(prefix);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const std::string text = body();
    const ssize_t written = write(out[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(out[1]);
  close(err[1]);
  ChildResult result;
  const auto drain = [](int from, std::string* to) {
    char buffer[4096];
    for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;) to->append(buffer, n);
    close(from);
  };
  drain(out[0], &result.output);
  drain(err[0], &result.errors);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace bosk::testing
