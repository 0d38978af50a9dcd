// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>

#include "affinity/observer/observer.h"
#include "affinity/recording.h"
#include "bosk/escaped.h"
#include "bosk/learn/learn_json.h"
#include "bosk/learn/learn_page.h"
#include "observed/hand_over.h"
#include "topology/source.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr int kFailure = 125;

/// BOSK_LEARN_OVERHEAD, per cent.
double overhead_wanted() {
  const char* text = std::getenv("BOSK_LEARN_OVERHEAD");
  const affinity::ObserverSettings usual;
  if (text == nullptr || *text == '\0') return usual.overhead;
  double per_cent = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, per_cent);
  const bool is_whole = rest == end || std::strcmp(rest, "%") == 0 || std::strcmp(rest, " %") == 0;
  if (error != std::errc() || !is_whole || !(per_cent > 0 && per_cent <= 100))
    throw OptionError(
        kUsage, fmt::format("BOSK_LEARN_OVERHEAD={}: per cent of the program's time are wanted, "
                            "more than 0, at most 100, such as 1.8",
                            escaped(text)));
  return per_cent / 100;
}

/// BOSK_LEARN_EVENTS.
bool events_are_wanted() {
  const char* text = std::getenv("BOSK_LEARN_EVENTS");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "on") == 0) return true;
  if (std::strcmp(text, "off") == 0) return false;
  throw OptionError(
      kUsage, fmt::format("BOSK_LEARN_EVENTS={}: on is wanted, or off, which does without perf",
                          escaped(text)));
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

std::string observed_library(const std::string& library) {
  const std::filesystem::path path =
      std::filesystem::path(library).parent_path() / "libbosk-observed.so";
  if (access(path.c_str(), R_OK) != 0)
    throw OptionError(kFailure, fmt::format("{}: {}; build or install it beside the library",
                                            path.string(), std::strerror(errno)));
  return path.string();
}

void check_learn_options(const RunOptions& options) {
  if (options.learn.empty()) {
    if (!options.record.empty())
      throw OptionError(kUsage, "--record keeps what --learn sees: give --learn=observe as well");
    return;
  }
  static constexpr std::string_view kWords[] = {"true", "observe", "data", "threads", "both"};
  if (std::ranges::find(kWords, options.learn) == std::end(kWords))
    throw OptionError(
        kUsage,
        fmt::format(
            "--learn={}: there are observe, which looks only, threads, data, and both (as --learn alone)",
            escaped(options.learn)));
  overhead_wanted();
  events_are_wanted();
}

struct LearnRun::State {
  State(const RunOptions& options, std::string program_text)
      : program(std::move(program_text)),
        machine(topology::process_machine(nullptr)),
        moves_data(options.learn == "data" || is_both(options)),
        moves_threads(options.learn == "threads" || is_both(options)),
        learner(affinity::nodes_of(*machine), moves_data ? affinity::Learner::kRecentAccesses : 0),
        observer(settings(), &learner),
        record(options.record) {}

  static bool is_both(const RunOptions& options) {
    return options.learn == "both" || options.learn == "true";
  }

  affinity::ObserverSettings settings() const {
    affinity::ObserverSettings wanted;
    wanted.overhead = overhead_wanted();
    wanted.without_events = !events_are_wanted();
    // The numbers of an invented machine's CPUs and nodes are not the system's.
    if (!machine->this_system) return wanted;
    if (moves_data && machine->n_nodes > 1)
      for (const topology::NumaNode& node : machine->nodes())
        wanted.move_pages_to.push_back(static_cast<int>(node.os_index));
    if (moves_threads && affinity::ThreadMover::is_any_use(*machine)) {
      wanted.place_threads_on = machine;
      wanted.cpus = affinity::KernelThreads().mask(0);
    }
    return wanted;
  }

  void begin(pid_t process);
  void end();

  std::string program;
  const topology::Machine* machine;
  bool moves_data;
  bool moves_threads;
  affinity::Learner learner;
  affinity::Observer observer;
  std::string record;
  std::unique_ptr<affinity::RecordingWriter> writer;
  std::chrono::steady_clock::time_point began;
  Learnt learnt;
  std::thread thread;
};

void LearnRun::State::begin(pid_t process) {
  observer.watch(process);
  if (!record.empty()) {
    affinity::RecordingHead head;
    head.host = host_name();
    head.program = program;
    head.date = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
    head.source = observer.counts().source;
    head.blind = observer.counts().blind;
    head.nodes = learner.nodes();
    try {
      writer = std::make_unique<affinity::RecordingWriter>(record, head);
      observer.record_to(writer.get());
    } catch (const affinity::RecordingError& error) {
      // It could be written when the options were looked at.
      fmt::print(stderr, "bosk: {}\n", error.what());
    }
  }
  began = std::chrono::steady_clock::now();
  thread = std::thread([this] { observer.run(); });
}

void LearnRun::State::end() {
  if (!thread.joinable()) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  observer.stop();
  thread.join();
  learnt.program = program;
  learnt.source = observer.counts().source;
  learnt.blind = observer.counts().blind;
  learnt.seconds = took.count();
  learnt.costs = &observer.costs();
  learnt.counts = &observer.counts();
  learnt.moves_data = moves_data;
  learnt.moves_threads = moves_threads;
  fmt::print(stderr, "{}", learn_page(learnt, &learner, machine));
  if (!writer) return;
  try {
    writer->finish();
  } catch (const affinity::RecordingError& error) {
    fmt::print(stderr, "bosk: {}\n", error.what());
  }
}

LearnRun::LearnRun(const RunOptions& options, const std::vector<std::string>& words) {
  check_learn_options(options);
  if (!options.record.empty()) {
    std::FILE* file = std::fopen(options.record.c_str(), "wbe");
    if (file == nullptr)
      throw OptionError(
          kFailure, fmt::format("--record {}: {}", escaped(options.record), std::strerror(errno)));
    std::fclose(file);
  }
  try {
    state_ = std::make_unique<State>(options, joined(words));
  } catch (const std::system_error& error) {
    throw OptionError(kFailure, fmt::format("--learn: {}", error.what()));
  }
}

LearnRun::~LearnRun() = default;

Variables LearnRun::variables() const {
  return {{BOSK_OBSERVER_VARIABLE, state_->observer.name()}};
}

Companion LearnRun::companion() {
  return {[this](pid_t process) { state_->begin(process); }, [this] { state_->end(); }};
}

nlohmann::ordered_json LearnRun::learnt() {
  return learn_json(state_->learnt, &state_->learner, state_->machine);
}

}  // namespace bosk::tools
