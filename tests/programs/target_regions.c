// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target regions where there is no device: what they see of the host's data, and what they find around
// them. Mode: data, context, teams, nested, limit, at-once, clauses, older.
#include "check.h"

#include <omp.h>
#include <stdint.h>

#define EQUAL(found, expected)                                                      \
  do {                                                                              \
    const long found_ = (long)(found), expected_ = (long)(expected);                \
    CHECK(found_ == expected_, "%s is %ld and not %ld", #found, found_, expected_); \
  } while (0)

// ---- data

typedef struct {
  int a;
  double b[3];
} Pair;

typedef struct {
  _Alignas(64) char bytes[100];
} Aligned;

#pragma omp declare target
static int global_table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static int global_sum(void) {
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += global_table[i];
  return sum;
}
#pragma omp end declare target

static void scalars_and_arrays(int n) {
  int number = 7;       // firstprivate, as nobody maps it
  long long wide = -9;  // does not fit into a pointer on all machines
  float real = 1.5f;
  long double longer = 2.25L;
  Pair pair = {3, {1, 2, 3}};  // mapped tofrom
  int array[40], length = 40;  // mapped tofrom
  for (int i = 0; i < length; ++i) array[i] = i;
#pragma omp target
  {
    CHECK(number == 7 && wide == -9 && real == 1.5f && longer == 2.25L, "scalars are others");
    number = 8, wide = 0, real = 0, longer = 0;
    pair.a += number;
    pair.b[2] = 10;
    for (int i = 0; i < length; ++i) array[i] *= 2;
  }
  CHECK(number == 7 && wide == -9 && real == 1.5f && longer == 2.25L,
        "the region's own scalars came out: %d", number);
  EQUAL(pair.a, 11);
  CHECK(pair.b[2] == 10, "the struct did not come out");
  for (int i = 0; i < length; ++i) EQUAL(array[i], 2 * i);

#pragma omp target map(tofrom : number) map(to : array[10 : 20])
  {
    number = array[10] + array[29];
  }
  EQUAL(number, 20 + 58);

  // Arrays whose length is known late, and what is aligned, are copied whole.
  int late[n];
  for (int i = 0; i < n; ++i) late[i] = i;
  Aligned aligned;
  memset(&aligned, 'a', sizeof aligned);
  char odd[3] = {'x', 'y', 'z'};
  long check = 0;
#pragma omp target firstprivate(late, aligned, odd) private(number) map(from : check)
  {
    number = 5;
    check = (uintptr_t)&aligned % 64 != 0 || (uintptr_t)late % sizeof(int) != 0;
    for (int i = 0; i < n; ++i) check += late[i] != i;
    for (size_t i = 0; i < sizeof aligned.bytes; ++i) check += aligned.bytes[i] != 'a';
    check += odd[0] != 'x' || odd[2] != 'z';
    memset(late, 0, sizeof late);
    memset(&aligned, 0, sizeof aligned);
    odd[0] = 0;
  }
  EQUAL(check, 0);
  EQUAL(number, 78);
  for (int i = 0; i < n; ++i) EQUAL(late[i], i);
  CHECK(aligned.bytes[99] == 'a' && odd[0] == 'x', "what is firstprivate was changed outside");
}

static void pointers(void) {
  int* block = malloc(100 * sizeof(int));
  for (int i = 0; i < 100; ++i) block[i] = i;
  int* const before = block;
  int found = 0;
  // The pointer is the region's own, what it points to is not.
#pragma omp target map(tofrom : block[20 : 50]) map(from : found)
  {
    found = block == before;
    for (int i = 20; i < 70; ++i) block[i] += 1000;
    block = NULL;
  }
  EQUAL(found, 1);
  CHECK(block == before, "the region's own pointer came out");
  for (int i = 0; i < 100; ++i) EQUAL(block[i], i >= 20 && i < 70 ? i + 1000 : i);
#pragma omp target is_device_ptr(block) map(from : found)
  found = block == before;
  EQUAL(found, 1);
#pragma omp target has_device_addr(found)
  found = 77;
  EQUAL(found, 77);
#pragma omp target data map(tofrom : block[0 : 100]) use_device_ptr(block)
  {
    CHECK(block == before, "another address on the host");
#pragma omp target is_device_ptr(block)
    block[3] = -3;
  }
  EQUAL(block[3], -3);
#pragma omp target data map(tofrom : found) use_device_addr(found)
  {
    int* address = &found;
#pragma omp target is_device_ptr(address)
    *address = 5;
  }
  EQUAL(found, 5);
#pragma omp target map(found) map(block[ : 0])
  found = block == before;  // no length: it is the address that counts
  EQUAL(found, 1);
  free(block);
}

static void data_constructs(void) {
  int x = 1, y[10];
  for (int i = 0; i < 10; ++i) y[i] = i;
#pragma omp target enter data map(to : x, y)
  EQUAL(omp_target_is_present(&x, omp_get_initial_device()), 1);
#pragma omp target data map(to : x) map(alloc : y)
  {
#pragma omp target map(tofrom : x)
    x += 1;
    y[0] = 50;
#pragma omp target update to(y[0 : 3]) from(x)
    EQUAL(x, 2);
#pragma omp target map(tofrom : y)
    y[1] += y[0];
  }
#pragma omp target exit data map(from : x) map(delete : y)
  EQUAL(x, 2);
  EQUAL(y[1], 51);
  EQUAL(y[9], 9);
  int sum = 0;
#pragma omp target map(from : sum)
  {
    global_table[0] = 100;
    sum = global_sum();
  }
  EQUAL(sum, 135);
#pragma omp target update from(global_table)
  EQUAL(global_table[0], 100);
  global_table[0] = 1;
}

static void data(void) {
  scalars_and_arrays(33);
  scalars_and_arrays(20000);  // more than fits where small copies are kept
  pointers();
  data_constructs();
}

// ---- context

typedef struct {
  int level, active, thread, threads, parallel, team, teams, most, limit, host, device, final;
} Context;

static void look(Context* c) {
  c->level = omp_get_level(), c->active = omp_get_active_level();
  c->thread = omp_get_thread_num(), c->threads = omp_get_num_threads();
  c->parallel = omp_in_parallel();
  c->team = omp_get_team_num(), c->teams = omp_get_num_teams();
  c->most = omp_get_max_threads(), c->limit = omp_get_thread_limit();
  c->host = omp_is_initial_device(), c->device = omp_get_device_num();
  c->final = omp_in_final();
}

static void expect_initial(const Context* c, int most, int line) {
  CHECK(c->level == 0 && c->active == 0 && c->thread == 0 && c->threads == 1 && !c->parallel,
        "from line %d: level %d, active %d, thread %d of %d", line, c->level, c->active, c->thread,
        c->threads);
  CHECK(c->team == 0 && c->teams == 1 && c->host && c->device == omp_get_initial_device() &&
            !c->final,
        "from line %d: team %d of %d, host %d", line, c->team, c->teams, c->host);
  CHECK(c->most == most, "from line %d: %d threads at most, not %d", line, c->most, most);
}

static void context(void) {
  const int most = omp_get_max_threads(), levels = omp_get_max_active_levels();
  Context c;
  omp_set_num_threads(most + 5);
  omp_set_max_active_levels(levels + 3);
  omp_set_dynamic(1);
#pragma omp target map(from : c)
  {
    look(&c);
    CHECK(!omp_get_dynamic() && omp_get_max_active_levels() == levels, "ICVs of the host's task");
    omp_set_num_threads(most + 9);
    omp_set_schedule(omp_sched_guided, 17);
  }
  expect_initial(&c, most, __LINE__);
  EQUAL(omp_get_max_threads(), most + 5);
  EQUAL(omp_get_max_active_levels(), levels + 3);
  omp_sched_t kind;
  int chunk;
  omp_get_schedule(&kind, &chunk);
  CHECK(kind != omp_sched_guided || chunk != 17, "the region's schedule came out");
  omp_set_dynamic(0);

#pragma omp parallel num_threads(3)
  {
    const int before = omp_get_thread_num();
    Context inside;
#pragma omp target map(from : inside)
    look(&inside);
    expect_initial(&inside, most, __LINE__);
    EQUAL(omp_get_thread_num(), before);
    EQUAL(omp_get_num_threads(), 3);
    EQUAL(omp_get_level(), 1);
#pragma omp barrier
#pragma omp for
    for (int i = 0; i < 6; ++i) {
#pragma omp target map(from : inside)
      look(&inside);
      expect_initial(&inside, most, __LINE__);
    }
#pragma omp single
#pragma omp task final(1)
    {
      Context in_task;
#pragma omp target map(from : in_task)
      look(&in_task);
      expect_initial(&in_task, most, __LINE__);
      CHECK(omp_in_final(), "the task is no longer final");
    }
  }
}

// ---- teams

static void teams(void) {
  enum { kN = 1000 };
  static int hits[kN];
  int sum = 0, team_sum = 0, leagues = 0;
#pragma omp target teams distribute parallel for map(tofrom : hits, sum) reduction(+ : sum)
  for (int i = 0; i < kN; ++i) {
    hits[i]++;
    sum += i;
  }
  EQUAL(sum, kN * (kN - 1) / 2);
  for (int i = 0; i < kN; ++i) EQUAL(hits[i], 1);

#pragma omp target teams num_teams(4) thread_limit(3) reduction(+ : team_sum, leagues)
  {
    leagues += 1;
    team_sum += omp_get_team_num();
    int members = 0;
#pragma omp parallel num_threads(8) reduction(+ : members)
    {
      members += 1;
      EQUAL(omp_get_thread_limit(), 3);
      CHECK(omp_get_num_threads() <= 3, "%d threads", omp_get_num_threads());
      EQUAL(omp_get_num_teams(), 4);
      EQUAL(omp_get_level(), 1);
    }
    EQUAL(members, 3);
  }
  EQUAL(leagues, 4);
  EQUAL(team_sum, 6);
  EQUAL(omp_get_num_teams(), 1);
  CHECK(omp_get_thread_limit() > 3, "the clause's limit holds on");

  // Every member of a team on the host has a league of its own.
#pragma omp parallel num_threads(4)
  {
    int found = 0;
    const int wanted = omp_get_thread_num() + 1;
#pragma omp target teams num_teams(wanted) reduction(+ : found)
    found += 100 * omp_get_num_teams() + omp_get_team_num();
    EQUAL(found, 100 * wanted * wanted + wanted * (wanted - 1) / 2);
    EQUAL(omp_get_num_teams(), 1);
  }
#pragma omp teams num_teams(2)
  {
#pragma omp parallel num_threads(2)
    EQUAL(omp_get_num_teams(), 2);
  }

  int loops = 0;
#pragma omp target teams loop reduction(+ : loops)
  for (int i = 0; i < 50; ++i) loops += i;
  EQUAL(loops, 1225);
#pragma omp target parallel for simd reduction(+ : loops)
  for (int i = 0; i < 50; ++i) loops += i;
  EQUAL(loops, 2450);
  int members = 0;
#pragma omp target parallel num_threads(5) reduction(+ : members)
  members += omp_get_num_threads();
  EQUAL(members, 25);
}

// ---- regions inside

/// A region inside of a target region, with all that has a team: barrier, loop, single, tasks.
static int inner_region(int threads) {
  int result = 0;
#pragma omp target map(tofrom : result)
  {
    int members = 0, loop = 0, tasks = 0, singles = 0;
#pragma omp parallel num_threads(threads) reduction(+ : members, loop)
    {
      members = 1;
      EQUAL(omp_get_level(), 1);
      EQUAL(omp_get_num_threads(), threads);
      EQUAL(omp_get_ancestor_thread_num(0), 0);
      EQUAL(omp_get_ancestor_thread_num(1), omp_get_thread_num());
      EQUAL(omp_get_team_size(0), 1);
#pragma omp barrier
#pragma omp for schedule(dynamic, 1)
      for (int i = 0; i < 20; ++i) loop += i;
#pragma omp single
      {
        singles++;
        for (int i = 0; i < 10; ++i) {
#pragma omp task
          {
#pragma omp atomic
            tasks++;
          }
        }
#pragma omp taskwait
      }
    }
    result = members == threads && loop == 190 && tasks == 10 && singles == 1;
  }
  return result;
}

static void nested(void) {
  for (int round = 0; round < 20; ++round) {
    EQUAL(inner_region(1 + round % 6), 1);
    int good = 0;
#pragma omp parallel num_threads(1 + round % 5) reduction(+ : good)
    {
      good += inner_region(3);
#pragma omp barrier
      good += inner_region(2);
    }
    EQUAL(good, 2 * (1 + round % 5));
    good = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    for (int i = 0; i < 8; ++i) {
#pragma omp task
      {
        const int one = inner_region(2);
#pragma omp atomic
        good += one;
      }
    }
    EQUAL(good, 8);
  }
  // The host's own teams are as before.
  int members = 0;
#pragma omp parallel num_threads(4) reduction(+ : members)
  members += omp_get_level();
  EQUAL(members, 4);
}

/// Members that have to run at the same time: a ring of flags inside of each of several target regions.
static void at_once(void) {
  enum { kOuter = 3, kInner = 4 };
#pragma omp parallel num_threads(kOuter)
  {
    int turn = 0;
#pragma omp target map(tofrom : turn)
#pragma omp parallel num_threads(kInner)
    for (int round = 0; round < 50; ++round) {
      const int mine = round * kInner + omp_get_thread_num();
      int now;
      do {
#pragma omp atomic read seq_cst
        now = turn;
      } while (now != mine);
#pragma omp atomic write seq_cst
      turn = mine + 1;
    }
    EQUAL(turn, 50 * kInner);
  }
}

/// With OMP_THREAD_LIMIT=4: every target region has a contention group of its own.
static void limit(void) {
  EQUAL(omp_get_thread_limit(), 4);
  int outer = 0, inner = 0;
#pragma omp parallel num_threads(4) reduction(+ : outer, inner)
  {
    outer += 1;
    int members = 0;
#pragma omp target map(tofrom : members)
    {
#pragma omp parallel num_threads(9) reduction(+ : members)
      members += 1;
    }
    inner += members;
#pragma omp target thread_limit(2) map(tofrom : members)
    {
      members = 0;
      EQUAL(omp_get_thread_limit(), 2);
#pragma omp parallel num_threads(9) reduction(+ : members)
      members += 1;
    }
    EQUAL(members, 2);
  }
  EQUAL(outer, 4);
  EQUAL(inner, 16);
  outer = 0;
#pragma omp parallel num_threads(9) reduction(+ : outer)
  outer += 1;
  EQUAL(outer, 4);
}

// ---- device and if

static void clauses(void) {
  int ran = 0, no = 0, device = omp_get_initial_device();
#pragma omp target if (no) map(tofrom : ran)
  ran++;
#pragma omp target device(device) map(tofrom : ran)
  ran++;
  device = omp_get_num_devices() + 3;
#pragma omp target device(device) if (no) map(tofrom : ran)
  ran++;
#pragma omp target device(device) map(tofrom : ran)
  ran += omp_is_initial_device();
#pragma omp target data device(device) map(to : ran)
  {
#pragma omp target update device(device) to(ran)
#pragma omp target enter data device(device) map(to : ran)
#pragma omp target exit data device(device) map(from : ran)
  }
  EQUAL(ran, 4);
  omp_set_default_device(device);
#pragma omp target map(tofrom : ran)
  {
    ran++;
    EQUAL(omp_get_default_device(), 0);
  }
  EQUAL(ran, 5);
  EQUAL(omp_get_default_device(), device);
}

// ---- what GCC 4.9 and 5 call

extern void GOMP_target(int, void (*)(void*), const void*, size_t, void**, size_t*, unsigned char*);
extern void GOMP_target_data(int, const void*, size_t, void**, size_t*, unsigned char*);
extern void GOMP_target_end_data(void);
extern void GOMP_target_update(int, const void*, size_t, void**, size_t*, unsigned char*);
extern void GOMP_teams(unsigned, unsigned);

static void older_region(void* data) {
  int** addresses = data;
  GOMP_teams(4, 3);
  Context c;
  look(&c);
  // One team, whatever was asked for.
  CHECK(c.level == 0 && c.threads == 1 && c.teams == 1, "level %d, %d teams", c.level, c.teams);
  EQUAL(c.limit, 3);
  *addresses[0] += addresses[1][2];
}

static void older(void) {
  int x = 5, y[3] = {1, 2, 3};
  void* addresses[] = {&x, y};
  size_t sizes[] = {sizeof x, sizeof y};
  unsigned char kinds[] = {3, 1};
  const int before = omp_get_thread_limit();
  GOMP_target_data(-1, NULL, 2, addresses, sizes, kinds);
  for (int device = -2; device < 3; ++device)
    GOMP_target(device, older_region, NULL, 2, addresses, sizes, kinds);
  GOMP_target_update(-1, NULL, 1, addresses, sizes, kinds);
  GOMP_target_end_data();
  EQUAL(x, 20);
  EQUAL(omp_get_thread_limit(), before);
#pragma omp parallel num_threads(3) firstprivate(x) shared(y, sizes, kinds)
  {
    void* own[] = {&x, y};
    GOMP_target(-1, older_region, NULL, 2, own, sizes, kinds);
    EQUAL(x, 23);
    EQUAL(omp_get_num_threads(), 3);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "data") == 0)
    data();
  else if (strcmp(mode, "context") == 0)
    context();
  else if (strcmp(mode, "teams") == 0)
    teams();
  else if (strcmp(mode, "nested") == 0)
    nested();
  else if (strcmp(mode, "at-once") == 0)
    at_once();
  else if (strcmp(mode, "limit") == 0)
    limit();
  else if (strcmp(mode, "clauses") == 0)
    clauses();
  else if (strcmp(mode, "older") == 0)
    older();
  else
    fail_at(__LINE__, "mode?");
  return passed();
}
