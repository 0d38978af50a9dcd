// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads BOSK_*.
#include "base/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/counters_setting.h"
#include "base/mapped_array.h"
#include "base/memory_moves_setting.h"
#include "base/memory_watch_setting.h"
#include "base/message.h"
#include "base/message_log.h"
#include "base/next_touch_setting.h"
#include "base/parse.h"
#include "base/setting_names.h"

namespace bosk::base {
namespace {

/// Written before the settings are published, by all who read them first to the same.
constinit std::atomic<bool> mark_at_regions{false};
constinit std::atomic<MemoryMoves> chosen_moves{MemoryMoves::kAuto};
constinit std::atomic<MemoryWatch> chosen_watch{MemoryWatch::kAuto};
constinit std::atomic<bool> chosen_counters{false};

// An empty value is no value: `BOSK_REPORT= ./app` is how shells unset for one command. A setuid
// program takes no orders from the environment: some of these name files to write.
const char* setting(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr || TextReader(value).at_end() ? nullptr : value;
}

void malformed(MessageLog* log, const char* name, const char* value, const char* what,
               const char* accepted, const char* used) {
  log->add("%s=%.200s is not %s; accepted: %s; using %s", name, value, what, accepted, used);
}

const char* keep(const char* text) {
  if (text == nullptr) return nullptr;
  const char* copy = keep_text(text, strlen(text));
  if (copy == nullptr) die(1, "out of memory while reading the environment");
  return copy;
}

void read_settings(Settings* to, MessageLog* log) {
  to->preempt_period_us = kDefaultPreemptPeriodUs;
  if (const char* text = setting("BOSK_POLICY"); text && !parse_policy_list(text, &to->policy)) {
    malformed(log, "BOSK_POLICY", text, "a list of policies",
              "NAME[:ARGUMENT][@LEVEL], NAME a policy or a file such as ./mine.so, several with "
              "commas between (bosk topo names the levels)",
              "the default policy");
  }
  if (const char* text = setting("BOSK_PREEMPT_PERIOD");
      text && !parse_period(text, &to->preempt_period_us)) {
    malformed(log, "BOSK_PREEMPT_PERIOD", text, "a period",
              "a number with us, ms or s from 100us to 10s, or off", "10ms");
  }
  if (const char* text = setting("BOSK_REDISTRIBUTE");
      text && !parse_period(text, &to->redistribute_us)) {
    malformed(log, "BOSK_REDISTRIBUTE", text, "a period",
              "a number with us, ms or s from 100us to 10s, or off", "off");
  }
  if (const char* text = setting("BOSK_IDENTITY"); text && !parse_identity(text, &to->identity)) {
    malformed(log, "BOSK_IDENTITY", text, "a kind of identity", "auto, strict, relaxed, kthread",
              "auto");
  }
  if (const char* text = setting("BOSK_WORKERS")) {
    uint64_t number;
    if (parse_number(text, 1, kMostWorkers, &number)) {
      to->workers = static_cast<uint32_t>(number);
    } else {
      malformed(log, "BOSK_WORKERS", text, "a number of workers", "1 to 65536",
                "one per CPU of the affinity mask");
    }
  }
  if (const char* text = setting("BOSK_WORKER_HOMES"); text && !parse_homes(text, &to->homes)) {
    malformed(log, "BOSK_WORKER_HOMES", text, "a choice", "auto, on, off", "auto");
  }
  if (const char* text = setting("BOSK_SELFTEST")) {
    const char* const words[] = {"fail-identity", "move-teams"};
    const int which = parse_word(text, words, 2);
    to->selftest_fail_identity = which == 0;
    to->selftest_move_teams = which == 1;
    if (which < 0) {
      malformed(log, "BOSK_SELFTEST", text, "a self-test", "fail-identity, move-teams", "none");
    }
  }
  if (const char* text = setting("BOSK_LOAD"); text && !parse_load_list(text, &to->loads)) {
    malformed(log, "BOSK_LOAD", text, "a list of loads",
              "LEVEL:THREADS=LOAD[,THREADS=LOAD][;LEVEL:...] with THREADS a number, n-m or *, for "
              "instance 1:0=25,1-3=10",
              "none");
  }
  if (const char* text = setting("BOSK_RELATION");
      text && !parse_relation_list(text, &to->relations)) {
    malformed(
        log, "BOSK_RELATION", text, "a list of relations",
        "LEVEL:RELATION[;LEVEL:...] with RELATION one of none, data-sharing, collective, smt, "
        "gang, memory-beside-compute, for instance 2:gang",
        "none");
  }
  if (const char* text = setting("BOSK_TEAM_SIZE")) {
    const char* const words[] = {"given", "load"};
    const int which = parse_word(text, words, 2);
    to->team_size_by_load = which == 1;
    if (which < 0)
      malformed(log, "BOSK_TEAM_SIZE", text, "a way to size teams", "given, load", "given");
  }
  if (const char* text = setting("BOSK_LEARN_LOAD")) {
    const char* const words[] = {"auto", "on", "off"};
    const int which = parse_word(text, words, 3);
    if (which >= 0) to->learn_load = static_cast<LearnLoad>(which);
    if (which < 0) malformed(log, "BOSK_LEARN_LOAD", text, "a choice", "auto, on, off", "auto");
  }
  if (const char* text = setting("BOSK_NEXT_TOUCH")) {
    const char* const words[] = {"off", "regions"};
    const int which = parse_word(text, words, 2);
    if (which == 1) mark_at_regions.store(true, std::memory_order_relaxed);
    if (which < 0)
      malformed(log, "BOSK_NEXT_TOUCH", text, "a time to mark memory", "off, regions", "off");
  }
  if (const char* text = setting("BOSK_MEMORY_MOVES")) {
    const char* const words[] = {"auto", "threads", "data", "next-touch", "mixed"};
    const int which = parse_word(text, words, 5);
    if (which >= 0)
      chosen_moves.store(static_cast<MemoryMoves>(which), std::memory_order_relaxed);
    else
      malformed(log, "BOSK_MEMORY_MOVES", text, "a thing to move",
                "auto, threads, data, next-touch, mixed", "auto");
  }
  if (const char* text = setting("BOSK_COUNTERS")) {
    const char* const words[] = {"off", "on"};
    const int which = parse_word(text, words, 2);
    if (which == 1) chosen_counters.store(true, std::memory_order_relaxed);
    if (which < 0) malformed(log, "BOSK_COUNTERS", text, "a choice", "off, on", "off");
  }
  if (const char* text = setting("BOSK_MEMORY_WATCH")) {
    const char* const words[] = {"auto", "off", "counters", "pages"};
    const int which = parse_word(text, words, 4);
    if (which >= 0)
      chosen_watch.store(static_cast<MemoryWatch>(which), std::memory_order_relaxed);
    else
      malformed(log, "BOSK_MEMORY_WATCH", text, "a way to watch memory",
                "auto, off, counters, pages", "auto");
  }
  note_unknown_settings(log);
  to->report = keep(setting("BOSK_REPORT"));
  to->report_data = keep(setting("BOSK_REPORT_DATA"));
  to->topology_xml = keep(setting("BOSK_TOPOLOGY_XML"));
  to->synthetic = keep(setting("BOSK_SYNTHETIC"));
}

void release(const char* kept) {
  if (kept != nullptr) unmap_pages(const_cast<char*>(kept), strlen(kept) + 1);
}

}  // namespace

bool parse_period(const char* text, uint32_t* microseconds) {
  TextReader reader(text);
  if (reader.take_word("off")) {
    if (!reader.at_end()) return false;
    *microseconds = 0;
    return true;
  }
  uint64_t number;
  if (!reader.take_unsigned(&number)) return false;
  uint64_t unit = 1000;
  if (reader.take_word("us")) {
    unit = 1;
  } else if (reader.take_word("s")) {
    unit = 1'000'000;
  } else {
    reader.take_word("ms");
  }
  if (!reader.at_end()) return false;
  if (number != 0) {
    if (number > kMostPreemptPeriodUs) return false;
    number *= unit;
    if (number < kLeastPreemptPeriodUs || number > kMostPreemptPeriodUs) return false;
  }
  *microseconds = static_cast<uint32_t>(number);
  return true;
}

bool parse_identity(const char* text, IdentityChoice* choice) {
  const char* const words[] = {"auto", "strict", "relaxed", "kthread"};
  const int which = parse_word(text, words, 4);
  if (which < 0) return false;
  *choice = static_cast<IdentityChoice>(which);
  return true;
}

bool parse_homes(const char* text, HomesChoice* choice) {
  const char* const words[] = {"auto", "off", "on"};
  const int which = parse_word(text, words, 3);
  if (which < 0) return false;
  *choice = static_cast<HomesChoice>(which);
  return true;
}

bool next_touch_regions() {
  settings();
  // relaxed: settings() has seen what was published after it.
  return mark_at_regions.load(std::memory_order_relaxed);
}

MemoryMoves memory_moves() {
  settings();
  // relaxed: as above.
  return chosen_moves.load(std::memory_order_relaxed);
}

bool counters_wanted() {
  settings();
  // relaxed: as above.
  return chosen_counters.load(std::memory_order_relaxed);
}

MemoryWatch memory_watch() {
  settings();
  // relaxed: as above.
  return chosen_watch.load(std::memory_order_relaxed);
}

namespace detail {

constinit PublishOnce<Settings> published_settings;

const Settings& load_settings() {
  auto* made = static_cast<Settings*>(map_pages(sizeof(Settings)));
  if (made == nullptr) die(1, "out of memory while reading the environment");
  MessageLog log;
  read_settings(made, &log);
  if (published_settings.publish(made)) {
    log.tell_and_release(say);
    return *made;
  }
  log.release();
  release_policy_list(&made->policy);
  release(made->report);
  release(made->report_data);
  release(made->topology_xml);
  release(made->synthetic);
  unmap_pages(made, sizeof(Settings));
  return *published_settings.get();
}

}  // namespace detail
}  // namespace bosk::base
