// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A list, and PATH with this tool behind it.
#include "bosk/lab/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "bosk/lab/error.h"

extern char** environ;

namespace bosk::tools::lab {
namespace {

/// A star stands for any end.
constexpr const char* kPassed[] = {
    // what programs need anywhere
    "HOME", "LANG", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    // where they find their libraries
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW", "LD_DEBUG", "PYTHON*", "VIRTUAL_ENV",
    "CONDA_PREFIX",
    // parallel run-times
    "OMP_*", "GOMP_*", "KMP_*", "LIBOMP_*", "BOSK_*", "ACC_*", "HWLOC_*", "OPENBLAS_*", "MKL_*",
    "BLIS_*", "GOTO_NUM_THREADS", "OMPI_*", "PMIX_*", "MPICH_*", "I_MPI_*", "TBB_*",
    "JULIA_NUM_THREADS",
    // how their failures are shown
    "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "MALLOC_*", "GLIBC_TUNABLES"};

bool is_passed(const std::string& name) {
  return std::any_of(std::begin(kPassed), std::end(kPassed), [&](const std::string& pattern) {
    if (pattern.back() != '*') return name == pattern;
    return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  });
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

void set(std::vector<std::string>* variables, const std::string& variable) {
  const std::string name = name_of(variable);
  std::erase_if(*variables, [&](const std::string& other) { return name_of(other) == name; });
  variables->push_back(variable);
}

/// So that `bosk lab -- bosk topo` finds the bosk that was called by a path.
std::string path_with_tool(const std::string& path) {
  std::error_code error;
  const auto tool = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? path : path + ":" + tool.parent_path().string();
}

}  // namespace

std::vector<std::string> guest_environment(const std::vector<std::string>& asked) {
  std::vector<std::string> variables;
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable = *at;
    if (name_of(variable) == "PATH") path = variable.substr(sizeof "PATH=" - 1);
    if (is_passed(name_of(variable))) set(&variables, variable);
  }
  set(&variables, "PATH=" + path_with_tool(path));
  // Programs and scripts may want to know where they are.
  set(&variables, "BOSK_LAB=1");
  for (const std::string& word : asked) {
    if (word.empty() || word[0] == '=') {
      throw LabError(kUsage, fmt::format("--env {}: not NAME or NAME=VALUE", word));
    }
    if (word.find('=') != std::string::npos) {
      set(&variables, word);
    } else if (const char* value = std::getenv(word.c_str())) {
      set(&variables, word + "=" + value);
    }
  }
  return variables;
}

}  // namespace bosk::tools::lab
