// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/acting/data_mover.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRegion = DataMover::kPagesOfRegion * kPage;
constexpr double kSecond = 1e9;
constexpr double kThinkAgain = 0.1 * kSecond;
/// What is known of where pages are: others move them, too.
constexpr double kLookAgain = 5 * kSecond;
constexpr uint32_t kLooksAgain = 4;  ///< regions, ten times a second
constexpr double kForgive = 30 * kSecond;
constexpr uint32_t kMostMoves = 3;
constexpr uint32_t kMostFailures = 3;
/// Between two pages with one owner so many that nobody has seen are taken for its own.
constexpr uint32_t kMostGap = 256;
/// A huge page that is used by several nodes: so many of its pages have to be seen, and one part in kMinority are not its main user's.
constexpr uint32_t kEnoughSeen = 8;
constexpr uint32_t kMinority = 8;
/// At so many regions of small pages it is looked ten times a second whether they still are.
constexpr size_t kLooksAtSmall = 64;

// What is known of a page, besides a node that equation 6 says.
constexpr uint16_t kUnknown = UINT16_MAX;
constexpr uint16_t kMixed = UINT16_MAX - 1;
constexpr uint16_t kHint = 0x8000;  ///< with a node: that one alone has been seen, not often enough

bool is_owner(uint16_t owner) { return owner < kHint; }

uint16_t owner_of(std::span<const uint32_t> by_node) {
  if (by_node.empty()) return kUnknown;
  if (const uint32_t node = preferred_node(by_node); node != kNoNode)
    return static_cast<uint16_t>(node);
  uint16_t only = kUnknown;
  for (size_t node = 0; node < by_node.size(); ++node) {
    if (by_node[node] == 0) continue;
    if (only != kUnknown) return kMixed;
    only = static_cast<uint16_t>(node | kHint);
  }
  return only;
}

/// Pages between two of one owner are its own, too, if nothing says otherwise. O(pages).
template <typename Owners>
void fill_gaps(Owners* owners) {
  uint32_t last = UINT32_MAX;  // owner before the gap
  for (uint32_t page = 0; page < owners->size(); ++page) {
    const uint16_t owner = (*owners)[page];
    if (is_owner(owner)) {
      if (last != UINT32_MAX && (*owners)[last] == owner && page - last <= kMostGap)
        std::fill(owners->begin() + last, owners->begin() + page, owner);
      last = page;
    } else if (owner != kUnknown && (last == UINT32_MAX || owner != ((*owners)[last] | kHint))) {
      last = UINT32_MAX;
    }
  }
}

bool has_several_owners(std::span<const uint16_t> owners) {
  uint16_t first = kUnknown;
  for (const uint16_t owner : owners) {
    if (owner == kUnknown || owner == first) continue;
    if (first != kUnknown) return true;
    first = owner;
  }
  return false;
}

uint64_t number_of(pid_t process, uint64_t address) {
  return static_cast<uint64_t>(process) << 32 | address / kRegion;
}

}  // namespace

DataMover::DataMover(PageSystem* system, PageTable* pages, std::vector<int> os_nodes)
    : system_(system), pages_(pages), os_nodes_(std::move(os_nodes)) {}

DataMover::Region* DataMover::find_or_make(pid_t process, uint64_t address, uint64_t key) {
  const uint64_t number = number_of(process, address);
  if (const auto at = regions_.find(number); at != regions_.end()) return &at->second;
  if (regions_.size() >= kMostRegions) {
    // All begin again: nothing is lost but who has moved how often.
    regions_.clear();
    pending_.clear();
    small_.clear();
  }
  Region region = {};
  region.process = process;
  region.address = address - address % kRegion;
  region.key = key - (address - region.address);
  region.decided = region.looked = region.forgiven = -kSecond * 1000;
  region.where.fill(kUnknown);
  region.owner.fill(kUnknown);
  region.changed = turn_;
  return &regions_.emplace(number, std::move(region)).first->second;
}

