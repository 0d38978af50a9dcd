/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What a process that is observed says to its observer, one message on a socket of its own: a hello when it begins, with a userfaultfd of its own
 * beside it; and before it makes one for itself, that it wants its memory back: the observer closes the socket when that is done. And bosk's library says that it
 * places the threads of the process itself, and waits in the same way until they have all their CPUs back; or that it places its memory. It asks for wishes where its
 * threads should be, too: the answer is one byte, with a file beside it that both map, or the socket is closed. */
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
#define BOSK_OBSERVED_WISHES 4U

struct bosk_observed_message {
  uint32_t version;
  uint32_t kind;
  int32_t
      error; /* of a hello. 0: a userfaultfd comes with the message; else why there is none (errno) */
};

/* The file of wishes. All words are atomic; the observer writes `wished` and `wish`, the process the rest, and both ring: add 1 to `news` (release) and wake who
 * sleeps on it. When it is rung the process does what is wished, if `wished` is its `team`, and says anew where its workers are. Nobody trusts what the other has
 * written to be more than numbers. */
#define BOSK_MOST_SEATS 4096U

struct bosk_seat {
  uint32_t thread; /* the kernel's number; 0: there is none yet */
  uint32_t
      member;   /* whom it belongs to: itself if it is less than `team`, else it helps that one */
  uint32_t cpu; /* where that is at home */
};

struct bosk_wishes {
  uint32_t news;   /* futex */
  uint32_t team;   /* so many are members, the first ones; 0: nobody has a seat now */
  uint32_t seats;  /* of `seat`, how many there are */
  uint32_t wished; /* for a team of so many; 0: nothing yet */
  struct bosk_seat seat[BOSK_MOST_SEATS];
  uint32_t wish[BOSK_MOST_SEATS]; /* of each member, the CPU that it should be at home on */
};

#endif
