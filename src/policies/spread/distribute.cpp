// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy distribution of entities over the tree of domains.
#include "policies/spread/distribute.h"

#include <algorithm>

#include "base/assert.h"
#include "policies/relations.h"
#include "policies/spread/shares.h"

namespace bosk::policies::spread {

void Scratch::release() {
  items.release();
  bins.release();
  heap.release();
  touched.release();
  unpacking.release();
}

namespace {

using topology::Domain;

class Distribution {
 public:
  Distribution(const Parameters& parameters, const Submission& submission, Scratch* scratch,
               PlacementList* answer)
      : machine_(*parameters.machine),
        parameters_(parameters),
        work_(submission.work),
        booked_(submission.booked),
        pu_(submission.pu),
        s_(*scratch),
        answer_(*answer) {}

  bool run(uint32_t domain);

 private:
  bool distribute_on(const Domain& d, uint32_t begin, uint32_t end);
  bool explode(const Domain& d, uint64_t allowed, uint32_t begin, uint32_t end);
  bool seat(const Domain& d, uint32_t begin);
  bool unpack(uint32_t bubble, uint64_t load, uint64_t allowed);
  bool go_near(const Domain& d, uint32_t begin);
  bool deal(const Domain& d, uint32_t begin, uint32_t end);
  bool cut(uint32_t begin);
  bool place_all(const Domain& d, uint32_t begin, uint32_t end);

  bool explodable(const EntityView& e) const {
    return e.kind == sched::EntityKind::kBubble && e.pieces > 1 &&
           !relations::keeps_whole(machine_, e);
  }
  bool explodable(const Item& item) const {
    return item.ghosts == 0 && explodable(work_.entities[item.entity]);
  }
  bool is_kept(const Item& item) const {
    return item.ghosts == 0 && relations::keeps_whole(machine_, work_.entities[item.entity]);
  }
  bool is_one_piece(const Item& item) const {
    return item.pieces() == 1 && !explodable(item) && !is_kept(item);
  }
  bool push(uint32_t entity, uint32_t first_ghost, uint32_t ghosts, uint64_t load) {
    ++s_.steps;
    return s_.items.push({load, entity, first_ghost, ghosts, s_.items.size(), 0});
  }

  // ---- the bins of one domain: s_.bins and, as a heap of their numbers, s_.heap
  bool emptier(uint32_t a, uint32_t b) {
    ++s_.steps;
    const Bin& x = s_.bins[a];
    const Bin& y = s_.bins[b];
    const Wide left = Wide{x.load} * y.pus;
    const Wide right = Wide{y.load} * x.pus;
    if (left != right) return left < right;
    return x.pus != y.pus ? x.pus > y.pus : a < b;
  }
  void sift_down(uint32_t at);
  void make_heap();
  bool share_out(uint64_t pieces, uint64_t load);
  void flood(uint64_t pieces, uint64_t load, uint64_t* left);

