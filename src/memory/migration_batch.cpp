// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A batch: ask where the pages are, send those that have to go, ask again about those of which nothing good was said.
//
// Asking first makes a page that is there already cost no more than one look, tells moved pages from those that were
// there (move_pages says the same of both), and keeps absent pages out. But it takes a seventh of the time that moving
// takes, so of a batch with one target it is asked about some pages first: if all of these have to go, all are sent.
// Single ones among them that were there are counted as moved then, unless somebody wants the outcome of each. Nor is it
// asked about a few pages of which the caller knows that they are elsewhere. Then rounds:
//
//   - What the kernel stores a status for is settled by it, except -EBUSY: a part of a huge page that was isolated
//     with the rest of it says so too, and has moved. Asking again tells.
//   - A run of queued pages that cannot all go ends the call: it returns how many are left, or an error, and says
//     nothing of any page of that run nor of those behind it. The kernel has tried those of the run ten times: they
//     are refused, or the node is full. The ones behind it get another round.
//
// Before the first round a huge page of which not all goes to one node is split. If it cannot be, nothing of it is sent.
// One that goes as a whole is asked about, and sent, by its first page alone: 511 more addresses would cost a tenth of the
// move. Where the kernel finds no room for it in one piece it takes it apart on the way: such blocks are looked at again,
// page by page. Kernels before 6.7 do not tell what is a huge page: there the first page of every 2 MiB is sent ahead, and
// where the others have come along it was one.
//
// Every round settles at least one page, and after kMostRounds the rest is refused: a range in which every second page
// is pinned would take as many calls as it has pages.
#include "memory/migration_batch.h"

#include <errno.h>
#include <limits.h>

#include <atomic>
#include <iterator>

#include "memory/huge_pages.h"

namespace bosk::memory {
namespace {

constexpr uint32_t kMostRounds = 64;
/// Of smaller batches all is asked: the call itself takes longer. The steps are primes: pages may lie on nodes in turn.
constexpr uint32_t kLeastSampled = 8;
constexpr uint32_t kManyPages = 512;
constexpr uint32_t kSampleStep = 5;
constexpr uint32_t kSampleStepOfMany = 17;
constexpr uint8_t kMostTries = 3;  // of a page that says that it is busy
constexpr int kUnsaid = INT_MIN;

/// Where nothing came along, so many batches go without pages sent ahead, each of which would cost a call (some 50 us). Most
/// of what a program moves is alike.
constexpr uint32_t kBatchesWithout = 8;
constinit std::atomic<uint32_t> batches_without{0};  // relaxed: a guess, which no data hang on

class BatchWork {
 public:
  BatchWork(const Batch& batch, const Workspace& space, bool as_such = true)
      : batch_(batch), space_(space), as_such_(as_such) {}

  Moved run() {
    find_whole();
    if (may_be_whole_ != 0) send_ahead();
    if (!choose()) return result_;
    set_parts_free();
    for (uint32_t round = 0; left_ != 0 && round < kMostRounds; ++round) send();
    for (uint32_t i = 0; i < left_; ++i) settle(i, PageOutcome::kRefused);
    look_at_whole_again();
    return result_;
  }

 private:
  void settle(uint32_t entry, PageOutcome outcome) {
    const uint32_t page = space_.page[entry];
    const bool whole = is_whole(entry);
    const uint32_t pages = whole ? block_pages_ : 1;
    result_.count(outcome, pages);
    if (batch_.outcomes != nullptr)
      for (uint32_t i = 0; i < pages; ++i) batch_.outcomes[page + i] = outcome;
    if (whole && outcome == PageOutcome::kMoved) went_ |= uint64_t{1} << block_number(page);
  }
  void queue(uint32_t page, int target, bool whole) {
    space_.page[left_] = page;
    space_.target[left_] = target;
    space_.address[left_] = batch_.first + page * page_bytes_;
    space_.tries[left_] = whole ? kWhole : 0;
    ++left_;
  }
  void keep(uint32_t from) {
    space_.address[left_] = space_.address[from];
    space_.target[left_] = space_.target[from];
    space_.page[left_] = space_.page[from];
    space_.tries[left_] = space_.tries[from];
    ++left_;
  }
  bool is_whole(uint32_t entry) const { return (space_.tries[entry] & kWhole) != 0; }

