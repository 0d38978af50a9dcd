// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adds up footprints by place.
#include "policies/memory/pull.h"

namespace bosk::policies::draw {
namespace {

using topology::Domain;
__extension__ typedef unsigned __int128 Wide;

/// Of the bytes at the best place, those that must be where an entity is for it to stay there.
constexpr uint64_t kContentPercent = 80;
/// Of all its bytes, what a bubble must have at its best place to go there as a whole, when its members
/// want to go elsewhere.
constexpr uint64_t kOneMindPercent = 75;
/// Interleaved memory is nowhere: the best place must have this much of the mean of all.
constexpr uint64_t kDrawsPercent = 125;

bool reaches(uint64_t part, uint64_t percent, uint64_t whole) {
  return Wide{part} * 100 >= Wide{whole} * percent;
}

bool has_bytes(const std::atomic<uint64_t>* footprint, uint32_t nodes) {
  if (footprint == nullptr) return false;
  for (uint32_t node = 0; node < nodes; ++node)
    // relaxed here and below: figures; the array was there before its address was.
    if (footprint[node].load(std::memory_order_relaxed) != 0) return true;
  return false;
}

}  // namespace

Pulls::Pulls(const Places& places, const topology::Machine& machine, const Submission& submission,
             Scratch* scratch)
    : places_(places),
      machine_(machine),
      submission_(submission),
      entities_(submission.work.entities),
      s_(*scratch) {
  places.below(machine.domain_array[submission.domain], &first_, &count_);
}

bool Pulls::any(const Places& places, const topology::Machine& machine,
                const Submission& submission) {
  uint32_t first;
  uint32_t count;
  places.below(machine.domain_array[submission.domain], &first, &count);
  if (count < 2) return false;
  for (uint32_t i = 0; i < submission.work.count; ++i)
    if (has_bytes(submission.work.entities[i].footprint, machine.n_nodes)) return true;
  return false;
}

void Pulls::add_own(uint32_t entity, uint64_t* row) const {
  const auto* footprint = entities_[entity].footprint;
  if (footprint == nullptr) return;
  for (uint32_t node = 0; node < machine_.n_nodes; ++node) {
    const uint32_t at = places_.of_node(node) - first_;
    if (at < count_) row[at] += footprint[node].load(std::memory_order_relaxed);
  }
}

uint64_t Pulls::own_at(uint32_t entity, uint32_t place) const {
  uint64_t bytes = 0;
  for (uint32_t node = 0; node < machine_.n_nodes; ++node)
    if (places_.of_node(node) - first_ == place)
      bytes += entities_[entity].footprint[node].load(std::memory_order_relaxed);
  return bytes;
}

bool Pulls::add_up() {
  const uint32_t n = submission_.work.count;
  if (uint64_t{n} * count_ > UINT32_MAX) return false;
  s_.bytes.clear();
  if (!s_.bytes.resize(n * count_) || !s_.source.resize(n) || !s_.pull.resize(count_)) return false;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t parent = entities_[i].parent;
    s_.source[i] = has_bytes(entities_[i].footprint, machine_.n_nodes) ? i
                   : parent == kNone                                   ? kNone
                                                                       : s_.source[parent];
    add_own(i, row(i));
  }
  // Members come after their bubble.
  for (uint32_t i = n; i-- > 0;) {
    if (entities_[i].parent == kNone) continue;
    uint64_t* outer = row(entities_[i].parent);
    for (uint32_t at = 0; at < count_; ++at) outer[at] += row(i)[at];
  }
  s_.steps += uint64_t{n} * (machine_.n_nodes + 2 * uint64_t{count_});
  return true;
}

Pull Pulls::of(const Item& item) {
  uint64_t* pull = s_.pull.data();
  for (uint32_t at = 0; at < count_; ++at) pull[at] = item.ghosts == 0 ? row(item.entity)[at] : 0;
  uint64_t all = 0;
  for (uint32_t at = 0; at < count_; ++at) all += pull[at];
  // Of what has nothing itself, and of ghosts, what is attached around it says where to go.
  if (all == 0 && s_.source[item.entity] != kNone) {
    add_own(s_.source[item.entity], pull);
    for (uint32_t at = 0; at < count_; ++at) all += pull[at];
  }
  s_.steps += 3 * uint64_t{count_};
  Pull found{0, 0, false};
  for (uint32_t at = 1; at < count_; ++at)
    if (pull[at] > pull[found.best]) found.best = at;
  const uint64_t mean = all / count_;
  const uint64_t most = pull[found.best];
  if (most > mean && reaches(most, kDrawsPercent, mean)) found.stake = most - mean;
  const EntityView& e = entities_[item.entity];
  if (item.ghosts != 0 || e.n_children == 0) return found;
  uint64_t own = 0;
  if (s_.source[item.entity] == item.entity)
    for (uint32_t at = 0; at < count_; ++at) own += own_at(item.entity, at);
  found.torn = all - own > own && !reaches(most, kOneMindPercent, all);
  return found;
}

bool Pulls::is_content(uint32_t at, const Pull& pull) const {
  return s_.pull[at] != 0 && reaches(s_.pull[at], kContentPercent, s_.pull[pull.best]);
}

void Pulls::compare(const Item& item, uint64_t* more, uint64_t* less) const {
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
      const uint32_t now = place_of(e.last_domain);
      if (e.kind != sched::EntityKind::kThread || s_.source[i] == kNone || now == item.place ||
          e.last_domain >= machine_.n_domains)
        continue;
      uint64_t here = 0;
      if (now != kNone) {
        here = own_at(s_.source[i], now);
      } else {
        // On a queue above the places anybody may take it.
        for (uint32_t at = 0; at < count_; ++at) here += own_at(s_.source[i], at);
        here /= count_;
      }
      const uint64_t there = own_at(s_.source[i], item.place);
      if (there > here)
        *more += there - here;
      else
        *less += here - there;
    }
    begin = inner_begin;
    end = inner_end;
  }
}

uint32_t Pulls::place_of(uint32_t domain) const {
  if (domain >= machine_.n_domains) return kNone;
  const Domain& d = machine_.domain_array[domain];
  const uint32_t at = places_.of_pu(d.first_pu);
  if (at != places_.of_pu(d.last_pu) || at - first_ >= count_) return kNone;
  return at - first_;
}

}  // namespace bosk::policies::draw
