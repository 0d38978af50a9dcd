// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Serialises jobs, and reads what comes back.
#include "bosk/lab/job_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"

namespace bosk::tools::lab {
namespace {

void add_item(std::string* job, char kind, std::string_view text) {
  *job += kind;
  *job += text;
  *job += '\0';
}

std::string user_text() {
  std::string text = fmt::format("{} {}", geteuid(), getegid());
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  for (int i = 0; i < count; ++i) text += fmt::format(" {}", groups[static_cast<size_t>(i)]);
  return text;
}

/// Standard output and error are one file: then their bytes must stay in order.
bool one_stream() {
  struct stat out;
  struct stat error;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
         out.st_dev == error.st_dev && out.st_ino == error.st_ino;
}

}  // namespace

std::string message(char kind, std::string_view payload) {
  std::string text(1, kind);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text += static_cast<char>(payload.size() >> shift & 255);
  }
  text += payload;
  return text;
}

std::string job_message(const Job& job, const std::vector<WritableFolder>& writable) {
  std::string text;
  for (const WritableFolder& folder : writable) {
    add_item(&text, LAB_WRITABLE, folder.tag + " " + folder.path);
  }
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  add_item(&text, LAB_CLOCK, fmt::format("{} {}", now.tv_sec, now.tv_nsec));
  add_item(&text, LAB_DIRECTORY, job.directory);
  add_item(&text, LAB_USER, job.root ? "0 0" : user_text());
  // What a user sets by ulimit, and programs with many threads depend on.
  for (const auto resource : {RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_CORE}) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) continue;
    add_item(&text, LAB_LIMIT,
             fmt::format("{} {} {}", static_cast<int>(resource), limit.rlim_cur, limit.rlim_max));
  }
  if (job.terminal) add_item(&text, LAB_TERMINAL, window_size());
  if (one_stream()) add_item(&text, LAB_ONE_STREAM, "");
  for (const std::string& variable : job.environment) add_item(&text, LAB_VARIABLE, variable);
  for (const std::string& word : job.command) add_item(&text, LAB_ARGUMENT, word);
  return message(LAB_JOB, text);
}

std::string window_size() {
  struct winsize size;
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return "24 80";
  return fmt::format("{} {}", size.ws_row, size.ws_col);
}

bool MessageReader::next(char* kind, std::string* payload) {
  if (bytes_.size() < LAB_HEADER) return false;
  size_t size = 0;
  for (size_t i = LAB_HEADER; i-- > 1;) {
    size = size << 8 | static_cast<unsigned char>(bytes_[i]);
  }
  if (bytes_.size() - LAB_HEADER < size) return false;
  *kind = bytes_[0];
  *payload = bytes_.substr(LAB_HEADER, size);
  bytes_.erase(0, LAB_HEADER + size);
  return true;
}

}  // namespace bosk::tools::lab
