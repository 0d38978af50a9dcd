// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/write_protection.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHuge = uint64_t{2} << 20;
constexpr double kGoldenSection = .6180339887498949;
constexpr double kLeastInterest = 1.0 / 256;
/// Candidates for one chunk: memory that is reserved and not used is soon less interesting than what is.
constexpr int kTries = 8;
/// Of split huge pages that cannot be joined again: this many, or one in kOneIn of them all.
constexpr uint64_t kFewSplit = 8;
constexpr uint64_t kOneIn = 50;
constexpr int kMadvCollapse = 25;

uint64_t round_down(uint64_t address, uint64_t to) { return address - address % to; }

}  // namespace

bool WriteProtection::is_there() {
  const FileDescriptor userfaultfd(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  return userfaultfd && ask_for_async_protection(userfaultfd.number());
}

WriteProtection::WriteProtection(pid_t process, FileDescriptor userfaultfd, FileDescriptor pagemap,
                                 const Shape& shape)
    : process_(process),
      userfaultfd_(std::move(userfaultfd)),
      pagemap_(std::move(pagemap)),
      shape_(shape),
      regions_(kMostPages) {}

bool WriteProtection::set_areas(const std::vector<MappedArea>& areas,
                                const std::vector<Range>& ranges) {
  const std::vector<Place> before = std::exchange(places_, {});
  auto old = before.begin();
  for (const MappedArea& area : areas) {
    if (!area.may_be_armed()) continue;
    Place place = {area.begin, area.end, 1};
    while (old != before.end() && old->begin < area.begin) ++old;
    if (old != before.end() && old->begin == area.begin) place.interest = old->interest;
    places_.push_back(place);
  }
  has_weights_ = false;
  refused_ = 0;
  for (const Range& range : ranges) {
    uffdio_register area = {};
    area.range = {range.begin, range.end - range.begin};
    area.mode = UFFDIO_REGISTER_MODE_WP;
    if (ioctl(userfaultfd_.number(), UFFDIO_REGISTER, &area) == 0) continue;
    if (errno == ESRCH) return false;
    ++refused_;
  }
  return true;
}

void WriteProtection::weigh() {
  until_.clear();
  double sum = 0;
  for (const Place& place : places_) {
    sum += static_cast<double>(place.end - place.begin) * place.interest;
    until_.push_back(sum);
  }
  has_weights_ = true;
}

WriteProtection::Place* WriteProtection::place_at(uint64_t address) {
  const auto after = std::ranges::upper_bound(places_, address, std::less<>(), &Place::begin);
  if (after == places_.begin()) return nullptr;
  Place& place = *(after - 1);
  return address < place.end ? &place : nullptr;
}

bool WriteProtection::is_taken(uint64_t begin, uint64_t end) const {
  return std::ranges::any_of(
      chunks_, [&](const Chunk& chunk) { return chunk.begin < end && begin < chunk.end; });
}

/// The first pages from `begin` on that are there. What is not there is not armed: page tables would have to be made for it.
bool WriteProtection::choose_in(uint64_t begin, uint64_t end, Chunk* chunk) {
  PagemapScanArgument scan = {};
  scan.size = sizeof scan;
  scan.begin = begin;
  scan.end = end;
  scan.regions = reinterpret_cast<uint64_t>(regions_.data());
  scan.n_regions = 1;
  scan.category_all = kPagePresent;
  scan.category_returned = kPagePresent | kPageHuge;
  if (ioctl(pagemap_.number(), kPagemapScan, &scan) < 1) return false;
  const PageRegion& region = regions_.front();
  const bool is_huge = (region.categories & kPageHuge) != 0;
  *chunk = {region.begin, region.end, is_huge ? shape_.huge_rounds : shape_.rounds, 0, is_huge};
  looked_bytes_ += chunk->end - chunk->begin;
  if (is_huge) huge_bytes_ += chunk->end - chunk->begin;
  return true;
}

bool WriteProtection::choose(Chunk* chunk) {
  if (!has_weights_) weigh();
  if (until_.empty() || until_.back() <= 0) return false;
  const uint64_t bytes = shape_.pages * kPage;
  // Steps of the golden section spread more evenly over the memory than chance, however many there are.
  next_ += kGoldenSection;
  next_ -= std::floor(next_);
  const double at = next_ * until_.back();
  const auto found = static_cast<size_t>(std::ranges::upper_bound(until_, at) - until_.begin());
  if (found == places_.size()) return false;
  Place& place = places_[found];
  const double part = (until_[found] - at) / (until_[found] - (found == 0 ? 0 : until_[found - 1]));
  const auto where = static_cast<uint64_t>(part * static_cast<double>(place.end - place.begin - 1));
  const uint64_t begin = std::max(round_down(place.begin + where, bytes), place.begin);
  const uint64_t end = std::min(round_down(begin, bytes) + bytes, place.end);
  if (is_taken(begin, end)) return false;
  if (choose_in(begin, end, chunk)) return true;
  place.interest = std::max(place.interest / 2, kLeastInterest);
  has_weights_ = false;
  return false;
}

/// As many as can be joined again; else few of those that there are, as far as we have seen.
bool WriteProtection::may_split() const {
  if (may_join_ || huge_.size() < kFewSplit) return true;
  uint64_t bytes = 0;
  for (const Place& place : places_)
    bytes += static_cast<uint64_t>(static_cast<double>(place.end - place.begin) * place.interest);
  return static_cast<double>(huge_.size() * kOneIn * kHuge) * static_cast<double>(looked_bytes_) <
         static_cast<double>(bytes) * static_cast<double>(huge_bytes_);
}

/// Somewhere in a huge page that is split already.
bool WriteProtection::choose_split(Chunk* chunk) {
  if (huge_.empty()) return false;
  const uint64_t bytes = shape_.pages * kPage;
  const uint64_t page = huge_[std::uniform_int_distribution<size_t>(0, huge_.size() - 1)(random_)];
  const uint64_t begin =
      page + std::uniform_int_distribution<uint64_t>(0, kHuge / bytes - 1)(random_) * bytes;
  if (is_taken(begin, begin + bytes) || !choose_in(begin, begin + bytes, chunk)) return false;
  chunk->rounds = shape_.huge_rounds;
  return !chunk->is_huge;
}

bool WriteProtection::begin(Look* look) {
  for (int i = 0; i < kTries; ++i) {
    Chunk chunk;
    if (!choose(&chunk)) continue;
    if (chunk.is_huge && !may_split() && !choose_split(&chunk)) continue;
    if (!protect(chunk, look, true)) continue;
    if (chunk.is_huge) {
      huge_.push_back(round_down(chunk.begin, kHuge));
      ++split_;
    }
    chunks_.push_back(chunk);
    return true;
  }
  return false;
}

/// Arms it. If it was armed, what was written to since is noted in `look`.
bool WriteProtection::protect(const Chunk& chunk, Look* look, bool is_first) {
  PagemapScanArgument scan = {};
  scan.size = sizeof scan;
  scan.flags = kScanProtects | kScanOnlyAsync;
  scan.begin = chunk.begin;
  scan.end = chunk.end;
  scan.regions = reinterpret_cast<uint64_t>(regions_.data());
  scan.n_regions = regions_.size();
  scan.category_all = kPageWritten | kPagePresent;
  scan.category_returned = kPageWritten;
  const int found = ioctl(pagemap_.number(), kPagemapScan, &scan);
  if (found < 0) {
    // EPERM: it was mapped since the ranges were registered.
    look->must_map_again = true;
    return false;
  }
  look->armed += (chunk.end - chunk.begin) / kPage;
  if (is_first) return true;
  for (int i = 0; i < found; ++i)
    for (uint64_t page = regions_[static_cast<size_t>(i)].begin;
         page < regions_[static_cast<size_t>(i)].end; page += kPage)
      look->written.push_back(page);
  return true;
}

bool WriteProtection::is_armed(uint64_t address) const {
  // Faults come in runs.
  if (address >= last_asked_.begin && address < last_asked_.end) return true;
  for (const std::vector<Chunk>* chunks : {&chunks_, &given_up_})
    for (const Chunk& chunk : *chunks)
      if (address >= chunk.begin && address < chunk.end) {
        last_asked_ = {chunk.begin, chunk.end};
        return true;
      }
  return false;
}

bool WriteProtection::is_in_huge_page(uint64_t address) {
  const uint64_t page = round_down(address, kHuge);
  if (std::ranges::find(huge_, page) != huge_.end()) return true;
  PagemapScanArgument scan = {};
  scan.size = sizeof scan;
  scan.begin = page;
  scan.end = page + kHuge;
  scan.regions = reinterpret_cast<uint64_t>(regions_.data());
  scan.n_regions = 1;
  scan.category_all = kPageHuge;
  scan.category_returned = kPageHuge;
  return ioctl(pagemap_.number(), kPagemapScan, &scan) >= 1;
}

void WriteProtection::leave_split(uint64_t address) {
  std::erase(huge_, round_down(address, kHuge));
}

void WriteProtection::look(Look* look) {
  given_up_.clear();
  last_asked_ = {};
  std::erase_if(chunks_, [&](Chunk& chunk) {
    const size_t before = look->written.size();
    if (!protect(chunk, look, false)) return true;
    const bool was_written = look->written.size() != before;
    chunk.idle = was_written ? 0 : chunk.idle + 1;
    --chunk.rounds;
    Place* place = place_at(chunk.begin);
    if (place != nullptr && (was_written || chunk.idle == shape_.idle_rounds)) {
      const double interest = was_written ? std::min(place->interest * 2, 1.0)
                                          : std::max(place->interest * .75, kLeastInterest);
      has_weights_ = has_weights_ && interest == place->interest;
      place->interest = interest;
    }
    if (chunk.rounds != 0 && chunk.idle < shape_.idle_rounds) return false;
    give_up(chunk);
    given_up_.push_back(chunk);
    return true;
  });
}

void WriteProtection::finish() {
  chunks_.clear();
  while (may_join_ && !huge_.empty()) join(huge_.back());
}

/// What is armed of it costs a fault a page and is left so, but a huge page cannot be joined with such pages.
void WriteProtection::give_up(const Chunk& chunk) {
  const uint64_t page = round_down(chunk.begin, kHuge);
  if (may_join_ && std::ranges::find(huge_, page) != huge_.end()) join(page);
}

void WriteProtection::join(uint64_t huge_page) {
  uffdio_writeprotect open = {};
  open.range = {huge_page, kHuge};
  iovec range = {reinterpret_cast<void*>(huge_page), kHuge};
  const FileDescriptor process(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
  if (ioctl(userfaultfd_.number(), UFFDIO_WRITEPROTECT, &open) == 0 &&
      syscall(SYS_process_madvise, process.number(), &range, 1, kMadvCollapse, 0) >= 0) {
    ++joined_;
  } else if (errno == EPERM) {
    may_join_ = false;
    return;
  }
  // Whatever else it was (unmapped, no huge page free): it is no huge page of ours any more.
  std::erase(huge_, huge_page);
}

}  // namespace bosk::affinity
