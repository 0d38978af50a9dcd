// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// taskwait inside a catch block, with tasks that throw and catch: `throw;` afterwards raises the right one.
#include "check.h"

#include <omp.h>

#include <exception>
#include <stdexcept>

namespace {

struct Fault {
  int number;
};

int caught_in_tasks;

void noisy_task(int number, int depth) {
  try {
    throw Fault{number};
  } catch (Fault& fault) {
    if (depth > 0) {
#pragma omp task firstprivate(number, depth)
      noisy_task(number * 3 + 1, depth - 1);
#pragma omp task firstprivate(number, depth)
      noisy_task(number * 3 + 2, depth - 1);
#pragma omp taskwait
    } else {
#pragma omp taskyield
    }
    CHECK(fault.number == number, "task %d finds exception %d in its handler", number,
          fault.number);
    try {
      throw;
    } catch (Fault& again) {
      CHECK(again.number == number, "task %d: rethrow raised exception %d", number, again.number);
    }
  }
#pragma omp atomic
  caught_in_tasks++;
}

void waiter(int id, int tasks) {
  try {
    throw Fault{id};
  } catch (Fault& fault) {
    for (int i = 0; i < tasks; ++i) {
#pragma omp task firstprivate(i, id)
      noisy_task(id * 100 + i + 1, 2);
    }
    try {
      throw std::runtime_error("second");
    } catch (std::exception&) {
#pragma omp taskwait
      try {
        throw;
      } catch (std::runtime_error& error) {
        CHECK(!strcmp(error.what(), "second"), "waiter %d rethrew '%s'", id, error.what());
      } catch (Fault& other) {
        CHECK(false, "waiter %d rethrew Fault %d instead of its runtime_error", id, other.number);
      }
    }
    try {
      throw;
    } catch (Fault& again) {
      CHECK(&again == &fault && again.number == id, "waiter %d rethrew Fault %d", id, again.number);
    } catch (...) {
      CHECK(false, "waiter %d rethrew something else", id);
    }
  }
  CHECK(std::uncaught_exceptions() == 0, "waiter %d: exceptions in flight", id);
}

}  // namespace

int main() {
  omp_set_dynamic(0);
  int sizes[] = {omp_get_max_threads(), 1, 2, 4, 8};
  for (int threads : sizes) {
    for (int round = 0; round < 10; ++round) {
      caught_in_tasks = 0;
#pragma omp parallel num_threads(threads)
      waiter(omp_get_thread_num() + 1, 4);
      CHECK(caught_in_tasks == threads * 4 * 7, "%d tasks ran, expected %d", caught_in_tasks,
            threads * 4 * 7);
      caught_in_tasks = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
      for (int i = 0; i < 6; ++i) {
#pragma omp task firstprivate(i)
        waiter(1000 + i, 3);
      }
      CHECK(caught_in_tasks == 6 * 3 * 7, "%d tasks ran, expected %d", caught_in_tasks, 6 * 3 * 7);
      // The barrier at the end of a region and taskgroup wait in a handler, too.
      int count = 0;
#pragma omp parallel num_threads(threads) shared(count)
      {
        try {
          throw Fault{omp_get_thread_num()};
        } catch (Fault& fault) {
#pragma omp taskgroup
          for (int i = 0; i < 3; ++i) {
#pragma omp task shared(count)
            {
              noisy_task(7, 1);
#pragma omp atomic
              count++;
            }
          }
#pragma omp barrier
          CHECK(fault.number == omp_get_thread_num(), "thread %d holds the exception %d",
                omp_get_thread_num(), fault.number);
        }
      }
      CHECK(count == 3 * threads, "%d tasks, expected %d", count, 3 * threads);
    }
  }
  return passed();
}
