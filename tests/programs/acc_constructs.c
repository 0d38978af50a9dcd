// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenACC constructs where there is no accelerator: they run on the host, on the program's own data.
//   acc_constructs MODE      old: the entry points of GCC 5 to 11, called by hand
#include "check.h"

#include <openacc.h>

#define N 1000

static float a[N], b[N];
static int never;  // an if clause that gcc cannot fold

static void fill(void) {
  for (int i = 0; i < N; ++i) {
    a[i] = (float)i;
    b[i] = 1;
  }
}

static void compute(void) {
  fill();
  int scale = 3;
  int table[4] = {1, 2, 3, 4};
#pragma acc parallel loop num_gangs(4) num_workers(2) vector_length(32) copyin(b) copy(a) \
    firstprivate(scale, table)
  for (int i = 0; i < N; ++i) a[i] += b[i] * (float)(scale + table[i & 3]);
  for (int i = 0; i < N; ++i) {
    CHECK(a[i] == (float)(i + 3 + (i & 3) + 1), "a[%d] is %g", i, (double)a[i]);
  }

  double sum = 0;
#pragma acc kernels loop reduction(+ : sum) copyin(b)
  for (int i = 0; i < N; ++i) sum += (double)b[i];
  CHECK(sum == N, "the sum is %g", sum);

  int most = -1;
#pragma acc parallel copy(most) copyin(a)
  {
#pragma acc loop gang vector reduction(max : most)
    for (int i = 0; i < N; ++i) most = most > (int)a[i] ? most : (int)a[i];
  }
  CHECK(most == N - 1 + 3 + 4, "the largest is %d", most);

  int runs = 0;
#pragma acc serial copy(runs)
  runs += 1;
  CHECK(runs == 1, "serial ran %d times", runs);
}

// A copy is the construct's own: the original keeps its value, whatever its size.
static void firstprivate(void) {
  char small = 7;
  double number = 2.5;
  long many[64];
  for (int i = 0; i < 64; ++i) many[i] = i;
  double seen = 0;
  long total = 0;
#pragma acc parallel num_gangs(1) firstprivate(small, number, many) copy(seen, total)
  {
    seen = number + small;
    for (int i = 0; i < 64; ++i) total += many[i];
    small = 0;
    number = 0;
    many[63] = -1;
  }
  CHECK(seen == 9.5 && total == 63 * 64 / 2, "seen %g, total %ld", seen, total);
  CHECK(small == 7 && number == 2.5 && many[63] == 63, "an original was written to: %d %g %ld",
        small, number, many[63]);
}

static void conditions(void) {
  int calls = 0;
#pragma acc parallel num_gangs(1) if (never) copy(calls)
  calls += 1;
#pragma acc kernels if (!never) copy(calls)
  calls += 10;
#pragma acc serial if (never) async(2) copy(calls)
  calls += 100;
  CHECK(calls == 111, "the constructs left %d", calls);
#pragma acc data copy(a) if (never)
  {
#pragma acc update device(a) if (never)
#pragma acc parallel loop present(a)
    for (int i = 0; i < N; ++i) a[i] = 5;
#pragma acc update self(a) if (never)
  }
  CHECK(a[N - 1] == 5, "a[N - 1] is %g", (double)a[N - 1]);
#pragma acc enter data copyin(a) if (never)
#pragma acc exit data copyout(a) if (never)
}

// Each construct is done when it ends, so that the next one on any queue sees what it wrote.
static void queues(void) {
  fill();
  for (int step = 0; step < 12; ++step) {
#pragma acc parallel loop async(step) wait(step - 1, step + 1) present_or_copy(a)
    for (int i = 0; i < N; ++i) a[i] = a[i] * 2 + 1;
#pragma acc parallel loop async wait present_or_copy(a)
    for (int i = 0; i < N; ++i) a[i] = (a[i] - 1) / 2;
  }
#pragma acc wait(1, 2, 3) async(4)
#pragma acc wait async(5)
#pragma acc wait(7)
#pragma acc wait
  for (int i = 0; i < N; ++i) CHECK(a[i] == (float)i, "a[%d] is %g", i, (double)a[i]);
}

struct Vector {
  float* at;
  int n;
};

