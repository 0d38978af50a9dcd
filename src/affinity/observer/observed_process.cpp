// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/observed_process.h"

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "affinity/observer/taken_userfaultfd.h"

namespace bosk::affinity {
namespace {

/// The kernel's number for the CPU time of another process.
clockid_t cpu_clock_of(pid_t process) {
  constexpr unsigned kOfProcess = 2;
  return static_cast<clockid_t>(~static_cast<unsigned>(process) << 3 | kOfProcess);
}

}  // namespace

uint16_t Spaces::fresh(bool* is_used_again) {
  *is_used_again = given_ >= kMost;
  return static_cast<uint16_t>(given_++ % kMost);
}

uint16_t Spaces::of_file(uint64_t device, uint64_t inode, bool* is_used_again) {
  *is_used_again = false;
  for (const File& file : files_)
    if (file.device == device && file.inode == inode) return file.space;
  const uint16_t space = fresh(is_used_again);
  std::erase_if(files_, [&](const File& file) { return file.space == space; });
  files_.push_back({device, inode, space});
  return space;
}

ObservedProcess::ObservedProcess(Hellos::Hello hello, uint16_t space,
                                 const WriteProtection::Shape& shape, const Means& means)
    : number_(hello.process),
      space_(space),
      means_(means),
      why_without_(hello.userfaultfd ? 0 : hello.error),
      userfaultfd_(std::move(hello.userfaultfd)),
      shape_(shape) {
  if (!means.has_events) counts_ = std::make_unique<FaultCounts>(number_);
}

ObservedProcess::ObservedProcess(pid_t process, uint16_t space, const WriteProtection::Shape& shape,
                                 const Means& means)
    : number_(process),
      space_(space),
      means_(means),
      why_without_(EAGAIN),
      shape_(shape),
      was_attached_(true) {
  if (!means.has_events) counts_ = std::make_unique<FaultCounts>(number_);
  cpu_time_since();  // what it has taken before is not ours to share
}

bool ObservedProcess::locate(uint64_t address, uint64_t* place, uint16_t* space) const {
  if (address >= kSpaceBytes) return false;
  const MappedArea* area = find_area(areas_, address);
  if (area == nullptr || !area->is_shared()) {
    // What was mapped since the last look is taken for its own.
    *place = address;
    *space = space_;
    return area == nullptr || area->may_be_armed();
  }
  *place = address - area->begin + area->offset;
  *space = spaces_[static_cast<size_t>(area - areas_.data())];
  return *place < kSpaceBytes && area->may_be_armed();
}

void ObservedProcess::leave_alone() {
  userfaultfd_ = FileDescriptor();
  has_source_ = true;
  set_gone();
}

bool ObservedProcess::is_in_huge_page(uint64_t address) {
  if (protection_) return protection_->is_in_huge_page(address);
  return soft_dirty_ && soft_dirty_->is_in_huge_page(address);
}

void ObservedProcess::leave_split(uint64_t address) {
  if (protection_) protection_->leave_split(address);
  if (soft_dirty_) soft_dirty_->leave_split(address);
}

bool ObservedProcess::is_its_own_watcher() const {
  if (soft_dirty_ && uses_soft_dirty(number_)) return true;
  return (!has_source_ || protection_ || soft_dirty_) && has_userfaultfd(number_);
}

/// A userfaultfd, which can be had of small parts of memory at a time; else soft-dirty marks, of which nothing can be told without events: all threads have faults everywhere.
void ObservedProcess::look_for_source() {
  if (was_attached_ && why_without_ == EAGAIN) {
    TakenUserfaultfd taken = take_userfaultfd(number_);
    why_without_ = taken.error;
    userfaultfd_ = std::move(taken.descriptor);
    if (why_without_ == EAGAIN) return;
  }
  has_source_ = true;
  if (userfaultfd_) {
    const std::string name = "/proc/" + std::to_string(number_) + "/pagemap";
    FileDescriptor pagemap(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (pagemap)
      protection_ = std::make_unique<WriteProtection>(number_, std::move(userfaultfd_),
                                                      std::move(pagemap), shape_);
  } else if (uses_soft_dirty(number_)) {
    has_its_own_ = true;
  } else if (means_.has_events && means_.has_soft_dirty) {
    soft_dirty_ = std::make_unique<SoftDirty>(number_);
  }
}

/// It has ended, or became another program: that says hello itself, or has to be asked again.
void ObservedProcess::lose_memory() {
  set_gone();
  if (!was_attached_) return;
  has_source_ = false;
  why_without_ = EAGAIN;
}

bool ObservedProcess::look_again(const std::function<uint16_t(const MappedArea&)>& space_of,
                                 const std::function<void(uint32_t thread)>& ended) {
  const std::vector<MappedArea> before = std::exchange(areas_, mapped_areas(number_));
  spaces_.assign(areas_.size(), space_);
  for (size_t i = 0; i < areas_.size(); ++i)
    if (areas_[i].is_shared()) spaces_[i] = space_of(areas_[i]);
  if (is_its_own_watcher()) {
    has_its_own_ = true;
    leave_alone();
  }
  if (!has_source_) look_for_source();
  if (protection_ && !protection_->set_areas(areas_, ranges_to_register(before, areas_)))
    lose_memory();
  if (counts_) counts_->find_threads(ended);
  is_mapped_ = true;
  return !areas_.empty();
}

uint64_t ObservedProcess::cpu_time_since() {
  timespec now = {};
  if (clock_gettime(cpu_clock_of(number_), &now) != 0) return 0;
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t time =
      static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
  const uint64_t before = std::exchange(cpu_time_, std::max(cpu_time_, time));
  return cpu_time_ - before;
}

}  // namespace bosk::affinity