  const topology::Machine& machine_;
  const Parameters& parameters_;
  const WorkView& work_;
  const std::atomic<uint64_t>* booked_;
  const uint32_t pu_;
  Scratch& s_;
  PlacementList& answer_;
};

bool Distribution::run(uint32_t domain) {
  s_.items.clear();
  s_.unpacking.clear();
  s_.steps = 0;
  for (uint32_t i = 0; i < work_.n_roots; ++i)
    if (!push(i, 0, 0, work_.entities[i].load)) return false;
  return distribute_on(machine_.domain_array[domain], 0, s_.items.size());
}

bool Distribution::place_all(const Domain& d, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    const Item& item = s_.items[i];
    ++s_.steps;
    if (!answer_.add({item.entity, item.first_ghost, item.ghosts, d.id})) return false;
  }
  return true;
}

/// Items [begin, end) go to `d` or below. What is pushed behind them is gone again on return.
bool Distribution::distribute_on(const Domain& d, uint32_t begin, uint32_t end) {
  if (begin == end) return true;
  if (is_bottom(parameters_, d) || (end - begin == 1 && is_one_piece(s_.items[begin])))
    return place_all(d, begin, end);

  // Fair is the share of all that is to be done here: what was dealt out earlier has a share, too.
  Wide total = booked_on(booked_, d);
  uint32_t largest = 0;
  for (uint32_t i = begin; i < end; ++i) {
    total += Wide{s_.items[i].load} * s_.items[i].pieces();
    ++s_.steps;
  }
  for (const Domain& child : d.children()) largest = std::max(largest, child.n_pus());
  const Wide allowed =
      total * largest / d.n_pus() * parameters_.explode_percent / 100;  // of the largest child

  const uint32_t exploded = s_.items.size();
  if (!explode(d, allowed > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(allowed), begin, end))
    return false;
  if (s_.items.size() == exploded) return true;
  if (s_.items.size() - exploded == 1 && is_one_piece(s_.items[exploded])) {
    const bool placed = place_all(d, exploded, exploded + 1);
    s_.items.resize(exploded);
    return placed;
  }
  if (!go_near(d, exploded) && !deal(d, exploded, s_.items.size())) return false;

  // Dealt items are sorted by child: the same again for each.
  const uint32_t dealt_end = s_.items.size();
  for (uint32_t from = exploded; from < dealt_end;) {
    const uint32_t child = s_.items[from].child;
    uint32_t to = from;
    while (to < dealt_end && s_.items[to].child == child) ++to;
    if (!distribute_on(d.first_child[child], from, to)) return false;
    from = to;
  }
  s_.items.resize(exploded);
  return true;
}

/// Pushes the items, those that are too large taken apart, in the order of the tree. Bubbles whose
/// relation keeps them together here are placed at once.
bool Distribution::explode(const Domain& d, uint64_t allowed, uint32_t begin, uint32_t end) {
  const uint32_t pushed = s_.items.size();
  for (uint32_t i = begin; i < end; ++i) {
    const Item item = s_.items[i];
    const bool done = explodable(item) && item.load > allowed
                          ? unpack(item.entity, item.load, allowed)
                          : push(item.entity, item.first_ghost, item.ghosts, item.load);
    if (!done) return false;
  }
  return seat(d, pushed);
}

/// Places items from `begin` on whose seat is `d`, and closes the gaps.
bool Distribution::seat(const Domain& d, uint32_t begin) {
  uint32_t kept = begin;
  for (uint32_t i = begin; i < s_.items.size(); ++i) {
    ++s_.steps;
    if (is_kept(s_.items[i]) && relations::sits(machine_, work_.entities[s_.items[i].entity], d)) {
      if (!answer_.add({s_.items[i].entity, 0, 0, d.id})) return false;
      continue;
    }
    s_.items[kept] = s_.items[i];
    s_.items[kept].position = kept;
    ++kept;
  }
  s_.items.resize(kept);
  return true;
}

/// Pushes what is in the bubble, which counts with `load`, and so on for bubbles in it that are
/// still too large. Without recursion: bubbles may be nested deeply and this runs on small stacks.
bool Distribution::unpack(uint32_t bubble, uint64_t load, uint64_t allowed) {
  const uint32_t floor = s_.unpacking.size();
  if (!s_.unpacking.push({bubble, 0, load, 0})) return false;
  while (s_.unpacking.size() > floor) {
    Unpacking& at = s_.unpacking.back();
    const EntityView& outer = work_.entities[at.bubble];
    ++s_.steps;
    // A part of the contents counts with as much of the bubble's load as it is of the contents.
    // Sums are rounded, not parts, so that nothing is lost.
    const auto counts = [&](uint64_t natural) {
      const auto before = static_cast<uint64_t>(Wide{at.load} * at.natural / outer.content);
      at.natural += natural;
      const auto after = static_cast<uint64_t>(Wide{at.load} * at.natural / outer.content);
      return std::max<uint64_t>(after - before, 1);
    };
    if (at.next_child == outer.n_children) {
      if (outer.ghosts != 0) {
        const uint64_t each = counts(outer.content - at.natural) / outer.ghosts;
        if (!push(at.bubble, 0, outer.ghosts, std::max<uint64_t>(each, 1))) return false;
      }
      s_.unpacking.resize(s_.unpacking.size() - 1);
      continue;
    }
    const uint32_t child = outer.first_child + at.next_child++;
    const EntityView& inner = work_.entities[child];
    const uint64_t counted = counts(inner.load);
    const bool again = explodable(inner) && counted > allowed;
    if (!(again ? s_.unpacking.push({child, 0, counted, 0}) : push(child, 0, 0, counted)))
      return false;
  }
  return true;
}

void Distribution::sift_down(uint32_t at) {
  const uint32_t size = s_.heap.size();
  const uint32_t moving = s_.heap[at];
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= size) break;
    if (child + 1 < size && emptier(s_.heap[child + 1], s_.heap[child])) ++child;
    if (!emptier(s_.heap[child], moving)) break;
    s_.heap[at] = s_.heap[child];
    at = child;
  }
  s_.heap[at] = moving;
}