  // ---- huge pages that go as such

  uint32_t block_number(uint32_t page) const { return (page - first_block_) / block_pages_; }
  /// Does one of these blocks, a bit each, begin at the page?
  bool is_first_of(uint64_t blocks, uint32_t page) const {
    if (blocks == 0 || page < first_block_ || (page - first_block_) % block_pages_ != 0)
      return false;
    const uint32_t block = block_number(page);
    return block < 64 && (blocks >> block & 1) != 0;
  }

  /// Which blocks in the batch are huge pages.
  void find_whole() {
    const auto before =
        static_cast<uint32_t>(pages_before(reinterpret_cast<uintptr_t>(batch_.first)));
    first_block_ = before == 0 ? 0 : block_pages_ - before;
    if (!as_such_ || first_block_ + block_pages_ > batch_.count) return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(batch_.first) + first_block_ * page_bytes_;
    // The rest of memory that begins in small pages is likely to be small ones, of which the look takes longer.
    const uint32_t blocks = (batch_.count - first_block_) / block_pages_;
    huge_ = map_.huge_blocks(at, 1);
    if (huge_ != 0) huge_ = map_.huge_blocks(at, blocks);
    if (!map_.tells()) may_be_whole_ = blocks < 64 ? (uint64_t{1} << blocks) - 1 : ~uint64_t{0};
  }
  /// Does a huge page begin at the page, all of which goes to the same node?
  bool goes_as_such(uint32_t page, int target) const {
    return is_first_of(huge_, page) && has_one_target(page, target);
  }
  bool has_one_target(uint32_t page, int target) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(batch_.first) + page * page_bytes_;
    return elsewhere_in({at, at + block_pages_ * page_bytes_, at, target, 0},
                        reinterpret_cast<uintptr_t>(batch_.first)) == 0;
  }
  /// Those that the kernel has taken apart may have gone in part only.
  void look_at_whole_again() {
    if (went_ == 0) return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(batch_.first) + first_block_ * page_bytes_;
    uint64_t apart =
        went_ & ~map_.huge_blocks(at, 64 - static_cast<size_t>(__builtin_clzll(went_)));
    for (; apart != 0; apart &= apart - 1) {
      const uint32_t page =
          first_block_ + static_cast<uint32_t>(__builtin_ctzll(apart)) * block_pages_;
      Batch block = batch_;
      block.first += page * page_bytes_;
      block.count = block_pages_;
      block.elsewhere = false;
      if (block.nodes != nullptr) block.nodes += page;
      if (block.outcomes != nullptr) block.outcomes += page;
      Moved again = BatchWork(block, space_, false).run();
      // What is there has come with the first look.
      again.moved += again.already;
      again.already = 0;
      if (block.outcomes != nullptr)
        for (uint32_t i = 0; i < block_pages_; ++i)
          if (block.outcomes[i] == PageOutcome::kAlready) block.outcomes[i] = PageOutcome::kMoved;
      result_.moved -= block_pages_;
      result_.add(again);
    }
  }

  // ---- pages sent ahead

  /// The block's first page was sent ahead, alone.
  bool was_ahead(uint32_t page) const { return is_first_of(ahead_, page); }
  /// The block has come along with it.
  bool came(uint32_t page) const { return is_first_of(came_, page); }
  int target_of(uint32_t page) const {
    return kernel_node_of(batch_.nodes == nullptr ? batch_.node : batch_.nodes[page]);
  }

