// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts the line of entities into parts for the children of each domain.
#include "policies/cache/distribute.h"

#include <algorithm>

#include "policies/relations.h"

namespace bosk::policies::cache {

void Scratch::release() {
  items.release();
  todo.release();
  parts.release();
  votes.release();
}

namespace {

using topology::Domain;
__extension__ typedef unsigned __int128 Wide;

class Distribution {
 public:
  Distribution(const Parameters& parameters, const Submission& submission, Scratch* scratch,
               PlacementList* answer)
      : machine_(*parameters.machine),
        parameters_(parameters),
        submission_(submission),
        entities_(submission.work.entities),
        s_(*scratch),
        answer_(*answer) {}

  bool run();

 private:
  bool distribute_on(const Domain& d, uint32_t begin, uint32_t end);
  bool settle(const Domain& d, uint32_t* begin, uint32_t end);
  const Domain* child_for_all(const Domain& d, uint32_t begin, uint32_t end, uint64_t load,
                              uint32_t width);
  bool choose_parts(const Domain& d, uint32_t begin, uint32_t end, uint64_t load, uint32_t width);
  void set_shares(const Domain& d, uint32_t first, uint64_t load);
  bool cut(uint32_t first, uint32_t begin, uint32_t end, uint64_t load);
  bool fill(uint64_t target, bool takes_all, uint32_t floor, uint64_t* load);
  bool open(const Item& bubble);
  bool remember(const Domain& d, uint32_t first);

  bool is_bottom(const Domain& d) const {
    return d.is_pu() ||
           (parameters_.bottom != nullptr && at_or_below(machine_, *parameters_.bottom, d));
  }
  bool is_kept(const Item& item) const {
    return item.ghosts == 0 && relations::keeps_whole(machine_, entities_[item.entity]);
  }
  bool may_open(const Item& item) const {
    const EntityView& e = entities_[item.entity];
    return item.ghosts == 0 && e.kind == sched::EntityKind::kBubble && e.pieces > 1 &&
           !is_kept(item);
  }
  /// Calls f(rank) with the child of `d` where it, and each entity in it, was last time; not for those
  /// that were elsewhere, or not in one child. What is in a bubble is a range of numbers at each level.
  template <class F>
  void for_each_last_child(const Domain& d, const Item& item, F&& f) {
    if (item.ghosts != 0) return;
    uint32_t begin = item.entity;
    uint32_t end = begin + 1;
    while (begin != end) {
      uint32_t inner_begin = kNone;
      uint32_t inner_end = kNone;
      for (uint32_t i = begin; i < end; ++i) {
        const EntityView& e = entities_[i];
        ++s_.steps;
        if (e.n_children != 0) {
          if (inner_begin == kNone) inner_begin = e.first_child;
          inner_end = e.first_child + e.n_children;
        }
        if (e.last_domain >= machine_.n_domains) continue;
        const Domain& at = machine_.domain_array[e.last_domain];
        if (at.depth > d.depth && d.contains_pu(at.first_pu)) f(child_with_pu(d, at.first_pu).rank);
      }
      begin = inner_begin;
      end = inner_end;
    }
  }
  uint64_t booked(const Domain& d) const {
    // relaxed: a figure; see Submission::booked.
    return submission_.booked != nullptr ? submission_.booked[d.id].load(std::memory_order_relaxed)
                                         : 0;
  }
  bool place(const Item& item, const Domain& d) {
    ++s_.steps;
    return answer_.add({item.entity, item.first_ghost, item.ghosts, d.id});
  }

