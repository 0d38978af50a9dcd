// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of libc that answer with a buffer of the calling thread: for members that share a thread's identity with
// its owner the buffer is the member's (omp/guest_texts.h). For everybody else libc's own answer.
//
// Exported without a version, so that they come before libc's wherever our library does, and that a program which is
// linked against it starts without. Where libc comes first, whoever imports one of these names has identities told
// apart instead (context/observers.cpp).
#include <arpa/inet.h>
#include <libintl.h>
#include <locale.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "abi/gomp/export.h"
#include "abi/libc/of_libc.h"
#include "base/cpu.h"
#include "omp/guest_texts.h"

namespace {

namespace libc = bosk::libc;
using bosk::omp::guest_text;
using bosk::omp::kTextBytes;
using bosk::omp::Text;

/// In the language of the thread's locale.
const char* translated(const char* text) { return dcgettext("libc", text, LC_MESSAGES); }
}  // namespace

BOSK_EXPORT char* strerror(int number) noexcept {
  char* room = guest_text(Text::kError);
  if (BOSK_LIKELY(room == nullptr)) return libc::of_libc().strerror(number);
  // That of a known error is a constant, and not put there.
  return strerror_r(number, room, kTextBytes);
}

BOSK_EXPORT char* strerror_l(int number, locale_t locale) noexcept {
  char* room = guest_text(Text::kError);
  if (BOSK_LIKELY(room == nullptr)) return libc::of_libc().strerror_l(number, locale);
  const locale_t outer = uselocale(locale);
  char* text = strerror_r(number, room, kTextBytes);
  uselocale(outer);
  return text;
}

BOSK_EXPORT char* strsignal(int number) noexcept {
  constexpr int kFirstUnknown = 32;  // those below have names, all of them
  char* room = guest_text(Text::kSignal);
  if (BOSK_LIKELY(room == nullptr || (number > 0 && number < kFirstUnknown)))
    return libc::of_libc().strsignal(number);
  const int first = SIGRTMIN;
  if (number >= first && number <= SIGRTMAX)
    snprintf(room, kTextBytes, translated("Real-time signal %d"), number - first);
  else
    snprintf(room, kTextBytes, translated("Unknown signal %d"), number);
  return room;
}

BOSK_EXPORT char* inet_ntoa(in_addr address) noexcept {
  char* room = guest_text(Text::kAddress);
  if (BOSK_LIKELY(room == nullptr)) return libc::of_libc().inet_ntoa(address);
  const uint32_t value = ntohl(address.s_addr);
  snprintf(room, kTextBytes, "%u.%u.%u.%u", value >> 24, value >> 16 & 255, value >> 8 & 255,
           value & 255);
  return room;
}
