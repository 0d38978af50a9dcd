// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learning.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "bosk/escaped.h"
#include "bosk/learn/learn_json.h"
#include "bosk/run_environment.h"
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

/// It can be made, before anything begins.
void check_record(const std::string& record) {
  if (record.empty()) return;
  std::FILE* file = std::fopen(record.c_str(), "wbe");
  if (file == nullptr)
    throw OptionError(kFailure,
                      fmt::format("--record {}: {}", escaped(record), std::strerror(errno)));
  std::fclose(file);
}

}  // namespace

affinity::ObserverSettings observer_settings() {
  affinity::ObserverSettings wanted;
  wanted.overhead = overhead_wanted();
  wanted.without_events = !events_are_wanted();
  return wanted;
}

Learning::Learning(const Wish& wish) try
    : wish_(wish),
      machine_(topology::process_machine(nullptr)),
      learner_(affinity::nodes_of(*machine_),
               wish.moves_data ? affinity::Learner::kRecentAccesses : 0),
      observer_(settings(), &learner_) {
  check_record(wish.record);
} catch (const std::system_error& error) {
  throw OptionError(kFailure, fmt::format("to learn: {}", error.what()));
}

affinity::ObserverSettings Learning::settings() const {
  affinity::ObserverSettings wanted = observer_settings();
  // The numbers of an invented machine's CPUs and nodes are not the system's.
  if (!machine_->this_system) return wanted;
  if (wish_.moves_data && machine_->n_nodes > 1)
    for (const topology::NumaNode& node : machine_->nodes())
      wanted.move_pages_to.push_back(static_cast<int>(node.os_index));
  if (wish_.moves_threads && affinity::ThreadMover::is_any_use(*machine_)) {
    wanted.place_threads_on = machine_;
    wanted.cpus = affinity::KernelThreads().mask(0);
  }
  return wanted;
}

void Learning::begin(const std::function<void(affinity::Observer*)>& whom) {
  whom(&observer_);
  if (!wish_.record.empty()) {
    affinity::RecordingHead head;
    head.host = host_name();
    head.program = wish_.program;
    head.date = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
    head.source = observer_.counts().source;
    head.blind = observer_.counts().blind;
    head.nodes = learner_.nodes();
    try {
      writer_ = std::make_unique<affinity::RecordingWriter>(wish_.record, head);
      observer_.record_to(writer_.get());
    } catch (const affinity::RecordingError& error) {
      // It could be written when the options were looked at.
      fmt::print(stderr, "bosk: {}\n", error.what());
    }
  }
  began_ = std::chrono::steady_clock::now();
  thread_ = std::thread([this] { observer_.run(); });
}

void Learning::end() {
  if (!thread_.joinable()) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
  observer_.stop();
  thread_.join();
  learnt_.program = wish_.program;
  learnt_.source = observer_.counts().source;
  learnt_.blind = observer_.counts().blind;
  learnt_.seconds = took.count();
  learnt_.costs = &observer_.costs();
  learnt_.counts = &observer_.counts();
  learnt_.moves_data = wish_.moves_data;
  learnt_.moves_threads = wish_.moves_threads;
  if (!writer_) return;
  try {
    writer_->finish();
  } catch (const affinity::RecordingError& error) {
    fmt::print(stderr, "bosk: {}\n", error.what());
  }
}

std::string Learning::page() { return learn_page(learnt_, &learner_, machine_); }

nlohmann::ordered_json Learning::json() { return learn_json(learnt_, &learner_, machine_); }

}  // namespace bosk::tools
