// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/learn/learn_page.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "bosk/escaped.h"
#include "bosk/learn/matrix_views.h"

namespace bosk::tools {
namespace {

constexpr size_t kMostOfName = 80;

std::string head(const Learnt& learnt) {
  std::string text =
      fmt::format("bosk learnt of {}", shortened(escaped(learnt.program), kMostOfName));
  if (learnt.seconds > 0) text += fmt::format(": {:.3g} s", learnt.seconds);
  if (learnt.counts != nullptr && learnt.counts->processes != 1)
    text += fmt::format(", {} processes", learnt.counts->processes);
  return text + "\n\n";
}

std::string what_was_seen(const Learnt& learnt, const affinity::Learner& learner) {
  std::string text =
      fmt::format("seen      {} accesses by {} thread{}", learner.accesses(),
                  learner.threads().size(), learner.threads().size() == 1 ? "" : "s");
  if (learnt.seconds > 0)
    text +=
        fmt::format(", {:.0f} a second", static_cast<double>(learner.accesses()) / learnt.seconds);
  text += "\nby        " + learnt.source;
  if (learner.of_unknown_threads() != 0)
    text += fmt::format(
        "\nnote      {} accesses were by threads beyond the first {}, which are not told apart",
        learner.of_unknown_threads(), affinity::Learner::kMostMatrixThreads);
  if (!learnt.blind.empty()) text += "\nnot seen  " + learnt.blind;
  return text + "\n";
}

/// Why a process has no userfaultfd of ours.
std::string why_without(int error) {
  switch (error) {
    case EACCES:
      return "it filters its system calls";
    case EBUSY:
      return "somebody debugs it";
    case EPERM:
      return "not permitted: a filter of system calls, or, of a process that ran already, kernel.yama.ptrace_scope";
    case EINVAL:
    case EOPNOTSUPP:
      return "it needs Linux 6.7";
    default:
      return fmt::format(
          "{}: it needs Linux 6.7, and no filter of system calls that forbids userfaultfd",
          std::strerror(error));
  }
}

std::string limits(const affinity::ObserverCounts& counts) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "note      " + line + "\n"; };
  if (!counts.no_events.empty())
    add(fmt::format("threads are told less often, because {}", counts.no_events));
  if (counts.processes == 0)
    add("no process said that it is there: is the program linked statically?");
  if (counts.processes_without_faults != 0)
    add(fmt::format(
        "{} of {} processes could not be given faults by write-protection ({}){}",
        counts.processes_without_faults, counts.processes, why_without(counts.why_without),
        counts.processes_with_marks == 0 ? "" : ": soft-dirty marks were used instead"));
  if (counts.processes_asleep != 0)
    add(fmt::format("{} of {} processes did not compute: nothing was armed there",
                    counts.processes_asleep, counts.processes));
  if (counts.with_their_own != 0)
    add(fmt::format(
        "{} of {} processes have a userfaultfd themselves, or use soft-dirty marks, and were left alone",
        counts.with_their_own, counts.processes));
  if (counts.nobodys != 0)
    add(fmt::format("{} of {} writes were nobody's: several threads had faults at the same time",
                    counts.nobodys, counts.written));
  if (counts.events_lost != 0)
    add(fmt::format("{} faults came too fast to be seen", counts.events_lost));
  if (counts.pauses != 0)
    add(fmt::format(
        "{} time{} nothing was looked at for a while: the program's own faults alone cost too much",
        counts.pauses, counts.pauses == 1 ? "" : "s"));
  if (counts.huge_split > counts.huge_joined)
    add(fmt::format(
        "{} huge pages were split to be looked at, {} joined again; the kernel joins the others in time",
        counts.huge_split, counts.huge_joined));
  if (const affinity::KernelBalancing& balancing = counts.balancing; balancing.is_on)
    add(fmt::format(
        "the kernel balances, too (kernel.numa_balancing): meanwhile {} hint faults, and {} pages moved, of all programs",
        balancing.hint_faults, balancing.moved_pages));
  if (counts.balancing.has_tiers)
    add("the kernel moves pages between fast and slow memory, too (memory tiers)");
  if (counts.balancing.has_numad) add("numad runs, which moves processes and their memory, too");
  if (counts.areas_refused != 0)
    add(fmt::format("{} mapping{} could not be looked at (special ones)", counts.areas_refused,
                    counts.areas_refused == 1 ? "" : "s"));
  return text;
}

