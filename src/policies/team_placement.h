// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the members of a team are at home: ghosts have no storage, so usually by a formula.
#pragma once

#include <stdint.h>

#include <atomic>

#include "base/mapped_array.h"
#include "topology/machine.h"

namespace bosk::policies {

/// Where the memory that a team and its members work on lies: bytes per node of the machine, as many as it has
/// nodes, as the memory manager counts them. It may change them meanwhile: read them relaxed.
struct TeamFootprints {
  using OnNodes = const std::atomic<uint64_t>*;
  OnNodes team = nullptr;  ///< of the team as a whole; null: nothing is known
  const std::atomic<OnNodes>* members = nullptr;
  uint32_t n_members = 0;  ///< of those behind, nothing is known

  /// Of one member; null: nothing is known.
  OnNodes of(uint32_t index) const {
    // acquire: an array that is seen was cleared before.
    return index < n_members ? members[index].load(std::memory_order_acquire) : nullptr;
  }
};

/// A team that is being made.
struct TeamShape {
  uint32_t members = 1;  ///< the opener, who is member 0, included
  const uint32_t* loads =
      nullptr;                 ///< one per member, in any unit, UINT32_MAX: not told; null: equal
  uint32_t opener_domain = 0;  ///< home of the opener in its own team; the root for a level-1 team
  uint32_t opener_pu = 0;      ///< where the opener runs now
  const TeamFootprints* footprints = nullptr;  ///< null: nothing was attached to anybody
  uint32_t depth = 0;  ///< in how many teams of several threads it is nested
};

/// Members first … first+count-1 are at home on `domain`.
struct TeamRange {
  uint32_t first;
  uint32_t count;
  uint32_t domain;
};

/// A policy's answer for one team. Three forms:
///
/// - together: all at home on one domain (self-scheduling there);
/// - even: members of equal load over the PUs of one domain in ranges of indices. With S PUs and N
///   members, member i gets position floor(i·S/N) among the PUs, and its home is the largest domain
///   around that PU with no other member in it (never below `bottom`). Any two domains of the same
///   size have the same number of members, or differ by one; neighbouring indices are neighbours;
///   member 0 is where the opener runs, because on the opener's way down children are counted from
///   the one that it is in, going round. Nothing is stored;
/// - ranges: any other answer, a sorted list.
///
/// Plain data: copying makes a second name for the same list. Costs: together and even are made in
/// O(1) without memory; domain_of() is O(1), O(levels · log arity), O(log ranges).
class TeamPlacement {
 public:
  void set_together(const topology::Machine& machine, uint32_t domain, uint32_t members);
  /// `bottom`: homes are not below domains of that level; null: down to PUs.
  void set_even(const topology::Machine& machine, uint32_t scope, const topology::Level* bottom,
                uint32_t opener_pu, uint32_t members);
  /// The list form, around seats: member i has its own on `pus[i]`, see domain_around_seat(). O(members · levels). False: out of memory.
  bool set_around(const topology::Machine& machine, const uint32_t* pus, uint32_t members);
  /// For the list form: set_ranges(), then append() in order of index without gaps. Neighbours with
  /// the same home are joined. False: out of memory.
  void set_ranges(const topology::Machine& machine, uint32_t members);
  bool append(uint32_t count, uint32_t domain);
  /// Its members run at the same time or not at all, in turns of so many ticks. After the above, which say that they need not.
  void set_gang(uint32_t ticks) { gang_ticks_ = ticks; }
  /// 0: it is none.
  uint32_t gang_ticks() const { return gang_ticks_; }
  void release() { ranges_.release(); }

  uint32_t members() const { return members_; }
  /// All on one domain by choice: on scope().
  bool is_together() const { return form_ == Form::kTogether; }
  uint32_t scope() const { return scope_; }
  /// A list that append() made: what owns memory, and copies are second names of.
  bool is_list() const { return form_ == Form::kRanges; }
  /// Is it the same formula? Lists are not compared: false.
  bool same_formula(const TeamPlacement& other) const {
    return form_ == other.form_ && form_ != Form::kRanges && scope_ == other.scope_ &&
           members_ == other.members_ && opener_pu_ == other.opener_pu_ && bottom_ == other.bottom_;
  }
  /// Takes over an answer that is no list, and keeps the memory of its own lists.
  void copy_formula(const TeamPlacement& from) {
    const base::MappedArray<TeamRange> own = ranges_;
    *this = from;
    ranges_ = own;
  }
  /// Home of member `index`.
  uint32_t domain_of(uint32_t index) const;
  /// The range around `index` of members with the same home: O(domain_of + levels).
  TeamRange range_of(uint32_t index) const;
  /// Members whose home is `domain` or below it: always one range in the first two forms. In the
  /// list form, the first such range from index `from` on; count 0: there is none. O(levels),
  /// O(ranges).
  TeamRange members_below(uint32_t domain, uint32_t from = 0) const;

  /// Calls f(TeamRange) for every range in order of index. O(ranges · range_of).
  template <class F>
  void for_each_range(F&& f) const {
    for (uint32_t at = 0; at < members_;) {
      const TeamRange range = range_of(at);
      f(range);
      at = range.first + range.count;
    }
  }

 private:
  enum class Form : uint8_t { kTogether, kEven, kRanges };

  const topology::Domain& domain(uint32_t id) const { return machine_->domain_array[id]; }
  const topology::Domain& even_home(uint32_t index) const;
  uint32_t first_at(uint64_t position) const;
  uint32_t count_at(uint64_t position, uint32_t pus) const {
    return first_at(position + pus) - first_at(position);
  }
  uint64_t even_position(const topology::Domain& d) const;
  bool is_bottom(const topology::Domain& d) const;

  const topology::Machine* machine_ = nullptr;
  const topology::Level* bottom_ = nullptr;
  uint32_t members_ = 0;
  uint32_t scope_ = 0;
  uint32_t opener_pu_ = 0;
  Form form_ = Form::kTogether;
  uint32_t gang_ticks_ = 0;
  base::MappedArray<TeamRange> ranges_;
};

/// Where a member is at home that cannot leave `pu`, its seat: the largest domain around it with nobody else's seat. Those of `members`, no
/// more than PUs, are floor(i·P/members), in whatever order (sched/seats.h). O(levels).
const topology::Domain& domain_around_seat(const topology::Machine& machine, uint32_t members,
                                           uint32_t pu);

}  // namespace bosk::policies
