// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// fork, exec and wait, with output caught and nobody left behind.
#include "bosk/lab/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

constexpr int kNotThere = 127;
constexpr int kStoppers[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t stop_signal = 0;
void remember(int number) { stop_signal = number; }

[[noreturn]] void become(const std::vector<std::string>& words, const CommandOptions& options,
                         pid_t parent, int output) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotThere);
  const char* const in = options.in.empty() ? "/dev/null" : options.in.c_str();
  const int input_file = open(in, O_RDONLY);
  int output_file = output;
  if (!options.out.empty())
    output_file = open(options.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (input_file < 0 || output_file < 0) _exit(kNotThere - 1);
  dup2(input_file, STDIN_FILENO);
  dup2(output_file, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(kNotThere - 1);
  for (const int number : kStoppers) signal(number, SIG_DFL);
  setenv("LC_ALL", "C", 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(kNotThere);
}

}  // namespace

StopOnSignals::StopOnSignals() {
  for (size_t i = 0; i < std::size(kStoppers); ++i) before_[i] = signal(kStoppers[i], remember);
}

StopOnSignals::~StopOnSignals() {
  for (size_t i = 0; i < std::size(kStoppers); ++i) signal(kStoppers[i], before_[i]);
}

CommandResult run_command(const std::vector<std::string>& words, const CommandOptions& options) {
  CommandResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {kNotThere - 1, "no pipe"};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(words, options, parent, ends[1]);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return {kNotThere - 1, "no process"};
  }
  constexpr int kHalfSecond = 500;
  for (;;) {
    pollfd file{ends[0], POLLIN, 0};
    const int ready = poll(&file, 1, kHalfSecond);
    if (stop_signal != 0) {
      kill(child, SIGTERM);
      close(ends[0]);
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
      throw LabError(128 + stop_signal, fmt::format("stopped by signal {}", int{stop_signal}));
    }
    if (options.waiting) options.waiting(result.output);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char buffer[4096];
    const ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

bool have_command(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string telling_line(const std::string& output) {
  std::istringstream lines(output);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("E: ", 0) == 0) return line.substr(3);
    if (!line.empty()) last = line;
  }
  return last;
}

std::string sha256_of(const std::filesystem::path& file) {
  const CommandResult result = run_command({"sha256sum", "--", file.string()});
  constexpr size_t kDigits = 64;
  // A name with a backslash in it makes sha256sum put one before the sum.
  const size_t start = result.output.rfind("\\", 0) == 0 ? 1 : 0;
  if (result.status != 0 || result.output.size() < start + kDigits) return "";
  return result.output.substr(start, kDigits);
}

}  // namespace bosk::tools::lab