std::string costs_text(const affinity::ObserverCosts& costs) {
  if (costs.program <= 0) return "";
  const auto per_cent = [&](double part) { return 100 * part / costs.program; };
  return fmt::format(
      "cost      {:.2f} % of the program's {:.3g} s of CPUs: {:.2f} faults, {:.2f} interrupts, {:.2f} events, {:.2f} observer{}\n",
      100 * costs.share(), costs.program / 1e9, per_cent(costs.faults), per_cent(costs.interrupts),
      per_cent(costs.events), per_cent(costs.observer),
      costs.moves == 0 ? "" : fmt::format(", {:.2f} moves", per_cent(costs.moves)));
}

/// Which threads were moved, and which were not.
std::string threads(const affinity::ObserverCounts& counts, const topology::Machine* machine) {
  if (machine != nullptr && !affinity::ThreadMover::is_any_use(*machine))
    return "threads   all CPUs share a cache or a node: it is the same where threads run\n";
  const affinity::ThreadMover::Counts& threads = counts.threads;
  std::string text = fmt::format(
      "threads   {} moved to those that they share with, by {} mapping{}{}\n",
      threads.moved - threads.stay, threads.mappings, threads.mappings == 1 ? "" : "s",
      threads.stay == 0 ? "" : fmt::format("; {} kept with their memory", threads.stay));
  const auto add = [&](const std::string& line) { text += "note      " + line + "\n"; };
  if (!counts.no_events.empty())
    add("threads are moved only where page-fault events tell which ones are new, or bosk runs them");
  if (threads.left != 0)
    add(fmt::format(
        "{} OpenMP on bosk, which places its threads itself; {}",
        threads.left == 1 ? "a process runs" : fmt::format("{} processes run", threads.left),
        threads.wished == 0
            ? "it was asked for nothing else"
            : fmt::format("it was asked {} times to have a member elsewhere", threads.wished)));
  if (threads.bound != 0)
    add(fmt::format("{} threads have bound themselves, and were left alone", threads.bound));
  if (threads.makers != 0)
    add(fmt::format("{} threads make others, and were left alone", threads.makers));
  if (threads.refused != 0)
    add(fmt::format("{} threads could not be moved ({})", threads.refused,
                    std::strerror(threads.why)));
  return text;
}

/// What was moved, and what was not.
std::string data(const affinity::DataMover::Counts& counts, const topology::Machine* machine) {
  if (machine != nullptr && machine->n_nodes == 1)
    return "data      one node: there is nowhere to move memory to\n";
  const auto mib = [](uint64_t pages) { return static_cast<double>(pages) / 256; };
  std::string text = fmt::format("data      {} pages ({:.4g} MiB) moved to nodes that use them\n",
                                 counts.moved, mib(counts.moved));
  const auto add = [&](const std::string& line) { text += "note      " + line + "\n"; };
  if (counts.is_forbidden)
    add(fmt::format(
        "pages may not be moved from outside here ({}: a filter of system calls, or a program that "
        "is not ours to look at)",
        std::strerror(counts.why)));
  if (counts.refused != 0)
    add(fmt::format("{} pages stayed, the kernel did not move them ({})", counts.refused,
                    std::strerror(counts.why)));
  if (counts.bouncing != 0)
    add(fmt::format("{} pages went to and fro three times in half a minute, and were left alone",
                    counts.bouncing));
  if (counts.left != 0)
    add(counts.left == 1
            ? "a process attaches memory to threads or teams on bosk, which places it itself: its memory was left alone"
            : fmt::format(
                  "{} processes attach memory to threads or teams on bosk, which places it itself: it was left alone",
                  counts.left));
  if (counts.joined != 0)
    add(fmt::format(
        "{} times the kernel joined small pages of several users to a huge one (khugepaged); it was split again",
        counts.joined));
  if (counts.unsplit != 0)
    add(fmt::format(
        "{} huge pages are used by several nodes and stayed: to split them needs CAP_SYS_NICE",
        counts.unsplit));
  if (counts.placed != 0)
    add(fmt::format("memory in {} block{} of 2 MiB stayed where the program has placed it itself",
                    counts.placed, counts.placed == 1 ? "" : "s"));
  return text;
}

