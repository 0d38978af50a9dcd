// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of team placements.
#include "policies/team_placement.h"

#include "base/assert.h"
#include "policies/policy.h"

namespace bosk::policies {

using topology::Domain;

const Domain& child_with_pu(const Domain& d, uint32_t pu) {
  uint32_t low = 0;
  uint32_t high = d.n_children;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (d.first_child[middle].first_pu <= pu ? low : high) = middle;
  }
  return d.first_child[low];
}

namespace {

/// PUs of `d` that lie before the child which is counted first.
uint32_t turn_of(const Domain& d, uint32_t opener_pu) {
  return d.contains_pu(opener_pu) && !d.is_pu() ? child_with_pu(d, opener_pu).first_pu - d.first_pu
                                                : 0;
}

/// How many PUs of `d` are counted before those of `child`.
uint32_t counted_before(const Domain& d, const Domain& child, uint32_t opener_pu) {
  const uint32_t offset = child.first_pu - d.first_pu;
  const uint32_t turn = turn_of(d, opener_pu);
  return offset >= turn ? offset - turn : offset + d.n_pus() - turn;
}

/// The child in which the PU counted as number `position` lies.
const Domain& child_at(const Domain& d, uint32_t position, uint32_t opener_pu) {
  const uint32_t offset = turn_of(d, opener_pu) + position;
  return child_with_pu(d, d.first_pu + (offset >= d.n_pus() ? offset - d.n_pus() : offset));
}

}  // namespace

void TeamPlacement::set_together(const topology::Machine& machine, uint32_t domain,
                                 uint32_t members) {
  machine_ = &machine;
  members_ = members;
  scope_ = domain;
  form_ = Form::kTogether;
  gang_ticks_ = 0;
}

void TeamPlacement::set_even(const topology::Machine& machine, uint32_t scope,
                             const topology::Level* bottom, uint32_t opener_pu, uint32_t members) {
  machine_ = &machine;
  bottom_ = bottom;
  members_ = members;
  scope_ = scope;
  opener_pu_ = opener_pu;
  form_ = Form::kEven;
  gang_ticks_ = 0;
}

void TeamPlacement::set_ranges(const topology::Machine& machine, uint32_t members) {
  machine_ = &machine;
  members_ = members;
  form_ = Form::kRanges;
  gang_ticks_ = 0;
  ranges_.clear();
}

bool TeamPlacement::set_around(const topology::Machine& machine, const uint32_t* pus,
                               uint32_t members) {
  set_ranges(machine, members);
  bool done = true;
  for (uint32_t i = 0; done && i < members; ++i)
    done = append(1, domain_around_seat(machine, members, pus[i]).id);
  return done;
}

bool TeamPlacement::append(uint32_t count, uint32_t domain) {
  if (count == 0) return true;
  if (!ranges_.empty() && ranges_.back().domain == domain) {
    ranges_.back().count += count;
    return true;
  }
  const uint32_t first = ranges_.empty() ? 0 : ranges_.back().first + ranges_.back().count;
  return ranges_.push({first, count, domain});
}

bool TeamPlacement::is_bottom(const Domain& d) const {
  return d.is_pu() || (bottom_ != nullptr && at_or_below(*machine_, *bottom_, d));
}

/// Smallest i with floor(i·S/N) >= position.
uint32_t TeamPlacement::first_at(uint64_t position) const {
  const uint64_t pus = domain(scope_).n_pus();
  return static_cast<uint32_t>((position * members_ + pus - 1) / pus);
}

/// Number of PUs of the scope that are counted before those of `d`, which lies in it.
uint64_t TeamPlacement::even_position(const Domain& d) const {
  uint64_t position = 0;
  for (const Domain* at = &d; at->id != scope_; at = at->parent)
    position += counted_before(*at->parent, *at, opener_pu_);
  return position;
}

const Domain& TeamPlacement::even_home(uint32_t index) const {
  const Domain* d = &domain(scope_);
  const uint64_t wanted = uint64_t{index} * d->n_pus() / members_;
  uint64_t position = 0;
  while (!is_bottom(*d) && count_at(position, d->n_pus()) > 1) {
    const Domain& child = child_at(*d, static_cast<uint32_t>(wanted - position), opener_pu_);
    position += counted_before(*d, child, opener_pu_);
    d = &child;
  }
  return *d;
}

uint32_t TeamPlacement::domain_of(uint32_t index) const {
  BOSK_ASSERT(index < members_);
  if (form_ == Form::kTogether) return scope_;
  if (form_ == Form::kEven) return even_home(index).id;
  return range_of(index).domain;
}

TeamRange TeamPlacement::range_of(uint32_t index) const {
  if (form_ == Form::kTogether) return {0, members_, scope_};
  if (form_ == Form::kEven) {
    const Domain& home = even_home(index);
    const uint64_t position = even_position(home);
    return {first_at(position), count_at(position, home.n_pus()), home.id};
  }
  uint32_t low = 0;
  uint32_t high = ranges_.size();
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (ranges_[middle].first <= index ? low : high) = middle;
  }
  return ranges_[low];
}

TeamRange TeamPlacement::members_below(uint32_t id, uint32_t from) const {
  const Domain& d = domain(id);
  if (form_ == Form::kRanges) {
    for (uint32_t i = 0; i < ranges_.size(); ++i) {
      const TeamRange& range = ranges_[i];
      if (range.first + range.count <= from) continue;
      const Domain& home = domain(range.domain);
      if (home.depth < d.depth || !d.contains_pu(home.first_pu)) continue;
      const uint32_t first = range.first > from ? range.first : from;
      return {first, range.first + range.count - first, range.domain};
    }
    return {0, 0, id};
  }
  const Domain& scope = domain(scope_);
  if (d.depth <= scope.depth)
    return d.contains_pu(scope.first_pu) ? TeamRange{0, members_, id} : TeamRange{0, 0, id};
  if (form_ == Form::kTogether || !scope.contains_pu(d.first_pu)) return {0, 0, id};
  // None, if homes end above: at the bottom, or with a member that has a larger domain for itself.
  const Domain& above = *d.parent;
  const uint64_t outer = even_position(above);
  if (is_bottom(above) || count_at(outer, above.n_pus()) <= 1) return {0, 0, id};
  const uint64_t position = outer + counted_before(above, d, opener_pu_);
  return {first_at(position), count_at(position, d.n_pus()), id};
}

const Domain& domain_around_seat(const topology::Machine& machine, uint32_t members, uint32_t pu) {
  const uint64_t pus = machine.n_pus;
  const auto seats_before = [&](uint64_t at) { return (at * members + pus - 1) / pus; };
  const auto seats_in = [&](const Domain& d) {
    return seats_before(uint64_t{d.last_pu} + 1) - seats_before(d.first_pu);
  };
  const Domain* home = &machine.pu(pu);
  while (home->parent != nullptr && seats_in(*home->parent) <= 1) home = home->parent;
  return *home;
}

}  // namespace bosk::policies
