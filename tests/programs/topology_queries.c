// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/topology.h from a program. topology_queries: on this machine; topology_queries PUS NODES: on an invented one
// with so many, on which member i of a team is on PU i.
#include <bosk/topology.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

static void* elsewhere(void* here) {
  *(int*)here = bosk_here();
  return NULL;
}

static void where(int pus, int invented) {
  const int node_level = bosk_topo_level("node");
  CHECK(node_level > 0, "level node is %d", node_level);
  // One worker per PU, as many as the environment gives.
  int seen[1024] = {0};
#pragma omp parallel num_threads(pus)
  {
    const int here = bosk_here(), me = omp_get_thread_num();
    CHECK(here >= 0 && here < pus, "member %d is on PU %d", me, here);
    CHECK(!invented || here == me, "member %d is on PU %d", me, here);
    seen[me] = here + 1;
    // It may have moved since, unless the machine is invented.
    const int node = bosk_here_in(node_level);
    CHECK(node >= 0 && node < bosk_topo_domains(node_level), "member %d is in node %d", me, node);
    CHECK(!invented || node == bosk_topo_domain_of(node_level, here), "member %d is in node %d", me,
          node);
    // A nested member is where it runs, which is a PU, too.
#pragma omp parallel num_threads(2)
    {
      const int inner = bosk_here();
      CHECK(inner >= 0 && inner < pus, "a nested member is on PU %d", inner);
    }
  }
  for (int i = 0; i < pus; i++) CHECK(seen[i] > 0, "nobody was member %d", i);
  CHECK(bosk_here_in(99) == BOSK_EINVAL, "there is a level 99");
  pthread_t other;
  int here = 0;
  CHECK(pthread_create(&other, NULL, elsewhere, &here) == 0, "pthread_create failed");
  pthread_join(other, NULL);
  CHECK(invented ? here == BOSK_ENOENT : here >= 0 && here < pus, "a pthread is on PU %d", here);
}

int main(int argc, char** argv) {
  const int invented = argc > 2;
  omp_set_max_active_levels(2);
  const int pus = bosk_topo_pus(), levels = bosk_topo_levels();
  CHECK(pus >= 1 && levels >= 5, "%d PUs, %d levels", pus, levels);
  CHECK(strcmp(bosk_topo_level_name(0), "machine") == 0 && bosk_topo_level_name(levels) == NULL,
        "the outermost level is %s", bosk_topo_level_name(0));
  CHECK(strcmp(bosk_topo_level_name(levels - 1), "pu") == 0, "the innermost level is %s",
        bosk_topo_level_name(levels - 1));
  CHECK(bosk_topo_is_real() == !invented, "real: %d", bosk_topo_is_real());
  CHECK(bosk_topo_depth() >= 2 && bosk_topo_depth() <= levels, "depth %d", bosk_topo_depth());
  if (invented) {
    CHECK(pus == atoi(argv[1]), "%d PUs", pus);
    CHECK(bosk_topo_nodes() == atoi(argv[2]), "%d nodes", bosk_topo_nodes());
    CHECK(bosk_topo_domains(bosk_topo_level("numa")) == atoi(argv[2]), "%d nodes",
          bosk_topo_domains(bosk_topo_level("numa")));
  } else {
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity");
    CHECK(pus == CPU_COUNT(&mask), "%d PUs, %d CPUs", pus, CPU_COUNT(&mask));
    for (int pu = 0; pu < pus; pu++) {
      const int cpu = bosk_topo_os_number(levels - 1, pu);
      CHECK(cpu >= 0 && CPU_ISSET(cpu, &mask) && bosk_topo_pu_of_cpu(cpu) == pu, "PU %d: CPU %d",
            pu, cpu);
    }
  }
  int near[1024];
  for (int a = 0; a < pus; a++) {
    CHECK(bosk_topo_node_of(a) >= 0 && bosk_topo_node_of(a) < bosk_topo_nodes(), "node of PU %d",
          a);
    CHECK(bosk_topo_neighbours(a, near, 1024) == pus && near[0] == a, "neighbours of PU %d", a);
    for (int b = 0; b < pus; b++) {
      const int shared = bosk_topo_shared_level(a, b);
      CHECK(bosk_topo_shares(shared, a, b) == 1, "PUs %d and %d share level %d", a, b, shared);
      CHECK(shared + 1 == levels || bosk_topo_shares(shared + 1, a, b) == 0, "level %d",
            shared + 1);
      CHECK(bosk_topo_distance(a, b) == bosk_topo_distance(b, a), "distance of PUs %d and %d", a,
            b);
    }
  }
  CHECK(bosk_topo_distance(0, pus) == BOSK_EINVAL && bosk_topo_shares(0, -1, 0) == BOSK_EINVAL &&
            bosk_topo_neighbours(0, NULL, 1) == BOSK_EINVAL && bosk_topo_domains(-1) == BOSK_EINVAL,
        "a wrong number is not refused");
  CHECK(bosk_topo_node_distance(0, 0) == 10, "a node is %d from itself",
        bosk_topo_node_distance(0, 0));
  const int64_t bytes = bosk_topo_node_bytes(0);
  CHECK(bytes > 0 || bytes == BOSK_ENOENT, "%lld bytes", (long long)bytes);
  CHECK(bosk_topo_node_os_number(0) >= 0 || bosk_topo_node_os_number(0) == BOSK_ENOENT, "node 0");
  where(pus, invented);
  return passed();
}
