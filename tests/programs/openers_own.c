// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a thread has at hand when it opens a region, or waits in one, is what it has afterwards: the other members
// are other threads.
//   openers_own errno|flags|texts|loader MEMBERS ROUNDS
#include "check.h"

#include <arpa/inet.h>
#include <fenv.h>
#include <math.h>
#include <omp.h>

#ifdef WITH_LOADER
#include <dlfcn.h>
#include <netdb.h>
#endif

#define MEMBERS_FROM_1 for (int other = omp_get_thread_num(); other != 0; other = 0)

static int members;

// ---- errno

/// Opened in a level of its own, so that all but member 0 are threads that are made for it.
static void errno_of_members(int round) {
  int kept = 0;
  int fresh = 0;
  errno = 1000 + round;
#pragma omp parallel num_threads(members) reduction(+ : kept, fresh)
  {
    const int me = omp_get_thread_num();
    fresh += errno == (me == 0 ? 1000 + round : 0);
    errno = 2000 + me;
    if (round % 2) {
#pragma omp barrier
    }
    kept += errno == 2000 + me;
    if (round % 4 == 3) {
#pragma omp barrier
      kept += errno == 2000 + me;
    }
  }
  CHECK(errno == 2000, "round %d: errno of member 0 is %d behind the region", round, errno);
  CHECK(fresh == members, "round %d: %d of %d members began with an errno of their own", round,
        fresh, members);
  const int want = members * (1 + (round % 4 == 3));
  CHECK(kept == want, "round %d: %d of %d times a member's errno was its own", round, kept, want);
}

static void errno_of_opener(int round) {
  errno = 3000 + round;
#pragma omp parallel num_threads(members)
  MEMBERS_FROM_1 errno = 4000 + other;
  CHECK(errno == 3000 + round, "round %d: errno %d behind a region", round, errno);
#pragma omp parallel num_threads(members)
  {
    const int me = omp_get_thread_num();
    if (me == 0) errno = 5000;
#pragma omp barrier
    if (me != 0) errno = 6000 + me;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 2 * members; ++i) {
      if (me != 0) errno = 6500 + i;
    }
    if (me == 0) CHECK(errno == 5000, "round %d: errno %d behind a loop", round, errno);
#pragma omp single
    for (int i = 0; i < members; ++i) {
#pragma omp task
      if (omp_get_thread_num() != 0) errno = 7000 + i;
    }
#pragma omp taskwait
    if (me == 0) CHECK(errno == 5000, "round %d: errno %d behind tasks", round, errno);
  }
  CHECK(errno == 5000, "round %d: errno %d behind a region with barriers", round, errno);
}

// ---- floating-point status flags

static volatile double zero = 0, one = 1, three = 3, huge = 1e308;
static volatile long double long_zero = 0, long_one = 1;
static volatile double sink;
static volatile long double long_sink;

static void raise_some(int which) {
  switch (which % 4) {
    case 0:
      sink = one / zero;
      break;
    case 1:
      sink = huge * huge;
      break;
    case 2:
      sink = zero / zero;
      break;
    default:
      long_sink = long_one / long_zero;
      break;
  }
}

static const int kAll = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT;

static void flags(int round) {
  feclearexcept(FE_ALL_EXCEPT);
  if (round % 3 == 1) feraiseexcept(FE_UNDERFLOW);
  const int before = fetestexcept(kAll);
#pragma omp parallel num_threads(members)
  MEMBERS_FROM_1 raise_some(other + round);
  CHECK(fetestexcept(kAll) == before, "round %d: flags %#x behind a region, %#x before", round,
        fetestexcept(kAll), before);
}

/// Who computes nothing finds nothing, but what was there when its thread began. Opened in a level of its own, so that
/// all but member 0 are threads that are made for it.
static void flags_of_members(int round) {
  feclearexcept(FE_ALL_EXCEPT);
  if (round % 3 == 1) feraiseexcept(FE_UNDERFLOW);
  int marked = 0;
  int wrong = 0;
#pragma omp parallel num_threads(members) reduction(+ : marked, wrong)
  {
    const int me = omp_get_thread_num();
    if (me % 3 == 1) raise_some(me % 2 ? 0 : 3);
    if (round % 2) {
#pragma omp barrier
    }
    const int raised = fetestexcept(kAll) & FE_DIVBYZERO;
    marked += raised != 0;
    wrong += (raised != 0) != (me % 3 == 1);
    if (me == 0) sink = huge * huge;
  }
  CHECK(marked == (members + 1) / 3 && wrong == 0, "round %d: %d members divided by zero, %d wrong",
        round, marked, wrong);
  const int after = fetestexcept(kAll & ~FE_UNDERFLOW);
  CHECK(after == (FE_OVERFLOW | FE_INEXACT), "round %d: flags %#x where member 0 has overflowed",
        round, after);
}