void DataMover::prefers(pid_t process, uint64_t address, uint64_t key, uint32_t node) {
  if (counts_.is_forbidden || node >= os_nodes_.size() || left_.contains(process)) return;
  // Of a shared file whose parts lie otherwise in memory than in the file, a region would not be one in the table.
  Region* region = find_or_make(process, address, key);
  if (key - address != region->key - region->address) return;
  const uint64_t page = address % kRegion / kPage;
  const auto owner = static_cast<uint16_t>(node);
  if (region->owner[page] != kUnknown && region->owner[page] != owner) region->changed = turn_;
  region->owner[page] = owner;
  region->turn[page] = turn_;
  if (region->is_pending) return;
  if (region->where[page] == node) {
    // Where it was may be long ago. Few at a time: those that are to move must not wait for them.
    if (now_ - region->looked < kLookAgain || looks_left_ == 0) return;
    --looks_left_;
  }
  region->is_pending = true;
  pending_.push_back(number_of(process, address));
}

void DataMover::refresh(Region* region, double now) {
  region->decided = now;
  if (now - region->looked >= kLookAgain) {
    region->looked = now;
    region->is_joined = false;
    region->where.fill(kUnknown);
  }
  if (now - region->forgiven >= kForgive) {
    region->forgiven = now;
    region->is_left = region->is_whole = false;
    for (uint8_t& moves : region->moves) moves /= 2;
    region->failures.fill(0);
  }
}

void DataMover::want(Region* region, uint32_t page, uint32_t node, bool is_huge, Batch* batch) {
  if (region->where[page] == node || region->failures[page] >= kMostFailures) return;
  if (region->moves[page] >= kMostMoves) {
    // Said once, of each time that it comes to that.
    if (region->moves[page] == kMostMoves) {
      counts_.bouncing += is_huge ? kPagesOfRegion : 1;
      ++region->moves[page];
    }
    return;
  }
  // By the page: a mapping of its own policy may begin anywhere in the region.
  if (system_->is_placed(region->process, region->address + page * kPage, region->decided)) {
    if (!std::exchange(region->is_placed, true)) ++counts_.placed;
    return;
  }
  batch->wanted.push_back(
      {region, static_cast<uint16_t>(page), static_cast<uint16_t>(node), is_huge});
}

/// Of a huge page. False: it has become small ones.
bool DataMover::decide_whole(Region* region, const Owners& owners, Batch* batch) {
  if (region->is_left) return true;
  std::vector<uint32_t> pages(os_nodes_.size());
  uint32_t seen = 0;
  for (const uint16_t owner : owners) {
    if (!is_owner(owner)) continue;
    ++pages[owner];
    ++seen;
  }
  const uint32_t most = *std::ranges::max_element(pages);
  if (seen >= kEnoughSeen && (seen - most) * kMinority >= seen) {
    if (system_->split(region->process, region->address)) {
      region->is_split = true;
      region->is_whole = false;
      watch_small(region);
      return false;
    }
    region->is_left = true;
    if (!std::exchange(region->is_unsplit, true)) ++counts_.unsplit;
    return true;
  }
  // As one it counts, and goes.
  const uint32_t node = preferred_node(pages_->huge_page(region->key));
  if (node != kNoNode) want(region, 0, node, true, batch);
  return true;
}

void DataMover::decide(Region* region, double now, Batch* batch) {
  refresh(region, now);
  Owners owners;
  for (uint32_t page = 0; page < kPagesOfRegion; ++page) {
    const bool is_stale = region->owner[page] != kUnknown &&
                          static_cast<int16_t>(region->turn[page] - region->changed) < 0;
    owners[page] = is_stale ? kUnknown : owner_of(pages_->page(region->key + page * kPage));
    // They go back to where they were.
    if (region->is_joined && !is_owner(owners[page]) && owners[page] != kMixed)
      owners[page] = (*region->given)[page];
  }
  const bool is_huge =
      region->is_whole || (!region->is_split && system_->is_huge(region->process, region->address));
  if (is_huge && decide_whole(region, owners, batch)) return;
  fill_gaps(&owners);
  for (uint32_t page = 0; page < kPagesOfRegion; ++page)
    if (is_owner(owners[page])) want(region, page, owners[page], false, batch);
}

