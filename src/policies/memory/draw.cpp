// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Draws entities to the places where what they use lies, the one with most at stake first.
#include "policies/memory/draw.h"

#include <algorithm>

#include "policies/memory/pull.h"
#include "policies/relations.h"

namespace bosk::policies::draw {

void Scratch::release() {
  bytes.release();
  source.release();
  heap.release();
  chosen.release();
  rooms.release();
  pull.release();
  part.release();
  origins.release();
  inside.release();
  answer.release();
  team_answer.release();
}

namespace {

using topology::Domain;
__extension__ typedef unsigned __int128 Wide;

/// Those with most at stake first; of equals the heaviest, then in the order of the tree.
bool comes_later(const Item& a, const Item& b) {
  if (a.stake != b.stake) return a.stake < b.stake;
  if (a.load != b.load) return a.load < b.load;
  return a.entity != b.entity ? a.entity > b.entity : a.first_ghost > b.first_ghost;
}

class Drawing {
 public:
  Drawing(const Parameters& parameters, const Submission& submission, bool runs, Scratch* scratch)
      : machine_(*parameters.inside.machine),
        parameters_(parameters),
        submission_(submission),
        entities_(submission.work.entities),
        runs_(runs),
        s_(*scratch),
        pulls_(*parameters.places, machine_, submission, scratch) {}

  /// False: out of memory.
  bool choose();
  bool place(PlacementList* answer);
  uint64_t gain();

 private:
  bool start_rooms();
  bool push(Item item);
  bool settle(Item item);
  bool settle_above(const Item& item, PlacementList* answer);
  bool take(Item item, uint32_t at);
  bool open(const Item& bubble);
  bool split(const Item& ghosts);
  bool place_part(uint32_t at, uint32_t begin, uint32_t end, PlacementList* answer);
  bool add_to_part(const Item& item);
  bool fits(uint32_t at, const Item& item) const;
  bool may_hold(uint32_t at, const Item& item) const {
    return !is_kept(item) || relations::may_hold(machine_, entities_[item.entity], domain(at));
  }
  bool is_emptier(uint32_t a, uint32_t b) const {
    return Wide{s_.rooms[a].load} * s_.rooms[b].pus < Wide{s_.rooms[b].load} * s_.rooms[a].pus;
  }
  uint32_t best_other(const Item& item, uint32_t best) const;
  uint32_t emptiest(const Item& item) const;
  uint32_t before(const Item& item) const;
  bool is_kept(const Item& item) const {
    return item.ghosts == 0 && relations::keeps_whole(machine_, entities_[item.entity]);
  }
  bool may_open(const Item& item) const {
    const EntityView& e = entities_[item.entity];
    // One thread need not open; nobody at all has no better place than those who may come.
    return item.ghosts == 0 && e.kind == sched::EntityKind::kBubble && e.pieces != 1 &&
           (e.pieces != 0 || e.n_children != 0) && !is_kept(item);
  }
  const Domain& domain(uint32_t at) const {
    return machine_.domain_array[parameters_.places->domain(pulls_.first() + at)];
  }

