// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hooks of gang.
#include "policies/gang/gang.h"

#include <algorithm>
#include <new>

#include "base/mapped_array.h"
#include "base/parse.h"
#include "base/spinlock.h"
#include "policies/gang/pu_book.h"
#include "policies/relations.h"

namespace bosk::policies {
namespace {

using topology::Domain;
using topology::Machine;

constexpr uint64_t kMostTicks = 1'000'000;
/// How many gangs may start before one that has waited longer.
constexpr uint32_t kMostPassed = 16;

struct Gangs {
  const Machine* machine;
  const topology::Level* bottom;
  uint32_t slice;            ///< in ticks
  base::SpinLock lock = {};  ///< guards everything below
  gang::PuBook book = {};
  EntityToken first_in_line = nullptr;      ///< the one that waits longest for want of PUs
  uint32_t passed = 0;                      ///< how many have started since
  base::MappedArray<uint8_t> carried = {};  ///< working memory: entities in others that stay whole
};

bool check(const char* argument, const Machine&, topology::Error* error) {
  uint64_t ticks;
  return base::parse_number(argument, 1, kMostTicks, &ticks) ||
         error->set("\"%.60s\" is not a time slice (1 to %lu ticks)", argument,
                    static_cast<unsigned long>(kMostTicks));
}

bool start(const PolicyStart& start, void** state, topology::Error* error) {
  uint64_t ticks = 1;
  if (start.argument[0] != '\0' && !base::parse_number(start.argument, 1, kMostTicks, &ticks))
    return check(start.argument, *start.machine, error);
  void* memory = base::map_pages(sizeof(Gangs));
  if (memory == nullptr) return error->set("no memory for the policy gang");
  auto* gangs = new (memory) Gangs{start.machine, start.bottom, static_cast<uint32_t>(ticks)};
  if (!gangs->book.start(*start.machine)) {
    base::unmap_pages(memory, sizeof(Gangs));
    return error->set("no memory for the policy gang");
  }
  *state = gangs;
  return true;
}

void stop(void* state) {
  auto* gangs = static_cast<Gangs*>(state);
  gangs->book.stop();
  gangs->carried.release();
  base::unmap_pages(gangs, sizeof(Gangs));
}

/// No gang is left, and nobody who could hold the lock.
void forked(void* state) {
  auto* gangs = static_cast<Gangs*>(state);
  new (&gangs->lock) base::SpinLock;
  gangs->book.clear();
  gangs->first_in_line = nullptr;
  gangs->passed = 0;
}

bool is_bottom(const Gangs& gangs, const Domain& d) {
  return d.is_pu() || (gangs.bottom != nullptr && at_or_below(*gangs.machine, *gangs.bottom, d));
}

/// A gang that is found runs no longer, whatever the book says: somebody has closed it.
void forget(Gangs& gangs, EntityToken token) {
  if (const uint32_t gang = gangs.book.find(token); gang != kNone) gangs.book.drop(gang);
}

Verdict found(void* state, const FoundBubble& bubble) {
  auto* gangs = static_cast<Gangs*>(state);
  {
    base::SpinGuard guard(gangs->lock);
    forget(*gangs, bubble.token);
  }
  // One by its relation opens on its seat, be it above.
  if (bubble.relation != sched::Relation::kGang &&
      is_bottom(*gangs, gangs->machine->domain_array[bubble.domain]))
    return {};
  // Behind those that wait already.
  if (!bubble.waited && bubble.others_wait && bubble.waiting_priority >= bubble.priority)
    return {Verdict::Action::kWait, kNone};
  return {Verdict::Action::kDistribute, kNone};
}

bool is_gang(const WorkView& work) {
  const EntityView& root = work.entities[0];
  if (root.relation == sched::Relation::kGang) return true;
  for (uint32_t i = 0; i < root.n_children; ++i)
    if (work.entities[root.first_child + i].kind == sched::EntityKind::kBubble) return false;
  return true;
}

/// Not a gang: what is in it comes out here.
bool open_here(const Submission& submission, PlacementList* answer) {
  const EntityView& root = submission.work.entities[0];
  if (root.ghosts != 0 && !answer->add({0, 0, root.ghosts, submission.domain})) return false;
  for (uint32_t i = 0; i < root.n_children; ++i)
    if (!answer->add({root.first_child + i, 0, 0, submission.domain})) return false;
  return true;
}

/// The smallest domain of `d` with so many PUs to spare; of equals where it was last, or the one with
/// the fewest.
const Domain& choose(const Gangs& gangs, const Domain& d, uint32_t pus, uint32_t last) {
  const Machine& machine = *gangs.machine;
  const Domain* at = &d;
  for (;;) {
    const Domain* best = nullptr;
    for (const Domain& child : at->children()) {
      const uint32_t free = gangs.book.free_below(child.id);
      if (free < pus) continue;
      const bool was_here = last < machine.n_domains &&
                            machine.domain_array[last].depth > at->depth &&
                            child.contains_pu(machine.domain_array[last].first_pu);
      if (was_here || best == nullptr || free < gangs.book.free_below(best->id)) best = &child;
      if (was_here) break;
    }
    if (best == nullptr) return *at;
    at = best;
  }
}

/// Gives out PUs of a domain to one gang: those that are free, or, to more threads than there are PUs,
/// all in turn.
class Dealer {
 public:
  Dealer(Gangs& gangs, const Domain& d, uint32_t gang, uint32_t width)
      : gangs_(gangs), d_(d), gang_(gang), width_(width), next_pu_(d.first_pu) {}