  const topology::Machine& machine_;
  const Parameters& parameters_;
  const Submission& submission_;
  const EntityView* entities_;
  Scratch& s_;
  PlacementList& answer_;
};

bool Distribution::run() {
  s_.items.clear();
  s_.todo.clear();
  s_.parts.clear();
  s_.steps = 0;
  for (uint32_t i = 0; i < submission_.work.n_roots; ++i)
    if (!s_.items.push({entities_[i].load, i, 0, 0, entities_[i].width})) return false;
  return distribute_on(machine_.domain_array[submission_.domain], 0, s_.items.size());
}

/// Places what has its seat here, and moves `begin` behind it.
bool Distribution::settle(const Domain& d, uint32_t* begin, uint32_t end) {
  uint32_t left = end;
  for (uint32_t i = end; i-- > *begin;) {
    const Item item = s_.items[i];
    ++s_.steps;
    if (is_kept(item) && relations::sits(machine_, entities_[item.entity], d)) {
      if (!place(item, d)) return false;
    } else {
      s_.items[--left] = item;
    }
  }
  *begin = left;
  return true;
}

/// Items [begin, end), which are the last ones of the stack, go to `d` or below.
bool Distribution::distribute_on(const Domain& at, uint32_t begin, uint32_t end) {
  const Domain* d = &at;
  uint64_t load = 0;
  uint32_t width = 0;
  for (;;) {
    if (is_bottom(*d)) {
      for (uint32_t i = begin; i < end; ++i)
        if (!place(s_.items[i], *d)) return false;
      return true;
    }
    if (!settle(*d, &begin, end)) return false;
    if (begin == end) return true;
    load = 0;
    width = 0;
    for (uint32_t i = begin; i < end; ++i) {
      load += s_.items[i].load;
      width += s_.items[i].width;
    }
    const Domain* child = child_for_all(*d, begin, end, load, width);
    if (child == nullptr) break;
    d = child;
  }

  const uint32_t first = s_.parts.size();
  if (!choose_parts(*d, begin, end, load, width)) return false;
  set_shares(*d, first, load);
  if (!cut(first, begin, end, load) || !remember(*d, first)) return false;
  // The last part first: it is on top of the stack, and gone when it is done.
  for (uint32_t i = s_.parts.size(); i-- > first;) {
    const Part part = s_.parts[i];
    if (!distribute_on(d->first_child[part.child], part.begin, part.end)) return false;
    s_.items.resize(part.begin);
  }
  s_.parts.resize(first);
  return true;
}

/// Rule 1. Null: no child has a PU for each.
const Domain* Distribution::child_for_all(const Domain& d, uint32_t begin, uint32_t end,
                                          uint64_t load, uint32_t width) {
  const Domain* emptiest = nullptr;
  uint64_t least = 0;
  for (const Domain& child : d.children()) {
    ++s_.steps;
    if (child.n_pus() < width) continue;
    const uint64_t there = booked(child);
    const Wide left = emptiest != nullptr ? Wide{there} * emptiest->n_pus() : 0;
    const Wide right = Wide{least} * child.n_pus();
    if (emptiest != nullptr &&
        (left > right || (left == right && !child.contains_pu(submission_.pu))))
      continue;
    emptiest = &child;
    least = there;
  }
  if (emptiest == nullptr) return nullptr;

  // The child of most votes, by one pass that keeps a candidate and one that counts it: of a majority
  // that is the majority's child, and without one memory has little to say.
  uint32_t candidate = kNone;
  uint32_t lead = 0;
  for (uint32_t i = begin; i < end; ++i)
    for_each_last_child(d, s_.items[i], [&](uint32_t child) {
      if (lead == 0) candidate = child;
      child == candidate ? ++lead : --lead;
    });
  if (candidate == kNone || d.first_child[candidate].n_pus() < width) return emptiest;
  const Domain& before = d.first_child[candidate];
  return Wide{booked(before)} * emptiest->n_pus() <= Wide{least + load} * before.n_pus() ? &before
                                                                                         : emptiest;
}

/// Rule 2: pushes the children that take part, from left to right.
bool Distribution::choose_parts(const Domain& d, uint32_t begin, uint32_t end, uint64_t load,
                                uint32_t width) {
  const uint32_t first = s_.parts.size();
  for (const Domain& child : d.children())
    if (!s_.parts.push({booked(child), 0, child.rank, 0, 0, 0})) return false;
  s_.steps += d.n_children;
  if (width >= d.n_pus()) return true;
  for (uint32_t i = begin; i < end; ++i)
    for_each_last_child(d, s_.items[i], [&](uint32_t child) { ++s_.parts[first + child].votes; });
  // Differences in load that are smaller than what each is to get do not count.
  const uint64_t grain = std::max<uint64_t>(load / d.n_children, 1);
  Part* part = s_.parts.data() + first;
  std::sort(part, part + d.n_children, [&](const Part& a, const Part& b) {
    ++s_.steps;
    const Domain& x = d.first_child[a.child];
    const Domain& y = d.first_child[b.child];
    const uint64_t left = a.booked / x.n_pus() / grain;
    const uint64_t right = b.booked / y.n_pus() / grain;
    if (left != right) return left < right;
    if (a.votes != b.votes) return a.votes > b.votes;
    const bool asks = x.contains_pu(submission_.pu);
    return asks != y.contains_pu(submission_.pu) ? asks : a.child < b.child;
  });
  uint32_t pus = 0;
  uint32_t n = 0;
  while (pus < width) pus += d.first_child[part[n++].child].n_pus();
  std::sort(part, part + n, [](const Part& a, const Part& b) { return a.child < b.child; });
  s_.parts.resize(first + n);
  return true;
}

/// As much for each as fills all to the same height, where they are not above it already.
void Distribution::set_shares(const Domain& d, uint32_t first, uint64_t load) {
  Part* part = s_.parts.data() + first;
  const uint32_t n = s_.parts.size() - first;
  Wide all = load;
  uint64_t pus = 0;
  for (uint32_t i = 0; i < n; ++i) {
    all += part[i].booked;
    pus += d.first_child[part[i].child].n_pus();
  }
  Wide free = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const Wide height = all * d.first_child[part[i].child].n_pus() / pus;
    part[i].share = height > part[i].booked ? static_cast<uint64_t>(height - part[i].booked) : 0;
    free += part[i].share;
  }
  s_.steps += n;
  if (free != 0) return;
  for (uint32_t i = 0; i < n; ++i) part[i].share = d.first_child[part[i].child].n_pus();
}

/// Puts what is in the bubble on the list of what is still to come. Its contents share its load in
/// proportion to theirs.
bool Distribution::open(const Item& bubble) {
  const EntityView& e = entities_[bubble.entity];
  const auto counts = [&](uint64_t natural) {
    const Wide counted = Wide{bubble.load} * natural / std::max<uint64_t>(e.content, 1);
    return std::max<uint64_t>(static_cast<uint64_t>(counted), 1);
  };
  if (e.ghosts != 0 &&
      !s_.todo.push({counts(e.ghosts * kLoadUnit), bubble.entity, 0, e.ghosts, e.ghosts}))
    return false;
  for (uint32_t i = e.n_children; i-- > 0;) {
    const EntityView& member = entities_[e.first_child + i];
    ++s_.steps;
    if (!s_.todo.push({counts(member.load), e.first_child + i, 0, 0, member.width})) return false;
  }
  return true;
}

/// Replaces items [begin, end) by the parts of the line, one after another. Each part is measured by
/// what is left then, so that one that took too much, or too little, does not shift all others.
bool Distribution::cut(uint32_t first, uint32_t begin, uint32_t end, uint64_t load) {
  const uint32_t floor = s_.todo.size();
  for (uint32_t i = end; i-- > begin;)
    if (!s_.todo.push(s_.items[i])) return false;
  s_.items.resize(begin);
  Wide shares = 0;
  for (uint32_t i = first; i < s_.parts.size(); ++i) shares += s_.parts[i].share;
  const uint32_t last = s_.parts.size() - 1;
  for (uint32_t at = first; at <= last; ++at) {
    Part& part = s_.parts[at];
    part.begin = s_.items.size();
    const auto target = static_cast<uint64_t>(Wide{load} * part.share / std::max<Wide>(shares, 1));
    shares -= part.share;
    if (!fill(target, at == last, floor, &load)) return false;
    part.end = s_.items.size();
  }
  return true;
}

/// Moves items from the list of what is to come, down to `floor`, into a part that is to get `target`;
/// `load`: of what is to come.
bool Distribution::fill(uint64_t target, bool takes_all, uint32_t floor, uint64_t* load) {
  const auto slack = static_cast<uint64_t>(Wide{target} * parameters_.slack_percent / 100);
  uint64_t room = target;
  bool empty = target != 0;  // each part that has a share gets something
  const auto take = [&](const Item& item) {
    *load -= std::min(*load, item.load);
    room -= std::min(room, item.load);
    empty = false;
    return s_.items.push(item);
  };
  while (s_.todo.size() > floor) {
    Item item = s_.todo.back();
    ++s_.steps;
    const uint64_t over = item.load > room ? item.load - room : 0;
    if (takes_all || over == 0) {
      s_.todo.resize(s_.todo.size() - 1);
      if (!take(item)) return false;
      continue;
    }
    if (may_open(item)) {
      // An edge of it that is near enough is as good as the cut.
      if (over <= slack && over <= room) {
        s_.todo.resize(s_.todo.size() - 1);
        return take(item);
      }
      if (room <= slack && !empty) return true;
      s_.todo.resize(s_.todo.size() - 1);
      if (!open(item)) return false;
      continue;
    }
    if (item.ghosts > 1) {
      const uint64_t each = std::max<uint64_t>(item.load / item.ghosts, 1);
      uint32_t fit =
          static_cast<uint32_t>(std::min<uint64_t>((room + each / 2) / each, item.ghosts));
      if (fit == 0 && empty) fit = 1;
      if (fit == 0) return true;
      const Item head{std::min(each * fit, item.load), item.entity, item.first_ghost, fit, fit};
      if (fit == item.ghosts) {
        s_.todo.resize(s_.todo.size() - 1);
        return take(item);
      }
      Item& tail = s_.todo.back();
      tail.first_ghost += fit;
      tail.ghosts -= fit;
      tail.width = tail.ghosts;
      tail.load -= head.load;
      return take(head);
    }
    // To the side where more of it lies.
    if (over > room && !empty) return true;
    s_.todo.resize(s_.todo.size() - 1);
    return take(item);
  }
  return true;
}

/// Rule 3: exchanges children among parts that are equally good for them.
bool Distribution::remember(const Domain& d, uint32_t first) {
  Part* part = s_.parts.data() + first;
  const uint32_t n = s_.parts.size() - first;
  if (!s_.votes.resize(d.n_children)) return false;
  const auto alike = [&](const Part& a, const Part& b) {
    const uint64_t larger = std::max(a.share, b.share);
    const uint64_t smaller = std::min(a.share, b.share);
    return d.first_child[a.child].n_pus() == d.first_child[b.child].n_pus() &&
           Wide{larger - smaller} * 100 <= Wide{larger} * parameters_.slack_percent;
  };
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t child = 0; child < d.n_children; ++child) s_.votes[child] = 0;
    bool any = false;
    for (uint32_t k = part[i].begin; k < part[i].end; ++k)
      for_each_last_child(d, s_.items[k], [&](uint32_t child) {
        ++s_.votes[child];
        any = true;
      });
    if (!any) continue;
    s_.steps += d.n_children;
    // Those before have chosen; the rest of the children are with the parts from here on.
    uint32_t best = i;
    for (uint32_t j = i + 1; j < n; ++j)
      if (alike(part[i], part[j]) && s_.votes[part[j].child] > s_.votes[part[best].child]) best = j;
    std::swap(part[i].child, part[best].child);
  }
  return true;
}

}  // namespace

bool distribute(const Parameters& parameters, const Submission& submission, Scratch* scratch,
                PlacementList* answer) {
  return Distribution(parameters, submission, scratch, answer).run();
}

}  // namespace bosk::policies::cache
