// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The report as text.
#include <stdio.h>
#include <string.h>

#include "omp/report.h"
#include "omp/report_text.h"
#include "sched/distance.h"
#include "topology/machine.h"

namespace bosk::omp {
namespace {

/// Lines of the table of workers; beyond that several share one.
constexpr uint32_t kWorkerLines = 16;
/// The same of the table of threads with all that they open.
constexpr uint32_t kEntityLines = 8;
/// The same of the table of domains.
constexpr uint32_t kDomainLines = 12;

using Number = unsigned long long;

/// "1 package, 2 nodes, 8 cores": the levels that tell something.
void add_machine(Text* text, const ReportData& data) {
  text->add("machine     %u CPU%s", data.process_cpus, plural(data.process_cpus));
  if (data.machine == nullptr) {
    text->add("\n");
    return;
  }
  const topology::Machine& m = *data.machine;
  const char* separator = ": ";
  for (const topology::Kind kind :
       {topology::Kind::kPackage, topology::Kind::kL3, topology::Kind::kCore}) {
    const topology::Level* level = m.level(kind);
    if (level == nullptr) continue;
    text->add("%s%u %s%s", separator, level->n_domains, topology::kind_name(kind),
              plural(level->n_domains));
    separator = ", ";
  }
  text->add("%s%u NUMA node%s", separator, m.n_nodes, plural(m.n_nodes));
  if (!m.this_system) text->add(" (%s, %u PUs)", m.source, m.n_pus);
  text->add("\n");
}

/// What the members ran on, and why if it is not user-level threads.
void add_mode(Text* text, const ReportData& data) {
  if (data.modes.why_kernel_threads != nullptr) {
    text->add("mode        one kernel thread for each OpenMP thread: %s\n",
              data.modes.why_kernel_threads);
    return;
  }
  text->add("mode        user-level threads where members outnumber workers\n");
  if (data.modes.observed_teams != 0)
    text->add("            %llu region%s had a kernel thread for each member: %s\n",
              Number{data.modes.observed_teams}, plural(data.modes.observed_teams),
              data.modes.observer != nullptr ? data.modes.observer : "BOSK_IDENTITY=kthread");
  if (data.modes.bound_teams != 0)
    text->add("            %llu region%s had a kernel thread for each member: bound to places\n",
              Number{data.modes.bound_teams}, plural(data.modes.bound_teams));
}

uint32_t levels_used(const ReportData& data) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < kReportedLevels; ++i) {
    if (data.levels[i].regions != 0 || data.levels[i].members != 0) used = i + 1;
  }
  return used;
}

void name_level(char* name, size_t size, uint32_t level) {
  snprintf(name, size, "%u%s", level + 1, level + 1 == kReportedLevels ? "+" : "");
}

void add_teams(Text* text, const ReportData& data) {
  const uint32_t used = levels_used(data);
  if (used == 0) {
    text->add("teams       none: the program opened no parallel region\n");
    return;
  }
  text->add("teams       level      regions      sizes        members\n");
  for (uint32_t i = 0; i < used; ++i) {
    const LevelLine& line = data.levels[i];
    char name[16];
    char sizes[32] = "-";
    name_level(name, sizeof name, i);
    if (line.regions != 0) {
      snprintf(sizes, sizeof sizes, line.smallest == line.largest ? "%u" : "%u-%u", line.smallest,
               line.largest);
    }
    text->add("            %-5s %12llu %10s %14llu\n", name, Number{line.regions}, sizes,
              Number{line.members});
  }
}

/// What the report knows of where a worker is: its CPU and what that belongs to.
void describe_place(char* where, size_t size, const WorkerPlace& place, const ReportData& data) {
  if (!place.known) {
    snprintf(where, size, "ended");
    return;
  }
  uint32_t node = topology::kNone;
  const topology::Machine* m = data.machine;
  if (m != nullptr && m->this_system) {
    const uint32_t pu = m->pu_of_os(place.last_cpu);
    if (pu != topology::kNone) {
      node = m->nodes()[m->node_of_pu(pu)].os_index;
    }
  }
  int at =
      snprintf(where, size, "%s cpu %u", place.bound ? "bound," : "free, last", place.last_cpu);
  if (node != topology::kNone && at > 0 && static_cast<size_t>(at) < size) {
    snprintf(where + at, size - static_cast<size_t>(at), " (node %u)", node);
  }
}