  /// Of which blocks are all witnesses together on one node, as the pages of huge ones are: on the block's target, or not on it?
  uint64_t together(uint64_t blocks, bool on_target) {
    const uint32_t witnesses[] = {0, block_pages_ / 2, block_pages_ - 1};
    uint32_t asked = 0;
    for (uint64_t left = blocks; left != 0; left &= left - 1)
      for (const uint32_t witness : witnesses)
        space_.address[asked++] = batch_.first + (first_page_of(left) + witness) * page_bytes_;
    if (call_move_pages(asked, space_.address, nullptr, space_.status) < 0) return 0;
    uint64_t result = 0;
    const int* status = space_.status;
    for (uint64_t left = blocks; left != 0; left &= left - 1, status += std::size(witnesses)) {
      if (status[0] >= 0 && status[0] == status[1] && status[0] == status[2] &&
          (status[0] == target_of(first_page_of(left))) == on_target)
        result |= left & -left;
    }
    return result;
  }
  uint32_t first_page_of(uint64_t blocks) const {
    return first_block_ + static_cast<uint32_t>(__builtin_ctzll(blocks)) * block_pages_;
  }

  void send_ahead() {
    const uint32_t without = batches_without.load(std::memory_order_relaxed);
    if (without != 0) return batches_without.store(without - 1, std::memory_order_relaxed);
    uint64_t blocks = 0;
    for (uint64_t left = may_be_whole_; left != 0; left &= left - 1) {
      const int target = target_of(first_page_of(left));
      if (target >= 0 && has_one_target(first_page_of(left), target)) blocks |= left & -left;
    }
    if (blocks != 0) ahead_ = together(blocks, false);
    if (ahead_ == 0) return;
    uint32_t sent = 0;
    for (uint64_t left = ahead_; left != 0; left &= left - 1, ++sent) {
      space_.address[sent] = batch_.first + first_page_of(left) * page_bytes_;
      space_.target[sent] = target_of(first_page_of(left));
    }
    // Whatever it answers: where they are now says more.
    call_move_pages(sent, space_.address, space_.target, space_.status);
    came_ = together(ahead_, true);
    if (came_ == 0) batches_without.store(kBatchesWithout, std::memory_order_relaxed);
    for (uint64_t left = came_; left != 0; left &= left - 1) {
      result_.count(PageOutcome::kMoved, block_pages_);
      if (batch_.outcomes == nullptr) continue;
      PageOutcome* outcomes = batch_.outcomes + first_page_of(left);
      for (uint32_t i = 0; i < block_pages_; ++i) outcomes[i] = PageOutcome::kMoved;
    }
  }

  static bool is_absent(int status) { return status == -ENOENT || status == -EFAULT; }

  /// Do all pages have to go to `target`, as far as a sample tells?
  bool all_seem_to_go(int target) {
    if (batch_.outcomes != nullptr || target < 0) return false;
    if (batch_.count < kLeastSampled) return batch_.elsewhere;
    const uint32_t step = batch_.count < kManyPages ? kSampleStep : kSampleStepOfMany;
    uint32_t samples = 0;
    for (uint32_t i = 0; i < batch_.count; i += step)
      space_.address[samples++] = batch_.first + (was_ahead(i) ? i + 1 : i) * page_bytes_;
    space_.address[samples++] = batch_.first + (batch_.count - 1) * page_bytes_;
    if (call_move_pages(samples, space_.address, nullptr, space_.status) < 0) return false;
    for (uint32_t i = 0; i < samples; ++i)
      if (space_.status[i] < 0 || space_.status[i] == target) return false;
    return true;
  }

