// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every test program shares: a check that ends the program with one line, and a watchdog.
//
// A failed check must end the program from any thread, even when the runtime under test is broken: so
// it formats into a local buffer, writes once and calls _exit; no exit handlers, no lock of stdio.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "what_hangs.h"

static int check_failed_;

/// Prints "program:line: text" once for the whole process, and ends it with status 1.
__attribute__((noreturn, unused, format(printf, 2, 3))) static void fail_at(int line,
                                                                            const char* format,
                                                                            ...) {
  if (__atomic_exchange_n(&check_failed_, 1, __ATOMIC_ACQ_REL)) {
    for (;;) pause();
  }
  char text[640];
  int length = snprintf(text, sizeof text, "%s:%d: ", program_invocation_short_name, line);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - length - 2, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof text - 2) length = (int)sizeof text - 2;
  text[length++] = '\n';
  ssize_t written = write(STDOUT_FILENO, text, (size_t)length);
  (void)written;
  _exit(1);
}

/// CHECK(condition, "what was found", values...)
#define CHECK(condition, ...)                         \
  do {                                                \
    if (!(condition)) fail_at(__LINE__, __VA_ARGS__); \
  } while (0)

__attribute__((unused)) static void watchdog_fired_(int signal_number) {
  static const char text[] = "watchdog: the program hangs\n";
  (void)signal_number;
  ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);
  (void)written;
  print_what_hangs();
  _exit(1);
}

/// The program ends itself when it hangs. A forked child has no alarm: it arms its own.
__attribute__((unused)) static void arm_watchdog(unsigned seconds) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = watchdog_fired_;
  sigaction(SIGALRM, &action, NULL);
  alarm(seconds);
}

// Programs that use SIGALRM themselves, or block everything, bring a deadline of their own.
#ifndef BOSK_TEST_OWN_DEADLINE
__attribute__((constructor, unused)) static void watchdog_at_start_(void) {
  const char* text = getenv("BOSK_TEST_ALARM");
  arm_watchdog(text && atoi(text) > 0 ? (unsigned)atoi(text) : 110u);
}
#endif

/// Last line of main: return passed();
__attribute__((unused)) static int passed(void) {
  puts("ok");
  return 0;
}