void Distribution::make_heap() {
  for (uint32_t at = s_.heap.size() / 2; at-- > 0;) sift_down(at);
}

/// Gives `pieces` of equal load to the bins, each to the emptiest: bins[].dealt says how many,
/// touched which bins, in order. O(pieces · log bins), but not more than O(bins · log bins).
bool Distribution::share_out(uint64_t pieces, uint64_t load) {
  s_.touched.clear();
  uint64_t left = pieces;
  if (pieces > s_.bins.size()) {
    flood(pieces, load, &left);
    for (uint32_t i = 0; i < s_.bins.size(); ++i) {
      ++s_.steps;
      if (s_.bins[i].dealt != 0 && !s_.touched.push(i)) return false;
    }
  }
  const uint32_t flooded = s_.touched.size();
  for (; left != 0; --left) {
    const uint32_t emptiest = s_.heap[0];
    Bin& bin = s_.bins[emptiest];
    if (bin.dealt++ == 0 && !s_.touched.push(emptiest)) return false;
    bin.load += load;
    sift_down(0);
  }
  if (s_.touched.size() - flooded != 0 && s_.touched.size() > 1)
    std::sort(s_.touched.data(), s_.touched.data() + s_.touched.size(),
              [this](uint32_t a, uint32_t b) {
                ++s_.steps;
                return a < b;
              });
  return true;
}

/// All but a few of the pieces at once: to the level to which they would fill the bins if they were
/// a liquid, rounded down to whole pieces. `left`: those that are not dealt, fewer than bins. What
/// one by one would have given to a bin is never less than that.
void Distribution::flood(uint64_t pieces, uint64_t load, uint64_t* left) {
  std::sort(s_.heap.data(), s_.heap.data() + s_.heap.size(),
            [this](uint32_t a, uint32_t b) { return emptier(a, b); });
  // The bins that get wet: as long as the level that the ones before them reach is above their own.
  Wide liquid = Wide{pieces} * load;
  uint64_t pus = 0;
  uint32_t wet = 0;
  for (; wet < s_.heap.size(); ++wet) {
    const Bin& bin = s_.bins[s_.heap[wet]];
    ++s_.steps;
    if (pus != 0 && liquid * bin.pus <= Wide{bin.load} * pus) break;
    liquid += bin.load;
    pus += bin.pus;
  }
  for (uint32_t i = 0; i < wet; ++i) {
    Bin& bin = s_.bins[s_.heap[i]];
    const Wide level = liquid * bin.pus / pus;
    ++s_.steps;
    if (level <= bin.load) continue;
    const auto fits = static_cast<uint64_t>((level - bin.load) / load);
    bin.dealt += static_cast<uint32_t>(fits);
    bin.load += fits * load;
    *left -= fits;
  }
  make_heap();
}

