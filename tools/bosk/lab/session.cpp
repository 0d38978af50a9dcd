// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loop between the guest's channels and our standard files.
#include "bosk/lab/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "bosk/lab/error.h"
#include "bosk/lab/job_text.h"
#include "bosk/lab/memory_file.h"
#include "bosk/lab/qemu_process.h"
#include "bosk/lab/raw_terminal.h"
#include "bosk/lab/streams.h"
#include "protocol.h"

namespace bosk::tools::lab {
namespace {

using Clock = std::chrono::steady_clock;

// A start takes 4 s with 16 CPUs and 10 s with 64; a machine where it takes this long cannot do it.
double start_limit(const Shape& shape) { return 120 + 2.0 * shape.cpus(); }

class Session {
 public:
  Session(const QemuCommand& command, const Job& job, const SessionOptions& options)
      : command_(command), job_(job), options_(options) {}

  int run(int initramfs) {
    catch_signals();
    begin_ = Clock::now();
    qemu_.start(command_, initramfs);
    while (!status_) step();
    if (!interrupted_) flush();
    qemu_.stop(interrupted_ || !options_.orderly_end);
    terminal_.restore();
    if (!lost_file_.empty()) {
      fmt::print(stderr,
                 "bosk: {} was written and is gone with the guest; --output FOLDER keeps what is "
                 "written in a folder\n",
                 lost_file_);
    }
    if (options_.verbose) fmt::print(stderr, "bosk: the guest ended after {:.1f} s\n", seconds());
    return *status_;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void catch_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH})
      sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  /// Milliseconds until something must be done; throws when it is too late.
  int time_left() {
    const bool limited = options_.timeout > 0;
    const double limit = limited ? options_.timeout : start_limit(command_.shape);
    if (!limited && started_) return -1;
    const double left = limit - seconds();
    if (left > 0) return static_cast<int>(left * 1000) + 1;
    flush();
    qemu_.stop(true);
    drain_console();
    const std::string what = started_
                                 ? fmt::format("the program had not ended after {:g} s", limit)
                                 : fmt::format("the guest had not started after {:g} s", limit);
    throw LabError(kTimeOut, what + console_tail());
  }

  void step() {
    const bool give_input = started_ && input_open_ && input_.empty();
    pollfd files[] = {
        {signals_.get(), POLLIN, 0},
        {qemu_.console.get(), POLLIN, 0},
        {qemu_.messages.get(), POLLIN, 0},
        {qemu_.control.get(), static_cast<short>(POLLIN | (to_guest_.empty() ? 0 : POLLOUT)), 0},
        {output_.source_to_poll(qemu_.output.get()), POLLIN, 0},
        {error_.source_to_poll(qemu_.error.get()), POLLIN, 0},
        {output_.sink_to_poll(), POLLOUT, 0},
        {error_.sink_to_poll(), POLLOUT, 0},
        {give_input ? STDIN_FILENO : -1, POLLIN, 0},
        {input_.empty() ? -1 : qemu_.input.get(), POLLOUT, 0},
    };
    if (poll(files, sizeof files / sizeof files[0], time_left()) < 0 && errno != EINTR) {
      throw LabError(kFailure, fmt::format("poll: {}", std::strerror(errno)));
    }
    if (files[0].revents != 0) take_signals();
    if (files[1].revents != 0) take_console();
    if (files[2].revents != 0) take_messages();
    if ((files[3].revents & POLLOUT) != 0) send_pending(qemu_.control.get(), &to_guest_);
    if (files[4].revents != 0) output_.fill(qemu_.output.get());
    if (files[5].revents != 0) error_.fill(qemu_.error.get());
    if (files[6].revents != 0) give_up_if_closed(output_.empty_some());
    if (files[7].revents != 0) give_up_if_closed(error_.empty_some());
    if (files[8].revents != 0) take_input();
    if (files[9].revents != 0) send_pending(qemu_.input.get(), &input_);
    // Last: once it has said that it ends, what it has written is all here.
    if ((files[3].revents & ~POLLOUT) != 0) take_control();
  }

  /// As a pipe's writer: who reads us is gone.
  void give_up_if_closed(bool good) {
    if (good || status_) return;
    status_ = 128 + SIGPIPE;
    interrupted_ = true;
  }

  void take_signals() {
    signalfd_siginfo signal;
    while (read(signals_.get(), &signal, sizeof signal) == static_cast<ssize_t>(sizeof signal)) {
      const int number = static_cast<int>(signal.ssi_signo);
      if (number == SIGWINCH) {
        if (started_ && job_.terminal) to_guest_ += message(LAB_WINDOW, window_size());
      } else if (number == SIGCHLD) {
        if (qemu_.ended()) qemu_has_ended();
      } else {
        status_ = 128 + number;
        interrupted_ = true;
      }
    }
  }