  /// Leaves those pages that have to move. False: the kernel has no such call for us.
  bool choose() {
    int target = batch_.nodes == nullptr ? kernel_node_of(batch_.node) : -1;
    const bool all_go =
        batch_.nodes == nullptr && huge_ == 0 && came_ == 0 && all_seem_to_go(target);
    for (uint32_t i = 0; i < batch_.count;) {
      if (came(i)) {
        i += block_pages_;
        continue;
      }
      if (batch_.nodes != nullptr &&
          (left_ == 0 || batch_.nodes[i] != batch_.nodes[i - 1] || came_ != 0))
        target = kernel_node_of(batch_.nodes[i]);
      const bool whole = goes_as_such(i, target);
      queue(i, target, whole);
      i += whole ? block_pages_ : 1;
    }
    if (all_go || left_ == 0) return true;
    const uint32_t asked = left_;
    const long failed = call_move_pages(asked, space_.address, nullptr, space_.status);
    left_ = 0;
    for (uint32_t i = 0; i < asked; ++i) {
      if (failed < 0 || space_.target[i] < 0) {
        settle(i, PageOutcome::kRefused);
      } else if (space_.status[i] == space_.target[i]) {
        settle(i, was_ahead(space_.page[i]) ? PageOutcome::kMoved : PageOutcome::kAlready);
      } else if (is_absent(space_.status[i])) {
        settle(i, PageOutcome::kAbsent);
      } else {
        keep(i);
      }
    }
    return failed >= 0;
  }

  /// Splits huge pages that are not to go as a whole.
  void set_parts_free() {
    const uintptr_t size = huge_page_bytes();
    const uintptr_t begin = reinterpret_cast<uintptr_t>(batch_.first);
    const uintptr_t end = begin + batch_.count * page_bytes_;
    if (batch_.nodes == nullptr && (begin | end) % size == 0) return;
    const uint32_t chosen = left_;
    left_ = 0;
    for (uint32_t i = 0; i < chosen;) {
      const uintptr_t block = reinterpret_cast<uintptr_t>(space_.address[i]) & ~(size - 1);
      PartToGo part;
      part.begin = block > begin ? block : begin;
      part.end = block + size < end ? block + size : end;
      part.goes = reinterpret_cast<uintptr_t>(space_.address[i]);
      part.target = space_.target[i];
      part.elsewhere = elsewhere_in(part, begin);
      const bool free =
          (part.end - part.begin == size && part.elsewhere == 0) || set_free(map_, part);
      for (; i < chosen && reinterpret_cast<uintptr_t>(space_.address[i]) < part.end; ++i) {
        if (free)
          keep(i);
        else
          settle(i, PageOutcome::kUnsplit);
      }
    }
  }
  /// A page of the part that is to be on another node than part.target; 0: none.
  uintptr_t elsewhere_in(const PartToGo& part, uintptr_t begin) const {
    if (batch_.nodes == nullptr) return 0;
    const auto page_of = [&](uintptr_t at) { return (at - begin) / page_bytes_; };
    const NodeIndex node = batch_.nodes[page_of(part.goes)];
    for (uintptr_t at = part.begin; at < part.end; at += page_bytes_) {
      const NodeIndex other = batch_.nodes[page_of(at)];
      // Nodes of an invented machine may be one to the kernel.
      if (other != node && kernel_node_of(other) != part.target) return at;
    }
    return 0;
  }