/// If the item is alone: it goes to the finder's side, near those who made it, unless that is the fuller one.
bool Distribution::go_near(const Domain& d, uint32_t begin) {
  Item& item = s_.items[begin];
  if (s_.items.size() - begin != 1 || item.pieces() != 1 || !d.contains_pu(pu_)) return false;
  const Domain& child = child_with_pu(d, pu_);
  if (!has_room(booked_, d, child, item.load)) return false;
  item.child = child.rank;
  ++s_.steps;
  return true;
}

/// Deals items [begin, end), the last ones on the stack, out to the children of `d`: replaces them
/// by what goes to each child, sorted by child.
bool Distribution::deal(const Domain& d, uint32_t begin, uint32_t end) {
  s_.bins.clear();
  s_.heap.clear();
  if (!s_.bins.resize(d.n_children) || !s_.heap.resize(d.n_children)) return false;
  for (uint32_t i = 0; i < d.n_children; ++i) {
    const Domain& child = d.first_child[i];
    s_.bins[i] = {booked_on(booked_, child), child.n_pus(), 0};
    s_.heap[i] = i;
  }
  make_heap();
  const auto heavier = [this](const Item& a, const Item& b) {
    ++s_.steps;
    return a.load != b.load ? a.load > b.load : a.position < b.position;
  };
  if (!std::is_sorted(s_.items.data() + begin, s_.items.data() + end, heavier))
    std::sort(s_.items.data() + begin, s_.items.data() + end, heavier);

  for (uint32_t from = begin; from < end;) {
    uint64_t pieces = 0;
    uint32_t to = from;
    for (; to < end && s_.items[to].load == s_.items[from].load; ++to)
      pieces += s_.items[to].pieces();
    if (!share_out(pieces, s_.items[from].load) || !cut(from)) return false;
    from = to;
  }

  // What was cut lies behind; sort it by child, in the order of the tree within each, and move it
  // down.
  const uint32_t cut_end = s_.items.size();
  const auto by_child = [this](const Item& a, const Item& b) {
    ++s_.steps;
    if (a.child != b.child) return a.child < b.child;
    return a.position != b.position ? a.position < b.position : a.first_ghost < b.first_ghost;
  };
  if (!std::is_sorted(s_.items.data() + end, s_.items.data() + cut_end, by_child))
    std::sort(s_.items.data() + end, s_.items.data() + cut_end, by_child);
  const uint32_t count = cut_end - end;
  for (uint32_t i = 0; i < count; ++i) s_.items[begin + i] = s_.items[end + i];
  s_.items.resize(begin + count);
  return true;
}

/// Cuts the items of one batch, from `begin` on, into what each touched bin gets: neighbours to one
/// bin.
bool Distribution::cut(uint32_t begin) {
  uint32_t item = begin;
  uint32_t used = 0;  // pieces of it
  for (uint32_t t = 0; t < s_.touched.size(); ++t) {
    const uint32_t child = s_.touched[t];
    uint32_t wanted = s_.bins[child].dealt;
    s_.bins[child].dealt = 0;
    while (wanted != 0) {
      Item piece = s_.items[item];
      const uint32_t take = std::min(wanted, piece.pieces() - used);
      piece.child = child;
      if (piece.ghosts != 0) {
        piece.first_ghost += used;
        piece.ghosts = take;
      }
      ++s_.steps;
      used += take;
      wanted -= take;
      if (used == s_.items[item].pieces()) {
        ++item;
        used = 0;
      }
      if (!s_.items.push(piece)) return false;
    }
  }
  BOSK_ASSERT(used == 0);
  return true;
}

}  // namespace

bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer) {
  return Distribution(parameters, submission, scratch, answer).run(submission.domain);
}

}  // namespace bosk::policies::spread