void add_workers(Text* text, const ReportData& data) {
  const uint32_t used = levels_used(data);
  const uint32_t count = data.workers.size();
  if (used == 0 || count == 0) return;
  text->add("members     worker      where                    ");
  for (uint32_t i = 0; i < used; ++i) {
    char name[16];
    name_level(name, sizeof name, i);
    char heading[32];
    snprintf(heading, sizeof heading, "level %s", name);
    text->add("%12s", heading);
  }
  text->add("\n");
  const uint32_t per_line = (count + kWorkerLines - 1) / kWorkerLines;
  for (uint32_t first = 0; first < count; first += per_line) {
    const uint32_t end = first + per_line < count ? first + per_line : count;
    char name[32];
    char where[64] = "";
    uint64_t members[kReportedLevels] = {};
    for (uint32_t w = first; w < end; ++w) {
      for (uint32_t i = 0; i < used; ++i) members[i] += data.workers[w].members[i];
    }
    if (end - first == 1) {
      snprintf(name, sizeof name, "%u", data.workers[first].index);
      describe_place(where, sizeof where, data.workers[first].place, data);
    } else {
      snprintf(name, sizeof name, "%u-%u", data.workers[first].index, data.workers[end - 1].index);
      snprintf(where, sizeof where, "%u workers", end - first);
    }
    text->add("            %-11s %-25s", name, where);
    for (uint32_t i = 0; i < used; ++i) text->add("%12llu", Number{members[i]});
    text->add("\n");
  }
  if (data.pools > 1) {
    text->add(
        "            %u threads of the program have workers of their own; "
        "those of the same number are added up\n",
        data.pools);
  }
}

/// The level that the policy names, if there is a line for each of its domains; else the finest of which each domain has a line and some have more than one PU; a machine that has
/// none: its first that divides anything. Null: nothing does.
const topology::Level* level_to_show(const topology::Machine& m, const topology::Level* named) {
  if (named != nullptr && named->n_domains > 1 && named->n_domains <= kDomainLines) return named;
  const topology::Level* shown = nullptr;
  for (const topology::Level& level : m.levels()) {
    if (level.n_domains < 2) continue;
    if (shown == nullptr) {
      shown = &level;
    } else if (level.n_domains <= kDomainLines && level.n_domains < m.n_pus &&
               (level.n_domains > shown->n_domains ||
                (level.n_domains == shown->n_domains && level.kind == topology::Kind::kNode))) {
      shown = &level;
    }
  }
  return shown;
}

/// Its seat, or where it ran last; of invented machines, and of workers that have ended, the PU of its number.
uint32_t pu_of(const WorkerLine& line, const topology::Machine& m) {
  if (line.pu != topology::kNone) return line.pu;
  const uint32_t last = m.this_system && line.place.known ? m.pu_of_os(line.place.last_cpu)
                                                          : uint32_t{topology::kNone};
  return last != topology::kNone ? last : sched::pu_of_worker(m, line.index);
}

void add_domains(Text* text, const ReportData& data) {
  const uint32_t used = levels_used(data);
  if (used == 0 || data.workers.empty() || data.policy == nullptr || data.machine == nullptr)
    return;
  const topology::Machine& m = *data.machine;
  const topology::Level* level = level_to_show(m, data.level);
  if (level == nullptr) return;
  text->add(
      "placed      by %.80s, %s\n", data.policy,
      m.this_system ? "each worker where it ran last" : "each worker at the PU of its number");
  text->add("members     %-11s %-25s", topology::kind_name(level->kind), "workers");
  for (uint32_t i = 0; i < used; ++i) {
    char name[16];
    name_level(name, sizeof name, i);
    char heading[32];
    snprintf(heading, sizeof heading, "level %s", name);
    text->add("%12s", heading);
  }
  text->add("\n");
  const uint32_t per_line = (level->n_domains + kDomainLines - 1) / kDomainLines;
  for (uint32_t first = 0; first < level->n_domains; first += per_line) {
    const uint32_t last =
        (first + per_line < level->n_domains ? first + per_line : level->n_domains) - 1;
    const uint64_t pus = sched::reach_of(m.domain_array[level->domains[first]].first_pu,
                                         m.domain_array[level->domains[last]].last_pu);
    uint64_t members[kReportedLevels] = {};
    uint32_t workers = 0;
    uint32_t low = 0;
    uint32_t high = 0;
    for (uint32_t w = 0; w < data.workers.size(); ++w) {
      const WorkerLine& line = data.workers[w];
      if (!sched::reaches(pus, pu_of(line, m))) continue;
      if (workers++ == 0) low = line.index;
      high = line.index;
      for (uint32_t i = 0; i < used; ++i) members[i] += line.members[i];
    }
    char name[32];
    char who[32];
    if (first == last)
      snprintf(name, sizeof name, "%u", first);
    else
      snprintf(name, sizeof name, "%u-%u", first, last);
    if (workers == 0)
      snprintf(who, sizeof who, "none");
    else if (workers == 1)
      snprintf(who, sizeof who, "%u", low);
    else if (high - low + 1 == workers)
      snprintf(who, sizeof who, "%u-%u", low, high);
    else
      snprintf(who, sizeof who, "%u of them", workers);
    text->add("            %-11s %-25s", name, who);
    for (uint32_t i = 0; i < used; ++i) text->add("%12llu", Number{members[i]});
    text->add("\n");
  }
}

