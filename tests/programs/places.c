// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places and binding: what the routines say is coherent with itself, with the list in OMP_PLACES, and with
// the masks the kernel has. Run with OMP_PLACES and OMP_PROC_BIND set.
#include "check.h"

#include <omp.h>
#include <sched.h>

enum { kMaxPlaces = 1024 };

static int place_count;
static cpu_set_t place_mask[kMaxPlaces];

static void read_places(void) {
  place_count = omp_get_num_places();
  CHECK(place_count > 0 && place_count <= kMaxPlaces, "%d places", place_count);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (int p = 0; p < place_count; ++p) {
    int count = omp_get_place_num_procs(p);
    CHECK(count > 0, "place %d has %d processors", p, count);
    int* ids = malloc(sizeof(int) * (size_t)count);
    CHECK(ids, "no memory");
    omp_get_place_proc_ids(p, ids);
    CPU_ZERO(&place_mask[p]);
    for (int i = 0; i < count; ++i) {
      CHECK(!CPU_ISSET(ids[i], &place_mask[p]), "place %d names processor %d twice", p, ids[i]);
      CPU_SET(ids[i], &place_mask[p]);
    }
    free(ids);
  }
  CHECK(omp_get_place_num_procs(-1) == 0 && omp_get_place_num_procs(place_count) == 0,
        "processors of no place");
}

static void check_member(const char* where) {
  int place = omp_get_place_num();
  CHECK(place >= 0 && place < place_count, "%s: place %d of %d", where, place, place_count);
  cpu_set_t mask;
  CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity: errno %d", errno);
  CHECK(CPU_ISSET(sched_getcpu(), &place_mask[place]),
        "%s: bound to place %d but runs on processor %d", where, place, sched_getcpu());
  int count = omp_get_partition_num_places();
  CHECK(count >= 1 && count <= place_count, "%s: a partition of %d places", where, count);
  int* partition = malloc(sizeof(int) * (size_t)count);
  CHECK(partition, "no memory");
  omp_get_partition_place_nums(partition);
  int inside = 0;
  for (int i = 0; i < count; ++i) {
    CHECK(partition[i] >= 0 && partition[i] < place_count, "%s: place %d in the partition", where,
          partition[i]);
    inside |= partition[i] == place;
  }
  CHECK(inside, "%s: place %d is outside its partition", where, place);
  free(partition);
}

static void teams(int threads) {
  int* place_of = malloc(sizeof(int) * (size_t)threads);
  int* per_place = calloc((size_t)place_count, sizeof *per_place);
  CHECK(place_of && per_place, "no memory");
  int home = omp_get_place_num();
  // primary: everybody where the opener is.
#pragma omp parallel num_threads(threads) proc_bind(master)
  {
    check_member("primary");
    CHECK(omp_get_place_num() == home, "primary: member %d is on place %d, its opener on %d",
          omp_get_thread_num(), omp_get_place_num(), home);
  }
  // close: consecutive places from the opener's, evenly filled.
#pragma omp parallel num_threads(threads) proc_bind(close)
  {
    check_member("close");
    place_of[omp_get_thread_num()] = omp_get_place_num();
    CHECK(omp_get_partition_num_places() == place_count, "close changed the partition to %d places",
          omp_get_partition_num_places());
  }
  CHECK(place_of[0] == home, "close: member 0 moved from place %d to %d", home, place_of[0]);
  if (threads <= place_count)
    for (int i = 0; i < threads; ++i)
      CHECK(place_of[i] == (home + i) % place_count, "close: member %d of %d on place %d", i,
            threads, place_of[i]);
  for (int i = 0; i < threads; ++i) per_place[place_of[i]]++;
  for (int p = 0; p < place_count; ++p)
    CHECK(per_place[p] <= (threads + place_count - 1) / place_count &&
              per_place[p] >= threads / place_count,
          "close: %d of %d members on place %d of %d", per_place[p], threads, p, place_count);
  // spread: as far apart as can be, each with its part of the places.
  memset(per_place, 0, sizeof(int) * (size_t)place_count);
#pragma omp parallel num_threads(threads) proc_bind(spread)
  {
    check_member("spread");
    place_of[omp_get_thread_num()] = omp_get_place_num();
    int size = omp_get_partition_num_places();
    if (threads <= place_count)
      CHECK(size == place_count / threads || size == (place_count + threads - 1) / threads,
            "spread: a partition of %d places, %d places for %d members", size, place_count,
            threads);
    else
      CHECK(size == 1, "spread: a partition of %d places with more members than places", size);
    // A nested close team stays inside its opener's partition.
    int first = omp_get_place_num();
    int partition[kMaxPlaces];
    omp_get_partition_place_nums(partition);
#pragma omp parallel num_threads(2) proc_bind(close)
    {
      check_member("close in spread");
      int found = 0;
      for (int i = 0; i < size; ++i) found |= partition[i] == omp_get_place_num();
      CHECK(found, "a nested member left its opener's partition for place %d", omp_get_place_num());
      if (omp_get_thread_num() == 0)
        CHECK(omp_get_place_num() == first, "the opener moved to place %d", omp_get_place_num());
    }
  }
  for (int i = 0; i < threads; ++i) per_place[place_of[i]]++;
  for (int p = 0; p < place_count; ++p)
    CHECK(per_place[p] <= (threads + place_count - 1) / place_count,
          "spread: %d of %d members on place %d", per_place[p], threads, p);
  CHECK(omp_get_place_num() == home, "the opener came back on place %d", omp_get_place_num());
  free(place_of);
  free(per_place);
}

int main(int argc, char** argv) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  if (argc > 1 && !strcmp(argv[1], "unbound")) {
    // Nothing asked for: no places, nobody bound, every mask is the process's.
    CHECK(omp_get_num_places() == 0 && omp_get_place_num() == -1, "%d places, on %d",
          omp_get_num_places(), omp_get_place_num());
    CHECK(omp_get_proc_bind() == omp_proc_bind_false, "bind-var %d", (int)omp_get_proc_bind());
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity: errno %d", errno);
    for (int threads = 1; threads <= 16; threads *= 2) {
#pragma omp parallel num_threads(threads) proc_bind(spread)
      {
        cpu_set_t mine;
        CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_EQUAL(&mine, &mask),
              "member %d of %d was bound", omp_get_thread_num(), threads);
        CHECK(omp_get_place_num() == -1, "unbound, but on place %d", omp_get_place_num());
      }
    }
    return passed();
  }
  read_places();
  if (argc > 1) CHECK(place_count == atoi(argv[1]), "%d places, expected %s", place_count, argv[1]);
  if (argc > 2) {
    // The processors of the first place, as a number with one bit each.
    unsigned long bits = 0;
    for (int i = 0; i < 64; ++i) bits |= CPU_ISSET(i, &place_mask[0]) ? 1ul << i : 0;
    CHECK(bits == strtoul(argv[2], NULL, 0), "the first place has the processors %#lx, expected %s",
          bits, argv[2]);
  }
  for (int round = 0; round < 10; ++round)
    for (int threads = 1; threads <= 16; threads = threads < 4 ? threads + 1 : threads * 2)
      teams(threads);
  return passed();
}
