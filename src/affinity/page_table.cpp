// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/page_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace bosk::affinity {
namespace {

constexpr uint64_t kHugeBytes = uint64_t{2} << 20;
// So large that what finds a block is nothing beside it (.001 % of the memory), so small that a mapping alone costs 40 KiB.
constexpr uint64_t kBlockBytes = 4 * kHugeBytes;
constexpr uint16_t kNobody = UINT16_MAX;
static_assert(kMostThreads == kNobody);

uint32_t most_of_counter(uint32_t bytes) {
  return bytes == 4 ? UINT32_MAX : (uint32_t{1} << (8 * bytes)) - 1;
}

}  // namespace

struct PageTable::Block {
  explicit Block(size_t bytes) : entries(new std::byte[bytes]) {}

  std::unique_ptr<std::byte[]> entries;
  bool used_lately = true;
};

PageTable::PageTable(const TableShape& shape)
    : shape_(shape),
      pages_in_block_(static_cast<uint32_t>(kBlockBytes / shape.page_bytes)),
      most_counted_(most_of_counter(shape.counter_bytes)),
      sums_(shape.nodes) {}

PageTable::~PageTable() = default;

size_t PageTable::entry_bytes() const {
  return size_t{shape_.counter_bytes} * shape_.nodes +
         size_t{shape_.page_bytes / shape_.sub_block_bytes} * shape_.sharers * sizeof(uint16_t);
}

/// Entries, and what finds them: the map's node and bucket, the block, the clock's word, and what malloc() adds to three of these.
size_t PageTable::block_cost() const {
  constexpr size_t kFinding = 4 * sizeof(void*) + sizeof(Block) + 2 * sizeof(uint64_t) + 3 * 16;
  return entry_bytes() * pages_in_block_ + kFinding;
}

PageTable::Block* PageTable::find(uint64_t address) {
  const auto at = blocks_.find(address / kBlockBytes);
  return at == blocks_.end() ? nullptr : at->second.get();
}

PageTable::Block& PageTable::find_or_make(uint64_t address) {
  if (Block* block = find(address)) return *block;
  while (!clock_.empty() && bytes() + block_cost() > shape_.limit_bytes) evict_one();
  const size_t size = entry_bytes() * pages_in_block_;
  auto made = std::make_unique<Block>(size);
  std::memset(made->entries.get(), 0, size);
  const size_t counters = size_t{shape_.counter_bytes} * shape_.nodes;
  for (uint32_t page = 0; page < pages_in_block_; ++page)
    std::memset(made->entries.get() + page * entry_bytes() + counters, 0xff,
                entry_bytes() - counters);
  clock_.push_back(address / kBlockBytes);
  return *(blocks_[address / kBlockBytes] = std::move(made));
}

/// The clock's hand: who was used since it came by last stays for another round.
void PageTable::evict_one() {
  for (;;) {
    if (hand_ >= clock_.size()) hand_ = 0;
    const auto at = blocks_.find(clock_[hand_]);
    if (at != blocks_.end() && at->second->used_lately) {
      at->second->used_lately = false;
      ++hand_;
      continue;
    }
    if (at != blocks_.end()) {
      blocks_.erase(at);
      ++evicted_;
    }
    clock_[hand_] = clock_.back();
    clock_.pop_back();
    return;
  }
}

std::byte* PageTable::entry(Block& block, uint64_t address) const {
  return block.entries.get() + address % kBlockBytes / shape_.page_bytes * entry_bytes();
}

uint32_t PageTable::counter(const std::byte* entry, uint32_t node) const {
  uint32_t value = 0;  // both architectures that we know put the low bytes first
  std::memcpy(&value, entry + size_t{node} * shape_.counter_bytes, shape_.counter_bytes);
  return value;
}

void PageTable::set_counter(std::byte* entry, uint32_t node, uint32_t value) const {
  std::memcpy(entry + size_t{node} * shape_.counter_bytes, &value, shape_.counter_bytes);
}

