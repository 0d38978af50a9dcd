// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk-lab-count COMMAND [ARGUMENTS…]: runs a command in the lab and has its accesses counted.
//
// First it shows the plugin each node: it touches, from a CPU of the node, memory bound to the node. The
// plugin compares that with what it would have said (bosk/markers.h). Then the command runs between BEGIN and
// END, and what it returned is returned; 127 if it cannot be found, 126 if it cannot run.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bosk/markers.h>

enum { kMostNodes = 64, kPage = 4096, kBind = 2 /* MPOL_BIND */ };

// The first number of a list like "0-3,8"; -1 if there is no list.
static int first_of_list(const char* format, int node) {
  char path[96];
  snprintf(path, sizeof path, format, node);
  FILE* file = fopen(path, "re");
  int first = -1;
  if (!file) return -1;
  if (fscanf(file, "%d", &first) != 1) first = -1;
  fclose(file);
  return first;
}

static long memory_of(int node) {
  char path[96];
  char line[128];
  long kilobytes = 0;
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
  FILE* file = fopen(path, "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "Node %*d MemTotal: %ld", &kilobytes) == 1) break;
  }
  fclose(file);
  return kilobytes;
}

// The plugin's messages have constant codes: one piece of code for each node.
#define CHECK_1(node)                    \
  case node:                             \
    BOSK_LAB_MARK(BOSK_LAB_CHECK(node)); \
    break;
#define CHECK_4(node) CHECK_1(node) CHECK_1(node + 1) CHECK_1(node + 2) CHECK_1(node + 3)
#define CHECK_16(node) CHECK_4(node) CHECK_4(node + 4) CHECK_4(node + 8) CHECK_4(node + 12)
static void mark_check(int node) {
  switch (node) { CHECK_16(0) CHECK_16(16) CHECK_16(32) CHECK_16(48) }
}

static void show_node(int node) {
  int cpu = first_of_list("/sys/devices/system/node/node%d/cpulist", node);
  if (cpu < 0 || cpu >= CPU_SETSIZE || memory_of(node) == 0) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) return;
  volatile char* page =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  unsigned long nodes = 1UL << node;
  if (syscall(SYS_mbind, page, (unsigned long)kPage, kBind, &nodes, kMostNodes + 1UL, 0UL) == 0) {
    page[0] = 1;  // now it is there
    mark_check(node);
    for (int i = 0; i < kPage; ++i) page[i] = 1;
    BOSK_LAB_MARK(BOSK_LAB_CHECKED);
  }
  munmap((void*)page, kPage);
}

static void show_nodes(void) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
  for (int node = 0; node < kMostNodes; ++node) show_node(node);
  sched_setaffinity(0, sizeof mask, &mask);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: bosk-lab-count COMMAND [ARGUMENTS...]\n");
    return 2;
  }
  show_nodes();
  // As system(3): a key that is meant for the command does not end its launcher.
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
  pid_t child = fork();
  if (child < 0) {
    fprintf(stderr, "bosk-lab-count: cannot fork: %s\n", strerror(errno));
    return 125;
  }
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    BOSK_LAB_MARK(BOSK_LAB_BEGIN);
    execvp(argv[1], argv + 1);
    int error = errno;
    fprintf(stderr, "bosk-lab-count: %s: %s\n", argv[1], strerror(error));
    _exit(error == ENOENT ? 127 : 126);
  }
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 125;
  }
  BOSK_LAB_MARK(BOSK_LAB_END);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
