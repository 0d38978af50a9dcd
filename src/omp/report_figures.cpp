// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report's figures of what moved while the program ran: bubbles, memory, and pages that were marked.
#include "omp/report_text.h"

namespace bosk::omp {
namespace {

using Number = unsigned long long;

const char* name_of(policies::MemoryTrigger trigger) {
  switch (trigger) {
    case policies::MemoryTrigger::kAttached:
      return "attached";
    case policies::MemoryTrigger::kIdle:
      return "idle";
    case policies::MemoryTrigger::kHint:
      return "told";
    case policies::MemoryTrigger::kPlaced:
      return "placed";
    case policies::MemoryTrigger::kRemote:
      return "remote";
  }
  return "?";
}

/// Who has watched whether threads reach for memory of other nodes.
void add_remote(Text* text, const ReportData& data) {
  const policies::RemoteCounts& remote = data.remote;
  if (remote.source == nullptr) return;
  if (remote.intervals == 0) {
    text->add("  remote    not watched: %s\n", remote.source);
    return;
  }
  text->add(
      "  remote    by %s: %llu looks, the last one found %.0f %%; asked for a decision %llu times\n",
      remote.source, static_cast<Number>(remote.intervals), 100 * remote.last_share,
      static_cast<Number>(remote.raised));
}

/// What the policy memory has decided: how often what, what came of it, and the numbers of the last time.
void add_memory(Text* text, const ReportData& data) {
  const policies::MemoryDecisions& memory = data.memory;
  if (memory.taken == 0) return;
  text->add("memory      %llu decision%s:", static_cast<Number>(memory.taken),
            plural(memory.taken));
  const char* separator = " ";
  for (uint32_t i = 0; i < policies::kMemoryActions; ++i) {
    if (memory.by_action[i] == 0) continue;
    text->add("%s%llu %s", separator, static_cast<Number>(memory.by_action[i]),
              policies::memory_action_name(static_cast<policies::MemoryAction>(i)));
    separator = ", ";
  }
  text->add("; %llu area%s moved (%llu pages), %llu marked, %llu could not\n",
            static_cast<Number>(memory.areas), plural(memory.areas),
            static_cast<Number>(memory.pages.moved), static_cast<Number>(memory.marked),
            static_cast<Number>(memory.stayed));
  if (memory.pages.unsplit != 0)
    text->add("  stayed    %llu page%s: parts of huge pages that cannot be split\n",
              static_cast<Number>(memory.pages.unsplit), plural(memory.pages.unsplit));
  if (memory.last.rounds == 0) return;
  text->add("  last      %s%s, expecting %.0f rounds; ms of a thread:",
            policies::memory_action_name(memory.last.action),
            memory.last.forced ? " (as told)" : "", memory.last.rounds);
  separator = " ";
  for (uint32_t i = 0; i < policies::kMemoryActions; ++i) {
    if (!memory.last.costs[i].possible) continue;
    text->add("%s%s %.3f", separator,
              policies::memory_action_name(static_cast<policies::MemoryAction>(i)),
              memory.last.costs[i].total_ns() / 1e6);
    separator = ", ";
  }
  text->add("\n");
}

}  // namespace

void add_evolution(Text* text, const ReportData& data) {
  const policies::EvolutionCounts& e = data.entities_made.evolution;
  const uint64_t pulled = e.moved + e.regenerated + e.widened + e.threads;
  if (pulled + e.settled + e.ending != 0)
    text->add(
        "pulled      %llu closed bubbles, %llu open ones, %llu parts of larger ones, %llu threads; let "
        "alone: %llu pulled lately, %llu about to end\n",
        Number{e.moved}, Number{e.regenerated}, Number{e.widened}, Number{e.threads},
        Number{e.settled}, Number{e.ending});
  if (e.slices + e.renewed + e.phases != 0)
    text->add(
        "bubbles     %llu closed at the end of their time slice, %llu went on with a new one; %llu "
        "phases of redistribution\n",
        Number{e.slices}, Number{e.renewed}, Number{e.phases});
}

void add_memory_decisions(Text* text, const ReportData& data) {
  add_memory(text, data);
  add_remote(text, data);
}

void add_memory_looks(Text* text, const ReportData& data) {
  const policies::MemoryCounts& counts = data.entities_made.memory;
  uint64_t looked = 0;
  for (const uint64_t n : counts.looked) looked += n;
  if (looked == 0) return;
  text->add("looks       at bubbles and their memory, and how many were closed for it:");
  const char* separator = " ";
  for (uint32_t i = 0; i < policies::kMemoryTriggers; ++i) {
    if (counts.looked[i] == 0) continue;
    text->add("%s%s %llu, %llu", separator, name_of(static_cast<policies::MemoryTrigger>(i)),
              Number{counts.looked[i]}, Number{counts.closed[i]});
    separator = "; ";
  }
  text->add("\n");
}

void add_next_touch(Text* text, const ReportData& data) {
  const memory::NextTouchStatistics& s = data.next_touch;
  if (s.marked == 0) return;
  text->add(
      "next touch  %llu pages marked: %llu moved (%llu of them in exchange), %llu there already, %llu "
      "not allowed, %llu without room, %llu empty, %llu cancelled, %llu lost\n",
      Number{s.marked}, Number{s.moved}, Number{s.exchanged}, Number{s.local}, Number{s.stayed},
      Number{s.no_room}, Number{s.absent}, Number{s.cancelled}, Number{s.lost});
  text->add(
      "            %llu touches met a mark, %llu came late, %llu faults were the program's own\n",
      Number{s.faults}, Number{s.late}, Number{s.chained});
}

}  // namespace bosk::omp
