// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/report_run.h"

#include <fcntl.h>
#include <fmt/format.h>
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
#include <nlohmann/json.hpp>

#include "base/report_name.h"
#include "bosk/beside.h"
#include "bosk/escaped.h"
#include "bosk/report/process_report.h"
#include "bosk/report/report_json.h"
#include "bosk/report/report_page.h"
#include "bosk/run_environment.h"

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
                   const std::vector<ProcessReport>& reports, LearnRun* learning) {
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
  nlohmann::ordered_json learnt;
  if (learning != nullptr && is_json(where)) learnt = learning->learnt();
  for (const auto& [name, those] : files) {
    if (is_json(where)) {
      write_file(name, report_json(those, learnt), true);
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
                    const std::vector<std::string>& command, const std::string& why_none,
                    LearnRun* learning) {
  const Folder folder;
  setenv("BOSK_REPORT_DATA", folder.name().c_str(), 1);
  if (where != "-" && !is_json(where))
    setenv("BOSK_REPORT", folder.details_pattern().c_str(), 1);
  else
    unsetenv("BOSK_REPORT");
  const int status =
      run_beside(program, command, learning != nullptr ? learning->companion() : Companion());
  std::vector<ProcessReport> reports = read_reports(folder.name());
  // Said already.
  if (!why_none.empty())
    std::erase_if(reports, [](const ProcessReport& report) { return report.regions.empty(); });
  // Who reads JSON finds none in it.
  if (!reports.empty() || is_json(where)) write_reports(where, folder, reports, learning);
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
