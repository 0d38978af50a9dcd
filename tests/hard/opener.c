// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the opener of a region had, it has afterwards, and each member keeps its own: errno, floating-point flags, and
// the results that libc keeps in thread-local storage. Nothing here tells one thread from another otherwise.
//   opener errno|flags|x87|strings|dlerror|members flat|nested [MEMBERS]
#include "hard.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fenv.h>
#include <netdb.h>

enum { kRounds = 400 };

static int team;

static void errno_kept(void) {
  for (int i = 0; i < kRounds; ++i) {
    const int mine = i % 2 ? EXDEV : 0;
    int wrong = 0;
    errno = mine;
#pragma omp parallel num_threads(team) reduction(+ : wrong)
    if (omp_get_thread_num() != 0) {
      wrong += close(-1) == 0 || errno != EBADF;
      errno = 1000 + omp_get_thread_num();
      delay_rounds(200);
      wrong += errno != 1000 + omp_get_thread_num();
    }
    const int found = errno;
    CHECK(found == mine, "errno was %d before region %d, and is %d", mine, i, found);
    CHECK(wrong == 0, "%d members found a foreign errno", wrong);
  }
}

static volatile double one = 1, zero = 0, big = 1e308;
static volatile long double long_one = 1, long_zero = 0;

static void raise_flags(void) {
  volatile double sink = one / zero;
  sink = big * big;
  sink = zero / zero;
  sink = one / 3;
  (void)sink;
}

static void flags_kept(void) {
  for (int i = 0; i < kRounds; ++i) {
    feclearexcept(FE_ALL_EXCEPT);
    const int mine = i % 2 ? FE_UNDERFLOW : 0;
    if (mine) feraiseexcept(mine);
    // feraiseexcept may raise inexact with it.
    const int before = fetestexcept(FE_ALL_EXCEPT);
#pragma omp parallel num_threads(team)
    if (omp_get_thread_num() != 0) {
      if (i % 2)
        feclearexcept(FE_ALL_EXCEPT);
      else
        raise_flags();
    }
    const int found = fetestexcept(FE_ALL_EXCEPT);
    CHECK(found == before, "the flags were %x before region %d, and are %x", before, i, found);
  }
}

#if defined(__x86_64__)
static int x87_flags(void) {
  unsigned short word;
  __asm__ volatile("fnstsw %0" : "=m"(word));
  return word & 0x3f;
}
static void x87_kept(void) {
  for (int i = 0; i < kRounds; ++i) {
    __asm__ volatile("fnclex");
    volatile long double sink;
    if (i % 2) sink = long_one / long_zero;
    const int before = x87_flags();
#pragma omp parallel num_threads(team)
    if (omp_get_thread_num() != 0) {
      volatile long double inner;
      if (i % 2)
        __asm__ volatile("fnclex");
      else
        inner = long_one / long_zero;
      (void)inner;
    }
    const int found = x87_flags();
    CHECK(found == before, "the x87 flags were %x before region %d, and are %x", before, i, found);
    (void)sink;
  }
}
#else
static void x87_kept(void) { flags_kept(); }
#endif

/// Each member has its own flags and errno across barriers and while it computes beside others.
static void members_keep(void) {
  const long rounds = rounds_per_ms_ * 15 / (team > 8 ? team / 8 : 1);
#pragma omp parallel num_threads(team)
  {
    const int me = omp_get_thread_num();
    const int flags[] = {0, FE_INVALID, FE_DIVBYZERO, FE_INVALID | FE_DIVBYZERO};
    for (int i = 0; i < 6; ++i) {
      const int mine = flags[(me + i) % 4];
      feclearexcept(FE_ALL_EXCEPT);
      if (mine) feraiseexcept(mine);
      errno = 2000 + me;
      if (i % 2) delay_rounds(rounds);  // no arithmetic that raises flags
#pragma omp barrier
      const int error = errno;
      const int found = fetestexcept(FE_ALL_EXCEPT);
      CHECK(found == mine, "the flags of member %d are %x, not %x", me, found, mine);
      CHECK(error == 2000 + me, "errno of member %d is %d", me, error);
#pragma omp barrier
    }
  }
}

static void strings_kept(void) {
  for (int i = 0; i < kRounds; ++i) {
    char error_wanted[64], signal_wanted[64];
    const struct in_addr address = {htonl(0x0a000000u + (unsigned)i)};
    snprintf(error_wanted, sizeof error_wanted, "Unknown error %d", 10000 + i);
    snprintf(signal_wanted, sizeof signal_wanted, "Unknown signal %d", 200 + i);
    const char* error = strerror(10000 + i);
    const char* of_signal = strsignal(200 + i);
    const char* host = inet_ntoa(address);
    h_errno = 77;
#pragma omp parallel num_threads(team)
    if (omp_get_thread_num() != 0) {
      const int me = omp_get_thread_num();
      const struct in_addr other = {htonl(0xc0a80000u + (unsigned)me)};
      char wanted[64];
      snprintf(wanted, sizeof wanted, "192.168.0.%d", me);
      h_errno = me;
      const char* text = strerror(20000 + me);
      CHECK(strstr(text, "error 200") != NULL || strstr(text, "error 2") != NULL, "%s", text);
      strsignal(1000 + me);
      CHECK(is(inet_ntoa(other), wanted) || me > 255, "inet_ntoa of member %d", me);
    }
    CHECK(is(error, error_wanted), "strerror's result became \"%s\"", error);
    CHECK(is(of_signal, signal_wanted), "strsignal's result became \"%s\"", of_signal);
    CHECK(is(host, inet_ntoa(address)), "inet_ntoa's result became \"%s\"", host);
    CHECK(h_errno == 77, "h_errno became %d", h_errno);
  }
}

static void dlerror_kept(void) {
  for (int i = 0; i < kRounds / 8; ++i) {
    char name[64];
    snprintf(name, sizeof name, "/nowhere/opener-%d.so", i);
    CHECK(dlopen(name, RTLD_NOW) == NULL, "%s is there", name);
    const char* text = i % 2 ? dlerror() : NULL;
#pragma omp parallel num_threads(team)
    if (omp_get_thread_num() != 0) {
      char own[64];
      snprintf(own, sizeof own, "/nowhere/member-%d.so", omp_get_thread_num());
      CHECK(dlopen(own, RTLD_NOW) == NULL, "%s is there", own);
      const char* why = dlerror();
      CHECK(why != NULL && strstr(why, own) != NULL, "dlerror of member %d: %s",
            omp_get_thread_num(), why ? why : "nothing");
    }
    if (text == NULL) text = dlerror();
    CHECK(text != NULL && strstr(text, name) != NULL, "dlerror of the opener of region %d: %s", i,
          text ? text : "nothing");
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* shape = argc > 2 ? argv[2] : "";
  static const struct {
    const char* name;
    void (*test)(void);
  } kTests[] = {{"errno", errno_kept},     {"flags", flags_kept},     {"x87", x87_kept},
                {"strings", strings_kept}, {"dlerror", dlerror_kept}, {"members", members_keep}};
  void (*test)(void) = NULL;
  for (size_t i = 0; i < sizeof kTests / sizeof kTests[0]; ++i)
    if (is(mode, kTests[i].name)) test = kTests[i].test;
  if (test == NULL || (!is(shape, "flat") && !is(shape, "nested"))) no_such_mode();
  team = argc > 3 ? atoi(argv[3]) : omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (is(shape, "flat")) {
    test();
  } else {
    if (team > 8) team = 8;
#pragma omp parallel num_threads(2)
    test();
  }
  return passed();
}