void PageTable::halve(std::byte* entry) const {
  for (uint32_t node = 0; node < shape_.nodes; ++node)
    set_counter(entry, node, counter(entry, node) / 2);
}

/// The thread becomes the one that used the sub-block last; who is not remembered any more has not shared it.
void PageTable::note_sharers(std::byte* entry, uint64_t address, uint32_t thread,
                             SharingMatrix* matrix) const {
  if (thread >= kMostThreads) return;
  constexpr uint32_t kMostSharers = 8;
  uint16_t sharers[kMostSharers];
  const size_t sub_block = address % shape_.page_bytes / shape_.sub_block_bytes;
  std::byte* const at = entry + size_t{shape_.counter_bytes} * shape_.nodes +
                        sub_block * shape_.sharers * sizeof(uint16_t);
  std::memcpy(sharers, at, shape_.sharers * sizeof(uint16_t));
  uint32_t from = 0;
  while (from + 1 < shape_.sharers && sharers[from] != thread) ++from;
  std::copy_backward(sharers, sharers + from, sharers + from + 1);
  sharers[0] = static_cast<uint16_t>(thread);
  std::memcpy(at, sharers, shape_.sharers * sizeof(uint16_t));
  for (uint32_t a = 0; a < shape_.sharers; ++a)
    for (uint32_t b = a + 1; b < shape_.sharers; ++b)
      if (sharers[a] != kNobody && sharers[b] != kNobody) matrix->add(sharers[a], sharers[b]);
}

uint32_t PageTable::note(uint64_t address, uint32_t thread, uint32_t node, SharingMatrix* matrix) {
  Block& block = find_or_make(address);
  block.used_lately = true;
  std::byte* const of_page = entry(block, address);
  note_sharers(of_page, address, thread, matrix);
  if (node >= shape_.nodes) return kNoNode;
  // A counter that is full would hide that others catch up.
  if (counter(of_page, node) == most_counted_) halve(of_page);
  set_counter(of_page, node, counter(of_page, node) + 1);
  std::ranges::fill(sums_, 0);
  add_to_sums(of_page);
  const uint32_t preferred = preferred_node(sums_);
  if (shape_.most_accesses != 0 &&
      std::accumulate(sums_.begin(), sums_.end(), uint64_t{0}) >= shape_.most_accesses)
    halve(of_page);
  return preferred;
}

void PageTable::add_to_sums(const std::byte* entry) {
  for (uint32_t node = 0; node < shape_.nodes; ++node)
    sums_[node] += std::min(counter(entry, node), UINT32_MAX - sums_[node]);
}

bool PageTable::has_seen(uint64_t address) {
  Block* block = find(address);
  if (block == nullptr) return false;
  const size_t counters = size_t{shape_.counter_bytes} * shape_.nodes;
  const std::byte* const of_page = entry(*block, address);
  return std::any_of(of_page + counters, of_page + entry_bytes(),
                     [](std::byte byte) { return byte != std::byte{0xff}; });
}

void PageTable::note_move(uint64_t address) {
  if (Block* block = find(address)) halve(entry(*block, address));
}

void PageTable::note_huge_move(uint64_t address) {
  Block* block = find(address);
  if (block == nullptr) return;
  const uint64_t begin = address - address % kHugeBytes;
  for (uint64_t at = begin; at < begin + kHugeBytes; at += shape_.page_bytes)
    halve(entry(*block, at));
}

