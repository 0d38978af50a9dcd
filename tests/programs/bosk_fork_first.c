// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A child that is forked while another thread makes the first thread of bosk, and with it all that such threads
// need: the child makes its own.
#include "bosk_check.h"
#include "fork_first.h"

static void* same(void* argument) { return argument; }

static void use_one(void) {
  bosk_thread_t made;
  void* result = NULL;
  OK(bosk_thread_create(&made, NULL, same, &made));
  OK(bosk_thread_join(made, &result));
  CHECK(result == &made, "the thread ended with something else");
}

static void use_openmp(void) {
  int members = 0;
#pragma omp parallel num_threads(2) reduction(+ : members)
  members += 1;
  CHECK(members == 2, "%d members", members);
}

int main(void) {
  fork_beside_first_use(12, 300, use_openmp, use_one, use_one);
  return passed();
}
