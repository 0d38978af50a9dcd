// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plug-in without OpenMP that has thread-local variables: loading it makes every thread's TLS grow.
__thread int plugin_counter = 31;
__thread char plugin_space[3000];

int plugin_next(void) {
  plugin_space[plugin_counter % 3000] = 1;
  return ++plugin_counter;
}
