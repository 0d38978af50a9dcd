// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/taken_userfaultfd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "affinity/acting/thread_mover.h"
#include "affinity/observer/pagemap_scan.h"
#include "affinity/observer/process_memory.h"
#include "affinity/observer/write_protection.h"

namespace bosk::affinity {
namespace {

#if defined(__x86_64__)

// Newer than the headers that we are built with.
constexpr int kGetRseq = 0x420f;
constexpr int kGetUserDispatch = 0x4211;
struct RseqConfiguration {
  uint64_t address;
  uint32_t size;
  uint32_t signature;
  uint32_t flags;
  uint32_t reserved;
};
struct RseqSection {
  uint32_t version;
  uint32_t flags;
  uint64_t begin;
  uint64_t length;
  uint64_t abort;
};
constexpr uint64_t kRseqSectionOffset = 8;
struct UserDispatch {
  uint64_t mode;
  uint64_t selector;
  uint64_t offset;
  uint64_t length;
};
constexpr uint64_t kCodeOf64Bits = 0x33;

/// One thread of another process, stopped by us while this is there.
class StoppedThread {
 public:
  StoppedThread(pid_t process, pid_t thread) : thread_(thread) {
    const std::string memory = "/proc/" + std::to_string(process) + "/mem";
    memory_ = FileDescriptor(open(memory.c_str(), O_RDONLY | O_CLOEXEC));
    error_ = stop();
    if (error_ == 0) error_ = save();
  }
  ~StoppedThread() {
    if (!is_stopped_) return;
    if (is_changed_) {
      ptrace(PTRACE_SETREGS, thread_, nullptr, &saved_);
      ptrace(PTRACE_SETSIGMASK, thread_, sizeof mask_, &mask_);
    }
    ptrace(PTRACE_DETACH, thread_, nullptr, signal_);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  int error() const { return error_; }
  /// Its result, or -errno.
  long call(long number, uint64_t first);

 private:
  int stop();
  int save();
  bool is_in_rseq() const;
  std::optional<uint64_t> find_instruction() const;
  bool resume_to_call();
  bool read(uint64_t at, void* to, size_t size) const {
    return pread(memory_.number(), to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  }

  pid_t thread_;
  FileDescriptor memory_;
  int error_ = 0;
  bool is_stopped_ = false;
  bool is_changed_ = false;
  long signal_ = 0;  ///< that it had meanwhile, and is given at the end
  user_regs_struct saved_ = {};
  uint64_t mask_ = 0;
  uint64_t instruction_ = 0;
};

int StoppedThread::stop() {
  if (ptrace(PTRACE_SEIZE, thread_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return errno;
  if (ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return errno;
  int status = 0;
  for (;;) {
    // It was running: it stops at once, or ends.
    const pid_t got = waitpid(thread_, &status, __WALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !WIFSTOPPED(status)) return ESRCH;
    if (status >> 16 == PTRACE_EVENT_STOP) break;
    // A signal that came first: it is the program's.
    ptrace(PTRACE_CONT, thread_, nullptr, WSTOPSIG(status));
  }
  is_stopped_ = true;
  return WSTOPSIG(status) == SIGTRAP ? 0 : EAGAIN;  // else the whole process is stopped
}

/// Is it at a place where it can be made to do something else, and what has to be as it was afterwards?
int StoppedThread::save() {
  if (ptrace(PTRACE_GETREGS, thread_, nullptr, &saved_) != 0) return errno;
  if (saved_.cs != kCodeOf64Bits) return EOPNOTSUPP;
  // In a system call, which would be begun again, or has been cut short by us; it will be elsewhere soon.
  if (static_cast<long>(saved_.orig_rax) >= 0 || is_in_rseq()) return EAGAIN;
  UserDispatch dispatch = {};
  if (ptrace(static_cast<__ptrace_request>(kGetUserDispatch), thread_, sizeof dispatch,
             &dispatch) == 0 &&
      dispatch.mode != 0)
    return EACCES;
  const std::optional<uint64_t> instruction = find_instruction();
  if (!instruction) return EOPNOTSUPP;
  instruction_ = *instruction;
  if (ptrace(PTRACE_GETSIGMASK, thread_, sizeof mask_, &mask_) != 0) return errno;
  uint64_t all = ~uint64_t{0};
  is_changed_ = true;
  return ptrace(PTRACE_SETSIGMASK, thread_, sizeof all, &all) == 0 ? 0 : errno;
}

/// The kernel forgets that a thread is in an atomic sequence when it finds it elsewhere, so it must not be taken out of one.
bool StoppedThread::is_in_rseq() const {
  RseqConfiguration configuration = {};
  if (ptrace(static_cast<__ptrace_request>(kGetRseq), thread_, sizeof configuration,
             &configuration) <= 0 ||
      configuration.address == 0)
    return false;
  uint64_t section_at = 0;
  RseqSection section = {};
  if (!read(configuration.address + kRseqSectionOffset, &section_at, sizeof section_at) ||
      section_at == 0 || !read(section_at, &section, sizeof section))
    return false;
  return saved_.rip - section.begin < section.length;
}

/// A `syscall` in the code that the kernel gives each process.
std::optional<uint64_t> StoppedThread::find_instruction() const {
  constexpr uint64_t kSystemCode = 33;  // AT_SYSINFO_EHDR
  const FileDescriptor file(
      open(("/proc/" + std::to_string(thread_) + "/auxv").c_str(), O_RDONLY | O_CLOEXEC));
  uint64_t entry[2];
  while (::read(file.number(), entry, sizeof entry) == sizeof entry && entry[0] != 0) {
    if (entry[0] != kSystemCode) continue;
    std::vector<char> code(8192);
    const ssize_t got =
        pread(memory_.number(), code.data(), code.size(), static_cast<off_t>(entry[1]));
    const std::string_view text(code.data(), got > 0 ? static_cast<size_t>(got) : 0);
    const size_t at = text.find("\x0f\x05");
    if (at != std::string_view::npos) return entry[1] + at;
  }
  return std::nullopt;
}

/// To the beginning or the end of a system call.
bool StoppedThread::resume_to_call() {
  if (ptrace(PTRACE_SYSCALL, thread_, nullptr, nullptr) != 0) return false;
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(thread_, &status, __WALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !WIFSTOPPED(status)) {
      is_stopped_ = false;
      return false;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) return true;
    // SIGSTOP, which cannot be blocked.
    if (status >> 16 == 0) signal_ = WSTOPSIG(status);
    if (ptrace(PTRACE_SYSCALL, thread_, nullptr, nullptr) != 0) return false;
  }
}

long StoppedThread::call(long number, uint64_t first) {
  user_regs_struct registers = saved_;
  registers.rip = instruction_;
  registers.rax = static_cast<uint64_t>(number);
  registers.rdi = first;
  registers.orig_rax = ~uint64_t{0};
  if (ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) != 0) return -ESRCH;
  if (!resume_to_call() || !resume_to_call()) return -ESRCH;
  if (ptrace(PTRACE_GETREGS, thread_, nullptr, &registers) != 0) return -ESRCH;
  return static_cast<long>(registers.rax);
}

TakenUserfaultfd take_by(pid_t process, pid_t thread) {
  StoppedThread stopped(process, thread);
  if (stopped.error() != 0) return {{}, stopped.error()};
  const long made = stopped.call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (made < 0) return {{}, static_cast<int>(-made)};
  const FileDescriptor holder(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  TakenUserfaultfd taken;
  taken.descriptor = FileDescriptor(
      static_cast<int>(syscall(SYS_pidfd_getfd, holder.number(), static_cast<int>(made), 0)));
  if (!taken.descriptor) taken.error = errno;
  stopped.call(SYS_close, static_cast<uint64_t>(made));
  return taken;
}

/// EAGAIN: none of its threads computes.
TakenUserfaultfd take_from(pid_t process) {
  TakenUserfaultfd taken = {{}, EAGAIN};
  for (const uint32_t thread : KernelThreads().threads_of(process)) {
    const std::string folder =
        "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread);
    if (status_line(folder, "Seccomp") != "0") return {{}, EACCES};
    if (const std::string tracer = status_line(folder, "TracerPid");
        tracer != "0" && !tracer.empty())
      return {{}, EBUSY};
    if (!status_line(folder, "State").starts_with('R')) continue;
    taken = take_by(process, static_cast<pid_t>(thread));
    // It may have ended meanwhile; all others are as good.
    if (taken.error != EAGAIN && taken.error != ESRCH) return taken;
    taken.error = EAGAIN;
  }
  return taken;
}

#else

TakenUserfaultfd take_from(pid_t) { return {{}, EOPNOTSUPP}; }

#endif

}  // namespace

TakenUserfaultfd take_userfaultfd(pid_t process) {
  // Nobody is stopped for what cannot be had.
  if (!WriteProtection::is_there()) return {{}, EOPNOTSUPP};
  TakenUserfaultfd taken = take_from(process);
  if (taken.error != 0 || ask_for_async_protection(taken.descriptor.number())) return taken;
  return {{}, errno};
}

}  // namespace bosk::affinity
