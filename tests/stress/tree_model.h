// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plain sequential model of trees of bubbles on queues: what bubble_tree promises, without a lock or a
// pointer. Threads and bubbles are numbers, queues are lists of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tree_traces.h"

namespace bosk::test {

class TreeModel {
 public:
  enum class Place : std::uint8_t { kNowhere, kQueued, kHeld };
  enum class State : std::uint8_t { kClosed, kInHand, kBurst, kClosing };

  /// Threads are 0 … n-1, bubble i is n + i.
  struct Thing {
    long outer = -1;  ///< number of the bubble
    Place place = Place::kNowhere;
    bool awaited = false;
    bool blocked = false;
    std::uint32_t queue = 0;  ///< if queued
    std::int32_t priority = 0;
    // Bubbles.
    State state = State::kClosed;
    std::uint32_t awaits = 0;
    long home = -1, burst_on = -1;
    std::uint32_t claimable = 0, held = 0;
    bool serving = false, serves_closed = false;
    std::vector<long> members;
  };

  struct Worker {
    std::uint32_t number = 0;
    std::vector<long> running, blocked;
  };

  TreeModel(const Plan& plan, const Machine& machine)
      : plan_(plan),
        machine_(machine),
        n_threads_(static_cast<long>(plan.bubble_of.size())),
        queues(machine.n_domains) {
    things.resize(plan.bubble_of.size() + plan.ghosts.size());
    for (std::uint32_t i = 0; i < plan.ghosts.size(); ++i) {
      Thing& b = bubble(i);
      b.priority = plan.priority[i];
      b.claimable = plan.ghosts[i];
      if (i != 0) put_into(number(i), number(plan.outer[i - 1]));
    }
    for (long t = 0; t < n_threads_; ++t)
      put_into(t, number(plan.bubble_of[static_cast<std::size_t>(t)]));
    bubble(0).home = 0;
    requeue(number(0), 0, false);
  }

  Did carry_out(Worker& w, const Step& s) {
    Did did;
    switch (s.op) {
      case Op::kTake:
        take(w, s, &did);
        break;
      case Op::kRequeue:
        if (const long t = pick(w.running, s.a); t >= 0) requeue(t, queue_on_path(s), s.c % 4 == 0);
        break;
      case Op::kBlock:
        if (const long t = pick(w.running, s.a); t >= 0) {
          w.blocked.push_back(t);
          at(t).blocked = true;
          no_longer_awaited(t);
        }
        break;
      case Op::kWake:
        if (const long t = pick(w.blocked, s.a); t >= 0) requeue(t, queue_on_path(s), false);
        break;
      case Op::kClose:
        did.yes = close(random_bubble(s.a),
                        s.c % 4 == 0 ? static_cast<long>(s.b % machine_.n_domains) : -1);
        break;
      case Op::kWiden: {
        const long b = random_bubble(s.a);
        did.yes = at(b).state == State::kBurst;
        if (did.yes) did.ghosts = widen(b, s.b % machine_.n_domains);
        break;
      }
      case Op::kMove:
      case Op::kEnd:
        if (const long t = look(w.running, s.a);
            t >= 0 && plan_.reinserter(static_cast<std::uint32_t>(t)) == UINT32_MAX) {
          const long from = at(t).outer;
          std::erase(at(from).members, t);
          at(t).outer = -1;
          if (std::exchange(at(t).awaited, false)) one_less(from);
          if (s.op == Op::kEnd) pick(w.running, s.a);
          insert(t, random_bubble(s.b), s.op == Op::kMove);
        }
        break;
      case Op::kReinsert: {
        const auto t = static_cast<long>(s.a % static_cast<std::uint32_t>(n_threads_));
        if (plan_.reinserter(static_cast<std::uint32_t>(t)) != w.number) break;
        did.yes = at(t).place != Place::kNowhere;
        if (!did.yes) break;
        if (at(t).place == Place::kQueued) dequeue(t);
        at(t).place = Place::kNowhere;
        std::erase(at(at(t).outer).members, t);
        insert(t, random_bubble(s.b), false);
        break;
      }
      case Op::kPriority:
        if (const long t = look(w.running, s.a); t >= 0)
          at(t).priority = static_cast<std::int32_t>(s.b % 4) - 1;
        break;
      case Op::kClaim: {
        Thing& b = at(random_bubble(s.a));
        did.ghosts = claim(b, 1 + s.b % 3);
        break;
      }
      case Op::kOps:
        break;
    }
    return did;
  }

