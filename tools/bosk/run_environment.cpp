// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks options by the library's own parsers, so that tool and library cannot disagree.
#include "run_environment.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/parse.h"
#include "base/settings.h"
#include "omp/environment.h"
#include "omp/places_sysfs.h"
#include "policies/registry.h"
#include "topology/source.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr int kFailure = 125;

template <typename... Arguments>
[[noreturn]] void reject(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw OptionError(kUsage, fmt::format(format, std::forward<Arguments>(arguments)...));
}

using MachinePointer = std::unique_ptr<topology::Machine, decltype(&topology::free_machine)>;

/// The machine that the program will see. Throws if the one that was asked for cannot be read.
MachinePointer load(const RunOptions& options) {
  topology::MachineSource source = topology::machine_source_from_environment();
  if (!options.topology_xml.empty()) {
    source.from = topology::MachineSource::From::kXmlFile;
    source.text = options.topology_xml.c_str();
  } else if (!options.synthetic.empty()) {
    source.from = topology::MachineSource::From::kSynthetic;
    source.text = options.synthetic.c_str();
  }
  topology::Error error;
  MachinePointer machine(topology::load_machine(source, &error), topology::free_machine);
  if (machine == nullptr) throw OptionError(kFailure, error.text);
  return machine;
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// As BOSK_POLICY wants it.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '@' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

/// The same list, whatever folder the program goes to before it reads it; whether it names files.
std::string with_absolute_paths(const std::string& text, bool* has_files) {
  base::PolicyList list{};
  *has_files = false;
  if (!base::parse_policy_list(text.c_str(), &list)) return text;
  std::string result;
  for (uint32_t i = 0; i < list.count; ++i) {
    const base::PolicyClause& clause = list.clause[i];
    *has_files |= clause.plugin != nullptr;
    if (i != 0) result += ',';
    result += clause.plugin != nullptr ? quoted(absolute(clause.plugin)) : clause.name;
    if (clause.argument[0] != '\0') result += ":" + quoted(clause.argument);
    if (clause.level[0] != '\0') result += std::string("@") + clause.level;
  }
  base::release_policy_list(&list);
  return *has_files ? result : text;
}

void check_policy(const RunOptions& options, bool has_files, const std::string& library) {
  const MachinePointer machine = load(options);
  // A plug-in that is linked with libgomp.so.1 finds the one here that it will find in the program. If
  // it cannot be loaded, that is said before the program is run.
  if (has_files) dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  policies::PolicyPlan plan;
  topology::Error error;
  if (!policies::make_plan(options.policy.c_str(), *machine, &plan, &error)) {
    reject("--policy: {}", error.text);
  }
}

/// How many numbers `--threads` lists.
uint32_t check_threads(const std::string& threads) {
  base::MappedArray<uint32_t> list;
  if (!omp::parse_thread_list(threads.c_str(), &list)) {
    reject("--threads {}: give a number for each nesting level, such as 4,2", threads);
  }
  const uint32_t count = list.size();
  list.release();
  return count;
}

void check_bind(const std::string& bind) {
  base::MappedArray<omp::Bind> list;
  const bool listed = omp::parse_bind_list(bind.c_str(), &list);
  list.release();
  bool truth;
  if (!listed && !base::parse_choice(bind.c_str(), "true", "false", &truth)) {
    reject("--bind={}: there are close, spread, primary (one, or one for each level), and false",
           bind);
  }
}

void check_places(const std::string& text) {
  base::MessageLog log;
  omp::PlaceList places{};
  const topology::ProcessCpus cpus{};
  // The form alone: which of them can be used the library says, of the machine that it finds.
  const bool good =
      omp::parse_places(text.c_str(), cpus, omp::sysfs_place_source(), true, &places, &log);
  places.release();
  log.release();
  if (!good) {
    reject(
        "--places {}: there are threads, cores, sockets, ll_caches, numa_domains, each perhaps with how many of "
        "them, as cores(2), and lists such as {{0,1}},{{2,3}}",
        text);
  }
}

void check_number(const char* option, const std::string& text, uint64_t least, uint64_t most) {
  uint64_t number;
  if (!base::parse_number(text.c_str(), least, most, &number)) {
    reject("{}{}: a number from {} to {} is wanted", option, text, least, most);
  }
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void add_threads(const RunOptions& options, Variables* to) {
  if (!options.threads.empty()) {
    const uint32_t levels = check_threads(options.threads);
    to->emplace_back("OMP_NUM_THREADS", options.threads);
    if (levels > 1 && options.nested.empty()) {
      to->emplace_back("OMP_MAX_ACTIVE_LEVELS", std::to_string(levels));
    }
  }
  if (!options.nested.empty()) {
    check_number("--nested=", options.nested, 0, omp::kSupportedActiveLevels);
    to->emplace_back("OMP_MAX_ACTIVE_LEVELS", options.nested);
  }
  if (!options.workers.empty()) {
    check_number("--workers ", options.workers, 1, base::kMostWorkers);
    to->emplace_back("BOSK_WORKERS", options.workers);
  }
  if (!options.stack.empty()) {
    uint64_t bytes;
    if (!omp::parse_stack_size(options.stack.c_str(), &bytes)) {
      reject("--stack {}: a size is wanted, such as 64M (units B, K, M, G; none means K)",
             options.stack);
    }
    to->emplace_back("OMP_STACKSIZE", options.stack);
  }
}

void add_placement(const RunOptions& options, const std::string& library, Variables* to) {
  if (!options.policy.empty()) {
    bool has_files;
    const std::string policy = with_absolute_paths(options.policy, &has_files);
    check_policy(options, has_files, library);
    to->emplace_back("BOSK_POLICY", policy);
  }
  if (!options.bind.empty()) {
    check_bind(options.bind);
    to->emplace_back("OMP_PROC_BIND", options.bind);
  }
  if (!options.places.empty()) {
    check_places(options.places);
    to->emplace_back("OMP_PLACES", options.places);
  } else if (!options.bind.empty() && !is_set("OMP_PLACES") && !is_set("GOMP_CPU_AFFINITY")) {
    // A core is what one thread at a time should have; siblings are for those who ask.
    to->emplace_back("OMP_PLACES", "cores");
  }
}

void add_waiting(const RunOptions& options, Variables* to) {
  if (!options.wait.empty()) {
    omp::WaitPolicy policy;
    if (!omp::parse_wait_policy(options.wait.c_str(), &policy)) {
      reject("--wait {}: there are active and passive", options.wait);
    }
    to->emplace_back("OMP_WAIT_POLICY", options.wait);
  }
  if (!options.preempt.empty()) {
    uint32_t microseconds;
    if (!base::parse_period(options.preempt.c_str(), &microseconds)) {
      reject("--preempt {}: a time from 100us to 10s is wanted, such as 10ms, or off",
             options.preempt);
    }
    to->emplace_back("BOSK_PREEMPT_PERIOD", options.preempt);
  }
}

void add_machine(const RunOptions& options, Variables* to) {
  if (!options.topology_xml.empty() && !options.synthetic.empty()) {
    reject("--topology-xml and --synthetic both say what the machine is: give one of them");
  }
  if (options.topology_xml.empty() && options.synthetic.empty()) return;
  load(options);
  if (!options.topology_xml.empty()) {
    // The program may change its folder before it reads this.
    to->emplace_back("BOSK_TOPOLOGY_XML", absolute(options.topology_xml));
  } else {
    to->emplace_back("BOSK_SYNTHETIC", options.synthetic);
  }
}

}  // namespace

Variables environment_for(const RunOptions& given, const std::string& library) {
  RunOptions options = given;
  // What CLI11 says of an option without its value.
  if (options.bind == "true") options.bind = "close";
  if (options.nested == "true") options.nested = std::to_string(omp::kSupportedActiveLevels);
  Variables variables;
  add_machine(options, &variables);
  add_threads(options, &variables);
  add_placement(options, library, &variables);
  add_waiting(options, &variables);
  if (!options.report.empty()) {
    variables.emplace_back("BOSK_REPORT", options.report == "-" || options.report == "full"
                                              ? "-"
                                              : absolute(options.report));
  }
  return variables;
}

std::string preload_with(const std::vector<std::string>& libraries) {
  std::string list;
  for (const std::string& library : libraries) {
    // The loader separates by both, and knows no quotes.
    if (library.find_first_of(" :") != std::string::npos) {
      throw OptionError(kFailure,
                        fmt::format("{}: LD_PRELOAD cannot name a file with a blank or a colon "
                                    "in its path; install bosk elsewhere",
                                    library));
    }
    list += (list.empty() ? "" : ":") + library;
  }
  const char* present = std::getenv("LD_PRELOAD");
  if (present == nullptr) return list;
  std::string others = present;
  for (char& c : others) {
    if (c == ' ') c = ':';
  }
  std::stringstream reader(others);
  for (std::string other; std::getline(reader, other, ':');) {
    const bool is_ours = std::find(libraries.begin(), libraries.end(), other) != libraries.end();
    if (!other.empty() && !is_ours) list += ":" + other;
  }
  return list;
}

}  // namespace bosk::tools
