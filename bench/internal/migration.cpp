// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Migration in batches against one bare move_pages(2) of the same pages, in turns: `migrate-N` and `move-pages-N` in ns
// a page, `migrate-over-N` their quotient (the median of the quotients of neighbours in time). With several nodes the
// pages go to and fro between the first two, which `./dev bench migration --lab` shows on a virtual machine; with one they
// are there already, and it is the calls alone. `migrate-known-over-N`, of a few pages between nodes: the caller knows that they
// are elsewhere, as for areas of which the books do. `migrate-huge-N` and the like, in us a huge page: N of them, of which the
// bare call is given the first page each. `split-huge`: what it takes to set a part of a huge page free, in us.
#include "memory/migration.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "../programs/bench.h"
#include "memory/huge_pages.h"
#include "topology/source.h"

namespace {

using namespace bosk;

constexpr size_t kPage = 4096;

constexpr size_t kInHuge = 512;
constexpr size_t kHuge = kInHuge * kPage;

enum class Size { kSmall, kHuge };

/// So many bytes from where a huge page may begin.
char* map_aligned(size_t bytes, void** mapping) {
  *mapping =
      mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*mapping == MAP_FAILED) bench_fail("migration: out of memory");
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(*mapping) + kHuge - 1) & -kHuge);
}

