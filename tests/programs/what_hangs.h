// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the threads of this process do, for a watchdog to print: a hang that is seen once in a thousand runs must say where it is. Only
// calls that a handler may make, and no memory but its stack and its own.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char what_maps_[1 << 17];

/// The file's text; its length, or -1.
__attribute__((unused)) static int what_read_(const char* path, char* text, int size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  int length = 0;
  for (ssize_t n = 1; n > 0 && length < size - 1; length += n > 0 ? (int)n : 0)
    n = read(file, text + length, (size_t)(size - 1 - length));
  text[length] = 0;
  close(file);
  return length;
}

/// " libc.so.6+0x1234" of an address, " ?" where nothing is mapped from a file.
__attribute__((unused)) static void what_is_at_(unsigned long address, char* text, size_t size) {
  unsigned long base = 0;
  snprintf(text, size, " ?");
  for (char* line = what_maps_; line != NULL && *line != 0;) {
    char* end = strchr(line, '\n');
    if (end == NULL) break;
    char* rest = NULL;
    const unsigned long from = strtoul(line, &rest, 16);
    const unsigned long to = strtoul(rest + 1, &rest, 16);
    char* name = (char*)memchr(line, '/', (size_t)(end - line));
    // The first mapping of each file begins where it is loaded.
    if (strtoul(rest + 6, NULL, 16) == 0) base = from;
    if (address >= from && address < to) {
      for (char* at = name; at != NULL && at < end; at++)
        if (*at == '/') name = at + 1;
      if (name != NULL) snprintf(text, size, " %.*s+%#lx", (int)(end - name), name, address - base);
      return;
    }
    line = end + 1;
  }
}

/// "  TID NAME: call 202 on ld.so+0x123 (word 0x80000123) at libc.so.6+0x456", by thread.
__attribute__((unused)) static void print_what_hangs(void) {
  what_read_("/proc/self/maps", what_maps_, (int)sizeof what_maps_);
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char entries[4096];
  for (ssize_t n; folder >= 0 && (n = getdents64(folder, entries, sizeof entries)) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const struct dirent64* entry = (const struct dirent64*)(const void*)(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] == '.') continue;
      char path[64], name[32] = "?", call[256] = "?", place[96] = " ?", object[96] = " ?",
                     line[400];
      snprintf(path, sizeof path, "/proc/self/task/%.12s/comm", entry->d_name);
      what_read_(path, name, (int)sizeof name);
      name[strcspn(name, "\n")] = 0;
      snprintf(path, sizeof path, "/proc/self/task/%.12s/syscall", entry->d_name);
      what_read_(path, call, (int)sizeof call);
      call[strcspn(call, "\n")] = 0;
      unsigned word = 0;
      char* rest = call;
      const long number = strtol(call, &rest, 10);
      if (rest != call) {
        const unsigned long first = strtoul(rest, &rest, 16);
        const char* last = strrchr(call, ' ');
        if (last != NULL) what_is_at_(strtoul(last, NULL, 16), place, sizeof place);
        if (number >= 0) {
          what_is_at_(first, object, sizeof object);
          struct iovec here = {&word, sizeof word}, there = {(void*)first, sizeof word};
          if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof word) word = 0;
        }
      }
      const int length = snprintf(line, sizeof line, "  %.12s %s: call %s, on%s (word %#x), at%s\n",
                                  entry->d_name, name, call, object, word, place);
      const ssize_t written = write(
          STDOUT_FILENO, line, (size_t)(length < (int)sizeof line ? length : (int)sizeof line - 1));
      (void)written;
    }
  }
}