void PageTable::forget(uint64_t begin, uint64_t end) {
  // Whole blocks go, found by the shorter of two ways; of those at the ends the pages inside.
  const auto forget_pages = [&](uint64_t from, uint64_t to) {
    Block* block = find(from);
    if (block == nullptr) return;
    const size_t counters = size_t{shape_.counter_bytes} * shape_.nodes;
    // By number: the last page of all ends where addresses begin again.
    for (uint64_t left = (to - from + shape_.page_bytes - 1) / shape_.page_bytes; left != 0;
         --left) {
      std::byte* of_page = entry(*block, from + (left - 1) * shape_.page_bytes);
      std::memset(of_page, 0, counters);
      std::memset(of_page + counters, 0xff, entry_bytes() - counters);
    }
  };
  begin -= begin % shape_.page_bytes;
  if (begin >= end) return;
  const uint64_t first_whole = (begin + kBlockBytes - 1) / kBlockBytes;
  const uint64_t end_whole = end / kBlockBytes;
  if (first_whole > end_whole) {
    forget_pages(begin, end);
    return;
  }
  forget_pages(begin, first_whole * kBlockBytes);
  forget_pages(end_whole * kBlockBytes, end);
  if (end_whole - first_whole < blocks_.size()) {
    for (uint64_t at = first_whole; at < end_whole; ++at) blocks_.erase(at);
  } else {
    std::erase_if(blocks_,
                  [&](const auto& of) { return of.first >= first_whole && of.first < end_whole; });
  }
  std::erase_if(clock_, [&](uint64_t of) { return !blocks_.contains(of); });
}

/// Empty if all are 0.
std::span<const uint32_t> PageTable::sums_over(Block& block, uint64_t begin, uint64_t end) {
  std::ranges::fill(sums_, 0);
  for (uint64_t at = begin; at < end; at += shape_.page_bytes) add_to_sums(entry(block, at));
  if (std::ranges::all_of(sums_, [](uint32_t sum) { return sum == 0; })) return {};
  return sums_;
}

std::span<const uint32_t> PageTable::page(uint64_t address) {
  Block* block = find(address);
  if (block == nullptr) return {};
  return sums_over(*block, address, address + 1);
}

std::span<const uint32_t> PageTable::huge_page(uint64_t address) {
  Block* block = find(address);
  if (block == nullptr) return {};
  const uint64_t begin = address - address % kHugeBytes;
  return sums_over(*block, begin, begin + kHugeBytes);
}

void PageTable::for_each(uint64_t bytes, const Visit& visit) {
  for (const auto& [number, block] : blocks_)
    for (uint64_t at = number * kBlockBytes; at < (number + 1) * kBlockBytes; at += bytes)
      if (const auto by_node = sums_over(*block, at, at + bytes); !by_node.empty())
        visit(at, by_node);
}

void PageTable::for_each_page(const Visit& visit) { for_each(shape_.page_bytes, visit); }
void PageTable::for_each_huge_page(const Visit& visit) { for_each(kHugeBytes, visit); }

double page_exclusivity(std::span<const uint32_t> by_node) {
  double most = 0;
  double all = 0;
  for (const uint32_t accesses : by_node) {
    most = std::max<double>(most, accesses);
    all += accesses;
  }
  return all == 0 ? 0 : most / all;
}

namespace {

/// The exclusivity weighted by accesses is the sum of the largest counts.
struct Exclusivity {
  double most = 0;
  double all = 0;

  void add(std::span<const uint32_t> by_node) {
    most += *std::ranges::max_element(by_node);
    for (const uint32_t accesses : by_node) all += accesses;
  }
  double average() const { return all == 0 ? 0 : most / all; }
};

}  // namespace

double average_exclusivity(PageTable& table) {
  Exclusivity sum;
  table.for_each_page([&](uint64_t, std::span<const uint32_t> by_node) { sum.add(by_node); });
  return sum.average();
}

double average_huge_exclusivity(PageTable& table) {
  Exclusivity sum;
  table.for_each_huge_page([&](uint64_t, std::span<const uint32_t> by_node) { sum.add(by_node); });
  return sum.average();
}

uint32_t preferred_node(std::span<const uint32_t> by_node) {
  uint32_t most = 0;
  uint32_t second = 0;
  uint32_t best = kNoNode;
  for (uint32_t node = 0; node < by_node.size(); ++node) {
    if (by_node[node] > most) {
      second = most;
      most = by_node[node];
      best = node;
    } else {
      second = std::max(second, by_node[node]);
    }
  }
  return most > 2 * uint64_t{second} + 1 ? best : kNoNode;
}

}  // namespace bosk::affinity
