// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The floating-point environment: members start with their opener's MXCSR and x87 control word, and keep
// their own across blocking. Compiled with -ffast-math its start-up code sets FTZ and DAZ.
#include "check.h"

#include <fenv.h>
#include <omp.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned control(void) { return _mm_getcsr() & 0xffc0u; }  // without the sticky flags
static void set_control(unsigned value) { _mm_setcsr(value | (_mm_getcsr() & 0x3fu)); }
static unsigned other_control(unsigned value) {
  return value ^ 0x2000u;
}  // rounding: down <-> nearest
static unsigned short x87(void) {
  unsigned short word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}
#else
#include <stdint.h>
static unsigned control(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return (unsigned)value;
}
static void set_control(unsigned value) {
  uint64_t wide = value;
  __asm__ volatile("msr fpcr, %0" : : "r"(wide));
}
static unsigned other_control(unsigned value) { return value ^ (1u << 22); }
static unsigned short x87(void) { return 0; }
#endif

static void team_has(unsigned expected, unsigned short expected_x87, int threads,
                     const char* when) {
#pragma omp parallel num_threads(threads)
  {
    CHECK(control() == expected, "%s: member %d has control %#x, its opener %#x", when,
          omp_get_thread_num(), control(), expected);
    CHECK(x87() == expected_x87, "%s: member %d has x87 control %#x, its opener %#x", when,
          omp_get_thread_num(), x87(), expected_x87);
#pragma omp barrier
#pragma omp parallel num_threads(3)
    CHECK(control() == expected && x87() == expected_x87,
          "%s: nested member has control %#x, x87 %#x", when, control(), x87());
  }
}

/// Every member sets its own rounding and blocks; nobody else's may show through.
static void private_to_members(int threads) {
  static const int modes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num(), mode = modes[me % 4];
    int before = fegetround();
    CHECK(fesetround(mode) == 0, "fesetround failed");
    unsigned mine = control();
    volatile double one = 1.0, three = 3.0;
    double third = one / three;
    for (int i = 0; i < 50; ++i) {
#pragma omp barrier
      CHECK(fegetround() == mode && control() == mine, "member %d: rounding is now %d", me,
            fegetround());
      CHECK(one / three == third, "member %d: 1/3 changed", me);
#pragma omp critical
      CHECK(fegetround() == mode, "member %d: rounding %d in the critical region", me,
            fegetround());
#pragma omp parallel num_threads(2)
      if (omp_get_thread_num() == 0)
        CHECK(fegetround() == mode, "member %d: rounding %d in its own team", me, fegetround());
    }
    fesetround(before);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "inherit";
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
#ifdef __FAST_MATH__
#if defined(__x86_64__)
  CHECK((control() & 0x8040u) == 0x8040u, "the start-up code did not set FTZ and DAZ: %#x",
        control());
#endif
  volatile double tiny = 2.3e-308, half = 0.5;
  CHECK(tiny * half == 0.0, "denormals are not flushed in main");
#endif
  if (!strcmp(mode, "inherit")) {
    // Set before the first region: also a runtime whose members are made by pthread_create passes.
    fesetround(FE_UPWARD);
    unsigned mine = control();
    team_has(mine, x87(), 8, "first region");
#ifdef __FAST_MATH__
    int wrong = 0;
#pragma omp parallel num_threads(8) reduction(+ : wrong)
    wrong += tiny * half != 0.0;
    CHECK(wrong == 0, "%d members do not flush denormals", wrong);
#endif
    CHECK(control() == mine, "the opener's control changed to %#x", control());
  } else if (!strcmp(mode, "private")) {
    private_to_members(8);
    private_to_members(2);
  } else {
    // Members start with their opener's environment of now, whatever they left behind before.
    for (int round = 0; round < 40; ++round) {
      int threads = round % 3 == 0 ? 8 : 2;
      if (round % 2) set_control(other_control(control()));
      team_has(control(), x87(), threads, "changed by the opener");
#pragma omp parallel num_threads(threads)
      if (omp_get_thread_num() > 0) set_control(other_control(control()));
      team_has(control(), x87(), threads, "changed by members");
    }
  }
  return passed();
}
