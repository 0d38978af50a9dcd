// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is to be compared, and the end of it.
#include "bosk/compare/compare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/parse.h"
#include "bosk/compare/libraries.h"
#include "bosk/compare/runs.h"
#include "bosk/compare/text.h"
#include "bosk/escaped.h"
#include "bosk/run_program.h"
#include "bosk/show_command.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr uint64_t kMostRuns = 1000;
constexpr size_t kUsualRuns = 5;
/// What CLI11 says of --compare without a value.
constexpr const char* kOnlyBoth = "true";

/// What `--compare=` lists.
struct What {
  std::vector<std::string> policies;
  std::vector<uint64_t> threads;
};

/// The parts between commas; a backslash keeps the next character from being one, and stays.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      parts.emplace_back();
      continue;
    }
    parts.back() += text[i];
    if (text[i] == '\\' && i + 1 < text.size()) parts.back() += text[++i];
  }
  return parts;
}

bool begins_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

What parse_what(const std::string& text) {
  const std::string policy = "policy=";
  const std::string threads = "threads=";
  What what;
  if (text == kOnlyBoth) return what;
  if (begins_with(text, policy)) {
    what.policies = listed(text.substr(policy.size()));
    for (const std::string& name : what.policies) {
      if (!name.empty() && name != "list") continue;
      throw OptionError(
          kUsage, fmt::format("--compare={}: policies are wanted, such as policy=spread,cache",
                              escaped(text)));
    }
    return what;
  }
  if (begins_with(text, threads)) {
    for (const std::string& word : listed(text.substr(threads.size()))) {
      uint64_t number;
      if (!base::parse_number(word.c_str(), 1, INT32_MAX, &number)) {
        throw OptionError(
            kUsage,
            fmt::format(
                "--compare={}: numbers from 1 on are wanted, such as threads=2,4,8, each for a "
                "run of its own; nesting levels cannot be given here",
                escaped(text)));
      }
      what.threads.push_back(number);
    }
    return what;
  }
  throw OptionError(kUsage,
                    fmt::format("--compare={}: there are --compare, --compare=policy=NAME,… and "
                                "--compare=threads=N,…",
                                escaped(text)));
}

size_t parse_runs(const std::string& text) {
  if (text.empty()) return kUsualRuns;
  uint64_t runs;
  if (!base::parse_number(text.c_str(), 1, kMostRuns, &runs)) {
    throw OptionError(kUsage, fmt::format("-n {}: a number of runs from 1 to {} is wanted",
                                          escaped(text), kMostRuns));
  }
  return runs;
}

/// Builds the variants of one command.
class Variants {
 public:
  Variants(const std::string& library, std::string program, std::vector<std::string> command)
      : library_(library), program_(std::move(program)), command_(std::move(command)) {}

  /// On libgomp: what OpenMP itself knows of the settings.
  void add_libgomp(const std::string& name, const RunOptions& options) {
    Variables variables = without_bosk(library_);
    for (const auto& [variable, value] : environment_for(options, library_)) {
      if (begins_with(variable, "OMP_")) variables.emplace_back(variable, value);
    }
    reference_ = list_.size();
    add(name, std::move(variables));
  }

  /// To be compared with the last one on libgomp.
  void add_bosk(const std::string& name, const RunOptions& options) {
    Variables variables = environment_for(options, library_);
    variables.insert(variables.begin(), {"LD_PRELOAD", preload_with({library_})});
    add(name, std::move(variables));
  }

  const std::vector<Variant>& list() const { return list_; }

 private:
  void add(const std::string& name, Variables variables) {
    list_.push_back({escaped(name), reference_, {program_, command_, std::move(variables)}});
  }

  const std::string& library_;
  std::string program_;
  std::vector<std::string> command_;
  size_t reference_ = 0;
  std::vector<Variant> list_;
};

void add_variants(const RunOptions& given, const What& what, Variants* to) {
  RunOptions options = given;
  if (!what.threads.empty()) {
    for (const uint64_t number : what.threads) {
      options.threads = std::to_string(number);
      const std::string with =
          fmt::format(" with {} {}", number, number == 1 ? "thread" : "threads");
      to->add_libgomp("libgomp" + with, options);
      to->add_bosk("bosk" + with, options);
    }
    return;
  }
  to->add_libgomp("libgomp", options);
  to->add_bosk("bosk", options);
  for (const std::string& policy : what.policies) {
    options.policy = policy;
    to->add_bosk("bosk under " + policy, options);
  }
}

