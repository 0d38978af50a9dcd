/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_userfaultfd: a program that has used some memory for a while, and then wants to know with a userfaultfd of its own who writes to it. Prints "ok",
 * also where the kernel does not let it have one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 2048 };

int main(void) {
  volatile unsigned char* memory =
      mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct timespec began;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &began);
  do {
    for (int page = 0; page < PAGES; page++) memory[(long)page * PAGE]++;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - began.tv_sec < 2);
  int made = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */);
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  if (made < 0 || ioctl(made, UFFDIO_API, &api) != 0) {
    printf("ok\n");
    return 0;
  }
  struct uffdio_register area = {.range = {(unsigned long)memory, (unsigned long)PAGES * PAGE},
                                 .mode = UFFDIO_REGISTER_MODE_WP};
  if (ioctl(made, UFFDIO_REGISTER, &area) != 0) {
    printf("UFFDIO_REGISTER: %s\n", strerror(errno));
    return 1;
  }
  for (int page = 0; page < PAGES; page++) memory[(long)page * PAGE]++;
  printf("ok\n");
  return 0;
}