// ---- texts that libc keeps for each thread

static void texts_of(int number, const char* texts[3]) {
  struct in_addr address = {htonl(0x0a000000u + (unsigned)number)};
  texts[0] = strerror(10000 + number);
  texts[1] = strsignal(20000 + number);
  texts[2] = inet_ntoa(address);
}

static int are_texts_of(int number, const char* const texts[3]) {
  char want[3][64];
  snprintf(want[0], sizeof want[0], "Unknown error %d", 10000 + number);
  snprintf(want[1], sizeof want[1], "Unknown signal %d", 20000 + number);
  snprintf(want[2], sizeof want[2], "10.%d.%d.%d", number >> 16 & 255, number >> 8 & 255,
           number & 255);
  int right = 0;
  for (int i = 0; i < 3; ++i) right += !strcmp(texts[i], want[i]);
  return right;
}

static void texts(int round) {
  const char* mine[3];
  int right = 0;
  texts_of(5000 + round, mine);
#pragma omp parallel num_threads(members) reduction(+ : right)
  {
    const int me = omp_get_thread_num();
    const char* own[3];
    if (me != 0 || round % 2) {
      texts_of(me, own);
      if (round % 3) {
#pragma omp barrier
      }
      right += are_texts_of(me, own);
    } else {
      if (round % 3) {
#pragma omp barrier
      }
    }
    if (me == 0) texts_of(6000 + round, mine);
  }
  const int want = 3 * (members - (round % 2 == 0));
  CHECK(right == want, "round %d: %d of %d texts of members are right", round, right, want);
  CHECK(are_texts_of(6000 + round, mine) == 3, "round %d: behind the region: %s, %s, %s", round,
        mine[0], mine[1], mine[2]);
  CHECK(!strcmp(strerror(ENOENT), "No such file or directory"), "%s", strerror(ENOENT));
}

// ---- what the loader and the resolver keep for each thread

#ifdef WITH_LOADER
static void loader(int round) {
  CHECK(dlopen("/nowhere/opener.so", RTLD_NOW) == NULL, "opened");
  h_errno = 100 + round;
#pragma omp parallel num_threads(members)
  MEMBERS_FROM_1 {
    h_errno = 200 + other;
    char name[64];
    snprintf(name, sizeof name, "/nowhere/member-%d.so", other);
    CHECK(dlopen(name, RTLD_NOW) == NULL, "opened");
    const char* text = dlerror();
    CHECK(text && strstr(text, name), "round %d: member %d reads %s", round, other,
          text ? text : "nothing");
  }
  CHECK(h_errno == 100 + round, "round %d: h_errno %d behind the region", round, h_errno);
  const char* text = dlerror();
  CHECK(text && strstr(text, "opener.so"), "round %d: dlerror() says %s", round,
        text ? text : "nothing");
  CHECK(dlerror() == NULL, "round %d: a second error", round);
}
#else
static void loader(int round) { CHECK(0, "%d: built without -DWITH_LOADER", round); }
#endif

int main(int argc, char** argv) {
  CHECK(argc == 4, "openers_own SUBJECT MEMBERS ROUNDS");
  const char* subject = argv[1];
  members = atoi(argv[2]);
  const int rounds = atoi(argv[3]);
  CHECK(members > 1 && members <= 1000 && rounds > 0, "%d members, %d rounds", members, rounds);
  omp_set_max_active_levels(2);
  for (int round = 0; round < rounds; ++round) {
    // In the initial thread, from the process's first region on; and one level deeper, on two threads at once.
    if (!strcmp(subject, "errno")) {
      errno_of_opener(round);
#pragma omp parallel num_threads(2)
      {
        errno_of_opener(round);
        errno_of_members(round);
      }
    } else if (!strcmp(subject, "flags")) {
      flags(round);
#pragma omp parallel num_threads(2)
      {
        flags(round);
        flags_of_members(round);
      }
    } else if (!strcmp(subject, "texts")) {
      texts(round);
#pragma omp parallel num_threads(2)
      texts(round);
    } else if (!strcmp(subject, "loader")) {
      loader(round);
#pragma omp parallel num_threads(2)
      loader(round);
    } else {
      CHECK(0, "no such subject: %s", subject);
    }
  }
  return passed();
}