  Thing& bubble(std::uint32_t i) { return at(number(i)); }
  long n_threads() const { return n_threads_; }

 private:
  const Plan& plan_;
  const Machine& machine_;
  const long n_threads_;

 public:
  std::vector<std::vector<long>> queues;
  std::vector<Thing> things;

 private:
  Thing& at(long n) { return things[static_cast<std::size_t>(n)]; }
  long number(std::uint32_t bubble) const { return n_threads_ + bubble; }
  bool is_bubble(long n) const { return n >= n_threads_; }
  long random_bubble(std::uint32_t a) const {
    return n_threads_ + a % static_cast<std::uint32_t>(plan_.ghosts.size());
  }
  static long look(const std::vector<long>& from, std::uint32_t a) {
    return from.empty() ? -1 : from[a % from.size()];
  }
  static long pick(std::vector<long>& from, std::uint32_t a) {
    const long t = look(from, a);
    if (t >= 0) from.erase(from.begin() + static_cast<std::ptrdiff_t>(a % from.size()));
    return t;
  }
  std::vector<std::uint32_t> path(std::uint32_t pu) const {
    std::vector<std::uint32_t> up;
    for (const Domain* d = &machine_.pu(pu); d != nullptr; d = d->parent) up.push_back(d->id);
    return up;
  }
  std::uint32_t queue_on_path(const Step& s) const {
    const std::vector<std::uint32_t> up = path(s.b % machine_.n_pus);
    return up[s.c / 4 % up.size()];
  }

  void enqueue(long n, std::uint32_t queue, bool front) {
    std::vector<long>& list = queues[queue];
    auto to = list.end();
    while (to != list.begin() && (front ? at(*(to - 1)).priority <= at(n).priority
                                        : at(*(to - 1)).priority < at(n).priority))
      --to;
    list.insert(to, n);
    at(n).place = Place::kQueued;
    at(n).queue = queue;
  }
  void dequeue(long n) {
    std::erase(queues[at(n).queue], n);
    at(n).place = Place::kNowhere;
  }
  void put_into(long n, long into) {
    at(n).outer = into;
    at(into).members.push_back(n);
    at(n).place = Place::kHeld;
  }
  void insert(long n, long into, bool runs) {
    put_into(n, into);
    if (runs || at(into).state == State::kBurst) at(n).place = Place::kNowhere;
    if (!runs && at(into).state == State::kBurst)
      enqueue(n, static_cast<std::uint32_t>(at(into).burst_on), false);
  }

  void requeue(long n, std::uint32_t queue, bool front) {
    at(n).blocked = false;
    const long outer = at(n).outer;
    if (outer < 0 || at(outer).state == State::kBurst) return enqueue(n, queue, front);
    at(n).place = Place::kHeld;
    if (std::exchange(at(n).awaited, false)) one_less(outer);
  }
  void no_longer_awaited(long n) {
    if (std::exchange(at(n).awaited, false)) one_less(at(n).outer);
  }
  void one_less(long b) {
    if (--at(b).awaits != 0 || at(b).state != State::kClosing) return;
    at(b).state = State::kClosed;
    go_home(b);
  }
  void go_home(long b) {
    requeue(b, static_cast<std::uint32_t>(at(b).home >= 0 ? at(b).home : at(b).burst_on), false);
  }

  static std::uint32_t claim(Thing& b, std::uint32_t most) {
    const std::uint32_t take = std::min(most, b.claimable);
    b.claimable -= take;
    return take;
  }
  static void hold_ghosts(Thing& b) {
    if (b.claimable == 0) return;
    b.held = b.claimable;
    b.claimable = 0;
  }
  static void free_ghosts(Thing& b) {
    if (b.held == 0) return;
    b.claimable = b.held;
    b.held = 0;
  }

