// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/attach_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "affinity/observer/file_descriptor.h"
#include "affinity/observer/process_memory.h"
#include "bosk/escaped.h"
#include "bosk/learn/learn_json.h"
#include "bosk/learn/learning.h"
#include "bosk/run_environment.h"

namespace bosk::tools {
namespace {

using affinity::FileDescriptor;
using Clock = std::chrono::steady_clock;

constexpr int kUsage = 2;
constexpr int kFailure = 125;
constexpr double kMostSeconds = 1e9;

struct AttachOptions {
  std::vector<pid_t> processes;
  double seconds = 0;
  std::string record;
  std::string json;
};

[[noreturn]] void fail(int status, const std::string& line) {
  fmt::print(stderr, "bosk: {}\n", line);
  throw CLI::RuntimeError(status);
}

/// "4711 (app)". Does not return if it is none that could be observed.
std::string described(pid_t process) {
  if (process <= 0 || (kill(process, 0) != 0 && errno == ESRCH))
    fail(kUsage, fmt::format("there is no process {}", process));
  const std::string folder = fmt::format("/proc/{}", process);
  const std::string text =
      fmt::format("{} ({})", process, escaped(affinity::status_line(folder, "Name")));
  if (process == getpid()) fail(kUsage, fmt::format("process {} is bosk itself", process));
  // Empty: it is hidden from us.
  if (const std::string of = affinity::status_line(folder, "Tgid");
      !of.empty() && of != std::to_string(process))
    fail(kUsage, fmt::format("{} is a thread: attach to its process, {}", text, of));
  const std::string maps = folder + "/maps";
  if (!FileDescriptor(open(maps.c_str(), O_RDONLY | O_CLOEXEC)))
    fail(kUsage,
         fmt::format("{} is not ours to look at ({}): it belongs to another user, or has more "
                     "rights than you. Try as root",
                     text, std::strerror(errno)));
  if (affinity::mapped_areas(process).empty())
    fail(kUsage, fmt::format("{} has no memory: it has ended, or is the kernel's", text));
  return text;
}

/// Until all have ended, the time is over, or somebody wants us to end.
void wait_for_end(const AttachOptions& options) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, each);
  const FileDescriptor signals(signalfd(-1, &ends, SFD_CLOEXEC));
  std::vector<FileDescriptor> processes;
  for (const pid_t process : options.processes)
    processes.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(options.seconds));
  for (;;) {
    std::erase_if(processes, [](const FileDescriptor& process) {
      pollfd wanted = {process.number(), POLLIN, 0};
      return !process || (poll(&wanted, 1, 0) == 1);
    });
    if (processes.empty()) return;
    std::vector<pollfd> wanted = {{signals.number(), POLLIN, 0}};
    for (const FileDescriptor& process : processes) wanted.push_back({process.number(), POLLIN, 0});
    int limit = -1;
    if (options.seconds > 0) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return;
      limit = static_cast<int>(std::min<int64_t>(left.count(), 1'000'000));
    }
    poll(wanted.data(), wanted.size(), limit);
    signalfd_siginfo taken;
    if (wanted[0].revents != 0 && read(signals.number(), &taken, sizeof taken) > 0) return;
  }
}

void attach(const AttachOptions& options) {
  std::vector<pid_t> processes;
  std::string words;
  for (const pid_t process : options.processes) {
    if (std::ranges::find(processes, process) != processes.end()) continue;
    words += (words.empty() ? "" : ", ") + described(process);
    processes.push_back(process);
  }
  // Threads that are made from now on have them blocked as well.
  sigset_t ends;
  sigset_t before;
  sigemptyset(&ends);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, each);
  sigprocmask(SIG_BLOCK, &ends, &before);
  std::unique_ptr<Learning> learning;
  try {
    learning = std::make_unique<Learning>(Learning::Wish{words, options.record});
  } catch (const OptionError& error) {
    fail(error.status, error.what());
  }
  learning->begin([&](affinity::Observer* observer) { observer->attach(processes); });
  if (!learning->can_see()) {
    learning->end();
    fail(kFailure,
         fmt::format("nothing can be seen of {} here: it takes Linux 6.7, or page-fault events: {}",
                     words, learning->why_no_events()));
  }
  fmt::print(stderr, "bosk: observes {}{}; ^C ends it and shows what was learnt\n", words,
             options.seconds > 0 ? fmt::format(" for {:g} s", options.seconds) : "");
  wait_for_end(options);
  // Once more, and we end at once.
  sigprocmask(SIG_SETMASK, &before, nullptr);
  learning->end();
  if (const int error = write_json(options.json, learning->json()); error != 0)
    fail(kFailure, fmt::format("{}: {}", escaped(options.json), std::strerror(error)));
  if (options.json != "-") fmt::print("{}", learning->page());
}

}  // namespace

void add_attach_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "attach", "Observes processes that run: which of their threads use which memory.");
  command->footer(R"(Examples:
  bosk attach 4711                    until it ends or ^C: then who shares with whom
  bosk attach 4711 --seconds 10       for ten seconds
  bosk attach $(pidof app)            all ranks of a job on this node
  bosk attach 4711 --record r         keeps each access: bosk learn r shows the page again

The process goes on as it was. It is stopped once, for some 50 microseconds, as debuggers do; what observing costs it after that is bounded by
BOSK_LEARN_OVERHEAD (1.8 % of its time of CPUs). Nothing is moved. What it starts is not observed; `bosk run --learn` does that.)");
  auto options = std::make_shared<AttachOptions>();
  command->add_option("PID", options->processes, "Processes")->required();
  command->add_option("--seconds", options->seconds, "For so long; else until they end, or ^C")
      ->type_name("N")
      ->check([](const std::string& text) {
        char* end = nullptr;
        const double seconds = std::strtod(text.c_str(), &end);
        return seconds > 0 && seconds <= kMostSeconds && *end == '\0'
                   ? std::string()
                   : escaped(text) + ": a number of seconds is wanted, more than 0";
      });
  command->add_option("--record", options->record, "Keeps each access in FILE, for bosk learn")
      ->type_name("FILE");
  command
      ->add_option("--json", options->json,
                   "All that the page says, for programs, into FILE (-: standard output)")
      ->type_name("FILE");
  command->callback([options] { attach(*options); });
}

}  // namespace bosk::tools
