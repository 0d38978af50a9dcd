// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report's figures of what moved while the program ran: bubbles, and pages that were marked.
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