std::string metrics(affinity::Learner* learner) {
  std::string text;
  if (learner->matrix().threads() > 1)
    text += fmt::format("sharing   {:.4g} a pair of threads on average, heterogeneity {:.4g}\n",
                        affinity::sharing_amount(learner->matrix()),
                        affinity::heterogeneity(learner->matrix()));
  uint64_t pages = 0;
  learner->pages().for_each_page([&](uint64_t, std::span<const uint32_t>) { ++pages; });
  if (pages != 0)
    text += fmt::format(
        "pages     {} seen; by one node: {:.1f} % of the accesses to 4 KiB, {:.1f} % to 2 MiB\n",
        pages, 100 * affinity::average_exclusivity(learner->pages()),
        100 * affinity::average_huge_exclusivity(learner->pages()));
  return text;
}

std::string mapping(const affinity::Learner& learner, const topology::Machine* machine) {
  if (machine == nullptr)
    return "mapping   recorded on another machine: describe it by --topology-xml or --synthetic\n";
  if (learner.matrix().threads() < 2) return "mapping   nothing is shared: nothing to gain\n";
  const affinity::Placement present = learner.placement(*machine);
  const affinity::Proposal proposal = affinity::propose(learner.matrix(), *machine, present);
  if (!proposal.is_worth)
    return fmt::format("mapping   nothing to gain where threads run{}\n",
                       machine->n_nodes == 1 && machine->n_pus <= 2 ? ": all CPUs are alike" : "");
  std::string text = fmt::format(
      "mapping   {} threads elsewhere would make sharing {:.0f} % cheaper ({}):", proposal.moves,
      100 * proposal.gain(), proposal.by);
  constexpr uint32_t kMostShown = 16;
  uint32_t shown = 0;
  for (uint32_t thread = 0; thread < proposal.placement.size(); ++thread) {
    const uint32_t to = proposal.placement[thread];
    if (to == affinity::kNoPu || to == present[thread]) continue;
    if (++shown > kMostShown) break;
    text += fmt::format("{}{} to CPU {}", shown % 4 == 1 ? "\n          " : ", ",
                        learner.threads()[thread].number, machine->os_of_pu(to));
  }
  if (proposal.moves > kMostShown)
    text += fmt::format(", and {} more", proposal.moves - kMostShown);
  return text + "\n";
}

}  // namespace

std::string learn_page(const Learnt& learnt, affinity::Learner* learner,
                       const topology::Machine* machine) {
  std::string page = head(learnt) + what_was_seen(learnt, *learner);
  if (learnt.costs != nullptr) page += costs_text(*learnt.costs);
  if (learnt.counts != nullptr) page += limits(*learnt.counts);
  if (learnt.counts != nullptr && learnt.moves_threads) page += threads(*learnt.counts, machine);
  if (learnt.counts != nullptr && learnt.moves_data) page += data(learnt.counts->data, machine);
  page += metrics(learner) + mapping(*learner, machine);
  if (const std::string matrix = matrix_text(*learner); !matrix.empty())
    page += "\nwho shares with whom (9: most; . not seen)\n" + matrix;
  return page;
}

std::string off_page(const std::string& program, const std::string& why) {
  Learnt learnt;
  learnt.program = program;
  return head(learnt) + "off       " + why + "\n";
}

}  // namespace bosk::tools
