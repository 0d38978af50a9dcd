// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks now and then whether threads reach for memory of other nodes, and has it decided about (MemoryTrigger::kRemote).
//
//     every .1 s to 1.6 s, by the service thread ─▶ each adapter (service.h) goes through those of its users of whom something is
//       attached ─▶ a source says how much of what they reach is local and remote ─▶ RemoteWatch says for which that is worth a
//       decision ─▶ the adapter decides
//
// Sources: counters of the hardware, which an adapter may have, or where attached pages are, by a sample (page_samples.cpp).
// Nothing is written or asked where threads run. The time that looking takes is at most a fiftieth of the time between looks.
//
// Who owns what: all state belongs to the service thread, and to forget_watch() in a forked child, where there is none.
#pragma once

#include "locality/users.h"
#include "policies/memory/remote_watch.h"

namespace bosk::locality {

struct Adapter;

/// A bubble or a team of which something is attached, as it was a moment ago.
struct Watched {
  Users users;
  base::MappedArray<uint32_t> workers;  ///< on which its threads ran last; each once or more often

  void clear() {
    users.clear();
    workers.clear();
  }
  void release() {
    users.release();
    workers.release();
  }
};

/// Where the amounts come from. Called by the service thread, without any lock.
struct RemoteSource {
  const char* name;
  /// Its measure() goes by users, else by workers.
  bool by_users;
  /// An interval is over. False: there is nothing to be had here.
  bool (*begin)();
  /// False: of this one nothing is known.
  bool (*measure)(memory::AreaTable& areas, const Watched& watched,
                  policies::RemoteAmounts* amounts);
  /// Nobody watches any more, for the time being.
  void (*end)();
};
extern const RemoteSource page_samples;

/// One look, for an adapter that goes through its users.
class Look {
 public:
  Look(memory::AreaTable& areas, const RemoteSource& source, policies::RemoteWatch* watch)
      : areas_(areas), source_(source), watch_(*watch) {}

  memory::AreaTable& areas() const { return areas_; }
  /// What `watched` has to say; the other half may be left out.
  bool wants_users() const { return source_.by_users; }
  /// Of the one of that name (not 0). True: it is worth a decision, for which its time is not counted as looking.
  bool is_far(uint64_t name, const Watched& watched);
  /// Nothing is known of it now; it will be no new one when it is.
  void keep(uint64_t name) { watch_.keep(name); }
  /// Decides; by processor time of its own.
  template <typename Decide>
  void decide(Decide&& decide);

  const policies::RemoteAmounts& amounts() const { return amounts_; }
  uint64_t raised() const { return raised_; }
  uint64_t time_of_decisions() const { return deciding_; }

 private:
  memory::AreaTable& areas_;
  const RemoteSource& source_;
  policies::RemoteWatch& watch_;
  policies::RemoteAmounts amounts_;
  uint64_t raised_ = 0;
  uint64_t deciding_ = 0;  ///< ns
};

/// Looks if it is time. When it will be again, on sched::clock_now()'s clock; sched::kForever: not before somebody asks the
/// service thread for something else.
uint64_t watch_remote_accesses();
void end_watch();
/// In a forked child.
void forget_watch();

/// For tests: asked instead of the others. Before anything is attached.
void set_remote_source(const RemoteSource* source);

/// Processor time of the calling kernel thread, ns.
uint64_t own_time();

template <typename Decide>
void Look::decide(Decide&& decide) {
  const uint64_t before = own_time();
  decide();
  deciding_ += own_time() - before;
}

}  // namespace bosk::locality
