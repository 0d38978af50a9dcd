/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* learn_forks CHILDREN: a process with a thread that writes all the time forks children, each of which changes its memory and says what it found.
 * Prints "ok" if each found what was there when it was forked, and nothing of theirs is here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20, PAGE = 4096 };

static volatile unsigned char* other;
static volatile int stop;

static void* work(void* unused) {
  (void)unused;
  unsigned random = 1;
  while (!stop) {
    random = random * 1664525U + 1013904223U;
    other[(random >> 8) % BYTES]++;
  }
  return NULL;
}

static int sum_of(const unsigned char* memory) {
  unsigned sum = 0;
  for (int at = 0; at < BYTES; at += PAGE) sum += memory[at];
  return (int)(sum % 120);
}

int main(int argc, char** argv) {
  int children = argc > 1 ? atoi(argv[1]) : 100;
  unsigned char* memory = malloc(BYTES);
  other = malloc(BYTES);
  memset(memory, 1, BYTES);
  memset((unsigned char*)other, 0, BYTES);
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  for (int i = 0; i < children; i++) {
    memory[i * PAGE % BYTES]++;
    int wanted = sum_of(memory);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      int found = sum_of(memory);
      for (int at = 0; at < BYTES; at += PAGE) memory[at] = (unsigned char)i;
      _exit(found);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != wanted || sum_of(memory) != wanted) {
      printf("child %d: %x, wanted %d\n", i, status, wanted);
      return 1;
    }
  }
  stop = 1;
  pthread_join(thread, NULL);
  printf("ok\n");
  return 0;
}
