// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merge sort with the C++ face: a bubble for each part of the data, so that who merges runs near who has sorted.
//
//   mergesort [NUMBERS [PARTS]]      default 200000 and 16
//
// Build: c++ -std=c++17 mergesort.cpp $(pkg-config --cflags --libs bosk)
#include <algorithm>
#include <bosk/bosk.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {

using Numbers = std::vector<std::uint32_t>;

struct Sorter {
  explicit Sorter(Numbers& numbers) : data(numbers) {}

  Numbers& data;
  // Guards the counts below. With bosk::mutex a thread that waits leaves its processor to others; std::mutex would
  // do, too, but keeps the processor waiting.
  bosk::mutex mutex;
  int merges = 0;
  int on_same_node = 0;

  /// Sorts [from, to) with `parts` leaves, by the calling thread and those that it makes in `here`.
  void sort(std::size_t from, std::size_t to, int parts, bosk::bubble& here) {
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = data.begin() + static_cast<std::ptrdiff_t>(to);
    if (parts < 2 || to - from < 2) {
      std::sort(begin, end);
      return;
    }
    const std::size_t middle = from + (to - from) / 2;
    // One bubble for the two halves of this part. It lies in the bubble of the part around it, so the tree of
    // bubbles is the tree of the data.
    bosk::bubble halves(BOSK_RELATION_DATA_SHARING);
    bosk::attributes how;
    how.in(halves).load = static_cast<std::uint32_t>(std::max<std::size_t>(1, (to - from) / 1024));
    int node[2] = {-1, -1};
    bosk::thread left(how, [&] {
      sort(from, middle, parts / 2, halves);
      node[0] = bosk_here_in(bosk_topo_level("node"));
    });
    bosk::thread right(how, [&] {
      sort(middle, to, parts - parts / 2, halves);
      node[1] = bosk_here_in(bosk_topo_level("node"));
    });
    // Nothing of it runs before it is in a bubble that was woken.
    here.insert(halves);
    // What they throw comes out of join(). A thread that nobody joins is joined by its destructor.
    left.join();
    right.join();
    std::inplace_merge(begin, data.begin() + static_cast<std::ptrdiff_t>(middle), end);
    const std::lock_guard<bosk::mutex> guard(mutex);
    ++merges;
    on_same_node += node[0] == node[1] ? 1 : 0;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200000;
  const int parts = argc > 2 ? std::atoi(argv[2]) : 16;
  Numbers numbers(count);
  std::uint32_t seed = 1;
  for (std::uint32_t& number : numbers) number = seed = seed * 1664525u + 1013904223u;
  Numbers expected = numbers;
  std::sort(expected.begin(), expected.end());

  Sorter sorter{numbers};
  bosk::bubble all;
  bosk::attributes how;
  bosk::thread first(how.in(all), [&] { sorter.sort(0, count, parts, all); });
  all.wake();
  first.join();

  const bool right = numbers == expected;
  std::printf("%zu numbers in %d parts: %s; %d of %d merges had both halves on one node\n", count,
              parts, right ? "sorted" : "WRONG", sorter.on_same_node, sorter.merges);
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "mergesort: %s\n", error.what());
  return 1;
}
