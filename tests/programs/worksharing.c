// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sections, single with copyprivate, master, masked, scope, critical, atomic and barrier.
#include "check.h"

#include <omp.h>

static void sections_forms(int threads) {
  int done[7] = {0}, last = 0;
  double sum = 0;
#pragma omp parallel num_threads(threads) shared(done)
  {
    for (int round = 0; round < 10; ++round) {
#pragma omp sections
      {
        done[0]++;
#pragma omp section
        done[1]++;
#pragma omp section
        done[2]++;
#pragma omp section
        done[3]++;
#pragma omp section
        done[4]++;
#pragma omp section
        done[5]++;
#pragma omp section
        done[6]++;
      }
#pragma omp single
      for (int i = 0; i < 7; ++i)
        CHECK(done[i] == round + 1, "section %d ran %d times in %d rounds", i, done[i], round + 1);
    }
#pragma omp sections lastprivate(last) reduction(+ : sum) nowait
    {
#pragma omp section
      {
        last = 1;
        sum += 0.5;
      }
#pragma omp section
      {
        last = 2;
        sum += 1.25;
      }
    }
#pragma omp barrier
    CHECK(last == 2 && sum == 1.75, "sections: last %d, sum %g", last, sum);
#pragma omp barrier
#pragma omp sections
    {
#pragma omp section
      last = 9;
    }
  }
  CHECK(last == 9, "a lone section: %d", last);
}

struct Big {
  long item[200];
};

static void singles(int threads) {
  int count = 0;
#pragma omp parallel num_threads(threads) shared(count)
  {
    int private_value = -1;
    struct Big block;
    double* pointer = NULL;
    for (int round = 0; round < 40; ++round) {
#pragma omp single copyprivate(private_value, block, pointer)
      {
        count++;
        private_value = round * 10;
        for (int i = 0; i < 200; ++i) block.item[i] = i + round;
        pointer = malloc(sizeof(double));
        CHECK(pointer, "no memory");
        *pointer = round;
      }
      CHECK(private_value == round * 10, "copyprivate: %d in round %d", private_value, round);
      for (int i = 0; i < 200; ++i)
        CHECK(block.item[i] == i + round, "copyprivate: item %d is %ld in round %d", i,
              block.item[i], round);
      CHECK(*pointer == round, "copyprivate: pointer to %g in round %d", *pointer, round);
#pragma omp barrier
#pragma omp single
      free(pointer);
      CHECK(count == round + 1, "%d singles after %d rounds", count, round + 1);
#pragma omp barrier
    }
  }
}

static void masters(int threads) {
  int count = 0, filtered = 0;
#pragma omp parallel num_threads(threads) shared(count, filtered)
  {
#pragma omp master
    {
      CHECK(omp_get_thread_num() == 0, "master on thread %d", omp_get_thread_num());
      count++;
    }
#pragma omp masked filter(threads - 1)
    {
      CHECK(omp_get_thread_num() == threads - 1, "masked on thread %d", omp_get_thread_num());
      filtered++;
    }
  }
  CHECK(count == 1 && filtered == 1, "%d masters, %d masked", count, filtered);
}

static void scopes(int threads) {
  long total = 0;
  int members = 0;
#pragma omp parallel num_threads(threads) shared(total, members)
  {
    for (int round = 0; round < 10; ++round) {
#pragma omp scope reduction(+ : total)
      total += omp_get_thread_num() + 1;
      CHECK(total == (round + 1L) * threads * (threads + 1) / 2, "scope: %ld after round %d", total,
            round);
#pragma omp barrier
    }
#pragma omp scope nowait
    {
#pragma omp atomic
      members++;
    }
  }
  CHECK(members == threads, "%d members", members);
}

static long named_a, named_b, unnamed;

