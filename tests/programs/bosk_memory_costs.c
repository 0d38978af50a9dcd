// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/memory_costs.h on a machine of four nodes that was invented ("invented"), and on this one ("here").
#include "bosk_check.h"

#include <bosk/memory_costs.h>
#include <bosk/topology.h>

static void answers(int nodes) {
  for (int from = 0; from < nodes; ++from)
    for (int to = 0; to < nodes; ++to) {
      const int64_t read = bosk_cost_for_read(from, to, 1 << 20);
      CHECK(read > 0, "read %d to %d: %ld", from, to, (long)read);
      CHECK(bosk_cost_for_read(from, to, 1 << 22) > read, "four times as much is no dearer");
      CHECK(bosk_cost_for_write(from, to, 1 << 20) > 0, "write");
      CHECK(bosk_cost_for_read(from, to, UINT64_MAX) > read, "all there is");
      const int64_t moving = bosk_cost_for_migration(from, to, 1 << 20);
      CHECK(moving > 0 && moving < INT64_C(1) << 40, "migration: %ld ns", (long)moving);
      CHECK(bosk_memory_latency(from, to, 0) > 0 && bosk_memory_latency(from, to, 1) > 0,
            "latency");
      CHECK(bosk_memory_bandwidth(from, to, 0) > 0 && bosk_memory_bandwidth(from, to, 1) > 0,
            "bandwidth");
    }
}

static void invented(void) {
  const int nodes = bosk_topo_nodes();
  CHECK(nodes == 4, "%d nodes", nodes);
  answers(nodes);
  CHECK(bosk_cost_for_read(0, 1, 1 << 30) > bosk_cost_for_read(0, 0, 1 << 30), "remote is dearer");
  CHECK(bosk_cost_source(0, 0) >= BOSK_COST_FIRMWARE, "an invented machine was measured");
  CHECK(bosk_cost_source(0, 1) >= BOSK_COST_FIRMWARE, "an invented machine was measured");
  FAILS((int)bosk_cost_for_read(-1, 0, 1), BOSK_EINVAL);
  FAILS((int)bosk_cost_for_write(0, 4, 1), BOSK_EINVAL);
  FAILS((int)bosk_cost_for_migration(0, -7, 1), BOSK_EINVAL);
  FAILS(bosk_cost_source(4, 0), BOSK_EINVAL);
  FAILS((int)bosk_memory_latency(0, 99, 0), BOSK_EINVAL);
  FAILS((int)bosk_memory_bandwidth(99, 0, 0), BOSK_EINVAL);
#pragma omp parallel num_threads(8)
  answers(4);
}

static void here(void) {
  answers(bosk_topo_nodes());
  FAILS((int)bosk_cost_for_read(0, bosk_topo_nodes(), 1), BOSK_EINVAL);
}

int main(int argc, char** argv) {
  const struct test tests[] = {{"invented", invented}, {"here", here}};
  return RUN_TEST(argc, argv, tests);
}