/// The kernel joins small pages where it finds many (khugepaged), on the node of most of them, whoever uses them. That has cost its pages no move of ours.
void DataMover::look_for_joined(double now) {
  for (size_t i = std::min(kLooksAtSmall, small_.size()); i != 0; --i) {
    if (next_small_ >= small_.size()) next_small_ = 0;
    const uint64_t number = small_[next_small_];
    const auto at = regions_.find(number);
    if (at != regions_.end() && !system_->is_huge(at->second.process, at->second.address)) {
      ++next_small_;
      continue;
    }
    small_[next_small_] = small_.back();
    small_.pop_back();
    if (at == regions_.end()) continue;
    Region& region = at->second;
    region.is_small = region.is_split = false;
    region.where.fill(kUnknown);
    if (!has_several_owners(*region.given)) continue;
    ++counts_.joined;
    region.is_joined = true;
    region.looked = now;
    for (uint8_t& moves : region.moves) moves = static_cast<uint8_t>(moves - (moves != 0 ? 1 : 0));
    if (!std::exchange(region.is_pending, true)) pending_.push_back(number);
  }
}

bool DataMover::act(double now) {
  if (counts_.is_forbidden) return false;
  now_ = now;
  if (now - turned_ >= kThinkAgain) {
    turned_ = now;
    ++turn_;
    looks_left_ = kLooksAgain;
    look_for_joined(now);
  }
  Batch batch;
  pid_t process = 0;
  bool has_thought = false;
  std::erase_if(pending_, [&](uint64_t number) {
    const auto at = regions_.find(number);
    if (at == regions_.end()) return true;
    Region& region = at->second;
    if (batch.wanted.size() + kPagesOfRegion > kMostAtOnce) return false;
    if (now - region.decided < kThinkAgain || (has_thought && region.process != process))
      return false;
    process = region.process;
    has_thought = true;
    region.is_pending = false;
    decide(&region, now, &batch);
    return true;
  });
  if (batch.wanted.empty()) return has_thought;
  leave_out_those_that_are_there(process, &batch);
  if (!batch.wanted.empty()) move(process, &batch);
  return true;
}

long DataMover::ask(pid_t process, Batch* batch) {
  batch->addresses.clear();
  for (const Wanted& wanted : batch->wanted)
    batch->addresses.push_back(wanted.region->address + wanted.page * kPage);
  batch->status.assign(batch->wanted.size(), -EBUSY);
  return system_->move(process, batch->addresses, {}, batch->status);
}

void DataMover::leave_out_those_that_are_there(pid_t process, Batch* batch) {
  if (const long done = ask(process, batch); done < 0) {
    note_failure(process, done);
    batch->wanted.clear();
    return;
  }
  size_t at = 0;
  std::erase_if(batch->wanted, [&](const Wanted& wanted) {
    const int status = batch->status[at++];
    if (status < 0) return true;  // it is not there, or shared zeroes, or the kernel's
    const auto node = std::ranges::find(os_nodes_, status);
    // A node without CPUs of its own is none that we know.
    const auto where =
        node == os_nodes_.end() ? kMixed : static_cast<uint16_t>(node - os_nodes_.begin());
    if (wanted.is_huge)
      wanted.region->where.fill(where);
    else
      wanted.region->where[wanted.page] = where;
    if (where != wanted.node) return false;
    note_given(wanted);
    return true;
  });
}

void DataMover::note_failure(pid_t process, long error) {
  if (error == -ESRCH) {
    process_ended(process);
    return;
  }
  counts_.why = static_cast<int>(-error);
  counts_.is_forbidden = error == -EPERM || error == -ENOSYS || ++failures_ >= kMostFailures;
}

void DataMover::note_given(const Wanted& wanted) {
  if (wanted.is_huge) return;
  watch_small(wanted.region);
  (*wanted.region->given)[wanted.page] = wanted.node;
}

void DataMover::watch_small(Region* region) {
  if (std::exchange(region->is_small, true)) return;
  small_.push_back(number_of(region->process, region->address));
  if (region->given != nullptr) return;
  region->given = std::make_unique<Owners>();
  region->given->fill(kUnknown);
}