/// "worker 3, node 1"; of several: how many they are.
void name_entities(char* name, size_t size, const EntityLine* lines, uint32_t count,
                   const ReportData& data) {
  if (count > 1) {
    snprintf(name, size, "%u threads", count);
    return;
  }
  if (lines->last_worker == UINT32_MAX) {
    snprintf(name, size, "-");
    return;
  }
  const topology::Machine* m = data.machine;
  if (m == nullptr) {
    snprintf(name, size, "worker %u", lines->last_worker);
    return;
  }
  WorkerLine worker;
  worker.index = lines->last_worker;
  for (uint32_t w = 0; w < data.workers.size(); ++w)
    if (data.workers[w].index == worker.index) worker = data.workers[w];
  snprintf(name, size, "worker %u, node %u", worker.index,
           m->nodes()[m->node_of_pu(pu_of(worker, *m))].os_index);
}

/// One line for several entities together. What is not known of any is "-".
void add_entity_line(Text* text, const char* name, const EntityLine* lines, uint32_t count,
                     const char* last) {
  EntityLine sum;
  uint64_t loads = 0;
  bool told = false;
  for (uint32_t i = 0; i < count; ++i) {
    const EntityLine& e = lines[i];
    sum.members += e.members;
    sum.ghosts += e.ghosts;
    sum.measured += e.measured;
    sum.cpu_ns += e.cpu_ns;
    sum.counted += e.counted;
    sum.accesses += e.accesses;
    sum.misses += e.misses;
    if (e.load == kUntoldLoad) continue;
    told = true;
    loads += e.load;
  }
  char load[24] = "-";
  char cpu[24] = "-";
  char missed[24] = "-";
  if (told) snprintf(load, sizeof load, "%llu", Number{loads});
  // Little is not nothing: 0 is not shown for what was measured.
  if (sum.measured != 0)
    snprintf(cpu, sizeof cpu, sum.cpu_ns < 1'000'000'000 ? "%.6f" : "%.3f",
             static_cast<double>(sum.cpu_ns) / 1e9);
  if (sum.counted != 0 && sum.accesses != 0)
    snprintf(missed, sizeof missed, "%.1f",
             100 * static_cast<double>(sum.misses) / static_cast<double>(sum.accesses));
  text->add("            %-9s %11llu %11llu %10s %10s %11llu %8s  %s\n", name, Number{sum.members},
            Number{sum.ghosts}, load, cpu, Number{sum.measured}, missed, last);
}

void add_entities(Text* text, const ReportData& data) {
  const uint32_t count = data.entities.size();
  if (count == 0) return;
  const EntityLine* lines = data.entities.data();
  text->add("entities    %-9s %11s %11s %10s %10s %11s %8s  %s\n", "thread", "members", "ghosts",
            "load", "cpu s", "measured", "miss %", "last on");
  const uint32_t per_line = (count + kEntityLines - 1) / kEntityLines;
  for (uint32_t first = 0; first < count; first += per_line) {
    const uint32_t n = first + per_line < count ? per_line : count - first;
    char name[32];
    char last[48];
    if (n == 1)
      snprintf(name, sizeof name, "%u", lines[first].thread);
    else
      snprintf(name, sizeof name, "%u-%u", lines[first].thread, lines[first + n - 1].thread);
    name_entities(last, sizeof last, lines + first, n, data);
    add_entity_line(text, name, lines + first, n, last);
  }
  if (count > 1) add_entity_line(text, "all", lines, count, "");
}

