// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cuts a range into batches, and hands them to a crew where it is worth it.
#include "memory/migration.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>

#include "base/pages.h"
#include "base/syscalls.h"
#include "memory/huge_pages.h"
#include "memory/migration_batch.h"

namespace bosk::memory {
namespace {

/// So many that the price of a call is below a hundredth of what it moves, and few enough that what is worked with
/// stays in a cache of the second level.
constexpr uint32_t kBatchPages = 16384;
/// With a crew they are smaller: the last batch keeps the others waiting.
constexpr uint32_t kCrewBatchPages = 4096;
constexpr size_t kLeastCrewPages = size_t{2} * kCrewBatchPages;
/// Below this the arrays are on the stack.
constexpr uint32_t kSmallPages = 48;
constexpr uint32_t kMostCrew = 64;

constinit std::atomic<const Crew*> the_crew{nullptr};
constinit std::atomic<MovePages> other_kernel{nullptr};

/// Arrays for `pages`, on the caller's stack if these are few or the kernel has no memory.
class WorkspaceHolder {
 public:
  explicit WorkspaceHolder(size_t pages) {
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(pages, kBatchPages));
    if (wanted > kSmallPages) {
      bytes_ = (wanted * Workspace::kBytesPerPage + base::kPage - 1) & ~(base::kPage - 1);
      mapped_ = base::map_pages(bytes_);
    }
    space.lay_out(mapped_ != nullptr ? mapped_ : small_, mapped_ != nullptr ? wanted : kSmallPages);
  }
  ~WorkspaceHolder() { base::unmap_pages(mapped_, bytes_); }
  WorkspaceHolder(const WorkspaceHolder&) = delete;
  WorkspaceHolder& operator=(const WorkspaceHolder&) = delete;

  Workspace space;

 private:
  void* mapped_ = nullptr;
  size_t bytes_ = 0;
  alignas(void*) char small_[kSmallPages * Workspace::kBytesPerPage];
};

uintptr_t address_of(const char* at) { return reinterpret_cast<uintptr_t>(at); }

Moved move_run(const Batch& whole, size_t pages, const Workspace& space) {
  Moved result;
  const size_t bytes = page_bytes();
  for (size_t at = 0; at < pages;) {
    Batch batch = whole;
    batch.first += at * bytes;
    batch.count = static_cast<uint32_t>(
        pages - at <= space.most ? pages - at : whole_blocks(address_of(batch.first), space.most));
    if (batch.nodes != nullptr) batch.nodes += at;
    if (batch.outcomes != nullptr) batch.outcomes += at;
    result.add(move_batch(batch, space));
    at += batch.count;
  }
  return result;
}

/// A run of pages with one target that several threads take batches of.
struct SharedRun {
  Batch whole;
  size_t pages;
  std::atomic<size_t> next{0};  // relaxed: it only hands out numbers
  // Relaxed adds: whoever lends the crew returns after all calls have returned, and orders them before that.
  std::atomic<uint64_t> sums[6]{};

  void work() {
    const WorkspaceHolder holder(kCrewBatchPages);
    Moved mine;
    const size_t before = pages_before(address_of(whole.first));
    for (;;) {
      // Counted from where the first huge page begins.
      const size_t from = next.fetch_add(kCrewBatchPages, std::memory_order_relaxed);
      if (from >= before + pages) break;
      const size_t at = from > before ? from - before : 0;
      const size_t end = std::min(from + kCrewBatchPages, before + pages) - before;
      Batch part = whole;
      part.first += at * page_bytes();
      if (part.outcomes != nullptr) part.outcomes += at;
      mine.add(move_run(part, end - at, holder.space));
    }
    const uint64_t counts[] = {mine.moved,   mine.already,   mine.absent,
                               mine.refused, mine.no_memory, mine.unsplit};
    for (uint32_t i = 0; i < 6; ++i) sums[i].fetch_add(counts[i], std::memory_order_relaxed);
  }
  Moved result() const {
    uint64_t s[6];
    for (uint32_t i = 0; i < 6; ++i) s[i] = sums[i].load(std::memory_order_relaxed);
    return {s[0], s[1], s[2], s[3], s[4], s[5]};
  }
};

Moved move_by_crew(const Crew& crew, const Batch& whole, size_t pages) {
  SharedRun run{whole, pages};
  const size_t batches = (pages + kCrewBatchPages - 1) / kCrewBatchPages;
  crew.run(
      crew.data, whole.node, static_cast<uint32_t>(std::min<size_t>(batches, kMostCrew)),
      [](void* context) { static_cast<SharedRun*>(context)->work(); }, &run);
  return run.result();
}

/// Where the run of one target that begins at `at` ends.
size_t end_of_run(const NodeIndex* nodes, size_t at, size_t pages) {
  size_t end = at + 1;
  while (end < pages && nodes[end] == nodes[at]) ++end;
  return end;
}

Moved move_by_nodes(const Crew* crew, const Batch& whole, size_t pages, const Workspace& space) {
  Moved result;
  const size_t bytes = page_bytes();
  size_t pending = 0;  // pages before the present run that are not sent yet begin here
  const auto part_from = [&](size_t at) {
    Batch part = whole;
    part.first += at * bytes;
    part.nodes += at;
    if (part.outcomes != nullptr) part.outcomes += at;
    return part;
  };
  for (size_t at = 0; at < pages;) {
    const size_t end = end_of_run(whole.nodes, at, pages);
    if (crew != nullptr && end - at >= kLeastCrewPages) {
      if (pending < at) result.add(move_run(part_from(pending), at - pending, space));
      Batch run = part_from(at);
      run.node = whole.nodes[at];
      run.nodes = nullptr;
      result.add(move_by_crew(*crew, run, end - at));
      pending = end;
    }
    at = end;
  }
  if (pending < pages) result.add(move_run(part_from(pending), pages - pending, space));
  return result;
}

char* first_page(const void* begin) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(begin) & ~(page_bytes() - 1));
}

}  // namespace

