// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program without OpenMP that loads what has it, as interpreters load their modules: libc's names come before all others then.
//   late LIBRARY ARGUMENT...: main of that library, which is compiled with -Dmain=late_main
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#ifdef WITH_TIMER
// A reason to give members of the first level a kernel thread each, and all others that a runtime may look for in the objects.
int (*volatile const make_timer)(clockid_t, struct sigevent*, timer_t*) = timer_create;
int (*volatile const test_flags)(int) = fetestexcept;
#endif

int main(int argc, char** argv) {
  if (dlsym(RTLD_DEFAULT, "omp_get_num_threads") != NULL) {
    printf("late: this program has OpenMP itself\n");
    return 2;
  }
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*late_main)(int, char**) = NULL;
  if (library != NULL) *(void**)&late_main = dlsym(library, "late_main");
  if (late_main == NULL) {
    printf("late: %s\n", argc > 1 ? dlerror() : "no library");
    return 2;
  }
  return late_main(argc - 1, argv + 1);
}
