// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opens a region of two nested teams, prints how many members ran and which libgomp is mapped; exits
// with the status it is told, or kills itself by the signal.
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int members = 0;
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : members)
#pragma omp parallel num_threads(3) reduction(+ : members)
  members += 1;
  printf("members %d\n", members);
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[1024], last[1024] = "";
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    char* path = strchr(line, '/');
    if (path == NULL || strstr(path, "libgomp") == NULL || strcmp(path, last) == 0) continue;
    strcpy(last, path);
    printf("library %s", path);
  }
  for (int i = 1; i < argc; ++i) printf("argument %s\n", argv[i]);
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "kill") == 0) raise(SIGTERM);
  return argc > 1 ? atoi(argv[1]) : 0;
}
