// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rows of `./dev bench memory`: allocating and freeing by two threads, by us and by others in turns in one
// process, and what the books of 10^5 areas cost.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <string>
#include <vector>

#include "../programs/bench.h"
#include "memory/allocate.h"
#include "memory/manager.h"
#include "memory/thread_heaps.h"
#include "topology/source.h"

namespace {

using namespace bosk::memory;

AreaTable* table;

// As bosk_malloc() and bosk_free() do it.
void* our_malloc(size_t bytes) {
  void* block = take_from_hand(bytes);
  return block != nullptr ? block : allocate(*table, bytes, 0, false);
}
void our_free(void* block) {
  if (!put_in_hand(block)) release(*table, block);
}

struct Allocator {
  const char* name;
  void* (*allocate)(size_t);
  void (*free)(void*);
};

/// In a scope of its own. False: it is not installed, or takes more TLS than there is left.
bool open_other(const char* file, const char* allocate, const char* free, Allocator* found) {
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  void* const functions[] = {dlsym(handle, allocate), dlsym(handle, free)};
  if (functions[0] == nullptr || functions[1] == nullptr) return false;
  memcpy(&found->allocate, &functions[0], sizeof functions[0]);
  memcpy(&found->free, &functions[1], sizeof functions[1]);
  return true;
}

/// What each of the two threads does: `live` blocks are held, and the oldest goes first.
struct Work {
  const Allocator* allocator;
  size_t bytes;
  uint32_t live;
  long count;
  std::atomic<int>* ready;
};

void* work(void* data) {
  const auto* mine = static_cast<Work*>(data);
  std::vector<void*> held(mine->live, nullptr);
  mine->ready->fetch_sub(1);
  while (mine->ready->load() > 0) {
  }
  uint32_t at = 0;
  for (long i = 0; i < mine->count; ++i) {
    if (held[at] != nullptr) mine->allocator->free(held[at]);
    auto* block = static_cast<char*>(mine->allocator->allocate(mine->bytes));
    *static_cast<volatile char*>(block) = 1;
    held[at] = block;
    at = at + 1 == mine->live ? 0 : at + 1;
  }
  for (void* block : held)
    if (block != nullptr) mine->allocator->free(block);
  return nullptr;
}

/// ns for each block of each thread.
double two_threads(const Allocator& allocator, size_t bytes, uint32_t live, long count) {
  std::atomic<int> ready{2};
  Work mine{&allocator, bytes, live, count, &ready};
  pthread_t other;
  if (pthread_create(&other, nullptr, work, &mine) != 0) bench_fail("no thread");
  const double start = now_ns();
  work(&mine);
  pthread_join(other, nullptr);
  return (now_ns() - start) / static_cast<double>(count);
}

int turns() { return bench_sample_ns() < 5e6 ? 5 : 21; }

void measure_allocation(const std::vector<Allocator>& allocators, size_t bytes, uint32_t live) {
  const long count = bench_sample_ns() < 5e6 ? 20'000 : 100'000;
  std::vector<std::vector<double>> samples(allocators.size());
  for (int turn = -1; turn < turns(); ++turn)  // -1: warms up
    for (size_t i = 0; i < allocators.size(); ++i) {
      const double ns = two_threads(allocators[i], bytes, live, count);
      if (turn >= 0) samples[i].push_back(ns);
    }
  std::string row = "alloc-" + std::to_string(bytes);
  if (live > 1) row += "-held";
  double ours = 0;
  for (size_t i = 0; i < allocators.size(); ++i) {
    const double median = bench_median(samples[i].data(), static_cast<int>(samples[i].size()));
    if (i == 0) ours = median;
    bench_print((row + "-" + allocators[i].name).c_str(), median, "ns");
    if (i > 0) bench_print((row + "-over-" + allocators[i].name).c_str(), ours / median, "x");
  }
}

constexpr uintptr_t kAreas = 100'000;
uintptr_t address_of_area(uint32_t random) {
  return (uintptr_t{1} << 40) + uintptr_t{random % kAreas} * 8192;
}
uint32_t next_random(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

/// Median ns of many short samples.
template <typename Body>
double short_samples(Body body) {
  constexpr int kEach = 200;
  std::vector<double> samples;
  uint32_t random = 1;
  for (int sample = 0; sample < 200 * turns(); ++sample) {
    const double start = now_ns();
    for (int i = 0; i < kEach; ++i) body(next_random(random));
    samples.push_back((now_ns() - start) / kEach);
  }
  return bench_median(samples.data(), static_cast<int>(samples.size()));
}

void measure_books() {
  for (uint32_t i = 0; i < kAreas; ++i)
    if (table->add({address_of_area(i), 4096}) != 0) bench_fail("an area cannot be added");
  bench_print("look-up", short_samples([](uint32_t random) {
                AreaInfo found;
                if (!table->look_up(address_of_area(random) + random % 4096, &found))
                  bench_fail("an area is not found");
              }),
              "ns");
  bench_print("attach", short_samples([](uint32_t random) {
                if (table->attach(address_of_area(random), 1 + random % 1000, kReads, 1, nullptr,
                                  nullptr) != 0)
                  bench_fail("cannot attach");
              }),
              "ns");
  bench_print("detach-all",
              short_samples([](uint32_t random) { table->detach_all(1 + random % 1000); }), "ns");
  bench_print(
      "register", short_samples([](uint32_t random) {
        AreaInfo removed;
        const uintptr_t at = address_of_area(random);
        if (table->remove(at, Origin::kForeign, &removed) != 0 || table->add({at, 4096}) != 0)
          bench_fail("an area is lost");
      }),
      "ns");
}

}  // namespace

int main() {
  table = start(*bosk::topology::process_machine(nullptr));
  if (table == nullptr) bench_fail("no memory");
  std::vector<Allocator> allocators{{"bosk", our_malloc, our_free}, {"glibc", malloc, free}};
  Allocator other{"mimalloc", nullptr, nullptr};
  if (open_other("libmimalloc.so.2.0", "mi_malloc", "mi_free", &other)) allocators.push_back(other);
  other.name = "jemalloc";
  if (open_other("libjemalloc.so.2", "malloc", "free", &other)) allocators.push_back(other);
  for (size_t bytes = 64; bytes <= 65536; bytes *= 4) {
    measure_allocation(allocators, bytes, 1);
    measure_allocation(allocators, bytes, 64);
  }
  measure_books();
  return 0;
}
