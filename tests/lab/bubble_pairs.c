// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pairs of threads that share data, in a bubble each and all of these in one: bubble_pairs PAIRS ROUNDS. The two of a
// pair meet some times, touch a block, half each, and then work on it round after round, and meet after each.
//
// Prints for check_policies.py, of all rounds of all threads, how many ran on the node (which has one cache) where the
// partner ran this round, how many on the node of their half, and of those on other nodes than their partner
// their distance, by the firmware's table, added up:
//   pairs: N samples, N together, N local, N apart
#include "pair_blocks.h"

#include <bosk/bosk.h>

#define OK(call)                                                      \
  do {                                                                \
    const int error_ = (call);                                        \
    CHECK(error_ == BOSK_OK, "%s: %s", #call, bosk_strerror(error_)); \
  } while (0)

enum { kSettle = 4 };

struct member {
  unsigned pair;
  unsigned me;
};

static unsigned rounds;
static bosk_bubble_t bubbles[kMostPairs];
static struct member members[kMostPairs][2];
static unsigned nodes[kMostPairs][2][2];  ///< where they were, in even and in odd rounds

static void* run(void* argument) {
  const struct member* m = argument;
  // The first ones find all others asleep, and are moved about until these have come.
  for (unsigned round = 0; round < kSettle; ++round) {
    stay_busy(sweeps_of(m->pair, rounds + round, m->me));
    OK(bosk_bubble_barrier(bubbles[m->pair], NULL));
  }
  first_touch(m->pair, m->me);
  OK(bosk_bubble_barrier(bubbles[m->pair], NULL));
  for (unsigned round = 0; round < rounds; ++round) {
    work(m->pair, round, m->me);
    unsigned* mine = nodes[m->pair][round % 2];
    mine[m->me] = my_node();
    OK(bosk_bubble_barrier(bubbles[m->pair], NULL));
    count(m->pair, m->me, mine[m->me], mine[1 - m->me]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  CHECK(argc == 3 && atoi(argv[2]) > 0, "usage: bubble_pairs PAIRS ROUNDS");
  make_blocks((unsigned)atoi(argv[1]));
  rounds = (unsigned)atoi(argv[2]);
  bosk_bubble_t all;
  OK(bosk_bubble_create(&all));
  for (unsigned pair = 0; pair < pairs; ++pair) {
    OK(bosk_bubble_create(&bubbles[pair]));
    OK(bosk_bubble_insert_bubble(all, bubbles[pair]));
    for (unsigned me = 0; me < 2; ++me) {
      members[pair][me] = (struct member){pair, me};
      bosk_thread_attr_t attr;
      OK(bosk_thread_attr_init(&attr));
      attr.bubble = bubbles[pair];
      attr.detached = 1;
      OK(bosk_thread_create(NULL, &attr, run, &members[pair][me]));
    }
  }
  OK(bosk_bubble_wake(all, NULL));
  OK(bosk_bubble_join(all));
  for (unsigned pair = 0; pair < pairs; ++pair) OK(bosk_bubble_destroy(bubbles[pair]));
  OK(bosk_bubble_destroy(all));
  check_values(rounds);
  printf("pairs: %ld samples, %ld together, %ld local, %ld apart\n", samples, together, local,
         distance);
  return passed();
}
