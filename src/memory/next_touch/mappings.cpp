// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PROCMAP_QUERY (Linux 6.11) asks for one mapping in half a microsecond. Before that there is only the
// text of all mappings, which takes longer the more there are.
#include "memory/next_touch/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <atomic>

#include "base/pages.h"
#include "base/syscalls.h"
#include "memory/next_touch/high_file.h"

namespace bosk::memory {
namespace {

/// As in <linux/fs.h> since 6.11.
struct MapQuery {
  uint64_t size;
  uint64_t flags;
  uint64_t address;
  uint64_t begin;
  uint64_t end;
  uint64_t vma_flags;
  uint64_t page_size;
  uint64_t offset;
  uint64_t inode;
  uint32_t device_major;
  uint32_t device_minor;
  uint32_t name_size;
  uint32_t build_id_size;
  uint64_t name;
  uint64_t build_id;
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
enum : uint64_t { kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8, kOrBehind = 16 };

constexpr int kNotOpen = -1;
constexpr int kNoQuery = -2;  ///< the kernel does not know it
constinit std::atomic<int> query_file{kNotOpen};

int open_maps() {
  return static_cast<int>(base::raw_syscall(
      SYS_openat, AT_FDCWD, base::address_of("/proc/self/maps"), O_RDONLY | O_CLOEXEC));
}

/// 1: found, 0: there is none, negative: ask otherwise.
int query(uintptr_t at, uint64_t flags, Mapping* mapping) {
  int file = query_file.load(std::memory_order_relaxed);
  if (file == kNoQuery) return -1;
  if (file == kNotOpen) {
    file = to_high_file(open_maps());
    if (file < 0) return -1;
    int none = kNotOpen;
    // relaxed: the number is all there is to see.
    if (!query_file.compare_exchange_strong(none, file, std::memory_order_relaxed)) {
      base::raw_syscall(SYS_close, file);
      file = none;
      if (file < 0) return -1;
    }
  }
  MapQuery q = {};
  q.size = sizeof q;
  q.flags = flags;
  q.address = at;
  const long failed =
      base::raw_syscall(SYS_ioctl, file, static_cast<long>(kMapQuery), base::address_of(&q));
  if (failed == -ENOENT) return 0;
  if (failed != 0) {
    // Closed by the program, and perhaps something else by now: never again.
    if (failed == -ENOTTY) base::raw_syscall(SYS_close, file);
    query_file.store(kNoQuery, std::memory_order_relaxed);
    return -1;
  }
  mapping->begin = q.begin;
  mapping->end = q.end;
  mapping->prot = ((q.vma_flags & kReadable) != 0 ? PROT_READ : 0) |
                  ((q.vma_flags & kWritable) != 0 ? PROT_WRITE : 0) |
                  ((q.vma_flags & kExecutable) != 0 ? PROT_EXEC : 0);
  mapping->shared = (q.vma_flags & kShared) != 0;
  mapping->file = q.inode != 0;
  mapping->huge = q.page_size > base::kPage;
  return 1;
}

/// Reads /proc/self/maps character by character through a small buffer.
class MapsText {
 public:
  MapsText() : file_(open_maps()) {}
  ~MapsText() {
    if (file_ >= 0) base::raw_syscall(SYS_close, file_);
  }
  MapsText(const MapsText&) = delete;
  MapsText& operator=(const MapsText&) = delete;

  int next() {
    if (at_ == end_) {
      const long got =
          file_ < 0 ? -1
                    : base::raw_syscall(SYS_read, file_, base::address_of(text_), sizeof text_);
      if (got <= 0) return -1;
      at_ = 0;
      end_ = static_cast<size_t>(got);
    }
    return static_cast<unsigned char>(text_[at_++]);
  }
  /// A number, and the character behind it.
  uint64_t number(unsigned base, int* behind) {
    uint64_t value = 0;
    for (;;) {
      const int c = next();
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) {
        *behind = c;
        return value;
      }
      value = value * base + static_cast<unsigned>(digit);
    }
  }

 private:
  int file_;
  size_t at_ = 0;
  size_t end_ = 0;
  char text_[1024];
};

bool read_text(uintptr_t at, uint64_t flags, Mapping* mapping) {
  MapsText text;
  for (;;) {
    int c;
    mapping->begin = text.number(16, &c);
    if (c != '-') return false;
    mapping->end = text.number(16, &c);
    mapping->prot = (text.next() == 'r' ? PROT_READ : 0);
    mapping->prot |= (text.next() == 'w' ? PROT_WRITE : 0);
    mapping->prot |= (text.next() == 'x' ? PROT_EXEC : 0);
    mapping->shared = text.next() == 's';
    text.next();
    text.number(16, &c);  // offset
    text.number(16, &c);  // device
    text.number(16, &c);
    mapping->file = text.number(10, &c) != 0;
    while (c == ' ') c = text.next();
    // What the kernel calls them where no file system's name is given.
    const char* huge = "/anon_hugepage";
    for (; c == *huge; ++huge) c = text.next();
    mapping->huge = *huge == 0;
    while (c != '\n' && c >= 0) c = text.next();
    if (c < 0) return false;
    if (at < mapping->end) return mapping->begin <= at || flags == kOrBehind;
  }
}

}  // namespace

bool mapping_at(uintptr_t at, Mapping* mapping) {
  const int found = query(at, 0, mapping);
  return found >= 0 ? found == 1 : read_text(at, 0, mapping);
}

bool mapping_at_or_behind(uintptr_t at, Mapping* mapping) {
  const int found = query(at, kOrBehind, mapping);
  return found >= 0 ? found == 1 : read_text(at, kOrBehind, mapping);
}

long check_unlocked(uintptr_t begin, uintptr_t end) {
  // Does nothing to private and anonymous mappings, but tells these two.
  return base::raw_syscall(SYS_msync, static_cast<long>(begin), static_cast<long>(end - begin),
                           MS_INVALIDATE);
}

bool in_main_stack(const Mapping& mapping) {
  // The kernel puts it above the first frame.
  const uintptr_t random = getauxval(AT_RANDOM);
  return random >= mapping.begin && random < mapping.end;
}

void mappings_forget_after_fork() {
  const int file = query_file.load(std::memory_order_relaxed);
  if (file >= 0) base::raw_syscall(SYS_close, file);
  if (file != kNoQuery) query_file.store(kNotOpen, std::memory_order_relaxed);
}

}  // namespace bosk::memory
