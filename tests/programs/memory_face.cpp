// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory.hpp: containers on nodes, areas as long as they live, codes as exceptions.
#include <bosk/memory.hpp>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "check.h"

namespace {

struct alignas(256) Wide {
  char bytes[256];
};

std::uint64_t used() {
  std::uint64_t sum = 0;
  for (int node = 0; node < bosk_topo_nodes(); ++node) {
    bosk_mem_stats_t stats{};
    stats.size = sizeof stats;
    CHECK(bosk_mem_node_stats(node, &stats) == BOSK_OK, "stats");
    sum += stats.used;
  }
  return sum;
}

void containers() {
  for (int node = 0; node < bosk_topo_nodes(); ++node) {
    bosk::node_resource resource(node);
    std::pmr::vector<int> numbers(&resource);
    for (int i = 0; i < 100000; ++i) numbers.push_back(i);
    CHECK(std::accumulate(numbers.begin(), numbers.end(), 0LL) == 99999LL * 50000, "wrong sum");
    std::pmr::vector<Wide> wide(3, &resource);
    CHECK(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0, "not aligned");
    std::pmr::map<int, std::pmr::string> map(&resource);
    for (int i = 0; i < 1000; ++i)
      map.emplace(i, std::string(100, static_cast<char>('a' + i % 26)));
    CHECK(map.at(27) == std::pmr::string(100, 'b'), "wrong text");
    CHECK(used() > 0 || bosk_mem_trim() != BOSK_OK, "nothing is used");
  }
  std::vector<Wide, bosk::allocator<Wide>> here(5);
  CHECK(reinterpret_cast<std::uintptr_t>(here.data()) % 256 == 0, "not aligned");
  std::map<int, int, std::less<>, bosk::allocator<std::pair<const int, int>>> map;
  for (int i = 0; i < 1000; ++i) map[i] = i;
  CHECK(map.size() == 1000, "%zu", map.size());
  bosk::heap_resource heap;
  bosk::node_resource node(0);
  CHECK(heap == node && node == heap && heap != *std::pmr::new_delete_resource(), "not equal");
}

void areas() {
  std::vector<char> bytes(100000, 'x');
  bosk_bubble_t bubble;
  bosk::check(bosk_bubble_create(&bubble), "create");
  {
    bosk::area area(bytes.data(), bytes.size());
    area.attach(bubble, BOSK_MEM_READS);
    area.migrate(bosk_topo_nodes() - 1);
    if (area.next_touch())
      CHECK(bosk_mem_next_touch_query(bytes.data(), 0, nullptr) > 0, "no marks");
    CHECK(bytes[50000] == 'x', "lost");
    try {
      const bosk::area again(bytes.data(), 1);
      CHECK(false, "registered twice");
    } catch (const std::system_error& error) {
      CHECK(error.code().value() == BOSK_EOVERLAP, "%s", error.what());
    }
  }
  CHECK(bosk_mem_update(bytes.data()) == BOSK_ENOAREA, "still registered");
  bosk::check(bosk_bubble_destroy(bubble), "destroy");
  const bosk::bubble sleeps;
  CHECK(!bosk::redecide(sleeps) && !bosk::redecide(sleeps, BOSK_MEM_WHEN_ALL), "it is not open");
  try {
    const bosk::node_resource none(bosk_topo_nodes());
    CHECK(false, "a node that there is not");
  } catch (const std::system_error& error) {
    CHECK(error.code().value() == BOSK_ENODE, "%s", error.what());
  }
  try {
    static_cast<void>(bosk::allocator<Wide>().allocate(SIZE_MAX / 256));
    CHECK(false, "all memory there is");
  } catch (const std::bad_alloc&) {
  }
}

/// As the header's own example has it, on both sides of what is a block of a heap.
void containers_as_areas() {
  bosk::bubble bubble;
  for (const std::size_t n : {10, 360, 400, 1000}) {
    bosk::node_resource on_node{bosk_topo_nodes() - 1};
    std::pmr::vector<double> matrix{n * n, &on_node};
    const std::size_t bytes = matrix.size() * sizeof(double);
    {
      bosk::area stripe{matrix.data(), bytes};
      stripe.attach(bubble.native_handle(), BOSK_MEM_WRITES);
      bosk::area known = bosk::area::existing(&matrix[n * n / 2]);
      CHECK(known.begin() == matrix.data(), "another area");
      known.migrate(0);
    }
    bosk_mem_area_t area{};
    area.size = sizeof area;
    const int error = bosk_mem_area(matrix.data(), &area);
    CHECK(error == BOSK_OK ? area.attached == 0 : error == BOSK_ENOAREA, "still attached");
  }
  // An area that is somebody else's stays one.
  void* block;
  bosk::check(bosk_mem_alloc(&block, 5, nullptr), "bosk_mem_alloc");
  bosk::area::existing(block).attach(bubble.native_handle());
  bosk_mem_area_t area{};
  area.size = sizeof area;
  bosk::check(bosk_mem_area(block, &area), "bosk_mem_area");
  CHECK(area.attached == 1, "%u", area.attached);
  bosk::check(bosk_free(block), "bosk_free");
  try {
    const bosk::area none = bosk::area::existing(block);
    CHECK(false, "an area that there is not");
  } catch (const std::system_error& error) {
    CHECK(error.code().value() == BOSK_ENOAREA, "%s", error.what());
  }
}

}  // namespace

int main() {
  containers();
  areas();
  containers_as_areas();
  CHECK(used() == 0, "%lu bytes are still in use", static_cast<unsigned long>(used()));
  return passed();
}
