// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locales and conversions in members: each has a locale of its own, also across waits, in nested members
// and tasks; iconv, strtok_r, multibyte functions and setlocale() of the process work meanwhile.
#include "check.h"

#include <iconv.h>
#include <langinfo.h>
#include <locale.h>
#include <omp.h>
#include <wchar.h>

static locale_t locales[2];

static int is_utf8(void) { return !strcmp(nl_langinfo(CODESET), "UTF-8"); }

static void convert(int seed) {
  char in[64], out[256];
  int length = snprintf(in, sizeof in, "caf\xe9 %d", seed);
  iconv_t descriptor = iconv_open("UTF-8", "ISO-8859-1");
  CHECK(descriptor != (iconv_t)-1, "iconv_open: errno %d", errno);
  char *from = in, *to = out;
  size_t left = (size_t)length, room = sizeof out;
  CHECK(iconv(descriptor, &from, &left, &to, &room) == 0, "iconv: errno %d", errno);
  *to = 0;
  iconv_close(descriptor);
  char expected[64];
  snprintf(expected, sizeof expected, "caf\xc3\xa9 %d", seed);
  CHECK(!strcmp(out, expected), "iconv made '%s'", out);
}

/// The calling thread has locale `which`, and it shows.
static void check_locale(int which, const char* where) {
  CHECK(uselocale((locale_t)0) == locales[which], "%s: the locale of another", where);
  CHECK(is_utf8() == which, "%s: the code set is %s", where, nl_langinfo(CODESET));
  wchar_t wide[8];
  size_t got = mbstowcs(wide, "\xc3\xa9", 8);
  CHECK(which ? got == 1 && wide[0] == 0xe9 : got != 1, "%s: mbstowcs made %zd", where,
        (ssize_t)got);
}

static void members(int threads) {
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num(), which = me % 2;
    locale_t before = uselocale(locales[which]);
    for (int round = 0; round < 5; ++round) {
      check_locale(which, "member");
      convert(me * 10 + round);
#pragma omp barrier
      check_locale(which, "after a barrier");
#pragma omp critical
      convert(me);
      if (me == 0) CHECK(setlocale(LC_ALL, round % 2 ? "C" : "C.UTF-8"), "setlocale failed");
#pragma omp parallel num_threads(3)
      {
        int mine = (which + omp_get_thread_num()) % 2;
        locale_t outer = uselocale(locales[mine]);
#pragma omp barrier
        check_locale(mine, "nested member");
        convert(me);
        uselocale(outer);
      }
      check_locale(which, "after a nested region");
#pragma omp task
      convert(me + 1000);
#pragma omp taskwait
      check_locale(which, "after a task");
    }
    uselocale(before);
  }
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  locales[0] = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  locales[1] = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
  CHECK(locales[0] && locales[1], "newlocale: errno %d", errno);
  for (int round = 0; round < 5; ++round) {
    members(2);
    members(7);
  }
  return passed();
}