  const topology::Machine& machine_;
  const Parameters& parameters_;
  const Submission& submission_;
  const EntityView* entities_;
  const bool runs_;
  Scratch& s_;
  Pulls pulls_;
  uint64_t all_load_ = 0;
  uint64_t mean_load_ = 1;  ///< of a thread
  uint64_t all_pus_ = 0;
};

bool Drawing::start_rooms() {
  const uint32_t n = pulls_.places();
  if (!s_.rooms.resize(n)) return false;
  uint64_t width = 0;
  for (uint32_t i = 0; i < submission_.work.n_roots; ++i) {
    all_load_ += entities_[i].load;
    width += entities_[i].width;
  }
  mean_load_ = std::max<uint64_t>(all_load_ / std::max<uint64_t>(width, 1), 1);
  for (uint32_t at = 0; at < n; ++at) {
    // relaxed: a figure; see Submission::booked.
    const uint64_t booked = submission_.booked != nullptr
                                ? submission_.booked[domain(at).id].load(std::memory_order_relaxed)
                                : 0;
    s_.rooms[at] = {booked, 0, domain(at).n_pus()};
    all_pus_ += domain(at).n_pus();
  }
  // What runs is booked where it is, and would be in its own way.
  for (uint32_t i = 0; runs_ && i < submission_.work.count; ++i) {
    const EntityView& e = entities_[i];
    const uint32_t at = pulls_.place_of(e.last_domain);
    if (e.kind != sched::EntityKind::kThread || at == kNone) continue;
    s_.rooms[at].load -= std::min(s_.rooms[at].load, e.load);
  }
  for (uint32_t at = 0; at < n; ++at) {
    all_load_ += s_.rooms[at].load;
    s_.rooms[at].width = (s_.rooms[at].load + mean_load_ - 1) / mean_load_;
  }
  s_.steps += n;
  return true;
}

bool Drawing::choose() {
  s_.heap.clear();
  s_.chosen.clear();
  if (!pulls_.add_up() || !start_rooms()) return false;
  for (uint32_t i = 0; i < submission_.work.n_roots; ++i)
    if (!push({0, entities_[i].load, i, 0, 0, entities_[i].width, kNone})) return false;
  while (!s_.heap.empty()) {
    std::pop_heap(s_.heap.data(), s_.heap.data() + s_.heap.size(), comes_later);
    const Item item = s_.heap.back();
    s_.heap.resize(s_.heap.size() - 1);
    if (!settle(item)) return false;
  }
  return true;
}

bool Drawing::push(Item item) {
  item.stake = pulls_.of(item).stake;
  if (!s_.heap.push(item)) return false;
  std::push_heap(s_.heap.data(), s_.heap.data() + s_.heap.size(), comes_later);
  return true;
}

/// One item to one place; or it opens, and its contents are items.
bool Drawing::settle(Item item) {
  const Pull pull = pulls_.of(item);
  if (pull.torn && may_open(item)) return open(item);
  const uint32_t last = before(item);
  if (pull.stake != 0) {
    // Where it was is as good, if most of what draws it elsewhere is there, too.
    if (last != kNone && pulls_.is_content(last, pull) && fits(last, item)) return take(item, last);
    if (fits(pull.best, item)) return take(item, pull.best);
    if (may_open(item)) return open(item);
    if (item.ghosts > 1) return split(item);
    const uint32_t other = best_other(item, pull.best);
    return take(item, other != kNone ? other : emptiest(item));
  }
  if (last != kNone && fits(last, item)) return take(item, last);
  const uint32_t to = emptiest(item);
  if (to != kNone && fits(to, item)) return take(item, to);
  if (may_open(item)) return open(item);
  return item.ghosts > 1 ? split(item) : take(item, to);
}

/// Within the balance: not more than its share of the load allows, or a PU for each thread.
bool Drawing::fits(uint32_t at, const Item& item) const {
  const Room& room = s_.rooms[at];
  if (!may_hold(at, item)) return false;
  if (room.width + item.width <= room.pus) return true;
  return Wide{room.load + item.load} * all_pus_ * 100 <=
         Wide{all_load_} * room.pus * parameters_.most_percent;
}

/// The one with room that has most of what the item uses; of equals the nearest to `best`, then the emptiest.
uint32_t Drawing::best_other(const Item& item, uint32_t best) const {
  uint32_t found = kNone;
  uint32_t found_distance = 0;
  for (uint32_t at = 0; at < pulls_.places(); ++at) {
    if (!fits(at, item)) continue;
    const uint32_t distance = machine_.node_distance(machine_.node_of_pu(domain(at).first_pu),
                                                     machine_.node_of_pu(domain(best).first_pu));
    const uint64_t there = pulls_.last_row()[at];
    if (found != kNone) {
      const uint64_t so_far = pulls_.last_row()[found];
      if (there < so_far || (there == so_far && distance > found_distance)) continue;
      if (there == so_far && distance == found_distance && !is_emptier(at, found)) continue;
    }
    found = at;
    found_distance = distance;
  }
  return found;
}

/// Of equals the one around the PU that asks. None: it is kept whole, and none can hold it.
uint32_t Drawing::emptiest(const Item& item) const {
  uint32_t found = kNone;
  for (uint32_t at = 0; at < pulls_.places(); ++at) {
    if (!may_hold(at, item)) continue;
    if (found == kNone || is_emptier(at, found) ||
        (!is_emptier(found, at) && domain(at).contains_pu(submission_.pu)))
      found = at;
  }
  return found;
}

uint32_t Drawing::before(const Item& item) const {
  if (item.ghosts != 0) return kNone;
  return pulls_.place_of(entities_[item.entity].last_domain);
}

bool Drawing::take(Item item, uint32_t at) {
  item.place = at;
  if (at != kNone) {
    s_.rooms[at].load += item.load;
    s_.rooms[at].width += item.width;
  }
  s_.steps += pulls_.places();
  return s_.chosen.push(item);
}

/// Its contents share its load in proportion to theirs.
bool Drawing::open(const Item& bubble) {
  const EntityView& e = entities_[bubble.entity];
  const auto counts = [&](uint64_t natural) {
    const Wide counted = Wide{bubble.load} * natural / std::max<uint64_t>(e.content, 1);
    return std::max<uint64_t>(static_cast<uint64_t>(counted), 1);
  };
  if (e.ghosts != 0 &&
      !push({0, counts(e.ghosts * kLoadUnit), bubble.entity, 0, e.ghosts, e.ghosts, kNone}))
    return false;
  for (uint32_t i = 0; i < e.n_children; ++i) {
    const EntityView& member = entities_[e.first_child + i];
    if (!push({0, counts(member.load), e.first_child + i, 0, 0, member.width, kNone})) return false;
  }
  return true;
}

/// As many of the ghosts as fit go to the best place, at least a place's part; the others are an item.
bool Drawing::split(const Item& ghosts) {
  const Pull pull = pulls_.of(ghosts);
  const uint64_t each = std::max<uint64_t>(ghosts.load / ghosts.ghosts, 1);
  const auto first = [&](uint32_t count) {
    return Item{ghosts.stake, each * count, ghosts.entity, ghosts.first_ghost, count, count, kNone};
  };
  uint32_t to = pull.stake != 0 ? pull.best : emptiest(ghosts);
  if (!fits(to, first(1))) {
    const uint32_t other = pull.stake != 0 ? best_other(first(1), to) : kNone;
    to = other != kNone ? other : emptiest(ghosts);
  }
  uint32_t fit = 1;
  for (uint32_t step = uint32_t{1} << 30; step != 0; step /= 2)
    if (fit + step <= ghosts.ghosts && fits(to, first(fit + step))) fit += step;
  fit = std::max(fit, ghosts.ghosts / pulls_.places());
  if (!take(first(fit), to)) return false;
  if (fit == ghosts.ghosts) return true;
  Item rest = ghosts;
  rest.first_ghost += fit;
  rest.ghosts -= fit;
  rest.width = rest.ghosts;
  rest.load = std::max<uint64_t>(rest.load - std::min(rest.load, each * fit), 1);
  return push(rest);
}

bool Drawing::place(PlacementList* answer) {
  Item* item = s_.chosen.data();
  const uint32_t n = s_.chosen.size();
  // Neighbours in the tree are neighbours on the line that cache cuts.
  std::sort(item, item + n, [](const Item& a, const Item& b) {
    if (a.place != b.place) return a.place < b.place;
    return a.entity != b.entity ? a.entity < b.entity : a.first_ghost < b.first_ghost;
  });
  for (uint32_t begin = 0; begin < n;) {
    const uint32_t at = item[begin].place;
    uint32_t end = begin;
    while (end < n && item[end].place == at) ++end;
    for (uint32_t i = begin; at == kNone && i < end; ++i)
      if (!settle_above(item[i], answer)) return false;
    if (at != kNone && !place_part(at, begin, end, answer)) return false;
    begin = end;
  }
  return true;
}

/// A bubble that is kept whole and has its seat above all places.
bool Drawing::settle_above(const Item& item, PlacementList* answer) {
  const EntityView& e = entities_[item.entity];
  const Domain* d = &machine_.domain_array[submission_.domain];
  static_cast<void>(pulls_.of(item));
  while (!relations::sits(machine_, e, *d)) {
    const Domain* to = nullptr;
    uint64_t most = 0;
    for (const Domain& child : d->children()) {
      if (!relations::may_hold(machine_, e, child)) continue;
      uint64_t there = 0;
      for (uint32_t at = 0; at < pulls_.places(); ++at)
        if (child.contains_pu(domain(at).first_pu)) there += pulls_.last_row()[at];
      if (to != nullptr && there <= most) continue;
      to = &child;
      most = there;
    }
    if (to == nullptr) break;
    d = to;
  }
  return answer->add({item.entity, 0, 0, d->id});
}

/// Those that go to one place, as work of its own for cache.
bool Drawing::place_part(uint32_t at, uint32_t begin, uint32_t end, PlacementList* answer) {
  s_.part.clear();
  s_.origins.clear();
  for (uint32_t i = begin; i < end; ++i)
    if (!add_to_part(s_.chosen[i])) return false;
  for (uint32_t i = 0; i < s_.part.size(); ++i) {
    const uint32_t first = s_.part[i].first_child;
    const uint32_t count = s_.part[i].n_children;
    if (count == 0) continue;
    s_.part[i].first_child = s_.part.size();
    for (uint32_t k = 0; k < count; ++k) {
      if (!s_.part.push(entities_[first + k]) || !s_.origins.push({first + k, 0, 0})) return false;
      s_.part.back().parent = i;
    }
  }
  s_.answer.clear();
  const Submission part{{s_.part.data(), s_.part.size(), end - begin},
                        domain(at).id,
                        // What runs is booked where it leaves.
                        runs_ ? nullptr : submission_.booked,
                        submission_.pu};
  if (!cache::distribute(parameters_.inside, part, &s_.inside, &s_.answer)) return false;
  for (uint32_t i = 0; i < s_.answer.size(); ++i) {
    Placement p = s_.answer[i];
    const Origin& origin = s_.origins[p.entity];
    if (origin.ghosts != 0 && p.ghosts == 0) p.ghosts = origin.ghosts;
    p.first_ghost += origin.first_ghost;
    p.entity = origin.entity;
    if (!answer->add(p)) return false;
  }
  return true;
}

bool Drawing::add_to_part(const Item& item) {
  EntityView view = entities_[item.entity];
  if (item.ghosts != 0) {
    view.first_child = kNone;
    view.n_children = 0;
    view.ghosts = view.pieces = view.width = item.ghosts;
    view.content = item.ghosts * kLoadUnit;
    view.last_domain = kNone;
    view.relation = sched::Relation::kNone;
  }
  view.load = item.load;
  view.parent = kNone;
  return s_.part.push(view) && s_.origins.push({item.entity, item.first_ghost, item.ghosts});
}

uint64_t Drawing::gain() {
  uint64_t more = 0;
  uint64_t less = 0;
  for (uint32_t i = 0; i < s_.chosen.size(); ++i)
    if (s_.chosen[i].place != kNone) pulls_.compare(s_.chosen[i], &more, &less);
  return more > less ? more - less : 0;
}

}  // namespace

bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer) {
  scratch->steps = 0;
  if (!Pulls::any(*parameters.places, *parameters.inside.machine, submission))
    return cache::distribute(parameters.inside, submission, &scratch->inside, answer);
  Drawing drawing(parameters, submission, false, scratch);
  return drawing.choose() && drawing.place(answer);
}

uint64_t gain(const Parameters& parameters, const Submission& submission, Scratch* scratch,
              PlacementList* answer) {
  scratch->steps = 0;
  if (!Pulls::any(*parameters.places, *parameters.inside.machine, submission)) return 0;
  Drawing drawing(parameters, submission, true, scratch);
  const uint64_t bytes = drawing.choose() ? drawing.gain() : 0;
  return bytes == 0 || answer == nullptr || drawing.place(answer) ? bytes : 0;
}

}  // namespace bosk::policies::draw
