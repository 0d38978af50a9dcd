// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command line of `bosk run`, and the exec.
#include "run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bosk/beside.h"
#include "bosk/compare/compare.h"
#include "bosk/learn/learn_run.h"
#include "bosk/report/report_run.h"
#include "policy_list.h"
#include "run_environment.h"
#include "run_program.h"
#include "show_command.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr int kFailure = 125;

/// Stands for `--` while CLI11 looks; no option and no program is called so.
constexpr const char* kHiddenSeparator = "\x01--";

[[noreturn]] void fail(int status, const std::string& line) {
  fmt::print(stderr, "bosk: {}\n", line);
  throw CLI::RuntimeError(status);
}

/// lib/libgomp.so.1 beside the tool's bin/: so it lies in the build folder and where it is installed.
std::string library_beside_tool() {
  std::error_code error;
  const std::filesystem::path tool = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail(kFailure, fmt::format("/proc/self/exe: {}; is /proc mounted?", error.message()));
  const std::filesystem::path library = tool.parent_path().parent_path() / "lib" / "libgomp.so.1";
  if (access(library.c_str(), R_OK) != 0) {
    fail(kFailure, fmt::format("{}: {}; build or install the library beside the tool",
                               library.string(), std::strerror(errno)));
  }
  return library.string();
}

[[noreturn]] void replace_process(const std::string& program,
                                  const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  fail(errno == ENOENT ? kNotFound : kCannotRun,
       fmt::format("{}: {}", program, std::strerror(errno)));
}

int run_and_end_alike(const std::string& program, const std::vector<std::string>& command,
                      const Companion& companion) {
  const int status = run_beside(program, command, companion);
  if (WIFSIGNALED(status)) end_by(WTERMSIG(status));
  return WEXITSTATUS(status);
}

void run(const RunOptions& options, const CompareOptions& comparison,
         std::vector<std::string> command) {
  if (options.policy == "list") return list_policies();
  if (!comparison.what.empty() && !options.learn.empty())
    fail(kUsage,
         "--compare runs the program several times, --learn watches one run: give one of them");
  if (comparison.what.empty() && !comparison.runs.empty())
    fail(kUsage, runs_without_comparison(comparison, command));
  if (command.empty()) {
    const std::string& taken = options.report;
    const bool is_program =
        !taken.empty() && access(taken.c_str(), X_OK) == 0 && !std::filesystem::is_directory(taken);
    if (is_program)
      fail(kUsage,
           fmt::format("no program to run: --report takes a file or -; did you mean --report - {}?",
                       taken));
    fail(kUsage, "no program to run: bosk run [options] PROGRAM [arguments]");
  }
  // A word with a dash in this place is an option that is not known, not a program.
  if (command.front().size() > 1 && command.front()[0] == '-') {
    const std::string& word = command.front();
    if (word[1] == 'j' || word[1] == 't') {
      // As other launchers have it: -j 4, -t4. (-n is an option of --compare.)
      const size_t digit = word.find_first_of("0123456789");
      const std::string next = command.size() > 1 ? command[1] : "";
      const std::string number = digit != std::string::npos ? word.substr(digit) : next;
      if (!number.empty() && number.find_first_not_of("0123456789,") == std::string::npos)
        fail(kUsage,
             fmt::format(
                 "bosk run has no option {}; did you mean --threads {}? (see bosk run --help)",
                 word, number));
    }
    fail(kUsage, fmt::format("bosk run has no option {} (see bosk run --help)", command.front()));
  }
  try {
    check_learn_options(options);
    const std::string library = library_beside_tool();
    if (!comparison.what.empty())
      throw CLI::RuntimeError(compare(options, comparison, library, command));
    Variables variables = environment_for(options, library);
    std::vector<std::string> preloaded = {library};
    if (!options.learn.empty() && why_learning_is_off(options).empty())
      preloaded.push_back(observed_library(library));
    variables.insert(variables.begin(), {"LD_PRELOAD", preload_with(preloaded)});
    const std::string program = find_program(command.front());
    const std::string warning = check_program(program);
    if (!warning.empty()) fmt::print(stderr, "bosk: {}\n", warning);
    if (options.dry_run) return show_command(variables, program, command);
    if (!options.report.empty()) check_report_place(options.report);
    std::unique_ptr<LearnRun> learning;
    if (!options.learn.empty()) {
      learning = std::make_unique<LearnRun>(options, command);
      const Variables more = learning->variables();
      variables.insert(variables.end(), more.begin(), more.end());
    }
    for (const auto& [name, value] : variables) {
      if (setenv(name.c_str(), value.c_str(), 1) != 0) fail(kFailure, std::strerror(errno));
    }
    if (!options.report.empty())
      throw CLI::RuntimeError(
          run_with_report(options.report, program, command, warning, learning.get()));
    if (learning)
      throw CLI::RuntimeError(run_and_end_alike(program, command, learning->companion()));
    replace_process(program, command);
  } catch (const OptionError& error) {
    fail(error.status, error.what());
  } catch (const ProgramError& error) {
    fail(error.status, error.what());
  }
}

constexpr const char* kExamples = R"(Examples:
  bosk run ./app                          the program as it is, on bosk
  bosk run --threads 4,8 ./app input      4 threads, and 8 in each nested region
  bosk run --report - ./app               at its end: where the time went, and what to change
  bosk run --learn=observe ./app          which threads share memory, and what that could gain
  bosk run --learn ./app                  threads and memory come together that belong together
  bosk run --bind=spread --places=sockets --threads 2,16 ./app
                                          one outer thread per socket, bound, inner teams around it
  bosk run --policy spread ./app          lay nested teams over the machine by their load
  bosk run --wait passive --preempt off ./app
                                          threads that wait sleep at once; no time slices
  bosk run --compare ./app                is bosk faster than libgomp here, and is the output the same?
  bosk run --compare=policy=spread,cache -n 9 ./app
                                          and under which of these policies is it fastest?
  bosk run --dry-run --threads 4,2 ./app  shows what would be run, as a shell command

