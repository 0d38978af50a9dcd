// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// move_pages, get_mempolicy and files of /sys, by raw system calls; getcpu by way of the vDSO.
#include "memory/next_touch/kernel_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>

#include <atomic>

#include "base/pages.h"
#include "base/read_text.h"
#include "base/syscalls.h"
#include "memory/huge_pages.h"

// Linux 5.15 and 6.9.
#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5
#endif

namespace bosk::memory {
namespace {

constinit std::atomic<const KernelNodesForTests*> for_tests{nullptr};
const KernelNodesForTests* invented() { return for_tests.load(std::memory_order_acquire); }

/// Appends to a text that has room.
char* put(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  *to = '\0';
  return to;
}
char* put(char* to, uint64_t number) {
  char digits[20];
  int n = 0;
  do digits[n++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (n > 0) *to++ = digits[--n];
  *to = '\0';
  return to;
}

const char* parse_number(const char* text, uint64_t* value) {
  *value = 0;
  while (*text >= '0' && *text <= '9') *value = *value * 10 + static_cast<uint64_t>(*text++ - '0');
  return text;
}

/// How many numbers are in a list like "0-3,8".
uint32_t count_in_list(const char* text) {
  uint32_t n = 0;
  while (*text >= '0' && *text <= '9') {
    uint64_t first, last;
    text = parse_number(text, &first);
    last = first;
    if (*text == '-') text = parse_number(text + 1, &last);
    n += static_cast<uint32_t>(last - first + 1);
    if (*text == ',') ++text;
  }
  return n;
}

/// The number behind a word in a text, else `none`.
uint64_t number_behind(const char* text, const char* word, uint64_t none) {
  for (; *text != '\0'; ++text) {
    const char* a = text;
    const char* b = word;
    while (*b != '\0' && *a == *b) ++a, ++b;
    if (*b != '\0') continue;
    uint64_t value;
    return parse_number(a, &value) == a ? none : value;
  }
  return none;
}

uint64_t free_pages(uint32_t node) {
  if (const auto* t = invented(); t != nullptr && t->free_pages != nullptr)
    return t->free_pages(node);
  char path[64];
  put(put(put(path, "/sys/devices/system/node/node"), node), "/vmstat");
  char text[256];  // the first line is it
  if (!base::read_text(path, text)) return UINT64_MAX;
  return number_behind(text, "nr_free_pages ", UINT64_MAX);
}

// Free memory is looked at once for so many pages: reading the file takes longer than bringing some.
// In a full node every so many touches look again.
constexpr int32_t kPagesBetweenLooks = 4096;
constexpr int32_t kTouchesBetweenLooks = 64;
/// What stays free: below it the kernel begins to reclaim, and puts pages elsewhere instead.
constexpr uint64_t kReserve = 2048;

/// Whether a cpuset forbids a node, and whether pages that were made for it have come there, is asked once for so many
/// pages: where one touch brings one page, each question costs a tenth of it.
constexpr int32_t kPagesBetweenQuestions = 64;

struct Room {
  std::atomic<int32_t> left;     ///< positive: so many pages may come before the next look
  std::atomic<int32_t> refused;  ///< touches since the node was seen to be full
  std::atomic<bool> plenty;      ///< nowhere near full, by the last look
  std::atomic<int32_t> allowed;  ///< positive: for so many pages it need not be asked
  std::atomic<int32_t> came;     ///< the same of where they came
};

/// relaxed: an estimate. Somebody else's subtraction in between only makes for one question more.
bool within(std::atomic<int32_t>& budget, uint32_t pages) {
  const auto n = static_cast<int32_t>(pages);
  return n < kPagesBetweenQuestions && budget.load(std::memory_order_relaxed) >= n &&
         budget.fetch_sub(n, std::memory_order_relaxed) >= n;
}
constinit Room rooms[kMostKernelNodes] = {};

}  // namespace

void set_kernel_nodes_for_tests(const KernelNodesForTests* answers) {
  for_tests.store(answers, std::memory_order_release);
  for (Room& room : rooms) {
    room.left.store(0, std::memory_order_relaxed);
    room.refused.store(0, std::memory_order_relaxed);
    room.allowed.store(0, std::memory_order_relaxed);
    room.came.store(0, std::memory_order_relaxed);
  }
}

uint32_t count_memory_nodes() {
  if (const auto* t = invented(); t != nullptr && t->count != 0) return t->count;
  static constinit std::atomic<uint32_t> known{0};
  uint32_t count = known.load(std::memory_order_relaxed);
  if (count != 0) return count;
  char text[256];
  count = base::read_text("/sys/devices/system/node/has_memory", text)
              ? count_in_list(text)
              : 1;  // a kernel without NUMA
  if (count == 0) count = 1;
  known.store(count, std::memory_order_relaxed);
  return count;
}

uint32_t node_of_caller() {
  if (const auto* t = invented(); t != nullptr && t->node_of_caller != nullptr)
    return t->node_of_caller();
  if (count_memory_nodes() == 1) return 0;  // nobody asks which
  // The C library's asks no kernel where the machine's processor tells (x86), and uses no TLS unless it fails.
  unsigned cpu = 0, node = 0;
  return getcpu(&cpu, &node) == 0 ? node : 0;
}

uint32_t node_of_thread(int tid) {
  if (const auto* t = invented(); t != nullptr && t->node_of_caller != nullptr)
    return t->node_of_caller();
  char path[64], text[512];
  put(put(put(path, "/proc/self/task/"), static_cast<uint64_t>(tid)), "/stat");
  if (!base::read_text(path, text)) return node_of_caller();
  // The name may hold anything, also blanks and brackets; field 39, behind it, is the CPU.
  const char* at = text;
  for (const char* c = text; *c != '\0'; ++c)
    if (*c == ')') at = c;
  for (int field = 2; field < 39 && *at != '\0'; ++at)
    if (*at == ' ') ++field;
  uint64_t cpu;
  if (parse_number(at, &cpu) == at) return node_of_caller();
  if (!base::read_text("/sys/devices/system/node/online", text)) return node_of_caller();
  uint64_t last = 0;
  for (const char* c = text; *c >= '0' && *c <= '9';) {
    c = parse_number(c, &last);
    if (*c == '-' || *c == ',') ++c;
  }
  for (uint64_t node = 0; node <= last; ++node) {
    put(put(put(put(path, "/sys/devices/system/node/node"), node), "/cpu"), cpu);
    if (base::raw_syscall(SYS_faccessat, AT_FDCWD, base::address_of(path), 0) == 0)
      return static_cast<uint32_t>(node);
  }
  return node_of_caller();
}

void nodes_of_pages(uintptr_t first, uint32_t count, int* nodes) {
  if (const auto* t = invented(); t != nullptr && t->node_of_page != nullptr) {
    for (uint32_t i = 0; i < count; ++i) nodes[i] = t->node_of_page(first + i * base::kPage);
    return;
  }
  uintptr_t pages[kNodesAtOnce];
  for (uint32_t i = 0; i < count; ++i) pages[i] = first + i * base::kPage;
  const long failed = base::raw_syscall(SYS_move_pages, 0, count, base::address_of(pages), 0,
                                        base::address_of(nodes), 0);
  if (failed < 0)
    for (uint32_t i = 0; i < count; ++i) nodes[i] = static_cast<int>(failed);
}

bool came_to_node(uintptr_t last_page, uint32_t pages, uint32_t node) {
  if (invented() != nullptr || node >= kMostKernelNodes) return true;
  Room& room = rooms[node];
  if (room.plenty.load(std::memory_order_relaxed) && within(room.came, pages)) return true;
  int on;
  nodes_of_pages(last_page, 1, &on);
  const bool good = on < 0 || static_cast<uint32_t>(on) == node;
  room.came.store(good ? kPagesBetweenQuestions : 0, std::memory_order_relaxed);
  return good;
}

long move_to_node(uintptr_t first, uint32_t count, uint32_t node, int* status) {
  if (const auto* t = invented(); t != nullptr && t->node_of_page != nullptr) {
    for (uint32_t i = 0; i < count; ++i) status[i] = static_cast<int>(node);
    return 0;
  }
  uintptr_t pages[kNodesAtOnce];
  int nodes[kNodesAtOnce];
  for (uint32_t i = 0; i < count; ++i) {
    pages[i] = first + i * base::kPage;
    nodes[i] = static_cast<int>(node);
    status[i] = -EBUSY;
  }
  return base::raw_syscall(SYS_move_pages, 0, count, base::address_of(pages),
                           base::address_of(nodes), base::address_of(status), MPOL_MF_MOVE);
}

bool part_from_neighbours(uintptr_t begin, uintptr_t end, uintptr_t goes, uint32_t node) {
  if (invented() != nullptr) return true;
  const uintptr_t size = huge_page_bytes();
  const uintptr_t block = goes & ~(size - 1);
  if (begin <= block && block + size <= end) return true;
  PartToGo part;
  part.begin = begin > block ? begin : block;
  part.end = end < block + size ? end : block + size;
  part.goes = goes;
  part.target = static_cast<int>(node);
  part.elsewhere = 0;
  HugePageMap map;
  return set_free(map, part);
}

bool node_is_allowed(uint32_t node, uint32_t pages) {
  if (invented() != nullptr || node >= kMostKernelNodes) return true;
  Room& room = rooms[node];
  if (within(room.allowed, pages)) return true;
  NodeMask allowed = {};
  // One bit more than it may write: the kernel counts so.
  const long failed = base::raw_syscall(SYS_get_mempolicy, 0, base::address_of(allowed.words),
                                        kMostKernelNodes, 0, MPOL_F_MEMS_ALLOWED);
  const bool good = failed < 0 || allowed.has(node);
  room.allowed.store(good ? kPagesBetweenQuestions : 0, std::memory_order_relaxed);
  return good;
}

bool node_has_room(uint32_t node, uint32_t pages) {
  if (node >= kMostKernelNodes) return true;
  Room& room = rooms[node];
  // relaxed throughout: an estimate, and nothing else depends on it.
  if (room.left.fetch_sub(static_cast<int32_t>(pages), std::memory_order_relaxed) >=
      static_cast<int32_t>(pages))
    return true;
  const int32_t refused = room.refused.load(std::memory_order_relaxed);
  if (refused > 0 && refused < kTouchesBetweenLooks) {
    room.refused.store(refused + 1, std::memory_order_relaxed);
    room.left.store(0, std::memory_order_relaxed);
    return false;
  }
  const uint64_t free = free_pages(node);
  const bool enough = free > kReserve + pages;
  const uint64_t budget = enough ? (free - kReserve) / 2 : 0;
  room.left.store(
      budget < uint64_t{kPagesBetweenLooks} ? static_cast<int32_t>(budget) : kPagesBetweenLooks,
      std::memory_order_relaxed);
  room.refused.store(enough ? 0 : 1, std::memory_order_relaxed);
  room.plenty.store(budget >= uint64_t{kPagesBetweenLooks}, std::memory_order_relaxed);
  return enough;
}

void node_was_full(uint32_t node) {
  if (node >= kMostKernelNodes) return;
  rooms[node].refused.store(1, std::memory_order_relaxed);
  rooms[node].left.store(0, std::memory_order_relaxed);
  rooms[node].plenty.store(false, std::memory_order_relaxed);
}

PagePolicy policy_of_page(uintptr_t page, NodeMask* nodes) {
  *nodes = {};
  int mode = MPOL_DEFAULT;
  if (base::raw_syscall(SYS_get_mempolicy, base::address_of(&mode), base::address_of(nodes->words),
                        kMostKernelNodes, static_cast<long>(page), MPOL_F_ADDR) != 0)
    return PagePolicy::kAnywhere;
  constexpr int kModeFlags = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | (1 << 13);
  switch (mode & ~kModeFlags) {
    case MPOL_BIND:
    case MPOL_PREFERRED_MANY:
      return PagePolicy::kThese;
    case MPOL_PREFERRED:
      // Without a node it means the caller's, as the default does.
      for (const uint64_t word : nodes->words)
        if (word != 0) return PagePolicy::kFixed;
      return PagePolicy::kAnywhere;
    case MPOL_DEFAULT:
    case MPOL_LOCAL:
      return PagePolicy::kAnywhere;
    default:  // interleaved, weighted
      return PagePolicy::kFixed;
  }
}

void prefer_node(uint32_t node) {
  NodeMask mask = {};
  mask.add(node);
  base::raw_syscall(SYS_set_mempolicy, MPOL_PREFERRED, base::address_of(mask.words),
                    kMostKernelNodes + 1);
}

void run_on_node(uint32_t node) {
  char path[64], text[256];
  put(put(put(path, "/sys/devices/system/node/node"), node), "/cpulist");
  if (!base::read_text(path, text)) return;
  constexpr uint64_t kMostCpus = 1024;
  uint64_t cpus[kMostCpus / 64] = {};
  for (const char* c = text; *c >= '0' && *c <= '9';) {
    uint64_t first, last;
    c = parse_number(c, &first);
    last = first;
    if (*c == '-') c = parse_number(c + 1, &last);
    for (uint64_t cpu = first; cpu <= last && cpu < kMostCpus; ++cpu)
      cpus[cpu / 64] |= uint64_t{1} << (cpu % 64);
    if (*c == ',') ++c;
  }
  base::raw_syscall(SYS_sched_setaffinity, 0, sizeof cpus, base::address_of(cpus));
}

}  // namespace bosk::memory