static void data(void) {
  fill();
  struct Vector v = {a, N};
  float* whole = a;
#pragma acc enter data copyin(v, v.at[0 : v.n]) async(1)
#pragma acc data copyin(b[0 : N]) create(a[10 : 20]) present(v)
  {
    CHECK(acc_is_present(a, sizeof a), "a is not present");
    CHECK(acc_deviceptr(b) == b, "b moved");
#pragma acc data no_create(b) deviceptr(whole)
    {
#pragma acc parallel loop present(v) deviceptr(whole)
      for (int i = 0; i < N; ++i) whole[i] += b[i] * (float)(v.n / N);
    }
#pragma acc host_data use_device(a)
    {
      // The address on the device is the program's own.
      CHECK(acc_hostptr(a) == v.at, "host_data changes the address");
      a[0] += 41;
    }
#pragma acc update self(v.at[0 : 10]) device(b) async(2) wait(1)
#pragma acc update self(b) if_present
  }
#pragma acc exit data copyout(v.at[0 : v.n]) finalize
#pragma acc exit data delete (v)
#pragma acc wait
  CHECK(a[0] == 42 && a[1] == 2 && a[N - 1] == N, "a is %g %g … %g", (double)a[0], (double)a[1],
        (double)a[N - 1]);
  // Nothing goes away with a region: it is the program's memory.
  CHECK(acc_is_present(a, sizeof a), "a went away");
}

static float total_of(int n) {
  float local[16];
  float total = 0;
#pragma acc declare create(local)
#pragma acc parallel loop num_gangs(1) copyin(n)
  for (int i = 0; i < 16; ++i) local[i] = (float)(n + i);
#pragma acc parallel loop reduction(+ : total)
  for (int i = 0; i < 16; ++i) total += local[i];
  return total;
}

static float table[4] = {1, 2, 4, 8};
#pragma acc declare copyin(table)

#pragma acc routine seq
static float looked_up(int i) { return table[i & 3]; }

static void declarations(void) {
  CHECK(total_of(2) == 2 * 16 + 120, "the total is %g", (double)total_of(2));
  fill();
#pragma acc parallel loop copy(a)
  for (int i = 0; i < N; ++i) a[i] = looked_up(i);
  CHECK(a[0] == 1 && a[7] == 8, "a[0] is %g, a[7] is %g", (double)a[0], (double)a[7]);
  int counter = 0;
  int captured[N];
#pragma acc parallel loop copy(counter) copyout(captured)
  for (int i = 0; i < N; ++i) {
#pragma acc atomic capture
    captured[i] = counter++;
  }
  CHECK(counter == N, "counted to %d", counter);
  for (int i = 0; i < N; ++i) CHECK(captured[i] == i, "captured[%d] is %d", i, captured[i]);
}

// What older compilers call. Variables of kind 1 are mapped to the device, of kind 2 from it.
void GOACC_parallel(int, void (*)(void*), size_t, void**, size_t*, unsigned short*, int, int, int,
                    int, int, ...);
void GOACC_parallel_keyed(int, void (*)(void*), size_t, void**, size_t*, unsigned short*, ...);
void GOACC_enter_exit_data(int, size_t, void**, size_t*, unsigned short*, int, int, ...);
int GOACC_get_thread_num(void);
int GOACC_get_num_threads(void);

static int bodies;
static void body(void* addresses) {
  float* first = *(float**)addresses;
  first[0] += 1;
  ++bodies;
}

static void old(void) {
  fill();
  // libgomp 12 crashes if the oldest of them comes before anything else.
  acc_init(acc_device_default);
  void* addresses[1] = {a};
  size_t sizes[1] = {sizeof a};
  unsigned short to[1] = {0x201}, from[1] = {0x202}, bad[1] = {0x203};
  // Flags are inverted: -2 is an if clause that is false.
  GOACC_parallel(-1, body, 1, addresses, sizes, to, 4, 3, 2, -2, 0);
  GOACC_parallel(-2, body, 1, addresses, sizes, to, 4, 3, 2, 5, 2, 7, 8);
  // Dimensions (three operands), a queue, two queues to wait for, the end.
  GOACC_parallel_keyed(-1, body, 1, addresses, sizes, to, 0x10000007, 4, 3, 2, 0x2000ffff, 5,
                       0x30000002, 7, 8, 0);
  GOACC_parallel_keyed(-2, body, 1, addresses, sizes, to, 0);
  CHECK(bodies == 4 && a[0] == 4, "%d bodies, a[0] is %g", bodies, (double)a[0]);
  CHECK(GOACC_get_thread_num() == 0 && GOACC_get_num_threads() == 1, "more than one thread");
  GOACC_enter_exit_data(-1, 1, addresses, sizes, to, -2, 0);
  GOACC_enter_exit_data(-1, 1, addresses, sizes, from, 3, 2, 1, 2);
  puts("now a kind that is no part of either directive");
  fflush(stdout);
  GOACC_enter_exit_data(-1, 1, addresses, sizes, bad, -2, 0);
  puts("still here");
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "old") == 0) {
    old();
    return passed();
  }
  compute();
  firstprivate();
  conditions();
  queues();
  data();
  declarations();
  return passed();
}