/// The program as bosk can take it, and as nothing else would.
std::string checked_program(const std::string& name) {
  if (begins_with(name, "policy=") || begins_with(name, "threads=")) {
    throw OptionError(kUsage, fmt::format("did you mean --compare={}?", escaped(name)));
  }
  std::string program = find_program(name);
  const std::string reason = check_program(program);
  if (!reason.empty())
    throw ProgramError(kCannotRun, reason + ", both times: there is nothing to compare");
  return program;
}

/// A program may name our folder itself (RPATH): it would have our library in all runs.
void check_reference(const Variant& on_libgomp, const std::string& library,
                     const RepeatedInput& input, EndingSignals* signals) {
  Launch listing = on_libgomp.launch;
  listing.command = listing_command(listing.program);
  if (listing.command.empty()) return;
  listing.program = listing.command.front();
  const Finished listed = run_once(listing, input, signals, [](double) {});
  const std::string found =
      bosk_in_listing(listed.output.text_at(0, listed.output.size()), library);
  if (found.empty()) return;
  throw ProgramError(
      kCannotRun,
      fmt::format(
          "{} is linked so that it loads bosk's library by itself ({}): both would run on bosk",
          escaped(on_libgomp.launch.program), escaped(found)));
}

void show(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    fmt::print("# {}\n", variant.name);
    show_command(variant.launch.variables, variant.launch.program, variant.launch.command);
  }
}

/// Descriptors below 3 are the standard ones: what is opened later must not become one of them.
void open_missing_standard_files() {
  for (int file = 0; file < 3; ++file) {
    if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
  }
}

std::string name_of_signal(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace

void add_compare_options(CLI::App* command, CompareOptions* options) {
  const char* const group = "Comparison";
  command
      ->add_flag("--compare", options->what,
                 "Run the program several times, on libgomp and on bosk in turn:\n"
                 "times, memory, and whether its output is the same. Also with\n"
                 "policy=NAME,... or threads=N,...: what to try")
      ->type_name("[=WHAT]")
      ->group(group);
  command
      ->add_option("-n,--runs", options->runs, "With --compare: how often each is run; otherwise 5")
      ->type_name("N")
      ->group(group);
}

std::string runs_without_comparison(const CompareOptions& options,
                                    const std::vector<std::string>& command) {
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789,") == std::string::npos;
  };
  // As other launchers have it: -n 4, -n4, -np 4. Of the last CLI11 makes -n p, and 4 is the program.
  const size_t digit = options.runs.find_first_of("0123456789");
  std::string number = digit != std::string::npos ? options.runs.substr(digit) : "";
  if (number.empty() && !command.empty()) number = command.front();
  const std::string hint =
      is_number(number) ? fmt::format("; did you mean --threads {}?", number) : "";
  return fmt::format(
      "-n is how often --compare runs the program, and --compare was not given{} (see bosk run --help)",
      hint);
}

int compare(const RunOptions& options, const CompareOptions& comparison, const std::string& library,
            const std::vector<std::string>& command) {
  if (!options.report.empty()) {
    throw OptionError(kUsage, "--report tells of one run, --compare of many: give one of them");
  }
  const What what = parse_what(comparison.what);
  if (!what.threads.empty() && !options.threads.empty()) {
    throw OptionError(
        kUsage, "--threads and --compare=threads= both say how many threads: give one of them");
  }
  const size_t rounds = parse_runs(comparison.runs);
  Variants variants(library, checked_program(command.front()), command);
  add_variants(options, what, &variants);
  if (options.dry_run) {
    show(variants.list());
    return 0;
  }
  open_missing_standard_files();
  const RepeatedInput input;
  EndingSignals signals;
  check_reference(variants.list().front(), library, input, &signals);
  const Compared compared = run_in_turn(variants.list(), rounds, input, &signals);
  if (compared.signal != 0) {
    fmt::print(stderr, "bosk: {} after {} of {} rounds\n", name_of_signal(compared.signal),
               compared.rounds, rounds);
  }
  if (compared.rounds != 0) fmt::print("{}", comparison_text(compared.variants));
  return compared.signal != 0 ? 128 + compared.signal : common_status(compared.variants);
}

}  // namespace bosk::tools