/// Pages that go to and fro, by whoever is asked.
class Pages {
 public:
  Pages(size_t count, Size size)
      : count_(size == Size::kHuge ? count * kInHuge : count),
        memory_(map_aligned(bytes(), &mapping_)),
        address_(count),
        nodes_(count),
        status_(count) {
    madvise(memory_, bytes(), size == Size::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    // A policy of its own keeps automatic balancing away, of whose pages move_pages says that they are absent.
    const unsigned long preferred = 1UL << memory::kernel_node_of(0);
    syscall(SYS_mbind, memory_, bytes(), MPOL_PREFERRED, &preferred, 8 * sizeof preferred, 0);
    for (size_t i = 0; i < count; ++i) address_[i] = memory_ + i * (bytes() / count);
    for (size_t i = 0; i < count_; ++i) memory_[i * kPage] = 1;
    by_bosk(0);
  }
  ~Pages() { munmap(mapping_, bytes() + kHuge); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uintptr_t first() const { return reinterpret_cast<uintptr_t>(memory_); }
  /// By the mappings that begin in them, which nothing else is in; kernels before 6.7 tell nobody else.
  size_t huge_pages() const {
    FILE* file = fopen("/proc/self/smaps", "r");
    if (file == nullptr) bench_fail("migration: no smaps");
    char line[1000];
    size_t kib = 0;
    bool within = false;
    while (fgets(line, sizeof line, file) != nullptr) {
      unsigned long begin;
      unsigned long end;
      unsigned long found;
      if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
        within = end > first() && begin < first() + bytes();
      else if (within && sscanf(line, "AnonHugePages: %lu", &found) == 1)
        kib += found;
    }
    fclose(file);
    return kib * 1024 / kHuge;
  }

  double by_bosk(memory::NodeIndex to, bool elsewhere = false) {
    memory::Migration migration;
    migration.begin = memory_;
    migration.bytes = bytes();
    migration.node = to;
    migration.elsewhere = elsewhere;
    const double start = now_ns();
    const memory::Moved moved = memory::migrate_pages(migration);
    const double took = now_ns() - start;
    if (moved.moved + moved.already != count_) bench_fail("migration: pages did not move");
    return took;
  }
  double by_one_call(memory::NodeIndex to) {
    nodes_.assign(nodes_.size(), memory::kernel_node_of(to));
    const double start = now_ns();
    const long failed = syscall(SYS_move_pages, 0, address_.size(), address_.data(), nodes_.data(),
                                status_.data(), MPOL_MF_MOVE);
    const double took = now_ns() - start;
    if (failed != 0) bench_fail("migration: move_pages failed");
    return took;
  }

 private:
  size_t bytes() const { return count_ * kPage; }

  size_t count_;  // small pages
  void* mapping_ = nullptr;
  char* memory_;
  std::vector<void*> address_;
  std::vector<int> nodes_;
  std::vector<int> status_;
};

void measure(const topology::Machine& machine, size_t count, Size size) {
  Pages pages(count, size);
  const bool huge = size == Size::kHuge;
  if (huge && pages.huge_pages() != count) bench_fail("migration: no huge pages here");
  const memory::NodeIndex other = machine.n_nodes > 1 ? 1 : 0;
  std::vector<double> ours;
  std::vector<double> bare;
  std::vector<double> quotients;
  std::vector<double> known;
  const bool both = !huge && other != 0 && count < 8;
  const double per_page = 2.0 * static_cast<double>(count) * (huge ? 1e3 : 1);
  const double end = now_ns() + int{kBenchSamples} * bench_sample_ns();
  while (ours.size() < 5 || (now_ns() < end && ours.size() < 100'000)) {
    // Each way is taken once by each of the two, and each of the two comes after the other.
    double our_time = pages.by_bosk(other);
    double bare_time = pages.by_one_call(0);
    bare_time += pages.by_one_call(other);
    our_time += pages.by_bosk(0);
    ours.push_back(our_time / per_page);
    bare.push_back(bare_time / per_page);
    quotients.push_back(our_time / bare_time);
    if (!both) continue;
    our_time = pages.by_bosk(other, true);
    bare_time = pages.by_one_call(0);
    bare_time += pages.by_one_call(other);
    our_time += pages.by_bosk(0, true);
    known.push_back(our_time / bare_time);
  }
  const auto rounds = static_cast<int>(ours.size());
  const std::string text = (huge ? "huge-" : "") + std::to_string(count);
  const char* unit = huge ? "us/page" : "ns/page";
  bench_print(("migrate-" + text).c_str(), bench_median(ours.data(), rounds), unit);
  bench_print(("move-pages-" + text).c_str(), bench_median(bare.data(), rounds), unit);
  bench_print(("migrate-over-" + text).c_str(), bench_median(quotients.data(), rounds), "x");
  if (both)
    bench_print(("migrate-known-over-" + text).c_str(), bench_median(known.data(), rounds), "x");
  fflush(stdout);  // the lab takes its time
}

/// Each on a huge page of its own.
void measure_splits() {
  constexpr size_t kPages = 64;
  Pages pages(kPages, Size::kHuge);
  if (pages.huge_pages() != kPages) bench_fail("migration: no huge pages here");
  std::vector<double> times;
  for (size_t i = 0; i < kPages; ++i) {
    const uintptr_t at = pages.first() + i * kHuge + 100 * kPage;
    const double start = now_ns();
    memory::HugePageMap map;
    const bool free = memory::set_free(map, {at, at + kPage, at, 0, 0});
    times.push_back((now_ns() - start) / 1e3);
    if (!free) bench_fail("migration: a huge page cannot be split");
  }
  if (pages.huge_pages() != 0) bench_fail("migration: a huge page was not split");
  bench_print("split-huge", bench_median(times.data(), kPages), "us");
}

}  // namespace

// With the sizes that rows.py knows, or those that are asked for.
int main(int argc, char** argv) {
  topology::Error error;
  const topology::Machine* machine = topology::load_machine({}, &error);
  if (machine == nullptr) bench_fail(error.text);
  if (!memory::use_machine(*machine)) bench_fail("migration: out of memory");
  std::vector<size_t> counts;
  for (int i = 1; i < argc; ++i) {
    counts.push_back(strtoul(argv[i], nullptr, 10));
    if (counts.back() == 0) bench_fail("migration: arguments are numbers of pages");
  }
  if (counts.empty()) counts = {1, 16, 512, 8'192, 65'536};
  for (const size_t count : counts) measure(*machine, count, Size::kSmall);
  if (argc == 1) {
    for (const size_t count : {1, 16}) measure(*machine, count, Size::kHuge);
    measure_splits();
  }
  return 0;
}
