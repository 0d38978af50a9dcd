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
//
// Every round settles at least one page, and after kMostRounds the rest is refused: a range in which every second page
// is pinned would take as many calls as it has pages.
#include "memory/migration_batch.h"

#include <errno.h>
#include <limits.h>

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

class BatchWork {
 public:
  BatchWork(const Batch& batch, const Workspace& space) : batch_(batch), space_(space) {}

  Moved run() {
    if (!choose()) return result_;
    set_parts_free();
    for (uint32_t round = 0; left_ != 0 && round < kMostRounds; ++round) send();
    for (uint32_t i = 0; i < left_; ++i) settle(space_.page[i], PageOutcome::kRefused);
    return result_;
  }

 private:
  void settle(uint32_t page, PageOutcome outcome) {
    result_.count(outcome);
    if (batch_.outcomes != nullptr) batch_.outcomes[page] = outcome;
  }
  void queue(uint32_t page, int target) {
    space_.page[left_] = page;
    space_.target[left_] = target;
    space_.address[left_] = batch_.first + page * page_bytes_;
    space_.tries[left_] = 0;
    ++left_;
  }
  void keep(uint32_t from) {
    space_.address[left_] = space_.address[from];
    space_.target[left_] = space_.target[from];
    space_.page[left_] = space_.page[from];
    space_.tries[left_] = space_.tries[from];
    ++left_;
  }

  static bool is_absent(int status) { return status == -ENOENT || status == -EFAULT; }

  /// Do all pages have to go to `target`, as far as a sample tells?
  bool all_seem_to_go(int target) {
    if (batch_.outcomes != nullptr || target < 0) return false;
    if (batch_.count < kLeastSampled) return batch_.elsewhere;
    const uint32_t step = batch_.count < kManyPages ? kSampleStep : kSampleStepOfMany;
    uint32_t samples = 0;
    for (uint32_t i = 0; i < batch_.count; i += step)
      space_.address[samples++] = batch_.first + i * page_bytes_;
    space_.address[samples++] = batch_.first + (batch_.count - 1) * page_bytes_;
    if (call_move_pages(samples, space_.address, nullptr, space_.status) < 0) return false;
    for (uint32_t i = 0; i < samples; ++i)
      if (space_.status[i] < 0 || space_.status[i] == target) return false;
    return true;
  }

  /// Leaves those pages that have to move. False: the kernel has no such call for us.
  bool choose() {
    if (batch_.nodes == nullptr) {
      const int target = kernel_node_of(batch_.node);
      if (all_seem_to_go(target)) {
        for (uint32_t i = 0; i < batch_.count; ++i) queue(i, target);
        return true;
      }
    }
    for (uint32_t i = 0; i < batch_.count; ++i) space_.address[i] = batch_.first + i * page_bytes_;
    const long failed = call_move_pages(batch_.count, space_.address, nullptr, space_.status);
    int target = batch_.nodes == nullptr ? kernel_node_of(batch_.node) : -1;
    for (uint32_t i = 0; i < batch_.count; ++i) {
      if (batch_.nodes != nullptr && (i == 0 || batch_.nodes[i] != batch_.nodes[i - 1]))
        target = kernel_node_of(batch_.nodes[i]);
      if (failed < 0 || target < 0) {
        settle(i, PageOutcome::kRefused);
      } else if (space_.status[i] == target) {
        settle(i, PageOutcome::kAlready);
      } else if (is_absent(space_.status[i])) {
        settle(i, PageOutcome::kAbsent);
      } else {
        queue(i, target);
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
    HugePageSplitter splitter;
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
          (part.end - part.begin == size && part.elsewhere == 0) || splitter.set_free(part);
      for (; i < chosen && reinterpret_cast<uintptr_t>(space_.address[i]) < part.end; ++i) {
        if (free)
          keep(i);
        else
          settle(space_.page[i], PageOutcome::kUnsplit);
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
        settle(space_.page[i], PageOutcome::kMoved);
        continue;
      }
      Said said;
      if (space_.status[i] != kUnsaid) {
        said = meaning(space_.status[i], space_.tries[i]);
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

  static Said meaning(int status, uint8_t tries) {
    if (status == -EBUSY || status == -EAGAIN)
      return tries + 1 < kMostTries ? Said::kBusy : Said::kRefused;
    if (status == -ENOMEM) return Said::kNoMemory;
    return is_absent(status) ? Said::kAbsent : Said::kRefused;
  }

  void decide(uint32_t i, bool known) {
    const auto said = static_cast<Said>(space_.tries[i] >> kSaidShift);
    space_.tries[i] &= kTriesMask;
    if (known && space_.status[i] == space_.target[i])
      return settle(space_.page[i], PageOutcome::kMoved);
    if (known && is_absent(space_.status[i])) return settle(space_.page[i], PageOutcome::kAbsent);
    switch (said) {
      case Said::kBusy:
        ++space_.tries[i];
        return keep(i);
      case Said::kNothing:
        return keep(i);
      case Said::kRefused:
        return settle(space_.page[i], PageOutcome::kRefused);
      case Said::kNoMemory:
        return settle(space_.page[i], PageOutcome::kNoMemory);
      case Said::kAbsent:
        return settle(space_.page[i], PageOutcome::kAbsent);
    }
  }

  // How often a page was tried, and beside it, for as long as the kernel is asked again, what it said.
  static constexpr uint8_t kTriesMask = 0x0f;
  static constexpr uint8_t kSaidShift = 4;

  const Batch& batch_;
  const Workspace& space_;
  const size_t page_bytes_ = page_bytes();
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
