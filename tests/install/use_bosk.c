// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that is built against the installed package: threads in a bubble.
#include <bosk/bosk.h>
#include <stdio.h>

static int count;
static void* add_one(void* argument) {
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  return argument;
}

int main(void) {
  bosk_bubble_t bubble;
  bosk_thread_attr_t attr;
  int error = bosk_bubble_create(&bubble);
  if (error == BOSK_OK) error = bosk_thread_attr_init(&attr);
  attr.bubble = bubble;
  attr.detached = 1;
  for (int i = 0; i < 10 && error == BOSK_OK; ++i)
    error = bosk_thread_create(NULL, &attr, add_one, NULL);
  if (error == BOSK_OK) error = bosk_bubble_wake(bubble, NULL);
  if (error == BOSK_OK) error = bosk_bubble_join(bubble);
  if (error == BOSK_OK) error = bosk_bubble_destroy(bubble);
  printf("%d threads, %s\n", count, bosk_strerror(error));
  return error != BOSK_OK;
}
