// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The place list and the layout of teams over it.
#include "omp/places.h"

namespace bosk::omp {

bool PlaceList::contains(uint32_t place, uint32_t cpu) const {
  for (const CpuRange& range : ranges(place)) {
    if (cpu >= range.first && cpu - range.first < range.count) return true;
  }
  return false;
}

void PlaceList::cpu_numbers(uint32_t place, int* numbers) const {
  for (const CpuRange& range : ranges(place)) {
    for (uint32_t i = 0; i < range.count; i++) *numbers++ = static_cast<int>(range.first + i);
  }
}

void PlaceList::fill_mask(uint32_t place, uint64_t* words, uint32_t n_words) const {
  for (const CpuRange& range : ranges(place)) {
    for (uint32_t i = 0; i < range.count; i++) {
      const uint32_t cpu = range.first + i;
      if (cpu / 64 >= n_words) return;
      words[cpu / 64] |= uint64_t{1} << (cpu % 64);
    }
  }
}

bool PlaceList::start_place() { return places_.push({ranges_.size(), 0, 0}); }

bool PlaceList::add_range(uint32_t first, uint32_t count) {
  Place& place = places_.back();
  place.n_cpus += count;
  if (place.n_ranges != 0) {
    CpuRange& last = ranges_.back();
    if (last.first + last.count == first) {
      last.count += count;
      return true;
    }
  }
  if (ranges_.size() == kMostRanges || !ranges_.push({first, count})) return false;
  ++places_.back().n_ranges;
  return true;
}

void PlaceList::drop_last_place() {
  // Its ranges are the last ones: they go with it.
  for (uint32_t i = places_.back().n_ranges; i > 0; i--) ranges_.remove(ranges_.size() - 1);
  places_.remove(places_.size() - 1);
}

bool PlaceList::same_cpus(uint32_t a, uint32_t b) const {
  const std::span<const CpuRange> of_a = ranges(a), of_b = ranges(b);
  if (of_a.size() != of_b.size()) return false;
  for (uint32_t i = 0; i < of_a.size(); i++) {
    if (!(of_a[i] == of_b[i])) return false;
  }
  return true;
}

void PlaceList::release() {
  places_.release();
  ranges_.release();
}

PlaceLayout::PlaceLayout(Bind bind, uint32_t partition_first, uint32_t partition_count,
                         uint32_t place, uint32_t members)
    : bind_(bind),
      first_(partition_first),
      count_(partition_count),
      place_(place),
      members_(members) {
  if (partition_count == 0) {
    bind_ = Bind::kFalse;
    share_ = rest_ = 0;
    return;
  }
  const bool split = bind == Bind::kSpread && members <= partition_count;
  share_ = split ? partition_count / members : members / partition_count;
  rest_ = split ? partition_count % members : members % partition_count;
}

uint32_t PlaceLayout::wrapped(uint64_t steps) const {
  return first_ + static_cast<uint32_t>((place_ - first_ + steps) % count_);
}

MemberPlace PlaceLayout::of(uint32_t member) const {
  switch (bind_) {
    case Bind::kFalse:
    case Bind::kPrimary:
      return {place_, first_, count_};
    case Bind::kSpread:
      if (members_ <= count_) return spread(member);
      break;
    default:
      if (members_ <= count_) return {wrapped(member), first_, count_};
      break;
  }
  // More members than places: `share_` neighbours to each place, and the rest one by one, going
  // round again from the opener's place. A member count below the full shares' total is in a full
  // share.
  const uint32_t in_shares = members_ - rest_;
  const uint32_t place = wrapped(member < in_shares ? member / share_ : member - in_shares);
  if (bind_ == Bind::kSpread) return {place, place, 1};
  return {place, first_, count_};
}

// Enough places for everybody: the partition falls into one part per member, the first `rest_` of
// them a place larger. Member 0 takes the part around the opener and stays where the opener is; the
// others take the following parts, round the end, each its first place.
MemberPlace PlaceLayout::spread(uint32_t member) const {
  const uint32_t in_large = rest_ * (share_ + 1);
  const uint32_t offset = place_ - first_;
  const uint32_t own =
      offset < in_large ? offset / (share_ + 1) : rest_ + (offset - in_large) / share_;
  const uint32_t part = static_cast<uint32_t>((uint64_t{own} + member) % members_);
  const bool large = part < rest_;
  const uint32_t first =
      first_ + (large ? part * (share_ + 1) : in_large + (part - rest_) * share_);
  return {member == 0 ? place_ : first, first, share_ + (large ? 1 : 0)};
}

}  // namespace bosk::omp
