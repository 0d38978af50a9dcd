// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads the kernel modules that the tool has packed, in the order in which it lists them.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

void load_modules(void) {
  FILE* list = fopen("/modules/LIST", "re");
  if (list == NULL) return;  // a kernel that has all it needs built in
  char name[200];
  while (fgets(name, sizeof name, list) != NULL) {
    name[strcspn(name, "\n")] = '\0';
    char path[220];
    snprintf(path, sizeof path, "/modules/%s", name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) give_up(125, "the guest lacks its module %s", name);
    if (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST) {
      give_up(125, "the guest's kernel refuses the module %s: %s", name, strerror(errno));
    }
    close(file);
  }
  fclose(list);
}