  void qemu_has_ended() {
    take_control();
    if (status_) return;
    flush();
    drain_console();
    take_messages();
    constexpr const char* kPanic = "Kernel panic - not syncing: ";
    if (console_.text().find(kPanic) != std::string::npos) {
      throw LabError(kFailure, fmt::format("the guest's kernel panicked: {}{}",
                                           console_.line_after(kPanic), console_tail()));
    }
    if (qemu_said_.empty())
      throw LabError(kFailure, "QEMU ended before the program did" + console_tail());
    const bool firmware = qemu_said_.text().find("could not load PC BIOS") != std::string::npos;
    throw LabError(kFailure,
                   fmt::format("QEMU: {}{}", qemu_said_.line_after("qemu-system-x86_64: "),
                               firmware ? ": apt-get install seabios" : ""));
  }

  void take_console() {
    const std::string got = read_some(qemu_.console.get());
    if (got.empty()) qemu_.console.reset();
    console_.add(got);
    if (options_.verbose) fmt::print(stderr, "{}", got);
  }

  void drain_console() {
    while (qemu_.console.get() >= 0) take_console();
  }

  void take_messages() {
    const std::string got = read_some(qemu_.messages.get());
    if (got.empty()) qemu_.messages.reset();
    qemu_said_.add(got);
  }

  void take_input() {
    char buffer[16384];
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      input_open_ = false;
      input_ = message(LAB_INPUT, "");
    } else {
      input_ = message(LAB_INPUT, {buffer, static_cast<size_t>(got)});
    }
  }

  static void send_pending(int socket, std::string* pending) {
    const ssize_t sent = write(socket, pending->data(), pending->size());
    if (sent > 0) pending->erase(0, static_cast<size_t>(sent));
  }

  void take_control() {
    for (;;) {
      const std::string got = read_some(qemu_.control.get());
      reader_.add(got);
      if (got.empty()) break;
    }
    char kind;
    std::string payload;
    while (!status_ && reader_.next(&kind, &payload)) take_message(kind, payload);
  }

  void take_message(char kind, const std::string& payload) {
    switch (kind) {
      case LAB_READY:
        if (options_.verbose) {
          fmt::print(stderr, "bosk: Linux {} is up after {:.1f} s\n", payload, seconds());
        }
        to_guest_ += job_message(job_, command_.writable);
        break;
      case LAB_STARTED:
        started_ = true;
        if (job_.terminal) terminal_.make_raw();
        break;
      case LAB_LOST:
        lost_file_ = payload;
        break;
      case LAB_EXIT:
        status_ = std::atoi(payload.c_str());
        break;
      case LAB_ERROR: {
        const size_t gap = payload.find(' ');
        flush();
        throw LabError(std::atoi(payload.c_str()), payload.substr(gap + 1));
      }
      default:
        throw LabError(kFailure, "the guest's first process is not of this bosk");
    }
  }

  /// What has come from the program is passed on before anything is said about its end.
  void flush() {
    // Whoever reads us may be slow or stopped: signals end us as they are meant to, and QEMU with us.
    terminal_.restore();
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    output_.flush(qemu_.output.get());
    error_.flush(qemu_.error.get());
  }

  std::string console_tail() const {
    const std::string tail = console_.last_lines(12);
    return tail.empty() ? "; its console is empty" : "; the last lines of its console:\n" + tail;
  }

  const QemuCommand& command_;
  const Job& job_;
  const SessionOptions& options_;
  QemuProcess qemu_;
  RawTerminal terminal_;
  Descriptor signals_;
  Clock::time_point begin_;
  OutputStream output_{STDOUT_FILENO};
  OutputStream error_{STDERR_FILENO};
  Tail console_;
  Tail qemu_said_;
  MessageReader reader_;
  std::string to_guest_;  // messages that the control channel has not taken yet
  std::string input_;     // one message that the channel of standard input has not taken yet
  std::string lost_file_;
  bool started_ = false;
  bool interrupted_ = false;
  bool input_open_ = true;
  std::optional<int> status_;
};

/// A descriptor below 3 that is closed would become one of ours, and get what is meant for the caller.
void open_standard_files() {
  int file = open("/dev/null", O_RDWR);
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDWR);
  close(file);
}

}  // namespace

int run_session(const QemuCommand& command, const Job& job, const SessionOptions& options) {
  open_standard_files();
  QemuCommand complete = command;
  const MemoryFile initramfs("initramfs", command.initramfs);
  complete.initramfs = initramfs.path();
  Session session(complete, job, options);
  return session.run(initramfs.descriptor());
}

}  // namespace bosk::tools::lab