void Moved::count(PageOutcome outcome, uint64_t pages) {
  switch (outcome) {
    case PageOutcome::kMoved:
      moved += pages;
      break;
    case PageOutcome::kAlready:
      already += pages;
      break;
    case PageOutcome::kAbsent:
      absent += pages;
      break;
    case PageOutcome::kRefused:
      refused += pages;
      break;
    case PageOutcome::kNoMemory:
      no_memory += pages;
      break;
    case PageOutcome::kUnsplit:
      unsplit += pages;
      break;
  }
}

void Moved::add(const Moved& other) {
  moved += other.moved;
  already += other.already;
  absent += other.absent;
  refused += other.refused;
  no_memory += other.no_memory;
  unsplit += other.unsplit;
}

size_t page_bytes() { return getauxval(AT_PAGESZ); }

long call_move_pages(unsigned long count, void** pages, const int* nodes, int* status) {
  const MovePages other = other_kernel.load(std::memory_order_relaxed);
  if (other != nullptr) return other(count, pages, nodes, status);
  return base::raw_syscall(SYS_move_pages, 0, static_cast<long>(count), base::address_of(pages),
                           base::address_of(nodes), base::address_of(status), MPOL_MF_MOVE);
}

void set_move_pages(MovePages call) { other_kernel.store(call, std::memory_order_relaxed); }

// release, and acquire below: what the crew is made of is there when it is used.
void set_migration_crew(const Crew* crew) { the_crew.store(crew, std::memory_order_release); }

size_t pages_of(const void* begin, size_t bytes) {
  if (bytes == 0) return 0;
  const auto first = reinterpret_cast<uintptr_t>(first_page(begin));
  uintptr_t last;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(begin), bytes - 1, &last)) return 0;
  return (last - first) / page_bytes() + 1;
}

Moved migrate_pages(const Migration& migration) {
  const size_t pages = pages_of(migration.begin, migration.bytes);
  if (pages == 0) return {};
  const Batch whole{
      first_page(migration.begin), 0, migration.node, migration.nodes, migration.outcomes,
      migration.elsewhere};
  const Crew* crew = the_crew.load(std::memory_order_acquire);
  if (crew != nullptr && migration.nodes == nullptr && pages >= kLeastCrewPages)
    return move_by_crew(*crew, whole, pages);
  const WorkspaceHolder holder(pages);
  return migration.nodes == nullptr ? move_run(whole, pages, holder.space)
                                    : move_by_nodes(crew, whole, pages, holder.space);
}

Moved migrate_pages(void* begin, size_t bytes, NodeIndex node) {
  return migrate_pages(Migration{.begin = begin, .bytes = bytes, .node = node});
}

bool locate_pages(const void* begin, size_t bytes, NodeIndex* nodes) {
  const size_t pages = pages_of(begin, bytes);
  const WorkspaceHolder holder(pages);
  const Workspace& space = holder.space;
  char* at = first_page(begin);
  for (size_t done = 0; done < pages;) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(pages - done, space.most));
    for (uint32_t i = 0; i < count; ++i) space.address[i] = at + (done + i) * page_bytes();
    if (call_move_pages(count, space.address, nullptr, space.status) < 0) return false;
    for (uint32_t i = 0; i < count; ++i) nodes[done + i] = node_of_kernel(space.status[i]);
    done += count;
  }
  return true;
}

}  // namespace bosk::memory
