// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/report_name.h"
#include "bosk/escaped.h"
#include "bosk/report/process_report.h"
#include "bosk/report/report_json.h"
#include "bosk/report/report_page.h"
#include "bosk/run_environment.h"
#include "bosk/run_program.h"

namespace bosk::tools {
namespace {

constexpr int kFailure = 125;

bool is_json(const std::string& where) {
  return std::filesystem::path(where).extension() == ".json";
}
bool is_on_terminal(const std::string& where) { return where == "-" || where == "full"; }

/// Where processes leave their data, and what they tell besides; in memory, and gone with this object.
class Folder {
 public:
  Folder() {
    for (const char* parent : std::initializer_list<const char*>{
             "/dev/shm", std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), "/tmp"}) {
      if (parent == nullptr || *parent == '\0') continue;
      std::string name = std::string(parent) + "/bosk-report-XXXXXX";
      if (mkdtemp(name.data()) == nullptr) continue;
      name_ = name;
      return;
    }
    throw OptionError(
        kFailure,
        fmt::format("--report: no folder for its data can be made in /dev/shm or /tmp: {}",
                    std::strerror(errno)));
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(name_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& name() const { return name_; }
  /// The pattern that the library takes for the details of each process.
  std::string details_pattern() const { return name_ + "/details-%p"; }
  std::string details_of(int process) const {
    std::ifstream file(fmt::format("{}/details-{}", name_, process), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::string name_;
};

constexpr int kForwarded[] = {SIGTERM,   SIGHUP,  SIGUSR1,  SIGUSR2, SIGALRM,
                              SIGVTALRM, SIGPROF, SIGWINCH, SIGCONT};

volatile pid_t running = 0;

void forward(int signal, siginfo_t* info, void*) {
  // A terminal's signals went to the program as well.
  if (info->si_code != SI_KERNEL && running > 0) kill(running, signal);
}

/// While the program runs. Signals that come before it is there wait.
class Bystander {
 public:
  Bystander() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask_);
  }
  void restore_in_child() const { sigprocmask(SIG_SETMASK, &mask_, nullptr); }
  void begin(pid_t child) {
    running = child;
    // ^C and ^\ are the program's to answer: it has them from the terminal.
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    struct sigaction action = {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (const int each : kForwarded) {
      struct sigaction before;
      // Who started us has them ignored (nohup), and so has the program.
      if (sigaction(each, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(each, &action, nullptr);
    }
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_;
};

/// As the program ended, so do we: whoever waits for us sees the same.
[[noreturn]] void end_by(int number) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  _exit(128 + number);
}

/// The wait status of the program.
int run_to_its_end(const std::string& program, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw OptionError(kFailure, std::strerror(errno));
  Bystander bystander;
  const pid_t child = fork();
  if (child == 0) {
    bystander.restore_in_child();
    execv(program.c_str(), arguments.data());
    const int error = errno;
    if (write(failure[1], &error, sizeof error) < 0) _exit(kCannotRun);
    _exit(kCannotRun);
  }
  if (child < 0) throw OptionError(kFailure, std::strerror(errno));
  bystander.begin(child);
  close(failure[1]);
  int error = 0;
  const bool executed = read(failure[0], &error, sizeof error) <= 0;
  close(failure[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  if (!executed)
    throw ProgramError(error == ENOENT ? kNotFound : kCannotRun,
                       fmt::format("{}: {}", program, std::strerror(error)));
  return status;
}

/// Errors of a report never change what the program has ended with.
void say_failed(const std::string& where) {
  fmt::print(stderr, "bosk: cannot write the report to {}: {}\n", where, std::strerror(errno));
}

void write_file(const std::string& name, const std::string& text, bool anew) {
  const int file =
      open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (anew ? O_TRUNC : O_APPEND), 0666);
  if (file < 0) return say_failed(name);
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      say_failed(name);
      break;
    }
    done += static_cast<size_t>(written);
  }
  close(file);
}

std::string text_of(const ProcessReport& report, const Folder& folder, bool with_details) {
  std::string text = report_page(report);
  if (with_details)
    if (const std::string details = folder.details_of(report.process); !details.empty())
      // Its first line names the program again.
      text += "\ndetails\n" + details.substr(std::min(details.find('\n'), details.size() - 1) + 1);
  return text;
}

void write_reports(const std::string& where, const Folder& folder,
                   const std::vector<ProcessReport>& reports) {
  if (is_on_terminal(where)) {
    for (const ProcessReport& report : reports)
      fmt::print(stderr, "{}{}", &report == reports.data() ? "" : "\n",
                 text_of(report, folder, where == "full"));
    return;
  }
  std::map<std::string, std::vector<ProcessReport>> files;
  char none[PATH_MAX];
  if (reports.empty() && base::expand_report_name(where.c_str(), getpid(), none, sizeof none))
    files[none] = {};
  for (const ProcessReport& report : reports) {
    char name[PATH_MAX];
    if (base::expand_report_name(where.c_str(), report.process, name, sizeof name))
      files[name].push_back(report);
  }
  for (const auto& [name, those] : files) {
    if (is_json(where)) {
      write_file(name, report_json(those), true);
      continue;
    }
    for (const ProcessReport& report : those)
      write_file(name, text_of(report, folder, true), false);
  }
}

bool names_each_rank(const std::string& where) {
  return where.find("%r") != std::string::npos || where.find("%p") != std::string::npos;
}

}  // namespace

void check_report_place(const std::string& where) {
  if (is_on_terminal(where)) return;
  const bool shared = base::mpi_rank() != nullptr && !names_each_rank(where);
  if (shared && is_json(where))
    throw OptionError(
        2, fmt::format("--report {}: all ranks would write it; put %r into its name", where));
  char path[PATH_MAX];
  if (!base::expand_report_name(where.c_str(), getpid(), path, sizeof path))
    throw OptionError(kFailure, fmt::format("--report {}: {}", where, std::strerror(ENAMETOOLONG)));
  // This run begins a new file; but one that ranks share may have the reports of others by now.
  const bool is_per_process = where.find("%p") != std::string::npos;
  const int file = open(path,
                        O_WRONLY | O_CREAT | O_CLOEXEC |
                            (is_per_process ? O_EXCL
                             : shared       ? 0
                                            : O_TRUNC),
                        0666);
  if (file < 0 && is_per_process && errno == EEXIST) return;
  if (file < 0)
    throw OptionError(kFailure, fmt::format("--report {}: {}", path, std::strerror(errno)));
  close(file);
  // Its number is not that of any process of the program.
  if (is_per_process) unlink(path);
}

int run_with_report(const std::string& where, const std::string& program,
                    const std::vector<std::string>& command, const std::string& why_none) {
  const Folder folder;
  setenv("BOSK_REPORT_DATA", folder.name().c_str(), 1);
  if (where != "-" && !is_json(where))
    setenv("BOSK_REPORT", folder.details_pattern().c_str(), 1);
  else
    unsetenv("BOSK_REPORT");
  const int status = run_to_its_end(program, command);
  std::vector<ProcessReport> reports = read_reports(folder.name());
  // Said already.
  if (!why_none.empty())
    std::erase_if(reports, [](const ProcessReport& report) { return report.regions.empty(); });
  // Who reads JSON finds none in it.
  if (!reports.empty() || is_json(where)) write_reports(where, folder, reports);
  if (reports.empty() && why_none.empty())
    fmt::print(stderr,
               "bosk: {} used no OpenMP that bosk serves, so there is no report (is it built with "
               "-fopenmp, and not linked statically?)\n",
               escaped(program));
  if (WIFSIGNALED(status)) {
    std::error_code error;
    std::filesystem::remove_all(folder.name(), error);
    end_by(WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

}  // namespace bosk::tools