Without --compare, bosk run becomes the program: signals, exit status, input and output are the
program's own. (With --report or --learn it stays beside it, hands signals on and ends as the program does.)
What an option does not say comes from the environment: OMP_*, GOMP_*, BOSK_* (docs/environment.md).
Status 2: an option cannot be meant; 125: bosk itself failed; 126: the program cannot be run on bosk;
127: there is no such program.)";

/// CLI11 does not know of the program that follows.
class Formatter : public CLI::Formatter {
 public:
  Formatter() { column_width(26); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: bosk run [OPTIONS] PROGRAM [ARGUMENTS...]\n";
  }
};

}  // namespace

void hide_separators(std::vector<std::string>* words) {
  std::replace(words->begin(), words->end(), std::string("--"), std::string(kHiddenSeparator));
}

std::vector<std::string> program_words(std::vector<std::string> remaining) {
  if (!remaining.empty() && remaining.front() == kHiddenSeparator)
    remaining.erase(remaining.begin());
  std::replace(remaining.begin(), remaining.end(), std::string(kHiddenSeparator),
               std::string("--"));
  return remaining;
}

void add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "run", "Runs a program that was built by gcc -fopenmp (C, C++, Fortran) on bosk's library.");
  // The first word that is no option is the program; what follows is the program's.
  command->prefix_command();
  command->formatter(std::make_shared<Formatter>());
  command->footer(kExamples);

  auto options = std::make_shared<RunOptions>();
  const auto text = [&](const char* name, std::string RunOptions::* member, const char* value,
                        const char* group, const char* help) {
    command->add_option(name, (*options).*member, help)->type_name(value)->group(group);
  };
  const char* const threads = "Threads";
  text("--threads", &RunOptions::threads, "N[,N...]", threads,
       "Threads of a team, for each nesting level (OMP_NUM_THREADS);\n"
       "a list also allows that many levels to be active");
  command
      ->add_flag("--nested", options->nested,
                 "Nesting levels that may be active (OMP_MAX_ACTIVE_LEVELS);\n"
                 "without a number: all")
      ->type_name("[=N]")
      ->group(threads);
  text("--workers", &RunOptions::workers, "N", threads,
       "Kernel threads that run the user-level ones (BOSK_WORKERS);\n"
       "otherwise one for each CPU");
  text("--stack", &RunOptions::stack, "SIZE", threads,
       "Stack of every thread but the first (OMP_STACKSIZE), such as 64M");

  const char* const placement = "Placement";
  text("--policy", &RunOptions::policy, "NAME[@LEVEL][,...]", placement,
       "Who decides where bubbles go, on a level of the machine: burst,\n"
       "cache, spread … or your own, ./FILE.so (BOSK_POLICY); list: shows\n"
       "which there are");
  command
      ->add_flag("--bind", options->bind,
                 "Bind threads to places: close, spread or primary, perhaps one\n"
                 "for each level (OMP_PROC_BIND); without HOW: close. Threads are\n"
                 "bound only if this or the environment says so")
      ->type_name("[=HOW]")
      ->group(placement);
  text("--places", &RunOptions::places, "PLACES", placement,
       "What to bind to: threads, cores, sockets, ll_caches, numa_domains\n"
       "or a list such as {0,1},{2,3} (OMP_PLACES); with --bind alone: cores");

  const char* const waiting = "Waiting";
  text("--wait", &RunOptions::wait, "active|passive", waiting,
       "Threads that wait keep polling, or sleep soon (OMP_WAIT_POLICY)");
  text("--preempt", &RunOptions::preempt, "TIME|off", waiting,
       "Time slice where threads share a worker (BOSK_PREEMPT_PERIOD);\n"
       "otherwise 10ms");

  const char* const machine = "Machine";
  text("--topology-xml", &RunOptions::topology_xml, "FILE", machine,
       "The machine as hwloc wrote it (lstopo FILE) instead of this one");
  text("--synthetic", &RunOptions::synthetic, "TEXT", machine,
       "An invented machine, such as \"node:4 core:4 pu:1\"");

  const char* const output = "Output";
  text("--report", &RunOptions::report, "-|full|FILE", output,
       "When the program ends, write where its time went and what to\n"
       "change: a page on standard error (-), with all details (full), or\n"
       "to a file (FILE.json: for programs). %p in a name is the process's\n"
       "number, %r its rank (MPI, Slurm), %h the host");
  command
      ->add_flag("--learn", options->learn,
                 "Watch which threads use which memory, and say at the end who\n"
                 "shares with whom and where threads had better run (observe);\n"
                 "move memory to the nodes that use it as well (data), or threads\n"
                 "to those that they share with (threads), or both, as if nothing\n"
                 "is given; any program, also without OpenMP")
      ->type_name("[=observe|data|threads|both]")
      ->group(output);
  text("--record", &RunOptions::record, "FILE", output,
       "With --learn: keep what was seen, for bosk learn FILE");
  command
      ->add_flag("--dry-run", options->dry_run, "Show the environment and the command; run nothing")
      ->group(output);

  auto comparison = std::make_shared<CompareOptions>();
  add_compare_options(command, comparison.get());

  command->callback([command, options, comparison] {
    run(*options, *comparison, program_words(command->remaining()));
  });
}

}  // namespace bosk::tools
