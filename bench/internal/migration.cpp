// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Migration in batches against one bare move_pages(2) of the same pages, in turns: `migrate-N` and `move-pages-N` in ns
// a page, `migrate-over-N` their quotient (the median of the quotients of neighbours in time). With several nodes the
// pages go to and fro between the first two; with one they are there already, and it is the calls alone.
#include "memory/migration.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "../programs/bench.h"
#include "topology/source.h"

namespace {

using namespace bosk;

constexpr size_t kPage = 4096;

void measure(const topology::Machine& machine, size_t pages) {
  auto* memory = static_cast<char*>(
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) bench_fail("migration: out of memory");
  madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
  std::vector<void*> address(pages);
  std::vector<int> nodes(pages);
  std::vector<int> status(pages);
  for (size_t i = 0; i < pages; ++i) {
    address[i] = memory + i * kPage;
    memory[i * kPage] = 1;
  }
  const memory::NodeIndex other = machine.n_nodes > 1 ? 1 : 0;
  memory::migrate_pages(memory, pages * kPage, 0);
  std::vector<double> ours;
  std::vector<double> bare;
  std::vector<double> quotients;
  const double end = now_ns() + int{kBenchSamples} * bench_sample_ns();
  while (ours.size() < 5 || (now_ns() < end && ours.size() < 100'000)) {
    // Each way is taken once by each of the two.
    double took[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const memory::NodeIndex to = turn == 0 ? other : 0;
      double start = now_ns();
      const memory::Moved moved = memory::migrate_pages(memory, pages * kPage, to);
      took[0] += now_ns() - start;
      if (moved.moved + moved.already != pages) bench_fail("migration: pages did not move");
      memory::migrate_pages(memory, pages * kPage, to == 0 ? other : 0);
      nodes.assign(pages, memory::kernel_node_of(to));
      start = now_ns();
      const long failed = syscall(SYS_move_pages, 0, pages, address.data(), nodes.data(),
                                  status.data(), MPOL_MF_MOVE);
      took[1] += now_ns() - start;
      if (failed != 0) bench_fail("migration: move_pages failed");
    }
    ours.push_back(took[0] / (2.0 * static_cast<double>(pages)));
    bare.push_back(took[1] / (2.0 * static_cast<double>(pages)));
    quotients.push_back(took[0] / took[1]);
  }
  const auto count = static_cast<int>(ours.size());
  const std::string text = std::to_string(pages);
  bench_print(("migrate-" + text).c_str(), bench_median(ours.data(), count), "ns/page");
  bench_print(("move-pages-" + text).c_str(), bench_median(bare.data(), count), "ns/page");
  bench_print(("migrate-over-" + text).c_str(), bench_median(quotients.data(), count), "x");
  munmap(memory, pages * kPage);
}

}  // namespace

int main() {
  topology::Error error;
  const topology::Machine* machine = topology::load_machine({}, &error);
  if (machine == nullptr) bench_fail(error.text);
  if (!memory::use_machine(*machine)) bench_fail("migration: out of memory");
  for (const size_t pages : {size_t{16}, size_t{512}, size_t{65'536}}) measure(*machine, pages);
  return 0;
}