/// Nothing if nothing was taken. `what`: how the line begins.
void add_distances(Text* text, const char* what, const Distances& d, const ReportData& data) {
  uint64_t count = 0;
  for (const uint64_t n : d.within) count += n;
  if (count == 0 || data.machine == nullptr) return;
  text->add("%s", what);
  // The nearest first.
  const char* separator = "";
  for (uint32_t depth = Distances::kDepths; depth-- > 0;) {
    if (d.within[depth] == 0) continue;
    const topology::Domain* around = &data.machine->pu(0);
    while (around->depth > depth) around = around->parent;
    text->add("%s%llu within a %s", separator, Number{d.within[depth]},
              topology::kind_name(around->kind));
    separator = ", ";
  }
  text->add("; %.1f levels up on average\n",
            static_cast<double>(d.levels) / static_cast<double>(count));
}

void add_scheduling(Text* text, const ReportData& data) {
  const sched::WorkerCounts& c = data.counts;
  text->add("ghosts      %llu run, %llu of them on another worker than their team was opened on\n",
            Number{c.ghosts_run}, Number{c.ghosts_stolen});
  text->add("            %llu never needed a context of their own\n", Number{data.undisturbed});
  text->add("made        %llu identit%s with a stack (donors), %llu kernel thread%s of workers\n",
            Number{data.donors}, data.donors == 1 ? "y" : "ies", Number{data.kernel_threads},
            plural(data.kernel_threads));
  text->add("switches    %llu; %llu waits that gave the worker to another thread\n",
            Number{c.switches}, Number{c.blocked});
  text->add("steals      %llu ghosts, %llu ready threads\n", Number{c.ghosts_stolen},
            Number{c.threads_stolen});
  add_distances(text, "            ghosts: ", data.ghost_distances, data);
  if (c.teams_taken != 0)
    text->add(
        "            %llu time%s a team whole, by PUs of another node that had nothing to do\n",
        Number{c.teams_taken}, plural(c.teams_taken));
  if (c.teams_resettled != 0)
    text->add("            %llu time%s a team stayed there for good, and its memory came along\n",
              Number{c.teams_resettled}, plural(c.teams_resettled));
  if (data.has_entities)
    add_distances(
        text, "taken       threads and bubbles by idle PUs: ", data.entities_made.distances, data);
  add_evolution(text, data);
  text->add("preemption  %llu time slices ended, %llu promotions to a kernel thread\n",
            Number{c.preemptions}, Number{c.promotions});
  if (c.joint_turns != 0)
    text->add(
        "            %llu joint turns of gangs and of teams whose members poll for each other\n",
        Number{c.joint_turns});
  if (c.gangs != 0)
    text->add("gangs       %llu regions by relation or policy, all members at the same time\n",
              Number{c.gangs});
  if (c.outside_pauses != 0)
    text->add("            %llu pauses of threads that polled outside of regions\n",
              Number{c.outside_pauses});
  if (c.yields != 0)
    text->add("yields      members gave %llu turns to others by sched_yield()\n", Number{c.yields});
  if (c.homecomings != 0)
    text->add("homes       workers went back to theirs %llu times\n", Number{c.homecomings});
  text->add("idle        workers slept %llu times, %.3f s in all\n", Number{c.parks},
            static_cast<double>(c.parked_ns) / 1e9);
}

}  // namespace

bool format_report(const ReportData& data, base::MappedArray<char>* to) {
  Text text(to);
  text.add("bosk report of %.200s (process %d, %.3f s since its first use of OpenMP)\n",
           data.program, data.process, static_cast<double>(data.elapsed_ns) / 1e9);
  add_machine(&text, data);
  add_mode(&text, data);
  add_times(&text, data);
  add_teams(&text, data);
  add_workers(&text, data);
  add_domains(&text, data);
  add_entities(&text, data);
  add_scheduling(&text, data);
  add_memory_decisions(&text, data);
  add_memory_looks(&text, data);
  add_next_touch(&text, data);
  return text.good();
}

}  // namespace bosk::omp