static void criticals(int threads, int rounds) {
  named_a = named_b = unnamed = 0;
#pragma omp parallel num_threads(threads)
  for (int i = 0; i < rounds; ++i) {
#pragma omp critical(alpha)
    {
      named_a++;
#pragma omp critical(beta)
      named_b++;
    }
#pragma omp critical
    unnamed++;
#pragma omp critical(beta) hint(omp_sync_hint_contended)
    named_b++;
  }
  CHECK(named_a == (long)threads * rounds && named_b == 2L * threads * rounds &&
            unnamed == (long)threads * rounds,
        "critical: %ld, %ld, %ld of %ld", named_a, named_b, unnamed, (long)threads * rounds);
  named_a = 0;
#pragma omp parallel num_threads(threads)
#pragma omp parallel num_threads(2)
  for (int i = 0; i < rounds / 8; ++i) {
#pragma omp critical(alpha)
    named_a++;
  }
  CHECK(named_a == 2L * threads * (rounds / 8), "critical in nested teams: %ld", named_a);
}

typedef struct {
  char c;
  short s;
  int i;
  long l;
  float f;
  double d;
  long double wide;
  unsigned char bits;
} Shared;

static void atomics(int threads, int rounds) {
  Shared shared;
  memset(&shared, 0, sizeof shared);
  long tickets = 0, ticket_sum = 0;
  int smallest = 1000000, largest = -1;
#pragma omp parallel num_threads(threads) shared(shared) reduction(+ : ticket_sum)
  {
    int me = omp_get_thread_num();
    for (int i = 0; i < rounds; ++i) {
#pragma omp atomic
      shared.c++;
#pragma omp atomic
      shared.s -= 1;
#pragma omp atomic
      shared.i += me;
#pragma omp atomic
      shared.l ^= 1L << (i % 60);
#pragma omp atomic
      shared.f += 1.0f;
#pragma omp atomic
      shared.d = 2.0 + shared.d;
#pragma omp atomic
      shared.wide += 1.0L;
#pragma omp atomic seq_cst
      shared.bits |= (unsigned char)(1 << (i % 8));
      long ticket;
#pragma omp atomic capture
      ticket = tickets++;
      ticket_sum += ticket;
      int mine = me * 1000 + i;
#pragma omp atomic compare
      if (mine < smallest) {
        smallest = mine;
      }
#pragma omp atomic compare
      if (largest < mine) {
        largest = mine;
      }
    }
  }
  long n = (long)threads * rounds;
  CHECK(shared.c == (char)n && shared.s == (short)-n, "atomic: char %d, short %d", shared.c,
        shared.s);
  CHECK(shared.i == rounds * threads * (threads - 1) / 2, "atomic int: %d", shared.i);
  CHECK(shared.f == (float)n && shared.d == 2.0 * n && shared.wide == (long double)n,
        "atomic: float %g, double %g, long double %Lg of %ld", shared.f, shared.d, shared.wide, n);
  CHECK(shared.bits == (rounds >= 8 ? 255 : (1 << rounds) - 1), "atomic or: %d", shared.bits);
  long expected = 0;
  for (int i = 0; i < rounds; ++i)
    if (threads % 2) expected ^= 1L << (i % 60);
  CHECK(shared.l == expected, "atomic xor: %ld", shared.l);
  CHECK(tickets == n && ticket_sum == n * (n - 1) / 2, "atomic capture: %ld tickets, sum %ld",
        tickets, ticket_sum);
  CHECK(smallest == 0 && largest == (threads - 1) * 1000 + rounds - 1, "atomic compare: %d to %d",
        smallest, largest);
}

/// A barrier separates: nobody is a phase ahead.
static void barriers(int threads, int rounds) {
  int* phase = calloc((size_t)threads * 16, sizeof *phase);
  CHECK(phase, "no memory");
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    for (int round = 1; round <= rounds; ++round) {
      phase[me * 16] = round;
#pragma omp barrier
      for (int i = 0; i < threads; ++i)
        CHECK(phase[i * 16] == round, "round %d: thread %d is in phase %d", round, i,
              phase[i * 16]);
#pragma omp barrier
    }
  }
  free(phase);
}

int main(void) {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  int sizes[] = {omp_get_max_threads(), 1, 2, 3, 8, 32};
  for (int s = 0; s < 6; ++s) {
    int threads = sizes[s];
    sections_forms(threads);
    singles(threads);
    masters(threads);
    scopes(threads);
    criticals(threads, 400);
    atomics(threads, 300);
    barriers(threads, 200);
  }
  return passed();
}
