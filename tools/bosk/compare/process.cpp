// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// fork, exec and wait4.
#include "bosk/compare/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "bosk/run_program.h"

namespace bosk::tools {
namespace {

constexpr double kTickSeconds = 0.2;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// All that is left in a pipe.
MemoryFile drained(int from) {
  MemoryFile file;
  std::vector<char> piece(size_t{1} << 16);
  for (;;) {
    const ssize_t count = read(from, piece.data(), piece.size());
    if (count == 0) return file;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("standard input");
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          write(file.descriptor(), piece.data() + done, static_cast<size_t>(count - done));
      if (written < 0) fail("standard input");
      done += written;
    }
  }
}

/// The environment of the tool with these in it.
std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced |= text.rfind(name + "=", 0) == 0;
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

/// A run in being. fork(2), not vfork(2): the peak memory of a child counts what it had before it became the
/// program, and that would be all of the tool's.
class Child {
 public:
  Child(const Launch& launch, const RepeatedInput& input, const EndingSignals& signals,
        const Finished& files)
      : environment_(environment_with(launch.variables)) {
    const std::vector<char*> arguments = pointers(launch.command);
    const std::vector<char*> environment = pointers(environment_);
    const int standard_input = input.open();
    int failure[2];
    if (pipe2(failure, O_CLOEXEC) != 0) fail("a pipe");
    began_ = monotonic_seconds();
    process_ = fork();
    if (process_ == 0) {
      dup2(standard_input, STDIN_FILENO);
      dup2(files.output.descriptor(), STDOUT_FILENO);
      dup2(files.errors.descriptor(), STDERR_FILENO);
      signals.restore();
      execve(launch.program.c_str(), arguments.data(), environment.data());
      const int error = errno;
      if (write(failure[1], &error, sizeof error) < 0) _exit(kCannotRun);
      _exit(kCannotRun);
    }
    const int fork_error = errno;
    close(standard_input);
    close(failure[1]);
    int error = 0;
    const bool executed = process_ > 0 && read(failure[0], &error, sizeof error) <= 0;
    close(failure[0]);
    if (executed) return;
    if (process_ > 0) {
      waitpid(process_, nullptr, 0);
    } else {
      error = fork_error;
    }
    throw ProgramError(error == ENOENT ? kNotFound : kCannotRun,
                       fmt::format("{}: {}", launch.program, std::strerror(error)));
  }

  /// Has it ended? Then `to` has what it took.
  bool has_ended(Finished* to) const {
    rusage usage;
    if (wait4(process_, &to->wait_status, WNOHANG, &usage) != process_) return false;
    to->wall_seconds = seconds();
    const auto in_seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    to->cpu_seconds = in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
    to->peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
    return true;
  }

  double seconds() const { return monotonic_seconds() - began_; }
  pid_t process() const { return process_; }

 private:
  std::vector<std::string> environment_;
  pid_t process_ = 0;
  double began_ = 0;
};

}  // namespace

RepeatedInput::RepeatedInput() : path_("/dev/null") {
  struct stat status;
  if (fstat(STDIN_FILENO, &status) != 0 || isatty(STDIN_FILENO) != 0) return;
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
    contents_ = drained(STDIN_FILENO);
    path_ = fmt::format("/proc/self/fd/{}", contents_->descriptor());
    return;
  }
  path_ = "/proc/self/fd/0";
  if (S_ISREG(status.st_mode)) offset_ = lseek(STDIN_FILENO, 0, SEEK_CUR);
}

int RepeatedInput::open() const {
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("standard input, to be read again for each run");
  if (offset_ > 0) lseek(file, offset_, SEEK_SET);
  return file;
}

Finished run_once(const Launch& launch, const RepeatedInput& input, EndingSignals* signals,
                  const std::function<void(double)>& tick) {
  Finished finished;
  const Child child(launch, input, *signals, finished);
  while (!child.has_ended(&finished)) {
    tick(child.seconds());
    signals->wait(kTickSeconds, child.process());
  }
  return finished;
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace bosk::tools