  void send() {
    const uint32_t sent = left_;
    for (uint32_t i = 0; i < sent; ++i) space_.status[i] = kUnsaid;
    const long answer = call_move_pages(sent, space_.address, space_.target, space_.status);
    // The run that ended the call, if one did: the first pages of which nothing is said, with one target.
    uint32_t run_begin = 0;
    while (run_begin < sent && space_.status[run_begin] != kUnsaid) ++run_begin;
    uint32_t run_end = run_begin;
    while (run_end < sent && space_.status[run_end] == kUnsaid &&
           space_.target[run_end] == space_.target[run_begin]) {
      ++run_end;
    }
    const int failing_target = run_begin < sent ? space_.target[run_begin] : -1;
    left_ = 0;
    for (uint32_t i = 0; i < sent; ++i) {
      if (space_.status[i] == space_.target[i]) {
        settle(i, PageOutcome::kMoved);
        continue;
      }
      Said said;
      if (space_.status[i] != kUnsaid) {
        said = meaning(space_.status[i], space_.tries[i] & kTriesMask);
      } else if (i < run_end || (answer < 0 && space_.target[i] == failing_target)) {
        said = answer == -ENOMEM ? Said::kNoMemory : Said::kRefused;
      } else {
        said = Said::kNothing;  // the kernel did not come to it
      }
      space_.tries[i] =
          static_cast<uint8_t>(space_.tries[i] | static_cast<uint8_t>(said) << kSaidShift);
      // It goes to where it was or before, and what was there has been dealt with.
      keep(i);
    }
    if (left_ == 0) return;
    const uint32_t asked = left_;
    const bool known = call_move_pages(asked, space_.address, nullptr, space_.status) >= 0;
    left_ = 0;
    for (uint32_t i = 0; i < asked; ++i) decide(i, known);
  }

  enum class Said : uint8_t { kNothing, kBusy, kRefused, kNoMemory, kAbsent };

  static Said meaning(int status, int tries) {
    if (status == -EBUSY || status == -EAGAIN)
      return tries + 1 < kMostTries ? Said::kBusy : Said::kRefused;
    if (status == -ENOMEM) return Said::kNoMemory;
    return is_absent(status) ? Said::kAbsent : Said::kRefused;
  }

  void decide(uint32_t i, bool known) {
    const auto said = static_cast<Said>((space_.tries[i] & kSaidMask) >> kSaidShift);
    space_.tries[i] &= kTriesMask | kWhole;
    if (known && space_.status[i] == space_.target[i]) return settle(i, PageOutcome::kMoved);
    if (known && is_absent(space_.status[i])) return settle(i, PageOutcome::kAbsent);
    switch (said) {
      case Said::kBusy:
        ++space_.tries[i];
        return keep(i);
      case Said::kNothing:
        return keep(i);
      case Said::kRefused:
        return settle(i, PageOutcome::kRefused);
      case Said::kNoMemory:
        return settle(i, PageOutcome::kNoMemory);
      case Said::kAbsent:
        return settle(i, PageOutcome::kAbsent);
    }
  }

  // How often a page was tried, and beside it, for as long as the kernel is asked again, what it said.
  static constexpr uint8_t kTriesMask = 0x0f;
  static constexpr uint8_t kSaidMask = 0x70;
  static constexpr uint8_t kSaidShift = 4;
  static constexpr uint8_t kWhole = 0x80;  // the entry stands for a huge page

  const Batch& batch_;
  const Workspace& space_;
  const bool as_such_;  // huge pages that go as a whole go by their first page
  const size_t page_bytes_ = page_bytes();
  const uint32_t block_pages_ = static_cast<uint32_t>(huge_page_bytes() / page_bytes());
  HugePageMap map_;
  uint32_t first_block_ = 0;  // the first page of the batch where a block begins
  uint64_t huge_ = 0;         // blocks from there on that are huge pages
  uint64_t went_ = 0;         // of these, those that went by their first page
  // Where the kernel does not say: blocks that may be, those of which the first page was sent ahead, and that came with it.
  uint64_t may_be_whole_ = 0;
  uint64_t ahead_ = 0;
  uint64_t came_ = 0;
  Moved result_;
  uint32_t left_ = 0;
};

}  // namespace

void Workspace::lay_out(void* memory, uint32_t pages) {
  most = pages;
  address = static_cast<void**>(memory);
  target = reinterpret_cast<int*>(address + pages);
  status = target + pages;
  page = reinterpret_cast<uint32_t*>(status + pages);
  tries = reinterpret_cast<uint8_t*>(page + pages);
}

Moved move_batch(const Batch& batch, const Workspace& space) {
  return BatchWork(batch, space).run();
}

}  // namespace bosk::memory