  bool close(long b, long to) {
    if (at(b).state != State::kBurst) return false;
    begin(b);
    if (at(b).place == Place::kQueued) dequeue(b);
    at(b).serving = at(b).serves_closed = false;
    if (to >= 0) at(b).home = to;
    return take_all_back(b);
  }
  void begin(long b) {
    at(b).state = State::kInHand;
    at(b).awaits = 0;
    hold_ghosts(at(b));
  }
  bool take_all_back(long b) {
    for (const long m : std::vector<long>(at(b).members)) {
      Thing& thing = at(m);
      if (thing.place == Place::kHeld || thing.awaited) continue;
      const bool queued = thing.place == Place::kQueued;
      if (queued) dequeue(m);
      if (!is_bubble(m)) {
        if (queued)
          thing.place = Place::kHeld;
        else if (!thing.blocked)
          await(b, m);
        continue;
      }
      if (queued && thing.serves_closed && thing.state == State::kClosed) hold_ghosts(thing);
      if (queued) thing.serving = thing.serves_closed = false;
      if (queued && thing.state == State::kClosed) {
        thing.place = Place::kHeld;
        continue;
      }
      await(b, m);
      if (thing.state != State::kBurst) continue;
      begin(m);
      take_all_back(m);
    }
    at(b).state = at(b).awaits == 0 ? State::kClosed : State::kClosing;
    if (at(b).awaits != 0) return false;
    go_home(b);
    return true;
  }
  void await(long b, long member) {
    at(member).awaited = true;
    ++at(b).awaits;
  }

  std::uint32_t burst(long b, std::uint32_t queue) {
    std::uint32_t out = 0;
    for (const long m : at(b).members) {
      if (at(m).place != Place::kHeld) continue;
      if (is_bubble(m)) at(m).home = queue;
      enqueue(m, queue, false);
      ++out;
    }
    Thing& thing = at(b);
    thing.state = State::kBurst;
    thing.burst_on = queue;
    free_ghosts(thing);
    thing.serves_closed = false;
    thing.serving = !thing.awaited && thing.claimable != 0;
    if (thing.serving) enqueue(b, queue, true);
    if (thing.awaited) close(b, -1);
    return out;
  }
  std::uint32_t widen(long b, std::uint32_t queue) {
    begin(b);
    if (at(b).place == Place::kQueued) dequeue(b);
    at(b).serving = at(b).serves_closed = false;
    for (const long m : at(b).members)
      if (at(m).place == Place::kQueued && !(is_bubble(m) && at(m).serving)) {
        dequeue(m);
        at(m).place = Place::kHeld;
      }
    return burst(b, queue);
  }

  void take(Worker& w, const Step& s, Did* did) {
    const std::vector<std::uint32_t> up = path(s.a % machine_.n_pus);
    std::uint32_t decision = s.b;
    for (;;) {
      long best = -1;
      std::size_t level = 0;
      for (std::size_t l = 0; l < up.size(); ++l) {
        if (queues[up[l]].empty()) continue;
        const long first = queues[up[l]].front();
        if (best >= 0 && at(first).priority <= at(best).priority) continue;
        best = first;
        level = l;
      }
      if (best < 0) return;
      Thing& thing = at(best);
      if (!is_bubble(best)) {
        dequeue(best);
        did->thread = best;
        did->domain = up[level];
        w.running.push_back(best);
        return;
      }
      if (thing.serving && thing.claimable != 0) {
        did->team = best - n_threads_;
        did->domain = up[level];
        did->ghosts = claim(thing, 1 + s.c % 3);
        return;
      }
      const bool was_open = thing.serving && !thing.serves_closed;
      thing.serving = thing.serves_closed = false;
      dequeue(best);
      if (was_open) continue;
      thing.state = State::kInHand;
      decision = decision * 5 + 1;
      const std::uint32_t what = decision >> 8;
      if (what % 3 == 0 && thing.claimable + thing.held != 0) {
        free_ghosts(thing);
        thing.state = State::kClosed;
        thing.serving = thing.serves_closed = true;
        requeue(best, up[level], true);
      } else if (what % 3 == 1 && level != 0) {
        thing.state = State::kClosed;
        requeue(best, up[what / 3 % level], false);
      } else {
        burst(best, up[level]);
      }
    }
  }
};

}  // namespace bosk::test