  /// For something that `width` PUs can work on: the smallest domain around the first of its PUs that
  /// has as many.
  uint32_t place(uint32_t width) {
    uint32_t first = kNone;
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t pu = take();
      if (first == kNone) first = pu;
    }
    if (first == kNone) return d_.id;
    return relations::smallest_around(*gangs_.machine, d_, first, width).id;
  }

 private:
  uint32_t take() {
    uint32_t pu;
    if (width_ > d_.n_pus()) {
      pu = d_.first_pu + static_cast<uint32_t>(uint64_t{dealt_++} * d_.n_pus() / width_);
    } else {
      while (gangs_.book.owned(next_pu_)) ++next_pu_;
      pu = next_pu_++;
    }
    gangs_.book.occupy(gang_, pu);
    return pu;
  }

  Gangs& gangs_;
  const Domain& d_;
  uint32_t gang_;
  uint32_t width_;
  uint32_t next_pu_;
  uint32_t dealt_ = 0;
};

/// Threads, and what stays whole by its relation, each on PUs of its own. False: out of memory.
bool deal(Gangs& gangs, const WorkView& work, const Domain& d, uint32_t gang,
          PlacementList* answer) {
  Dealer dealer(gangs, d, gang, work.entities[0].width);
  if (!gangs.carried.resize(work.count)) return false;
  for (uint32_t i = 0; i < work.count; ++i) {
    const EntityView& e = work.entities[i];
    gangs.carried[i] = i != 0 && gangs.carried[e.parent] != 0;
    if (gangs.carried[i] != 0) continue;
    const bool bubble = e.kind == sched::EntityKind::kBubble;
    if (!bubble || (i != 0 && e.relation != sched::Relation::kGang &&
                    relations::keeps_whole(*gangs.machine, e))) {
      gangs.carried[i] = 1;
      if (!answer->add({i, 0, 0, dealer.place(e.width)})) return false;
    } else if (e.ghosts != 0) {
      dealer.place(e.ghosts);
      if (!answer->add({i, 0, e.ghosts, d.id})) return false;
    }
  }
  return true;
}

bool submit(void* state, const Submission& submission, PlacementList* answer) {
  auto* gangs = static_cast<Gangs*>(state);
  const Machine& machine = *gangs->machine;
  const EntityView& root = submission.work.entities[0];
  const Domain& d = machine.domain_array[submission.domain];
  if (root.relation != sched::Relation::kGang && relations::keeps_whole(machine, root))
    return answer->add({0, 0, 0, relations::seat_on_way(machine, root, d, submission.pu).id});
  if (root.width == 0 || !is_gang(submission.work)) return open_here(submission, answer);

  base::SpinGuard guard(gangs->lock);
  const uint32_t pus = std::min(root.width, d.n_pus());
  const uint32_t free = gangs->book.free_below(d.id);
  const bool kept_for_another =
      gangs->passed >= kMostPassed && gangs->first_in_line != root.token && free < d.n_pus();
  if (free < pus || kept_for_another) {
    if (gangs->first_in_line == nullptr) gangs->first_in_line = root.token;
    answer->set_wait();
    return true;
  }
  if (gangs->first_in_line == root.token || free == d.n_pus()) {
    gangs->first_in_line = nullptr;
    gangs->passed = 0;
  } else if (gangs->first_in_line != nullptr) {
    ++gangs->passed;
  }
  const uint32_t gang = gangs->book.add(root.token);
  if (gang == kNone) return false;
  const Domain& home = choose(*gangs, d, pus, root.last_domain);
  if (deal(*gangs, submission.work, home, gang, answer)) return true;
  gangs->book.drop(gang);
  return false;
}

void submit_team(void* state, const TeamShape& shape, TeamPlacement* answer) {
  const auto& gangs = *static_cast<const Gangs*>(state);
  const Machine& machine = *gangs.machine;
  answer->set_together(
      machine,
      relations::smallest_around(machine, machine.root(), shape.opener_pu, shape.members).id,
      shape.members);
  answer->set_gang(gangs.slice);
}

bool idle(void* state, uint32_t pu) {
  auto* gangs = static_cast<Gangs*>(state);
  if (!gangs->book.owned(pu)) return false;
  base::SpinGuard guard(gangs->lock);
  return gangs->book.asked_for_work(pu);
}

TickAnswer tick(void* state, const FoundBubble& bubble) {
  auto* gangs = static_cast<Gangs*>(state);
  base::SpinGuard guard(gangs->lock);
  const uint32_t gang = gangs->book.find(bubble.token);
  if (gang == kNone || !gangs->book.count_tick(gang, gangs->slice)) return TickAnswer::kKeep;
  gangs->book.restart_slice(gang);
  if (!bubble.others_wait || bubble.waiting_priority < bubble.priority) return TickAnswer::kKeep;
  gangs->book.drop(gang);
  return TickAnswer::kRegenerate;
}

void done(void* state, EntityToken, uint32_t domain, uint64_t) {
  auto* gangs = static_cast<Gangs*>(state);
  const Domain& d = gangs->machine->domain_array[domain];
  if (!d.is_pu() || !gangs->book.owned(d.first_pu)) return;
  base::SpinGuard guard(gangs->lock);
  gangs->book.thread_ended(d.first_pu);
}

}  // namespace

constinit const PolicyOps kGangPolicy = {
    .name = "gang",
    .summary =
        "the threads of a bubble run at the same time, several bubbles side by side where they fit, "
        "in slices of gang:TICKS (default 1) where others wait",
    .check = check,
    .start = start,
    .stop = stop,
    .submit = submit,
    .submit_team = submit_team,
    .found = found,
    .idle = idle,
    .tick = tick,
    .hint = nullptr,
    .done = done,
    .forked = forked,
    .argument = "time slice in ticks (1)",
};

}  // namespace bosk::policies
