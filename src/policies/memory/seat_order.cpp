// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Assigns members to parts of the machine.
#include "policies/memory/seat_order.h"

#include <algorithm>

#include "base/mapped_array.h"

namespace bosk::policies {
namespace {

constexpr uint32_t kMostRounds = 8;
constexpr uint32_t kNobody = UINT32_MAX;

/// Parts with the same nodes, which are as good as each other. Adjacent, because parts go by PUs.
struct Group {
  uint32_t first_part;
  uint32_t free;        ///< parts that nobody has yet
  uint32_t first_rank;  ///< nodes, counted in the order of PUs
  uint32_t last_rank;
};

struct Candidate {
  uint64_t bytes;
  uint32_t member;
  uint32_t group;
  bool own;  ///< that it is in now
};

/// Most bytes first; of equals whoever is there already, then by number.
bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.bytes != b.bytes) return a.bytes > b.bytes;
  if (a.own != b.own) return a.own;
  return a.member != b.member ? a.member < b.member : a.group < b.group;
}

class SeatOrder {
 public:
  SeatOrder(const topology::Machine& machine, uint32_t members)
      : machine_(machine), members_(members) {}
  SeatOrder(const SeatOrder&) = delete;
  SeatOrder& operator=(const SeatOrder&) = delete;
  ~SeatOrder() {
    rank_.release();
    groups_.release();
    group_of_part_.release();
    local_.release();
    candidates_.release();
    group_.release();
    taken_.release();
  }

  bool change(const TeamFootprints& footprints, uint64_t least_bytes, uint32_t* part_of) {
    if (!rank_nodes() || !find_groups() || groups_.size() < 2 || !count_local(footprints) ||
        !group_.resize(members_) || !taken_.resize(members_))
      return false;
    uint64_t before = 0;
    for (uint32_t i = 0; i < members_; ++i) before += local(i, group_of_part_[part_of[i]]);
    if (!choose(part_of)) return false;
    exchange_pairs();
    uint64_t after = 0;
    for (uint32_t i = 0; i < members_; ++i) after += local(i, group_[i]);
    if (after - before < std::max(all_ / kLeastShareOfSeats, least_bytes) || after <= before)
      return false;
    give_parts(part_of);
    return true;
  }

 private:
  uint32_t first_pu(uint32_t part) const {
    return static_cast<uint32_t>(uint64_t{part} * machine_.n_pus / members_);
  }

  bool rank_nodes() {
    if (!rank_.resize(machine_.n_nodes)) return false;
    std::fill_n(rank_.data(), rank_.size(), kNobody);
    uint32_t ranks = 0;
    for (uint32_t pu = 0; pu < machine_.n_pus; ++pu) {
      uint32_t& rank = rank_[machine_.node_of_pu(pu)];
      if (rank == kNobody) rank = ranks++;
    }
    return true;
  }

  bool find_groups() {
    for (uint32_t part = 0; part < members_; ++part) {
      const uint32_t first = rank_[machine_.node_of_pu(first_pu(part))];
      const uint32_t last = rank_[machine_.node_of_pu(first_pu(part + 1) - 1)];
      if (groups_.empty() || groups_.back().first_rank != first ||
          groups_.back().last_rank != last) {
        if (!groups_.push({part, 0, first, last})) return false;
      }
      ++groups_.back().free;
      if (!group_of_part_.push(groups_.size() - 1)) return false;
    }
    return true;
  }

  uint64_t& local(uint32_t member, uint32_t group) {
    return local_[member * groups_.size() + group];
  }

  bool count_local(const TeamFootprints& footprints) {
    if (!local_.resize(members_ * groups_.size())) return false;
    for (uint32_t i = 0; i < members_; ++i) {
      const TeamFootprints::OnNodes on = footprints.of(i);
      if (on == nullptr) continue;
      for (uint32_t node = 0; node < machine_.n_nodes; ++node) {
        // relaxed: figures.
        const uint64_t bytes = on[node].load(std::memory_order_relaxed);
        all_ += bytes;
        for (uint32_t g = 0; g < groups_.size(); ++g)
          if (groups_[g].first_rank <= rank_[node] && rank_[node] <= groups_[g].last_rank)
            local(i, g) += bytes;
      }
    }
    return true;
  }

  /// Sets group_ of all.
  bool choose(const uint32_t* part_of) {
    for (uint32_t i = 0; i < members_; ++i) {
      group_[i] = kNobody;
      for (uint32_t g = 0; g < groups_.size(); ++g)
        if (local(i, g) != 0 &&
            !candidates_.push({local(i, g), i, g, group_of_part_[part_of[i]] == g}))
          return false;
    }
    std::sort(candidates_.data(), candidates_.data() + candidates_.size(), comes_before);
    for (uint32_t at = 0; at < candidates_.size(); ++at) {
      const Candidate& wish = candidates_[at];
      if (group_[wish.member] == kNobody) take(wish.member, wish.group);
    }
    for (uint32_t i = 0; i < members_; ++i)
      if (group_[i] == kNobody) take(i, group_of_part_[part_of[i]]);
    uint32_t g = 0;
    for (uint32_t i = 0; i < members_; ++i)
      while (group_[i] == kNobody && !take(i, g)) ++g;
    return true;
  }

  bool take(uint32_t member, uint32_t group) {
    if (groups_[group].free == 0) return false;
    --groups_[group].free;
    group_[member] = group;
    return true;
  }

  void exchange_pairs() {
    bool again = true;
    for (uint32_t round = 0; again && round < kMostRounds; ++round) {
      again = false;
      for (uint32_t i = 0; i < members_; ++i)
        for (uint32_t j = i + 1; j < members_; ++j)
          if (local(i, group_[j]) + local(j, group_[i]) >
              local(i, group_[i]) + local(j, group_[j])) {
            std::swap(group_[i], group_[j]);
            again = true;
          }
    }
  }

  /// Those that stay in their group keep their part; the others take those that are left.
  void give_parts(uint32_t* part_of) {
    for (uint32_t i = 0; i < members_; ++i) {
      if (group_of_part_[part_of[i]] == group_[i])
        taken_[part_of[i]] = 1;
      else
        part_of[i] = kNobody;
    }
    for (uint32_t i = 0; i < members_; ++i) {
      if (part_of[i] != kNobody) continue;
      uint32_t& next = groups_[group_[i]].first_part;
      while (taken_[next] != 0) ++next;
      part_of[i] = next++;
    }
  }

  const topology::Machine& machine_;
  uint32_t members_;
  uint64_t all_ = 0;                  ///< bytes of all members
  base::MappedArray<uint32_t> rank_;  ///< of each node
  base::MappedArray<Group> groups_;
  base::MappedArray<uint32_t> group_of_part_;
  base::MappedArray<uint64_t> local_;  ///< members by groups: bytes that are near there
  base::MappedArray<Candidate> candidates_;
  base::MappedArray<uint32_t> group_;  ///< of each member, in the end
  base::MappedArray<uint8_t> taken_;   ///< parts whose members stay
};

}  // namespace

bool order_seats(const topology::Machine& machine, const TeamFootprints& footprints,
                 uint32_t members, uint64_t least_bytes, uint32_t* part_of) {
  if (machine.n_nodes < 2 || members < 2 || members > machine.n_pus) return false;
  return SeatOrder(machine, members).change(footprints, least_bytes, part_of);
}

}  // namespace bosk::policies
