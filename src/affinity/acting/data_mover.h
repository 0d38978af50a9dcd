// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves pages to the nodes that use them (Diener 2014, section 3.5), from outside of the program.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "affinity/acting/page_system.h"
#include "affinity/page_table.h"

namespace bosk::affinity {

/// Works by regions of 2 MiB. A page goes where equation 6 wants it, if it is somewhere else. Few pages are ever seen: those between two that want to go to
/// the same node go along, if nothing that was seen between them says otherwise. A huge page goes as one, to the node that uses it; if it has several
/// users, it is split, where that is allowed, and stays else. A page that was moved three times lately stays where it is. What the program has
/// placed itself is left alone.
///
/// When a page changes its owner, what was seen of its neighbours before that says nothing any more: a program's phases change all of its memory.
///
/// One owner, who alone calls it. 5 KiB for each region that somebody prefers, of which no more than kMostRegions are remembered.
class DataMover {
 public:
  static constexpr uint32_t kPagesOfRegion = 512;
  static constexpr size_t kMostRegions = 65536;
  /// In one call of the kernel's, which makes all CPUs give back the pages that they hold in lists.
  static constexpr size_t kMostAtOnce = 4096;

  struct Counts {
    uint64_t moved = 0;         ///< pages
    uint64_t refused = 0;       ///< pages that the kernel did not move
    int why = 0;                ///< errno of one of these
    uint64_t bouncing = 0;      ///< pages that were moved three times, and stay
    uint64_t unsplit = 0;       ///< huge pages with several users that could not be split
    uint64_t left = 0;          ///< processes that place their memory themselves
    uint64_t joined = 0;        ///< that were split, and that the kernel has joined again
    uint64_t placed = 0;        ///< regions of which the program has placed some or all itself
    bool is_forbidden = false;  ///< nothing may be moved: `why`
  };
  /// `os_nodes`: the kernel's number of each node of the table. All must live longer.
  DataMover(PageSystem* system, PageTable* pages, std::vector<int> os_nodes);

  /// Equation 6 wants the page on the node. `key`: what the table knows it by. O(1).
  void prefers(pid_t process, uint64_t address, uint64_t key, uint32_t node);
  /// Moves one batch, of one process. False: there is nothing to do now.
  bool act(double now_ns);
  /// Its memory is placed by somebody else: bosk, in it.
  void leave_process(pid_t process);
  /// A child of such a process is left, too, if its parent still lives.
  void process_began(pid_t process);
  void process_ended(pid_t process);

  const Counts& counts() const { return counts_; }

 private:
  using Owners = std::array<uint16_t, kPagesOfRegion>;
  struct Region {
    pid_t process;
    uint64_t address;
    uint64_t key;
    double decided = 0;   ///< when it was thought about last
    double looked = 0;    ///< since when `where` is what was seen
    double forgiven = 0;  ///< since when moves are counted
    bool is_pending = false;
    bool is_whole = false;    ///< it was seen to move as one
    bool is_split = false;    ///< there is no huge page, whoever says so
    bool is_small = false;    ///< one of small_, with `given`
    bool is_left = false;     ///< alone: it may not be split
    bool is_joined = false;   ///< it was split by us, and joined again by the kernel, not long ago
    bool is_placed = false;   ///< some of it, by the program: it was counted
    bool is_unsplit = false;  ///< it was counted as such
    uint16_t changed = 0;     ///< the turn in which a page has changed its owner
    Owners where;             ///< the node that a page is known to be on, or kUnknown
    Owners owner;             ///< that the page was last seen to have, or kUnknown,
    Owners turn = {};         ///< and in which turn
    std::unique_ptr<Owners> given;  ///< of small pages: the node that each was given, or kUnknown
    std::array<uint8_t, kPagesOfRegion> moves = {};
    std::array<uint8_t, kPagesOfRegion> failures = {};
  };
  struct Wanted {
    Region* region;
    uint16_t page;
    uint16_t node;
    bool is_huge;  ///< the page stands for all of the region
  };
  struct Batch {
    std::vector<Wanted> wanted;
    std::vector<uint64_t> addresses;
    std::vector<int> status;
  };

  void look_for_joined(double now_ns);
  Region* find_or_make(pid_t process, uint64_t address, uint64_t key);
  void refresh(Region* region, double now_ns);
  void decide(Region* region, double now_ns, Batch* batch);
  bool decide_whole(Region* region, const Owners& owners, Batch* batch);
  void want(Region* region, uint32_t page, uint32_t node, bool is_huge, Batch* batch);
  long ask(pid_t process, Batch* batch);
  void leave_out_those_that_are_there(pid_t process, Batch* batch);
  void move(pid_t process, Batch* batch);
  void watch_small(Region* region);
  void note_given(const Wanted& wanted);
  void note_moved(const Wanted& wanted);
  void find_companions(pid_t process, const Batch& batch);
  void note_failure(pid_t process, long error);

  PageSystem* system_;
  PageTable* pages_;
  std::vector<int> os_nodes_;
  std::unordered_map<uint64_t, Region> regions_;
  std::set<pid_t> left_;
  std::vector<uint64_t> pending_;
  std::vector<uint64_t>
      small_;              ///< regions of which pages have been moved, or that were split for it
  size_t next_small_ = 0;  ///< which of them is looked at next
  double now_ = 0;
  uint32_t looks_left_ = 0;  ///< at regions that should be in place, in this turn
  uint16_t turn_ = 0;        ///< counts calls of act(); goes around
  double turned_ = 0;
  uint32_t failures_ = 0;  ///< calls in a row of which nothing came
  Counts counts_;
};

}  // namespace bosk::affinity
