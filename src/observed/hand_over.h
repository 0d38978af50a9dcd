/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What a process that is observed says to its observer, one message on a socket of its own: a hello when it begins, with a userfaultfd of its own
 * beside it; and before it makes one for itself, that it wants its memory back: the observer closes the socket when that is done. And bosk's library says that it
 * places the threads of the process itself, and waits in the same way until they have all their CPUs back; or that it places its memory. */
#ifndef BOSK_OBSERVED_HAND_OVER_H
#define BOSK_OBSERVED_HAND_OVER_H

#include <stdint.h>

/* The environment variable with the name of the observer's abstract socket (SOCK_SEQPACKET). */
#define BOSK_OBSERVER_VARIABLE "BOSK_OBSERVER"

#define BOSK_OBSERVED_VERSION 1U

#define BOSK_OBSERVED_HELLO 0U
#define BOSK_OBSERVED_RELEASE 1U
#define BOSK_OBSERVED_PLACES_THREADS 2U
#define BOSK_OBSERVED_PLACES_MEMORY 3U

struct bosk_observed_message {
  uint32_t version;
  uint32_t kind;
  int32_t
      error; /* of a hello. 0: a userfaultfd comes with the message; else why there is none (errno) */
};

#endif