void DataMover::note_moved(const Wanted& wanted) {
  Region& region = *wanted.region;
  if (wanted.is_huge) {
    counts_.moved += kPagesOfRegion;
    for (uint8_t& moves : region.moves) ++moves;
    region.where.fill(wanted.node);
    pages_->note_huge_move(region.key);
  } else {
    ++counts_.moved;
    ++region.moves[wanted.page];
    region.where[wanted.page] = wanted.node;
    note_given(wanted);
    pages_->note_move(region.key + wanted.page * kPage);
  }
}

void DataMover::move(pid_t process, Batch* batch) {
  std::vector<int> nodes;
  batch->addresses.clear();
  for (const Wanted& wanted : batch->wanted) {
    nodes.push_back(os_nodes_[wanted.node]);
    batch->addresses.push_back(wanted.region->address + wanted.page * kPage);
  }
  std::vector<int> answers(nodes.size(), -EBUSY);
  const long done = system_->move(process, batch->addresses, nodes, answers);
  if (done < 0) {
    note_failure(process, done);
    return;
  }
  failures_ = 0;
  // The kernel does not say of each page what became of it: where they are does.
  if (const long found = ask(process, batch); found < 0) {
    note_failure(process, found);
    return;
  }
  for (size_t i = 0; i < batch->wanted.size(); ++i) {
    const Wanted& wanted = batch->wanted[i];
    if (batch->status[i] == nodes[i]) {
      note_moved(wanted);
      continue;
    }
    if (++wanted.region->failures[wanted.page] < kMostFailures) {
      if (!std::exchange(wanted.region->is_pending, true))
        pending_.push_back(number_of(process, wanted.region->address));
      continue;
    }
    counts_.refused += wanted.is_huge ? kPagesOfRegion : 1;
    counts_.why = answers[i] < 0 ? -answers[i] : EBUSY;
  }
  find_companions(process, *batch);
}

/// Did a page that was to stay go with one that was moved? Then both are parts of a huge page that nobody has told us of. Did the last page of a huge one not
/// come with the first? Then it is none.
void DataMover::find_companions(pid_t process, const Batch& batch) {
  struct Question {
    Region* region;
    bool is_huge;
    int expected;
  };
  std::vector<Question> questions;
  std::vector<uint64_t> addresses;
  const auto ask_about = [&](const Wanted& wanted, uint32_t page, uint32_t expected) {
    questions.push_back({wanted.region, wanted.is_huge, os_nodes_[expected]});
    addresses.push_back(wanted.region->address + page * kPage);
  };
  for (const Wanted& wanted : batch.wanted) {
    if (!questions.empty() && questions.back().region == wanted.region) continue;
    const Owners& where = wanted.region->where;
    if (wanted.is_huge) {
      if (where[0] == wanted.node) ask_about(wanted, kPagesOfRegion - 1, wanted.node);
      continue;
    }
    const auto stays = std::ranges::find_if(
        where, [&](uint16_t node) { return node < os_nodes_.size() && node != wanted.node; });
    if (stays != where.end())
      ask_about(wanted, static_cast<uint32_t>(stays - where.begin()), *stays);
  }
  if (questions.empty()) return;
  std::vector<int> status(questions.size(), -EBUSY);
  if (system_->move(process, addresses, {}, status) < 0) return;
  for (size_t i = 0; i < questions.size(); ++i) {
    if (status[i] < 0 || status[i] == questions[i].expected) continue;
    Region& region = *questions[i].region;
    if (questions[i].is_huge) counts_.moved -= kPagesOfRegion - 1;
    region.is_whole = !questions[i].is_huge;
    region.is_split = questions[i].is_huge;
    region.where.fill(kUnknown);
  }
}

void DataMover::leave_process(pid_t process) {
  if (!left_.insert(process).second) return;
  ++counts_.left;
  std::erase_if(regions_, [&](const auto& of) { return of.second.process == process; });
}

void DataMover::process_began(pid_t process) {
  if (left_.empty()) return;
  left_.erase(process);  // another one's number, or after execve()
  if (left_.contains(system_->parent_of(process))) left_.insert(process);
}

void DataMover::process_ended(pid_t process) {
  left_.erase(process);
  std::erase_if(regions_, [&](const auto& of) { return of.second.process == process; });
}

}  // namespace bosk::affinity
