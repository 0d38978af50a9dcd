// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "affinity/acting/thread_mover.h"
#include "bosk/escaped.h"
#include "bosk/learn/learn_json.h"
#include "bosk/learn/learn_page.h"
#include "bosk/learn/learning.h"
#include "observed/hand_over.h"
#include "topology/source.h"

namespace bosk::tools {
namespace {

constexpr int kUsage = 2;
constexpr int kFailure = 125;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// BOSK_LEARN.
bool is_forced() {
  const char* text = std::getenv("BOSK_LEARN");
  if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return false;
  if (std::strcmp(text, "force") == 0) return true;
  throw OptionError(
      kUsage, fmt::format("BOSK_LEARN={}: auto is wanted, or force, which observes also where "
                          "nothing can be gained",
                          escaped(text)));
}

/// `what`: "threads" or "data".
bool moves(const RunOptions& options, std::string_view what) {
  return options.learn == what || options.learn == "both" || options.learn == "true";
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
  observer_settings();
  is_forced();
}

std::string why_learning_is_off(const RunOptions& options) {
  if (options.learn.empty() || options.learn == "observe" || !options.record.empty() || is_forced())
    return "";
  const topology::Machine& machine = *topology::process_machine(nullptr);
  const bool may_move_threads =
      moves(options, "threads") && affinity::ThreadMover::is_any_use(machine);
  const bool may_move_data = moves(options, "data") && machine.n_nodes > 1;
  if (may_move_threads || may_move_data) return "";
  return fmt::format(
      "{}: nothing was observed (BOSK_LEARN=force does it all the same, and --learn=observe)",
      !moves(options, "threads") ? "one node: there is nowhere to move memory to"
      : !moves(options, "data")
          ? "all CPUs share a cache or a node: it is the same where threads run"
          : "one node and one cache: it is the same where threads run and where memory lies");
}

LearnRun::LearnRun(const RunOptions& options, const std::vector<std::string>& words) {
  check_learn_options(options);
  program_ = joined(words);
  off_ = why_learning_is_off(options);
  if (!off_.empty()) return;
  learning_ = std::make_unique<Learning>(
      Learning::Wish{program_, options.record, moves(options, "data"), moves(options, "threads")});
}

LearnRun::~LearnRun() = default;

Variables LearnRun::variables() const {
  if (!learning_) return {};
  return {{BOSK_OBSERVER_VARIABLE, learning_->name()}};
}

Companion LearnRun::companion() {
  if (!learning_) return {nullptr, [this] { fmt::print(stderr, "{}", off_page(program_, off_)); }};
  return {[this](pid_t process) {
            learning_->begin([&](affinity::Observer* observer) { observer->watch(process); });
          },
          [this] {
            learning_->end();
            fmt::print(stderr, "{}", learning_->page());
          }};
}

nlohmann::ordered_json LearnRun::learnt() {
  return learning_ ? learning_->json() : off_json(program_, off_);
}

}  // namespace bosk::tools
