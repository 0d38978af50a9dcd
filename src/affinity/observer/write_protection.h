// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A source of faults in one process: asynchronous write-protection of some pages at a time, driven from outside (Linux 6.7).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <random>
#include <vector>

#include "affinity/observer/file_descriptor.h"
#include "affinity/observer/pagemap_scan.h"
#include "affinity/observer/process_memory.h"

namespace bosk::affinity {

/// Which pages are armed: chunks of neighbours, since arming costs by the call (the processors that run the program have to be told), not by the page.
/// A chunk is armed again and again for some rounds, so that all threads that use it are seen there, and then given up for another one, anywhere in
/// the memory. What nobody writes to is given up soon.
///
/// Huge pages: the first armed page in one splits its mapping, which lasts. So a chunk stays there for more rounds, and the huge page is joined again
/// when it is given up. Where that is not allowed (CAP_SYS_NICE), few are split, and these are looked at again.
///
/// One owner, who alone calls it.
class WriteProtection {
 public:
  static constexpr uint32_t kMostPages = 512;
  struct Shape {
    uint32_t pages = 64;  ///< of a chunk, a power of two
    uint32_t rounds = 10;
    uint32_t idle_rounds = 3;
    uint32_t huge_rounds = 32;  ///< of a chunk in a huge page
  };
  /// What one call has found. Pages are of 4 KiB.
  struct Look {
    std::vector<uint64_t>
        written;  ///< addresses of pages that were armed and have been written to since
    uint64_t armed = 0;
    bool must_map_again = false;  ///< its memory is not mapped as it was
  };

  /// Has this kernel it, and may we?
  static bool is_there();

  /// `process` and `pagemap`: of the one that the userfaultfd is of.
  WriteProtection(pid_t process, FileDescriptor userfaultfd, FileDescriptor pagemap,
                  const Shape& shape);

  /// From now on chunks are chosen among these; `ranges` are registered. O(areas). False: the process has ended, or called execve().
  bool set_areas(const std::vector<MappedArea>& areas, const std::vector<Range>& ranges);

  /// Looks at each armed chunk, and arms it again or gives it up. Some 30 µs a chunk.
  void look(Look* look);
  /// Arms a chunk more. Pages that are not there are not armed. False: no place was found.
  bool begin(Look* look);

  /// Gives up all chunks. What was split is joined again, as far as we may.
  void finish();

  /// How large new chunks are.
  void set_pages(uint32_t pages) { shape_.pages = pages; }
  size_t chunks() const { return chunks_.size(); }
  /// Was the page armed until the last look, or is it now? O(chunks), mostly less.
  bool is_armed(uint64_t address) const;
  /// Is it a part of a huge page, mapped as one, or by us no longer? Some µs.
  bool is_in_huge_page(uint64_t address);
  /// Nobody shall join it again.
  void leave_split(uint64_t address);
  /// Huge pages that were split to be looked at; and those that have been joined again.
  uint64_t split() const { return split_; }
  uint64_t joined() const { return joined_; }
  /// Ranges that the kernel did not let us register.
  uint64_t refused() const { return refused_; }

 private:
  struct Place {
    uint64_t begin;
    uint64_t end;
    double interest;  ///< how often, by the page, chunks of it are chosen; 1: like others
  };
  struct Chunk {
    uint64_t begin;
    uint64_t end;
    uint32_t rounds;  ///< for which it is still armed
    uint32_t idle;    ///< how many rounds nobody has written to it
    bool is_huge;     ///< it is mapped by a huge entry, which arming splits
  };

  bool choose(Chunk* chunk);
  bool choose_in(uint64_t begin, uint64_t end, Chunk* chunk);
  bool protect(const Chunk& chunk, Look* look, bool is_first);
  bool choose_split(Chunk* chunk);
  bool may_split() const;
  bool is_taken(uint64_t begin, uint64_t end) const;
  void give_up(const Chunk& chunk);
  void join(uint64_t huge_page);
  Place* place_at(uint64_t address);
  void weigh();

  pid_t process_;
  FileDescriptor userfaultfd_;
  FileDescriptor pagemap_;
  Shape shape_;
  std::vector<Place> places_;
  std::vector<double> until_;  ///< sums of what places weigh, up to and with each
  bool has_weights_ = false;
  double next_ = 0;  ///< where the next chunk is looked for, as a part of all memory
  std::minstd_rand random_{1};
  std::vector<Chunk> chunks_;
  std::vector<Chunk> given_up_;  ///< by the last look
  mutable Range last_asked_ = {};
  std::vector<PageRegion> regions_;
  std::vector<uint64_t> huge_;  ///< those that are split
  uint64_t huge_bytes_ = 0;     ///< an estimate: how much of what was looked at is huge
  uint64_t looked_bytes_ = 0;
  uint64_t split_ = 0;
  uint64_t joined_ = 0;
  uint64_t refused_ = 0;
  bool may_join_ = true;
};

}  // namespace bosk::affinity
