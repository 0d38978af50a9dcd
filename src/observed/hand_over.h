/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What a process that is observed says to its observer, once, when it begins: one message on a socket, with a userfaultfd of its own beside it. */
#ifndef BOSK_OBSERVED_HAND_OVER_H
#define BOSK_OBSERVED_HAND_OVER_H

#include <stdint.h>

/* The environment variable with the name of the observer's abstract socket (SOCK_SEQPACKET). */
#define BOSK_OBSERVER_VARIABLE "BOSK_OBSERVER"

#define BOSK_OBSERVED_VERSION 1U

struct bosk_observed_hello {
  uint32_t version;
  int32_t error; /* 0: a userfaultfd comes with the message; else why there is none (errno) */
};

#endif
